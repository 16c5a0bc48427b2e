"""A progress bar on standard error for work in steps, after two seconds, when a person is watching."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from mechdesign.cli.progress import PATIENCE


class Bar:
    """``with Bar("comparing") as bar:`` and ``bar(done, total)`` after each step."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bar: Any = None
        self._task: Any = None
        self._since = 0.0

    def __enter__(self) -> Bar:
        self._since = time.monotonic()
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps are finished."""
        if self._bar is None and sys.stderr.isatty() and time.monotonic() - self._since >= PATIENCE:
            self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._text)
        self._bar.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
