"""The text of a file as UTF-8, whatever its encoding and compression.

The user names the encoding, which is UTF-8 otherwise. A byte-order mark is taken off the text, and
gives the byte order of UTF-16 and UTF-32. UTF-8 is passed on as it is. Anything else is decoded
and encoded again piece by piece (`_Recoded`), where half of a character at the end of a piece waits
for the next one. Under UTF-8, binary files and UTF-16 are refused by their first bytes.

For example, with the encoding utf-16 the bytes of "é," are read like this:

    file    ff fe e9 00 2c 00       (mark; little-endian from here on)
    read    c3 a9 2c
"""

from __future__ import annotations

import codecs
import sys
from typing import TypeAlias

from mechdesign.core.errors import FileError
from mechdesign.formats.inputs import RawInput, Readable
from mechdesign.formats.other_kinds import refuse_other_kinds

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
