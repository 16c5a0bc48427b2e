"""Sanitising a file, and pyarrow reading and rewriting the same file, for `measuring.isolated`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.measuring import isolated, peak_memory, timed

PART = 1 << 20
"""Rows generated at a time."""


FEW = 1000
"""Rows of a file that is worked on before the clock starts: imports are no part of the work."""


def people(rows: int, path: str, short: bool = False) -> dict[str, Any]:
    """Write a file of people: a number, age, occupation (as Adult's), city, hours, score; or two columns."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    from mechdesign.tables.reading import read_joint

    jobs = list(read_joint(ADULT, contingency=True, useful="occupation").useful.names)
    cities = ["Berlin", "Paris", "Rome", "Oslo", "Melbourne"]
    rng = np.random.default_rng(1)

    def part(start: int, count: int) -> Any:
        occupation = pa.DictionaryArray.from_arrays(
            pa.array(rng.integers(0, len(jobs), count), pa.int32()), jobs
        ).dictionary_decode()
        number = pa.array(np.arange(start, start + count))
        if short:
            return pa.record_batch({"id": number, "occupation": occupation})
        return pa.record_batch(
            {
                "id": number,
                "age": rng.integers(17, 90, count),
                "occupation": occupation,
                "city": pa.array(np.array(cities)[rng.integers(0, len(cities), count)]),
                "hours": rng.integers(1, 99, count),
                "score": np.round(rng.normal(size=count), 4),
            }
        )

    schema = part(0, 1).schema
    options = pc.WriteOptions(quoting_style="none", quoting_header="none")
    is_parquet = path.endswith(".parquet")
    with (
        pq.ParquetWriter(path, schema)
        if is_parquet
        else pc.CSVWriter(path, schema, write_options=options) as w
    ):
        for start in range(0, rows, PART):
            w.write_batch(part(start, min(PART, rows - start)))
    return {"bytes": os.path.getsize(path)}


def wide(rows: int, columns: int, path: str, texts: bool) -> dict[str, Any]:
    """Write one row group of people, with integers, floats and texts in turns, or with different texts alone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    table = {"id": pa.array(np.arange(rows)), "occupation": pa.array(["Sales"] * rows)}
    for k in range(columns - len(table)):
        numbers = rng.integers(0, 10**8 if texts else 1000, rows)
        text = texts or k % 3 == 2
        column = np.char.add("value ", numbers.astype(str)) if text else numbers
        table[f"column {k}"] = pa.array(
            rng.normal(size=rows) if not text and k % 3 else column
        )
    pq.write_table(pa.table(table), path, row_group_size=rows)
    return {"bytes": os.path.getsize(path)}


def apply(channel: str, source: str, target: str, **how: Any) -> dict[str, Any]:
    """Sanitise a file with a ledger, as the command line does; a new one by identifier."""
    os.environ.setdefault(
        "ARROW_DEFAULT_MEMORY_POOL", "system"
    )  # before pyarrow is loaded
    from mechdesign.channel.channel import Channel
    from mechdesign.jobs.release_file import sanitise_file

    loaded = Channel.load(channel)

    def release(path: str) -> int:
        options = {
            "ledger": f"{target}.ledger",
            "fresh_draw": not how,
            "keep_sensitive": True,
            "force": True,
        }
        for name in (f"{target}.ledger", f"{target}.ledger.key") if how else ():
            if os.path.exists(name):
                os.unlink(name)
        return sanitise_file(loaded, path, target, **options | how).records

    warmed(release, source)
    took = timed(lambda: release(source))
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "memory": peak_memory(),
        "records": took.result,
    }


def stream(source: str, target: str) -> dict[str, Any]:
    """Read and write a file by our streams alone, with the occupation exchanged for a constant."""
    import pyarrow as pa

    from mechdesign.formats.arrow_arrays import KeptColumn, WrittenColumn
    from mechdesign.formats.opening import open_source

    labels = pa.array(["one", "{other, another}"])

    def copy(path: str) -> int:
        with open(target, "wb", buffering=0) as file, open_source(path) as table:
            place = table.header.index("occupation")
            outputs = [
                WrittenColumn("occupation", i) if i == place else KeptColumn(i)
                for i in range(len(table.header))
            ]
            with table.sink(file, outputs) as sink:
                for batch in table.batches(encode=["occupation"]):
                    codes = batch.column("occupation").indices.to_numpy() % len(labels)
                    sink.write(
                        batch, [pa.DictionaryArray.from_arrays(pa.array(codes), labels)]
                    )
        return sink.records

    warmed(copy, source)
    took = timed(lambda: copy(source))
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "memory": peak_memory(),
        "records": took.result,
    }


def pyarrow_copy(source: str, target: str, text: bool = False) -> dict[str, Any]:
    """Read and rewrite a file by pyarrow on one thread; with `text`, a CSV without guessing types and quotes."""
    warmed(lambda path: pyarrow_copied(path, target, text), source)
    took = timed(lambda: pyarrow_copied(source, target, text))
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "memory": peak_memory(),
        "records": took.result,
    }


def pyarrow_copied(source: str, target: str, text: bool = False) -> int:
    """The same without a clock; the number of records."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if source.endswith(".parquet"):
        return _parquet(source, target)
    return _csv_text(source, target) if text else _csv(source, target)


def warmed(work: Callable[[str], int], source: str) -> None:
    """Do the work on a small file of the same kind, made by another process: making it loads pandas (40 MB)."""
    few = f"{source}.few{os.path.splitext(source)[1]}"
    isolated("people", rows=FEW, path=few, short=True)
    work(few)
    os.unlink(few)


def _parquet(source: str, target: str) -> int:
    import pyarrow.parquet as pq

    rows = 0
    with (
        pq.ParquetFile(source) as file,
        pq.ParquetWriter(target, file.schema_arrow) as writer,
    ):
        for batch in file.iter_batches(use_threads=False):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _csv(source: str, target: str) -> int:
    import pyarrow.csv as pc

    return _copied(
        pc.open_csv(source, read_options=pc.ReadOptions(use_threads=False)),
        target,
        None,
    )


def _csv_text(source: str, target: str) -> int:
    import pyarrow as pa
    import pyarrow.csv as pc

    with open(source, encoding="utf-8") as file:
        names = file.readline().rstrip("\n").split(",")
    reader = pc.open_csv(
        source,
        read_options=pc.ReadOptions(use_threads=False),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string())
        ),
    )
    return _copied(reader, target, pc.WriteOptions(quoting_style="none"))


def _copied(reader: Any, target: str, options: Any) -> int:
    import pyarrow.csv as pc

    rows = 0
    with reader, pc.CSVWriter(target, reader.schema, write_options=options) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


ADULT = "examples/adult_relationship_by_occupation.csv"

APPLY_JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "people": people,
    "wide": wide,
    "apply": apply,
    "stream": stream,
    "pyarrow": pyarrow_copy,
}
