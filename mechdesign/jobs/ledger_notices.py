"""The sentences on records that the ledger knows already: refusals and notices.

A refusal is the text of an error: nothing is released. A notice goes out with the release. Which of
them is due is decided elsewhere: in `earlier_releases` for records with other draws, in
`identified_records` for the same records under other identifiers, in `identified_records` for
symbols. A `share` is that of the records at hand that an earlier release had, between 0 and 1.

Each function puts one case in words: what was released, where and when (from the `Entry`), what it
would mean now, and what the user can do. `second_draw_refusal` with the share 1 begins "these
records have been released through this channel before (to out.csv on 2026-05-04, ..)".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechdesign.core.wording import at_most, listed
from mechdesign.jobs.entries import Entry
from mechdesign.jobs.joint_budget import local_budget
from mechdesign.jobs.recipe import RecordedDraws
from mechdesign.release.drawing import Release
from mechdesign.release.identified_draws import REDRAW
from mechdesign.release.policies import NEAREST


def second_draw_refusal(share: float, entry: Entry, identity: Sequence[str]) -> str:
    """The error if a `share` of the records was released in `entry` and would be drawn again."""
    subject = "these records have"
    if share < 1:
        subject = f"about {share:.0%} of these records have"
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
        subject = f"about {share:.0%} of these records have"
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
        f"about {share:.0%} of the records with new identifiers have been released through this "
        f"channel before (to {entry.target} on {entry.started[:10]}) under other ones, and are "
        "drawn a second time, which can leak far more than one release: restore their identifiers"
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
        f"about {share:.0%} of these records have been released through this channel before, with "
        "draws of their own: name the column that identifies them (--identity), so that each "
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

RELEASED_MEANWHILE = "another job has released these records meanwhile; start again"


def record_notices(releases: Sequence[RecordedDraws]) -> tuple[str, ...]:
    """Notices that count records of the original: for the internal manifest alone."""
    return (*change_notices(releases), *nearest_notices(releases))


def nearest_notices(releases: Sequence[RecordedDraws]) -> tuple[str, ...]:
    """Notices of records that were drawn as the nearest row of the table."""
    notices: list[str] = []
    for release in releases:
        if not isinstance(release, Release) or release.policy.unknown != NEAREST:
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


def change_notices(releases: Sequence[RecordedDraws]) -> tuple[str, ...]:
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
            budget = local_budget(release.channel)
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
