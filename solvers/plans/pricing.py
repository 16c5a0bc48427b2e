"""Reduced costs of all pairs of a group, in chunks, and the bound that they prove.

For any multipliers u_x of inputs and lam_y of the ranges of outputs, a plan F costs

    sum d F >= sum_x m_x u_x + sum_y q_y (e_y + min_x (d(x, y) - u_x - lam_y . t(x)))

where e_y is lower . lam_y for multipliers that are positive and upper . lam_y for negative ones:
F keeps the ranges, so lam_y . sum_x t(x) F(x, y) >= q_y e_y. Any v_y with the roles of x and y
exchanged gives a second bound. Multipliers of compared values have no term of their own, but in
each group the positive ones must sum to at least ratio times the negative ones, or the auxiliary
r_y would gain without end. The forms of a penalty have multipliers that are not negative and sum
to its price at most, which add sum_j lam_jy f_j(x) to d: the largest form costs no less than such a
mean of them. What must stay at x pays its own reduced cost. Without targets

    sum d F >= sum_x m_x min_y (d(x, y) + e_y - lam_y . t(x))

All of it holds for whatever multipliers a solver returns: optimal ones only make it sharp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.plans.problem import Indices, PlanProblem
from solvers.plans.program import Group, Prices
from solvers.plans.ranges import Ranges
from solvers.points import Array

CHUNK = 1 << 21
"""Pairs that are priced at once: 16 MB of doubles."""

ROUNDING = 2.0**-48
"""A reduced cost is a sum of a few dozen terms; its error is below this share of their size, and so
is that of the sums over all masses, which numpy adds in pairs."""


FEW_CANDIDATES = 4
"""Candidates that are sorted at once, for each one that may enter: more cost more than they
help."""

SAMPLE = 20_000
"""Reduced costs that estimate how many are below a number."""


@dataclass(frozen=True, eq=False)
class Entering:
    """Pairs of negative reduced cost, by places in the group."""

    rows: Indices
    columns: Indices
    reduced: Array


@dataclass(frozen=True, eq=False)
class OutputPrices:
    """The multipliers of outputs that prove a bound, whatever inputs pay.

    With E(x, y) = d(x, y) - f_y - lam_y . (t(x) - end_y) - compared_y . t(x), where end_y is the
    lower end of a range for a positive multiplier and the upper one for a negative one, no plan
    costs less than sum_x m_x min_y E(x, y) + sum_y q_y f_y.

    Attributes
    ----------
    masses : (o,) array
        f_y of the sums of outputs; zeros where they are free.
    ranges, compared : (r, o) and (m, o) arrays
        Of the values of `Ranges`.
    forms : (j, o) array
        Of the forms of its penalty, which raise E.
    """

    masses: Array
    ranges: Array
    compared: Array
    forms: Array


@dataclass(frozen=True, eq=False)
class Pricing:
    """What a pass over all pairs found: a proven bound with the prices that prove it, and pairs
    that would lower the cost.
    """

    bound: float
    proof: OutputPrices
    entering: Entering
    best_inputs: Array


class Pricer:
    """Prices all pairs of a group that a problem allows."""

    def __init__(self, problem: PlanProblem, group: Group) -> None:
        self._problem = problem
        self._group = group
        self._costs: Array | None = None

    @cached_property
    def _place_of(self) -> Indices:
        """The place of every symbol of the problem among the inputs, -1 for none."""
        places = np.full(self._problem.size, -1)
        places[self._group.inputs] = np.arange(len(self._group.inputs))
        return places

    @cached_property
    def _output_of(self) -> Indices:
        """The place of every symbol of the problem among the outputs, -1 for none."""
        places = np.full(self._problem.size, -1)
        places[self._group.outputs] = np.arange(len(self._group.outputs))
        return places

    def chunks(self) -> Iterator[slice]:
        """Slices of outputs, small enough to price at once."""
        n, o = len(self._group.inputs), len(self._group.outputs)
        step = max(1, CHUNK // n)
        for start in range(0, o, step):
            yield slice(start, min(start + step, o))

    def reduced(self, prices: Prices, part: slice) -> Array:
        """d - u_x - lam_y . t(x) of all inputs by the outputs of `part`; infinite where
        forbidden.
        """
        group = self._group
        out = self._cost_block(part) - prices.inputs[:, None]
        ranges = group.ranges
        if len(ranges.values):
            out -= ranges.values.T @ prices.ranges[:, part]
        if len(ranges.compared):
            scaled = ranges.scales[:, None] * ranges.compared
            out -= scaled.T @ prices.compared[:, part]
        if len(ranges.penalty.forms):
            out += ranges.penalty.forms.T @ prices.forms[:, part]
        self._forbid(out, part)
        return out

    def _cost_block(self, part: slice) -> Array:
        """Costs of all inputs by the outputs of `part`; those of a small group are kept."""
        group = self._group
        if self._costs is not None:
            return self._costs
        costs = self._problem.costs.block(group.inputs, group.outputs[part])
        if part == slice(0, len(group.outputs)):
            self._costs = costs
        return costs

    def _forbid(self, out: Array, part: slice) -> None:
        """Set forbidden pairs of a block to infinity."""
        if self._problem.forbidden is None:
            return
        starts, rows = self._problem.forbidden_rows_of
        for j, y in enumerate(self._group.outputs[part]):
            places = self._place_of[rows[starts[y] : starts[y + 1]]]
            out[places[places >= 0], j] = np.inf

    def price(self, prices: Prices, *, most: int, tolerance: float) -> Pricing:
        """One pass: the bound, and up to `most` entering pairs for every input and every output.

        Pairs enter with a reduced cost below -`tolerance`.
        """
        group = self._group
        prices = _proper(prices, group.ranges)
        ends = range_terms(prices, group.ranges)
        # What an output costs beside its pairs: with free sums nothing is left for v.
        offsets = ends if group.is_free else -prices.outputs
        n, o = len(group.inputs), len(group.outputs)
        least_of_output = np.empty(o)
        least_of_input = np.full(n, np.inf)
        own = np.zeros(n)
        candidates = _Candidates(n, o, most)
        for part in self.chunks():
            block = self.reduced(prices, part)
            least_of_output[part] = block.min(axis=0)
            self._own(own, block, part)
            block += offsets[part]
            np.minimum(least_of_input, block.min(axis=1), out=least_of_input)
            candidates.update(block, part.start, tolerance)
        rows, columns, reduced = candidates.found()
        entering = Entering(rows, columns, reduced)
        bound, masses = self._bound(prices, ends, least_of_output, least_of_input, own)
        proof = OutputPrices(masses, prices.ranges, prices.compared, prices.forms)
        return Pricing(bound, proof, entering, least_of_input)

    def _own(self, own: Array, block: Array, part: slice) -> None:
        """Reduced costs of symbols that stay."""
        if self._problem.stay is None:
            return
        y = self._group.outputs[part]
        places = self._place_of[y]
        there = np.flatnonzero(places >= 0)
        own[places[there]] = block[places[there], there]

    def _bound(
        self,
        prices: Prices,
        ends: Array,
        least_of_output: Array,
        least_of_input: Array,
        own: Array,
    ) -> tuple[float, Array]:
        """The better of the two bounds, less what rounding may have added, and the prices of sums
        of outputs (`OutputPrices.masses`) that it belongs to.
        """
        group = self._group
        stay = self._problem.stay
        kept = np.zeros(0)
        places = np.zeros(0, np.int64)
        if stay is not None:
            places = self._output_of[group.inputs]
            masses = self._problem.masses[group.inputs]
            kept = np.where(places >= 0, stay[group.inputs], 0.0) * masses
        size = self._size(prices)
        # By inputs: every unit of mass of x costs at least the least of its reduced costs.
        gain = least_of_input
        by_inputs = float(group.masses @ (prices.inputs + gain))
        if group.is_free:
            if stay is not None:
                by_inputs += _paid(kept, own + ends[places] - gain)
            bound = by_inputs - ROUNDING * size * float(group.masses.sum())
            return bound, np.zeros(len(ends))
        by_inputs += float(group.targets @ (prices.outputs + ends))
        by_outputs = float(group.masses @ prices.inputs)
        by_outputs += float(group.targets @ (ends + least_of_output))
        if stay is not None:
            by_inputs += _paid(kept, own - prices.outputs[places] - gain)
            by_outputs += _paid(kept, own - least_of_output[places])
        mass = float(group.masses.sum() + group.targets.sum())
        error = ROUNDING * size * mass
        # Where both sums differ by rounding, a price that all inputs share is paid twice.
        error += size * abs(float(group.masses.sum() - group.targets.sum()))
        if math.isfinite(by_outputs) and not by_outputs <= by_inputs:
            return by_outputs - error, ends + least_of_output
        if math.isfinite(by_inputs):
            return by_inputs - error, prices.outputs + ends
        return -math.inf, prices.outputs + ends

    def _size(self, prices: Prices) -> float:
        """Largest size of the terms of a reduced cost."""
        ranges = self._group.ranges
        size = self._problem.costs.largest + 1.0
        size += float(np.abs(prices.inputs).max(initial=0.0))
        size += float(np.abs(prices.outputs).max(initial=0.0))
        if len(ranges.values):
            largest = ranges.values.max(axis=1)
            ends = np.where(np.isinf(ranges.true_upper), 0.0, ranges.true_upper)
            largest = np.maximum(largest, ends)
            size += float((largest @ np.abs(prices.ranges)).max(initial=0.0))
        if len(ranges.compared):
            largest = ranges.scales * ranges.compared.max(axis=1)
            size += float((largest @ np.abs(prices.compared)).max(initial=0.0))
        if len(ranges.penalty.forms):
            largest = np.abs(ranges.penalty.forms).max(axis=1)
            size += float((largest @ np.abs(prices.forms)).max(initial=0.0))
        return size


class _Candidates:
    """Pairs of small reduced cost over the chunks so far: the smallest of every input and
    output.
    """

    def __init__(self, n: int, o: int, most: int) -> None:
        self._o = o
        self._most = most
        self._keys = np.zeros(0, np.int64)
        self._reduced = np.zeros(0)
        # Kept for outputs, whose pairs come in one chunk.
        self._of_outputs: list[tuple[Indices, Array]] = []

    def update(self, block: Array, first: int, tolerance: float) -> None:
        """Take the smallest of a block, whose columns start at `first`."""
        places = np.flatnonzero(block < _threshold(block, self._most, tolerance))
        reduced = block.ravel()[places]
        rows, columns = np.divmod(places, block.shape[1])
        keys = rows * self._o + columns + first
        chosen = _first_of(columns, reduced, self._most)
        self._of_outputs.append((keys[chosen], reduced[chosen]))
        keys = np.concatenate([self._keys, keys])
        reduced = np.concatenate([self._reduced, reduced])
        chosen = _first_of(keys // self._o, reduced, self._most)
        self._keys, self._reduced = keys[chosen], reduced[chosen]

    def found(self) -> tuple[Indices, Indices, Array]:
        """Pairs (rows, columns, reduced costs), each once."""
        of_outputs = [keys for keys, _ in self._of_outputs]
        keys = np.concatenate([self._keys, *of_outputs])
        reduced = np.concatenate(
            [self._reduced, *(values for _, values in self._of_outputs)]
        )
        keys, first = np.unique(keys, return_index=True)
        rows, columns = np.divmod(keys, self._o)
        return rows, columns, reduced[first]


def _threshold(block: Array, most: int, tolerance: float) -> float:
    """Reduced costs from here on are no candidates: -tolerance, or less where too many are
    below.
    """
    wanted = FEW_CANDIDATES * most * sum(block.shape)
    below = np.count_nonzero(block < -tolerance)
    if below <= wanted:
        return -tolerance
    # Of a regular sample: the exact number does not matter.
    step = max(1, block.size // SAMPLE)
    sample = np.sort(block.ravel()[::step])
    place = len(sample) * wanted // block.size
    return float(min(sample[min(place, len(sample) - 1)], -tolerance))


def _first_of(owners: Indices, reduced: Array, most: int) -> Indices:
    """Places of the `most` smallest of every owner."""
    order = np.lexsort((reduced, owners))
    ordered = owners[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(np.append(starts, len(ordered)))
    rank = np.arange(len(ordered)) - np.repeat(starts, sizes)
    return order[rank < most]


def _paid(kept: Array, above: Array) -> float:
    """What masses that stay pay beyond the least reduced cost of their input or output."""
    used = kept > 0.0
    return float(kept[used] @ np.maximum(above[used], 0.0))


def range_terms(prices: Prices, ranges: Ranges) -> Array:
    """e_y: what the ranges of an output are worth at these multipliers, a unit of its mass."""
    if not len(ranges.values):
        return np.zeros(prices.ranges.shape[1])
    upper = np.where(np.isinf(ranges.true_upper), 0.0, ranges.true_upper)
    positive = np.maximum(prices.ranges, 0.0)
    negative = np.minimum(prices.ranges, 0.0)
    return ranges.true_lower @ positive + upper @ negative


def _proper(prices: Prices, ranges: Ranges) -> Prices:
    """The multipliers without those that prove nothing: of ends that are infinite, of compared
    values whose auxiliary would gain, and of forms beyond the price of their penalty.
    """
    limited = np.where(
        np.isinf(ranges.true_upper)[:, None],
        np.maximum(prices.ranges, 0.0),
        prices.ranges,
    )
    compared = prices.compared.copy()
    for g in range(ranges.groups):
        of_group = ranges.group == g
        part = compared[of_group]
        positive = np.maximum(part, 0.0)
        negative = np.minimum(part, 0.0)
        paid = positive.sum(axis=0)
        gained = -ranges.true_ratio * negative.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(gained > paid, paid / gained, 1.0)
        # A little less, so that rounding does not turn the inequality.
        compared[of_group] = positive + negative * factor * (1.0 - 2.0**-50)
    forms = np.maximum(prices.forms, 0.0)
    penalty = ranges.penalty
    for number in np.unique(penalty.groups):
        of_group = penalty.groups == number
        total = forms[of_group].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(total > penalty.price, penalty.price / total, 1.0)
        forms[of_group] *= factor * (1.0 - 2.0**-50)
    return Prices(prices.inputs, prices.outputs, limited, compared, forms)
