"""Pictures of comparisons, for colour and for grey: files, and inline SVG without script, style sheet or font."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mechdesign.comparison.recommending import falls
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report.blocks import CurveChart

FORMATS = (".png", ".svg", ".pdf")

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
"""Colours of Okabe and Ito (2008), which colour-blind readers can tell apart; each has its marker for print in grey."""

DASHES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0, ()), (0, (4, 1.6)), (0, (6, 1.6, 1, 1.6)), (0, (1, 1.6)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3))
)  # fmt: skip
BUDGET_DASHES = (0, (1, 1))
"""Offset, and lengths of strokes and gaps in widths of the line."""

MARKERS_PER_LINE = 9
"""More would touch each other on a grid of 32 budgets."""

MOST_BUDGET_LINES = 4
"""Curves up to which the panels of the leakages show their budgets."""

WHY_FALLING = (
    "sets are chosen anew at each budget, so a curve may fall; the channel of a smaller budget keeps the promise "
    "of a larger one too."
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

INK = "#1b1b1b"

UNIT = 72.0
"""Units of an SVG in an inch of matplotlib; on the page one unit is one pixel at most."""

PANEL_WIDTH, PANEL_HEIGHT = 330.0, 250.0

FONT_SIZE, TITLE_SIZE = 11.0, 13.0
"""Pixels."""

PAGE = {
    "font.size": FONT_SIZE,
    "axes.edgecolor": "#707070",
    "axes.labelcolor": INK,
    "hatch.color": "#bfbfbf",
}
"""Parameters of matplotlib for pictures in a page."""

SAID = ("Date", "Creator", "Format", "Type")
"""What matplotlib would say of a picture, and a page does not need."""

SMALLEST = 0.8
"""The picture is never shown smaller than this share of its natural size; its box scrolls instead."""

TIDY = (
    (r'(?s)^.*?(?=<g id="figure_1">)', ""),
    (r' id="[\w.]+_\d+"', ""),
    (r"font-family: [^;\"]*;? ?", ""),
    (r"font: (?:(\w+) )?([\d.]+px)[^;\"]*", r"font-weight: \1; font-size: \2"),
    (r"; stroke-(linejoin|linecap|miterlimit): [^;\"]*", ""),
    ("xlink:href", "href"),
    (r' transform="rotate\(-0 [^"]*"', ""),
    (r"(\d\.\d\d)\d+", r"\1"),
    (r"\n\s*", "\n"),
)
"""What the SVG of matplotlib has and a page does not need: a head with a style sheet for everything, names of groups,
fonts, which are those of the page, and more digits than there are pixels."""


class Series(NamedTuple):
    """One line of the picture."""

    label: str
    rows: tuple[ComparisonRow, ...]
    colour: str
    marker: str
    dashes: tuple[float, tuple[float, ...]]
    filled: bool


def check_matplotlib(
    what: str = "plots need", extra: str = "plots", besides: str = ""
) -> None:
    """Refuse to draw where it is missing, before any work is done."""
    if find_spec("matplotlib") is None:
        raise InputError(
            f"{what} matplotlib, which is not installed: pip install 'mechdesign[{extra}]'{besides}"
        )


def check_ending(path: PathLike, what: str, endings: Sequence[str]) -> str:
    """That of a file, if there is such a `what`."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        raise InputError(
            f"{os.fspath(path)}: a {what} must end in {', '.join(endings)}, not {ending or 'nothing'}"
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
    """Write a matplotlib figure in the format of its ending, without the date, whole or not at all."""
    kind = Path(path).suffix.lower().removeprefix(".")
    undated: dict[str, dict[str, None]] = {
        "png": {},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
    }
    with settings(), replacing(path, force=overwrite) as temporary:
        figure.savefig(
            temporary,
            format=kind,
            dpi=RESOLUTION,
            metadata=undated[kind],
            bbox_inches="tight",
        )


def settings(**others: object) -> Any:
    """A context in which figures are drawn and written; `others` are further parameters of matplotlib."""
    return import_module("matplotlib").rc_context({**SETTINGS, **others})


def new_figure(*, figsize: tuple[float, float], layout: str) -> Any:
    """An empty `matplotlib.figure.Figure`, without a window. Its types are too loose for strict checking."""
    return import_module("matplotlib.figure").Figure(figsize=figsize, layout=layout)


