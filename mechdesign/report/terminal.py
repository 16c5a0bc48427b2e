"""What commands print for people: a design, a verdict, a channel, its measures, a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from mechdesign.auditing.measures import ChannelMeasures, measure
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.comparison.recommending import MOST, NEARLY, Recommendation, falls
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.run import Comparison
from mechdesign.mechanisms.result import Design
from mechdesign.report import blocks as b
from mechdesign.report import wording as w
from mechdesign.report.collect import remarks_of
from mechdesign.report.content import (
    achieved_texts,
    names_of,
    summary_report,
    worst_text,
)
from mechdesign.report.document import amount, lead_of, measure_blocks, summary_sections
from mechdesign.report.plots import curve_name
from mechdesign.report.record import Report
from mechdesign.report.sentences import outwards, text_of
from mechdesign.tables.joint import Joint

DIGITS_OF_QUOTIENTS = Context(prec=62)
"""Every quotient by a power of two up to 2^62 ends within 62 digits; other denominators round there."""

MOST_LINES = 16
"""Budgets shown for a notion; a longer grid is thinned evenly, the CSV has all of it."""

MOST_BELIEFS = 6
"""Sensitive symbols whose beliefs fit on a line."""

OF_OUTPUTS = (
    "probability", "max_lift", "min_lift", "l1_lift", "chi2_lift", "l1_lift_inverse", "chi2_lift_inverse"
)  # fmt: skip
"""The measures of each output that need no order."""


def design_text(design: Design, joint: Joint, *, all_measures: bool = False) -> str:
    """What `design` prints: what matters first, derived measures last; without a final newline."""
    attained = measure(design.channel, joint).leakage if all_measures else {}
    report = summary_report(
        design, joint, attained=attained, remarks=remarks_of(design)
    )
    parts = [lead_of(report.asked)]
    for section in summary_sections(_shortened(report)):
        lines = [line for block in section.blocks for line in _lines(block)]
        if section.anchor == "kept":
            made_by = f"Mechanism: {design.mechanism}, by {design.method} ({design.seconds:.2f} s)."
            lines.append(w.paragraph(made_by))
        parts += ["", section.title, *lines]
    return "\n".join(
        [*parts, "", "Other measures of leakage", *_measures(report, all_measures)]
    )


def _shortened(report: Report) -> Report:
    """The report with at most `MOST_LINES` beliefs, those that can move most, and symbols, those that stay least."""
    least = report.least
    if least is not None and len(least.by_symbol) > MOST_LINES:
        lowest = tuple(sorted(least.by_symbol, key=lambda each: each[1])[:MOST_LINES])
        report = replace(report, least=replace(least, by_symbol=lowest))
    beliefs = report.promise.beliefs
    if len(beliefs) <= MOST_LINES:
        return report
    by_change = sorted(
        beliefs,
        key=lambda seen: min(seen.before - seen.highest, seen.lowest - seen.before),
    )
    chosen = tuple(
        belief for belief in beliefs if belief in set(by_change[:MOST_LINES])
    )
    remark = f"Those {MOST_LINES} of {len(beliefs):,} are shown whose probability can change most; --report has all."
    promise = replace(
        report.promise, beliefs=chosen, verdict=f"{report.promise.verdict} {remark}"
    )
    return replace(report, promise=promise)


def _lines(block: b.Block) -> list[str]:
    """A block of the summary as lines of text."""
    match block:
        case b.Text(text) | b.Remark(text):
            return [w.paragraph(text)]
        case b.Bullets(items):
            return [w.item(text) for text in items]
        case b.Grid():
            rows = [block.header, *([cell.text for cell in row] for row in block.rows)]
            return w.aligned(rows, left=(*range(block.heads), *block.left))
        case _:
            raise TypeError(f"a summary holds no {type(block).__name__}")


def _measures(report: Report, all_measures: bool) -> list[str]:
    """The derived measures: the promise's own for every channel, then what this channel attains."""
    if all_measures:
        return [
            line for block in measure_blocks(report.promise) for line in _lines(block)
        ]
    bounds = [
        (bound.measure.split(" (")[0], amount(bound.promised, bound.unit))
        for bound in report.promise.bounds
        if bound.promised is not None and bound.unit
    ]
    return [
        text_of("follows", bounds, report.promise.achieved, names_of(report.asked)[0])
    ]


