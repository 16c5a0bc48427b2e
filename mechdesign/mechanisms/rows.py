"""`design_rows`, the entrance to all releases of rows: it checks the options, counts the distinct
rows of the table, and hands both to one of three designers.

- With a confidence level, `box_design` releases boxes of rows, and the promise holds for the
  population.
- With a share of the information to keep, `row_keeping` looks for the smallest budget.
- Otherwise `row_search` grows a tree of channels, one level of columns after the other. The promise
  is about the table.

The designers know columns by their place alone: the groups of the counted `Records` are the given
columns first, then the levels. For example, ``given="sex"`` and ``release=[("education",
"occupation"), "age"]`` make the groups (sex), (education, occupation), (age), of which the first
one is given.

docs/explanation/rows-theory.md defines the promises and proves those of trees, and
docs/explanation/population.md, 'Rows', those of boxes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from mechdesign.channel.row_record import TOTAL
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.core.progress import Steps
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.box_design import design_boxes
from mechdesign.mechanisms.box_request import BoxRequest
from mechdesign.mechanisms.box_result import BoxDesign
from mechdesign.mechanisms.row_budgets import check_promise, limits_of
from mechdesign.mechanisms.row_keeping import keeping_rows
from mechdesign.mechanisms.row_node import INFORMATION, OBJECTIVES, TRUTH
from mechdesign.mechanisms.row_request import GIVEN, TIME_LIMIT, RowRequest
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.mechanisms.row_search import design_records
from mechdesign.mechanisms.row_task import RowTask, check_task_columns, row_task
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Groups, Records, checked_groups
from mechdesign.tables.tally import Missing

TASK = "task"
"""The objective of a release that tells of another column. Its outputs are free, as those of the
objective information; the request of the search has the task beside it.
"""


def design_rows(
    table: Any,
    *,
    sensitive: str | Sequence[str],
    release: Groups,
    notion: Notion,
    given: str | Sequence[str] = (),
    promise: str = TOTAL,
    objective: str = TRUTH,
    order: str = GIVEN,
    least_mass: float | None = None,
    bins: Any = None,
    weight: str | None = None,
    missing: Missing = "refuse",
    time_limit: float | None = None,
    allow_identifier: bool = False,
    keep: object = None,
    confidence: float | None = None,
    cells: int | None = None,
    rare: int | None = None,
    fill: bool = False,
    slice_seed: int | None = None,
    task: Any = None,
    progress: Steps | None = None,
) -> RowDesign | BoxDesign:
    """Compute a channel that releases several columns of a record together, proven private in exact
    arithmetic.

    Parameters
    ----------
    table : frame or Joint
        A pandas, polars or pyarrow table (or a lazy one), or a joint table whose useful columns are
        those of `given` and `release`, in any order.
    sensitive : str or sequence of str
        The protected column; several are crossed.
    release : sequence of str or of tuples of str
        The levels in their order; a tuple crosses its columns in one level.
    notion : Notion
        A notion on single lifts: ALIP, LIP, LDP, MaxLift or MinLift, also with budgets of single
        symbols.
    given : str or sequence of str
        Columns that are released as they are.
    promise : {"total", "relative"}
        Whether lifts are measured against P(s) or, with given columns, against P(s|k).
    objective : {"truth", "information", "task"}
        Own symbols and most cells unchanged; or free outputs and most information, about the rows
        or about a task.
    order : {"given", "best"}
        Whether other orders of up to five levels are tried.
    least_mass : float, optional
        Prefixes of less mass release the rest as a constant; by default 0 up to three levels, then
        2e-5.
    bins : mapping of column to bins, optional
        As for `Joint.binned`.
    weight, missing : as for `Joint.from_table`
    time_limit : float, optional
        Seconds, 30 by default. What is not grown by then is released as a constant.
    allow_identifier : bool
        Allow a level with nearly as many symbols as the table has records.
    keep : number, optional
        Look for the smallest budget of three digits whose channel keeps this share of the
        information, within the time limit. The notion says its kind, and by the ratio of its two
        sides how the budget is split.
    confidence : float, optional
        Level at which the promise holds for the population (`mechanisms.box_design`): rows are
        released as boxes of rows, learned on a slice of the records. The result is a `BoxDesign`,
        its promise relative to the given columns.
    cells : int, optional
        With confidence: the number of boxes (of each stratum); by default the slice chooses.
    rare : int, optional
        With confidence: sensitive values with fewer records than this (in a stratum) are promised
        together, as one value.
    fill : bool
        With confidence: release symbols drawn inside the released box, in its place.
    slice_seed : int, optional
        With confidence: repeats the draw of the slice. It must be chosen without looking at the
        records; by default it is new.
    task : str or Joint, optional
        With the objective task: the column that the released rows should tell of, which is not
        released itself; or, where `table` is a joint table, that of the task column and the same
        useful columns.
    progress : callable, optional
        Called with each `Step`.

    Raises
    ------
    InputError
        If a column is named twice or is not there, the notion bounds averages, or the table is too
        large.
    NotPrivate
        If the given columns alone break a total promise.
    SolverFailure
        If no tree passed the exact audit.
    """
    started = time.perf_counter()
    columns = _columns(sensitive, given, release)
    seconds = TIME_LIMIT
    if time_limit is not None:
        seconds = number("time_limit", time_limit, "of seconds")
    task_columns = _task_columns(table, task, objective, confidence, keep)
    check_task_columns(task_columns, columns.sensitive, columns.groups)

    def counted(source: Any, secret: tuple[str, ...]) -> Records:
        return _counted(source, secret, columns.groups, weight, missing, bins)

    # All options are checked before the table is counted, which can take long.
    if confidence is not None:
        _check_for_boxes(promise, objective, order, least_mass, keep, columns.given)
        limits_of(notion)
        boxes = BoxRequest(
            notion=notion,
            level=confidence,
            given=columns.given,
            objective=objective,
            cells=cells,
            rare=rare or 0,
            fill=fill,
            time_limit=seconds,
            seed=slice_seed,
            progress=progress,
        )
        return design_boxes(counted(table, columns.sensitive), boxes)

    _refuse_without_confidence(cells, rare, fill, slice_seed)
    records = counted(table, columns.sensitive)
    of_task: RowTask | None = None
    if task_columns:
        # The rows are counted twice: with the sensitive column, for the promise, and with the
        # task column, for what is kept (docs/explanation/rows-theory.md, 'Rows for a task').
        source = table
        if isinstance(task, Joint):
            source = task
        of_task = row_task(records, counted(source, task_columns), columns.given)
        objective = INFORMATION
    request = RowRequest(
        notion=notion,
        given=columns.given,
        promise=promise,
        objective=objective,
        order=order,
        least_mass=least_mass,
        time_limit=seconds,
        allow_identifier=allow_identifier,
        progress=progress,
        task=of_task,
    )
    if keep is not None:
        return keeping_rows(records, request, keep, started=started)
    return design_records(records, request, started=started)


class _Columns(NamedTuple):
    """The sensitive columns, and the groups of the others, of which the first `given` are released
    as they are.
    """

    sensitive: tuple[str, ...]
    groups: list[tuple[str, ...]]
    given: int


def _columns(
    sensitive: str | Sequence[str], given: str | Sequence[str], release: Groups
) -> _Columns:
    """The columns by their roles.

    Raises
    ------
    InputError
        If a column has two of them, or nothing is released.
    """
    given_columns = _column_names(given)
    groups = checked_groups([*given_columns, *checked_groups(release)])
    sensitive_columns = _column_names(sensitive)
    for name in sensitive_columns:
        if any(name in group for group in groups):
            raise InputError(
                f"the sensitive column {quoted(name)} cannot be released or given; leave it out"
            )
    return _Columns(sensitive_columns, groups, len(given_columns))


def _task_columns(
    table: Any, task: Any, objective: str, confidence: float | None, keep: object
) -> tuple[str, ...]:
    """The columns of the task; none with another objective.

    Raises
    ------
    InputError
        If there is a task without the objective or the other way round, or an option that tasks do
        not have.
    """
    if objective != TASK:
        if task is None:
            return ()
        raise InputError(
            "task names the column that the release should tell of: it needs the objective task"
        )
    if task is None:
        raise InputError(
            "the objective task needs the column that the release should tell of (--task COL)"
        )
    if confidence is not None:
        raise InputError(
            "tasks are designed for the table, not yet with a confidence level: leave one of them "
            "out"
        )
    if keep is not None:
        raise InputError(
            "keep looks for a share of the information in the released columns, not of a task: "
            "leave one of them out"
        )
    if isinstance(task, Joint):
        return task.sensitive.columns
    if isinstance(table, Joint):
        raise InputError(
            "with a joint table, task must be a Joint of the task column and the same useful "
            "columns"
        )
    return _column_names(task)


def _counted(
    table: Any,
    sensitive: tuple[str, ...],
    groups: Sequence[tuple[str, ...]],
    weight: str | None,
    missing: Missing,
    bins: Any,
) -> Records:
    """The distinct rows of a table over the groups of columns, with their counts."""
    if not isinstance(table, Joint):
        return Records.from_table(
            table,
            sensitive=sensitive,
            groups=groups,
            weight=weight,
            missing=missing,
            bins=bins,
        )
    if table.sensitive.columns != sensitive:
        raise InputError(
            f"the sensitive column of the table is {quoted(','.join(table.sensitive.columns))}, "
            f"not {quoted(','.join(sensitive))}"
        )
    return Records.from_joint(table, groups, bins=bins)


def _refuse_without_confidence(
    cells: int | None, rare: int | None, fill: bool, slice_seed: int | None
) -> None:
    """Refuse options of the promise for the population."""
    if cells is not None or rare is not None or fill or slice_seed is not None:
        raise InputError(
            "cells, rare, fill and slice_seed belong to the promise about the population: give a "
            "confidence level too (--confidence 0.95)"
        )


def _check_for_boxes(
    promise: str,
    objective: str,
    order: str,
    least_mass: float | None,
    keep: object,
    given: int,
) -> None:
    """Refuse options that a release of boxes does not have."""
    if given and promise == TOTAL:
        raise InputError(
            "with a confidence level the promise is relative to the given columns: say so "
            "(--promise relative), or release them as levels in place of giving them"
        )
    check_promise(promise)
    if order != GIVEN or least_mass is not None:
        raise InputError(
            "with a confidence level all columns are released together: leave order and least mass "
            "out"
        )
    if objective not in OBJECTIVES:
        raise InputError(
            f"objective ({quoted(objective)}) must be truth or information for a release of rows"
        )
    # A budget chosen by the proving records would make their draws depend on the choice.
    if keep is not None:
        raise InputError(
            "keep is not built for a release of rows with a confidence level: the boxes would "
            "be chosen by the records that they are proven on; say the budget"
        )


def _column_names(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One or several columns as a tuple."""
    if isinstance(columns, str):
        return (columns,)
    return tuple(columns)
