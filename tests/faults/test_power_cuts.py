"""A power cut in the middle of a ledger transaction: all of it is there afterwards, or nothing."""

from __future__ import annotations

import random
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.release_file import sanitise_file
from tests.cases.released_records import mixing_channel
from tests.faults.power_cut import Recorder, Step, sqlite_library, states_after

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sqlite_library() is None,
    reason="SQLite is no library of its own here",
)

CHANNEL = mixing_channel()


def held(path: Path) -> tuple[str, ...]:
    """Everything that a ledger holds, in words, after a check of the whole file."""
    ledger = Ledger(path)
    with ledger.reading() as db:
        (verdict,) = db.execute("PRAGMA integrity_check").fetchone()
        assert verdict == "ok"
        rows: list[str] = []
        for table in ("releases", "samples", "known"):
            rows += map(str, db.execute(f"SELECT * FROM {table}"))
    return tuple(rows)


def release(folder: Path, name: str, records: int) -> None:
    jobs = [*"abcacbbacab"] * (records // 11 + 1)
    frame = pd.DataFrame({"id": range(records), "job": jobs[:records]})
    frame.to_csv(folder / "in.csv", index=False)
    sanitise_file(
        CHANNEL,
        folder / "in.csv",
        folder / name,
        ledger=folder / "l.db",
        identity="id",
        keep_order=True,
    )


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """The steps of two releases, the files before them, and what the ledger held at each mark."""
    release(tmp_path, "0.csv", 30)
    path = tmp_path / "l.db"
    before = {str(path): path.read_bytes()}
    contents = {"begin": held(path)}
    changing = Ledger.changing
    numbers: list[int] = []

    @contextmanager
    def marked(self):
        with changing(self) as db:
            numbers.append(len(numbers))
            mark = f"{len(numbers)}"
            yield db
        recorder.mark(mark)
        # Read by the usual layer: reading writes nothing.
        contents[mark] = held(path)

    with Recorder(sqlite_library()) as recorder:
        recorder.mark("begin")
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "changing", marked)
            release(tmp_path, "1.csv", 200)
            release(tmp_path, "2.csv", 3000)
    return recorder.steps, before, contents


def survived(folder: Path, state: dict[str, bytes], source: Path) -> tuple[str, ...]:
    """What a ledger holds that lies in these files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path, data in state.items():
        (folder / Path(path).name).write_bytes(data)
    shutil.copy(source / "l.db.key", folder / "l.db.key")
    return held(folder / "l.db")


def test_a_power_cut_leaves_all_of_a_transaction_or_nothing(recorded, tmp_path):
    """And whatever was reported as entered stays: the output gets its name only after that."""
    steps, before, contents = recorded
    rng = random.Random(11)
    assert len(contents) == 5, "two transactions for each release"
    marks = [*contents]
    cuts = 0
    for cut in range(1, len(steps) + 1):
        done = [step.path for step in steps[:cut] if step.kind == "mark"]
        begun = marks[min(len(marks) - 1, marks.index(done[-1]) + 1)]
        for state in states_after(before, steps[:cut], rng):
            found = survived(tmp_path / "after", state, tmp_path)
            assert found in (contents[done[-1]], contents[begun]), steps[cut - 1]
            cuts += 1
    assert cuts > 100
    assert found == contents[marks[-1]]


@pytest.mark.parametrize("setting", ["OFF", "NORMAL"])
def test_the_test_sees_a_ledger_that_does_not_sync(recorded, tmp_path, setting):
    """Without the steps that sync, or that sync the folder, committed transactions are lost or torn."""
    steps, before, contents = recorded
    lax: list[Step] = []
    for step in steps:
        if setting == "OFF" and step.kind == "sync":
            continue
        if step.kind == "delete":
            step = Step("delete", step.path, 0)
        lax.append(step)
    last = [*contents][-1]
    losses = 0
    for seed in range(3):
        for state in states_after(before, lax, random.Random(seed)):
            try:
                found = survived(tmp_path / "after", state, tmp_path)
            except Exception:
                losses += 1
            else:
                losses += found != contents[last]
    assert losses
