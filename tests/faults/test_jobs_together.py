"""Jobs at the same time, inputs that change or break off, and jobs and keys that are not as they were left."""

from __future__ import annotations

import gzip
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mechdesign.core.files import open_locked, part_file
from tests.faults.job_cases import (
    APPLY,
    LEDGER,
    Ended,
    Nursery,
    assert_manifest,
    assert_release,
    copy_folder,
    entries,
    leftovers,
    table,
    write_folder,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

ROWS = 20_000
TIMES = 2
"""Races are run so often; each of their outcomes must be right."""


@pytest.fixture(scope="module")
def nurseries(nursery, tmp_path_factory):
    """Two, for two processes at a time."""
    with Nursery(tmp_path_factory.mktemp("two")) as other:
        yield nursery, other


@pytest.fixture(scope="module")
def template(tmp_path_factory, nurseries) -> Path:
    folder = write_folder(tmp_path_factory.mktemp("template") / "folder", ROWS)
    assert nurseries[0].run(folder, *APPLY, "in.csv", "ref.csv").status == 0
    return folder


@pytest.fixture
def folder(template, tmp_path) -> Path:
    """A folder whose job has released ref.csv."""
    return copy_folder(template, tmp_path / "folder")


def assert_refused(ended: Ended, *words: str) -> None:
    """One line with these words; what another job caused has a code that is retried."""
    again = "another job" in ended.err or "changed while it was read" in ended.err
    again = again or "keeps the ledger" in ended.err
    assert (ended.status, ended.out) == (75 if again else 2, "")
    assert ended.err.startswith("mechdesign: error: ")
    assert ended.err.count("\n") == 1
    for word in words:
        assert word in ended.err


def together(nurseries, folder: Path, *commands: tuple[str, ...]) -> list[Ended]:
    """Run two commands at the same time."""
    ended: dict[int, Ended] = {}
    threads = [
        threading.Thread(
            target=lambda i=i: ended.update({i: nurseries[i].run(folder, *commands[i])})
        )
        for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [ended[0], ended[1]]


def test_a_target_that_another_process_writes(nursery, folder):
    lock = open_locked(part_file(folder / "out.csv"), busy="")
    try:
        assert_refused(
            nursery.run(folder, *APPLY, "in.csv", "out.csv"),
            "another job is writing out.csv; wait until",
        )
    finally:
        os.close(lock)
    assert nursery.run(folder, *APPLY, "in.csv", "out.csv").status == 0
    assert leftovers(folder) == []


def test_two_jobs_on_one_target(nurseries, template, tmp_path):
    """With the same job both write the same; one of them may find the other at work, or all done."""
    for i in range(TIMES):
        folder = copy_folder(template, tmp_path / str(i))
        ended = together(nurseries, folder, *[(*APPLY, "in.csv", "out.csv")] * 2)
        assert 0 in {one.status for one in ended}
        for one in ended:
            if one.status:
                assert_refused(one, "out.csv")
        assert (folder / "out.csv").read_bytes() == (folder / "ref.csv").read_bytes()
        assert_manifest(folder / "out.csv")
        assert leftovers(folder) == []


def test_two_first_runs_of_one_job(nurseries, template, tmp_path):
    """Both get the same key, and no entry is lost."""
    for i in range(TIMES):
        folder = write_folder(tmp_path / str(i), 1000)
        ended = together(
            nurseries, folder, (*APPLY, "in.csv", "a.csv"), (*APPLY, "in.csv", "b.csv")
        )
        assert [one.status for one in ended] == [0, 0], ended
        assert_release(folder / "in.csv", folder / "a.csv")
        assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
        runs = entries(folder)
        assert sorted(Path(run.target).name for run in runs) == ["a.csv", "b.csv"]
        assert {run.state for run in runs} == {"done"}
        assert leftovers(folder) == []


def while_changing(change: Callable[[], None], run: Callable[[], Ended]) -> Ended:
    """Change something again and again, from before the run to its end."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            change()
            over.wait(0.001)

    thread = threading.Thread(target=work)
    change()
    thread.start()
    try:
        return run()
    finally:
        over.set()
        thread.join()


def test_an_input_that_grows_while_it_is_read(nursery, folder):
    def append() -> None:
        with open(folder / "in.csv", "a") as stream:
            stream.write("1,a,x\n")

    ended = while_changing(
        append, lambda: nursery.run(folder, *APPLY, "in.csv", "out.csv")
    )
    assert_refused(
        ended,
        "in.csv changed while it was read, and nothing was written; start again when it is complete",
    )
    assert not (folder / "out.csv").exists()
    assert leftovers(folder) == []


def test_an_input_that_is_replaced_while_it_is_read(nursery, folder):
    text = (folder / "in.csv").read_text()

    def replace() -> None:
        (folder / "new.csv").write_text(text)
        os.replace(folder / "new.csv", folder / "in.csv")

    ended = while_changing(
        replace, lambda: nursery.run(folder, *APPLY, "in.csv", "out.csv")
    )
    assert_refused(ended, "in.csv changed while it was read")
    assert not (folder / "out.csv").exists()
    assert leftovers(folder) == []


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_a_gzip_that_breaks_off(nursery, folder, share):
    data = gzip.compress((folder / "in.csv").read_bytes())
    (folder / "in.csv.gz").write_bytes(data[: int(share * len(data))])
    assert_refused(nursery.run(folder, *APPLY, "in.csv.gz", "out.csv"), "in.csv.gz")
    assert not (folder / "out.csv").exists()
    assert leftovers(folder) == []


def test_a_parquet_file_that_breaks_off(nursery, folder):
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(
        pyarrow.csv.read_csv(folder / "in.csv"), folder / "in.parquet"
    )
    data = (folder / "in.parquet").read_bytes()
    (folder / "in.parquet").write_bytes(data[: len(data) // 2])
    assert_refused(
        nursery.run(folder, *APPLY, "in.parquet", "out.parquet"), "in.parquet"
    )
    assert not (folder / "out.parquet").exists()
    assert leftovers(folder) == []


def test_a_key_that_others_can_read(nursery, folder):
    key = folder / f"{LEDGER}.key"
    key.chmod(0o644)
    assert_refused(
        nursery.run(folder, *APPLY, "in.csv", "out.csv"),
        "can be read by others (mode 0644)",
        "chmod 600",
    )
    key.chmod(0o600)
    assert nursery.run(folder, *APPLY, "in.csv", "out.csv").status == 0


def test_a_key_that_is_gone(nursery, folder):
    (folder / f"{LEDGER}.key").unlink()
    for more in ((), ("--fresh-draw",)):
        ended = nursery.run(folder, *APPLY, "in.csv", "out.csv", *more)
        assert_refused(
            ended,
            "of the ledger is gone",
            "put it back",
            "or begin another ledger (--ledger FILE)",
        )
    assert not (folder / "out.csv").exists()
    ended = nursery.run(folder, *APPLY, "in.csv", "out.csv", "--ledger", "other.db")
    assert ended.status == 0, ended.err
    assert (folder / "out.csv").read_bytes() != (folder / "ref.csv").read_bytes()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda data: data[:5000], "is damaged"),
        (lambda data: data.replace(b"releases", b"reteases"), "is damaged"),
        (lambda data: b"no ledger", "is not a ledger (no SQLite file)"),
    ],
)
def test_a_damaged_ledger(nursery, folder, edit, words):
    ledger = folder / LEDGER
    ledger.write_bytes(edit(ledger.read_bytes()))
    assert_refused(nursery.run(folder, *APPLY, "in.csv", "out.csv"), "ledger.db", words)
    assert not (folder / "out.csv").exists()


def test_an_empty_ledger_is_not_taken_for_a_new_one(nursery, folder):
    """It has forgotten what was released with it, and would have drawn other records anew."""
    (folder / LEDGER).write_bytes(b"")
    ended = nursery.run(folder, *APPLY, "in.csv", "out.csv")
    assert_refused(ended, "ledger.db", "is empty, so it was cut")
    assert not (folder / "out.csv").exists()


def test_another_data_set(nursery, folder):
    (folder / "other.csv").write_text(table(ROWS, seed=2))
    assert nursery.run(folder, *APPLY, "other.csv", "out.csv").status == 0
    assert len({entry.drawn[0].job for entry in entries(folder)}) == 2


def test_the_same_again_has_nothing_to_do(nursery, folder):
    out = folder / "out.csv"
    assert nursery.run(folder, *APPLY, "in.csv", "out.csv").status == 0
    before = out.stat().st_mtime_ns, out.stat().st_ino
    ended = nursery.run(folder, *APPLY, "in.csv", "out.csv")
    assert ended.status == 0, ended.err
    assert (out.stat().st_mtime_ns, out.stat().st_ino) == before
    out.write_text("something else")
    assert_refused(
        nursery.run(folder, *APPLY, "in.csv", "out.csv"), "out.csv exists", "--force"
    )
    assert out.read_text() == "something else"


def test_standard_input_and_output(nursery, folder):
    """The data are the same, so the job is, and the draws are."""
    ended = nursery.run(folder, *APPLY, "-", "-", stdin=str(folder / "in.csv"))
    assert ended.status == 0, ended.err
    assert ended.out == (folder / "ref.csv").read_text()
    assert entries(folder)[-1].target == "-"
    assert leftovers(folder) == []


def test_standard_output_gets_nothing_of_a_job_that_fails(nursery, folder):
    (folder / "in.csv").write_text(table(ROWS) + "1,unknown,x\n")
    assert_refused(nursery.run(folder, *APPLY, "in.csv", "-"), "unknown")
