"""Data files of any format: sources that yield batches, and sinks that write them with changes.

A job opens a `Source`, decides from its `header` which columns the output has (`arrow_arrays`),
opens a sink, and passes on every batch with its written columns. Memory does not grow with the
file. Kept columns never become Python objects: a CSV passes the bytes of its lines on, Parquet its
arrays. In outline, where column 2 is replaced::

    with open_source("in.csv.gz") as source:
        packing = packing_of(source, "out.csv")
        with sink_for(source, source.kind, stream, outputs, packing, ..) as sink:
            for batch in source.batches(encode=[source.header[2]]):
                sink.write(batch, written)

The formats are in `csv`, `parquet` and their sinks; here it is decided which of them a file has.
The first bytes of a source decide, whatever its name, and the name of a target has to fit what is
written to it.

*Folders* and globs of data files are read as one table. Names that begin with a dot or an
underscore are no data, as in Spark and Hive. A `FolderSource` reads the files one after the other;
all must have the same header, and a record is named by its file and line.

For example, the glob ``data/*/part-*.csv`` has the files ``a/part-0.csv`` and ``b/part-0.csv`` of
the common folder ``data``. If the first one has 100 records, the 101st of the table is the first
record of the second one.

*Files of SPSS, Stata and SAS* are read with the labels of their values, by pyreadstat (extra
`stats`). Such a file has a code in every cell, and often a dictionary of labels: 1 is "employed".
The labels are what people mean, so a cell becomes its label. A code without a label, or with an
empty one, is written as a number, as a whole one where it is whole; a label that reads like such a
number, or that several codes share, has its code behind it. Missing values, those that SPSS files
declare too, are missing. The table is held in memory and read like a Parquet file.
"""

from __future__ import annotations

import io
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from glob import escape, glob, has_magic
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from mechdesign.core.errors import FileError, InputError, Notice
from mechdesign.core.files import (
    PARQUET_SUFFIXES,
    NamelessFile,
    PathLike,
    is_url,
    local,
    on_failure,
)
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.arrow_arrays import Output
from mechdesign.formats.cells import as_whole
from mechdesign.formats.column_names import delimiter_within
from mechdesign.formats.compression import Compression, compression_named, write_all
from mechdesign.formats.csv import CsvBatch, CsvSource
from mechdesign.formats.csv_sinks import CsvSink, TextSink
from mechdesign.formats.csv_text import AUTO, TextOptions
from mechdesign.formats.inputs import GuardedInput, RawInput
from mechdesign.formats.parquet import ParquetBatch, ParquetSource
from mechdesign.formats.parquet_sink import ParquetLayout, ParquetSink

# --------------------------------------------------------- files of statistics programs

READERS = {
    "SPSS": "read_sav",
    "Stata": "read_dta",
    "SAS": "read_sas7bdat",
    "SAS transport": "read_xport",
}
"""pyreadstat's functions by the kind of file."""

_BLOCK = 1 << 20


