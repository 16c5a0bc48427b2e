"""`mechdesign design` for boxes: of rows with a confidence level (--release, --confidence), and of
a column with rare symbols merged (--merge-rare).

Both make channels that are released and reported alike, and refuse the same options
(`_refuse_other_options`). `design_boxed` learns boxes of rows; `design_merged` learns boxes of the
symbols of one column: of the jobs clerk, typist and smith it may release "clerk or typist" as one.
Each reads the table, searches within --time-limit, writes the files and prints the promise
(`_answer_boxes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.design_arguments import DesignArguments
from mechdesign.cli.design_options import DesignOptions, OutputOptions
from mechdesign.cli.line import COMMAND, command_line
from mechdesign.cli.report import ReportOptions, save_boxes
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanisms.box_result import BoxDesign
    from mechdesign.tables.joint import Joint

TRUTH = "truth"

OF_BOXES = (None, TRUTH, "information")
"""The objectives of boxes of rows."""

OF_MERGED = (None, "information", TRUTH)
"""The objectives of a column with merged symbols."""


def design_boxed(
    reporter: Reporter,
    arguments: DesignArguments,
    population: options.PopulationRequest,
) -> int:
    """Design a channel for boxes of rows, write it and its report, print its promise."""
    from mechdesign.channel.box_channel import NOT_PUBLIC
    from mechdesign.mechanisms.designing import design_requested
    from mechdesign.mechanisms.request import DesignRequest

    _refuse_other_options(arguments, OF_BOXES)
    table = arguments.table
    rows = arguments.rows
    # Before the search, at whose end the file would be refused.
    fills = rows.fill or rows.person is not None
    if fills and arguments.output.public:
        raise InputError(NOT_PUBLIC)
    rows.check_table(table)
    released = rows.released_columns(table)
    given = rows.given_columns()
    with reporter.work("reading the table"):
        bins: Any = None
        if rows.person is not None:
            joint = rows.people(table, (*given, *released))
        else:
            joint, bins = table.read_before_auto((*given, *released))
        if bins is not None:
            raise InputError(
                "--bin auto needs a design of the table: give edges, a width or quantiles:N"
            )
        _check_listed(arguments.confidence.secrets, joint)
    request = DesignRequest(
        joint,
        arguments.budget.notion_or("alip"),
        release=released,
        given=given,
        confidence=population.level,
        **rows.on(),
    )
    request = arguments.objective.on(request, table, table.text(), (*given, *released))
    request = arguments.search.on(request)
    with reporter.work(
        "searching", unit="nodes", limit=arguments.search.seconds
    ) as work:
        result: Any = design_requested(replace(request, progress=work.step))
    reporter.notices(joint.notices)
    groups = _row_groups(arguments, population.level, arguments.objective.shown())
    return _answer_boxes(reporter, arguments, result, groups)


def design_merged(
    reporter: Reporter, arguments: DesignArguments, level: float | None
) -> int:
    """Design a channel for a column whose symbols are merged on a slice."""
    from mechdesign.mechanisms.box_design import design_boxes
    from mechdesign.mechanisms.box_request import INFORMATION, BoxRequest
    from mechdesign.tables.records import Records

    if level is None:
        raise InputError(
            "--merge-rare needs --confidence: without it no symbol is too rare"
        )
    _refuse_other_options(arguments, OF_MERGED)
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
            objective=arguments.objective.objective or INFORMATION,
            keep_law=not arguments.objective.free_frequencies,
            rare=rows.rare_records(),
            merge_below=rows.merge_below(),
            seed=rows.count("--slice-seed", rows.slice_seed),
            progress=work.step,
            time_limit=_row_seconds(search),
        )
        records = Records.from_joint(joint, [joint.useful.columns])
        design = design_boxes(records, request)
    reporter.notices(joint.notices)
    return _answer_boxes(
        reporter,
        arguments,
        design,
        _row_groups(arguments, level, arguments.objective.shown()),
    )


def _refuse_other_options(
    arguments: DesignArguments, objectives: tuple[str | None, ...]
) -> None:
    """Refuse options that a release of rows or boxes does not have, and other objectives."""
    # First those with a reason or another way, then those that are only not built.
    if arguments.confidence.symbols is not None:
        raise InputError(
            "boxes have a place for every symbol that no record has, so the promise covers them "
            "without a list: leave --symbols out"
        )
    if arguments.after.after:
        raise InputError(
            "--after is not built for boxes (--release with --confidence, --merge-rare): leave it "
            "out; "
            "`mechdesign compose` says what the releases tell together"
        )
    from mechdesign.mechanisms.combinations import BOXES, reason_of

    for name, entry in _unbuilt_options(arguments, objectives):
        raise InputError(
            f"{name} is not built for boxes (--release with --confidence, --merge-rare): "
            f"leave it out ({reason_of(BOXES, entry)})"
        )


def _unbuilt_options(
    arguments: DesignArguments, objectives: tuple[str | None, ...]
) -> list[tuple[str, str]]:
    """The options on the command line that boxes do not have, each with its name in
    `mechanisms.combinations`.
    """
    budget = arguments.budget
    confidence = arguments.confidence
    search = arguments.search
    objective = arguments.objective
    default = DesignOptions()
    # Own boxes have a law to keep, free labels have none.
    has_boxes = objectives == OF_BOXES or objective.objective == TRUTH
    frequencies = objective.keep_frequencies or objective.free_frequencies
    # By name what neither a release of rows with a confidence level nor merged symbols have, and
    # whether it is given.
    refused = {
        ("--average", "average"): budget.average is not None,
        ("--budget", "budgets of single symbols"): bool(budget.budget),
        ("--objective", "objective"): objective.objective not in objectives,
        ("--task", "task"): objective.task is not None,
        ("--distance", "distance"): objective.distance is not None,
        (
            "--keep-frequencies"
            if objective.keep_frequencies
            else "--free-frequencies",
            "keep frequencies",
        ): frequencies and not has_boxes,
        ("--stay", "stay"): bool(objective.stay),
        ("--forbid", "forbid"): bool(objective.forbid),
        ("--method", "method"): search.method != default.method,
        ("--enumerate", "enumerate"): search.enumerate != default.enumerate,
        ("--gap", "gap"): search.smallest_gap != default.smallest_gap,
        ("--unknown", "unknown"): arguments.output.unknown != OutputOptions().unknown,
        ("--curve", "curve"): arguments.reports.curve != ReportOptions().curve,
        # Both turn the table into a budget, and the promise is about the population.
        ("--keep with --confidence", "keep"): budget.keep is not None,
        ("--max-posterior with --confidence", "keep"): budget.max_posterior is not None,
        ("--known-shares", "known shares"): confidence.known_shares is not None,
        ("--mechanism", "mechanism"): search.mechanism != "optimal",
    }
    return [names for names, is_given in refused.items() if is_given]


def _check_listed(secrets: str | None, joint: Joint) -> None:
    """Compare the list of sensitive values, if there is one, with the table."""
    from mechdesign.tables.confidence_files import check_secrets

    if secrets is not None:
        check_secrets(secrets, joint)


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


def _answer_boxes(
    reporter: Reporter,
    arguments: DesignArguments,
    design: BoxDesign,
    groups: tuple[object, ...],
) -> int:
    """Write the file of a channel for boxes and its report, and print its promise."""
    files = arguments.output
    reports = arguments.reports
    # A line for others, because the channel file may be given away.
    design = _with_command(design, command_line("design", *groups, public=True))
    output = files.output
    end = ["Nothing was written; --output channel.json keeps this channel."]
    if output is not None:
        design.channel.save(output, overwrite=arguments.force, public=files.public)
        end = [f"Written to {output}. Next:  mechdesign apply {output} IN.csv OUT.csv"]
    if reports.asked:
        save_boxes(
            design.channel, output or "the channel", reports, force=arguments.force
        )
        end += reports.text().split("\n")
    reporter.done("designed", "\n".join(end))
    arguments.common.answer(
        lambda: {**design.to_record(), "output": output} | _written(reports),
        lambda: _text(design, files, end),
    )
    return 0 if design.audit.satisfied else NO


def _text(design: BoxDesign, files: OutputOptions, end: Sequence[str]) -> str:
    """The first screen, or with --full or --all-measures all sections, and the lines at the end."""
    from mechdesign.report.boxes import box_first_screen

    if files.full or files.all_measures:
        return "\n\n".join([design.summary(), "\n".join(end)])
    return box_first_screen(design, last=end)


def _with_command(design: BoxDesign, line: str) -> BoxDesign:
    """The design whose channel says by which command it was made."""
    provenance = {**design.channel.provenance, COMMAND: line}
    return replace(design, channel=replace(design.channel, provenance=provenance))


def _written(reports: ReportOptions) -> dict[str, Any]:
    """The paths of the reports that are written, for the record of a design."""
    return {name: path for name, path in reports.files.items() if path is not None}