def trade_off_figure(rows: Sequence[ComparisonRow]) -> Any:
    """Three panels side by side as a `matplotlib.figure.Figure`, without a window."""
    wide = 11.0 if all(row.cost is None for row in rows) else 16.0
    figure = new_figure(figsize=(wide, 4.3), layout="constrained")
    lines = series(rows)
    extra: list[Any] = []
    panels = [
        *PANELS,
        *(p for p in OF_LEAST_COST if any(p.value(row) is not None for row in rows)),
    ]
    every = figure.subplots(1, len(panels))
    for axes, panel in zip(every, panels, strict=True):
        extra += draw_panel(axes, panel, rows, lines)
        axes.set_title(panel.title)
    handles, labels = every[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True)) | {
        artist.get_label(): artist for artist in extra
    }
    fallen = list(dict.fromkeys(before.mechanism for before, _ in falls(rows)))
    said = f"{', '.join(fallen)}: {WHY_FALLING}" if fallen else None
    looks = {
        "ncols": min(4, len(named)),
        "frameon": False,
        "title": said,
        "title_fontsize": "small",
    }
    figure.legend(
        list(named.values()), list(named), loc="outside lower center", **looks
    )
    return figure


@dataclass(frozen=True)
class Panel:
    """One of the pictures of a comparison: what is drawn over the budget, and the budget that bounds it."""

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
        lambda row: 0.0 - row.min_log_lift,
        lambda row: row.eps_l,
    ),
)
"""Utility, and both directions of leakage; more is better in the first, worse in the others."""

OF_LEAST_COST = (
    Panel("Records that stay true", "expected share", lambda row: row.truth),
    Panel(
        "Distance moved",
        "expected distance",
        lambda row: row.cost if row.mechanism == "distance" else None,
    ),
)
"""Panels of channels on the column's own symbols, where there are such."""


def draw_panel(
    axes: Any, panel: Panel, rows: Sequence[ComparisonRow], lines: Sequence[Series]
) -> list[Any]:
    """Draw every line, and what bounds them; returns the artists that a legend should explain beside the lines."""
    for line in lines:
        budgets = [row.epsilon for row in line.rows]
        looks = {
            "color": line.colour,
            "marker": line.marker,
            "linestyle": line.dashes,
            "label": line.label,
        }
        every = max(1, len(budgets) // MARKERS_PER_LINE)
        ground = line.colour if line.filled else "white"
        values = [
            math.nan if value is None else value
            for value in map(panel.value, line.rows)
        ]
        finite = [value if math.isfinite(value) else math.nan for value in values]
        axes.plot(
            budgets,
            finite,
            markersize=4.5,
            markevery=every,
            mfc=ground,
            linewidth=1.4,
            **looks,
        )
    guide = None
    if panel in PANELS:
        guide = (
            _band(axes, rows)
            if panel.budget is None
            else _budget_lines(axes, panel.budget, rows)
        )
    axes.set_xlabel("epsilon (nats)")
    axes.set_ylabel(panel.label)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    if panel.budget is None and panel is not OF_LEAST_COST[1]:
        axes.set_ylim(-0.03, 1.03)
    return [] if guide is None else [guide]


def curve_name(notion: str, lam: float | None) -> str:
    """``alip, lam 0.5``."""
    return notion if lam is None else f"{notion}, lam {lam:g}"


def series(rows: Sequence[ComparisonRow]) -> list[Series]:
    """Lines in the order of the rows; whatever differs most gets colour and marker, the other one the dashes."""
    grouped: dict[tuple[str, str, float | None], list[ComparisonRow]] = {}
    for row in rows:
        grouped.setdefault((row.mechanism, *row.curve), []).append(row)
    mechanisms = list(dict.fromkeys(key[0] for key in grouped))
    curves = list(dict.fromkeys(key[1:] for key in grouped))
    made: list[Series] = []
    for (mechanism, notion, lam), members in grouped.items():
        first, second = mechanisms.index(mechanism), curves.index((notion, lam))
        names = [mechanism] * (len(mechanisms) > 1 or len(curves) == 1)
        names += [curve_name(notion, lam)] * (len(curves) > 1)
        if len(mechanisms) == 1:
            first = second
        colour, marker = LOOKS[first % len(LOOKS)]
        dashes = DASHES[second % len(DASHES)]
        ordered = tuple(sorted(members, key=lambda row: row.epsilon))
        made.append(
            Series(", ".join(names), ordered, colour, marker, dashes, second % 2 == 0)
        )
    return made


def _band(axes: Any, rows: Sequence[ComparisonRow]) -> Any:
    """Shade what is proven impossible for all the curves, and the room between each optimum and its bound."""
    bounds: dict[tuple[str, float | None], dict[float, float]] = {}
    for row in rows:
        if row.upper_bound_nmi is not None:
            bounds.setdefault(row.curve, {})[row.epsilon] = row.upper_bound_nmi
    if len(bounds) < len({row.curve for row in rows}):
        return None
    first = next(iter(bounds.values()), dict[float, float]())
    shared = sorted(e for e in first if all(e in bound for bound in bounds.values()))
    if not shared:
        return None
    highest = [max(bound[e] for bound in bounds.values()) for e in shared]
    for curve, bound in bounds.items():
        reached = {
            e: max(row.nmi for row in rows if row.curve == curve and row.epsilon == e)
            for e in bound
        }
        at = sorted(bound)
        axes.fill_between(
            at,
            [reached[e] for e in at],
            [bound[e] for e in at],
            color="0.55",
            linewidth=0.0,
        )
    several = " (all curves)" if len(bounds) > 1 else ""
    looks = {"facecolor": "0.93", "edgecolor": "0.75", "hatch": "///", "linewidth": 0.0}
    return axes.fill_between(
        shared, highest, 1.03, label=f"proven impossible{several}", **looks
    )


def _budget_lines(
    axes: Any,
    budget: Callable[[ComparisonRow], float | None],
    rows: Sequence[ComparisonRow],
) -> Any:
    """The budget of this side as thin lines; returns one of them for the legend."""
    sides: dict[tuple[str, float | None], dict[float, float | None]] = {}
    for row in rows:
        # The budgets of l1-, chi2- and alpha-lift bound averages, not the lifts of these panels.
        if row.notion in ("alip", "lip", "max-lift", "min-lift"):
            sides.setdefault(row.curve, {})[row.epsilon] = budget(row)
    if len(sides) > MOST_BUDGET_LINES:
        return None
    guide = None
    for at in sides.values():
        budgets = sorted(at)
        values = [
            value
            for e in budgets
            if (value := at[e]) is not None and math.isfinite(value)
        ]
        if len(values) == len(budgets):
            limits = axes.get_ylim()
            looks = {
                "color": "0.45",
                "linewidth": 0.8,
                "linestyle": BUDGET_DASHES,
                "zorder": 1,
            }
            (guide,) = axes.plot(budgets, values, label="budget of this side", **looks)
            axes.set_ylim(*limits)
    return guide


def curve_pictures(chart: CurveChart, anchor: str) -> list[str]:
    """A picture for each of `PANELS`, for use inside HTML: fluid, described, with ids of its own by `anchor`."""
    lines, pictures = curve_series(chart), list[str]()
    for k, panel in enumerate(PANELS):
        name, words = (
            f"{anchor}-{k}",
            f"{panel.label} over the budget; {chart.description}",
        )
        with settings(**PAGE, **{"svg.hashsalt": name}):
            pictures.append(
                inline_svg(_panel(chart, panel, lines), name, panel.title, words)
            )
    return pictures


def inline_svg(figure: Any, name: str, title: str, words: str) -> str:
    """A figure as SVG for use inside HTML: fluid, described, with ids of its own."""
    written = io.StringIO()
    figure.savefig(
        written, format="svg", transparent=True, metadata=dict.fromkeys(SAID)
    )
    width, height = UNIT * figure.get_size_inches()
    svg = written.getvalue()
    for pattern, new in TIDY:
        svg = re.sub(pattern, new, svg)
    size = f"max-width:{width:.0f}px;min-width:{width * SMALLEST:.0f}px"
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'style="{size}">\n<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(words)}</desc>\n{svg}'
    )


