"""A comparison in words: utilities side by side, what is recommended, and the plain record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.comparison.recommending import NEARLY, Recommendation
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.run import Comparison
from mechdesign.report.wording import about, paragraph, percent

MOST_LINES = 16
"""Budgets shown for a notion; a longer grid is thinned evenly, the CSV has all of it."""

WITHIN = f"{100 * (1 - NEARLY):g}%"


def comparison_text(comparison: Comparison, recommendations: Sequence[Recommendation] | None) -> str:
    """The report of `compare`, without a final newline."""
    rows = comparison.rows
    sections = [_section(curve, [row for row in rows if row.curve == curve]) for curve in _curves(rows)]
    if recommendations is not None:
        advice = [paragraph(_advice(found)) for found in recommendations]
        sections.append("\n".join(["Recommended", *advice]))
    return "\n\n".join(sections)


def _curves(rows: Sequence[ComparisonRow]) -> list[tuple[str, float | None]]:
    return list(dict.fromkeys(row.curve for row in rows))


def _name(notion: str, lam: float | None) -> str:
    return notion if lam is None else f"{notion}, lam {lam:g}"


def _section(curve: tuple[str, float | None], rows: Sequence[ComparisonRow]) -> str:
    mechanisms = list(dict.fromkeys(row.mechanism for row in rows))
    at = {(row.mechanism, row.epsilon): row for row in rows}
    bounds = {row.epsilon: row.upper_bound_nmi for row in rows if row.upper_bound_nmi is not None}
    budgets = sorted({row.epsilon for row in rows})
    step = -(-len(budgets) // MOST_LINES)
    header = ["epsilon", *mechanisms, *(["at most"] if bounds else [])]
    lines = [header]
    for epsilon in budgets[::step]:
        cells = [_kept(at.get((mechanism, epsilon))) for mechanism in mechanisms]
        bound = bounds.get(epsilon)
        lines.append(
            [f"{epsilon:g}", *cells, *([f"{_up(bound):.2f}" if bound is not None else "-"] if bounds else [])]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(f"{cell:>{w}}" for cell, w in zip(line, widths, strict=True)) for line in lines]
    marks = [
        f"{sign} {words}"
        for sign, words in (("*", "repaired"), ("!", "violates its notion"))
        if any(sign in cell for line in lines[1:] for cell in line)
    ]
    thinned = [f"one budget in {step}; the CSV has all"] if step > 1 else []
    notes = "; ".join([*thinned, *marks])
    title = f"{_name(*curve)}: % of H(X) kept" + (f" ({notes})" if notes else "")
    return "\n".join([title, *("  " + line for line in table)])


def _kept(row: ComparisonRow | None) -> str:
    if row is None:
        return "-"
    mark = "!" if not row.satisfied else "*" if row.repaired else ""
    return f"{100 * row.nmi:.2f}{mark}"


def _up(share: float) -> float:
    """A bound in percent, rounded up to two decimals."""
    return -(-share * 1e4 // 1) / 100


def _advice(found: Recommendation) -> str:
    name = _name(found.notion, found.lam)
    if found.epsilon is None or found.row is None:
        return f"{name}: no knee; with these budgets every further bit of epsilon pays as much as the one before."
    best = found.row.mechanism
    text = f"{name}: the knee is at epsilon {found.epsilon:g}, where {best} keeps {percent(found.row.nmi)}."
    if found.cheapest is None:
        return f"{text} The optimum was not run, so nothing is said of how near it the others are."
    if found.cheapest.mechanism == best:
        return f"{text} No faster mechanism is within {WITHIN} of it there."
    return (
        f"{text} The cheapest mechanism within {WITHIN} of it there is {found.cheapest.mechanism}, which keeps "
        f"{percent(found.cheapest.nmi)} ({about(found.seconds or 0.0)} s for the whole curve)."
    )


def comparison_record(
    comparison: Comparison,
    recommendations: Sequence[Recommendation] | None,
    *,
    output: str | None,
    plot: str | None,
    seconds: float,
) -> dict[str, Any]:
    """What `compare --json` prints."""
    return {
        "rows": [asdict(row) for row in comparison.rows],
        "kept": comparison.kept,
        "recommendations": None
        if recommendations is None
        else [_advised(found) for found in recommendations],
        "notices": list(comparison.notices),
        "output": output,
        "plot": plot,
        "seconds": seconds,
    }


def _advised(found: Recommendation) -> dict[str, Any]:
    cheapest = found.cheapest
    return {
        "notion": found.notion,
        "lam": found.lam,
        "epsilon": found.epsilon,
        "nmi": None if found.row is None else found.row.nmi,
        "mechanism": None if found.row is None else found.row.mechanism,
        "cheapest": None if cheapest is None else cheapest.mechanism,
        "cheapest_nmi": None if cheapest is None else cheapest.nmi,
        "share_of_optimum": found.share,
    }
