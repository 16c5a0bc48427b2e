"""Tables of DuckDB, polars, Dask and Spark: memory of counting, and processor time against a plain copy."""

from __future__ import annotations

import shutil
import time

import pytest

from tests.benchmarks.measuring import isolated, table

MILLIONS = (10, 100)

FLAT = 1.25
"""How much more memory ten times the rows may take."""


MOST = 3
"""How many times a plain copy a release by row numbers may take; most of it is what Spark's transport takes."""

PROGRAMS = 5
"""How often each whole program is run."""


@pytest.mark.benchmark
def test_a_hundred_million_rows_are_counted_in_the_memory_of_ten():
    pytest.importorskip("duckdb")
    found = [isolated("counted", rows=millions * 10**6) for millions in MILLIONS]
    rows = [
        [str(millions), f"{each['cpu']:.1f}", f"{each['memory']:.0f}"]
        for millions, each in zip(MILLIONS, found, strict=True)
    ]
    table(
        "DuckDB, 7 x 40 symbols",
        ["million rows", "processor seconds", "peak MiB"],
        rows,
    )
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
    folder = _people(tmp_path, kind, millions)
    took = {how: isolated("lazy", kind=kind, how=how, folder=folder) for how in ways}
    rows = [
        [
            how,
            f"{each['cpu']:.2f}",
            f"{each['cpu'] / took['copy']['cpu']:.2f}",
            f"{each['memory']:.0f}",
        ]
        for how, each in took.items()
    ]
    table(
        f"{kind}, {millions} million rows",
        ["", "processor seconds", "times a copy", "peak MiB"],
        rows,
    )
    assert took["numbers"]["cpu"] < MOST * took["copy"]["cpu"]


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", ["dask", "spark"])
def test_whole_programs(tmp_path, kind):
    """As one waits for them, start of Python and of the engine included; the least of some, in turns."""
    folder = _people(tmp_path, kind, 5)
    took: dict[str, list[float]] = {how: [] for how in ("copy", "numbers", "id")}
    for how in [*took] * PROGRAMS:
        start = time.perf_counter()
        isolated("lazy", kind=kind, how=how, folder=folder, runs=1)
        took[how].append(time.perf_counter() - start)
    rows = [
        [
            how,
            f"{min(each):.1f}",
            f"{min(each) / min(took['copy']):.2f}",
            " ".join(f"{one:.1f}" for one in each),
        ]
        for how, each in took.items()
    ]
    table(
        f"{kind}, 5 million rows, whole programs",
        ["", "seconds", "times a copy", "all"],
        rows,
    )
    assert min(took["numbers"]) < MOST * min(took["copy"])


def _people(folder, kind: str, millions: int) -> str:
    pytest.importorskip({"spark": "pyspark"}.get(kind, kind))
    if kind == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    isolated(
        "people_parts", rows=millions * 10**6, folder=(made := str(folder / "people"))
    )
    return made
