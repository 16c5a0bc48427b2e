"""A small job in a folder, and processes that run it (see `nursery`)."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mechdesign.channel.channel import Channel
from mechdesign.jobs.ledger import Drawn, Entry, Ledger, Use
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

ROOT = Path(__file__).parents[2]
D = 2**53

APPLY = ("apply", "channel.json", "--keep", "all")
SYMBOLS = {"a": ("p", "q"), "b": ("p", "q"), "c": ("p",)}
"""What the channel may publish for each symbol."""

USEFUL = Variable(("job",), tuple((symbol,) for symbol in SYMBOLS))
CHANNEL = Channel(
    USEFUL,
    ("p", "q"),
    ((D // 2, D // 2), (D // 4, D - D // 4), (D, 0)),
    joint=Joint(Variable(("rel",), (("w",), ("h",))), USEFUL, ((1, 2, 3), (3, 2, 1))),
)

NOT_LEFT = re.compile(r"\.part$")


def table(rows: int, seed: int = 1) -> str:
    """A CSV with an identifier, the useful column and another one."""
    draw = random.Random(seed)
    lines = (f"{i},{draw.choice('abc')},{draw.choice('xyz')}\n" for i in range(rows))
    return "id,job,town\n" + "".join(lines)


def write_folder(folder: Path, rows: int) -> Path:
    """The folder with channel.json and in.csv."""
    folder.mkdir()
    CHANNEL.save(folder / "channel.json")
    (folder / "in.csv").write_text(table(rows))
    return folder


def copy_folder(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def link_folder(folder: Path, to: Path) -> Path:
    """A copy whose files are the same files, for runs that replace whole files and write into the ledger alone."""

    def link(source: str, target: str) -> None:
        (shutil.copy2 if "ledger" in source else os.link)(source, target)

    return Path(shutil.copytree(folder, to, copy_function=link))


def read_table(path: Path) -> list[list[str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as stream:
        return list(csv.reader(stream))


def assert_release(source: Path, target: Path) -> None:
    """Not a row lost, doubled or moved, nothing but the useful column changed, and that as the channel may."""
    before, after = read_table(source), read_table(target)
    assert len(after) == len(before)
    assert after[0] == before[0]
    for old, new in zip(before[1:], after[1:], strict=True):
        assert (new[0], new[2]) == (old[0], old[2])
        assert new[1] in SYMBOLS[old[1]]


def assert_manifest(target: Path) -> None:
    """The manifest is the one of these very bytes."""
    manifest = json.loads(target.with_name(f"{target.name}.manifest.json").read_text())
    assert manifest["output"] == hashlib.sha256(target.read_bytes()).hexdigest()


def leftovers(folder: Path) -> list[str]:
    """Temporary files."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if NOT_LEFT.search(path.name)
    )


def keys(folder: Path) -> list[str]:
    """Content of the key files."""
    return [path.read_text() for path in sorted(folder.rglob("*.key"))]


LEDGER = Path("data", "mechdesign", "ledger.db")
"""Where processes of a nursery keep it, seen from their folder."""


def entries(folder: Path) -> list[Entry]:
    """What the ledger of a folder holds; it is sound."""
    if not (folder / LEDGER).exists() or not (folder / f"{LEDGER}.key").exists():
        return []
    ledger = Ledger(folder / LEDGER)
    with ledger.reading() as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return ledger.releases(db)


def entered(ledger: str, told: str, number: int) -> None:
    """Enter a release, with data of some size, and say so when it is done."""
    book = Ledger(ledger)
    use = Use(channel="c" * 64, columns=("job",), form="label")
    entry = Entry(
        id=f"{os.getpid()}-{number}",
        target="/out",
        state="done",
        started="now",
        output=None,
        records=number,
        drawn=(Drawn(use=use, job="rows", draw=0),),
        settings={"much": "x" * 20_000},
    )
    with book.changing() as db:
        book.enter(db, entry)
    with open(told, "a") as stream:
        stream.write(f"{entry.id}\n")


def states(folder: Path) -> list[str]:
    return [entry.state for entry in entries(folder)]


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code or minus the signal, number of changes of files, files there, what it printed."""

    status: int
    calls: int
    seconds: float
    files: list[str]
    out: str
    err: str


class Nursery:
    """``with Nursery(folder) as nursery:`` ``nursery.run(..)`` runs a command line in a process of its own.

    `prefix` is a command that takes a command to run, in other surroundings perhaps.
    """

    def __init__(self, folder: Path, prefix: Sequence[str] = ()) -> None:
        self._printed = folder
        own = {
            "PYTHONPATH": os.fspath(ROOT),
            "OPENBLAS_NUM_THREADS": "1",
            "XDG_DATA_HOME": "data",
        }
        environment = {**os.environ, **own}
        self._process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                os.fspath(Path(__file__).with_name("nursery.py")),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, folder: Path, *argv: str, **request: object) -> Ended:
        """Run it in `folder`; see `nursery` for the request."""
        out, err = self._printed / "stdout", self._printed / "stderr"
        request |= {
            "argv": argv,
            "folder": os.fspath(folder),
            "stdout": os.fspath(out),
            "stderr": os.fspath(err),
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Ended(
            **json.loads(self._process.stdout.readline()),
            out=out.read_text(),
            err=err.read_text(),
        )
