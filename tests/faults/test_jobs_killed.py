"""kill -9 at any moment: never a partial file under the final name, and the same command again gives the same bytes."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from mechdesign.jobs.ledger import Ledger
from tests.faults.job_cases import (
    APPLY,
    CHANNEL,
    LEDGER,
    ROOT,
    Ended,
    Nursery,
    assert_manifest,
    assert_release,
    copy_folder,
    entries,
    keys,
    leftovers,
    link_folder,
    read_table,
    states,
    write_folder,
)

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="processes are forked and killed"
)

ROWS = 30_000
"""Enough that reading, drawing and writing take most of the time, and signals land there."""

LATE = 6
"""Most of a run is over when the first byte is written: about this part of it is left."""

MEDIUM_ROWS = 12_000
FEW_ROWS = 50

COMMAND = (*APPLY, "in.csv", "out.csv", "--internal-manifest", "internal.json")
KILLED = -signal.SIGKILL


def ok(ended: Ended) -> Ended:
    assert ended.status == 0, ended.err
    return ended


@pytest.fixture(scope="module")
def begun(nursery, tmp_path_factory) -> Path:
    """A folder whose job has released ref.csv, which all further runs of the job must equal."""
    folder = write_folder(tmp_path_factory.mktemp("jobs") / "begun", ROWS)
    ok(nursery.run(folder, *APPLY, "in.csv", "ref.csv"))
    assert_release(folder / "in.csv", folder / "ref.csv")
    return folder


@pytest.fixture(scope="module")
def small(nursery, tmp_path_factory) -> tuple[Path, Path]:
    """Two small folders: without a job, and with one that has released ref.csv."""
    jobs = tmp_path_factory.mktemp("jobs")
    bare = write_folder(jobs / "bare", FEW_ROWS)
    folder = copy_folder(bare, jobs / "small")
    ok(nursery.run(folder, *APPLY, "in.csv", "ref.csv"))
    return bare, folder


def phase(folder: Path) -> str:
    """How far a killed process had got, as the files show."""
    known = states(folder)
    if (folder / "out.csv").exists():
        return f"named, {known[-1]}"
    if "finishing" in known:
        return "finishing"
    part = folder / ".out.csv.part"
    return "writing" if part.exists() and part.stat().st_size else "before writing"


def assert_whole_after_kill(folder: Path, reference: str | None = None) -> None:
    """Whatever has its final name is complete."""
    out = folder / "out.csv"
    if out.exists():
        if reference is None:
            assert_release(folder / "in.csv", out)
        else:
            assert out.read_bytes() == (folder / reference).read_bytes()
        assert_manifest(out)
        assert (folder / "internal.json").exists()


def assert_resumed(
    nursery: Nursery, folder: Path, command: tuple[str, ...], reference: str
) -> None:
    """The same command succeeds, clears everything away, and gives the draws of the job."""
    key = keys(folder)
    ended = ok(nursery.run(folder, *command))
    assert (folder / "out.csv").read_bytes() == (folder / reference).read_bytes()
    assert_manifest(folder / "out.csv")
    assert leftovers(folder) == []
    assert keys(folder) == key
    (digits,) = (text.strip().split(":")[-1] for text in key)
    assert len(digits) == 64
    assert digits not in ended.out + ended.err
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".key":
            content = path.read_bytes()
            assert bytes.fromhex(digits) not in content
            assert digits.encode() not in content


def kills(
    nursery: Nursery, begun: Path, tmp_path: Path, times: int, seed: int
) -> Counter[str]:
    """Kill runs at random moments: a quarter of the times of all, else of those from the first byte of output on."""
    usual = ok(nursery.run(link_folder(begun, tmp_path / "usual"), *COMMAND)).seconds
    draw = random.Random(seed)
    phases: Counter[str] = Counter()
    for i in range(20 * times):
        folder = link_folder(begun, tmp_path / str(i))
        request = {"after": draw.uniform(0, usual)}
        if i % 4:
            request = {
                "after": draw.uniform(0, usual / LATE),
                "when": str(folder / ".out.csv.part"),
            }
        ended = nursery.run(folder, *COMMAND, signal=signal.SIGKILL, **request)
        assert ended.status in (KILLED, 0), ended.err
        if ended.status == KILLED:
            phases[phase(folder)] += 1
            assert_whole_after_kill(folder, "ref.csv")
            assert_resumed(nursery, folder, COMMAND, "ref.csv")
        else:  # what was usual on a busy machine comes too late on an idle one
            usual = min(usual, ended.seconds)
        shutil.rmtree(folder)
        if phases.total() == times:
            break
    return phases


def test_kills_at_random_moments(nursery, begun, tmp_path):
    """A few; two hundred are a slow test."""
    assert kills(nursery, begun, tmp_path, 3, seed=7).total() == 3


@pytest.mark.slow
def test_two_hundred_kills_at_random_moments(nursery, begun, tmp_path):
    phases = kills(nursery, begun, tmp_path, 200, seed=8)
    print(
        "\n200 kills, 200 correct results after resuming; when they were killed:",
        dict(phases),
    )
    assert phases.total() == 200
    # What follows takes milliseconds, and is not always met: other tests kill there on purpose.
    assert {"before writing", "writing"} <= set(phases)


@pytest.mark.parametrize("compressed", ["in.parquet", "in.csv.gz"])
def test_kills_while_other_kinds_of_files_are_written(nursery, tmp_path, compressed):
    import pyarrow.csv
    import pyarrow.parquet

    start = write_folder(tmp_path / "start", MEDIUM_ROWS)
    if compressed == "in.parquet":
        pyarrow.parquet.write_table(
            pyarrow.csv.read_csv(start / "in.csv"), start / compressed
        )
        target, reference = "out.parquet", "ref.parquet"
    else:
        (start / compressed).write_bytes(gzip.compress((start / "in.csv").read_bytes()))
        target, reference = "out.csv.gz", "ref.csv.gz"
    usual = ok(nursery.run(start, *APPLY, compressed, reference)).seconds
    if target == "out.csv.gz":
        assert_release(start / "in.csv", start / reference)
    for i, share in enumerate((0, 0.1, 0.3)):
        folder = link_folder(start, tmp_path / str(i))
        request = {"after": share * usual, "when": str(folder / f".{target}.part")}
        assert nursery.run(
            folder, *APPLY, compressed, target, signal=signal.SIGKILL, **request
        ).status in (
            KILLED,
            0,
        )
        ok(nursery.run(folder, *APPLY, compressed, target))
        assert (folder / target).read_bytes() == (folder / reference).read_bytes()
        assert leftovers(folder) == []


def test_nothing_is_left_of_standard_input(nursery, begun, tmp_path):
    """The copy of it has no name, so kill -9 leaves no raw data behind."""
    folder = link_folder(begun, tmp_path / "folder")
    usual, command = set(folder.iterdir()), (*APPLY, "-", "out.csv")
    request = {
        "stdin": str(folder / "in.csv"),
        "when": str(folder / ".out.csv.part"),
        "after": 0,
    }
    assert (
        nursery.run(folder, *command, signal=signal.SIGKILL, **request).status == KILLED
    )
    assert {path.name for path in set(folder.iterdir()) - usual} == {
        ".out.csv.part",
        ".out.csv.manifest.json.part",
    }
    ok(nursery.run(folder, *command, stdin=str(folder / "in.csv")))
    assert (folder / "out.csv").read_bytes() == (folder / "ref.csv").read_bytes()
    assert leftovers(folder) == []


every = pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.slow)])
"""How many of the moments are tried: one in so many, or all of them."""


def drawn_by_hand(folder: Path, identity: str | None) -> list[str]:
    """What the key of the job draws for the records of in.csv."""
    ledger, entry = Ledger(folder / LEDGER), entries(folder)[-1]
    key = ledger.key_of(entry.drawn[0])
    rows = read_table(folder / "in.csv")[1:]
    identifiers = None if identity is None else [row[0] for row in rows]
    return list(CHANNEL.apply([row[1] for row in rows], key=key, identity=identifiers))


@every
@pytest.mark.parametrize("identity", [None, "id"])
def test_kills_right_before_every_change_of_a_file(
    nursery, small, tmp_path, identity, every
):
    """The first run of a job: folder, ledger, key, temporary files, names."""
    bare, _ = small
    command = COMMAND if identity is None else (*COMMAND, "--identity", identity)
    calls = ok(nursery.run(link_folder(bare, tmp_path / "usual"), *command)).calls
    assert calls > 30
    phases: Counter[str] = Counter()
    for call in range(calls, 0, -every):
        folder = link_folder(bare, tmp_path / str(call))
        assert nursery.run(folder, *command, crash_at=call).status == KILLED
        phases[phase(folder)] += 1
        assert_whole_after_kill(folder)
        ok(nursery.run(folder, *command))
        assert_release(folder / "in.csv", folder / "out.csv")
        assert [row[1] for row in read_table(folder / "out.csv")[1:]] == drawn_by_hand(
            folder, identity
        )
        assert leftovers(folder) == []
    # A walk in steps need not meet the few changes of the last phase.
    assert (
        {"before writing", "named, finishing"} if every == 1 else {"before writing"}
    ) <= set(phases)
    assert every > 1 or "finishing" in phases


@every
def test_kills_right_before_every_change_of_a_fresh_draw(
    nursery, small, tmp_path, every
):
    """Killed or not, one --fresh-draw is one further draw."""
    _, begun = small
    command = (*COMMAND, "--fresh-draw")
    usual = link_folder(begun, tmp_path / "usual")
    calls = ok(nursery.run(usual, *command)).calls
    expected = (usual / "out.csv").read_bytes()
    assert expected != (begun / "ref.csv").read_bytes()
    for call in range(calls, 0, -every):
        folder = link_folder(begun, tmp_path / str(call))
        assert nursery.run(folder, *command, crash_at=call).status == KILLED
        if any(
            run.drawn[0].draw == 1 and run.state == "done" for run in entries(folder)
        ):
            continue  # it was complete, and the same command would ask for one draw more
        assert_whole_after_kill(folder)
        ok(nursery.run(folder, *command))
        assert (folder / "out.csv").read_bytes() == expected
        assert {run.drawn[0].draw for run in entries(folder)} == {0, 1}
        assert leftovers(folder) == []


@every
def test_kills_of_a_run_that_replaces_a_file(nursery, small, tmp_path, every):
    """With --force the old file stays until the new one takes its place."""
    _, begun = small
    begun = link_folder(begun, tmp_path / "old")
    (begun / "out.csv").write_text("old")
    command = (*COMMAND, "--force")
    calls = ok(nursery.run(link_folder(begun, tmp_path / "usual"), *command)).calls
    seen = set()
    for call in range(calls, 0, -every):
        folder = link_folder(begun, tmp_path / str(call))
        assert nursery.run(folder, *command, crash_at=call).status == KILLED
        seen.add((folder / "out.csv").read_bytes())
        ok(nursery.run(folder, *command))
        assert (folder / "out.csv").read_bytes() == (begun / "ref.csv").read_bytes()
        assert leftovers(folder) == []
    assert seen == {b"old", (begun / "ref.csv").read_bytes()}


@pytest.mark.parametrize(
    ("signum", "message"),
    [
        (signal.SIGTERM, "stopped by SIGTERM; nothing was written"),
        (signal.SIGHUP, "stopped by SIGHUP; nothing was written"),
        (signal.SIGINT, "interrupted; nothing was written"),
    ],
)
def test_signals_that_ask(nursery, begun, tmp_path, signum, message):
    """The process clears everything away, says so, and the job is as it was."""
    asked = 0
    for i, after in enumerate((0, 0.003, 0.01)):
        folder = link_folder(begun, tmp_path / str(i))
        request = {"after": after, "when": str(folder / ".out.csv.part")}
        ended = nursery.run(folder, *COMMAND, signal=signum, **request)
        assert leftovers(folder) == []
        if ended.status in (
            0,
            -signum,
        ):  # all was done; the signal may come while Python ends
            assert_release(folder / "in.csv", folder / "out.csv")
            continue
        asked += 1
        assert (ended.status, ended.err) == (
            128 + signum,
            f"mechdesign: error: {message}\n",
        )
        assert not (folder / "out.csv").exists()
        assert states(folder) == ["done"]
    assert asked


ENTERING = """
import os, sys
from tests.faults.job_cases import entered
for told in map(str.strip, sys.stdin):
    child = os.fork()
    if not child:
        for number in range(10**6):
            entered(sys.argv[1], told, number)
    print(child, flush=True)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    print("killed", flush=True)
"""
"""For each file that it is told, a process that enters releases until it is killed."""


def test_kills_in_the_middle_of_changes_of_the_ledger(tmp_path):
    """Every release that was entered before the kill is there, and none by halves."""
    ledger, told = tmp_path / "ledger.db", tmp_path / "told"
    draw = random.Random(9)
    with subprocess.Popen(
        [sys.executable, "-c", ENTERING, ledger],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for round_ in range(10):
            print(f"{told}{round_}", file=process.stdin, flush=True)
            child = int(process.stdout.readline())
            while not Path(f"{told}{round_}").exists():
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 0.1))
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "killed\n"
            book = Ledger(ledger)
            with book.reading() as db:
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                found = [entry.id for entry in book.releases(db)]
            said = [
                line
                for k in range(round_ + 1)
                for line in Path(f"{told}{k}").read_text().split("\n")[:-1]
            ]
            assert set(said) <= set(found)
            assert (
                len(found) - len(said) <= round_ + 1
            )  # entered, and killed before it could say so
