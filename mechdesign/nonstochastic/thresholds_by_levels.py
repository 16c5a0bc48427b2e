"""Thresholds of a finite query with the most levels within a noiseless budget.

The budget allows K = floor(2^epsilon) outputs on every fibre, the answers that one individual can
bring about. Farokhi 2019 offers equal cells only. `most_levels` has two ways to place thresholds
into the gaps between answers:

- Where every fibre is a run of consecutive answers, a fibre may contain K - 1 thresholds. They are
  placed from left to right, each as low as it can be (`earliest`); none could be lower, so they are
  the most.
- Else thresholds that separate no two answers of a fibre do not count, and an integer program
  (`budget_model`) finds the most.

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

*Gaps* between the answers of a finite query are where thresholds can go. A threshold separates two
consecutive answers, so a quantiser of a finite query is a set of gaps: gap g lies between values[g]
and values[g + 1] (docs/explanation/ranges-theory.md, 'Programs for thresholds'). A fibre is the set
of answers that one individual can bring about while all others stay as they are (Farokhi 2019,
Definition 1); it is kept as places of answers. `gap_problem` lists all answers and fibres, in whole
multiples of a common unit.

For example, two individuals have 0 or 1 each, and their sum is asked for. The answers are 0, 1, 2,
with the gaps 0 and 1. The fibres are {0, 1} and {1, 2}, kept as the rows (0, 1) and (1, 2).

*The integer program of thresholds.* Binaries t_g place a threshold in gap g. Two consecutive
members a < b of a fibre get different outputs iff a threshold lies between them: z_ab = max of t_g
over a <= g < b. The outputs on a fibre number one plus the sum of its z, so the budget is linear:
the sum is at most K - 1, K = floor(2^epsilon) (docs/explanation/ranges-theory.md, 'Programs for
thresholds').

For example, a fibre has the answers number 0, 1 and 3, and K is 2. Its first pair has gap 0 alone,
so z_01 is t_0; the second has gaps 1 and 2, so z_13 is at least t_1 and t_2. The budget is the row
t_0 + z_13 <= 1.

`budget_model` makes these rows for all fibres that could break the budget. A search adds costs, and
rows of its own, to the `Separation` that it returns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.fibres import (
    base_sums,
    contributions,
    is_finite,
    lattice_unit,
    others,
)
from mechdesign.nonstochastic.noiseless import (
    Allowance,
    FibreCertificate,
    allowance,
    certify,
)
from mechdesign.nonstochastic.quantizers import Quantizer, quantizer_between
from mechdesign.nonstochastic.queries import LinearQuery, Query, Stratum
from mechdesign.nonstochastic.solver_failures import solver_failures
from solvers.programs import (
    Program,
    Solution,
    SparseRows,
    solve_program,
)

# --------------------------------------------------------------------------------- gaps

LARGEST_FIBRES = 20_000_000
"""Most members of all fibres together, which take 160 MB."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GapProblem:
    """The answers of a finite query, and the fibres that limit its thresholds.

    Parameters
    ----------
    values
        All answers, increasing.
    fibres : one (k, m) array for each block of individuals
        Each row is a fibre: the places of its m answers in `values`, not decreasing.
    """

    query: Query
    values: tuple[Fraction, ...]
    fibres: tuple[Indices, ...] = field(repr=False)

    @property
    def gaps(self) -> int:
        """Number of gaps."""
        return len(self.values) - 1

    @cached_property
    def intervals(self) -> Indices:
        """(k, 2) first gap, and one past the last gap, of every maximal fibre; both increase."""
        # Only a fibre of two or more answers has a gap.
        ends = np.concatenate([rows[:, [0, -1]] for rows in self.fibres])
        ends = np.unique(ends[ends[:, 1] > ends[:, 0]], axis=0)
        # By first gap, the longest first: a fibre is maximal if it ends beyond all those before it.
        ends = ends[np.lexsort((-ends[:, 1], ends[:, 0]))]
        is_maximal = np.ones(len(ends), dtype=np.bool_)
        if ends.size:
            farthest = np.maximum.accumulate(ends[:, 1])
            is_maximal[1:] = ends[1:, 1] > farthest[:-1]
        return ends[is_maximal]

    @cached_property
    def runs(self) -> bool:
        """Whether all fibres are runs of consecutive answers.

        Then a fibre has one output more than thresholds in it. Where a run misses answers, two
        thresholds may go into the same hole, and the count is only a bound.
        """
        return all(bool((np.diff(rows, axis=1) <= 1).all()) for rows in self.fibres)

    def reach(self) -> Indices:
        """For each gap g, the first gap beyond every fibre that contains g: (gaps,) integers.

        Two gaps g < h are inside one fibre iff h < reach[g].
        """
        beyond = np.arange(1, self.gaps + 1)
        first = self.intervals[:, 0]
        if first.size:
            # Maximal intervals increase in both ends: the last that starts at or before g reaches
            # farthest. None may start there, which is place -1.
            place = np.searchsorted(first, np.arange(self.gaps), side="right") - 1
            ends = self.intervals[np.maximum(place, 0), 1]
            beyond = np.maximum(beyond, np.where(place >= 0, ends, 0))
        return beyond

    def binding(self, outputs: int) -> list[tuple[int, ...]]:
        """The distinct fibres with more than `outputs` answers; no other can break the budget."""
        # A dictionary keeps the order of the fibres, which the rows of the program follow.
        binding: dict[tuple[int, ...], None] = {}
        for rows in self.fibres:
            # Rows do not decrease, so different answers differ from the one before.
            answers = 1 + np.count_nonzero(np.diff(rows, axis=1), axis=1)
            for row in np.unique(rows[answers > outputs], axis=0):
                binding[tuple(np.unique(row).tolist())] = None
        return list(binding)


