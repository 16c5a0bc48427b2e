"""The pictures of an HTML report: matplotlib figures as inline SVG, without script, style sheet, font or bitmap.

Colour only repeats what position, numbers or marks say: the colours of a heat map get darker all along, so they keep
their order in grey and for colour-blind readers; lines differ in dashes and markers.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

from mechdesign.core.errors import InputError
from mechdesign.report.blocks import CurveChart, LiftMap
from mechdesign.report.plots import PANELS, Panel, Series, draw_panel, new_figure, series, settings

INK = "#1b1b1b"

UNIT = 72.0
"""Units of an SVG in an inch of matplotlib; on the page one unit is one pixel at most."""

PANEL_WIDTH, PANEL_HEIGHT = 330.0, 250.0

FONT_SIZE, SMALL_FONT_SIZE, TITLE_SIZE = 11.0, 10.0, 13.0
"""Pixels; the small ones in cells of a map with many rows."""

STYLE = {
    "font.size": FONT_SIZE,
    "axes.edgecolor": "#707070",
    "axes.labelcolor": INK,
    "hatch.color": "#bfbfbf",
}
"""Parameters of matplotlib for pictures in a page."""

CELL_WIDTH, CELL_HEIGHT, LOW_CELL_HEIGHT = 46.0, 22.0, 13.0
"""Pixels of a cell of a heat map; the last one where there are many rows."""

MANY_ROWS = 40

LONGEST_ROW_LABEL, LONGEST_COLUMN_LABEL = 155.0, 90.0
"""Pixels beside and above a heat map; longer labels end in an ellipsis there and stand whole in the table beside it."""

SLANT = 40.0
"""Degrees by which the labels above a heat map are turned."""

COLOURS = ("#fff3c9", "#adc0cb", "#10305c")
"""Of the smallest lifts, of 1, and of the largest: lightness 96, 76 and 20."""

DARK = 0.35
"""Cells above this share of the colour scale carry white text."""

MARGIN, GAP = 26.0, 6.0
"""Pixels around a heat map, for fonts wider than the one its labels were measured in; between labels and cells."""

KEY_WIDTH, KEY_HEIGHT, KEY_STEPS = 210.0, 9.0, 42
"""Size in pixels, and the number of colours, of the scale below a heat map."""

SMALLEST = 0.8
"""The picture is never shown smaller than this share of its natural size; its box scrolls instead."""

SUPERFLUOUS = {"font-family", "stroke-linejoin", "stroke-linecap", "stroke-miterlimit", "opacity"}
"""Properties that the page sets itself or that say what is the default anyway."""

LONG_DECIMAL = re.compile(r"(\d\.\d\d)\d+")
"""Coordinates with more digits than a page has pixels for."""

REFERENCE = re.compile(r"url\(#([\w.-]+)\)")

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def check_pictures() -> None:
    """Refuse to draw where matplotlib is missing, before any work is done."""
    if find_spec("matplotlib") is None:
        raise InputError(
            "an HTML report needs matplotlib, which is not installed: pip install 'mechdesign[report]' "
            "(.md and .json reports need nothing)"
        )


def curve_pictures(chart: CurveChart, anchor: str) -> list[str]:
    """A picture for each of `plots.PANELS`; `anchor` makes their ids unique."""
    lines = curve_series(chart)
    return [
        _inline(
            lambda panel=panel: _panel(chart, panel, lines),
            f"{anchor}-{k}",
            panel.title,
            f"{panel.label} over the budget; {chart.description}",
        )
        for k, panel in enumerate(PANELS)
    ]


def curve_series(chart: CurveChart) -> list[Series]:
    """The lines of the pictures, the mechanism of the chosen row first."""
    chosen = chart.curve.chosen.mechanism
    return series(sorted(chart.curve.rows, key=lambda row: row.mechanism != chosen))


def _panel(chart: CurveChart, panel: Panel, lines: Sequence[Series]) -> Any:
    rows, chosen = chart.curve.rows, chart.curve.chosen
    figure = new_figure(figsize=(PANEL_WIDTH / UNIT, PANEL_HEIGHT / UNIT), layout="constrained")
    axes = figure.subplots()
    draw_panel(axes, panel, rows, lines)
    if panel.budget is not None:
        reached = [v for row in rows for v in (panel.value(row), panel.budget(row)) if v is not None]
        axes.set_ylim(0.0, 1.05 * max((v for v in reached if math.isfinite(v)), default=1.0) or 1.0)
    axes.set_xlim(0.0, max(row.epsilon for row in rows) * 1.03)
    axes.set_title(panel.title, loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.axvline(chosen.epsilon, color=INK, linewidth=0.7, zorder=1.5)
    value = panel.value(chosen)
    if math.isfinite(value):
        axes.plot(
            [chosen.epsilon],
            [value],
            marker="o",
            markersize=10,
            markerfacecolor="white",
            markeredgecolor=INK,
            markeredgewidth=2.5,
            zorder=5,
            clip_on=False,
        )
    return figure


def lift_picture(map_: LiftMap, anchor: str) -> str:
    """One heat map with its numbers in the cells; `anchor` makes its ids unique."""
    return _inline(lambda: _heat_map(map_), anchor, map_.title, map_.description)


def _heat_map(map_: LiftMap) -> Any:
    tall = len(map_.rows) > MANY_ROWS
    high, size = (LOW_CELL_HEIGHT, SMALL_FONT_SIZE) if tall else (CELL_HEIGHT, FONT_SIZE)
    rows = [_clipped(name, LONGEST_ROW_LABEL) for name in map_.rows]
    columns = [_clipped(name, LONGEST_COLUMN_LABEL) for name in map_.columns]
    across, down = math.cos(math.radians(SLANT)), math.sin(math.radians(SLANT))
    wide, tall_rows = CELL_WIDTH * len(columns), high * len(rows)
    ends = [CELL_WIDTH * (c + 0.5) + across * _width(name) for c, name in enumerate(columns)]
    left = MARGIN + GAP + max(map(_width, rows))
    top = 2.5 * FONT_SIZE + GAP + max(down * _width(name) + across * FONT_SIZE for name in columns)
    right = MARGIN + max(max(*ends, wide) - wide, KEY_WIDTH + FONT_SIZE - wide, 0.0)
    bottom = 4.0 * FONT_SIZE + KEY_HEIGHT + 2.0 * GAP
    width, height = left + wide + right, top + tall_rows + bottom
    figure = new_figure(figsize=(width / UNIT, height / UNIT), layout="none")
    # One unit of the axes is one pixel, with the first cell at the origin and y downwards.
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(-left, wide + right), ylim=(tall_rows + bottom, -top))
    axes.axis("off")

    def write(x: float, y: float, text: str, **options: Any) -> None:
        axes.text(x, y, text, **{"color": INK, "fontsize": FONT_SIZE, "parse_math": False, **options})

    scale = math.log2(map_.ends)
    cells = [(r, c, value) for r, line in enumerate(map_.values) for c, value in enumerate(line)]
    shades = [_shade(value, scale) for _, _, value in cells]
    _boxes(
        axes,
        [(CELL_WIDTH * c, high * r, CELL_WIDTH, high) for r, c, _ in cells],
        [_colour(shade) for shade in shades],
        "white",
    )
    for (r, c, value), shade in zip(cells, shades, strict=True):
        write(
            CELL_WIDTH * (c + 0.5),
            high * (r + 0.5),
            _cell_text(value, map_.marks[r][c]),
            ha="center",
            va="center_baseline",
            fontsize=size,
            color="white" if shade > DARK else INK,
        )
    for r, name in enumerate(rows):
        write(-GAP, high * (r + 0.5), name, ha="right", va="center_baseline", fontsize=size)
    for c, name in enumerate(columns):
        write(
            CELL_WIDTH * (c + 0.5),
            -GAP,
            name,
            ha="left",
            va="bottom",
            rotation=SLANT,
            rotation_mode="anchor",
        )
    write(wide / 2.0, -top + FONT_SIZE, _clipped(map_.across, left + wide), ha="center", va="center_baseline")
    _key(axes, tall_rows + 2.0 * GAP, scale, write)
    return figure


def _key(axes: Any, y: float, scale: float, write: Any) -> None:
    """The scale of colours: its name, its colours, and the lifts that they stand for."""
    write(0.0, y + FONT_SIZE / 2.0, "lift", ha="left", va="center_baseline")
    y += 1.5 * FONT_SIZE
    step = KEY_WIDTH / KEY_STEPS
    shades = [2.0 * (k + 0.5) / KEY_STEPS - 1.0 for k in range(KEY_STEPS)]
    colours = [_colour(shade) for shade in shades]
    _boxes(axes, [(step * k, y, step, KEY_HEIGHT) for k in range(KEY_STEPS)], colours, colours)
    steps = round(scale)
    for power in range(-steps, steps + 1):
        text = f"{2**power}" if power >= 0 else f"1/{2**-power}"
        x = KEY_WIDTH * (power / scale + 1.0) / 2.0
        write(x, y + KEY_HEIGHT + FONT_SIZE, text, ha="center", va="center_baseline")


def _boxes(
    axes: Any, boxes: Iterable[tuple[float, float, float, float]], colours: Sequence[str], edges: Any
) -> None:
    collection = import_module("matplotlib.collections").PolyCollection
    corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in boxes]
    axes.add_collection(
        collection(corners, facecolors=colours, edgecolors=edges, linewidths=1.0, clip_on=False)
    )


def _shade(value: float, scale: float) -> float:
    """Where a lift stands on the scale of colours, in [-1, 1]."""
    level = math.log2(value) if value > 0.0 else -math.inf
    return max(-1.0, min(1.0, level / scale))


def _colour(shade: float) -> str:
    """The colour of a place on the scale, between the neighbouring two of `COLOURS`."""
    first, second = COLOURS[:2] if shade < 0.0 else COLOURS[1:]
    share = shade + 1.0 if shade < 0.0 else shade
    pairs = [(int(first[k : k + 2], 16), int(second[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _cell_text(value: float, mark: str) -> str:
    if value == 0.0 or value >= 100.0:
        shown = f"{value:.0f}"
    elif value < 0.005:
        shown = "<.01"
    else:
        shown = f"{value:.2f}" if value < 10.0 else f"{value:.1f}"
    return shown + mark


def _width(text: str) -> float:
    """Pixels of a text in matplotlib's own font, which is wider than those of most pages."""
    measured = import_module("matplotlib.textpath").text_to_path
    font = import_module("matplotlib.font_manager").FontProperties(size=FONT_SIZE)
    return measured.get_text_width_height_descent(text, font, ismath=False)[0]


