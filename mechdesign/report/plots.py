"""Pictures of comparisons, for colour and for grey: files, and SVG for a page.

A picture has panels (`Panel`: what is drawn over the budget), and each panel has the same lines
(`Series`: one mechanism at one curve). `series` gives every line its colour, marker and dashes, and
`draw_panel` draws them into matplotlib axes with their bounds. `save_plot` writes all panels side
by side into a file; `curve_pictures` makes one SVG of each for a page. No window is opened, and the
same rows give the same bytes.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mechdesign.comparison.recommending import falls
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report.blocks import CurveChart, Picture

Curve: TypeAlias = tuple[str, float | None]
"""The notion and the lam of a line."""

FORMATS = (".png", ".svg", ".pdf")
"""Endings of picture files."""

COLOURS = (
    "#000000",
    "#0072b2",
    "#e69f00",
    "#d55e00",
    "#009e73",
    "#56b4e9",
    "#cc79a7",
    "#7f7f7f",
)
LOOKS = tuple(zip(COLOURS, "os^DvPX*", strict=True))
"""Colours of Okabe and Ito (2008), which colour-blind readers can tell apart; each has
its marker for print in grey.
"""

DASHES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (4, 1.6)),
    (0, (6, 1.6, 1, 1.6)),
    (0, (1, 1.6)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
)
BUDGET_DASHES = (0, (1, 1))
"""Offset, and lengths of strokes and gaps in widths of the line."""

MARKERS_PER_LINE = 9
"""More would touch each other on a grid of 32 budgets."""

MOST_BUDGET_LINES = 4
"""Curves up to which the panels of the leakages show their budgets."""

WHY_FALLING = (
    "sets are chosen anew at each budget, so a curve may fall; the channel of a smaller budget "
    "keeps the promise of a larger one too."
)
"""What a picture says below the curves of heuristics that keep less at a larger budget."""

RESOLUTION = 160
"""Dots per inch of a PNG."""

SETTINGS = {
    "svg.hashsalt": "mechdesign",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 9.0,
}
"""The same rows give the same file, and texts stay texts."""

UNDATED: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""Metadata of each format without the date."""

INK = "#1b1b1b"
"""The colour of text on a page."""

UNIT = 72.0
"""Units of an SVG in an inch of matplotlib; on the page one unit is one pixel at most."""

PANEL_WIDTH, PANEL_HEIGHT = 330.0, 250.0
"""Of one picture on a page, in units of its SVG."""

FONT_SIZE, TITLE_SIZE = 11.0, 13.0
"""Pixels."""

PAGE = {
    "font.size": FONT_SIZE,
    "axes.edgecolor": "#707070",
    "axes.labelcolor": INK,
    "hatch.color": "#bfbfbf",
}
"""Parameters of matplotlib for pictures in a page."""


@dataclass(frozen=True)
class Panel:
    """One of the pictures of a comparison: the value drawn over the budget, and the
    budget that bounds it.
    """

    title: str
    label: str
    value: Callable[[ComparisonRow], float | None]
    budget: Callable[[ComparisonRow], float | None] | None = None


GAIN, LOSS = "largest log-lift (nats)", "minus the smallest log-lift (nats)"
PANELS = (
    Panel("Utility", "share of information kept", lambda row: row.nmi),
    Panel(
        "Largest gain of belief",
        GAIN,
        lambda row: row.max_log_lift,
        lambda row: row.eps_u,
    ),
    Panel(
        "Largest loss of belief",
        LOSS,
        # Not a minus sign alone, which would make -0.0 of 0.0.
        lambda row: 0.0 - row.min_log_lift,
        lambda row: row.eps_l,
    ),
)
"""Utility, and both directions of leakage; more is better in the first, worse in the others."""

DISTANCE_MOVED = Panel(
    "Distance moved",
    "expected distance",
    lambda row: row.cost if row.mechanism == "distance" else None,
)

OF_LEAST_COST = (
    Panel("Records that stay true", "expected share", lambda row: row.truth),
    DISTANCE_MOVED,
)
"""Panels of channels on the column's own symbols, where there are such."""


class Series(NamedTuple):
    """One line of the picture: a mechanism at a curve, with the marks that set it apart.

    `rows` ascend in the budget. `dashes` are the offset, and the lengths of strokes and gaps;
    markers are `filled` or white.
    """

    label: str
    rows: tuple[ComparisonRow, ...]
    colour: str
    marker: str
    dashes: tuple[float, tuple[float, ...]]
    filled: bool

    @property
    def face(self) -> str:
        """The colour inside of its markers."""
        if self.filled:
            return self.colour
        return "white"


