"""Merged sets of symbols: which satisfy a notion, and partitions of X into sets that do.

*Sets.* A merged set T of symbols has the lift l(s, T) = P(T | s) / P(T) for each sensitive value s.
Over all s, the largest lift is Lambda, the smallest Psi, and Gamma = Lambda / Psi (Zarrabian et al.
2023). A notion bounds these or means of the lifts. For example, two symbols of mass 0.1 and 0.3
with the lifts 2.2 and 0.8 of one s have together the lift (0.1 * 2.2 + 0.3 * 0.8) / 0.4 = 1.15.

`merged_sets` makes the test for a table and the limits of a notion. A set is there the sum of its
members' columns P(x | s) and of their masses, so that a union costs one addition, and many unions
are judged in one array operation: `within` says whether they satisfy the limits, and `omega` how
risky they are.

All of it is floating point, on the safe side: a set that is said to be `within` the limits is so
exactly.

*Partitions* (Zarrabian et al. 2023, Algorithm 1, and its repair). Symbols that satisfy the notion
alone are harmless and stay apart. The others are joined until their sets comply:

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
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.measures import ROUNDOFF
from mechdesign.core.limits import LiftLimits, Limits, MeanLimits
from solvers import Array

# -------------------------------------------------------------------------- merged sets

Risk: TypeAlias = Literal["auto", "log-max", "log-ratio", "sum"]

RISKS: tuple[Risk, ...] = ("auto", "log-max", "log-ratio", "sum")
"""`log-max` is max(log Lambda, -log Psi), `log-ratio` is log Gamma, `sum` is the Lambda + Psi that
the paper prints for ALIP (its figures need `log-max`); `auto` is `log-max`, or `log-ratio` under
LDP. For l1-, chi2- and alpha-lift the means stand in for Lambda and 1/Psi: `sum` adds them, the
others compare or add the budgets that they use."""

ZERO_LIFT_RISK = 1e6
"""Stands for -log 0, once for each s of lift zero: more than any finite risk (at most 178 for
integers below 2^256), so that sets with a zero come last and those with fewer zeros before those
with more."""

AT_ONCE = 1 << 17
"""Entries of sets that are computed at once: they stay in the cache of a processor."""

MEAN_ERROR = 8.0
"""Error of a mean of lifts in units of the slack of one lift times 1 + mean, generously."""


class Block(NamedTuple):
    """A merged set T: its members, P(T|s) of shape (|S|,), and P(T)."""

    members: list[int]
    given_s: Array
    mass: float

    def joined(self, other: Block) -> Block:
        """Both as one."""
        return Block(
            self.members + other.members,
            self.given_s + other.given_s,
            self.mass + other.mass,
        )


class MergedSets(ABC):
    """The table, scaled once, with the tests that the algorithms ask of merged sets.

    `given_s` has columns that add up where symbols are merged, P(x|s) of (|S|, |X|), and `p_x`
    their masses.
    """

    given_s: Array
    p_x: Array

    @abstractmethod
    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """Whether merged sets of `given_s` (.., k) and `mass` (k,) satisfy the limits, (k,).

        Sets within `safety` times the rounding error of a limit are refused: with 1 every set that
        passes satisfies the limits. With -1 they pass: every set that fails violates the limits.
        """

    @abstractmethod
    def omega(self, given_s: Array, mass: Array) -> Array:
        """The risk of merged sets, (k,); larger is worse."""

    @cached_property
    def harmless(self) -> NDArray[np.bool_]:
        """Whether each symbol surely satisfies the limits alone, (|X|,)."""
        return self.within(self.given_s, self.p_x)

    def complies(self, block: Block) -> bool:
        """Whether one merged set surely satisfies the limits; all symbols together do, their lift
        is exactly 1.
        """
        if len(block.members) == len(self.p_x):
            return True
        within = self.within(block.given_s[:, None], np.array([block.mass]))
        return bool(within[0])

    def block(self, members: Sequence[int]) -> Block:
        """These symbols as one."""
        symbols = list(members)
        given_s = np.empty(len(self.given_s))
        # Some rows at a time: after an earlier release there are tens of thousands, of which a copy
        # takes most of the time.
        each = max(1, AT_ONCE // max(1, len(symbols)))
        for first in range(0, len(given_s), each):
            rows = self.given_s[first : first + each, symbols]
            given_s[first : first + each] = rows.sum(axis=1)
        return Block(symbols, given_s, float(self.p_x[symbols].sum()))


def merged_sets(p: Array, limits: Limits, risk: Risk = "auto") -> MergedSets:
    """The test of merged sets for a table P(s, x) of shape (|S|, |X|) and a notion's limits."""
    if limits.mean is None:
        return _Extremes(p, limits, risk)
    return _Means(p, limits, risk)


