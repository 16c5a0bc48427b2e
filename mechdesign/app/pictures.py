"""Bars of the values of a column, and what an analyst reads of them, as numbers to draw.

A `Bar` has the width of its picture in per cent of the longest bar, so the template needs no
arithmetic. With 60 nurses, 30 clerks, 3 pilots and 2 actors `_bars` gives: ::

    nurse                                    60   width 100
    clerk                                    30   width  50
    2 values in fewer than 10 records each    5   width   8.3   is_rare

`pictures_of` draws every column as it is in the file, `binned_bars` its bins, and `merged_bars` a
released column whose rare values are merged.

*What an analyst reads* before and after has a pair of bars for each value of a column. `readings`
compares the shares of values in the table with those in a release. `expected_readings` takes the
probabilities of the channel for the latter, and `released_readings` counts the released file: ::

    job        furthest apart by 0.3 points
    clerk      60.0 % -> 60.1 %      two bars, one above the other
    nurse      40.0 % -> 39.9 %

The columns come first, in their order. Then come the pairs of columns that differ most, whose
values are combinations such as "clerk, north". Numbers in bins are compared in their bins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import Reading, ShareBar, check_bins, joint_of
from mechdesign.auditing.law import Cells
from mechdesign.channel.output_cells import cells_of_labels

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.tables.joint import Joint


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


# ----------------------------------------------------------------------------- readings

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MOST_BARS = 8
"""Values of a column or pair that are drawn: those whose shares differ most, or are largest."""

MOST_PAIRS = 3
"""Pairs of columns that are drawn."""

PAIRED_COLUMNS = 60
"""Columns of which pairs are compared, as many as fit: their number grows with the square."""

SMALLEST_SHOWN = 5e-4
"""A share that rounds to less than 0.1 % of the records."""


ROUNDING = 1e-9
"""Distances up to this are rounding errors of sums of shares."""


@dataclass(frozen=True)
class _Shares:
    """Shares of the same codes in the table and in the release."""

    before: Floats
    after: Floats

    @property
    def distance(self) -> float:
        """The total variation: the share of the records that would have to change."""
        distance = float(np.abs(self.before - self.after).sum() / 2)
        return distance if distance > ROUNDING else 0.0


@dataclass(frozen=True)
class _Rows:
    """Rows as codes into the texts of each column, with their weights."""

    codes: list[Codes]
    weights: Floats


def expected_readings(channel: Channel, joint: Joint) -> tuple[Reading, ...]:
    """What is expected of a release of the channel's table; nothing where labels are released."""
    rows = _cells_of_outputs(channel, joint)
    # The symbols of people are sequences, whose places are no columns of the table.
    if rows is None or joint.useful.people is not None:
        return ()
    cells = zip(*rows, strict=True)
    return _compared(channel, joint, cells, channel.output_masses)


def released_readings(
    channel: Channel, joint: Joint, frame: Any
) -> tuple[Reading, ...]:
    """What is read in a released frame; nothing where labels are released."""
    if _cells_of_outputs(channel, joint) is None:
        return ()
    # One column at a time: the texts of all of them take much memory.
    cells = (frame.column(name).to_pylist() for name in channel.output_columns)
    return _compared(channel, joint, cells, np.ones(frame.num_rows))


def _cells_of_outputs(channel: Channel, joint: Joint) -> Sequence[Cells] | None:
    """What is written for each output, as cells of the useful columns; None of other labels."""
    if channel.releases_symbols:
        return channel.output_cells
    if channel.published is not None or len(joint.useful.columns) > 1:
        return None
    return cells_of_labels(channel.outputs, joint.useful)


