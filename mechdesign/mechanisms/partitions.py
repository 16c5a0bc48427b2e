"""Partitions of X by merging symbols: Zarrabian et al. 2023, Algorithm 1, and its repair. Arrays only.

A merged set T of symbols has the lift l(s, T) = P(T | s) / P(T). All the decisions here are taken in
floating point, on the safe side: a set that is said to be `within` the limits is so exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanisms.risks import RISKS, Lifts, Risk

__all__ = ["RISKS", "Lifts", "Merging", "Risk", "merge_all", "merge_subsets"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Merging:
    """A partition of the symbols and how it came about.

    `groups` lists sorted positions, ordered by their first member; `borrowed` are harmless symbols
    that had to join a group because the risky ones alone violated the limits (`repaired`).
    """

    groups: tuple[tuple[int, ...], ...]
    repaired: bool
    borrowed: tuple[int, ...]


class _Pool:
    """Sets that may still join another one, in their original order, without rescans."""

    def __init__(self, lifts: Lifts, groups: list[list[int]]) -> None:
        self._lifts = lifts
        self.groups = groups
        self.given_s = _columns(lifts.given_s, groups)
        self.mass = np.array([lifts.p_x[g].sum() for g in groups])
        self._risk = lifts.omega(self.given_s, self.mass)

    def __len__(self) -> int:
        return len(self.groups)

    def pop(self, k: int) -> tuple[list[int], Array, float]:
        taken = self.groups.pop(k), self.given_s[:, k].copy(), float(self.mass[k])
        # Shifting in place keeps the order (ties go to the first symbol) and allocates nothing.
        self.given_s[:, k:-1] = self.given_s[:, k + 1 :]
        self.given_s = self.given_s[:, :-1]
        self.mass = np.delete(self.mass, k)
        self._risk = np.delete(self._risk, k)
        return taken

    def riskiest(self) -> int:
        return int(np.argmax(self._risk))

    def safest_with(self, given_s: Array, mass: float) -> int:
        return int(np.argmin(self._lifts.omega(self.given_s + given_s[:, None], self.mass + mass)))


def _columns(given_s: Array, groups: list[list[int]]) -> Array:
    if all(len(g) == 1 for g in groups):
        return given_s[:, [g[0] for g in groups]]
    return np.stack([given_s[:, g].sum(axis=1) for g in groups], axis=1)


def merge_subsets(lifts: Lifts, harmless: NDArray[np.bool_] | None = None, *, repair: bool = True) -> Merging:
    """Subset merging (Zarrabian et al. 2023, Algorithm 1), repaired where it fails.

    Parameters
    ----------
    harmless : (n,) array, optional
        Which symbols satisfy the limits by themselves, where it is known better than by `Lifts.within`.
    repair : bool
        Whether to borrow harmless symbols where the risky ones alone violate the limits; the paper does not.
    """
    kept, risky = _split(lifts, harmless)
    pool = _Pool(lifts, risky)
    done: list[list[int]] = []
    within = True
    while len(pool):
        members, given_s, mass = pool.pop(pool.riskiest())
        within = False  # a single risky symbol violates
        while not within and len(pool):
            more, more_given_s, more_mass = pool.pop(pool.safest_with(given_s, mass))
            members, given_s, mass = members + more, given_s + more_given_s, mass + more_mass
            within = lifts.complies(members, given_s, mass)
        done.append(members)
    if within:
        return _merging(done + kept)
    last, others = done[-1], done[:-1]
    joined = _join(lifts, last, [list(g) for g in others])
    if joined is not None:
        return _merging(joined + kept)
    everything = [x for g in done for x in g]
    if not repair:
        return _merging([everything, *kept])
    return _repair(lifts, [(last, others + kept), (everything, kept)], len(kept))


def merge_all(lifts: Lifts, harmless: NDArray[np.bool_] | None = None, *, repair: bool = True) -> Merging:
    """Complete merging (Zarrabian et al. 2023, Section 3.1): the risky symbols become one, repaired if need be.

    Parameters as those of `merge_subsets`.
    """
    kept, singles = _split(lifts, harmless)
    risky = [x for single in singles for x in single]
    if not risky:
        return _merging(kept)
    if not repair or lifts.complies(risky, *lifts.merged(risky)):
        return _merging([risky, *kept])
    return _repair(lifts, [(risky, kept)], len(kept))


def _split(lifts: Lifts, harmless: NDArray[np.bool_] | None) -> tuple[list[list[int]], list[list[int]]]:
    """X_L and X_H of the paper, one symbol to a set."""
    safe = lifts.within(lifts.given_s, lifts.p_x) if harmless is None else harmless
    return [[int(x)] for x in np.flatnonzero(safe)], [[int(x)] for x in np.flatnonzero(~safe)]


def _join(lifts: Lifts, last: list[int], others: list[list[int]]) -> list[list[int]] | None:
    """Lines 12 to 14 of Algorithm 1: join other subsets until the last one complies; None if none is left."""
    pool = _Pool(lifts, others) if others else None
    given_s, mass = lifts.merged(last)
    while pool:
        more, more_given_s, more_mass = pool.pop(pool.safest_with(given_s, mass))
        last, given_s, mass = last + more, given_s + more_given_s, mass + more_mass
        if lifts.complies(last, given_s, mass):
            return [last, *pool.groups]
    return None


def _repair(lifts: Lifts, starts: list[tuple[list[int], list[list[int]]]], kept: int) -> Merging:
    """Let a violating set take in others, fewest nats lost first; the cheapest of a few plans wins.

    Merging everything always complies (its lift is 1), so there is always a plan.
    """
    plans: list[tuple[float, list[list[int]], list[int]]] = []
    for core, pool in starts:
        for taken in _plans(lifts, core, pool):
            merged = core + [x for k in taken for x in pool[k]]
            groups = [merged, *(g for k, g in enumerate(pool) if k not in set(taken))]
            # The harmless symbols stand last in the pool, one to a set.
            borrowed = [pool[k][0] for k in taken if k >= len(pool) - kept]
            plans.append((sum(_spread(float(lifts.p_x[g].sum())) for g in groups), groups, borrowed))
    _, groups, borrowed = min(plans, key=lambda plan: plan[0])
    return _merging(groups, repaired=True, borrowed=borrowed)


def _plans(lifts: Lifts, core: list[int], pool: list[list[int]]) -> list[list[int]]:
    """Positions in `pool` to take into `core`, in a few ways, each pruned of what it turns out not to need."""
    if not pool:
        return [[]]
    given_s, mass = lifts.merged(core)
    more, more_mass = _columns(lifts.given_s, pool), np.array([lifts.p_x[g].sum() for g in pool])
    cheapest_first = np.argsort(more_mass, kind="stable")  # the loss grows with the mass that joins
    plans: list[list[int]] = []
    alone = lifts.within(more + given_s[:, None], more_mass + mass)
    if alone.any():
        plans.append([next(int(k) for k in cheapest_first if alone[k])])
    for order in (cheapest_first, _safest_first(lifts, given_s, mass, more, more_mass)):
        sums = np.cumsum(more[:, order], axis=1) + given_s[:, None]
        enough = np.flatnonzero(lifts.within(sums, np.cumsum(more_mass[order]) + mass))
        taken = [int(k) for k in order[: enough[0] + 1 if enough.size else len(order)]]
        plans.append(_pruned(lifts, given_s, mass, more, more_mass, taken) if enough.size else taken)
    return plans


def _safest_first(
    lifts: Lifts, given_s: Array, mass: float, more: Array, more_mass: Array
) -> NDArray[np.intp]:
    """The order in which each next set leaves the smallest risk."""
    left = np.arange(len(more_mass))
    order: list[int] = []
    while left.size:
        risk = lifts.omega(more[:, left] + given_s[:, None], more_mass[left] + mass)
        best = int(np.argmin(risk))
        k = int(left[best])
        order.append(k)
        given_s, mass = given_s + more[:, k], mass + float(more_mass[k])
        if lifts.one_within(given_s, mass):
            return np.array(order)
        left = np.delete(left, best)
    return np.array(order)


def _pruned(
    lifts: Lifts, given_s: Array, mass: float, more: Array, more_mass: Array, taken: list[int]
) -> list[int]:
    """`taken` without the members that the limits do not need, the most expensive given back first."""
    needed = list(taken)
    for k in sorted(taken, key=lambda k: -more_mass[k]):
        rest = [j for j in needed if j != k]
        if lifts.one_within(given_s + more[:, rest].sum(axis=1), mass + float(more_mass[rest].sum())):
            needed = rest
    return needed


def _spread(mass: float) -> float:
    """P(T) log P(T): with the other terms fixed, H(X) - I(X;Y) grows with the sum of these over the groups."""
    return mass * math.log(mass)


def _merging(
    groups: list[list[int]], *, repaired: bool = False, borrowed: list[int] | None = None
) -> Merging:
    ordered = sorted(tuple(sorted(g)) for g in groups)
    return Merging(tuple(ordered), repaired, tuple(sorted(borrowed or ())))
