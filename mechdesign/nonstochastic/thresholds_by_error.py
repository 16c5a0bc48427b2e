"""Thresholds of a finite query with the least mean squared error within a noiseless budget.

docs/explanation/ranges-theory.md, 'Programs for thresholds', has the programs: integer programming,
or dynamic programming where all answers are on one fibre.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.answer_gaps import GapProblem, gap_problem
from mechdesign.nonstochastic.cell_loss import CellLoss, exact_weights
from mechdesign.nonstochastic.fibres import contributions
from mechdesign.nonstochastic.microaggregation import best_cells
from mechdesign.nonstochastic.optimal_quantizers import (
    PROVEN_BY_SEARCH,
    STOPPED,
    TIME_LIMIT,
    OptimalQuantizer,
    ThresholdChoice,
)
from mechdesign.nonstochastic.output_budgets import allowance
from mechdesign.nonstochastic.queries import LinearQuery, Query
from mechdesign.nonstochastic.solver_failures import solver_failures
from mechdesign.nonstochastic.threshold_program import Separation, budget_model
from mechdesign.nonstochastic.thresholds_by_levels import earliest
from solvers.programs.highs import solve_program

LARGEST_COSTS = 400
"""Most answers whose cells are all priced, which takes 80,000 columns of an integer program."""

LARGEST_LINE = 20_000
"""Most answers on one fibre, which are cut by dynamic programming."""

PROVEN_ON_A_LINE = "dynamic programming over all cells"

LINE_ERROR = 2.0**-40
"""Relative error of a total of the dynamic program, whose costs are cut off
(`microaggregation.FINE`)."""


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
    # One maximal fibre, with all gaps in it.
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
    """As `least_distortion`, for independent individuals whose values have these weights.

    The released numbers are the representatives, as doubles.
    """
    if not isinstance(query, LinearQuery):
        raise InputError(
            "the likelihood of its answers is known for linear queries alone"
        )
    problem = gap_problem(query)
    # The identity, a mean and a sum have one block.
    block = query.blocks[0]
    values = contributions(block)
    value_weights = exact_weights(weights, len(values))
    answer_weights: list[Fraction] | None = None
    # Too many answers are refused by `least_distortion`: their weights are not worth the time.
    if block.count == 1 or len(problem.values) <= LARGEST_COSTS:
        likelihood = _sum_weights(values, value_weights, block.count)
        answer_weights = [likelihood[v] for v in problem.values]
    best = least_distortion(problem, epsilon, weights=answer_weights)
    # Single doubles, which a file can hold: rounding keeps them in order.
    released = tuple(Fraction(float(value)) for value in best.representatives)
    return replace(best, quantizer=replace(best.quantizer, released=released))


def edges_of(gaps: Sequence[int], size: int) -> list[int]:
    """Cells as slices: 0, one past each chosen gap's left answer, and `size`."""
    return [0, *(g + 1 for g in gaps), size]


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


def _distortion_on_a_line(outputs: int, loss: CellLoss) -> ThresholdChoice:
    """The gaps of least loss where all answers are on one fibre, by dynamic programming.

    One individual can bring about every answer, so the budget limits the number of cells and
    nothing else.
    """
    edges = best_cells(loss.values, loss.weights, outputs)
    gaps = [edge - 1 for edge in edges[1:-1]]
    bound = float(loss.total(edges)) * (1.0 - LINE_ERROR)
    return ThresholdChoice("line", gaps, bound, True, PROVEN_ON_A_LINE)


def _distortion_by_milp(
    problem: GapProblem, outputs: int, loss: CellLoss, time_limit: float
) -> ThresholdChoice:
    """The gaps of least loss, by integer programming.

    A quantiser is a path from 0 to `size` whose arcs (a, b) are cells; an inner node on the path is
    a threshold.
    """
    size = len(problem.values)
    gaps = problem.gaps
    if gaps == 0:
        return ThresholdChoice("milp", [], 0.0, True, PROVEN_BY_SEARCH)
    model = budget_model(problem, outputs)
    cells = list(itertools.combinations(range(size + 1), 2))
    tails, heads = np.array(cells).T
    _add_path(model, tails, heads, size)
    prices = np.array([float(loss.cost(a, b)) for a, b in cells])
    # Scaled to at most 1, because the solver's tolerances are absolute.
    worst = float(prices.max()) or 1.0
    # The solver starts from the thresholds of most levels and the path through them.
    thresholds = earliest(problem, outputs)
    edges = np.array(edges_of(thresholds, size))
    # Arc (a, b) as one number, a * (size + 1) + b.
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
    return ThresholdChoice("milp", chosen, bound, solution.optimal, because)


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
