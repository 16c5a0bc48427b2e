"""Where bins begin: equal widths, equal shares of the records, edges as given, or the least distance to the medians."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of_text, listed, quoted
from mechdesign.tables.bins import (
    DAY,
    MOST_VALUES,
    WHAT,
    Bins,
    Kind,
    kind_of,
    number_of,
    text_of_number,
)

MOST_BINS = 100_000
"""Bins of a column; of more the labels alone would take longer to read than the records."""

MOST_PLACES = 4096
"""Places that the dynamic program tries: of more values, those at equal shares of the records."""

FEW_ROWS = 16
"""Rows of which all columns are compared at once: fewer calls."""

QUANTILES, AUTO = "quantiles:", "auto"

UNITS = {"w": 7 * DAY, "d": DAY, "h": 3600, "min": 60, "s": 1}

_WIDTH = re.compile(r"(\d+(?:\.\d+)?)(w|d|h|min|s)", re.ASCII)

Numbers = list[tuple[Fraction, int]]
"""Different numbers, ascending, with their masses."""

Floats, Places = NDArray[np.float64], NDArray[np.int64]


def spec_of(given: Any) -> str:
    """What `--bin` would say for an argument of Python: a width, ``quantiles:N``, ``auto``, or a sequence of edges."""
    if isinstance(given, str):
        return given
    if isinstance(given, Iterable):
        return ",".join(map(str, cast("Iterable[Any]", given)))
    return (
        f"{given.total_seconds()}s" if hasattr(given, "total_seconds") else str(given)
    )


def bins_for(column: str, spec: str | Bins, cells: Sequence[tuple[str, int]]) -> Bins:
    """The bins that `spec` asks for, of a column with these cells and what each of them weighs; or those given.

    Raises
    ------
    InputError
        If a cell is no number or lies outside the edges, or `spec` says nothing that goes with the column.
    """
    name = f"the column {quoted(column)}"
    given = spec if isinstance(spec, Bins) else None
    kind = given.kind if given else kind_of([text for text, _ in cells], most=True)
    if kind is None:
        raise InputError(
            f"{name} has no number, date or time in it, and --bin sorts numbers into bins"
        )
    found = [(number_of(text, kind), mass) for text, mass in cells]
    if bad := [value for value, _ in found].count(None):
        raise InputError(
            f"{name}: {bad} different cell(s) are no {WHAT[kind]}; correct them, or leave --bin out"
        )
    weights: Counter[Fraction] = Counter()
    for value, mass in cast("Numbers", found):
        weights[value] += mass
    numbers = sorted(weights.items())
    cuts = given.cuts if given else _edges(name, cast("str", spec), numbers, kind)
    dates = kind == "time" and not any(cut % DAY for cut in cuts if math.isfinite(cut))
    try:
        edges = tuple(text_of_number(cut, "date" if dates else kind) for cut in cuts)
    except OverflowError:
        raise InputError(
            f"{name}: the bins would reach beyond the years 1 to 9999; give edges, the last of them inf"
        ) from None
    bins = Bins(kind=kind, edges=edges)
    places = [bins.bin_at(value) for value, _ in numbers]
    if outside := sum(k < 0 for k in places):
        raise InputError(
            f"{name} has {outside} different value(s) outside the edges {edges[0]} to {edges[-1]}; add an edge below "
            "or above them, or -inf and inf"
        )
    inside: list[Numbers] = [[] for _ in range(len(bins))]
    for k, pair in zip(places, numbers, strict=True):
        inside[k].append(pair)
    kept = [_thinned(part) for part in inside]
    return Bins(
        kind=kind,
        edges=edges,
        values=tuple(
            tuple(text_of_number(value, kind) for value, _ in part) for part in kept
        ),
        counts=tuple(tuple(mass for _, mass in part) for part in kept),
    )


def _edges(
    name: str, spec: str, numbers: Numbers, kind: Kind
) -> Sequence[Fraction | float]:
    if spec == AUTO:
        raise InputError(
            "--bin auto chooses the bins for one budget, which only `design` has; say auto:N for N bins"
        )
    if spec.startswith((QUANTILES, f"{AUTO}:")):
        word, _, typed = spec.partition(":")
        if not typed.isdecimal() or not 2 <= (count := int(typed)) <= MOST_BINS:
            raise InputError(
                f"--bin {quoted(spec)}: the number of bins must be a whole number from 2 to {MOST_BINS}"
            )
        splits = (
            least_distance(numbers, count)[-1][0]
            if word == AUTO
            else quantile_splits(numbers, count)
        )
        # With open ends no bin tells the smallest or largest value; and no edge is longer than it must be.
        return [
            -math.inf,
            *(_roundest(numbers[k - 1][0], numbers[k][0], kind) for k in splits),
            math.inf,
        ]
    if "," in spec:
        return _given(spec, kind, name)
    width = _width(spec, kind, name)
    first, last = (
        math.floor(numbers[0][0] / width),
        math.floor(numbers[-1][0] / width) + 1,
    )
    if last - first > MOST_BINS:
        raise InputError(
            f"--bin {quoted(spec)} makes more than {MOST_BINS:,} bins of {name}; give a larger width"
        )
    edges = [k * width for k in range(first, last + 1)]
    return [*edges[:-1], min(edges[-1], Fraction(DAY))] if kind == "clock" else edges


def _given(spec: str, kind: Kind, name: str) -> list[Fraction | float]:
    edges: list[Fraction | float] = []
    for text in spec.split(","):
        value = (
            float(text) if text.strip() in ("-inf", "inf") else number_of(text, kind)
        )
        if value is None:
            raise InputError(
                f"--bin: the edge {quoted(text)} is no {WHAT[kind]}, which {name} holds; nor -inf or inf"
            )
        if edges and value <= edges[-1]:
            raise InputError(
                f"--bin: the edges must ascend, but {quoted(text)} does not follow what stands before it"
            )
        edges.append(value)
    return edges


def _width(spec: str, kind: Kind, name: str) -> Fraction:
    found = _WIDTH.fullmatch(spec)
    try:
        width = (
            Fraction(found[1]) * UNITS[found[2]] if found else fraction_of_text(spec)
        )
    except InputError:
        raise InputError(
            f"--bin {quoted(spec)} must be a width (10, 0.5, 7d, 1h), quantiles:N, auto, auto:N, or edges with commas"
        ) from None
    if width <= 0:
        raise InputError(f"--bin {quoted(spec)}: the width must be positive")
    if (kind == "number") != (found is None):
        wanted = (
            "a plain number, such as 10"
            if found
            else "a time, such as 7d, 1h, 15min or 30s"
        )
        raise InputError(
            f"--bin {quoted(spec)}: {name} holds a {WHAT[kind]} in each cell, so its width is {wanted}"
        )
    return width


def _roundest(low: Fraction, high: Fraction, kind: Kind) -> Fraction:
    """The multiple of the largest power of ten (or day, hour, ..) that lies above `low` and at most at `high`."""
    steps = [] if kind == "number" else [Fraction(size) for size in UNITS.values()]
    top = 0 if steps else len(str(int(max(abs(low), abs(high), 1))))
    for step in itertools.chain(
        steps, (Fraction(10) ** k for k in itertools.count(top, -1))
    ):
        found = math.floor(high / step) * step
        if found > low:
            return found
    raise AssertionError


def quantile_splits(numbers: Numbers, bins: int) -> list[int]:
    """Splits nearest to equal shares of the mass; fewer than asked for where many records have one value."""
    sums: Floats = np.cumsum(np.array([float(mass) for _, mass in numbers]))
    wanted: Floats = sums[-1] * np.arange(1, bins) / bins
    after: Places = np.clip(np.searchsorted(sums, wanted), 1, len(sums) - 1)
    nearer: list[int] = np.where(
        wanted - sums[after - 1] <= sums[after] - wanted, after, after + 1
    ).tolist()
    return sorted({k for k in nearer if k < len(sums)})


def least_distance(numbers: Numbers, most: int) -> list[tuple[list[int], float]]:
    """For 1 to `most` bins the splits of least total distance to the bins' medians, and this distance by record.

    Dynamic programming over contiguous bins. The best last split never moves down when values are added (the cost of
    an interval satisfies the quadrangle inequality), so each of the log2(n) rounds of a divide and conquer tries about
    2 n places, all at once.
    """
    size = len(numbers)
    inner = (
        range(1, size) if size <= MOST_PLACES else quantile_splits(numbers, MOST_PLACES)
    )
    places = np.array([0, *inner, size])
    values = np.array([float(value - numbers[0][0]) for value, _ in numbers])
    weights = np.array([float(mass) for _, mass in numbers])
    weights /= weights.sum()
    mass, moment = (
        np.concatenate([[0.0], np.cumsum(part)]) for part in (weights, weights * values)
    )

    def cost(end: Places, start: Places) -> Floats:
        first, end = places[start], places[end]
        half = (mass[first] + mass[end]) / 2.0
        middle = np.clip(
            np.searchsorted(mass, half) - 1, first, np.maximum(end - 1, first)
        )
        middle = np.minimum(middle, len(values) - 1)  # of an empty interval at the end
        above = (
            moment[end] - moment[middle] - values[middle] * (mass[end] - mass[middle])
        )
        below = (
            values[middle] * (mass[middle] - mass[first])
            - moment[middle]
            + moment[first]
        )
        return np.where(end > first, np.maximum(above + below, 0.0), 0.0)

    cells = least_cells(cost, len(places) - 1, most)
    return [(places[edges[1:-1]].tolist(), distance) for edges, distance in cells]


def least_cells(
    cost: Callable[[Places, Places], Floats], size: int, most: int
) -> list[tuple[list[int], float]]:
    """For 1 to `most` cells of things 0 to `size` the edges of least total cost(end, start), and this cost."""
    ends = np.arange(1, size + 1)
    best, before = np.append(0, cost(ends, 0 * ends)), list[Places]()
    found: list[tuple[list[int], float]] = []
    for cells in range(1, min(most, size) + 1):
        if cells > 1:

            def total(end: Places, start: Places, best: Floats = best) -> Floats:
                return best[start] + cost(end, start)

            before.append(np.append(0, row_minima(total, ends, 0 * ends, ends - 1)))
            best = np.append(0, total(ends, before[-1][1:]))
        edges = [size]
        for starts in reversed(before):
            edges.append(int(starts[edges[-1]]))
        found.append((sorted({0, *edges}), float(best[-1])))
    return found


def row_minima(
    value: Callable[[Places, Places], Floats], rows: Places, first: Places, last: Places
) -> Places:
    """For each row the first column of least value(row, column) from `first` to `last`; it never falls down the rows.

    The middle row limits the columns of the rows above and below it; all middles of a depth are looked at together.
    """
    if rows.size < FEW_ROWS:
        columns: Places = np.arange(int(first[0]), int(last[-1]) + 1)
        inside: NDArray[np.bool_] = (columns >= first[:, None]) & (
            columns <= last[:, None]
        )
        return first[0] + np.where(
            inside, value(rows[:, None], columns), np.inf
        ).argmin(axis=1)
    place, step = last.copy(), 1 << (rows.size.bit_length() - 1)
    while step:
        now = np.arange(step - 1, rows.size, 2 * step)
        low, high = first[now], last[now]
        low[1:] = np.maximum(low[1:], place[now[1:] - step])
        below = now + step < rows.size
        high[below] = np.minimum(high[below], place[now[below] + step])
        lengths = high - low + 1
        starts = np.cumsum(lengths) - lengths
        columns: Places = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(
            starts - low, lengths
        )
        found = value(np.repeat(rows[now], lengths), columns)
        least = np.flatnonzero(
            found == np.repeat(np.minimum.reduceat(found, starts), lengths)
        )
        place[now] = columns[least[np.searchsorted(least, starts)]]
        step >>= 1
    return place


def _thinned(part: Numbers) -> Numbers:
    """The values of a bin with their masses; of very many, those in the middle of equal shares of the mass."""
    if len(part) <= MOST_VALUES:
        divisor = math.gcd(*(mass for _, mass in part)) or 1
        return [(value, mass // divisor) for value, mass in part]
    sums = list(itertools.accumulate(mass for _, mass in part))
    middles = (
        sums[-1] * (2 * share + 1) // (2 * MOST_VALUES) for share in range(MOST_VALUES)
    )
    return list(
        Counter(part[bisect_right(sums, middle)][0] for middle in middles).items()
    )


def specs_by_column(given: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Specifications (or `Bins`) by column; a bare one belongs to the only useful column."""
    if isinstance(given, tuple) and any(
        isinstance(each, Bins) for each in cast("tuple[Any, ...]", given)
    ):
        return dict(zip(columns, cast("tuple[Any, ...]", given), strict=True))
    if not isinstance(given, Mapping):
        if len(columns) > 1:
            raise InputError(
                f"several columns are crossed: say which one is binned (--bin {columns[0]}=WIDTH), for each that is"
            )
        return {columns[0]: given}
    chosen = dict(cast("Mapping[str, Any]", given))
    for name in chosen.keys() - {*columns}:
        raise InputError(
            f"--bin names the column {quoted(name)}, which is not useful: {listed(columns)}"
        )
    return chosen
