"""A proven bound on what any mechanism could keep of a task under the same promise.

As for information (`row_bound`), every tree is one channel for the crossed columns, stratum by
stratum. In the stratum k the largest I(T; Y) is H(T | k) minus the least mean entropy m_k of the
task after an output, which `solvers.task` bounds from below (docs/explanation/rows-theory.md,
proposition 12). So no channel keeps more, as a share of I(T; X | K), than

    sum over k of P(k) min(I(T; X | k), H(T | k) - m_k) / I(T; X | K).

`task_utility` adds this up, the heaviest strata first; a stratum that is not searched in time has
its own I(T; X | k).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechdesign.core.errors import MechdesignError
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_bound import (
    GAP,
    LEAST_SECONDS,
    RowProblem,
    crossed_rules,
    heaviest_first,
)
from mechdesign.mechanisms.row_budgets import Stratum
from mechdesign.mechanisms.row_entropy import column_entropies
from mechdesign.mechanisms.row_task import INFORMATION_ERROR, RowTask, task_information
from solvers import SolverError
from solvers.task import task_envelope


def task_utility(
    problem: RowProblem,
    strata: Sequence[Stratum],
    task: RowTask,
    kept: float,
    *,
    end: float,
) -> TaskUtility:
    """What a tree keeps of the task, `kept` in nats, and what no channel can exceed, as shares of
    I(T; X | K); the bound is searched until `end` (of `time.perf_counter`).
    """
    masses = problem.records.masses
    bound = 0.0
    for place, seconds in heaviest_first(strata, end):
        stratum = strata[place]
        rows = stratum.rows
        proven = task_information(task.given_row, rows, masses[rows])
        if seconds >= LEAST_SECONDS:
            proven = min(proven, _stratum_bound(problem, stratum, task, seconds))
        bound += stratum.mass * proven
    share = max(0.0, kept / task.most - INFORMATION_ERROR)
    upper = min(1.0, bound / task.most + INFORMATION_ERROR)
    return TaskUtility(
        column=task.column, task_kept=share, task_upper_bound=max(share, upper)
    )


def _stratum_bound(
    problem: RowProblem, stratum: Stratum, task: RowTask, seconds: float
) -> float:
    """A proven bound of I(T; Y) in the stratum, nats; inf where the search proves nothing."""
    rules = crossed_rules(problem, stratum)
    if rules is None:
        return math.inf
    # Rows that the promise cannot tell apart may tell of different tasks.
    rules = replace(rules, by_symbol=True)
    # The columns of the crossed table are the distinct rows in the order of their codes.
    codes = problem.records.codes[stratum.rows][:, problem.given :]
    _, first = np.unique(codes, axis=0, return_index=True)
    law = task.given_row[:, stratum.rows[first]]
    p_x = rules.joint.p_x
    try:
        envelope = task_envelope(
            rules.relaxation,
            rules.relaxation,
            p_x,
            law,
            gap=GAP * task.most,
            end=time.perf_counter() + seconds,
        )
    except (MechdesignError, SolverError):
        # The bound is an extra: without it the design stands as it was verified.
        return math.inf
    before = float(column_entropies((law @ p_x)[:, None])[0])
    return before - envelope.bound
