"""Bins from a user's specification: a width, equal shares of the records, edges, or medians.

`specs_by_column` gives each column its specification, and `bins_for` makes the bins of one column:
the kind and the exact numbers of its cells, then the edges, then the values in each bin with their
masses. For example, the width ``10`` and cells from 17 to 90 give the edges 10, 20, .., 100.

Edges are multiples of a width, or the roundest numbers between two values with infinite ends, so
that they say little of single records: an end is infinite, or shows the smallest or largest value
up to a width. They still depend on the records; only edges that the user wrote do not.

*Splits* of ordered numbers have equal shares of the records, or the least distance to medians.
A split k separates the numbers before position k from those at k and after it: of the numbers 17,
25, 40, the split 2 makes the bins {17, 25} and {40}.

`quantile_splits` takes the splits nearest to equal shares. `least_distance` minimises the sum of |v
- median of the bin of v| by dynamic programming over the number of bins (`least_cells`); each of
its steps is a search for the least entry of every row of a matrix, whose places never move down
(`row_minima`).
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import HOW_WRITTEN, fraction_of_text
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.tables.bins import MOST_VALUES, Bins
from mechdesign.tables.cell_values import (
    DAY,
    WHAT,
    Kind,
    kind_of,
    number_of,
    text_of_number,
)

# ------------------------------------------------------------------------------- splits

MOST_PLACES = 4096
"""Most splits that the dynamic program tries. Of more values, those at equal shares are tried."""

FEW_ROWS = 16
"""Number of rows below which all columns of all rows are compared at once, which saves calls."""

Numbers: TypeAlias = list[tuple[Fraction, int]]
"""Different numbers, ascending, with their masses."""

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

Cost: TypeAlias = Callable[[Places, Places], Floats]
"""Elementwise values of two arrays of positions, which broadcast."""


def quantile_splits(numbers: Numbers, bins: int) -> list[int]:
    """The splits nearest to equal shares of the mass.

    There are fewer than `bins` - 1 where many records have one value, and none of a single number.
    """
    if len(numbers) < 2:
        return []
    sums: Floats = np.cumsum(np.array([float(mass) for _, mass in numbers]))
    targets: Floats = sums[-1] * np.arange(1, bins) / bins
    # The first number with which the share is reached: the split is before it or after it.
    after: Places = np.clip(np.searchsorted(sums, targets), 1, len(sums) - 1)
    missing = targets - sums[after - 1]
    excess = sums[after] - targets
    nearest: list[int] = np.where(missing <= excess, after, after + 1).tolist()
    return sorted({k for k in nearest if k < len(sums)})


class _DistanceToMedian:
    """The total distance of the numbers of an interval to its lower median, by prefix sums."""

    def __init__(self, numbers: Numbers, places: Places) -> None:
        self._places = places
        # Differences are exact before they are rounded, so a large offset loses no digits.
        self._values = np.array([float(value - numbers[0][0]) for value, _ in numbers])
        weights = np.array([float(mass) for _, mass in numbers])
        # Shares, so that the distance is one per record.
        weights /= weights.sum()
        self._mass = np.concatenate([[0.0], np.cumsum(weights)])
        self._moment = np.concatenate([[0.0], np.cumsum(weights * self._values)])

    def __call__(self, end: Places, start: Places) -> Floats:
        """The distance of the intervals from ``places[start]`` to ``places[end]``."""
        values = self._values
        mass = self._mass
        moment = self._moment
        first = self._places[start]
        last = self._places[end]
        # The lower median of the interval: the first value at which half of its mass is reached.
        half = (mass[first] + mass[last]) / 2.0
        middle = np.searchsorted(mass, half) - 1
        middle = np.clip(middle, first, np.maximum(last - 1, first))
        # An empty interval at the end has no median.
        middle = np.minimum(middle, len(values) - 1)
        mass_above = mass[last] - mass[middle]
        mass_below = mass[middle] - mass[first]
        # sum |v - m| is the moment of the values above m less m times their mass, and the
        # reverse below.
        above = moment[last] - moment[middle] - values[middle] * mass_above
        below = values[middle] * mass_below - moment[middle] + moment[first]
        # Rounding can make the distance of equal values negative.
        return np.where(last > first, np.maximum(above + below, 0.0), 0.0)


def least_distance(numbers: Numbers, most: int) -> list[tuple[list[int], float]]:
    """For 1 to `most` bins the splits of least total distance to the bins' medians.

    Each comes with this distance per record.

    Dynamic programming over contiguous bins. The cost of an interval satisfies the quadrangle
    inequality, so the best last split never moves down when values are added. A divide and conquer
    of log2(n) rounds therefore tries about 2 n splits in each round, all at once.
    """
    size = len(numbers)
    if size <= MOST_PLACES:
        inner = list(range(1, size))
    else:
        inner = quantile_splits(numbers, MOST_PLACES)
    places = np.array([0, *inner, size])
    cost = _DistanceToMedian(numbers, places)
    splits: list[tuple[list[int], float]] = []
    for edges, distance in least_cells(cost, len(places) - 1, most):
        splits.append((places[edges[1:-1]].tolist(), distance))
    return splits


def least_cells(cost: Cost, size: int, most: int) -> list[tuple[list[int], float]]:
    """For 1 to `most` cells of the things 0 to `size` the edges of least total cost.

    Parameters
    ----------
    cost : callable
        cost(end, start) of a cell, which must satisfy the quadrangle inequality.
    size : int
        The number of things.
    most : int
        The largest number of cells.

    Returns
    -------
    list of (edges, cost)
        By the number of cells; the edges include 0 and `size`.
    """
    ends = np.arange(1, size + 1)
    starts_of_all = 0 * ends
    # best[e] is the least cost of things 0 to e in the current number of cells.
    best = np.append(0, cost(ends, starts_of_all))
    # last_starts[c][e] is where the last of c + 2 cells starts that end at e.
    last_starts: list[Places] = []
    solutions: list[tuple[list[int], float]] = []
    for cells in range(1, min(most, size) + 1):
        if cells > 1:

            def total(end: Places, start: Places, best: Floats = best) -> Floats:
                return best[start] + cost(end, start)

            # best_c(e) = min over start < e of best_{c-1}(start) + cost(start, e). By the
            # quadrangle inequality the minimising start grows with e, which `row_minima`
            # needs.
            starts = row_minima(total, ends, starts_of_all, ends - 1)
            last_starts.append(np.append(0, starts))
            best = np.append(0, total(ends, starts))
        solutions.append((_edges(last_starts, size), float(best[-1])))
    return solutions


def _edges(last_starts: list[Places], size: int) -> list[int]:
    """The edges of the best cells, from the last cell to the first."""
    edges = [size]
    for starts in reversed(last_starts):
        edges.append(int(starts[edges[-1]]))
    return sorted({0, *edges})


def row_minima(value: Cost, rows: Places, first: Places, last: Places) -> Places:
    """For each row the first column of least value(row, column) from `first` to `last`.

    These columns must never fall from one row to the next. So the minimum of a row limits the
    columns of all rows above and below it, and rows are searched by halving, all of one depth
    together: of seven rows first the row 3; then 1 and 5, on their sides of its minimum; then 0, 2,
    4 and 6, between the minima of their neighbours. The ranges of one depth overlap at their ends
    alone, so each of the log2(rows) depths takes no more than about rows + columns values.
    """
    if rows.size < FEW_ROWS:
        return _row_minima_at_once(value, rows, first, last)
    # The column of the minimum of each row, once it is searched. Counted from 1, the rows of a
    # depth are the odd multiples of `step`, and the even ones have been searched before.
    minima = last.copy()
    step = 1 << (rows.size.bit_length() - 1)
    while step:
        middles = np.arange(step - 1, rows.size, 2 * step)
        low = first[middles]
        high = last[middles]
        # The first of the middle rows has no searched row before it, and the last one may have none
        # after it.
        low[1:] = np.maximum(low[1:], minima[middles[1:] - step])
        is_bounded = middles + step < rows.size
        above = minima[middles[is_bounded] + step]
        high[is_bounded] = np.minimum(high[is_bounded], above)
        minima[middles] = _segment_minima(value, rows[middles], low, high)
        step >>= 1
    return minima


def _row_minima_at_once(
    value: Cost, rows: Places, first: Places, last: Places
) -> Places:
    """`row_minima` by comparing every column of every row."""
    columns: Places = np.arange(int(first[0]), int(last[-1]) + 1)
    inside = (columns >= first[:, None]) & (columns <= last[:, None])
    values = np.where(inside, value(rows[:, None], columns), np.inf)
    return first[0] + values.argmin(axis=1)


def _segment_minima(value: Cost, rows: Places, low: Places, high: Places) -> Places:
    """For each row the first column of least value from `low` to `high`.

    The columns of all rows stand one after the other in one flat array.
    """
    lengths = high - low + 1
    starts = np.cumsum(lengths) - lengths
    # Position k of the flat array belongs to the column k - start + low of its row.
    flat: Places = np.arange(int(lengths.sum()), dtype=np.int64)
    columns = flat - np.repeat(starts - low, lengths)
    values = value(np.repeat(rows, lengths), columns)
    minima = np.minimum.reduceat(values, starts)
    # Of equal minima the first one, so that the result does not depend on the grouping of rows.
    at_minimum = np.flatnonzero(values == np.repeat(minima, lengths))
    first_of_row = at_minimum[np.searchsorted(at_minimum, starts)]
    return columns[first_of_row]


# -------------------------------------------------------------------------------- edges

MOST_BINS = 100_000
"""Most bins of a column. The labels of more would take longer to read than the records."""

QUANTILES = "quantiles:"
"""The beginning of a specification of bins with equal shares of the records."""

AUTO = "auto"
"""The specification of bins of least distance to their medians."""

UNITS = {"w": 7 * DAY, "d": DAY, "h": 3600, "min": 60, "s": 1}
"""Seconds of the units of a width of time."""

_DAY_NUMBER = re.compile(r"(1[89]|2[01])\d\d(\d\d)(\d\d)?", re.ASCII)

_WRITTEN_DAY = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}(\b|$)", re.ASCII)
"""The beginning of a day that is written in another way, as 31.1.2023 or 1/31/23 10:15."""

_WIDTH = re.compile(r"(\d+(?:\.\d+)?)(w|d|h|min|s)", re.ASCII)


def bins_for(column: str, spec: str | Bins, cells: Sequence[tuple[str, int]]) -> Bins:
    """Bins with the values of a column in them.

    Parameters
    ----------
    column : str
        The name of the column.
    spec : str or Bins
        A width, ``quantiles:N``, ``auto:N``, edges with commas, or the bins of another table.
    cells : sequence of (str, int)
        The different cells of the column and their masses.

    Raises
    ------
    InputError
        If a cell is no number or lies outside the edges, or `spec` does not fit the column.
    """
    name = f"the column {quoted(column)}"
    kind = spec.kind if isinstance(spec, Bins) else _common_kind(name, cells)
    numbers = _numbers_of_cells(name, cells, kind)

    # The edges of another table stay, and the values become those of this one.
    if isinstance(spec, Bins):
        cuts = spec.cuts
    else:
        cuts = _cuts_of_spec(name, spec, numbers, kind)
    bins = Bins(kind=kind, edges=_edge_texts(name, cuts, kind))

    # Each bin keeps its values, from which numbers are drawn in proportion to their masses.
    values: list[tuple[str, ...]] = []
    masses: list[tuple[int, ...]] = []
    for numbers_of_bin in _numbers_by_bin(name, numbers, bins):
        texts_of_bin: list[str] = []
        masses_of_bin: list[int] = []
        for value, mass in _thinned(numbers_of_bin):
            texts_of_bin.append(text_of_number(value, kind))
            masses_of_bin.append(mass)
        values.append(tuple(texts_of_bin))
        masses.append(tuple(masses_of_bin))
    return Bins(kind=kind, edges=bins.edges, values=tuple(values), counts=tuple(masses))


def specs_by_column(bins: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Specifications (or `Bins`) by column; a single one belongs to the only useful column.

    Parameters
    ----------
    bins : mapping by column, tuple with an entry for each column, or a single specification
        What the user asks for.
    columns : sequence of str
        The useful columns.
    """
    if isinstance(bins, tuple):
        entries = cast("tuple[Any, ...]", bins)
        # The bins of a channel's variable have an entry for each column.
        # A tuple of numbers or texts is one specification: the edges of the only column.
        if any(isinstance(entry, Bins) for entry in entries):
            return dict(zip(columns, entries, strict=True))
    if not isinstance(bins, Mapping):
        if len(columns) > 1:
            raise InputError(
                f"several columns are crossed: say which one is binned (--bin {columns[0]}=WIDTH), "
                "for each that is"
            )
        return {columns[0]: bins}
    specs = dict(cast("Mapping[str, Any]", bins))
    for name in specs:
        if name not in columns:
            raise InputError(
                f"--bin names the column {quoted(name)}, which is not released "
                f"({listed(columns)}); for bins of a secret give the table a column of them"
            )
    return specs


