"""Tables of thousands of columns: `apply --keep all` against pyarrow reading and rewriting the same CSV."""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

COPY = "import sys, pyarrow.csv as c; c.write_csv(c.read_csv(sys.argv[1]), sys.argv[2])"

RATIO = 7.0
"""Processor time of a release, start included, in times of a copy."""


def write_wide(path, columns, rows):
    """A secret, a useful column, and numbers, short codes, blanks and dates beside them."""
    chance = np.random.default_rng(7)
    secret = chance.integers(0, 3, rows)
    kept = {
        "id": np.arange(rows),
        "s": secret,
        "u": (secret + chance.integers(0, 3, rows)) % 5,
    }
    for place in range(columns - len(kept)):
        kind = place % 5
        if kind == 0:
            cells = chance.integers(0, 1000, rows)
        elif kind == 1:
            cells = [f"{number:.3f}" for number in chance.normal(size=rows)]
        elif kind == 2:
            cells = [f"v{code}" for code in chance.integers(0, 6, rows)]
        elif kind == 3:
            cells = np.array(["", "yes", "no"])[chance.integers(0, 3, rows)]
        else:
            days = np.datetime64("2024-01-01") + chance.integers(0, 366, rows)
            cells = days.astype(str)
        kept[f"c{place}"] = cells
    with open(path, "w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(kept)
        writer.writerows(zip(*kept.values(), strict=True))


def processor_seconds(folder, *command):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "XDG_DATA_HOME": str(folder / "data")},
        check=True,
        capture_output=True,
    )
    return used() - before


@pytest.mark.benchmark
@pytest.mark.parametrize(("columns", "rows"), [(5_000, 400), (500, 4_000)])
def test_wide_tables_against_a_copy(tmp_path, columns, rows):
    """The least of three runs in turns. The guess of the secret from the kept columns grows with the rows."""
    write_wide(tmp_path / "wide.csv", columns, rows)
    program = ("-m", "mechdesign")
    design = ("design", "wide.csv", "--sensitive", "s", "--useful", "u")
    processor_seconds(
        tmp_path, *program, *design, "--epsilon", "1", "--output", "channel.json"
    )
    apply = ("apply", "channel.json", "wide.csv", "out.csv", "--force", "--fresh-draw")
    commands = {
        "pyarrow": ("-c", COPY, "wide.csv", "copy.csv"),
        "apply": (*program, *apply),
        "apply --keep all": (*program, *apply, "--keep", "all", "--drop", "s"),
    }
    least = dict.fromkeys(commands, float("inf"))
    for _ in range(3):
        for name, command in commands.items():
            least[name] = min(least[name], processor_seconds(tmp_path, *command))
    print(f"\n{columns} columns, {rows} rows")
    for name, seconds in least.items():
        print(f"{name:18} {seconds:6.2f} s {seconds / least['pyarrow']:6.2f}")
    if columns == 5_000:
        assert least["apply --keep all"] <= RATIO * least["pyarrow"]
