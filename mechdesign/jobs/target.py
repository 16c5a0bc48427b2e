"""An output file with the files that belong to it: all of them complete, or none under its final name.

The temporary file ``.NAME.part`` is both the place to write to and the lock of the target, so that two jobs never
write one output, and a job that was killed leaves nothing that the next one would not take over.

Being asked to stop: leave in good order, and not between two renames that belong together.
"""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from mechdesign.core.errors import InputError, MechdesignError
from mechdesign.core.file_locks import open_locked
from mechdesign.core.files import (
    PathLike,
    check_target,
    keep_mode,
    part_of,
    real_path,
    reason,
    sync_folder,
)
from mechdesign.core.nameless_file import MODE, NamelessFile
from mechdesign.core.undoing import on_failure
from mechdesign.formats.urls import BLOCK, STANDARD, Remote, is_url

ASKED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
)
"""Signals that ask a program to stop; SIGKILL does not ask."""

FATAL = 128
"""What shells add to the number of the signal that ended a program."""


class Stopped(BaseException):
    """A signal asked the program to stop, and all that was unfinished has been cleared away.

    No `Exception`, so that no handler of errors takes it for one.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(f"{_what(signum)}; nothing was written")
        self.signum = signum
        self.exit_code = FATAL + signum


class CutOff(MechdesignError):
    """A signal asked the program to stop when a part of its output had gone already.

    `exit_code` is that of the signal.
    """

    def __init__(self, stop: Stopped | KeyboardInterrupt, what: str) -> None:
        signum = stop.signum if isinstance(stop, Stopped) else signal.SIGINT
        super().__init__(f"{_what(signum)}; {what}")
        self.exit_code = FATAL + signum


def _what(signum: int) -> str:
    return (
        "interrupted"
        if signum == signal.SIGINT
        else f"stopped by {signal.Signals(signum).name}"
    )


class _Stop:
    done = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        if self.done:
            return
        raise KeyboardInterrupt if signum == signal.SIGINT else Stopped(signum)


@contextmanager
def stoppable() -> Generator[None]:
    """Turn the signals that ask to stop into `Stopped`, so that everything open is cleared away.

    (Ctrl-C stays a `KeyboardInterrupt`, of which every program knows what to say.)

    For programs: libraries leave the signals of their host alone. Signals that the caller ignores (``nohup``)
    stay ignored. Does nothing outside of the main thread, where Python runs no handlers.
    """
    with _handlers(_Stop()):
        yield


@contextmanager
def uninterrupted(*, last: bool = True) -> Generator[None]:
    """Put signals off until the end of a short section.

    Elsewhere the handler of the caller has them then. Within `stoppable`, if the section is the `last` one of the
    work, they are dropped, and so are all that come after it: there is nothing left to stop.
    """
    late: list[tuple[int, FrameType | None]] = []

    def note(signum: int, frame: FrameType | None) -> None:
        late.append((signum, frame))

    with _handlers(note) as before:
        yield
        for handler in before.values():
            if isinstance(handler, _Stop):
                handler.done = last
    for signum, frame in late:
        handler = before[signum]
        if callable(handler):
            handler(signum, frame)
        elif handler == signal.SIG_DFL:
            signal.raise_signal(signum)


def keep_stoppable() -> None:
    """Let signals stop the work of `stoppable` again, of which a part is done."""
    for handler in map(signal.getsignal, ASKED):
        if isinstance(handler, _Stop):
            handler.done = False


@contextmanager
def _handlers(handler: Any) -> Generator[dict[int, Any]]:
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for signum in ASKED:
            # None: a handler that was not installed from Python cannot be put back.
            if signal.getsignal(signum) not in (signal.SIG_IGN, None):
                before[signum] = signal.signal(signum, handler)
    try:
        yield before
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""What only writing can run into: no room, a quota, a limit on sizes, a file system that is read-only."""


