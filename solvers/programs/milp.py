"""Linear and mixed-integer programs given at once, solved by HiGHS from nothing.

The adapter only translates. Whoever calls it rounds the answer and counts again exactly; what rests
on HiGHS alone is that nothing better exists, and results say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure

INTEGRALITY = 1e-6
"""HiGHS's own tolerance: an integer variable may miss an integer by this much."""

Floats = NDArray[np.float64]


@dataclass
class Rows:
    """Sparse rows ``lower <= sum value * variable <= upper``, collected one by one."""

    lower: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])
    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])

    def add(self, columns: Sequence[int], values: Sequence[float], lower: float, upper: float) -> None:
        """Append one row."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.starts.append(len(self.columns))
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True)
class Program:
    """Minimise ``costs @ x`` subject to rows and ``lower <= x <= upper``; `integer` marks integers."""

    costs: Floats
    lower: Floats
    upper: Floats
    rows: Rows
    integer: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Solution:
    """The best point found, and a bound that HiGHS proves on the minimum.

    `optimal` is False after a time limit; `duals` are those of the rows, for a linear program.
    """

    x: Floats
    objective: float
    bound: float
    optimal: bool
    duals: Floats

    @property
    def gap(self) -> float:
        """objective - bound, never negative."""
        return max(0.0, self.objective - self.bound)


def solve(program: Program, *, time_limit: float = math.inf, start: Floats | None = None) -> Solution:
    """Solve a program."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    # Two cores are shared with other work, and one thread makes results repeatable.
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_feasibility_tolerance", INTEGRALITY)
    if math.isfinite(time_limit):
        highs.setOptionValue("time_limit", float(time_limit))
    highs.passModel(_model(highspy, program))
    if start is not None:
        guess: Any = highspy.HighsSolution()
        guess.col_value = list(start)
        highs.setSolution(guess)
    highs.run()
    status, info, found = highs.getModelStatus(), highs.getInfo(), highs.getSolution()
    optimal = status == highspy.HighsModelStatus.kOptimal
    x = np.asarray(found.col_value, dtype=np.float64)
    stopped = status == highspy.HighsModelStatus.kTimeLimit and info.primal_solution_status == 2
    if not (optimal or stopped) or x.size != program.costs.size:
        raise BackendFailure(
            f"HiGHS ended with '{highs.modelStatusToString(status)}' and no feasible point; "
            "give it more time, or a smaller problem"
        )
    objective = float(program.costs @ x)
    bound = float(info.mip_dual_bound) if program.integer is not None else objective
    return Solution(x, objective, bound, optimal, np.asarray(found.row_dual, dtype=np.float64))


def _model(highspy: Any, program: Program) -> Any:
    """The program as HiGHS takes it."""
    lp = highspy.HighsLp()
    lp.num_col_ = program.costs.size
    lp.num_row_ = len(program.rows.lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.costs, program.lower, program.upper
    lp.row_lower_ = np.asarray(program.rows.lower, dtype=np.float64)
    lp.row_upper_ = np.asarray(program.rows.upper, dtype=np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.asarray(program.rows.starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.asarray(program.rows.columns, dtype=np.int32)
    lp.a_matrix_.value_ = np.asarray(program.rows.values, dtype=np.float64)
    if program.integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(flag)] for flag in program.integer]
    return lp
