"""Reading a table for a design against the csv module and DuckDB, in processor time and memory."""

from __future__ import annotations

import gzip
import shutil

import pytest

from tests.benchmarks.measuring import isolated, seconds, table

ROWS = 5_000_000

PEAK = 300.0
"""MiB that the reading of a table may take, its half a million counts included."""

TABLES = {
    "5 x 15 symbols": {"sensitive": "city", "useful": "occupation"},
    "365 x 1,470 symbols, crossed": {
        "sensitive": "city,age",
        "useful": "occupation,hours",
    },
    "5 x 15 symbols, weighted": {
        "sensitive": "city",
        "useful": "occupation",
        "weight": "hours",
    },
}


MOST_TIMES_DUCKDB = 2.0
"""Of counting two columns, without the start of both."""

RUNS = 3


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ten_million_rows_against_duckdb(tmp_path, kind):
    """The least of some runs in turns, on one thread each."""
    pytest.importorskip("duckdb")
    source = str(tmp_path / f"people.{kind}")
    isolated("people", rows=2 * ROWS, path=source)
    runs: dict[str, list[dict]] = {"read": [], "read_duckdb": []}
    for job in [*runs] * RUNS:
        runs[job].append(
            isolated(job, source=source, sensitive="city", useful="occupation")
        )
    best = {job: min(each, key=lambda one: one["cpu"]) for job, each in runs.items()}
    peer = best["read_duckdb"]
    table(
        f"Joint table of {2 * ROWS:,} rows of {kind}",
        ["reader", "processor s", "times DuckDB", "peak MiB"],
        [
            [
                job,
                seconds(one["cpu"]),
                f"{one['cpu'] / peer['cpu']:.2f}",
                f"{one['memory']:.0f}",
            ]
            for job, one in best.items()
        ],
    )
    assert best["read"]["total"] == peer["total"]
    assert best["read"]["shape"] == peer["shape"]
    assert best["read"]["cpu"] <= MOST_TIMES_DUCKDB * peer["cpu"]


@pytest.mark.benchmark
def test_five_million_rows_against_the_csv_module(tmp_path):
    """The one reader takes less processor time than the csv module, and a memory that does not grow with the rows."""
    source = str(tmp_path / "people.csv")
    size = isolated("people", rows=ROWS, path=source)["bytes"]
    with (
        open(source, "rb") as plain,
        gzip.open(f"{source}.gz", "wb", compresslevel=1) as packed,
    ):
        shutil.copyfileobj(plain, packed)
    rows = []
    for name, columns in TABLES.items():
        runs = {
            job: isolated(job.partition(",")[0], source=path, **columns)
            for job, path in (
                ("read", source),
                ("read_csv_module", source),
                ("read, gzip", f"{source}.gz"),
            )
        }
        ours, peer, packed = runs["read"], runs["read_csv_module"], runs["read, gzip"]
        assert (
            (ours["total"], ours["shape"])
            == (peer["total"], peer["shape"])
            == (packed["total"], packed["shape"])
        )
        rows += [
            [
                name,
                job,
                seconds(run["cpu"]),
                f"{run['cpu'] / peer['cpu']:.2f}",
                f"{run['memory']:.0f}",
            ]
            for job, run in runs.items()
        ]
        assert ours["cpu"] < peer["cpu"]
        assert ours["memory"] < PEAK
    table(
        f"Joint table of {ROWS:,} rows of CSV, {size / 1e6:.0f} MB",
        ["", "reader", "processor s", "ratio", "peak MiB"],
        rows,
    )
