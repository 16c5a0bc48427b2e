"""The table of the page, read once and kept in memory, and the processes that work on it.

A file of the command line (`read_path`) and an upload end in `read_content`:

1. `open_source` reads CSV, packed or alone in a zip archive, Parquet, and files of SPSS, Stata and
   SAS; others get its sentence. Cells of a CSV stay as they are written: a code 01234 keeps its
   zero.
2. A CSV is read as its first bytes advise (`likely_text`): "job;age" is read with semicolons.
   `reading` says so in words. Lines above the header are passed over where none of them has two
   cells (`_text_of`).
3. `_check` refuses a table without records, with one column, or with unclear names.

The bytes are never written under a name, so nothing is left when the page ends.

*Work.* What takes long is done in a process of its own, so that it can be cancelled at any moment.
The process gets its table through a pipe and sends lines of progress and one answer back; nothing
goes through a file. A search inside of compiled code cannot be interrupted from Python, a process
can be ended.

The life of a `Work`: it starts the process (`_run`) and a thread that reads the pipe (`_read`).
Messages are `_Progress`, again and again, and last one `_Answer` or `_Refusal`. The end of the
process closes the pipe, which ends the thread, and with it `running`.
"""

from __future__ import annotations

import hashlib
import io
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

from mechdesign.app.choice import Choice
from mechdesign.core.errors import FileError, InputError, MechdesignError, errors_naming
from mechdesign.core.wording import quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source, open_source
from mechdesign.leaks.doctor import likely_text

MOST_COLUMNS = 1_000
"""Columns of a table that the page shows; more take a browser minutes."""

LONGEST_CELL = 10_000
"""Characters of a cell that can be a category."""

ENDINGS = (
    ".csv",
    ".tsv",
    ".txt",
    ".gz",
    ".zst",
    ".zip",
    ".parquet",
    ".sav",
    ".zsav",
    ".dta",
    ".sas7bdat",
    ".xpt",
)
"""Names of files that the page offers to open; the content decides."""


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """A table in memory.

    Attributes
    ----------
    path : str
        Where the file is; of an upload its name alone, because browsers tell no more.
    frame : pyarrow.Table
        The cells; those of a CSV are text, and empty ones are null.
    text : TextOptions or None
        How a CSV was read; None for other formats.
    sha256 : str
        The hash of the bytes of the file.
    """

    path: str
    frame: Any
    text: TextOptions | None
    sha256: str

    @property
    def name(self) -> str:
        """The file without its folder."""
        return os.path.basename(self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the order of the file."""
        return tuple(self.frame.column_names)

    @property
    def records(self) -> int:
        """The number of rows."""
        return self.frame.num_rows

    @property
    def reading(self) -> str:
        """How the text was read, where that was not the usual way; or nothing."""
        usual = TextOptions()
        text = self.text or usual
        parts: list[str] = []
        if text.encoding != usual.encoding:
            parts.append(f"in the encoding {text.encoding}")
        if text.delimiter != usual.delimiter:
            parts.append(f"with {quoted(text.delimiter)} between the cells")
        if text.skip_lines:
            noun = "line" if text.skip_lines == 1 else "lines"
            parts.append(f"below {text.skip_lines} {noun} above the header")
        return " and ".join(parts)

    def with_columns(self, names: tuple[str, ...]) -> MemoryTable:
        """The same table with these columns alone."""
        frame = self.frame.select(list(names))
        return MemoryTable(self.path, frame, self.text, self.sha256)


def read_path(path: str) -> MemoryTable:
    """Read the file that the command line names."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return read_content(path, content)


def read_content(path: str, content: bytes | bytearray) -> MemoryTable:
    """Read the bytes of a data file.

    Raises
    ------
    InputError
        If it cannot be read, a name is missing or appears twice, or there are no records.
    """
    name = os.path.basename(path)
    # Messages begin with the name once, whoever raises them.
    with errors_naming(name):
        text = _text_of(name, content)
        with open_source(io.BytesIO(content), text, name=name) as source:
            _check_width(source.header)
            frame = _frame(source)
            table = MemoryTable(
                path=path,
                frame=frame,
                text=text if source.kind == "CSV" else None,
                sha256=hashlib.sha256(content).hexdigest(),
            )
        _check(table)
    return table


def _text_of(name: str, content: bytes | bytearray) -> TextOptions:
    """How a CSV is read."""
    text = likely_text(io.BytesIO(content), name=name)
    if not text.skip_lines:
        return text
    # A header that is narrower than its rows is a mistake, and no title: whoever took the first row
    # for the header would show the cells of a person as names of columns.
    with open_source(
        io.BytesIO(content), replace(text, skip_lines=0), name=name, repeated_names=True
    ) as source:
        # Spreadsheets write a first line that names the delimiter, which divides it, too: sep=;
        names_delimiter = source.header[0].casefold() == "sep="
        if len(source.header) > 1 and not names_delimiter:
            return replace(text, skip_lines=0)
    return text


def _frame(source: Source) -> Any:
    """The records of a file as a pyarrow table."""
    import pyarrow

    header = list(source.header)
    if not all(header):
        raise FileError(
            source.name,
            f"{source.name}: a column has no name: write one into the header",
        )
    # Codes while it is read: most columns repeat few texts.
    coded = header if source.kind == "CSV" else []
    stored = [] if source.kind == "CSV" else header
    chunks: dict[str, list[Any]] = {name: [] for name in header}
    for batch in source.batches(encode=coded, read=stored):
        for name in header:
            chunks[name].append(batch.column(name))
    columns: dict[str, Any] = {}
    for name in header:
        # Emptied on the way, so that no two forms of the whole table are in memory at once.
        parts = chunks.pop(name)
        columns[name] = _column(parts, is_text=source.kind == "CSV")
    return pyarrow.table(columns)


def _column(parts: list[Any], *, is_text: bool) -> Any:
    """A column from those of the batches; empty cells of a CSV are null."""
    import pyarrow
    import pyarrow.compute

    if not is_text:
        return pyarrow.chunked_array(parts) if parts else pyarrow.array([])
    compute: Any = pyarrow.compute
    texts: list[Any] = []
    for part in parts:
        cells = part.cast(pyarrow.string())
        is_empty = compute.equal(cells, "")
        texts.append(compute.if_else(is_empty, pyarrow.scalar(None), cells))
    return pyarrow.chunked_array(texts, pyarrow.string())


def _check_width(header: Sequence[str]) -> None:
    """Refuse too few columns, and too many: before they are read, which takes a while."""
    if len(header) < 2:
        raise InputError(
            "there is a single column; one to protect and one to release are needed"
        )
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"there are {len(header):,} columns, and the page shows {MOST_COLUMNS:,} at most: "
            "leave out those that are neither protected nor released, or use the command line"
        )


def _check(table: MemoryTable) -> None:
    """Refuse a table from which nothing can be released."""
    if table.records == 0:
        raise InputError("there are no records below the header")
    for name in table.columns:
        if _longest(table.frame.column(name)) > LONGEST_CELL:
            raise InputError(
                f"the column {quoted(name)} has a cell of more than {LONGEST_CELL:,} characters, "
                "which is no category: leave the column out, or use the command line"
            )


def _longest(column: Any) -> int:
    """The characters of the longest text of a column; 0 where it holds no texts."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_string(column.type):
        return 0
    compute: Any = pyarrow.compute
    return compute.max(compute.utf8_length(column)).as_py() or 0


# --------------------------------------------------------------------------------- work

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
