"""The most levels that a budget allows on a finite domain: thresholds by LP, exactly by MILP.

Farokhi 2020 (noiseless privacy) and 2021 (indistinguishability) offer equal cells only; theory.md,
section 7, has the programs. Every answer is counted again on the original query before it is
returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.gaps import GapProblem, gap_problem
from mechdesign.nonstochastic.levels import allowance
from mechdesign.nonstochastic.milp import Program, Rows, solve
from mechdesign.nonstochastic.noiseless import Certificate
from mechdesign.nonstochastic.quantizers import Quantizer, quantizer_between
from mechdesign.nonstochastic.queries import Query
from mechdesign.nonstochastic.threshold_budgets import Budget, budget_model, check_budget, recount

LevelsMethod = Literal["auto", "lp", "milp", "earliest"]

LARGEST_LP = 20_000
"""Gaps up to which the LP is solved (about a second); above, earliest thresholds are as good."""

TIME_LIMIT = 60.0
"""Seconds for a MILP unless told otherwise."""

PROVEN_BY_SEARCH = "the branch and bound of HiGHS"
STOPPED = "stopped by the time limit; only the bound is proven, by HiGHS"
SUFFICIENT = "sufficient only: some fibre skips answers, and method 'milp' is exact"

BOUND_SLACK = 1e-6
"""A number of levels is an integer, so a bound within this of one is that integer."""


@dataclass(frozen=True, kw_only=True)
class OptimalQuantizer:
    """A quantiser with most levels, or with least distortion, and what is proven of it.

    Parameters
    ----------
    budget
        "noiseless" or "indistinguishability".
    outputs_allowed
        floor(2^epsilon).
    attained
        The count that the budget limits, exact: outputs on a fibre, or outputs that differ.
    method
        "lp", "milp", "earliest" or "dp": which algorithm chose the thresholds.
    optimal
        Whether nothing better exists; `because` says on what ground, or why it is open.
    bound
        Proven bound on the objective: no more levels, no less distortion.
    certificate
        The noiseless certificate of the quantiser; None under an indistinguishability budget.
    distortion
        See `optimise_distortion`; None where levels are counted.
    representatives
        What is released for each cell under `distortion`; empty where levels are counted.

    notice
        Empty, or how 2^epsilon was rounded.
    """

    query: Query
    quantizer: Quantizer
    gaps: tuple[int, ...]
    budget: str
    outputs_allowed: int
    attained: int
    method: str
    optimal: bool
    because: str
    bound: float
    certificate: Certificate | None = None
    distortion: float | None = None
    representatives: tuple[Fraction, ...] = ()
    notice: str = ""

    @property
    def levels(self) -> int:
        """Number of cells; each holds at least one answer."""
        return self.quantizer.levels


def most_levels(
    query: Query | GapProblem,
    epsilon: object,
    *,
    budget: Budget = "noiseless",
    method: LevelsMethod = "auto",
    time_limit: float = TIME_LIMIT,
) -> OptimalQuantizer:
    """The quantiser of a finite query with most levels that keeps a budget of epsilon bits.

    Parameters
    ----------
    query
        On finite domains; for indistinguishability linear or tabulated.
    epsilon
        In bits; floor(2^epsilon) outputs are allowed on a fibre, or may differ.
    budget
        "noiseless" or "indistinguishability".
    method
        - "lp": every threshold inside a fibre counts; integral, and exact if each fibre is a run
          of consecutive answers, else only sufficient. For the noiseless budget only.
        - "earliest": the same optimum, each threshold as low as it can be, without a solver.
        - "milp": only pairs of consecutive fibre members that are separated count; exact.
        - "auto": "lp" ("earliest" where it is large) if that is exact, else "milp".
    time_limit
        Seconds for the MILP; then the best thresholds found are returned with the bound proven.

    Raises
    ------
    InputError
        If the budget, the method or the domain is not usable.
    SolverFailure
        If HiGHS fails, or its answer does not survive the exact count.
    """
    problem = query if isinstance(query, GapProblem) else gap_problem(query)
    allowed = allowance(epsilon)
    check_budget(problem, budget)
    if method not in ("auto", "lp", "milp", "earliest"):
        raise InputError(f"method ({method!r}) must be auto, lp, milp or earliest")
    if method == "auto":
        small = problem.gaps <= LARGEST_LP
        countable = budget == "noiseless" and problem.runs
        method = ("lp" if small else "earliest") if countable else "milp"
    if method == "milp":
        gaps, bound, because = _by_milp(problem, allowed.outputs, budget, time_limit)
        optimal = because != STOPPED
    elif budget != "noiseless":
        raise InputError(
            f"method {method!r} counts thresholds in fibres; for indistinguishability use 'milp'"
        )
    else:
        gaps, because = _sufficient(problem, allowed.outputs, method)
        optimal = problem.runs
        bound = len(gaps) + 1 if optimal else len(problem.values)
        because = because if optimal else SUFFICIENT
    attained, certificate = recount(problem, gaps, allowed.outputs, budget)
    return OptimalQuantizer(
        query=problem.query,
        quantizer=quantizer_between(problem.values, gaps),
        gaps=tuple(gaps),
        budget=budget,
        outputs_allowed=allowed.outputs,
        attained=attained,
        method=method,
        optimal=optimal,
        because=because,
        bound=float(bound),
        certificate=certificate,
        notice=allowed.notice,
    )


def _sufficient(problem: GapProblem, outputs: int, method: str) -> tuple[list[int], str]:
    """Most thresholds when every threshold inside a fibre counts, and what proves it."""
    if method == "earliest":
        return earliest(problem, outputs), "no threshold can be lower"
    gaps, proven = _by_lp(problem, outputs)
    return gaps, "an integer dual solution, checked" if proven else "the LP of HiGHS, which is integral"


def earliest(problem: GapProblem, outputs: int) -> list[int]:
    """Most gaps, no fibre containing `outputs` of them: each as low as the ones before allow.

    Of K consecutive thresholds the last must be beyond the reach of the first, and the reach grows
    with the gap; so by induction the k-th threshold here is not above that of any other choice.
    """
    if outputs == 1:
        cover = np.zeros(problem.gaps + 1, dtype=np.int64)
        np.add.at(cover, problem.intervals[:, 0], 1)
        np.subtract.at(cover, problem.intervals[:, 1], 1)
        return np.flatnonzero(np.cumsum(cover)[: problem.gaps] == 0).tolist()
    reach, chosen, place = problem.reach().tolist(), list[int](), 0
    while place < problem.gaps:
        chosen.append(place)
        place += 1
        if len(chosen) >= outputs - 1:
            place = max(place, reach[chosen[1 - outputs]])
    return chosen


def _by_lp(problem: GapProblem, outputs: int) -> tuple[list[int], bool]:
    """max P[last] with 0 <= P[g+1] - P[g] <= 1 and P[b] - P[a] <= K - 1 on each maximal fibre.

    Differences make a network matrix, so basic solutions and duals are integral. Returns the gaps,
    and whether the rounded duals prove in integers that there are no more.
    """
    gaps, intervals = problem.gaps, problem.intervals
    if gaps == 0:
        return [], True
    rows = Rows()
    for g in range(gaps):
        rows.add((g + 1, g), (1.0, -1.0), 0.0, 1.0)
    for a, b in intervals.tolist():
        rows.add((b, a), (1.0, -1.0), -math.inf, outputs - 1.0)
    costs = np.zeros(gaps + 1)
    costs[gaps] = -1.0
    upper = np.full(gaps + 1, float(gaps))
    upper[0] = 0.0
    found = solve(Program(costs, np.zeros(gaps + 1), upper, rows))
    prefix = np.rint(found.x).astype(np.int64)
    chosen = np.flatnonzero(np.diff(prefix) == 1).tolist()
    duals = np.rint(-found.duals[gaps:]).astype(np.int64).clip(0)
    return chosen, _dual_bound(gaps, intervals, duals, outputs) == len(chosen)


def _dual_bound(gaps: int, intervals: np.ndarray, duals: np.ndarray, outputs: int) -> int:
    """(K - 1) sum y_f + sum_g max(0, 1 - sum of y_f over the fibres around g), for any y >= 0."""
    cover = np.zeros(gaps + 1, dtype=np.int64)
    if duals.size:
        np.add.at(cover, intervals[:, 0], duals)
        np.subtract.at(cover, intervals[:, 1], duals)
    uncovered = np.maximum(0, 1 - np.cumsum(cover)[:gaps])
    return (outputs - 1) * int(duals.sum()) + int(uncovered.sum())


def _by_milp(
    problem: GapProblem, outputs: int, budget: Budget, time_limit: float
) -> tuple[list[int], int, str]:
    """Binary thresholds; a pair of consecutive fibre members is separated if a threshold is between."""
    gaps = problem.gaps
    if gaps == 0 or (budget == "noiseless" and not problem.binding(outputs)):
        return list(range(gaps)), gaps + 1, "no fibre has more answers than the budget allows"
    model = budget_model(problem, outputs, budget)
    start = model.start(earliest(problem, outputs) if budget == "noiseless" else [])
    found = solve(model.program(-np.ones(gaps)), time_limit=time_limit, start=start)
    bound = gaps + 1 if math.isinf(found.bound) else math.floor(-found.bound + BOUND_SLACK) + 1
    return model.gaps_of(found), bound, PROVEN_BY_SEARCH if found.optimal else STOPPED
