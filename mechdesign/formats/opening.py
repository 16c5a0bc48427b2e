"""What a sanitisation job needs of a data file, whatever its format: batches in, the same batches changed out.

A job opens a `Source`, decides from its `header` what the output holds (`outputs`), asks for a sink, and hands every
batch on with the columns that were written anew. Memory does not grow with the file. What is kept never passes through
Python objects: a CSV gives the bytes of its lines back, Parquet its arrays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from glob import escape, glob, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.files import PARQUET_SUFFIXES, PathLike
from mechdesign.formats.compression import Compression, compression_named
from mechdesign.formats.csv import CsvBatch, CsvSource, TextSink
from mechdesign.formats.inputs import GuardedInput, RawInput, TextOptions, on_failure
from mechdesign.formats.outputs import Output
from mechdesign.formats.parquet import ParquetBatch, ParquetSink, ParquetSource
from mechdesign.formats.urls import is_url, local

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
"""Names of files that are never written."""

Source: TypeAlias = CsvSource | ParquetSource
"""A data file that is read; a context manager. Both have the same face."""

Batch: TypeAlias = CsvBatch | ParquetBatch

CUT = "the last line of the input has no end: if it was copied in part, its last record is not whole; see what made it"
"""What is to be noted of a source that is `cut`."""


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
SUFFIXES: dict[str, tuple[str, ...]] = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": PARQUET_SUFFIXES,
}


def packing_of(
    source: Source,
    target: PathLike,
    kind: Kind | None = None,
    asked: Compression | None = None,
) -> Compression | None:
    """The compression asked for, or else by the target's name; refuses a name of another kind than `kind`.

    Without it, that is the source's.
    """
    path, same = Path(target), kind in (None, source.kind)
    packed, other = (
        compression_named(path),
        "csv" if (kind or source.kind) == "Parquet" else "parquet",
    )
    suffix = (path.with_suffix("") if packed else path).suffix.lower()
    if suffix in (*OTHER_SUFFIXES, *SUFFIXES[other]):
        so = f"the output is a {kind} file"
        if same:
            so = f"the input is a {source.kind} file and so is the output"
        hint = (
            f", or convert it (--format {other})"
            if same and kind and suffix in SUFFIXES[other]
            else ""
        )
        raise InputError(f"{target}: {so}; name it accordingly{hint}")
    packed = asked or packed
    if (kind or source.kind) == "Parquet" and packed:
        raise InputError(
            f"{target}: Parquet is compressed inside: it cannot be packed with {packed} on top"
        )
    return packed


def sink_for(
    source: Source, kind: Kind, target: BinaryIO, outputs: Sequence[Output], *how: Any
) -> Any:
    """Writes columns to a file of this kind. `how`: compression; text options and escape of formulas in a new CSV."""
    if kind == source.kind:
        return source.sink(target, outputs, compression=how[0])
    return (
        ParquetSink(source, target, outputs)
        if kind == "Parquet"
        else TextSink(source, target, outputs, *how)
    )


def is_folder(source: PathLike) -> bool:
    """Whether a source is a folder, or a glob that is not the name of a file."""
    path = local(source)
    magic = has_magic(os.fspath(path)) and not is_url(path)
    return os.path.isdir(path) or (magic and not os.path.exists(path))


def files_of(source: PathLike) -> tuple[Path, list[str]]:
    """The folder that a source is about, and the data files in it, by their names there.

    Names that begin with ``_`` or ``.`` are no data, as for Spark and pyarrow.
    """
    name = os.fspath(local(source))
    whole = os.path.isdir(name)
    base = Path(*takewhile(lambda part: whole or not has_magic(part), Path(name).parts))
    found = sorted(
        glob(os.path.join(escape(name), "**") if whole else name, recursive=True)
    )
    names = {each: Path(each).relative_to(base).as_posix() for each in found}
    data = [
        each for each in found if not f"/{names[each]}".replace("/_", "/.").count("/.")
    ]
    for each in data:
        if not os.path.isfile(each) and not (
            os.path.isdir(each) and os.access(each, os.R_OK | os.X_OK)
        ):
            raise InputError(f"{each} is neither a file nor a folder that can be read")
    files = [names[each] for each in data if os.path.isfile(each)]
    if not files:
        raise InputError(f"{name} has no data files")
    return base, files


class FolderSource(AbstractContextManager["FolderSource"]):
    """All data files of a folder or glob as one table (a `Source`), read in the order of their names."""

    def __init__(self, source: PathLike, text: TextOptions | None = None) -> None:
        base, names = files_of(source)
        self.name, self.paths, self._text = (
            os.fspath(source),
            [base / name for name in names],
            text,
        )
        with open_source(self.paths[0], text) as first:
            self.header, self.kind = first.header, first.kind
        self.size, self.position = sum(path.stat().st_size for path in self.paths), 0
        self._now, self._before, self.cut = first, 0, False

    def batches(self, **how: Any) -> Iterator[Batch]:
        """All records of all files, which must have the columns of the first one and not change meanwhile."""
        self.position = read = records = 0
        for path in self.paths:
            with GuardedInput(path) as guarded, open_source(path, self._text) as table:
                if (table.kind, table.header) != (self.kind, self.header):
                    raise InputError(
                        f"{path} has other columns than {self.paths[0]}: files that are one table need the same ones"
                    )
                self._now, self._before = table, records
                for batch in table.batches(**how):
                    records += batch.num_rows
                    yield batch
                    self.position = read + round(
                        guarded.size * table.position / table.size
                    )
                guarded.check()
                read, self.cut = read + guarded.size, self.cut or table.cut

    def where(self, record: int) -> str:
        """The file and the line, or row, of a record of the last batch."""
        return self._now.where(record - self._before)

    def write_table(
        self, target: BinaryIO, columns: Mapping[str, Sequence[Any]], **how: Any
    ) -> None:
        """A new file of the kind of the first one."""
        with open_source(self.paths[0], self._text) as first:
            first.write_table(target, columns, **how)

    def __exit__(self, *raised: object) -> None:
        """Nothing is open between two passes."""