def _clipped(text: str, longest: float) -> str:
    """`text`, ending in an ellipsis where it is longer than so many pixels."""
    if _width(text) <= longest:
        return text
    kept = next(k for k in range(len(text) - 1, -1, -1) if _width(text[:k] + "…") <= longest)
    return text[:kept] + "…"


def _inline(draw: Any, anchor: str, title: str, description: str) -> str:
    """The figure that `draw` makes, for use inside HTML: fluid, described, with ids of its own."""
    written = io.StringIO()
    with settings(**STYLE), warnings.catch_warnings():
        # A browser has more glyphs than matplotlib's font, in which widths are only estimated.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        figure = draw()
        undated = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(written, format="svg", transparent=True, metadata=undated)
    return tidy(written.getvalue(), anchor, title, description)


def tidy(svg: str, anchor: str, title: str, description: str) -> str:
    """The picture for use inside HTML."""
    root = ElementTree.fromstring(svg)
    width = float(root.get("viewBox", "0 0 0 0").split()[2])
    for parent in list(root.iter()):
        for child in list(parent):
            # matplotlib's style sheet would apply to the whole page.
            if child.tag.removeprefix(SVG) in ("metadata", "style"):
                parent.remove(child)
    for empty in [child for child in root if child.tag == f"{SVG}defs" and len(child) == 0]:
        root.remove(empty)
    used = {value[1:] for e in root.iter() for value in (e.get("href"), e.get(f"{XLINK}href")) if value}
    used |= {name for e in root.iter() for v in e.attrib.values() for name in REFERENCE.findall(v)}
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        _shorten(element, anchor, used)
    root.attrib = {"viewBox": root.get("viewBox", "")}
    for name, text, position in (("title", title, 0), ("desc", description, 1)):
        child = ElementTree.Element(name, {"id": f"{anchor}-{name}"})
        child.text = text
        root.insert(position, child)
    root.set("role", "img")
    root.set("aria-labelledby", f"{anchor}-title {anchor}-desc")
    root.set("style", f"max-width:{width:.0f}px;min-width:{width * SMALLEST:.0f}px")
    return re.sub(r"\n\s*", "\n", ElementTree.tostring(root, encoding="unicode"))