def spec_of(bins: Any) -> str:
    """The text that the command line takes, for an argument of Python.

    `bins` is a number, a timedelta, a text or a sequence of edges.
    """
    if isinstance(bins, str):
        return bins
    if isinstance(bins, timedelta):
        return f"{bins.total_seconds()}s"
    if isinstance(bins, Iterable):
        return ",".join(map(str, cast("Iterable[Any]", bins)))
    return str(bins)


def _common_kind(name: str, cells: Sequence[tuple[str, int]]) -> Kind:
    """The kind of the first cell that has one; bad cells are refused later, with their number."""
    kind = kind_of([text for text, _ in cells], most=True)
    if kind is None:
        remedy = f"; {HOW_WRITTEN}"
        if all(_WRITTEN_DAY.match(text) for text, _ in cells):
            remedy = "; write days as 2023-01-31"
        elif kind_of([text.replace(",", ".") for text, _ in cells], most=True):
            remedy = "; its numbers have a decimal comma: write them with a point"
        raise InputError(
            f"{name} has no number, date or time in it, and --bin sorts numbers into bins{remedy}"
        )
    return kind


def _numbers_of_cells(
    name: str, cells: Sequence[tuple[str, int]], kind: Kind
) -> Numbers:
    """The different numbers of the cells, ascending, with their masses."""
    masses: Counter[Fraction] = Counter()
    bad = 0
    for text, mass in cells:
        value = number_of(text, kind)
        if value is None:
            bad += 1
        else:
            masses[value] += mass
    if bad:
        how = f" ({HOW_WRITTEN})" if kind == "number" else ""
        raise InputError(
            f"{name}: {bad} different cell(s) are no {WHAT[kind]}; correct them{how}, say that "
            "they are empty cells (--missing-codes), or leave --bin out"
        )
    return sorted(masses.items())


