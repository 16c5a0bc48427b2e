"""The text and the record of `compare`: curves, falls, recommendations and beliefs.

A curve is a notion with its split lam. `comparison_text` puts these sections one below the other:

1. An opening in plain words (`_opening`).
2. For each curve a table (`_section`) with a line for every budget and a column for every
   mechanism: the share of the information kept, then proven bounds, then the records that stay
   true.
3. The curves that fall with the budget (`fall_text`).
4. The recommended budgets, and the beliefs that a released value can cause (`_beliefs`).

The table of a curve looks like this: ::

    alip, lam 0.5: % of the information kept
      epsilon  optimal  complete-merging  at most
            1    10.52              8.31    10.53
            2    31.07             22.64    31.08

Of ways to release rows it has a line for every budget and way instead (`_way_section`).

`comparison_text` makes it section by section:

- `_section` makes such a table of the rows of one curve. Shares are rounded down, bounds up, and a
  longer grid of budgets is thinned evenly. A share is marked ``*`` where the channel was repaired
  and ``!`` where it violates its notion (`_notes` explains the marks).
- `fall_text` tells of a curve that keeps less at a larger budget.
- `recommendation_text` has the two recommended budgets, and a table of beliefs (`_beliefs`):
  ``38.9..61.1`` is the range to which a released value can move one.

`comparison_record` has the same for ``--json``, with figures that are not rounded.

*Ways with a figure* are those to keep an average (--average) and those to serve a purpose
(--objectives): a row says what the channel keeps, and what it reaches of the average or the purpose
(`_figure_section`). The bounds beside them are proven for every channel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from mechdesign.comparison.recommending import MOST, NEARLY, Recommendation, falls
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.run import Comparison
from mechdesign.core.wording import TENTH, at_least, at_most
from mechdesign.mechanisms.queries import TASK
from mechdesign.report import wording
from mechdesign.report.drawing import curve_name
from mechdesign.report.record import picked
from mechdesign.report.sentences import NAMES, NO_PROMISE_FOR_ONE, text_of

MOST_LINES = 16
"""Budgets shown for a notion; a longer grid is thinned evenly, the CSV has all of it."""

MOST_BELIEFS = 6
"""Sensitive symbols whose beliefs fit on a line."""

NOT_TOLD = "not told"
"""In the place of a variance that is infinite."""


def comparison_text(
    comparison: Comparison, recommendations: Sequence[Recommendation] | None
) -> str:
    """The text of `compare`, without a final newline."""
    rows = comparison.rows
    sections = [wording.paragraph(_opening(rows), first="")] if rows else []
    rows_by_curve: dict[tuple[str, float | None], list[ComparisonRow]] = {}
    for row in rows:
        rows_by_curve.setdefault(row.curve, []).append(row)
    for curve, members in rows_by_curve.items():
        section = _section
        if members[0].figure is not None:
            section = _figure_section
        elif _are_rows(members):
            section = _way_section
        sections.append(section(curve, members))
    pairs = falls(rows)
    if pairs:
        texts = [wording.paragraph(fall_text(before, after)) for before, after in pairs]
        sections.append("\n".join(["Falling curves", *texts]))
    if recommendations is not None:
        sections.append(recommendation_text(recommendations))
    return "\n\n".join(sections)


def _opening(rows: Sequence[ComparisonRow]) -> str:
    """What the tables show, for those who have not read of notions."""
    if rows[0].figure is not None:
        return _opening_of_figures(rows[0])
    if _are_rows(rows):
        return (
            "Ways to release rows. Unchanged is the mean share of unchanged cells, kept the "
            "information in the released columns, and the last column the total variation of "
            "released rows from those of the table."
        )
    text = (
        "How much of the information in the released column each mechanism keeps. A larger epsilon "
        "is a larger budget: more is kept, and a released value tells more of the sensitive column."
    )
    if any(row.upper_bound_nmi is not None for row in rows):
        text += " No channel whatever keeps more than 'at most' says (proven)."
    return text


def _opening_of_figures(first: ComparisonRow) -> str:
    """What the figure is, and what is proven of it, by the first row."""
    if _has_average(first):
        return (
            f"What channels keep whose {NAMES[first.notion]} is within a budget on average over "
            "released values; none keeps more than 'at most' says (proven). "
            f"{NO_PROMISE_FOR_ONE}: the factors are those of the worst released values."
        )
    if first.mechanism == TASK:
        return (
            "What channels tell of the task: the share of what the released column itself tells of "
            "it. No channel with this promise has more than 'at best' says (proven)."
        )
    return (
        f"Channels to estimate {first.mechanism}: the total variance of the estimates, times the "
        "number N of released records. No channel with this promise has less than 'at best' says "
        "(proven)."
    )


def _has_average(row: ComparisonRow) -> bool:
    """True if the notion of the row is the measure of an average: only purposes have a bound."""
    return row.figure is not None and row.figure_bound is None


def _are_rows(rows: Sequence[ComparisonRow]) -> bool:
    """Whether these are ways to release rows."""
    return any(row.total_variation is not None for row in rows)


def recommendation_text(recommendations: Sequence[Recommendation]) -> str:
    """The two answers for each notion and split, and the beliefs over the budgets."""
    named = [(advice, _name(advice)) for advice in recommendations]
    sections = [text_of("recommended", named, MOST, NEARLY)]
    for advice in recommendations:
        sections.append(_beliefs(advice))
    return "\n\n".join(sections)


def fall_text(before: ComparisonRow, after: ComparisonRow) -> str:
    """Why a heuristic may keep less at a larger budget, and the remedy."""
    return text_of("fall", before, after, curve_name(*before.curve))


def comparison_record(
    comparison: Comparison, advice: Sequence[Recommendation] | None
) -> dict[str, Any]:
    """The record of `compare --json`."""
    recommendations: list[dict[str, Any]] | None = None
    if advice is not None:
        recommendations = [_advice_record(curve_advice) for curve_advice in advice]
    falling = [fall_text(before, after) for before, after in falls(comparison.rows)]
    return {
        "rows": [asdict(row) for row in comparison.rows],
        "kept": comparison.kept,
        "recommendations": recommendations,
        "notices": [*comparison.notices, *falling],
    }


def _way_section(curve: tuple[str, float | None], rows: Sequence[ComparisonRow]) -> str:
    """A line for each way to release rows: its verdict, what is kept, what stays, and how far the
    law moves.
    """
    lines = [["epsilon", "way", "promise", "factor", "kept", "unchanged", "law moves"]]
    for row in sorted(rows, key=lambda row: row.epsilon):
        # Of boxes no law of single rows is known.
        moved = "-" if row.total_variation is None else at_most(row.total_variation, 2)
        unchanged = "-" if row.truth is None else wording.percent_at_least(row.truth)
        lines.append(
            [
                f"{row.epsilon:g}",
                row.mechanism,
                "kept" if row.satisfied else "BROKEN",
                wording.range_text(0.0 - row.min_log_lift, row.max_log_lift),
                wording.percent_at_least(row.nmi),
                unchanged,
                moved,
            ]
        )
    return _titled(curve, rows, lines)


def _figure_section(
    curve: tuple[str, float | None], rows: Sequence[ComparisonRow]
) -> str:
    """A line for each way to keep an average or to serve a purpose."""
    is_average = _has_average(rows[0])
    is_task = rows[0].mechanism == TASK
    name = "average"
    if not is_average:
        name = "of the task" if is_task else "N x variance"
    bounds = [] if is_average else ["at best"]
    lines = [["epsilon", "way", name, *bounds, "kept", "at most", "factor", "outputs"]]
    for row in sorted(rows, key=lambda row: row.epsilon):
        bound = row.upper_bound_nmi
        figures = [at_most(row.figure or 0.0)]
        if is_task:
            figures = [
                wording.percent_at_least(row.figure or 0.0),
                wording.percent_at_most(row.figure_bound or 1.0),
            ]
        elif not is_average:
            is_told = row.figure is not None and math.isfinite(row.figure)
            figures = [
                figures[0] if is_told else NOT_TOLD,
                at_least(row.figure_bound or 0.0),
            ]
        lines.append(
            [
                f"{row.epsilon:g}",
                row.mechanism,
                *figures,
                wording.percent_at_least(row.nmi),
                "-" if bound is None else wording.percent_at_most(bound),
                wording.range_text(0.0 - row.min_log_lift, row.max_log_lift),
                str(row.outputs),
            ]
        )
    return _titled(curve, rows, lines)


def _titled(
    curve: tuple[str, float | None],
    rows: Sequence[ComparisonRow],
    lines: list[list[str]],
) -> str:
    """The lines as a table, whose title has the budget if there is one alone."""
    title = f"{curve_name(*curve)}:"
    if len({row.epsilon for row in rows}) == 1:
        lines = [line[1:] for line in lines]
        if _has_average(rows[0]):
            title = f"{NAMES[rows[0].notion]}, at most {at_most(rows[0].epsilon)}:"
        else:
            title = f"{rows[0].promise().text}:"
    return "\n".join([title, *wording.aligned(lines, left=(0, 1))])


def _section(curve: tuple[str, float | None], rows: Sequence[ComparisonRow]) -> str:
    """A table over the budgets: what each mechanism keeps, proven bounds, and records
    that stay true.
    """
    mechanisms = list(dict.fromkeys(row.mechanism for row in rows))
    least_cost: dict[str, None] = {}
    by_point: dict[tuple[str, float], ComparisonRow] = {}
    # Channels with confidence and those without have bounds of their own.
    bounds: dict[tuple[float | None, float], float] = {}
    for row in rows:
        by_point[row.mechanism, row.epsilon] = row
        if row.truth is not None:
            least_cost[row.mechanism] = None
        if row.upper_bound_nmi is not None:
            bounds[row.confidence, row.epsilon] = row.upper_bound_nmi
    levels = list(dict.fromkeys(level for level, _ in bounds))

    header = ["epsilon", *mechanisms]
    for level in levels:
        name = "at most"
        if level is not None:
            name += f"@{level:g}"
        header.append(name)
    header += [f"{name}: stay true" for name in least_cost]

    budgets = sorted({row.epsilon for row in rows})
    # Every step-th budget, with the least step that leaves at most `MOST_LINES`.
    step = -(-len(budgets) // MOST_LINES)
    lines = [header]
    for epsilon in budgets[::step]:
        line = [f"{epsilon:g}"]
        for name in mechanisms:
            line.append(_kept(by_point.get((name, epsilon))))
        for level in levels:
            line.append(_percent(bounds.get((level, epsilon)), ROUND_CEILING))
        for name in least_cost:
            truth: float | None = None
            row = by_point.get((name, epsilon))
            if row is not None:
                truth = row.truth
            line.append(_percent(truth, ROUND_FLOOR))
        lines.append(line)

    heading = f"{curve_name(*curve)}: % of the information kept"
    notes = _notes(lines[1:], step)
    if notes:
        heading += f" ({'; '.join(notes)})"
    return "\n".join([heading, *wording.aligned(lines)])


def _notes(lines: Sequence[Sequence[str]], step: int) -> list[str]:
    """Explanations of the thinning and of the marks that a table has."""
    notes: list[str] = []
    if step > 1:
        notes.append(f"one budget in {step}; the CSV has all")
    # A mark is the last character of a cell (`_kept`).
    marks: set[str] = set()
    for line in lines:
        marks.update(cell[-1:] for cell in line)
    if "*" in marks:
        notes.append("* repaired")
    if "!" in marks:
        notes.append("! violates its notion")
    return notes


def _kept(row: ComparisonRow | None) -> str:
    """The share that a mechanism keeps, with its mark."""
    if row is None:
        return "-"
    mark = ""
    if not row.satisfied:
        mark = "!"
    elif row.repaired:
        mark = "*"
    return _percent(row.nmi, ROUND_FLOOR) + mark


def _percent(share: float | None, rounding: str) -> str:
    """A share in percent, rounded in the direction that claims less."""
    if share is None:
        return "-"
    # As a decimal the double 0.29 is what it is, 0.28999999999999998, and rounded down it is 28.9.
    return str((Decimal(share) * 100).quantize(TENTH, rounding=rounding))


def _name(advice: Recommendation) -> str:
    """The curve that a recommendation is about: ``alip, lam 0.5``."""
    return curve_name(advice.notion, advice.lam)


def _beliefs(advice: Recommendation) -> str:
    """For every budget, the range that a released value can move each belief to."""
    # The ranges at the largest budget, which are the widest; the widest first.
    last = advice.beliefs[-1].ranges
    by_width = sorted(range(len(last)), key=lambda s: last[s][0] - last[s][1])
    # Back in the order of the table, or in that of numbers.
    shown = wording.in_reading_order(
        sorted(by_width[:MOST_BELIEFS]), advice.symbols.__getitem__
    )
    header = ["epsilon", "kept"]
    before = ["before", ""]
    for s in shown:
        header.append(wording.label(advice.symbols[s]))
        before.append(_percent(advice.before[s], ROUND_HALF_EVEN))
    lines = [header, before]
    for point in advice.beliefs:
        line = [f"{point.epsilon:.4g}", _percent(point.nmi, ROUND_FLOOR)]
        for s in shown:
            lowest, highest = point.ranges[s]
            low = _percent(lowest, ROUND_FLOOR)
            high = _percent(highest, ROUND_CEILING)
            line.append(f"{low}..{high}")
        lines.append(line)
    heading = f"Beliefs, {_name(advice)}: % before, lowest..highest after a release"
    if len(shown) < len(last):
        heading += f"; the {MOST_BELIEFS} of {len(last)} that can change most"
    return "\n".join([heading, *wording.aligned(lines)])


def _advice_record(advice: Recommendation) -> dict[str, Any]:
    """One of the `recommendations` of `compare --json`."""
    most: dict[str, Any] | None = None
    if advice.most is not None:
        most = {
            "share": MOST,
            "epsilon": advice.most.epsilon,
            "nmi": advice.most.nmi,
            "too_little": advice.too_little,
        }
    beliefs: list[dict[str, Any]] = []
    for point in advice.beliefs:
        ranges = dict(zip(advice.symbols, point.ranges, strict=True))
        beliefs.append({"epsilon": point.epsilon, "nmi": point.nmi, "ranges": ranges})
    return {
        "notion": advice.notion,
        "lam": advice.lam,
        "at_most_twice": [
            picked(row, "mechanism", "epsilon", "nmi") for row in advice.twice
        ],
        "keeps_most": most,
        "before": dict(zip(advice.symbols, advice.before, strict=True)),
        "beliefs": beliefs,
    }
