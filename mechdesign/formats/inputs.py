"""The bytes of an input, whatever holds it: a path, a URL, a pipe, standard input or a file object.

Three classes build on one another:

- `OpenedFile` makes every input readable by path, as often as needed. A regular file is opened
  where it is. What can be read only once, or has no path, is copied into a nameless file first.
  It notes device, inode, size and times of the file, and `check` compares them with those at the
  end of a pass: a table that another program still writes is no table yet. Within `inputs_held`
  they are those of the first pass, so that a change between two passes is noticed, too.
- `GuardedInput` also hashes it, and none of its passes may see another state than the hash did.
- `RawInput` recognises a data file by its first bytes, whatever its name: ``50 41 52 31`` (PAR1)
  is Parquet; ``1f 8b`` is gzip, whose content must be text; anything else is text or refused later.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
)
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from mechdesign.core.errors import FileChanged, FileError
from mechdesign.core.files import (
    DESCRIPTORS,
    PARQUET_SUFFIXES,
    STANDARD,
    NamelessFile,
    PathLike,
    is_url,
    local,
    on_failure,
    read_errors,
    reason,
    text_of,
)
from mechdesign.core.progress import Progress
from mechdesign.formats.compression import (
    EMPTY_ZIP,
    ZIP,
    Compression,
    Decompressed,
    Unzipped,
    write_all,
)
from mechdesign.formats.urls import BLOCK, Remote

PARQUET_MAGIC = b"PAR1"
"""First and last bytes of a Parquet file."""

_STATISTICS = (
    (b"$FL2", "SPSS"),
    (b"$FL3", "SPSS"),
    (b"<stata_dta>", "Stata"),
    (
        b"\0" * 12
        + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00\x09\xc7\x31\x8c",
        "SAS",
    ),
    (b"HEADER RECORD*******LIB", "SAS transport"),
)
"""First bytes of files of statistics, and the program that writes them."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes 2 to 4 of a zstd frame without data. Parallel compressors begin with one."""

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\f\r"))
"""Bytes that text does not have."""

SNIFFED = 4096
"""Bytes at the beginning of a file that decide its format."""


class Cursor(io.RawIOBase):
    """Reads a file from its beginning, at a position of its own.

    Several cursors may read the same file object.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self.position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """Bytes of the file."""
        with read_errors(self._name):
            return self._stream.seek(0, os.SEEK_END)

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes from the position of this cursor."""
        with read_errors(self._name):
            self._stream.seek(self.position)
            data = self._stream.read(size)
        self.position += len(data)
        return data


Readable: TypeAlias = Cursor | Decompressed | Unzipped
"""The bytes of a file, piece by piece."""


class _Held:
    """What the passes of one command have in common.

    Attributes
    ----------
    resources : ExitStack
        Closes the copies.
    copies : dict
        The paths of copies of standard input and of pipes.
    states : dict
        By absolute path the state in which each file was opened first.
    """

    def __init__(self, resources: ExitStack) -> None:
        self.resources = resources
        self.copies: dict[object, Path] = {}
        self.states: dict[str, tuple[int, ...]] = {}


_held: _Held | None = None


@contextmanager
def inputs_held() -> Iterator[None]:
    """Within this block, every pass over an input sees the same content, or is refused.

    A command opens its table several times: for its header, for the people in it, and to count.
    Standard input and pipes can be opened again after they were read. A file that was changed since
    it was opened first raises FileChanged.
    """
    global _held
    before = _held
    with ExitStack() as resources:
        _held = _Held(resources)
        try:
            yield
        finally:
            _held = before


def forget_state(path: PathLike) -> None:
    """Accept new content of a file, or of a folder, that this command itself has written."""
    if _held is None:
        return
    written = Path(os.path.abspath(path))
    _held.states.pop(os.fspath(written), None)
    # A folder of many files is written file by file: only the folder itself has others in it.
    if not written.is_dir():
        return
    for place in [*_held.states]:
        if Path(place).is_relative_to(written):
            del _held.states[place]


def _pipe_at(path: PathLike) -> object:
    """What tells standard input, pipes and devices apart; None for files and folders.

    They are not opened for this: a pipe waits until another program writes to it.
    """
    if path == STANDARD:
        return STANDARD
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return None
    return (status.st_dev, status.st_ino)


