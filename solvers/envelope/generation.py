"""The lower convex envelope by column generation, any-time and with a proven bound.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in the set

A master program over the columns v_k so far gives weights and prices y; pricing gives new columns,
and a valid lower bound m of H(v) - y.v over the set. The weights of any decomposition sum to one,
so the envelope at p is at least y.p + m (docs/explanation/optimum-theory.md, 'A bound from
prices'). For example, a decomposition of cost 0.50 with prices of y.p = 0.48 and m = -0.03 proves
that the envelope lies between 0.45 and 0.50. A column of H(v) - y.v < 0 may lower the 0.50, and
prices at which no column gains much raise the 0.45.

The rounds are those of `solvers.results.Rounds`. What one of them prices, goes by the stage of the
run:

1. *Cover*: local searches alone, which prove nothing but are cheap. `prepare` has begun with those
   at prices of zero. Now the prices are held in a box (`solvers.envelope.column_pool`) that grows
   until the columns decompose the point, and is then dropped.
2. *Improve*: local searches at the master's own prices, until a round finds few new columns. While
   these two last, exact pricing gets a share of the time (`_prove_early`), so that a run that is
   stopped here has a bound, too.
3. *Price exactly*: branch and bound, or all pairs or triples where the rows depend on one or two
   numbers. It raises the bound, and then `_polish` makes columns by local searches again.
4. *Climb*: where a tree grows large, the bound rises by levels instead, and local searches begin
   around mixtures of outputs, too (`_scatter`).

Invariants: `value` is the cost of a decomposition of the target, `bound` is proven by `dual`; both
only improve. An ablation on real tables (tests/benchmarks/test_generation_ablation.py) defends the
constants used here, but for those that leave room to rounding (`CUTOFF_SHARE`, `COVERED`) or end a
run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from solvers.envelope.column_pool import (
    COLUMN_SHARE,
    CUTOFF_SHARE,
    EARLY_SLACK,
    ColumnPool,
    GrowingBox,
    Levels,
    PooledRounds,
)
from solvers.points import Array, Points
from solvers.pricing.concave import (
    MOST_STARTS,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.programs import HighsMaster, MasterSolution, MasterStatus
from solvers.results import (
    Ended,
    EnvelopeStatus,
    Pricer,
    Progress,
    lowered_prices,
)

# ------------------------------------------------------------------- exact pricing

LATE_SLACK = 0.01
"""As `EARLY_SLACK`, for a second search at the same prices, where the first one ended without a
column."""

LATE_NODES = 20_000
"""Nodes of that second search: without a time limit nothing else ends it soon."""

MOST_LOWERINGS = 10
"""Times in a row that prices of rare coordinates are lowered and priced again. With two sensitive
symbols and hundreds of useful ones a single one leaves the bound below its gap
(tests/solvers/test_line_levels.py)."""

FIRST_PROOF = 1.0
"""Seconds of local searches after which exact pricing has its first turn; then after 2, 4, .. s."""

PROOF_SHARE = 0.15
"""Seconds of such a turn, as a share of those that the run has had."""

# ------------------------------------------------------------------ local searches

COVERED = 1e-9
"""Mass that a box pays for, below which it counts as rounding: the columns decompose the point."""

MIX = 0.5
"""Weight of a unit vector against the point itself, where a local search starts."""

ENOUGH = 20
"""Columns that make a round of local searches worth another one."""

SCATTERS = 40
"""Calls of local searches from mixtures of outputs, after which a round is over."""

SCATTER_SHARE = 0.15
"""Share of the time that is left that they may take."""

# -------------------------------------------------------------------- levels

EASY_NODES = 100_000
"""Nodes that any tree may have before the bound is proven by levels: all trees of the tables that
close within seconds have fewer."""

LARGER = 3
"""Where levels have no halves, a tree may also have so many times the nodes of the last one: those
of crossed real columns grow slowly, and they are finished."""

# -------------------------------------------------------------------- ends of a run

LEAST_GAP = 1e-11
"""Gap aimed at when less is asked: rounding leaves some 1e-12 of every proof open, and columns that
gain less are noise."""

IDLE_ROUNDS = 60
"""Rounds without any gain after which a run stalls: HiGHS does not use the new columns. After half
of them local searches end, and leave the others to exact pricing."""

FINISH_SECONDS = 2.0
"""What the last master without a box may take after a limit was met; it is warm and mostly needs
far less."""

FINISH_SHARE = 0.25
LEAST_FINISH = 0.5
"""Share of the time of the run that it may take at most, and seconds that it may take however short
the run was: the columns that are given at the start are used in any case. Over uncertain sets these
are few members beside one good decomposition, and a program takes seconds."""


@dataclass(eq=False)
class Generation(PooledRounds):
    """One run: columns, prices and bounds; `run` works until the gap or a limit is met.

    Parameters
    ----------
    target : (n,) array
        The point to decompose.
    pricer : callable or None
        None where Ctrl-C or the clock left it unfinished: no time is left to call it.
    initial : Points
        Columns to begin with, the target itself first.
    gap, time_limit : float
    incumbent : array, optional
        Weights of `initial` that decompose the target.
    first : MasterSolution, optional
        The master over `initial`, where it is solved already.
    stabilise : bool
        Whether local searches come first, in a price box; else every round is priced exactly.
    over_uncertain_set : bool
        Whether columns lie in an uncertain set, where walks along edges are not known.
    guess : (n,) array, optional
        Prices of a neighbouring problem.
    completion : callable, optional
        Columns by which any others can be completed to a decomposition; called where these are
        missing.
    by_levels : bool
        Whether the pricer is a tree that is asked for levels where it grows large.
    halves : bool
        Whether these trees cut every interval in two.
    progress : callable, optional

    Attributes
    ----------
    counts, seconds_pricing
        The effort so far, and its time.
    """

    most_still = IDLE_ROUNDS

    target: Array
    pricer: Pricer | None
    initial: Points
    gap: float
    time_limit: float
    incumbent: Array | None = None
    first: MasterSolution | None = None
    stabilise: bool = True
    over_uncertain_set: bool = False
    guess: Array | None = None
    completion: Callable[[], Points] | None = None
    by_levels: bool = False
    halves: bool = True
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        self._started = time.process_time()
        # The rounds work for what doubles can prove; `run` holds the result against the gap.
        aim = max(self.gap, LEAST_GAP)
        end = self._started + self.time_limit
        master = HighsMaster(self.target)
        pool = ColumnPool(self.target, self.initial, self.incumbent, master)
        if self.first is not None:
            pool.accept(self.first)
        super().__init__(pool, aim, end, self.progress)
        self.counts = SearchCounts()
        self.seconds_pricing = 0.0
        # The columns that the last master gave weight to, and whether they decompose the target.
        self._outputs = Points.units([], len(self.target))
        self._is_covered = False
        # Local searches come first; where trees grow large in the end, levels.
        self._searches_locally = self.stabilise
        self._levels: Levels | None = None
        self._box = GrowingBox(self.target, self.guess, in_use=self.stabilise)
        self._walks_first = True
        # Seconds of the run after which exact pricing has its next turn among local searches.
        self._next_proof = FIRST_PROOF
        # Nodes of the last tree at the master's own prices.
        self._last_nodes = 0
        # A fixed seed: the same problem gives the same columns.
        self._random = np.random.default_rng(0)

    @property
    def nodes(self) -> int:
        """Boxes of all trees so far."""
        return self.counts.nodes

    def run(self) -> EnvelopeStatus:
        """Work until the gap is closed or a limit is met; Ctrl-C ends it like a limit."""
        status = super().run()
        if status is not EnvelopeStatus.OPTIMAL:
            self._finish(status)
            # Columns added since the last master may have closed the gap.
            if self.is_closed and status is not EnvelopeStatus.INTERRUPTED:
                status = EnvelopeStatus.OPTIMAL
        if status is EnvelopeStatus.OPTIMAL and self.value - self.bound > self.gap:
            # The caller asked for less than double precision can prove.
            return EnvelopeStatus.STALLED
        return status

    def _finish(self, status: EnvelopeStatus) -> None:
        """Solve a last master without a box, if columns were added since the last one."""
        seconds = FINISH_SECONDS
        if status is not EnvelopeStatus.INTERRUPTED:
            least = 0.0 if self.over_uncertain_set else LEAST_FINISH
            seconds = min(seconds, max(FINISH_SHARE * self.time_limit, least))
        if seconds <= 0.0 or self.pool.is_solved:
            return
        solution = self.pool.master.solve(seconds)
        if self.pool.is_usable(solution):
            self.pool.accept(solution)

    # ------------------------------------------------------------------ the rounds

    def prepare(self) -> None:
        """Add the local minima of the cost between every coordinate and the point."""
        if not self.stabilise or self.guess is not None:
            return
        # One call starts from `MOST_STARTS` coordinates, so this takes n / MOST_STARTS, rounded up.
        for turn in range(-(-len(self.target) // MOST_STARTS)):
            self._search_locally(
                # At prices of zero no column gains, so all that are found are taken.
                cutoff=math.inf,
                center=self.target,
                mix=MIX,
                turn=turn,
            )

    def solve(self) -> None:
        """Solve the master; where HiGHS fails, open the box or close it and solve once more."""
        if self.pool.is_solved and not self._box.in_use:
            return
        if self.seconds <= 0.0:
            raise Ended(EnvelopeStatus.TIME_LIMIT)
        for _ in range(2):
            solution = self.pool.master.solve(self.seconds, self._box.limits())
            if solution.status is MasterStatus.TIME_LIMIT:
                raise Ended(EnvelopeStatus.TIME_LIMIT)
            if self.pool.is_usable(solution):
                self._take(solution)
                return
            self._box.in_use = not self._box.in_use
            if self._box.in_use:
                # Exact pricing is the better way to use what HiGHS says in a box alone.
                self._searches_locally = False
        raise Ended(EnvelopeStatus.BACKEND_FAILED)

    def _take(self, solution: MasterSolution) -> None:
        """Take the prices and outputs of a master, and its decomposition if it is one."""
        self.prices = solution.dual
        self._outputs = self.pool.in_use(solution)
        # A box may pay for a part of the target.
        self._is_covered = not self._box.in_use or solution.slack <= COVERED
        if self._is_covered:
            self.pool.accept(solution, in_box=self._box.in_use)
        self.pool.thin(solution)

    def price(self) -> bool:
        """Search locally, and once that finds little price exactly, or by levels; False if that
        finds no column.
        """
        if self._searches_locally and self._box.in_use:
            return self._cover()
        if self._searches_locally:
            return self._improve()
        if self._levels is not None and not self._box.in_use:
            return self._climb(self._levels)
        return self._price_exactly()

    # ------------------------------------------------------------------ local searches

    def _cover(self) -> bool:
        """Searches in a price box, which grows until the columns decompose the point."""
        columns = self._descend()
        if self._is_covered:
            self._box.in_use = False
        elif columns < ENOUGH:
            # In this box the searches have run dry, and the columns do not suffice.
            self._box.grow()
            # With these the columns decompose the point at once, if at a price.
            if self.completion is not None:
                self.pool.add(self.completion(), self.prices, math.inf)
                self.completion = None
        if self._box.in_use:
            self._prove_early()
        # As long as the columns do not suffice, there is no value that could become better.
        self.forget_rounds()
        return True

    def _improve(self) -> bool:
        """Searches at the master's own prices, until a round of all kinds of them finds little."""
        # Walks go first: they start at outputs that are in use, and cost few pivots. With many
        # coordinates they look at many neighbours, and may find little; then they go last.
        columns = 0
        if self._walks_first:
            columns = self._walk()
            self._walks_first = columns >= ENOUGH
        if columns < ENOUGH:
            columns += self._descend()
        if columns < ENOUGH and not self._walks_first:
            columns += self._walk()
        if columns < ENOUGH or self.still > IDLE_ROUNDS // 2:
            self._searches_locally = False
            self.forget_rounds()
        else:
            self._prove_early()
        return True

    def _prove_early(self) -> None:
        """Price exactly for a share of the time, if the searches have had theirs."""
        spent = time.process_time() - self._started
        if spent < self._next_proof:
            return
        result = self._raise_bound(self.prices, seconds=PROOF_SHARE * spent)
        self.pool.add(result.points, self.prices, math.inf)
        # The next turn comes when the run is twice as old.
        self._next_proof = 2.0 * (time.process_time() - self._started)

    def _polish(self, pivots: int) -> None:
        """Walks at the new prices, for as many pivots as the tree took.

        Walks are the cheaper way to columns: what they find, the next tree need not search for.
        """
        last = self.counts.pivots + pivots
        while self.stabilise and self.counts.pivots < last and self.seconds > 0.0:
            self.solve()
            if self._walk() < ENOUGH:
                return

    def _scatter(self) -> None:
        """Local searches around mixtures of outputs in use, until a round finds few new columns."""
        end = time.process_time() + SCATTER_SHARE * self.seconds
        while time.process_time() < end:
            self.solve()
            if not len(self._outputs):
                # A box of prices has paid for all of the target.
                return
            columns = self._walk()
            for call in range(SCATTERS):
                if columns >= len(self.target) or time.process_time() >= end:
                    break
                # Around one output, and around the middle of two, in turns.
                chosen = self._random.integers(len(self._outputs), size=1 + call % 2)
                center = self._outputs.take(chosen).toarray().mean(axis=0)
                columns += self._search_locally(center=center, mix=MIX / len(chosen))
            self.report()
            if columns < ENOUGH:
                return

    def _descend(self) -> int:
        """Searches from mixtures of the point and every coordinate."""
        return self._search_locally(center=self.target, mix=MIX)

    def _walk(self) -> int:
        """Walks along edges of the polytope, from the outputs in use to ever cheaper neighbours."""
        if self.over_uncertain_set:
            return 0
        return self._search_locally(walk=self._outputs, turn=0)

    def _search_locally(
        self, *, cutoff: float | None = None, turn: int | None = None, **start: Any
    ) -> int:
        """Search without a tree, from the coordinates of `turn` or random ones; count new columns.

        `start` are the options of the pricer that choose where the searches begin.
        """
        if turn is None:
            turn = int(self._random.integers(1 << 20))
        if self.seconds <= 0.0:
            return 0
        if cutoff is None:
            cutoff = -COLUMN_SHARE * self.aim
        result = self._call_pricer(
            self.prices,
            turn=turn,
            # The tree is left alone: local searches are enough, and no bound is asked for.
            enough=0,
            cutoff=-math.inf,
            tolerance=self.aim,
            column_cutoff=cutoff,
            **start,
        )
        return self.pool.add(result.points, self.prices, cutoff)

    # ------------------------------------------------------------------- exact pricing

    def _price_exactly(self) -> bool:
        """Add columns and raise the bound, by trees and then walks; False if no column is new."""
        pivots = self.counts.pivots
        prices = self.prices
        options: dict[str, Any] = {}
        if self.by_levels and not self._box.in_use:
            options["node_limit"] = EASY_NODES
            if not self.halves:
                options["node_limit"] = max(EASY_NODES, LARGER * self._last_nodes)
        result = self._raise_bound(prices, **options)
        if result.status is SearchStatus.NODE_LIMIT:
            self.pool.add(result.points, prices, math.inf)
            self._begin_levels()
            return True
        self._last_nodes = result.counts.nodes
        is_early = (
            result.status is SearchStatus.DONE
            and result.bound < -CUTOFF_SHARE * self.aim
        )
        if is_early and not len(result.points) and self.seconds > 0.0:
            # The cost of a point of the relaxation ended the search, and local searches from there
            # found no member. That need not be a stall: elsewhere some member may gain.
            result = self._raise_bound(prices, slack=LATE_SLACK, node_limit=LATE_NODES)
        columns = self.pool.add(result.points, prices, math.inf)
        result, further = self._price_lowered(prices, result)
        if columns + further:
            self._polish(self.counts.pivots - pivots)
            return True
        if result.status is SearchStatus.MEMORY_LIMIT:
            raise Ended(EnvelopeStatus.MEMORY_LIMIT)
        if self._box.in_use:
            # A run is stalled only if pricing fails at the master's own prices, without a box.
            self._box.grow()
            return True
        return False

    def _price_lowered(
        self, prices: Array, result: SearchResult
    ) -> tuple[SearchResult, int]:
        """Price again at lower prices of rare coordinates; the last result, and the new columns.

        Blunt prices of these may be all that keeps the bound down.
        """
        columns = 0
        for _ in range(MOST_LOWERINGS):
            if not len(result.points) or result.bound > -CUTOFF_SHARE * self.aim:
                break
            lowered = lowered_prices(prices, result.points, self.target, self.aim)
            if lowered is None or self.seconds <= 0.0:
                break
            prices = lowered
            result = self._raise_bound(prices)
            columns += self.pool.add(result.points, prices, math.inf)
        return result, columns

    def _begin_levels(self) -> None:
        """A tree has grown large: from now on the bound rises by levels (`Levels`)."""
        self._levels = Levels(self.value - self.bound)
        self.forget_rounds()
        if not self.is_closed:
            self._scatter()

    def _climb(self, levels: Levels) -> bool:
        """Prove the next level, and search around what its tree has found."""
        prices = self.prices
        level = levels.next(self.bound, self.value, self.seconds)
        # More than the gap allows need not be proven.
        level = min(level, self.value - CUTOFF_SHARE * self.aim)
        started = time.process_time()
        result = self._raise_bound(
            prices,
            level - float(prices @ self.target),
            slack=0.0,
            halves=self.halves,
            node_limit=levels.most_nodes,
        )
        # A tree that has met a point below its cut-off proves less than the level.
        proven = float(prices @ self.target) + result.bound
        levels.learn(result, min(level, proven), time.process_time() - started)
        columns = self.pool.add(result.points, prices, math.inf)
        if levels.is_stuck:
            raise Ended(EnvelopeStatus.MEMORY_LIMIT)
        if columns and not self.is_closed:
            # Local searches had missed these.
            self._scatter()
        return True

    def _raise_bound(
        self, prices: Array, cutoff: float | None = None, **options: Any
    ) -> SearchResult:
        """The search for the cheapest column, which proves a bound at these prices."""
        if cutoff is None:
            cutoff = -CUTOFF_SHARE * self.aim
        result = self._call_pricer(
            prices,
            cutoff=cutoff,
            column_cutoff=-COLUMN_SHARE * self.aim,
            tolerance=0.0,
            progress=partial(self.prove, prices),
            **options,
        )
        self.prove(prices, result.bound)
        return result

    def _call_pricer(
        self, prices: Array, *, seconds: float = math.inf, **options: Any
    ) -> SearchResult:
        """Run the pricer, at most so long and in the time that is left; count its effort."""
        assert self.pricer is not None, "priced after the end"
        started = time.process_time()
        # Prices change after every round, so a sharp minimum at these ones is not worth its time.
        options.setdefault("slack", EARLY_SLACK)
        limit = min(self.seconds, seconds)
        result = self.pricer(prices, time_limit=limit, **options)
        self.seconds_pricing += time.process_time() - started
        self.counts += result.counts
        return result
