"""Plans of one stratum: blocks first, then sweeps over larger and larger groups, then all at once.

*Blocks.* The stratum is divided into parts that keep the limits (`Divider`), and each gets the best
plan of its own.

*Sweeps.* The outputs are cut anew, near ones together, whatever their limits. What goes to a group
of outputs now is a plan of that group; the best plan of the same masses takes its place, so the
cost never rises. Pairs are priced with the prices of the sweep before, and groups grow from sweep
to sweep, up to the whole stratum. There the program's own pricing proves the optimum.

*Prices.* Each group's prices of inputs and outputs may be shifted against each other by a constant.
Groups agree on it where they share inputs: prices of inputs are means over the groups, by mass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from solvers.errors import BackendFailure, NoPlan, OutOfTime
from solvers.pace import NEVER, Clock
from solvers.plans.bounds import alone, ceiling, sharpened
from solvers.plans.dividing import Cutter, Divider
from solvers.plans.generation import (
    ALL_PAIRS,
    SMALL_DRAW,
    Flows,
    Generation,
    all_pairs,
    blind_draw,
    near_pairs,
)
from solvers.plans.pricing import OutputPrices, Pricer, Pricing
from solvers.plans.problem import Indices, PlanProblem
from solvers.plans.program import SHORTEST, Group, Prices, foreseen, places_of
from solvers.plans.ranges import Ranges
from solvers.points import Array

SMALLEST_BLOCK = 40
"""Size of the smallest blocks at most: a program of all their pairs takes 2 ms, half of which is
its making."""

LEAST_BLOCK = 10
"""Size of the smallest blocks where the limits of an output are many: smaller ones have no room for
means of their own."""

DUAL_TIME = 1.2e-6
"""Seconds of blocks of s symbols each, over their outputs, their limits and s^1.25: of 813 outputs
with 60 secrets and of 300 with 300 secrets alike."""

LATEST = 1.2
"""Times the time that is left which the smallest blocks may take in all: what there is no time for
is drawn blindly, which keeps next to nothing."""

DRAWN_WHOLE = 170
"""Size of the parts that are drawn blindly as they are when the time is over for long: to divide
52,645 rows with 30 secrets into smaller ones takes 24 s, and into these 9 s, and a row changes by
0.333 in the place of 0.329 on average."""

LARGEST_BLOCK = 1280
"""Size of the largest blocks at most: larger ones gain less than sweeps in the same time."""

SLOWER = 1.5
"""A symbol takes about so many times the time in a block of twice the size: measured were 1.1 to
2.6."""

START = 0.5
"""Share of the time that the blocks may take where a program of the whole stratum may come later.
With many secrets none does, and larger blocks gain more than sweeps: with 0.3 up to 0.01 more of
the cells changed."""

LONG_START = 0.97
"""Share of the time that the blocks may take where none comes: larger blocks gain more than
sweeps."""

ALL_ENTRIES = 4_000_000
"""Limits of pairs up to which a program has all pairs: after an earlier release there are thousands
of limits, and 20 million entries of 10,000 pairs took 5 GB."""

FEW_PAIRS = 2000
"""Up to so many pairs of a block, a program of all of them is faster than one that grows."""

SWEPT = 320
"""Outputs of a group of a sweep at most."""

SMALLEST_SWEPT = 20
"""Where so many take too long, too, a sweep goes as far as the time does."""

GROUP_PART = 0.1
"""Share of the time that is left which a group of a sweep may take."""

ROWS_PER_SWEEP = 4000
"""The whole program comes after one sweep, and one more for so many symbols each: better prices
save rounds, and rounds of large programs cost more."""

GROWTH = 0.75
"""The time of a pair in a program grows with this power of its symbols (measured: 27 us at 1,160,
50 at 2,638, 116 at 8,730)."""

LITTLE_GAIN = 1e-3
"""Sweeps end where one lowers the cost by less than this, relative."""

WHOLE_ROUNDS = 2.5
"""Rounds of the whole program that must fit into the time that is left: fewer gain less than
sweeps."""

LARGEST_PROGRAM = 12_000
"""Symbols that one program takes: its matrix and factors need about 100 kB for each. Of more
outputs sweeps alone would have to mend what blocks miss, and have no time for it. Then blocks are
what counts: each takes less time, so that they may be larger."""

MOST_PRICED = 20_000
"""Symbols up to which all pairs are priced for a bound: some ten seconds."""

PASSES = 2.5
"""A bound by prices takes about as long as so many computations of all reduced costs."""

PROOF = 0.4
"""Share of the time that is left after the blocks which such a bound may take."""

ALONE = 0.1
"""Share of the time for bounds from every output on its own, before there is a plan: two where
there is time for a second one, which begins with the prices that the first one proves (.206 and
.216 of 2,000 x 15 symbols, where prices of blocks prove .180)."""

CEILING = 0.35
"""Share of the time that the bound of the classes may take when all of it is over: with 2,000
symbols and 15 secrets its program takes five to seven seconds."""

LONGEST_ALONE = 30.0
"""Seconds that such a bound may take, however much time there is."""

NEAR = 4
BLOCK_ROUNDS = 3
"""Near pairs of every kind that the program of a block starts with, and its rounds of pricing."""

LONG_NEAR = 5
LONG_BLOCK_ROUNDS = 2
"""The same beyond `LARGEST_PROGRAM`: a third less time, and 0.5 % more cost."""

GROUP_GAP = 1e-4
"""A group of a sweep is good enough within this share of its cost: the next sweep changes more."""

GROUP_ROUNDS = 3
"""Rounds of pricing in a group of a sweep."""

ROOM_OF_BLOCK = 4.0
"""A block may take so many times the seconds that it has on average. The first ones are small, and
show how large the next may be; a block that is cut short keeps less than the others."""

START_PAIRS = 4
"""Pairs of least reduced cost, of every input and output, that a group starts with."""

BETTER = 1e-12
"""A group's new plan replaces the old one if it costs at most this much more, relative."""


