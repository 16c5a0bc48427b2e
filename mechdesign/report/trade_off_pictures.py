"""The trade-off curve of a report as pictures on its page: utility and both leakages.

`curve_pictures` draws each of `plots.PANELS` as an SVG of its own and marks the row that the report
is about. The legend is no part of the pictures: the page writes it once, from `curve_series`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.report.blocks import CurveChart, Picture
from mechdesign.report.drawing import INK, PAGE, UNIT, new_figure, picture_of, settings
from mechdesign.report.plot_lines import Series, series
from mechdesign.report.plots import PANELS, Panel, draw_panel

WIDTH, HEIGHT = 330.0, 250.0
"""Of one picture, in units of its SVG."""

TITLE_SIZE = 13.0
"""Size of the title of a picture, in pixels."""


def curve_pictures(chart: CurveChart) -> list[Picture]:
    """A picture for each of `PANELS`."""
    lines = curve_series(chart)
    pictures: list[Picture] = []
    for panel in PANELS:
        words = f"{panel.title}. {panel.label} over the budget; {chart.description}"
        with settings(**PAGE):
            pictures.append(picture_of(_panel_figure(chart, panel, lines), words))
    return pictures


def curve_series(chart: CurveChart) -> list[Series]:
    """The lines of the pictures, the mechanism of the chosen row first."""
    mechanism = chart.curve.chosen.mechanism
    # The sort is stable, and False comes before True: the chosen mechanism gets the first colour.
    return series(sorted(chart.curve.rows, key=lambda row: row.mechanism != mechanism))


def _panel_figure(chart: CurveChart, panel: Panel, lines: Sequence[Series]) -> Any:
    """One panel as a figure of its own, with the chosen budget marked."""
    rows = chart.curve.rows
    figure = new_figure(figsize=(WIDTH / UNIT, HEIGHT / UNIT), layout="constrained")
    axes = figure.subplots()
    draw_panel(axes, panel, rows, lines)
    # Leakages are shown from 0 on, with a little room above the highest line, so that their
    # heights can be compared. The panel of utility has the limits of a share.
    if panel.budget is not None:
        axes.set_ylim(0.0, 1.05 * _highest(panel, rows))
    axes.set_xlim(0.0, max(row.epsilon for row in rows) * 1.03)
    axes.set_title(
        panel.title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK
    )
    axes.spines[["top", "right"]].set_visible(False)
    _mark_chosen(axes, panel, chart.curve.chosen)
    return figure


def _mark_chosen(axes: Any, panel: Panel, chosen: ComparisonRow) -> None:
    """Mark the row that the report is about: a line at its budget, and a ring at its value."""
    # Above the areas and budgets, which matplotlib draws at 1, and below the lines, at 2.
    axes.axvline(chosen.epsilon, color=INK, linewidth=0.7, zorder=1.5)
    value = panel.value(chosen)
    if value is not None and math.isfinite(value):
        axes.plot(
            [chosen.epsilon],
            [value],
            "o",
            markersize=10,
            markerfacecolor="white",
            markeredgecolor=INK,
            markeredgewidth=2.5,
            # Above everything, and whole even at the end of an axis.
            zorder=5,
            clip_on=False,
        )


def _highest(panel: Panel, rows: Sequence[ComparisonRow]) -> float:
    """The largest finite value or budget of a panel; 1 where all are 0 or infinite."""
    highest = 0.0
    for row in rows:
        values = [panel.value(row)]
        if panel.budget is not None:
            values.append(panel.budget(row))
        for value in values:
            if value is not None and math.isfinite(value):
                highest = max(highest, value)
    if highest == 0.0:
        # An axis needs a length.
        return 1.0
    return highest
