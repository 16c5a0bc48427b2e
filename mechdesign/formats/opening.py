"""What a sanitisation job needs of a data file, whatever its format: batches in, the same batches changed out.

A job opens a `Source`, decides from its `header` what the output holds, asks it for a sink, and hands every
batch on with the columns that were written anew::

    with open_source("people.csv") as source:
        outputs = [KeptColumn(0), WrittenColumn("job", replaces=1), KeptColumn(2)]
        with source.sink(stream, outputs) as sink:
            for batch in source.batches(encode=["job"]):
                sink.write(batch, [released(batch.column("job"))])

Memory does not grow with the file. What is kept never passes through Python objects: a CSV gives the bytes of its
lines back, Parquet its arrays.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.files import PARQUET_SUFFIXES, PathLike
from mechdesign.formats.compression import Compression, compression_named
from mechdesign.formats.csv import CsvBatch, CsvSource
from mechdesign.formats.inputs import RawInput, TextOptions
from mechdesign.formats.parquet import ParquetBatch, ParquetSource

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")

OTHER_SUFFIXES = (".xlsx", ".xls", ".ods", ".json", ".feather", ".arrow", ".sav", ".dta", ".rds")
"""Names of files that are never written."""

Source: TypeAlias = CsvSource | ParquetSource
"""A data file that is read; a context manager. Both have the same face."""

Batch: TypeAlias = CsvBatch | ParquetBatch


def open_source(
    source: PathLike | BinaryIO,
    options: TextOptions | None = None,
    *,
    name: str | None = None,
    repeated_names: bool = False,
) -> Source:
    """Open a CSV or Parquet file; its first bytes tell which, and whether it is compressed."""
    raw = RawInput(source, name)
    try:
        if raw.is_parquet:
            return ParquetSource(raw)
        return CsvSource(raw, options or TextOptions(), repeated_names=repeated_names)
    except BaseException:
        raw.close()
        raise


def packing_of(source: Source, target: PathLike) -> Compression | None:
    """The compression that the target's name asks for; refuses the name of another kind of file than the source's."""
    path = Path(target)
    packed = compression_named(path)
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    if suffix in (*OTHER_SUFFIXES, *(TEXT_SUFFIXES if source.kind == "Parquet" else PARQUET_SUFFIXES)):
        raise InputError(
            f"{path}: the input is a {source.kind} file and so is the output; name it accordingly"
        )
    return packed
