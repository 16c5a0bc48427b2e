"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what it
guarantees.

`design` checks the options before the table is read, and hands over: without a budget to `advise`.
Else it reads the table, lets each group of options add its part to a request of `mechanisms`
(`_read`), searches within --time-limit (`_searched`, where `DesignBudget.on` puts in the budget and
`designing.design_requested` designs), writes the channel and its reports, and prints the promise
(`_write`). Rows with a confidence level (--release, --confidence) are released by boxes of rows,
and a column with rare symbols merged (--merge-rare) by boxes of its symbols: of the jobs clerk,
typist and smith it may release "clerk or typist" as one.

The channel file records the command line that repeats it (`DesignArguments.recorded`).

*Without a budget* `advise` says what budgets buy on this table, and how to go on. It prints the
recommendation of `compare --recommend` for the optimum: what a factor of 2 costs, and at which
budget 90 % of the information is kept. Below it are the two commands that design these channels,
with the options that were typed: ::

    mechdesign design people.csv .. --at-most-times 2 --at-least-times 0.5 --output CHANNEL.json
    mechdesign design people.csv .. --keep 0.9 --output CHANNEL.json
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import typer

import mechdesign as md
from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.design_options import (
    DesignArguments,
    DesignBudget,
    DesignOptions,
    ObjectiveOptions,
    OutputOptions,
    RowOptions,
)
from mechdesign.cli.line import command_line
from mechdesign.cli.options import ReportOptions
from mechdesign.cli.table_options import PeopleGuard
from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError, errors_noting
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
    from mechdesign.mechanisms.box_design import MergeProposals
    from mechdesign.mechanisms.request import DesignRequest


