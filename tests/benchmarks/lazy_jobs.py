"""Lazy tables counted and sanitised where the data are, for `measuring.isolated`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.measuring import peak_memory, timed

THREADS = 2

PEOPLE = (
    "select i as id, 'job ' || (hash(i) % 4) as job, (hash(i * 7) % 90)::int as age, "
    "'city ' || (hash(i * 5) % 1000) as city, (hash(i * 11) % 10000) / 100.0 as score from range({}, {}) t(i)"
)


def counted(rows: int) -> dict[str, Any]:
    """The table of sex (7 symbols) by job (40) of rows that DuckDB makes while they are counted."""
    import duckdb

    from mechdesign.tables.joint import Joint

    connection = duckdb.connect(config={"threads": THREADS})
    made = "select 'group ' || (hash(i) % 7) as s, 'job ' || (hash(i * 3 + 1) % 40) as x from range({}) t(i)"
    before = peak_memory()
    took = timed(
        lambda: (
            Joint.from_table(
                connection.sql(made.format(rows)), sensitive="s", useful="x"
            ).records
        )
    )
    assert took.result == rows
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "before": before,
        "memory": peak_memory(),
    }


def people_parts(rows: int, folder: str, parts: int = 4) -> dict[str, Any]:
    """A folder of Parquet files of people, in random order."""
    import duckdb

    os.mkdir(folder)
    for k in range(parts):
        some = PEOPLE.format(k * rows // parts, (k + 1) * rows // parts)
        duckdb.sql(f"copy ({some}) to '{folder}/{k}.parquet'")
    return {}


def lazy(kind: str, how: str, folder: str, runs: int = 5) -> dict[str, Any]:
    """Copy the people (`how`; on Spark also by functions that change nothing: `rows`, `column`), or sanitise them.

    The least of some runs: in the first everything is loaded, and Spark's virtual machine compiles for long.
    """
    target = f"{folder}.out"
    ways = {
        "copy": lambda frame: frame,
        "rows": _through_rows,
        "column": _through_a_column,
    }
    made = ways.get(how) or _release(how)

    def run() -> None:
        WRITES[kind](made, folder, target)

    took: list[tuple[float, float]] = []
    for _ in range(runs):
        before, clock = _cpu(), time.perf_counter()
        run()
        took.append((_cpu() - before, time.perf_counter() - clock))
    cpu, wall = map(min, zip(*took, strict=True))
    return {"cpu": cpu, "wall": wall, "memory": peak_memory()}


def _release(how: str) -> Callable[[Any], Any]:
    from mechdesign import sanitise
    from mechdesign.channel.channel import Channel
    from mechdesign.release.draws import Key
    from mechdesign.tables.joint import Joint

    names = [f"job {k}" for k in range(4)]
    joint = Joint.from_counts(
        [[30, 5, 8, 7], [4, 25, 9, 6]], useful_labels=names, useful="job"
    )
    rows = tuple(tuple(2**52 if x == y else 2**50 for y in range(4)) for x in range(4))
    channel = Channel(joint.useful, tuple(names), rows, sum(rows[0]), joint=joint)
    identity: dict[str, Any] = {
        "id": {"identity": "id"},
        "numbers": {"row_numbers": "id"},
    }.get(how, {})
    return lambda frame: sanitise(frame, channel, key=Key.insecure(3), **identity)


def _through_rows(frame: Any) -> Any:
    return frame.mapInArrow(lambda batches: batches, frame.schema)


def _through_a_column(frame: Any) -> Any:
    """One column goes to Python and comes back, as rows (which a partition's number makes of Spark's batches)."""
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import functions

    def same(parts: Iterator[Any]) -> Iterator[Any]:
        for part, _ in parts:
            yield part

    same.__annotations__ = {
        "parts": Iterator[tuple[pa.Array, ...]],
        "return": Iterator[pa.Array],
    }
    function: Any = functions.arrow_udf
    rows = frame.withColumn("partition", functions.spark_partition_id())
    return rows.withColumn("job", function(same, "string")("job", "partition")).drop(
        "partition"
    )


def _duckdb(made: Callable[[Any], Any], folder: str, target: str) -> None:
    import duckdb

    source = duckdb.connect(config={"threads": THREADS}).read_parquet(
        f"{folder}/*.parquet"
    )
    made(source).write_parquet(target)


def _polars(made: Callable[[Any], Any], folder: str, target: str) -> None:
    import polars as pl

    made(pl.scan_parquet(folder)).sink_parquet(target)


def _dask(made: Callable[[Any], Any], folder: str, target: str) -> None:
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="synchronous"):
        made(dd.read_parquet(folder)).to_parquet(target, overwrite=True)


def _spark(made: Callable[[Any], Any], folder: str, target: str) -> None:
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master(f"local[{THREADS}]").config(
        "spark.ui.enabled", "false"
    )
    builder = builder.config("spark.log.level", "OFF").config(
        "spark.ui.showConsoleProgress", "false"
    )
    session = builder.config(
        "spark.sql.execution.arrow.maxRecordsPerBatch", "50000"
    ).getOrCreate()
    made(session.read.parquet(folder)).write.mode("overwrite").parquet(target)


WRITES = {"duckdb": _duckdb, "polars": _polars, "dask": _dask, "spark": _spark}


def _cpu() -> float:
    """Processor seconds of this process and of all that it started."""
    times: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            cells = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        times[int(path.parent.name)] = int(cells[1]), sum(map(int, cells[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, (parent, _) in times.items() if parent in mine} - mine:
        mine |= more
    return sum(times[pid][1] for pid in mine) / os.sysconf("SC_CLK_TCK")


LAZY_JOBS = {"counted": counted, "people_parts": people_parts, "lazy": lazy}
