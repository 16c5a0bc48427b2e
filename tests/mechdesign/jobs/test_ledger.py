"""The ledger as a file: made whole, kept private, read by no other program."""

from __future__ import annotations

import itertools
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from mechdesign.core.errors import InputError
from mechdesign.jobs import ledger_file as module
from mechdesign.jobs.file_run import FileRun
from mechdesign.jobs.keys import create_key, key_of_draw, read_key
from mechdesign.jobs.ledger import DONE, FINISHING, Drawn, Entry, Ledger, Use
from mechdesign.jobs.ledger_file import default_path
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.release.draws import Key
from tests.cases.released_records import mixing_channel, people

USE = Use(channel="c" * 64, columns=("job",), form="label")
DRAWN = Drawn(use=USE, job="rows x", draw=0)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "ledger.db"


def entry(name: str, state: str = DONE, **more) -> Entry:
    given = {
        "target": f"/{name}.csv",
        "started": "now",
        "output": "e" * 64,
        "records": 3,
        "drawn": (DRAWN,),
    }
    return Entry(id=name, state=state, **{**given, **more})


def enter(ledger: Ledger, *entries: Entry) -> None:
    with ledger.changing() as db:
        for each in entries:
            ledger.enter(db, each)


def releases(ledger: Ledger) -> list[Entry]:
    with ledger.reading() as db:
        return list(ledger.releases(db))


def names(ledger: Ledger) -> list[str]:
    return [each.id for each in releases(ledger)]


def key_of(ledger: Ledger, drawn: Drawn = DRAWN) -> Key:
    return ledger.key_of(drawn)


