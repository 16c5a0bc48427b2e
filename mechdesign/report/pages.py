"""A laid out report as text of a file: HTML or Markdown, each from its template beside this file."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

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

SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.")
"""What Markdown may read as an instruction or a link anywhere; a backslash before it makes it a letter."""

LEADING = re.compile(r"^(\d*)([-+.)](?=\s|$)|-(?=-)|[#=])")
"""The same where a text begins."""


def html_page(document: b.Document) -> str:
    """One HTML file that needs nothing else: no script, no font, no picture from elsewhere."""
    return laid_out(
        "page.html.jinja",
        document=document,
        plots=plots,
        TALL=TALL,
        SIDE_BY_SIDE=SIDE_BY_SIDE,
    )


def markdown(document: b.Document) -> str:
    """Markdown with the tables of GitHub; it leaves pictures to their tables of numbers."""
    return laid_out("page.md.jinja", _letters, document=document)


def laid_out(
    template: str, escaped: Callable[[str], str] = escape, /, **content: Any
) -> str:
    """`content` as a template lays it out: whatever it shows is `escaped`, unless it is markup of its own making."""

    def shown(value: object) -> Markup:
        return value if isinstance(value, Markup) else Markup(escaped(str(value)))

    pages: Any = Environment(
        loader=PackageLoader("mechdesign.report", "."),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    own: dict[str, Callable[[Any], Any]] = {
        "kind": lambda block: type(block).__name__,
        "look": _look,
    }
    own |= {
        "shade": lambda cell: sum(cell.strength >= limit for limit in SHADES),
        "tint": _tint,
        "code": _code,
    }
    pages.filters |= own
    return pages.get_template(template).render(**content)


def _letters(text: str) -> str:
    """`text` as it is in Markdown, whatever signs it holds."""
    safe = SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    safe = LEADING.sub(r"\1\\\2", safe)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"&#32;{safe[1:]}" if safe.startswith(" ") else safe


def _code(line: str) -> Markup:
    """A fenced block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}sh\n{line}\n{fence}")


def _look(grid: b.Grid) -> str:
    """The classes of a table whose cells have colours, or shades."""
    cells = [cell for row in grid.rows for cell in row]
    if any(cell.tint is not None for cell in cells):
        return "matrix map"
    return "matrix" if any(cell.strength for cell in cells) else ""


def _tint(cell: b.Cell) -> str:
    """The colour of a cell, between the neighbouring two of `COLOURS`, with ink that stands out."""
    if cell.tint is None:
        return ""
    first, second = COLOURS[:2] if cell.tint < 0.0 else COLOURS[1:]
    share = cell.tint + 1.0 if cell.tint < 0.0 else cell.tint
    pairs = [(int(first[k : k + 2], 16), int(second[k : k + 2], 16)) for k in (1, 3, 5)]
    colour = "".join(f"{round(low + (high - low) * share):02x}" for low, high in pairs)
    return f"background:#{colour}{';color:#fff' if cell.tint > DARK else ''}"
