"""Bounds of plans: prices that prove more, and how much must move at all.

*Sharpened prices* prove more: the best multipliers of outputs for given prices of inputs, and back.

For given u_x the best bound takes, for every output y,

    max over lam of   e(lam) + min_x (d(x, y) - u_x - lam t(x))

with one range a concave function of one number, whose slope is the end of the range less the t of
the x that is cheapest: bisection finds the maximum. Only the cheapest x of each value t matters, so
one pass over the pairs is enough for all outputs. Then u_x = min_y (d - lam_y t - v_y) takes up
what the inputs have left. Prices that come from many small programs gain most of their bound by
this.

A penalty whose forms are a_j + b_j t(x), as all are that speak of one of two secrets, is a convex
function of the mean m of t over what goes to y, with straight pieces. With it

    e(lam) = min over m in the range of   lam m + penalty(m),

whose slope is the m that is least: an end of the range, or a kink between two pieces. The forms of
the pieces beside it, and the end, share lam: at a kink the two slopes make up -lam, and at an end
the range has what the piece there leaves.

*The ceiling.* A bound for many symbols in little time: how much must move at all.

Whatever moves costs at least delta, the least cost between two different symbols. Under the costs 0
and delta symbols of equal limited values are alike, so the plan's rows and columns can be summed by
classes of such symbols. A small program of the classes,

    minimise  sum_c m_c
    over      w_c + m_c = Q_c,   lower Q_c <= t_c w_c + tau_c <= upper Q_c,
              sum_c (t_c w_c + tau_c) = sum_c t_c P_c,
              least t m_c <= tau_c <= largest t m_c,   0 <= w_c <= what may stay of c

with masses P_c, targets Q_c, what stays w_c, and what comes from elsewhere, of mass m_c and summed
values tau_c, gives multipliers mu of the last equation and lam_c of the ranges. With u_x = mu . t_x
the bound of `pricing` then follows from the multipliers alone, whether or not they are optimal.

*Every output on its own.* For given prices u_x of inputs the best bound takes, for every output y,
the multipliers of

    minimise  sum_x (d(x, y) - u_x) f(x)   over shares f of the inputs that keep the limits,

a program of one output (`pricing` has the bound). All outputs have the same rows, so each starts
from the basis of the last one. Where costs are not negative, no program is worth less than 0 for
prices u = 0. So there is a bound before there is any plan: each output alone, free to take what it
likes of every input.

For example, under LDP 1 a table of 2,000 x 15 symbols has such programs of 2,000 shares and 31
rows, some 3 ms each. They prove that 20 % of the records must change if the law is kept.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from solvers.errors import BackendFailure
from solvers.plans.pricing import (
    CHUNK,
    ROUNDING,
    OutputPrices,
    Pricer,
    Pricing,
    range_terms,
)
from solvers.plans.problem import Costs, MatrixCosts, PlanPenalty, PlanProblem
from solvers.plans.program import OPTIONS, PRIMAL_SIMPLEX, Group, Prices
from solvers.points import Array
from solvers.programs import Program, SparseRows, highs_with, set_options, solve_program

# --------------------------------------------------------- sharpened prices and ceiling

# --------------------------------------------------------------------- sharpened prices

BISECTIONS = 40
"""Halvings of the interval of a multiplier: its last digits change a bound by 1e-12."""

MOST_VALUES = 4000
"""Different values of inputs up to which the cheapest of each is kept."""

AFFINE = 1e-9
"""Forms count as affine functions of the values within this: what is proven does not rest on it."""


@dataclass(frozen=True, eq=False)
class _Pieces:
    """What lam is worth: the mean m that is least, and the multipliers that belong to it.

    Attributes
    ----------
    points : (k + 1,) array
        Ends of the range, and the kinks of the penalty between them.
    slopes : (k,) array
        Of the penalty between two points, rising.
    offsets : (k,) array
        Of the pieces at m = 0.
    active : (k, forms) array
        Multipliers of the forms that are a piece.
    least, most : float
        No other lam belongs to multipliers that prove something.
    """

    points: Array
    slopes: Array
    offsets: Array
    active: Array
    least: float
    most: float

    def means(self, lam: Array) -> Array:
        """The m that is least."""
        return self.points[np.searchsorted(self.slopes, -lam)]

    def split(self, lam: Array) -> tuple[Array, Array, Array]:
        """Multipliers of the range (y) and of the forms (form, y) that make up lam, and what the
        forms are worth at t = 0 (y).
        """
        last = len(self.slopes) - 1
        place = np.searchsorted(self.slopes, -lam)
        before, after = np.maximum(place - 1, 0), np.minimum(place, last)
        low, high = self.slopes[before], self.slopes[after]
        width = np.where(high > low, high - low, 1.0)
        share = np.clip((-lam - low) / width, 0.0, 1.0)
        of_forms = (1.0 - share)[:, None] * self.active[before]
        of_forms += share[:, None] * self.active[after]
        worth = (1.0 - share) * self.offsets[before] + share * self.offsets[after]
        is_end = (place == 0) | (place > last)
        return np.where(is_end, lam + low, 0.0), of_forms.T, worth


def sharpened(pricer: Pricer, group: Group, prices: Prices) -> tuple[Prices, Pricing]:
    """Prices that mostly prove more, and the pass with the bound that they prove."""
    ranges = group.ranges
    if not group.is_free and not len(ranges.compared) and len(ranges.values) <= 1:
        functions = list(ranges.values) or list(ranges.penalty.forms)
        if functions:
            # Some form may be constant.
            values = max(functions, key=np.ptp)
            prices = _best_of_outputs(pricer, group, prices, values)
    priced = pricer.price(prices, most=1, tolerance=np.inf)
    inputs = prices.inputs + priced.best_inputs
    better = replace(prices, inputs=inputs)
    return better, priced


def _best_of_outputs(
    pricer: Pricer, group: Group, prices: Prices, values: Array
) -> Prices:
    """The best multipliers where all limits are about one function t of the inputs, and prices of
    outputs that go with them.
    """
    ranges = group.ranges
    t, kind = np.unique(values, return_inverse=True)
    if len(t) > MOST_VALUES or len(t) < 2:
        return prices
    ends = (float(t[0]), float(t[-1]))
    if len(ranges.values):
        ends = (float(ranges.true_lower[0]), float(ranges.true_upper[0]))
    pieces = _pieces(ranges.penalty, values, ends, has_range=bool(len(ranges.values)))
    if pieces is None:
        return prices
    order = np.argsort(kind, kind="stable")
    starts = np.searchsorted(kind[order], np.arange(len(t)))
    without = replace(
        prices,
        outputs=np.zeros_like(prices.outputs),
        ranges=np.zeros_like(prices.ranges),
        forms=np.zeros_like(prices.forms),
    )
    best = np.zeros(len(group.outputs))
    value = np.zeros(len(group.outputs))
    for part in pricer.chunks():
        block = pricer.reduced(without, part)
        cheapest = np.minimum.reduceat(block[order], starts, axis=0)
        best[part] = _maximise(cheapest, t, pieces)
        value[part] = (cheapest - best[part] * t[:, None]).min(axis=0)
    of_range, of_forms, worth = pieces.split(best)
    return replace(
        prices,
        outputs=value + worth,
        ranges=of_range[None, :] if len(ranges.values) else prices.ranges,
        forms=of_forms,
    )


def _pieces(
    penalty: PlanPenalty, t: Array, ends: tuple[float, float], *, has_range: bool
) -> _Pieces | None:
    """The pieces of a penalty whose forms are affine functions of t; None where they are not."""
    low, high = int(t.argmin()), int(t.argmax())
    slopes = (penalty.forms[:, high] - penalty.forms[:, low]) / (t[high] - t[low])
    offsets = penalty.forms[:, low] - slopes * t[low]
    missed = np.abs(offsets[:, None] + slopes[:, None] * t - penalty.forms)
    if missed.max(initial=0.0) > AFFINE:
        return None
    # Means are between the least and the largest t, whatever the ends are.
    first, last = max(ends[0], float(t[low])), min(ends[1], float(t[high]))
    kinks = [first, last]
    for number in np.unique(penalty.groups):
        of_group = np.flatnonzero(penalty.groups == number)
        steps = slopes[of_group] - slopes[of_group][:, None]
        rises = offsets[of_group][:, None] - offsets[of_group]
        crossing = rises[steps > 0.0] / steps[steps > 0.0]
        kinks.extend(crossing[(crossing > first) & (crossing < last)].tolist())
    points = np.unique(kinks)
    middles = (points[:-1] + points[1:]) / 2.0
    active = np.zeros((len(middles), len(slopes)))
    for number in np.unique(penalty.groups):
        of_group = np.flatnonzero(penalty.groups == number)
        heights = offsets[of_group] + np.outer(middles, slopes[of_group])
        largest = of_group[heights.argmax(axis=1)]
        active[np.arange(len(middles)), largest] = penalty.price
    # Crossings below the largest forms are no kinks.
    kept = np.append(True, (active[1:] != active[:-1]).any(axis=1))
    active = active[kept]
    of_pieces = active @ slopes
    return _Pieces(
        points=np.append(points[:-1][kept], points[-1]),
        slopes=of_pieces,
        offsets=active @ offsets,
        active=active,
        # Without an upper end, or without a range, the forms alone make up lam.
        least=-np.inf if has_range and np.isfinite(ends[1]) else -float(of_pieces[-1]),
        most=np.inf if has_range else -float(of_pieces[0]),
    )


def _maximise(cheapest: Array, t: Array, pieces: _Pieces) -> Array:
    """The multiplier of every output that is best with these reduced costs by value."""
    finite = np.where(np.isfinite(cheapest), cheapest, 0.0)
    # Beyond it the cheapest value no longer changes.
    steps = np.diff(t).min(initial=1.0)
    reach = min(float(np.ptp(finite)) / max(float(steps), 1e-6) + 1.0, 1e4)
    reach += float(np.abs(pieces.slopes).max())
    low = np.full(cheapest.shape[1], max(-reach, pieces.least))
    high = np.full(cheapest.shape[1], min(reach, pieces.most))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        chosen = t[(cheapest - middle * t[:, None]).argmin(axis=0)]
        rising = pieces.means(middle) > chosen
        low = np.where(rising, middle, low)
        high = np.where(rising, high, middle)
    return 0.5 * (low + high)


# ------------------------------------------------------------------------------ ceiling

MOST_CLASSES = 30_000
"""Classes, times limits of an output, that the program takes: a second or two."""

BUILDING_TIME = 2e-5
"""Seconds that making the program takes for each of them: .6 s for 30,000."""

BUILDING_SHARE = 0.5
"""Most of the time that this may take. Solving takes longer, so that the program would not end."""

MATRIX_ROWS = 512
"""Rows of a matrix of costs that are searched at once."""


class Ceiling(NamedTuple):
    """A lower bound, and the multipliers of outputs that prove it; None where it is 0."""

    bound: float
    proof: OutputPrices | None = None


def ceiling(problem: PlanProblem, group: Group, seconds: float = math.inf) -> Ceiling:
    """A lower bound on the cost of every plan of a stratum with targets; 0 where it has none.

    Parameters
    ----------
    group : Group
        All symbols of the stratum.
    seconds : float
        Processor time for the program of the classes. Where it does not end by then there is no
        bound.
    """
    ranges = group.ranges
    values = ranges.values
    if group.is_free or not len(values):
        return Ceiling(0.0)
    least = least_move(problem.costs)
    classes, first, kind = np.unique(
        values.T, axis=0, return_index=True, return_inverse=True
    )
    if least <= 0.0 or classes.size > MOST_CLASSES:
        return Ceiling(0.0)
    if BUILDING_TIME * classes.size > BUILDING_SHARE * seconds:
        return Ceiling(0.0)
    kind = kind.ravel()
    size = len(first)
    targets = np.zeros(problem.size)
    targets[group.outputs] = group.targets
    targets = targets[group.inputs]
    masses, wanted, stays = (
        np.bincount(kind, one, size).astype(np.float64)
        for one in (group.masses, targets, np.minimum(group.masses, targets))
    )
    used = np.flatnonzero(wanted > 0.0)
    try:
        mu, lam = _multipliers(group, classes.T, masses, wanted, stays, seconds)
    except BackendFailure:
        return Ceiling(0.0)
    mu, lam = least * mu, least * lam
    bound, prices, lam = _bound(group, classes.T, masses, wanted, mu, lam, least, used)
    if bound <= 0.0:
        return Ceiling(0.0)
    # Symbols of a class have its prices: every output has a class that is used.
    place = np.full(problem.size, -1)
    place[group.inputs] = np.searchsorted(used, kind)
    of_output = place[group.outputs]
    compared = np.zeros((len(ranges.compared), len(group.outputs)))
    forms = np.zeros((len(ranges.penalty.forms), len(group.outputs)))
    proof = OutputPrices(prices[of_output], lam[:, of_output], compared, forms)
    return Ceiling(bound, proof)


def least_move(costs: Costs) -> float:
    """No move between different symbols costs less."""
    if isinstance(costs, MatrixCosts):
        found = math.inf
        for start in range(0, costs.size, MATRIX_ROWS):
            rows = costs.matrix[start : start + MATRIX_ROWS].copy()
            places = np.arange(len(rows))
            rows[places, places + start] = math.inf
            found = min(found, float(rows.min()))
        return found if math.isfinite(found) else 0.0
    if len(np.unique(costs.codes, axis=0)) < costs.size:
        return 0.0
    # A column may count twice, by whether it changes and by how far: both change together.
    steps: dict[bytes, float] = {}
    for j, places in enumerate(costs.positions):
        symbols = np.unique(costs.codes[:, j])
        if len(symbols) < 2:
            continue
        step = float(costs.weights[j])
        if places is not None:
            step = float(np.diff(np.sort(places[symbols])).min())
        column = costs.codes[:, j].tobytes()
        steps[column] = steps.get(column, 0.0) + step
    return min(steps.values(), default=0.0)


def _multipliers(
    group: Group,
    values: Array,
    masses: Array,
    wanted: Array,
    stays: Array,
    seconds: float,
) -> tuple[Array, Array]:
    """mu (r,) and lam (r, classes) of the program of the classes, for moves of cost 1."""
    ranges = group.ranges
    r, c = values.shape
    infinite = np.full(c, math.inf)
    none = np.zeros(c)
    # Variables: w, m, and tau of every range.
    costs = np.concatenate([none, np.ones(c), np.zeros(r * c)])
    lower = np.concatenate([none, none, np.zeros(r * c)])
    upper = np.concatenate([stays, infinite, np.full(r * c, math.inf)])
    rows = SparseRows()
    for k in range(c):
        rows.add([k, c + k], [1.0, 1.0], wanted[k], wanted[k])
    for i in range(r):
        largest, smallest = float(values[i].max()), float(values[i].min())
        for k in range(c):
            tau = (2 + i) * c + k
            most = ranges.true_upper[i] * wanted[k] if wanted[k] > 0.0 else math.inf
            rows.add(
                [k, tau],
                [values[i, k], 1.0],
                ranges.true_lower[i] * wanted[k],
                most,
            )
            rows.add([tau, c + k], [1.0, -largest], -math.inf, 0.0)
            rows.add([tau, c + k], [1.0, -smallest], 0.0, math.inf)
    for i in range(r):
        tau = range((2 + i) * c, (3 + i) * c)
        total = float(values[i] @ masses)
        rows.add([*range(c), *tau], [*values[i], *np.ones(c)], total, total)
    found = solve_program(Program(costs, lower, upper, rows), time_limit=seconds)
    if not found.optimal:
        raise BackendFailure(
            "the time was over before the program of the classes ended"
        )
    of_ranges = found.prices[c : c + 3 * r * c].reshape(r, c, 3)[:, :, 0]
    return found.prices[-r:], of_ranges


def _bound(
    group: Group,
    values: Array,
    masses: Array,
    wanted: Array,
    mu: Array,
    lam: Array,
    least: float,
    used: np.ndarray,
) -> tuple[float, Array, Array]:
    """The bound of these multipliers, less what rounding may have added; prices of the sums and
    multipliers of the ranges of each class that is used.
    """
    ranges = group.ranges
    # An infinite end proves nothing.
    limited = np.isinf(ranges.true_upper)[:, None]
    lam = np.where(limited, np.maximum(lam, 0.0), lam)[:, used]
    nothing = np.zeros(0)
    prices = Prices(nothing, nothing, lam, nothing)
    inputs = mu @ values
    # What stays at class c, and what comes to it from any other class.
    cheapest = -inputs[used] - (values[:, used] * lam).sum(axis=0)
    step = max(1, CHUNK // len(inputs))
    for start in range(0, len(used), step):
        part = slice(start, start + step)
        gains = (inputs[:, None] + values.T @ lam[:, part]).max(axis=0)
        cheapest[part] = np.minimum(cheapest[part], least - gains)
    bound = float(masses @ inputs)
    of_sums = range_terms(prices, ranges) + cheapest
    bound += float(wanted[used] @ of_sums)
    largest = values.max(axis=1)
    ends = np.where(np.isinf(ranges.true_upper), 0.0, ranges.true_upper)
    terms = np.maximum(largest, ends) @ (np.abs(lam).max(axis=1) + np.abs(mu))
    mass = float(masses.sum() + wanted.sum())
    bound -= ROUNDING * mass * (least + 2.0 * float(terms))
    return max(bound, 0.0), of_sums, lam


# -------------------------------------------------------------- every output on its own

FORBIDDEN = 1e3
"""Cost of a pair that is forbidden, in units of the largest reduced cost."""


def alone(pricer: Pricer, group: Group, inputs: Array, seconds: float) -> Prices:
    """The multipliers of every output for given prices of inputs.

    Multipliers of outputs that were not reached in `seconds` of processor time, and of a penalty,
    are 0. Outputs of large masses come first.
    """
    end = time.process_time() + seconds
    ranges = group.ranges
    o = len(group.outputs)
    prices = Prices(
        inputs,
        np.zeros(o),
        np.zeros((len(ranges.values), o)),
        np.zeros((len(ranges.compared), o)),
        np.zeros((len(ranges.penalty.forms), o)),
    )
    # Reduced costs without multipliers, which those of outputs that are done must not change.
    plain = replace(
        prices,
        ranges=np.zeros_like(prices.ranges),
        compared=np.zeros_like(prices.compared),
    )
    program = _OneOutput(group)
    for part in pricer.chunks():
        block = pricer.reduced(plain, part)
        masses = group.targets[part]
        for place in np.argsort(-masses, kind="stable"):
            if time.process_time() >= end:
                return prices
            y = part.start + int(place)
            solved = program.solve(block[:, place])
            if solved is not None:
                prices.ranges[:, y], prices.compared[:, y] = solved
    return prices


class _OneOutput:
    """The program of one output: shares of all inputs, and an auxiliary of each group."""

    def __init__(self, group: Group) -> None:
        import highspy

        ranges = group.ranges
        self._ranges = len(ranges.values)
        self._compared = len(ranges.compared)
        n = len(group.inputs)
        scaled = ranges.scales[:, None] * ranges.compared
        auxiliary = np.eye(ranges.groups)[ranges.group]
        self._columns = n + ranges.groups
        # The limits are those of proofs: mean - r >= 0 and ratio r - mean >= 0 for compared values.
        matrix = np.block(
            [
                [ranges.values, np.zeros((self._ranges, ranges.groups))],
                [scaled, -auxiliary],
                [-scaled, ranges.true_ratio * auxiliary],
                [np.ones((1, n)), np.zeros((1, ranges.groups))],
            ]
        )
        rows = len(matrix)
        infinite = highspy.kHighsInf
        nothing = np.zeros(2 * self._compared)
        lower = np.concatenate([ranges.true_lower, nothing, [1.0]])
        upper = np.concatenate([ranges.true_upper, nothing + infinite, [1.0]])
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._highs: Any = highs_with(OPTIONS)
        ways = {"simplex_strategy": PRIMAL_SIMPLEX, "presolve": "off"}
        set_options(self._highs, ways)
        empty = np.zeros(rows, np.int32)
        self._highs.addRows(rows, lower, np.minimum(upper, infinite), 0, empty, [], [])
        count = self._columns
        self._highs.addCols(
            count,
            np.zeros(count),
            np.zeros(count),
            np.full(count, infinite),
            count * rows,
            np.arange(count, dtype=np.int32) * rows,
            np.tile(np.arange(rows, dtype=np.int32), count),
            matrix.T.ravel(),
        )
        self._costs = np.zeros(count)

    def solve(self, costs: Array) -> tuple[Array, Array] | None:
        """Multipliers of ranges and of compared values; None where there is no optimum."""
        finite = np.isfinite(costs)
        if not finite.all():
            dear = FORBIDDEN * (1.0 + np.abs(costs[finite]).max(initial=0.0))
            costs = np.where(finite, costs, dear)
        self._costs[: len(costs)] = costs
        places = np.arange(self._columns, dtype=np.int32)
        self._highs.changeColsCost(self._columns, places, self._costs)
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            self._highs.clearSolver()
            return None
        dual = np.asarray(self._highs.getSolution().row_dual, dtype=np.float64)
        above, below = dual[self._ranges : -1].reshape(2, self._compared)
        return dual[: self._ranges], above - below