def _cuts_of_spec(
    name: str, spec: str, numbers: Numbers, kind: Kind
) -> Sequence[Fraction | float]:
    """The edges that a specification asks for, as numbers."""
    if spec == AUTO:
        raise InputError(
            "--bin auto chooses the bins for one budget, which only `design` has; say auto:N for "
            "N bins"
        )
    if spec.startswith((QUANTILES, f"{AUTO}:")):
        return _cuts_of_count(spec, numbers, kind)
    if "," in spec:
        return _explicit_cuts(spec, kind, name)
    return _cuts_of_width(name, spec, numbers, kind)


def _cuts_of_count(
    spec: str, numbers: Numbers, kind: Kind
) -> Sequence[Fraction | float]:
    """Edges of ``quantiles:N`` and ``auto:N``."""
    method, _, typed = spec.partition(":")
    count = int(typed) if typed.isdecimal() else 0
    if not 2 <= count <= MOST_BINS:
        raise InputError(
            f"--bin {quoted(spec)}: the number of bins must be a whole number from 2 to {MOST_BINS}"
        )
    if method == AUTO:
        # The last solution has the most bins, `count` if there are so many numbers.
        splits, _ = least_distance(numbers, count)[-1]
    else:
        splits = quantile_splits(numbers, count)
    # Infinite ends disclose neither the smallest nor the largest value. For the same reason, and
    # for readers, an edge is the roundest number between its neighbours.
    cuts: list[Fraction | float] = [-math.inf]
    for k in splits:
        below, _ = numbers[k - 1]
        above, _ = numbers[k]
        cuts.append(_roundest(below, above, kind))
    cuts.append(math.inf)
    return cuts


