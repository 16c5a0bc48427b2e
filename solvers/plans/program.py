"""The linear program of a group of inputs and outputs, which grows by pairs and keeps its basis.

Inputs x have masses m_x, outputs y targets q_y, and only the pairs (x, y) that were added may be
used. With targets the rows are

    sum_y F(x, y) = m_x,   sum_x F(x, y) = q_y,   lower_r q_y <= sum_x t_r(x) F(x, y) <= upper_r q_y

Without targets q_y is the sum of column y itself, so that a range becomes two rows of differences,
sum_x (t_r(x) - lower_r) F(x, y) >= 0 and the like. Values that are compared have an auxiliary
variable r_y with r_y <= scale_m sum_x t_m(x) F(x, y) <= ratio r_y. A penalty has a variable p_y >=
sum_x f_j(x) F(x, y), for all forms f_j of a group, which costs its price.

*Scale.* The variable of a pair is F / min(m_x, q_y), the rows of x are divided by m_x and those of
y by q_y: entries are at most about the values t, and absolute tolerances of the solver are relative
to each mass. Costs are in units of the mean mass.

*Slacks.* An elastic program buys what its pairs do not provide yet: mass of x that goes nowhere,
mass of y that comes from nowhere (and has the mean values 1), and deviations from the ranges.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvers.errors import BackendFailure, NoPlan, OutOfTime
from solvers.pace import NEVER, Clock
from solvers.plans.binding import start_at_binding_rows
from solvers.plans.problem import Indices
from solvers.plans.ranges import Ranges
from solvers.points import Array
from solvers.programs import highs_with, is_over, run_highs, set_options, stop_at

OPTIONS: dict[str, str | int | float] = {
    "solver": "simplex",
    "threads": 1,
    # Ten times sharper than needed: a limit missed by 1e-9 is within the margin of the limits.
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    # The program is scaled already.
    "simplex_scale_strategy": 0,
}

PRIMAL_SIMPLEX = 4
"""HiGHS's number of its primal simplex method: a basis stays feasible when columns are added."""

DUAL_SIMPLEX = 1
"""HiGHS's number of its dual simplex method."""

OTHER_WAYS: tuple[dict[str, str | int | float], ...] = (
    {"simplex_strategy": DUAL_SIMPLEX, "simplex_scale_strategy": 2, "presolve": "on"},
    {"solver": "ipm", "presolve": "on", "run_crossover": "on"},
    # Blunt, but still within the margin of the limits.
    {
        "simplex_strategy": DUAL_SIMPLEX,
        "presolve": "on",
        "primal_feasibility_tolerance": 1e-8,
        "dual_feasibility_tolerance": 1e-7,
    },
)
"""Options tried in turn, from nothing, where a solve fails."""

MANY_PAIRS = 9000
"""From so many pairs, times the limits of an output, the interior point method is faster than the
simplex method, although it starts anew every time."""

FEW_PAIRS_AND_LIMITS = 50_000
"""Up to so many pairs, times the limits of an output, a program of all pairs of a block is solved
by the dual simplex method at once; beyond it the rows that bind are looked for first. Either is 2
to 7 times as fast as the interior point method, with 700 to 1,400 pairs and 15 to 300 limits."""

MANY_LIMITS, MOSTLY_OUTSIDE = 8, 0.7
"""With so many limits, of whose values such a share is outside, most rows bind: then the simplex
method takes 1.3 to 3 times as long as the interior point method. With fewer limits, or a share of
up to .64, it takes as long at most, and down to a fifteenth (`tests/benchmarks`)."""

ENTRY_TIME = 5e-9
"""Seconds of the interior point method for each pair and row (measured: 3.0e-9 to 7.7e-9, with 1
and 60 limits). HiGHS looks at its limit of time rarely: it has overrun it by 8 s in one
factorisation. So what does not fit is not begun."""

VERTEX = 0.5
"""The vertex near an interior solution takes so many times as long again (measured: 0.2 to 0.8)."""

SHORTEST = 0.05
"""Seconds that every solve may take."""

