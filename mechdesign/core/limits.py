"""The limits that privacy notions place on every output.

A limit bounds either each lift l(s, y) = P(s|y) / P(s), or an average of the lifts of an output
over the sensitive symbols. All budgets are in nats.

For example, ``LiftLimits(lower=0.5, upper=0.5)`` demands exp(-0.5) <= l <= exp(0.5) of every lift:
no released value makes a secret less than 0.60 or more than 1.65 times as likely as before. With
``MeanLimits(DistanceMean("l1", 1), upper=0.5)`` the mean of |l - 1| is at most exp(0.5) - 1, and a
single lift may be larger.

A notion (`mechdesign.notions`) returns its limits; designers and auditors ask them for their sides,
their means and their words, and know nothing else of the notion.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from mechdesign.core.wording import (
    at_least,
    distance_at_most,
    factor_at_least,
    factor_at_most,
)
from mechdesign.core.wording import budget as shown_budget

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SymbolBudget: TypeAlias = tuple[str, float, float]
"""A sensitive symbol and its own eps_l and eps_u, which replace those of the notion."""


@dataclass(frozen=True)
class LiftLimits:
    """Limits on the largest lift Lambda(y) and the smallest lift Psi(y) of every output.

    ``exp(-lower) <= Psi(y)``, ``Lambda(y) <= exp(upper)`` and
    ``Lambda(y) / Psi(y) <= exp(ratio)``; ``inf`` leaves a side free.
    """

    lower: float = math.inf
    upper: float = math.inf
    ratio: float = math.inf
    symbol_budgets: tuple[SymbolBudget, ...] = ()
    mean: ClassVar[None] = None
    no_polytope: ClassVar[None] = None
    not_convex: ClassVar[None] = None
    no_optimum: ClassVar[None] = None

    @property
    def loosest(self) -> LiftLimits:
        """Limits that hold for every symbol, as wide as the widest budget of any symbol.

        They are too wide for a verdict.
        """
        lower = self.lower
        upper = self.upper
        for _, symbol_lower, symbol_upper in self.symbol_budgets:
            lower = max(lower, symbol_lower)
            upper = max(upper, symbol_upper)
        return LiftLimits(lower, upper, self.ratio)

    @property
    def free_sides(self) -> tuple[str, ...]:
        """The sides, ``lower`` and ``upper``, that no limit bounds."""
        # A bound on the ratio bounds both sides, because the lifts of an output average to 1.
        if math.isfinite(self.ratio):
            return ()
        sides: list[str] = []
        if math.isinf(self.lower):
            sides.append("lower")
        if math.isinf(self.upper):
            sides.append("upper")
        return tuple(sides)

    @property
    def need_shares(self) -> bool:
        """Whether the limits depend on P(s); quotients of two rows of the table do not."""
        return math.isfinite(self.lower) or math.isfinite(self.upper)

    def condition(self, sensitive: str, unit: str = "value") -> str:
        """The limits in words; at least one must be finite. A `unit` is released of a record."""
        parts: list[str] = []
        if self.need_shares:
            text = (
                f"a released {unit} makes any value of {sensitive} "
                f"{_factor_range(self.lower, self.upper)} times as probable"
            )
            for name, lower, upper in self.symbol_budgets:
                text += f", {name!r} {_factor_range(lower, upper)}"
            if "lower" in self.free_sides:
                text += "; it may rule a value out"
            parts.append(text)
        if math.isfinite(self.ratio):
            parts.append(
                f"no released {unit} is more than {factor_at_most(self.ratio)} times as likely "
                f"under one value of {sensitive} as under another"
            )
        return f"{'; '.join(parts)}."


def _factor_range(lower: float, upper: float) -> str:
    """``0.6 to 1.7``, or one side of it; one of the two budgets is finite."""
    low = factor_at_least(lower)
    high = factor_at_most(upper)
    if math.isinf(upper):
        return f"at least {low}"
    if math.isinf(lower):
        return f"at most {high}"
    return f"{low} to {high}"


class MeanOfInverses:
    """A mean whose inverse side is the same mean of the inverse lifts (Definition 6)."""

    def average(self, p_s: Array, lifts: Array) -> Array:
        """The mean of each column of `lifts` (|S|, k), as an array (k,)."""
        raise NotImplementedError

    def used(self, p_s: Array, lifts: Array) -> Array:
        """The budget, in nats, that the mean of each column uses."""
        raise NotImplementedError

    def inverse_average(self, p_s: Array, lifts: Array) -> Array:
        """The mean of the inverses of each column; infinite where a lift is zero."""
        return self.average(p_s, _inverses(lifts))

    def inverse_used(self, p_s: Array, lifts: Array) -> Array:
        """The budget, in nats, that the mean of the inverses of each column uses.

        No lift may be zero: callers treat these apart.
        """
        return self.used(p_s, _inverses(lifts))


def _inverses(lifts: Array) -> Array:
    """1/l, with 1/0 = inf."""
    import numpy as np

    with np.errstate(divide="ignore"):
        return 1.0 / lifts


COVERED_POWERS = (1, 2)
"""Powers of |1/l - 1| for which `mechanisms.convex_means` has convex functions below it."""


@dataclass(frozen=True)
class DistanceMean(MeanOfInverses):
    """``sum_s P(s) |l - 1|^power``, bounded by ``(exp(e) - 1)^power`` for a budget e.

    Power 1 is the l1 notion, power 2 the chi2 notion.
    """

    name: str
    power: int
    has_convex_inverse: ClassVar[bool] = False
    """|1/l - 1| is convex below l = 1 only."""

    def average(self, p_s: Array, lifts: Array) -> Array:
        """The mean of each column of `lifts` (|S|, k), as an array (k,)."""
        return p_s @ abs(lifts - 1.0) ** self.power

    def used(self, p_s: Array, lifts: Array) -> Array:
        """The budget, in nats, that the mean of each column uses."""
        import numpy as np

        # The inverse of `bound`.
        return np.log1p(self.average(p_s, lifts) ** (1.0 / self.power))

    def bound(self, budget: float) -> float:
        """The largest mean that a budget (nats) allows."""
        # A product overflows to inf; a power would raise OverflowError.
        bound = math.prod([math.expm1(budget)] * self.power)
        # A finite bound stays below the infinite mean of inverses with a lift of zero.
        return min(bound, sys.float_info.max)

    def condition(self, inverse: bool, budget: float) -> str:
        """The bound in words, where l is the lift."""
        gap = "1/l - 1" if inverse else "l - 1"
        # An even power needs no absolute value.
        term = f"|{gap}|" if self.power % 2 else f"({gap})"
        if self.power > 1:
            term += f"^{self.power}"
        return f"the mean of {term} is at most {distance_at_most(budget, self.power)}"


@dataclass(frozen=True)
class PowerMean(MeanOfInverses):
    """``(sum_s P(s) l^order)^(1/order)``, bounded by ``exp(e)`` for a budget e.

    The order is finite and above 1.
    """

    order: float
    name: str = "alpha"
    has_convex_inverse: ClassVar[bool] = True

    def average(self, p_s: Array, lifts: Array) -> Array:
        """The mean of each column of `lifts` (|S|, k); infinite where a lift is."""
        import numpy as np

        # Division by the largest lift keeps every power at most 1, so nothing overflows.
        largest = lifts.max(axis=0)
        with np.errstate(invalid="ignore"):
            # inf / inf is not a number: the mean of a column with an infinite lift is infinite.
            shares = np.where(np.isfinite(largest), lifts / largest, 1.0)
        return largest * (p_s @ shares**self.order) ** (1.0 / self.order)

    def used(self, p_s: Array, lifts: Array) -> Array:
        """The budget, in nats, that the mean of each column uses.

        Logarithms and exponentials are several times faster than powers.
        """
        import numpy as np

        # log(0) is meant here, and at the largest orders the exponents may overflow to -inf.
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(lifts)
            largest = logs.max(axis=0)
            # The largest logarithm is taken out of the sum, as in `average`.
            powers = np.exp(self.order * (logs - largest))
            return largest + np.log(p_s @ powers) / self.order

    def bound(self, budget: float) -> float:
        """The largest mean that a budget (nats) allows."""
        return math.exp(budget)

    def condition(self, inverse: bool, budget: float) -> str:
        """The bound in words, where l is the lift."""
        lift = "(1/l)" if inverse else "l"
        # Power means grow with the order, so the bound holds for the order rounded down.
        order = at_least(self.order)
        return f"the mean of {lift}^{order} is at most exp({order} * {shown_budget(budget)})"


@dataclass(frozen=True)
class DivergenceMean:
    """``sum_s P(s) l log l``, bounded by the budget itself: the Kullback-Leibler divergence of
    P(S|y) from P(S), in nats.

    Its inverse side is the divergence of P(S) from P(S|y), ``sum_s P(s) log(1/l)``.
    """

    name: str = "kl"
    has_convex_inverse: ClassVar[bool] = True

    def average(self, p_s: Array, lifts: Array) -> Array:
        """The divergence of each column of `lifts` (|S|, k), as an array (k,)."""
        import numpy as np

        # 0 log 0 = 0, the limit of l log l.
        logs = np.log(np.where(lifts > 0.0, lifts, 1.0))
        return p_s @ (lifts * logs)

    def inverse_average(self, p_s: Array, lifts: Array) -> Array:
        """The divergence of P(S) from each column; infinite where a lift is zero."""
        import numpy as np

        # log 0 = -inf is meant: a lift of zero makes this divergence infinite.
        with np.errstate(divide="ignore"):
            return -(p_s @ np.log(lifts))

    def used(self, p_s: Array, lifts: Array) -> Array:
        """The budget that each column uses, which is its divergence."""
        return self.average(p_s, lifts)

    def inverse_used(self, p_s: Array, lifts: Array) -> Array:
        """The budget of the inverse side that each column uses."""
        return self.inverse_average(p_s, lifts)

    def bound(self, budget: float) -> float:
        """The largest divergence that a budget (nats) allows: as much."""
        return budget

    def condition(self, inverse: bool, budget: float) -> str:
        """The bound in words, where l is the lift."""
        term = "l log l"
        if inverse:
            term = "log(1/l)"
        return f"the mean of {term} is at most {shown_budget(budget)}"


Mean: TypeAlias = DistanceMean | PowerMean | DivergenceMean


@dataclass(frozen=True)
class MeanLimits:
    """Limits on averages of the lifts of every output; ``inf`` leaves a side free.

    `upper` bounds the mean of the lifts, `lower` the mean of their inverses (Zarrabian et al.
    2023, Definitions 5 and 6).
    """

    mean: Mean
    lower: float = math.inf
    upper: float = math.inf
    free_sides: ClassVar[tuple[str, ...]] = ()
    loosest: ClassVar[LiftLimits] = LiftLimits()
    """No limits on single lifts: a bound on their mean bounds none of them."""

    @property
    def no_polytope(self) -> str | None:
        """Why the allowed posteriors do not form a polytope; None if they do."""
        # Only the l1 distance of posteriors is piecewise linear.
        if not isinstance(self.mean, DistanceMean) or self.mean.power != 1:
            return f"{self.mean.name} is a notion without polytope"
        return self.not_convex

    @property
    def not_convex(self) -> str | None:
        """Why the allowed posteriors of three or more secrets are not convex; None if they are.

        With two secrets they are an interval, whatever the mean.
        """
        if math.isinf(self.lower) or self.mean.has_convex_inverse:
            return None
        return (
            f"the posteriors that {self.mean.name} with its inverse allows are not convex for "
            "three or more sensitive symbols (eps_l inf drops the inverse)"
        )

    @property
    def no_optimum(self) -> str | None:
        """Why no optimum can be computed for three or more secrets; None if it can.

        Sets that are not convex are covered by convex ones for the powers of l1 and chi2.
        """
        if isinstance(self.mean, DistanceMean) and self.mean.power in COVERED_POWERS:
            return None
        return self.not_convex

    def condition(self, sensitive: str, unit: str = "value") -> str:
        """The limits in words; at least one must be finite. A `unit` is released of a record."""
        bounds: list[str] = []
        if math.isfinite(self.upper):
            bounds.append(self.mean.condition(False, self.upper))
        if math.isfinite(self.lower):
            bounds.append(self.mean.condition(True, self.lower))
        return (
            f"a released {unit} makes a value of {sensitive} l times as likely as before; with "
            f"{sensitive} as in the table, {' and '.join(bounds)}. A single value of {sensitive} "
            "can become much more or less likely than that."
        )


Limits: TypeAlias = LiftLimits | MeanLimits
