"""The columns of an envelope program, and the best decomposition of the target among them.

A column is a point v_k with a cost, its entropy if nothing else is said, and a decomposition is
weights w >= 0 with sum_k w_k v_k = target. A search (`solvers.results.Rounds`) adds columns that
gain at the master's prices (`add`), or any (`append`). The master program (HiGHS) proposes weights,
and `accept` checks them against the columns.

For example, with the target (1/2, 1/2) and the weights of two solves,

    points      (1/2, 1/2)   (3/4, 1/4)   (1/4, 3/4)
    costs       0.693        0.562        0.562
    weights     1                                      value 0.693, from the start
    weights     0            1/2          1/2          value 0.562, kept because it is lower

Columns of the largest reduced costs are deleted where there are far more than the master needs
(`thin`): most of them were found at prices that are long gone, and each makes every pivot slower.

`PooledRounds` are the rounds of a search with such columns: they keep the best bound, too.

Invariant: `weights` are not negative and decompose the target to `FEASIBILITY`, so `value` is an
upper bound of the envelope at any moment, from the first column (the target itself) on.

*The box of prices* is, with s_j = 1 / (n p_j) from 1 to 10^4,

    center_j - radius s_j  <=  y_j  <=  center_j + radius.

Without it, prices of the master jump from round to round, and columns found at them are worthless
(du Merle et al. 1999). The radius doubles while the columns do not suffice (`grow`), and the box
must be gone in the end: in a box without the best prices no proof reaches the optimum
(docs/explanation/optimum-theory.md, 'Prices in a box').

For example, at p = (0.5, 0.499, 0.001) the first box, around zero, allows prices from -1 to 1, and
from -333 to 1 for the rare coordinate.

*Levels*: which bound to prove next, where exact pricing takes long. Branch and bound at the
master's prices y asks whether any posterior gains more than the gap. Where many posteriors are
almost tied that takes millions of nodes, and a tree that is stopped before has proven far less than
it could have: nodes are tightened and dropped by the cut-off, and one near the gap drops none of
them for a long time.

A tree with the cut-off L - y.p proves the *level* L when it is finished, and the number of its
nodes grows with L, about exponentially. So L rises from what is proven in steps that make each tree
`GROWTH` times as large as the last one, and the last step is as large as the time that is left
allows. Any level is valid: what a tree proves is its own bound (docs/explanation/optimum-theory.md,
'Levels').

For example, the levels 1.00 and 1.05 took 20,000 and 40,000 nodes. So nodes double every 0.05, and
1.13 is expected to take 120,000.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from solvers.points import Array, Points
from solvers.pricing.concave import SearchResult, SearchStatus
from solvers.programs import FEASIBILITY, HighsMaster, MasterSolution, PriceBox
from solvers.results import Progress, Rounds, envelope_bound

# ------------------------------------------------------------------------------ columns

THIN_FROM = 6
"""Columns for each coordinate, and `FEWEST_THINNED` more, from which the pool is thinned."""

THIN_TO = 3
"""Columns for each coordinate that are left then, and half of `FEWEST_THINNED`."""

FEWEST_THINNED = 2000
"""A pool of less costs HiGHS next to nothing, and its columns serve neighbouring budgets."""


class ColumnPool:
    """Columns with their costs, the master program over them, and the best weights so far.

    Attributes
    ----------
    target : (n,) array
    points : Points, (k, n)
    costs : (k,) array
        In nats.
    weights : (at most k,) array
        Of the best decomposition; columns added since have none.
    value : float
        Cost of that decomposition.
    added : int
        Number of all columns that ever were in the pool.
    """

    def __init__(
        self,
        target: Array,
        initial: Points,
        weights: Array | None,
        master: HighsMaster,
        cost: Callable[[Points], Array] = Points.entropies,
    ) -> None:
        self.points = initial
        self.costs = cost(initial)
        if weights is None:
            # The first column is the target itself.
            weights = np.zeros(len(initial))
            weights[0] = 1.0
        self.weights = weights
        self.value = float(weights @ self.costs)
        self.added = len(initial)
        self.master = master
        self.target = target
        self._cost = cost
        # Columns that the last master without a box knew: later ones may improve the weights.
        self._solved = 0
        # Columns of the master and of the pool are added together, so they have one numbering.
        master.add(self.points, self.costs)

    def __len__(self) -> int:
        return len(self.points)

    def add(self, points: Points, prices: Array, cutoff: float) -> int:
        """Add the points whose reduced cost is below the cutoff; their number."""
        gaining = np.flatnonzero(self.reduced_costs(points, prices) < cutoff)
        self.append(points.take(gaining))
        return len(gaining)

    def append(self, points: Points) -> None:
        """Add all of the points."""
        if not len(points):
            return
        costs = self._cost(points)
        all_points = Points.concatenate([self.points, points])
        all_costs = np.concatenate([self.costs, costs])
        self.master.add(points, costs)
        # Nothing is computed from here on, so that Ctrl-C does not come in between.
        self.points = all_points
        self.costs = all_costs
        self.added += len(points)

    def reduced_costs(self, points: Points, prices: Array) -> Array:
        """Cost minus y.v of points at prices y, (k,); negative ones gain."""
        return self._cost(points) - points.dot(prices)

    def thin(self, solution: MasterSolution) -> None:
        """Delete columns of large reduced cost at a solution, where there are far too many.

        Those in use stay, here and in the solution, and the target itself, which is the first.
        """
        n = len(self.target)
        if len(self) <= THIN_FROM * n + FEWEST_THINNED:
            return
        reduced = self.costs - self.points.dot(solution.dual)
        in_use = np.zeros(len(self), np.bool_)
        in_use[0] = True
        in_use[: len(self.weights)] |= self.weights > 0.0
        in_use[: len(solution.weights)] |= solution.weights > 0.0
        # Columns in use first, then the others by rising reduced cost.
        reduced[in_use] = -np.inf
        most = max(THIN_TO * n + FEWEST_THINNED // 2, int(np.count_nonzero(in_use)))
        kept = np.sort(np.argsort(reduced, kind="stable")[:most])
        kept_points = self.points.take(kept)
        kept_costs = self.costs[kept]
        # Columns added since have no weight.
        weights = np.zeros(int(kept[-1]) + 1)
        weights[: len(self.weights)] = self.weights[: len(weights)]
        kept_weights = weights[kept]
        self.master.keep(kept)
        # As in `append`: weights of other columns would be a wrong answer.
        self.points = kept_points
        self.costs = kept_costs
        self.weights = kept_weights

    def is_usable(self, solution: MasterSolution) -> bool:
        """Whether a solution claims to be optimal and has the right shape."""
        fits = (
            solution.dual.shape == self.target.shape
            and solution.weights.shape == self.costs.shape
        )
        return solution.is_optimal and fits

    @property
    def is_solved(self) -> bool:
        """Whether no column was added since a master without a box was accepted."""
        return self._solved == self.added

    def accept(self, solution: MasterSolution, *, in_box: bool = False) -> bool:
        """Keep the weights if they are better; False if they do not decompose the target at all.

        In a box of prices the weights need not be the best ones of these columns.
        """
        # Columns added since the solve have no weight yet.
        missing = len(self.costs) - len(solution.weights)
        weights = np.pad(solution.weights, (0, missing))
        error = float(np.abs(self.points.combine(weights) - self.target).max())
        # Written so that NaN is refused, too.
        if not (weights.min() >= 0.0 and error <= FEASIBILITY):
            return False
        # Exact summation, so that values of different rounds can be compared at their last digits.
        value = math.fsum((weights * self.costs).tolist())
        if value < self.value:
            self.weights = weights
            self.value = value
        self._solved = 0 if in_box else self.added
        return True

    def adopt(self, weights: Array, first: int) -> None:
        """Keep the weights of a known decomposition, whose columns follow each other from the place
        `first` on, if they are better.
        """
        whole = np.zeros(len(self.costs))
        whole[first : first + len(weights)] = weights
        value = math.fsum((whole * self.costs).tolist())
        error = np.abs(self.points.combine(whole) - self.target).max()
        if value < self.value and error <= FEASIBILITY:
            self.weights = whole
            self.value = value

    def in_use(self, solution: MasterSolution) -> Points:
        """The columns to which a solution gives weight."""
        return self.points.take(np.flatnonzero(solution.weights > 0.0))


LEAST_REACH = 1e-9
"""Share of a way to a set below which its end is the point, as well as weights can tell."""


def along_ways(masses: Array, reach: Array, size: int) -> Array | None:
    """Weights of `size` columns, of which only those on the ways to k sets, from the second on,
    have any: they decompose the point. None where one of them is the point itself.

    Masses and reach are those of the sets, (k,): the way to set g ends at p restricted to it, of
    mass p_g. For unit vectors every coordinate is a set. With weights c p_g / r_g these columns
    add up to c p and a multiple of p, so c makes the weights sum to 1.
    """
    if not reach.min() > LEAST_REACH:
        return None
    weights = np.zeros(size)
    weights[1 : len(masses) + 1] = masses / reach
    return weights / weights.sum()


# ------------------------------------------------------------------------------- rounds

CUTOFF_SHARE = 0.9
"""Share of the gap that pricing may leave; the rest is for the tolerance of the master."""

COLUMN_SHARE = 0.02
"""Columns that gain less than this share of the gap are not worth their place."""

EARLY_SLACK = 0.1
"""Share of the (negative) minimum by which the bound of a round may lie below it: a sharper one
does not last."""


class PooledRounds(Rounds):
    """Rounds of a search for the decomposition of a point at least cost.

    Attributes
    ----------
    pool : ColumnPool
    prices : (n,) array
        At which columns are searched next: those of the last master.
    bound : float
        No decomposition costs less.
    dual : (n,) array
        The prices that prove it.
    """

    def __init__(
        self,
        pool: ColumnPool,
        aim: float,
        end: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        # Costs are never negative, so prices of zero prove the bound zero.
        super().__init__(0.0, aim, end, progress)
        self.pool = pool
        self.prices = np.zeros_like(pool.target)
        self.dual = self.prices

    @property
    def value(self) -> float:
        """Cost of the best decomposition so far."""
        return self.pool.value

    @property
    def columns(self) -> int:
        """Number of columns so far."""
        return len(self.pool)

    def prove(self, prices: Array, minimum: float) -> None:
        """Keep the bound of prices at which no reduced cost is below `minimum`, if it is the best.

        The caller sees it at once, for Ctrl-C may come at any moment.
        """
        bound = envelope_bound(prices, self.pool.target, minimum)
        # The bounds of searches go up and down; each is valid, so the best one counts.
        if bound > self.bound:
            self.bound = bound
            self.dual = prices
        self.report()


# ------------------------------------------------------------------------ box of prices

FIRST_RADIUS = 1.0
"""Radius of the first price box: around zero, an output that hides no more than a factor e pays for
itself."""

MOST_SCALE = 1e4
"""Most that the box is wider for a rare coordinate: its price times its mass is what matters, and
where rare symbols make outputs private that would not be, prices of -50 and less occur."""

LARGEST_RADIUS = 1e9
"""A wider box binds nothing, and costs of its size would only spoil the master's arithmetic."""


