"""Indistinguishability: how much the outputs of a query shift when one individual's value changes.

A query is epsilon-indistinguishable if, for every individual i and all values x and x', at most
2^epsilon outputs are possible under one of them and not under the other (Farokhi 2020, Definition
5; **bits**). Theorem 5 of that paper, for linear queries and uniform quantisers, is true but loose;
`linear_levels` has the tight count. Domains are product ranges.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of, quoted
from mechdesign.nonstochastic.boxes import read_interval
from mechdesign.nonstochastic.levels import allowance, outputs_allowed
from mechdesign.nonstochastic.queries import sumset
from mechdesign.nonstochastic.ranges import JointRange

LARGEST_LEVELS = 1_000_000
"""Levels of a quantiser whose shifts are enumerated exactly: some seconds."""

CELLS_AT_A_TIME = 1 << 22
"""Entries of the table of pairwise differences held at a time: 32 MB, and a few copies."""


@dataclass(frozen=True)
class Difference:
    """The largest symmetric difference of two conditional ranges [[Y|x]] and [[Y|x']]."""

    size: int
    pair: tuple[Hashable, Hashable]


def largest_difference(joint: JointRange) -> Difference:
    """The pair of values of X whose ranges of outputs differ most, exactly (quadratic in |X|)."""
    table = joint.incidence.astype(np.int64)
    best = Difference(0, (joint.x_symbols[0], joint.x_symbols[0]))
    block = max(1, CELLS_AT_A_TIME // joint.shape[0])
    for start in range(0, joint.shape[0], block):
        shared = (table[start : start + block] @ table.T).toarray()
        sizes = joint.y_sizes[start : start + block, None] + joint.y_sizes[None, :] - 2 * shared
        i, j = np.unravel_index(int(sizes.argmax()), sizes.shape)
        if sizes[i, j] > best.size:
            best = Difference(int(sizes[i, j]), (joint.x_symbols[start + int(i)], joint.x_symbols[int(j)]))
    return best


def is_indistinguishable(joint: JointRange, epsilon: object) -> bool:
    """Whether every pair of values of X differs in at most 2^epsilon outputs (epsilon in bits)."""
    return largest_difference(joint).size <= outputs_allowed(epsilon)


@dataclass(frozen=True)
class LinearLevels:
    """How many levels a uniform quantiser of a linear query may have.

    Attributes
    ----------
    levels : int
        The most that `outputs` allows by the formula; 1 (nothing released) is always allowed.
    outputs : int
        floor(2^epsilon), the differing outputs allowed.
    ratio : Fraction
        w / d: range of the query over the largest influence of one individual.
    notice : str
        Empty, or how epsilon was rounded down.
    """

    levels: int
    outputs: int
    ratio: Fraction
    notice: str


def _influences(coefficients: Iterable[Any], bounds: Any) -> list[Fraction]:
    """|c_i| (hi_i - lo_i) for every individual; one pair of bounds serves all."""
    weights = [fraction_of(c) for c in coefficients]
    if not weights:
        raise InputError("a linear query needs at least one coefficient")
    given: Sequence[Any] = list(bounds)
    each = [given] * len(weights) if len(given) == 2 and not isinstance(given[0], tuple | list) else given
    if len(each) != len(weights):
        raise InputError(f"bounds must be one (low, high) pair or {len(weights)} of them, not {len(each)}")
    widths = [high - low for low, high in (read_interval(f"bounds {k + 1}", b) for k, b in enumerate(each))]
    influences = [abs(c) * width for c, width in zip(weights, widths, strict=True)]
    if not any(influences):
        raise InputError("the query is constant on these bounds: no individual can change it")
    return influences


def linear_levels(epsilon: object, coefficients: Iterable[Any], bounds: Any) -> LinearLevels:
    """The most levels by formula, for c.x on a product of intervals and equal cells over its range.

    With t = q d / w, at most floor(t) + ceil(t) - 1 outputs differ (`shift_bound`), so q < (w/d)
    (2^(epsilon-1) + 1) for an integer epsilon >= 1. For boxes only: on finite domains even fewer
    levels can break the budget (`finite_difference` computes those exactly).

    Parameters
    ----------
    epsilon
        Budget in bits, zero or more.
    coefficients
        c, one for each individual.
    bounds
        One (low, high) pair for everybody, or one for each individual.

    Raises
    ------
    InputError
        On bounds that are reversed or not finite, a constant query or an unusable epsilon.
    """
    influences = _influences(coefficients, bounds)
    ratio = sum(influences, Fraction(0)) / max(influences)
    allowed = allowance(epsilon)
    half, odd = divmod(allowed.outputs, 2)
    # Even budgets 2k allow t < k + 1, odd ones 2k + 1 allow t <= k + 1.
    limit = ratio * (half + 1)
    levels = math.floor(limit) if odd else math.ceil(limit) - 1
    return LinearLevels(max(levels, 1), allowed.outputs, ratio, allowed.notice)


def shift_bound(levels: int, ratio: Fraction) -> int:
    """The most outputs that can differ: floor(t) + ceil(t) - 1 with t = levels / ratio; 0 below t = 1."""
    shift = Fraction(levels) / ratio
    return 0 if levels == 1 else max(math.floor(shift) + math.ceil(shift) - 1, 0)


def box_difference(coefficients: Iterable[Any], bounds: Any, levels: int) -> int:
    """The exact largest difference for c.x on a product of intervals and `levels` equal cells.

    As x_i varies, the query's range given x_i is an interval of length w - d_i that slides over
    [0, d_i] (from the minimum of the query). The cells it touches change at finitely many
    places; all of them are compared. It equals `shift_bound` unless one individual dominates, so
    that the interval is short and leaves its old cells altogether.
    """
    if levels < 1 or levels > LARGEST_LEVELS:
        raise InputError(f"levels ({levels}) must be from 1 to {LARGEST_LEVELS}")
    influences = _influences(coefficients, bounds)
    width = sum(influences, Fraction(0))
    return max(_slide(levels * d / width, levels) for d in set(influences))


def _slide(shift: Fraction, levels: int) -> int:
    """Largest symmetric difference of the cells touched by [a, a + levels - shift], 0 <= a <= shift."""
    length = levels - shift
    whole = range(math.floor(shift) + 1)
    landings = range(math.ceil(length), levels + 1)
    starts = sorted({Fraction(0), shift, *map(Fraction, whole), *(k - length for k in landings)})
    spans = sorted(
        {(min(math.floor(a), levels - 1), min(math.floor(a + length), levels - 1)) for a in starts}
    )
    counts = [last - first + 1 for first, last in spans]
    largest_after = [0] * (len(spans) + 1)
    for k in range(len(spans) - 1, -1, -1):
        largest_after[k] = max(counts[k], largest_after[k + 1])
    best, reach = 0, 0
    for k, (first, last) in enumerate(spans):
        while reach < len(spans) and spans[reach][0] <= last:
            reach += 1
        # The farthest span that still shares a cell differs most among those that do.
        best = max(best, spans[reach - 1][0] - first + spans[reach - 1][1] - last)
        if reach < len(spans):
            best = max(best, counts[k] + largest_after[reach])
    return best


def finite_difference(
    coefficients: Iterable[Any], domains: Sequence[Iterable[Any]], levels: int
) -> tuple[int, Difference]:
    """The exact largest difference for c.x on a product of finite domains, and whose it is.

    The quantiser has `levels` equal cells over the range of the query, the last one closed. Sums
    over the other individuals are formed as sets, so n may be large.

    Returns
    -------
    tuple
        The number of the individual (from 0), and the largest difference with its two values.

    Raises
    ------
    InputError
        On empty domains, a constant query, or sums too many to list.
    """
    weights = [fraction_of(c) for c in coefficients]
    values = [sorted({fraction_of(v) for v in domain}) for domain in domains]
    if not weights or len(weights) != len(values):
        raise InputError(f"give one domain for each coefficient, not {len(values)} for {len(weights)}")
    for k, domain in enumerate(values):
        if not domain:
            raise InputError(f"domain {k + 1} is empty; a range needs at least one value")
    if levels < 1:
        raise InputError(f"levels ({levels}) must be at least 1")
    terms = [[c * v for v in domain] for c, domain in zip(weights, values, strict=True)]
    scale = math.lcm(*(term.denominator for part in terms for term in part))
    whole = [[int(term * scale) for term in part] for part in terms]
    low, high = sum(map(min, whole)), sum(map(max, whole))
    if low == high:
        raise InputError("the query is constant on these domains: no individual can change it")
    if levels * (high - low) >= 2**62:
        raise InputError(
            f"coefficients times {levels} levels do not fit 64-bit integers; use rounder numbers"
        )
    best = (0, Difference(0, (values[0][0], values[0][0])))
    seen: set[tuple[int, ...]] = set()
    for k, part in enumerate(whole):
        if tuple(part) in seen:
            continue
        seen.add(tuple(part))
        others = (
            sumset([(other, 1) for j, other in enumerate(whole) if j != k]) if len(whole) > 1 else np.zeros(1)
        )
        if others is None:
            raise InputError(f"the query has too many values without individual {k + 1}; use rounder numbers")
        rows: list[Hashable] = []
        cells: list[int] = []
        for value, term in zip(values[k], part, strict=True):
            reached = np.unique(
                np.minimum((others.astype(np.int64) + (term - low)) * levels // (high - low), levels - 1)
            )
            rows.extend([value] * reached.size)
            cells.extend(reached.tolist())
        found = largest_difference(JointRange.from_columns(rows, cells))
        if found.size > best[1].size:
            best = (k, found)
    return best


def averaging_leakage(n: int, levels: int) -> float:
    """L0(X;Y) of the quantised mean of n values in [0, 1], X being all of them (nats).

    The end cells are the smallest: their volume is that of {sum < n / levels} in the cube, an exact
    rational (Irwin 1927, Hall 1927).
    """
    _check_counts(n, levels)
    reach = Fraction(n, levels)
    volume = sum(
        ((-1) ** k * math.comb(n, k) * (reach - k) ** n for k in range(math.floor(reach) + 1)), Fraction(0)
    )
    volume /= math.factorial(n)
    return math.log(volume.denominator) - math.log(volume.numerator)


def individual_leakage(n: int, levels: int) -> float:
    """L0(X_i;Y) of the quantised mean of n values in [0, 1], for one of them: max(0, ln(q/n)) (nats).

    In an end cell each value lies in [0, min(1, n / levels)]; no other cell tells more.
    """
    _check_counts(n, levels)
    return max(0.0, math.log(levels / n))


def _check_counts(n: int, levels: int) -> None:
    for name, value in (("n", n), ("levels", levels)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{name} ({quoted(value)}) must be a positive integer")
