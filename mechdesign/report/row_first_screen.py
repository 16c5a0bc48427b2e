"""The first screen of `design --release`: at most 25 lines; `--full` has the rest.

The order is that of `first_screen`: how far can a belief move, for the table and for the population
behind it; how much is kept, in all and of each column; what is not covered; what comes next.
Numbers are short, and never more favourable than the proven ones. The promise, what it does not
cover, and what the search left undone are whole; the table of levels and the remark on rare rows
get the lines that are left, and name what only `--full` has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechdesign.channel.row_record import RELATIVE
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.report import layout, wording
from mechdesign.report.first_screen import (
    FULL,
    MOST_LINES,
    kept_sentence,
    lines_within,
)
from mechdesign.report.row_sentences import (
    lead_text,
    sensitive_name,
    stopped_text,
    task_text,
)
from mechdesign.report.scope_texts import FREE, FREE_SIDE

NO_POPULATION = (
    "Population: not promised; single rows can reveal far more there. --confidence 0.95 protects "
    "it."
)

PARTS = "A part of a row without its given columns: it can reveal what these reveal, on top."


def row_first_screen(design: RowDesign, *, last: Sequence[str]) -> str:
    """The text of a design of rows, without a final newline.

    It has at most 25 lines, unless remarks on the search need more.

    Parameters
    ----------
    design : RowDesign
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    utility = kept_sentence(
        design.nmi,
        design.upper_bound_nmi,
        beyond_given=bool(design.channel.given),
        rivals="mechanism with this promise",
    )
    # The promise, its limits and what the search left undone are never cut. The levels, then the
    # remark on the table, share the room between.
    before = [*layout.lines_of(lead_text(design.channel)), *_promise_lines(design), ""]
    before += layout.lines_of(utility)
    if design.purpose is not None:
        before += layout.lines_of(task_text(design, design.purpose))
    after = ["", *_uncovered_lines(design), "", FULL, *last]
    # A reader must not take a search that was cut short for a finished one.
    search = layout.all_lines(layout.remark_sentences(design.messages))

    room = MOST_LINES - len(before) - len(search) - len(after)
    levels = _level_lines(design, room)
    remark = _remark_lines(design, room - len(levels))
    return "\n".join([*before, *levels, *search, *remark, *after])


def _promise_lines(design: RowDesign) -> list[str]:
    """What a released row can do to a belief: by the table, and in the population."""
    sensitive = sensitive_name(design.channel)
    table = wording.change_text(design.achieved, design.audit.notion, sensitive)
    if design.audit.promise == RELATIVE:
        table += ", compared with records of the same given columns"
    lines = layout.lines_of(f"Table: {table} (verified).") + layout.lines_of(
        NO_POPULATION
    )
    if design.given_lift is not None:
        given = wording.times_text(design.given_lift, design.audit.notion)
        lines += layout.lines_of(
            f"The given columns alone make any value of {sensitive} {given} as probable."
        )
    return lines


def _level_lines(design: RowDesign, room: int) -> list[str]:
    """A line for each level, as many as there is room for.

    `if constant` is what the most frequent cell alone would leave unchanged: without it nobody can
    judge the unchanged cells of a column of two values.
    """
    rows = [["column", "unchanged cells", "if constant", "adds"]]
    for level in design.levels:
        name = wording.title(level.columns)
        added = wording.tenths_at_least(level.kept)
        if level.truth is None:
            # Free outputs are no cells of the column, so none of them is unchanged. All levels of
            # a channel have free outputs or none has, so the header is that of every row.
            rows[0] = ["column", "adds"]
            rows.append([name, added])
        else:
            rows.append([name, _shares(level.truth), _shares(level.constant), added])
    return lines_within(rows, room, "more level")


def _remark_lines(design: RowDesign, room: int) -> list[str]:
    """Which records lose their later columns: whole, or where `--full` has it."""
    if design.stopped == 0.0:
        return []
    lines = layout.lines_of(stopped_text(design))
    if len(lines) <= room:
        return lines
    return ["Further remarks:  --full"][: max(0, room)]


def _shares(shares: dict[str, float]) -> str:
    """The shares of the columns of a level, rounded down."""
    return ", ".join(wording.tenths_at_least(share) for share in shares.values())


def _uncovered_lines(design: RowDesign) -> list[str]:
    """What the promise leaves open, in a line each."""
    sensitive = sensitive_name(design.channel)
    items = [
        "Any other column released beside these, and other knowledge of them.",
        "A second, independent release of the same record.",
        f"Who somebody is: {sensitive} is hidden, yet a released row may still be unusual.",
    ]
    if design.audit.promise == RELATIVE:
        items.append(PARTS)
    for side in design.audit.notion.limits.free_sides:
        items.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # For another prior q the lift is P(y|s) / sum_s' q(s') P(y|s'): a mean of numbers within a
    # factor exp(eps_ldp) of the numerator divides it. Relative lifts have a prior for each stratum.
    ratio = design.achieved.eps_ldp
    if math.isfinite(ratio) and design.audit.promise != RELATIVE:
        factor = wording.short_factor(ratio, upper=True)
        items.append(
            f"Other probabilities of {sensitive} than the table's: then the factor is at most "
            f"{factor}."
        )
    return ["Not covered", *layout.item_lines(items)]
