"""Adult, repeated to five million records: every command on released rows and columns, as whole
processes with their start, beside pyarrow reading and rewriting the same file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.measuring import ROOT, seconds, table
from tests.cases.people import ADULT

RECORDS = int(os.environ.get("MECHDESIGN_RECORDS", "5000000"))
PART = 1_000_000
RUNS = 3

READ = [
    *("education", "occupation", "hours", "workclass", "age", "sex"),
    *("relationship", "income"),
]
RELEASED = "education,occupation,hours,workclass,age,sex"

MOST_TIMES_APPLY = 3.0
"""Of `check`, `estimate` and `assess`."""

MOST_MEMORY = 300.0
"""MiB of `apply` by row number."""


LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, used = os.wait4(child, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Starts the process that is measured: a child is told at least the memory of its parent, and this
one has little.
"""


def write_records(folder: Path, data: Path) -> None:
    """The table of the design, and the long files with a number for each record."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    adult = pd.read_csv(data / "adult/adult.data", names=ADULT, skipinitialspace=True)
    adult = adult[READ]
    adult.to_csv(folder / "adult.csv", index=False)
    rows = pa.Table.from_pandas(adult, preserve_index=False)
    schema = pa.schema([("id", pa.int64()), *rows.schema])
    plain = pc.WriteOptions(quoting_style="none", quoting_header="none")
    rng = np.random.default_rng(0)
    with (
        pq.ParquetWriter(folder / "in.parquet", schema) as parquet,
        pc.CSVWriter(folder / "in.csv", schema, write_options=plain) as csv,
    ):
        for start in range(0, RECORDS, PART):
            chosen = rng.integers(0, len(rows), min(PART, RECORDS - start))
            ids = pa.array(np.arange(start, start + len(chosen)))
            part = pa.table([ids, *rows.take(pa.array(chosen)).columns], schema=schema)
            parquet.write_table(part)
            csv.write_table(part)


def run(folder: Path, *command: str) -> tuple[float, float]:
    """Processor seconds and peak MiB of a process with these arguments of Python."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    cpu, memory = map(float, ran.stderr.splitlines()[-1].split())
    return cpu, memory


def mechdesign(folder: Path, *arguments: str) -> tuple[float, float]:
    """The same of a command; each has a ledger of its own."""
    for name in ("ledger.db", "ledger.db.key"):
        (folder / name).unlink(missing_ok=True)
    return run(folder, "-m", "mechdesign", *arguments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    data = os.environ.get("MECHDESIGN_DATA")
    if not data:
        pytest.skip("MECHDESIGN_DATA does not name the folder of real data")
    if not hasattr(os, "wait4"):
        pytest.skip("this system does not tell what a child used")
    place = tmp_path_factory.mktemp("adult")
    write_records(place, Path(data))
    design = ("design", "adult.csv", "--sensitive", "income", "--epsilon", "0.5")
    rows = ("--release", RELEASED, "--time-limit", "12")
    bins = ("--bin", "hours=quantiles:7", "--bin", "age=quantiles:7")
    mechdesign(place, *design, *rows, *bins, "-o", "rows.json")
    mechdesign(place, *design, "--useful", "occupation", "-o", "column.json")
    return place


@pytest.mark.benchmark
@pytest.mark.parametrize("channel", ["rows", "column"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_commands_on_many_records(folder, kind, channel):
    """The least of some runs in turns."""
    source, target = f"in.{kind}", f"out.{kind}"
    with_channel = ("--channel", f"{channel}.json")
    apply = ("apply", f"{channel}.json", source, target, "--force")
    copy = (
        "from tests.benchmarks.apply_jobs import pyarrow_copied;"
        f"pyarrow_copied({source!r}, 'copy.{kind}')"
    )
    commands = {
        "apply": (*apply, "--ledger", "ledger.db"),
        "apply without a ledger": (*apply, "--insecure-seed", "1"),
        "apply --identity": (*apply, "--ledger", "ledger.db", "--identity", "id"),
        "check": ("check", target, *with_channel),
        "check --original": ("check", target, *with_channel, "--original", source),
        "estimate": ("estimate", target, *with_channel),
    }
    if channel == "rows":
        commands["assess"] = ("assess", source, "--sensitive", "income")
    best: dict[str, tuple[float, float]] = {}
    for _ in range(RUNS):
        runs = {"pyarrow": run(folder, "-c", copy)}
        for name, arguments in commands.items():
            runs[name] = mechdesign(folder, *arguments)
        for name, used in runs.items():
            best[name] = min(best.get(name, used), used)
    peer = best["pyarrow"][0]
    table(
        f"{RECORDS:,} records of Adult, {channel}, {kind}, start included",
        ["", "processor s", "times pyarrow", "peak MiB"],
        [
            [name, seconds(cpu), f"{cpu / peer:.2f}", f"{memory:.0f}"]
            for name, (cpu, memory) in best.items()
        ],
    )
    for name in ("check", "check --original", "estimate", "assess"):
        if name in best:
            assert best[name][0] <= MOST_TIMES_APPLY * best["apply"][0]
    assert best["apply"][1] <= MOST_MEMORY
