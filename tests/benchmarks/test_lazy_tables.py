"""Tables of DuckDB, polars, Dask and Spark: memory of counting, and processor time against a plain copy."""

from __future__ import annotations

import shutil

import pytest

from tests.benchmarks.measuring import isolated, table

MILLIONS = (10, 100)

FLAT = 1.25
"""How much more memory ten times the rows may take."""


MOST = 3
"""How many times a plain copy a release by row numbers may take; most of it is what Spark's transport takes."""


@pytest.mark.benchmark
def test_a_hundred_million_rows_are_counted_in_the_memory_of_ten():
    pytest.importorskip("duckdb")
    found = [isolated("counted", rows=millions * 10**6) for millions in MILLIONS]
    rows = [
        [str(millions), f"{each['cpu']:.1f}", f"{each['memory']:.0f}"]
        for millions, each in zip(MILLIONS, found, strict=True)
    ]
    table("DuckDB, 7 x 40 symbols", ["million rows", "processor seconds", "peak MiB"], rows)
    assert found[1]["memory"] < FLAT * found[0]["memory"]


@pytest.mark.benchmark
@pytest.mark.parametrize(
    ("kind", "millions", "ways"),
    [
        ("duckdb", 2, ["copy", "place", "numbers", "id"]),
        ("polars", 2, ["copy", "place", "numbers", "id"]),
        ("dask", 5, ["copy", "place", "numbers", "id"]),
        ("spark", 5, ["copy", "rows", "column", "numbers", "id"]),
    ],
)
def test_sanitised_against_a_plain_copy(tmp_path, kind, millions, ways):
    """Parquet in, Parquet out, five columns; what Spark does for functions that change nothing is printed, too."""
    pytest.importorskip({"spark": "pyspark"}.get(kind, kind))
    if kind == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    folder = str(tmp_path / "people")
    isolated("people_parts", rows=millions * 10**6, folder=folder)
    took = {how: isolated("lazy", kind=kind, how=how, folder=folder) for how in ways}
    rows = [
        [how, f"{each['cpu']:.2f}", f"{each['cpu'] / took['copy']['cpu']:.2f}", f"{each['memory']:.0f}"]
        for how, each in took.items()
    ]
    table(f"{kind}, {millions} million rows", ["", "processor seconds", "times a copy", "peak MiB"], rows)
    assert took["numbers"]["cpu"] < MOST * took["copy"]["cpu"]
