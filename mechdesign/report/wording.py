"""Numbers, labels and promises as people read them: never more favourable than they are.

Every text of this package is made with these functions. Shares and factors are rounded in the
direction that claims less (`percent_at_least`, `percent_at_most`, `factor_text`); labels are made
harmless for a terminal (`label`, `isolated`); texts are wrapped (`paragraph`, `item`) and tables
aligned (`aligned`). `macros_of` loads the templates of plain texts, which use the same functions.
"""

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
from typing import TYPE_CHECKING, Any, Protocol, cast

from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import (
    about,
    at_least,
    at_most,
    factor_at_least,
    factor_at_most,
    order_of,
)

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Achieved
    from mechdesign.notions import Notion

WIDTH = 96
"""Longest line of a text report, in characters."""

SPOKEN_DIGITS = 3
"""Significant digits of a factor in a sentence for everybody."""

MOST_ESTIMATES = 100
"""Estimates in a terminal; a file has all."""

PERCENT = Decimal("0.001")
"""The last decimal of a percentage."""

TENTH = Decimal("0.1")
"""The last decimal of a percentage that people say."""

RIGHT_TO_LEFT = ("R", "AL")
"""Bidirectional classes of letters that are written from right to left."""


def percent(
    share: float, rounding: str = ROUND_HALF_EVEN, *, step: Decimal = PERCENT
) -> str:
    """A share of one as a percentage with three decimals, or with those of another `step`.

    Only a share of exactly 0 or 1 is written as 0 or 100 %.
    """
    # `Decimal` of a double is exact, so only `quantize` rounds, in the direction asked for.
    rounded = (Decimal(share) * 100).quantize(step, rounding=rounding)
    # "0.000 %" of a share above 0, or "100.000 %" of one below 1, would claim a certainty.
    if rounded <= 0 < share:
        return ">0 %" if rounding == ROUND_FLOOR else f"<{step} %"
    if rounded >= 100 and share < 1:
        return "<100 %" if rounding == ROUND_CEILING else f">{100 - step} %"
    return f"{rounded} %"


def percent_at_most(share: float, *, step: Decimal = PERCENT) -> str:
    """An upper bound on a share: rounded up."""
    return percent(share, ROUND_CEILING, step=step)


def percent_at_least(share: float, *, step: Decimal = PERCENT) -> str:
    """A lower bound on a share: rounded down."""
    return percent(share, ROUND_FLOOR, step=step)


def tenths_at_least(share: float) -> str:
    """A lower bound on a share in percent, rounded down to the one decimal that people say."""
    return percent(share, ROUND_FLOOR, step=TENTH)


def label(text: str) -> str:
    """A symbol or column name; characters that would move a terminal's cursor are escaped."""
    characters: list[str] = []
    for character in text:
        if character.isprintable():
            characters.append(character)
        else:
            characters.append(character.encode("unicode_escape").decode())
    return "".join(characters) or '""'


def first_labels(names: Sequence[str], most: int) -> str:
    """The first `most` names, and the number of the others."""
    shown = ", ".join(map(label, names[:most]))
    if len(names) > most:
        shown += f" and {len(names) - most:,} more"
    return shown


def isolated(text: str) -> str:
    """`text`, enclosed in isolating marks if it has letters written from right to left.

    Without the marks such a label would reorder the text beside it.
    """
    if any(unicodedata.bidirectional(letter) in RIGHT_TO_LEFT for letter in text):
        return f"\u2068{text}\u2069"
    return text


def title(columns: tuple[str, ...], between: str = " x ") -> str:
    """The columns of a variable as one name."""
    return between.join(isolated(label(column)) for column in columns)


