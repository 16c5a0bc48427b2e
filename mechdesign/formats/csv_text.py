"""CSV text: its delimiter, quote and encoding, and how it is read as UTF-8.

`TextOptions` refuses what the splitter could not read right. Delimiter and quote are single bytes
for it, so ``;`` and a tab are possible, but not ``§``, ``||`` or a letter. An encoding must be one
of text that gives the characters of `_SAMPLE` back: ``cp1252`` is possible, ``hex`` is not.

*Input* becomes UTF-8, whatever its encoding and compression. The user names the encoding, which is
UTF-8 otherwise. A byte-order mark is taken off the text, and gives the byte order of UTF-16 and
UTF-32. UTF-8 is passed on as it is. Anything else is decoded and encoded again piece by piece
(`_Recoded`), where half of a character at the end of a piece waits for the next one. Under UTF-8,
binary files and UTF-16 are refused by their first bytes.

For example, with the encoding utf-16 the bytes of "é," are read like this:

    file    ff fe e9 00 2c 00       (mark; little-endian from here on)
    read    c3 a9 2c
"""

from __future__ import annotations

import codecs
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from mechdesign.core.errors import FileError, InputError
from mechdesign.formats.file_kinds import refuse_other_kinds
from mechdesign.formats.inputs import RawInput, Readable

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