def gap_problem(query: Query) -> GapProblem:
    """The gap problem of a query on finite domains, listed on the lattice of the contributions.

    An order statistic is replaced by the linear query with the same largest fibre.

    Raises
    ------
    InputError
        If a domain is an interval, or the answers are too many to list.
    """
    if isinstance(query, LinearQuery):
        linear = query
    else:
        linear = query.largest_fibre[0]
    blocks = linear.blocks
    if not all(is_finite(block) for block in blocks):
        raise InputError(
            "optimal thresholds need finite domains (use finite(...) or integers(lo, hi)); "
            "for intervals use design_quantizer with layout 'widest' or 'levels'"
        )
    if sum(block.count for block in blocks) == 1:
        # A single individual: no sums, so the contributions need no common unit.
        alone = tuple(contributions(blocks[0]))
        return GapProblem(query, alone, (np.arange(len(alone))[None],))
    return _on_lattice(query, linear, blocks)


def _on_lattice(
    query: Query, linear: LinearQuery, blocks: Sequence[Stratum]
) -> GapProblem:
    """The gap problem in integers: answers times their common unit."""
    unit = lattice_unit(blocks)
    answers = base_sums(blocks, unit)
    if answers is None:
        raise _too_large()
    fibres: list[Indices] = []
    members = 0
    for k, block in enumerate(blocks):
        bases = base_sums(others(linear, k), unit)
        steps = np.array([int(v * unit) for v in contributions(block)])
        if bases is None or members + bases.size * steps.size > LARGEST_FIBRES:
            raise _too_large()
        members += bases.size * steps.size
        # A row is the fibre of one base: the base plus every contribution of the individual.
        fibres.append(np.searchsorted(answers, bases[:, None] + steps))
    values = tuple(Fraction(answer, unit) for answer in answers.tolist())
    return GapProblem(query, values, tuple(fibres))


