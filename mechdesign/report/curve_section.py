"""The section on the trade-off curve of a report: utility and leakage over the budget.

`curve_blocks` sets a sentence on the chosen budget above pictures (`CurveChart`, drawn by
`trade_off_pictures`) and a table of the same numbers, which is folded on a page::

    budget  mechanism  kept      no channel keeps more than  largest log-lift  smallest log-lift
    0.975   optimal    79.127 %  79.299 %                    0.375             -0.6
    1.3*    optimal    85.098 %  85.108 %                    0.5               -0.8

The star marks the budget of the report. A report without a curve says why.
"""

from __future__ import annotations

from collections.abc import Mapping

from mechdesign.comparison.curve import Curve
from mechdesign.core.wording import at_most
from mechdesign.report import blocks, wording
from mechdesign.report.record import Report

CURVE_HEADER = (
    "budget",
    "mechanism",
    "kept",
    "no channel keeps more than",
    "largest log-lift",
    "smallest log-lift",
)

BOUND_COLUMN = 3
"""Place in `CURVE_HEADER` of the column that is left out where no row has a bound."""


def curve_blocks(report: Report) -> list[blocks.Block]:
    """The trade-off curve as pictures and as a table, or why there is none."""
    curve = report.curve
    if curve is None:
        return _missing_curve_blocks(report.absent)
    chosen = curve.chosen
    # A curve through a heuristic alone is computed without any optimum to bound it.
    bounded = any(row.upper_bound_nmi is not None for row in curve.rows)
    text = (
        f"The chosen budget, {chosen.epsilon:g}, keeps {wording.percent_at_least(chosen.nmi)} of "
        "the information; smaller budgets leak less and keep less."
    )
    if bounded:
        text += " No channel with the promise lies above the proven bound."
    mechanisms = dict.fromkeys(row.mechanism for row in curve.rows)
    description = (
        f"Pictures over the budget ({curve.axis}), with the chosen point marked: utility of "
        f"{' and '.join(mechanisms)}, largest gain and largest loss of belief. "
        "The numbers are in the table below."
    )
    remarks = [blocks.Remark(remark) for remark in curve.remarks]
    return [
        blocks.Text(text),
        blocks.CurveChart(description, curve),
        _curve_table(curve, bounded=bounded),
        *remarks,
    ]


def _curve_table(curve: Curve, *, bounded: bool) -> blocks.Grid:
    """The numbers of the pictures; `bounded` if some row has a proven bound."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for row in curve.rows:
        mark = ""
        if row == curve.chosen:
            mark = "*"
        texts = [
            f"{row.epsilon:g}{mark}",
            row.mechanism,
            wording.percent_at_least(row.nmi),
        ]
        if bounded:
            # No bound was proven at this budget or a larger one: an empty cell claims none.
            bound = ""
            if row.upper_bound_nmi is not None:
                bound = wording.percent_at_most(row.upper_bound_nmi)
            texts.append(bound)
        texts.append(at_most(row.max_log_lift))
        # A log-lift below 0 is rounded down: away from 0 as well.
        smallest = "0"
        if row.min_log_lift < 0.0:
            smallest = f"-{at_most(-row.min_log_lift)}"
        texts.append(smallest)
        rows.append(blocks.cells(*texts))
    header = list(CURVE_HEADER)
    if not bounded:
        del header[BOUND_COLUMN]
    caption = f"Trade-off over {curve.axis} (* is the chosen budget)"
    return blocks.Grid(caption, tuple(header), tuple(rows), left=(1,), folded=True)


def _missing_curve_blocks(reasons: Mapping[str, str]) -> list[blocks.Block]:
    """Why the report has no curve, if it gives a reason."""
    if "curve" not in reasons:
        return []
    return [blocks.Remark(reasons["curve"])]
