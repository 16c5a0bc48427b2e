"""A column that released rows should tell of, and that is not released itself: the task T.

An output of a node depends on T only through the true row x, so with weights of the rows P(x,
prefix) the law of T there is sum_x P(x, prefix) P(t | x) (docs/explanation/rows-theory.md, 'Rows
for a task'). For example, two rows of weight 0.3 and 0.1 with P(t | x) = 0.9 and 0.5 lead to the
law (0.3 * 0.9 + 0.1 * 0.5) / 0.4 = 0.8. Each node keeps most information about T, by the envelope
of `solvers.task`; the sum over all nodes is I(T; Y | K).

1. `row_task` is called once for a design: it reads P(t | x) off a second count of the table's rows,
   with T in the place of the sensitive column.
2. `row_growth` weighs these laws at every node and adds up what `kept_of_task` says.
3. `row_task_bound` bounds what any channel could keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.row_budgets import strata_rows
from mechdesign.mechanisms.row_entropy import column_entropies
from mechdesign.tables.records import Records
from solvers import Array

INFORMATION_ERROR = 1e-12
"""Relative error of an information that is summed in doubles from exact masses."""


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
    law_of_row = _laws(counted.on(counted.sensitive, records.groups))
    columns: list[Array] = []
    for row in records.codes.tolist():
        law = law_of_row.get(tuple(row))
        if law is None:
            raise InputError(
                f"the task {quoted(column)} was counted on other rows than the sensitive column"
            )
        columns.append(law)
    given_row = np.column_stack(columns)
    most = 0.0
    for rows in strata_rows(records, given):
        masses = records.masses[rows]
        most += float(masses.sum()) * task_information(given_row, rows, masses)
    if not most > INFORMATION_ERROR:
        raise InputError(
            f"the released columns say nothing about the task {quoted(column)} beyond the given "
            "ones: there is nothing to keep"
        )
    return RowTask(column, given_row, most)


def _laws(counted: Records) -> dict[tuple[int, ...], Array]:
    """P(t | x) of every distinct row x, which occurs once for each value of the task."""
    joint: dict[tuple[int, ...], Array] = {}
    rows = [tuple(row) for row in counted.codes.tolist()]
    values = counted.secrets.tolist()
    masses = counted.masses.tolist()
    for row, value, mass in zip(rows, values, masses, strict=True):
        if row not in joint:
            joint[row] = np.zeros(len(counted.sensitive))
        joint[row][value] += mass
    return {row: law / law.sum() for row, law in joint.items()}


def task_information(given_row: Array, rows: Integers, masses: Array) -> float:
    """I(T; X) = H(T) - H(T | X) in nats among rows of these masses, which are normalised."""
    shares = masses / masses.sum()
    law = given_row[:, rows]
    before = float(column_entropies((law @ shares)[:, None])[0])
    return max(0.0, before - float(shares @ column_entropies(law)))


def kept_of_task(law: Array, masses: Array, rows: Array) -> float:
    """I(T; Y) = H(T) - H(T | Y) in nats at a node.

    `law` is P(t | x), (|T|, n), `masses` are those of x, (n,), and `rows` is W(y | x), (n, m).
    """
    # P(t, y) = sum_x P(t | x) p(x) W(y | x).
    joint = (law * masses) @ rows
    outputs = joint.sum(axis=0)
    occurs = outputs > 0.0
    conditional = joint[:, occurs] / outputs[occurs]
    after = float(outputs[occurs] @ column_entropies(conditional))
    before = float(column_entropies((law @ masses)[:, None])[0])
    return max(0.0, before - after)