def check_matplotlib(
    purpose: str = "plots need", extra: str = "plots", besides: str = ""
) -> None:
    """Refuse to draw where it is missing, before any work is done.

    The sentence begins with the `purpose`, names the `extra` of this package that has it, and ends
    with what there is `besides`.
    """
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{purpose} matplotlib, which is not installed: pip install "
            f"'mechdesign[{extra}]'{besides}"
        )


def check_ending(path: PathLike, kind: str, endings: Sequence[str]) -> str:
    """The ending of a file, in small letters; InputError if files of the `kind` have others."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        raise InputError(
            f"{os.fspath(path)}: a {kind} must end in {', '.join(endings)}, not "
            f"{ending or 'nothing'}"
        )
    return ending


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
    with settings():
        save_figure(trade_off_figure(rows), path, overwrite=overwrite)


def save_figure(figure: Any, path: PathLike, *, overwrite: bool) -> None:
    """Write a matplotlib figure in the format of its ending, without the date, whole or
    not at all.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    with settings(), replacing(path, force=overwrite) as temporary:
        figure.savefig(
            temporary,
            format=kind,
            dpi=RESOLUTION,
            metadata=UNDATED[kind],
            bbox_inches="tight",
        )


def settings(**others: object) -> Any:
    """A context in which figures are drawn and written; `others` are further parameters
    of matplotlib.
    """
    return import_module("matplotlib").rc_context({**SETTINGS, **others})


def new_figure(*, figsize: tuple[float, float], layout: str) -> Any:
    """An empty `matplotlib.figure.Figure`, without a window. Its types are too loose
    for strict checking.
    """
    return import_module("matplotlib.figure").Figure(figsize=figsize, layout=layout)


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
    names = dict.fromkeys(before.mechanism for before, _ in falls(rows))
    return f"{', '.join(names)}: {WHY_FALLING}" if names else None


def draw_panel(
    axes: Any, panel: Panel, rows: Sequence[ComparisonRow], lines: Sequence[Series]
) -> list[Any]:
    """Draw every line and its bounds; returns the artists that a legend should explain
    beside the lines.
    """
    for line in lines:
        _draw_line(axes, panel, line)
    guide = None
    # Bounds and budgets are about information and lifts, not about costs.
    if panel in PANELS:
        if panel.budget is None:
            guide = _band(axes, rows)
        else:
            guide = _budget_lines(axes, panel.budget, rows)
    axes.set_xlabel("epsilon (nats)")
    axes.set_ylabel(panel.label)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    shows_shares = panel.budget is None and panel is not DISTANCE_MOVED
    if shows_shares:
        axes.set_ylim(-0.03, 1.03)
    return [] if guide is None else [guide]


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
        mfc=line.face,
        linewidth=1.4,
    )


def curve_name(notion: str, lam: float | None) -> str:
    """``alip, lam 0.5``."""
    return notion if lam is None else f"{notion}, lam {lam:g}"


def series(rows: Sequence[ComparisonRow]) -> list[Series]:
    """The lines in the order of the rows.

    Mechanisms differ in colour and marker, curves (notion and lam) in their dashes. With a single
    mechanism the curves take colours, too.
    """
    grouped: dict[tuple[str, Curve], list[ComparisonRow]] = {}
    for row in rows:
        grouped.setdefault((row.mechanism, row.curve), []).append(row)
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _ in grouped))
    curves = list(dict.fromkeys(curve for _, curve in grouped))
    lines: list[Series] = []
    for (mechanism, curve), members in grouped.items():
        names: list[str] = []
        if len(mechanisms) > 1 or len(curves) == 1:
            names.append(mechanism)
        if len(curves) > 1:
            names.append(curve_name(*curve))
        dash = curves.index(curve)
        # Colour and marker tell mechanisms apart, or else, where there is one, the curves.
        look = dash if len(mechanisms) == 1 else mechanisms.index(mechanism)
        colour, marker = LOOKS[look % len(LOOKS)]
        lines.append(
            Series(
                label=", ".join(names),
                rows=tuple(sorted(members, key=lambda row: row.epsilon)),
                colour=colour,
                marker=marker,
                dashes=DASHES[dash % len(DASHES)],
                filled=dash % 2 == 0,
            )
        )
    return lines


