"""The channel that tells most about another column: least expected entropy of B v over a polytope.

    minimise sum_k w_k h(B v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in Pi,

where column x of B is P(T | x) and h is the entropy. A master program over the columns so far gives
prices y; pricing gives columns v with h(B v) < y.v, and a lower bound m of h(B v) - y.v over Pi;
y.p + m bounds the program from below, and the search ends when that meets the master's value.
`task_pricing` prices over listed vertices where these are few, by branch and bound else.

For example, if B has the columns (1, 0), (1, 0) and (0, 1), an output that mixes the first two
symbols costs nothing, and one that mixes the first and the last half and half costs log 2.

Invariants: every column is a member of the inner polytope; the bound holds for the relaxation.
Proofs: docs/explanation/purposes-theory.md, 'Tasks'.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.enumeration import vertices
from solvers.errors import (
    BackendFailure,
    EmptyPolytope,
    OutOfTime,
    TooManyVertices,
)
from solvers.points import Array, Points
from solvers.programs import HighsMaster, MasterSolution
from solvers.purposes.task_pricing import Branching, Listing, task_entropies
from solvers.results import EnvelopeStatus, Progress, envelope_bound, run_rounds
from solvers.sets.polytope import Polytope

PRICING_SHARE = 0.25
"""Share of the gap between master and bound that pricing may leave open."""

COLUMNS_A_ROUND = 50
"""Columns that one round of pricing adds at most, those of least reduced cost first."""

SAME_COLUMN = 1e-10
"""Columns nearer than this to each other are one."""

MOST_ROUNDS = 400
"""Rounds of pricing; real tables need 5 to 40."""

MOST_IDLE = 2
"""Rounds in a row without a new column, after which doubles prove nothing more."""

MOST_VERTICES = 30_000
"""Vertices up to which all are columns of one master program; with more, branching was faster."""

LISTING_SHARE = 0.2
"""Share of the remaining time that listing the vertices may take."""

HALVINGS = 52
"""Bisections of the way from the point to a unit vector."""

PULLED_IN = 2.0**-42
"""Relative distance from the boundary of a column that was moved into the inner polytope."""


@dataclass(frozen=True, eq=False)
class TaskEnvelope:
    """A decomposition of the point, its cost in nats, and what no decomposition can cost less than.

    Attributes
    ----------
    weights : (k,) array
    points : Points, (k, n)
    value, bound : float
        Expected entropy of the task given the output, and its proven lower bound.
    nodes : int
        Linear programs of the branch and bound.
    prices : (n,) array or None
        Those that prove the bound; None without a bound.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    value: float
    bound: float
    rounds: int
    columns: int
    nodes: int
    prices: Array | None = None


