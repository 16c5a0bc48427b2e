"""Gzip and zstd."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, reason

Compression: TypeAlias = Literal["gzip", "zstd"]

SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}

GZIP_LEVEL = 6
"""That of the program gzip; nine takes twice as long for some per cent."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes 2 to 4 of a zstd frame that carries no data; parallel compressors begin with one."""


def compression_of(head: bytes) -> Compression | None:
    """Which compression a file has that begins with `head`."""
    if head.startswith(_GZIP):
        return "gzip"
    skippable = head[1:4] == _ZSTD_SKIPPABLE and 0x50 <= head[0] <= 0x5F
    return "zstd" if head.startswith(_ZSTD) or skippable else None


def compression_named(path: PathLike) -> Compression | None:
    """Which compression the name of a file asks for (``.gz``, ``.zst``)."""
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
        """At most `size` bytes, none at the end."""
        import pyarrow as pa

        try:
            return self._stream.read(size)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and error.errno:
                raise InputError(
                    f"{self._name} cannot be read: {reason(error)}"
                ) from None
            if "Truncated" in str(error):
                raise InputError(
                    f"{self._name} is truncated within its {self._compression} data; it was not copied or written whole"
                ) from None
            raise InputError(
                f"{self._name}: its {self._compression} data are damaged"
            ) from None


def compressed(target: LeftOpen, compression: Compression | None) -> Any:
    """A binary stream that writes to `target`, by bytes that depend on the data alone; closing it ends the data."""
    if compression is None:
        return target
    if compression == "gzip":
        return gzip.GzipFile("", "wb", GZIP_LEVEL, cast("Any", target), mtime=0)
    import pyarrow as pa

    return pa.CompressedOutputStream(target, compression)


class LeftOpen(io.RawIOBase):
    """Passes on what is written, and does not close what it writes to."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.abandoned = False
        """Whether what is written from now on goes nowhere: writers add an end even to what has failed."""

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any, /) -> int:
        """Write all of `data`."""
        if not self.abandoned:
            write_all(self._target, data)
        return len(data)


def write_all(target: Any, data: Any) -> None:
    """Write all of `data`, even where the target takes a part only (an unbuffered file may)."""
    view = memoryview(data).cast("B")
    while len(view):
        written = target.write(view)
        if written is None:
            raise BlockingIOError(11, "the target would block")
        view = view[written:]
