"""Numbers, labels and promises as people read them: never more favourable than they are."""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from mechdesign.core.wording import about, at_least, at_most, order_of

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Achieved

WIDTH = 96
"""Longest line of a text report, in characters."""

PERCENT = Decimal("0.001")
"""The last decimal of a percentage."""

RIGHT_TO_LEFT = ("R", "AL")
"""Bidirectional classes of letters that are written from right to left."""


def percent(share: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A share of one as a percentage with three decimals; 0 and 100 are said of nothing but 0 and 1."""
    shown = (Decimal(share) * 100).quantize(PERCENT, rounding=rounding)
    if shown <= 0 < share:
        return ">0 %" if rounding == ROUND_FLOOR else f"<{PERCENT} %"
    if shown >= 100 and share < 1:
        return "<100 %" if rounding == ROUND_CEILING else f">{100 - PERCENT} %"
    return f"{shown} %"


def percent_at_most(share: float) -> str:
    """An upper bound on a share: rounded up."""
    return percent(share, ROUND_CEILING)


def percent_at_least(share: float) -> str:
    """A lower bound on a share: rounded down."""
    return percent(share, ROUND_FLOOR)


def label(text: str) -> str:
    """A symbol or column name, with what would move the cursor of a terminal escaped."""
    return (
        "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
        )
        or '""'
    )


def isolated(shown: str) -> str:
    """`shown` so that, where it is written from right to left, it does not reorder what stands beside it."""
    if any(unicodedata.bidirectional(c) in RIGHT_TO_LEFT for c in shown):
        return f"\u2068{shown}\u2069"
    return shown


def title(columns: tuple[str, ...], between: str = " x ") -> str:
    """The columns of a variable as one name."""
    return between.join(isolated(label(c)) for c in columns)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1 record``, ``31,580 records``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def achieved_text(achieved: Achieved) -> str:
    """The budgets of an `Achieved`, rounded up."""
    return (
        f"eps_l {at_most(achieved.eps_l)}, eps_u {at_most(achieved.eps_u)}, local differential privacy "
        f"{at_most(achieved.eps_ldp)}"
    )


def paragraph(text: str, first: str = "  ") -> str:
    """`text` wrapped and indented, with labels left whole."""
    whole: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), **whole
    )


def item(text: str) -> str:
    """`text` as an item of a list."""
    return paragraph(text, "  - ")


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] = ()) -> list[str]:
    """Rows of cells in columns, those in `left` flush left, indented."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(
            f"{cell:<{width}}" if k in left else f"{cell:>{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]  # fmt: skip


def text_of(macros: Any, report: str, *given: Any, **how: Any) -> str:
    """What one of `macros` says of these facts; blank lines never come twice, and there is no final newline."""
    said = str(getattr(macros, report)(*given, **how))
    return re.sub(r"\n{3,}", "\n\n", said).strip("\n")


def macros_of(
    template: str, filters: Mapping[str, Callable[..., Any]], **known: Any
) -> Any:
    """The macros of a template of plain text beside this file, with `filters` and what is `known` of their own."""
    from jinja2 import Environment, StrictUndefined

    text = files("mechdesign.report").joinpath(template).read_text(encoding="utf-8")
    made: Any = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        each.__name__: each
        for each in (about, at_least, at_most, count, label, percent)
    }
    indents = {"flush": "", "paragraph": "  ", "item": "  - "}
    made.filters |= {name: partial(_filled, indent) for name, indent in indents.items()}
    made.filters |= {
        "sentence": _one_line,
        "lines": aligned,
        "aligned": _barred,
        **filters,
    }
    made.globals |= known
    return made.from_string(text).module


def _one_line(text: str) -> str:
    return text.strip("\n").replace("\n", " ")


def _filled(first: str, text: str) -> str:
    return paragraph(_one_line(text), first)


def _barred(text: str, *left: int) -> str:
    """Lines with bars between their cells as a table, the columns `left` flush left."""
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines()]
    width = max(map(len, rows))
    return "\n".join(
        aligned([row + [""] * (width - len(row)) for row in rows], left=left)
    )


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, each line with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def picked(source: object, *names: str) -> dict[str, Any]:
    """Attributes of this name, for a record."""
    return {name: getattr(source, name) for name in names}


def plain(value: Any) -> Any:
    """`value` with infinities as "inf" and "-inf", NaN as None, and mappings and sequences rebuilt."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {
            key if isinstance(key, str) else order_of(key): plain(item)
            for key, item in items
        }
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value
