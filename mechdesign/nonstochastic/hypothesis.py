"""Hypothesis tests on uncertain variables, and privacy against them.

Source: Farokhi 2020 (Non-stochastic hypothesis testing for privacy), Definitions 1 to 4, Theorems
1 to 3 and Proposition 1, the last in its corrected form. Outputs are a finite set (a frozenset;
counted, base 2, **bits**) or a `Boxes` region (Lebesgue measure, base e, **nats**).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of, quoted
from mechdesign.nonstochastic.boxes import Boxes
from mechdesign.nonstochastic.ranges import JointRange, log_ratio

Region = TypeVar("Region", frozenset[Hashable], Boxes)

MASS_TOLERANCE = 1e-9
"""How far probabilities may be from summing to one."""


def read_epsilon(epsilon: object, *, positive: bool) -> Fraction:
    """An epsilon of epsilon-privacy (a ratio, not bits) as an exact number.

    Raises
    ------
    InputError
        If it is no number or is negative (or zero, where it must be positive).
    """
    try:
        value = fraction_of(epsilon)
    except InputError:
        raise InputError(f"epsilon ({quoted(epsilon)}) must be a number") from None
    if value < 0 or (positive and value == 0):
        raise InputError(f"epsilon ({float(value):g}) must be {'positive' if positive else 'zero or more'}")
    return value


@dataclass(frozen=True)
class TestingProblem(Generic[Region]):
    """What an observer of Y can tell about the hypothesis H in {p0, p1}.

    Parameters
    ----------
    null, alternative
        [[Y|p0]] and [[Y|p1]]: the outputs compatible with each hypothesis, both frozensets or both
        `Boxes`, neither empty.
    """

    null: Region
    alternative: Region

    __test__ = False  # its name starts as a test's does; pytest must not collect it

    def __post_init__(self) -> None:
        for name, region in (("null", self.null), ("alternative", self.alternative)):
            if isinstance(region, Boxes) != isinstance(self.null, Boxes):
                raise InputError("null and alternative must both be sets of outputs or both be Boxes")
            if not size(region):
                raise InputError(f"no output is compatible with the {name} hypothesis: its range is empty")

    @property
    def unit(self) -> str:
        """Bits for a finite set of outputs, nats for a region."""
        return "nats" if isinstance(self.null, Boxes) else "bits"

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

    def correct(self, accepted: Region) -> Region:
        """The outputs at which a test is correct (Definition 1).

        Parameters
        ----------
        accepted
            The outputs for which the test says p0; it says p1 for all others.
        """
        for_null = accepted & (self.null - self.alternative)
        return for_null | ((self.alternative - self.null) - accepted)

    def is_consistent(self, accepted: Region) -> bool:
        """Whether the test says each hypothesis only where it is possible (Definition 2)."""
        wrong_null = (accepted & self.outputs) - self.null
        wrong_alternative = (self.outputs - accepted) - self.alternative
        return not size(wrong_null) and not size(wrong_alternative)

    def consistent_test(self) -> Region:
        """A consistent test (as the set where it says p0), hence one that nobody beats (Theorem 1)."""
        return self.null

    def performance(self, accepted: Region) -> float:
        """Log of the size of the set where the test is correct, -inf if it is empty (bits or nats)."""
        return self._log(size(self.correct(accepted)))

    @property
    def performance_bound(self) -> float:
        """Log of the size of the symmetric difference; attained by consistent tests (Theorem 2)."""
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

    def is_private(self, epsilon: object) -> bool:
        """Whether the policy is epsilon-private, exactly."""
        wanted = read_epsilon(epsilon, positive=True)
        return self.epsilon is None or self.epsilon >= wanted

    @property
    def leakage(self) -> float:
        """L0(Y;H) = max over the hypotheses of log(|Y| / |Y|p|) (bits or nats)."""
        return self._log(size(self.outputs) / min(size(self.null), size(self.alternative)))

    def _log(self, ratio: Fraction) -> float:
        return log_ratio(ratio, self.unit)


def size(region: frozenset[Hashable] | Boxes) -> Fraction:
    """Number of outputs, or Lebesgue measure, exact."""
    return region.measure if isinstance(region, Boxes) else Fraction(len(region))


def leakage_bound(epsilon: object, unit: str = "nats") -> float:
    """What epsilon-privacy promises of L0(Y;H): log((1 + epsilon) / epsilon), tight.

    The paper's Proposition 1, -log(1 - e^-epsilon), is false: Y = [0, 1] with [[Y|p1]] = [0.5, 1]
    has epsilon = 1 and L0 = log 2 > 0.459. Its proof takes Priv >= epsilon for Priv >= log(1 + epsilon).
    """
    value = read_epsilon(epsilon, positive=True)
    if unit not in ("nats", "bits"):
        raise InputError(f"unit ({quoted(unit)}) must be 'nats' or 'bits'")
    return log_ratio((1 + value) / value, unit)


def finite_problem(
    joint: JointRange, hypothesis: Callable[[Any], bool] | Mapping[Hashable, bool]
) -> TestingProblem[frozenset[Hashable]]:
    """The testing problem of a discrete policy: `hypothesis` says for each x whether p0 holds.

    Raises
    ------
    InputError
        If a symbol of X has no hypothesis, or one of the two never occurs.
    """
    null: set[Hashable] = set()
    alternative: set[Hashable] = set()
    holds: list[bool] = []
    for x in joint.x_symbols:
        if isinstance(hypothesis, Mapping):
            if x not in hypothesis:
                raise InputError(f"the hypothesis says nothing about {quoted(x)}")
            holds.append(bool(hypothesis[x]))
        else:
            holds.append(bool(hypothesis(x)))
    for i, j in zip(joint.rows.tolist(), joint.columns.tolist(), strict=True):
        (null if holds[i] else alternative).add(joint.y_symbols[j])
    return TestingProblem(frozenset(null), frozenset(alternative))


def accuracy(originals: ArrayLike, reports: ArrayLike) -> float:
    """The largest rho for which a policy is rho-accurate on these points (Definition 4).

    Parameters
    ----------
    originals, reports
        Points x and g(x), shapes (N, n) or (N,). Distances are Euclidean.

    Returns
    -------
    float
        1 / max |x - g(x)|, inf if nothing moved.
    """
    before, after = (np.asarray(a, dtype=np.float64) for a in (originals, reports))
    if before.shape != after.shape or before.size == 0:
        raise InputError(f"originals and reports must have one shape, not {before.shape} and {after.shape}")
    if not (bool(np.isfinite(before).all()) and bool(np.isfinite(after).all())):
        raise InputError("originals and reports must be finite numbers; drop NaN and infinities")
    moved = (before - after).reshape(before.shape[0], -1)
    largest = float(np.sqrt((moved**2).sum(axis=1)).max())
    return math.inf if largest == 0 else 1 / largest


def _masses(name: str, values: Iterable[float]) -> list[float]:
    masses = [float(v) for v in values]
    if not masses or any(not math.isfinite(m) or m < 0 for m in masses):
        raise InputError(f"{name} must hold probabilities: finite numbers, none negative")
    if abs(math.fsum(masses) - 1) > MASS_TOLERANCE:
        raise InputError(f"{name} sums to {math.fsum(masses):.12g}, not to 1")
    return masses


def total_variation(null: Iterable[float], alternative: Iterable[float]) -> float:
    """TV = half the sum of |P(y|p0) - P(y|p1)| over a common list of outputs."""
    p, q = _masses("null", null), _masses("alternative", alternative)
    if len(p) != len(q):
        raise InputError(f"null and alternative must list the same outputs, not {len(p)} and {len(q)}")
    return math.fsum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def best_accuracy(null: Iterable[float], alternative: Iterable[float], prior_null: float = 0.5) -> float:
    """The largest P(guess = H) of any randomised test, for a prior P(p0); (1 + TV)/2 at one half.

    The proof of the paper's Theorem 3 says TV instead, which is smaller, so the theorem survives.
    """
    p, q = _masses("null", null), _masses("alternative", alternative)
    if len(p) != len(q):
        raise InputError(f"null and alternative must list the same outputs, not {len(p)} and {len(q)}")
    if not 0 <= prior_null <= 1:
        raise InputError(f"prior_null ({prior_null:g}) must be between 0 and 1")
    return math.fsum(max(prior_null * a, (1 - prior_null) * b) for a, b in zip(p, q, strict=True))


def least_accuracy(problem: TestingProblem[Any], density: float) -> float:
    """A lower bound of the best accuracy at equal priors: (1 + min(1, density |telling| / 2)) / 2.

    Theorem 3, sharpened: if both conditional densities (masses, when discrete) are at least
    `density` on their supports, then TV >= density |telling| / 2, and the accuracy is (1 + TV)/2.
    The paper's density |telling| / 2 alone is a bound for every prior, and smaller.

    Raises
    ------
    InputError
        If no probability can be at least `density` on these ranges.
    """
    largest = max(size(problem.null), size(problem.alternative))
    if not density > 0 or fraction_of(density) * largest > 1 + Fraction(MASS_TOLERANCE):
        raise InputError(
            f"density ({density:g}) must be positive and at most {float(1 / largest):g}, one over the size of "
            f"the larger range ({float(largest):g})"
        )
    return (1 + min(1.0, density * float(size(problem.telling)) / 2)) / 2
