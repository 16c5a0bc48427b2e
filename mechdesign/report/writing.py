"""A report as a file: HTML, Markdown or JSON by its ending, whole or not at all.

Records of a channel come here (`save_reports`), and pages with a record of their own
(`save_document`). All become a text by `document_text` and a file by `save_text`, which replaces
the target only when the text is complete; two reports of one channel go through `save_texts`.

*HTML and Markdown.* `html_page` and `markdown` fill their templates with a `blocks.Document`. A
template goes through its sections and blocks and chooses by the `kind` of a block: "Text" becomes a
paragraph, "Grid" a table, "Bullets" a list.

Symbols and column names are texts of users, so `laid_out` escapes every text on its way out. In
HTML ``<b>`` becomes ``&lt;b&gt;``; in Markdown a backslash goes before the star of ``a*b``
(`_letters`). Not escaped is the markup that `_code` and `_data_address` make. Other filters
say how a cell looks:

- `_shade`: the number of a ground, from 0 to 5; a share of 0.818 has reached four of `SHADES`.
- `_tint`: a colour on the way from pale to dark; a tint of -0.5 lies halfway between the first two
  of `COLOURS`.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdesign.core.errors import errors_noting
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report import blocks
from mechdesign.report.document import document_of
from mechdesign.report.drawing import check_ending
from mechdesign.report.plain_values import to_json
from mechdesign.report.record import FORMAT, VERSION, Report

if TYPE_CHECKING:
    from markupsafe import Markup

HTML = ".html"
ENDINGS = (HTML, ".md", ".json")


def check_report(
    path: PathLike,
    *,
    force: bool,
    sources: tuple[PathLike, ...] = (),
) -> None:
    """Refuse a report that cannot be written, before any work is done."""
    check_ending(path, "report", ENDINGS)
    check_target(path, force=force, sources=sources)


def save_reports(
    reports: Sequence[tuple[PathLike, Report]], *, overwrite: bool
) -> None:
    """Write reports of one channel, each whole or not at all."""
    texts: list[tuple[PathLike, str]] = []
    for path, report in reports:
        check_report(path, force=overwrite)
        texts.append((path, report_text(report, Path(path).suffix.lower())))
    save_texts(texts, overwrite=overwrite)


def save_document(
    path: PathLike,
    record: Mapping[str, Any],
    page: Callable[[], blocks.Document],
    *,
    overwrite: bool,
) -> None:
    """Write a page as HTML, Markdown or JSON by the ending of its path, whole or not at all."""
    text = document_text(record, page, Path(path).suffix.lower())
    save_text(path, text, overwrite=overwrite)


def report_text(report: Report, ending: str) -> str:
    """The report in the format of this ending."""
    record: dict[str, Any] = {}
    # Pages do not have it, and that of a large channel takes seconds.
    if ending == ".json":
        table = replace(report.channel, rows=tuple(report.channel.rows))
        report = replace(report, channel=table)
        if report.codebook is not None:
            report = replace(report, codebook=tuple(report.codebook))
        record = {"format": FORMAT, "version": VERSION, **asdict(report)}
    return document_text(record, lambda: document_of(report), ending)


def document_text(
    record: Mapping[str, Any], document: Callable[[], blocks.Document], ending: str
) -> str:
    """The document in the format of this ending, or its record where that is JSON."""
    if ending == ".json":
        return to_json(record) + "\n"
    return html_page(document()) if ending == HTML else markdown(document())


def save_texts(texts: Sequence[tuple[PathLike, str]], *, overwrite: bool) -> None:
    """Write several files; an error names those that were complete before it.

    All texts are there before the first file is written, so that only a disk can fail between them.
    """
    written: list[str] = []
    for path, text in texts:
        with errors_noting(*[f"{name} is written" for name in written]):
            save_text(path, text, overwrite=overwrite)
        written.append(os.fspath(path))


def save_text(path: PathLike, text: str, *, overwrite: bool) -> None:
    """Write a report, whole or not at all."""
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


# ----------------------------------------------------------------------- texts of pages

TALL = 20
"""Rows above which a table scrolls in a box of its own."""

SIDE_BY_SIDE = 8
"""Columns up to which two heat maps stand side by side."""

SMALLEST = 0.8
"""A picture is never shown smaller than this share of its natural size; its box scrolls instead."""

PAGE_LIMITS = {"TALL": TALL, "SIDE_BY_SIDE": SIDE_BY_SIDE, "SMALLEST": SMALLEST}
"""What templates of pages know of sizes."""

COLOURS = ("#fff3c9", "#adc0cb", "#10305c")
"""Colours of the smallest lifts, of 1, and of the largest: lightness 96, 76 and 20, so
the order survives in grey.
"""

DARK = 0.35
"""Cells above this share of the colour scale carry white text."""

SHADES = (0.02, 0.1, 0.3, 0.6, 0.9)
"""Shares from which on a cell has the next darker ground."""

SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.")
"""Signs that Markdown may read as an instruction or a link; a backslash turns them into letters."""

LEADING = re.compile(r"^(\d*)([-+.)](?=\s|$)|-(?=-)|[#=])")
"""The same where a text begins."""


def html_page(document: blocks.Document) -> str:
    """One HTML file that needs nothing else: no script, no font, no picture from elsewhere."""
    return laid_out(
        "page.html.jinja",
        document=document,
        **PAGE_LIMITS,
    )


def html_sections(sections: Sequence[blocks.Section]) -> str:
    """Sections of a report as a part of another page, which has their style."""
    return laid_out("sections.html.jinja", sections=sections, **PAGE_LIMITS)


def markdown(document: blocks.Document) -> str:
    """Markdown with the tables of GitHub; it leaves pictures to their tables of numbers."""
    return laid_out("page.md.jinja", _letters, document=document)


def laid_out(
    template: str, escaped: Callable[[str], str] = escape, /, **content: Any
) -> str:
    """`content` in a template: every text is `escaped`, except the markup that this
    module makes.
    """
    return _templates(escaped).get_template(template).render(**content)


# Cached, because a process may write many reports, and Jinja needs 50 ms to compile the templates.
@cache
def _templates(escaped: Callable[[str], str]) -> Any:
    """The templates of this package for one kind of escaping."""
    # JSON needs no templates.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    # Jinja calls this for every expression of a template. Markup is what a filter here has made.
    def finalize(value: object) -> Markup:
        return value if isinstance(value, Markup) else Markup(escaped(str(value)))

    environment: Any = Environment(
        loader=PackageLoader("mechdesign.report", "."),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["kind"] = _kind
    environment.filters["look"] = _look
    environment.filters["shade"] = _shade
    environment.filters["tint"] = _tint
    environment.filters["code"] = _code
    environment.filters["data_address"] = _data_address
    environment.filters["points"] = _points
    return environment


def _kind(block: blocks.Block) -> str:
    """The name of a block's type, by which templates choose."""
    return type(block).__name__