def audit_text(audit: Audit, population: Sequence[str] = ()) -> str:
    """Verdict, achieved budgets, the worst cell and what holds for the population, without a final newline."""
    return text_of(
        "audit",
        audit,
        achieved_texts(audit.achieved, audit.used),
        worst_text(audit.worst),
        population,
    )


def matrix_csv(channel: Channel) -> str:
    """The matrix W(y|x): useful symbols down, outputs along, exact decimals where they end; no final newline."""
    rows = [[",".join(channel.useful.columns), *channel.outputs]]
    d, digits = Decimal(channel.denominator), DIGITS_OF_QUOTIENTS
    for name, row in zip(channel.useful.names, channel.rows, strict=True):
        shares = (digits.divide(Decimal(entry), d).normalize(digits) for entry in row)
        rows.append([name, *(f"{share:f}" for share in shares)])
    return w.csv_text(rows).removesuffix("\n")


def channel_text(channel: Channel) -> str:
    """Both directions without the zeros: what each symbol becomes, and what each output says."""
    rows = zip(channel.useful.names, channel.integers.entries(), strict=True)
    published = {
        name: {channel.outputs[y]: n / channel.denominator for y, n in row}
        for name, row in rows
    }
    return text_of("channel", channel, published)


def measures_text(measures: ChannelMeasures, per_output: bool = False) -> str:
    """What is kept, what is said about S, and what theorems promise; `per_output` also of every output."""
    table = [["output", *OF_OUTPUTS]] if per_output else []
    for out in measures.outputs if per_output else ():
        table.append(
            [
                w.label(out.output),
                *(outwards(getattr(out, name), name) for name in OF_OUTPUTS),
            ]
        )
    return text_of("measures", measures, table)


def comparison_text(
    comparison: Comparison, recommendations: Sequence[Recommendation] | None
) -> str:
    """The report of `compare`, without a final newline."""
    rows = comparison.rows
    curves = dict.fromkeys(row.curve for row in rows)
    sections = [
        _section(curve, [row for row in rows if row.curve == curve]) for curve in curves
    ]
    fallen = falls(rows)
    if fallen:
        sections.append(
            "\n".join(
                ["Falling curves", *(w.paragraph(fall_text(*fall)) for fall in fallen)]
            )
        )
    if recommendations is not None:
        named = [
            (found, curve_name(found.notion, found.lam)) for found in recommendations
        ]
        sections.append(text_of("recommended", named, MOST, NEARLY))
        sections += [_beliefs(found) for found in recommendations]
    return "\n\n".join(sections)


