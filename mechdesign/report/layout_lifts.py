"""The sections with pictures: the trade-off curve, and the lifts before and after."""

from __future__ import annotations

import math

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.report.blocks import Block, Cell, CurveChart, Grid, LiftMap, Maps, Remark, Text
from mechdesign.report.promises import title
from mechdesign.report.record import Lifts, Promise, Report
from mechdesign.report.shortening import Blocked, blocked
from mechdesign.report.wording import at_most, count, percent, percent_at_most

ROUNDING = 1e-9
"""Lifts of a map are doubles: one is marked as out of bounds only if it is so by more than their rounding."""

ENDS = (2.0, 4.0, 8.0)
"""Lifts at which the colours of a map may end: no less, so that rounding does not look like leakage."""

ABOVE, BELOW = "▲", "▼"


def curve_blocks(report: Report) -> tuple[Block, ...]:
    """The curve as pictures and as a table, or why there is none."""
    curve = report.curve
    if curve is None:
        return (Remark(report.absent["curve"]),)
    chosen = curve.chosen
    mechanisms = list(dict.fromkeys(row.mechanism for row in curve.rows))
    bounded = any(row.upper_bound_nmi is not None for row in curve.rows)
    said = (
        f"The chosen budget, {chosen.epsilon:g}, keeps {percent(chosen.nmi)} of the information; smaller budgets leak "
        "less and keep less."
    )
    impossible = " No channel at all that keeps the promise lies above the proven bound." if bounded else ""
    return (
        Text(said + impossible),
        CurveChart(
            "Utility and leakage against the budget",
            f"Three charts over the budget ({curve.axis}), with the chosen point marked: utility of "
            f"{' and '.join(mechanisms)}, largest gain and largest loss of belief. The numbers are in the table below.",
            curve,
        ),
        Grid(
            f"Trade-off over {curve.axis} (* is the chosen budget)",
            (
                "budget",
                "mechanism",
                "kept",
                *(["no channel keeps more than"] if bounded else []),
                "largest log-lift",
                "smallest log-lift",
            ),
            tuple(_row(row, row == chosen, bounded) for row in curve.rows),
            left=(1,),
            folded=True,
        ),
        *[Remark(text) for text in curve.remarks],
    )


def _row(row: ComparisonRow, chosen: bool, bounded: bool) -> tuple[Cell, ...]:
    bound = row.upper_bound_nmi
    return (
        Cell(f"{row.epsilon:g}{'*' if chosen else ''}"),
        Cell(row.mechanism),
        Cell(percent(row.nmi)),
        *([Cell("" if bound is None else percent_at_most(bound))] if bounded else []),
        Cell(at_most(row.max_log_lift)),
        Cell(f"-{at_most(-row.min_log_lift)}" if row.min_log_lift < 0.0 else "0"),
    )


def lift_blocks(report: Report, lifts_before: Lifts, lifts_after: Lifts) -> tuple[Block, ...]:
    """Heat maps of the lifts of the table and of the release, and their numbers."""
    sensitive, useful = title(report.asked.sensitive_columns), title(report.asked.useful_columns)
    promise = report.promise
    before = blocked(lifts_before, useful, sensitive)
    after = blocked(lifts_after, "outputs", sensitive)
    ends = _ends(before, after)
    marks = f" {BELOW} and {ABOVE} mark lifts below and above what is allowed." if _bounded(promise) else ""
    notes = [Remark(f"{name}: {b.note}") for name, b in (("Before", before), ("After", after)) if b.note]
    return (
        Text(
            f"How many times as likely each {sensitive} becomes when {useful} itself is seen (before), and when a "
            f"released value is seen (after). Pale is less likely, dark more likely; the colours end at "
            f"{1.0 / ends:g} and {ends:g}.{marks}"
        ),
        Maps(
            (
                _map("Before", before, useful, sensitive, promise, ends),
                _map("After", after, "output", sensitive, promise, ends),
            )
        ),
        *notes,
        _numbers("Lifts before", before, useful),
        _numbers("Lifts after", after, "output"),
    )


def _bounded(promise: Promise) -> bool:
    return promise.low is not None or promise.high is not None


def _ends(*tables: Blocked) -> float:
    """The lift of the last colour: the same for both maps, so that they can be compared."""
    values = [v for table in tables for line in table.values for v in line]
    return next((end for end in ENDS if all(1.0 / end <= v <= end for v in values)), ENDS[-1])


def _marks(table: Blocked, promise: Promise) -> tuple[tuple[str, ...], ...]:
    low = -math.inf if promise.low is None else promise.low * (1.0 - ROUNDING)
    high = math.inf if promise.high is None else promise.high * (1.0 + ROUNDING)
    return tuple(
        tuple(BELOW if v < low else ABOVE if v > high else "" for v in line) for line in table.values
    )


def _map(name: str, table: Blocked, down: str, across: str, promise: Promise, ends: float) -> LiftMap:
    values = [v for line in table.values for v in line]
    marks = _marks(table, promise)
    outside = sum(mark != "" for line in marks for mark in line)
    said = (
        f" {outside:,} of {count(len(values), 'cell')} outside what is allowed." if _bounded(promise) else ""
    )
    return LiftMap(
        title=f"{name}: lift of each {across} at each {down}",
        description=f"Lifts from {min(values):.3g} to {max(values):.3g}.{said} The numbers are in a table below.",
        across=across,
        down=down,
        columns=table.columns,
        rows=table.rows,
        values=table.values,
        marks=marks,
        ends=ends,
    )


def _numbers(caption: str, table: Blocked, down: str) -> Grid:
    return Grid(
        caption,
        (down, *table.columns),
        tuple(
            (Cell(name), *(Cell(f"{v:.3g}") for v in line))
            for name, line in zip(table.rows, table.values, strict=True)
        ),
        folded=True,
    )
