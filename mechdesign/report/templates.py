"""Plain texts from Jinja templates: macros with the words, filters with numbers and layout.

A template has a macro for each report. `macros_of` loads the macros of one file, with the filters
of `wording` and `layout`, and `text_of` runs one of them. For example, a template line
``{{ share | percent }} of {{ name | label }}`` becomes ``85.081 % of job``. In a template
``{% filter paragraph %}`` wraps the sentences that follow it, and ``{% filter aligned %}`` makes a
table of lines whose cells are separated by bars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from mechdesign.core.wording import about, at_least, at_most
from mechdesign.report.layout import aligned, paragraph
from mechdesign.report.wording import count, label, percent


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
