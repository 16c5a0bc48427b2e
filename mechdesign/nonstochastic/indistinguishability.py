"""Indistinguishability: how much the outputs of a query shift when one individual's value changes.

A query is epsilon-indistinguishable if, for every individual i and all values x and x', at most
2^epsilon outputs are possible under one of them and not under the other (Farokhi 2020, Definition
5; **bits**). Theorem 5 of that paper, for linear queries and uniform quantisers, is true but loose;
`linear_levels` has the tight count. Domains are product ranges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.boxes import read_interval
from mechdesign.nonstochastic.output_budgets import outputs_allowed
from mechdesign.nonstochastic.queries import check_whole

LARGEST_LEVELS = 1_000_000
"""Levels of a quantiser whose shifts are enumerated exactly: some seconds."""


@dataclass(frozen=True)
class LinearLevels:
    """How many levels a uniform quantiser of a linear query may have.

    `ratio` is w / d: the length of the query's range over the most that one individual moves it.
    """

    levels: int
    ratio: Fraction


def _influences(coefficients: Iterable[Any], bounds: Any) -> list[Fraction]:
    """|c_i| (hi_i - lo_i) for every individual; one pair of bounds serves all."""
    weights = [fraction_of(c) for c in coefficients]
    if not weights:
        raise InputError("a linear query needs at least one coefficient")
    pairs: Sequence[Any] = list(bounds)
    # Two numbers are one pair for all; two pairs are those of two individuals.
    if len(pairs) == 2 and not isinstance(pairs[0], tuple | list):
        pairs = [pairs] * len(weights)
    if len(pairs) != len(weights):
        raise InputError(
            f"bounds must be one (low, high) pair or {len(weights)} of them, not {len(pairs)}"
        )
    influences: list[Fraction] = []
    for k, (weight, pair) in enumerate(zip(weights, pairs, strict=True)):
        low, high = read_interval(f"bounds {k + 1}", pair)
        influences.append(abs(weight) * (high - low))
    if not any(influences):
        raise InputError(
            "the query is constant on these bounds: no individual can change it"
        )
    return influences


def linear_levels(
    epsilon: object, coefficients: Iterable[Any], bounds: Any
) -> LinearLevels:
    """The most levels by formula, for c.x on a product of intervals and equal cells over its range.

    With t = q d / w, at most floor(t) + ceil(t) - 1 outputs differ, so q < (w/d)
    (2^(epsilon-1) + 1) for an integer epsilon >= 1. For boxes only: on finite domains even fewer
    levels can break the budget.

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
    half, odd = divmod(outputs_allowed(epsilon), 2)
    # Even budgets 2k allow t < k + 1, odd ones 2k + 1 allow t <= k + 1.
    limit = ratio * (half + 1)
    levels = math.floor(limit) if odd else math.ceil(limit) - 1
    return LinearLevels(max(levels, 1), ratio)


def box_difference(coefficients: Iterable[Any], bounds: Any, levels: int) -> int:
    """The exact largest difference for c.x on a product of intervals and `levels` equal cells.

    As x_i varies, the query's range given x_i is an interval of length w - d_i that slides over
    [0, d_i] (from the minimum of the query). The cells it touches change at finitely many
    places; all of them are compared. It equals that count unless one individual dominates, so
    that the interval is short and leaves its old cells altogether.
    """
    if check_whole("levels", levels) > LARGEST_LEVELS:
        raise InputError(f"levels ({levels}) must be from 1 to {LARGEST_LEVELS}")
    influences = _influences(coefficients, bounds)
    width = sum(influences, Fraction(0))
    return max(_slide(levels * d / width, levels) for d in set(influences))


def _slide(shift: Fraction, levels: int) -> int:
    """Largest symmetric difference of the cells that [a, a + levels - shift] touches as a goes from
    0 to shift.
    """
    length = levels - shift
    landings = (k - length for k in range(math.ceil(length), levels + 1))
    starts = sorted({shift, *map(Fraction, range(math.floor(shift) + 1)), *landings})
    spans = sorted(
        {
            (min(math.floor(a), levels - 1), min(math.floor(a + length), levels - 1))
            for a in starts
        }
    )
    counts = [last - first + 1 for first, last in spans]
    largest_after = [*itertools.accumulate(reversed(counts), max)][::-1]
    best, reach = 0, 0
    for k, (first, last) in enumerate(spans):
        while reach < len(spans) and spans[reach][0] <= last:
            reach += 1
        # The farthest span that still shares a cell differs most among those that do.
        best = max(best, spans[reach - 1][0] - first + spans[reach - 1][1] - last)
        if reach < len(spans):
            best = max(best, counts[k] + largest_after[reach])
    return best


def levels_record(
    coefficients: Sequence[Any],
    bounds: Any,
    *,
    epsilon: object = None,
    levels: int | None = None,
) -> dict[str, Any]:
    """The most levels within a budget, or the outputs that one individual shifts at some levels.

    Parameters
    ----------
    coefficients, bounds
        As for `linear_levels`.
    epsilon
        Budget in bits; the levels are then the most that it allows.
    levels
        Levels to measure, if no budget is given.

    Returns
    -------
    A record with levels, the ratio w / d, the outputs that differ at most, their logarithm
    (`epsilon`, the smallest budget that these levels keep, in bits) and the levels that Theorem 5
    grants as it is printed (None without a budget).
    """
    published = None
    if epsilon is not None:
        choice = linear_levels(epsilon, coefficients, bounds)
        levels = choice.levels
        budget = float(fraction_of(epsilon))
        published = max(1, math.floor(choice.ratio * Fraction(2 ** (budget - 1) - 1)))
    else:
        choice = linear_levels(0, coefficients, bounds)
    if levels is None:
        raise InputError("a budget (epsilon) or a number of levels is needed")
    differing = box_difference(coefficients, bounds, levels)
    return {
        "individuals": len(coefficients),
        "levels": levels,
        "ratio": float(choice.ratio),
        "outputs_that_differ": differing,
        "epsilon": math.log2(differing) if differing else 0.0,
        "budget": None if epsilon is None else float(fraction_of(epsilon)),
        "published_levels": published,
    }


def averaging_leakage(n: int, levels: int) -> float:
    """L0(X;Y) of the quantised mean of n values in [0, 1], X being all of them (nats).

    The end cells are the smallest: their volume is that of {sum < n / levels} in the cube, an exact
    rational (Irwin 1927, Hall 1927).
    """
    reach = Fraction(check_whole("n", n), check_whole("levels", levels))
    volume = sum(
        (
            (-1) ** k * math.comb(n, k) * (reach - k) ** n
            for k in range(math.floor(reach) + 1)
        ),
        Fraction(0),
    )
    volume /= math.factorial(n)
    return math.log(volume.denominator) - math.log(volume.numerator)


def individual_leakage(n: int, levels: int) -> float:
    """L0(X_i;Y) of the quantised mean of n values in [0, 1], for one of them (nats).

    It is max(0, ln(q / n)): in an end cell each value lies in [0, min(1, n / levels)], and no other
    cell tells more.
    """
    return max(0.0, math.log(check_whole("levels", levels) / check_whole("n", n)))
