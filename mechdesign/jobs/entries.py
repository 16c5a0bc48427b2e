"""What the ledger holds of one release, as JSON.

An `Entry` has one `Drawn` for each channel of the release: how the channel was used (`Use`), and
which draw it was. A job enters it as `FINISHING` when the data are on disk, and once more as `DONE`
when all files have their names. So `FINISHING` in a ledger at rest is a run that was killed in
between. In part, an entry with one channel is::

    {"target": "/data/out.csv", "state": "done", "records": 1000, "identity": [],
     "output": "9f86..", "unordered": "3b1c..",
     "drawn": [{"use": {"channel": "52ab..", "columns": ["job"], "form": "label"},
                "job": "rows 5f0c..", "draw": 0}]}
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AliasChoices, Field

from mechdesign.core.documents import Digest, Record

FINISHING = "finishing"
"""The state of a release whose data are on disk, while its files are getting their names."""

DONE = "done"
"""The state of a release that is complete."""

ROW = "row"
"""The form of a use of a channel of rows."""

Settings: TypeAlias = dict[str, Any]
"""Plain JSON values: whatever decides, beside data, channels and draws, which bytes are written."""

Natural = Annotated[int, Field(ge=0)]


class Use(Record):
    """How a run uses a channel, given by its digest.

    `columns` are the useful columns in the table, `form` is what is released of them, and the rest
    are options: what becomes of unknown symbols, of empty cells (`missing`) and of changed symbols.
    `draws` is how records are drawn: each by itself, or with fixed counts.
    """

    channel: Digest
    columns: tuple[str, ...]
    form: str
    unknown: str = "refuse"
    # Ledgers of earlier versions call it "null".
    missing: Annotated[str, Field(validation_alias=AliasChoices("missing", "null"))] = (
        "refuse"
    )
    normalise: str = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()
    changed: str = "refuse"
    draws: str = "independent"


class Drawn(Record):
    """The draw of a channel: one job is one key, draw 0 its own and others derived from it."""

    use: Use
    job: str
    draw: Natural
    channel_file: str | None = None


class Entry(Record):
    """One release.

    `file`, `ordered` and `unordered` are hashes of the data set under the key of the ledger: of its
    bytes and how they are read, of its records in order, and of its records in any order. `joint`
    is the budget that all draws of these records have together, where the user asked for a further
    one. `people` is the number of people whose records these are, where they are drawn together.
    Times are UTC, in ISO format.
    """

    id: str
    target: str
    source: str | None = None
    state: Literal["finishing", "done"]
    started: str
    finished: str | None = None
    output: Digest | None
    records: Natural
    people: Natural | None = None
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
        """What it drew through a channel, given by its digest; at most once (`check_uses`)."""
        for drawn in self.drawn:
            if drawn.use.channel == channel:
                return drawn
        return None

    @property
    def data_name(self) -> str | None:
        """A short name of the data set, which is the same for the same records."""
        if not self.unordered:
            return None
        return sha256(self.unordered.encode()).hexdigest()[:8]

    def same_release(self, other: Entry) -> bool:
        """Whether both write the same bytes."""
        # The input, the random numbers, and whatever else decides which bytes are written. Neither
        # place nor time nor version does, and the caller has asked for the releases to one place.
        return (
            self.file == other.file
            and self._draws() == other._draws()
            and self.settings == other.settings
        )

    def _draws(self) -> list[tuple[Use, str, int]]:
        """The draws without the files of their channels, which may have moved."""
        return [(drawn.use, drawn.job, drawn.draw) for drawn in self.drawn]