def curve_series(chart: CurveChart) -> list[Series]:
    """The lines of the pictures, the mechanism of the chosen row first."""
    chosen = chart.curve.chosen.mechanism
    return series(sorted(chart.curve.rows, key=lambda row: row.mechanism != chosen))


def _panel(chart: CurveChart, panel: Panel, lines: Sequence[Series]) -> Any:
    rows, chosen = chart.curve.rows, chart.curve.chosen
    figure = new_figure(
        figsize=(PANEL_WIDTH / UNIT, PANEL_HEIGHT / UNIT), layout="constrained"
    )
    axes = figure.subplots()
    draw_panel(axes, panel, rows, lines)
    if panel.budget is not None:
        reached = [
            v
            for row in rows
            for v in (panel.value(row), panel.budget(row))
            if v is not None
        ]
        axes.set_ylim(
            0.0,
            1.05 * max((v for v in reached if math.isfinite(v)), default=1.0) or 1.0,
        )
    axes.set_xlim(0.0, max(row.epsilon for row in rows) * 1.03)
    axes.set_title(
        panel.title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.axvline(chosen.epsilon, color=INK, linewidth=0.7, zorder=1.5)
    value = panel.value(chosen)
    if value is not None and math.isfinite(value):
        looks = {
            "markersize": 10,
            "mfc": "white",
            "mec": INK,
            "mew": 2.5,
            "zorder": 5,
            "clip_on": False,
        }
        axes.plot([chosen.epsilon], [value], "o", **looks)
    return figure
