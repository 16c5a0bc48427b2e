"""The pictures of an HTML report as static SVG, drawn by Altair and vl-convert without a browser.

Colour only repeats what position, numbers or marks say: the colours of a heat map get darker all along, so they keep
their order in grey and for colour-blind readers; lines differ in their dashes.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.report.blocks import CurveChart, LiftMap
from mechdesign.report.svg import tidy

NEEDED = ("altair", "vl_convert")

INK, MAIN, OTHER, GUIDE, BAND = "#1b1b1b", "#1f3a5f", "#b35900", "#707070", "#e6e6e6"

LINES: tuple[tuple[str, list[int]], ...] = ((MAIN, [1, 0]), (OTHER, [6, 3]))
"""Colour and dashes of the chosen mechanism, and of the optimum beside it."""

BOUND_DASHES, BUDGET_DASHES = [2, 2], [1, 3]

PANEL_WIDTH, PANEL_HEIGHT = 260, 190

CELL_WIDTH, CELL_HEIGHT, LOW_CELL_HEIGHT = 46, 22, 13
"""Pixels of a cell of a heat map; the last one where there are many rows."""

MANY_ROWS = 40

LONGEST_AXIS_LABEL, LONGEST_TOP_LABEL = 130, 90
"""Pixels beside and above a heat map; longer labels end in an ellipsis there and stand whole in the table beside it."""

COLOURS = ("#fff3c9", "#adc0cb", "#10305c")
"""Of the smallest lifts, of 1, and of the largest: lightness 96, 76 and 20."""

DARK = 0.35
"""Cells above this share of the colour scale carry white text."""

PADDING, MARGIN = 4, 26
"""Pixels around a picture, and beside a heat map, for fonts that are wider than the one its labels were measured in."""


def check_charts() -> None:
    """Refuse to draw where Altair or vl-convert is missing, before any work is done.

    Raises
    ------
    InputError
        If one of them is not installed; it names the extra.
    """
    for name in NEEDED:
        if find_spec(name) is None:
            raise InputError(
                f"an HTML report needs {name.replace('_', '-')}, which is not installed: "
                "pip install 'mechdesign[report]' (.md and .json reports need nothing)"
            )


def curve_svgs(chart: CurveChart, anchor: str) -> list[str]:
    """Three pictures: utility, largest gain and largest loss of belief; `anchor` makes their ids unique."""
    rows, chosen = chart.curve.rows, chart.curve.chosen
    panels: list[
        tuple[str, str, Callable[[ComparisonRow], float], Callable[[ComparisonRow], float | None]]
    ] = [
        ("Utility", "share of H(X) kept", lambda row: row.nmi, lambda row: row.upper_bound_nmi),
        ("Largest gain of belief", "largest log-lift", lambda row: row.max_log_lift, lambda row: row.eps_u),
        (
            "Largest loss of belief",
            "minus the smallest log-lift",
            lambda row: -row.min_log_lift,
            lambda row: row.eps_l,
        ),
    ]
    # The budgets of the notions on averages do not bound the log-lifts of these panels.
    bounds_lifts = chosen.notion in ("alip", "lip", "max-lift", "min-lift")
    svgs: list[str] = []
    for k, (title, what, value, guide) in enumerate(panels):
        guided = guide if k == 0 or bounds_lifts else _nothing
        drawn = _panel(rows, chosen, title, what, value, guided, utility=k == 0)
        described = f"{what} over the budget; {chart.description}"
        svgs.append(tidy(_svg(drawn), f"{anchor}-{k}", title, described))
    return svgs


def _nothing(row: ComparisonRow) -> float | None:
    return None


def mechanisms_drawn(rows: Sequence[ComparisonRow], chosen: ComparisonRow) -> list[str]:
    """The mechanisms in the order of `LINES`."""
    return list(dict.fromkeys([chosen.mechanism, *(row.mechanism for row in rows)]))


def _panel(
    rows: Sequence[ComparisonRow],
    chosen: ComparisonRow,
    title: str,
    what: str,
    value: Callable[[ComparisonRow], float],
    guide: Callable[[ComparisonRow], float | None],
    *,
    utility: bool,
) -> Any:
    alt = _altair()
    names = mechanisms_drawn(rows, chosen)
    x = alt.X("e:Q", title="budget (nats)", scale=alt.Scale(nice=False, zero=True))
    scale = alt.Scale(domain=[0, 1]) if utility else alt.Scale(zero=True)
    y = alt.Y("v:Q", title=what, scale=scale)
    layers: list[Any] = []
    guides = sorted({(row.epsilon, bound) for row in rows if (bound := guide(row)) is not None})
    finite = [{"e": e, "v": min(v, 1.0) if utility else v, "top": 1.0} for e, v in guides if math.isfinite(v)]
    if finite:
        base = alt.Chart(alt.Data(values=finite))
        if utility:
            layers.append(base.mark_area(color=BAND).encode(x=x, y=y, y2="top:Q"))
        dashes = BOUND_DASHES if utility else BUDGET_DASHES
        layers.append(base.mark_line(color=GUIDE, strokeDash=dashes, strokeWidth=1.5).encode(x=x, y=y))
    for (colour, dashes), name in zip(LINES, names, strict=False):
        points = [{"e": row.epsilon, "v": value(row)} for row in rows if row.mechanism == name]
        points = [point for point in points if math.isfinite(point["v"])]
        if points:
            base = alt.Chart(alt.Data(values=points))
            layers.append(
                base.mark_line(
                    color=colour, strokeDash=dashes, strokeWidth=2, point={"color": colour, "size": 22}
                ).encode(x=x, y=y)
            )
    rule = alt.Chart(alt.Data(values=[{"e": chosen.epsilon}])).mark_rule(color=INK, strokeWidth=0.7)
    layers.append(rule.encode(x=x))
    if math.isfinite(value(chosen)):
        here = alt.Chart(alt.Data(values=[{"e": chosen.epsilon, "v": value(chosen)}]))
        ring = here.mark_point(shape="circle", size=120, stroke=INK, strokeWidth=2.5, fill="white", opacity=1)
        layers.append(ring.encode(x=x, y=y))
    return _styled(
        alt.layer(*layers).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=alt.Title(title))
    )


def lift_svg(map_: LiftMap, anchor: str) -> str:
    """One heat map with its numbers in the cells; `anchor` makes its ids unique."""
    alt = _altair()
    ends = math.log2(map_.ends)
    tall = len(map_.rows) > MANY_ROWS
    cells: list[dict[str, Any]] = []
    for r, (line, marks) in enumerate(zip(map_.values, map_.marks, strict=True)):
        for c, (value, mark) in enumerate(zip(line, marks, strict=True)):
            level = math.log2(value) if value > 0.0 else -math.inf
            shade = max(-ends, min(ends, level))
            cells.append(
                {"r": r, "c": c, "v": shade, "t": _cell_text(value, mark), "dark": shade > DARK * ends}
            )
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X(
            "c:O",
            title=map_.across,
            axis=_axis(alt, map_.columns, LONGEST_TOP_LABEL, orient="top", labelAngle=-40),
        ),
        y=alt.Y("r:O", title=None, axis=_axis(alt, map_.rows, LONGEST_AXIS_LABEL)),
    )
    colour = alt.Color(
        "v:Q",
        scale=alt.Scale(range=list(COLOURS), domain=[-ends, 0, ends], interpolate="lab", clamp=True),
        legend=alt.Legend(
            orient="bottom",
            title="lift",
            values=list(range(-round(ends), round(ends) + 1)),
            labelExpr="datum.value < 0 ? '1/' + pow(2, -datum.value) : pow(2, datum.value)",
            gradientLength=210,
            gradientThickness=9,
            titleFontWeight="normal",
        ),
    )
    rects = base.mark_rect(stroke="white", strokeWidth=1).encode(color=colour)
    texts = base.mark_text(fontSize=10 if tall else 11).encode(
        text="t:N", color=alt.condition("datum.dark", alt.value("white"), alt.value(INK))
    )
    chart = alt.layer(rects, texts).properties(
        width=alt.Step(CELL_WIDTH), height=alt.Step(LOW_CELL_HEIGHT if tall else CELL_HEIGHT)
    )
    padding = {"left": MARGIN, "right": MARGIN, "top": PADDING, "bottom": PADDING}
    return tidy(
        _svg(_styled(chart, padding)),
        anchor,
        map_.title,
        map_.description,
    )


def _cell_text(value: float, mark: str) -> str:
    if value == 0.0 or value >= 100.0:
        shown = f"{value:.0f}"
    elif value < 0.005:
        shown = "<.01"
    else:
        shown = f"{value:.2f}" if value < 10.0 else f"{value:.1f}"
    return shown + mark


def _axis(alt: Any, labels: Sequence[str], longest: int, **options: Any) -> Any:
    """Positions with labels beside them, so that equal labels stay two symbols."""
    return alt.Axis(
        labelExpr=f"{json.dumps(list(labels))}[datum.value]",
        labelLimit=longest,
        labelOverlap=False,
        ticks=False,
        domain=False,
        grid=False,
        **options,
    )


def _altair() -> Any:
    # Its types are too loose for strict checking.
    return import_module("altair")


def _styled(chart: Any, padding: Any = PADDING) -> Any:
    return (
        chart.configure(background="transparent", padding=padding)
        .configure_view(stroke=None)
        .configure_axis(
            grid=True,
            gridColor="#eeeeee",
            domainColor=GUIDE,
            tickColor=GUIDE,
            labelColor=INK,
            titleColor=INK,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            tickCount=5,
        )
        .configure_title(fontSize=13, anchor="start", color=INK)
    )


def _svg(chart: Any) -> str:
    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()
