"""Thresholds of a finite query with the least mean squared error within a noiseless budget.

The answers of a finite query are sorted, and a quantiser cuts them into cells, slices [a, b). A
cell is released as its weighted mean, so its loss is the weighted squared error around that mean
(`CellLoss`). The budget epsilon allows K = floor(2^epsilon) outputs on every fibre, the answers
that one individual can bring about. For example, the answers 0, 1, 5, 6 of one individual with K =
2 are cut into {0, 1} and {5, 6}, which release 0.5 and 5.5: the mean squared error is 0.25.

`least_distortion` has two programs for the cells of least total loss:

- All answers on one fibre (`_distortion_on_a_line`): at most K cells, by dynamic programming
  (`best_cells`).
- Else (`_distortion_by_milp`): a shortest path from 0 to the number of answers, whose arcs (a, b)
  are cells with their losses as lengths. It may turn only where a threshold is (`_add_path`), and
  `thresholds_by_levels` has the rows that limit thresholds on every fibre. Together they are an
  integer program. Losses are told in a unit in which the least one that is known is far above the
  tolerances of HiGHS, and its bound is lowered by them.

`thresholds_for` weighs the answers by probabilities of the values of one individual, convolved.
docs/explanation/ranges-theory.md, 'Programs for thresholds', has both programs in full.

`CellLoss` computes the squared error of a cell, a run of neighbouring values that all get one
number, from cumulative sums in exact fractions: sum w x^2 - (sum w x)^2 / sum w.

*Sorted values.* The epsilon-identifiable map of least squared error. Farokhi and Ding 2020 measure
such maps; finding the best one is optimal univariate microaggregation
(docs/explanation/ranges-theory.md, 'Microaggregation'). A cell is a slice [a, b) of the sorted
values, and its mean is released. The budget demands at least k = ceil(n 2^-epsilon) of the n values
in every cell. A cell of 2k or more can be split without loss, so a cell has k to 2k - 1 values, and
the best partition of the first j values ends with a cell that starts at i in (j - 2k, j - k]:

    best(j) = min over i of best(i) + cost(i, j),

with cost(i, j) the squared error of the cell [i, j) around its mean (`squared_errors`).
`identifiable_partition` sorts the values, and `best_edges` solves the recurrence.

For example, of the values 0, 1, 5, 6 a budget of one bit demands two in every cell: the best cells
are {0, 1} and {5, 6}, with the means 0.5 and 5.5 and a mean squared error of 0.25.

The cell costs satisfy the quadrangle inequality, so the best i never falls as j grows, and all j of
a block are found together by row minima of a monotone matrix.

`best_cells` solves the related problem of weighted values and a largest number of cells.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.fibres import contributions
from mechdesign.nonstochastic.noiseless import allowance, smallest_cell
from mechdesign.nonstochastic.queries import LinearQuery, Query, doubles, exact_number
from mechdesign.nonstochastic.solver_failures import solver_failures
from mechdesign.nonstochastic.thresholds_by_levels import (
    PROVEN_BY_SEARCH,
    STOPPED,
    TIME_LIMIT,
    GapProblem,
    OptimalQuantizer,
    Separation,
    ThresholdChoice,
    budget_model,
    earliest,
    gap_problem,
)
from mechdesign.tables.bin_edges import least_cells, row_minima
from solvers.pace import Clock
from solvers.programs import solve_program

# ------------------------------------------------------------------------ sorted values

LARGEST_VALUE = 1e120
"""Largest absolute value. Summed squares of differences of larger ones could leave the doubles."""

NEAR = 256
"""Number of values beyond a block whose sums are computed with those of the block, so that small
blocks share one computation of sums."""

FINE = 64
"""Costs of weighted cells are cut off this many bits below the least positive one. So totals are
off by less than 2^-40 of themselves, however far apart the values are."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """An epsilon-identifiable partition of n symbols, of least mean squared error `distortion`.

    Parameters
    ----------
    cell_of : (n,) integers
        The cell of each symbol.
    sizes, representatives : (cells,) arrays
        Symbols of each cell, and their mean.
    smallest
        The fewest symbols that a cell may have.
    """

    cell_of: Indices
    sizes: Indices
    smallest: int
    representatives: Floats
    distortion: float

    @property
    def maximal_leakage(self) -> float:
        """L*(X -> Y) = log2(n - smallest cell + 1) in bits
        (docs/explanation/ranges-theory.md, 'Guessing').
        """
        return math.log2(int(self.sizes.sum()) - int(self.sizes.min()) + 1)


def identifiable_partition(points: Any, epsilon: object) -> Partition:
    """Partition symbols into cells of at least n 2^-epsilon with least mean squared error.

    Parameters
    ----------
    points : (n,) array
        A number for each symbol; equal numbers are different symbols (records).
    epsilon
        In bits.

    Raises
    ------
    InputError
        On NaN, no points, points of more than one dimension or an unusable epsilon.
    """
    values = doubles("points", points)
    if values.ndim != 1 or values.size == 0:
        raise InputError("points must be a non-empty array of shape (n,)")
    if not bool(np.isfinite(values).all()):
        raise InputError("the points contain NaN or an infinite value; drop it first")
    if float(np.abs(values).max()) > LARGEST_VALUE:
        raise InputError(
            f"points beyond {LARGEST_VALUE:g} overflow when squared; use a larger unit"
        )
    smallest = smallest_cell(values.size, epsilon)

    # The best cells of the sorted values.
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    edges = best_edges(ordered, smallest)
    sizes = np.diff(edges).astype(np.int64)

    # Back from the sorted order to that of the caller.
    cell_of = np.empty(values.size, dtype=np.int64)
    cell_of[order] = np.repeat(np.arange(sizes.size), sizes)
    centres = np.empty(sizes.size)
    for cell, (a, b) in enumerate(itertools.pairwise(edges)):
        # Differences to the first value lose fewer digits than the values themselves.
        centres[cell] = ordered[a] + (ordered[a:b] - ordered[a]).mean()
    squared = (values - centres[cell_of]) ** 2
    return Partition(
        cell_of=cell_of,
        sizes=sizes,
        smallest=smallest,
        representatives=centres,
        distortion=math.fsum(squared.tolist()) / values.size,
    )


def squared_errors(values: Floats) -> Callable[[Indices, Indices], Any]:
    """The squared error of the cell values[start:end], as a function of end and start.

    It is the sum of squares less the squared sum over the size. Both come from cumulative sums, so
    a cell of any size takes constant time.
    """
    # Differences to a value in the middle are small, and a longdouble has some more digits: the
    # subtraction below cancels most of them.
    away = (values - values[values.size // 2]).astype(np.longdouble)
    moments = np.append(np.longdouble(0), np.cumsum(away))
    squares = np.append(np.longdouble(0), np.cumsum(away**2))

    def cost(end: Indices, start: Indices) -> Any:
        moment = moments[end] - moments[start]
        square = squares[end] - squares[start]
        # Rounding can make the error of equal values negative.
        return np.maximum(square - moment**2 / np.maximum(end - start, 1), 0)

    return cost


def best_edges(values: Floats, smallest: int) -> list[int]:
    """Edges 0 = e_0 < .. = n of the cells [e_i, e_i+1) with least squared error.

    `values` are sorted, and every cell has at least `smallest` of them.
    """
    size = values.size
    if smallest == 1:
        return list(range(size + 1))
    if size < 2 * smallest:
        # Two cells would need more values.
        return [0, size]
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    # before[j]: the start of the last cell in the best partition of the first j values.
    before = np.zeros(size + 1, dtype=np.int64)
    # `cost` has the sums of values[window:beyond], and counts places from `window`.
    window = 0
    beyond = NEAR
    cost = squared_errors(values[:beyond])

    def total(end: Indices, start: Indices) -> Any:
        return best[start] + cost(end - window, start - window)

    # Cells that end within the next `smallest` values all start before them, where the best is
    # known.
    for block in range(smallest, size + 1, smallest):
        ends = np.arange(block, min(block + smallest, size + 1))
        first = np.maximum(ends - 2 * smallest + 1, 0)
        last = ends - smallest
        if ends[-1] > beyond:
            # Sums over near values alone: far ones would cost digits.
            window = int(first[0])
            beyond = int(ends[-1]) + NEAR
            cost = squared_errors(values[window:beyond])
        before[ends] = row_minima(total, ends, first, last)
        best[ends] = total(ends, before[ends])

    # Back from the end, cell by cell.
    edges = [size]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]


def best_cells(
    values: Sequence[Fraction], weights: Sequence[Fraction], cells: int
) -> list[int]:
    """As `best_edges`, for weighted values and at most `cells` cells of any size, in integers.

    Parameters
    ----------
    values : sequence of Fraction
        Sorted.
    weights : sequence of Fraction
        One for each value, not negative.
    cells : int
        The largest number of cells.
    """
    # Another unit of values or weights multiplies all costs by one factor, and moves no edge.
    x = _as_integers(values)
    weight = _as_integers(weights)
    masses = np.append(0, np.cumsum(weight))
    moments = np.append(0, np.cumsum(weight * x))
    squares = np.append(0, np.cumsum(weight * x**2))
    # The least cost that is not zero is at least 1 / the total mass.
    shift = FINE + int(masses[-1]).bit_length()

    def cost(end: Indices, start: Indices) -> Any:
        mass = masses[end] - masses[start]
        moment = moments[end] - moments[start]
        square = squares[end] - squares[start]
        # The squared error times 2^shift, rounded down; without mass it is 0.
        return ((square * mass - moment**2) << shift) // np.where(mass > 0, mass, 1)

    # The last entry is the one with the most cells.
    edges, _ = least_cells(cost, len(values), cells)[-1]
    return edges


def _as_integers(numbers: Sequence[Fraction]) -> Any:
    """Fractions times their common denominator, as an array of Python integers.

    Sums of squares of such integers may need more than 64 bits.
    """
    unit = math.lcm(*(value.denominator for value in numbers))
    return np.array([int(value * unit) for value in numbers], dtype=object)


# --------------------------------------------------------------------------- thresholds

LARGEST_COSTS = 400
"""Most answers whose cells are all priced, which takes 80,000 columns of an integer program."""

LARGEST_LINE = 20_000
"""Most answers on one fibre, which are cut by dynamic programming."""

PROVEN_ON_A_LINE = "dynamic programming over all cells"
"""Why an optimum on one fibre is one."""

LINE_ERROR = 2.0**-40
"""Relative error of a total of the dynamic program, whose costs are cut off
(`FINE`)."""

FINEST = 1000
"""The loss that an integer program starts from, in the unit of its costs. Where it finds a loss so
many times smaller, it is solved again in a smaller unit."""

SOLVER_SLACK = 1e-5
"""By so much the bound of HiGHS may be too high: it ends at a gap of 1e-6, and prunes what is
better by less than its tolerance of integers, 1e-6."""


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

    # In fractions first: squares of small values leave the doubles.
    losses = [loss.cost(a, b) for a, b in cells]
    worst = max(losses) or Fraction(1)
    prices = np.array([float(cost / worst) for cost in losses])

    # The solver starts from the thresholds of most levels and the path through them.
    chosen = earliest(problem, outputs)
    least = loss.of_cells(edges_of(chosen, size)) / worst
    bound = 0.0
    optimal = True
    clock = Clock(time_limit)
    while float(least) > 0:
        # The tolerances of the solver are absolute, so losses are told in thousandths of the least
        # that is known. A cell that loses twice as much by itself is in no better quantiser.
        unit = float(least) / FINEST
        scaled = np.minimum(prices / unit, 2 * FINEST)
        program = model.program(np.zeros(gaps), scaled)
        on_path = _arcs_on_path(edges_of(chosen, size), tails, heads)
        start = np.concatenate((model.start(chosen), on_path.astype(np.float64)))
        with solver_failures():
            solution = solve_program(program, time_limit=clock(), start=start)
        bound = max(0.0, solution.bound - SOLVER_SLACK) * unit
        optimal = solution.optimal
        before = least
        found = model.gaps_of(solution)
        found_loss = loss.of_cells(edges_of(found, size)) / worst
        # Within its tolerances the solver may return what is a little worse.
        if found_loss < least:
            chosen, least = found, found_loss
        # A loss that is far smaller is looked at again, in its own unit.
        if not optimal or least * FINEST >= before:
            break
    because = STOPPED
    if optimal:
        because = PROVEN_BY_SEARCH
    # Losses are totals, and a distortion is a mean.
    lowest = min(bound, float(least)) * float(worst / sum(loss.weights))
    return ThresholdChoice("milp", chosen, lowest, optimal, because)


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

    def of_cells(self, edges: Sequence[int]) -> Fraction:
        """The losses of the cells between consecutive edges, not divided by the total weight."""
        return sum((self.cost(a, b) for a, b in itertools.pairwise(edges)), Fraction(0))

    def total(self, edges: Sequence[int]) -> Fraction:
        """The mean squared error of the cells between consecutive edges."""
        return self.of_cells(edges) / sum(self.weights, Fraction(0))