def test_the_default_place(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert (
        Ledger().path
        == default_path()
        == tmp_path / "data" / "mechdesign" / "ledger.db"
    )
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    home = default_path()
    assert home.is_relative_to(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert default_path() == home


@pytest.mark.parametrize("variable", ["XDG_DATA_HOME", "HOME"])
def test_a_default_place_that_moves_with_the_working_folder(
    monkeypatch, tmp_path, variable
):
    """A second release from another folder would have a ledger of its own."""
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv(variable, "data")
    with pytest.raises(InputError, match=r"by HOME or XDG_DATA_HOME\) is no absolute"):
        Ledger()
    assert Ledger(tmp_path / "ledger.db").path == tmp_path / "ledger.db"


def test_a_new_ledger(path):
    ledger = Ledger(path)
    assert read_key(path.with_name("ledger.db.key")) == ledger.key
    if sys.platform != "win32":
        assert [each.stat().st_mode & 0o777 for each in (path, ledger.key_path)] == [
            0o600,
            0o600,
        ]
    enter(ledger, entry("one", FINISHING), entry("two"))
    enter(ledger, entry("one"))  # what has become of it
    again = Ledger(path)
    assert (again.key, names(again)) == (ledger.key, ["one", "two"])
    with again.changing() as db:
        again.remove(db, entry("one"))
        assert again.last_of(db, "/one.csv") is None
        assert again.last_of(db, "/two.csv") == entry("two")


def test_keys_are_derived_and_in_no_other_file(path):
    ledger = Ledger(path)
    enter(ledger, entry("one"))
    first = key_of(ledger)
    assert first == key_of(Ledger(path)) == ledger.key.derived("job", "rows x")
    assert key_of(ledger, DRAWN.model_copy(update={"draw": 2})) == key_of_draw(first, 2)
    for secret in (ledger.key.secret, first.secret):
        assert secret not in path.read_bytes()
        assert secret.hex().encode() not in path.read_bytes()


def test_a_change_that_fails_changes_nothing(path):
    ledger = Ledger(path)
    with suppress(ValueError), ledger.changing() as db:
        ledger.enter(db, entry("one"))
        raise ValueError
    assert names(ledger) == []


def test_a_crash_between_ledger_and_key(path, monkeypatch):
    def killed(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "create_key", killed)
        with pytest.raises(KeyboardInterrupt):
            Ledger(path)
    assert path.exists()
    assert not Path(f"{path}.key").exists()
    assert Ledger(path).key == read_key(f"{path}.key")


def test_a_key_that_is_gone_or_another_one(path):
    first = Ledger(path)
    first.key_path.unlink()
    second = Ledger(path)  # nothing was released, so nothing is lost
    assert second.key != first.key
    enter(second, entry("one"))
    second.key_path.unlink()
    with pytest.raises(
        InputError,
        match=r"ledger\.db\.key of the ledger is gone, and without it nobody can",
    ):
        Ledger(path)
    create_key(second.key_path, Key.fresh())
    with pytest.raises(
        InputError,
        match=r"is not the one of the ledger .*ledger\.db; another key would draw",
    ):
        Ledger(path)


def test_a_key_without_its_ledger(path):
    Ledger(path)
    path.unlink()
    with pytest.raises(
        InputError,
        match=r"there is no ledger .*ledger\.db, but its key ledger\.db\.key is there",
    ):
        Ledger(path)


@pytest.mark.skipif(
    sys.platform == "win32", reason="Windows keeps permissions in access lists"
)
def test_a_key_that_others_can_read(path):
    Ledger(path).key_path.chmod(0o644)
    with pytest.raises(
        InputError, match=r"can be read by others \(mode 0644\).*chmod 600"
    ):
        Ledger(path)


def test_other_files_are_no_ledgers(tmp_path, path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(
        InputError, match=r"text is not a ledger \(no SQLite file\); name another"
    ):
        Ledger(tmp_path / "text")
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA application_id = 7")
    db.close()
    create_key(f"{path}.key", Key.fresh())
    with pytest.raises(
        InputError, match="is a file of another program, and no ledger of version 1"
    ):
        Ledger(path)
    with pytest.raises(
        InputError, match="is a folder; give the name of a file for the ledger"
    ):
        Ledger(tmp_path)
    with pytest.raises(
        InputError,
        match="cannot be written: no such file or directory; name another place",
    ):
        Ledger(tmp_path / "none" / "ledger.db")


@pytest.mark.parametrize("application", [0, 7])
def test_a_database_of_another_program_stays_as_it_is(path, application):
    """Most programs leave the number of the application at 0, which looked like a new ledger."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute(f"PRAGMA application_id = {application}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(
        InputError, match="is a file of another program, and no ledger of version 1"
    ):
        Ledger(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_ledger_of_a_later_version(path):
    ledger = Ledger(path)
    with ledger.changing() as db:
        db.execute("PRAGMA user_version = 2")
    with pytest.raises(
        InputError, match="is a file of version 2, and no ledger of version 1"
    ):
        Ledger(path)


def test_another_process_keeps_the_ledger(path, monkeypatch):
    ledger = Ledger(path)
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with (
        ledger.changing(),
        pytest.raises(
            InputError, match=r"another process keeps the ledger .* busy; try again"
        ),
    ):
        enter(Ledger(path), entry("one"))
    enter(ledger, entry("one"))


def test_many_at_once_lose_no_entry(path):
    errors = []

    def work(i: int) -> None:
        try:
            for j in range(3):
                enter(Ledger(path), entry(f"{i}-{j}"))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(names(Ledger(path))) == 15
    assert len(list(path.parent.iterdir())) == 2


def test_a_file_of_another_kind_is_no_ledger(path):
    path.write_text('{"format": "mechdesign.job"}')
    with pytest.raises(InputError, match=r"is not a ledger \(no SQLite file\)"):
        Ledger(path)


def test_two_jobs_that_know_the_same_records(path, tmp_path, monkeypatch):
    """As two machines leave them: the last one goes on."""
    channel, source = mixing_channel(), tmp_path / "in.csv"
    people(50).to_csv(source, index=False)
    sanitise_file(channel, source, tmp_path / "first.csv", ledger=path)
    (first,) = releases(Ledger(path))
    other = first.drawn[0].model_copy(update={"job": "rows other"})
    known = first.model_copy(
        update={
            "id": "3" * 16,
            "target": "/old.csv",
            "drawn": (other,),
            "ordered": None,
        }
    )
    enter(Ledger(path), known)
    drawn, calls = FileRun.draw, itertools.count()

    def counted(*arguments):
        assert next(calls) < 3, "the job goes round in circles"
        return drawn(*arguments)

    monkeypatch.setattr(FileRun, "draw", counted)
    sanitise_file(channel, source, tmp_path / "second.csv", ledger=path)
    *_, second = releases(Ledger(path))
    assert second.drawn == (other,)


def test_a_transaction_is_on_disk_before_it_ends(path):
    """After a power cut no record may be drawn a second time, so SQLite must wait for the disk (EXTRA, 3)."""
    ledger = Ledger(path)
    for connection in (ledger.changing, ledger.reading):
        with connection() as db:
            assert db.execute("PRAGMA synchronous").fetchone() == (3,)
