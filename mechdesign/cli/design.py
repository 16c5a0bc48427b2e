"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what
it guarantees.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli import parsing
from mechdesign.cli.console import Interrupted, Reporter
from mechdesign.cli.design_advice import advise
from mechdesign.cli.design_options import (
    DesignBudget,
    DesignOptions,
    ObjectiveOptions,
    OutputOptions,
)
from mechdesign.cli.design_rows import (
    TRUTH,
    RowOptions,
    answer_boxes,
    answer_rows,
    designed,
    read_rows,
)
from mechdesign.cli.line import COMMAND, command_line
from mechdesign.cli.report import ReportOptions
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanisms.merge_proposals import MergeProposal
    from mechdesign.mechanisms.request import DesignRequest

EXAMPLE = (
    "Example:  mechdesign design people.csv --sensitive relationship --useful occupation "
    "--at-most-times 2 --output channel.json"
)

TIME_SHARE = 0.2
"""Share of the time of a design with confidence that is left for proposals to merge symbols."""

LOGGED = (
    "output",
    "mechanism",
    "nmi",
    "upper_bound_nmi",
    "gap_nmi",
    "fallback_from",
    "verified",
)
"""What the log says of a design, of all that ``--json`` says."""


def design(
    reporter: Reporter,
    table: o.InputTable,
    budget: DesignBudget,
    confidence: o.ConfidenceOptions,
    after: o.AfterOptions,
    rows: RowOptions,
    search: DesignOptions,
    objective: ObjectiveOptions,
    output: OutputOptions,
    reports: ReportOptions,
    common: o.CommonOptions,
    force: o.Force = False,
) -> int:
    """Compute the best private channel for a table, verify it exactly, and say what it guarantees.

    TABLE holds one record a row, or counts. The channel says with which probabilities to publish
    which output for each useful symbol, so that no output says much about the sensitive column.
    """
    # A script that forgets the budget gets an error; a person at a prompt gets the recommendation.
    writes = output.output is not None or reports.asked or common.as_json
    if budget.is_missing and not (writes or rows.asked or after.after):
        advise(reporter, table, budget, confidence, search, objective)
        return 0
    budget.check()
    search.check()
    population = confidence.read()
    output.check((table.table,), force=force)
    reports.check((table.table,), {"--output": output.output}, force=force)
    rows.refuse_alone()
    if rows.asked:
        _refuse_with_rows(budget, confidence, after, search)
        report_path = None
        if reports.asked:
            report_path = reports.row_report
        return _design_rows(
            reporter,
            table,
            budget,
            population.level,
            rows,
            search,
            objective,
            output,
            common,
            force,
            report_path,
            confidence.secrets,
        )
    if rows.merging:
        if population.level is None:
            raise InputError(
                "--merge-rare needs --confidence: without it no symbol is too rare"
            )
        report_path = None
        if reports.asked:
            report_path = reports.row_report
        _refuse_with_rows(budget, confidence, after, search)
        return _design_merged(
            reporter,
            table,
            budget,
            population.level,
            rows,
            search,
            output,
            common,
            force,
            report_path,
            confidence.secrets,
        )
    from mechdesign.mechanisms.request import DesignRequest

    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
        # The notion is replaced by `DesignBudget.designed`: some budgets depend on the table.
        request = search.on(DesignRequest(joint, budget.kind.at(1.0), bins=bins))
        request = objective.on(request, table, table.text())
        request = population.on(request, confidence.unseen(joint))
        request = _after(request, table, after.channels())
    started = time.perf_counter()
    limit = search.seconds
    if limit is not None and population.level is not None:
        # The rest is for what merging would keep, should the channel keep little.
        limit *= 1.0 - TIME_SHARE
    request = replace(request, time_limit=limit)
    with reporter.work("searching", unit="sets", limit=search.seconds) as work:
        result = budget.designed(replace(request, progress=work.step))
        proposals = _proposals(result, started, search.seconds)
    if bins is not None and result.channel.joint is not None:
        joint = result.channel.joint
    written = replace(output, output=output.output or o.PUBLIC_CHANNEL)
    typed = (table, budget, confidence, after, search, objective, written)
    public = (table, budget, confidence, after, search, objective.shown(), written)
    result = _with_command(result, command_line("design", *public, public=True))
    if output.output is not None:
        result.channel.save(output.output, overwrite=force, public=output.public)
    if reports.asked:
        line = command_line("design", *typed)
        _save_reports(
            reporter, reports, result, line, table.table, output.output, force
        )
    _answer(reporter, result, joint, objective, output, reports, common, proposals)
    return 0


