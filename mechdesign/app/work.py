"""Long work in a process of its own, so that it can be cancelled at any moment.

The process gets its table through a pipe and sends lines of progress and one answer back; nothing
goes through a file. A search inside of compiled code cannot be interrupted from Python, a process
can be ended.

The life of a `Work`: it starts the process (`_run`) and a thread that reads the pipe (`_read`).
Messages are `_Progress`, again and again, and last one `_Answer` or `_Refusal`. The end of the
process closes the pipe, which ends the thread, and with it `running`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.core.errors import MechdesignError

Answer = TypeVar("Answer")
Task = Callable[[MemoryTable, Choice, Callable[[str], None]], Answer]
"""Takes the table, the choice, and what reports a line of progress."""

SECONDS_TO_END = 5.0
"""How long an ended process is waited for."""


@dataclass(frozen=True)
class _Progress:
    """A line on what the task does now."""

    text: str


@dataclass(frozen=True)
class _Answer:
    """What the task returned."""

    value: Any


@dataclass(frozen=True)
class _Refusal:
    """Why there is no answer, in a sentence for the page."""

    text: str


class Work(Generic[Answer]):
    """A task that runs: `text` is its progress; once `running` is False, either `answer` or
    `refusal` is there, or neither if it was cancelled.
    """

    def __init__(
        self, title: str, task: Task[Answer], table: MemoryTable, choice: Choice
    ) -> None:
        self.title = title
        self.text = "Starting"
        self.done: list[str] = []
        self._started = time.monotonic()
        self.answer: Answer | None = None
        self.refusal = ""
        self.cancelled = False
        # Not forked: the server has threads, and locks that one of them holds would stay locked.
        context = get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_run, args=(task, table, choice, sender), daemon=True
        )
        self._process.start()
        # The end of the process closes the pipe only if nobody else holds its other side.
        sender.close()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def seconds(self) -> int:
        """How long it has been running."""
        return int(time.monotonic() - self._started)

    @property
    def running(self) -> bool:
        """Whether the answer is still to come."""
        return self._reader.is_alive()

    def cancel(self) -> None:
        """End the process, wherever it is."""
        self.cancelled = True
        self._process.terminate()
        self._reader.join(SECONDS_TO_END)
        if self._process.is_alive():
            self._process.kill()

    def wait(self, seconds: float) -> None:
        """Wait for the end."""
        self._reader.join(seconds)

    def _take(self, text: str) -> None:
        """Take a line of progress; what was done before is done."""
        # A search reports its costs again and again, and each line takes the place of the last one.
        if self.text[:1].isupper() and text[:1].isupper():
            self.done.append(self.text)
        self.text = text

    def _read(self) -> None:
        """What the thread does: take messages until the other side of the pipe is closed."""
        try:
            while True:
                message = self._receiver.recv()
                match message:
                    case _Progress(text):
                        self._take(text)
                    case _Answer(value):
                        self.answer = value
                    case _Refusal(text):
                        self.refusal = text
        except (EOFError, OSError):
            # The process has ended, by itself or because it was cancelled.
            pass
        self._process.join(SECONDS_TO_END)
        self._receiver.close()
        # A process that the system killed says nothing.
        if self.answer is None and not self.refusal and not self.cancelled:
            self.refusal = (
                "The search ended without an answer; the memory may have been short. Release fewer "
                "columns, or use bins."
            )


def _run(task: Task[Any], table: MemoryTable, choice: Choice, sender: Any) -> None:
    """What the process does. All its output is what it sends: lines of progress, then one answer or
    refusal.
    """
    # Ctrl-C reaches the whole group; the server ends this process itself, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        answer: Any = _Answer(
            task(table, choice, lambda text: sender.send(_Progress(text)))
        )
    except MechdesignError as error:
        answer = _Refusal(str(error))
    except MemoryError:
        answer = _Refusal("Out of memory: release fewer columns, or use bins.")
    except Exception as error:
        # Its message may quote a cell, so that the place alone is told.
        (*_, last) = traceback.extract_tb(error.__traceback__)
        place = f"{os.path.basename(last.filename)}, line {last.lineno}"
        answer = _Refusal(
            f"Internal error ({type(error).__name__} in {place}). Please report it."
        )
    sender.send(answer)
    sender.close()
