"""Being asked to stop: leave in good order, and not between two renames that belong together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ASKED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a program to stop; SIGKILL does not ask."""

FATAL = 128
"""What shells add to the number of the signal that ended a program."""


class Stopped(BaseException):
    """A signal asked the program to stop, and all that was unfinished has been cleared away.

    No `Exception`, so that no handler of errors takes it for one.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}; nothing was written")
        self.exit_code = FATAL + signum


class _Stop:
    """The handler inside `stoppable`."""

    def __call__(self, signum: int, frame: FrameType | None) -> None:
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
def uninterrupted() -> Generator[None]:
    """Put signals off until the end of a short section.

    Within `stoppable` a signal that came meanwhile is dropped: the section was the last one, and the work is done.
    Elsewhere the handler of the caller has it then.
    """
    late: list[tuple[int, FrameType | None]] = []

    def note(signum: int, frame: FrameType | None) -> None:
        late.append((signum, frame))

    with _handlers(note) as before:
        yield
    for signum, frame in late:
        handler = before[signum]
        if isinstance(handler, _Stop):
            continue
        if callable(handler):
            handler(signum, frame)
        elif handler == signal.SIG_DFL:
            signal.raise_signal(signum)


@contextmanager
def _handlers(handler: Any) -> Generator[dict[int, Any]]:
    """Install a handler for every signal that is not ignored; gives those that were there."""
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