def _proposals(
    result: md.Design, started: float, limit: float | None
) -> tuple[MergeProposal, ...]:
    """What merging would keep, within the rest of the time."""
    from mechdesign.mechanisms.merge_proposals import merge_proposals

    if result.confidence is None:
        return ()
    seconds = o.SearchOptions().seconds or 0.0
    if limit is not None:
        seconds = limit
    now = time.perf_counter()
    end = max(started + seconds, now)
    return merge_proposals(result, min(end, now + TIME_SHARE * seconds))


def _save_reports(
    reporter: Reporter,
    reports: ReportOptions,
    result: md.Design,
    line: str,
    table: str,
    path: str | None,
    force: bool,
) -> None:
    """Write the reports; the channel file is kept if the user stops here."""
    try:
        reports.save(
            result.channel,
            result,
            reporter,
            line=line,
            table=table,
            output=path,
            force=force,
        )
    except KeyboardInterrupt:
        kept = "nothing was written"
        if path is not None:
            kept = f"{path} is written, its reports are not"
        raise Interrupted(f"interrupted; {kept}") from None


def _answer(
    reporter: Reporter,
    result: md.Design,
    joint: md.Joint,
    objective: ObjectiveOptions,
    output: OutputOptions,
    reports: ReportOptions,
    common: o.CommonOptions,
    proposals: tuple[MergeProposal, ...],
) -> None:
    """Print notes, and the design as text or as one JSON object."""
    from mechdesign.mechanisms.binning import many_numbers
    from mechdesign.report.record import design_record

    advice: tuple[str, ...] = ()
    if objective.objective != "distance":
        advice = many_numbers(joint)
    reporter.notices((*joint.notices, *advice, *result.messages))
    path = output.output
    record = design_record(result, path) | reports.files
    if result.confidence is not None:
        record["proposals"] = [asdict(proposal) for proposal in proposals]
    done = "a channel is designed"
    if path is not None:
        done = f"written to {path}"
    logged = {key: record[key] for key in (*LOGGED, *reports.files)}
    reporter.done("designed", done, **logged)
    common.answer(
        lambda: record, lambda: _text(result, joint, output, reports, proposals)
    )


def _text(
    result: md.Design,
    joint: md.Joint,
    output: OutputOptions,
    reports: ReportOptions,
    proposals: tuple[MergeProposal, ...],
) -> str:
    """The first screen; or all sections with --full, and with --all-measures, which is
    one of them.
    """
    last = _written(output, reports)
    if proposals and result.confidence is not None:
        from mechdesign.report.proposals import proposal_lines

        lines = proposal_lines(proposals, result.nmi, result.confidence.level)
        last = [*lines, "", *last]
    if output.full or output.all_measures:
        from mechdesign.report.terminal import design_text

        text = design_text(result, joint, all_measures=output.all_measures)
        return "\n".join([text, "", *last])
    from mechdesign.report.first_screen import first_screen

    return first_screen(result, joint, last=last)


def _refuse_with_rows(
    budget: DesignBudget,
    confidence: o.ConfidenceOptions,
    after: o.AfterOptions,
    search: DesignOptions,
) -> None:
    """Refuse options that a release of rows does not have."""
    refused: list[str] = []
    if budget.average is not None:
        refused.append("--average")
    if budget.keep is not None:
        refused.append("--keep")
    if budget.max_posterior is not None:
        refused.append("--max-posterior")
    if confidence.known_shares is not None:
        refused.append("--known-shares")
    if confidence.symbols is not None:
        raise InputError(
            "boxes have a place for every symbol that no record has, so the promise covers them "
            "without a list: leave --symbols out"
        )
    if after.after:
        refused.append("--after")
    if search.mechanism != "optimal":
        refused.append("--mechanism")
    if refused:
        raise InputError(
            f"{refused[0]} is not built for a release of rows (--release, --merge-rare): leave "
            "it out"
        )


