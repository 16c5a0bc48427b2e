"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what
it guarantees.

`design` checks the options before the table is read, and hands over: without a budget to
`design_advice.advise`, and else to one of three. Each reads the table, lets each group of options
add its part to a request of `mechanisms`, searches within --time-limit, writes the channel and its
reports, and prints the promise:

- `_design_table` for a column or for rows (`DesignBudget.designed` calls
  `mechanisms.design_requested`);
- `_design_boxes` for rows with a confidence level (--release, --confidence), which are released by
  boxes of rows;
- `_design_merged` for a column with rare symbols merged (--merge-rare), by boxes of its symbols: of
  the jobs clerk, typist and smith it may release "clerk or typist" as one.

The channel file records the command line that repeats it (`DesignArguments.recorded`).
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.design_advice import advise
from mechdesign.cli.design_arguments import DesignArguments
from mechdesign.cli.design_options import (
    DesignBudget,
    DesignOptions,
    ObjectiveOptions,
    OutputOptions,
)
from mechdesign.cli.people_guard import PeopleGuard
from mechdesign.cli.report import ReportOptions
from mechdesign.cli.row_options import RowOptions
from mechdesign.core.errors import InputError, errors_noting

if TYPE_CHECKING:
    from mechdesign.mechanisms.box_result import BoxDesign
    from mechdesign.mechanisms.merge_proposals import MergeProposals
    from mechdesign.mechanisms.request import DesignRequest

EXAMPLE = (
    "Example:  mechdesign design people.csv --sensitive relationship --useful occupation "
    "--at-most-times 2 --output channel.json"
)

TIME_SHARE = 0.2
"""Share of the time of a design with confidence that is left for proposals to merge symbols."""

TIME_LIMIT = "time_limit"
"""How the certificate of a search that the limit ended names its end."""

TIME_NOTE = (
    "of the {limit:g} s of --time-limit, the search for this channel had {search:g} s; the "
    "rest is for proposals to merge symbols"
)

LOGGED = (
    "output",
    "mechanism",
    "nmi",
    "upper_bound_nmi",
    "gap_nmi",
    "fallback_from",
    "verified",
)
"""Entries of the JSON record of a design that the log has, too."""

TRUTH = "truth"

OF_BOXES = (None, TRUTH, "information")
"""The objectives of boxes of rows, and of a column with merged symbols."""


def design(
    reporter: Reporter,
    table: table_options.InputTable,
    budget: DesignBudget,
    confidence: options.ConfidenceOptions,
    after: options.AfterOptions,
    rows: RowOptions,
    search: DesignOptions,
    objective: ObjectiveOptions,
    output: OutputOptions,
    reports: ReportOptions,
    common: options.CommonOptions,
    force: options.Force = False,
) -> int:
    """Compute the best private channel for a table, verify it exactly, and say what it guarantees.

    TABLE holds one record a row, or counts. The channel says with which probabilities to publish
    which output for each useful symbol, so that no output says much about the sensitive column.
    """
    arguments = DesignArguments(
        table=table,
        budget=budget,
        confidence=confidence,
        after=after,
        rows=rows,
        search=search,
        objective=objective,
        output=output,
        reports=reports,
        common=common,
        force=force,
    )
    # A script that forgets the budget gets an error; a person at a prompt gets the recommendation.
    needs_channel = arguments.writes_or_prints_json or rows.asked or bool(after.after)
    if budget.is_missing and not needs_channel:
        advise(reporter, table, budget, confidence, search, objective)
        return 0
    # What can be refused is refused before the table is read, and long before the search.
    budget.check()
    search.check()
    population = confidence.read()
    output.check((table.table,), force=force)
    reports.check((table.table,), {"--output": output.output}, force=force)
    rows.refuse_alone()
    guard = PeopleGuard.of(
        table,
        rows.released_columns(table) if rows.asked else (),
        decided=rows.person is not None or output.unit is not None,
        writes=output.output is not None or reports.asked,
    )
    if rows.merging or (rows.asked and population.level is not None):
        # Boxes have many records behind each output, and no channel of single rows.
        guard.check(reporter, None)
    if rows.asked and population.level is not None:
        return _design_boxes(reporter, arguments, population)
    if rows.merging:
        return _design_merged(reporter, arguments, population.level)
    return _design_table(reporter, arguments, population, guard)