def _roundest(low: Fraction, high: Fraction, kind: Kind) -> Fraction:
    """The roundest number above `low` and at most `high`.

    It is a multiple of the largest possible power of ten, or of the largest possible unit of time.
    For example, it is 40 between 37 and 42, and 37.5 between 37.2 and 37.58.
    """
    if low >= high:
        raise AssertionError("no step has a multiple between equal ends")
    # The first step with a multiple in (low, high] is the largest such step.
    for step in _steps(low, high, kind):
        multiple = math.floor(high / step) * step
        if multiple > low:
            return multiple
    raise AssertionError("the steps never end")


def _steps(low: Fraction, high: Fraction, kind: Kind) -> Iterator[Fraction]:
    """Units of time, then powers of ten, descending without end."""
    power = 0
    if kind == "number":
        # A power of ten above both ends, so that 0 is found first if it lies between them.
        power = len(str(int(max(abs(low), abs(high), 1))))
    else:
        for seconds in UNITS.values():
            yield Fraction(seconds)
    while True:
        yield Fraction(10) ** power
        power -= 1


def _explicit_cuts(spec: str, kind: Kind, name: str) -> list[Fraction | float]:
    """Edges that the user wrote."""
    cuts: list[Fraction | float] = []
    for text in spec.split(","):
        cut: Fraction | float | None
        if text.strip() in ("-inf", "inf"):
            cut = float(text)
        else:
            cut = number_of(text, kind)
        if cut is None:
            raise InputError(
                f"--bin: the edge {quoted(text)} is no {WHAT[kind]}, which {name} holds; nor -inf "
                "or inf"
            )
        if cuts and cut <= cuts[-1]:
            raise InputError(
                f"--bin: the edges must ascend, but {quoted(text)} does not follow what stands "
                "before it"
            )
        cuts.append(cut)
    return cuts


