"""Linear and integer programs that HiGHS solves once; and a HiGHS with options, for others to load.

A `Program` is: minimise costs.x over lower <= x <= upper and rows lower <= sum value * x <= upper,
some x integer. `solve_program` loads it and returns the best x, a bound on the minimum, and the
duals of the rows. For example, minimise 2 x_0 + x_1 over x_0 + x_1 >= 1, 0 <= x <= 1:

    rows = SparseRows()
    rows.add([0, 1], [1.0, 1.0], 1.0, math.inf)
    solve_program(Program(np.array([2.0, 1.0]), np.zeros(2), np.ones(2), rows)).x   # (0, 1)

Callers round the solution and verify it exactly. Only its optimality rests on HiGHS alone, and
their results say so. Programs that change from solve to solve, and so keep their basis, use
`highs_with` and the object that it gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure
from solvers.pace import passing
from solvers.points import Array

SHARP: dict[str, str | int | float] = {
    "solver": "simplex",
    "threads": 1,
    # The sharpest that HiGHS takes: with the default 1e-7 a column that gains less never enters.
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    # The default 1e-9 would drop the rare coordinates of a column.
    "small_matrix_value": 1e-12,
}

INTEGRALITY = 1e-6
"""HiGHS's own tolerance: an integer variable may miss an integer by this much."""


def highs_with(options: Mapping[str, str | int | float]) -> Any:
    """A silent HiGHS with these options, without a program."""
    # Imported where it is needed: most commands solve nothing, and should not wait for it.
    import highspy

    highs = highspy.Highs()
    highs.silent()
    set_options(highs, options)
    return highs


def set_options(highs: Any, options: Mapping[str, str | int | float]) -> None:
    """Set these options of a HiGHS, and leave its others."""
    for option, value in options.items():
        highs.setOptionValue(option, value)


@dataclass
class SparseRows:
    """Sparse rows ``lower <= sum value * variable <= upper``, collected one by one."""

    lower: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])
    # Row i has the entries starts[i] to starts[i + 1] - 1 of the two lists below.
    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])

    def add(
        self,
        columns: Sequence[int],
        values: Sequence[float],
        lower: float,
        upper: float,
    ) -> None:
        """Append ``lower <= sum_k values[k] * x[columns[k]] <= upper``."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.starts.append(len(self.columns))
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True)
class Program:
    """Minimise ``costs @ x`` subject to rows and ``lower <= x <= upper``; `integer` marks
    integers.
    """

    costs: Array
    lower: Array
    upper: Array
    rows: SparseRows
    integer: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Solution:
    """The best point found, and HiGHS's bound on the minimum.

    `optimal` is False where the time was over. `prices` are the duals of the rows, without meaning
    where variables are integer.
    """

    x: Array
    objective: float
    bound: float
    optimal: bool
    prices: Array


def solve_program(
    program: Program, *, time_limit: float = math.inf, start: Array | None = None
) -> Solution:
    """Solve a program, from the point `start` if there is one.

    Raises
    ------
    BackendFailure
        If HiGHS ends without a feasible point.
    """
    import highspy

    n = program.costs.size
    highs = highs_with(
        {
            # One thread makes results repeatable.
            "threads": 1,
            # By default an integer solution counts as optimal at a gap of 0.01 %.
            "mip_rel_gap": 0.0,
            "mip_feasibility_tolerance": INTEGRALITY,
            "time_limit": min(passing(time_limit), highspy.kHighsInf),
        }
    )
    _load(highs, program)
    if start is not None:
        guess: Any = highspy.HighsSolution()
        guess.col_value = list(start)
        highs.setSolution(guess)
    highs.run()
    status = highs.getModelStatus()
    info = highs.getInfo()
    solution = highs.getSolution()
    optimal = status == highspy.HighsModelStatus.kOptimal
    in_time = status != highspy.HighsModelStatus.kTimeLimit
    # HiGHS's number 2 of a primal solution means feasible.
    # Where the time is over a feasible point is an answer, too, with the bound beside it.
    stopped = not in_time and info.primal_solution_status == 2
    x = np.asarray(solution.col_value, dtype=np.float64)
    has_point = (optimal or stopped) and x.size == n
    if not has_point:
        raise BackendFailure(
            f"HiGHS ended with '{highs.modelStatusToString(status)}' and no feasible point; "
            "give it more time, or a smaller problem"
        )
    objective = float(program.costs @ x)
    # A linear program that ends has no gap.
    bound = objective
    if program.integer is not None:
        bound = float(info.mip_dual_bound)
    prices = np.asarray(solution.row_dual, dtype=np.float64)
    return Solution(x, objective, bound, optimal, prices)


def _load(highs: Any, program: Program) -> None:
    """Load a program into HiGHS: columns, rows, and integers."""
    import highspy

    n = program.costs.size
    rows = program.rows
    no_entries = np.zeros(n, np.int32)
    highs.addCols(n, program.costs, program.lower, program.upper, 0, no_entries, [], [])
    highs.addRows(
        len(rows.lower),
        rows.lower,
        rows.upper,
        len(rows.values),
        rows.starts[:-1],
        rows.columns,
        rows.values,
    )
    if program.integer is not None:
        integers = np.flatnonzero(program.integer).astype(np.int32)
        kinds = [highspy.HighsVarType.kInteger] * len(integers)
        highs.changeColsIntegrality(len(integers), integers, kinds)
