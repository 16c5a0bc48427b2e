"""Processes that share the work of a command, and die with it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, InvalidStateError
from contextlib import ExitStack, contextmanager


@contextmanager
def pool(processes: int, prepare: Callable[[], object]) -> Generator[Executor | None]:
    """An executor of so many processes, in each of which `prepare` is called; None for one, which
    is this one.
    """
    if processes == 1:
        yield None
        return
    # A single process needs neither.
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
        # What they are at is in vain then, and leaving the executor would wait for it.
        failed.callback(
            lambda: [worker.terminate() for worker in multiprocessing.active_children()]
        )
        yield executor
        failed.pop_all()


def _start(executor: Executor, processes: int) -> None:
    """Start the workers with Ctrl-C held back until `_begin`, or they greet it with tracebacks."""
    if not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(processes):
            executor.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(prepare: Callable[[], object]) -> None:
    """What a worker does first: Ctrl-C ends it, where the solver would go on with the best channel
    so far.
    """
    prepare()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _undisturbed() -> Generator[None]:
    """A future that is cancelled while its pool breaks ends the pool's thread, which nobody wants
    to hear of.
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