def _design_table(
    reporter: Reporter,
    arguments: DesignArguments,
    population: options.PopulationRequest,
    guard: PeopleGuard,
) -> int:
    """Design a channel for a column or for rows, write it and its reports, print its promise."""
    with reporter.work("reading the table"):
        joint, request = _read(arguments, population)
    result, proposals = _searched(reporter, arguments, request, population)
    guard.check(reporter, result.channel)
    # Bins that the search chose have made another table; that of people may have the columns of
    # earlier releases, too.
    is_other = request.bins is not None or joint.useful.people is not None
    if is_other and result.channel.joint is not None:
        joint = result.channel.joint
    channel = result.channel.with_provenance(**arguments.recorded)
    result = replace(result, channel=channel)
    # The channel comes before its reports, whose curve may take longer than somebody waits.
    output = arguments.output
    if output.output is not None:
        result.channel.save(
            output.output, overwrite=arguments.force, public=output.public
        )
    with _noting_channel(arguments):
        if arguments.reports.asked:
            _save_reports(reporter, arguments, result.channel, result)
        _answer(reporter, arguments, result, joint, proposals)
    return 0


def _read(
    arguments: DesignArguments, population: options.PopulationRequest
) -> tuple[md.Joint, DesignRequest]:
    """The table, and the request of all options, whose table has the columns of earlier releases
    besides.
    """
    from mechdesign.mechanisms.request import DesignRequest

    # Each group of options adds its part; earlier releases come last, because they widen the table.
    table = arguments.table
    columns = _columns(arguments)
    earlier = arguments.after.channels()
    if arguments.rows.person is not None and columns is not None:
        joint, bins = arguments.rows.people(table, columns, earlier), None
    else:
        joint, bins = table.read_before_auto(columns)
    # This notion is provisional: some budgets depend on the table, so `DesignBudget.designed`
    # replaces it.
    request = DesignRequest(
        joint,
        arguments.budget.kind.at(1.0),
        bins=bins,
        # A table of people has the columns of earlier releases already.
        after=earlier if joint.useful.people is not None else (),
        # Boxes have options that need it.
        confidence=population.level,
        **_roles(arguments, columns),
    )
    request = arguments.search.on(request)
    request = arguments.objective.on(request, table, table.text(), columns)
    request = population.on(request, arguments.confidence.unseen(joint))
    if joint.useful.people is None:
        request = _after(request, table, earlier)
    return joint, replace(request, unknown=arguments.output.unknown)


def _columns(arguments: DesignArguments) -> tuple[str, ...] | None:
    """The given and released columns of a release of rows; None for another release."""
    rows = arguments.rows
    if not rows.asked:
        return None
    rows.check_table(arguments.table)
    return (*rows.given_columns(), *rows.released_columns(arguments.table))


def _roles(
    arguments: DesignArguments, columns: tuple[str, ...] | None
) -> dict[str, Any]:
    """The fields of the request that a release of rows has besides."""
    if columns is None:
        return {}
    given = arguments.rows.given_columns()
    released = columns[len(given) :]
    return {"release": released, "given": given, **arguments.rows.on()}


def _after(
    request: DesignRequest, table: table_options.InputTable, earlier: list[md.Channel]
) -> DesignRequest:
    """The request with the earlier releases, on the table with their useful columns."""
    if not earlier:
        return request
    joint = request.joint
    whole = _with_columns(joint, table, earlier)
    # The wider table crosses all their columns; the new channel still releases its own alone.
    useful = None
    if whole is not joint and not request.publishes_rows:
        useful = joint.useful.columns
    return replace(request, joint=whole, after=earlier, useful=useful)


def _with_columns(
    joint: md.Joint, table: table_options.InputTable, earlier: list[md.Channel]
) -> md.Joint:
    """The table with the useful columns of earlier channels too, where it lacks some of them.

    What several releases tell together depends on the joint distribution of all their columns.
    """
    columns = list(joint.useful.columns)
    for channel in earlier:
        for name in channel.useful.columns:
            if name not in columns:
                columns.append(name)
    # A wide table has no further columns to read.
    is_complete = len(columns) == len(joint.useful.columns)
    if is_complete or table.contingency or table.probabilities:
        return joint
    if table.table == "-":
        raise InputError(
            "--after a channel of another column reads the table twice: give a file, not -"
        )
    from mechdesign.tables.records import bins_by_column

    # Bins without a column are those of the only one that is released now; earlier channels have
    # their own.
    asked = parsing.bins_of(table.bins)
    if isinstance(asked, str):
        asked = {joint.useful.columns[0]: asked}
    bins: dict[str, Any] = {}
    for channel in earlier:
        bins |= bins_by_column([channel.useful])
    bins |= asked or {}
    return replace(table, useful=None, bins=None).joint(
        table.table,
        sensitive=joint.sensitive.columns,
        useful=tuple(columns),
        bins=bins or None,
    )


