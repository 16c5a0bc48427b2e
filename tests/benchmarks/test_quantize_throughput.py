"""Processor time of `quantize` against that of `apply` on the same file, and peak memory; both targets of the issue."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.benchmark

ROWS = int(os.environ.get("MECHDESIGN_ROWS", "10_000_000"))

PEAK = 300.0
"""MiB that a job may take."""

TIMES = 3.0
"""How much more processor time than `apply` a job may take."""

JOBS = {
    "identity": [],
    "mean by day": ["--query", "mean", "--group-by", "day"],
    "mean by day, individuals": [
        "--query",
        "mean",
        "--group-by",
        "day",
        "--individual",
        "household",
    ],
    "mean by household": ["--query", "mean", "--group-by", "household"],
    "median by day": ["--query", "median", "--group-by", "day"],
    "median by household": ["--query", "median", "--group-by", "household"],
}

CONVERTED = """
import sys
from pyarrow import csv, parquet
parquet.write_table(csv.read_csv(sys.argv[1]), sys.argv[2])
"""


def cost(folder, *arguments):
    """Processor seconds and peak MiB of a command."""
    child = subprocess.Popen(
        [sys.executable, "-m", "mechdesign", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def test_ten_million_readings(tmp_path, adult):
    """30 days of 333,333 households, one symbol of a channel beside each reading."""
    from mechdesign.mechanisms.design_call import design
    from mechdesign.notions import ALIP

    design(adult, ALIP.from_epsilon(2.0)).channel.save(tmp_path / "channel.json")
    rng, names = np.random.default_rng(0), list(adult.useful.names)
    with open(tmp_path / "in.csv", "w", encoding="utf-8") as stream:
        stream.write("household,day,occupation,kwh\n")
        for start in range(0, ROWS, 200_000):
            place = np.arange(start, min(start + 200_000, ROWS))
            symbols, use = (
                rng.integers(0, len(names), place.size),
                np.round(rng.gamma(2, 5, place.size).clip(0, 199), 3),
            )
            rows = zip(place.tolist(), symbols.tolist(), use.tolist(), strict=True)
            stream.write(
                "".join(f"{k // 30},{k % 30},{names[x]},{v}\n" for k, x, v in rows)
            )
    # A child's peak counts what its parent held when it was born, so that this one stays small.
    subprocess.run(
        [sys.executable, "-c", CONVERTED, tmp_path / "in.csv", tmp_path / "in.parquet"],
        check=True,
    )
    for kind in ("csv", "parquet"):
        names = ("channel.json", f"in.{kind}", f"o.{kind}")
        applied, least = cost(
            tmp_path, "apply", *names, "--ledger", f"{kind}.db", "--keep-order"
        )
        print(
            f"\n{kind:<26}{'times apply':>12}{'peak MiB':>10}\n{'apply':<26}{1.0:>12.2f}{least:>10.0f}"
        )
        asked = (
            f"in.{kind}",
            f"q.{kind}",
            "--column",
            "kwh",
            "--epsilon",
            "3",
            "--range",
            "0,200",
            "--force",
        )
        for name, options in JOBS.items():
            took, peak = cost(tmp_path, "quantize", *asked, *options)
            print(f"{name:<26}{took / applied:>12.2f}{peak:>10.0f}")
            assert took <= TIMES * applied
            # Reading Parquet takes most of it, in `apply` as well.
            assert peak <= max(PEAK, 1.25 * least)
