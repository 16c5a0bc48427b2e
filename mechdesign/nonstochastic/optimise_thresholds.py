"""Optimal thresholds for a noiseless budget on a finite domain: the most levels, or the least mean
squared error.

Farokhi 2019 offers equal cells only; docs/explanation/ranges-theory.md, 'Programs for thresholds',
has the programs. The most levels are computed from left to right or by integer programming, the
least distortion by integer programming, or by dynamic programming where all answers are on one
fibre. The outputs are counted again on the query before a quantiser is returned, by code that
shares nothing with the programs.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.answer_gaps import GapProblem, gap_problem
from mechdesign.nonstochastic.domains import exact_number
from mechdesign.nonstochastic.fibres import contributions
from mechdesign.nonstochastic.microaggregation import best_cells
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.output_budgets import Allowance, allowance
from mechdesign.nonstochastic.quantizers import Quantizer, quantizer_between
from mechdesign.nonstochastic.queries import LinearQuery, Query
from mechdesign.nonstochastic.solver_failures import solver_failures
from mechdesign.nonstochastic.threshold_program import Separation, budget_model
from solvers.programs.highs import solve_program

LevelsMethod = Literal["auto", "milp", "earliest"]

LARGEST_LINE = 20_000
"""Answers on one fibre, which are cut by dynamic programming."""

TIME_LIMIT = 30.0
"""Seconds for an integer program by default."""

PROVEN_BY_SEARCH = "the branch and bound of HiGHS"
PROVEN_ON_A_LINE = "dynamic programming over all cells"
STOPPED = "stopped by the time limit; only the bound is proven, by HiGHS"
SUFFICIENT = "sufficient only: some fibre skips answers, and method 'milp' is exact"

BOUND_SLACK = 1e-6
"""A number of levels is an integer, so a bound within this of one is that integer."""

LINE_ERROR = 2.0**-40
"""Relative: the costs of the dynamic program are cut off, and its total is off by less
(`microaggregation.FINE`).
"""


@dataclass(frozen=True, kw_only=True)
class OptimalQuantizer:
    """A quantiser with most levels, or with least distortion, and its proof.

    Parameters
    ----------
    gaps
        The gaps between answers that have a threshold.
    method, because
        The algorithm, and the reason why its result is optimal (or is not known to be).
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
class _Choice:
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


