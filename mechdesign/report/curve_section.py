"""The section on the trade-off curve: a sentence on the chosen budget, a picture, and its numbers.

The picture has the budget to the right and the share of the information that is kept upwards. It
has a line for each mechanism, that of the report first. Shaded is what is proven impossible: all
above the bound. A ring marks the chosen point. The places are computed here (`CurveChart`), in
units of the SVG, whose y grows downwards. With budgets up to 1.25 the point of budget 0.5 that
keeps 64 % stands at x = 0.4 `WIDTH` and y = 0.36 `HEIGHT`.

The table has the same numbers, and a star at the chosen budget. Where the budget limits every lift,
its factor stands beside it. A report without a curve says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mechdesign.core.wording import at_most
from mechdesign.notions import ALIP, LIP, MaxLift
from mechdesign.report import blocks, wording
from mechdesign.report.record import Report

if TYPE_CHECKING:
    from mechdesign.comparison.curve import Curve
    from mechdesign.comparison.rows import ComparisonRow

WIDTH, HEIGHT = 320.0, 180.0
"""Of the field of the picture, in units of its SVG."""

DASHES = ("", "7 4", "7 3 2 3", "3 3")
"""Of the lines of the mechanisms: lengths of strokes and gaps, none for that of the report."""

TICKS = (0.5, 1.0, 1.5, 2.0, 2.5)
"""Budgets that the axis names, as multiples of the chosen one."""

WITH_FACTOR = (ALIP.name, LIP.name, MaxLift.name)
"""Notions whose upper budget is the logarithm of a factor: a value becomes at most that many times
as probable.
"""


def curve_blocks(report: Report) -> list[blocks.Block]:
    """The trade-off curve as a picture and as a table, or why there is none."""
    curve = report.curve
    if curve is None:
        reason = report.absent.get("curve")
        return [] if reason is None else [blocks.Remark(reason)]
    chosen = curve.chosen
    text = (
        f"The chosen budget, {chosen.epsilon:g}, keeps {wording.percent_at_least(chosen.nmi)} of "
        "the information; smaller budgets leak less and keep less."
    )
    if _is_bounded(curve):
        text += " No channel with the promise lies above the proven bound."
    return [
        blocks.Text(text),
        _chart(curve),
        _table(curve),
        *map(blocks.Remark, curve.remarks),
    ]


def _is_bounded(curve: Curve) -> bool:
    """Whether some row has a proven bound: a heuristic alone has no optimum to bound it."""
    return any(row.upper_bound_nmi is not None for row in curve.rows)


def _chart(curve: Curve) -> blocks.CurveChart:
    """The picture of a curve."""
    chosen = curve.chosen
    largest = max(row.epsilon for row in curve.rows)
    mechanisms = list(dict.fromkeys(row.mechanism for row in curve.rows))
    lines: list[blocks.ChartLine] = []
    for k, mechanism in enumerate(mechanisms):
        places = [
            _place(row.epsilon, row.nmi, largest)
            for row in curve.rows
            if row.mechanism == mechanism
        ]
        dashes = DASHES[k % len(DASHES)]
        lines.append(blocks.ChartLine(mechanism, dashes, tuple(places)))
    ticks: list[tuple[float, str]] = []
    for factor in TICKS:
        epsilon = factor * chosen.epsilon
        # The largest budget of the curve is such a multiple, but for its rounding.
        if epsilon <= largest * (1.0 + 1e-9):
            ticks.append((_place(epsilon, 0.0, largest)[0], f"{epsilon:.3g}"))
    words = (
        f"Share of the information that is kept, over the budget ({curve.axis}): "
        f"{' and '.join(mechanisms)}, with the chosen point marked. The numbers are in the table "
        "below."
    )
    return blocks.CurveChart(
        words=words,
        axis=curve.axis,
        lines=tuple(lines),
        impossible=_impossible(curve.rows, chosen.confidence, largest),
        ticks=tuple(ticks),
        chosen=_place(chosen.epsilon, chosen.nmi, largest),
        width=WIDTH,
        height=HEIGHT,
    )


def _place(epsilon: float, share: float, largest: float) -> tuple[float, float]:
    """The place of a budget and a share in the field of the picture."""
    return WIDTH * epsilon / largest, HEIGHT * (1.0 - share)


def _impossible(
    rows: Sequence[ComparisonRow], confidence: float | None, largest: float
) -> tuple[tuple[float, float], ...]:
    """The corners of the area above the proven bounds of promises with this confidence."""
    # A dict, because the rows of all mechanisms at a budget share their bound.
    bounds: dict[float, float] = {}
    for row in sorted(rows, key=lambda row: row.epsilon):
        if row.upper_bound_nmi is not None and row.confidence == confidence:
            bounds[row.epsilon] = row.upper_bound_nmi
    if not bounds:
        return ()
    corners = [_place(*bound, largest) for bound in bounds.items()]
    # Back along the upper edge.
    return (*corners, (corners[-1][0], 0.0), (corners[0][0], 0.0))


def _table(curve: Curve) -> blocks.Grid:
    """The numbers of the picture, with the lifts that are reached."""
    bounded = _is_bounded(curve)
    has_factor = curve.chosen.notion in WITH_FACTOR
    header = ["budget"]
    if has_factor:
        header.append("at most times")
    header += ["mechanism", "kept"]
    if bounded:
        header.append("no channel keeps more than")
    header += ["largest log-lift", "smallest log-lift"]
    rows: list[tuple[blocks.Cell, ...]] = []
    for row in curve.rows:
        mark = "*" if row == curve.chosen else ""
        texts = [f"{row.epsilon:g}{mark}"]
        if has_factor:
            texts.append(f"{math.exp(row.eps_u or 0.0):.3g}")
        texts += [row.mechanism, wording.percent_at_least(row.nmi)]
        if bounded:
            # No bound was proven at this budget or a larger one: an empty cell claims none.
            bound = row.upper_bound_nmi
            texts.append("" if bound is None else wording.percent_at_most(bound))
        # A log-lift below 0 is rounded down: away from 0 as well.
        smallest = "0"
        if row.min_log_lift < 0.0:
            smallest = f"-{at_most(-row.min_log_lift)}"
        texts += [at_most(row.max_log_lift), smallest]
        rows.append(blocks.cells(*texts))
    caption = f"Trade-off over {curve.axis} (* is the chosen budget)"
    words = header.index("mechanism")
    return blocks.Grid(caption, tuple(header), tuple(rows), left=(words,), folded=True)