class Target:
    """``with Target(path) as target:`` write to `target.part`, then call `target.commit`.

    Leaving the block in any other way removes the temporary files and leaves what was there before. ``-`` is standard
    output: what is written reaches it in one go, only when all is well and complete. So it does a URL, before the
    sides have their names; `again` says that the same bytes are there. Of the sides some may be `private`: for the
    owner.
    """

    _file: NamelessFile | None = None

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
    ) -> None:
        self._standard = os.fspath(path) == STANDARD
        self._remote = Remote(path) if is_url(path) else None
        for side in filter(is_url, sides):
            raise InputError(
                f"{side}: only data are written to a URL; name a local file"
            )
        self._again = again
        self.name = "standard output" if self._standard else os.fspath(path)
        self._given = Path(path)
        self._path = real_path(path)
        self.part = part_of(self._path)
        self._force = force
        self._replace_sides = force or leftover
        self._sources = tuple(sources)
        self._named = [Path(side) for side in sides]
        self._sides = {side: part_of(real_path(side)) for side in self._named}
        self._secret = {part_of(real_path(side)) for side in private}
        self._locks: dict[Path, int] = {}
        self._ours: list[Path] = []

    def __enter__(self) -> Target:
        if self._standard and sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError(
                "standard output is closed; open it, or name a file to write to"
            )
        if self._standard or self._remote:
            with self._refusals():
                self._file = NamelessFile()
            self.part = self._file.path
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

    def seal(self) -> str:
        """SHA-256 of what has been written, which is on disk when this returns; write no more after it."""
        with self._refusals(), open(self.part, "rb+", buffering=0) as stream:
            os.fsync(stream.fileno())
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def commit(
        self,
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Give all files their final names, the output last."""
        with self._refusals():
            written = {
                side: part for side, part in self._sides.items() if part.stat().st_size
            }
            for part in (self.part, *written.values()):
                with open(part, "rb+") as stream:
                    os.fsync(stream.fileno())
        # This takes milliseconds; a signal in the middle would leave work for the next run to mend.
        if self._remote:  # this takes its time
            self._check_free()
            before()
            try:
                self._remote.publish(self.part, force=self._force or self._again)
            except (KeyboardInterrupt, Stopped) as stop:
                raise CutOff(
                    stop, f"{self.name} is there whole or not at all: start again"
                ) from None
        with uninterrupted(last=not self._standard):
            if not self._remote:
                before()
                with self._refusals():
                    self._check_free()
            with self._refusals():
                for side, part in written.items():
                    self._rename(part, real_path(side))
                    # The output must not reach the disk before what belongs to it.
                    sync_folder(real_path(side).parent)
                if self._file is None:
                    self._rename(self.part, self._path)
                    sync_folder(self._path.parent)
            if not self._standard:
                try:
                    after()
                except InputError as error:
                    raise InputError(
                        f"{self.name} is complete, but then: {error}"
                    ) from None
        if self._standard:
            self._deliver()
            after()

    def _deliver(self) -> None:
        """A reader may take its time, so this can be interrupted."""
        sys.stdout.flush()
        sink = sys.stdout.fileno()
        try:
            with self._refusals(), open(self.part, "rb", buffering=0) as stream:
                while block := stream.read(BLOCK):
                    rest = memoryview(block)
                    while rest:
                        rest = rest[os.write(sink, rest) :]
        except (KeyboardInterrupt, Stopped) as stop:
            raise CutOff(
                stop, f"the reader of {self.name} has got only a part of the release"
            ) from None

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        self._discard()
        ours = isinstance(error, OSError) and error.filename in map(
            os.fspath, self._parts()
        )
        if isinstance(error, OSError) and (ours or error.errno in REFUSALS):
            raise InputError(self._refused(error)) from error

    def _parts(self) -> tuple[Path, ...]:
        return (*([self.part] if self._file is None else []), *self._sides.values())

    def _check_free(self) -> None:
        if self._remote:
            self._remote.check_free(force=self._force or self._again)
        elif not self._standard:
            check_target(self._given, force=self._force, sources=self._sources)

    def _check_names(self) -> None:
        self._check_free()
        taken = {self._path}
        for side in self._named:
            check_target(side, force=self._replace_sides, sources=self._sources)
            if real_path(side) in taken:
                raise InputError(
                    f"{side} would be written twice; choose another name for one of the two"
                )
            taken.add(real_path(side))

    def _take(self, part: Path) -> None:
        descriptor = open_locked(
            part, busy=f"another job is writing {self.name}; wait until it has finished"
        )
        self._locks[part] = descriptor
        self._ours.append(part)
        # What a killed job wrote is worth nothing: the same job writes the same bytes again.
        os.ftruncate(descriptor, 0)
        if sys.platform != "win32":  # which keeps permissions in access lists
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            # Who cannot read the input is not let read what comes of it.
            for status in map(os.stat, self._sources):
                if (
                    status.st_nlink
                ):  # a copy of a pipe has no name, and tells nothing of permissions
                    mode &= status.st_mode | 0o700
            os.fchmod(descriptor, mode & MODE if part in self._secret else mode)

    def _rename(self, part: Path, path: Path) -> None:
        if part not in self._secret:
            keep_mode(part, path)
        if sys.platform == "win32":  # which renames no open file
            os.close(self._locks.pop(part))
        os.replace(part, path)
        self._ours.remove(part)

    def _discard(self) -> None:
        descriptors, self._locks = [*self._locks.values()], {}
        if sys.platform == "win32":  # which removes no open file
            while descriptors:
                os.close(descriptors.pop())
        for part in self._ours:
            part.unlink(missing_ok=True)
        self._ours.clear()
        for descriptor in descriptors:
            os.close(descriptor)
        if self._file is not None:
            self._file.close()

    @contextmanager
    def _refusals(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(self._refused(error)) from error

    def _refused(self, error: OSError) -> str:
        if isinstance(error, BrokenPipeError):
            return "standard output was closed by its reader, who has not got all of the release"
        what = (
            reason(error) if error.errno is not None else " ".join(str(error).split())
        )
        return f"{self.name} cannot be written: {what}"
