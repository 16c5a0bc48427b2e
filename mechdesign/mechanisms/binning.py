"""Bins chosen for a budget, and tables that should be released in bins or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.result import Design
from mechdesign.release.binned import distance_text, moved
from mechdesign.tables.bin_edges import AUTO, specs_by_column
from mechdesign.tables.cell_numbers import kind_of
from mechdesign.tables.joint import Joint

NUMBERS_OF_BINS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Tried for ``auto``; the curve is flat where there are more."""

CURVE_GAP, CURVE_SECONDS = 1e-2, 5.0
"""How well, and how long at most, each channel of the curve is searched; the one chosen is searched as asked."""

FEWEST_RECORDS, IDENTIFYING = 100, 0.9
"""A column of at least so many records identifies them if it has more than this share of symbols to records."""

MANY_NUMBERS = 40
"""Different numbers of a column from which on bins are mentioned."""


def binned_for(
    joint: Joint, bins: Any, time_limit: float | None, run: Callable[..., Design]
) -> tuple[Joint, tuple[str, ...]]:
    """The table in bins, and what is to be said of how they were chosen.

    For ``auto`` the numbers of bins of `NUMBERS_OF_BINS` are tried: for each the edges of least distance to the
    medians (dynamic programming), and a channel for the budget, designed by `run`. The one whose released medians are
    expected to lie nearest to the numbers of the table is chosen, the fewest bins of equal ones. Half of the time
    limit is left for its search.
    """
    specs = specs_by_column(bins, joint.useful.columns)
    free = [
        name for name, spec in specs.items() if isinstance(spec, str) and spec == AUTO
    ]
    if others := {name: spec for name, spec in specs.items() if name not in free}:
        joint = joint.binned(others)
    if not free:
        return joint, ()
    if len(free) > 1:
        raise InputError(
            "--bin auto is for one column; give bins for the others, or auto:N"
        )
    (name,) = free
    part = joint.useful.columns.index(name)
    values = len({symbol[part] for symbol in joint.useful.symbols} - {""})
    curve: list[tuple[float, int, Joint]] = []
    seconds = min(
        CURVE_SECONDS,
        math.inf if time_limit is None else time_limit / (2 * len(NUMBERS_OF_BINS)),
    )
    for count in sorted({min(count, max(values, 2)) for count in NUMBERS_OF_BINS}):
        table = joint.binned({name: f"{AUTO}:{count}"})
        channel = run(table, gap=CURVE_GAP, time_limit=seconds, progress=None).channel
        found = next(each for each in moved(channel) if each.column == name)
        curve.append((found.distance, count, table))
    least, chosen, table = min(curve, key=lambda each: each[:2])
    kind = next(bins.kind for bins in table.useful.bins if bins is not None)
    shown = ", ".join(
        f"{count} {distance_text(distance, kind)}" for distance, count, _ in curve
    )
    return table, (
        f"bins of {quoted(name)}: {chosen} of them move the released medians least at this budget, by "
        f"{distance_text(least, kind)} on average ({shown}; auto:N chooses another number)",
    )


def refuse_identifier(joint: Joint) -> None:
    """Refuse a useful column with nearly as many symbols as records."""
    records, symbols = joint.records or 0, len(joint.useful)
    if records >= FEWEST_RECORDS and symbols > IDENTIFYING * records:
        name = quoted(",".join(joint.useful.columns))
        raise InputError(
            f"the useful column {name} has {symbols:,} symbols in {records:,} records, so it all but identifies them "
            "and the channel would list them; group its values (--bin for numbers, dates and times), choose another "
            "column, or insist (--allow-identifier)"
        )


def many_numbers(joint: Joint) -> tuple[str, ...]:
    """The advice to use bins, where a column of many numbers is released number by number."""
    columns, symbols = joint.useful.columns, joint.useful.symbols
    if len(columns) > 1 or any(joint.useful.bins) or len(symbols) <= MANY_NUMBERS:
        return ()
    kind = kind_of([text for symbol in symbols for text in symbol if text])
    return () if kind is None else (
        f"the column {quoted(','.join(columns))} has {len(symbols):,} different {kind}s, each a symbol of its own: "
        "--bin releases them in bins, --objective distance moves them as little as possible",
    )  # fmt: skip
