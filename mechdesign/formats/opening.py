"""Data files of any format: sources that yield batches, and sinks that write them with changes.

A job opens a `Source`, decides from its `header` which columns the output has (`outputs`), opens a
sink, and passes on every batch with its written columns. Memory does not grow with the file. Kept
columns never become Python objects: a CSV passes the bytes of its lines on, Parquet its arrays.
In outline, where column 2 is replaced::

    with open_source("in.csv.gz") as source:
        packing = packing_of(source, "out.csv")
        with sink_for(source, source.kind, stream, outputs, packing, ..) as sink:
            for batch in source.batches(encode=[source.header[2]]):
                sink.write(batch, written)

The formats are in `csv`, `parquet` and their sinks; here it is decided which of them a file has.
The first bytes of a source decide, whatever its name, and the name of a target has to fit what is
written to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.files import PARQUET_SUFFIXES, PathLike, on_failure
from mechdesign.formats.compression import Compression, compression_named
from mechdesign.formats.csv import CsvBatch, CsvSource
from mechdesign.formats.csv_sinks import CsvSink
from mechdesign.formats.inputs import RawInput
from mechdesign.formats.outputs import Output
from mechdesign.formats.parquet import ParquetBatch, ParquetSource
from mechdesign.formats.parquet_sink import ParquetLayout, ParquetSink
from mechdesign.formats.statistics_files import as_parquet
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.text_sink import TextSink

Source: TypeAlias = CsvSource | ParquetSource
"""A data file that is read; a context manager. Both have the same interface:

- `name`, `kind`, `header`, `size` and `position` (bytes of a CSV, rows of Parquet), and `cut`;
- `batches` yields the records, and `where` names one for a message;
- `sink` copies the file with changes, `write_table` writes a new one in its format.
"""

Sink: TypeAlias = CsvSink | TextSink | ParquetSink
"""A data file that is written; a context manager. All are made for `outputs`; `write` takes a batch
and the written columns for its records.
"""

Batch: TypeAlias = CsvBatch | ParquetBatch
"""Some records of a source, in order. Both have `num_rows`, a `column` by its name, the `texts` of
one by its position, all cells as `rows`, and every k-th record (`some`).
"""

Kind: TypeAlias = Literal["CSV", "Parquet"]

KINDS: dict[str, Kind] = {"csv": "CSV", "parquet": "Parquet"}
"""The kinds of files by their names on the command line."""

SUFFIXES: dict[str, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": PARQUET_SUFFIXES,
}
"""The usual suffixes of each kind."""

OTHER_SUFFIXES = (
    ".xlsx",
    ".xls",
    ".ods",
    ".json",
    ".feather",
    ".arrow",
    ".sav",
    ".dta",
    ".rds",
)
"""Suffixes of formats that are never written."""

CUT = (
    "the last line of the input has no end: if it was copied in part, its last "
    "record is not whole; see what made it"
)
"""The note on a source whose last line has no line break (`CsvSource.cut`)."""


def open_source(
    source: PathLike | BinaryIO,
    options: TextOptions | None = None,
    *,
    name: str | None = None,
    repeated_names: bool = False,
) -> Source:
    """Open a CSV or Parquet file, compressed or not; its first bytes decide.

    Files of SPSS, Stata and SAS become Parquet in memory, with the labels of their values.

    Parameters
    ----------
    source : path or binary file object
        The file.
    options : TextOptions, optional
        How the text of a CSV is read.
    name : str, optional
        The name of the file in messages.
    repeated_names : bool
        Whether a CSV may have two columns of the same name.
    """
    raw = RawInput(source, name)
    with on_failure(raw.close):
        if raw.is_parquet:
            return ParquetSource(raw)
        if raw.statistics is not None:
            table = ParquetSource(as_parquet(raw), raw.statistics)
            raw.close()
            return table
        return CsvSource(raw, options or TextOptions(), repeated_names=repeated_names)


def all_rows(source: Source) -> list[list[str]]:
    """All cells of a source as text, row by row: for tables that are small, such as matrices."""
    rows: list[list[str]] = []
    for batch in source.batches():
        rows += batch.rows()
    return rows


def packing_of(
    source: Source,
    target: PathLike,
    kind: Kind | None = None,
    requested: Compression | None = None,
) -> Compression | None:
    """The compression of an output: the requested one, or that of the target's name.

    For example, ``out.csv.gz`` asks for gzip, and ``out.csv`` for none. A name such as ``out.xlsx``
    would promise another kind of file, and is refused.

    Parameters
    ----------
    source : Source
        The input.
    target : path
        The output.
    kind : 'CSV' or 'Parquet', optional
        The kind of the output, from callers that can convert; that of the source by default.
    requested : 'gzip' or 'zstd', optional
        The requested compression.

    Raises
    ------
    InputError
        If the name is that of another kind of file, or Parquet is to be compressed once more.
    """
    path = Path(target)
    named = compression_named(path)
    if named is not None:
        # The suffix of the data stands before that of the compression: out.csv.gz.
        path = path.with_suffix("")
    _refuse_other_suffix(source, target, kind, path.suffix.lower())
    packing = requested or named
    if packing and (kind or source.kind) == "Parquet":
        raise InputError(
            f"{target}: Parquet is compressed inside: it cannot be packed with {packing} on top"
        )
    return packing


def _refuse_other_suffix(
    source: Source, target: PathLike, kind: Kind | None, suffix: str
) -> None:
    """Raise InputError if the suffix of an output is that of another kind of file."""
    target_kind = kind or source.kind
    other = "parquet"
    if target_kind == "Parquet":
        other = "csv"
    # Any further suffix, and none at all, may be the name of anything.
    if suffix not in OTHER_SUFFIXES and suffix not in SUFFIXES[other]:
        return
    if isinstance(source, ParquetSource) and source.statistics is not None:
        fact = (
            f"the output of a file of {source.statistics}, which is not written, is a "
            f"{target_kind} file"
        )
    elif target_kind == source.kind:
        fact = f"the output is a {source.kind} file, as the input is read"
    else:
        fact = f"the output is a {kind} file"
    hint = ""
    # Only callers that give a kind can convert.
    if kind == source.kind and suffix in SUFFIXES[other]:
        hint = f", or convert it (--format {other})"
    raise InputError(f"{target}: {fact}; name it accordingly{hint}")


def sink_for(
    source: Source,
    kind: Kind,
    target: BinaryIO,
    outputs: Sequence[Output],
    compression: Compression | None,
    text: TextOptions | None,
    escape: bool,
) -> Sink:
    """A sink for a file of this kind: one that copies the source, or one that converts it.

    `text` and `escape` (of formulas) apply to a new CSV; one that copies a CSV has its format.
    """
    # The sink of a source passes its bytes or arrays on.
    if kind == source.kind:
        return source.sink(target, outputs, compression=compression)
    if isinstance(source, ParquetSource):
        return TextSink(
            source.name, source.schema, target, outputs, compression, text, escape
        )
    return ParquetSink(ParquetLayout.of_texts(source.header), target, outputs)
