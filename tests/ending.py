"""Whether a search ends by itself: a bound on hanging, and the processor time of a piece of work.

No test compares wall-clock times, because a busy machine makes any of them late. A test of a time
limit shows one of two things. Where the work without its limit takes seconds, both are measured in
the same run and their ratio is compared (`processor_seconds`). Where it would take minutes or more,
`ends_by_itself` allows far more processor time than the limit and far less than the whole work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HANGING = 60.0
"""Seconds of processor time; every limit in the tests is at most two seconds."""


@contextmanager
def ends_by_itself() -> Iterator[None]:
    """Fail if the block used as much processor time as only a search without limit would."""
    started = time.process_time()
    yield
    used = time.process_time() - started
    assert used < HANGING, f"the limit was not kept: {used:.0f} s of processor time"


def processor_seconds(work: Callable[[], object]) -> float:
    """The processor time of this process that the work takes."""
    started = time.process_time()
    work()
    return time.process_time() - started
