"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what it guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli import parsing
from mechdesign.cli.console import NO, Interrupted, Reporter
from mechdesign.cli.line import COMMAND, command_line, flag, option
from mechdesign.cli.report import ReportOptions
from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError
from mechdesign.notions import NOTIONS

if TYPE_CHECKING:
    from mechdesign.formats.text_options import TextOptions

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

    def designed(self, joint: md.Joint, how: Mapping[str, Any]) -> md.Design:
        """The channel with this budget; `how` is what `mechanisms.design` takes besides."""
        from mechdesign.mechanisms import budget, design

        if self.keep is not None:
            return budget.keeping(
                joint, lambda epsilon: self._at(repr(epsilon)), self.keep, **how
            )
        upper = None
        if self.max_posterior is not None:
            kind = NOTIONS[self.notion or "alip"]
            upper = budget.posterior_budget(joint, kind, self.max_posterior, how)
        return design(joint, self.notion_or("alip", upper), **how)

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
    seed: int = option("N", "Seed of the search.", 0)
    allow_identifier: bool = flag(
        "Design although nearly every record has a useful symbol of its own."
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        own = {
            "mechanism": self.mechanism,
            "fallback": not self.no_fallback,
            "seed": self.seed,
        }
        return super().arguments() | own | {"allow_identifier": self.allow_identifier}


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions(o.KeptOptions):
    """What is kept"""

    objective: str = option(
        "NAME|FILE",
        "information (free outputs), or symbols of the column itself: truth (most records as they are), distance "
        "(numbers moved least), or a CSV of costs with the symbols in header and first column.",
        "information",
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
        return self.objective in ("information", "truth", "distance")

    def shown(self) -> ObjectiveOptions:
        """As a line that everybody may read has them: without the place of a file."""
        return self if self.named else replace(self, objective="COSTS.csv")

    def arguments(self, joint: md.Joint, text: TextOptions) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        from mechdesign.mechanisms.least_cost import read_costs

        names = joint.useful.names
        objective = self.objective if self.named else read_costs(self.objective, text)
        stay, forbid = (
            parsing.stays_of(self.stay, names),
            parsing.pairs_of(self.forbid, names),
        )
        return asdict(self) | {"objective": objective, "stay": stay, "forbid": forbid}


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How the heuristics work"""

    risk: str = option(
        "NAME",
        "How subset-merging and subset-response order sets: log-max, log-ratio, sum (as the paper prints "
        "it for alip), or auto.",
        "auto",
    )
    randomisation: str = option(
        "R",
        "How complete-merging randomises risky symbols: merge, uniform, or a probability for each, as in "
        "0.5,0.3,0.2.",
        "merge",
    )
    as_published: bool = flag(
        "Leave out the repair, for study: the channel may violate the notion (exit 1) and is never written."
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        chosen = parsing.randomisation_of(self.randomisation)
        return {
            "risk": self.risk,
            "randomisation": chosen,
            "as_published": self.as_published,
        }


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
    search: DesignOptions,
    objective: ObjectiveOptions,
    study: StudyOptions,
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
    how = search.arguments() | study.arguments() | confidence.arguments()
    _refuse_for_study(study, output, reports)
    output.check((table.table,), force=force)
    reports.check((table.table,), {"--output": output.output}, force=force)
    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
        whole = joint
        how |= objective.arguments(joint, table.text()) | (
            {} if bins is None else {"bins": bins}
        )
        if earlier := after.channels():
            whole = with_columns(joint, table, earlier)
            released = None if whole is joint else joint.useful.columns
            how |= {"after": earlier, "release": released}
    from mechdesign.mechanisms.binning import many_numbers

    with reporter.work("searching", unit="sets", limit=search.seconds) as work:
        result = budget.designed(
            whole, how | confidence.unseen(joint) | {"progress": work.step}
        )
    joint = (result.channel.joint or joint) if bins is not None else joint
    path = output.output
    written = replace(output, output=path or o.PUBLIC_CHANNEL)
    typed = (table, budget, confidence, after, search, objective, study, written)
    shown = (objective.shown() if each is objective else each for each in typed)
    channel, line = result.channel, command_line("design", *shown, public=True)
    record = replace(
        channel.record, provenance={**channel.record.provenance, COMMAND: line}
    )
    result = replace(result, channel=channel.with_record(record))
    if path is not None:
        result.channel.save(path, overwrite=force, public=output.public)
    if reports.asked:
        line = command_line("design", *typed)
        try:
            reports.save(
                result.channel,
                result,
                reporter,
                line=line,
                table=table.table,
                output=path,
                force=force,
            )
        except KeyboardInterrupt:
            kept = (
                "nothing was written"
                if path is None
                else f"{path} is written, its reports are not"
            )
            raise Interrupted(f"interrupted; {kept}") from None
    advice = () if objective.objective == "distance" else many_numbers(joint)
    reporter.notices((*joint.notices, *advice, *result.messages))
    from mechdesign.report.record import design_record
    from mechdesign.report.terminal import design_text

    said = design_record(result, path) | reports.files
    done = "a channel is designed" if path is None else f"written to {path}"
    reporter.done(
        "designed", done, **{key: said[key] for key in (*LOGGED, *reports.files)}
    )
    end = _written(output, study, reports)
    common.answer(
        lambda: said,
        lambda: (
            f"{design_text(result, joint, all_measures=output.all_measures)}\n{end}"
        ),
    )
    return 0 if result.verified else NO


def with_columns(
    joint: md.Joint, table: o.InputTable, earlier: list[md.Channel]
) -> md.Joint:
    """The table with the useful columns of earlier channels too, where it has them not."""
    own = joint.useful.columns
    more = tuple(
        dict.fromkeys(
            c for each in earlier for c in each.useful.columns if c not in own
        )
    )
    if not more or table.contingency or table.probabilities:
        return joint
    if table.table == "-":
        raise InputError(
            "--after a channel of another column reads the table twice: give a file, not -"
        )
    return replace(table, useful=None).joint(
        table.table, (joint.sensitive.columns, (*own, *more))
    )


def _refuse_for_study(
    study: StudyOptions, output: OutputOptions, reports: ReportOptions
) -> None:
    said = "nothing is promised that a report could state; drop --report and --public-report"
    if output.output is not None:
        said = "its channel is not written; drop --output"
    if study.as_published and (reports.asked or output.output is not None):
        raise InputError(f"--as-published is for study: {said}, or --as-published")


def _written(output: OutputOptions, study: StudyOptions, reports: ReportOptions) -> str:
    if study.as_published:
        said = "Nothing was written: a channel as published is for study."
    elif output.output is None:
        what = "The channel was not written" if reports.asked else "Nothing was written"
        said = f"{what}; --output channel.json keeps this channel."
    else:
        said = f"Written to {output.output}. Next:  mechdesign apply {output.output} IN.csv OUT.csv"
    return f"\n{said}" + (f"\n{reports.text()}" if reports.asked else "")