TINY_FLOW = 1e-9
"""Flows below this share of the smaller of both masses are the solver's tolerance, and dropped."""


@dataclass(frozen=True, eq=False)
class Group:
    """Inputs and outputs of one program.

    Attributes
    ----------
    inputs, outputs : (i,), (o,) int arrays
        Symbols.
    masses : (i,) array
        Mass of each input.
    targets : (o,) array
        Mass of each output; where `is_free` only a reference of its size, for the scale.
    is_free : bool
        Whether column sums are free.
    ranges : Ranges
        Limits on the values of the inputs.
    """

    inputs: Indices
    outputs: Indices
    masses: Array
    targets: Array
    is_free: bool
    ranges: Ranges


def places_of(among: Indices, symbols: Indices) -> Indices:
    """Places of symbols in an array that contains them, in whatever order."""
    order = np.argsort(among, kind="stable")
    return order[np.searchsorted(among[order], symbols)]


@dataclass(frozen=True, eq=False)
class Prices:
    """Multipliers of the rows of a program, in units of cost per mass.

    Attributes
    ----------
    inputs : (i,) array
        u_x of the sums of inputs.
    outputs : (o,) array
        v_y of the sums of outputs; zeros where they are free.
    ranges : (r, o) array
        Multiplier of each mean of an output: positive at its lower end, negative at its upper one.
    compared : (m, o) array
        Positive where r_y <= the mean binds, negative where the mean <= ratio r_y binds.
    forms : (m, o) array
        Not negative: of the forms of a penalty, whose sum in each group is its price at most.
    """

    inputs: Array
    outputs: Array
    ranges: Array
    compared: Array
    forms: Array = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, eq=False)
class Solved:
    """Flows of the pairs in the order in which they were added, and what belongs to them.

    `slack` is the mass that an elastic program bought; it is part of `cost`. `is_vertex` is False
    in the middle of the optimal plans.
    """

    flows: Array
    cost: float
    slack: float
    prices: Prices
    is_vertex: bool


def foreseen(
    pairs: float, inputs: float, outputs: float, ranges: Ranges, *, is_free: bool
) -> float:
    """Seconds of the interior point method, before a program is made."""
    sides = 2 if is_free else 1
    of_output = 1 + sides * len(ranges.values) + 2 * len(ranges.compared)
    rows = inputs + outputs * (of_output + len(ranges.penalty.forms))
    return ENTRY_TIME * pairs * rows