class GrowingBox:
    """Prices within a radius of a center.

    Parameters
    ----------
    target : (n,) array
        The point to decompose.
    center : (n,) array, optional
        Prices of a neighbouring problem; zeros without.
    in_use : bool
        Whether the master is held in the box; `in_use` may be changed at any time.
    """

    def __init__(
        self, target: Array, center: Array | None = None, *, in_use: bool
    ) -> None:
        self.in_use = in_use
        # Coordinates that are rarer than the average are allowed lower prices.
        rare = np.maximum(len(target) * target, 1.0 / MOST_SCALE)
        self._scale = np.maximum(1.0 / rare, 1.0)
        self._center = np.zeros_like(target)
        if center is not None:
            self._center = center
        self._radius = FIRST_RADIUS

    def limits(self) -> PriceBox | None:
        """The limits of the prices at present; None while the box is not in use.

        Low prices of rare coordinates are allowed, for they occur. High ones are not: unproven as
        they are, they would draw every local search to these coordinates.
        """
        if not self.in_use:
            return None
        lower = self._center - self._radius * self._scale
        return PriceBox(lower, self._center + self._radius)

    def grow(self) -> None:
        """Double the radius; beyond `LARGEST_RADIUS` the box is given up."""
        self._radius *= 2.0
        if self._radius > LARGEST_RADIUS:
            self.in_use = False


