"""The input of a job: its hash, and the certainty that what was read is what was hashed."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from mechdesign.core.errors import InputError
from mechdesign.core.files import NamelessFile, PathLike, reason
from mechdesign.core.progress import Progress

STANDARD = "-"
"""Names standard input among the inputs, and standard output among the outputs."""

BLOCK = 1 << 20
"""Bytes hashed or copied at a time."""


class GuardedInput:
    """An input that can be read by path as often as is needed; use it in a ``with`` block.

    What cannot be read twice (standard input, a pipe) is copied to a nameless temporary file first.
    """

    def __init__(
        self, path: PathLike, *, spool: Path | None = None, progress: Progress | None = None
    ) -> None:
        standard = os.fspath(path) == STANDARD
        self.name = "standard input" if standard else os.fspath(path)
        self.path = Path(path)
        self._copy: NamelessFile | None = None
        self._stamp: tuple[int, ...] | None = None
        if standard and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError("standard input is closed; open it, or name a file to read")
        try:
            if standard:
                self._spool(sys.stdin.buffer, spool)
                return
            # A pipe blocks until somebody writes to it, as it does for every program.
            with open(path, "rb", buffering=0) as stream:
                status = os.fstat(stream.fileno())
                if not stat.S_ISREG(status.st_mode):
                    self._spool(stream, spool)
                    return
                self.size = status.st_size
                self.sha256 = _hashed(stream, status.st_size, progress)
            self._stamp = _stamp(status)
        except FileNotFoundError:
            raise InputError(f"{self.name}: there is no such file") from None
        except IsADirectoryError:
            raise InputError(f"{self.name} is a folder, not a file") from None
        except OSError as error:
            raise InputError(f"{self.name} cannot be read: {reason(error)}") from None
        self.check()

    def _spool(self, stream: BinaryIO, folder: Path | None) -> None:
        where = str(folder or "the folder of temporary files")
        digest = hashlib.sha256()
        size = 0
        try:
            self._copy = NamelessFile(folder)
            sink = open(self._copy.path, "wb", buffering=0)  # noqa: SIM115 (its errors are not those of the input)
        except OSError as error:
            self.close()
            raise InputError(f"{self.name} cannot be copied to {where}: {reason(error)}") from None
        try:
            with sink:
                while block := stream.read(BLOCK):
                    digest.update(block)
                    size += len(block)
                    _write(sink, block, f"{self.name} cannot be copied to {where}")
        except BaseException:
            self.close()
            raise
        self.path = self._copy.path
        self.size = size
        self.sha256 = digest.hexdigest()

    def check(self) -> None:
        """See whether the input is still the one that was hashed; to be called when all of it has been read."""
        if self._stamp is None:
            return
        try:
            now = _stamp(os.stat(self.path))
        except OSError:
            now = None
        if now != self._stamp:
            raise InputError(
                f"{self.name} changed while it was read, and nothing was written; start again when it is complete"
            )

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> GuardedInput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        # A row that breaks off, say, because the file was not complete yet.
        if isinstance(error, InputError) and str(error).startswith(self.name):
            self.check()


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file does, short of reading it. The time of reading it is no part of that."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _hashed(stream: io.FileIO, size: int, progress: Progress | None) -> str:
    digest = hashlib.sha256()
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    done = 0
    while count := stream.readinto(buffer):
        digest.update(view[:count])
        done += count
        if progress is not None:
            progress(done, size)
        if done > size:  # somebody appends to it, perhaps for ever; `check` will say so
            break
    return digest.hexdigest()


def _write(sink: BinaryIO, block: bytes, failed: str) -> None:
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[sink.write(rest) :]
    except OSError as error:
        raise InputError(f"{failed}: {reason(error)}") from None
