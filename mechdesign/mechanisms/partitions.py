"""Partitions of X by merging symbols: Zarrabian et al. 2023, Algorithm 1, and its repair.

Symbols that satisfy the notion alone are harmless and stay apart. The others are joined until their
sets comply (`merged_sets` tests a set):

- `merge_subsets` takes the riskiest symbol, and joins whichever set leaves the smallest risk until
  the union complies; then the next riskiest one. Of four symbols a, b, c, d with a and b risky in
  opposite directions, {a, b} often complies, and c and d are released as they are.
- `merge_all` joins all risky symbols.

Where the risky symbols are not enough, `_repair` lets harmless ones join: the merged set of
everything has the lift 1 and always complies.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanisms.merged_sets import Block, MergedSets

LEAST_SECONDS = 1.0
"""Time that merging may take whatever the limit is: all but the largest tables need less."""


@dataclass(frozen=True)
class Merging:
    """A partition of the symbols and how it came about.

    `groups` lists sorted positions, ordered by their first member; `borrowed` are harmless symbols
    that had to join a group because the risky ones alone violated the limits (`repaired`).
    """

    groups: tuple[tuple[int, ...], ...]
    repaired: bool
    borrowed: tuple[int, ...]


def merge_subsets(
    sets: MergedSets,
    harmless: NDArray[np.bool_] | None = None,
    *,
    repair: bool = True,
    end: float = math.inf,
) -> Merging:
    """Subset merging (Zarrabian et al. 2023, Algorithm 1), repaired where it fails.

    Parameters
    ----------
    sets : MergedSets
        The table and the notion.
    harmless : (|X|,) bool array, optional
        Whether a symbol satisfies the notion alone; by default `sets` decides it.
    repair : bool
        Whether harmless symbols may join; without it the partition of the algorithm as it is
        published, which may violate the notion.
    end : float
        Each step looks at every set that is left. From this time of `time.process_time` on these
        all join the last set, and the repair takes what is quickest.
    """
    low_risk, risky = _split(sets, harmless)
    pool = _Pool(sets, risky)
    subsets: list[list[int]] = []
    within = True
    # Lines 3 to 11: the riskiest symbol, then whichever leaves the smallest risk, until the set
    # complies.
    while pool.groups:
        block = pool.take(int(np.argmax(pool.risk)))
        # A single risky symbol violates, so it needs no test.
        within = False
        while not within and pool.groups:
            if time.process_time() > end:
                block = pool.all_joined(block)
            else:
                block = pool.joined(block)
            within = sets.complies(block)
        subsets.append(block.members)
    if within:
        return _merging(subsets + low_risk)
    # Lines 12 to 14: only the last set can violate, for nothing was left to join it.
    last = subsets[-1]
    others = subsets[:-1]
    if time.process_time() <= end:
        joined = _join(sets, last, others)
        if joined is not None:
            return _merging(joined + low_risk)
    every_risky = [x for subset in subsets for x in subset]
    if not repair:
        return _merging([every_risky, *low_risk])
    # Either only the violating set takes in others, or all risky symbols first become one, as the
    # paper does at its end.
    starts = [_Start(last, others + low_risk), _Start(every_risky, low_risk)]
    return _repair(sets, starts, len(low_risk), end)


def merge_all(
    sets: MergedSets,
    harmless: NDArray[np.bool_] | None = None,
    *,
    repair: bool = True,
    end: float = math.inf,
) -> Merging:
    """Complete merging (Zarrabian et al. 2023, Section 3.1): the risky symbols become one, repaired
    if need be.

    Parameters as those of `merge_subsets`.
    """
    low_risk, singles = _split(sets, harmless)
    risky = [x for single in singles for x in single]
    if not risky:
        return _merging(low_risk)
    if not repair or sets.complies(sets.block(risky)):
        return _merging([risky, *low_risk])
    return _repair(sets, [_Start(risky, low_risk)], len(low_risk), end)


class _Pool:
    """Sets that may still join another one, in their original order.

    The sums over merged columns are stored, so that the risks of all unions with one set are one
    array operation.
    """

    def __init__(self, sets: MergedSets, groups: Sequence[list[int]]) -> None:
        self.sets = sets
        self.groups = list(groups)
        self.given_s = sets.given_s[:, [group[0] for group in groups]]
        for k, group in enumerate(groups):
            if len(group) > 1:
                self.given_s[:, k] = sets.given_s[:, group].sum(axis=1)
        self.mass = np.array([sets.p_x[group].sum() for group in groups])
        self.risk = sets.omega(self.given_s, self.mass)

    def take(self, k: int) -> Block:
        """Take a set out."""
        column = self.given_s[:, k].copy()
        taken = Block(self.groups.pop(k), column, float(self.mass[k]))
        # Shifting in place keeps the order (ties go to the first symbol) and allocates nothing.
        self.given_s[:, k:-1] = self.given_s[:, k + 1 :]
        self.given_s = self.given_s[:, :-1]
        self.mass = np.delete(self.mass, k)
        self.risk = np.delete(self.risk, k)
        return taken

    def joined(self, block: Block) -> Block:
        """The block with the set that leaves the smallest risk, which is taken out."""
        given_s = self.given_s + block.given_s[:, None]
        risk = self.sets.omega(given_s, self.mass + block.mass)
        return block.joined(self.take(int(np.argmin(risk))))

    def all_joined(self, block: Block) -> Block:
        """The block with every set that is left; the pool is empty then."""
        members = list(block.members)
        for group in self.groups:
            members += group
        self.groups.clear()
        return self.sets.block(members)


def _split(
    sets: MergedSets, harmless: NDArray[np.bool_] | None
) -> tuple[list[list[int]], list[list[int]]]:
    """X_L and X_H of the paper, the harmless and the risky symbols, one symbol to a set."""
    if harmless is None:
        harmless = sets.within(sets.given_s, sets.p_x)
    low_risk = [[x] for x in np.flatnonzero(harmless).tolist()]
    high_risk = [[x] for x in np.flatnonzero(~harmless).tolist()]
    return low_risk, high_risk


def _join(
    sets: MergedSets, last: list[int], others: list[list[int]]
) -> list[list[int]] | None:
    """Lines 12 to 14 of Algorithm 1: join other subsets until the last one complies; None if none
    is left.
    """
    pool = _Pool(sets, others)
    block = sets.block(last)
    while pool.groups:
        block = pool.joined(block)
        if sets.complies(block):
            # Subsets that were not needed stay apart, which keeps more information.
            return [block.members, *pool.groups]
    return None


class _Start(NamedTuple):
    """A violating set, and the sets that it may take in, harmless ones last."""

    core: list[int]
    others: list[list[int]]


class _Plan(NamedTuple):
    """A repaired partition, what it loses (nats, up to a constant), and the harmless symbols that
    it takes in.
    """

    loss: float
    groups: list[list[int]]
    borrowed: list[int]


def _repair(
    sets: MergedSets, starts: Sequence[_Start], harmless: int, end: float
) -> Merging:
    """Let a violating set take in others; of a few plans the one that loses fewest nats wins.

    So many `harmless` symbols, one to a set, are the last of the others of every start. Merging
    everything always complies (its lift is 1), so there is always a plan.
    """
    plans: list[_Plan] = []
    for start in starts:
        pool = _Pool(sets, start.others)
        first_harmless = len(start.others) - harmless
        for taken in _choices(sets.block(start.core), pool, end):
            plans.append(_plan(sets, start, taken, first_harmless))
    best = min(plans, key=lambda plan: plan.loss)
    return _merging(best.groups, repaired=True, borrowed=best.borrowed)


def _plan(
    sets: MergedSets, start: _Start, taken: Sequence[int], first_harmless: int
) -> _Plan:
    """The partition in which the core of a start has taken in some of the others."""
    merged = list(start.core)
    for k in taken:
        merged += start.others[k]
    left = sorted(set(range(len(start.others))) - set(taken))
    groups = [merged]
    for k in left:
        groups.append(start.others[k])
    # With a partition H(X) - I(X;Y) = H(X) - H(Y) = H(X) + sum over T of P(T) log P(T).
    loss = 0.0
    for group in groups:
        mass = float(sets.p_x[group].sum())
        loss += mass * math.log(mass)
    borrowed = [start.others[k][0] for k in taken if k >= first_harmless]
    return _Plan(loss, groups, borrowed)


def _choices(core: Block, pool: _Pool, end: float) -> list[list[int]]:
    """Choices of sets that make `core` comply, as positions in `pool`.

    One choice is the cheapest set that is enough alone, if there is one. The other is several of
    the cheapest sets, without those that are not needed (as far as the time allows).
    """
    if not pool.groups:
        return [[]]
    within = pool.sets.within
    core_column = core.given_s[:, None]
    # The loss grows with the mass that joins.
    cheapest_first = np.argsort(pool.mass, kind="stable")
    choices: list[list[int]] = []
    alone = within(pool.given_s + core_column, pool.mass + core.mass)
    sufficient = cheapest_first[alone[cheapest_first]]
    if sufficient.size:
        choices.append([int(sufficient[0])])
    # The shortest run of the cheapest sets that is enough together.
    sums = np.cumsum(pool.given_s[:, cheapest_first], axis=1) + core_column
    masses = np.cumsum(pool.mass[cheapest_first]) + core.mass
    enough = np.flatnonzero(within(sums, masses))
    if not enough.size:
        # All symbols together have the lift 1, but at a budget near 0 the slack hides that.
        return [*choices, cheapest_first.tolist()]
    taken = cheapest_first[: enough[0] + 1].tolist()
    return [*choices, _pruned(core, pool, taken, end)]


def _pruned(core: Block, pool: _Pool, taken: list[int], end: float) -> list[int]:
    """`taken` without the members that the limits do not need, the most expensive given back
    first.
    """
    needed = list(taken)
    for k in sorted(taken, key=lambda k: -pool.mass[k]):
        if time.process_time() > end:
            break
        # Sums anew, not differences: subtraction would lose small entries.
        rest = [j for j in needed if j != k]
        given_s = pool.given_s[:, rest].sum(axis=1)
        mass = float(pool.mass[rest].sum())
        if pool.sets.complies(core.joined(Block([], given_s, mass))):
            needed = rest
    return needed


def _merging(
    groups: list[list[int]],
    *,
    repaired: bool = False,
    borrowed: list[int] | None = None,
) -> Merging:
    """The partition into these groups, in the order that `Merging` promises."""
    ordered = sorted(tuple(sorted(g)) for g in groups)
    return Merging(tuple(ordered), repaired, tuple(sorted(borrowed or ())))
