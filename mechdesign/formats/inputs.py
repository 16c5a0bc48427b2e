"""The content of a data file, whatever holds it: a path, a file object, a pipe or standard input.

What a job reads is hashed, and certain not to have changed meanwhile (`GuardedInput`). A file is recognised by its
first bytes (`RawInput`), can be read from its beginning as often as needed, and the text
of a CSV comes as UTF-8 whatever its encoding and compression (`TextInput`). `TextOptions` say how a CSV is written.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.files import (
    PARQUET_SUFFIXES,
    NamelessFile,
    PathLike,
    reading,
    reason,
    text_of,
)
from mechdesign.core.progress import Progress
from mechdesign.formats.compression import (
    Compression,
    Decompressed,
    compression_of,
    write_all,
)
from mechdesign.formats.urls import BLOCK, STANDARD, Remote, is_url, local

PARQUET_MAGIC = b"PAR1"
"""First (and last) bytes of a Parquet file."""

SNIFFED = 4096
"""Bytes looked at to tell what a file is."""

_SPREADSHEET = (
    "is a spreadsheet or an archive; export the sheet as CSV:  ssconvert FILE SHEET.csv"
)

_OTHER_KINDS = {
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8, or name its encoding (--encoding utf-16)",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8, or name its encoding (--encoding utf-16)",
    b"PK\x03\x04": _SPREADSHEET,
    b"\xd0\xcf\x11\xe0": _SPREADSHEET,
}
"""What files are that begin with these bytes and are neither plain text nor Parquet."""


@contextmanager
def on_failure(undo: Callable[[], object]) -> Generator[None]:
    """Whatever ends the block early, an interruption, too: undo what it has begun, and let that go on."""
    with ExitStack() as begun:
        begun.callback(undo)
        yield
        begun.pop_all()


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
        with reading(self._name):
            self._stream.seek(self.position)
            data = self._stream.read(size)
        self.position += len(data)
        return data


Readable: TypeAlias = "Cursor | Decompressed | _Recoded"
"""Bytes, one piece after the other."""


class OpenedFile:
    """A file that is open to be read, also by its `path`, as often as needed.

    What can be read only once (standard input, which is called ``-``, or a pipe) or is at a URL is copied first, to a
    file without a name in `folder`.
    """

    def __init__(
        self, path: PathLike, name: str | None = None, folder: Path | None = None
    ) -> None:
        path = local(text_of(path))
        standard = path == STANDARD
        self.name = name or ("standard input" if standard else os.fspath(path))
        self.path = Path(path)
        if standard and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError(f"{self.name} is closed; open it, or name a file to read")
        with reading(self.name), ExitStack() as opened:
            if is_url(path):
                self.path = self._copied(Remote(path).blocks(), folder, opened)
            # A pipe blocks until somebody writes to it, as it does for every program.
            source = (
                sys.stdin.buffer
                if standard
                else opened.enter_context(open(self.path, "rb", buffering=0))
            )
            if standard or not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                self.path = self._copied(
                    iter(partial(_read, source, self.name), b""), folder, opened
                )
                source = opened.enter_context(open(self.path, "rb", buffering=0))
            self.stream: BinaryIO = source
            self.close: Callable[[], None] = opened.pop_all().close

    def _copied(
        self, blocks: Iterator[bytes], folder: Path | None, opened: ExitStack
    ) -> Path:
        try:
            copy = opened.enter_context(closing(NamelessFile(folder)))
            with open(copy.path, "wb", buffering=0) as sink:
                for block in blocks:
                    write_all(sink, block)
        except OSError as error:
            where = folder or "the folder of temporary files"
            raise InputError(
                f"{self.name} cannot be copied to {where}: {reason(error)}"
            ) from None
        return copy.path


def _read(source: BinaryIO, name: str) -> bytes:
    with reading(name):
        return source.read(BLOCK)


class GuardedInput(OpenedFile, AbstractContextManager["GuardedInput"]):
    """An input that is hashed, and must not change before the end of its ``with`` block."""

    def __init__(
        self,
        path: PathLike,
        *,
        spool: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(path, folder=spool)
        with on_failure(self.close), reading(self.name):
            status = os.fstat(self.stream.fileno())
            self.size = status.st_size
            self.sha256 = self._hashed(progress)
            self._stamp = _stamp(status)
            self.check()

    def _hashed(self, progress: Progress | None) -> str:
        digest, done = hashlib.sha256(), 0
        while block := self.stream.read(BLOCK):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done, self.size)
            if (
                done > self.size
            ):  # somebody appends to it, perhaps for ever; `check` will say so
                break
        return digest.hexdigest()

    def check(self) -> None:
        """See whether the input is still the one that was hashed; to be called when all of it has been read."""
        now = None
        with suppress(OSError):
            now = _stamp(os.stat(self.path))
        if now != self._stamp:
            raise InputError(
                f"{self.name} changed while it was read, and nothing was written; start again when it is complete"
            )

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        try:
            # A row that breaks off, say, because the file was not complete yet.
            if isinstance(error, InputError) and str(error).startswith(self.name):
                self.check()
        finally:
            self.close()


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file does, short of reading it. The time of reading it is no part of that."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


class RawInput:
    """A file, by path or as a binary file object that can seek; recognised by its content."""

    def __init__(self, source: PathLike | BinaryIO, name: str | None) -> None:
        self.path: str | None = None
        self._opened: OpenedFile | None = None
        if isinstance(source, (str, os.PathLike)):
            self._opened = OpenedFile(source, name)
            self.name, self.path = self._opened.name, os.fspath(self._opened.path)
            self.stream: BinaryIO = self._opened.stream
        else:
            self.name = name or str(getattr(source, "name", "the input"))
            self.stream = source
        with on_failure(self.close):
            self._look()

    def _look(self) -> None:
        with reading(self.name):
            self.size = self.stream.seek(0, os.SEEK_END)
        if not self.size:
            raise InputError(f"{self.name} is empty")
        head = Cursor(self.stream, self.name).read(SNIFFED)
        self.compression: Compression | None = compression_of(head)
        if self.compression:
            head = self.from_start()[1].read(SNIFFED)
            if not head:
                raise InputError(f"{self.name} is empty")
            if head.startswith(PARQUET_MAGIC):
                raise InputError(
                    f"{self.name} is a compressed Parquet file; unpack it first"
                )
        self.head = head
        self.is_parquet = head.startswith(PARQUET_MAGIC)
        if not self.is_parquet and Path(self.name).suffix.lower() in PARQUET_SUFFIXES:
            raise InputError(
                f"{self.name} is not a Parquet file, though its name says so"
            )

    def from_start(self) -> tuple[Cursor, Readable]:
        """A cursor at the beginning of the file, and the uncompressed content read through it."""
        cursor = Cursor(self.stream, self.name)
        return cursor, Decompressed(
            cursor, self.compression, self.name
        ) if self.compression else cursor

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._opened is not None:
            self._opened.close()


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
    """Reads a file as UTF-8 text without its byte-order mark."""

    def __init__(self, raw: RawInput, encoding: str) -> None:
        name = codecs.lookup(encoding).name
        self.encoding = "utf-8" if name == "utf-8-sig" else name
        if name in ("utf-16", "utf-32"):
            orders = [f"{name}-le", f"{name}-be"]
            native = orders[sys.byteorder == "big"]
            self.encoding = next(
                (e for e in orders if raw.head.startswith(_MARKS[e])), native
            )
        mark = _MARKS.get(self.encoding, b"")
        self.mark = mark if mark and raw.head.startswith(mark) else b""
        if self.encoding == "utf-8":
            for magic, kind in _OTHER_KINDS.items():
                if raw.head.startswith(magic):
                    raise InputError(f"{raw.name} {kind}")
            if b"\0" in raw.head:
                raise InputError(
                    f"{raw.name} is neither a CSV nor a Parquet file (it has binary content)"
                )
        self.cursor, self._stream = raw.from_start()
        plain = self.encoding == "utf-8"
        self._reader: Readable = (
            self._stream if plain else _Recoded(self._stream, self.encoding)
        )
        skipped = self._stream.read(len(self.mark)) if self.mark else b""
        if len(skipped) < len(self.mark):
            raise InputError(f"{raw.name} is empty")

    def read(self, size: int, /) -> bytes:
        """Some of the text, about `size` bytes; none at the end."""
        return self._reader.read(size)


class _Recoded:
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
                text = bytes(error.object[: error.start]).decode(
                    self._encoding, "ignore"
                )
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


_NEVER = "\r\n\0"
"""What neither delimits cells nor quotes them."""

_HOST_NAMES = ("idna", "punycode")
"""Codecs of text that are made for names of computers, not for files."""

_SAMPLE = ',;"\r\nAa09\t'


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How the text of a CSV file is to be read."""

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        _require_character("delimiter", self.delimiter)
        if self.quote is not None:
            _require_character("quote", self.quote)
        if self.quote == self.delimiter:
            raise InputError(
                f"delimiter and quote ({self.quote!r}) must be different characters"
            )
        try:
            codecs.getincrementaldecoder(self.encoding)
            usable = codecs.lookup(self.encoding).name not in _HOST_NAMES
            usable = (
                usable
                and _SAMPLE.encode(self.encoding).decode(self.encoding) == _SAMPLE
            )
        except (LookupError, UnicodeError, ValueError):
            usable = False
        if not usable:
            raise InputError(
                f"encoding ({self.encoding!r}) must be a text encoding that Python knows, such as utf-8, utf-16 or "
                "cp1252"
            )


def _require_character(what: str, text: str) -> None:
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in _NEVER:
        raise InputError(
            f"{what} ({text!r}) must be one ASCII character, no letter, digit, line end or NUL"
        )
