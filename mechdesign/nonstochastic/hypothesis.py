"""Hypothesis tests on uncertain variables, and privacy against them.

Source: Farokhi 2020 (Non-stochastic hypothesis testing), Definitions 1 to 4, Theorems 1 to 3 and Proposition 1,
corrected. Outputs are a finite set (a frozenset; counted, base 2, **bits**) or a region of real vectors with an exact
`measure` and the operators of sets (Lebesgue measure, base e, **nats**).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.ranges import log_ratio

Region = TypeVar("Region", bound=Any)


@dataclass(frozen=True)
class TestingProblem(Generic[Region]):
    """What an observer of Y can tell about the hypothesis H in {p0, p1}.

    Parameters
    ----------
    null, alternative
        [[Y|p0]] and [[Y|p1]]: the outputs compatible with each hypothesis, both frozensets or both
        regions, neither empty.
    """

    null: Region
    alternative: Region

    __test__ = False  # its name starts as a test's does; pytest must not collect it

    def __post_init__(self) -> None:
        for name, region in (("null", self.null), ("alternative", self.alternative)):
            if _is_measured(region) != _is_measured(self.null):
                raise InputError(
                    "null and alternative must both be sets of outputs or both be regions"
                )
            if not size(region):
                raise InputError(
                    f"no output is compatible with the {name} hypothesis: its range is empty"
                )

    @property
    def unit(self) -> str:
        """Bits for a finite set of outputs, nats for a region."""
        return "nats" if _is_measured(self.null) else "bits"

    @property
    def outputs(self) -> Region:
        """[[Y]], all outputs."""
        return cast("Region", self.null | self.alternative)

    @property
    def ambiguous(self) -> Region:
        """Outputs compatible with both hypotheses: nothing can be told from them."""
        return self.null & self.alternative

    @property
    def telling(self) -> Region:
        """The symmetric difference: outputs that settle the hypothesis."""
        return self.null ^ self.alternative

    @property
    def performance_bound(self) -> float:
        """Log of the size of the set where a test is correct, at most; consistent ones attain it (Theorem 2)."""
        return self._log(size(self.telling))

    @property
    def privacy(self) -> float:
        """Priv = log |Y| - log |telling|, inf if no output tells anything (eq. (9) and (10))."""
        telling = size(self.telling)
        return self._log(size(self.outputs) / telling) if telling else math.inf

    @property
    def epsilon(self) -> Fraction | None:
        """The largest epsilon of epsilon-privacy, |ambiguous| / |telling|; None if unlimited.

        Priv >= log(1 + epsilon) says |Y| >= (1 + epsilon) |telling| (Definition 3), in any base. At
        0 the policy is private for no epsilon.
        """
        telling = size(self.telling)
        return size(self.ambiguous) / telling if telling else None

    @property
    def leakage(self) -> float:
        """L0(Y;H) = max over the hypotheses of log(|Y| / |Y|p|) (bits or nats)."""
        return self._log(
            size(self.outputs) / min(size(self.null), size(self.alternative))
        )

    def _log(self, ratio: Fraction) -> float:
        return log_ratio(ratio, self.unit)


def _is_measured(region: Any) -> bool:
    return hasattr(region, "measure")


def size(region: Any) -> Fraction:
    """Number of outputs, or Lebesgue measure, exact."""
    return region.measure if _is_measured(region) else Fraction(len(region))