def _cuts_of_width(
    name: str, spec: str, numbers: Numbers, kind: Kind
) -> Sequence[Fraction | float]:
    """Multiples of a width around all numbers."""
    width = _width(spec, kind, name, numbers)
    least, _ = numbers[0]
    largest, _ = numbers[-1]
    # Multiples of the width, not offsets from the smallest value, which the edges would disclose.
    first = math.floor(least / width)
    last = math.floor(largest / width) + 1
    if last - first > MOST_BINS:
        raise InputError(
            f"--bin {quoted(spec)} makes more than {MOST_BINS:,} bins of {name}; give a "
            "larger width"
        )
    cuts = [k * width for k in range(first, last + 1)]
    if kind == "clock":
        # No time of day lies beyond midnight.
        cuts[-1] = min(cuts[-1], Fraction(DAY))
    return cuts


def look_like_days(texts: Iterable[str]) -> bool:
    """Whether all texts are days or months that were written as numbers, as 20230131 or 202301."""
    found: set[int] = set()
    for text in texts:
        parts = _DAY_NUMBER.fullmatch(text)
        if parts is None or not 1 <= int(parts[2]) <= 12:
            return False
        if not 1 <= int(parts[3] or 1) <= 31:
            return False
        found.add(len(text))
    return len(found) == 1


