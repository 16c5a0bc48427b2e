"""The content of a CSV file as UTF-8, whatever encoding and compression it is stored in."""

from __future__ import annotations

import codecs
import sys

from mechdesign.errors import InputError
from mechdesign.files import BINARY, SNIFFED, other_kind
from mechdesign.sanitise.compression import Readable
from mechdesign.sanitise.inputs import RawInput

_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
"""Byte-order marks that may stand before the text."""

_SINGLE_BYTES = ("ascii", "iso8859-", "cp125", "koi8-")
"""Encodings of one byte a character in which ASCII is ASCII, by the beginning of their name."""


class Undecodable(Exception):
    """What comes next is not text in the encoding."""


class TextInput:
    """Reads a file as UTF-8 text without its byte-order mark.

    Attributes
    ----------
    encoding : str
        Of the file, with its byte order, without its mark.
    mark : bytes
        The byte-order mark that the file begins with, if any.

    Raises
    ------
    InputError
        If the file is of another kind than text in that encoding.
    """

    def __init__(self, raw: RawInput, encoding: str) -> None:
        name = codecs.lookup(encoding).name
        self.encoding = "utf-8" if name == "utf-8-sig" else name
        if name in ("utf-16", "utf-32"):
            orders = [f"{name}-le", f"{name}-be"]
            native = orders[sys.byteorder == "big"]
            self.encoding = next((e for e in orders if raw.head.startswith(_MARKS[e])), native)
        mark = _MARKS.get(self.encoding, b"")
        self.mark = mark if mark and raw.head.startswith(mark) else b""
        if self.encoding == "utf-8":
            _require_text(raw)
        self.cursor, self._stream = raw.from_start()
        self._reader = _reader(self._stream, self.encoding)
        skipped = self._stream.read(len(self.mark)) if self.mark else b""
        if len(skipped) < len(self.mark):
            raise InputError(f"{raw.name} is empty")

    def read(self, size: int, /) -> bytes:
        """Some of the text, about `size` bytes; none at the end.

        Raises
        ------
        Undecodable
            If what comes next is not in the encoding. UTF-8 is not looked at.
        InputError
            If the file cannot be read, breaks off, or is damaged.
        """
        return self._reader.read(size)


def _require_text(raw: RawInput) -> None:
    kind = other_kind(raw.head)
    if kind:
        hint = ", or name its encoding (--encoding utf-16)" if "UTF-16" in kind else ""
        raise InputError(f"{raw.name} {kind}{hint}")
    if b"\0" in raw.head[:SNIFFED]:
        raise InputError(f"{raw.name} {BINARY}")


def _reader(stream: Readable, encoding: str) -> Readable:
    return stream if encoding == "utf-8" else _Recoded(stream, encoding)


class _Recoded:
    """Text of another encoding, as UTF-8."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._single = encoding.startswith(_SINGLE_BYTES)
        self._broken = False
        self._ended = False

    def read(self, size: int, /) -> bytes:
        if self._broken:
            raise Undecodable
        while not self._ended:
            data = self._stream.read(size)
            self._ended = not data
            if self._single and data.isascii():
                return data
            try:
                text = self._decoder.decode(data, self._ended)
            except UnicodeDecodeError as error:
                # What came before the fault is handed on first, so that lines are counted right.
                self._broken = True
                text = bytes(error.object[: error.start]).decode(self._encoding, "ignore")
            try:
                recoded = text.encode()
            except UnicodeEncodeError as error:  # surrogates are no characters
                self._broken = True
                recoded = text[: error.start].encode()
            if recoded:
                return recoded
            if self._broken:
                raise Undecodable
        return b""