class PlanProgram:
    """A program over the pairs so far; see the module's text."""

    def __init__(self, group: Group, *, penalty: float | None = None) -> None:
        import highspy

        self._group = group
        self._inf = highspy.kHighsInf
        self._statuses = highspy.HighsModelStatus
        self._highs = highs_with(OPTIONS)
        self._unit = len(group.inputs) / float(group.masses.sum())
        self._pairs = 0
        self._first_pair = 0
        self._scales: list[Array] = []
        self._least: list[Array] = []
        self._has_basis = False
        self._entry_time = ENTRY_TIME
        self._add_rows()
        self._extra = 0
        if len(group.ranges.compared):
            self._add_auxiliaries()
        if len(group.ranges.penalty.forms):
            self._add_penalty()
        self._slacks = slice(0, 0)
        self._slack_sizes = np.zeros(0)
        if penalty is not None:
            self._add_slacks(penalty)

    def _add_rows(self) -> None:
        """Add all rows, empty: inputs, outputs, ranges, compared."""
        group, inf = self._group, self._inf
        n, o = len(group.inputs), len(group.outputs)
        ranges = group.ranges
        lower = [np.ones(n)]
        upper = [np.ones(n)]
        # Each range has one row, or one a side: (values of the row, its first row).
        self._limits: list[tuple[Array, int]] = []
        # Which range a row belongs to.
        self._range_of: list[int] = []
        self._outputs_at = n
        at = n
        if not group.is_free:
            lower.append(np.ones(o))
            upper.append(np.ones(o))
            at += o
        for r in range(len(ranges.values)):
            least, most = float(ranges.lower[r]), float(ranges.upper[r])
            if not group.is_free:
                sides = [(ranges.values[r], least, most)]
            else:
                sides: list[tuple[Array, float, float]] = []
                if least > 0.0:
                    sides.append((ranges.values[r] - least, 0.0, math.inf))
                if math.isfinite(most):
                    sides.append((ranges.values[r] - most, -math.inf, 0.0))
            for values, low, high in sides:
                self._limits.append((values, at))
                self._range_of.append(r)
                lower.append(np.full(o, low if low > 0.0 or group.is_free else 0.0))
                upper.append(np.full(o, min(high, inf)))
                at += o
        self._compared_at = at
        rows = 2 * len(ranges.compared) * o
        self._forms_at = at + rows
        rows += len(ranges.penalty.forms) * o
        lower.append(np.zeros(rows))
        upper.append(np.full(rows, inf))
        low, high = np.concatenate(lower), np.concatenate(upper)
        low = np.where(np.isneginf(low), -inf, low)
        size = len(low)
        self._rows = size
        self._highs.addRows(size, low, high, 0, np.zeros(size, np.int32), [], [])

    def _add_columns(
        self,
        costs: Array,
        lower: Array,
        rows: list[Indices],
        values: list[Array],
    ) -> None:
        """Add columns with one entry for each of the arrays in `rows` and `values`."""
        count = len(costs)
        places = np.stack(rows, axis=1)
        entries = np.stack(values, axis=1)
        used = entries != 0.0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        self._highs.addCols(
            count,
            costs,
            lower,
            np.full(count, self._inf),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            places[used].astype(np.int32),
            entries[used],
        )
        self._extra += count

    def _add_auxiliaries(self) -> None:
        """One variable r_y for every group of values that are compared."""
        ranges = self._group.ranges
        o = len(self._group.outputs)
        y = np.arange(o)
        for g in range(ranges.groups):
            rows: list[Indices] = []
            values: list[Array] = []
            for m in np.flatnonzero(ranges.group == g):
                above, below = self._compared_rows(int(m), y)
                rows += [above, below]
                values += [np.full(o, -1.0), np.full(o, ranges.ratio)]
            self._add_columns(np.zeros(o), np.zeros(o), rows, values)
        self._first_pair = self._extra

    def _add_penalty(self) -> None:
        """One variable p_y for every group of forms."""
        group = self._group
        penalty = group.ranges.penalty
        o = len(group.outputs)
        y = np.arange(o)
        costs = penalty.price * self._unit * group.targets
        for number in np.unique(penalty.groups):
            rows = [
                self._forms_at + int(j) * o + y
                for j in np.flatnonzero(penalty.groups == number)
            ]
            self._add_columns(costs, np.zeros(o), rows, [np.ones(o)] * len(rows))
        self._first_pair = self._extra

    def _compared_rows(self, m: int, y: Indices) -> tuple[Indices, Indices]:
        """Rows mean - r >= 0 and ratio r - mean >= 0 of the compared values m."""
        o = len(self._group.outputs)
        above = self._compared_at + 2 * m * o + y
        return above, above + o

    def _add_slacks(self, penalty: float) -> None:
        """Slacks of every row, at this cost a unit of mass."""
        group, unit = self._group, self._unit
        n, o = len(group.inputs), len(group.outputs)
        first = self._extra
        sizes: list[Array] = []

        def add(size: Array, rows: list[Indices], values: list[Array]) -> None:
            cost = penalty * unit * size
            self._add_columns(cost, np.zeros(len(size)), rows, values)
            sizes.append(size)

        add(group.masses, [np.arange(n)], [np.ones(n)])
        y = np.arange(o)
        if not group.is_free:
            rows = [self._outputs_at + y]
            values = [np.ones(o)]
            for _, at in self._limits:
                rows.append(at + y)
                values.append(np.ones(o))
            for m in range(len(group.ranges.compared)):
                above, below = self._compared_rows(m, y)
                scale = np.full(o, group.ranges.scales[m])
                rows += [above, below]
                values += [scale, -scale]
            add(group.targets, rows, values)
        for _, at in self._limits:
            for sign in (1.0, -1.0):
                add(group.targets, [at + y], [np.full(o, sign)])
        for m in range(len(group.ranges.compared)):
            for rows_of in self._compared_rows(m, y):
                add(group.targets, [rows_of], [np.ones(o)])
        self._slacks = slice(first, self._extra)
        self._slack_sizes = np.concatenate(sizes)
        self._first_pair = self._extra

    def set_penalty(self, penalty: float) -> None:
        """Change the cost of the slacks, a unit of mass."""
        places = np.arange(self._slacks.start, self._slacks.stop, dtype=np.int32)
        costs = penalty * self._unit * self._slack_sizes
        self._highs.changeColsCost(len(places), places, costs)

    def add(
        self, rows: Indices, columns: Indices, costs: Array, least: Array | None = None
    ) -> None:
        """Add pairs by the places of their input and output in the group.

        `least` are flows that the pairs carry at least.
        """
        if not len(rows):
            return
        group = self._group
        ranges = group.ranges
        targets = group.targets[columns]
        masses = group.masses[rows]
        scale = np.minimum(masses, targets)
        share = scale / targets
        at: list[Indices] = [rows]
        values = [scale / masses]
        if not group.is_free:
            at.append(self._outputs_at + columns)
            values.append(share)
        for limited, first in self._limits:
            at.append(first + columns)
            values.append(share * limited[rows])
        for m in range(len(ranges.compared)):
            mean = share * ranges.scales[m] * ranges.compared[m, rows]
            above, below = self._compared_rows(m, columns)
            at += [above, below]
            values += [mean, -mean]
        for j, form in enumerate(ranges.penalty.forms):
            at.append(self._forms_at + j * len(group.outputs) + columns)
            values.append(-share * form[rows])
        lower = np.zeros(len(rows)) if least is None else least / scale
        self._add_columns(costs * scale * self._unit, lower, at, values)
        self._scales.append(scale)
        self._least.append(lower)
        self._pairs += len(rows)

    @property
    def _pairs_and_limits(self) -> int:
        """Pairs, times the limits of an output."""
        ranges = self._group.ranges
        rows = len(ranges.values) + 2 * len(ranges.compared) + len(ranges.penalty.forms)
        return self._pairs * max(rows, 1)

    @property
    def is_large(self) -> bool:
        """Whether the interior point method is faster than a simplex method for a program that
        grows.
        """
        return self._pairs_and_limits > MANY_PAIRS

    @property
    def _binds_mostly(self) -> bool:
        """Whether most limits bind at most outputs, as far as the values tell."""
        ranges = self._group.ranges
        many = len(ranges.limited) >= MANY_LIMITS
        return many and ranges.share_outside > MOSTLY_OUTSIDE

    @property
    def foreseen(self) -> float:
        """Seconds that the interior point method takes, by its last solve or `ENTRY_TIME`."""
        return self._entry_time * self._pairs * self._rows

    def solve_at_once(self, clock: Clock = NEVER) -> Solved:
        """Solve a program that has all of its pairs and does not grow: by the dual simplex method,
        unless most rows bind.

        Raises
        ------
        NoPlan, OutOfTime, BackendFailure
            As `solve`.
        """
        if self._binds_mostly:
            return self.solve(clock)
        if self._pairs_and_limits > FEW_PAIRS_AND_LIMITS:
            start_at_binding_rows(self._highs, OPTIONS, DUAL_SIMPLEX, clock)
        way = {"simplex_strategy": DUAL_SIMPLEX, "presolve": "off"}
        set_options(self._highs, OPTIONS | way)
        self._limit_time(clock)
        run_highs(self._highs)
        if self._highs.getModelStatus() == self._statuses.kOptimal:
            return self._solved(is_vertex=True)
        self._highs.clearSolver()
        return self.solve(clock)

    def _limit_time(self, clock: Clock) -> None:
        """End the next solve with the clock."""
        if math.isfinite(clock()):
            allowed = self._highs.getRunTime() + max(clock.passing(), SHORTEST)
            set_options(self._highs, {"time_limit": allowed})
            stop_at(self._highs, time.process_time() + max(clock(), SHORTEST))

    def solve(self, clock: Clock = NEVER, *, to_vertex: bool = True) -> Solved:
        """Solve: few pairs by the simplex method, from the last basis if there is one; many by the
        interior point method, which ends in the middle of the optimal plans unless `to_vertex`.

        Raises
        ------
        NoPlan
            If the rows cannot be met.
        OutOfTime
            If the time is over, or a large program does not fit into what is left.
        BackendFailure
            If HiGHS gives no usable answer.
        """
        with_vertex = 1.0 if to_vertex else 1.0 + VERTEX
        if self.is_large and self.foreseen * with_vertex > clock():
            raise OutOfTime("a linear program does not fit into the time that is left")
        self._limit_time(clock)
        if self.is_large:
            self._highs.clearSolver()
            crossover = "on" if to_vertex else "off"
            ways = [{"solver": "ipm", "presolve": "on", "run_crossover": crossover}]
        elif self._has_basis:
            ways = [{"simplex_strategy": PRIMAL_SIMPLEX, "presolve": "off"}]
        else:
            ways = [{"simplex_strategy": DUAL_SIMPLEX, "presolve": "off"}]
        infeasible = False
        status = None
        for way in [*ways, *OTHER_WAYS]:
            set_options(self._highs, OPTIONS | way)
            before = time.process_time()
            run_highs(self._highs)
            seconds = time.process_time() - before
            status = self._highs.getModelStatus()
            if status == self._statuses.kOptimal:
                self._has_basis = not self.is_large
                if self.is_large:
                    self._entry_time = seconds / (self._pairs * self._rows)
                return self._solved(to_vertex or not self.is_large)
            if is_over(self._highs):
                self._has_basis = False
                raise OutOfTime("the time was over before a linear program was solved")
            infeasible = infeasible or status == self._statuses.kInfeasible
            self._highs.clearSolver()
        if infeasible:
            raise NoPlan("no plan keeps the limits on the pairs that are allowed")
        name = self._highs.modelStatusToString(status)
        raise BackendFailure(f"HiGHS ended a program of a plan with '{name}'")

    def _solved(self, is_vertex: bool) -> Solved:
        """Unscale the solution and its prices."""
        group, ranges = self._group, self._group.ranges
        solution: Any = self._highs.getSolution()
        x = np.asarray(solution.col_value, dtype=np.float64)
        dual = np.asarray(solution.row_dual, dtype=np.float64)
        scale = np.concatenate(self._scales) if self._scales else np.zeros(0)
        shares = x[self._first_pair :]
        least = np.concatenate(self._least) if self._least else np.zeros(0)
        flows = np.maximum(np.where(shares > TINY_FLOW, shares, 0.0), least) * scale
        n, o = len(group.inputs), len(group.outputs)
        per_output = self._unit * group.targets
        inputs = dual[:n] / (self._unit * group.masses)
        outputs = np.zeros(o)
        if not group.is_free:
            outputs = dual[self._outputs_at : self._outputs_at + o] / per_output
        limited = np.zeros((len(ranges.values), o))
        for r, (_, at) in zip(self._range_of, self._limits, strict=True):
            limited[r] += dual[at : at + o] / per_output
        m = len(ranges.compared)
        ends = dual[self._compared_at : self._forms_at]
        both = ends.reshape(m, 2, o) / per_output
        forms = dual[self._forms_at :].reshape(-1, o) / per_output
        slack = float(x[self._slacks] @ self._slack_sizes)
        cost = float(self._highs.getObjectiveValue()) / self._unit
        prices = Prices(inputs, outputs, limited, both[:, 0] - both[:, 1], forms)
        return Solved(flows, cost, slack, prices, is_vertex)