class Named(Protocol):
    """A variable, or figures on one: it has the names of its columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """One name, or several of crossed columns."""
        ...


def titles(variables: Iterable[Named]) -> str:
    """The names of several variables: ``age, city x sex``."""
    return ", ".join(title(variable.columns) for variable in variables)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """``1 record``, ``31,580 records``."""
    if number == 1:
        return f"1 {singular}"
    return f"{number:,} {plural or singular + 's'}"


def achieved_text(achieved: Achieved) -> str:
    """The budgets of an `Achieved` in nats, rounded up; "unbounded" where one is infinite."""
    return (
        f"eps_l {_budget_text(achieved.eps_l)}, eps_u {_budget_text(achieved.eps_u)}, "
        f"local differential privacy {_budget_text(achieved.eps_ldp)}"
    )


def _budget_text(nats: float) -> str:
    """A budget rounded up."""
    return "unbounded" if math.isinf(nats) else at_most(nats)


def factor_text(nats: float, *, upper: bool) -> str:
    """exp(nats) rounded up, or exp(-nats) rounded down; "any" and "0" where nats is infinite."""
    if math.isinf(nats):
        return "any" if upper else "0"
    return factor_at_most(nats) if upper else factor_at_least(nats)


def short_factor(nats: float, *, upper: bool) -> str:
    """exp(nats) rounded up, or exp(-nats) rounded down, to the three digits that people say."""
    if math.isinf(nats):
        return "any" if upper else "0"
    if upper:
        return factor_at_most(nats, SPOKEN_DIGITS)
    # Lower factors are below 1, where two digits are as fine as three above: 0.60 and not 0.606.
    return factor_at_least(nats, SPOKEN_DIGITS - 1)


def bounded_sides(achieved: Achieved, notion: Notion) -> tuple[float, float]:
    """eps_l and eps_u that were achieved; infinite on a side that the notion leaves free.

    Nobody asked for anything on such a side, and what is achieved there by chance is no promise.
    """
    free = notion.limits.free_sides
    lower = math.inf if "lower" in free else achieved.eps_l
    upper = math.inf if "upper" in free else achieved.eps_u
    return lower, upper


def times_text(achieved: Achieved, notion: Notion) -> str:
    """``0.5 to 2 times``: a lift, rounded outwards, on the sides that a notion bounds."""
    return range_text(*bounded_sides(achieved, notion))


def range_text(lower: float, upper: float) -> str:
    """The range of a lift from its budgets in nats, rounded outwards to three digits."""
    if math.isinf(lower) and math.isinf(upper):
        return "any number of times"
    low = short_factor(lower, upper=False)
    high = short_factor(upper, upper=True)
    if math.isinf(upper):
        return f"at least {low} times"
    if math.isinf(lower):
        return f"at most {high} times"
    return f"{low} to {high} times"


def change_text(achieved: Achieved, notion: Notion, secret: str) -> str:
    """The largest effects of a released row, on the sides that the notion bounds."""
    limits = notion.limits
    # A notion on ratios of rows alone, such as ldp, bounds P(y|s) / P(y|s') and no change of P(s).
    if isinstance(limits, LiftLimits) and not limits.need_shares:
        factor = short_factor(achieved.eps_ldp, upper=True)
        return (
            f"every released row is at most {factor} times as probable for one value of "
            f"{secret} as for another"
        )
    times = times_text(achieved, notion)
    return f"a released row makes any value of {secret} {times} as probable"


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
    shown = sorted(records, key=lambda record: -record["estimate"])[:MOST_ESTIMATES]
    note = (
        f"Shown are the {MOST_ESTIMATES} largest of {len(records):,} estimates; "
        f"all are in {all_in}."
    )
    return shown, [paragraph(note)]


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


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, each line with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def picked(source: object, *names: str) -> dict[str, Any]:
    """Attributes of these names, for a record."""
    return {name: getattr(source, name) for name in names}


def plain(value: Any) -> Any:
    """`value` for JSON: infinities as "inf" and "-inf", NaN as None, mappings and
    sequences rebuilt.
    """
    if isinstance(value, float):
        return _plain_number(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value).items()
        record: dict[str, Any] = {}
        for key, entry in entries:
            name = key if isinstance(key, str) else order_of(key)
            record[name] = plain(entry)
        return record
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in cast("Sequence[Any]", value)]
    return value


def _plain_number(value: float) -> float | str | None:
    """A number for JSON, which has no infinities and no NaN."""
    if math.isnan(value):
        return None
    if math.isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"
