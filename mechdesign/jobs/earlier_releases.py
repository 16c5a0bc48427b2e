"""The earlier releases of the records at hand: which draws are repeated, and which would be second
ones.

*The choice of the draw.* This keeps the half of the promise that says: the same record gets the
same draw. A job is one key, and a draw of it is a number; the draw of a record follows from both.
`DrawChoice.draws` looks for the releases of the same data set (`is_of_data_set`) and repeats,
channel by channel, the job and the draw of the last one. Where there is none, the job gets a new
name and the draw the number 0. With a fresh draw the number goes up by one.

For example, three runs on a file by row number, the last with a fresh draw, use ::

    rows 5f0c..., draw 0        nothing is known: a new job
    rows 5f0c..., draw 0        the same bytes, or the same records in the same order
    rows 5f0c..., draw 1        asked for (--fresh-draw)

Nothing here writes to the ledger: `job` enters what was chosen.

*Second draws.* This keeps the half of the promise that says: no record is drawn twice by mistake.
When the records of a job are known, `find_earlier_releases` sorts all releases in the ledger by
their `Relation` to the job, compares the records of each class with those at hand (`same_records`),
and decides:

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

*Sentences.* A refusal is the text of an error: nothing is released. A notice goes out with the
release. Which of them is due is decided elsewhere: in `find_earlier_releases` for records with
other draws, in `identified_records` for other identifiers and other symbols. A `share` is that of
the records at hand that an earlier release had, between 0 and 1.

Each function puts one case in words: what was released, where and when (from the `Entry`), what it
would mean now, and what the user can do. `second_draw_refusal` with the share 1 begins "these
records have been released through this channel before (to out.csv on 2026-05-04, ..)".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from sqlite3 import Connection
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.wording import about_percent, at_most, listed
from mechdesign.formats.cells import CellForm
from mechdesign.formats.census import Content
from mechdesign.jobs.joint_budget import (
    counts_all,
    drawn_uses,
    is_counted,
    joint_budget,
    local_budget,
)
from mechdesign.jobs.ledger import FINISHING, Drawn, Entry, Ledger, Use
from mechdesign.jobs.people_nights import EarlierNights
from mechdesign.jobs.same_records import SAME_FROM, is_same, releases_of
from mechdesign.release.drawing import Release
from mechdesign.release.identified_draws import REDRAW
from mechdesign.release.samplers import NEAREST, REFUSE

# ---------------------------------------------------------------------------- sentences


def second_draw_refusal(share: float, entry: Entry, identity: Sequence[str]) -> str:
    """The error if a `share` of the records was released in `entry` and would be drawn again."""
    subject = "these records have"
    if share < 1:
        subject = f"{about_percent(share)} of these records have"
    known_by = "their row number"
    if entry.identity:
        known_by = f"the column {listed(entry.identity)}"
    hint = ""
    if not identity:
        hint = (
            ", name what identifies a record (--identity COL) from the first release on"
        )
    return (
        f"{subject} been released through this channel before (to {entry.target} on "
        f"{entry.started[:10]}, known by {known_by}), and would be drawn a second time, which can "
        f"leak far more than one release: release that file again as it was{hint}, or accept that "
        "(--fresh-draw)"
    )


def renamed_records_refusal(share: float, entry: Entry, identity: Sequence[str]) -> str:
    """The error if a `share` of the records was released in `entry` under other identifiers."""
    subject = "these records have"
    if share < 1:
        subject = f"{about_percent(share)} of these records have"
    return (
        f"{subject} been released through this channel before (to {entry.target} on "
        f"{entry.started[:10]}), but under other identifiers in the column {listed(identity)}: "
        "they would be drawn a second time, which can leak far more than one release; restore the "
        "identifiers as they were, or accept that (--fresh-draw)"
    )


def renamed_records_notice(share: float, entry: Entry) -> str:
    """The notice if a `share` of the records with new identifiers, less than is refused, was
    released in `entry` under other ones.
    """
    return (
        f"{about_percent(share)} of the records with new identifiers have been released through "
        f"this channel before (to {entry.target} on {entry.started[:10]}) under other ones, and "
        "are drawn a second time, which can leak far more than one release: restore their "
        "identifiers"
    )


def alike_records_notice(entry: Entry) -> str:
    """The notice if the rows are those of `entry` but for the identifiers, maybe by chance."""
    return (
        "but for the identifiers, the same rows have been released through this channel before, "
        f"equally often (to {entry.target} on {entry.started[:10]}): if they are the same "
        "records, they are drawn a second time, which can leak far more than one release: restore "
        "their identifiers"
    )


def same_column_refusal(entry: Entry) -> str:
    """The error if the released column is that of `entry`, symbol by symbol."""
    return (
        "the same symbols in the same order have been released through this channel before (to "
        f"{entry.target} on {entry.started[:10]}), beside other columns: these are the same "
        "records, and would be drawn a second time, which can leak far more than one release: "
        "release the file with all its columns, as it was, or accept that (--fresh-draw)"
    )


def alike_column_notice(entry: Entry) -> str:
    """The notice if the released column has the symbols of `entry`, equally often."""
    return (
        "the same symbols, equally often, have been released through this channel before (to "
        f"{entry.target} on {entry.started[:10]}): if they are those of the same records, these "
        "are drawn a second time, which can leak far more than one release: release that file "
        "again, as it was"
    )


def redraw_notice(draws: int) -> str:
    """The notice if the records had so many other draws."""
    noun = "draw" if draws == 1 else "draws"
    return (
        f"the same records have been released before with {draws} other {noun}: independent "
        "releases of a record can tell far more than each"
    )


def shared_records_notice(share: float) -> str:
    """The notice if a `share` of the records, less than counts as the same, has other draws."""
    return (
        f"{about_percent(share)} of these records have been released through this channel before, "
        "with draws of their own: name the column that identifies them (--identity), so that each "
        "keeps its draw from now on"
    )


FIRST_DRAW = (
    "these records have not been released before: their first draw is a fresh one in "
    "any case"
)

SYMBOLS_UNKNOWN = (
    "records were released before on a cluster, or by an earlier version, which left no trace of "
    "their symbols here: whether some have another symbol now cannot be seen"
)

OTHER_CHANNELS = (
    "these data have been released through another channel, or in another column, as well: each "
    "release keeps its own promise, but together they can tell more than either"
)

COUNTED_CHANNELS = (
    "these data have been released through another channel as well, which this one was designed "
    "after: its promise is about both together"
)

RELEASED_MEANWHILE = "another job has released these records meanwhile; start again"


def record_notices(releases: Sequence[Release]) -> tuple[str, ...]:
    """Notices that count records of the original: for the internal manifest alone."""
    return (*change_notices(releases), *nearest_notices(releases))


def nearest_notices(releases: Sequence[Release]) -> tuple[str, ...]:
    """Notices of records that were drawn as the nearest row of the table."""
    notices: list[str] = []
    for release in releases:
        if release.policy.unknown != NEAREST:
            continue
        # The last count is that of the unknown ones.
        unknown = int(release.symbol_counts[0][-1])
        if unknown:
            have = "record has a row" if unknown == 1 else "records have rows"
            notices.append(
                f"{unknown:,} {have} that the table of the design does not have: released is a "
                "draw of the nearest row that it has. The promise is about the records of the "
                "table; of others the release tells no more than their nearest row"
            )
    return tuple(notices)


def change_notices(releases: Sequence[Release]) -> tuple[str, ...]:
    """Notices of records whose symbol changed since an earlier release."""
    notices: list[str] = []
    for release in releases:
        if not release.changes:
            continue
        # A record that keeps its output adds nothing to what its releases tell. One that is drawn
        # anew adds the local budget of the channel at most, the leakage of one draw of anything.
        outcome = "kept their old output"
        if release.changed == REDRAW:
            bound = "any amount"
            # A release knows of its channel what draws need; it is a whole one all the same.
            channel: Any = release.channel
            budget = local_budget(channel)
            if math.isfinite(budget):
                bound = f"at most {at_most(budget)}"
            outcome = (
                f"were drawn anew: each further symbol of a record adds {bound} to what its "
                "releases tell (the local budget of the channel)"
            )
        notices.append(
            f"{release.changes:,} records have another symbol than before and {outcome}"
        )
    return tuple(notices)


# ------------------------------------------------------------------------- second draws

# ------------------------------------------------------------------- choice of the draw


@dataclass(frozen=True, kw_only=True)
class DrawChoice:
    """What decides which draws a data set gets, but for its content.

    The content is a parameter of the methods, since that of a file is known only when it was drawn.

    Attributes
    ----------
    uses : sequence of Use
        How each channel is used.
    channel_files : sequence of str or None
        The file of each channel, where it was read from one.
    identity : tuple of str
        The columns that identify a record; none where its row number does.
    file : str or None
        The hash of the data set's bytes, as the ledger knows it.
    fresh_draw : bool
        Whether to draw anew what was released before.
    """

    uses: Sequence[Use]
    channel_files: Sequence[str | None]
    identity: tuple[str, ...]
    file: str | None
    fresh_draw: bool

    def draws(
        self, entries: Sequence[Entry], content: Content | None
    ) -> tuple[Drawn, ...]:
        """The draws of the data set, one for each use.

        Parameters
        ----------
        entries : sequence of Entry
            All releases in the ledger, in their order.
        content : Content or None
            The hashes of the records, where they are known.

        Raises
        ------
        InputError
            If a repeated draw would meet other symbols of the same records.
        """
        released = [entry for entry in entries if self.is_of_data_set(entry, content)]
        draws: list[Drawn] = []
        for use, channel_file in zip(self.uses, self.channel_files, strict=True):
            job, draw = self._job_and_draw(use, released, content)
            draws.append(Drawn(use=use, job=job, draw=draw, channel_file=channel_file))
        return tuple(draws)

    def is_of_data_set(self, entry: Entry, content: Content | None) -> bool:
        """Whether a release has the keys of this data set."""
        # With an identity by columns all data sets share one job: a record keeps its draw in each.
        if self.identity or entry.identity:
            return entry.identity == self.identity
        # By row number a record is its place, so the order must be the same.
        if content is not None:
            for reading in content.readings:
                if entry.ordered == reading.ordered:
                    return True
        return self.file is not None and entry.file == self.file

    def _job_and_draw(
        self, use: Use, released: Sequence[Entry], content: Content | None
    ) -> tuple[str, int]:
        """The job and the number of the draw of one channel: those of the last release through it,
        or first or further ones.
        """
        last: Entry | None = None
        earlier: list[Drawn] = []
        for entry in released:
            old = entry.of(use.channel)
            if old is not None:
                earlier.append(old)
                last = entry
        if last is None:
            return self._new_job(content), 0
        job = earlier[-1].job
        # Draws are numbered from 0 within a job; without a fresh draw the latest one is repeated.
        draw = max(old.draw for old in earlier if old.job == job)
        # A run that was killed on the way to a fresh draw is finished first, with that draw.
        finishing_fresh = last.fresh and last.state == FINISHING
        if self.fresh_draw and not finishing_fresh:
            draw += 1
        for old in earlier:
            if old.job == job and old.draw == draw:
                check_treatment(old.use, use)
        return job, draw

    def _new_job(self, content: Content | None) -> str:
        """The name of a job that the ledger does not have yet; keys are derived from it."""
        if self.identity:
            return f"id {canonical(self.identity)}"
        rows = self.file
        if rows is None and content is not None:
            rows = content.ordered
        return f"rows {rows}"


def check_uses(uses: Sequence[Use]) -> None:
    """Refuse a channel that is applied to two columns of one data set."""
    by_channel: dict[str, Use] = {}
    for use in uses:
        first = by_channel.setdefault(use.channel, use)
        if first is not use:
            raise InputError(
                f"the same channel cannot be applied to {listed(first.columns)} and to "
                f"{listed(use.columns)} in one job: both would get the same random numbers; "
                "release them in two jobs (--ledger)"
            )


def check_treatment(old: Use, use: Use) -> None:
    """Refuse to read the same channel's symbols in another way than before.

    Two symbols of a record that meet one random number have outputs that depend on each other
    through it, and can tell more of the symbols than both promise. What is published for a record
    without a symbol may change: its random number meets no second symbol then.
    """
    if old.columns != use.columns:
        raise InputError(
            f"this channel was applied to {listed(old.columns)} before; on {listed(use.columns)} "
            "it would use the same random numbers again: draw anew (--fresh-draw) if that is "
            "another column"
        )
    if old.draws != use.draws:
        raise InputError(
            f"{listed(use.columns)} was released with {old.draws} draws before; {use.draws} draws "
            "would be a second draw of the same records: say so (--draws "
            f"{old.draws}), or draw anew (--fresh-draw)"
        )
    # If unknown symbols were refused then and are now, all symbols are known to both
    # normalisations.
    both_refuse = old.unknown == REFUSE and use.unknown == REFUSE
    old_form = _form_of(old)
    form = _form_of(use)
    if old_form != form and not both_refuse:
        raise InputError(
            f"{listed(use.columns)} was released with the normalisation {old_form} before, "
            f"not {form}, which gives some records another symbol; keep it, or draw anew "
            "(--fresh-draw)"
        )


def _form_of(use: Use) -> CellForm:
    """The form in which a use compared symbols."""
    return CellForm(
        normalise=use.normalise, trim=use.trim, missing_codes=use.missing_codes
    )


# ------------------------------------------------------------------------- second draws


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
    is_counted : bool
        Whether a channel of the job was designed after all of `beside`, and counts them.
    """

    draws: int = 0
    runs: tuple[Entry, ...] = ()
    beside: tuple[Entry, ...] = ()
    joint: Mapping[str, Any] | None = None
    notices: tuple[str, ...] = ()
    nights: EarlierNights = field(default_factory=EarlierNights)
    is_counted: bool = False


