"""CSV text: its delimiter, quote and encoding, and how it is read as UTF-8.

`TextOptions` refuses what the splitter could not read right. Delimiter and quote are single bytes
for it, so ``;`` and a tab are possible, but not ``§``, ``||`` or a letter. An encoding must be one
of text that gives the characters of `_SAMPLE` back: ``cp1252`` is possible, ``hex`` is not.

*Input* becomes UTF-8, whatever its encoding and compression. The user names the encoding, which is
UTF-8 otherwise. A byte-order mark is taken off the text, and gives the byte order of UTF-16 and
UTF-32. UTF-8 is passed on as it is. Anything else is decoded and encoded again piece by piece
(`_Recoded`), where half of a character at the end of a piece waits for the next one.

For example, with the encoding utf-16 the bytes of "é," are read like this:

    file    ff fe e9 00 2c 00       (mark; little-endian from here on)
    read    c3 a9 2c

*Files of other programs* are neither CSV nor Parquet. Under UTF-8 they are refused by their first
bytes (`refuse_other_kinds`), UTF-16 and binary files among them. For each kind that people have
there is the command that exports it; `FILE` stands for its name.
"""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from mechdesign.core.errors import FileError, InputError
from mechdesign.formats.inputs import RawInput, Readable, looks_like_text

# ------------------------------------------------------------------------------- format

AUTO = "auto"
"""The lines above the header are those that look like titles or comments."""

_FORBIDDEN = "\r\n\0"
"""Characters that can neither delimit nor quote cells."""

_HOST_NAMES = ("idna", "punycode")
"""Codecs for names of computers, which are text encodings to Python."""

_SAMPLE = ',;"\r\nAa09\t'
"""Characters that every usable encoding must have."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How the text of a CSV file is read and written.

    Without `quote`, quotes are ordinary characters. `skip_lines` are passed over above the header;
    "auto" takes those that look like titles or comments.
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"
    skip_lines: int | Literal["auto"] = 0

    def __post_init__(self) -> None:
        _require_character("delimiter", self.delimiter)
        if self.quote is not None:
            _require_character("quote", self.quote)
        if self.quote == self.delimiter:
            raise InputError(
                f"delimiter and quote ({self.quote!r}) must be different characters"
            )
        is_number = type(self.skip_lines) is int and self.skip_lines >= 0
        if self.skip_lines != AUTO and not is_number:
            raise InputError(
                f"--skip-lines ({self.skip_lines!r}) must be a number of lines, or auto"
            )
        if not _is_text_encoding(self.encoding):
            raise InputError(
                f"encoding ({self.encoding!r}) must be a text encoding that Python knows, such as "
                "utf-8, utf-16 or cp1252"
            )

    def record(self) -> dict[str, Any]:
        """The options as plain values; lines that are skipped only where there are some."""
        values = asdict(self)
        # Records of files without them have no such key.
        if not self.skip_lines:
            del values["skip_lines"]
        return values

    @property
    def of_output(self) -> TextOptions:
        """How a file is read that was written in this way: it begins with its header."""
        return replace(self, skip_lines=0)


def _is_text_encoding(encoding: str) -> bool:
    """Whether Python knows an encoding of text by this name."""
    # Python also has codecs from bytes to bytes, such as hex and zip: they fail one of these steps.
    try:
        codecs.getincrementaldecoder(encoding)
        if codecs.lookup(encoding).name in _HOST_NAMES:
            return False
        return _SAMPLE.encode(encoding).decode(encoding) == _SAMPLE
    except (LookupError, UnicodeError, ValueError):
        return False


def _require_character(what: str, text: str) -> None:
    """Refuse all but one ASCII character that is no letter, digit, line end or NUL."""
    # One byte in UTF-8, which occurs in no other character: the splitter works on bytes.
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in _FORBIDDEN:
        raise InputError(
            f"{what} ({text!r}) must be one ASCII character, no letter, digit, line end or NUL"
        )


# -------------------------------------------------------------------------------- input

_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
"""Byte-order marks that may stand before the text."""

_SINGLE_BYTES = ("ascii", "iso8859-", "cp125", "koi8-")
"""Beginnings of the names of encodings with one byte per character that contain ASCII."""


class Undecodable(Exception):
    """The next bytes are not text in the encoding."""


class TextInput:
    """Reads a file as UTF-8 text without its byte-order mark.

    Attributes
    ----------
    encoding : str
        The encoding of the file, with its byte order.
    mark : bytes
        The byte-order mark of the file, empty if it has none.
    """

    def __init__(self, raw: RawInput, encoding: str) -> None:
        self.encoding = _with_byte_order(codecs.lookup(encoding).name, raw.head)
        mark = _MARKS.get(self.encoding, b"")
        self.mark = mark if raw.head.startswith(mark) else b""
        if self.encoding == "utf-8":
            refuse_other_kinds(raw.name, raw.head)
        self.cursor, stream = raw.from_start()
        self._reader: _Reader = stream
        if self.encoding != "utf-8":
            self._reader = _Recoded(stream, self.encoding)
        if self.mark:
            skipped = stream.read(len(self.mark))
            if len(skipped) < len(self.mark):
                raise FileError(raw.name, f"{raw.name} is empty")

    def read(self, size: int, /) -> bytes:
        """Some of the text, about `size` bytes; none at the end."""
        return self._reader.read(size)


def _with_byte_order(name: str, head: bytes) -> str:
    """The encoding with the byte order of the mark in `head`, or that of this machine."""
    # Marks are kept apart from the text, in every encoding.
    if name == "utf-8-sig":
        return "utf-8"
    if name not in ("utf-16", "utf-32"):
        return name
    for encoding in (f"{name}-le", f"{name}-be"):
        if head.startswith(_MARKS[encoding]):
            return encoding
    return f"{name}-be" if sys.byteorder == "big" else f"{name}-le"


class _Recoded:
    """Reads text of another encoding as UTF-8."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._single = encoding.startswith(_SINGLE_BYTES)
        self._broken = False
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """About `size` bytes.

        What precedes a fault comes first, so that lines are counted right.
        """
        if self._broken:
            raise Undecodable
        while not self._ended:
            data = self._stream.read(size)
            self._ended = not data
            # Such bytes are UTF-8 already, and most text is ASCII.
            if self._single and data.isascii():
                return data
            text = self._decoded(data)
            try:
                recoded = text.encode()
            except UnicodeEncodeError as error:
                # Lone surrogates are not characters.
                self._broken = True
                recoded = text[: error.start].encode()
            # Half of a character alone gives no text: then read on.
            if recoded:
                return recoded
            if self._broken:
                raise Undecodable
        return b""

    def _decoded(self, data: bytes) -> str:
        """The text of some bytes, up to the first fault in them."""
        try:
            return self._decoder.decode(data, self._ended)
        except UnicodeDecodeError as error:
            self._broken = True
            # The decoder puts what it had kept of the bytes before in front of these.
            valid = bytes(error.object[: error.start])
            return valid.decode(self._encoding, "ignore")


_Reader: TypeAlias = Readable | _Recoded


# -------------------------------------------------------------- files of other programs

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

A_NUL = (
    "a NUL character, which is no text: if this is a CSV file, export it anew, or remove it "
    r"(tr -d '\000' < FILE)"
)

FEW_NULS = 0.05
"""Share of NUL bytes below which a file is text with a fault, and not binary."""


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
            f"{name}, line {line}: {A_NUL}",
        )
    raise FileError(
        name, f"{name} is neither a CSV nor a Parquet file (it has binary content)"
    )
