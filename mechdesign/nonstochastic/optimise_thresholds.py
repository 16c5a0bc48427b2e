"""Optimal thresholds for a noiseless budget on a finite domain: the most levels, or the least mean squared error.

Farokhi 2020 (noiseless privacy) offers equal cells only; theory.md, section 7, has the programs. The most levels are
found from left to right or by integer programming, the least distortion by integer programming, or by dynamic
programming where all answers are on one fibre. Every answer is counted again on the query before it is returned.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, Literal

import numpy as np

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.domains import exact_number
from mechdesign.nonstochastic.fibres import contributions
from mechdesign.nonstochastic.gaps import GapProblem, budget_model, gap_problem, solved
from mechdesign.nonstochastic.levels import Allowance, allowance
from mechdesign.nonstochastic.microaggregation import best_cells
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.quantizers import Quantizer, quantizer_between
from mechdesign.nonstochastic.queries import LinearQuery, Query
from solvers.programs.highs import solve_program

LevelsMethod = Literal["auto", "milp", "earliest"]

LARGEST_LINE = 20_000
"""Answers on one fibre, which are cut by dynamic programming."""

TIME_LIMIT = 60.0
"""Seconds for a MILP unless told otherwise."""

PROVEN_BY_SEARCH = "the branch and bound of HiGHS"
PROVEN_ON_A_LINE = "dynamic programming over all cells"
STOPPED = "stopped by the time limit; only the bound is proven, by HiGHS"
SUFFICIENT = "sufficient only: some fibre skips answers, and method 'milp' is exact"

BOUND_SLACK = 1e-6
"""A number of levels is an integer, so a bound within this of one is that integer."""


@dataclass(frozen=True, kw_only=True)
class OptimalQuantizer:
    """A quantiser with most levels, or with least distortion, and what is proven of it."""

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


def most_levels(
    query: Query | GapProblem,
    epsilon: object,
    *,
    method: LevelsMethod = "auto",
    time_limit: float = TIME_LIMIT,
) -> OptimalQuantizer:
    """The quantiser of a finite query with the most levels that makes it epsilon-noiselessly private.

    Parameters
    ----------
    query
        A query on finite domains, or the `gap_problem` of one.
    method
        - "earliest": every threshold inside a fibre counts, and each is as low as it can be; exact if each fibre
          is a run of consecutive answers, else only sufficient.
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
    problem = query if isinstance(query, GapProblem) else gap_problem(query)
    allowed = allowance(epsilon)
    if method not in ("auto", "milp", "earliest"):
        raise InputError(f"method ({method!r}) must be auto, milp or earliest")
    if method == "auto":
        method = "earliest" if problem.runs else "milp"
    if method == "milp":
        gaps, bound, because = _levels_by_milp(problem, allowed.outputs, time_limit)
        optimal = because != STOPPED
    else:
        gaps, optimal = earliest(problem, allowed.outputs), problem.runs
        bound = len(gaps) + 1 if optimal else len(problem.values)
        because = "no threshold can be lower" if optimal else SUFFICIENT
    return _counted(
        problem,
        gaps,
        allowed,
        method=method,
        optimal=optimal,
        because=because,
        bound=float(bound),
    )


def _counted(
    problem: GapProblem, gaps: list[int], allowed: Allowance, **facts: Any
) -> OptimalQuantizer:
    """The quantiser with these thresholds, counted again on the query by code that knows nothing of the program."""
    quantizer = quantizer_between(problem.values, gaps)
    certificate = certify(problem.query, quantizer)
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the thresholds found give {certificate.outputs} outputs on a fibre where {allowed.outputs} are allowed; "
            "nothing is returned; try another method, and please report it"
        )
    facts |= {"outputs_allowed": allowed.outputs, "certificate": certificate}
    return OptimalQuantizer(quantizer=quantizer, gaps=tuple(gaps), **facts)


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


