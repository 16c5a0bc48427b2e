"""A CSV file in a zip archive, which is read where it is; other archives are explained.

Spreadsheets are zip archives, too: they are told by the files inside. An archive of one file is
read as that file. Of several files nobody can know which one is meant.
"""

from __future__ import annotations

import io
import zipfile
from errno import EINVAL
from typing import Any

from mechdesign.core.errors import FileError
from mechdesign.core.wording import listed

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
