"""The pictures of an HTML report: matplotlib figures as inline SVG, without script, style sheet, font or bitmap.

Colour only repeats what position and marks say: lines differ in dashes and markers, too.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

from mechdesign.core.errors import InputError
from mechdesign.report.blocks import CurveChart
from mechdesign.report.plots import PANELS, Panel, Series, draw_panel, new_figure, series, settings

INK = "#1b1b1b"

UNIT = 72.0
"""Units of an SVG in an inch of matplotlib; on the page one unit is one pixel at most."""

PANEL_WIDTH, PANEL_HEIGHT = 330.0, 250.0

FONT_SIZE, TITLE_SIZE = 11.0, 13.0
"""Pixels."""

STYLE = {
    "font.size": FONT_SIZE,
    "axes.edgecolor": "#707070",
    "axes.labelcolor": INK,
    "hatch.color": "#bfbfbf",
}
"""Parameters of matplotlib for pictures in a page."""

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
