"""How much of the budgets each level of a tree may use, and in which order the levels come: by
trial.

A split is a vector of shares; what a level may use is their running sum. No split is best for every
table: the first level has most symbols to keep at one node, the last ones have many small nodes,
and what a level leaves unused is there for those below it (`row_budgets`). So several are tried on
coarse trees, which stop at a larger least mass, and the best one is refined share by share while
there is time.

With two levels the outputs of the first one may have a share each: what an output leaves to the
second level is worth more where the second level has more to tell. So the second level is grown
below every trial, and each output keeps the share that is worth most.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

Split = tuple[float, ...]

COARSE_MASS = 1e-3
"""Least mass of the prefixes of trial trees."""

MOST_ORDERED = 5
"""Levels up to which orders are tried: there are 120 of five."""

LIKELY = 16
"""Twentieths of the budgets that suit the first of two levels on most tables."""

OWN_STEPS = (-0.2, -0.05, 0.05, 0.2)
"""What is added to the share of one output of the first of two levels."""

LEAST_SHARE = 0.3
"""The smallest share of an output: with less there is little of the first level to tell."""

ROUNDS = 3
"""Rounds over all outputs; few gain after the second."""

STEPS = (1.5, 1.15)
"""Factors by which single shares are moved up and down in the rounds of refinement."""


@dataclass(frozen=True)
class Trial:
    """A split in an order of the levels, and what its tree is worth."""

    order: tuple[int, ...]
    split: Split
    value: float
    own: tuple[float, ...] = ()
    """Cumulative share of each output of the first level, where they differ."""


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
        # The likely ones first: where nodes are large there is time for few.
        shares = sorted(range(8, 20), key=lambda share: abs(share - LIKELY))
        return [(share / 20, 1.0 - share / 20) for share in shares]
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

    With `orders` other orders of up to five levels are tried, first with the first split, the best
    few with all.
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


def own_shares(
    value_of: Callable[[tuple[float, ...]], float],
    best: Trial,
    outputs: Sequence[int],
    size: int,
    *,
    end: float,
) -> Trial:
    """The trial with shares of their own for `outputs`, in this order, of `size` ones of the first
    level; the value of each is that of the whole tree.
    """
    shares = (cumulative(best.split)[0],) * size
    for _ in range(ROUNDS):
        before = best.value
        for output in outputs:
            start = shares[output]
            moves = {min(max(start + step, LEAST_SHARE), 1.0) for step in OWN_STEPS}
            for moved in sorted(moves - {start}):
                if time.perf_counter() >= end:
                    return best
                other = (*shares[:output], moved, *shares[output + 1 :])
                value = value_of(other)
                if value > best.value:
                    shares = other
                    best = replace(best, own=shares, value=value)
        if best.value <= before:
            return best
    return best


def _better(one: Trial, other: Trial) -> Trial:
    if math.isnan(one.value) or other.value > one.value:
        return other
    return one
