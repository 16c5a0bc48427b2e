"""The reporting policy against a test of a hypothesis that moves values least, by an integer program.

A policy reports every value as one of the values (Farokhi 2020, non-stochastic hypothesis testing, Definitions 3 and
4; its Theorem 4 has one policy, and not the best). A report that both hypotheses can bring about tells nothing; it is
epsilon-private if so many reports tell nothing that they are at least epsilon times those that tell (theory.md, section
6), which is linear. `TestingProblem` counts again what the program found.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.nonstochastic.gaps import solved
from mechdesign.nonstochastic.hypothesis import TestingProblem
from solvers.programs.highs import Program, SparseRows, solve_program

TIME_LIMIT = 60.0
"""Seconds; then the best policy found is taken."""

LARGEST_POLICY = 20_000
"""Pairs of a value and a report that the program has: some seconds to a minute."""

LARGEST_RATIO = 10_000
"""Numerator and denominator of epsilon, which are coefficients of the program."""


def reporting_policy(
    points: NDArray[np.float64],
    holds: NDArray[np.bool_],
    epsilon: Fraction,
    within: float = math.inf,
    *,
    time_limit: float = TIME_LIMIT,
) -> tuple[NDArray[np.int64], bool]:
    """The epsilon-private policy of least mean squared distance: reports, as places of points, and if it is optimal.

    Parameters
    ----------
    points : (n, d) array
    holds : (n, 2) truth values
        Whether the value can occur where the hypothesis does not hold, and where it does.
    within
        No report is farther from its value (1/rho of rho-accuracy).

    Raises
    ------
    InputError
        If the program would be too large, or epsilon is no ratio of small numbers.
    NotPrivate
        If no policy within that distance is epsilon-private.
    SolverFailure
        If none was found in time.
    """
    p, q = epsilon.as_integer_ratio()
    if not 0 <= p <= LARGEST_RATIO or q > LARGEST_RATIO:
        raise InputError(
            f"epsilon must be 0 or more, and a ratio of whole numbers up to {LARGEST_RATIO:,}"
        )
    if within < 0:
        raise InputError(f"a distance (--within {within:g}) must not be negative")
    squared, size = ((points[:, None] - points[None]) ** 2).sum(axis=2), len(points)
    source, report = np.nonzero(np.sqrt(squared) <= within)
    arcs = source.size
    if arcs > LARGEST_POLICY:
        raise InputError(
            f"{arcs:,} pairs of a value and a report are too many ({LARGEST_POLICY:,} at most); use coarser values, or "
            "a smaller distance (--within)"
        )
    # Columns: what is reported as what; for each report whether either side can bring it about; whether both can;
    # and by how much the promise is missed, which costs more than any policy.
    rows, both, missed = SparseRows(), arcs + 2 * size, arcs + 3 * size
    for k in range(size):
        mine = np.flatnonzero(source == k).tolist()
        rows.add(mine, [1.0] * len(mine), 1.0, 1.0)
        for side in (0, 1):
            used = arcs + side * size + k
            into = np.flatnonzero((report == k) & holds[source, side]).tolist()
            rows.add([used, *into], [1.0, *[-1.0] * len(into)], -math.inf, 0.0)
            rows.add([used, both + k], [1.0, -1.0], 0.0, math.inf)
            for arc in into:
                rows.add([used, arc], [1.0, -1.0], 0.0, math.inf)
    weights = np.repeat([-float(p), float(q + 2 * p), 1.0], [2 * size, size, 1])
    rows.add(range(arcs, missed + 1), weights.tolist(), 0.0, math.inf)
    costs, most, ones = (
        np.zeros(missed + 1),
        np.ones(missed + 1),
        np.ones(missed + 1, dtype=np.bool_),
    )
    costs[:arcs] = squared[source, report] / (squared[source, report].max() or 1.0)
    costs[missed], most[missed], ones[arcs:] = size + 1.0, math.inf, False
    found = solved(
        solve_program,
        Program(costs, 0 * costs, most, rows, ones),
        time_limit=time_limit,
    )
    chosen = np.zeros(size, dtype=np.int64)
    taken = found.x[:arcs] > 0.5
    chosen[source[taken]] = report[taken]
    no, yes = (frozenset(chosen[holds[:, side]].tolist()) for side in (0, 1))
    problem = TestingProblem(yes, no)
    if np.unique(source[taken]).size < size or (
        problem.epsilon is not None and problem.epsilon < epsilon
    ):
        if found.optimal:
            raise NotPrivate(
                f"no policy within {within:g} is {float(epsilon):g}-private; lower epsilon, or allow more"
            )
        raise SolverFailure(
            f"no private policy was found within {time_limit:g} s; use coarser values"
        )
    return chosen, found.optimal
