"""Files that are read by a further step or not at all: compressed, or of other programs.

*Compression.* Gzip and zstd are recognised, read and written, zip archives read. The first bytes of
a file tell its kind, whatever its name (`compression_of`): ``1f 8b`` is gzip, ``28 b5 2f fd`` is
zstd. For an output its name decides (`compression_named`).

`Decompressed` gives the content in pieces, and turns every fault of the library into one sentence
about the file, also where the data end too soon. `compressed` writes. Closing it ends the data and
leaves the target open (`LeftOpen`), and after a failure not even that end is written.

*Zip archives* of a CSV file are read where they are. Spreadsheets are zip archives, too: they are
told by the files inside. An archive of one file is read as that file. Of several files nobody can
know which one is meant.

*Other kinds* are neither CSV nor Parquet. A file is recognised by its first bytes. For each kind
that people have there is the command that exports it; `FILE` stands for its name.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import unicodedata
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

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes 2 to 4 of a zstd frame without data. Parallel compressors begin with one."""


def compression_of(head: bytes) -> Compression | None:
    """The compression of a file, from its first bytes."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD):
        return "zstd"
    # The first byte of such a frame is a number from 0 to 15, plus 0x50.
    if head[1:4] == _ZSTD_SKIPPABLE and 0x50 <= head[0] <= 0x5F:
        return "zstd"
    return None


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


# -------------------------------------------------------------------------- other kinds

_UTF_16 = "is UTF-16 text; save it as UTF-8, or name its encoding (--encoding utf-16)"
_OLD_SPREADSHEET = (
    "is a spreadsheet or another file of Microsoft Office; export the sheet as CSV:  ssconvert "
    "FILE SHEET.csv"
)
_FEATHER = (
    'is a Feather file (Arrow IPC); turn it into Parquet:  python -c "import pyarrow.feather as f, '
    "pyarrow.parquet as p; p.write_table(f.read_table('FILE'), 'TABLE.parquet')\""
)
_R_DATA = (
    'is a file of R; export its table as CSV:  Rscript -e \'write.csv({}, "TABLE.csv", '
    'row.names = FALSE, na = "")\''
)
# Other readers make floats of integers beside empty cells, and of dates points in time.
_JSON = (
    'is JSON; turn its records into CSV:  python -c "import csv, json, sys; r = {}; '
    "w = csv.DictWriter(sys.stdout, dict.fromkeys(k for x in r for k in x)); w.writeheader(); "
    'w.writerows(r)" < FILE > TABLE.csv'
)

_MAGICS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe", _UTF_16),
    (b"\xfe\xff", _UTF_16),
    (b"\xd0\xcf\x11\xe0", _OLD_SPREADSHEET),
    (b"ARROW1", _FEATHER),
    (b"FEA1", _FEATHER),
    (b"X\n\x00\x00\x00", _R_DATA.format('readRDS("FILE")')),
    (b"RDX", _R_DATA.format('get(load("FILE"))')),
    (
        b"\x89HDF\r\n",
        'is an HDF5 file; export its table as CSV:  python -c "import pandas as pd; '
        "pd.read_hdf('FILE').to_csv('TABLE.csv', index=False)\"",
    ),
    (
        b"SQLite format 3\x00",
        'is an SQLite database; export a table as CSV:  sqlite3 -header -csv FILE "select * from '
        'NAME" > TABLE.csv',
    ),
    (
        b"ORC",
        'is an ORC file; turn it into Parquet:  python -c "import pyarrow.orc as o, '
        "pyarrow.parquet as p; p.write_table(o.read_table('FILE'), 'TABLE.parquet')\"",
    ),
    (b"Obj\x01", "is an Avro file; export it as Parquet or CSV from where it was made"),
    (b"\xfd7zXZ\x00", "is packed with xz; unpack it first:  xz -dk FILE"),
    (b"BZh", "is packed with bzip2; unpack it first:  bunzip2 -k FILE"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive; unpack it first"),
    (b"Rar!", "is a RAR archive; unpack it first"),
)
"""First bytes of files that are neither UTF-8 text nor Parquet, and what those files are.

