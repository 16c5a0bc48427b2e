"""An output file with the files that belong to it: all of them complete, or none under its final
name.

The temporary file ``.NAME.part`` is both the place to write to and the lock of the target, so that
two jobs never write one output, and a job that was killed leaves nothing that the next one would
not take over.

This file keeps the promise that an output appears whole or not at all. The order of its steps is::

    with Target(..)     names checked, then every temporary file opened, locked and emptied
    seal                the output synced, and hashed
    commit              the sides synced;
      before()              the ledger enters the release, with the hash;
      rename                each side, then its folder synced; at last the output, then its folder;
      after()               the ledger marks the release as done
    end of the block    temporary files that are left removed, and their locks released

Contents are on disk before names, and sides before the output: after a power cut the output has all
that belongs to it, or is not there. Signals are put off from `before` to `after`. Standard output
and URLs have no name to give: the bytes are sent in the place of the last rename.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.file_locks import open_locked
from mechdesign.core.files import (
    PathLike,
    check_target,
    keep_mode,
    part_file,
    real_path,
    reason,
    sync_folder,
)
from mechdesign.core.nameless_file import MODE, NamelessFile
from mechdesign.core.undoing import on_failure
from mechdesign.formats.inputs import BLOCK
from mechdesign.formats.urls import STANDARD, Remote, is_url
from mechdesign.jobs.stopping import CutOff, Stopped, uninterrupted

REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors that only writing can cause: no room, a quota, a limit on sizes, a file system that is
read-only.
"""


