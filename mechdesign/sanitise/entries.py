"""What a ledger holds of a release, and the job files (version 1) of earlier versions, which had the same to say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from mechdesign.core.documents import Digest, FileDocument, Matching, Record, read_document
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, real_path

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
    changed: str = "refuse"


class Drawn(Record):
    """The draw of a channel: one job is one key, draw 0 its own and others derived from it."""

    use: Use
    job: str
    draw: Natural
    channel_file: str | None = None


class Entry(Record):
    """One release.

    `state` is ``finishing`` from the moment when all data are on disk and files are about to get their names; then
    ``done``. `file`, `ordered` and `unordered` are hashes of the data set under the key of the ledger: of its bytes
    and how they are read, of its records in order, in any order. `joint` is the budget that all draws of these records
    have together, where the user asked for a further one. Times are UTC, in ISO format.
    """

    id: str
    target: str
    source: str | None = None
    state: Literal["finishing", "done"]
    started: str
    finished: str | None = None
    output: Digest | None
    records: Natural
    identity: tuple[str, ...] = ()
    drawn: tuple[Drawn, ...]
    settings: Settings = Field(default_factory=dict)
    fresh: bool = False
    versions: dict[str, str] = Field(default_factory=dict)
    file: str | None = None
    ordered: str | None = None
    unordered: str | None = None
    joint: dict[str, Any] | None = None

    def of(self, channel: str) -> Drawn | None:
        """What it drew through a channel."""
        return next((each for each in self.drawn if each.use.channel == channel), None)

    @property
    def data_name(self) -> str | None:
        """A short name of the data set, which is the same for the same records."""
        return sha256(self.unordered.encode()).hexdigest()[:8] if self.unordered else None

    def same_release(self, other: Entry) -> bool:
        """Whether both write the same bytes."""
        mine, others = ([(d.use, d.job, d.draw) for d in entry.drawn] for entry in (self, other))
        return self.file == other.file and mine == others and self.settings == other.settings


class OldRun(Record):
    """A run of a job file."""

    id: str
    target: str
    draw: Natural
    dataset: Digest
    uses: tuple[Use, ...]
    settings: Settings = Field(default_factory=dict)
    fresh: bool = False
    versions: dict[str, str] = Field(default_factory=dict)
    state: Literal["running", "finishing", "done"] = "running"
    started: str
    finished: str | None = None
    output: Digest | None = None
    records: Natural | None = None


class OldJob(FileDocument):
    """A job file."""

    FORMAT: ClassVar[str] = "mechdesign.job"
    WHAT: ClassVar[str] = "job file"

    identity: tuple[str, ...]
    key_file: str
    key_check: Check
    key_since: Natural = 0
    runs: tuple[OldRun, ...] = ()


ELSEWHERE, FOLDER = ".elsewhere", ".jobs"
"""Endings of what earlier versions left beside a channel file: notes of jobs in other places, and the folder itself."""


def old_jobs(channel: PathLike) -> Iterator[tuple[Path, OldJob]]:
    """The job files beside a channel file and beside its copies.

    The channel's own folder holds nothing but jobs, so a file there that cannot be read is told. The other folders
    belong to copies of the channel, if they do at all, and may hold any files.
    """
    real = real_path(channel)
    beside = real.with_name(real.name + FOLDER)
    places = [beside, *real.parent.glob(f"*{FOLDER}"), *Path(channel).parent.glob(f"*{FOLDER}")]
    paths = [path for place in places for path in sorted(place.glob("*.json"))]
    paths += [Path(os.fsdecode(note.read_bytes())) for note in sorted(beside.glob(f"*{ELSEWHERE}"))]
    for path in dict.fromkeys(map(real_path, paths)):
        with suppress(*(() if path.parent == beside else (InputError,))):
            yield path, read_document(path, OldJob)
