"""Undoing work that was begun when it cannot be completed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager


@contextmanager
def on_failure(undo: Callable[[], object]) -> Generator[None]:
    """Call `undo` if an exception ends the block, an interruption included."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        stack.pop_all()
