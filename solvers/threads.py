"""One thread of linear algebra for a search.

BLAS starts a thread for every processor, and lets them wait for each other in a loop. The matrices
of searches are small: such threads gain little time, and the waiting counts as processor time, of
which limits are made. On two busy processors the design for frequencies of 15 symbols took 2.3
seconds of it with two threads, and 0.5 with one (docs/reference/performance.md).
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any


@contextmanager
def one_thread(*, for_scipy: bool = False) -> Generator[None]:
    """Let the linear algebra inside run on one thread; as a decorator, too.

    Parameters
    ----------
    for_scipy : bool
        Whether `scipy.linalg` is used inside. It has a library of its own, which must be there
        before it can be limited, and takes long to load.
    """
    if for_scipy:
        import_module("scipy.linalg")
    with _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries(has_scipy: bool) -> Any:
    """The libraries that are loaded; they are looked for again when SciPy's has been added."""
    # It has no complete types.
    threadpools: Any = import_module("threadpoolctl")
    return threadpools.ThreadpoolController()
