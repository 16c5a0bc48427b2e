"""Temporary files without a name: nothing of them is left, whatever ends the program."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

MODE = 0o600

DESCRIPTORS = Path("/proc/self/fd")
"""Where Linux lets open files be opened once more, by path and from their beginning."""


class NamelessFile:
    """A file that only this process can reach, to be written and read through `path` by anything that takes paths.

    Where the system knows no such paths (not Linux) the file has a name that nobody guesses, is for its owner only,
    and is removed by `close`; a killed program leaves it behind.

    Parameters
    ----------
    folder : path, optional
        On whose disk it lies; default that of temporary files.

    Raises
    ------
    OSError
        If nothing can be written there.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._name: str | None = None
        self._descriptor = -1
        if sys.platform == "linux" and DESCRIPTORS.is_dir():
            # Not every file system makes files without names; then a killed program may leave an empty one.
            with suppress(OSError):
                self._descriptor = os.open(folder or tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR, MODE)
            if self._descriptor < 0:
                self._descriptor, name = _named(folder)
                os.unlink(name)
            self.path = DESCRIPTORS / str(self._descriptor)
        else:
            self._descriptor, self._name = _named(folder)
            self.path = Path(self._name)

    def close(self) -> None:
        """Give the space back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._name is not None:
            Path(self._name).unlink(missing_ok=True)
            self._name = None


def _named(folder: Path | None) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=".mechdesign-", suffix=".part", dir=folder)
