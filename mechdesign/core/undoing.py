"""Undoing work that was begun when it cannot be completed.

For example, a file is opened and then examined; if the second step fails, the file is closed::

    raw = open(path, "rb")
    with on_failure(raw.close):
        header = header_of(raw)
    return raw, header
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager


@contextmanager
def on_failure(undo: Callable[[], object]) -> Generator[None]:
    """Call `undo` if an exception ends the block, an interruption included."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        # Completed: the callback is taken off the stack and never called.
        stack.pop_all()