def _searched(
    reporter: Reporter,
    arguments: DesignArguments,
    request: DesignRequest,
    population: options.PopulationRequest,
) -> tuple[md.Design, MergeProposals | None]:
    """The design of a request, and what merging would keep, within one time limit.

    Of T seconds the search has T, or (1 - TIME_SHARE) T with a confidence level.
    """
    seconds = arguments.search.seconds
    started = time.process_time()
    limit = seconds
    if limit is not None and population.level is not None:
        # The rest is for what merging would keep, should the channel keep little.
        limit *= 1.0 - TIME_SHARE
    with reporter.work("searching", unit="sets", limit=seconds) as work:
        limited = replace(request, time_limit=limit, progress=work.step)
        result = arguments.budget.designed(limited)
        # Otherwise nobody would know why the search ended before the time of --time-limit.
        if limit != seconds and result.certificate.details.get("status") == TIME_LIMIT:
            note = TIME_NOTE.format(limit=seconds, search=limit)
            result = replace(result, messages=(*result.messages, note))
        return result, _proposals(result, started, seconds)


def _proposals(
    result: md.Design, started: float, limit: float | None
) -> MergeProposals | None:
    """What merging would keep, within the rest of the time; None without a confidence level.

    `started` is the start of the search in seconds of `time.process_time`, `limit` the whole time
    in seconds, or None without a limit. The proposals end with the limit, and have at most a share
    TIME_SHARE of it, so that a quick search is not followed by a long one for advice.
    """
    if result.confidence is None:
        return None
    from mechdesign.mechanisms.merge_proposals import merge_proposals

    # Advice is not worth an endless search: without a limit it has the default one.
    seconds = options.SearchOptions().seconds or 0.0
    if limit is not None:
        seconds = limit
    # A search may overrun its limit a little: then the end is now, and not in the past.
    now = time.process_time()
    end = max(started + seconds, now)
    return merge_proposals(result, min(end, now + TIME_SHARE * seconds))


def _noting_channel(arguments: DesignArguments) -> AbstractContextManager[None]:
    """Let errors say that the channel file is there: it was written before all else."""
    path = arguments.output.output
    if path is None:
        return nullcontext()
    note = f"{path} is written and can be used"
    if arguments.reports.asked:
        note += "; `mechdesign report` writes its reports"
    return errors_noting(note)


def _save_reports(
    reporter: Reporter,
    arguments: DesignArguments,
    channel: md.Channel,
    behind: Any,
) -> None:
    """Write the reports."""
    arguments.reports.save(
        channel,
        behind,
        reporter,
        line=arguments.line(arguments.objective),
        table=arguments.table.table,
        output=arguments.output.output,
        force=arguments.force,
    )


def _answer(
    reporter: Reporter,
    arguments: DesignArguments,
    result: md.Design,
    joint: md.Joint,
    proposals: MergeProposals | None,
) -> None:
    """Print notes, and the design as text or as one JSON object."""
    from mechdesign.mechanisms.unsuited_columns import many_numbers
    from mechdesign.report.command_records import design_record

    # Many different numbers are best sorted into bins, unless their distance is what counts.
    advice: tuple[str, ...] = ()
    if arguments.objective.objective != "distance" and not arguments.rows.asked:
        advice = many_numbers(joint)
    reporter.notices((*joint.notices, *advice, *result.messages))
    path = arguments.output.output
    reports = arguments.reports
    record = design_record(result, path) | reports.files
    if proposals is not None:
        record["proposals"] = [asdict(proposal) for proposal in proposals.shown]
        record["promises"] = proposals.promises
    done = "a channel is designed"
    if path is not None:
        done = f"written to {path}"
    logged = {key: record[key] for key in (*LOGGED, *reports.files)}
    reporter.done("designed", done, **logged)
    arguments.common.answer(
        lambda: record,
        lambda: _text(result, joint, arguments, proposals),
    )


def _text(
    result: md.Design,
    joint: md.Joint,
    arguments: DesignArguments,
    proposals: MergeProposals | None,
) -> str:
    """The first screen; or all sections with --full, and with --all-measures, which is
    one of them.
    """
    output = arguments.output
    last = arguments.written
    if proposals is not None and proposals.shown and result.confidence is not None:
        from mechdesign.report.proposals import proposal_lines

        lines = proposal_lines(proposals, result.nmi, result.confidence.level)
        last = [*lines, "", *last]
    if output.full or output.all_measures:
        from mechdesign.report.first_lines import little_use_lines
        from mechdesign.report.terminal import design_text

        text = design_text(result, joint, all_measures=output.all_measures)
        return "\n".join([*little_use_lines(result), text, "", *last])
    from mechdesign.report.first_screen import first_screen

    return first_screen(result, joint, last=last)


