"""One table, written in every way that a data file can be written."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source

Rows = Sequence[Sequence[str]]


def csv_text(rows: Rows, **options: str | int) -> str:
    """The rows as the csv module writes them; the first is the header."""
    sink = io.StringIO(newline="")
    csv.writer(sink, **{"lineterminator": "\n", **options}).writerows(rows)
    return sink.getvalue()


def rows_of(path: str | Path, text: TextOptions | None = None) -> list[list[str]]:
    """The header of a data file, and its rows, as texts."""
    with open_source(path, text) as source:
        return [
            list(source.header),
            *(list(row) for batch in source.batches() for row in batch.rows()),
        ]


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def _parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    columns = [
        pa.array([cell or None for cell in column])
        for column in zip(*rows[1:], strict=True)
    ]
    pq.write_table(
        pa.Table.from_arrays(columns, names=list(rows[0])), sink, row_group_size=2
    )
    return sink.getvalue()


WAYS: dict[str, tuple[str, TextOptions | None, Callable[[Rows], bytes]]] = {
    "plain": ("t.csv", None, lambda rows: csv_text(rows).encode()),
    "quoted": (
        "t.csv",
        None,
        lambda rows: csv_text(rows, quoting=csv.QUOTE_ALL).encode(),
    ),
    "marked, CRLF": (
        "t.csv",
        None,
        lambda rows: b"\xef\xbb\xbf" + csv_text(rows, lineterminator="\r\n").encode(),
    ),
    "gzip": ("t.csv.gz", None, lambda rows: gzip.compress(csv_text(rows).encode())),
    "zstd": ("t.csv.zst", None, lambda rows: _zstd(csv_text(rows).encode())),
    "tabs": (
        "t.tsv",
        TextOptions(delimiter="\t"),
        lambda rows: csv_text(rows, delimiter="\t").encode(),
    ),
    "semicolons, single quotes": (
        "t.csv",
        TextOptions(delimiter=";", quote="'"),
        lambda rows: csv_text(rows, delimiter=";", quotechar="'").encode(),
    ),
    "no quotes": (
        "t.csv",
        TextOptions(delimiter="|", quote=None),
        lambda rows: csv_text(
            rows, delimiter="|", quoting=csv.QUOTE_NONE, quotechar=None
        ).encode(),
    ),
    "Latin-1": (
        "t.csv",
        TextOptions(encoding="latin-1"),
        lambda rows: csv_text(rows).encode("latin-1"),
    ),
    "UTF-16": (
        "t.csv",
        TextOptions(encoding="utf-16"),
        lambda rows: csv_text(rows).encode("utf-16"),
    ),
    "gzip, tabs, Latin-1": (
        "t.gz",
        TextOptions(delimiter="\t", encoding="latin-1"),
        lambda rows: gzip.compress(csv_text(rows, delimiter="\t").encode("latin-1")),
    ),
    "Parquet": ("t.parquet", None, _parquet),
}
"""For each way the name of a file, how it is to be read, and its bytes."""


def written(folder: Path, way: str, rows: Rows) -> tuple[Path, TextOptions | None]:
    """A file with the rows, and how it is to be read."""
    name, options, encoded = WAYS[way]
    path = folder / name
    path.write_bytes(encoded(rows))
    return path, options


class StandardInput:
    """Stands for ``sys.stdin``: bytes that can be read once, a few at a time."""

    def __init__(self, data: bytes) -> None:
        self.buffer = _Once(data)


class _Once(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        self._rest = data

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        size = min(7, size if size >= 0 else 7)
        part, self._rest = self._rest[:size], self._rest[size:]
        return part
