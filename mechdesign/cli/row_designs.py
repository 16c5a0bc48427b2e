"""`mechdesign design` for whole rows (--release), and for a column with rare symbols merged.

Both make channels that are released and reported alike, and refuse the same options
(`_refuse_other_options`). `design_released_rows` crosses the columns of --release and designs one
level after the other; with --confidence it learns boxes of rows. `design_merged` (--merge-rare)
learns boxes of the symbols of one column: of the jobs clerk, typist and smith it may release
"clerk or typist" as one. Each reads the table, searches within --time-limit, and lets
`design_rows.answer_rows` write the files and print the promise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options, parsing
from mechdesign.cli.console import Reporter
from mechdesign.cli.design_arguments import DesignArguments
from mechdesign.cli.design_options import DesignBudget, DesignOptions
from mechdesign.cli.design_rows import answer_rows, designed, read_rows
from mechdesign.cli.row_options import TOTAL, TRUTH
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanisms.box_result import BoxDesign


def design_released_rows(
    reporter: Reporter, arguments: DesignArguments, level: float | None
) -> int:
    """Design a channel for whole rows, write it and its report, print its promise."""
    _refuse_other_options(arguments)
    table = arguments.table
    rows = arguments.rows
    search = arguments.search
    with reporter.work("reading the table"):
        joint = read_rows(table, rows)
        _check_listed(arguments.confidence.secrets, joint)
        task = _task_rows(arguments, joint)
    with reporter.work("searching", unit="nodes", limit=search.seconds) as work:
        design = designed(
            joint,
            rows,
            _row_notion(arguments.budget, joint),
            objective=arguments.objective.objective or TRUTH,
            bins=parsing.bins_of(table.bins),
            time_limit=_row_seconds(search),
            progress=work.step,
            keep=arguments.budget.keep,
            allow_identifier=search.allow_identifier,
            confidence=level,
            task=task,
        )
    reporter.notices(joint.notices)
    groups = _row_groups(arguments, level, arguments.objective.shown())
    return _answer_rows(reporter, arguments, design, groups)


def design_merged(
    reporter: Reporter, arguments: DesignArguments, level: float | None
) -> int:
    """Design a channel for a column whose symbols are merged on a slice."""
    from mechdesign.mechanisms.box_design import design_boxes
    from mechdesign.mechanisms.box_request import BoxRequest
    from mechdesign.tables.records import Records

    if level is None:
        raise InputError(
            "--merge-rare needs --confidence: without it no symbol is too rare"
        )
    _refuse_other_options(arguments)
    rows = arguments.rows
    search = arguments.search
    with reporter.work("reading the table"):
        joint, bins = arguments.table.read_before_auto()
        _check_listed(arguments.confidence.secrets, joint)
        if bins is not None:
            raise InputError(
                "--merge-rare and --bin auto exclude each other: leave one out"
            )
    with reporter.work("searching", unit="sets", limit=search.seconds) as work:
        request = BoxRequest(
            notion=arguments.budget.notion_or("alip"),
            level=level,
            rare=rows.rare_records(),
            merge_below=rows.merge_below(),
            seed=rows.count("--slice-seed", rows.slice_seed),
            progress=work.step,
            time_limit=_row_seconds(search),
        )
        records = Records.from_joint(joint, [joint.useful.columns])
        design = design_boxes(records, request)
    reporter.notices(joint.notices)
    return _answer_rows(reporter, arguments, design, _row_groups(arguments, level))


def _refuse_other_options(arguments: DesignArguments) -> None:
    """Refuse options that a release of rows or boxes does not have."""
    # First those with a reason or another way, then those that are only not built.
    if arguments.confidence.symbols is not None:
        raise InputError(
            "boxes have a place for every symbol that no record has, so the promise covers them "
            "without a list: leave --symbols out"
        )
    if arguments.after.after:
        raise InputError(
            "--after is not built for a release of rows (--release, --merge-rare): leave it out; "
            "`mechdesign compose` says what the releases tell together"
        )
    unbuilt = _unbuilt_options(arguments)
    if unbuilt:
        raise InputError(
            f"{unbuilt[0]} is not built for a release of rows (--release, --merge-rare): leave "
            "it out"
        )
    if arguments.budget.max_posterior is not None and arguments.rows.promise != TOTAL:
        raise InputError(
            "--max-posterior is about beliefs, and a relative promise says how much they change "
            "where the given columns are known: take --promise total, or --at-most-times"
        )


def _unbuilt_options(arguments: DesignArguments) -> list[str]:
    """The options on the command line that no release of rows has."""
    budget = arguments.budget
    confidence = arguments.confidence
    unbuilt: list[str] = []
    if budget.average is not None:
        unbuilt.append("--average")
    if confidence.confidence is not None:
        # Both turn the table into a budget, and the promise is about the population.
        if budget.keep is not None:
            unbuilt.append("--keep with --confidence")
        if budget.max_posterior is not None:
            unbuilt.append("--max-posterior with --confidence")
    if confidence.known_shares is not None:
        unbuilt.append("--known-shares")
    if arguments.search.mechanism != "optimal":
        unbuilt.append("--mechanism")
    return unbuilt


def _task_rows(arguments: DesignArguments, joint: md.Joint) -> md.Joint | None:
    """The same rows with the column of the task in the place of the sensitive one; None without
    a task.
    """
    from mechdesign.mechanisms.row_task import check_task_columns

    of_task = arguments.objective.task_table(arguments.table)
    if of_task is None:
        return None
    rows = arguments.rows
    # The task is told of by all columns that are published, so it may be none of them.
    groups = [*rows.levels(), rows.given_columns()]
    names = (of_task.sensitive or "").split(",")
    # Before the table is read again, which may take long.
    check_task_columns(names, joint.sensitive.columns, groups)
    return read_rows(of_task, rows)


def _check_listed(secrets: str | None, joint: md.Joint) -> None:
    """Compare the list of sensitive values, if there is one, with the table."""
    from mechdesign.tables.confidence_files import check_secrets

    if secrets is not None:
        check_secrets(secrets, joint)


def _row_notion(budget: DesignBudget, joint: md.Joint) -> md.Notion:
    """What a release of rows promises; the lifts of a total promise are those of one column."""
    if budget.keep is not None:
        # Only the kind of the notion and the ratio of its sides count.
        return budget.at("1")
    if budget.max_posterior is None:
        return budget.notion_or("alip")
    from mechdesign.mechanisms.budget import posterior_budget
    from mechdesign.mechanisms.request import DesignRequest

    request = DesignRequest(joint, budget.kind.at(1.0))
    return budget.notion_or("alip", posterior_budget(request, budget.max_posterior))


def _row_seconds(search: DesignOptions) -> float:
    """The time limit of a design of rows or boxes, whose searches end by themselves without one."""
    if search.seconds is None:
        return math.inf
    return search.seconds


def _row_groups(
    arguments: DesignArguments, level: float | None, *more: object
) -> tuple[object, ...]:
    """The groups of options that the line of a design of rows or boxes repeats."""
    # Rows take the level and the list of sensitive values alone.
    confident = options.ConfidenceOptions()
    if level is not None:
        confident = options.ConfidenceOptions(
            confidence=repr(level), secrets=arguments.confidence.secrets
        )
    return (
        arguments.table,
        arguments.budget,
        confident,
        arguments.rows,
        arguments.search,
        *more,
        arguments.as_if_written,
    )


def _answer_rows(
    reporter: Reporter,
    arguments: DesignArguments,
    design: md.RowDesign | BoxDesign,
    groups: tuple[object, ...],
) -> int:
    """Write the file of a channel for rows or boxes, and print its promise."""
    return answer_rows(
        reporter,
        design,
        arguments.common,
        files=arguments.output,
        force=arguments.force,
        groups=groups,
        reports=arguments.reports,
    )
