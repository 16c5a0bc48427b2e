"""The lower convex envelope by column generation, any-time and with a proven bound.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in the set

A master program over the columns v_k so far gives weights and prices y; pricing gives new columns,
and a valid lower bound m of H(v) - y.v over the set. The weights of any decomposition sum to one,
so the envelope at p is at least y.p + m (docs/explanation/optimum-theory.md, 'A bound from
prices'). For example, a decomposition of cost 0.50 with prices of y.p = 0.48 and m = -0.03 proves
that the envelope lies between 0.45 and 0.50. A column of H(v) - y.v < 0 may lower the 0.50, and
prices at which no column gains much raise the 0.45.

`Generation.run` has two phases.

1. *Search* (`_search`): local searches alone, which prove nothing but are cheap.
   `_sow` begins with those at prices of zero. In `_cover` the prices are held in a box
   (`solvers.envelope.column_pool`) that grows until the columns decompose the point, and is then
   dropped. `_improve` goes on at the master's own prices, until a round finds few new columns.
   While it lasts, exact pricing gets a share of the time (`_prove_early`), so that a run that is
   stopped here has a bound, too.
2. *Proof* (`_prove`): every round solves the master and prices exactly (`_price`: branch and bound,
   or all pairs or triples where the rows depend on one or two numbers), which raises the bound.
   Then `_polish` makes columns by local searches again. It ends when the gap is closed or a limit
   is met. Where a tree grows large, the bound rises by levels instead (`_climb`), and local
   searches begin around mixtures of outputs, too (`_scatter`).

Invariants: `value` is the cost of a decomposition of the target, `bound` is proven by `dual`; both
only improve. An ablation on real tables (tests/benchmarks/test_generation_ablation.py) defends the
constants below, but for those that leave room to rounding (`CUTOFF_SHARE`, `COVERED`) or end a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.envelope.column_pool import ColumnPool, GrowingBox, Levels
from solvers.points import Array, Points
from solvers.pricing.concave import (
    MOST_STARTS,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.programs import HighsMaster, MasterSolution, MasterStatus
from solvers.results import (
    EnvelopeStatus,
    Pricer,
    Progress,
    envelope_bound,
    lowered_prices,
)

# ------------------------------------------------------------------- exact pricing

CUTOFF_SHARE = 0.9
"""Share of the gap that pricing may leave; the rest is for the tolerance of the master."""

COLUMN_SHARE = 0.02
"""Columns that gain less than this share of the gap are not worth their place."""

EARLY_SLACK = 0.1
"""Share of the (negative) minimum by which the bound of a round may lie below it: a sharper one
does not last."""

LATE_SLACK = 0.01
"""The same for a second search at the same prices, where the first one ended without a column."""

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
"""Rounds without any gain after which a run stalls: HiGHS does not use the new columns."""

GAIN_SHARE = 0.1
"""Share of the gap by which bound or value must move for a round to count as a gain."""

FINISH_SECONDS = 2.0
"""What the last master without a box may take after a limit was met; it is warm and mostly needs
far less."""

FINISH_SHARE = 0.25
LEAST_FINISH = 0.5
"""Share of the time of the run that it may take at most, and seconds that it may take however short
the run was: the columns that are given at the start are used in any case. Over uncertain sets these
are few members beside one good decomposition, and a program takes seconds."""


@dataclass(eq=False)
class Generation:
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
    """

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
        self._end = time.process_time() + self.time_limit
        # The gap that the rounds work for; `run` holds the result against the one asked for.
        self._aim = max(self.gap, LEAST_GAP)
        master = HighsMaster(self.target)
        self._columns = ColumnPool(self.target, self.initial, self.incumbent, master)
        # The cost is never negative, so zero prices and the bound zero are a certificate from
        # the start.
        self.dual = np.zeros_like(self.target)
        self.bound = 0.0
        self.rounds = 0
        self.counts = SearchCounts()
        self.seconds_pricing = 0.0
        self._box = GrowingBox(self.target, self.guess, in_use=self.stabilise)
        self._started = time.process_time()
        # Seconds of the run after which exact pricing has its next turn among local searches.
        self._next_proof = FIRST_PROOF
        self._idle = _IdleRounds(GAIN_SHARE * self._aim)
        # Columns added before the last solve without a box: later ones may improve the weights.
        self._solved = 0
        if self.first is not None and self._columns.accept(self.first):
            self._solved = self._columns.added
        # Nodes of the last tree at the master's own prices.
        self._last_nodes = 0
        # A fixed seed: the same problem gives the same columns.
        self._random = np.random.default_rng(0)

    @property
    def pool(self) -> Points:
        """Every column so far."""
        return self._columns.points

    @property
    def weights(self) -> Array:
        """Weights of the best decomposition."""
        return self._columns.weights

    @property
    def value(self) -> float:
        """Cost of the best decomposition."""
        return self._columns.value

    def run(self) -> EnvelopeStatus:
        """Work until the gap is closed or a limit is met; Ctrl-C ends it like a limit."""
        status: EnvelopeStatus | None = None
        try:
            if self.stabilise:
                status = self._search()
            if status is None:
                status = self._prove()
        except KeyboardInterrupt:
            status = EnvelopeStatus.INTERRUPTED

        if status is not EnvelopeStatus.OPTIMAL:
            # Columns added since the last solve may improve the decomposition, or close the gap.
            seconds = FINISH_SECONDS
            if status is not EnvelopeStatus.INTERRUPTED:
                least = 0.0 if self.over_uncertain_set else LEAST_FINISH
                seconds = min(seconds, max(FINISH_SHARE * self.time_limit, least))
            self._solve_without_box(seconds)
            closed = self.value - self.bound <= self._aim
            if closed and status is EnvelopeStatus.STALLED:
                status = EnvelopeStatus.OPTIMAL
        if status is EnvelopeStatus.OPTIMAL and self.value - self.bound > self.gap:
            # The caller asked for less than double precision can prove.
            return EnvelopeStatus.STALLED
        return status

    # ---------------------------------------------------------- phase 1: local searches

    def _search(self) -> EnvelopeStatus | None:
        """Local searches alone until they run dry; a status only where the master ends the run."""
        if self.guess is None:
            self._sow()
        status = self._cover()
        if status is None and not self._box.in_use:
            status = self._improve()
        # The proof counts its own rounds without gain.
        self._idle.reset()
        return status

    def _sow(self) -> None:
        """Add the local minima of the cost between every coordinate and the point."""
        # One call starts from `MOST_STARTS` coordinates, so this takes n / MOST_STARTS, rounded up.
        for turn in range(-(-len(self.target) // MOST_STARTS)):
            self._search_locally(
                self.dual,
                # At prices of zero no column gains, so all that are found are taken.
                cutoff=math.inf,
                center=self.target,
                mix=MIX,
                turn=turn,
            )

    def _cover(self) -> EnvelopeStatus | None:
        """Searches in a price box, which grows until the columns decompose the point."""
        while self._left() > 0.0 and self.value - self.bound > self._aim:
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution
            if not self._box.in_use:
                # HiGHS failed with the box. Without it the columns may cover the point already.
                return None
            self._columns.thin(solution)
            columns = self._descend(solution.dual)
            if solution.slack <= COVERED:
                self._box.in_use = False
            elif columns < ENOUGH:
                # In this box the searches have run dry, and the columns do not suffice.
                self._box.grow()
                # With these the columns decompose the point at once, if at a price.
                if self.completion is not None:
                    self._columns.add(self.completion(), solution.dual, math.inf)
                    self.completion = None
            self._report()
            if not self._box.in_use:
                return None
            self._prove_early(solution.dual)
        return None

    def _improve(self) -> EnvelopeStatus | None:
        """Searches at the master's own prices, until a round of all kinds of them finds little."""
        walks_first = True
        while self._left() > 0.0 and self.value - self.bound > self._aim:
            if self._idle.count(self.bound, self.value) > IDLE_ROUNDS:
                return None
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution
            if self._box.in_use:
                # HiGHS failed without the box; exact pricing is the better way to use its answers.
                return None
            self._columns.accept(solution)
            walked = self._columns.in_use(solution)
            self._columns.thin(solution)
            # Walks go first: they start at outputs that are in use, and cost few pivots. With many
            # coordinates they look at many neighbours, and may find little; then they go last.
            columns = 0
            if walks_first:
                columns = self._walk(solution.dual, walked)
                walks_first = columns >= ENOUGH
            if columns < ENOUGH:
                columns += self._descend(solution.dual)
            if columns < ENOUGH and not walks_first:
                columns += self._walk(solution.dual, walked)
            if columns < ENOUGH:
                return None
            self._report()
            self._prove_early(solution.dual)
        return None

    def _prove_early(self, prices: Array) -> None:
        """Price exactly for a share of the time, if the searches have had theirs."""
        spent = time.process_time() - self._started
        if spent < self._next_proof:
            return
        result = self._raise_bound(prices, seconds=PROOF_SHARE * spent)
        self._columns.add(result.points, prices, math.inf)
        self._report()
        # The next turn comes when the run is twice as old.
        self._next_proof = 2.0 * (time.process_time() - self._started)

    def _descend(self, prices: Array) -> int:
        """Searches from mixtures of the point and every coordinate."""
        return self._search_locally(prices, center=self.target, mix=MIX)

    def _walk(self, prices: Array, outputs: Points) -> int:
        """Walks along edges of the polytope, from the outputs in use to ever cheaper neighbours."""
        if self.over_uncertain_set:
            return 0
        return self._search_locally(prices, walk=outputs, turn=0)

    def _search_locally(
        self,
        prices: Array,
        *,
        cutoff: float | None = None,
        turn: int | None = None,
        **start: Any,
    ) -> int:
        """Search without a tree, from the coordinates of `turn` or random ones; count new columns.

        `start` are the options of the pricer that choose where the searches begin.
        """
        if turn is None:
            turn = int(self._random.integers(1 << 20))
        if self._left() <= 0.0:
            return 0
        if cutoff is None:
            cutoff = -COLUMN_SHARE * self._aim
        result = self._call_pricer(
            prices,
            turn=turn,
            # The tree is left alone: local searches are enough, and no bound is asked for.
            enough=0,
            cutoff=-math.inf,
            tolerance=self._aim,
            column_cutoff=cutoff,
            **start,
        )
        return self._columns.add(result.points, prices, cutoff)

    # --------------------------------------------------------- phase 2: exact pricing

    def _prove(self) -> EnvelopeStatus:
        """Rounds of exact pricing, with local searches in between, until the gap is closed."""
        while self._left() > 0.0:
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution

            # What the master says: a decomposition, or at least how much one must cost.
            covered = solution.slack <= COVERED
            if covered and self._columns.accept(solution) and not self._box.in_use:
                self._solved = self._columns.added
            self._columns.thin(solution)
            # By duality this is the master's value. In a box it is a lower bound of the best
            # decomposition over the columns so far.
            value = float(solution.dual @ self.target)
            if self._idle.count(self.bound, value) > IDLE_ROUNDS:
                return EnvelopeStatus.STALLED

            # Price while there is a gap; the end is claimed of a decomposition without a box alone.
            failure: EnvelopeStatus | None = None
            if value - self.bound > self._aim:
                failure = self._price(solution.dual)
            if value - self.bound <= self._aim:
                self._solve_without_box(self._left())
                if self.value - self.bound <= self._aim:
                    return EnvelopeStatus.OPTIMAL
                failure = EnvelopeStatus.STALLED

            if failure is EnvelopeStatus.STALLED and self._box.in_use:
                # A run is stalled only if pricing fails at the master's own prices, without a box.
                self._box.grow()
            elif failure is not None:
                return failure
        return EnvelopeStatus.TIME_LIMIT

    def _price(self, prices: Array) -> EnvelopeStatus | None:
        """Add columns and raise the bound, by trees and then walks; the reason if none is new."""
        pivots = self.counts.pivots
        cutoff = -CUTOFF_SHARE * self._aim
        options: dict[str, Any] = {}
        if self.by_levels and not self._box.in_use:
            options["node_limit"] = EASY_NODES
            if not self.halves:
                options["node_limit"] = max(EASY_NODES, LARGER * self._last_nodes)
        result = self._raise_bound(prices, **options)
        if result.status is SearchStatus.NODE_LIMIT:
            self._columns.add(result.points, prices, math.inf)
            return self._climb()
        self._last_nodes = result.counts.nodes
        is_early = result.status is SearchStatus.DONE and result.bound < cutoff
        if is_early and not len(result.points) and self._left() > 0.0:
            # The cost of a point of the relaxation ended the search, and local searches from there
            # found no member. That need not be a stall: elsewhere some member may gain.
            result = self._raise_bound(prices, slack=LATE_SLACK, node_limit=LATE_NODES)
        columns = self._columns.add(result.points, prices, math.inf)
        result, further = self._price_lowered(prices, result)
        columns += further
        self._report()

        if columns:
            self._polish(self.counts.pivots - pivots)
            return None
        if result.status is SearchStatus.TIME_LIMIT:
            return EnvelopeStatus.TIME_LIMIT
        if result.status is SearchStatus.MEMORY_LIMIT:
            return EnvelopeStatus.MEMORY_LIMIT
        return EnvelopeStatus.STALLED

    def _price_lowered(
        self, prices: Array, result: SearchResult
    ) -> tuple[SearchResult, int]:
        """Price again at lower prices of rare coordinates; the last result, and the new columns.

        Blunt prices of these may be all that keeps the bound down.
        """
        cutoff = -CUTOFF_SHARE * self._aim
        columns = 0
        for _ in range(MOST_LOWERINGS):
            if not len(result.points) or result.bound > cutoff:
                break
            lowered = lowered_prices(prices, result.points, self.target, self._aim)
            if lowered is None or self._left() <= 0.0:
                break
            prices = lowered
            result = self._raise_bound(prices)
            columns += self._columns.add(result.points, prices, math.inf)
        return result, columns

    def _raise_bound(
        self, prices: Array, cutoff: float | None = None, **options: Any
    ) -> SearchResult:
        """The search for the cheapest column, which proves a bound at these prices."""
        if cutoff is None:
            cutoff = -CUTOFF_SHARE * self._aim

        def keep(minimum: float) -> None:
            # The bounds of searches go up and down; each is valid, so the best one counts.
            bound = envelope_bound(prices, self.target, minimum)
            if bound > self.bound:
                self.bound = bound
                self.dual = prices

        def report(minimum: float) -> None:
            # Kept at once: Ctrl-C may end the search at any moment.
            keep(minimum)
            self._report()

        result = self._call_pricer(
            prices,
            cutoff=cutoff,
            column_cutoff=-COLUMN_SHARE * self._aim,
            tolerance=0.0,
            progress=report,
            **options,
        )
        keep(result.bound)
        return result

    # ------------------------------------------------------ phase 2 of large trees: levels

    def _climb(self) -> EnvelopeStatus | None:
        """Prove one level after the other (`Levels`), until the gap is closed."""
        levels = Levels(self.value - self.bound)
        columns = 1
        self._idle.reset()
        while self._left() > 0.0 and self.value - self.bound > self._aim:
            if self._idle.count(self.bound, self.value) > IDLE_ROUNDS:
                return EnvelopeStatus.STALLED
            if columns:
                # The last tree has found columns that local searches had missed.
                failure = self._scatter()
                if failure is not None:
                    return failure
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution
            if self._box.in_use:
                # HiGHS failed without the box; single trees can use its answers.
                return None
            self._columns.accept(solution)
            prices = solution.dual
            level = levels.next(self.bound, self.value, self._left())
            # More than the gap allows need not be proven.
            level = min(level, self.value - CUTOFF_SHARE * self._aim)
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
            columns = self._columns.add(result.points, prices, math.inf)
            self._report()
            if levels.is_stuck:
                return EnvelopeStatus.MEMORY_LIMIT
        return None

    def _scatter(self) -> EnvelopeStatus | None:
        """Local searches around mixtures of outputs in use, until a round finds few new columns."""
        end = time.process_time() + SCATTER_SHARE * self._left()
        while time.process_time() < end:
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution
            self._columns.accept(solution)
            outputs = self._columns.in_use(solution)
            if not len(outputs):
                # A box of prices has paid for all of the target.
                return None
            self._columns.thin(solution)
            columns = self._walk(solution.dual, outputs)
            for call in range(SCATTERS):
                if columns >= len(self.target) or time.process_time() >= end:
                    break
                # Around one output, and around the middle of two, in turns.
                chosen = self._random.integers(len(outputs), size=1 + call % 2)
                center = outputs.take(chosen).toarray().mean(axis=0)
                columns += self._search_locally(
                    solution.dual, center=center, mix=MIX / len(chosen)
                )
            self._report()
            if columns < ENOUGH:
                return None
        return None

    def _polish(self, pivots: int) -> None:
        """Walks at the new prices, for as many pivots as the tree took.

        Walks are the cheaper way to columns: what they find, the next tree need not search for.
        """
        last = self.counts.pivots + pivots
        while self.stabilise and self.counts.pivots < last and self._left() > 0.0:
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return
            outputs = self._columns.in_use(solution)
            if self._walk(solution.dual, outputs) < ENOUGH:
                return

    # ------------------------------------------------------------- pricer and master

    def _call_pricer(
        self, prices: Array, *, seconds: float = math.inf, **options: Any
    ) -> SearchResult:
        """Run the pricer, at most so long and in the time that is left; count its effort."""
        assert self.pricer is not None, "priced after the end"
        started = time.process_time()
        # Prices change after every round, so a sharp minimum at these ones is not worth its time.
        options.setdefault("slack", EARLY_SLACK)
        limit = min(self._left(), seconds)
        result = self.pricer(prices, time_limit=limit, **options)
        self.seconds_pricing += time.process_time() - started
        self.counts += result.counts
        return result

    def _solve(self) -> MasterSolution | EnvelopeStatus:
        """Solve the master; where HiGHS fails, open the box or close it and solve once more."""
        for _ in range(2):
            solution = self._columns.master.solve(self._left(), self._box.limits())
            if solution.status is MasterStatus.TIME_LIMIT:
                return EnvelopeStatus.TIME_LIMIT
            if self._columns.is_usable(solution):
                self.rounds += 1
                return solution
            self._box.in_use = not self._box.in_use
        return EnvelopeStatus.BACKEND_FAILED

    def _solve_without_box(self, seconds: float) -> None:
        """Keep the best weights over all columns, where columns were added since the last solve."""
        if self._solved == self._columns.added or seconds <= 0.0:
            return
        solution = self._columns.master.solve(seconds)
        if self._columns.is_usable(solution):
            self._columns.accept(solution)

    def _left(self) -> float:
        """Seconds of the run that are left."""
        return self._end - time.process_time()

    def _report(self) -> None:
        """Report the state of the run."""
        if self.progress is None:
            return
        columns = len(self._columns)
        self.progress(
            Progress(self.value, self.bound, self.rounds, columns, self.counts.nodes)
        )


class _IdleRounds:
    """A count of consecutive rounds in which neither bound nor value moved by the least gain."""

    def __init__(self, gain: float) -> None:
        self._gain = gain
        self.reset()

    def reset(self) -> None:
        """Forget all rounds: the next one counts as a gain."""
        self._rounds = 0
        self._bound = -math.inf
        self._value = math.inf

    def count(self, bound: float, value: float) -> int:
        """Count one more round, which ended with these; the rounds without gain so far."""
        raised = bound > self._bound + self._gain
        lowered = value < self._value - self._gain
        if raised or lowered:
            self._bound = bound
            self._value = min(value, self._value)
            self._rounds = 0
        else:
            self._rounds += 1
        return self._rounds