class OpenedFile:
    """An open file that can be read by its `path` as often as needed.

    Standard input (called ``-``) and pipes can be read only once, and URLs have no path. They are
    copied first, into a nameless file in `folder`, or within `inputs_held` into one that stays.
    """

    def __init__(
        self, path: PathLike, name: str | None = None, folder: Path | None = None
    ) -> None:
        path = local(text_of(path))
        standard = path == STANDARD
        self.name = name or ("standard input" if standard else os.fspath(path))
        self.path = Path(path)
        # A program without a console has no standard input.
        if standard and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise FileError(
                self.name, f"{self.name} is closed; open it, or name a file to read"
            )
        with read_errors(self.name), ExitStack() as resources:
            # Elsewhere a copy lasts as long as this object.
            held = _held or _Held(resources)
            pipe = None if is_url(path) else _pipe_at(path)
            if is_url(path):
                self.path = self._copied(Remote(path).blocks(), folder, resources)
            elif pipe in held.copies:
                self.path = held.copies[pipe]
            elif pipe is not None:
                source = resources.enter_context(_open_pipe(path))
                blocks = iter(partial(_next_block, source, self.name), b"")
                self.path = self._copied(blocks, folder, held.resources)
                held.copies[pipe] = self.path
            self.stream: BinaryIO = resources.enter_context(
                open(self.path, "rb", buffering=0)
            )
            # The state of the open file. `check` looks at the path: a file that was put in its
            # place counts as well.
            self._stamp = _stamp(os.fstat(self.stream.fileno()))
            # A nameless file is reached by its number, which another one may have later.
            if self.path.parent != DESCRIPTORS:
                place = os.path.abspath(self.path)
                first = held.states.setdefault(place, self._stamp)
                if first != self._stamp:
                    raise self._changed()
            self.close: Callable[[], None] = resources.pop_all().close

    def _copied(
        self, blocks: Iterator[bytes], folder: Path | None, resources: ExitStack
    ) -> Path:
        """The path of a nameless file with this content, which `resources` closes."""
        try:
            copy = resources.enter_context(closing(NamelessFile(folder)))
            with open(copy.path, "wb", buffering=0) as sink:
                for block in blocks:
                    write_all(sink, block)
        except OSError as error:
            place = folder or "the folder of temporary files"
            raise FileError(
                self.name, f"{self.name} cannot be copied to {place}: {reason(error)}"
            ) from None
        return copy.path

    def check(self) -> None:
        """Refuse the input if it is not in the state in which it was opened.

        Call this after reading all of it.
        """
        if not self._is_unchanged():
            raise self._changed()

    def _changed(self) -> FileChanged:
        """The error about a file that another program writes."""
        return FileChanged(
            self.name,
            f"{self.name} changed while it was read, and nothing was written; start again "
            "when it is complete",
        )

    def _is_unchanged(self) -> bool:
        """Whether the path leads to the file that was opened, in the same state."""
        try:
            return _stamp(os.stat(self.path)) == self._stamp
        except OSError:
            # It was removed, or its folder was.
            return False


def _open_pipe(path: PathLike) -> AbstractContextManager[BinaryIO]:
    """A pipe to read from; standard input is not closed afterwards."""
    if path == STANDARD:
        return nullcontext(sys.stdin.buffer)
    # This waits until another program writes to it, as it does everywhere.
    return open(path, "rb", buffering=0)


def _next_block(source: BinaryIO, name: str) -> bytes:
    """The next block of a pipe; none at its end."""
    # Errors of reading are told apart from those of writing the copy.
    with read_errors(name):
        return source.read(BLOCK)


