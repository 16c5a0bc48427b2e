"""The trade-off curves of a comparison, drawn over the budget.

A picture has panels (`Panel`), and each panel draws one quantity of the rows, such as the share of
information kept, over the budget. All panels have the same lines (`drawing.series`), one for
each curve and mechanism. `draw_panel` draws a panel into matplotlib axes:

1. the lines: a line has a point (epsilon, ``panel.value(row)``) for each of its rows, and a gap
   where there is no finite value (`_draw_line`);
2. the bounds on them: in the panel of utility the area that is proven impossible for all curves,
   above the highest bound (`_shade_bounds`), in those of the leakages a thin line at the budget
   (`_draw_budgets`).

For example, optimal keeps 0.31 at epsilon 2, and the bound there is 0.32: the line goes through
(2, 0.31), the room up to 0.32 is dark, and what is above 0.32 is hatched.

`trade_off_figure` sets all panels side by side above one legend, which says why a curve may fall if
one does (`recommending.falls`). `save_plot` writes it into a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.comparison.recommending import falls
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target
from mechdesign.report.drawing import (
    FORMATS,
    Curve,
    Series,
    check_ending,
    check_matplotlib,
    new_figure,
    save_figure,
    series,
    settings,
)

BUDGET_DASHES = (0, (1, 1))
"""Dashes of a budget: offset, and lengths of strokes and gaps in widths of the line."""

MARKERS_PER_LINE = 9
"""Most markers of a line: more would touch each other on a grid of 32 budgets."""

MOST_BUDGET_LINES = 4
"""Curves up to which the panels of the leakages show their budgets."""

WHY_FALLING = (
    "sets are chosen anew at each budget, so a curve may fall; the channel of a smaller budget "
    "keeps the promise of a larger one too."
)
"""What a picture says below the curves of heuristics that keep less at a larger budget."""

BOUND_LIGHT, BOUND_DARK = "0.93", "0.55"
"""Greys of what is proven impossible, and of the room between an optimum and its bound."""

SHARES = (-0.03, 1.03)
"""Limits of the axis of a share, a little outside of [0, 1], where markers are not cut."""

LIFT_NOTIONS = ("alip", "lip", "max-lift", "min-lift")
"""Notions whose budgets bound the lifts that are drawn.

The budgets of l1-, chi2- and alpha-lift bound averages of lifts instead.
"""


@dataclass(frozen=True)
class Panel:
    """One of the pictures of a comparison.

    Attributes
    ----------
    title, label : str
        The heading, and the name of the quantity on its axis.
    value : callable
        The quantity of a row; None where the row has none.
    budget : callable, optional
        The bound on it that was asked for, of a leakage.
    is_share : bool
        Whether the quantity lies in [0, 1].
    """

    title: str
    label: str
    value: Callable[[ComparisonRow], float | None]
    budget: Callable[[ComparisonRow], float | None] | None = None
    is_share: bool = False


def _negated_smallest_lift(row: ComparisonRow) -> float:
    """Minus the smallest log-lift of a row."""
    # A minus sign alone would make -0.0 of 0.0.
    return 0.0 - row.min_log_lift


def _distance_moved(row: ComparisonRow) -> float | None:
    """The expected distance of the mechanism that minimises it; other costs are no distances."""
    if row.mechanism == "distance":
        return row.cost
    return None


UTILITY = Panel(
    "Utility", "share of information kept", lambda row: row.nmi, is_share=True
)
LARGEST_GAIN = Panel(
    "Largest gain of belief",
    "largest log-lift (nats)",
    lambda row: row.max_log_lift,
    budget=lambda row: row.eps_u,
)
LARGEST_LOSS = Panel(
    "Largest loss of belief",
    "minus the smallest log-lift (nats)",
    _negated_smallest_lift,
    budget=lambda row: row.eps_l,
)
PANELS = (UTILITY, LARGEST_GAIN, LARGEST_LOSS)
"""Utility, and both directions of leakage; more is better in the first, worse in the others."""

OF_LEAST_COST = (
    Panel(
        "Records that stay true",
        "expected share",
        lambda row: row.truth,
        is_share=True,
    ),
    Panel("Distance moved", "expected distance", _distance_moved),
)
"""Panels of channels on the column's own symbols, where there are such."""


