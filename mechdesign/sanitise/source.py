"""The input of a job: its hash, and the certainty that what was read is what was hashed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, reason
from mechdesign.core.progress import Progress
from mechdesign.formats.inputs import BLOCK, OpenedFile


class GuardedInput:
    """An input that can be read by path as often as is needed; use it in a ``with`` block.

    What cannot be read twice (standard input, a pipe) is copied first, to the folder `spool`.
    """

    def __init__(
        self, path: PathLike, *, spool: Path | None = None, progress: Progress | None = None
    ) -> None:
        self._file = OpenedFile(path, folder=spool)
        self.name, self.path = self._file.name, self._file.path
        try:
            status = os.fstat(self._file.stream.fileno())
            self.size = status.st_size
            self.sha256 = self._hashed(progress)
            self._stamp = _stamp(status)
            self.check()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise InputError(f"{self.name} cannot be read: {reason(error)}") from None
            raise

    def _hashed(self, progress: Progress | None) -> str:
        digest = hashlib.sha256()
        done = 0
        while block := self._file.stream.read(BLOCK):
            digest.update(block)
            done += len(block)
            if progress is not None:
                progress(done, self.size)
            if done > self.size:  # somebody appends to it, perhaps for ever; `check` will say so
                break
        return digest.hexdigest()

    def check(self) -> None:
        """See whether the input is still the one that was hashed; to be called when all of it has been read."""
        try:
            now = _stamp(os.stat(self.path))
        except OSError:
            now = None
        if now != self._stamp:
            raise InputError(
                f"{self.name} changed while it was read, and nothing was written; start again when it is complete"
            )

    def close(self) -> None:
        """Close it, and remove the copy, if there is one."""
        self._file.close()

    def __enter__(self) -> GuardedInput:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            # A row that breaks off, say, because the file was not complete yet.
            if isinstance(error, InputError) and str(error).startswith(self.name):
                self.check()
        finally:
            self.close()


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file does, short of reading it. The time of reading it is no part of that."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