Some are letters with which the header of a CSV may begin, such as ORCID: `looks_like_text`.
"""

_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    # Two versions of R stand behind the version of the format.
    (re.compile(rb"A\n[23]\n\d{6}\n\d{6}\n"), _R_DATA.format('readRDS("FILE")')),
    (
        re.compile(rb"%PDF-\d"),
        "is a PDF document; export the table from where it was made",
    ),
)
"""The beginning of files that are no tables, although they may be text."""

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\f\r"))
"""Bytes that text does not have."""

_MARKUP = re.compile(rb"\s*<(!doctype html|html|\?xml|table)\b", re.IGNORECASE)
"""Web pages, which some programs save under the name of a spreadsheet."""

_ARRAY = re.compile(rb"\s*\[\s*(\{\s*(\"|\})|\[)")
_LINES = re.compile(rb"\s*\{\s*\"(\\.|[^\"\\])*\"\s*:\s*(?P<nested>[\[{])?")
"""The beginning of an array of records, and of records or one object."""

_OWN = re.compile(rb"\s*\{\s*\"format\"\s*:\s*\"(mechdesign\.[a-z-]+)\"")
"""The beginning of a channel file, a manifest, and of all other files of this package."""

DELIMITERS = ",;\t|"
"""What stands between the cells of a table."""

FEWEST_LINES = 3
"""Fewest lines by which text without a delimiter is told from other bytes."""

FEW_NULS = 0.05
"""Share of NUL bytes below which a file is text with a fault, and not binary."""


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are lines of text, in whatever encoding with ASCII."""
    return b"\n" in head and not any(code in head for code in _CONTROLS)


def refuse_other_kinds(name: str, head: bytes) -> None:
    """Refuse a file that is no UTF-8 text, by its first bytes; FileError says what to do."""
    for magic, kind in _MAGICS:
        if head.startswith(magic) and not looks_like_text(head):
            raise FileError(name, f"{name} {kind}")
    for beginning, kind in _TEXTS:
        if beginning.match(head):
            raise FileError(name, f"{name} {kind}")
    if _MARKUP.match(head):
        raise FileError(
            name,
            f"{name} is a web page or XML, whatever its name; open it in a spreadsheet, and save "
            "the table as CSV",
        )
    own = _OWN.match(head)
    if own is not None:
        raise FileError(
            name,
            f"{name} is no table: it is a file that mechdesign wrote ({own[1].decode()}); give the "
            "file with the records",
        )
    if _ARRAY.match(head):
        raise FileError(
            name, f"{name} {_JSON.format('json.load(sys.stdin, parse_float=str)')}"
        )
    lines = _LINES.match(head)
    if lines is not None and lines["nested"]:
        raise FileError(
            name,
            f"{name} is JSON, but no list of records with a cell for each column; write it so "
            "first (in pandas: to_json(.., orient='records'))",
        )
    if lines is not None:
        records = "[json.loads(x, parse_float=str) for x in sys.stdin]"
        raise FileError(name, f"{name} {_JSON.format(records)}")
    _refuse_nuls(name, head)


def _is_lines(head: bytes, encoding: str) -> bool:
    """Whether the first bytes of a file are the lines of a table in an encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return False
    # Any two bytes are some character, and a line ends by chance; few texts have a delimiter, too,
    # or several lines, as a single column has.
    has_delimiter = any(sign in text for sign in DELIMITERS)
    if text.count("\n") < (1 if has_delimiter else FEWEST_LINES):
        return False
    # Control characters, private ones and those that Unicode does not have are no text.
    strange = ("Cc", "Cn", "Co")
    return not any(
        unicodedata.category(code) in strange for code in set(text) - set("\t\n\f\r")
    )


def _refuse_nuls(name: str, head: bytes) -> None:
    """Refuse text with NUL bytes: with the line, or as UTF-16, or as something binary."""
    nuls = head.count(0)
    if not nuls:
        return
    # Of ASCII in UTF-16 every second byte is zero, from the first or the second on. Of other
    # scripts few are, but the text has lines, and no characters that texts do not have.
    for start, order in ((0, "be"), (1, "le")):
        ascii_alone = nuls > 1 and nuls == head[start::2].count(0) >= 0.9 * (
            len(head) // 2
        )
        if ascii_alone or _is_lines(head, f"utf-16-{order}"):
            raise FileError(
                name,
                f"{name} is UTF-16 text; save it as UTF-8, or name its encoding (--encoding "
                f"utf-16-{order})",
            )
    controls = sum(head.count(code) for code in range(1, 9))
    if nuls <= FEW_NULS * len(head) and not controls:
        line = head[: head.index(0)].count(b"\n") + 1
        raise FileError(
            name,
            f"{name}, line {line}: a NUL character, which is no text; is this a CSV file?",
        )
    raise FileError(
        name, f"{name} is neither a CSV nor a Parquet file (it has binary content)"
    )
