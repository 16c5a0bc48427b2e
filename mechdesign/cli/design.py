"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what it guarantees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli import parsing
from mechdesign.cli.console import Interrupted, Reporter
from mechdesign.cli.design_rows import (
    TRUTH,
    RowOptions,
    answer_rows,
    designed,
    read_rows,
)
from mechdesign.cli.line import COMMAND, command_line, flag, option
from mechdesign.cli.report import ReportOptions
from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError
from mechdesign.notions import NOTIONS

if TYPE_CHECKING:
    from mechdesign.formats.text_options import TextOptions
    from mechdesign.mechanisms.request import DesignRequest

EXAMPLE = (
    "Example:  mechdesign design people.csv --sensitive relationship --useful occupation "
    "--epsilon 1 --lam 0.5 --output channel.json"
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
"""What the log says of a design, of all that ``--json`` says."""


@dataclass(frozen=True, kw_only=True)
class DesignBudget(o.BudgetOptions):
    """What is promised"""

    max_posterior: str | None = option(
        "SHARE", "No sensitive value becomes more probable than this."
    )
    keep: str | None = option(
        "SHARE",
        "Alone: the smallest --epsilon of four digits that keeps this share of the information.",
    )

    def check(self) -> None:
        """Find out before the table is read what cannot be meant."""
        for name, share in (
            ("--max-posterior", self.max_posterior),
            ("--keep", self.keep),
        ):
            if share is not None:
                share_of(name, share)
        if self.max_posterior is not None and self.budget:
            raise InputError(
                "--max-posterior is for every symbol alike: leave out --budget"
            )
        if self.keep is None:
            self.notion_or("alip", None if self.max_posterior is None else 1.0)
            return
        if self != DesignBudget(
            notion=self.notion, lam=self.lam, alpha=self.alpha, keep=self.keep
        ):
            raise InputError(
                "--keep looks for the smallest budget: leave out every other budget"
            )
        self._at("1")

    @property
    def kind(self) -> type[md.Notion]:
        """The class of the notion."""
        return NOTIONS[self.notion or "alip"]

    def designed(self, request: DesignRequest) -> md.Design:
        """The channel of a request with this budget in the place of its notion."""
        from mechdesign.mechanisms.budget import keeping, posterior_budget
        from mechdesign.mechanisms.designing import design_requested

        if self.keep is not None:
            return keeping(request, lambda epsilon: self._at(repr(epsilon)), self.keep)
        upper = None
        if self.max_posterior is not None:
            upper = posterior_budget(request, self.max_posterior)
        return design_requested(replace(request, notion=self.notion_or("alip", upper)))

    def _at(self, epsilon: str) -> md.Notion:
        return replace(self, keep=None, epsilon=epsilon).notion_or("alip")


@dataclass(frozen=True, kw_only=True)
class DesignOptions(o.SearchOptions):
    """How it is found"""

    mechanism: str = option(
        "NAME", "optimal, subset-response, subset-merging, complete-merging.", "optimal"
    )
    no_fallback: bool = flag(
        "Exit 3 instead of emitting subset merging when the optimum fails."
    )
    allow_identifier: bool = flag(
        "Design although nearly every record has a useful symbol of its own."
    )

    def on(self, request: DesignRequest) -> DesignRequest:
        """The request with these options."""
        return replace(
            request,
            mechanism=self.mechanism,
            method=self.method,
            enumerate=self.enumerate,
            gap=self.smallest_gap,
            time_limit=self.seconds,
            fallback=not self.no_fallback,
            allow_identifier=self.allow_identifier,
        )


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions(o.KeptOptions):
    """What is kept"""

    objective: str | None = option(
        "NAME|FILE",
        "information (free outputs), or symbols of the column itself: truth (most records as they are), distance "
        "(numbers moved least), or a CSV of costs with the symbols in header and first column. Default: information; "
        "with --release truth.",
    )
    stay: list[str] | None = option(
        "[SYMBOL=]SHARE",
        "Least probability that a symbol (or every one) is released as it is; may be repeated.",
    )
    forbid: list[str] | None = option(
        "FROM:TO", "Never release TO for FROM; may be repeated."
    )

    @property
    def named(self) -> bool:
        """Whether the objective has a name and is no file."""
        return self.name in ("information", "truth", "distance")

    @property
    def name(self) -> str:
        """The objective of a release of one column."""
        return self.objective or "information"

    def shown(self) -> ObjectiveOptions:
        """As a line that everybody may read has them: without the place of a file."""
        return self if self.named else replace(self, objective="COSTS.csv")

    def on(self, request: DesignRequest, text: TextOptions) -> DesignRequest:
        """The request with these options; `text` is how a file of costs is written."""
        from mechdesign.mechanisms.least_cost import read_costs

        symbols = request.joint.useful.names
        objective = self.name
        if not self.named:
            objective = read_costs(self.name, text)
        return replace(
            request,
            objective=objective,
            distance=self.distance,
            keep_frequencies=self.keep_frequencies,
            stay=parsing.stays_of(self.stay, symbols),
            forbid=parsing.pairs_of(self.forbid, symbols),
        )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is written"""

    output: str | None = option(
        "FILE", "The channel file.", public=o.PUBLIC_CHANNEL, names="--output -o"
    )
    public: bool = flag(
        "Write the channel file without the table and whatever else discloses it.",
        public="",
    )
    all_measures: bool = flag(
        "Say what is promised and attained in every measure of leakage.", again=False
    )

    def check(self, sources: tuple[str, ...], *, force: bool) -> None:
        """Find out before the work what cannot be written."""
        if self.public and self.output is None:
            raise InputError(
                "--public says how the channel file is written: give --output FILE too"
            )
        if self.output is not None:
            from mechdesign.core.files import check_target

            check_target(self.output, force=force, sources=sources)


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

    TABLE holds one record a row, or counts. The channel says with which probabilities to publish which
    output for each useful symbol, so that no output says much about the sensitive column.
    """
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
            rows,
            search,
            objective,
            output,
            common,
            force,
            report_path,
        )
    from mechdesign.mechanisms.binning import many_numbers
    from mechdesign.mechanisms.request import DesignRequest

    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
        # The notion is replaced by `DesignBudget.designed`: some budgets depend on the table.
        request = search.on(DesignRequest(joint, budget.kind.at(1.0), bins=bins))
        request = objective.on(request, table.text())
        request = population.on(request, confidence.unseen(joint))
        request = _after(request, table, after.channels())
    with reporter.work("searching", unit="sets", limit=search.seconds) as work:
        result = budget.designed(replace(request, progress=work.step))
    if bins is not None and result.channel.joint is not None:
        joint = result.channel.joint
    path = output.output
    written = replace(output, output=path or o.PUBLIC_CHANNEL)
    typed = (table, budget, confidence, after, search, objective, written)
    public = (table, budget, confidence, after, search, objective.shown(), written)
    result = _with_command(result, command_line("design", *public, public=True))
    if path is not None:
        result.channel.save(path, overwrite=force, public=output.public)
    if reports.asked:
        try:
            reports.save(
                result.channel,
                result,
                reporter,
                line=command_line("design", *typed),
                table=table.table,
                output=path,
                force=force,
            )
        except KeyboardInterrupt:
            if path is None:
                kept = "nothing was written"
            else:
                kept = f"{path} is written, its reports are not"
            raise Interrupted(f"interrupted; {kept}") from None
    advice: tuple[str, ...] = ()
    if objective.objective != "distance":
        advice = many_numbers(joint)
    reporter.notices((*joint.notices, *advice, *result.messages))
    from mechdesign.report.record import design_record
    from mechdesign.report.terminal import design_text

    record = design_record(result, path) | reports.files
    done = "a channel is designed"
    if path is not None:
        done = f"written to {path}"
    logged = {key: record[key] for key in (*LOGGED, *reports.files)}
    reporter.done("designed", done, **logged)
    end = _written(output, reports)
    common.answer(
        lambda: record,
        lambda: (
            f"{design_text(result, joint, all_measures=output.all_measures)}\n{end}"
        ),
    )
    return 0


