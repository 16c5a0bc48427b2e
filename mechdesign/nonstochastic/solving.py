"""Linear and mixed-integer programs, with the errors of this package."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from solvers.errors import BackendFailure
from solvers.programs.highs import Program, Solution, solve_program


def solution_of(
    program: Program, *, time_limit: float = math.inf, start: NDArray[np.float64] | None = None
) -> Solution:
    """As `solvers.programs.highs.solve_program`."""
    try:
        return solve_program(program, time_limit=time_limit, start=start)
    except BackendFailure as error:
        raise SolverFailure(str(error)) from None
