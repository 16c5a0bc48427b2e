"""Temporary files that nothing remains of, however the program ends.

Records that are not released yet may wait in such files, so they must not survive a killed program.
A file lives as long as it has a name or an open descriptor. On Linux a `NamelessFile` has no name:
it is opened with O_TMPFILE, or created and unlinked at once where the file system has no O_TMPFILE.
Its `path` is then ``/proc/self/fd/7``, say, through which this process can open it again and again.
The system frees its space when the descriptor is closed, also by a kill.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

MODE = 0o600
"""Permissions of private files: their owner alone may read and write them."""

DESCRIPTORS = Path("/proc/self/fd")
"""Where Linux lets a process open its open files again, by path and from their beginning."""


class NamelessFile:
    """A temporary file that only this process can reach, through `path`.

    The path works with everything that takes paths. Systems other than Linux have no such paths:
    there the file has an unpredictable name, only its owner may open it, and `close` removes it,
    but a killed program leaves it behind.

    Without a `folder` the file is in the system's folder of temporary files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._name: Path | None = None
        self._descriptor = -1
        # Some containers do not mount /proc.
        if sys.platform == "linux" and DESCRIPTORS.is_dir():
            self._descriptor = _open_without_name(folder)
            self.path = DESCRIPTORS / str(self._descriptor)
        else:
            self._descriptor, self._name = _open_with_name(folder)
            self.path = self._name

    def close(self) -> None:
        """Free the disk space; a second call does nothing."""
        # Before the name: Windows removes no open file.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._name is not None:
            self._name.unlink(missing_ok=True)
            self._name = None


def _open_with_name(folder: Path | None) -> tuple[int, Path]:
    # `mkstemp` chooses a name that cannot be guessed, and gives the file the same `MODE`.
    descriptor, name = tempfile.mkstemp(".part", ".mechdesign-", folder)
    return descriptor, Path(name)


if sys.platform == "linux":

    def _open_without_name(folder: Path | None) -> int:
        with suppress(OSError):
            flags = os.O_TMPFILE | os.O_RDWR
            return os.open(folder or tempfile.gettempdir(), flags, MODE)
        # The file system makes no files without names. A program that is killed between these
        # two calls leaves an empty file.
        descriptor, path = _open_with_name(folder)
        path.unlink()
        return descriptor
