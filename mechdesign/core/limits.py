"""What notions demand of every output: bounds on single lifts, or on averages of them over the sensitive symbols."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from mechdesign.core.numbers import (
    at_least,
    distance_at_most,
    factor_at_least,
    factor_at_most,
)
from mechdesign.core.numbers import budget as shown_budget

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class LiftLimits:
    """What a lift notion demands of every output, in nats; ``inf`` where a side is free.

    ``exp(-lower) <= Psi(y)``, ``Lambda(y) <= exp(upper)`` and ``Lambda(y) / Psi(y) <= exp(ratio)``.
    """

    lower: float = math.inf
    upper: float = math.inf
    ratio: float = math.inf
    own: tuple[OwnBudget, ...] = ()
    mean: ClassVar[None] = None
    no_polytope: ClassVar[None] = None

    @property
    def loosest(self) -> LiftLimits:
        """Limits that hold for every symbol, as wide as those of any with budgets of its own: no verdict is by them."""
        lower = max([self.lower, *(lower for _, lower, _ in self.own)])
        return LiftLimits(
            lower, max([self.upper, *(upper for _, _, upper in self.own)]), self.ratio
        )

    @property
    def free_sides(self) -> tuple[str, ...]:
        """Which of lower and upper nothing bounds."""
        if math.isfinite(self.ratio):
            return ()
        return tuple(
            side for side in ("lower", "upper") if math.isinf(getattr(self, side))
        )

    @property
    def need_shares(self) -> bool:
        """Whether they speak of P(s): quotients of two rows of the table do not."""
        return math.isfinite(self.lower) or math.isfinite(self.upper)

    def condition(self, sensitive: str) -> str:
        """The limits in words; one of them is finite."""
        parts: list[str] = []
        if self.need_shares:
            own = "".join(
                f", but {name!r} {_between(low, high)}" for name, low, high in self.own
            )
            parts.append(
                f"whoever sees a released value finds every {sensitive} {_between(self.lower, self.upper)} times as "
                f"likely as before{own}"
            )
        if math.isfinite(self.ratio):
            parts.append(
                f"no released value is more than {factor_at_most(self.ratio)} times as likely under one "
                f"{sensitive} as under another"
            )
        return f"{'; '.join(parts)}."


def _between(lower: float, upper: float) -> str:
    """``at least 0.6 and at most 1.7``; one side is finite."""
    bounds = [f"at least {factor_at_least(lower)}"] if math.isfinite(lower) else []
    return " and ".join(
        [
            *bounds,
            *([f"at most {factor_at_most(upper)}"] if math.isfinite(upper) else []),
        ]
    )


@dataclass(frozen=True)
class DistanceMean:
    """``sum_s P(s) |l - 1|^power``, which a budget e bounds by ``(exp(e) - 1)^power``: l1 (1) and chi2 (2)."""

    name: str
    power: int

    def average(self, p_s: Array, lifts: Array) -> Array:
        """The mean of each column of `lifts` (|S|, k)."""
        return p_s @ abs(lifts - 1.0) ** self.power

    def used(self, p_s: Array, lifts: Array) -> Array:
        """The budget (nats) that the mean of each column uses."""
        import numpy as np

        return np.log1p(self.average(p_s, lifts) ** (1.0 / self.power))

    def bound(self, budget: float) -> float:
        """What a budget (nats) allows."""
        bound = math.prod([math.expm1(budget)] * self.power)
        return min(bound, sys.float_info.max)  # below the mean of a lift of zero

    def condition(self, inverse: bool, budget: float) -> str:
        """The bound in words; l is how many times as likely as before a symbol is."""
        gap = "1/l - 1" if inverse else "l - 1"
        term = f"|{gap}|" if self.power % 2 else f"({gap})"
        term += f"^{self.power}" if self.power > 1 else ""
        return f"the mean of {term} is at most {distance_at_most(budget, self.power)}"


@dataclass(frozen=True)
class PowerMean:
    """``(sum_s P(s) l^order)^(1/order)``, which a budget e bounds by ``exp(e)``; the order is finite and above 1."""

    order: float
    name: str = "alpha"

    def average(self, p_s: Array, lifts: Array) -> Array:
        """The mean of each column of `lifts` (|S|, k); infinite where one of them is."""
        import numpy as np

        largest = lifts.max(axis=0)  # the scale keeps every power below 1
        with np.errstate(invalid="ignore"):
            shares = np.where(np.isfinite(largest), lifts / largest, 1.0)
        return largest * (p_s @ shares**self.order) ** (1.0 / self.order)

    def used(self, p_s: Array, lifts: Array) -> Array:
        """The budget (nats) that the mean of each column uses; from logarithms, several times faster than powers."""
        import numpy as np

        with np.errstate(
            divide="ignore", over="ignore"
        ):  # log 0, and at the largest orders exp(-inf)
            logs = np.log(lifts)
            largest = logs.max(axis=0)
            return (
                largest
                + np.log(p_s @ np.exp(self.order * (logs - largest))) / self.order
            )

    def bound(self, budget: float) -> float:
        """What a budget (nats) allows."""
        return math.exp(budget)

    def condition(self, inverse: bool, budget: float) -> str:
        """The bound in words; l is how many times as likely as before a symbol is."""
        lift = "(1/l)" if inverse else "l"
        order = at_least(
            self.order
        )  # rounded down: power means grow with the order, so this is true as well
        return f"the mean of {lift}^{order} is at most exp({order} * {shown_budget(budget)})"


Mean: TypeAlias = DistanceMean | PowerMean


@dataclass(frozen=True)
class MeanLimits:
    """What a notion on averages over S demands of every output, in nats; ``inf`` where a side is free.

    The mean of the lifts is bounded by `upper`, that of their inverses by `lower` (Zarrabian et al. 2023,
    Definitions 5 and 6).
    """

    mean: Mean
    lower: float = math.inf
    upper: float = math.inf
    free_sides: ClassVar[tuple[str, ...]] = ()
    loosest: ClassVar[LiftLimits] = LiftLimits()
    """No limits on single lifts: a mean of lifts bounds none of them."""

    @property
    def no_polytope(self) -> str | None:
        """Why the posteriors that keep to the limits form no polytope; None where they do."""
        if not isinstance(self.mean, DistanceMean) or self.mean.power != 1:
            return f"{self.mean.name} is a notion without polytope"
        if math.isfinite(self.lower):
            return f"{self.mean.name} with its inverse is a notion without polytope (eps_l inf drops the inverse)"
        return None

    def condition(self, sensitive: str) -> str:
        """The limits in words; one of them is finite."""
        sides = ((False, self.upper), (True, self.lower))
        bounds = [
            self.mean.condition(inverse, side)
            for inverse, side in sides
            if math.isfinite(side)
        ]
        return (
            f"a released value makes a {sensitive} l times as likely as before; with {sensitive} as in the table, "
            f"{' and '.join(bounds)}. A single {sensitive} can become much more or less likely than that."
        )


Limits: TypeAlias = LiftLimits | MeanLimits

OwnBudget: TypeAlias = tuple[str, float, float]
"""A sensitive symbol with its own eps_l and eps_u, in place of those of the notion."""
