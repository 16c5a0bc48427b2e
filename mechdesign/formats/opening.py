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

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.files import PARQUET_SUFFIXES, PathLike
from mechdesign.formats.compression import Compression, compression_named
from mechdesign.formats.csv import CsvBatch, CsvSink, CsvSource, TextSink
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
SUFFIXES: dict[Kind, tuple[str, ...]] = {"CSV": TEXT_SUFFIXES, "Parquet": PARQUET_SUFFIXES}


def kind_named(format: str) -> Kind:
    """The kind of file that a user asks for."""
    if format not in KINDS:
        raise InputError(f"the format ({format!r}) must be csv or parquet (--format)")
    return KINDS[format]


def packing_of(
    source: Source, target: PathLike, kind: Kind | None = None, asked: Compression | None = None
) -> Compression | None:
    """The compression asked for, or else by the target's name; refuses a name of another kind than `kind`.

    Without it, that is the source's.
    """
    path, same = Path(target), kind in (None, source.kind)
    packed, other = compression_named(path), "CSV" if (kind or source.kind) == "Parquet" else "Parquet"
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    if suffix in (*OTHER_SUFFIXES, *SUFFIXES[other]):
        so = (
            f"the input is a {source.kind} file and so is the output"
            if same
            else f"the output is a {kind} file"
        )
        hint = (
            f", or convert it (--format {other.lower()})"
            if same and kind and suffix in SUFFIXES[other]
            else ""
        )
        raise InputError(f"{path}: {so}; name it accordingly{hint}")
    packed = asked or packed
    if not same and kind == "Parquet" and packed:
        raise InputError(
            f"{path}: a Parquet file is compressed inside, and cannot be packed with {packed} on top"
        )
    return packed


def sink_for(
    source: Source,
    target: BinaryIO,
    outputs: Sequence[Output],
    kind: Kind,
    packing: Compression | None,
    options: TextOptions | None,
    *,
    escape: bool = False,
) -> CsvSink | ParquetSink:
    """Writes the columns to a file of this kind. A CSV is written as the options say where the source is none.

    In Parquet, cells of a CSV are text.
    """
    if kind == source.kind:
        return source.sink(target, outputs, compression=packing)
    if source.kind == "CSV":
        return ParquetSink(source, target, outputs)
    return TextSink(source, target, outputs, packing, options or TextOptions(), escape=escape)
