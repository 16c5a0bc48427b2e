"""Make the golden files in `stored`: python -m tests.golden.make [--missing | --force].

They were made once, by the version whose hashes, draws and files must be repeated for ever. To make them anew forgets
these: every release recorded by an earlier version would be drawn a second time. So nothing is overwritten without
`--force`, and that is right only where a change of format was decided. `--missing` adds what is new: the file of the
channel of rows, and vectors that were never stored. The key of the stored ledger protects made-up
records alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.golden.entry import main
from tests.golden.jobs import CHANNELS, JOBS, LEDGER, OPTIONS, ROW_CHANNEL, STORED_KEY
from tests.golden.vectors import STORED, VECTORS

RECORDS = 60


NOTES = [
    '"said ""so"""',
    '"a,b"',
    '"two\nlines"',
    " padded ",
    "007",
    "1.50",
    "",
    "日本",
    '5" wide',
    '"plain"',
    "\x0b",
]
"""Cells that are kept, and hard to copy."""

JOBS_OF = {"a": ["clerk", "smith", "baker"], "b": ["clerk", "smith", "weaver"]}
"""Jobs that are likely in each group; all occur in both, so that no cell of the table is zero."""


def records(chance: random.Random, first: int, *, nasty: bool) -> str:
    """A CSV file of made-up people, whose identifiers begin at `first`."""
    rows = ["id,batch,group,job,town,note\n"]
    for i in range(RECORDS):
        group = chance.choice("ab")
        job = chance.choice(JOBS_OF[group])
        if i < 8:
            group = "ab"[i % 2]
            job = ["clerk", "smith", "baker", "weaver"][i // 2]
        town = chance.choice("NS")
        note = str(chance.randrange(100))
        end = "\n"
        if nasty:
            note = NOTES[i % len(NOTES)]
            end = "\r\n" if i % 3 else "\n"
            job = f'"{job}"' if i % 5 == 0 else job
        rows.append(f"p{first + i},{i % 2},{group},{job},{town},{note}{end}")
    return "".join(rows)


def write_inputs(folder: Path) -> None:
    """Write made-up records for every job, all different since nobody may be released twice, and channels."""
    chance = random.Random(20)
    sources = [job[1] for job in JOBS.values()]
    for k, source in enumerate(sources):
        text = records(chance, 1000 * k, nasty=source == "nasty.csv")
        (folder / source).write_bytes(text.encode())
    design = ["design", "rows.csv", "--sensitive", "group"]
    strict = ["--epsilon", "1"]
    confident = [
        "--epsilon",
        "4",
        "--confidence",
        "0.9",
    ]  # which makes a file of version 2
    run(*design, *strict, "--useful", "job", "--output", "channel_1.json")
    run(*design, *strict, "--useful", "town", "--output", "town.json")
    run(*design, *confident, "--useful", "job", "--output", "channel_2.json")


def run(*arguments: str) -> None:
    """Run a command line that must succeed."""
    if main(list(arguments)) != 0:
        raise SystemExit(f"failed: mechdesign {' '.join(arguments)}")


def make(folder: Path) -> None:
    """Make all golden files in a folder."""
    os.chdir(folder)
    STORED.mkdir(exist_ok=True)
    write_inputs(folder)
    for name, (channel, source, *options) in JOBS.items():
        run("apply", channel, source, name, *OPTIONS, *options)
    sources = [job[1] for job in JOBS.values()]
    for path in (*CHANNELS, *sources, *JOBS, LEDGER):
        shutil.copyfile(folder / path, STORED / path)
    shutil.copyfile(folder / (LEDGER + ".key"), STORED / STORED_KEY)
    for path in STORED.glob("*.json"):
        if path.name == ROW_CHANNEL or path.stem in VECTORS:
            path.unlink()
    make_missing()


def make_missing() -> None:
    """Make the channel of rows and the vectors that are not stored yet."""
    if not (STORED / ROW_CHANNEL).exists():
        design = ["design", str(STORED / "rows.csv"), "--sensitive", "group"]
        rows = ["--release", "job,town", "--given", "batch", "--promise", "relative"]
        written = [
            "--epsilon",
            "1",
            "--smallest-group",
            "1",
            "--output",
            str(STORED / ROW_CHANNEL),
        ]
        run(*design, *rows, *written)
    for name, compute in VECTORS.items():
        path = STORED / f"{name}.json"
        if not path.exists():
            text = json.dumps(compute(), indent=1, ensure_ascii=True)
            path.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--force", action="store_true", help="forget the golden values there are"
    )
    parser.add_argument(
        "--missing", action="store_true", help="add what is not stored yet"
    )
    arguments = parser.parse_args()
    if arguments.missing:
        make_missing()
        sys.exit()
    if STORED.exists() and any(STORED.iterdir()) and not arguments.force:
        sys.exit(
            f"{STORED} holds golden files; they are overwritten with --force alone"
        )
    with tempfile.TemporaryDirectory(prefix="golden") as temporary:
        make(Path(temporary))