def _design_rows(
    reporter: Reporter,
    table: o.InputTable,
    budget: DesignBudget,
    level: float | None,
    rows: RowOptions,
    search: DesignOptions,
    objective: ObjectiveOptions,
    output: OutputOptions,
    common: o.CommonOptions,
    force: bool,
    report_path: str | None,
    secrets: str | None,
) -> int:
    """Design a channel for whole rows, write it and its report, print its promise."""
    from mechdesign.mechanisms.box_result import BoxDesign

    with reporter.work("reading the table"):
        joint = read_rows(table, rows)
        _check_listed(secrets, joint)
    with reporter.work("searching", unit="nodes", limit=search.seconds) as work:
        design = designed(
            joint,
            rows,
            budget.notion_or("alip"),
            objective=objective.objective or TRUTH,
            bins=parsing.bins_of(table.bins),
            time_limit=search.seconds,
            progress=work.step,
            confidence=level,
        )
    reporter.notices(joint.notices)
    written = replace(output, output=output.output or o.PUBLIC_CHANNEL)
    confident = o.ConfidenceOptions()
    if level is not None:
        confident = o.ConfidenceOptions(confidence=repr(level), secrets=secrets)
    groups = (table, budget, confident, rows, search, objective.shown(), written)
    if isinstance(design, BoxDesign):
        return answer_boxes(
            reporter,
            design,
            common,
            output=output.output,
            public=output.public,
            force=force,
            groups=groups,
            report_path=report_path,
        )
    return answer_rows(
        reporter,
        design,
        common,
        output=output.output,
        public=output.public,
        force=force,
        groups=groups,
        report_path=report_path,
    )


def _design_merged(
    reporter: Reporter,
    table: o.InputTable,
    budget: DesignBudget,
    level: float,
    rows: RowOptions,
    search: DesignOptions,
    output: OutputOptions,
    common: o.CommonOptions,
    force: bool,
    report_path: str | None,
    secrets: str | None,
) -> int:
    """Design a channel for a column whose symbols are merged on a slice."""
    from mechdesign.mechanisms.box_design import BoxRequest, design_boxes
    from mechdesign.tables.records import Records

    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
        _check_listed(secrets, joint)
        if bins is not None:
            raise InputError(
                "--merge-rare and --bin auto exclude each other: leave one out"
            )
    with reporter.work("searching", unit="sets", limit=search.seconds) as work:
        request = BoxRequest(
            notion=budget.notion_or("alip"),
            level=level,
            rare=rows.count("--rare", rows.rare) or 0,
            merge_below=rows.merge_below(),
            progress=work.step,
        )
        if search.seconds is not None:
            request = replace(request, time_limit=search.seconds)
        design = design_boxes(
            Records.from_joint(joint, [joint.useful.columns]), request
        )
    reporter.notices(joint.notices)
    written = replace(output, output=output.output or o.PUBLIC_CHANNEL)
    confident = o.ConfidenceOptions(confidence=repr(level), secrets=secrets)
    return answer_boxes(
        reporter,
        design,
        common,
        output=output.output,
        public=output.public,
        force=force,
        groups=(table, budget, confident, rows, search, written),
        report_path=report_path,
    )


def _check_listed(secrets: str | None, joint: md.Joint) -> None:
    """Compare the list of sensitive values, if there is one, with the table."""
    from mechdesign.tables.confidence_files import check_secrets

    if secrets is not None:
        check_secrets(secrets, joint)


def _after(
    request: DesignRequest, table: o.InputTable, earlier: list[md.Channel]
) -> DesignRequest:
    """The request with the earlier releases, on the table with their useful columns."""
    if not earlier:
        return request
    joint = request.joint
    whole = with_columns(joint, table, earlier)
    released = None
    if whole is not joint:
        released = joint.useful.columns
    return replace(request, joint=whole, after=earlier, release=released)


def _with_command(result: md.Design, line: str) -> md.Design:
    """The design with the command that makes it again in the record of its channel."""
    channel = result.channel
    provenance = {**channel.record.provenance, COMMAND: line}
    record = replace(channel.record, provenance=provenance)
    return replace(result, channel=channel.with_record(record))


def with_columns(
    joint: md.Joint, table: o.InputTable, earlier: list[md.Channel]
) -> md.Joint:
    """The table with the useful columns of earlier channels too, where it lacks some of them."""
    columns = list(joint.useful.columns)
    for channel in earlier:
        columns += [name for name in channel.useful.columns if name not in columns]
    is_complete = len(columns) == len(joint.useful.columns)
    if is_complete or table.contingency or table.probabilities:
        return joint
    if table.table == "-":
        raise InputError(
            "--after a channel of another column reads the table twice: give a file, not -"
        )
    return replace(table, useful=None).joint(
        table.table, (joint.sensitive.columns, tuple(columns))
    )


def _written(output: OutputOptions, reports: ReportOptions) -> list[str]:
    """Lines on the files that were written and the next command."""
    if output.output is not None:
        lines = [
            f"Written to {output.output}. Next:  mechdesign apply {output.output} IN.csv OUT.csv"
        ]
    elif reports.asked:
        lines = [
            "The channel was not written; --output channel.json keeps this channel."
        ]
    else:
        lines = ["Nothing was written; --output channel.json keeps this channel."]
    if reports.asked:
        lines += reports.text().split("\n")
    return lines