def _levels_by_milp(
    problem: GapProblem, outputs: int, time_limit: float
) -> tuple[list[int], int, str]:
    """Binary thresholds; a pair of consecutive fibre members is separated if a threshold is between."""
    gaps = problem.gaps
    if gaps == 0 or not problem.binding(outputs):
        return (
            list(range(gaps)),
            gaps + 1,
            "no fibre has more answers than the budget allows",
        )
    model = budget_model(problem, outputs)
    start = model.start(earliest(problem, outputs))
    found = solved(
        solve_program, model.program(-np.ones(gaps)), time_limit=time_limit, start=start
    )
    bound = (
        gaps + 1
        if math.isinf(found.bound)
        else math.floor(-found.bound + BOUND_SLACK) + 1
    )
    return model.gaps_of(found), bound, PROVEN_BY_SEARCH if found.optimal else STOPPED


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
    def _sums(self) -> list[list[Fraction]]:
        """Weights, weighted values and weighted squares, each summed up to every place."""
        powers = [self.weights]
        for _ in range(2):
            powers.append(list(map(mul, powers[-1], self.values)))
        return [
            list(itertools.accumulate(each, initial=Fraction(0))) for each in powers
        ]

    def representative(self, a: int, b: int) -> Fraction:
        """What is released for the cell [a, b): the weighted mean."""
        mass, moment, _ = (sums[b] - sums[a] for sums in self._sums)
        return moment / mass if mass else sum(self.values[a:b], Fraction(0)) / (b - a)

    def cost(self, a: int, b: int) -> Fraction:
        """The loss of the cell [a, b), not divided by the total weight."""
        mass, moment, square = (sums[b] - sums[a] for sums in self._sums)
        return square - moment**2 / mass if mass else Fraction(0)

    def total(self, edges: Sequence[int]) -> Fraction:
        """The mean squared error of the cells between consecutive edges."""
        costs = (self.cost(a, b) for a, b in itertools.pairwise(edges))
        return sum(costs, Fraction(0)) / sum(self.weights, Fraction(0))


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
    problem = query if isinstance(query, GapProblem) else gap_problem(query)
    allowed, size = allowance(epsilon), len(problem.values)
    exact = CellLoss(problem.values, exact_weights(weights, size))
    line = problem.intervals.tolist() == [[0, problem.gaps]]
    if size > (most := LARGEST_LINE if line else LARGEST_COSTS):
        raise InputError(
            f"{size:,} answers are too many to price all cells ({most:,} at most); use coarser values, or most levels"
        )
    if line:
        # One individual can bring about every answer, so any cells will do if they are few enough.
        edges = best_cells(problem.values, exact.weights, allowed.outputs)
        gaps, optimal = [e - 1 for e in edges[1:-1]], True
        bound = float(exact.total(edges)) * (1.0 - 2.0**-40)
    else:
        gaps, bound, optimal = _distortion_by_milp(
            problem, allowed.outputs, exact, time_limit
        )
        edges, bound = edges_of(gaps, size), bound / float(sum(exact.weights))
    return _counted(
        problem,
        gaps,
        allowed,
        method="line" if line else "milp",
        optimal=optimal,
        because=PROVEN_ON_A_LINE if line else PROVEN_BY_SEARCH if optimal else STOPPED,
        bound=bound,
        distortion=float(exact.total(edges)),
        representatives=tuple(
            exact.representative(a, b) for a, b in itertools.pairwise(edges)
        ),
    )


def thresholds_for(
    query: Query, epsilon: object, weights: Sequence[object] | None
) -> OptimalQuantizer:
    """As `least_distortion` for individuals of one block, whose values have these weights, independently."""
    if not isinstance(query, LinearQuery):
        raise InputError(
            "the likelihood of its answers is known for linear queries alone"
        )
    problem, block = gap_problem(query), query.blocks[0]
    values = contributions(block)
    each = list(zip(values, exact_weights(weights, len(values)), strict=True))
    mass, listed = (
        {Fraction(0): Fraction(1)},
        block.count == 1 or len(problem.values) <= LARGEST_COSTS,
    )
    for _ in range(block.count if listed else 0):
        grown: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for (total, before), (value, weight) in itertools.product(mass.items(), each):
            grown[total + value] += before * weight
        mass = grown
    # What is too long to list is refused.
    found = least_distortion(
        problem, epsilon, weights=[mass[v] for v in problem.values] if listed else None
    )
    # Single doubles, which a file can hold: rounding keeps them in order.
    shown = tuple(Fraction(float(value)) for value in found.representatives)
    return replace(found, quantizer=replace(found.quantizer, released=shown))


def edges_of(gaps: Sequence[int], size: int) -> list[int]:
    """Cells as slices: 0, one past each chosen gap's left answer, and `size`."""
    return [0, *(g + 1 for g in gaps), size]


def _distortion_by_milp(
    problem: GapProblem, outputs: int, exact: CellLoss, time_limit: float
) -> tuple[list[int], float, bool]:
    """A path of cells from 0 to m; an inner node on the path is a threshold."""
    size, gaps = len(problem.values), problem.gaps
    if gaps == 0:
        return [], 0.0, True
    model = budget_model(problem, outputs)
    cells = list(itertools.combinations(range(size + 1), 2))
    price = np.array([float(exact.cost(a, b)) for a, b in cells])
    (tails, heads), first, rows = np.array(cells).T, model.columns, model.rows
    worst = float(price.max()) or 1.0
    for node in range(size + 1):
        for ends, exists in ((tails, node < size), (heads, node > 0)):
            if exists:
                here = (first + np.flatnonzero(ends == node)).tolist()
                if 0 < node < size:
                    rows.add([*here, node - 1], [1.0] * len(here) + [-1.0], 0.0, 0.0)
                else:
                    rows.add(here, [1.0] * len(here), 1.0, 1.0)
    extra = price / worst
    known = earliest(problem, outputs)
    edges = np.array(edges_of(known, size))
    path = np.isin(tails * (size + 1) + heads, edges[:-1] * (size + 1) + edges[1:])
    start = np.concatenate((model.start(known), path.astype(np.float64)))
    program = model.program(np.zeros(gaps), extra)
    found = solved(solve_program, program, time_limit=time_limit, start=start)
    return model.gaps_of(found), max(0.0, found.bound) * worst, found.optimal
