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
an exact `measure` and the operators of sets, as `indistinguishability.Boxes` is (Lebesgue measure,
base e, **nats**). A test is the set of the outputs at which it says p0. Proofs are in
docs/explanation/ranges-theory.md, 'Hypothesis testing'.

*The reporting policy* that protects a hypothesis and moves values least comes from an integer
program. A policy reports every value as one of the values (Farokhi 2020, Definitions 3 and 4; its
Theorem 4 constructs one policy, which is not the best). A report is ambiguous if both hypotheses
can bring it about, and telling if only one can. The policy is epsilon-private if |ambiguous| >=
epsilon |telling| (docs/explanation/ranges-theory.md, 'Hypothesis testing').

The program (`_Arcs.program`) has three kinds of variables in [0, 1]. z_vr is integer and says that
the value v is reported as r. U_hr says that r is in use under the hypothesis h, which is 0 where it
does not hold, and 1 where it does. B_r says that r is ambiguous. With d_vr the distance of v and r,

    minimise sum d_vr^2 z_vr   subject to

    sum_r z_vr = 1                          every value has one report
    z_vr <= U_hr <= sum_v z_vr              over the values v that are possible under h
    B_r <= U_0r,  B_r <= U_1r
    sum B >= epsilon (sum U - 2 sum B)      an ambiguous report counts twice in sum U

The last row has a slack that costs more than any policy, so there is always a solution.
`reporting_policy` reads the reports from z, and counts them again with `TestingProblem`.

For example, the value 1 occurs only without the hypothesis, and 2 only with it. Reported as they
are, both are telling. Reported as 1, both share an ambiguous report, which discloses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.ranges import JointRange, log_ratio
from mechdesign.nonstochastic.solver_failures import solver_failures
from solvers.programs import Program, SparseRows, solve_program

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


# --------------------------------------------------------------------- reporting policy

TIME_LIMIT = 30.0
"""Seconds of the search, which then returns the best policy so far."""

LARGEST_POLICY = 20_000
"""Most pairs of a value and a report in a program, which then takes some seconds to a minute."""

LARGEST_RATIO = 10_000
"""Largest numerator and denominator of epsilon. They are coefficients of the program."""

Indices = NDArray[np.int64]


def reporting_policy(
    points: Any,
    holds: Any,
    epsilon: Fraction | float,
    within: float = math.inf,
    *,
    time_limit: float = TIME_LIMIT,
) -> tuple[Indices, bool]:
    """The epsilon-private policy of least mean squared distance.

    Parameters
    ----------
    points : (n, d) or (n,) array
    holds : (n, 2) or (n,) truth values
        Whether the value can occur where the hypothesis does not hold, and where it does; or, of
        values that settle it, whether it holds.
    epsilon : Fraction or float
        A float is taken as its shortest decimal.
    within
        No report is farther from its value. A policy is rho-accurate if this is 1/rho.

    Returns
    -------
    reports : (n,) integers
        The report of each value, as a place in `points`.
    optimal
        Whether the search was finished.

    Raises
    ------
    InputError
        If the points or truth values are no arrays of these shapes, the program would be too
        large, or epsilon is no ratio of small numbers.
    NotPrivate
        If no policy within that distance is epsilon-private.
    SolverFailure
        If none was found in time.
    """
    epsilon = _ratio_of(epsilon)
    points = _checked_points(points)
    holds = _checked_holds(holds, len(points))
    if within < 0:
        raise InputError(f"a distance (--within {within:g}) must not be negative")
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    arcs = _arcs_within(squared, within)
    costs = squared[arcs.source, arcs.report]
    program = arcs.program(costs, holds, epsilon)
    with solver_failures():
        solution = solve_program(program, time_limit=time_limit)
    taken = solution.x[: arcs.source.size] > 0.5
    reporting = arcs.source[taken]
    reports = np.zeros(arcs.size, dtype=np.int64)
    reports[reporting] = arcs.report[taken]
    # Counted again, because the solver's tolerances may hide a missing report or a broken promise.
    all_reported = np.unique(reporting).size == arcs.size
    if all_reported and _is_private(reports, holds, epsilon):
        return reports, solution.optimal
    if solution.optimal:
        raise NotPrivate(
            f"no policy within {within:g} is {float(epsilon):g}-private; lower epsilon, or allow "
            "more"
        )
    raise SolverFailure(
        f"no private policy was found within {time_limit:g} s; use coarser values"
    )


def _ratio_of(epsilon: Fraction | float) -> Fraction:
    """Epsilon as a fraction; refused if negative, or if its terms are too large for the program."""
    try:
        # A float's own fraction has a denominator of 2^52; people mean its decimal.
        ratio = Fraction(str(epsilon))
    except ValueError:
        # What is no number fails the check below.
        ratio = Fraction(-1)
    numerator, denominator = ratio.as_integer_ratio()
    if not 0 <= numerator <= LARGEST_RATIO or denominator > LARGEST_RATIO:
        raise InputError(
            f"epsilon must be 0 or more, and a ratio of whole numbers up to {LARGEST_RATIO:,}"
        )
    return ratio