def _band(axes: Any, rows: Sequence[ComparisonRow]) -> Any:
    """Shade utilities proven impossible for all the curves, and the room between each
    optimum and its bound.
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
    # The budgets at which every curve has a bound.
    shared: list[float] = []
    for epsilon in sorted(next(iter(bounds.values()))):
        if all(epsilon in bound for bound in bounds.values()):
            shared.append(epsilon)
    if not shared:
        return None

    # The room between each optimum and its bound, in a darker grey.
    for curve, bound in bounds.items():
        budgets = sorted(bound)
        axes.fill_between(
            budgets,
            [best[curve, epsilon] for epsilon in budgets],
            [bound[epsilon] for epsilon in budgets],
            color="0.55",
            linewidth=0.0,
        )

    # Above the highest of the bounds there is nothing for any curve.
    highest: list[float] = []
    for epsilon in shared:
        highest.append(max(bound[epsilon] for bound in bounds.values()))
    several = " (all curves)" if len(bounds) > 1 else ""
    return axes.fill_between(
        shared,
        highest,
        1.03,
        label=f"proven impossible{several}",
        facecolor="0.93",
        edgecolor="0.75",
        hatch="///",
        linewidth=0.0,
    )


def _budget_lines(
    axes: Any,
    budget: Callable[[ComparisonRow], float | None],
    rows: Sequence[ComparisonRow],
) -> Any:
    """The budget of this side as thin lines; returns one of them for the legend."""
    sides: dict[Curve, dict[float, float | None]] = {}
    for row in rows:
        # The budgets of l1-, chi2- and alpha-lift bound averages, not the lifts of these panels.
        if row.notion in ("alip", "lip", "max-lift", "min-lift"):
            sides.setdefault(row.curve, {})[row.epsilon] = budget(row)
    if len(sides) > MOST_BUDGET_LINES:
        return None
    guide = None
    for side in sides.values():
        budgets = sorted(side)
        values = [side[epsilon] for epsilon in budgets]
        if any(value is None or math.isinf(value) for value in values):
            continue
        # The leakages decide the scale: a budget far above them would flatten their lines.
        limits = axes.get_ylim()
        (guide,) = axes.plot(
            budgets,
            values,
            label="budget of this side",
            color="0.45",
            linewidth=0.8,
            linestyle=BUDGET_DASHES,
            zorder=1,
        )
        axes.set_ylim(*limits)
    return guide


def curve_pictures(chart: CurveChart) -> list[Picture]:
    """A picture for each of `PANELS`."""
    lines = curve_series(chart)
    pictures: list[Picture] = []
    for panel in PANELS:
        words = f"{panel.title}. {panel.label} over the budget; {chart.description}"
        with settings(**PAGE):
            pictures.append(picture_of(_panel(chart, panel, lines), words))
    return pictures


def picture_of(figure: Any, words: str) -> Picture:
    """A figure as an SVG picture of a page, with `words` as its alternative text."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata=UNDATED["svg"])
    width = UNIT * figure.get_size_inches()[0]
    return Picture(text.getvalue(), words, width)


def curve_series(chart: CurveChart) -> list[Series]:
    """The lines of the pictures, the mechanism of the chosen row first."""
    mechanism = chart.curve.chosen.mechanism
    return series(sorted(chart.curve.rows, key=lambda row: row.mechanism != mechanism))


def _panel(chart: CurveChart, panel: Panel, lines: Sequence[Series]) -> Any:
    """One panel for a page, with the chosen budget marked."""
    rows = chart.curve.rows
    chosen = chart.curve.chosen
    figure = new_figure(
        figsize=(PANEL_WIDTH / UNIT, PANEL_HEIGHT / UNIT), layout="constrained"
    )
    axes = figure.subplots()
    draw_panel(axes, panel, rows, lines)
    # The page shows the leakages from 0 on, with a little room above the highest line.
    if panel.budget is not None:
        axes.set_ylim(0.0, 1.05 * _highest(panel, rows))
    axes.set_xlim(0.0, max(row.epsilon for row in rows) * 1.03)
    axes.set_title(
        panel.title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.axvline(chosen.epsilon, color=INK, linewidth=0.7, zorder=1.5)
    value = panel.value(chosen)
    if value is not None and math.isfinite(value):
        axes.plot(
            [chosen.epsilon],
            [value],
            "o",
            markersize=10,
            mfc="white",
            mec=INK,
            mew=2.5,
            zorder=5,
            clip_on=False,
        )
    return figure


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
    return highest or 1.0