def _shade(cell: blocks.Cell) -> int:
    """The number of steps of `SHADES` that a cell has reached."""
    return sum(cell.strength >= limit for limit in SHADES)


def _data_address(svg: str) -> Markup:
    """A picture as the address of an image: the page then needs no other file."""
    from markupsafe import Markup

    encoded = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return Markup(f"data:image/svg+xml;base64,{encoded}")


def _points(places: Sequence[tuple[float, float]]) -> str:
    """Places in the form of the attribute `points` of SVG: ``1.0,2.5 3.0,4.0``."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _letters(text: str) -> str:
    """`text` as it is in Markdown, whatever signs it holds."""
    safe = SPECIAL.sub(lambda match: f"\\{match[0]}", text)
    safe = LEADING.sub(r"\1\\\2", safe)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Markdown drops a blank at the start, or reads several as code; an entity is a blank to both.
    if safe.startswith(" "):
        return f"&#32;{safe[1:]}"
    return safe


def _code(line: str) -> Markup:
    """A fenced block whose fence is longer than any run of backticks inside."""
    from markupsafe import Markup

    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}sh\n{line}\n{fence}")


def _look(grid: blocks.Grid) -> str:
    """The classes of a table whose cells have colours, or shades."""
    look = ""
    for row in grid.rows:
        for cell in row:
            if cell.tint is not None:
                return "matrix map"
            if cell.strength:
                look = "matrix"
    return look


def _tint(cell: blocks.Cell) -> str:
    """The colour of a cell, between the neighbouring two of `COLOURS`, with ink that stands out."""
    if cell.tint is None:
        return ""
    # Tints -1, 0 and 1 have the three colours; between two of them it is interpolated linearly.
    if cell.tint < 0.0:
        first, second = COLOURS[:2]
        share = cell.tint + 1.0
    else:
        first, second = COLOURS[1:]
        share = cell.tint
    colour = ""
    # The places of the hexadecimal pairs of red, green and blue.
    for place in (1, 3, 5):
        low = int(first[place : place + 2], 16)
        high = int(second[place : place + 2], 16)
        colour += f"{round(low + (high - low) * share):02x}"
    # White on a dark ground; elsewhere the ink of the page.
    ink = ""
    if cell.tint > DARK:
        ink = ";color:#fff"
    return f"background:#{colour}{ink}"
