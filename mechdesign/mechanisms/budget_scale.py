"""The smallest budget whose design keeps a share of the information, on a scale of decimals.

The scale has the budgets that people type: all decimals of four digits from 10^-4 nats to 700.
They are numbered by *steps*: step 0 is 0.0001, step 1 is 0.0001001, step 9000 is 0.001, and step
36000 is 1. Designs come from a function of epsilon, and may be of one column or of rows.

The utility of the best design grows with the budget, so bisection over steps finds the smallest
budget. For example, let 80 % be asked for, and let the designs keep 70 % at 1 nat and 90 % at 2.
Then the answer is one of the steps from 36001 to 37000. Ten halvings of these leave one, and
interpolation in between makes it fewer.

A `BudgetScale` is used once: `smallest_step` makes the designs, then `designs` has them by step,
`largest_where` finds the largest budget that is proven too small, and `sentence` words the answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from mechdesign.core.wording import at_least

DECADE = 9000
"""Budgets of a decade: the decimals of four digits."""

SMALLEST = -4
"""The scale begins at 10^-4 nats: a belief of 50 % then moves to 50.005 % at most."""

LARGEST_STEP = 6 * DECADE + 6000
"""The step of 700 nats, the largest possible budget."""

KEPT_AT = "kept_at"
KEPT_LESS_AT = "kept_less_at"
"""Keys of the certificate of such a design: the budget, and the largest budget that provably keeps
less."""


class Kept(Protocol):
    """The part of a design that the scale uses."""

    @property
    def nmi(self) -> float:
        """The share of the information that it keeps."""
        ...


KeptT = TypeVar("KeptT", bound=Kept)


class BudgetScale(Generic[KeptT]):
    """The steps of the scale, with the designs at the tried ones.

    `designs` has the tried ones by step; `in_time` is whether the search was not cut short.

    Parameters
    ----------
    designed : callable
        From epsilon (nats) to a design.
    share : Fraction
        The share of the information to keep.
    grain : int
        Only every so many-th step is tried: 10 leaves budgets of three digits.
    end : float
        When the search for smaller budgets ends, on the clock of `time.process_time`. The search
        for one that keeps the share has no end.
    of, kind : str
        What the share is one of, and what the designs are, in words.
    """

    def __init__(
        self,
        designed: Callable[[float], KeptT],
        share: Fraction,
        *,
        grain: int = 1,
        end: float = math.inf,
        of: str = "information",
        kind: str = "channel",
    ) -> None:
        self._designed = designed
        self._share = share
        self._grain = grain
        self._end = end
        self._of = of
        self._kind = kind
        self.in_time = True
        self.designs: dict[int, KeptT] = {}

    def smallest_step(self) -> int:
        """The smallest step whose design keeps the share; one beyond the scale if none does.

        Doubling or halving from 1 nat brackets it. Invariant: `low` keeps less and `high` enough,
        where the steps just outside the scale count as tried.
        """
        grain = self._grain
        low = -grain
        high = LARGEST_STEP + grain
        epsilon = 1.0
        while high - low > grain:
            if high <= LARGEST_STEP and time.process_time() >= self._end:
                self.in_time = False
                return high
            if low < 0 or high > LARGEST_STEP:
                step = min(max(step_of(epsilon), 0), LARGEST_STEP)
                # A power of two may have more digits than the grain allows.
                step -= step % grain
            else:
                step = self._between(low, high)
            self.designs[step] = self._designed(epsilon_of(step))
            if self.designs[step].nmi >= self._share:
                high = step
                epsilon /= 2
            else:
                low = step
                epsilon *= 2
        return high

    def _between(self, low: int, high: int) -> int:
        """The next step inside a bracket: by bisection and by interpolation in turn."""
        if len(self.designs) % 2:
            step = (low + high) // 2
        else:
            # The curve is nearly straight between neighbours, so interpolation is mostly faster.
            # Bisection every other time bounds the number of steps.
            kept_low = self.designs[low].nmi
            kept_high = self.designs[high].nmi
            part = (float(self._share) - kept_low) / (kept_high - kept_low)
            step = low + round((high - low) * part)
        step -= step % self._grain
        return min(max(step, low + self._grain), high - self._grain)

    def largest_where(self, proves_less: Callable[[KeptT], bool]) -> int | None:
        """The largest step whose design proves that no channel keeps the share there."""
        too_small: list[int] = []
        for step, design in self.designs.items():
            if proves_less(design):
                too_small.append(step)
        return max(too_small, default=None)

    def sentence(self, step: int, too_small: int | None) -> str:
        """The answer `step` in words; `too_small` is the answer of `largest_where`."""
        if too_small is not None:
            proof = f"with {epsilon_of(too_small):g} no {self._kind} does (proven)"
            if too_small < step - self._grain:
                proof += "; between the two the search did not decide"
        elif step == 0:
            proof = "none is tried below"
        else:
            proof = "no smaller budget was proven to keep less"
        percent = at_least(float(100 * self._share))
        return (
            f"epsilon {epsilon_of(step):g} keeps {percent} % of the {self._of}; {proof}"
        )


def epsilon_of(step: int) -> float:
    """The budget of a step: 10^-4 nats, then all decimals of four digits."""
    # Step k of a decade has the digits 1000 + k. The double is that of the decimal text.
    digits = DECADE // 9 + step % DECADE
    exponent = step // DECADE + SMALLEST - 3
    return float(f"{digits}e{exponent}")


def step_of(epsilon: float) -> int:
    """The last step at or below a budget; the inverse of `epsilon_of`."""
    decade = math.floor(math.log10(epsilon))
    # Rounded first, because a product such as 1234.0 may come out just below.
    digits = math.floor(round(epsilon * 10.0 ** (3 - decade), 6))
    return (decade - SMALLEST) * DECADE + digits - DECADE // 9
