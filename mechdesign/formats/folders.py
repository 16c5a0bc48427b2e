"""Folders and globs of data files: their names, and all of them as one table.

Names that begin with a dot or an underscore are no data, as in Spark and Hive. A `FolderSource`
reads the files one after the other; all must have the same header, and a record is named by its
file and line.

For example, the glob ``data/*/part-*.csv`` has the files ``a/part-0.csv`` and ``b/part-0.csv`` of
the common folder ``data``. If the first one has 100 records, the 101st of the table is the first
record of the second one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from glob import escape, glob, has_magic
from pathlib import Path
from typing import Any, BinaryIO

from mechdesign.core.errors import FileError
from mechdesign.core.files import PathLike
from mechdesign.formats.compression import Compression
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import Batch, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.urls import is_url, local


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
    for path in sorted(glob(pattern, recursive=True)):
        relative = Path(path).relative_to(base)
        hidden = any(part.startswith((".", "_")) for part in relative.parts)
        # The folder itself has no part below itself.
        if hidden or not relative.parts:
            continue
        if os.path.isfile(path):
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
                if table.kind != self.kind or table.header != self.header:
                    raise FileError(
                        os.fspath(path),
                        f"{path} has other columns than {self.paths[0]}: files that are one "
                        "table need the same ones",
                    )
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