def days_remedy(texts: Iterable[str]) -> str | None:
    """What to do where all texts `look_like_days`; None where they do not."""
    if not look_like_days(texts):
        return None
    return (
        "that look like days or months (20230131 is 70 below 20230201): write them as 2023-01-31, "
        "and widths as times (7d)"
    )


def _width(spec: str, kind: Kind, name: str, numbers: Numbers) -> Fraction:
    """A positive width, in the unit of the column: seconds for dates and times."""
    time = _WIDTH.fullmatch(spec)
    try:
        if time is None:
            width = fraction_of_text(spec)
        else:
            width = Fraction(time[1]) * UNITS[time[2]]
    except InputError:
        raise InputError(
            f"--bin {quoted(spec)} must be a width (10, 0.5, 7d, 1h), quantiles:N, auto, auto:N, "
            "or edges with commas"
        ) from None
    if width <= 0:
        raise InputError(f"--bin {quoted(spec)}: the width must be positive")
    # A width without a unit of time is for numbers, one with a unit for dates and times.
    is_plain = time is None
    if is_plain != (kind == "number"):
        example = "a time, such as 7d, 1h, 15min or 30s"
        if kind == "number":
            example = "a plain number, such as 10"
            remedy = days_remedy(str(value) for value, _ in numbers)
            if remedy is not None:
                raise InputError(f"--bin {quoted(spec)}: {name} holds numbers {remedy}")
        raise InputError(
            f"--bin {quoted(spec)}: {name} holds a {WHAT[kind]} in each cell, so its width is "
            f"{example}"
        )
    return width


def _edge_texts(
    name: str, cuts: Sequence[Fraction | float], kind: Kind
) -> tuple[str, ...]:
    """The edges as texts."""
    # Edges at midnight are written as dates.
    finite = filter(math.isfinite, cuts)
    if kind == "time" and all(cut % DAY == 0 for cut in finite):
        kind = "date"
    try:
        return tuple(text_of_number(cut, kind) for cut in cuts)
    except OverflowError:
        raise InputError(
            f"{name}: the bins would reach beyond the years 1 to 9999; give edges, the last of "
            "them inf"
        ) from None


def _numbers_by_bin(name: str, numbers: Numbers, bins: Bins) -> list[Numbers]:
    """The numbers of every bin; all must have one."""
    parts: list[Numbers] = [[] for _ in range(len(bins))]
    outside = 0
    for value, mass in numbers:
        k = bins.bin_at(value)
        if k < 0:
            # Counted and not shown: an error names no individual's value.
            outside += 1
        else:
            parts[k].append((value, mass))
    if outside:
        raise InputError(
            f"{name} has {outside} different value(s) outside the edges {bins.edges[0]} to "
            f"{bins.edges[-1]}; add an edge below or above them, or -inf and inf"
        )
    return parts


def _thinned(part: Numbers) -> Numbers:
    """The values of a bin with their masses, which are divided by their common divisor.

    Of more than `MOST_VALUES`, those in the middle of equal shares of the mass are kept.
    """
    masses = [mass for _, mass in part]
    if len(part) <= MOST_VALUES:
        # Values are drawn in proportion to the masses, so these are kept in lowest terms.
        divisor = math.gcd(*masses) or 1
        return [(value, mass // divisor) for value, mass in part]
    sums = list(itertools.accumulate(masses))
    # A value may be in the middle of several shares, so the shares of each are counted.
    shares: Counter[Fraction] = Counter()
    # Equal shares k = 0, 1, .. of the mass; the middle of each, in integers, is at
    # (2 k + 1) / (2 MOST_VALUES) of all mass.
    for k in range(MOST_VALUES):
        middle = sums[-1] * (2 * k + 1) // (2 * MOST_VALUES)
        value, _ = part[bisect_right(sums, middle)]
        shares[value] += 1
    return list(shares.items())
