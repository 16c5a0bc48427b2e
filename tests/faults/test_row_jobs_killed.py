"""kill -9 at chosen points of jobs with a channel of whole rows: nothing is lost, and the same rows are drawn again."""

from __future__ import annotations

import random
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.jobs.ledger import Ledger
from tests.faults.job_cases import (
    LEDGER,
    assert_manifest,
    entries,
    keys,
    leftovers,
    link_folder,
)

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="processes are forked and killed"
)

ROWS = 30_000
FEW_ROWS = 60
KILLED = -signal.SIGKILL

RELEASED = ["k", "a", "b"]
"""A given column and two released ones."""

APPLY = ("apply", "rows.json", "in.csv", "out.csv", "--keep", "id")

JOB = """\
channel = "rows.json"

[[apply]]
in = "in.csv"
out = "out.csv"
identity = "id"
keep = "id"

[[apply]]
in = "days"
out = "released"
"""

every = pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.slow)])
"""How many of the moments are tried: one in so many, or all of them."""


def table(rows: int, seed: int) -> pd.DataFrame:
    """Records in random order, so that none tells by its place."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{seed}-{i}" for i in range(rows)],
            "k": rng.choice(["m", "n"], rows),
            "a": rng.choice(["x", "y", "z"], rows),
            "b": rng.choice(["u", "v"], rows),
        }
    )
    return frame.sample(frac=1, random_state=seed)


@pytest.fixture(scope="module")
def channel() -> md.Channel:
    frame = table(2000, 7)
    rng = np.random.default_rng(7)
    frame["s"] = np.where(
        rng.random(2000) < 0.3 + 0.2 * (frame["a"] == "x"), "yes", "no"
    )
    made = md.design(
        frame,
        sensitive="s",
        given=["k"],
        release=["a", "b"],
        promise="relative",
        notion=md.LIP(0.05),
        time_limit=60.0,
    )
    # A constant, or cells that hardly ever change, would make two draws of 60 records alike.
    assert len(made.channel.outputs) > 4
    assert made.truth["a"] < 0.9
    return made.channel


@pytest.fixture(scope="module")
def folders(tmp_path_factory, channel) -> dict[str, Path]:
    """Folders with rows.json, in.csv, a folder of days and a job file: of few rows and of many."""
    found = {}
    for name, rows in (("small", FEW_ROWS), ("large", ROWS)):
        folder = tmp_path_factory.mktemp(name)
        channel.save(folder / "rows.json")
        table(rows, 1).to_csv(folder / "in.csv", index=False)
        (folder / "job.toml").write_text(JOB)
        for day in (1, 2):
            (folder / "days" / f"day={day}").mkdir(parents=True)
            part = table(FEW_ROWS, 10 + day)[RELEASED]
            part.to_csv(folder / "days" / f"day={day}" / "a.csv", index=False)
        found[name] = folder
    return found


def ok(ended):
    assert ended.status == 0, ended.err
    return ended


def drawn_by_hand(folder: Path, channel: md.Channel, identified: bool) -> list:
    """What the key of the job draws for the records of in.csv."""
    entry = entries(folder)[0]
    key = Ledger(folder / LEDGER).key_of(entry.drawn[0])
    frame = pd.read_csv(folder / "in.csv")
    identity = list(frame["id"]) if identified else None
    return channel.apply(frame[RELEASED], key=key, identity=identity).values.tolist()


def assert_release(folder: Path, channel: md.Channel, identified: bool) -> None:
    """Not a row lost, doubled or moved; every released row is the one that the key draws."""
    before = pd.read_csv(folder / "in.csv")
    after = pd.read_csv(folder / "out.csv")
    assert list(after.columns) == ["id", *RELEASED]
    assert list(after["id"]) == list(before["id"])
    assert list(after["k"]) == list(before["k"])
    drawn = drawn_by_hand(folder, channel, identified)
    assert after[RELEASED].values.tolist() == drawn
    assert_manifest(folder / "out.csv")


@every
@pytest.mark.parametrize("identified", [False, True])
def test_kills_right_before_every_change_of_a_file(
    nursery, folders, tmp_path, channel, identified, every
):
    """The first run of a job: folder, ledger, key, temporary files, names."""
    command = (*APPLY, "--identity", "id") if identified else APPLY
    calls = ok(nursery.run(link_folder(folders["small"], tmp_path / "usual"), *command))
    assert calls.calls > 30
    for call in range(calls.calls, 0, -every):
        folder = link_folder(folders["small"], tmp_path / str(call))
        assert nursery.run(folder, *command, crash_at=call).status == KILLED
        if (folder / "out.csv").exists():
            assert_release(folder, channel, identified)
        key = keys(folder)
        ok(nursery.run(folder, *command))
        assert_release(folder, channel, identified)
        assert leftovers(folder) == []
        # A key that was written is the one that goes on.
        assert key in ([], keys(folder))
        assert {entry.drawn[0].draw for entry in entries(folder)} == {0}


@every
def test_kills_right_before_every_change_of_a_fresh_draw(
    nursery, folders, tmp_path, channel, every
):
    """Killed or not, one --fresh-draw is one further draw of every level."""
    begun = link_folder(folders["small"], tmp_path / "begun")
    ok(nursery.run(begun, *APPLY))
    (begun / "out.csv").rename(begun / "ref.csv")
    command = (*APPLY, "--fresh-draw", "--force")
    usual = link_folder(begun, tmp_path / "usual")
    calls = ok(nursery.run(usual, *command)).calls
    expected = (usual / "out.csv").read_bytes()
    assert expected != (begun / "ref.csv").read_bytes()
    for call in range(calls, 0, -every):
        folder = link_folder(begun, tmp_path / str(call))
        assert nursery.run(folder, *command, crash_at=call).status == KILLED
        done = [
            entry
            for entry in entries(folder)
            if entry.drawn[0].draw == 1 and entry.state == "done"
        ]
        if done:
            continue  # it was complete, and the same command would ask for one draw more
        ok(nursery.run(folder, *command))
        assert (folder / "out.csv").read_bytes() == expected
        assert {entry.drawn[0].draw for entry in entries(folder)} == {0, 1}
        assert leftovers(folder) == []


@every
def test_kills_right_before_every_change_of_a_nightly_job(
    nursery, folders, tmp_path, channel, every
):
    """`run` with a file and a folder: the second run completes what is missing, byte for byte.

    At most one moment in five: each change of a file alone is tried above.
    """
    command = ("run", "job.toml")
    usual = link_folder(folders["small"], tmp_path / "usual")
    calls = ok(nursery.run(usual, *command)).calls
    assert calls > 60
    for call in range(calls, 0, -max(5, 2 * every)):
        folder = link_folder(folders["small"], tmp_path / str(call))
        assert nursery.run(folder, *command, crash_at=call).status == KILLED
        released = {
            path.relative_to(folder): path.read_bytes()
            for path in (folder / "out.csv", folder / "released" / "_SUCCESS")
            if path.exists()
        }
        ok(nursery.run(folder, *command))
        assert_release(folder, channel, identified=True)
        for name, content in released.items():
            assert (folder / name).read_bytes() == content
        for day in (1, 2):
            name = Path(f"day={day}", "a.csv")
            before = pd.read_csv(folder / "days" / name)
            after = pd.read_csv(folder / "released" / name)
            assert list(after.columns) == RELEASED
            assert list(after["k"]) == list(before["k"])
        assert leftovers(folder) == []
        again = ok(nursery.run(folder, *command))
        assert "are complete already in out.csv" in again.out


@pytest.mark.parametrize("times", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_kills_at_random_moments(nursery, folders, tmp_path, times):
    """Whatever has its final name is complete, and the same command gives the same bytes."""
    begun = link_folder(folders["large"], tmp_path / "begun")
    usual = ok(nursery.run(begun, *APPLY)).seconds
    (begun / "out.csv").rename(begun / "ref.csv")
    (begun / "out.csv.manifest.json").unlink()
    expected = (begun / "ref.csv").read_bytes()
    draw = random.Random(11)
    phases: Counter[str] = Counter()
    for i in range(100):
        folder = link_folder(begun, tmp_path / str(i))
        request = {"after": draw.uniform(0, usual)}
        if i % 2:
            part = str(folder / ".out.csv.part")
            request = {"after": draw.uniform(0, usual / 6), "when": part}
        ended = nursery.run(folder, *APPLY, signal=signal.SIGKILL, **request)
        assert ended.status in (KILLED, 0), ended.err
        if ended.status == KILLED:
            phases["writing" if i % 2 else "any"] += 1
            if (folder / "out.csv").exists():
                assert (folder / "out.csv").read_bytes() == expected
            ok(nursery.run(folder, *APPLY))
            assert (folder / "out.csv").read_bytes() == expected
            assert leftovers(folder) == []
        else:
            usual = min(usual, ended.seconds)
        shutil.rmtree(folder)
        if phases.total() == times:
            break
    assert phases.total() == times
    assert phases["writing"] >= times // 3