def _shorten(element: ElementTree.Element, anchor: str, used: set[str]) -> None:
    """Ids only where something refers to them, and styles without what is superfluous."""
    for name, value in list(element.attrib.items()):
        if name == "id":
            del element.attrib[name]
            if value in used:
                element.set("id", f"{anchor}-{value}")
        elif name in ("href", f"{XLINK}href"):
            del element.attrib[name]
            element.set("href", f"#{anchor}-{value[1:]}")
        elif name == "style":
            del element.attrib[name]
            value = REFERENCE.sub(rf"url(#{anchor}-\1)", value)
            parts = [part.strip() for part in value.split(";") if part.strip()]
            kept = [p for p in map(_font, parts) if p.partition(":")[0] not in SUPERFLUOUS]
            if kept:
                element.set("style", ";".join(kept))
        elif name == "transform" and value.startswith("rotate(-0 "):
            del element.attrib[name]
        else:
            element.set(name, REFERENCE.sub(rf"url(#{anchor}-\1)", LONG_DECIMAL.sub(r"\1", value)))


def _font(part: str) -> str:
    """A style declaration; of a whole font its size and weight, for its family is that of the page."""
    name, _, value = part.partition(":")
    if name != "font":
        return part
    size = re.search(r"[\d.]+px", value)
    bold = ";font-weight:bold" if re.search(r"\b(bold|[6-9]00)\b", value) else ""
    return f"font-size:{size[0] if size else f'{FONT_SIZE}px'}{bold}"
