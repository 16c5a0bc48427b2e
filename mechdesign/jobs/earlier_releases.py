"""The earlier releases of the records at hand: a second draw of them is refused, or noticed.

This keeps the half of the promise that says: no record is drawn twice by mistake. When the records
of a job are known, `find_earlier_releases` sorts all releases in the ledger by their `Relation` to
the job, compares the records of each class with those at hand (`same_records`), and decides:

- the same channel with the keys of another job, and at least half of the records (`SAME_FROM`): an
  error, unless the user asked for a fresh draw, or this job has released these very records before;
- less than half: a notice;
- the same job with another draw: the user asked for that draw then, and reads how many there are;
- other channels alone: a notice, for the promises of both do not add up to one.

For example, a table was released by row number, and now comes in another order. That is another
job, with other keys, and the share of its records in the old release is 1: an error. A tenth of its
records alone has the share 1 as well, since the share is that of the records at hand. Beside nine
times as many new records it is 0.1: a notice.

What it finds is an `EarlierReleases`. `with_joint_budget` adds what all draws tell together.
Nothing here writes to the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from sqlite3 import Connection
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats.census import Content
from mechdesign.jobs.counted_outputs import drawn_uses
from mechdesign.jobs.draw_choice import DrawChoice
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.joint_budget import joint_budget
from mechdesign.jobs.ledger_notices import (
    FIRST_DRAW,
    OTHER_CHANNELS,
    SYMBOLS_UNKNOWN,
    redraw_notice,
    second_draw_refusal,
    shared_records_notice,
)
from mechdesign.jobs.people_nights import EarlierNights
from mechdesign.jobs.same_records import SAME_FROM, is_same, releases_of


@dataclass(frozen=True)
class EarlierReleases:
    """The earlier releases of the same records.

    Attributes
    ----------
    draws : int
        The number of other draws through the channels of the job.
    runs : tuple of Entry
        Their releases.
    beside : tuple of Entry
        The releases of the same records through other channels alone.
    joint : mapping, optional
        The budget of all draws together, where a further draw was asked for.
    notices : tuple of str
        What the user should know.
    nights : EarlierNights
        The earlier releases of the people whose records these are.
    """

    draws: int = 0
    runs: tuple[Entry, ...] = ()
    beside: tuple[Entry, ...] = ()
    joint: Mapping[str, Any] | None = None
    notices: tuple[str, ...] = ()
    nights: EarlierNights = field(default_factory=EarlierNights)


def find_earlier_releases(
    db: Connection,
    entries: Sequence[Entry],
    choice: DrawChoice,
    drawn: Sequence[Drawn],
    content: Content,
) -> EarlierReleases:
    """The earlier releases of the records of a job, without their joint budget, which takes long.

    Parameters
    ----------
    db : Connection
        The ledger, for the samples of its data sets.
    entries : sequence of Entry
        All releases in the ledger, in their order.
    choice : DrawChoice
        The data set.
    drawn : sequence of Drawn
        Its draws, one for each channel.
    content : Content
        Its records.

    Raises
    ------
    InputError
        If the records would be drawn a second time, and no fresh draw was asked for.
    """
    file = choice.file
    by_channel = {mine.use.channel: mine for mine in drawn}
    related = RelatedReleases()
    for entry in entries:
        related.add(entry, by_channel)

    # Other keys for the same records are a second draw of them.
    foreign = releases_of(db, related.foreign, content, file)
    runs = [*related.redrawn]
    if foreign.share >= SAME_FROM:
        # A release that repeats this job's own draw adds none, whoever else released the records.
        if not choice.fresh_draw and not related.repeats(content, file):
            whole = [
                entry for entry in foreign.entries if is_same(entry, content, file)
            ]
            # The message names the last release of all of them, if there is one.
            last = (whole or foreign.entries)[-1]
            raise InputError(second_draw_refusal(foreign.share, last, choice.identity))
        runs += foreign.entries
    draws = count_other_draws(runs, by_channel)

    # Other channels have other random numbers, and need no other draw to tell more together.
    others = releases_of(db, related.others, content, file)
    beside: list[Entry] = []
    if others.share >= SAME_FROM:
        beside = others.entries

    notices: list[str] = []
    if draws:
        notices.append(redraw_notice(draws))
    if 0 < foreign.share < SAME_FROM:
        notices.append(shared_records_notice(foreign.share))
    if choice.fresh_draw and not draws:
        notices.append(FIRST_DRAW)
    if beside:
        notices.append(OTHER_CHANNELS)
    if choice.identity and any(_left_no_symbols(entry, file) for entry in related.own):
        notices.append(SYMBOLS_UNKNOWN)
    return EarlierReleases(draws, tuple(runs), tuple(beside), None, tuple(notices))


def _left_no_symbols(entry: Entry, file: str | None) -> bool:
    """Whether the ledger has no symbols of the records of a release, which it did not see: a
    cluster computed it, or an earlier version entered it.
    """
    return entry.unordered is None and entry.file != file


def with_joint_budget(
    earlier: EarlierReleases,
    drawn: Sequence[Drawn],
    channels: Sequence[Channel],
) -> EarlierReleases:
    """The same with the budget that all draws of the records have together, and its notice."""
    before = drawn_uses([*earlier.runs, *earlier.beside])
    total = joint_budget([*drawn, *before], channels)
    return replace(
        earlier, joint=total.budget, notices=(*earlier.notices, total.sentence)
    )


class Relation(Enum):
    """How a release in the ledger is related to a job."""

    OWN = "through its channels, with the keys of this job"
    FOREIGN = "through one of its channels, with the keys of another job"
    OTHER = "through other channels alone"


def relation(entry: Entry, drawn: Mapping[str, Drawn]) -> Relation:
    """How a release is related to the job that draws `drawn`, by the digests of the channels."""
    shared = [old for old in entry.drawn if old.use.channel in drawn]
    if not shared:
        return Relation.OTHER
    # One foreign key is enough: through that channel the records would be drawn twice.
    if all(old.job == drawn[old.use.channel].job for old in shared):
        return Relation.OWN
    return Relation.FOREIGN


@dataclass
class RelatedReleases:
    """The releases in a ledger by their relation to a job, whose draws are given by channel.

    `redrawn` are those of `own` with another draw of one of the channels.
    """

    own: list[Entry] = field(default_factory=list[Entry])
    foreign: list[Entry] = field(default_factory=list[Entry])
    others: list[Entry] = field(default_factory=list[Entry])
    redrawn: list[Entry] = field(default_factory=list[Entry])

    def add(self, entry: Entry, drawn: Mapping[str, Drawn]) -> None:
        """Sort one release in."""
        match relation(entry, drawn):
            case Relation.OWN:
                self.own.append(entry)
                if is_redrawn(entry, drawn):
                    self.redrawn.append(entry)
            case Relation.FOREIGN:
                self.foreign.append(entry)
            case Relation.OTHER:
                self.others.append(entry)

    def repeats(self, content: Content, file: str | None) -> bool:
        """Whether these very records were released by this job with these draws."""
        redrawn = {entry.id for entry in self.redrawn}
        same_draws = [entry for entry in self.own if entry.id not in redrawn]
        return any(is_same(entry, content, file) for entry in same_draws)


def is_redrawn(entry: Entry, drawn: Mapping[str, Drawn]) -> bool:
    """Whether a release of the same job has another draw of one of its channels."""
    for old in entry.drawn:
        mine = drawn.get(old.use.channel)
        if mine is not None and old.draw != mine.draw:
            return True
    return False


def count_other_draws(runs: Sequence[Entry], drawn: Mapping[str, Drawn]) -> int:
    """How many draws some runs have, through the channels of a job, beside the job's own."""
    draws: set[tuple[str, int]] = set()
    for entry in runs:
        for old in entry.drawn:
            if old.use.channel in drawn:
                draws.add((old.job, old.draw))
    own_draws = {(mine.job, mine.draw) for mine in drawn.values()}
    return len(draws - own_draws)