class Target:
    """``with Target(path) as target:`` write to `target.part`, then call `target.commit`.

    Leaving the block in any other way removes the temporary files and leaves what was there before.
    Standard output and URLs get the bytes in one go, when all is well and complete: a URL before
    the sides have their names, since it may refuse them; standard output after, since nothing can
    be called back.

    Parameters
    ----------
    path : path
        A file, a URL, or ``-`` for standard output.
    force : bool
        Whether existing files are replaced.
    sources : sequence of paths
        The files that the output is made from: never replaced, and whoever cannot read them cannot
        read the output.
    sides : sequence of paths
        Further files to write with the output.
    private : sequence of paths
        The sides that only their owner may read.
    leftover : bool
        Whether a killed run may have left sides of this output, which may be replaced.
    again : bool
        Whether the target has these very bytes already, and may be replaced by them.
    repeatable : bool
        Whether the job gives the same bytes as often as it runs: where the output and all sides are
        there, `refuse_others` decides when they are known again.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        force: bool = False,
        sources: Sequence[PathLike] = (),
        sides: Sequence[PathLike] = (),
        private: Sequence[PathLike] = (),
        leftover: bool = False,
        again: bool = False,
        repeatable: bool = False,
    ) -> None:
        self._standard = os.fspath(path) == STANDARD
        self._remote = Remote(path) if is_url(path) else None
        for side in sides:
            if is_url(side):
                raise InputError(
                    f"{side}: only data are written to a URL; name a local file"
                )
        self.name = "standard output" if self._standard else os.fspath(path)
        self._asked_path = Path(path)
        self._path = real_path(path)
        self.part = part_file(self._path)
        self._force = force
        self._again = again
        self._replace_sides = force or leftover
        self._sources = tuple(sources)
        # With repetitions, which are refused.
        self._side_names = [Path(side) for side in sides]
        self._sides = {side: part_file(real_path(side)) for side in self._side_names}
        self._private_parts = {part_file(real_path(side)) for side in private}
        self._is_repeated = repeatable and self._are_all_there()
        # What is written for standard output or a URL, which have no temporary file of their own.
        self._spool: NamelessFile | None = None
        self._locks: dict[Path, int] = {}
        self._taken: list[Path] = []

    def __enter__(self) -> Target:
        if self._standard and sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError(
                "standard output is closed; open it, or name a file to write to"
            )
        if self._standard or self._remote:
            with self._refusals():
                self._spool = NamelessFile()
            self.part = self._spool.path
        with on_failure(self._discard):
            self._check_names()
            with self._refusals():
                for part in self._parts():
                    self._take(part)
            # The target may have come while another job had the lock.
            self._check_free()
        return self

    def part_of_side(self, side: PathLike) -> Path:
        """Where to write what will be `side`, one of `sides`."""
        return self._sides[Path(side)]

    def _are_all_there(self) -> bool:
        """Whether an earlier run may have written all of this."""
        if self._standard or self._remote is not None or self._force:
            return False
        return all(place.is_file() for place in (self._path, *self._sides))

    def refuse_others(self) -> None:
        """Refuse files that are there and that differ from what has been written now.

        To be called before anything is recorded; all is written then.
        """
        if not self._is_repeated:
            return
        parts = {self._asked_path: self.part, **self._sides}
        for place, part in parts.items():
            if not filecmp.cmp(place, part, shallow=False):
                check_target(place, force=False, sources=self._sources)

    def seal(self) -> str:
        """SHA-256 of what has been written, which is on disk when this returns; write no more
        after it.
        """
        with self._refusals(), open(self.part, "rb+", buffering=0) as stream:
            os.fsync(stream.fileno())
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def commit(
        self,
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Give all files their final names, the output last.

        `before` is called when all data are on disk, `after` when all files have their names. After
        a kill at any point the output is there with all of its sides, or it is not there.
        """
        # First on disk: a name must never survive a power cut without the data behind it.
        written = self._synced_sides()
        if self._remote is not None:
            # Publishing may take long, so it can be interrupted.
            self._publish(self._remote, before)
        # This takes milliseconds; a signal in the middle would leave work for the next run to mend.
        with uninterrupted(last=not self._standard):
            if self._remote is None:
                before()
                # `before` may wait for the ledger, and somebody may write the target meanwhile.
                with self._refusals():
                    self._check_free()
            with self._refusals():
                self._rename_all(written)
            if not self._standard:
                # The files have their names and may have been read: an error takes nothing back.
                try:
                    after()
                except InputError as error:
                    raise InputError(
                        f"{self.name} is complete, but then: {error}"
                    ) from None
        # The sides have their names before the reader gets a byte, since no byte can be taken back.
        if self._standard:
            self._deliver()
            after()

    def _synced_sides(self) -> dict[Path, Path]:
        """The sides that were written, by their names; they and the output are on disk."""
        with self._refusals():
            written: dict[Path, Path] = {}
            for side, part in self._sides.items():
                if part.stat().st_size:
                    written[side] = part
            for part in (self.part, *written.values()):
                with open(part, "rb+") as stream:
                    os.fsync(stream.fileno())
        return written

    def _publish(self, remote: Remote, before: Callable[[], None]) -> None:
        """Upload the output, entered by `before`: the far side may have it whatever fails here."""
        self._check_free()
        before()
        try:
            remote.publish(self.part, force=self._force or self._again)
        except (KeyboardInterrupt, Stopped) as stop:
            raise CutOff(
                stop, f"{self.name} is there whole or not at all: start again"
            ) from None

    def _rename_all(self, written: dict[Path, Path]) -> None:
        """Give the sides that were written their names, and the output if it is a file."""
        for side, part in written.items():
            self._rename(part, real_path(side))
            # The output must not reach the disk before what belongs to it.
            sync_folder(real_path(side).parent)
        if self._spool is None:
            self._rename(self.part, self._path)
            sync_folder(self._path.parent)

    def _deliver(self) -> None:
        """Send the output to standard output; its reader may take its time, so this can be
        interrupted.
        """
        sys.stdout.flush()
        sink = sys.stdout.fileno()
        try:
            with self._refusals(), open(self.part, "rb", buffering=0) as stream:
                while block := stream.read(BLOCK):
                    # A pipe takes as much as it has room for.
                    rest = memoryview(block)
                    while rest:
                        sent = os.write(sink, rest)
                        rest = rest[sent:]
        except (KeyboardInterrupt, Stopped) as stop:
            raise CutOff(
                stop, f"the reader of {self.name} has got only a part of the release"
            ) from None

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        self._discard()
        # An error of the operating system is about the target if it names one of its files, or if
        # only writing can cause it. Any other is about the data, and keeps its own words.
        if not isinstance(error, OSError):
            return
        ours = error.filename in [os.fspath(part) for part in self._parts()]
        if ours or error.errno in REFUSALS:
            raise InputError(self._refused(error)) from error

    def _parts(self) -> tuple[Path, ...]:
        """All temporary files that have names."""
        if self._spool is None:
            return (self.part, *self._sides.values())
        return tuple(self._sides.values())

    def _check_free(self) -> None:
        """Refuse a target that exists, unless it may be replaced."""
        if self._remote is not None:
            self._remote.check_free(force=self._force or self._again)
        elif not self._standard:
            force = self._force or self._is_repeated
            check_target(self._asked_path, force=force, sources=self._sources)

    def _check_names(self) -> None:
        """Refuse names that are taken, or that two of the files would have."""
        self._check_free()
        places = {self._path}
        for side in self._side_names:
            force = self._replace_sides or self._is_repeated
            check_target(side, force=force, sources=self._sources)
            if real_path(side) in places:
                raise InputError(
                    f"{side} would be written twice; choose another name for one of the two"
                )
            places.add(real_path(side))

    def _take(self, part: Path) -> None:
        """Open and lock a temporary file, empty and with the permissions of the final one."""
        descriptor = open_locked(
            part, busy=f"another job is writing {self.name}; wait until it has finished"
        )
        self._locks[part] = descriptor
        self._taken.append(part)
        # What a killed job wrote is worth nothing: the same job writes the same bytes again.
        os.ftruncate(descriptor, 0)
        # Windows keeps permissions in access lists.
        if sys.platform != "win32":
            os.fchmod(descriptor, self._mode_of(part, descriptor))

    def _mode_of(self, part: Path, descriptor: int) -> int:
        """The permissions of an output: whoever cannot read the input cannot read what is made
        from it.
        """
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        for source in self._sources:
            status = os.stat(source)
            # A copy of a pipe has no name, and its mode is no permission.
            if status.st_nlink:
                mode &= status.st_mode | 0o700
        if part in self._private_parts:
            mode &= MODE
        return mode

    def _rename(self, part: Path, path: Path) -> None:
        """Give one file its name; a file that is replaced passes its permissions on."""
        if part not in self._private_parts:
            keep_mode(part, path)
        # Windows renames no open file.
        if sys.platform == "win32":
            os.close(self._locks.pop(part))
        os.replace(part, path)
        self._taken.remove(part)

    def _discard(self) -> None:
        """Remove the temporary files, and let go of their locks."""
        descriptors = [*self._locks.values()]
        self._locks = {}
        # Windows removes no open file; elsewhere the locks last until the files are gone.
        if sys.platform == "win32":
            while descriptors:
                os.close(descriptors.pop())
        for part in self._taken:
            part.unlink(missing_ok=True)
        self._taken.clear()
        for descriptor in descriptors:
            os.close(descriptor)
        if self._spool is not None:
            self._spool.close()

    @contextmanager
    def _refusals(self) -> Generator[None]:
        """Turn errors of the operating system into sentences about the target."""
        try:
            yield
        except OSError as error:
            raise InputError(self._refused(error)) from error

    def _refused(self, error: OSError) -> str:
        """The sentence that the target cannot be written."""
        if isinstance(error, BrokenPipeError):
            return "standard output was closed by its reader, who has not got all of the release"
        why = " ".join(str(error).split())
        if error.errno is not None:
            why = reason(error)
        return f"{self.name} cannot be written: {why}"
