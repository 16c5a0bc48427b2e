"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what it guarantees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mechdesign.cli import options as o
from mechdesign.cli.console import NO, Interrupted, Reporter
from mechdesign.cli.line import COMMAND, command_line, flag, option
from mechdesign.cli.parsing import joint_of
from mechdesign.cli.report import ReportPaths, check_writable
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.tables.joint import Joint

EXAMPLE = (
    "Example:  mechdesign design people.csv --sensitive relationship --useful occupation "
    "--epsilon 1 --lam 0.5 --output channel.json"
)


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is written"""

    output: str | None = option(
        "--output -o", "FILE", "Write the channel file here.", public=o.PUBLIC_CHANNEL
    )
    public: bool = flag(
        "--public", "Write the channel file without the table and whatever else discloses it.", public=""
    )

    all_measures: bool = flag(
        "--all-measures",
        "Say what follows for every measure of leakage, and what this channel attains.",
        again=False,
    )

    def check(self, sources: tuple[str, ...], *, force: bool) -> None:
        """Find out before the work what cannot be written."""
        if self.public and self.output is None:
            raise InputError("--public says how the channel file is written: give --output FILE too")
        if self.output is not None:
            from mechdesign.core.files import check_target

            check_target(self.output, force=force, sources=sources)
            check_writable(self.output)


def design(
    reporter: Reporter,
    table: o.InputTable,
    budget: o.DesignBudget,
    confidence: o.ConfidenceOptions,
    after: o.AfterOptions,
    search: o.DesignOptions,
    objective: o.ObjectiveOptions,
    study: o.StudyOptions,
    output: OutputOptions,
    reports: o.ReportOptions,
    common: o.CommonOptions,
    force: o.Force = False,
) -> int:
    """Compute the best private channel for a table, verify it exactly, and say what it guarantees.

    TABLE holds one record a row, or counts. The channel says with which probabilities to publish which
    output for each useful symbol, so that no output says much about the sensitive column.
    """
    budget.check()
    how = search.arguments() | study.arguments() | confidence.arguments()
    paths = ReportPaths(reports.report, reports.public_report, force)
    _refuse_for_study(study, output, paths)
    output.check((table.table,), force=force)
    paths.check((table.table,), {"--output": output.output})
    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
        whole = joint
        how |= objective.arguments(joint, table.text()) | ({} if bins is None else {"bins": bins})
        if earlier := after.channels():
            whole = with_columns(joint, table, earlier)
            released = None if whole is joint else joint.useful.columns
            how |= {"after": earlier, "release": released}
    from mechdesign.mechanisms.binning import many_numbers

    with reporter.work("searching", unit="sets", limit=search.seconds) as work:
        result = budget.designed(whole, how | confidence.unseen(joint) | {"progress": work.step})
    joint = (result.channel.joint or joint) if bins is not None else joint
    path = output.output
    written = replace(output, output=path or o.PUBLIC_CHANNEL)
    typed = (table, budget, confidence, after, search, objective, study, written)
    shown = (table, budget, confidence, after, search, objective.shown(), study, written)
    result = replace(
        result, channel=_remembering(result.channel, command_line("design", *shown, public=True))
    )
    if path is not None:
        result.channel.save(path, overwrite=force, public=output.public)
    if paths.asked:
        line = command_line("design", *typed)
        try:
            paths.save(result.channel, result, reporter, line=line, table=table.table, output=path)
        except KeyboardInterrupt:
            kept = "nothing was written" if path is None else f"{path} is written, its reports are not"
            raise Interrupted(f"interrupted; {kept}") from None
    reporter.notices((*joint.notices, *many_numbers(joint), *result.messages))
    reporter.done(
        "designed",
        "a channel is designed" if path is None else f"written to {path}",
        output=path,
        **paths.record(),
        mechanism=result.mechanism,
        nmi=result.nmi,
        upper_bound_nmi=result.certificate.upper_bound_nmi,
        gap_nmi=result.certificate.gap_nmi,
        fallback_from=result.fallback_from,
        verified=result.verified,
    )
    from mechdesign.report.record import design_record
    from mechdesign.report.terminal import design_text

    common.answer(
        lambda: design_record(result, path) | paths.record(),
        lambda: "\n".join(
            [design_text(result, joint, all_measures=output.all_measures), _written(output, study, paths)]
        ),
    )
    return 0 if result.verified else NO


def with_columns(joint: Joint, table: o.InputTable, earlier: list[Channel]) -> Joint:
    """The table with the useful columns of earlier channels too, where it has them not."""
    own = joint.useful.columns
    more = tuple(dict.fromkeys(c for each in earlier for c in each.useful.columns if c not in own))
    if not more or table.contingency or table.probabilities:
        return joint
    if table.table == "-":
        raise InputError("--after a channel of another column reads the table twice: give a file, not -")
    return joint_of(table.table, **table.typed(useful=None), known=(joint.sensitive.columns, (*own, *more)))


def _refuse_for_study(study: o.StudyOptions, output: OutputOptions, paths: ReportPaths) -> None:
    if study.as_published and output.output is not None:
        raise InputError(
            "--as-published is for study: its channel is not written; drop --output, or --as-published"
        )
    if study.as_published and paths.asked:
        raise InputError(
            "--as-published is for study: nothing is promised that a report could state; drop --report and "
            "--public-report, or --as-published"
        )


def _remembering(channel: Channel, line: str) -> Channel:
    """The channel, with the command that makes it again in what it knows of its origin."""
    origin = {**channel.record.provenance, COMMAND: line}
    return channel.with_record(replace(channel.record, provenance=origin))


def _written(output: OutputOptions, study: o.StudyOptions, paths: ReportPaths) -> str:
    if study.as_published:
        said = "Nothing was written: a channel as published is for study."
    elif output.output is None:
        what = "The channel was not written" if paths.asked else "Nothing was written"
        said = f"{what}; --output channel.json keeps this channel."
    else:
        said = f"Written to {output.output}. Next:  mechdesign apply {output.output} IN.csv OUT.csv"
    return f"\n{said}" + (f"\n{paths.text()}" if paths.asked else "")