class _Extremes(MergedSets):
    """Notions on the largest and the smallest lift."""

    def __init__(self, p: Array, limits: LiftLimits, risk: Risk) -> None:
        self.p_x = p.sum(axis=0)
        self.given_s = p / p.sum(axis=1, keepdims=True)
        self.limits = limits
        self.slack = rounding_slack((p.shape[0], p.shape[1]))
        self.risk = risk
        if risk == "auto":
            # Under LDP what counts is the quotient of the lifts of two sensitive symbols.
            self.risk = "log-max"
            if math.isfinite(limits.ratio):
                self.risk = "log-ratio"

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """As for all merged sets, by the extreme P(T | s) over s."""
        # Psi >= exp(-eps_l), Lambda <= exp(eps_u) and Gamma <= exp(eps), multiplied out by P(T)
        # or by Psi.
        strictness = 1.0 + safety * self.slack
        low = given_s.min(axis=0)
        high = given_s.max(axis=0)
        limits = self.limits
        fine = low >= math.exp(-limits.lower) * strictness * mass
        if math.isfinite(limits.upper):
            fine &= high * strictness <= math.exp(limits.upper) * mass
        if math.isfinite(limits.ratio):
            fine &= high * strictness <= math.exp(limits.ratio) * low
        return fine

    def omega(self, given_s: Array, mass: Array) -> Array:
        """As for all merged sets, by the chosen `Risk` of Lambda and Psi."""
        low = given_s.min(axis=0)
        high = given_s.max(axis=0)
        if self.risk == "sum":
            return (high + low) / mass
        # upper is log Lambda, and lower is -log Psi.
        upper = np.log(high / mass)
        zero = low == 0.0
        lower = -np.log(np.where(zero, 1.0, low / mass))
        if zero.any():
            # -log 0 would make all of them alike; sets with fewer zeros are closer to compliance.
            zeros = (given_s[:, zero] == 0.0).sum(axis=0)
            lower[zero] = ZERO_LIFT_RISK * zeros + upper[zero]
        if self.risk == "log-ratio":
            return upper + lower
        # A notion on one side alone is not violated by the other one.
        if math.isinf(self.limits.lower) and math.isinf(self.limits.ratio):
            return upper
        if math.isinf(self.limits.upper) and math.isinf(self.limits.ratio):
            return lower
        return np.maximum(upper, lower)


class _Means(MergedSets):
    """Notions on averages over S of the lift and of its inverse."""

    def __init__(self, p: Array, limits: MeanLimits, risk: Risk) -> None:
        self.p_x = p.sum(axis=0)
        self.p_s = p.sum(axis=1)
        self.given_s = p / self.p_s[:, None]
        self.limits = limits
        self.slack = rounding_slack((p.shape[0], p.shape[1]))
        # "auto" is the larger of the two budgets that the means use.
        self.risk = risk
        if risk == "auto":
            self.risk = "log-max"

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """As for all merged sets, by the means of the lift and of its inverse."""
        fine = np.ones(len(mass), dtype=np.bool_)
        lifts = given_s / mass
        mean_of = self.limits.mean
        sides = (
            (self.limits.upper, mean_of.average),
            (self.limits.lower, mean_of.inverse_average),
        )
        for limit, average in sides:
            if math.isinf(limit):
                continue
            mean = average(self.p_s, lifts)
            # |d(l - 1)^2| <= slack (2 (l - 1)^2 + 2 |l - 1|), so errors grow with 1 + mean at most.
            error = safety * MEAN_ERROR * self.slack * (1.0 + mean)
            error = np.where(np.isfinite(mean), error, 0.0)
            fine &= mean + error <= self.limits.mean.bound(limit)
        return fine

    def omega(self, given_s: Array, mass: Array) -> Array:
        """As for all merged sets, by the budgets that the two means use."""
        lifts = given_s / mass
        absent = given_s == 0.0
        zeros = absent.sum(axis=0)
        # 1 / lift is infinite at 0: zeros enter the mean as the lift 1 and are counted apart.
        positive = lifts
        if zeros.any():
            positive = np.where(absent, 1.0, lifts)
        # The mean itself for the printed risk, else the budget that it uses (nats).
        mean_of = self.limits.mean
        if self.risk == "sum":
            upper = mean_of.average(self.p_s, lifts)
            lower = mean_of.inverse_average(self.p_s, positive)
        else:
            upper = mean_of.used(self.p_s, lifts)
            lower = mean_of.inverse_used(self.p_s, positive)
        if math.isinf(self.limits.lower):
            return upper
        if math.isinf(self.limits.upper):
            upper = np.zeros(len(mass))
        if self.risk == "log-max":
            worst = np.maximum(upper, lower)
            return np.where(zeros > 0, ZERO_LIFT_RISK * zeros + upper, worst)
        return upper + lower + ZERO_LIFT_RISK * zeros


def rounding_slack(shape: tuple[int, int]) -> float:
    """Relative error of a lift computed from sums over a table of this shape, and of exp, four
    times over.
    """
    return (8 * (shape[0] + shape[1]) + 32) * ROUNDOFF


# --------------------------------------------------------------------------- partitions

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
        harmless = sets.harmless
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