def check_plot(
    path: PathLike, *, force: bool, sources: tuple[PathLike, ...] = ()
) -> None:
    """Refuse a picture that cannot be drawn or written, before any work is done."""
    check_ending(path, "plot", FORMATS)
    check_matplotlib()
    check_target(path, force=force, sources=sources)


def save_plot(
    rows: Sequence[ComparisonRow], path: PathLike, *, overwrite: bool = False
) -> None:
    """Draw the rows and write a PNG, SVG or PDF, whole or not at all."""
    check_plot(path, force=overwrite)
    if not rows:
        raise InputError("there are no rows to draw")
    # Matplotlib reads some parameters when a figure is drawn, and others when it is written.
    with settings():
        save_figure(trade_off_figure(rows), path, overwrite=overwrite)


def trade_off_figure(rows: Sequence[ComparisonRow]) -> Any:
    """The panels side by side as a `matplotlib.figure.Figure`, without a window."""
    panels = [*PANELS]
    for panel in OF_LEAST_COST:
        if any(panel.value(row) is not None for row in rows):
            panels.append(panel)
    # Inches: three panels, or five with those of least cost.
    width = 11.0
    if any(row.cost is not None for row in rows):
        width = 16.0
    figure = new_figure(figsize=(width, 4.3), layout="constrained")
    lines = series(rows)
    guides: list[Any] = []
    subplots = figure.subplots(1, len(panels))
    for axes, panel in zip(subplots, panels, strict=True):
        guides += draw_panel(axes, panel, rows, lines)
        axes.set_title(panel.title)
    # All panels have the same lines, so the first one explains them for all. The guides of several
    # panels have one name, so a mapping by name keeps each once.
    handles, labels = subplots[0].get_legend_handles_labels()
    legend = dict(zip(labels, handles, strict=True))
    for guide in guides:
        legend[guide.get_label()] = guide
    figure.legend(
        list(legend.values()),
        list(legend),
        loc="outside lower center",
        ncols=min(4, len(legend)),
        frameon=False,
        title=_why_falling(rows),
        title_fontsize="small",
    )
    return figure


def _why_falling(rows: Sequence[ComparisonRow]) -> str | None:
    """A sentence if a curve falls with the budget, else None."""
    # A mapping, because a mechanism may fall at several curves and is named once, in this order.
    names = dict.fromkeys(before.mechanism for before, _ in falls(rows))
    if not names:
        return None
    return f"{', '.join(names)}: {WHY_FALLING}"


def draw_panel(
    axes: Any, panel: Panel, rows: Sequence[ComparisonRow], lines: Sequence[Series]
) -> list[Any]:
    """Draw every line and its bounds; returns the artists that a legend should explain
    beside the lines.
    """
    for line in lines:
        _draw_line(axes, panel, line)
    # Bounds are about information, and budgets about lifts: panels of costs have neither.
    guide = None
    if panel is UTILITY:
        guide = _shade_bounds(axes, rows)
    elif panel.budget is not None:
        guide = _draw_budgets(axes, panel.budget, rows)
    axes.set_xlabel("epsilon (nats)")
    axes.set_ylabel(panel.label)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if panel.is_share:
        axes.set_ylim(*SHARES)
    if guide is None:
        return []
    return [guide]