def _compared(
    channel: Channel, joint: Joint, cells: Iterable[Sequence[Any]], weights: Floats
) -> tuple[Reading, ...]:
    """The table of a channel beside rows that are released, column by column."""
    before: list[Codes] = []
    after: list[Codes] = []
    texts: list[list[str]] = []
    coded = joint.useful.coded
    for k, new in enumerate(cells):
        places = {text: place for place, text in enumerate(coded.texts[k])}
        before.append(coded.codes[:, k])
        after.append(_coded(new, places))
        texts.append(list(places))
    counts = np.array(joint.useful_counts, dtype=np.float64)
    return readings(
        channel.useful.columns, texts, _Rows(before, counts), _Rows(after, weights)
    )


def _coded(cells: Sequence[Any], places: dict[str, int]) -> Codes:
    """Codes of texts; `places` learns the new ones."""
    codes = [places.setdefault(str(cell), len(places)) for cell in cells]
    return np.array(codes, dtype=np.int64)


def readings(
    columns: Sequence[str], texts: Sequence[Sequence[str]], before: _Rows, after: _Rows
) -> tuple[Reading, ...]:
    """A picture of every column and of the pairs that differ most.

    Parameters
    ----------
    columns : sequence of str
    texts : sequence of sequences of str
        The values of each column.
    before, after : _Rows
        Codes into `texts`.
    """
    pictures: list[Reading] = []
    for k, name in enumerate(columns):
        shares = _shares(before.codes[k], after.codes[k], len(texts[k]), before, after)
        pictures.append(_reading((name,), texts[k], shares))
    worst: list[tuple[float, int, int]] = []
    for one, other in itertools.combinations(range(len(columns))[:PAIRED_COLUMNS], 2):
        shares, _ = _pair_shares(one, other, texts, before, after)
        worst.append((shares.distance, one, other))
    worst.sort(key=lambda entry: -entry[0])
    for _, one, other in worst[:MOST_PAIRS]:
        shares, used = _pair_shares(one, other, texts, before, after)
        size = len(texts[other])
        names: list[str] = []
        for code in used.tolist():
            names.append(f"{texts[one][code // size]}, {texts[other][code % size]}")
        pictures.append(_reading((columns[one], columns[other]), names, shares))
    return tuple(pictures)


def _pair_shares(
    one: int,
    other: int,
    texts: Sequence[Sequence[str]],
    before: _Rows,
    after: _Rows,
) -> tuple[_Shares, Codes]:
    """The shares of the combinations of two columns that occur, and their codes."""
    size = len(texts[other])
    left = before.codes[one] * size + before.codes[other]
    right = after.codes[one] * size + after.codes[other]
    # Of two columns of many values few combinations occur.
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    places = places.reshape(-1)
    shares = _shares(places[: len(left)], places[len(left) :], len(used), before, after)
    return shares, used


def _shares(
    left: Codes, right: Codes, size: int, before: _Rows, after: _Rows
) -> _Shares:
    """The shares of codes below `size` in both."""
    first = np.bincount(left, before.weights, size)
    second = np.bincount(right, after.weights, size)
    return _Shares(first / first.sum(), second / second.sum())


def _reading(
    columns: tuple[str, ...], texts: Sequence[str], shares: _Shares
) -> Reading:
    """The values whose shares differ most; where none does, the most frequent."""
    from mechdesign.report import wording as w

    change = np.abs(shares.before - shares.after)
    # A change that is not seen in the digits shown is none.
    change[change < SMALLEST_SHOWN] = 0.0
    order = np.lexsort((-shares.before, -change))[:MOST_BARS]
    longest = max(float(shares.before[order].max()), float(shares.after[order].max()))
    bars: list[ShareBar] = []
    for place in map(int, order):
        old, new = float(shares.before[place]), float(shares.after[place])
        bars.append(
            ShareBar(
                label=w.label(texts[place]),
                before=w.percent(old),
                after=w.percent(new),
                before_width=100.0 * old / longest,
                after_width=100.0 * new / longest,
            )
        )
    return Reading(
        columns=columns,
        distance=w.percent(min(1.0, shares.distance)),
        bars=tuple(bars),
        others=len(texts) - len(bars),
    )
