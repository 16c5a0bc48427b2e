"""Releasing whole rows, and files to do it on, for `measuring.isolated`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.apply_jobs import PART
from tests.benchmarks.measuring import isolated, peak_memory, timed

SIZES = {"education": 16, "occupation": 15, "hours": 7, "workclass": 9}
"""Columns and symbols of a row, as many as Adult has after its hours are in bins."""

DISTINCT = 6000
"""Different rows of the table."""

FEW = 1000
"""Rows of a file that is worked on before the clock starts: imports are no part of the work."""


def distinct_rows() -> Any:
    """(rows, 4) codes of different rows, common ones first, and their shares."""
    rng = np.random.default_rng(3)
    skill = rng.random(4 * DISTINCT)
    codes = []
    for size in SIZES.values():
        # All columns depend on one hidden number, as those of people do.
        place = np.clip(skill + rng.normal(0, 0.25, len(skill)), 0, 0.999)
        codes.append((place**1.5 * size).astype(np.int64))
    rows = np.unique(np.column_stack(codes), axis=0)
    rows = rng.permutation(rows)[:DISTINCT]
    shares = 1.0 / np.arange(2, len(rows) + 2)
    return rows, shares / shares.sum()


def row_channel(path: str) -> dict[str, Any]:
    """Design a channel of four levels for 30,000 records of these rows, and save it."""
    import pandas as pd

    import mechdesign as md

    rows, shares = distinct_rows()
    rng = np.random.default_rng(4)
    # Every row occurs, so that the channel knows all of them.
    chosen = np.concatenate(
        [np.arange(len(rows)), rng.choice(len(rows), 30_000 - len(rows), p=shares)]
    )
    frame = pd.DataFrame(texts_of(rows[chosen]))
    high = rng.random(len(frame)) < 0.1 + 0.03 * rows[chosen, 0]
    frame["income"] = np.where(high, "high", "low")
    made = md.design(
        frame,
        sensitive="income",
        release=list(SIZES),
        notion=md.LIP(0.5),
        time_limit=5.0,
    )
    made.channel.save(path)
    return {"leaves": made.channel.tree.leaves}


def texts_of(codes: Any) -> dict[str, Any]:
    """The texts of rows by column."""
    return {
        name: np.array([f"{name} {k}" for k in range(size)])[codes[:, place]]
        for place, (name, size) in enumerate(SIZES.items())
    }


def row_people(rows: int, path: str) -> dict[str, Any]:
    """Write a file of people: a number and the four columns."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    table, shares = distinct_rows()
    ends = np.cumsum(shares)
    rng = np.random.default_rng(1)
    symbols = {
        name: pa.array([f"{name} {k}" for k in range(size)])
        for name, size in SIZES.items()
    }

    def part(start: int, count: int) -> Any:
        chosen = table[np.searchsorted(ends, rng.random(count) * ends[-1])]
        columns: dict[str, Any] = {"id": pa.array(np.arange(start, start + count))}
        for place, name in enumerate(SIZES):
            codes = pa.array(chosen[:, place].astype(np.int32))
            coded = pa.DictionaryArray.from_arrays(codes, symbols[name])
            columns[name] = coded.dictionary_decode()
        return pa.record_batch(columns)

    schema = part(0, 1).schema
    options = pc.WriteOptions(quoting_style="none", quoting_header="none")
    writer: Any
    if path.endswith(".parquet"):
        writer = pq.ParquetWriter(path, schema)
    else:
        writer = pc.CSVWriter(path, schema, write_options=options)
    with writer:
        for start in range(0, rows, PART):
            writer.write_batch(part(start, min(PART, rows - start)))
    return {"bytes": os.path.getsize(path)}


def apply_rows(channel: str, source: str, target: str, **how: Any) -> dict[str, Any]:
    """Release a file with a ledger, as the command line does; a new one by identifier."""
    # Before pyarrow is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from mechdesign.channel.channel import Channel
    from mechdesign.jobs.release_file import sanitise_file

    loaded = Channel.load(channel)

    def release(path: str) -> int:
        options = {"ledger": f"{target}.ledger", "fresh_draw": not how, "force": True}
        for name in (f"{target}.ledger", f"{target}.ledger.key") if how else ():
            if os.path.exists(name):
                os.unlink(name)
        return sanitise_file(loaded, path, target, **options | how).records

    few = f"{source}.few{os.path.splitext(source)[1]}"
    isolated("row_people", rows=FEW, path=few)
    release(few)
    os.unlink(few)
    took = timed(lambda: release(source))
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "memory": peak_memory(),
        "records": took.result,
    }


ROW_JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "row_channel": row_channel,
    "row_people": row_people,
    "apply_rows": apply_rows,
}
