"""Bars of the values of a column, and the points of the trade-off curve, as numbers to draw.

A `Bar` has the width of its picture in per cent of the longest bar, so the template needs no
arithmetic. With 60 nurses, 30 clerks, 3 pilots and 2 actors `_bars` gives: ::

    nurse                                    60   width 100
    clerk                                    30   width  50
    2 values in fewer than 10 records each    5   width   8.3   is_rare

`pictures_of` draws every column as it is in the file, `binned_bars` its bins, and `merged_bars` a
released column whose rare values are merged.

The curve has factors from 1.05 to 20 to the right and the share that is kept upwards. The axis of
factors is logarithmic, because a budget in nats is the logarithm of a factor: `curve_place` sends
1.05 to 0, 2 to 70, and 20 to 320, the whole width. `curve_line` is the text of an SVG polyline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.app.choice import LARGEST_FACTOR, SMALLEST_FACTOR, Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import CurvePoint
from mechdesign.app.searching import check_bins, joint_of

SHOWN_VALUES = 8
"""Bars of a column; the other values share one."""

MOST_MERGED = 30
"""Bars of a column whose rare values are merged."""

RARE = 10
"""A value with fewer records than this is called rare."""

MOST_NUMBERS = 12
"""A column of more different numbers than this is worth sorting into bins."""


@dataclass(frozen=True)
class Bar:
    """A value (or several) and its records; `width` is in per cent of the largest."""

    label: str
    records: int
    width: float
    is_rare: bool = False


@dataclass(frozen=True)
class ColumnPicture:
    """A column at a glance.

    `values` are different ones, and `rare` those in fewer than `RARE` records; `missing` are
    records.
    """

    name: str
    values: int
    is_number: bool
    rare: int
    missing: int
    bars: tuple[Bar, ...]

    @property
    def wants_bins(self) -> bool:
        """Whether bins would help."""
        return self.is_number and self.values > MOST_NUMBERS


def pictures_of(table: MemoryTable) -> tuple[ColumnPicture, ...]:
    """A picture of every column."""
    return tuple(_picture(name, table.frame[name]) for name in table.columns)


def _picture(name: str, column: Any) -> ColumnPicture:
    """The picture of a column of the pyarrow table."""
    import pyarrow

    missing = column.null_count
    present = column.drop_null()
    try:
        counted = present.value_counts().to_pylist()
    except pyarrow.ArrowException:
        # Lists and structures have no values to count.
        return ColumnPicture(name, 0, False, 0, missing, ())
    entries = [(str(entry["values"]), entry["counts"]) for entry in counted]
    rare = sum(records < RARE for _, records in entries)
    # The most frequent first, and those of equal frequency by name, so that a page stays the same.
    entries.sort(key=lambda entry: (-entry[1], entry[0]))
    # The cells of a CSV are text, so whether a column has numbers is read off them.
    is_number = bool(entries) and all(_is_number(text) for text, _ in entries)
    return ColumnPicture(
        name=name,
        values=len(entries),
        is_number=is_number,
        rare=rare,
        missing=missing,
        bars=_bars(entries),
    )


def _bars(
    entries: Sequence[tuple[str, int]], *, most: int = SHOWN_VALUES, least: int = RARE
) -> tuple[Bar, ...]:
    """The most frequent values, one bar for the others, and one for those of fewer than `least`
    records together.
    """
    # The entries come sorted by frequency, so `shown` are the most frequent.
    common = [entry for entry in entries if entry[1] >= least]
    rare = [entry for entry in entries if entry[1] < least]
    shown = common[:most]
    others = common[most:]
    if others:
        records = sum(count for _, count in others)
        shown.append((f"{len(others):,} other values", records))
    # Rare values share the last bar, which is drawn in another way: each may identify its records.
    if not rare:
        return _scaled(shown)
    name = f"{len(rare):,} values in fewer than {least:,} records each"
    if len(rare) == 1:
        name = f"{rare[0][0]} (in fewer than {least:,} records)"
    shown.append((name, sum(count for _, count in rare)))
    bars = _scaled(shown)
    return (*bars[:-1], replace(bars[-1], is_rare=True))


def _scaled(entries: Sequence[tuple[str, int]]) -> tuple[Bar, ...]:
    """Labels with their records as bars, the longest of 100 per cent."""
    # The bar of all the others or of the rare ones may be the longest.
    largest = max((records for _, records in entries), default=1)
    bars: list[Bar] = []
    for label, records in entries:
        bars.append(Bar(label, records, 100.0 * records / largest))
    return tuple(bars)


def merged_bars(table: MemoryTable, choice: Choice) -> tuple[Bar, ...]:
    """The values of the released column as they are merged, in bins if it has some.

    The search decides on a tenth of the records, so a value near the limit may go either way.
    """
    joint = joint_of(table, choice)
    # In the order of the search: what is rare is decided by the records of a bin.
    if choice.used_bins:
        joint = joint.binned(choice.used_bins)
    entries = list(zip(joint.useful.names, joint.useful_counts, strict=True))
    entries.sort(key=lambda entry: (-entry[1], entry[0]))
    return _bars(entries, most=MOST_MERGED, least=choice.merge_below or RARE)


def binned_bars(table: MemoryTable, choice: Choice, name: str) -> tuple[Bar, ...]:
    """The bins of a column in their order, with their records."""
    import mechdesign as md

    # The joint of this column alone; its records depend on the protected columns only where empty
    # cells of these are dropped.
    joint = md.Joint.from_table(
        table.frame,
        sensitive=list(choice.sensitive),
        useful=name,
        missing=choice.missing,
    )
    check_bins(joint, name, choice.bins[name])
    joint = joint.binned(choice.bins[name])
    entries = list(zip(joint.useful.names, joint.useful_counts, strict=True))
    bins = joint.useful.bins_of(0)
    if bins is not None:
        # In the order of the numbers, and not in that of their labels; an empty cell comes last.
        order = {label: position for position, label in enumerate(bins.labels)}
        entries.sort(key=lambda entry: order.get(entry[0], len(order)))
    return _scaled(entries)


def _is_number(text: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


WIDTH = 320.0
HEIGHT = 160.0
"""Units of the picture of the curve."""

TICKS = ("1.1", "1.5", "2", "3", "5", "10", "20")
"""Factors that the axis names."""


def curve_place(factor: float | str) -> float:
    """The place of a factor on the logarithmic axis from the smallest to the largest factor."""
    least = math.log(SMALLEST_FACTOR)
    return (
        WIDTH * (math.log(float(factor)) - least) / (math.log(LARGEST_FACTOR) - least)
    )


def curve_line(points: Sequence[CurvePoint]) -> str:
    """The corners of the curve, 100 % at the top."""
    corners: list[str] = []
    for point in points:
        # In SVG y grows downwards.
        y = HEIGHT * (1.0 - point.kept)
        corners.append(f"{curve_place(point.factor):.1f},{y:.1f}")
    return " ".join(corners)