class GuardedInput(OpenedFile, AbstractContextManager["GuardedInput"]):
    """An input that is hashed, and that must not change within its ``with`` block.

    Attributes
    ----------
    size : int
        Bytes of the file.
    sha256 : str
        The hash of its content, in hexadecimal digits.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        spool: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(path, folder=spool)
        with on_failure(self.close), read_errors(self.name):
            self.size = os.fstat(self.stream.fileno()).st_size
            self.sha256 = self._hashed(progress)
            # A change while the file was hashed counts, too.
            self.check()

    def _hashed(self, progress: Progress | None) -> str:
        """The SHA-256 of the content."""
        digest = hashlib.sha256()
        done = 0
        while block := self.stream.read(BLOCK):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done, self.size)
            # Another program may append to the file for ever. `check` refuses it by its size.
            if done > self.size:
                break
        return digest.hexdigest()

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        try:
            # A faulty row may be due to a file that was not complete yet. The better message
            # then is that the file changed.
            if isinstance(error, FileError) and error.file == self.name:
                self.check()
        finally:
            self.close()


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """Facts of a file that change together with its content.

    The time of the last access does not count.
    """
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


class RawInput:
    """A data file, by path or as a binary file object that can seek.

    Attributes
    ----------
    name : str
        The name of the file in messages.
    path : str or None
        Its path, None for a file object.
    size : int
        Its bytes, compressed as they are.
    compression : 'gzip', 'zstd' or None
        Its compression.
    is_zip : bool
        Whether it is the only file in a zip archive.
    head : bytes
        The beginning of its uncompressed content.
    statistics : str or None
        The program whose table it is: SPSS, Stata or SAS.
    is_parquet : bool
        Whether it is a Parquet file; otherwise it is read as text.
    """

    def __init__(self, source: PathLike | BinaryIO, name: str | None) -> None:
        self.path: str | None = None
        self._opened: OpenedFile | None = None
        if isinstance(source, (str, os.PathLike)):
            self._opened = OpenedFile(source, name)
            self.name = self._opened.name
            self.path = os.fspath(self._opened.path)
            self.stream: BinaryIO = self._opened.stream
        else:
            self.name = name or _name_of(source)
            self.stream = source
        with on_failure(self.close):
            self._recognise()

    def _recognise(self) -> None:
        """Set the size and the attributes that the first bytes decide."""
        with read_errors(self.name):
            self.size = self.stream.seek(0, os.SEEK_END)
        if not self.size:
            raise FileError(self.name, f"{self.name} is empty")
        head = Cursor(self.stream, self.name).read(SNIFFED)
        self.compression: Compression | None = compression_of(head)
        self.is_zip = head.startswith((ZIP, EMPTY_ZIP))
        if self.compression or self.is_zip:
            _, content = self.from_start()
            head = content.read(SNIFFED)
            if not head:
                raise FileError(self.name, f"{self.name} is empty")
            if _is_parquet(head):
                raise FileError(
                    self.name,
                    f"{self.name} is a compressed Parquet file; unpack it first",
                )
        self.head = head
        self.statistics = _statistics_of(head)
        self.is_parquet = _is_parquet(head)
        if not self.is_parquet and Path(self.name).suffix.lower() in PARQUET_SUFFIXES:
            raise FileError(
                self.name, f"{self.name} is not a Parquet file, though its name says so"
            )

    def from_start(self) -> tuple[Cursor, Readable]:
        """A cursor at the beginning of the file, and the uncompressed content read through it."""
        cursor = Cursor(self.stream, self.name)
        if self.is_zip:
            return cursor, Unzipped(cursor, self.name)
        if self.compression is None:
            return cursor, cursor
        return cursor, Decompressed(cursor, self.compression, self.name)

    def check(self) -> None:
        """Refuse a file that changed since it was opened here; call this after reading all of it.

        Raises
        ------
        FileChanged
            If its content may be another one.
        """
        if self._opened is not None:
            self._opened.check()

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._opened is not None:
            self._opened.close()


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


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are lines of text, in whatever encoding with ASCII."""
    return b"\n" in head and not any(code in head for code in _CONTROLS)


def _is_parquet(head: bytes) -> bool:
    """Whether a file is Parquet, by its first bytes; PAR1 may be a name in the header of a CSV."""
    return head.startswith(PARQUET_MAGIC) and not looks_like_text(head)


def _statistics_of(head: bytes) -> str | None:
    """The program that writes such files of statistics, None for any other file."""
    for magic, kind in _STATISTICS:
        if head.startswith(magic):
            return kind
    # Old files of Stata: their version, the byte order (1 or 2), and a 1.
    if len(head) > 3 and 105 <= head[0] <= 115 and head[1] in (1, 2) and head[2] == 1:
        return "Stata"
    return None


def _name_of(stream: BinaryIO) -> str:
    """The name of a file object in messages."""
    try:
        return str(stream.name)
    except AttributeError:
        # A buffer in memory has no name.
        return "the input"
