"""Compressed files: gzip and zstd are read and written, zip archives read.

The first bytes of an input tell how it is compressed (`inputs.compression_of`). For an output its
name decides (`compression_named`).

`Decompressed` gives the content in pieces, and turns every fault of the library into one sentence
about the file, also where the data end too soon. `compressed` writes. Closing it ends the data and
leaves the target open (`LeftOpen`), and after a failure not even that end is written.

*Zip archives* of a CSV file are read where they are. Spreadsheets are zip archives, too: they are
told by the files inside. An archive of one file is read as that file. Of several files nobody can
know which one is meant.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from errno import EINVAL
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mechdesign.core.errors import FileError
from mechdesign.core.files import PathLike, reason
from mechdesign.core.wording import listed

# -------------------------------------------------------------------------- compression

Compression: TypeAlias = Literal["gzip", "zstd"]

SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}

GZIP_LEVEL = 6
"""The level of the program gzip. Level nine takes twice as long for a few per cent."""


def compression_named(path: PathLike) -> Compression | None:
    """The compression that the name of a file asks for (``.gz``, ``.zst``)."""
    return SUFFIXES.get(Path(os.fspath(path)).suffix.lower())


class Decompressed:
    """The content of a compressed file."""

    def __init__(
        self, stream: io.RawIOBase, compression: Compression, name: str
    ) -> None:
        import pyarrow as pa

        self._stream: Any = pa.CompressedInputStream(stream, compression)
        self._compression = compression
        self._name = name

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        import pyarrow as pa

        try:
            return self._stream.read(size)
        except (OSError, pa.ArrowException) as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> FileError:
        """The error as one about the file."""
        # The operating system gives a number to its errors, arrow does not.
        if isinstance(error, OSError) and error.errno:
            message = f"{self._name} cannot be read: {reason(error)}"
        elif "Truncated" in str(error):
            message = (
                f"{self._name} is truncated within its {self._compression} data; "
                "it was not copied or written whole"
            )
        else:
            message = f"{self._name}: its {self._compression} data are damaged"
        return FileError(self._name, message)


def compressed(target: LeftOpen, compression: Compression | None) -> Any:
    """A binary stream that compresses what it writes to `target`; closing it ends the data.

    The bytes depend on the data alone, not on the time or a name.
    """
    if compression is None:
        return target
    if compression == "gzip":
        # Without a name and a time, which the format would store.
        return gzip.GzipFile("", "wb", GZIP_LEVEL, cast("Any", target), mtime=0)
    import pyarrow as pa

    return pa.CompressedOutputStream(target, compression)


class LeftOpen(io.RawIOBase):
    """Passes data on to a target, which stays open when this is closed.

    After `abandoned` is set, nothing is passed on: writers add an end even to data that failed.
    """

    def __init__(self, target: Any) -> None:
        self._target = target
        self.abandoned = False

    def writable(self) -> bool:
        """True: compressors ask before they write."""
        return True

    def write(self, data: Any, /) -> int:
        """Write all of `data`."""
        if not self.abandoned:
            write_all(self._target, data)
        return len(data)


def write_all(target: Any, data: Any) -> None:
    """Write all of `data`, even where one call writes only a part, as an unbuffered file may."""
    view = memoryview(data).cast("B")
    while len(view):
        written = target.write(view)
        if written is None:
            # A pipe that its reader has set to non-blocking; 11 is EAGAIN.
            raise BlockingIOError(11, "the target would block")
        view = view[written:]


# ------------------------------------------------------------------------- zip archives

ZIP = b"PK\x03\x04"
"""First bytes of an archive that is not empty."""

EMPTY_ZIP = b"PK\x05\x06"

_SPREADSHEET_PARTS = ("[Content_Types].xml", "mimetype", "content.xml")
"""Files that Excel's and OpenDocument's archives have."""

_RESOURCES = "__MACOSX/"
_FOLDER_FILE = ".DS_Store"
"""Files that archives of macOS have beside the data."""

SPREADSHEET = "is a spreadsheet; export the sheet as CSV:  ssconvert FILE SHEET.csv"


class Unzipped:
    """The content of the only file in an archive, piece by piece."""

    def __init__(self, stream: io.RawIOBase, name: str) -> None:
        self._name = name
        try:
            self._archive = zipfile.ZipFile(_Seekable(stream))
        except zipfile.BadZipFile:
            raise self._damaged() from None
        member = _only_member(self._archive, name)
        try:
            self._content: Any = self._archive.open(member)
        except NotImplementedError:
            raise FileError(
                name, f"{name} is packed in a way that is not known; unpack it first"
            ) from None
        except RuntimeError:
            raise FileError(
                name, f"{name} is locked with a password; unpack it first"
            ) from None

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        try:
            return self._content.read(size)
        except (zipfile.BadZipFile, EOFError, OSError):
            raise self._damaged() from None
        except Exception as error:
            # The decompressor of each method has an error of its own.
            if type(error).__name__ != "error":
                raise
            raise self._damaged() from None

    def _damaged(self) -> FileError:
        """The error about an archive that cannot be read."""
        return FileError(
            self._name,
            f"{self._name}: its zip data are damaged, or were not copied whole",
        )


def _only_member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """The one file of an archive; FileError if it is a spreadsheet or has several."""
    names = archive.namelist()
    if any(part in names for part in _SPREADSHEET_PARTS):
        raise FileError(name, f"{name} {SPREADSHEET}")
    members: list[zipfile.ZipInfo] = []
    for member in archive.infolist():
        if member.is_dir() or member.filename.startswith(_RESOURCES):
            continue
        if not member.filename.endswith(_FOLDER_FILE):
            members.append(member)
    if not members:
        raise FileError(name, f"{name} is an archive without files")
    if len(members) > 1:
        inside = listed([member.filename for member in members], 5)
        raise FileError(
            name,
            f"{name} is an archive of several files ({inside}); unpack it, and name the one that "
            "you mean",
        )
    return members[0]


class _Seekable(io.RawIOBase):
    """A stream that can seek, by the position of a cursor on it."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self._size = cursor.size()

    def seekable(self) -> bool:
        """True: an archive is read from its end."""
        return True

    def readable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """The position of the next byte."""
        return self._cursor.position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}
        position = start[whence] + offset
        if position < 0:
            # As files do. An archive of few bytes is looked for at places before its beginning.
            raise OSError(EINVAL, "a position before the beginning")
        self._cursor.position = position
        return self._cursor.position

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes from the position."""
        return self._cursor.read(size)
