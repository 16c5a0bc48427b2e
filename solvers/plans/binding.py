"""The rows of a linear program that bind, found in a smaller program.

A program over all pairs of a block has a row for every limit of every output. With 300 limits and
37 outputs these are 11,100 rows, of which some 700 bind at the optimum. The simplex method takes as
long for the others as for these. So `start_at_binding_rows`

1. solves the program with its equations alone,
2. adds the rows that the solution breaks most, and solves it again from the last basis,
3. gives the whole program the basis of the last solution, in which all other rows are slack.

What follows is an ordinary solve of the whole program, which begins at its optimum and proves it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from solvers.errors import OutOfTime
from solvers.pace import NEVER, Clock
from solvers.plans.problem import Indices
from solvers.points import Array
from solvers.programs import highs_with, is_over, run_highs, set_options, stop_at

TOLERANCE = 1e-9
"""A row that is missed by more is added: the feasibility tolerance of plans."""

ADDED = 2
"""Rows that are added at a time, for each equation: those that are missed most."""

NOT_IN_TIME = "the time was over before a linear program was solved"

MOST_ROUNDS = 60
"""Rounds of rows; 5 to 20 are usual."""


def start_at_binding_rows(
    highs: Any,
    options: dict[str, str | int | float],
    dual_simplex: int,
    clock: Clock = NEVER,
) -> bool:
    """Give a program the basis of its optimum, and say whether that was found.

    Parameters
    ----------
    highs : highspy.Highs
        The whole program.
    options : dict
        Options of HiGHS for the smaller one.
    dual_simplex : int
        HiGHS's number of its dual simplex method.
    clock : Clock

    Raises
    ------
    OutOfTime
        If the time is over before a round ends.
    """
    # Imported here because it loads slowly, and few designs are plans.
    import highspy
    from scipy.sparse import csc_array

    program: Any = highs.getLp()
    size = (program.num_row_, program.num_col_)
    matrix = program.a_matrix_
    parts = (np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_))
    rows = csc_array(parts, shape=size).tocsr()
    lower = np.array(program.row_lower_)
    upper = np.array(program.row_upper_)

    smaller: Any = highs_with(options)
    set_options(smaller, {"simplex_strategy": dual_simplex, "presolve": "off"})
    columns = size[1]
    costs = np.array(program.col_cost_)
    smaller.addVars(columns, np.array(program.col_lower_), np.array(program.col_upper_))
    smaller.changeColsCost(columns, np.arange(columns, dtype=np.int32), costs)

    def add(places: Indices) -> None:
        part = rows[places]
        smaller.addRows(
            len(places),
            lower[places],
            upper[places],
            part.nnz,
            part.indptr[:-1].astype(np.int32),
            part.indices.astype(np.int32),
            part.data,
        )

    added = np.flatnonzero(lower == upper)
    most = ADDED * len(added)
    add(added)
    is_added = np.zeros(size[0], np.bool_)
    is_added[added] = True
    for _ in range(MOST_ROUNDS):
        if clock() <= 0.0:
            raise OutOfTime(NOT_IN_TIME)
        stop_at(smaller, time.process_time() + clock())
        run_highs(smaller)
        if is_over(smaller):
            raise OutOfTime(NOT_IN_TIME)
        if smaller.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        solution = np.array(smaller.getSolution().col_value)
        missed = _missed(rows @ solution, lower, upper)
        missed[is_added] = 0.0
        broken = np.flatnonzero(missed > TOLERANCE)
        if not len(broken):
            break
        broken = broken[np.argsort(-missed[broken], kind="stable")[:most]]
        is_added[broken] = True
        add(broken)
        added = np.concatenate([added, broken])
    else:
        return False

    found: Any = smaller.getBasis()
    statuses = [highspy.HighsBasisStatus.kBasic] * size[0]
    for place, status in zip(added.tolist(), found.row_status, strict=True):
        statuses[place] = status
    basis = highspy.HighsBasis()
    basis.valid = True
    basis.col_status = found.col_status
    basis.row_status = statuses
    highs.setBasis(basis)
    return True


def _missed(values: Array, lower: Array, upper: Array) -> Array:
    """By how much values of rows are outside their limits."""
    return np.maximum(np.maximum(lower - values, values - upper), 0.0)
