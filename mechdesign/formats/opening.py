"""What a sanitisation job needs of a data file, whatever its format: batches in, the same batches changed out.

A job opens a `Source`, decides from its `header` what the output holds (`outputs`), asks for a sink, and hands every
batch on with the columns that were written anew. Memory does not grow with the file. What is kept never passes through
Python objects: a CSV gives the bytes of its lines back, Parquet its arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.files import PARQUET_SUFFIXES, PathLike
from mechdesign.formats.compression import Compression, compression_named
from mechdesign.formats.csv import CsvBatch, CsvSource, TextSink
from mechdesign.formats.inputs import RawInput, TextOptions, on_failure
from mechdesign.formats.outputs import Output
from mechdesign.formats.parquet import ParquetBatch, ParquetSink, ParquetSource

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
    with on_failure(raw.close):
        if raw.is_parquet:
            return ParquetSource(raw)
        return CsvSource(raw, options or TextOptions(), repeated_names=repeated_names)


Kind: TypeAlias = Literal["CSV", "Parquet"]
KINDS: dict[str, Kind] = {"csv": "CSV", "parquet": "Parquet"}
SUFFIXES: dict[str, tuple[str, ...]] = {"csv": TEXT_SUFFIXES, "parquet": PARQUET_SUFFIXES}


def packing_of(
    source: Source, target: PathLike, kind: Kind | None = None, asked: Compression | None = None
) -> Compression | None:
    """The compression asked for, or else by the target's name; refuses a name of another kind than `kind`.

    Without it, that is the source's.
    """
    path, same = Path(target), kind in (None, source.kind)
    packed, other = compression_named(path), "csv" if (kind or source.kind) == "Parquet" else "parquet"
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    if suffix in (*OTHER_SUFFIXES, *SUFFIXES[other]):
        so = f"the output is a {kind} file"
        if same:
            so = f"the input is a {source.kind} file and so is the output"
        hint = f", or convert it (--format {other})" if same and kind and suffix in SUFFIXES[other] else ""
        raise InputError(f"{target}: {so}; name it accordingly{hint}")
    packed = asked or packed
    if (kind or source.kind) == "Parquet" and packed:
        raise InputError(f"{target}: Parquet is compressed inside: it cannot be packed with {packed} on top")
    return packed


def sink_for(source: Source, kind: Kind, target: BinaryIO, outputs: Sequence[Output], *how: Any) -> Any:
    """Writes columns to a file of this kind. `how`: compression; text options and escape of formulas in a new CSV."""
    if kind == source.kind:
        return source.sink(target, outputs, compression=how[0])
    return (
        ParquetSink(source, target, outputs) if kind == "Parquet" else TextSink(source, target, outputs, *how)
    )
