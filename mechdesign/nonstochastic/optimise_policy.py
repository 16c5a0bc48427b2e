"""The best reporting policy against a hypothesis on a finite grid, by MILP.

A policy maps every x to a report within distance 1/rho of it (rho-accuracy; Farokhi 2021,
Definition 4). A report that can come from both hypotheses tells the adversary nothing; the others
make up the symmetric difference. The policy is epsilon-private iff overlap >= epsilon * difference
(theory.md, section 6), which is linear at fixed epsilon. Farokhi's Theorem 4 offers one blurring
policy; this finds the best one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.nonstochastic.domains import doubles, exact_number
from mechdesign.nonstochastic.solving import solve
from solvers.programs.milp import Program, Rows, Solution

TIME_LIMIT = 60.0
"""Seconds for a MILP unless told otherwise."""

LARGEST_POLICY = 200_000
"""Pairs (point, report) within reach of each other."""

MOST_ROUNDS = 50
"""Rounds of Dinkelbach's method; each raises the ratio strictly, and a few suffice."""

ROUNDING = 1e-9
"""Relative; squared distances this close to the limit are compared again in exact arithmetic."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportingPolicy:
    """A map from points to reports, counted exactly."""

    report: NDArray[np.int64]
    overlap: int
    difference: int
    distortion: float
    optimal: bool

    @property
    def epsilon(self) -> float:
        """overlap / difference: the largest epsilon of epsilon-privacy; inf if nothing differs."""
        return math.inf if self.difference == 0 else self.overlap / self.difference

    @property
    def privacy(self) -> float:
        """Priv = log2 |Y| - log2 |difference| in bits (Farokhi 2021, eq. 10)."""
        if self.difference == 0:
            return math.inf
        return math.log2(self.overlap + self.difference) - math.log2(self.difference)


class _Model:
    """Binary a_xy (x is reported as y), u_0y and u_1y (y is possible under a hypothesis), m_y (both)."""

    def __init__(self, points: Floats, reports: Floats, second: NDArray[np.bool_], radius: Fraction) -> None:
        self.points, self.reports, self.second = points, reports, second
        self.sources, self.targets = _within(points, reports, radius)
        self.squared = ((points[self.sources] - reports[self.targets]) ** 2).sum(axis=1)
        self._arcs, self._size = self.sources.size, len(reports)

    def program(self, epsilon: Fraction, *, ratio: bool) -> Program:
        """Least distortion at fixed epsilon, or the largest overlap - epsilon * difference."""
        arcs, size = self._arcs, self._size
        first, second, both = (arcs + k * size for k in range(3))
        rows = Rows()
        for x in range(len(self.points)):
            reach = np.flatnonzero(self.sources == x).tolist()
            rows.add(reach, [1.0] * len(reach), 1.0, 1.0)
        for y in range(size):
            for used, hypothesis in ((first + y, False), (second + y, True)):
                into = np.flatnonzero(
                    (self.targets == y) & (self.second[self.sources] == hypothesis)
                ).tolist()
                rows.add([used, *into], [1.0, *[-1.0] * len(into)], -math.inf, 0.0)
                for arc in into:
                    rows.add((used, arc), (1.0, -1.0), 0.0, math.inf)
            # m = u_0 and u_1.
            rows.add((both + y, first + y), (1.0, -1.0), -math.inf, 0.0)
            rows.add((both + y, second + y), (1.0, -1.0), -math.inf, 0.0)
            rows.add((both + y, first + y, second + y), (1.0, -1.0, -1.0), -1.0, math.inf)
        # overlap - epsilon (|u_0| + |u_1| - 2 overlap), in integers.
        p, q = epsilon.numerator, epsilon.denominator
        columns = [*range(first, second), *range(second, both), *range(both, both + size)]
        gain = [*[-float(p)] * (2 * size), *[float(q + 2 * p)] * size]
        costs = np.zeros(both + size)
        if ratio:
            costs[columns] = -np.array(gain)
        else:
            rows.add(columns, gain, 0.0, math.inf)
            costs[:arcs] = self.squared / max(float(self.squared.max()), 1.0)
        ones = np.ones(costs.size)
        return Program(costs, 0 * ones, ones, rows, np.ones(costs.size, dtype=np.bool_))

    def policy(self, found: Solution) -> ReportingPolicy:
        """The rounded policy, counted from the map alone."""
        chosen = np.flatnonzero(np.rint(found.x[: self._arcs]) == 1)
        report = np.full(len(self.points), -1, dtype=np.int64)
        report[self.sources[chosen]] = self.targets[chosen]
        if chosen.size != len(self.points) or bool((report < 0).any()):
            raise SolverFailure("the policy found does not report every point once; nothing is returned")
        either = [set(report[self.second == h].tolist()) for h in (False, True)]
        return ReportingPolicy(
            report=report,
            overlap=len(either[0] & either[1]),
            difference=len(either[0] ^ either[1]),
            distortion=float(((self.points - self.reports[report]) ** 2).sum(axis=1).mean()),
            optimal=found.optimal,
        )


def _within(points: Floats, reports: Floats, radius: Fraction) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs at most `radius` apart, decided exactly (the points are doubles)."""
    squared = ((points[:, None] - reports[None]) ** 2).sum(axis=2)
    close = squared <= float(radius) ** 2 * (1 + ROUNDING)
    doubtful = close & (squared >= float(radius) ** 2 * (1 - ROUNDING))
    for x, y in np.argwhere(doubtful).tolist():
        exact = sum(
            (Fraction(a) - Fraction(b)) ** 2
            for a, b in zip(points[x].tolist(), reports[y].tolist(), strict=True)
        )
        close[x, y] = exact <= radius**2
    found = np.nonzero(close)
    return found[0].astype(np.int64), found[1].astype(np.int64)


