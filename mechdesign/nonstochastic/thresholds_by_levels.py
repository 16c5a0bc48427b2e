"""Thresholds of a finite query with the most levels within a noiseless budget.

The budget allows K = floor(2^epsilon) outputs on every fibre, the answers that one individual can
bring about. Farokhi 2019 offers equal cells only. `most_levels` has two ways to place thresholds
into the gaps between answers:

- Where every fibre is a run of consecutive answers, a fibre may contain K - 1 thresholds. They are
  placed from left to right, each as low as it can be (`earliest`); none could be lower, so they are
  the most.
- Else thresholds that separate no two answers of a fibre do not count, and an integer program
  (`answer_gaps`) finds the most.

For example, the answers are 0, 1, 2, 3, the fibres {0, 1, 2} and {1, 2, 3}, and two outputs are
allowed, so a fibre may contain one threshold. The first one goes between 0 and 1. The next must lie
beyond all fibres that contain it, so it goes between 2 and 3: three levels.

The proofs are in docs/explanation/ranges-theory.md, 'Programs for thresholds'.

*The proof.* This program and that of `thresholds_by_error` return a `ThresholdChoice`: the gaps
between answers that get a threshold, and the bound that it proves. `ThresholdChoice.counted` places
each threshold half-way in its gap and counts the outputs on the query (`certify`), by code that
shares nothing with the programs. It returns an `OptimalQuantizer`, or raises if the budget is not
kept. For example, the answers 0, 1, 5 and 6 have the gaps 0, 1 and 2. The choice of gap 1 alone is
the threshold (1 + 5) / 2 = 3, and two outputs are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.answer_gaps import GapProblem, budget_model, gap_problem
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.output_budgets import Allowance, allowance
from mechdesign.nonstochastic.quantizers import Quantizer, quantizer_between
from mechdesign.nonstochastic.queries import Query
from mechdesign.nonstochastic.solver_failures import solver_failures
from solvers.programs import solve_program

# ----------------------------------------------------------- thresholds and their proof

PROVEN_BY_SEARCH = "the branch and bound of HiGHS"
STOPPED = "stopped by the time limit; only the bound is proven, by HiGHS"

TIME_LIMIT = 30.0
"""Seconds for an integer program by default."""


@dataclass(frozen=True, kw_only=True)
class OptimalQuantizer:
    """A quantiser with most levels, or with least distortion, and its proof.

    Parameters
    ----------
    gaps
        The gaps between answers that have a threshold.
    method, because
        The algorithm, and the reason why its result is optimal (or is not known to be).
    optimal
        Whether the result is proven to be the best.
    bound
        No quantiser has more levels, or less distortion.
    distortion, representatives
        The mean squared error of releasing these numbers, one for each cell.
    """

    quantizer: Quantizer
    gaps: tuple[int, ...]
    outputs_allowed: int
    method: str
    optimal: bool
    because: str
    bound: float
    certificate: FibreCertificate
    distortion: float | None = None
    representatives: tuple[Fraction, ...] = ()

    @property
    def levels(self) -> int:
        """Number of cells; each holds at least one answer."""
        return self.quantizer.levels


@dataclass(frozen=True)
class ThresholdChoice:
    """The gaps that have a threshold, the bound on every choice, and the reason for it.

    `bound` is the number of levels that no choice exceeds, or the mean squared error that none is
    below.
    """

    method: str
    gaps: list[int]
    bound: float
    optimal: bool
    because: str

    def counted(self, problem: GapProblem, allowed: Allowance) -> OptimalQuantizer:
        """The quantiser with these thresholds; its outputs are counted without the program."""
        quantizer, certificate = _counted(problem, self.gaps, allowed)
        return OptimalQuantizer(
            quantizer=quantizer,
            gaps=tuple(self.gaps),
            outputs_allowed=allowed.outputs,
            method=self.method,
            optimal=self.optimal,
            because=self.because,
            bound=self.bound,
            certificate=certificate,
        )


def _counted(
    problem: GapProblem, gaps: list[int], allowed: Allowance
) -> tuple[Quantizer, FibreCertificate]:
    """The quantiser with thresholds in these gaps, counted without any use of the program."""
    quantizer = quantizer_between(problem.values, gaps)
    certificate = certify(problem.query, quantizer)
    # A program may be wrong, or the solver beyond its tolerances: nothing unproven is returned.
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the thresholds found give {certificate.outputs} outputs on a fibre where "
            f"{allowed.outputs} are allowed; nothing is returned; try another method, and please "
            "report it"
        )
    return quantizer, certificate


# -------------------------------------------------------------------------- most levels

LevelsMethod = Literal["auto", "milp", "earliest"]
METHODS: tuple[LevelsMethod, ...] = get_args(LevelsMethod)

SUFFICIENT = "sufficient only: some fibre skips answers, and method 'milp' is exact"

BOUND_SLACK = 1e-6
"""A number of levels is an integer, so a bound within this of one is that integer."""


def most_levels(
    query: Query | GapProblem,
    epsilon: object,
    *,
    method: LevelsMethod = "auto",
    time_limit: float = TIME_LIMIT,
) -> OptimalQuantizer:
    """The epsilon-noiselessly private quantiser of a finite query with the most levels.

    Parameters
    ----------
    query
        A query on finite domains, or the `gap_problem` of one.
    epsilon
        In bits.
    method
        - "earliest": every threshold inside a fibre counts, and each is as low as it can be; exact
          if each fibre is a run of consecutive answers, else only sufficient.
        - "milp": only pairs of consecutive fibre members that are separated count; exact.
        - "auto": "earliest" if that is exact, else "milp".
    time_limit
        Seconds for the MILP; then the best thresholds found are returned with the bound proven.

    Raises
    ------
    InputError
        If the budget, the method or the domain is not usable.
    SolverFailure
        If HiGHS fails, or its answer does not survive the exact count.
    """
    problem = query
    if not isinstance(problem, GapProblem):
        problem = gap_problem(problem)
    allowed = allowance(epsilon)
    if method not in METHODS:
        raise InputError(f"method ({method!r}) must be auto, milp or earliest")
    if method == "auto" and problem.runs:
        method = "earliest"
    elif method == "auto":
        method = "milp"
    if method == "milp":
        choice = _levels_by_milp(problem, allowed.outputs, time_limit)
    else:
        choice = _earliest_levels(problem, allowed.outputs)
    return choice.counted(problem, allowed)


def earliest(problem: GapProblem, outputs: int) -> list[int]:
    """Most gaps, no fibre containing `outputs` of them: each as low as the ones before allow.

    Of K consecutive thresholds the last must be beyond the reach of the first, and the reach grows
    with the gap; so by induction the k-th threshold here is not above that of any other choice.
    """
    if outputs == 1:
        # No fibre may contain a threshold at all: the gaps that no fibre covers. Their number of
        # fibres rises by one where a fibre begins, and falls by one where it has ended.
        changes = np.zeros(problem.gaps + 1, dtype=np.int64)
        np.add.at(changes, problem.intervals[:, 0], 1)
        np.subtract.at(changes, problem.intervals[:, 1], 1)
        fibres = np.cumsum(changes)[: problem.gaps]
        return np.flatnonzero(fibres == 0).tolist()
    reach = problem.reach().tolist()
    gaps: list[int] = []
    place = 0
    while place < problem.gaps:
        gaps.append(place)
        place += 1
        if len(gaps) >= outputs - 1:
            # With the last K - 1 thresholds, the next one must not be in a fibre that contains them
            # all.
            place = max(place, reach[gaps[1 - outputs]])
    return gaps


def _earliest_levels(problem: GapProblem, outputs: int) -> ThresholdChoice:
    """The gaps from left to right; of most levels where every fibre is a run of answers."""
    gaps = earliest(problem, outputs)
    # Without a proof, the bound is a cell for every answer.
    bound = len(problem.values)
    because = SUFFICIENT
    if problem.runs:
        bound = len(gaps) + 1
        because = "no threshold can be lower"
    return ThresholdChoice("earliest", gaps, float(bound), problem.runs, because)


def _levels_by_milp(
    problem: GapProblem, outputs: int, time_limit: float
) -> ThresholdChoice:
    """The gaps of most levels, by integer programming."""
    gaps = problem.gaps
    if gaps == 0 or not problem.binding(outputs):
        because = "no fibre has more answers than the budget allows"
        return ThresholdChoice(
            "milp", list(range(gaps)), float(gaps + 1), True, because
        )
    model = budget_model(problem, outputs)
    # Thresholds from left to right keep the budget, so the solver has a solution at once.
    start = model.start(earliest(problem, outputs))
    program = model.program(-np.ones(gaps))
    with solver_failures():
        solution = solve_program(program, time_limit=time_limit, start=start)
    # The program minimises the negative number of thresholds; there is one level more.
    if math.isinf(solution.bound):
        bound = gaps + 1
    else:
        bound = math.floor(-solution.bound + BOUND_SLACK) + 1
    because = STOPPED
    if solution.optimal:
        because = PROVEN_BY_SEARCH
    chosen = model.gaps_of(solution)
    return ThresholdChoice("milp", chosen, float(bound), solution.optimal, because)
