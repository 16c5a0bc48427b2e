"""Hypothesis tests on uncertain variables, and privacy against them (Farokhi 2020).

[[Y|p0]] and [[Y|p1]] are the outputs that are possible under two hypotheses. Outputs in both are
ambiguous; those in one alone are telling, because they settle the hypothesis. With |.| for sizes:

- a test is right at telling outputs alone, so its performance, the log of the size of the outputs
  where it is right, is at most log |telling| (eq. (6) and (7), Theorems 1 and 2);
- Priv = log |Y| - log |telling| (eq. (9) and (10));
- a policy is epsilon-private if Priv >= log(1 + epsilon) (Definition 3), that is |ambiguous| >=
  epsilon |telling|, because |Y| is the sum of both;
- L0(Y;H) = max over the hypotheses of log(|Y| / |Y|p|) (eq. (5); Proposition 1, corrected).

For example, with p0 the outputs a, b and c are possible, and with p1 the outputs b, c and d. Then a
and d tell the hypothesis, and b and c are ambiguous. So Priv is log2(4 / 2) = 1 bit, the largest
epsilon is 2 / 2 = 1, and the leakage is log2(4 / 3) = 0.415 bits.

Outputs are a finite set (a frozenset; counted, base 2, **bits**) or a region of real vectors with
an exact `measure` and the operators of sets, as `boxes.Boxes` is (Lebesgue measure, base e,
**nats**). A test is the set of the outputs at which it says p0. Proofs are in
docs/explanation/ranges-theory.md, 'Hypothesis testing'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.ranges import JointRange, log_ratio

Region = TypeVar("Region", bound=Any)
"""A frozenset of outputs, or a region: a type with `measure` and the operators |, & and ^."""


@dataclass(frozen=True)
class TestingProblem(Generic[Region]):
    """The outputs Y under a hypothesis H in {p0, p1}, as an observer sees them.

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
            if _is_measured(region) and not hasattr(region, "measure"):
                raise InputError(
                    f"{name} must be a set of outputs (a frozenset), or a region with a measure, "
                    f"not {type(region).__name__}"
                )
        # The size of a union has no meaning where one part is counted and the other measured.
        if _is_measured(self.alternative) != _is_measured(self.null):
            raise InputError(
                "null and alternative must both be sets of outputs or both be regions"
            )
        for name, region in (("null", self.null), ("alternative", self.alternative)):
            if not size(region):
                raise InputError(
                    f"no output is compatible with the {name} hypothesis: its range is empty"
                )

    @property
    def unit(self) -> str:
        """Bits for a finite set of outputs, nats for a region."""
        if _is_measured(self.null):
            return "nats"
        return "bits"

    @property
    def outputs(self) -> Region:
        """[[Y]], all outputs."""
        return cast("Region", self.null | self.alternative)

    @property
    def ambiguous(self) -> Region:
        """Outputs compatible with both hypotheses: they decide nothing."""
        return self.null & self.alternative

    @property
    def telling(self) -> Region:
        """The symmetric difference: outputs that settle the hypothesis."""
        return self.null ^ self.alternative

    @property
    def performance_bound(self) -> float:
        """log |telling|: no test has more (Theorem 2); consistent ones attain it (Theorem 1)."""
        return self._log(size(self.telling))

    @property
    def privacy(self) -> float:
        """Priv = log |Y| - log |telling|, eq. (9) and (10).

        It is inf if no output settles the hypothesis.
        """
        telling = size(self.telling)
        if not telling:
            return math.inf
        return self._log(size(self.outputs) / telling)

    @property
    def epsilon(self) -> Fraction | None:
        """The largest epsilon of epsilon-privacy, |ambiguous| / |telling|; None if unlimited.

        At 0 the policy is private for no epsilon, since Definition 3 asks for a positive one.
        """
        telling = size(self.telling)
        if not telling:
            return None
        return size(self.ambiguous) / telling

    @property
    def leakage(self) -> float:
        """L0(Y;H) = max over the hypotheses of log(|Y| / |Y|p|) (bits or nats).

        At most log((1 + epsilon) / epsilon) for an epsilon-private policy (Proposition 1,
        corrected).
        """
        # The ratio is largest for the hypothesis with fewer outputs.
        smaller = min(size(self.null), size(self.alternative))
        return self._log(size(self.outputs) / smaller)

    def correct(self, accepted: Region) -> Region:
        """The outputs at which a test is right that says p0 at those `accepted`, and p1 elsewhere
        (Definition 1).
        """
        return (accepted & (self.null - self.alternative)) | (
            (self.alternative - self.null) - accepted
        )

    def is_consistent(self, accepted: Region) -> bool:
        """Whether a test says each hypothesis only where it is possible (Definition 2)."""
        wrong_null = (accepted & self.outputs) - self.null
        wrong_alternative = (self.outputs - accepted) - self.alternative
        return not size(wrong_null) and not size(wrong_alternative)

    def performance(self, accepted: Region) -> float:
        """Log of the size of the outputs at which a test is right, eq. (6) and (7) (bits or nats).

        It is -inf if there are none.
        """
        return self._log(size(self.correct(accepted)))

    def _log(self, ratio: Fraction) -> float:
        """The logarithm in the unit of the outputs."""
        return log_ratio(ratio, self.unit)


def finite_problem(
    joint: JointRange, hypothesis: Callable[[Any], bool] | Mapping[Hashable, bool]
) -> TestingProblem[frozenset[Hashable]]:
    """The testing problem of a policy with finitely many outputs.

    Parameters
    ----------
    joint : JointRange
        What is private, with the outputs that it can have.
    hypothesis
        For each x whether p0 holds.

    Raises
    ------
    InputError
        If a symbol of X has no hypothesis, or one of the two never occurs.
    """
    if isinstance(hypothesis, Mapping):
        for x in joint.x_symbols:
            if x not in hypothesis:
                raise InputError(f"the hypothesis says nothing about {quoted(x)}")
        hypothesis = hypothesis.__getitem__
    null: set[Hashable] = set()
    alternative: set[Hashable] = set()
    holds = [bool(hypothesis(x)) for x in joint.x_symbols]
    for i, j in zip(joint.rows.tolist(), joint.columns.tolist(), strict=True):
        side = null if holds[i] else alternative
        side.add(joint.y_symbols[j])
    return TestingProblem(frozenset(null), frozenset(alternative))


def _is_measured(region: Any) -> bool:
    """Whether the size of a region is its measure, and not the number of its members."""
    # Any type with a measure and the operators of sets is a region; frozensets have none.
    return not isinstance(region, frozenset | set)


def size(region: Any) -> Fraction:
    """Number of outputs, or Lebesgue measure, exact."""
    if _is_measured(region):
        return region.measure
    return Fraction(len(region))