def _section(curve: tuple[str, float | None], rows: Sequence[ComparisonRow]) -> str:
    mechanisms = dict.fromkeys(row.mechanism for row in rows)
    at = {(row.mechanism, row.epsilon): row for row in rows}
    bounds = [((row.confidence, row.epsilon), row.upper_bound_nmi) for row in rows]
    proven = {key: bound for key, bound in bounds if bound is not None}
    levels = dict.fromkeys(level for level, _ in proven)
    budgets = sorted({row.epsilon for row in rows})
    step = -(-len(budgets) // MOST_LINES)
    own = dict.fromkeys(row.mechanism for row in rows if row.truth is not None)
    known = ("at most" if level is None else f"at most@{level:g}" for level in levels)
    lines = [["epsilon", *mechanisms, *known, *(f"{name}: stay true" for name in own)]]
    for epsilon in budgets[::step]:
        kept = [_kept(at.get((mechanism, epsilon))) for mechanism in mechanisms]
        most = [
            _percent(proven.get((level, epsilon)), ROUND_CEILING) for level in levels
        ]
        true = [at.get((name, epsilon)) for name in own]
        stays = [_percent(row and row.truth, ROUND_FLOOR) for row in true]
        lines.append([f"{epsilon:g}", *kept, *most, *stays])
    said = {
        f"one budget in {step}; the CSV has all": step > 1,
        "* repaired": any("*" in cell for line in lines[1:] for cell in line),
        "! violates its notion": any(
            "!" in cell for line in lines[1:] for cell in line
        ),
    }
    notes = "; ".join(text for text, holds in said.items() if holds)
    heading = f"{curve_name(*curve)}: % of the information kept" + (
        f" ({notes})" if notes else ""
    )
    return "\n".join([heading, *w.aligned(lines)])


def _kept(row: ComparisonRow | None) -> str:
    mark = (
        "" if row is None else "!" if not row.satisfied else "*" if row.repaired else ""
    )
    return _percent(row and row.nmi, ROUND_FLOOR) + mark


def _percent(share: float | None, rounding: str, digits: str = "0.01") -> str:
    """A share in percent, rounded in the direction that claims less."""
    return (
        "-"
        if share is None
        else str((Decimal(share) * 100).quantize(Decimal(digits), rounding=rounding))
    )


def _beliefs(found: Recommendation) -> str:
    """The curve of beliefs: what a released value can make of each, by budget."""
    last = found.beliefs[-1].ranges
    by_change = sorted(range(len(last)), key=lambda s: last[s][0] - last[s][1])
    shown = sorted(by_change[:MOST_BELIEFS])
    lines = [["epsilon", "kept", *(w.label(found.symbols[s]) for s in shown)]]
    lines.append(
        [
            "before",
            "",
            *(_percent(found.before[s], ROUND_HALF_EVEN, "0.1") for s in shown),
        ]
    )
    for at in found.beliefs:
        lows = [
            _percent(share, ROUND_FLOOR, "0.1")
            for share in (at.nmi, *(at.ranges[s][0] for s in shown))
        ]
        highs = [_percent(at.ranges[s][1], ROUND_CEILING, "0.1") for s in shown]
        lines.append(
            [
                f"{at.epsilon:.4g}",
                lows[0],
                *map("..".join, zip(lows[1:], highs, strict=True)),
            ]
        )
    part = (
        ""
        if len(shown) == len(last)
        else f"; the {MOST_BELIEFS} of {len(last)} that can change most"
    )
    heading = f"Beliefs, {curve_name(found.notion, found.lam)}: % before, lowest..highest after a release"
    return "\n".join([f"{heading}{part}", *w.aligned(lines)])


def fall_text(before: ComparisonRow, after: ComparisonRow) -> str:
    """Why a heuristic may keep less at a larger budget, and what to do about it."""
    return text_of("fall", before, after, curve_name(*before.curve))


def comparison_record(
    comparison: Comparison, advice: Sequence[Recommendation] | None
) -> dict[str, Any]:
    """What `compare --json` prints of the rows."""
    return {
        "rows": [asdict(row) for row in comparison.rows],
        "kept": comparison.kept,
        "recommendations": None
        if advice is None
        else [_advised(found) for found in advice],
        "notices": [
            *comparison.notices,
            *(fall_text(*fall) for fall in falls(comparison.rows)),
        ],
    }


def _advised(found: Recommendation) -> dict[str, Any]:
    most, twice = (
        found.most,
        [w.picked(row, "mechanism", "epsilon", "nmi") for row in found.twice],
    )
    if most is not None:
        most = {
            "share": MOST,
            **w.picked(most, "epsilon", "nmi"),
            "too_little": found.too_little,
        }
    record = {
        **w.picked(found, "notion", "lam"),
        "at_most_twice": twice,
        "keeps_most": most,
    }
    ranges = (dict(zip(found.symbols, at.ranges, strict=True)) for at in found.beliefs)
    beliefs = zip(found.beliefs, ranges, strict=True)
    record["before"] = dict(zip(found.symbols, found.before, strict=True))
    record["beliefs"] = [
        w.picked(at, "epsilon", "nmi") | {"ranges": each} for at, each in beliefs
    ]
    return record
