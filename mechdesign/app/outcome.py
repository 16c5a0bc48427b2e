"""The work behind the buttons of the page: assess, compare, design. Each function runs in a process
of its own and returns plain texts and numbers, which the page shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.app.choice import RELATIVE, Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import CHANNEL, command_of, job_of, script_of
from mechdesign.core.wording import percent_of

if TYPE_CHECKING:
    from mechdesign.core.progress import Step
    from mechdesign.report.record import Report
    from mechdesign.report.rows_page import RowReport

Say = Callable[[str], None]
"""Takes a line on the progress."""

CURVE_FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Budgets of the trade-off curve, as factors."""

OUTWARDS = 1e-12
"""Relative margin of the bounds on beliefs: far above the rounding of exp and of a product."""

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True)
class ColumnSays:
    """What a column says about the protected one."""

    column: str
    text: str


@dataclass(frozen=True)
class Assessed:
    """The assessment: a line for each column, and the whole text."""

    columns: tuple[ColumnSays, ...]
    text: str


@dataclass(frozen=True)
class CurvePoint:
    """A budget and what the best channel keeps."""

    factor: float
    kept: float
    bound: float | None


@dataclass(frozen=True)
class BeliefRow:
    """The probability of a protected value before, and its bounds after a released value."""

    symbol: str
    before: str
    lowest: str
    highest: str


@dataclass(frozen=True)
class RowMove:
    """A released row and the protected value whose probability it moves most."""

    row: str
    symbol: str
    before: str
    after: str


@dataclass(frozen=True)
class Download:
    """A file that the user may take away; it is in memory until then."""

    name: str
    about: str
    media_type: str
    text: str


@dataclass(frozen=True)
class Designed:
    """A verified design, in words and as files."""

    title: str
    facts: tuple[tuple[str, str], ...]
    unchanged: tuple[tuple[str, str], ...]
    beliefs: tuple[BeliefRow, ...]
    beliefs_note: str
    worst: tuple[RowMove, ...]
    text: str
    messages: tuple[str, ...]
    files: tuple[Download, ...]
    command: str
    script: str


def assess_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """What every column says about the protected ones."""
    from mechdesign.report import wording as w

    choice.check_secret()
    say("Measuring what every column says")
    assessment = md.assess(table.frame, sensitive=list(choice.sensitive))
    columns: list[ColumnSays] = []
    for column in assessment.columns:
        disclosure = column.disclosure
        if column.identifier:
            text = "Identifies records: leave it out."
        else:
            text = (
                f"Says {w.percent(disclosure.information)} of the protected information"
            )
            if disclosure.largest_lift is not None:
                lift = disclosure.largest_lift
                text += f"; a value makes a secret up to {lift:.3g} times as probable"
            if disclosure.pinned:
                text += (
                    f"; settles it for {w.percent(disclosure.pinned)} of the records"
                )
            text += "."
            if column.rare_values:
                text += f" {w.count(column.rare_values, 'rare value')}."
        columns.append(ColumnSays(column.name, text))
    return Assessed(tuple(columns), assessment.summary())


