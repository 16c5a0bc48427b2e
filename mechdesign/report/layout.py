"""Plain texts for a terminal: wrapped sentences, lists, tables, and the templates of whole reports.

Sentences are wrapped at `WIDTH`. `paragraph` and `item` return one text, with line ends in it;
`lines_of`, `all_lines` and `item_lines` do the same for callers that collect lines. `aligned` pads
cells to the width of their column: ``a  10`` above ``bc  9`` with the first column flush left.

*Templates* have macros with the words, one for each report, and filters with numbers and layout.
`macros_of` loads the macros of one file, with the filters of `wording` and of this module, and
`text_of` runs one of them. For example, a template line
``{{ share | percent }} of {{ name | label }}`` becomes ``85.081 % of job``. In a template
``{% filter paragraph %}`` wraps the sentences that follow it, and ``{% filter aligned %}`` makes a
table of lines whose cells are separated by bars.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from mechdesign.core.wording import about, at_least, at_most
from mechdesign.report.wording import count, label, percent

WIDTH = 96
"""Longest line of a text report, in characters."""

MOST_ESTIMATES = 100
"""Most estimates that a terminal shows; a file has all."""


def paragraph(text: str, first: str = "  ") -> str:
    """`text` wrapped and indented; labels are never broken."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        # A broken label could not be searched for, or copied into another command.
        break_long_words=False,
        break_on_hyphens=False,
    )


def lines_of(text: str) -> list[str]:
    """A sentence as lines that fit a terminal, without an indent."""
    return paragraph(text, "").split("\n")


def all_lines(texts: Iterable[str]) -> list[str]:
    """Several sentences as lines that fit a terminal; each sentence starts a line."""
    lines: list[str] = []
    for text in texts:
        lines += lines_of(text)
    return lines


def remark_sentences(messages: Iterable[str]) -> list[str]:
    """The remarks of a search, each with a capital letter and a full stop."""
    sentences: list[str] = []
    for message in messages:
        sentences.append(f"{message[:1].upper()}{message[1:].rstrip('.')}.")
    return sentences


def item(text: str) -> str:
    """`text` as an item of a list."""
    return paragraph(text, "  - ")


def item_lines(texts: Iterable[str]) -> list[str]:
    """The lines of a list that has an item for each text."""
    lines: list[str] = []
    for text in texts:
        lines += item(text).split("\n")
    return lines


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] = ()) -> list[str]:
    """Rows of cells as indented lines; the columns in `left` are flush left, the others
    flush right.
    """
    rows = [[_shortened(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            if column in left:
                cells.append(cell.ljust(width))
            else:
                cells.append(cell.rjust(width))
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines


def _shortened(cell: str) -> str:
    """A cell without its middle if it is longer than a line: it would widen all lines."""
    if len(cell) <= WIDTH:
        return cell
    half = WIDTH // 2
    return f"{cell[: half - 1]}…{cell[-(WIDTH - half) :]}"


def largest(
    records: Sequence[Mapping[str, Any]], all_in: str
) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    """The records that a terminal shows, and a line on the others if there are any.

    Up to `MOST_ESTIMATES` records are all shown, in their order; of more, those with the largest
    ``estimate``. `all_in` names the options that show all.
    """
    # A column of 10,000 symbols would scroll away what was said above it.
    if len(records) <= MOST_ESTIMATES:
        return records, []
    # Bounds have no estimates.
    has_bounds = any(record["estimate"] is None for record in records)
    key = "upper" if has_bounds else "estimate"
    shown = sorted(records, key=lambda record: -record[key])[:MOST_ESTIMATES]
    note = (
        f"Shown are the {MOST_ESTIMATES} largest of {len(records):,} estimates; "
        f"all are in {all_in}."
    )
    return shown, [paragraph(note)]


# ---------------------------------------------------------------------------- templates


def text_of(macros: Any, report: str, *facts: Any, **options: Any) -> str:
    """The text that the macro `report` writes; blank lines never come twice, and none ends it."""
    text = str(getattr(macros, report)(*facts, **options))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def macros_of(
    template: str,
    filters: Mapping[str, Callable[..., Any]],
    *,
    package: str = "mechdesign.report",
    **constants: Any,
) -> Any:
    """The macros of a plain-text template of a package.

    Parameters
    ----------
    template : str
        A file name.
    filters : mapping
        Filters of the template's own, beside those that all templates have.
    package : str
        The package that the file is in.
    constants : object
        Names that the template may use.
    """
    from jinja2 import Environment, StrictUndefined

    text = files(package).joinpath(template).read_text(encoding="utf-8")
    environment: Any = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for function in (about, at_least, at_most, count, label, percent):
        environment.filters[function.__name__] = function
    for name, indent in (("flush", ""), ("paragraph", "  "), ("item", "  - ")):
        environment.filters[name] = partial(_filled, indent)
    environment.filters["sentence"] = _one_line
    environment.filters["lines"] = aligned
    environment.filters["aligned"] = _barred
    environment.filters.update(filters)
    environment.globals.update(constants)
    return environment.from_string(text).module


def _one_line(text: str) -> str:
    """The lines of a template as one."""
    return text.strip("\n").replace("\n", " ")


def _filled(first: str, text: str) -> str:
    """The lines of a template as a wrapped paragraph."""
    return paragraph(_one_line(text), first)


def _barred(text: str, *left: int) -> str:
    """Lines whose cells are separated by bars as a table; the columns `left` are flush left."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        rows.append([cell.strip() for cell in line.split(" | ")])
    # Rows of a template may end early, where they have nothing more to say.
    width = max(map(len, rows))
    for row in rows:
        row.extend([""] * (width - len(row)))
    return "\n".join(aligned(rows, left=left))
