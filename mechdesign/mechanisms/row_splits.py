"""How much of the budgets each level of a tree may use, and in which order the levels come: by trial.

A split is a vector of shares; what a level may use is their running sum. No split is best for every table: the
first level has most symbols to keep at one node, the last ones have many small nodes, and what a level leaves unused
is there for those below it (`row_budgets`). So several are tried on coarse trees, which stop at a larger least mass,
and the best one is refined share by share while there is time.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Split = tuple[float, ...]

COARSE_MASS = 1e-3
"""Least mass of the prefixes of trial trees."""

MOST_ORDERED = 5
"""Levels up to which orders are tried: there are 120 of five."""

STEPS = (1.5, 1.15)
"""Factors by which single shares are moved up and down in the rounds of refinement."""


@dataclass(frozen=True)
class Trial:
    """A split in an order of the levels, and what its tree is worth."""

    order: tuple[int, ...]
    split: Split
    value: float


def cumulative(split: Sequence[float]) -> list[float]:
    """Running sums of the shares, the last one exactly 1."""
    sums = np.cumsum(split) / np.sum(split)
    sums[-1] = 1.0
    return sums.tolist()


def first_splits(count: int) -> list[Split]:
    """Splits that are worth a trial for so many levels."""
    if count == 1:
        return [(1.0,)]
    if count == 2:
        # 0.05 apart: one inner tree takes some milliseconds.
        return [(share / 20, 1.0 - share / 20) for share in range(8, 20)]
    rest = (1.0,) * (count - 1)
    falling = tuple(0.75**k for k in range(count))
    return [(3.0, *rest), (1.0, *rest), (6.0, *rest), (4.0, 2.0, *rest[1:]), falling]


def neighbours(split: Split, factor: float) -> Iterator[Split]:
    """Splits with one share larger or smaller by a factor."""
    for k in range(len(split)):
        for moved in (split[k] * factor, split[k] / factor):
            yield (*split[:k], moved, *split[k + 1 :])


def best_split(
    value_of: Callable[[tuple[int, ...], Split], float],
    count: int,
    *,
    orders: bool,
    end: float,
) -> Trial:
    """The best trial before `end` (of `time.perf_counter`); the first one is always made.

    With `orders` other orders of up to five levels are tried, first with the first split, the best few with all.
    """
    own = tuple(range(count))
    splits = first_splits(count)
    first = Trial(own, splits[0], value_of(own, splits[0]))
    best = first
    order = own
    if orders:
        trials = [first]
        # Half of the time is left for the splits.
        half = time.perf_counter() + (end - time.perf_counter()) / 2
        for other in itertools.permutations(own):
            if time.perf_counter() >= half:
                break
            if other != own:
                trials.append(Trial(other, splits[0], value_of(other, splits[0])))
        best = max(trials, key=lambda trial: trial.value)
        order = best.order
    for split in splits[1:]:
        if time.perf_counter() >= end:
            return best
        best = _better(best, Trial(order, split, value_of(order, split)))
    if count == 1:
        return best
    for factor in STEPS:
        for split in neighbours(best.split, factor):
            if time.perf_counter() >= end:
                return best
            best = _better(best, Trial(order, split, value_of(order, split)))
    return best


def _better(one: Trial, other: Trial) -> Trial:
    if math.isnan(one.value) or other.value > one.value:
        return other
    return one