def _refuse_with_rows(
    budget: DesignBudget,
    confidence: o.ConfidenceOptions,
    after: o.AfterOptions,
    search: DesignOptions,
) -> None:
    """Refuse options that a release of rows does not have."""
    refused: list[str] = []
    if budget.keep is not None:
        refused.append("--keep")
    if budget.max_posterior is not None:
        refused.append("--max-posterior")
    if confidence != o.ConfidenceOptions():
        refused.append("--confidence")
    if after.after:
        refused.append("--after")
    if search.mechanism != "optimal":
        refused.append("--mechanism")
    if refused:
        raise InputError(
            f"{refused[0]} is not built for a release of rows (--release): leave it out"
        )


def _design_rows(
    reporter: Reporter,
    table: o.InputTable,
    budget: DesignBudget,
    rows: RowOptions,
    search: DesignOptions,
    objective: ObjectiveOptions,
    output: OutputOptions,
    common: o.CommonOptions,
    force: bool,
    report_path: str | None,
) -> int:
    """Design a channel for whole rows, write it and its report, print its promise."""
    with reporter.work("reading the table"):
        joint = read_rows(table, rows)
    with reporter.work("searching", unit="nodes", limit=search.seconds) as work:
        design = designed(
            joint,
            rows,
            budget.notion_or("alip"),
            objective=objective.objective or TRUTH,
            bins=parsing.bins_of(table.bins),
            time_limit=search.seconds,
            progress=work.step,
        )
    reporter.notices(joint.notices)
    written = replace(output, output=output.output or o.PUBLIC_CHANNEL)
    groups = (table, budget, rows, search, objective.shown(), written)
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


def _written(output: OutputOptions, reports: ReportOptions) -> str:
    if output.output is not None:
        text = f"Written to {output.output}. Next:  mechdesign apply {output.output} IN.csv OUT.csv"
    elif reports.asked:
        text = "The channel was not written; --output channel.json keeps this channel."
    else:
        text = "Nothing was written; --output channel.json keeps this channel."
    if reports.asked:
        text += f"\n{reports.text()}"
    return f"\n{text}"
