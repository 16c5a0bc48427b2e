"""Cells and lines of CSV text as they are written: quotes where needed, encoding, compression.

`CellWriter` gives a cell quotes where it would be read as something else without them: if it holds
the delimiter, a quote or a line break. Quotes within are doubled:

    5" pipe, new        becomes        "5"" pipe, new"

`TextStream` is the base of the two sinks of CSV text: `csv_sinks.CsvSink`, which copies the kept
cells of a CSV, and `text_sink.TextSink`, which makes the cells of a Parquet file. They compose
lines in UTF-8. The stream recodes, compresses and writes these, so nothing else knows of encodings
and compression.
"""

from __future__ import annotations

import codecs
import re
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Self

import numpy as np

from mechdesign.core.errors import FileError
from mechdesign.core.wording import quoted
from mechdesign.formats.compression import Compression, LeftOpen, compressed, write_all
from mechdesign.formats.text_options import TextOptions


class CellWriter:
    """Writes cells, with quotes where they need them.

    Parameters
    ----------
    name : str
        The file, for messages.
    encoding : str
        In which a cell must be possible to write.
    alone : bool
        Whether the file has one column. An empty cell then needs quotes, because a blank line is
        read as no record.

    Attributes
    ----------
    special : str
        A pattern of the characters that need quotes, for pyarrow and Python.
    """

    def __init__(
        self, name: str, options: TextOptions, encoding: str, *, alone: bool
    ) -> None:
        self.name = name
        self._quote = options.quote
        self._encoding = encoding
        # Hexadecimal escapes mean the same to pyarrow and to Python.
        characters = options.delimiter + (options.quote or "")
        escapes = "".join(f"\\x{ord(character):02x}" for character in characters)
        self.special = f"[{escapes}\\r\\n]"
        if alone:
            self.special += "|^$"

    def cell(self, text: str, what: str) -> str:
        """The text as it is written; `what` names it in messages."""
        try:
            text.encode(self._encoding)
        except UnicodeEncodeError:
            raise FileError(
                self.name,
                f"{self.name}: {what} {quoted(text)} cannot be written in {self._encoding}, "
                "the encoding of the file; save the file as UTF-8",
            ) from None
        if not re.search(self.special, text):
            return text
        if self._quote is None:
            raise FileError(
                self.name,
                f"{self.name}: {what} {quoted(text)} cannot be written without quotes; read the "
                "file with quotes, or with another delimiter",
            )
        return self._quote + text.replace(self._quote, self._quote * 2) + self._quote


class TextStream(AbstractContextManager["TextStream"]):
    """Text written to a target in an encoding, perhaps compressed; the base of the CSV sinks.

    A subclass calls `_open` when it knows that it can write, and `_put` for the header and every
    batch of lines.

    A context manager that closes the text. After an exception nothing more reaches the target,
    not even the end of the compressed data: who reads the target must not take it for whole.
    """

    def __init__(self, name: str, options: TextOptions, encoding: str) -> None:
        self.records = 0
        self._name = name
        self._delimiter = options.delimiter
        self._encoding = encoding
        self._encoder = codecs.getincrementalencoder(encoding)()

    def _open(
        self, target: BinaryIO, compression: Compression | None, mark: bytes = b""
    ) -> None:
        """Begin the text with a byte-order mark."""
        self._plain = LeftOpen(target)
        self._target = compressed(self._plain, compression)
        write_all(self._target, mark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self._plain.abandoned = True
        self.close()

    def write_packed(self, part: Any) -> None:
        """Write a batch of one column of lines, as `CsvBatch.packed` returns them."""
        # An arrow array has all texts one after another in a buffer, which is written as it is.
        lines = part.column(0)
        _, offsets, text = lines.buffers()
        bounds = np.frombuffer(offsets, np.int32)
        first = bounds[lines.offset]
        end = bounds[lines.offset + len(lines)]
        self._put(memoryview(text)[first:end])
        self.records += len(lines)

    def close(self) -> None:
        """End the text; the target stays open."""
        self._target.close()

    def _put(self, data: Any) -> None:
        """Write UTF-8 text in the encoding of the file."""
        if self._encoding != "utf-8":
            data = self._recoded(data)
        write_all(self._target, data)

    def _recoded(self, data: Any) -> bytes:
        """UTF-8 text in the encoding of the file.

        Kept cells were read in this encoding; a written cell can have a character that it lacks.
        """
        try:
            return self._encoder.encode(bytes(data).decode())
        except UnicodeEncodeError:
            raise FileError(
                self._name,
                f"{self._name}: a cell cannot be written in {self._encoding}; write it as UTF-8",
            ) from None