def _too_large() -> InputError:
    """The error for answers or fibres that are too many to list, or too long for 64 bits."""
    return InputError(
        f"the query has more than {LARGEST_FIBRES:,} answers on its fibres, or answers of more "
        "than 18 digits in their common unit, too many to list; coarser values (a common unit "
        "for weights and domains) make it smaller, and design_quantizer needs no list"
    )


# ---------------------------------------------------------------------- integer program

LARGEST_PROGRAM = 2_000_000
"""Most non-zero entries of a program, which take the solver some 100 MB."""

Floats = NDArray[np.float64]


class Separation:
    """The columns and rows of the program, which grow pair by pair.

    `budget_model` makes it with the rows of the budget. A search may add rows of its own with
    `column`; then `program` gives the solver's form, and `gaps_of` reads a solution.

    The columns are a binary t_g for each gap, then z_ab for pairs of consecutive members of fibres.
    A pair of neighbours (b = a + 1) is t_a itself. The z are not declared integer: once the t are
    integers the rows leave them no other value, and branching on the t alone was faster.
    """

    def __init__(self, gaps: int) -> None:
        self._gaps = gaps
        self._pairs: dict[tuple[int, int], int] = {}
        self.rows = SparseRows()

    def column(self, a: int, b: int) -> int:
        """The column of the pair (a, b), with rows z_ab >= t_g for every gap in it.

        No row bounds z_ab from above: the budget alone limits it, and only from above, so the
        smallest z decides.
        """
        # Between neighbours lies one gap only.
        if b == a + 1:
            return a
        # Many fibres have the same pair.
        column = self._pairs.get((a, b))
        if column is None:
            column = self._gaps + len(self._pairs)
            self._pairs[a, b] = column
            for g in range(a, b):
                self.rows.add((column, g), (1.0, -1.0), 0.0, math.inf)
        if len(self.rows.columns) > LARGEST_PROGRAM:
            raise InputError(
                f"the integer program has more than {LARGEST_PROGRAM:,} entries; use coarser "
                "values, or method='earliest', which is sufficient"
            )
        return column

    @property
    def columns(self) -> int:
        """Number of columns so far: gaps, then pairs."""
        return self._gaps + len(self._pairs)

    def program(self, costs: Floats, extra: Floats | tuple[()] = ()) -> Program:
        """The program with these costs of thresholds, and of further columns in [0, 1]."""
        all_costs = np.concatenate((costs, np.zeros(len(self._pairs)), extra))
        integer = np.zeros(all_costs.size, dtype=np.bool_)
        integer[: self._gaps] = True
        return Program(
            all_costs,
            np.zeros(all_costs.size),
            np.ones(all_costs.size),
            self.rows,
            integer,
        )

    def start(self, gaps: Sequence[int]) -> Floats:
        """The point with thresholds in these gaps, for the solver to improve on."""
        point = np.zeros(self.columns)
        point[list(gaps)] = 1.0
        # below[g]: thresholds in the gaps below g; a pair is separated if the numbers at its ends
        # differ.
        below = np.zeros(self._gaps + 1)
        below[1:] = np.cumsum(point[: self._gaps])
        for (a, b), column in self._pairs.items():
            point[column] = float(below[b] > below[a])
        return point

    def gaps_of(self, solution: Solution) -> list[int]:
        """The gaps with a threshold in a solution, which is rounded."""
        return np.flatnonzero(np.rint(solution.x[: self._gaps]) == 1).tolist()


def budget_model(problem: GapProblem, outputs: int) -> Separation:
    """The constraints: at most `outputs` cells on every fibre that could have more."""
    model = Separation(problem.gaps)
    for fibre in problem.binding(outputs):
        columns = [model.column(a, b) for a, b in itertools.pairwise(fibre)]
        # One output, and one more for every separated pair.
        model.rows.add(columns, [1.0] * len(columns), -math.inf, outputs - 1.0)
    return model


# ------------------------------------------------------------------------------- levels

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