def compare_budgets(
    table: MemoryTable, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """What the best channel keeps at several budgets."""
    choice.check()
    if choice.is_rows:
        raise md.InputError(
            "The curve is drawn for one released column; here whole rows are released."
        )
    joint = _joint(table, choice)
    if choice.used_bins:
        joint = joint.binned(choice.used_bins)
    # LIP(ln K) is the promise of a factor between 1/K and K.
    budgets = [math.log(factor) for factor in CURVE_FACTORS]
    comparison = md.compare(
        joint,
        epsilons=budgets,
        notions=("lip",),
        mechanisms=("optimal",),
        confidence=choice.confidence,
        time_limit=choice.seconds,
        progress=lambda done, total: say(f"{done} of {total} budgets"),
    )
    # With a level every budget has two rows, of which the last one is for the population.
    kept = {row.epsilon: row for row in comparison.rows}
    points: list[CurvePoint] = []
    for factor, budget in zip(CURVE_FACTORS, budgets, strict=True):
        row = kept[budget]
        points.append(CurvePoint(factor, row.nmi, row.upper_bound_nmi))
    return tuple(points)


def design_channel(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """The channel of one column, or of whole rows."""
    choice.check()
    if choice.is_rows:
        return _designed_rows(table, choice, say)
    return _designed_column(table, choice, say)


def _joint(table: MemoryTable, choice: Choice) -> md.Joint:
    return md.Joint.from_table(
        table.frame,
        sensitive=list(choice.sensitive),
        useful=list(choice.released),
        missing=choice.missing,
    )


def _progress(say: Say) -> Callable[[Step], None]:
    return lambda step: say(str(step))


def _designed_column(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    from mechdesign.channel.file import text_of
    from mechdesign.report import wording as w
    from mechdesign.report.collect import attributed, internal_report
    from mechdesign.report.content import public_report
    from mechdesign.report.first_screen import first_screen, unchanged_share
    from mechdesign.report.writing import report_text

    say("Reading the table")
    joint = _joint(table, choice)
    result = md.design(
        joint,
        choice.notion(joint),
        objective=choice.objective,
        bins=choice.used_bins or None,
        confidence=choice.confidence,
        time_limit=choice.seconds,
        progress=_progress(say),
    )
    channel = result.channel
    # The channel's own table is the one with bins.
    binned = channel.joint or joint
    say("Writing the reports")
    internal = attributed(internal_report(result, binned), channel, ())
    public = attributed(
        public_report(channel, result.notion, satisfied=result.verified), channel, ()
    )
    unchanged: tuple[tuple[str, str], ...] = ()
    share = unchanged_share(result)
    if share is not None:
        unchanged = ((choice.released[0], w.percent_at_least(float(share))),)
    return Designed(
        title=f"A channel for {w.title(choice.released)}",
        facts=_column_facts(result, binned, choice),
        unchanged=unchanged,
        beliefs=_beliefs(internal),
        beliefs_note="Computed from the channel, rounded outwards.",
        worst=(),
        text=first_screen(result, binned, last=()),
        messages=(*joint.notices, *result.messages),
        files=(
            Download(CHANNEL, "Channel file", JSON, text_of(channel)),
            Download(
                "report.html",
                "Report for those who may see the data",
                HTML,
                report_text(internal, ".html"),
            ),
            Download(
                "public-report.html",
                "Report for everybody",
                HTML,
                report_text(public, ".html"),
            ),
            Download(
                "report.txt", "Report as text", TEXT, report_text(internal, ".md")
            ),
            *_recipes(choice, table),
        ),
        command=command_of(choice, table),
        script=script_of(choice, table),
    )


def _column_facts(
    result: md.Design, joint: md.Joint, choice: Choice
) -> tuple[tuple[str, str], ...]:
    """The promise for the table and for the population, kept and bound, and the worst cell."""
    from mechdesign.report import wording as w

    secret = w.title(choice.sensitive)
    verdict = md.audit(result.channel, joint, result.notion)
    facts = [
        (
            "Promise for the table",
            f"A released value makes any {secret} "
            f"{_factors(verdict.achieved.eps_l, verdict.achieved.eps_u)} as probable "
            f"({_verdict(verdict.satisfied)}).",
        )
    ]
    population = result.population
    if population is None:
        text = "Unknown: the table has no numbers of records."
    else:
        achieved = population.achieved
        text = (
            f"With {percent_of(population.level)} confidence "
            f"{_factors(achieved.eps_l, achieved.eps_u)} as probable"
        )
        if result.confidence is None:
            text += "; this was not designed for, choose a level above to promise it."
        else:
            text += " (promised)."
    facts.append(("Promise for the population", text))
    kept = f"{w.percent_at_least(result.nmi)} of the information"
    bound = result.certificate.upper_bound_nmi
    if bound is not None:
        most = w.percent_at_most(bound)
        kept += f"; no channel with this promise keeps more than {most} (proven)"
    facts.append(("Kept", f"{kept}."))
    if result.least is not None:
        facts.append(
            (
                "Expected cost",
                f"{result.least.cost:.6g}; no channel with this promise costs less than "
                f"{result.least.cost_lower_bound:.6g} (proven).",
            )
        )
    worst = verdict.worst
    place = "Worst released value"
    if result.confidence is not None:
        # The audit of such a channel is about the population.
        place += " in the population"
    facts.append(
        (
            place,
            f"{w.label(worst.output)} makes {secret} = {w.label(worst.sensitive)} "
            f"{worst.lift:.6g} times as probable.",
        )
    )
    return tuple(facts)


def _beliefs(report: Report) -> tuple[BeliefRow, ...]:
    from mechdesign.report import wording as w

    rows: list[BeliefRow] = []
    for belief in report.promise.beliefs:
        rows.append(
            BeliefRow(
                symbol=w.label(belief.symbol),
                before=w.percent(belief.before),
                lowest=w.percent_at_least(belief.lowest),
                highest=w.percent_at_most(belief.highest),
            )
        )
    return tuple(rows)


def _designed_rows(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    from mechdesign.channel.row_file import text_of
    from mechdesign.mechanisms.rows import RowDesign
    from mechdesign.report import wording as w
    from mechdesign.report.record import to_json
    from mechdesign.report.rows import row_design_record, row_design_text
    from mechdesign.report.rows_page import report_page, report_record, row_report
    from mechdesign.report.writing import document_text

    say("Reading the table")
    joint = _joint(table, choice)
    result = md.design_rows(
        table.frame,
        sensitive=list(choice.sensitive),
        release=list(choice.released),
        given=list(choice.given),
        notion=choice.notion(joint),
        promise=choice.promise,
        objective=choice.objective,
        bins=choice.used_bins or None,
        missing=choice.missing,
        time_limit=choice.seconds,
        progress=_progress(say),
    )
    if not isinstance(result, RowDesign):
        raise TypeError("only a design with a level has boxes")
    unchanged: list[tuple[str, str]] = []
    for name, share in (result.truth or {}).items():
        unchanged.append((name, w.percent_at_least(share)))
    text = row_design_text(result)
    record = to_json(row_design_record(result, CHANNEL)) + "\n"
    say("Writing the reports")
    page = row_report(result.channel)
    html = document_text(report_record(page), lambda: report_page(page), ".html")
    return Designed(
        title=f"A channel for rows of {w.title(choice.released)}",
        facts=_row_facts(result, choice),
        unchanged=tuple(unchanged),
        beliefs=_row_beliefs(result, choice, joint),
        beliefs_note="Bounds that follow from the promise as it is achieved, for any released row.",
        worst=_row_moves(page),
        text=text,
        messages=(*joint.notices, *result.messages),
        files=(
            Download(CHANNEL, "Channel file", JSON, text_of(result.channel)),
            Download(
                "report.html", "Report for those who may see the data", HTML, html
            ),
            Download("report.txt", "Report as text", TEXT, text + "\n"),
            Download("report.json", "The same figures for programs", JSON, record),
            *_recipes(choice, table),
        ),
        command=command_of(choice, table),
        script=script_of(choice, table),
    )


def _row_facts(result: md.RowDesign, choice: Choice) -> tuple[tuple[str, str], ...]:
    from mechdesign.report import wording as w

    secret = w.title(choice.sensitive)
    achieved = result.achieved
    factors = _factors(achieved.eps_l, achieved.eps_u)
    promise = f"A released row makes any {secret} {factors} as probable"
    if choice.promise == RELATIVE:
        promise += ", compared with somebody whose given columns are known"
    worst = result.audit.worst
    row = ", ".join(w.label(text) for text in worst.row) or "any row"
    return (
        ("Promise for the table", f"{promise} ({_verdict(result.audit.satisfied)})."),
        (
            "Promise for the population",
            "None: it is built for one released column. The leakage there is larger.",
        ),
        (
            "Kept",
            f"{w.percent_at_least(result.nmi)} of the information of all released columns; no "
            f"mechanism with this promise keeps more than "
            f"{w.percent_at_most(result.upper_bound_nmi)} (proven).",
        ),
        (
            "Worst released row",
            f"{row}: makes {secret} = {w.label(worst.sensitive)} {worst.lift:.6g} times as "
            "probable.",
        ),
    )


def _row_beliefs(
    result: md.RowDesign, choice: Choice, joint: md.Joint
) -> tuple[BeliefRow, ...]:
    """Before and after for every protected value, from the exact factors of the whole channel."""
    from mechdesign.report import wording as w

    # Relative lifts start from P(s|given), of which there is one for each stratum.
    if choice.promise == RELATIVE:
        return ()
    lower = math.exp(-result.achieved.eps_l) * (1.0 - OUTWARDS)
    upper = math.exp(result.achieved.eps_u) * (1.0 + OUTWARDS)
    rows: list[BeliefRow] = []
    for symbol, share in zip(joint.sensitive.names, joint.p_s.tolist(), strict=True):
        rows.append(
            BeliefRow(
                symbol=w.label(symbol),
                before=w.percent(share),
                lowest=w.percent_at_least(share * lower),
                highest=w.percent_at_most(min(1.0, share * upper)),
            )
        )
    return tuple(rows)


def _row_moves(report: RowReport) -> tuple[RowMove, ...]:
    """The released rows that move a probability most, worst first."""
    from mechdesign.report import wording as w

    moves: list[RowMove] = []
    for worst in report.worst:
        factors: list[float] = []
        for before, after in zip(worst.prior, worst.posterior, strict=True):
            # A secret that nobody of the stratum has stays impossible.
            if before == 0.0:
                factors.append(0.0)
            elif after == 0.0:
                factors.append(math.inf)
            else:
                factors.append(abs(math.log(after / before)))
        most = factors.index(max(factors))
        moves.append(
            RowMove(
                row=", ".join(w.label(text) for text in worst.row),
                symbol=w.label(report.channel.sensitive.names[most]),
                before=w.percent(worst.prior[most]),
                after=w.percent(worst.posterior[most]),
            )
        )
    return tuple(moves)


def _recipes(choice: Choice, table: MemoryTable) -> tuple[Download, ...]:
    command = command_of(choice, table)
    return (
        Download(
            "job.toml", "Job file for mechdesign run", TEXT, job_of(choice, table)
        ),
        Download("design.py", "Python script", TEXT, script_of(choice, table)),
        Download("design.sh", "Shell command", TEXT, f"#!/bin/sh\n{command}\n"),
    )


def _factors(lower: float, upper: float) -> str:
    from mechdesign.report import wording as w

    low = w.factor_text(lower, upper=False)
    high = w.factor_text(upper, upper=True)
    return f"{low} to {high} times"


def _verdict(satisfied: bool) -> str:
    if satisfied:
        return "verified exactly"
    return "VIOLATED"