def most_levels(
    query: Query | GapProblem,
    epsilon: object,
    *,
    method: LevelsMethod = "auto",
    time_limit: float = TIME_LIMIT,
) -> OptimalQuantizer:
    """The quantiser of a finite query with the most levels that makes it epsilon-noiselessly
    private.

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
    if method not in ("auto", "milp", "earliest"):
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


def _counted(
    problem: GapProblem, gaps: list[int], allowed: Allowance
) -> tuple[Quantizer, FibreCertificate]:
    """The quantiser with thresholds in these gaps, counted without any use of the program."""
    quantizer = quantizer_between(problem.values, gaps)
    certificate = certify(problem.query, quantizer)
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the thresholds found give {certificate.outputs} outputs on a fibre where "
            f"{allowed.outputs} are allowed; nothing is returned; try another method, and please "
            "report it"
        )
    return quantizer, certificate


def earliest(problem: GapProblem, outputs: int) -> list[int]:
    """Most gaps, no fibre containing `outputs` of them: each as low as the ones before allow.

    Of K consecutive thresholds the last must be beyond the reach of the first, and the reach grows
    with the gap; so by induction the k-th threshold here is not above that of any other choice.
    """
    if outputs == 1:
        # No fibre may contain a threshold at all: the gaps that no fibre covers.
        cover = np.zeros(problem.gaps + 1, dtype=np.int64)
        np.add.at(cover, problem.intervals[:, 0], 1)
        np.subtract.at(cover, problem.intervals[:, 1], 1)
        return np.flatnonzero(np.cumsum(cover)[: problem.gaps] == 0).tolist()
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


def _earliest_levels(problem: GapProblem, outputs: int) -> _Choice:
    """The gaps from left to right; of most levels where every fibre is a run of answers."""
    gaps = earliest(problem, outputs)
    bound = len(problem.values)
    because = SUFFICIENT
    if problem.runs:
        bound = len(gaps) + 1
        because = "no threshold can be lower"
    return _Choice("earliest", gaps, float(bound), problem.runs, because)


def _levels_by_milp(problem: GapProblem, outputs: int, time_limit: float) -> _Choice:
    """The gaps of most levels, by integer programming."""
    gaps = problem.gaps
    if gaps == 0 or not problem.binding(outputs):
        because = "no fibre has more answers than the budget allows"
        return _Choice("milp", list(range(gaps)), float(gaps + 1), True, because)
    model = budget_model(problem, outputs)
    start = model.start(earliest(problem, outputs))
    program = model.program(-np.ones(gaps))
    with solver_failures():
        solution = solve_program(program, time_limit=time_limit, start=start)
    if math.isinf(solution.bound):
        bound = gaps + 1
    else:
        bound = math.floor(-solution.bound + BOUND_SLACK) + 1
    because = STOPPED
    if solution.optimal:
        because = PROVEN_BY_SEARCH
    chosen = model.gaps_of(solution)
    return _Choice("milp", chosen, float(bound), solution.optimal, because)


LARGEST_COSTS = 400
"""Answers of which all cells are priced: 80,000 columns of the integer program."""


def exact_weights(weights: Sequence[object] | None, size: int) -> list[Fraction]:
    """`size` non-negative weights, not all zero; all ones by default."""
    if weights is None:
        return [Fraction(1)] * size
    exact = [exact_number(f"weight {k + 1}", w) for k, w in enumerate(weights)]
    if len(exact) != size:
        raise InputError(f"{size} values need {size} weights, not {len(exact)}")
    for k, weight in enumerate(exact):
        if weight < 0:
            raise InputError(f"weight {k + 1} ({float(weight):g}) must not be negative")
    if not any(exact):
        raise InputError("all weights are zero; give at least one positive weight")
    return exact


@dataclass(frozen=True)
class CellLoss:
    """Exact squared error and representative of the cells of sorted values."""

    values: Sequence[Fraction]
    weights: Sequence[Fraction]

    @cached_property
    def _masses(self) -> list[Fraction]:
        """The weight of the values before every place."""
        return list(itertools.accumulate(self.weights, initial=Fraction(0)))

    @cached_property
    def _moments(self) -> list[Fraction]:
        """The weighted sum of the values before every place."""
        terms = [w * v for w, v in zip(self.weights, self.values, strict=True)]
        return list(itertools.accumulate(terms, initial=Fraction(0)))

    @cached_property
    def _squares(self) -> list[Fraction]:
        """The weighted sum of the squared values before every place."""
        terms = [w * v * v for w, v in zip(self.weights, self.values, strict=True)]
        return list(itertools.accumulate(terms, initial=Fraction(0)))

    def representative(self, a: int, b: int) -> Fraction:
        """The weighted mean of the cell [a, b), of least loss; the plain mean if all weights are
        0.
        """
        mass = self._masses[b] - self._masses[a]
        if not mass:
            return sum(self.values[a:b], Fraction(0)) / (b - a)
        return (self._moments[b] - self._moments[a]) / mass

    def cost(self, a: int, b: int) -> Fraction:
        """The loss of the cell [a, b), not divided by the total weight."""
        mass = self._masses[b] - self._masses[a]
        if not mass:
            return Fraction(0)
        moment = self._moments[b] - self._moments[a]
        square = self._squares[b] - self._squares[a]
        return square - moment**2 / mass

    def total(self, edges: Sequence[int]) -> Fraction:
        """The mean squared error of the cells between consecutive edges."""
        loss = Fraction(0)
        for a, b in itertools.pairwise(edges):
            loss += self.cost(a, b)
        return loss / sum(self.weights, Fraction(0))


def least_distortion(
    query: Query | GapProblem,
    epsilon: object,
    *,
    weights: Sequence[object] | None = None,
    time_limit: float = TIME_LIMIT,
) -> OptimalQuantizer:
    """The epsilon-noiselessly private quantiser of a finite query with least mean squared error.

    Parameters
    ----------
    weights : one for each answer (`GapProblem.values`)
        How much each counts, for example its prior probability; equal by default. They must not
        be taken from the private data.
    time_limit
        As in `most_levels`.

    Returns
    -------
    OptimalQuantizer
        `distortion` is exact (rounded to a double once); the released numbers are those of
        `representatives`.

    Raises
    ------
    InputError
        If an argument is not usable, or there are more than `LARGEST_COSTS` answers.
    """
    problem = query
    if not isinstance(problem, GapProblem):
        problem = gap_problem(problem)
    allowed = allowance(epsilon)
    size = len(problem.values)
    loss = CellLoss(problem.values, exact_weights(weights, size))
    on_one_fibre = problem.intervals.tolist() == [[0, problem.gaps]]
    most = LARGEST_COSTS
    if on_one_fibre:
        most = LARGEST_LINE
    if size > most:
        raise InputError(
            f"{size:,} answers are too many to price all cells ({most:,} at most); use coarser "
            "values, or most levels"
        )
    if on_one_fibre:
        choice = _distortion_on_a_line(allowed.outputs, loss)
    else:
        choice = _distortion_by_milp(problem, allowed.outputs, loss, time_limit)
    edges = edges_of(choice.gaps, size)
    means = [loss.representative(a, b) for a, b in itertools.pairwise(edges)]
    return replace(
        choice.counted(problem, allowed),
        distortion=float(loss.total(edges)),
        representatives=tuple(means),
    )


def thresholds_for(
    query: Query, epsilon: object, weights: Sequence[object] | None
) -> OptimalQuantizer:
    """As `least_distortion` for individuals of one block, whose values have these weights,
    independently.

    The released numbers are the representatives, as doubles.
    """
    if not isinstance(query, LinearQuery):
        raise InputError(
            "the likelihood of its answers is known for linear queries alone"
        )
    problem = gap_problem(query)
    block = query.blocks[0]
    values = contributions(block)
    value_weights = exact_weights(weights, len(values))
    answer_weights: list[Fraction] | None = None
    # Answers that are too many to price are refused below, and their weights are not worth the
    # time.
    if block.count == 1 or len(problem.values) <= LARGEST_COSTS:
        likelihood = _sum_weights(values, value_weights, block.count)
        answer_weights = [likelihood[v] for v in problem.values]
    best = least_distortion(problem, epsilon, weights=answer_weights)
    # Single doubles, which a file can hold: rounding keeps them in order.
    released = tuple(Fraction(float(value)) for value in best.representatives)
    return replace(best, quantizer=replace(best.quantizer, released=released))


def _sum_weights(
    values: Sequence[Fraction], weights: Sequence[Fraction], count: int
) -> dict[Fraction, Fraction]:
    """The weight of each sum of `count` independent values: the convolution of their weights."""
    likelihood = {Fraction(0): Fraction(1)}
    for _ in range(count):
        grown: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for total, before in likelihood.items():
            for value, weight in zip(values, weights, strict=True):
                grown[total + value] += before * weight
        likelihood = dict(grown)
    return likelihood


def edges_of(gaps: Sequence[int], size: int) -> list[int]:
    """Cells as slices: 0, one past each chosen gap's left answer, and `size`."""
    return [0, *(g + 1 for g in gaps), size]