def _checked_points(points: Any) -> NDArray[np.float64]:
    """The values as points, (n, d)."""
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("points must be numbers, a row for each value") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not len(array) or not np.isfinite(array).all():
        raise InputError("points must be finite numbers, a row for each value")
    return array


def _checked_holds(holds: Any, size: int) -> NDArray[np.bool_]:
    """Truth values for both sides of the hypothesis, (n, 2)."""
    array = np.asarray(holds)
    if array.dtype != np.bool_ or array.shape not in ((size,), (size, 2)):
        raise InputError(
            f"holds must be truth values, one or two for each of the {size:,} points"
        )
    if array.ndim == 1:
        array = np.column_stack([~array, array])
    return array


def _arcs_within(squared: NDArray[np.float64], within: float) -> _Arcs:
    """The pairs of a value and a report at most `within` apart, by their squared distances."""
    source, report = np.nonzero(np.sqrt(squared) <= within)
    if source.size > LARGEST_POLICY:
        raise InputError(
            f"{source.size:,} pairs of a value and a report are too many ({LARGEST_POLICY:,} at "
            "most); use coarser values, or a smaller distance (--within)"
        )
    return _Arcs(source, report, len(squared))


def _is_private(reports: Indices, holds: NDArray[np.bool_], epsilon: Fraction) -> bool:
    """Whether the policy is epsilon-private, counted on its reports."""
    opposing = frozenset(reports[holds[:, 0]].tolist())
    supporting = frozenset(reports[holds[:, 1]].tolist())
    largest = TestingProblem(supporting, opposing).epsilon
    return largest is None or largest >= epsilon


@dataclass(frozen=True, eq=False)
class _Arcs:
    """The pairs (value, report) that a policy chooses from, and the columns of its program.

    Columns, in order: for each pair, whether it is taken; for each report, whether the values
    without the hypothesis bring it about, then whether those with it do; for each report, whether
    it is ambiguous; and the slack by which the promise is missed, which costs more than any policy,
    so that the program always has a solution.
    """

    source: Indices
    report: Indices
    size: int

    @property
    def _used(self) -> int:
        """The first column of reports in use, side by side for the two hypotheses."""
        return self.source.size

    @property
    def _ambiguous(self) -> int:
        """The first column of ambiguous reports."""
        return self._used + 2 * self.size

    @property
    def _slack(self) -> int:
        """The column of the slack, the last one."""
        return self._ambiguous + self.size

    def program(
        self, squared: NDArray[np.float64], holds: NDArray[np.bool_], epsilon: Fraction
    ) -> Program:
        """Least squared distance (scaled to at most 1 a pair) subject to epsilon-privacy."""
        rows = SparseRows()
        for k in range(self.size):
            # Value k has exactly one report.
            reports = np.flatnonzero(self.source == k).tolist()
            rows.add(reports, [1.0] * len(reports), 1.0, 1.0)
            for side in (0, 1):
                self._add_use(rows, k, side, holds)
        numerator, denominator = epsilon.as_integer_ratio()
        # |ambiguous| >= p/q |telling|, where |telling| = |used by either| - |ambiguous| and a
        # report that both sides use counts twice: q A - p (U - 2 A) + slack >= 0.
        weights = np.repeat(
            [-float(numerator), float(denominator + 2 * numerator), 1.0],
            [2 * self.size, self.size, 1],
        )
        privacy = range(self._used, self._slack + 1)
        rows.add(privacy, weights.tolist(), 0.0, math.inf)
        columns = self._slack + 1
        costs = np.zeros(columns)
        costs[: self._used] = squared / (squared.max() or 1.0)
        # More than any policy costs, so it is used only where no policy keeps the promise.
        costs[self._slack] = self.size + 1.0
        most = np.ones(columns)
        most[self._slack] = math.inf
        # Only the pairs must be integers. They settle what is in use, as 0 or 1, and the ambiguous
        # reports can be as large as both sides allow, which is 0 or 1 again.
        integer = np.ones(columns, dtype=np.bool_)
        integer[self._used :] = False
        return Program(costs, 0 * costs, most, rows, integer)

    def _add_use(
        self, rows: SparseRows, k: int, side: int, holds: NDArray[np.bool_]
    ) -> None:
        """Report k is used by a side iff a pair of it is taken, and ambiguous only if both use it.

        A side is the values that are possible without the hypothesis (0) or with it (1).
        """
        used = self._used + side * self.size + k
        into = np.flatnonzero((self.report == k) & holds[self.source, side]).tolist()
        # used <= the sum of the pairs, ambiguous <= used, and each pair <= used.
        rows.add([used, *into], [1.0, *[-1.0] * len(into)], -math.inf, 0.0)
        rows.add([used, self._ambiguous + k], [1.0, -1.0], 0.0, math.inf)
        for arc in into:
            rows.add([used, arc], [1.0, -1.0], 0.0, math.inf)