def find_earlier_releases(
    db: Connection,
    ledger: Ledger,
    entries: Sequence[Entry],
    choice: DrawChoice,
    drawn: Sequence[Drawn],
    content: Content,
) -> EarlierReleases:
    """The earlier releases of the records of a job, without their joint budget, which takes long.

    Parameters
    ----------
    db, ledger
        A transaction of the ledger, for the samples of its data sets.
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
    foreign = releases_of(db, ledger, related.foreign, content, file)
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
    others = releases_of(db, ledger, related.others, content, file)
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


def counted(earlier: EarlierReleases, channels: Sequence[Channel]) -> EarlierReleases:
    """The same, with another notice where one of these channels, the only one or one that counts
    the others, was designed after all through which the records were released besides.
    """
    draws = {(old.use.channel, old.job, old.draw) for old in drawn_uses(earlier.beside)}
    # Its promise is about one draw through each.
    is_once = len(draws) == len({channel for channel, _, _ in draws})
    if not earlier.beside or not is_once:
        return earlier
    for channel in channels:
        others = [other for other in channels if other is not channel]
        after = channel.record.after
        if not counts_all(channel, others):
            continue
        if all(is_counted(entry, after) for entry in earlier.beside):
            notices = list(earlier.notices)
            notices[notices.index(OTHER_CHANNELS)] = COUNTED_CHANNELS
            return replace(earlier, notices=tuple(notices), is_counted=True)
    return earlier


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
