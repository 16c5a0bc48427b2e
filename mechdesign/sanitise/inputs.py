"""The bytes of a data file: opened, looked at, and read from the beginning as often as needed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import BinaryIO

from mechdesign.errors import InputError
from mechdesign.files import PARQUET_MAGIC, PARQUET_SUFFIXES, SNIFFED, PathLike, opened, reason
from mechdesign.sanitise.compression import Compression, Decompressed, Readable, compression_of


class Cursor(io.RawIOBase):
    """Reads a file from its beginning, at a place of its own: several may read the same file object."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self.position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes from where this cursor is."""
        try:
            self._stream.seek(self.position)
            data = self._stream.read(size)
        except OSError as error:
            raise InputError(f"{self._name} cannot be read: {reason(error)}") from None
        self.position += len(data)
        return data


class RawInput:
    """A file, by path or as a binary file object that can seek; told by its content.

    Attributes
    ----------
    name : str
    path : str or None
        None for a file object.
    size : int
        In bytes, as it is on disk.
    compression : 'gzip', 'zstd' or None
    is_parquet : bool
    head : bytes
        Its first bytes, uncompressed.

    Raises
    ------
    InputError
        If it cannot be read or is empty, or a compressed file breaks off or holds Parquet.
    """

    def __init__(self, source: PathLike | BinaryIO, name: str | None) -> None:
        if isinstance(source, (str, os.PathLike)):
            self.name = name or os.fspath(source)
            self.path: str | None = os.fspath(source)
            self.stream: BinaryIO = opened(source, self.name)
            self._opened = True
        else:
            self.name = name or str(getattr(source, "name", "the input"))
            self.path = None
            self.stream = source
            self._opened = False
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    def _look(self) -> None:
        try:
            self.size = self.stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {reason(error)}") from None
        if not self.size:
            raise InputError(f"{self.name} is empty")
        head = Cursor(self.stream, self.name).read(SNIFFED)
        self.compression: Compression | None = compression_of(head)
        if self.compression:
            head = self.from_start()[1].read(SNIFFED)
            if not head:
                raise InputError(f"{self.name} is empty")
            if head.startswith(PARQUET_MAGIC):
                raise InputError(f"{self.name} is a compressed Parquet file; unpack it first")
        self.head = head
        self.is_parquet = head.startswith(PARQUET_MAGIC)
        if not self.is_parquet and Path(self.name).suffix.lower() in PARQUET_SUFFIXES:
            raise InputError(f"{self.name} is not a Parquet file, though its name says so")

    def from_start(self) -> tuple[Cursor, Readable]:
        """A cursor at the beginning of the file, and the uncompressed content read through it."""
        cursor = Cursor(self.stream, self.name)
        return cursor, Decompressed(cursor, self.compression, self.name) if self.compression else cursor

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._opened:
            self.stream.close()