def _draw_line(axes: Any, panel: Panel, line: Series) -> None:
    """Draw one line of a panel."""
    budgets = [row.epsilon for row in line.rows]
    values: list[float] = []
    for row in line.rows:
        value = panel.value(row)
        if value is None or math.isinf(value):
            # Matplotlib leaves a gap in the line at a NaN.
            value = math.nan
        values.append(value)
    axes.plot(
        budgets,
        values,
        color=line.colour,
        marker=line.marker,
        linestyle=line.dashes,
        label=line.label,
        markersize=4.5,
        markevery=max(1, len(budgets) // MARKERS_PER_LINE),
        markerfacecolor=line.face,
        linewidth=1.4,
    )


def _shade_bounds(axes: Any, rows: Sequence[ComparisonRow]) -> Any:
    """Shade utilities proven impossible for all the curves, and the room between each
    optimum and its bound.

    Returns the area proven impossible; None if no budget has a bound for every curve.
    """
    # The bound of each curve by its budget, and the best that a mechanism keeps there.
    bounds: dict[Curve, dict[float, float]] = {}
    best: dict[tuple[Curve, float], float] = {}
    for row in rows:
        point = row.curve, row.epsilon
        best[point] = max(row.nmi, best.get(point, 0.0))
        if row.upper_bound_nmi is not None:
            bounds.setdefault(row.curve, {})[row.epsilon] = row.upper_bound_nmi
    # A curve without a bound may lie anywhere, so nothing is impossible for all of them.
    if not bounds or len(bounds) < len({row.curve for row in rows}):
        return None
    shared = _shared_budgets(list(bounds.values()))
    if not shared:
        return None

    # A mechanism that the search did not find may still keep as much as this room allows.
    for curve, bound in bounds.items():
        budgets = sorted(bound)
        axes.fill_between(
            budgets,
            [best[curve, epsilon] for epsilon in budgets],
            [bound[epsilon] for epsilon in budgets],
            color=BOUND_DARK,
            linewidth=0.0,
        )

    # Above the highest of the bounds there is nothing for any curve.
    highest: list[float] = []
    for epsilon in shared:
        highest.append(max(bound[epsilon] for bound in bounds.values()))
    name = "proven impossible"
    if len(bounds) > 1:
        name += " (all curves)"
    return axes.fill_between(
        shared,
        highest,
        SHARES[1],
        label=name,
        facecolor=BOUND_LIGHT,
        edgecolor="0.75",
        hatch="///",
        linewidth=0.0,
    )


def _shared_budgets(bounds: Sequence[dict[float, float]]) -> list[float]:
    """The budgets at which every curve has a bound, in ascending order."""
    shared: list[float] = []
    for epsilon in sorted(bounds[0]):
        if all(epsilon in bound for bound in bounds):
            shared.append(epsilon)
    return shared


def _draw_budgets(
    axes: Any,
    budget: Callable[[ComparisonRow], float | None],
    rows: Sequence[ComparisonRow],
) -> Any:
    """Draw the budget of each curve as a thin line; returns one of the lines for the legend.

    A curve without a finite budget on this side has no line. None of them has one if there are more
    than `MOST_BUDGET_LINES` curves.
    """
    budgets_of: dict[Curve, dict[float, float | None]] = {}
    for row in rows:
        if row.notion in LIFT_NOTIONS:
            budgets_of.setdefault(row.curve, {})[row.epsilon] = budget(row)
    if len(budgets_of) > MOST_BUDGET_LINES:
        return None
    guide = None
    for side in budgets_of.values():
        epsilons = sorted(side)
        values = [side[epsilon] for epsilon in epsilons]
        if any(value is None or math.isinf(value) for value in values):
            continue
        # The leakages decide the scale: a budget far above them would flatten their lines.
        limits = axes.get_ylim()
        (guide,) = axes.plot(
            epsilons,
            values,
            label="budget of this side",
            color="0.45",
            linewidth=0.8,
            linestyle=BUDGET_DASHES,
            # Below the lines of mechanisms, which often lie on their budget.
            zorder=1,
        )
        axes.set_ylim(*limits)
    return guide
