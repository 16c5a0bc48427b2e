"""Trials of how much of the budgets each level of a tree may use, and in which order levels come.

A split is a vector of shares; what a level may use is their running sum. For example, the split (3,
1) of two levels lets the first one use 3/4 of the budgets (c = 0.75, 1), and `spending_of` says the
same as shares of what is left: 3/4, then all.

No split is best for every table: the first level has most symbols to keep at one node, the last
ones have many small nodes, and what a level leaves unused is there for those below it
(`row_budgets`). `row_search` hands over the function that grows a coarse tree, one that stops at a
larger least mass, and says what it is worth; then

1. `best_split` tries other orders of the levels with one split, if they are asked for;
2. it tries the other `first_splits` in the best order, and the `neighbours` of the best of them,
   with one share larger or smaller;
3. with up to four levels `own_shares` lets the outputs of all but the last spend a share each of
   what is left. What an output leaves to the levels below is worth more where these have more to
   tell. The tree is grown anew for every trial, and each output keeps the share that is worth most.

All of it ends where time is over, with the best trial so far.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.mechanisms.row_budgets import Spending

Split = tuple[float, ...]

COARSE_MASS = 1e-3
"""Least mass of the prefixes of trial trees."""

MOST_ORDERED = 5
"""Levels up to which orders are tried: there are 120 of five."""

LIKELY = 16
"""Twentieths of the budgets that suit the first of two levels on most tables."""

MOST_OWN = 4
"""Levels up to which single outputs have shares of their own. With six levels of a survey 300 trees
kept 0.7 points more than 35."""

OWN_STEPS = ((0.3, 0.1), (0.2, 0.05), (0.3, 0.1), (0.15, 0.03))
"""What is added to the share of one output, or taken from it, in the rounds over all outputs. The
third round has wide steps again, which lead out of where small ones end."""

LEAST_SHARE = 0.3
"""The smallest share of an output of the first level: with less there is little of it to tell."""

LEAST_BELOW = 0.05
"""The same for the levels below, where a share is of less."""

STEPS = (1.5, 1.15)
"""Factors by which single shares are moved up and down in the rounds of refinement."""


@dataclass(frozen=True)
class Trial:
    """A split in an order of the levels, and what its tree is worth.

    `spending` says it as `RowGrowth.grow` takes it, with shares of single outputs where they have
    some of their own.
    """

    order: tuple[int, ...]
    split: Split
    value: float
    spending: tuple[tuple[float, ...], ...]


def spending_of(split: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """What every level spends of what is left, for shares of the whole; all of it by the last."""
    # f_j = split_j / (split_j + .. + split_last): the increments of c_j as shares of what is left.
    left = np.cumsum(split[::-1])[::-1]
    shares = (np.array(split) / left).tolist()
    shares[-1] = 1.0
    return tuple((share,) for share in shares)


def first_splits(count: int) -> list[Split]:
    """Splits that are worth a trial for so many levels."""
    if count == 1:
        return [(1.0,)]
    if count == 2:
        # The likely ones first: where nodes are large there is time for few.
        shares = sorted(range(8, 20), key=lambda share: abs(share - LIKELY))
        return [(share / 20, 1.0 - share / 20) for share in shares]
    # The first level is one node with all records, and can use most of the budgets.
    rest = (1.0,) * (count - 1)
    falling = tuple(0.75**k for k in range(count))
    return [(3.0, *rest), (1.0, *rest), (6.0, *rest), (4.0, 2.0, *rest[1:]), falling]


def neighbours(split: Split, factor: float) -> Iterator[Split]:
    """Splits with one share larger or smaller by a factor."""
    for k in range(len(split)):
        for moved in (split[k] * factor, split[k] / factor):
            yield (*split[:k], moved, *split[k + 1 :])


def best_split(
    value_of: Callable[[tuple[int, ...], Spending], float],
    count: int,
    *,
    orders: bool,
    end: float,
) -> Trial:
    """The best trial of two or more levels before `end` (of `time.perf_counter`); the first one is
    always made.

    With `orders` other orders of the levels are tried with the first split, and the best one with
    all splits.
    """

    def trial(order: tuple[int, ...], split: Split) -> Trial:
        spending = spending_of(split)
        return Trial(order, split, value_of(order, spending), spending)

    given = tuple(range(count))
    splits = first_splits(count)
    first = trial(given, splits[0])
    best = first
    order = given
    if orders:
        trials = [first]
        # Half of the time is left for the splits.
        half = time.perf_counter() + (end - time.perf_counter()) / 2
        for permuted in itertools.permutations(given):
            if time.perf_counter() >= half:
                break
            if permuted != given:
                trials.append(trial(permuted, splits[0]))
        best = max(trials, key=lambda trial: trial.value)
        order = best.order
    # Other splits in the best order, then its neighbours: large steps first, then small ones.
    for split in splits[1:]:
        if time.perf_counter() >= end:
            return best
        best = _better(best, trial(order, split))
    for factor in STEPS:
        for split in neighbours(best.split, factor):
            if time.perf_counter() >= end:
                return best
            best = _better(best, trial(order, split))
    return best


def own_shares(
    value_of: Callable[[Spending], float],
    best: Trial,
    outputs: Sequence[Sequence[int]],
    *,
    end: float,
) -> Trial:
    """The trial whose outputs have shares of their own where that is worth more; the value of each
    is that of the whole tree.

    Parameters
    ----------
    outputs : sequence of sequences of int
        For each level but the last its outputs, in the order in which they are tried.
    """
    # All outputs of a level begin with the share of the level.
    spending = list(best.spending)
    for level, codes in enumerate(outputs):
        spending[level] *= len(codes)
    for steps in OWN_STEPS:
        for level, codes in enumerate(outputs):
            for output in codes:
                for share in _moved(spending[level][output], steps, level):
                    if time.perf_counter() >= end:
                        return best
                    changed = list(spending)
                    changed[level] = _with_share(spending[level], output, share)
                    value = value_of(changed)
                    if value > best.value:
                        spending = changed
                        best = replace(best, spending=tuple(changed), value=value)
    return best


def _moved(share: float, steps: Sequence[float], level: int) -> list[float]:
    """A share moved up and down by the steps, as far as it may go."""
    least = LEAST_BELOW
    if level == 0:
        least = LEAST_SHARE
    moved: list[float] = []
    for step in steps:
        for trial_share in (max(share - step, least), min(share + step, 1.0)):
            if trial_share != share and trial_share not in moved:
                moved.append(trial_share)
    return moved


def _with_share(
    shares: tuple[float, ...], output: int, share: float
) -> tuple[float, ...]:
    """The shares of a level with that of one output replaced."""
    return (*shares[:output], share, *shares[output + 1 :])


def _better(one: Trial, other: Trial) -> Trial:
    """The trial of the larger value, the first one where they are equal."""
    if other.value > one.value:
        return other
    return one
