"""Counting the joint table of a file by `read_joint`, the csv module and DuckDB, for `measuring.isolated`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from itertools import islice
from operator import itemgetter
from typing import Any

from tests.benchmarks.apply_jobs import warmed
from tests.benchmarks.measuring import peak_memory, timed

PART = 1 << 14
"""Cells of the csv module that are held at a time."""


def read(
    source: str, sensitive: str, useful: str, weight: str | None = None
) -> dict[str, Any]:
    """The joint table as every command reads it."""
    from mechdesign.tables.reading import read_joint

    def joint(path: str, *columns: str | None) -> Any:
        return read_joint(
            path, sensitive=columns[0], useful=columns[1], weight=columns[2]
        )

    warmed(lambda path: joint(path, "id", "occupation", None), source)
    took = timed(lambda: joint(source, sensitive, useful, weight))
    return _measured(
        took.cpu,
        took.wall,
        took.result.total,
        [len(took.result.sensitive), len(took.result.useful)],
    )


def read_with_csv_module(
    source: str, sensitive: str, useful: str, weight: str | None = None
) -> dict[str, Any]:
    """The same counts by the csv module and a Counter, some rows at a time."""
    names = [*sensitive.split(","), *useful.split(","), *([weight] if weight else [])]

    def count() -> Counter[tuple[str, ...]]:
        counter: Counter[tuple[str, ...]] = Counter()
        with open(source, encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader)
            cells, size = itemgetter(*map(header.index, names)), PART // len(header)
            while rows := list(islice(reader, size)):
                for key, number in Counter(map(cells, rows)).items():
                    counter[key[:-1] if weight else key] += (
                        number * int(key[-1]) if weight else number
                    )
        return counter

    took = timed(count)
    split = len(sensitive.split(","))
    shape = [
        len({key[:split] for key in took.result}),
        len({key[split:] for key in took.result}),
    ]
    return _measured(took.cpu, took.wall, took.result.total(), shape)


def read_with_duckdb(
    source: str, sensitive: str, useful: str, weight: str | None = None
) -> dict[str, Any]:
    """The same counts by DuckDB on one thread."""
    import duckdb

    database = duckdb.connect()
    database.execute("SET threads = 1")
    number = "count(*)" if weight is None else f"sum({weight})"

    def count(path: str, columns: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns}, {number} FROM '{path}' GROUP BY {columns}"
        return database.execute(query).fetchall()

    warmed(lambda path: len(count(path, "id,occupation")), source)
    took = timed(lambda: count(source, f"{sensitive},{useful}"))
    split = len(sensitive.split(","))
    shape = [
        len({row[:split] for row in took.result}),
        len({row[split:-1] for row in took.result}),
    ]
    return _measured(took.cpu, took.wall, sum(row[-1] for row in took.result), shape)


def _measured(cpu: float, wall: float, total: int, shape: list[int]) -> dict[str, Any]:
    return {
        "cpu": cpu,
        "wall": wall,
        "memory": peak_memory(),
        "total": total,
        "shape": shape,
    }


READING_JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "read": read,
    "read_csv_module": read_with_csv_module,
    "read_duckdb": read_with_duckdb,
}
