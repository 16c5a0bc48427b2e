"""What a ledger holds of a release."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from mechdesign.core.documents import Digest, Record

FINISHING, DONE = "finishing", "done"

Settings: TypeAlias = dict[str, Any]
"""Plain JSON values: whatever decides, beside data, channels and draws, which bytes are written."""

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
