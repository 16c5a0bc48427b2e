"""The smallest budget whose design keeps a share of the information, on a scale of decimals.

The scale has the budgets that people type: all decimals of four digits from 10^-4 nats to 700. What
the best design keeps grows with the budget, so that a search by halves finds the smallest one.
Designs are made by a function of epsilon, and may be of one column or of rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from mechdesign.core.wording import at_least

DECADE = 9000
"""Budgets of a decade: those of four digits."""

SMALLEST = -4
"""The scale begins at 10^-4 nats: a belief of 50 % then moves to 50.005 % at most."""

LARGEST_STEP = 6 * DECADE + 6000
"""700 nats, beyond which no budget can be said."""

KEPT_AT = "kept_at"
KEPT_LESS_AT = "kept_less_at"
"""What the certificate of such a design tells: the budget, and the largest one that was proven not
to keep so much."""


class Kept(Protocol):
    """A design, as far as the scale knows it."""

    @property
    def nmi(self) -> float:
        """The share of the information that it keeps."""
        ...


KeptT = TypeVar("KeptT", bound=Kept)


class BudgetScale(Generic[KeptT]):
    """The steps of the scale, with the designs at those that were tried.

    Parameters
    ----------
    designed : callable
        From epsilon (nats) to a design.
    share : Fraction
        What is to be kept.
    grain : int
        Only every so many-th step is tried: 10 leaves budgets of three digits.
    end : float
        When the search for smaller budgets ends, on the clock of `time.perf_counter`. One that
        keeps the share is always looked for.
    """

    def __init__(
        self,
        designed: Callable[[float], KeptT],
        share: Fraction,
        *,
        grain: int = 1,
        end: float = math.inf,
    ) -> None:
        self._designed = designed
        self._share = share
        self._grain = grain
        self._end = end
        self.in_time = True
        self.designs: dict[int, KeptT] = {}

    def smallest_step(self) -> int:
        """The smallest step whose design keeps the share; one beyond the scale where none does.

        Doubling from 1 nat brackets it; then the invariant is that `low` keeps less and `high`
        enough, -1 and the step beyond the scale counting as such.
        """
        grain = self._grain
        low = -grain
        high = LARGEST_STEP + grain
        epsilon = 1.0
        while high - low > grain:
            if high <= LARGEST_STEP and time.perf_counter() >= self._end:
                self.in_time = False
                return high
            if low < 0 or high > LARGEST_STEP:
                step = min(max(step_of(epsilon), 0), LARGEST_STEP)
                # Doubling and halving keep the digits few, but not always as few as asked.
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
        """The next step inside a bracket."""
        if len(self.designs) % 2:
            step = (low + high) // 2
        else:
            # The curve is nearly straight between neighbours; halving in turn bounds the worst
            # case.
            kept_low = self.designs[low].nmi
            kept_high = self.designs[high].nmi
            part = (float(self._share) - kept_low) / (kept_high - kept_low)
            step = low + round((high - low) * part)
        step -= step % self._grain
        return min(max(step, low + self._grain), high - self._grain)

    def largest_where(self, proves_less: Callable[[KeptT], bool]) -> int | None:
        """The largest step whose design proves that no channel keeps the share there."""
        found: list[int] = []
        for step, design in self.designs.items():
            if proves_less(design):
                found.append(step)
        return max(found, default=None)

    def sentence(self, step: int, too_small: int | None) -> str:
        """What the answer `step` means, `too_small` being that of `largest_where`."""
        if too_small is not None:
            proof = f"with {epsilon_of(too_small):g} no channel does (proven)"
            if too_small < step - self._grain:
                proof += "; between the two the search did not decide"
        elif step == 0:
            proof = "none is tried below"
        else:
            proof = "no smaller budget was proven to keep less"
        percent = at_least(float(100 * self._share))
        return f"epsilon {epsilon_of(step):g} keeps {percent} % of the information; {proof}"


def epsilon_of(step: int) -> float:
    """The budget of a step: 10^-4 nats, then all decimals of four digits."""
    return float(f"{DECADE // 9 + step % DECADE}e{step // DECADE + SMALLEST - 3}")


def step_of(epsilon: float) -> int:
    """The last step at or below a budget."""
    decade = math.floor(math.log10(epsilon))
    return (
        (decade - SMALLEST) * DECADE
        + math.floor(round(epsilon * 10.0 ** (3 - decade), 6))
        - DECADE // 9
    )
