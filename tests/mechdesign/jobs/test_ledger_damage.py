"""A ledger that was cut or damaged is noticed when it is opened: no second draw is made in silence."""

from __future__ import annotations

import errno
import sqlite3

import numpy as np
import pytest

from mechdesign.core.errors import InputError
from mechdesign.jobs import ledger_file
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_file import COLUMNS, SELECT_MARK, LedgerFile, mark_of
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.release.draws import Key
from tests.cases.released_records import mixing_channel, people

CHANNEL = mixing_channel()
DAMAGED = r"^the ledger .*l\.db is damaged \(.*\), and a record that it forgot"
CUT = r"^the ledger .*l\.db is empty, so it was cut, .*put a copy of it back"


def released(folder, name="out.csv", **options):
    people(300).to_csv(folder / "in.csv", index=False)
    return sanitise_file(
        CHANNEL,
        folder / "in.csv",
        folder / name,
        **{"ledger": folder / "l.db", "identity": "id", "keep_order": True} | options,
    )


@pytest.fixture
def ledger(tmp_path):
    released(tmp_path)
    return tmp_path / "l.db"


def rows(path):
    db = sqlite3.connect(path)
    try:
        return [db.execute(f"SELECT * FROM {table}").fetchall() for table in COLUMNS]
    finally:
        db.close()


def refusal_of(path):
    try:
        Ledger(path)
    except InputError as error:
        return str(error)
    return None


def test_an_empty_ledger_is_refused(tmp_path, ledger):
    ledger.write_bytes(b"")
    with pytest.raises(InputError, match=CUT):
        released(tmp_path, "second.csv", identity=None)
    assert not (tmp_path / "second.csv").exists()


def test_an_empty_ledger_is_refused_with_a_key_from_elsewhere(tmp_path):
    path = tmp_path / "l.db"
    Ledger(path, key=Key.fresh())
    path.write_bytes(b"")
    with pytest.raises(InputError, match=CUT):
        Ledger(path, key=Key.fresh())


def test_a_rehearsal_does_not_pass_over_a_ledger_that_is_gone(tmp_path, ledger):
    from mechdesign.jobs.ledger import opened_ledger

    ledger.write_bytes(b"")
    with (
        pytest.raises(InputError, match=CUT),
        opened_ledger(ledger, None, rehearsal=True),
    ):
        pass
    ledger.unlink()
    with (
        pytest.raises(InputError, match="there is no ledger"),
        opened_ledger(ledger, None, rehearsal=True),
    ):
        pass


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_ledger_that_was_cut_off_is_refused(ledger, share):
    data = ledger.read_bytes()
    ledger.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=DAMAGED):
        Ledger(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM releases",
        "DELETE FROM known",
        "DELETE FROM samples",
        "DELETE FROM known WHERE rowid = 1",
        "UPDATE known SET symbols = zeroblob(length(symbols))",
        "UPDATE releases SET entry = '{}'",
        "UPDATE releases SET entry = 'no JSON'",
        "DROP TABLE samples",
        "DROP TABLE keys",
    ],
)
def test_rows_that_are_gone_or_changed(ledger, statement):
    with sqlite3.connect(ledger) as db:
        db.execute(statement)
    db.close()
    with pytest.raises(InputError, match=DAMAGED):
        Ledger(ledger)


def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path, ledger):
    """Wherever it lies: the error names the ledger, never the data, and is no internal one."""
    whole = rows(ledger)
    data = ledger.read_bytes()
    chance = np.random.default_rng(1)
    noticed = 0
    for at in chance.integers(100, len(data), 150).tolist():
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(chance.integers(8))
        ledger.write_bytes(damaged)
        message = refusal_of(ledger)
        if message is None:
            assert rows(ledger) == whole
        else:
            assert "ledger" in message
            noticed += 1
    assert noticed > 20


def test_the_mark_is_kept_up_to_date(tmp_path, ledger):
    """Whatever a job enters, replaces or removes, the mark is that of all rows."""
    released(tmp_path, "again.csv")
    more = {"identity": None, "fresh_draw": True}
    released(tmp_path, "more.csv", **more)
    book = Ledger(ledger)
    with book.reading() as db:
        assert db.execute(SELECT_MARK).fetchone()[0] == mark_of(db, book.key)
        (first, *_) = book.releases(db)
    with book.changing() as db:
        book.remove(db, first)
    with book.reading() as db:
        assert db.execute(SELECT_MARK).fetchone()[0] == mark_of(db, book.key)
    Ledger(ledger)


def test_a_ledger_of_an_earlier_version_gets_its_mark(tmp_path, ledger):
    with sqlite3.connect(ledger) as db:
        db.execute("DELETE FROM keys WHERE job = 'mark'")
    db.close()
    released(tmp_path, "again.csv")
    book = Ledger(ledger)
    with book.reading() as db:
        assert db.execute(SELECT_MARK).fetchone()[0] == mark_of(db, book.key)


def test_a_ledger_is_made_whole(tmp_path, monkeypatch):
    """A run that is killed while it makes one leaves no file of that name, and the next one goes on."""

    def killed(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger_file.os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            LedgerFile(tmp_path / "l.db")
    assert not (tmp_path / "l.db").exists()
    Ledger(tmp_path / "l.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.db", "l.db.key"]


def test_a_ledger_on_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ledger_file.os, "fsync", full)
    with pytest.raises(InputError, match="no space left on device"):
        LedgerFile(tmp_path / "l.db")
    assert not list(tmp_path.iterdir())


def test_a_ledger_that_another_process_makes_meanwhile_stays(tmp_path, monkeypatch):
    lock = ledger_file.open_locked

    def after_another(part, **options):
        monkeypatch.setattr(ledger_file, "open_locked", lock)
        Ledger(tmp_path / "l.db")
        return lock(part, **options)

    monkeypatch.setattr(ledger_file, "open_locked", after_another)
    second = Ledger(tmp_path / "l.db")
    assert second.key == Ledger(tmp_path / "l.db").key
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.db", "l.db.key"]