DESIGN_EXAMPLE = (
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
    output.check(arguments.inputs, force=force)
    reports.check(arguments.inputs, {"--output": output.output}, force=force)
    rows.refuse_alone()
    is_boxed = rows.merging or (rows.asked and population.level is not None)
    if is_boxed:
        _check_boxes(arguments)
    guard = PeopleGuard.of(
        table,
        rows.released_columns(table) if rows.asked else (),
        decided=rows.person is not None or output.unit is not None,
        writes=output.output is not None or reports.asked,
    )
    if is_boxed:
        # Boxes have many records behind each output, and no channel of single rows.
        guard.check(reporter, None)
    with reporter.work("reading the table"):
        joint, request = _read(arguments, population)
    result, proposals = _searched(reporter, arguments, request)
    if not is_boxed:
        guard.check(reporter, result.channel)
    # Bins that the search chose have made another table; that of people may have the columns of
    # earlier releases, too.
    is_other = request.bins is not None or joint.useful.people is not None
    if is_other and result.channel.joint is not None:
        joint = result.channel.joint
    _write(reporter, arguments, result, joint, proposals)
    return 0


def _check_boxes(arguments: DesignArguments) -> None:
    """Refuse for boxes, before the table is read, what no request has."""
    from mechdesign.channel.channel import NOT_PUBLIC
    from mechdesign.mechanisms import combinations

    rows = arguments.rows
    # Before the search, at whose end the file would be refused.
    if arguments.output.public and (rows.fill or rows.person is not None):
        raise InputError(NOT_PUBLIC)
    if arguments.after.after:
        # The file of an earlier release may be one of boxes, which cannot be read there.
        combinations.check(combinations.BOXES, {"after": "--after"})
    if arguments.confidence.symbols is not None:
        combinations.check(combinations.BOXES, {"unseen symbols": "--symbols"})
    if arguments.reports.curve != ReportOptions().curve:
        combinations.check(combinations.BOXES, {"curve": "--curve"})


def _write(
    reporter: Reporter,
    arguments: DesignArguments,
    result: md.Design,
    joint: md.Joint,
    proposals: MergeProposals | None,
) -> None:
    """Write the channel and its reports, and print its promise."""
    from mechdesign.channel.file import save

    channel = result.channel.with_provenance(**arguments.recorded)
    if result.messages:
        # A later report of the file says them, too; a public file leaves them out.
        channel = channel.with_provenance(messages=[*result.messages])
    result = replace(result, channel=channel)
    # The channel comes before its reports, whose curve may take longer than somebody waits.
    output = arguments.output
    if output.output is not None:
        save(channel, output.output, overwrite=arguments.force, public=output.public)
    with _noting_channel(arguments):
        if arguments.reports.asked:
            _save_reports(reporter, arguments, result)
        _answer(reporter, arguments, result, joint, proposals)


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
    request = DesignRequest(
        joint,
        arguments.budget.provisional,
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
    """The fields of the request that a release of rows has besides, and one of merged symbols."""
    fields = arguments.rows.on()
    if columns is None:
        return fields
    given = arguments.rows.given_columns()
    released = columns[len(given) :]
    return {"release": released, "given": given, **fields}


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
    reporter: Reporter, arguments: DesignArguments, request: DesignRequest
) -> tuple[md.Design, MergeProposals | None]:
    """The design of a request, and what merging would keep, within one time limit.

    Of T seconds the search has T, or (1 - TIME_SHARE) T with a confidence level and without boxes.
    """
    seconds = arguments.search.seconds
    started = time.process_time()
    limit = seconds
    has_proposals = request.may_merge
    if limit is not None and has_proposals:
        # The rest is for what merging would keep, should the channel keep little.
        limit *= 1.0 - TIME_SHARE
    with reporter.work("searching", unit="sets", limit=seconds) as work:
        limited = replace(request, time_limit=limit, progress=work.step)
        result = _designed(arguments.budget, limited)
        # Otherwise nobody would know why the search ended before the time of --time-limit.
        if limit != seconds and result.certificate.details.get("status") == TIME_LIMIT:
            note = TIME_NOTE.format(limit=seconds, search=limit)
            result = replace(result, messages=(*result.messages, note))
        return result, _proposals(result, started, seconds)


def _designed(budget: DesignBudget, request: DesignRequest) -> md.Design:
    """The design of a request, whose budget may have to be searched."""
    from mechdesign.mechanisms.budget import keeping
    from mechdesign.mechanisms.designing import design_requested

    if budget.is_searched:
        # The search tries numbers; `repr` gives the decimal that is read as the very same one.
        return keeping(request, lambda epsilon: budget.at(repr(epsilon)), budget.keep)
    return design_requested(budget.on(request))


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
    from mechdesign.mechanisms.box_design import NO_PROPOSALS, merge_proposals

    # Advice is not worth an endless search: without a limit it has the default one.
    seconds = options.SearchOptions().seconds or 0.0
    if limit is not None:
        seconds = limit
    # A search may overrun its limit a little: then the end is now, and not in the past.
    now = time.process_time()
    end = max(started + seconds, now)
    try:
        return merge_proposals(result, min(end, now + TIME_SHARE * seconds))
    except KeyboardInterrupt:
        # The channel is there, and what is left undone is advice.
        return NO_PROPOSALS


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
    reporter: Reporter, arguments: DesignArguments, result: md.Design
) -> None:
    """Write the reports."""
    from mechdesign.report.collect import behind

    channel = result.channel
    arguments.reports.save(
        channel,
        behind(channel, result),
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
    from mechdesign.mechanisms.classes import many_numbers

    # Many different numbers are best sorted into bins, unless their distance is what counts.
    advice: tuple[str, ...] = ()
    if arguments.objective.objective != "distance" and not arguments.rows.asked:
        advice = many_numbers(joint)
    if arguments.output.unit is None:
        advice += _secret_people(joint)
    reporter.notices((*joint.notices, *advice, *result.messages))
    path = arguments.output.output
    reports = arguments.reports
    reporter.done(
        "designed",
        "a channel is designed" if path is None else f"written to {path}",
        output=path,
        mechanism=result.mechanism,
        nmi=result.nmi,
        upper_bound_nmi=result.certificate.upper_bound_nmi,
        gap_nmi=result.gap_nmi,
        fallback_from=result.fallback_from,
        verified=result.verified,
        **reports.files,
    )

    def record() -> dict[str, Any]:
        from mechdesign.report.command_records import design_record

        facts = design_record(result, path) | reports.files
        facts |= {"proposals": None, "promises": None}
        if proposals is not None:
            facts["proposals"] = [asdict(proposal) for proposal in proposals.shown]
            facts["promises"] = proposals.promises
        return facts

    arguments.common.answer(record, lambda: _text(result, joint, arguments, proposals))


def _secret_people(joint: md.Joint) -> tuple[str, ...]:
    """A note where the values of the secret come again as people do: who somebody is shows the more
    the more of the records are read.
    """
    import numpy as np

    from mechdesign.leaks.person_columns import FEWEST_PEOPLE, may_name_people

    records = joint.records
    if records is None or joint.useful.people is not None:
        return ()
    if len(joint.sensitive) < FEWEST_PEOPLE:
        return ()
    counts = np.array(joint.sensitive_counts, dtype=np.int64)
    if not may_name_people(counts[counts > 1], records):
        return ()
    most = max(joint.sensitive_counts)
    name = quoted(",".join(joint.sensitive.columns))
    return (
        f"the sensitive column {name} has {len(joint.sensitive):,} values of at most {most} "
        "records each: if it names people, the promise is about one record, and all records of a "
        "person together tell more of who it is (--unit record says that this is known)",
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
        from mechdesign.report.first_screen import little_use_lines
        from mechdesign.report.terminal import design_text

        text = design_text(result, all_measures=output.all_measures)
        return "\n".join([*little_use_lines(result), text, "", *last])
    from mechdesign.report.first_screen import first_screen

    return first_screen(result, joint, last=last)


# ------------------------------------------------------------------------ design advice

TWICE = {"at_most_times": "2", "at_least_times": "0.5"}
"""The budget in words that the recommendation answers first."""

MOST = {"keep": "0.9"}
"""The share of the information that it answers next."""


def advise(
    reporter: Reporter,
    table: table_options.InputTable,
    budget: DesignBudget,
    confidence: options.ConfidenceOptions,
    search: DesignOptions,
    objective: ObjectiveOptions,
) -> None:
    """Print the recommendation of `compare` for the optimum, and the commands that
    follow from it.
    """
    from mechdesign.comparison.recommending import recommend
    from mechdesign.mechanisms.optimal import OPTIMAL
    from mechdesign.report.comparing import recommendation_text

    # Refused as a design would refuse them, for the commands that are printed repeat these options.
    search.check()
    confidence.read()
    lams = None
    if budget.lam is not None:
        lams = (float(share_of("--lam", budget.lam)),)
    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
    if bins is not None:
        raise InputError(
            "no budget given, and --bin auto needs one: use --epsilon E, or other bins"
        )
    with reporter.work("comparing", unit="rows") as work:
        # The recommendation takes notion, split and mechanism from the rows, so one row is enough.
        result = md.compare(
            joint,
            epsilons=(1.0,),
            mechanisms=(OPTIMAL,),
            notions=(budget.kind.name,),
            lams=lams,
            time_limit=search.seconds,
            progress=work.at,
        )
        advice = recommend(joint, result.rows, time_limit=search.seconds)
    reporter.notices((*joint.notices, *result.notices))
    lines = _opening_lines(recommendation_text(advice), confidence)
    lines.append("Choose a budget and design the channel:")
    written = OutputOptions(output=options.PUBLIC_CHANNEL)
    # Words say both sides of a budget, so there is no share of --lam between them.
    for words in (replace(budget, lam=None, **TWICE), replace(budget, **MOST)):
        groups = (table, words, confidence, objective, written)
        line = command_line("design", *groups, folders=True)
        lines.append(f"  {line}")
    lines.append("All mechanisms over a grid of budgets:  mechdesign compare")
    typer.echo("\n".join(lines))


def _opening_lines(
    recommendation: str, confidence: options.ConfidenceOptions
) -> list[str]:
    """What the figures are, and the figures."""
    lines = [
        "No budget was given, so no channel was designed. This is what budgets buy on this table.",
        "",
        recommendation,
        "",
    ]
    # The recommendation is about the table alone, whatever level was typed.
    if confidence.confidence is not None:
        lines += [
            "These figures are promises for the table; a promise for the population keeps less.",
            "",
        ]
    return lines
