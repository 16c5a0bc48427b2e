"""A laid out report as Markdown (with the tables of GitHub); pictures are left to their tables of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mechdesign.report.blocks import (
    Block,
    Bullets,
    CurveChart,
    Document,
    Facts,
    Grid,
    Lines,
    Maps,
    Remark,
    Text,
)

SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.")
"""What Markdown may read as an instruction or a link anywhere; a backslash before it makes it a letter."""

LEADING = re.compile(r"^(\d*)([-+.)](?=\s|$)|-(?=-)|[#=])")
"""The same where a text begins."""


def markdown(document: Document) -> str:
    """The whole file."""
    parts = [
        f"# {_text(document.title)}",
        f"**{_text(document.banner)}**",
        _text(document.lead),
        _items([f"{_text(name)}: **{_text(text)}**" for name, text in document.highlights]),
    ]
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


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return _text(text)
        case Remark(text):
            return f"> {_text(text)}"
        case Bullets(items):
            return _items([_text(item) for item in items])
        case Facts(items):
            return _items([f"{_text(name)}: {_text(text)}" for name, text in items])
        case Lines(items):
            return "\n\n".join(f"{_text(purpose)}\n\n{_code(line)}" for purpose, line in items)
        case Grid():
            return _grid(block)
        case CurveChart() | Maps():
            return ""


def _code(line: str) -> str:
    """A fenced block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{line}\n{fence}"


def _grid(grid: Grid) -> str:
    words = {*range(grid.heads), *grid.left}
    rule = [":--" if k in words else "--:" for k in range(len(grid.header))]
    lines = [
        [_text(name) for name in grid.header],
        rule,
        *([_text(cell.text) for cell in row] for row in grid.rows),
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{_text(grid.caption)}:\n\n{table}"
