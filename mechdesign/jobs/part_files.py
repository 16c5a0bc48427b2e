"""The temporary files of a target: each of them locked, and renamed or removed in the end.

A `Target` makes one `PartFiles` for all of its temporary files, and for each file calls `take`
once, then perhaps `rename`; `remove_all` comes last, whatever happened in between. The lock of a
file lasts from `take` to `remove_all`, so two jobs never write one output. The lock of a process
that was killed is free: the next job takes its file over, and empties it.

Whoever cannot read the input must not read what is made from it. So a file gets the permissions
that all of its sources have, and a private one those of its owner alone.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from mechdesign.core.file_locks import open_locked
from mechdesign.core.files import PathLike, keep_mode
from mechdesign.core.nameless_file import MODE


class PartFiles:
    """Temporary files that a job holds.

    Parameters
    ----------
    name : str
        What is written, for the error that another job is writing it.
    sources : sequence of paths
        The files that it is made from.
    private : collection of Path
        The temporary files that only their owner may read.
    """

    def __init__(
        self, name: str, sources: Sequence[PathLike], private: Collection[Path]
    ) -> None:
        self._name = name
        self._sources = tuple(sources)
        self._private = frozenset(private)
        self._descriptors: dict[Path, int] = {}
        self._unnamed: list[Path] = []
        """The files that were taken and have not been renamed."""

    def take(self, part: Path) -> None:
        """Open and lock a temporary file, empty and with the permissions of the final one."""
        descriptor = open_locked(
            part,
            busy=f"another job is writing {self._name}; wait until it has finished",
        )
        self._descriptors[part] = descriptor
        self._unnamed.append(part)
        # What a killed job wrote is worth nothing: the same job writes the same bytes again.
        os.ftruncate(descriptor, 0)
        # Windows keeps permissions in access lists.
        if sys.platform != "win32":
            os.fchmod(descriptor, self._mode_of(part, descriptor))

    def _mode_of(self, part: Path, descriptor: int) -> int:
        """The permissions of the final file."""
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        for source in self._sources:
            status = os.stat(source)
            # A copy of a pipe has no name, and its mode is no permission.
            if status.st_nlink:
                mode &= status.st_mode | 0o700
        if part in self._private:
            mode &= MODE
        return mode

    def rename(self, part: Path, path: Path) -> None:
        """Give one file its name; a file that is replaced passes its permissions on."""
        if part not in self._private:
            keep_mode(part, path)
        # Windows renames no open file.
        if sys.platform == "win32":
            os.close(self._descriptors.pop(part))
        os.replace(part, path)
        self._unnamed.remove(part)

    def remove_all(self) -> None:
        """Remove the files that have not been renamed, and let go of all locks."""
        descriptors = [*self._descriptors.values()]
        self._descriptors = {}
        # Windows removes no open file; elsewhere the locks last until the files are gone.
        if sys.platform == "win32":
            while descriptors:
                os.close(descriptors.pop())
        for part in self._unnamed:
            part.unlink(missing_ok=True)
        self._unnamed.clear()
        for descriptor in descriptors:
            os.close(descriptor)
