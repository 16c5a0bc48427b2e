"""Processes that share the work of a command, and die with it.

`with pool(4, prepare) as executor` gives an executor whose four processes have all been started.
Three things make them die with the command: Ctrl-C ends each worker at once (`_begin`), an error
terminates those that are still busy (`_terminate_children`), and the thread of a broken pool prints
nothing of its own (`_undisturbed`). Ctrl-C is blocked while they start (`_start`), because a worker
that is interrupted during its imports prints a traceback.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, InvalidStateError
from contextlib import ExitStack, contextmanager


@contextmanager
def pool(processes: int, prepare: Callable[[], object]) -> Generator[Executor | None]:
    """An executor of so many processes, in each of which `prepare` is called.

    For one process it is None: the work is done in this one.
    """
    if processes == 1:
        yield None
        return
    # Not at the top: work in one process needs neither.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, for a fork of a process with threads can hang.
    with (
        _undisturbed(),
        ProcessPoolExecutor(
            processes,
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(prepare,),
        ) as executor,
        ExitStack() as failed,
    ):
        _start(executor, processes)
        # After an error the work of the processes is in vain, but leaving the executor would wait
        # for it.
        failed.callback(_terminate_children)
        yield executor
        # No error: the callback is dropped.
        failed.pop_all()


def _terminate_children() -> None:
    """Terminate all processes that this one has started."""
    # Loaded by then: see `pool`.
    import multiprocessing

    for worker in multiprocessing.active_children():
        worker.terminate()


def _start(executor: Executor, processes: int) -> None:
    """Start the workers with Ctrl-C blocked until `_begin`: it would print their tracebacks."""
    # Windows has no such mask.
    if not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # An executor starts a process when it gets work, and each inherits the blocked signal.
        for _ in range(processes):
            executor.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(prepare: Callable[[], object]) -> None:
    """Prepare a worker: Ctrl-C ends it, instead of ending one search with its best channel."""
    prepare()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _undisturbed() -> Generator[None]:
    """Print no traceback of the pool's own thread.

    A future that is cancelled while its pool breaks ends that thread with an InvalidStateError.
    """
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, InvalidStateError):
            before(arguments)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
