"""The job file, version 1: which data a key has been used on, what was released, and what is under way."""

from __future__ import annotations

import glob
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from mechdesign.core.documents import Digest, FileDocument, Matching, Record, document_text, read_document
from mechdesign.core.errors import InputError
from mechdesign.core.files import replacing

FORMAT = "mechdesign.job"

MODE = 0o600
"""The hash of the data set would let others test a guess of it."""

RUNNING, FINISHING, DONE = "running", "finishing", "done"

Settings: TypeAlias = dict[str, Any]
"""Plain JSON values: whatever decides, beside data, channels and draws, which bytes are written."""

Check = Annotated[str, Matching("[0-9a-f]{32}", "a hash in hexadecimal digits")]
Natural = Annotated[int, Field(ge=0)]


class Use(Record):
    """How a run uses a channel."""

    channel: Digest
    columns: tuple[str, ...]
    form: str
    unknown: str = "refuse"
    null: str = "refuse"
    normalise: str = "none"


class JobRun(Record):
    """One release, finished or not.

    `state` is ``running``; ``finishing`` from the moment when all data are on disk, `output` and `records` are known,
    and files are about to get their names; ``done``. `fresh` says that the run asked for a draw of its own. Times are
    UTC, in ISO format.
    """

    id: str
    target: str
    draw: Natural
    dataset: Digest
    uses: tuple[Use, ...]
    settings: Settings = Field(default_factory=dict)
    fresh: bool = False
    versions: dict[str, str] = Field(default_factory=dict)
    state: Literal["running", "finishing", "done"] = RUNNING
    started: str
    finished: str | None = None
    output: Digest | None = None
    records: Natural | None = None

    @model_validator(mode="after")
    def _known_at_the_end(self) -> JobRun:
        if self.released and (self.output is None or self.records is None):
            raise InputError(f"output and records are missing, though the run is {self.state}")
        return self

    @property
    def released(self) -> bool:
        """Whether somebody may have seen the result."""
        return self.state != RUNNING

    def same_release(self, other: JobRun) -> bool:
        """Whether both write the same bytes."""
        return (self.dataset, self.draw, self.uses, self.settings) == (
            other.dataset,
            other.draw,
            other.uses,
            other.settings,
        )


class JobRecord(FileDocument):
    """What a job file holds."""

    FORMAT: ClassVar[str] = FORMAT
    WHAT: ClassVar[str] = "job file"

    identity: tuple[str, ...]
    key_file: str
    key_check: Check
    key_since: Natural = 0
    runs: tuple[JobRun, ...] = ()

    @field_validator("key_file")
    @classmethod
    def _in_the_same_folder(cls, name: str) -> str:
        if Path(name).name != name:
            raise InputError("must be the name of a file in the same folder")
        return name

    @property
    def draw(self) -> int:
        """The draw of the latest release; 0 before the first."""
        return max((run.draw for run in self.runs if run.released), default=0)

    def last_release(self, target: str) -> JobRun | None:
        """The latest release to `target`."""
        return next((run for run in reversed(self.runs) if run.target == target and run.released), None)

    def with_run(self, run: JobRun) -> JobRecord:
        """With `run` in the place of the run of the same id, or at the end."""
        if all(old.id != run.id for old in self.runs):
            return self.model_copy(update={"runs": (*self.runs, run)})
        return self.model_copy(update={"runs": tuple(run if old.id == run.id else old for old in self.runs)})

    def without(self, unwanted: Callable[[JobRun], bool]) -> JobRecord:
        """Without these runs."""
        return self.model_copy(update={"runs": tuple(run for run in self.runs if not unwanted(run))})


def write_job(path: Path, record: JobRecord) -> None:
    """Write the job file, whole or not at all."""
    text = document_text(record)
    # Whoever writes holds the lock of the job, so these are of processes that were killed.
    with suppress(OSError):  # what the folder refuses, the next line will say
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
            left.unlink(missing_ok=True)
    with replacing(path, force=True, mode=MODE) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_job(path: Path) -> JobRecord:
    """Read a job file."""
    return read_document(path, JobRecord)