def as_parquet(raw: RawInput) -> RawInput:
    """The table of a statistics file as a Parquet file in memory, under the same name.

    Raises
    ------
    FileError
        If pyreadstat is not installed, or cannot read the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = raw.statistics or "SPSS"
    if find_spec("pyreadstat") is None:
        raise FileError(
            raw.name,
            f"{raw.name} is a file of {kind}, which needs more: pip install 'mechdesign[stats]'; "
            "or export the table as CSV from where it was made",
        )
    # It has no types.
    pyreadstat: Any = import_module("pyreadstat")

    with closing(NamelessFile()) as copy:
        # A file object has no path, and pyreadstat reads from nothing else.
        with open(copy.path, "wb", buffering=0) as sink:
            cursor, _ = raw.from_start()
            while block := cursor.read(_BLOCK):
                write_all(sink, block)
        raw.check()
        try:
            frame, meta = getattr(pyreadstat, READERS[kind])(str(copy.path))
        except Exception as error:
            # The library's errors have a base class of its own, and some are plain ones.
            column = ""
            if isinstance(error, OverflowError):
                column = _overflowing(getattr(pyreadstat, READERS[kind]), copy.path)
            raise FileError(
                raw.name,
                f"{raw.name} is a file of {kind} that cannot be read ({column}{error}); export the "
                "table as CSV from where it was made",
            ) from None
    columns: dict[str, Any] = {}
    for name in frame.columns:
        labels = meta.variable_value_labels.get(name, {})
        columns[name] = _column(frame[name], labels)
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return RawInput(buffer, raw.name)


def _overflowing(read: Callable[..., Any], path: str | Path) -> str:
    """The column with dates that Python does not have, as the beginning of a reason."""
    _, meta = read(str(path), metadataonly=True)
    for name in meta.column_names:
        try:
            read(str(path), usecols=[name])
        except OverflowError:
            return (
                f"the column {quoted(name)} has dates outside of the years 1 to 9999: "
            )
    return ""


def _column(series: Any, labels: Mapping[Any, str]) -> Any:
    """A column as an arrow array: labels, whole numbers, or what it was."""
    import pyarrow as pa

    values = [None if value != value else value for value in series.tolist()]
    if labels:
        texts = _texts_of_codes(labels, values)
        labelled: list[str | None] = []
        for value in values:
            if value is None:
                labelled.append(None)
            else:
                labelled.append(texts.get(value, as_whole(str(value))))
        return pa.array(labelled, pa.string())
    numbers = [value for value in values if value is not None]
    if numbers and all(
        isinstance(value, float) and value.is_integer() for value in numbers
    ):
        # All numbers of SPSS are floats; most of them are codes or counts.
        return pa.array([None if v is None else int(v) for v in values])
    return pa.Array.from_pandas(series)


def _texts_of_codes(labels: Mapping[Any, str], values: Sequence[Any]) -> dict[Any, str]:
    """The text of each code; a label has its code behind it where two codes would be one text."""
    labels = {code: label for code, label in labels.items() if label.strip()}
    times = Counter(labels.values())
    # What codes without a label are written as.
    times.update({as_whole(str(value)) for value in values if value not in labels})
    texts: dict[Any, str] = {}
    for code, label in labels.items():
        texts[code] = label
        if times[label] > 1:
            texts[code] = f"{label} ({as_whole(str(code))})"
    return texts


# ------------------------------------------------------------------------------ opening

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
        options = options or TextOptions()
        table = CsvSource(raw, options, repeated_names=repeated_names)
        _tell_of_title(table, options)
        return table


def open_beside(path: PathLike, table: TextOptions | None = None) -> Source:
    """Open a small file that says something about a table, such as costs or shares of its symbols.

    Two programs may have written both files. So cells are separated as in the table, or else by
    whatever usual delimiter stands in the header. Title lines are those of the table alone. The
    header may name a column twice, for the caller to refuse in words of its own.

    Parameters
    ----------
    path : path
        The file, which has two columns or more.
    table : TextOptions, optional
        How the text of the table is read.
    """
    text = (table or TextOptions()).of_output
    source = open_source(path, text, repeated_names=True)
    if isinstance(source, ParquetSource) or len(source.header) != 1:
        return source
    delimiter = delimiter_within(source.header[0])
    if delimiter is None:
        return source
    source.close()
    return open_source(path, replace(text, delimiter=delimiter), repeated_names=True)


def _tell_of_title(source: CsvSource, options: TextOptions) -> None:
    """Say which lines were passed over, where nobody gave their number: they may be records."""
    above = source.blocks.lines_above
    if options.skip_lines != AUTO or not above:
        return
    noun = "line was" if above == 1 else f"{above} lines were"
    message = (
        f"{source.name}: the first {noun} passed over as a title or a comment, and line "
        f"{above + 1} was taken for the header"
    )
    # One place for all who open the file, so that it is said once.
    warnings.warn(message, Notice, stacklevel=1)


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
    text: TextOptions | None = None,
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
    text : TextOptions, optional
        How a CSV is written that is made of another kind of file.

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
    _refuse_other_suffix(source, target, kind, path.suffix.lower(), text)
    packing = requested or named
    if packing and (kind or source.kind) == "Parquet":
        raise InputError(
            f"{target}: Parquet is compressed inside: it cannot be packed with {packing} on top"
        )
    return packing


def _refuse_other_suffix(
    source: Source,
    target: PathLike,
    kind: Kind | None,
    suffix: str,
    text: TextOptions | None,
) -> None:
    """Raise InputError if the suffix of an output is that of another kind of file."""
    target_kind = kind or source.kind
    if suffix == ".tsv" and target_kind == "CSV":
        is_copy = isinstance(source, CsvSource)
        written = source.options if is_copy else text or TextOptions()
        like_input = ", as the input" if is_copy else ""
        or_tabs = "" if is_copy else ", or ask for tabs (--delimiter tab)"
        if written.delimiter != "\t":
            raise InputError(
                f"{target}: the output has {quoted(written.delimiter)} between cells{like_input}, "
                f"and .tsv says tabs; name it .csv{or_tabs}"
            )
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


# ------------------------------------------------------------------------------ folders


def is_folder(source: PathLike) -> bool:
    """Whether a source is a folder, or a glob that is not the name of a file."""
    path = local(source)
    if os.path.isdir(path):
        return True
    return has_magic(os.fspath(path)) and not is_url(path) and not os.path.exists(path)


def files_of(source: PathLike) -> tuple[Path, list[str]]:
    """The data files of a folder or glob: their common folder, and their names in it, sorted.

    As for Spark and pyarrow, names that begin with ``_`` or ``.`` are not data.
    """
    name = os.fspath(local(source))
    if os.path.isdir(name):
        base = Path(name)
        pattern = os.path.join(escape(name), "**")
    else:
        base = _fixed_part(name)
        pattern = name
    files: list[str] = []
    first_name: dict[tuple[int, int], str] = {}
    for path in sorted(glob(pattern, recursive=True)):
        relative = Path(path).relative_to(base)
        hidden = any(part.startswith((".", "_")) for part in relative.parts)
        # The folder itself has no part below itself.
        if hidden or not relative.parts:
            continue
        if os.path.isfile(path):
            status = os.stat(path)
            first = first_name.setdefault((status.st_dev, status.st_ino), path)
            if first != path:
                raise FileError(
                    path,
                    f"{path} is a link to the same file as {first}, whose records would count "
                    "twice: leave one of them out",
                )
            files.append(relative.as_posix())
        elif not os.path.isdir(path) or not os.access(path, os.R_OK | os.X_OK):
            raise FileError(
                path, f"{path} is neither a file nor a folder that can be read"
            )
    if not files:
        message = f"{name} has no data files"
        if "[" in name and not os.path.isdir(name):
            message += "; in a pattern, [[] stands for a bracket"
        raise FileError(name, message)
    return base, files


def paths_of(source: PathLike) -> list[PathLike]:
    """The data files of a folder or glob, or the file itself."""
    if not is_folder(source):
        return [source]
    base, names = files_of(source)
    return [base / name for name in names]


def _fixed_part(pattern: str) -> Path:
    """The folder before the first wildcard of a glob."""
    parts: list[str] = []
    for part in Path(pattern).parts:
        if has_magic(part):
            break
        parts.append(part)
    return Path(*parts)


class FolderSource(AbstractContextManager["FolderSource"]):
    """All data files of a folder or glob as one table, in the order of their names.

    It has the interface of `opening.Source`, without sinks.
    """

    def __init__(self, source: PathLike, text: TextOptions | None = None) -> None:
        base, names = files_of(source)
        self.name = os.fspath(source)
        self.paths = [base / name for name in names]
        self._text = text
        with open_source(self.paths[0], text) as first:
            self.header = first.header
            self.kind = first.kind
        self.size = sum(path.stat().st_size for path in self.paths)
        self.position = 0
        self.cut = False
        self.hidden_note: str | None = None
        self._current = first
        self._records_before = 0
        """Records in the files before the current one."""

    def batches(
        self,
        *,
        encode: Sequence[str] = (),
        read: Sequence[str] = (),
        whole: bool = True,
    ) -> Iterator[Batch]:
        """All records of all files; the arguments are those of `CsvSource.batches`.

        `position` and `where` follow the batches, as of a single file.

        Raises
        ------
        InputError
            If a file has other columns than the first one, or changes while it is read.
        """
        self.position = 0
        bytes_before = 0
        records = 0
        for path in self.paths:
            with GuardedInput(path) as guarded, open_source(path, self._text) as table:
                self._refuse_other_columns(path, table)
                self._current = table
                self._records_before = records
                for batch in table.batches(encode=encode, read=read, whole=whole):
                    records += batch.num_rows
                    yield batch
                    # A file measures its position in bytes or in rows; the folder in bytes.
                    share = table.position / table.size
                    self.position = bytes_before + round(guarded.size * share)
                guarded.check()
                bytes_before += guarded.size
                self.cut = self.cut or table.cut
                self.hidden_note = self.hidden_note or table.hidden_note

    def _refuse_other_columns(self, path: Path, table: Source) -> None:
        """Refuse a file that is not written like the first one, and say what differs."""
        first = self.paths[0]
        if table.kind != self.kind:
            difference = (
                f"{path} is a {table.kind} file and {first} a {self.kind} file: files that are one "
                "table need the same form; convert one of them"
            )
        elif table.header == self.header:
            return
        elif sorted(table.header) == sorted(self.header):
            difference = (
                f"{path} has the columns of {first} in another order: files that are one table "
                "need the same order; write one of them anew"
            )
        else:
            names = sorted(set(table.header) ^ set(self.header))
            difference = (
                f"{path} has other columns than {first} ({listed(names)} in one of them alone): "
                "files that are one table need the same ones"
            )
        raise FileError(os.fspath(path), difference)

    def where(self, record: int) -> str:
        """The file and the line, or row, of a record of the last batch."""
        return self._current.where(record - self._records_before)

    def write_table(
        self,
        target: BinaryIO,
        columns: Mapping[str, Sequence[Any]],
        *,
        compression: Compression | None = None,
    ) -> None:
        """Write a new table in the format of the first file."""
        with open_source(self.paths[0], self._text) as first:
            first.write_table(target, columns, compression=compression)

    def __exit__(self, *raised: object) -> None:
        """Do nothing: no file is open between two passes."""