def _model(points: Any, hypothesis: Sequence[bool], rho: object, reports: Any) -> _Model:
    rows = _matrix("points", points)
    targets = rows if reports is None else _matrix("reports", reports)
    flags = np.asarray(hypothesis)
    if flags.shape != (len(rows),) or not bool(np.isin(flags, (0, 1)).all()):
        raise InputError(f"hypothesis must hold one truth value for each of the {len(rows)} points")
    if bool(flags.all()) or not bool(flags.any()):
        raise InputError("all points have the same hypothesis: there is nothing to hide")
    accuracy = exact_number("rho", rho)
    if accuracy <= 0:
        raise InputError(f"rho ({float(accuracy):g}) must be positive")
    if targets.shape[1] != rows.shape[1]:
        raise InputError(
            f"reports have {targets.shape[1]} coordinates and points {rows.shape[1]}; they must match"
        )
    model = _Model(rows, targets, flags.astype(np.bool_), 1 / accuracy)
    alone = np.setdiff1d(np.arange(len(rows)), model.sources)
    if alone.size:
        raise InputError(
            f"point {int(alone[0]) + 1} has no report within 1/rho = {float(1 / accuracy):g}; add reports"
        )
    if model.sources.size > LARGEST_POLICY:
        raise InputError(
            f"{model.sources.size:,} pairs within 1/rho are too many ({LARGEST_POLICY:,}); use a coarser grid"
        )
    return model


def _matrix(name: str, points: Any) -> Floats:
    rows = doubles(name, points)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.size == 0 or not bool(np.isfinite(rows).all()):
        raise InputError(f"{name} must be a non-empty array (n,) or (n, d) of finite numbers")
    return rows


def private_policy(
    points: Any, hypothesis: Sequence[bool], rho: object, epsilon: object, *, reports: Any = None,
    time_limit: float = TIME_LIMIT,
) -> ReportingPolicy:  # fmt: skip
    """The epsilon-private, rho-accurate policy of least mean squared distance.

    Parameters
    ----------
    points : (n,) or (n, d) array
    hypothesis : (n,) truth values
    rho
        Accuracy: no report is farther than 1/rho from its point.
    epsilon
        Privacy: overlap >= epsilon * difference.
    reports : (r,) or (r, d) array
        Reports to choose from; the points themselves by default.

    Raises
    ------
    InputError
        If an argument is not usable.
    NotPrivate
        If no policy within 1/rho is epsilon-private.
    SolverFailure
        If HiGHS gives up.
    """
    budget = exact_number("epsilon", epsilon)
    if budget < 0:
        raise InputError(f"epsilon ({float(budget):g}) must not be negative")
    model = _model(points, hypothesis, rho, reports)
    best = most_private_policy(points, hypothesis, rho, reports=reports, time_limit=time_limit)
    if best.overlap < budget * best.difference and not best.optimal:
        raise SolverFailure(
            f"the time limit was reached at a policy with epsilon {best.epsilon:g}; "
            f"give HiGHS more than {time_limit:g} s"
        )
    if best.overlap < budget * best.difference:
        raise NotPrivate(
            f"no policy within 1/rho is {float(budget):g}-private; the best one reaches {best.epsilon:g}; "
            "lower epsilon or rho"
        )
    found = model.policy(solve(model.program(budget, ratio=False), time_limit=time_limit))
    if found.overlap < budget * found.difference:
        raise SolverFailure("the policy found is not private when counted exactly; nothing is returned")
    return found


def most_private_policy(
    points: Any,
    hypothesis: Sequence[bool],
    rho: object,
    *,
    reports: Any = None,
    time_limit: float = TIME_LIMIT,
) -> ReportingPolicy:
    """The rho-accurate policy with the largest epsilon, by Dinkelbach's method on exact ratios.

    Each round maximises overlap - epsilon * difference at the epsilon reached so far; when the
    maximum is 0, no policy has a larger ratio.

    Raises
    ------
    InputError
        If an argument is not usable.
    SolverFailure
        If HiGHS gives up.
    """
    model = _model(points, hypothesis, rho, reports)
    epsilon, best = Fraction(0), None
    for _ in range(MOST_ROUNDS):
        found = model.policy(solve(model.program(epsilon, ratio=True), time_limit=time_limit))
        gained = found.overlap - epsilon * found.difference
        if best is not None and gained <= 0:
            return best
        best = found
        if found.difference == 0 or not found.optimal:
            return best
        epsilon = Fraction(found.overlap, found.difference)
    raise SolverFailure("the ratio was still rising after many rounds; nothing is returned")
