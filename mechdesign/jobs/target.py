"""An output file with the files that belong to it: all of them complete, or none under its final
name.

The temporary file ``.NAME.part`` is both the place to write to and the lock of the target, so that
two jobs never write one output, and a job that was killed leaves nothing that the next one would
not take over (`PartFiles`).

This file keeps the promise that an output appears whole or not at all. The order of its steps is::

    with Target(..)     names checked, then every temporary file opened, locked and emptied
    seal                the output synced, and hashed
    commit              the sides synced; then, for an output that is

      a file            before()  sides renamed  output renamed  after()
      at a URL          before()  output sent    sides renamed   after()
      standard output   before()  sides renamed  output sent     after()

    end of the block    temporary files that are left removed, and their locks released

In `before` the ledger enters the release, with the hash of the output; in `after` it marks the
release as done. Contents are on disk before names, and the folder of each name is synced, too. So
after a power cut the output is there with all that belongs to it, or it is not there. Signals are
put off while names are given, but not while an output is sent, which may take long.

An output at a URL or on standard output has no temporary file of its own name: it is written to a
nameless file (`_spool`). A URL comes before the sides, since the far side may refuse it. Standard
output comes after them, since no byte of it can be called back.

*The temporary files* are each locked, and renamed or removed in the end. A `Target` makes one
`PartFiles` for all of its temporary files, and for each file calls `take` once, then perhaps
`rename`; `remove_all` comes last, whatever happened in between. The lock of a file lasts from
`take` to `remove_all`, so two jobs never write one output. The lock of a process that was killed is
free: the next job takes its file over, and empties it.

Whoever cannot read the input must not read what is made from it. So a file gets the permissions
that all of its sources have, and a private one those of its owner alone.

*Vital files* are replaced by no output, whatever the user forces: a lost key loses all draws.
`keep_apart` compares the places of the outputs with those of vital files (channel files, inputs),
through links, and refuses every file with a key. `keep_off_ledger` does so for the ledger and its
key, and for the names of the files that SQLite makes beside the ledger while it writes. Both are
asked before any output is opened. Beside the ledger ``l.db``, for example, no output can be called
``l.db``, ``l.db.key`` or ``l.db-journal``, be it through a link.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import (
    EXISTS,
    MODE,
    STANDARD,
    NamelessFile,
    PathLike,
    check_target,
    is_url,
    keep_mode,
    on_failure,
    open_locked,
    part_file,
    real_path,
    reason,
    set_mode,
    sync_folder,
)
from mechdesign.formats.inputs import BLOCK, forget_state
from mechdesign.formats.urls import Remote
from mechdesign.jobs.keys import TAG
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_file import begins
from mechdesign.jobs.stopping import CutOff, Stopped, uninterrupted

REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors that only writing can cause: no room, a quota, a limit on sizes, a file system that is
read-only.
"""


ALONE = (
    "{} exists, though {} does not: choose another name, or, where it is left of such a file, "
    "overwrite it with force (--force)"
)
"""The message about a manifest or codebook without its output."""