def _distortion_on_a_line(outputs: int, loss: CellLoss) -> _Choice:
    """The gaps of least loss where all answers are on one fibre, by dynamic programming.

    One individual can bring about every answer, so the budget limits the number of cells and
    nothing else.
    """
    edges = best_cells(loss.values, loss.weights, outputs)
    gaps = [edge - 1 for edge in edges[1:-1]]
    bound = float(loss.total(edges)) * (1.0 - LINE_ERROR)
    return _Choice("line", gaps, bound, True, PROVEN_ON_A_LINE)


def _distortion_by_milp(
    problem: GapProblem, outputs: int, loss: CellLoss, time_limit: float
) -> _Choice:
    """The gaps of least loss, by integer programming.

    A quantiser is a path from 0 to `size` whose arcs (a, b) are cells; an inner node on the path is
    a threshold.
    """
    size = len(problem.values)
    gaps = problem.gaps
    if gaps == 0:
        return _Choice("milp", [], 0.0, True, PROVEN_BY_SEARCH)
    model = budget_model(problem, outputs)
    cells = list(itertools.combinations(range(size + 1), 2))
    tails, heads = np.array(cells).T
    _add_path(model, tails, heads, size)
    prices = np.array([float(loss.cost(a, b)) for a, b in cells])
    worst = float(prices.max()) or 1.0
    # The solver starts from the thresholds of most levels and the path through them.
    thresholds = earliest(problem, outputs)
    edges = np.array(edges_of(thresholds, size))
    start_arcs = edges[:-1] * (size + 1) + edges[1:]
    on_path = np.isin(tails * (size + 1) + heads, start_arcs)
    start = np.concatenate((model.start(thresholds), on_path.astype(np.float64)))
    # The path columns are continuous: between binary thresholds a path is integral.
    program = model.program(np.zeros(gaps), prices / worst)
    with solver_failures():
        solution = solve_program(program, time_limit=time_limit, start=start)
    least_loss = max(0.0, solution.bound) * worst
    bound = least_loss / float(sum(loss.weights))
    because = STOPPED
    if solution.optimal:
        because = PROVEN_BY_SEARCH
    chosen = model.gaps_of(solution)
    return _Choice("milp", chosen, bound, solution.optimal, because)


def _add_path(model: Separation, tails: Any, heads: Any, size: int) -> None:
    """Add rows of one path from 0 to `size`, through the inner nodes that have a threshold."""
    first = model.columns
    for node in range(size + 1):
        leaving = (first + np.flatnonzero(tails == node)).tolist()
        entering = (first + np.flatnonzero(heads == node)).tolist()
        for arcs in (leaving, entering):
            if not arcs:
                # Nothing leaves the last node, and nothing enters the first.
                continue
            ones = [1.0] * len(arcs)
            if 0 < node < size:
                # The threshold of inner node j is in gap j - 1.
                model.rows.add([*arcs, node - 1], [*ones, -1.0], 0.0, 0.0)
            else:
                model.rows.add(arcs, ones, 1.0, 1.0)