class BlockPace:
    """How large the next block may be: as large as lets all of them be solved in time, at the speed
    of those so far.

    The size of a block is the square root of its number of pairs. Sizes are doubled one by one, so
    that the speed of the next one can be foreseen. Speed is counted by outputs, which belong to one
    block each, while inputs may be divided among several. The first ones have the size `smallest`.
    """

    def __init__(
        self, clock: Clock, outputs: int, smallest: int = SMALLEST_BLOCK
    ) -> None:
        self._clock = clock
        self._smallest = smallest
        # Outputs of the blocks that are still to be solved.
        self.left = outputs
        # Seconds and outputs of the blocks of each size so far.
        self._spent: dict[int, tuple[float, int]] = {}

    def size(self) -> int:
        """Size of the next block at most."""
        size = self._smallest
        if not self._spent:
            return size
        foreseen = 0.0
        while size <= LARGEST_BLOCK:
            if size in self._spent:
                seconds, outputs = self._spent[size]
                foreseen = seconds / outputs
            else:
                foreseen *= SLOWER
            if foreseen * self.left > self._clock():
                break
            if size not in self._spent:
                return size
            size *= 2
        return max(size // 2, self._smallest)

    @property
    def is_short(self) -> bool:
        """Whether even the smallest blocks take more time than there is."""
        if self._smallest not in self._spent:
            return False
        seconds, outputs = self._spent[self._smallest]
        return seconds / outputs * self.left > self._clock()

    def share(self, outputs: int) -> float:
        """The share of the time that is left which a block of so many outputs may take."""
        return min(1.0, ROOM_OF_BLOCK * outputs / max(self.left, outputs))

    def note(self, size: float, outputs: int, seconds: float) -> None:
        """What a block took."""
        known = self._smallest
        while known < size:
            known *= 2
        before, others = self._spent.get(known, (0.0, 0))
        self._spent[known] = (before + seconds, others + outputs)
        self.left -= outputs


def smallest_block(outputs: int, limits: int, seconds: float) -> int:
    """The size of the first blocks of so many outputs with so many limits each: `SMALLEST_BLOCK`,
    or a half or a quarter of it where the limits are so many that their programs would take longer.
    """
    size = SMALLEST_BLOCK
    if limits <= SMALLEST_BLOCK:
        return size
    while size > LEAST_BLOCK:
        # The parts that halvings leave are smaller than asked for.
        halvings = math.ceil(math.log2(max(outputs / size, 1.0)))
        block = outputs / 2.0**halvings
        if DUAL_TIME * outputs * limits * block**1.25 <= LATEST * seconds:
            break
        size //= 2
    return size


class Start(NamedTuple):
    """A plan to begin with: its flows, and prices of all symbols as inputs."""

    rows: Indices
    columns: Indices
    flows: Array
    prices: Array


@dataclass
class Stratum:
    """A plan of one stratum, as it gets better."""

    problem: PlanProblem
    members: Indices
    ranges: Ranges
    rng: np.random.Generator
    clock: Clock
    gap: float
    report: Callable[[float, float], None]
    # Ends the search by OutOfTime, even before there is a plan.
    deadline: Clock = NEVER
    # A plan within the limits, in the place of blocks.
    start: Start | None = None

    def __post_init__(self) -> None:
        n = self.problem.size
        # Only places of members are read, so nothing else is written: there may be many strata.
        self._place = np.zeros(n, np.int64)
        self._place[self.members] = np.arange(len(self.members))
        targets = self.problem.targets
        self.outputs = self.members
        if targets is not None:
            self.outputs = self.members[targets[self.members] > 0.0]
        self.rows = np.zeros(0, np.int64)
        self.columns = np.zeros(0, np.int64)
        self.flows = np.zeros(0)
        self.bound = 0.0
        # The prices that prove the bound; None where it is 0.
        self.proof: OutputPrices | None = None
        self.blocks = 0
        self.ended_early = False
        self._inputs = np.zeros(n)
        # Seconds after the deadline in which blocks are still as small as before.
        self._grace = math.inf
        # Seconds that are kept for the bound; none for no bound by prices.
        self._reserved = 0.0
        # Seconds that the outputs took one by one; none where they are not worth it.
        self._alone = 0.0
        # Prices of inputs that go with the best bound of that kind.
        self._proving = np.zeros(len(self.members))
        self._prices = Prices(
            np.zeros(n),
            np.zeros(n),
            np.zeros((len(self.ranges.values), n)),
            np.zeros((len(self.ranges.compared), n)),
            np.zeros((len(self.ranges.penalty.forms), n)),
        )

    @property
    def input_prices(self) -> Array:
        """The price of each member as an input."""
        return self._prices.inputs[self.members]

    @property
    def cost(self) -> float:
        """Cost of the plan so far."""
        return self._cost_of(self.rows, self.columns, self.flows)

    def _cost_of(self, rows: Indices, columns: Indices, flows: Array) -> float:
        """Cost of flows that are all that goes to their outputs, with the penalty."""
        cost = float(self.problem.costs.pairs(rows, columns) @ flows)
        penalty = self.ranges.penalty
        return cost + penalty.price * penalty.of(self._place[rows], columns, flows)

    def group(self, inputs: Indices, masses: Array, outputs: Indices) -> Group:
        """The group of these symbols."""
        targets = self.problem.targets
        is_free = targets is None
        of_outputs = (self.problem.masses if targets is None else targets)[outputs]
        if not is_free:
            # Both sums agree up to rounding; the program needs them to agree exactly.
            masses = masses * (of_outputs.sum() / masses.sum())
        ranges = self.ranges.restricted(self._place[inputs])
        return Group(inputs, outputs, masses, of_outputs, is_free, ranges)

    def whole(self) -> Group:
        """All inputs and outputs."""
        return self.group(self.members, self.problem.masses[self.members], self.outputs)

    def run(self) -> None:
        """Find the plan."""
        limit = self.clock()
        self._grace = max(limit, 0.0)
        whole = self.whole()
        if _has_few_pairs(whole):
            self._take(
                self._in_time(whole, lambda _: self._solve_all(whole), self.deadline)
            )
            self._prove(whole)
            self.report(self.cost, self.bound)
            return
        self._prove_first(whole)
        first = self.bound
        if self.start is None:
            self._start_with_blocks()
        else:
            self._start_with(self.start)
        self._sweeps(whole)
        # Prices of the sweeps prove more than those that came before any plan.
        if self.bound <= first:
            seconds = max(self.clock(), CEILING * limit)
            self._raise_bound(*ceiling(self.problem, whole, seconds))
            # When the time is over one bound is enough.
            in_time = self.clock() > 0.0 or self.bound <= first
            if self._reserved > 0.0 and in_time:
                self._sharpen(whole)
            self.report(self.cost, self.bound)

    def _sweeps(self, whole: Group) -> None:
        """Sweeps while they are the better use of the time, and the whole program after them."""
        size = len(self.outputs)
        swept = 0
        self._reserve(whole)
        if self.start is not None and self._reserved > 0.0:
            self._sharpen(whole)
        while self.clock() > self._reserved:
            if size <= SWEPT and not swept and self._optimise(whole):
                return
            before = self.clock()
            cost = self.cost
            self.sweep(self._sweep_size(whole))
            swept += 1
            seconds = before - self.clock() if math.isfinite(before) else 0.0
            # A round of the whole program, by the growth of the time with the size of programs.
            round_ = seconds / GROUP_ROUNDS * (size / SWEPT) ** GROWTH
            fits = size <= LARGEST_PROGRAM and self.clock() > WHOLE_ROUNDS * round_
            if fits and swept > size // ROWS_PER_SWEEP and self._optimise(whole):
                return
            if cost - self.cost <= LITTLE_GAIN * cost:
                break
        self.ended_early = True

    def _sweep_size(self, whole: Group) -> int:
        """Outputs of a group of the next sweep: fewer where a program of `SWEPT` of them would take
        too much of the time, as with many secrets.
        """
        each = len(self.rows) / len(self.outputs)
        size = SWEPT
        while size > SMALLEST_SWEPT:
            inputs = min(len(self.members), each * size)
            pairs = each * size + START_PAIRS * (inputs + size)
            seconds = GROUP_ROUNDS * foreseen(
                pairs, inputs, size, whole.ranges, is_free=whole.is_free
            )
            if seconds <= GROUP_PART * (self.clock() - self._reserved):
                break
            size //= 2
        return size

    def _reserve(self, whole: Group) -> None:
        """Keep as much of the time as a bound by prices takes, if that is worth it."""
        if len(self.outputs) > MOST_PRICED:
            return
        seconds = PASSES * self._pass_seconds(whole) + self._alone
        if seconds <= PROOF * self.clock():
            self._reserved = max(seconds, SHORTEST)

    def _solve_all(self, group: Group) -> Flows:
        """The best plan of a group over all its pairs, in the quickest way."""
        generation = Generation(self.problem, group, elastic=False)
        generation.add(*all_pairs(self.problem, group))
        return generation.flows(generation.solve_at_once(self.deadline), -math.inf)

    def _pass_seconds(self, whole: Group) -> float:
        """What a computation of all reduced costs takes."""
        pricer = Pricer(self.problem, whole)
        parts = list(pricer.chunks())
        before = time.process_time()
        pricer.reduced(self._prices_of(whole), parts[0])
        return len(parts) * (time.process_time() - before)

    def _prove_first(self, whole: Group) -> None:
        """Bounds before there is a plan, where no other one comes early: neither by one multiplier
        of an output (`sharpening`), nor by a program that follows at once.
        """
        limits = len(whole.ranges.values) + len(whole.ranges.compared)
        if limits <= 1 or not SWEPT < len(self.outputs) <= MOST_PRICED:
            return
        left = ALONE * min(self.clock(), self.deadline())
        if PASSES * self._pass_seconds(whole) > left:
            return
        for _ in range(2):
            before = time.process_time()
            self._prove_alone(whole, self._proving, left)
            self._alone = time.process_time() - before
            left -= self._alone
            # Half of the outputs would prove less.
            if left < self._alone:
                break

    def _prove_alone(self, whole: Group, inputs: Array, seconds: float) -> Pricing:
        """A bound from every output on its own, by prices of inputs."""
        pricer = Pricer(self.problem, whole)
        prices = alone(pricer, whole, inputs, min(seconds, LONGEST_ALONE))
        priced = pricer.price(prices, most=1, tolerance=np.inf)
        if priced.bound > self.bound:
            self._proving = inputs + priced.best_inputs
        self._raise_bound(priced.bound, priced.proof)
        return priced

    def _sharpen(self, whole: Group) -> None:
        """Prices that prove more, from those of the sweeps; and their bound."""
        if self._alone:
            # Prices of many groups vary; half way to those that proved most, they prove more.
            inputs = 0.5 * (self._prices.inputs[whole.inputs] + self._proving)
            self._prove_alone(whole, inputs, max(self.clock(), self._alone))
        pricer = Pricer(self.problem, whole)
        prices, priced = sharpened(pricer, whole, self._prices_of(whole))
        self._raise_bound(priced.bound, priced.proof)
        self._prices.inputs[whole.inputs] = prices.inputs
        self._prices.outputs[whole.outputs] = prices.outputs
        self._prices.ranges[:, whole.outputs] = prices.ranges
        self._prices.forms[:, whole.outputs] = prices.forms

    def _prove(self, whole: Group) -> None:
        """Bound the optimum by the prices so far."""
        prices = self._prices_of(whole)
        priced = Pricer(self.problem, whole).price(prices, most=1, tolerance=1e-9)
        self._raise_bound(priced.bound, priced.proof)

    def _raise_bound(self, bound: float, proof: OutputPrices | None) -> None:
        """Keep the better bound, with what proves it."""
        if bound > self.bound:
            self.bound = bound
            self.proof = proof

    def _start_with_blocks(self) -> None:
        """The plan of blocks."""
        whole = self.whole()
        divider = Divider(self.problem, whole, self.rng)
        share = START if len(self.outputs) <= LARGEST_PROGRAM else LONG_START
        limits = len(whole.ranges.limited)
        smallest = smallest_block(len(self.outputs), limits, self.clock())
        pace = BlockPace(Clock(share * self.clock()), len(self.outputs), smallest)
        plans = self._blocks(whole, divider, pace)
        for found in plans:
            self._keep_prices(found.group, found.prices)
        self._add(plans)
        self.blocks += len(plans)
        self.report(self.cost, self.bound)

    def _start_with(self, start: Start) -> None:
        """A plan that is there, and prices that go with its own of inputs."""
        inside = np.isin(start.rows, self.members)
        self.rows = start.rows[inside]
        self.columns = start.columns[inside]
        self.flows = start.flows[inside]
        self._prices.inputs[self.members] = start.prices[self.members]

    def _blocks(self, group: Group, divider: Divider, pace: BlockPace) -> list[Flows]:
        """Plans of the largest parts of a group that there is time for; of the group as a whole,
        where one of these has none.

        Raises
        ------
        NoPlan
            If the group has none either.
        """
        size = math.sqrt(len(group.inputs) * len(group.outputs))
        halves = None
        if self._is_divided(group, size, divider, pace):
            halves = divider.halves(group, quickly=pace.is_short)
        if halves is not None:
            left = pace.left
            first, second = halves
            try:
                return [
                    *self._blocks(first, divider, pace),
                    *self._blocks(second, divider, pace),
                ]
            except NoPlan:
                # A larger part may have one: both halves are still to be solved.
                pace.left = left
        before = time.process_time()
        outputs = len(group.outputs)
        clock = Clock(self.clock() * pace.share(outputs), self.clock)
        plan = self._block(group, clock)
        pace.note(size, outputs, time.process_time() - before)
        return [plan]

    def _is_divided(
        self, group: Group, size: float, divider: Divider, pace: BlockPace
    ) -> bool:
        """Whether a group of this size is divided further."""
        if self.clock() > 0.0:
            return size > pace.size()
        most = pace.size()
        if self._is_drawn_whole:
            most = max(most, DRAWN_WHOLE)
        return size > most and divider.gets_smaller(group)

    @property
    def _is_drawn_whole(self) -> bool:
        """Whether it is so late that large parts are drawn blindly, as they are."""
        if self.deadline() > -self._grace or self.problem.targets is None:
            # Without targets all inputs of a part go to one output.
            return False
        return self.problem.stay is None and self.problem.forbidden is None

    def _block(self, group: Group, clock: Clock) -> Flows:
        """The plan of one block; a blind draw where the time does not do."""
        return self._in_time(
            group, lambda until: self._solve_block(group, until), clock
        )

    def _in_time(
        self, group: Group, solve: Callable[[Clock], Flows], clock: Clock
    ) -> Flows:
        """The plan of a group that `solve` finds by this clock, or a blind draw where the time does
        not do; by the deadline, where there is no such draw.

        Raises
        ------
        NoPlan, OutOfTime
            If the group has no blind draw: the first for a part of the stratum.
        """
        if self.deadline() > 0.0:
            try:
                return solve(clock)
            except OutOfTime:
                pass
        self.ended_early = True
        size = DRAWN_WHOLE if self._is_drawn_whole else SMALL_DRAW
        found = blind_draw(self.problem, group, self.rng, size)
        if found is not None:
            return found
        if self.deadline() > 0.0:
            try:
                return solve(self.deadline)
            except OutOfTime:
                pass
        if len(group.outputs) < len(self.outputs):
            # A larger part may have one.
            raise NoPlan("no blind draw of a block")
        raise OutOfTime("the time was over before there was a plan")

    def _solve_block(self, group: Group, clock: Clock) -> Flows:
        """The plan of one block."""
        if len(group.inputs) * len(group.outputs) <= FEW_PAIRS:
            return self._solve_all(group)
        near, rounds = NEAR, BLOCK_ROUNDS
        if len(self.outputs) > LARGEST_PROGRAM:
            near, rounds = LONG_NEAR, LONG_BLOCK_ROUNDS
        n, o = len(group.inputs), len(group.outputs)
        pairs = min(near * o * len(np.unique(group.ranges.kinds())), n * o)
        if foreseen(pairs, n, o, group.ranges, is_free=group.is_free) > clock():
            raise OutOfTime("the program of a block does not fit into the time")
        generation = Generation(self.problem, group)
        generation.add(*near_pairs(self.problem, group, near))
        return generation.grow(gap=GROUP_GAP, clock=clock, rounds=rounds)

    def sweep(self, size: int) -> None:
        """Re-solve what goes to groups of at most `size` outputs."""
        parts = Cutter(self.problem.costs, self.rng).parts(self.outputs, size)
        owned = self._flows_of(parts)
        kept = np.ones(len(self.rows), np.bool_)
        improvements: list[Flows] = []
        self._inputs = self._prices.inputs.copy()
        mass = np.zeros(self.problem.size)
        total = np.zeros(self.problem.size)
        for k in self.rng.permutation(len(parts)):
            if self.clock() <= self._reserved:
                break
            found = self._improved(self.outputs[parts[k]], owned[k])
            if found is None:
                continue
            kept[owned[k]] = False
            improvements.append(found)
            group = found.group
            prices = self._keep_prices(group, found.prices)
            mass[group.inputs] += group.masses
            total[group.inputs] += group.masses * prices
        # Groups have outputs of their own, so each has improved flows of its own.
        self.rows = self.rows[kept]
        self.columns = self.columns[kept]
        self.flows = self.flows[kept]
        self._add(improvements)
        known = mass > 0.0
        self._prices.inputs[known] = total[known] / mass[known]
        self.report(self.cost, self.bound)

    def _flows_of(self, parts: list[Indices]) -> list[Indices]:
        """Places of the flows to the outputs of each part."""
        part_of = np.zeros(self.problem.size, np.int64)
        for k, part in enumerate(parts):
            part_of[self.outputs[part]] = k
        owners = part_of[self.columns]
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum(np.bincount(owners, minlength=len(parts)))
        return np.split(order, ends[:-1])

    def _improved(self, outputs: Indices, there: Indices) -> Flows | None:
        """Re-solve what goes to these outputs, the flows at these places; None where the plan so
        far remains.
        """
        rows, columns, flows = (
            self.rows[there],
            self.columns[there],
            self.flows[there],
        )
        if not len(there):
            return None
        inputs, places = np.unique(rows, return_inverse=True)
        masses = np.bincount(places, flows).astype(np.float64)
        group = self.group(inputs, masses, outputs)
        old = self._cost_of(rows, columns, flows)
        try:
            found = self._solve_group(group, rows, columns)
        except (NoPlan, OutOfTime, BackendFailure):
            return None
        if found.cost > old * (1.0 + BETTER) or not _keeps_limits(found):
            return None
        return found

    def _solve_group(self, group: Group, rows: Indices, columns: Indices) -> Flows:
        """A better plan of a group, from the pairs that it uses now."""
        if _has_few_pairs(group):
            return self._solve_all(group)
        generation = Generation(self.problem, group, elastic=False)
        generation.add(
            np.searchsorted(group.inputs, rows), places_of(group.outputs, columns)
        )
        self._add_priced(generation, group)
        return generation.grow(gap=GROUP_GAP, clock=self.clock, rounds=GROUP_ROUNDS)

    def _add_priced(self, generation: Generation, group: Group) -> None:
        """Add pairs of least reduced cost by the prices so far."""
        priced = generation.pricer.price(
            self._prices_of(group), most=START_PAIRS, tolerance=-math.inf
        )
        generation.add(priced.entering.rows, priced.entering.columns)

    def _optimise(self, whole: Group) -> bool:
        """The optimum of the whole stratum, as far as the time goes; whether there was time for a
        plan.
        """
        generation = Generation(self.problem, whole, elastic=not len(self.rows))
        generation.add(
            places_of(whole.inputs, self.rows), places_of(whole.outputs, self.columns)
        )
        self._sharpen(whole)
        self._add_priced(generation, whole)
        self.report(self.cost, self.bound)

        def report(cost: float, bound: float) -> None:
            # Rounds may prove less than was known before.
            self.report(cost, max(bound, self.bound))

        def prove(inputs: Array) -> Pricing:
            return self._prove_alone(whole, inputs, self.clock())

        try:
            found = generation.grow(
                gap=self.gap,
                clock=self.clock,
                report=report,
                prove=prove if self._alone else None,
            )
        except OutOfTime:
            self.ended_early = True
            return False
        self._raise_bound(found.bound, found.proof)
        is_better = found.cost <= self.cost * (1.0 + BETTER) and _keeps_limits(found)
        if is_better or not len(self.rows):
            self.rows = self.columns = np.zeros(0, np.int64)
            self.flows = np.zeros(0)
            self._take(found)
        self.ended_early = generation.ended_early
        return True

    def _take(self, found: Flows) -> None:
        """Add the flows of a group to the plan, and its prices to those so far."""
        self._add([found])
        self._keep_prices(found.group, found.prices)

    def _add(self, plans: Sequence[Flows]) -> None:
        """Add the flows of some groups to the plan."""
        self.rows = np.concatenate([self.rows, *(one.rows for one in plans)])
        self.columns = np.concatenate([self.columns, *(one.columns for one in plans)])
        self.flows = np.concatenate([self.flows, *(one.flows for one in plans)])

    def _keep_prices(self, group: Group, prices: Prices) -> Array:
        """Note the prices of a group, shifted to agree with those so far; its prices of inputs."""
        known = self._inputs[group.inputs]
        weights = group.masses / group.masses.sum()
        if group.is_free:
            shift = 0.0
        elif known.any():
            shift = float(weights @ (known - prices.inputs))
        else:
            mean = group.targets / group.targets.sum() @ prices.outputs
            shift = 0.5 * float(mean - weights @ prices.inputs)
        inputs = prices.inputs + shift
        self._prices.outputs[group.outputs] = prices.outputs - shift
        self._prices.ranges[:, group.outputs] = prices.ranges
        self._prices.compared[:, group.outputs] = prices.compared
        self._prices.forms[:, group.outputs] = prices.forms
        if not known.any():
            self._prices.inputs[group.inputs] = inputs
        return inputs

    def _prices_of(self, group: Group) -> Prices:
        """The prices so far of a group's inputs and outputs."""
        return Prices(
            self._prices.inputs[group.inputs],
            self._prices.outputs[group.outputs],
            self._prices.ranges[:, group.outputs],
            self._prices.compared[:, group.outputs],
            self._prices.forms[:, group.outputs],
        )


def _has_few_pairs(group: Group) -> bool:
    """Whether all pairs of a group, with their limits, make a program of moderate size."""
    pairs = len(group.inputs) * len(group.outputs)
    return pairs <= ALL_PAIRS and pairs * len(group.ranges.limited) <= ALL_ENTRIES


def _keeps_limits(found: Flows) -> bool:
    """Whether what goes to each output keeps the limits: interior points miss them by more than
    their margin now and then, and a plan before this one does not.
    """
    group = found.group
    x = np.searchsorted(group.inputs, found.rows)
    y = places_of(group.outputs, found.columns)
    size = len(group.outputs)
    sums = np.bincount(y, found.flows, size)
    used = sums > 0.0
    limited = group.ranges.limited
    means = np.zeros((len(limited), int(used.sum())))
    for k, values in enumerate(limited):
        means[k] = np.bincount(y, found.flows * values[x], size)[used] / sums[used]
    return group.ranges.are_kept(means)
