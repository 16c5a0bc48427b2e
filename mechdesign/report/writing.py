"""A report as a file: HTML, Markdown or JSON by its ending, whole or not at all.

Markdown has the tables of GitHub, and leaves pictures to their tables of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report import blocks as b
from mechdesign.report.document import document_of
from mechdesign.report.plots import check_ending, check_matplotlib
from mechdesign.report.record import FORMAT, VERSION, Report, to_json

HTML = ".html"
ENDINGS = (HTML, ".md", ".json")


def check_report(
    path: PathLike, *, force: bool, sources: tuple[PathLike, ...] = (), pictures: bool = True
) -> None:
    """Refuse a report that cannot be drawn or written, before any work is done."""
    if check_ending(path, "report", ENDINGS) == HTML and pictures:
        check_matplotlib("an HTML report needs", "report", " (.md and .json reports need nothing)")
    check_target(path, force=force, sources=sources)


def document_text(record: Mapping[str, Any], document: Callable[[], b.Document], ending: str) -> str:
    """The document in the format of this ending, or its record where that is JSON."""
    if ending == ".json":
        return to_json(record) + "\n"
    if ending == HTML:
        from mechdesign.report.html import html_page

        return html_page(document())
    return markdown(document())


def report_text(report: Report, ending: str) -> str:
    """The report in the format of this ending."""
    record = {"format": FORMAT, "version": VERSION, **asdict(report)}
    return document_text(record, lambda: document_of(report), ending)


def save_report(report: Report, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the report, whole or not at all."""
    check_report(path, force=overwrite, pictures=report.before is not None)
    save_text(path, report_text(report, Path(path).suffix.lower()), overwrite=overwrite)


def save_text(path: PathLike, text: str, *, overwrite: bool) -> None:
    """Write a report, whole or not at all."""
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.")
"""What Markdown may read as an instruction or a link anywhere; a backslash before it makes it a letter."""

LEADING = re.compile(r"^(\d*)([-+.)](?=\s|$)|-(?=-)|[#=])")
"""The same where a text begins."""


def markdown(document: b.Document) -> str:
    """The whole file."""
    highlights = _items([f"{_text(name)}: **{_text(text)}**" for name, text in document.highlights])
    title, banner = f"# {_text(document.title)}", f"**{_text(document.banner)}**"
    parts = [title, banner, _text(document.lead), highlights]
    for section in document.sections:
        parts.append(f"## {_text(section.title)}")
        parts += [text for block in section.blocks if (text := _block(block))]
    parts.append(f"---\n\n{_text(document.footer)}")
    return "\n\n".join(parts) + "\n"


def _text(text: str) -> str:
    """`text` as it is, whatever signs it holds."""
    safe = SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    safe = LEADING.sub(r"\1\\\2", safe)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"&#32;{safe[1:]}" if safe.startswith(" ") else safe


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _block(block: b.Block) -> str:
    match block:
        case b.Text(text):
            return _text(text)
        case b.Remark(text):
            return f"> {_text(text)}"
        case b.Bullets(items):
            return _items([_text(item) for item in items])
        case b.Facts(items):
            return _items([f"{_text(name)}: {_text(text)}" for name, text in items])
        case b.Lines(items):
            return "\n\n".join(f"{_text(purpose)}\n\n{_code(line)}" for purpose, line in items)
        case b.Grid():
            return _grid(block)
        case b.Maps(maps):
            return "\n\n".join(map(_grid, maps))
        case b.CurveChart() | b.Picture():
            return ""


def _code(line: str) -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{line}\n{fence}"


def _grid(grid: b.Grid) -> str:
    words = {*range(grid.heads), *grid.left}
    rule = [":--" if k in words else "--:" for k in range(len(grid.header))]
    rows = [[_text(cell.text) for cell in row] for row in grid.rows]
    lines = [[_text(name) for name in grid.header], rule, *rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{_text(grid.caption)}:\n\n{table}"
