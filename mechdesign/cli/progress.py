"""A sign of life on standard error for work of more than two seconds, when a person is watching."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any

PATIENCE = 2.0
"""Seconds without a word before the sign of life appears."""


class Waiting:
    """``with Waiting("searching") as progress:`` shows a spinner after `PATIENCE` seconds on a terminal.

    Calling the object changes the text; it may be called from any thread, as often as one likes.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._status: Any = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __call__(self, text: str) -> None:
        """Show `text` from now on."""
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(text)

    def __enter__(self) -> Waiting:
        if sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._status is not None:
            self._status.stop()

    def _show(self) -> None:
        from rich.console import Console

        with self._lock:
            self._status = Console(stderr=True).status(self._text)
            self._status.start()
