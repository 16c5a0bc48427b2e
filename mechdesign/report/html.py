"""A laid out report as one HTML file that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from mechdesign.report import blocks as b
from mechdesign.report import plots

TALL = 20
"""Rows above which a table scrolls in a box of its own."""

SIDE_BY_SIDE = 8
"""Columns up to which two heat maps stand side by side."""

COLOURS = ("#fff3c9", "#adc0cb", "#10305c")
"""Of the smallest lifts, of 1, and of the largest: lightness 96, 76 and 20, in this order also in grey."""

DARK = 0.35
"""Cells above this share of the colour scale carry white text."""

SHADES = (0.02, 0.1, 0.3, 0.6, 0.9)
"""Shares from which on a cell has the next darker ground."""


def html_page(document: b.Document) -> str:
    """The whole file, as `page.jinja` lays it out."""
    how: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    loader = PackageLoader("mechdesign.report", ".")
    pages: Any = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, **how)
    pages.filters |= {"kind": _kind, "look": _look, "shade": _shade, "tint": _tint}
    page = pages.get_template("page.jinja")
    return page.render(document=document, plots=plots, TALL=TALL, SIDE_BY_SIDE=SIDE_BY_SIDE)


def _kind(block: b.Block) -> str:
    return type(block).__name__


def _look(grid: b.Grid) -> str:
    """The classes of a table whose cells have colours, or shades."""
    cells = [cell for row in grid.rows for cell in row]
    if any(cell.tint is not None for cell in cells):
        return "matrix map"
    return "matrix" if any(cell.strength for cell in cells) else ""


def _shade(cell: b.Cell) -> int:
    return sum(cell.strength >= limit for limit in SHADES)


def _tint(cell: b.Cell) -> str:
    """The colour of a cell, between the neighbouring two of `COLOURS`, with ink that stands out."""
    if cell.tint is None:
        return ""
    first, second = COLOURS[:2] if cell.tint < 0.0 else COLOURS[1:]
    share = cell.tint + 1.0 if cell.tint < 0.0 else cell.tint
    pairs = [(int(first[k : k + 2], 16), int(second[k : k + 2], 16)) for k in (1, 3, 5)]
    colour = "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)
    return f"background:#{colour}{';color:#fff' if cell.tint > DARK else ''}"
