"""Merged sets of symbols, judged by a notion: whether they satisfy it, and which is worse.

A merged set T of symbols has the lift l(s, T) = P(T | s) / P(T) for each sensitive value s. Over
all s, the largest lift is
Lambda, the smallest Psi, and Gamma = Lambda / Psi (Zarrabian et al. 2023). A notion bounds these or
means of the lifts. For example, two symbols of mass 0.1 and 0.3 with the lifts 2.2 and 0.8 of one s
have together the lift (0.1 * 2.2 + 0.3 * 0.8) / 0.4 = 1.15.

`merged_sets` makes the test for a table and the limits of a notion. A set is there the sum of its
members' columns P(x | s) and of their masses, so that a union costs one addition, and many unions
are judged in one array operation: `within` says whether they satisfy the limits, and `omega` how
risky they are. `partitions` has the algorithms that ask.

All of it is floating point, on the safe side: a set that is said to be `within` the limits is so
exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.measures import ROUNDOFF
from mechdesign.core.limits import LiftLimits, Limits, MeanLimits
from solvers import Array

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
        given_s = self.given_s[:, symbols].sum(axis=1)
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
