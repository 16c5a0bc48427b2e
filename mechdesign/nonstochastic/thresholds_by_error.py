"""Thresholds of a finite query with the least mean squared error within a noiseless budget.

The answers of a finite query are sorted, and a quantiser cuts them into cells, slices [a, b). A
cell is released as its weighted mean, so its loss is the weighted squared error around that mean
(`CellLoss`). The budget epsilon allows K = floor(2^epsilon) outputs on every fibre, the answers
that one individual can bring about. For example, the answers 0, 1, 5, 6 of one individual with K =
2 are cut into {0, 1} and {5, 6}, which release 0.5 and 5.5: the mean squared error is 0.25.

`least_distortion` has two programs for the cells of least total loss:

- All answers on one fibre (`_distortion_on_a_line`): at most K cells, by dynamic programming
  (`microaggregation.best_cells`).
- Else (`_distortion_by_milp`): a shortest path from 0 to the number of answers, whose arcs (a, b)
  are cells with their losses as lengths. It may turn only where a threshold is (`_add_path`), and
  `answer_gaps` has the rows that limit thresholds on every fibre. Together they are an
  integer program.

`thresholds_for` weighs the answers by probabilities of the values of one individual, convolved.
docs/explanation/ranges-theory.md, 'Programs for thresholds', has both programs in full.

`CellLoss` computes the squared error of a cell, a run of neighbouring values that all get one
number, from cumulative sums in exact fractions: sum w x^2 - (sum w x)^2 / sum w.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.answer_gaps import (
    GapProblem,
    Separation,
    budget_model,
    gap_problem,
)
from mechdesign.nonstochastic.fibres import contributions
from mechdesign.nonstochastic.microaggregation import best_cells
from mechdesign.nonstochastic.output_budgets import allowance
from mechdesign.nonstochastic.queries import LinearQuery, Query, exact_number
from mechdesign.nonstochastic.solver_failures import solver_failures
from mechdesign.nonstochastic.thresholds_by_levels import (
    PROVEN_BY_SEARCH,
    STOPPED,
    TIME_LIMIT,
    OptimalQuantizer,
    ThresholdChoice,
    earliest,
)
from solvers.programs import solve_program

LARGEST_COSTS = 400
"""Most answers whose cells are all priced, which takes 80,000 columns of an integer program."""

LARGEST_LINE = 20_000
"""Most answers on one fibre, which are cut by dynamic programming."""

PROVEN_ON_A_LINE = "dynamic programming over all cells"
"""Why an optimum on one fibre is one."""

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
    """The edges of the cells: 0, one past each chosen gap's left answer, and `size`.

    Gap g lies between the answers g and g + 1, so the gap 1 of four answers gives 0, 2, 4.
    """
    return [0, *(g + 1 for g in gaps), size]


def _sum_weights(
    values: Sequence[Fraction], weights: Sequence[Fraction], count: int
) -> dict[Fraction, Fraction]:
    """The weight of each sum of `count` independent values: the convolution of their weights.

    For example, two values 0 and 1 of equal weights 1/2 give 0, 1 and 2 the weights 1/4, 1/2, 1/4.
    """
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

    # The columns: thresholds and pairs of the budget, then an arc for every possible cell. The arcs
    # are continuous: between binary thresholds a path is integral.
    model = budget_model(problem, outputs)
    cells = list(itertools.combinations(range(size + 1), 2))
    tails, heads = np.array(cells).T
    _add_path(model, tails, heads, size)

    # Losses are scaled to at most 1, because the solver's tolerances are absolute.
    prices = np.array([float(loss.cost(a, b)) for a, b in cells])
    worst = float(prices.max()) or 1.0
    program = model.program(np.zeros(gaps), prices / worst)

    # The solver starts from the thresholds of most levels and the path through them.
    thresholds = earliest(problem, outputs)
    on_path = _arcs_on_path(edges_of(thresholds, size), tails, heads)
    start = np.concatenate((model.start(thresholds), on_path.astype(np.float64)))
    with solver_failures():
        solution = solve_program(program, time_limit=time_limit, start=start)

    # Losses are totals, and a distortion is a mean.
    least_loss = max(0.0, solution.bound) * worst
    bound = least_loss / float(sum(loss.weights))
    because = STOPPED
    if solution.optimal:
        because = PROVEN_BY_SEARCH
    chosen = model.gaps_of(solution)
    return ThresholdChoice("milp", chosen, bound, solution.optimal, because)


def _arcs_on_path(edges: Sequence[int], tails: Any, heads: Any) -> Any:
    """Which of the arcs the path through these edges has."""
    # Arc (a, b) as one number, a * (size + 1) + b.
    nodes = edges[-1] + 1
    path = np.array(edges)
    return np.isin(tails * nodes + heads, path[:-1] * nodes + path[1:])


def _add_path(model: Separation, tails: Any, heads: Any, size: int) -> None:
    """Add rows of one path from 0 to `size`, through the inner nodes that have a threshold.

    One arc leaves node 0, and one enters `size`. An inner node is entered and left as often as it
    has a threshold, once or not at all.
    """
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
    # The mean error is divided by the sum of all weights.
    if not any(exact):
        raise InputError("all weights are zero; give at least one positive weight")
    return exact


@dataclass(frozen=True)
class CellLoss:
    """Exact squared error and representative of the cells of sorted values.

    A cell is a slice [a, b) of the values. All three sums of a cell are differences of cumulative
    ones, so a cell of any size takes constant time.
    """

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
        """The number of least loss for the cell [a, b): its weighted mean.

        It is the plain mean if all weights of the cell are 0.
        """
        mass = self._masses[b] - self._masses[a]
        # Without weight every number has no loss. The plain mean lies in the cell, which keeps the
        # numbers of consecutive cells in order.
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
        # sum w (v - mean)^2 = sum w v^2 - (sum w v)^2 / sum w. In fractions the difference loses no
        # digits, as it would in doubles.
        return square - moment**2 / mass

    def total(self, edges: Sequence[int]) -> Fraction:
        """The mean squared error of the cells between consecutive edges."""
        loss = Fraction(0)
        for a, b in itertools.pairwise(edges):
            loss += self.cost(a, b)
        return loss / sum(self.weights, Fraction(0))
