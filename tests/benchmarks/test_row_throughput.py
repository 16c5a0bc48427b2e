"""Releasing whole rows against pyarrow reading and rewriting the same file, on one core."""

from __future__ import annotations

import os

import pytest

from tests.benchmarks.measuring import isolated, seconds, table
from tests.benchmarks.row_jobs import DISTINCT, SIZES

ROWS = 5_000_000

RATIO = 3.0
"""Times the processor time of pyarrow."""

PEAK = 300.0
"""MiB."""


@pytest.fixture(autouse=True)
def _one_core():
    """Children inherit the cores that this process may use."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system cannot bind a process to one core")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="module")
def channel(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("channel") / "rows.json")
    assert isolated("row_channel", path=path)["pairs"] > DISTINCT
    return path


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_five_million_rows_of_four_columns_against_pyarrow(tmp_path, channel, kind):
    """At most 3 times pyarrow's own reading and rewriting, and 300 MiB; the least of three runs in turns."""
    source = str(tmp_path / f"people.{kind}")
    size = isolated("row_people", rows=ROWS, path=source)["bytes"]
    apply = {"channel": channel}
    calls = {
        "pyarrow": ("pyarrow", {}),
        "apply": ("apply_rows", apply),
        "apply --identity, a new ledger": ("apply_rows", {**apply, "identity": "id"}),
    }
    best = {}
    for _ in range(3):
        for name, (job, options) in calls.items():
            target = str(tmp_path / f"out.{kind}")
            run = isolated(job, source=source, target=target, **options)
            assert run["records"] == ROWS
            best[name] = min(best.get(name, run), run, key=lambda r: r["cpu"])
    peer = best["pyarrow"]["cpu"]
    table(
        f"{ROWS:,} rows of {len(SIZES)} columns, {kind}, {size / 1e6:.0f} MB, one core",
        ["", "processor s", "wall s", "ratio", "peak MiB"],
        [
            [
                name,
                seconds(run["cpu"]),
                seconds(run["wall"]),
                f"{run['cpu'] / peer:.2f}",
                f"{run['memory']:.0f}",
            ]
            for name, run in best.items()
        ],
    )
    assert best["apply"]["cpu"] <= RATIO * peer
    assert best["apply"]["memory"] <= PEAK


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_is_measured_works(tmp_path, channel, kind):
    """On a few rows: all rows are read, and released in the columns of the levels alone."""
    source, target = str(tmp_path / f"people.{kind}"), str(tmp_path / f"out.{kind}")
    size = isolated("row_people", rows=3000, path=source)["bytes"]
    assert size == os.path.getsize(source)
    for job, options in (("pyarrow", {}), ("apply_rows", {"channel": channel})):
        run = isolated(job, source=source, target=target, **options)
        assert run["records"] == 3000
        assert run["memory"] > 10.0
    if kind == "csv":
        with open(target, encoding="utf-8") as released:
            assert released.readline().rstrip("\n").split(",") == list(SIZES)