# ------------------------------------------------------------------------------- levels

GROWTH = 3.0
"""Nodes of a tree against those of the last one: all before the last take half as many as it."""

ALLOWANCE = 3.0
"""A tree of so many times the nodes that were expected is given up."""

FIRST_NODES = 75_000
"""Nodes that the first tree is expected to take: fewer than the tree that was too large."""

FEWEST_NODES = 5_000
"""Smaller trees say nothing about the growth."""

FIRST_GROWTH = 2.0
"""Factor of the step while nothing is known about the growth."""

FIRST_STEP = 0.1
"""The first step, as a share of what is not proven."""

LARGEST_STEP = 0.5
"""No step is a larger share of what is not proven, while nothing is known about the growth."""

SHORTER = 0.5
LARGER = 2.0
"""Factors of the step and of the nodes that are expected after a tree that was not finished."""

LAST_SHARE = 0.7
"""Share of the time left that the last tree is expected to take; the rest is for the error of that
expectation."""

MOST_UNFINISHED = 20
"""Unfinished trees in a row after which there is no hope: each of them had a lower level."""


class Levels:
    """The next level, and how many nodes it may take; `learn` takes the result of each tree.

    Parameters
    ----------
    open_gap : float
        What is not proven at first.
    """

    def __init__(self, open_gap: float) -> None:
        self._step = FIRST_STEP * open_gap
        self._expected = float(FIRST_NODES)
        # Level and nodes of the last tree that was finished, and nodes a second.
        self._finished: tuple[float, int] | None = None
        self._speed = 0.0
        # Growth of the logarithm of the nodes with the level.
        self._rate = 0.0
        self._unfinished = 0

    @property
    def most_nodes(self) -> int:
        """Nodes that the tree of the next level may have."""
        return int(ALLOWANCE * self._expected)

    @property
    def is_stuck(self) -> bool:
        """Whether trees end unfinished again and again, for ever lower levels with more nodes."""
        return self._unfinished > MOST_UNFINISHED

    def next(self, bound: float, value: float, seconds: float) -> float:
        """The level to prove next, with what is proven and the seconds that are left."""
        if self._rate > 0.0 and self._finished is not None:
            last = self._finished[1]
            in_time = LAST_SHARE * self._speed * seconds
            # A step of the usual size would leave too little for another one.
            if last < in_time < GROWTH * (1.0 + GROWTH) * last:
                self._expected = in_time
                self._step = math.log(in_time / last) / self._rate
        share = 1.0 if self._rate > 0.0 else LARGEST_STEP
        return bound + min(self._step, share * (value - bound))

    def learn(self, result: SearchResult, level: float, seconds: float) -> None:
        """Set the next step and its nodes by how the tree of a level ended."""
        nodes = result.counts.nodes
        if seconds > 0.0:
            self._speed = nodes / seconds
        if result.status is not SearchStatus.DONE:
            self._unfinished += 1
            self._step *= SHORTER
            self._expected *= LARGER
            return
        self._unfinished = 0
        if nodes < FEWEST_NODES:
            self._step *= FIRST_GROWTH
            return
        if self._finished is None:
            self._step *= FIRST_GROWTH
        else:
            last_level, last = self._finished
            if nodes > last and level > last_level:
                self._rate = math.log(nodes / last) / (level - last_level)
                self._step = math.log(GROWTH) / self._rate
        self._finished = (level, nodes)
        self._expected = GROWTH * nodes
