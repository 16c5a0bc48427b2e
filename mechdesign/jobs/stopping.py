"""Being asked to stop: a program leaves in good order, and not between two renames that belong
together.

A signal raises an exception where the program is, and all that is open clears itself away on the
way out. Two blocks decide when it may. ::

    with stoppable():               a signal raises `Stopped` (Ctrl-C: KeyboardInterrupt) ...
        write the output
        with uninterrupted():       ... but in here it waits for the end of the block
            rename all files
        report                      nothing is left to stop: signals are dropped

So a release that is stopped before the renames leaves nothing, and one that is stopped among them
is complete. A program that goes on to another release calls `keep_stoppable` first, and one of
several parts is in the block `stoppable_parts`. Output that was sent in part cannot be cleared
away: that ends in `CutOff`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from mechdesign.core.errors import MechdesignError, notes_of

# Windows has no SIGHUP.
ASKED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
)
"""Signals that ask a program to stop; SIGKILL does not ask."""

FATAL = 128
"""What shells add to the number of the signal that ended a program."""


NOTHING = "nothing was written"
"""What an end without any output says."""


class Stopped(BaseException):
    """A signal asked the program to stop, and all that was unfinished has been cleared away.

    No `Exception`, so that no handler of errors takes it for one.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(_cause(signum))
        self.signum = signum
        self.exit_code = FATAL + signum

    def __str__(self) -> str:
        # Notes say what had been written before.
        return "; ".join([super().__str__(), *(notes_of(self) or [NOTHING])])


class CutOff(MechdesignError):
    """A signal asked the program to stop when a part of its output had gone already.

    `exit_code` is that of the signal.
    """

    def __init__(self, stop: Stopped | KeyboardInterrupt, consequence: str) -> None:
        signum = int(signal.SIGINT)
        if isinstance(stop, Stopped):
            signum = stop.signum
        super().__init__(f"{_cause(signum)}; {consequence}")
        self.exit_code = FATAL + signum


def _cause(signum: int) -> str:
    """How a message names the signal that ended the program."""
    if signum == signal.SIGINT:
        return "interrupted"
    return f"stopped by {signal.Signals(signum).name}"


class _StopHandler:
    """Raises an exception at every signal until the work is done.

    `stoppable` installs it. `uninterrupted` recognises it by its type among the handlers that were
    there before, and sets `done`.
    """

    def __init__(self, *, goes_on: bool = False) -> None:
        self.done = False
        self.goes_on = goes_on
        self.dropped: list[int] = []
        """Signals that came when there was nothing left to stop."""

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        if self.done:
            self.dropped.append(signum)
            return
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        raise Stopped(signum)


@contextmanager
def stoppable() -> Generator[None]:
    """Turn the signals that ask to stop into `Stopped`, so that everything open is cleared away.

    Ctrl-C stays a `KeyboardInterrupt`, which every program handles already. For programs: libraries
    leave the signals of their host alone. Signals that the caller ignores (``nohup``) stay ignored.
    Does nothing outside of the main thread, where Python runs no handlers.
    """
    handler = _StopHandler()
    with _handled_by(handler) as before:
        yield
        # A work of several parts has to end after this one, though the part itself is complete.
        for outer in before.values():
            if isinstance(outer, _StopHandler) and outer.goes_on:
                outer.dropped += handler.dropped
                handler.dropped = []


@contextmanager
def stoppable_parts() -> Generator[Callable[[], None]]:
    """As `stoppable`, for a work of several parts, some of which are `stoppable` themselves.

    Gives a function to call after each part. It raises `Stopped`, or KeyboardInterrupt, if a signal
    came when that part had nothing left to stop.
    """
    handler = _StopHandler(goes_on=True)

    def stop_if_asked() -> None:
        if handler.dropped:
            handler(handler.dropped.pop(), None)

    with _handled_by(handler):
        yield stop_if_asked


@contextmanager
def uninterrupted(*, last: bool = True) -> Generator[None]:
    """Put signals off until the end of a short section.

    The caller's handlers get them then. Within `stoppable`, if the section is the `last` one of the
    work, they are dropped, and so are all that come after it: there is nothing left to stop.
    """
    late: list[tuple[int, FrameType | None]] = []

    def put_off(signum: int, frame: FrameType | None) -> None:
        late.append((signum, frame))

    with _handled_by(put_off) as before:
        yield
        # Before the old handlers are back: a signal that comes right then must find `done` set.
        for handler in before.values():
            if isinstance(handler, _StopHandler):
                handler.done = last
    # A handler that may raise comes last, when everything is as it was.
    for signum, frame in late:
        handler = before[signum]
        if callable(handler):
            handler(signum, frame)
        elif handler == signal.SIG_DFL:
            signal.raise_signal(signum)


def keep_stoppable() -> None:
    """Let signals stop the work of `stoppable` again, after the last section of a part of it."""
    for signum in ASKED:
        handler = signal.getsignal(signum)
        if isinstance(handler, _StopHandler):
            handler.done = False


@contextmanager
def _handled_by(handler: Any) -> Generator[dict[int, Any]]:
    """Handle the signals that ask to stop; gives the handlers that were there before, and puts
    them back.
    """
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
