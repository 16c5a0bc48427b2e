"""A column that released rows should tell of, and that is not released itself: the task T.

An output of a node depends on T only through the true row x, so with weights of the rows P(x,
prefix) the law of T there is sum_x P(x, prefix) P(t | x) (docs/explanation/rows-theory.md, 'Rows
for a task'). Each node keeps most information about T, by the envelope of `solvers.task`; the sum
over all nodes is I(T; Y | K).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError, MechdesignError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_bound import crossed_rules
from mechdesign.mechanisms.row_budgets import Stratum
from mechdesign.notions import Notion
from mechdesign.tables.records import Records
from solvers import Array, SolverError
from solvers.task import task_envelope

INFORMATION_ERROR = 1e-12
"""Relative error of an information that is summed in doubles from exact masses."""

GAP = 1e-3
"""Share of the largest information within which the bound is worth the search."""

LEAST_SECONDS = 0.05
"""Time below which a stratum is not searched; all of its information is the bound then."""


@dataclass(frozen=True, eq=False)
class RowTask:
    """The task column on the rows of a table.

    Attributes
    ----------
    column : str
    given_row : (|T|, rows) array
        P(t | x) for the true row x of every entry of the table, whatever its sensitive symbol.
    most : float
        I(T; X | K) in nats, which no channel exceeds.
    """

    column: str
    given_row: Array
    most: float


def check_task_columns(
    task: Sequence[str], sensitive: Sequence[str], groups: Sequence[Sequence[str]]
) -> None:
    """Raise InputError if a column of the task is protected, released or given."""
    for name in task:
        if name in sensitive:
            raise InputError(
                f"the task {quoted(name)} is the sensitive column: choose the column that the "
                "release should tell about"
            )
        if any(name in group for group in groups):
            raise InputError(
                f"the task {quoted(name)} is released or given itself, so that nothing is left to "
                "tell of it: leave the task out, or the column"
            )


def row_task(records: Records, counted: Records, given: int) -> RowTask:
    """The task of a design from `counted`, the same groups counted with the task as the secret.

    Raises
    ------
    InputError
        If the task has a single value, the released columns say nothing about it, or the rows of
        the two counts differ.
    """
    column = ",".join(counted.sensitive.columns)
    if len(counted.sensitive) < 2:
        raise InputError(
            f"the task {quoted(column)} has a single value: there is nothing to tell"
        )
    counted = counted.on(counted.sensitive, records.groups)
    by_row: dict[tuple[int, ...], Array] = {}
    rows = [tuple(row) for row in counted.codes.tolist()]
    masses = counted.masses.tolist()
    for row, value, mass in zip(rows, counted.secrets.tolist(), masses, strict=True):
        if row not in by_row:
            by_row[row] = np.zeros(len(counted.sensitive))
        by_row[row][value] += mass
    columns: list[Array] = []
    for row in records.codes.tolist():
        law = by_row.get(tuple(row))
        if law is None:
            raise InputError(
                f"the task {quoted(column)} was counted on other rows than the sensitive column"
            )
        columns.append(law / law.sum())
    task = RowTask(column, np.column_stack(columns), 0.0)
    most = _information(records, task, given)
    if not most > INFORMATION_ERROR:
        raise InputError(
            f"the released columns say nothing about the task {quoted(column)} beyond the given "
            "ones: there is nothing to keep"
        )
    return RowTask(column, task.given_row, most)


def column_entropies(conditional: Array) -> Array:
    """Entropy of every column of conditional probabilities, in nats."""
    positive = np.where(conditional > 0.0, conditional, 1.0)
    return -(positive * np.log(positive)).sum(axis=0)


def kept_of_task(law: Array, masses: Array, rows: Array) -> float:
    """I(T; Y) in nats at a node, from P(t | x), (|T|, n), the masses of x, (n,), and W(y | x), (n,
    m).
    """
    joint = (law * masses) @ rows
    outputs = joint.sum(axis=0)
    occurs = outputs > 0.0
    conditional = joint[:, occurs] / outputs[occurs]
    after = float(outputs[occurs] @ column_entropies(conditional))
    before = float(column_entropies((law @ masses)[:, None])[0])
    return max(0.0, before - after)


def task_utility(
    records: Records,
    given: int,
    strata: Sequence[Stratum],
    notion: Notion,
    promise: str,
    task: RowTask,
    kept: float,
    *,
    end: float,
) -> TaskUtility:
    """What a tree keeps of the task, `kept` in nats, and what no channel can exceed.

    The bound is that of the crossed columns, stratum by stratum, as for information
    (`row_bound`), until `end` (of `time.perf_counter`).
    """
    bound = 0.0
    left = 1.0
    order = np.argsort([-stratum.mass for stratum in strata], kind="stable").tolist()
    for place in order:
        stratum = strata[place]
        seconds = max(end - time.perf_counter(), 0.0)
        seconds *= min(1.0, stratum.mass / max(left, 1e-12))
        left -= stratum.mass
        most = _stratum_information(records, task, stratum)
        proven = most
        if seconds >= LEAST_SECONDS:
            least = _stratum_bound(
                records, given, stratum, notion, promise, task, GAP * task.most, seconds
            )
            proven = min(most, least)
        bound += stratum.mass * proven
    share = max(0.0, kept / task.most - INFORMATION_ERROR)
    upper = min(1.0, bound / task.most + INFORMATION_ERROR)
    return TaskUtility(
        column=task.column, task_kept=share, task_upper_bound=max(share, upper)
    )


def _information(records: Records, task: RowTask, given: int) -> float:
    """I(T; X | K) in nats."""
    _, place = np.unique(records.codes[:, :given], axis=0, return_inverse=True)
    strata = place.ravel()
    total = 0.0
    for stratum in range(int(strata.max()) + 1):
        rows = np.flatnonzero(strata == stratum)
        masses = records.masses[rows]
        total += float(masses.sum()) * _of_rows(task, rows, masses)
    return total


def _stratum_information(records: Records, task: RowTask, stratum: Stratum) -> float:
    return _of_rows(task, stratum.rows, records.masses[stratum.rows])


def _of_rows(task: RowTask, rows: Any, masses: Array) -> float:
    """I(T; X) in nats among rows of these masses, which are normalised."""
    shares = masses / masses.sum()
    law = task.given_row[:, rows]
    before = float(column_entropies((law @ shares)[:, None])[0])
    return max(0.0, before - float(shares @ column_entropies(law)))


def _stratum_bound(
    records: Records,
    given: int,
    stratum: Stratum,
    notion: Notion,
    promise: str,
    task: RowTask,
    gap: float,
    seconds: float,
) -> float:
    """A proven bound of I(T; Y) in the stratum, nats; inf where the search proves nothing."""
    rules = crossed_rules(records, given, stratum, notion, promise)
    if rules is None:
        return math.inf
    # Rows that the promise cannot tell apart may tell of different tasks.
    rules = replace(rules, by_symbol=True)
    # The columns of the crossed table are the distinct rows in the order of their codes.
    codes = records.codes[stratum.rows][:, given:]
    _, first = np.unique(codes, axis=0, return_index=True)
    law = task.given_row[:, stratum.rows[first]]
    p_x = rules.joint.p_x
    try:
        found = task_envelope(
            rules.relaxation,
            rules.relaxation,
            p_x,
            law,
            gap=gap,
            end=time.perf_counter() + seconds,
        )
    except (MechdesignError, SolverError):
        # The bound is an extra: without it the design stands as it was verified.
        return math.inf
    before = float(column_entropies((law @ p_x)[:, None])[0])
    return before - found.bound