class Target:
    """``with Target(path) as target:`` write to `target.part`, then call `target.commit`.

    Leaving the block in any other way removes the temporary files and leaves what was there before.

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
        self._is_standard = os.fspath(path) == STANDARD
        self._remote = Remote(path) if is_url(path) else None
        for side in sides:
            if is_url(side):
                raise InputError(
                    f"{side}: only data are written to a URL; name a local file"
                )
        self.name = "standard output" if self._is_standard else os.fspath(path)
        # Errors name the path as it was given. The file behind its links is replaced, and no link.
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
        private_parts = {part_file(real_path(side)) for side in private}
        self._part_files = PartFiles(self.name, sources, private_parts)
        # What is there may be these very bytes: it is allowed until `refuse_others` compares.
        self._is_repeated = repeatable and self._are_all_there()
        # What is written for standard output or a URL, which have no temporary file of their own.
        self._spool: NamelessFile | None = None

    def __enter__(self) -> Target:
        if self._is_standard and sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError(
                "standard output is closed; open it, or name a file to write to"
            )
        if self._is_standard or self._remote is not None:
            with self._refusals():
                self._spool = NamelessFile()
            self.part = self._spool.path
        with on_failure(self._discard):
            self._check_names()
            with self._refusals():
                for part in self._parts():
                    self._part_files.take(part)
            # The target may have come while another job had the lock.
            self._check_free()
        return self

    def part_of_side(self, side: PathLike) -> Path:
        """Where to write what will be `side`, one of `sides`."""
        return self._sides[Path(side)]

    def _are_all_there(self) -> bool:
        """Whether an earlier run may have written all of this."""
        if self._is_standard or self._remote is not None or self._force:
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
        """Give all files their final names, in the order that the module's text shows.

        `before` is called when all data are on disk, `after` when all files have their names. After
        a kill at any point a file is there with all of its sides, or it is not there.
        """
        # First on disk: a name must never survive a power cut without the data behind it.
        written = self._synced_sides()
        if self._is_standard:
            self._commit_standard_output(written, before, after)
        elif self._remote is not None:
            self._commit_url(self._remote, written, before, after)
        else:
            self._commit_file(written, before, after)

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

    def _commit_file(
        self,
        written: dict[Path, Path],
        before: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        """`commit` of a file, which comes after the sides that were `written`."""
        # This takes milliseconds; a signal in the middle would leave work for the next run to mend.
        with uninterrupted():
            before()
            with self._refusals():
                # `before` may wait for the ledger, and somebody may write the target meanwhile.
                self._check_free()
                # The output must not reach the disk before what belongs to it.
                self._rename_sides(written)
                self._part_files.rename(self.part, self._path)
                sync_folder(self._path.parent)
            self._finish(after)

    def _commit_url(
        self,
        remote: Remote,
        written: dict[Path, Path],
        before: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        """`commit` of a URL: entered first, since the far side may have it whatever fails here."""
        self._check_free()
        before()
        try:
            remote.publish(self.part, force=self._force or self._again)
        except (KeyboardInterrupt, Stopped) as stop:
            raise CutOff(
                stop, f"{self.name} is there whole or not at all: start again"
            ) from None
        with uninterrupted():
            with self._refusals():
                self._rename_sides(written)
            self._finish(after)

    def _commit_standard_output(
        self,
        written: dict[Path, Path],
        before: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        """`commit` of standard output, which comes last: no byte of it can be taken back."""
        # Not the last section of the work: sending can still be stopped.
        with uninterrupted(last=False):
            before()
            with self._refusals():
                self._rename_sides(written)
        self._send()
        after()

    def _rename_sides(self, written: dict[Path, Path]) -> None:
        """Give the sides that were written their names, on disk when this returns."""
        for side, part in written.items():
            self._part_files.rename(part, real_path(side))
            sync_folder(real_path(side).parent)

    def _finish(self, after: Callable[[], None]) -> None:
        """Call `after`: the files may have been read, so an error takes nothing back."""
        try:
            after()
        except InputError as error:
            raise InputError(f"{self.name} is complete, but then: {error}") from None

    def _send(self) -> None:
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
        elif not self._is_standard:
            force = self._force or self._is_repeated
            check_target(self._asked_path, force=force, sources=self._sources)

    def _check_names(self) -> None:
        """Refuse names that are taken, or that two of the files would have."""
        self._check_free()
        places = {self._path}
        for side in self._side_names:
            force = self._replace_sides or self._is_repeated
            exists = EXISTS
            is_file = self._remote is None and not self._is_standard
            if is_file and not self._path.exists():
                # Braces in a name are no places for another one.
                name = str(self._asked_path).replace("{", "{{").replace("}", "}}")
                exists = ALONE.format("{}", name)
            check_target(side, force=force, sources=self._sources, exists=exists)
            if real_path(side) in places:
                raise InputError(
                    f"{side} would be written twice; choose another name for one of the two"
                )
            places.add(real_path(side))

    def _discard(self) -> None:
        """Remove the temporary files, and let go of their locks."""
        self._part_files.remove_all()
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
        return f"{self._place_of(error)} cannot be written: {why}"

    def _place_of(self, error: OSError) -> str:
        """What could not be written. A full disk does not say whose write it ended: then what lies
        in other folders is named, too.
        """
        for side, part in self._sides.items():
            if error.filename == os.fspath(part):
                return os.fspath(side)
        if error.filename is not None or self._is_standard:
            return self.name
        folder = self._path.parent
        elsewhere = [
            os.fspath(side) for side in self._sides if real_path(side).parent != folder
        ]
        return " or ".join([self.name, *elsewhere])


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
            # What is for its owner alone is not written where that cannot be.
            apply = os.fchmod if part in self._private else set_mode
            apply(descriptor, self._mode_of(part, descriptor))

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
        forget_state(path)
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


# -------------------------------------------------------------------------- vital files

SQLITE_FILES = ("-journal", "-wal", "-shm")
"""The endings of the files that SQLite keeps beside a database."""


def keep_apart(
    outputs: Sequence[PathLike], vital: Sequence[tuple[str, PathLike]]
) -> None:
    """Refuse outputs that would replace a file that is still needed, whatever the user forces.

    `vital` are such files, with what messages call them; any file with a key is one, too.
    """
    for output in outputs:
        if os.fspath(output) == STANDARD:
            continue
        place = real_path(output)
        # By its first bytes: a key is vital whatever it is the key of.
        if begins(place, TAG.encode()):
            raise InputError(
                f"{os.fspath(output)} holds the key of a job, which is never overwritten; name "
                "another"
            )
        for description, path in vital:
            # The temporary file of an output is emptied, so its name is taken, too.
            same = real_path(path) in (place, part_file(place))
            if not same and place.exists() and Path(path).exists():
                # Two names of one file: a hard link.
                same = place.samefile(path)
            if same:
                raise InputError(
                    f"{os.fspath(output)} would overwrite {description} {os.fspath(path)}, which "
                    "is still needed; give another name"
                )


def keep_off_ledger(outputs: Sequence[PathLike], ledger: Ledger) -> None:
    """Refuse outputs that would replace a ledger or its key, or that SQLite would take for its own
    files beside the ledger, and remove.
    """
    keep_apart(
        outputs, [("the ledger", ledger.path), ("the key file", ledger.key_path)]
    )
    ledger_name = os.fspath(ledger.path)
    own_files = [real_path(f"{ledger_name}{ending}") for ending in SQLITE_FILES]
    for output in outputs:
        if os.fspath(output) != STANDARD and real_path(output) in own_files:
            raise InputError(
                f"{os.fspath(output)} is the name of a file that SQLite keeps beside the ledger, "
                "and removes; give another name"
            )
