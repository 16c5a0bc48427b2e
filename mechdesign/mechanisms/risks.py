"""How risky merged sets of symbols are, and whether they satisfy a notion: arrays, in floating point.

A merged set T of symbols has the lift l(s, T) = P(T | s) / P(T). Decisions are taken on the safe side: a
set that is said to be `within` the limits is so exactly.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.notions import LiftLimits, Limits, MeanLimits

Array = NDArray[np.float64]
Risk: TypeAlias = Literal["auto", "log-max", "log-ratio", "sum"]

RISKS: tuple[Risk, ...] = ("auto", "log-max", "log-ratio", "sum")
"""`log-max` is max(log Lambda, -log Psi), `log-ratio` is log Gamma, `sum` is the Lambda + Psi that the
paper prints for ALIP (its figures need `log-max`); `auto` is `log-max`, or `log-ratio` under LDP. For l1-,
chi2- and alpha-lift the means stand in for Lambda and 1/Psi: `sum` adds them, the others compare or add the
budgets that they use."""

ZERO_LIFT_RISK = 1e6
"""Stands for -log 0, once for each s of lift zero: more than any finite risk (at most 178 for integers
below 2^256), so that sets with a zero come last and those with fewer zeros before those with more."""

UNIT_ROUNDOFF = 2.0**-53
"""Half the distance from 1 to the next double."""


MEAN_ERROR = 8.0
"""Error of a mean of lifts in units of the slack of one lift times 1 + mean, generously."""


def rounding_slack(shape: tuple[int, int]) -> float:
    """Relative error of a lift computed from sums over a table of this shape, and of exp, four times over."""
    return (8 * (shape[0] + shape[1]) + 32) * UNIT_ROUNDOFF


class _Measure(Protocol):
    """One family of notions: the test of merged sets and their risk; arguments as those of `Lifts`."""

    def within(self, given_s: Array, mass: Array, safety: float) -> NDArray[np.bool_]:
        """Satisfies the limits: surely for `safety` 1, perhaps for -1."""
        ...

    def omega(self, given_s: Array, mass: Array) -> Array:
        """Larger is worse."""
        ...


class _Extremes:
    """Notions on the largest and the smallest lift."""

    def __init__(self, limits: LiftLimits, risk: Risk, slack: float) -> None:
        self.limits, self.slack = limits, slack
        self.risk = risk
        if risk == "auto":
            self.risk = "log-ratio" if math.isfinite(limits.ratio) else "log-max"

    def within(self, given_s: Array, mass: Array, safety: float) -> NDArray[np.bool_]:
        strictness = 1.0 + safety * self.slack
        low, high = given_s.min(axis=0), given_s.max(axis=0)
        limits = self.limits
        fine = low >= math.exp(-limits.lower) * strictness * mass
        if math.isfinite(limits.upper):
            fine &= high * strictness <= math.exp(limits.upper) * mass
        if math.isfinite(limits.ratio):
            fine &= high * strictness <= math.exp(limits.ratio) * low
        return fine

    def omega(self, given_s: Array, mass: Array) -> Array:
        low, high = given_s.min(axis=0), given_s.max(axis=0)
        if self.risk == "sum":
            return (high + low) / mass
        upper = np.log(high / mass)
        zero = low == 0.0
        lower = -np.log(np.where(zero, 1.0, low / mass))
        if zero.any():
            lower[zero] = ZERO_LIFT_RISK * (given_s[:, zero] == 0.0).sum(axis=0) + upper[zero]
        if self.risk == "log-ratio":
            return upper + lower
        if math.isinf(self.limits.lower) and math.isinf(self.limits.ratio):
            return upper
        if math.isinf(self.limits.upper) and math.isinf(self.limits.ratio):
            return lower
        return np.maximum(upper, lower)


class _Means:
    """Notions on averages over S of the lift and of its inverse."""

    def __init__(self, limits: MeanLimits, risk: Risk, slack: float, p_s: Array) -> None:
        self.limits, self.slack, self.p_s = limits, slack, p_s
        self.risk = "log-max" if risk == "auto" else risk

    def within(self, given_s: Array, mass: Array, safety: float) -> NDArray[np.bool_]:
        fine = np.ones(len(mass), dtype=np.bool_)
        lifts = given_s / mass
        for limit, values in ((self.limits.upper, lifts), (self.limits.lower, _inverse(lifts))):
            if math.isfinite(limit):
                mean = self._mean(values)
                # |d(l - 1)^2| <= slack (2 (l - 1)^2 + 2 |l - 1|), so errors grow with 1 + mean at most.
                error = safety * MEAN_ERROR * self.slack * (1.0 + mean)
                fine &= mean + np.where(np.isfinite(mean), error, 0.0) <= self._bound(limit)
        return fine

    def omega(self, given_s: Array, mass: Array) -> Array:
        lifts = given_s / mass
        absent = given_s == 0.0
        zeros = absent.sum(axis=0)
        positive = np.where(absent, 1.0, lifts) if zeros.any() else lifts
        if self.limits.kind == "alpha":
            logs = np.log(positive)
            upper = self._log_norm(np.where(absent, -np.inf, logs) if zeros.any() else logs)
            lower = self._log_norm(-logs)
            if self.risk == "sum":
                upper, lower = np.exp(upper), np.exp(lower)
        else:
            upper, lower = self._risk(lifts), self._risk(1.0 / positive)
        if math.isinf(self.limits.lower):
            return upper
        if math.isinf(self.limits.upper):
            upper = np.zeros(len(mass))
        if self.risk == "log-max":
            return np.where(zeros > 0, ZERO_LIFT_RISK * zeros + upper, np.maximum(upper, lower))
        return upper + lower + ZERO_LIFT_RISK * zeros

    def _risk(self, values: Array) -> Array:
        """The l1 or chi2 mean itself for the printed risk, else the budget that it uses (nats)."""
        mean = self._mean(values)
        if self.risk == "sum":
            return mean
        return np.log1p(mean if self.limits.kind == "l1" else np.sqrt(mean))

    def _log_norm(self, logs: Array) -> Array:
        """log (sum_s P(s) l^alpha)^(1/alpha) from logarithms: several times faster than powers."""
        order = self.limits.order
        largest = logs.max(axis=0)
        with np.errstate(over="ignore"):  # at the largest orders a power may well be exp(-inf)
            return largest + np.log(self.p_s @ np.exp(order * (logs - largest))) / order

    def _mean(self, values: Array) -> Array:
        if self.limits.kind == "l1":
            return self.p_s @ np.abs(values - 1.0)
        if self.limits.kind == "chi2":
            return self.p_s @ (values - 1.0) ** 2
        order = self.limits.order
        largest = values.max(axis=0)  # the scale keeps every power below 1
        with np.errstate(invalid="ignore"):
            shares = np.where(np.isfinite(largest), values / largest, 1.0)
        return largest * (self.p_s @ shares**order) ** (1.0 / order)

    def _bound(self, limit: float) -> float:
        if self.limits.kind == "alpha":
            return math.exp(limit)
        bound = math.expm1(limit)
        return bound if self.limits.kind == "l1" else bound * bound


def _inverse(lifts: Array) -> Array:
    with np.errstate(divide="ignore"):  # 1/0 = inf is the value that is meant
        return 1.0 / lifts


class Lifts:
    """The table, scaled once, with the tests that the algorithms ask of merged sets.

    Parameters
    ----------
    p : (|S|, n) array
        P(s, x), each entry correctly rounded.
    limits : LiftLimits or MeanLimits
        Bounds in nats.
    risk : one of `RISKS`
    """

    def __init__(self, p: Array, limits: Limits, risk: Risk = "auto") -> None:
        self.p_x: Array = p.sum(axis=0)
        self.given_s: Array = p / p.sum(axis=1, keepdims=True)
        slack = rounding_slack((p.shape[0], p.shape[1]))
        self._measure: _Measure = (
            _Means(limits, risk, slack, p.sum(axis=1))
            if isinstance(limits, MeanLimits)
            else _Extremes(limits, risk, slack)
        )

    def within(self, given_s: Array, mass: Array) -> NDArray[np.bool_]:
        """Whether merged sets of P(T|s) `given_s` (|S|, k) and P(T) `mass` (k,) surely satisfy the limits."""
        return self._measure.within(given_s, mass, 1.0)

    def nearly_within(self, given_s: Array, mass: Array) -> NDArray[np.bool_]:
        """As `within`, but sets that may satisfy the limits count too: those left out surely violate."""
        return self._measure.within(given_s, mass, -1.0)

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The risk of merged sets, (k,); larger is worse."""
        return self._measure.omega(given_s, mass)

    def complies(self, members: list[int], given_s: Array, mass: float) -> bool:
        """Whether one merged set satisfies the limits; all symbols together do, their lift is exactly 1."""
        return len(members) == len(self.p_x) or self.one_within(given_s, mass)

    def one_within(self, given_s: Array, mass: float) -> bool:
        """`within` for a single set."""
        return bool(self.within(given_s[:, None], np.array([mass]))[0])

    def merged(self, members: list[int]) -> tuple[Array, float]:
        """P(T|s), (|S|,), and P(T) of the set of these symbols."""
        return self.given_s[:, members].sum(axis=1), float(self.p_x[members].sum())
