"""Heat maps of lifts: P(s|x)/P(s) of the table beside P(s|y)/P(s) of the release.

Both maps have the sensitive symbols across. With limits of 0.779 to 1.284: ::

    Before    F      M              After    F      M
    clerk   1.50▲  0.50▼            mix-1   1.22   0.78
    nurse   0.86   1.14             mix-2   0.78   1.22
    smith   0.40▼  1.60▲            nurse   0.86   1.14

1. `groups_by_likeness` and `blocked` (both in `blocks`) join symbols where there are too many, the
   sensitive ones in the same groups for both maps.
2. `_ends` chooses one colour scale for both: 1 is in the middle, and the ends are the least of
   `ENDS` that hold all lifts (4 here, for 0.40 is below 1/2). The tint of a lift is its logarithm
   to the base of the end: 2 has the tint 0.5 (`_lift`).
3. `_map` makes a table of each and marks and counts lifts outside what the promise allows
   (`_limits`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from mechdesign.report import blocks, wording
from mechdesign.report.asked import names_of
from mechdesign.report.record import Promise, Report

LIFT = (
    "The lift of a value of {sensitive} at a released {unit} is the factor by which seeing that "
    "{unit} multiplies its probability: 1 means that nothing is learnt, 2 that it becomes twice "
    "as likely, 0.5 half as likely."
)

ROUNDING = 1e-9
"""Lifts of a map are doubles: one is marked as out of bounds only beyond their rounding."""

ENDS = (2.0, 4.0, 8.0)
"""Lifts at which the colours of a map may end: no less, so that rounding does not look
like leakage.
"""

ABOVE, BELOW = "▲", "▼"
"""Marks of lifts above and below what is allowed."""


def lift_blocks(report: Report) -> list[blocks.Block]:
    """Heat maps of the lifts of the table and of the release; nothing in a public report."""
    if report.before is None or report.after is None:
        return []
    promise = report.promise
    if report.asked.relative_to:
        # The maps have lifts against the whole table, which a relative promise does not limit.
        promise = replace(promise, low=None, high=None, allowed=())
    unit = report.asked.unit
    sensitive, useful = names_of(report.asked)
    # The lifts of the table decide for both maps, so that they can be compared.
    groups = blocks.groups_by_likeness(report.before.values, blocks.MOST_MAP_COLUMNS)
    before = blocks.blocked(report.before, useful, sensitive, groups)
    after = blocks.blocked(report.after, "outputs", sensitive, groups)
    ends = _ends(before, after)
    explanation = (
        f"How many times as likely every value of {sensitive} becomes when {useful} itself is "
        f"seen (before), and when a released {unit} is seen (after). Pale is less likely, dark "
        f"more likely; the colours end at {1.0 / ends:g} and {ends:g}."
    )
    if promise.low is not None or promise.high is not None:
        explanation += (
            f" {BELOW} and {ABOVE} mark lifts below and above what is allowed."
        )
    maps = (
        _map("Before", before, useful, sensitive, promise, ends),
        _map("After", after, "output", sensitive, promise, ends),
    )
    remarks: list[blocks.Block] = []
    for name, table in (("Before", before), ("After", after)):
        if table.note:
            remarks.append(blocks.Remark(f"{name}: {table.note}"))
    return [
        blocks.Text(LIFT.format(sensitive=sensitive, unit=unit)),
        blocks.Text(explanation),
        blocks.Maps(maps, _scale(ends)),
        *remarks,
    ]


def _scale(ends: float) -> tuple[blocks.Cell, ...]:
    """The legend of the colours: powers of two from 1/ends to ends."""
    largest = round(math.log2(ends))
    cells: list[blocks.Cell] = []
    for power in range(-largest, largest + 1):
        text = f"{2**power}"
        if power < 0:
            text = f"1/{2**-power}"
        cells.append(blocks.Cell(text, tint=power / largest))
    return tuple(cells)


def _ends(*tables: blocks.Blocked) -> float:
    """The lift of the last colour: the same for both maps, so that they can be compared."""
    lifts: list[float] = []
    for table in tables:
        for line in table.values:
            lifts += line
    # A power of two for an end, so that the legend has whole steps; lifts beyond the last one get
    # its colour.
    for end in ENDS:
        if all(1.0 / end <= lift <= end for lift in lifts):
            return end
    return ENDS[-1]


def _map(
    name: str,
    table: blocks.Blocked,
    down: str,
    across: str,
    promise: Promise,
    ends: float,
) -> blocks.Grid:
    """One map; lifts outside what is allowed are marked and counted."""
    limits = _limits(promise, table.groups)
    rows: list[tuple[blocks.Cell, ...]] = []
    outside = 0
    for row_name, line in zip(table.rows, table.values, strict=True):
        cells = [blocks.Cell(row_name)]
        for lift, (least, most) in zip(line, limits, strict=True):
            mark = _mark(lift, least, most)
            if mark:
                outside += 1
            cells.append(_lift(lift, mark, ends))
        rows.append(tuple(cells))
    caption = f"{name}: lift of every value of {across} at each {down}"
    if promise.low is not None or promise.high is not None:
        size = wording.count(len(table.rows) * len(table.columns), "cell")
        caption += f"; {outside:,} of {size} outside what is allowed"
    return blocks.Grid(caption, (down, *table.columns), tuple(rows))


def _limits(promise: Promise, groups: blocks.Groups) -> list[tuple[float, float]]:
    """The lifts allowed in each column of a map.

    A column may hold several sensitive symbols with budgets of their own: it then takes the
    narrowest.
    """
    low = promise.low or 0.0
    high = math.inf if promise.high is None else promise.high
    limits: list[tuple[float, float]] = []
    for symbols in groups:
        members = [(low, high)]
        if promise.allowed:
            members = [promise.allowed[s] for s in symbols]
        # A cell shows one lift of all its members. The narrowest limits may mark a lift that its
        # own symbol allows; wider ones could leave a lift unmarked that it does not allow.
        least = max(lower for lower, _ in members) * (1.0 - ROUNDING)
        most = min(upper for _, upper in members) * (1.0 + ROUNDING)
        limits.append((least, most))
    return limits


def _mark(lift: float, least: float, most: float) -> str:
    """The mark of a lift outside what is allowed; empty for any other."""
    if lift < least:
        return BELOW
    if lift > most:
        return ABOVE
    return ""


def _lift(value: float, mark: str, ends: float) -> blocks.Cell:
    """A lift with three significant characters, and its place on the colour scale."""
    if value == 0.0 or value >= 100.0:
        text = f"{value:.0f}"
    elif value < 0.005:
        text = "<.01"
    elif value < 10.0:
        text = f"{value:.2f}"
    else:
        text = f"{value:.1f}"
    # On a logarithmic scale, halving is as far from 1 as doubling.
    level = math.log(value, ends) if value > 0.0 else -1.0
    return blocks.Cell(text + mark, tint=max(-1.0, min(1.0, level)))
