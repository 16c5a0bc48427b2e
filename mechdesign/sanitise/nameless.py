"""Temporary files without a name: nothing of them is left, whatever ends the program."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
        descriptor, name = tempfile.mkstemp(prefix=".mechdesign-", suffix=".part", dir=folder)
        self._descriptor = descriptor
        self._name: str | None = name
        self.path = Path(name)
        if DESCRIPTORS.is_dir():
            os.unlink(name)
            self._name = None
            self.path = DESCRIPTORS / str(descriptor)

    def close(self) -> None:
        """Give the space back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._name is not None:
            Path(self._name).unlink(missing_ok=True)
            self._name = None