def task_envelope(
    inner: Polytope,
    outer: Polytope,
    point: Array,
    task: Array,
    *,
    gap: float,
    end: float = math.inf,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> TaskEnvelope:
    """The least expected entropy of ``task @ v`` over decompositions of a point.

    Parameters
    ----------
    inner, outer : Polytope
        The set of the columns, and the one that the bound is for; the same rows.
    point : (n,) array
    task : (|T|, n) array
        P(t | x); columns sum to 1.
    gap : float
        Nats between value and bound at which the search stops.
    end : float
        When to stop, on the clock of `time.process_time`.
    start : (k, n) array, optional
        Members of the inner polytope to begin with.

    Raises
    ------
    EmptyPolytope
        If the point itself is not in the inner polytope.
    BackendFailure
        If HiGHS fails on the master program.
    """
    inner.check_relaxation(outer)
    if inner.excess(point)[0] > 0.0:
        raise EmptyPolytope("the point is not a member of the polytope")
    listed = _listed(outer, end)
    members = None
    if listed is not None:
        members = _listed(inner, end)
    pricing: Listing | Branching
    if listed is None or members is None:
        pricing = Branching(inner, outer, task)
    else:
        pricing = Listing(outer, task, listed, members)
    search = _Search(point, task, pricing, gap, end, progress)
    # P_X itself and one member towards each symbol decompose P_X, so the first master has a value.
    search.add(point[None, :])
    search.add(_stars(inner, point))
    if start is not None and len(start):
        search.add(start)
    status = run_rounds(search, gap=gap, end=end, most_idle=MOST_IDLE)
    return search.result(status)


def best_members(point: Array, task: Array, members: Array) -> TaskEnvelope:
    """The least expected entropy over decompositions into some of the points (k, n).

    There is no bound: other points may do better.

    Raises
    ------
    BackendFailure
        If HiGHS fails, or the points do not decompose the point.
    """
    master = HighsMaster(point)
    master.add(Points.from_dense(members), task_entropies(members, task))
    solution = master.solve(math.inf)
    if not solution.is_optimal:
        raise BackendFailure("HiGHS failed on the master program of the task")
    used = solution.weights > 0.0
    return TaskEnvelope(
        status=EnvelopeStatus.OPTIMAL,
        weights=solution.weights[used],
        points=Points.from_dense(members[used]),
        value=solution.value,
        bound=-math.inf,
        rounds=1,
        columns=len(members),
        nodes=0,
    )


def _listed(polytope: Polytope, end: float) -> Array | None:
    """All vertices, (k, n); None where they are too many."""
    seconds = None
    if end < math.inf:
        seconds = max(0.0, LISTING_SHARE * (end - time.process_time()))
    try:
        listed = vertices(polytope, max_vertices=MOST_VERTICES, time_limit=seconds)
    except (TooManyVertices, OutOfTime, BackendFailure):
        return None
    return listed.points


def _stars(inner: Polytope, point: Array) -> Array:
    """From the point towards every unit vector, as far as the polytope reaches; (n, n)."""
    targets = np.eye(len(point))
    low = np.zeros(len(targets))
    inside = inner.excess(targets) <= 0.0
    high = np.ones(len(targets))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        trial = point + middle[:, None] * (targets - point)
        member = inner.excess(trial) <= 0.0
        low = np.where(member, middle, low)
        high = np.where(member, high, middle)
    reach = np.where(inside, 1.0, low * (1.0 - PULLED_IN))
    return point + reach[:, None] * (targets - point)


class _Search:
    """The columns of one run, their master program, and the pricing for further ones.

    Made with the first columns by `add`; then `run_rounds` works with it, and `result` is what it
    found.

    Attributes
    ----------
    value, bound : float
        The least cost of the columns so far, and its best proven bound; nats.
    """

    def __init__(
        self,
        point: Array,
        task: Array,
        pricing: Listing | Branching,
        gap: float,
        end: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.value = math.inf
        # An entropy is never negative, so zero prices prove the bound zero.
        self.bound = 0.0
        self._prices = np.zeros(len(point))
        self._point = point
        self._task = task
        self._master = HighsMaster(point)
        self._columns = np.zeros((0, len(point)))
        self._pricing = pricing
        self._gap = gap
        self._end = end
        self._progress = progress
        self._solution: MasterSolution | None = None
        # Columns that the last solution knows.
        self._solved = 0
        self._rounds = 0

    def add(self, columns: Array) -> int:
        """Add the columns (k, n) that are new; returns how many."""
        before = len(self._columns)
        for column in columns:
            others = self._columns
            if len(others) and np.abs(others - column).max(axis=1).min() <= SAME_COLUMN:
                continue
            self._columns = np.vstack([others, column])
        new = self._columns[before:]
        if len(new):
            costs = task_entropies(new, self._task)
            self._master.add(Points.from_dense(new), costs)
        return len(new)

    def solve(self) -> EnvelopeStatus | None:
        """The best decomposition into the columns so far, with its prices."""
        if self._solved < len(self._columns):
            solution = self._master.solve(math.inf)
            if not solution.is_optimal:
                raise BackendFailure("HiGHS failed on the master program of the task")
            self._solution = solution
            self._solved = len(self._columns)
            self.value = solution.value
        if self._rounds >= MOST_ROUNDS:
            return EnvelopeStatus.STALLED
        return None

    def price(self) -> bool:
        """Columns that gain, and a bound, at the prices of the master."""
        assert self._solution is not None, "priced before the master was solved"
        self._rounds += 1
        prices = self._solution.dual
        # A sharp bound for these prices is of use only once the gap is nearly closed.
        open_gap = self.value - self.bound
        tolerance = self._gap
        if math.isfinite(open_gap):
            tolerance = max(0.5 * self._gap, min(self._gap, PRICING_SHARE * open_gap))
        minimum, candidates = self._pricing.least(
            prices, tolerance, self._end, COLUMNS_A_ROUND
        )
        bound = envelope_bound(prices, self._point, minimum)
        if bound > self.bound:
            self.bound = bound
            self._prices = prices
        return self.add(candidates) > 0

    def report(self) -> None:
        """Report the state of the run, if the caller wants to know."""
        if self._progress is None:
            return
        self._progress(
            Progress(
                value=self.value,
                bound=self.bound,
                rounds=self._rounds,
                columns=len(self._columns),
                nodes=self._pricing.nodes,
            )
        )

    def result(self, status: EnvelopeStatus) -> TaskEnvelope:
        """The best decomposition, and what is proven of it."""
        if self._solution is None:
            # Ctrl-C came before there was any decomposition.
            raise KeyboardInterrupt
        used = self._solution.weights > 0.0
        # The solution has no weights for columns that came after it.
        columns = self._columns[: self._solved]
        return TaskEnvelope(
            status=status,
            weights=self._solution.weights[used],
            points=Points.from_dense(columns[used]),
            value=self.value,
            bound=self.bound,
            rounds=self._rounds,
            columns=len(self._columns),
            nodes=self._pricing.nodes,
            prices=self._prices,
        )