def _design_boxes(
    reporter: Reporter,
    arguments: DesignArguments,
    population: options.PopulationRequest,
) -> int:
    """Design a channel for boxes of rows, write it and its report, print its promise."""
    from mechdesign.channel.channel import NOT_PUBLIC
    from mechdesign.mechanisms.designing import design_requested

    _refuse_other_options(arguments, is_of_rows=True)
    rows = arguments.rows
    # Before the search, at whose end the file would be refused.
    if arguments.output.public and (rows.fill or rows.person is not None):
        raise InputError(NOT_PUBLIC)
    with reporter.work("reading the table"):
        joint, request = _read(arguments, population)
        if request.bins is not None:
            raise InputError(
                "--bin auto needs a design of the table: give edges, a width or quantiles:N"
            )
    with reporter.work(
        "searching", unit="nodes", limit=arguments.search.seconds
    ) as work:
        notion = arguments.budget.notion_or("alip")
        result: Any = design_requested(
            replace(request, notion=notion, progress=work.step)
        )
    return _answer_boxes(reporter, arguments, result, joint)


def _design_merged(
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
    _refuse_other_options(arguments, is_of_rows=False)
    rows = arguments.rows
    seconds = arguments.search.seconds
    with reporter.work("reading the table"):
        joint, bins = arguments.table.read_before_auto()
        # Compares the list of sensitive values with the table; there is none of useful symbols.
        arguments.confidence.unseen(joint)
        if bins is not None:
            raise InputError(
                "--merge-rare and --bin auto exclude each other: leave one out"
            )
    with reporter.work("searching", unit="sets", limit=seconds) as work:
        request = BoxRequest(
            notion=arguments.budget.notion_or("alip"),
            level=level,
            objective=arguments.objective.objective or INFORMATION,
            keep_law=not arguments.objective.free_frequencies,
            rare=rows.rare_records(),
            merge_below=rows.merge_below(),
            seed=rows.count("--slice-seed", rows.slice_seed),
            progress=work.step,
            # The searches for boxes end by themselves.
            time_limit=math.inf if seconds is None else seconds,
        )
        records = Records.from_joint(joint, [joint.useful.columns])
        design = design_boxes(records, request)
    return _answer_boxes(reporter, arguments, design, joint)


def _refuse_other_options(arguments: DesignArguments, *, is_of_rows: bool) -> None:
    """Refuse options that boxes do not have, and other objectives."""
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

    for name, entry in _unbuilt_options(arguments, is_of_rows):
        raise InputError(
            f"{name} is not built for boxes (--release with --confidence, --merge-rare): "
            f"leave it out ({reason_of(BOXES, entry)})"
        )


def _unbuilt_options(
    arguments: DesignArguments, is_of_rows: bool
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
    has_boxes = is_of_rows or objective.objective == TRUTH
    frequencies = objective.keep_frequencies or objective.free_frequencies
    # By name what neither a release of rows with a confidence level nor merged symbols have, and
    # whether it is given.
    refused = {
        ("--average", "average"): budget.average is not None,
        ("--budget", "budgets of single symbols"): bool(budget.budget),
        ("--objective", "objective"): objective.objective not in OF_BOXES,
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


def _answer_boxes(
    reporter: Reporter,
    arguments: DesignArguments,
    design: BoxDesign,
    joint: md.Joint,
) -> int:
    """Write the file of a channel for boxes and its report, and print its promise."""
    reporter.notices(joint.notices)
    files = arguments.output
    reports = arguments.reports
    channel = design.channel.with_provenance(**arguments.recorded)
    design = replace(design, channel=channel)
    if files.output is not None:
        channel.save(files.output, overwrite=arguments.force, public=files.public)
    with _noting_channel(arguments):
        if reports.asked:
            from mechdesign.report.reports import views_of

            behind = views_of(channel).behind(channel, design)
            _save_reports(reporter, arguments, channel, behind)
        last = arguments.written
        reporter.done("designed", "\n".join(last))
        record = {**design.to_record(), "output": files.output} | reports.files

        def text() -> str:
            from mechdesign.report.boxes import box_first_screen

            if files.full or files.all_measures:
                return "\n\n".join([design.summary(), "\n".join(last)])
            return box_first_screen(design, last=last)

        arguments.common.answer(lambda: record, text)
    return 0 if design.audit.satisfied else NO
