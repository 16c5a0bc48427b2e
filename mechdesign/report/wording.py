"""Shares, factors and labels as people read them, never more favourable than they are, and lines.

Every text and page of a report is made with these functions. A share is a percentage, a budget in
nats is a factor on a probability, and both are rounded in the direction that claims less: of a kept
share of 0.8508123, `percent_at_least` claims 85.0 %, and of a budget of 0.7 nats `factor_text`
admits a factor of 2.0138. A label may come from anybody, so it is made harmless for a terminal
(`label`, `title`).

*Lines.* Sentences are wrapped at `WIDTH`. `paragraph` and `item` return one text, with line ends in
it; `lines_of`, `all_lines` and `item_lines` do the same for callers that collect lines. `aligned`
pads cells to the width of their column: ``a  10`` above ``bc  9`` with the first column flush left.

*Templates* have macros with the words, one for each report, and filters with numbers and layout.
`macros_of` loads the macros of one file, with the filters of this module, and
`text_of` runs one of them. For example, a template line
``{{ share | percent }} of {{ name | label }}`` becomes ``85.1 % of job``. In a template
``{% filter paragraph %}`` wraps the sentences that follow it, and ``{% filter aligned %}`` makes a
table of lines whose cells are separated by bars.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mechdesign.core.wording import (
    STATED,
    about,
    at_least,
    at_most,
    escaped,
    factor_at_least,
    factor_at_most,
    percent,
    percent_at_least,
    percent_at_most,
    reading_order,
)

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Achieved
    from mechdesign.notions import Notion


Item = TypeVar("Item")

SPOKEN_DIGITS = 3
"""Significant digits of a factor in a sentence for everybody."""

FINE = Decimal("0.001")
"""The last decimal of a percentage that is small, such as the distance from a bound."""

LARGE_GAP = 0.2
"""A proven distance from the best possible, in shares of H(X), that says next to nothing of it."""

CROWDS = (2, 3, 4, 10, 20, 100, 1000, 10_000)
"""Numbers of people of whom some are spoken of, the smallest first."""

NEAR = 0.05
"""Relative difference up to which a number of people in a crowd is about a share."""

RIGHT_TO_LEFT = ("R", "AL")
"""Bidirectional classes of letters that are written from right to left."""

LONGEST_LABEL = 60
"""Characters of a label that a page shows."""


def in_reading_order(items: Iterable[Item], name: Callable[[Item], str]) -> list[Item]:
    """Items in the order in which people read their names (`reading_order`)."""
    given = list(items)
    order = reading_order([[name(item)] for item in given])
    return [given[place] for place in order]


NOTHING = 1e-12
"""Shares and their errors below this are what rounding leaves of 0: they are sums of doubles."""


def figure(value: float | None) -> str:
    """An estimated share, or its error, with three digits; a dash where there are bounds alone."""
    if value is None:
        return "-"
    if abs(value) < NOTHING:
        value = 0.0
    return f"{value:#.{SPOKEN_DIGITS}g}"


def interval(lower: float, upper: float) -> str:
    """An interval of three digits, rounded outwards, so that it holds the figure."""
    return f"{at_least(lower, SPOKEN_DIGITS)} to {at_most(upper, SPOKEN_DIGITS)}"


def people_in(share: float) -> str:
    """A share as people say it, with "about" unless it is exact: ``about 4 in 10``, ``1 in 2``.

    It is rounded to the nearest, so the percentage stands beside it.
    """
    if share <= 0:
        return "none"
    if share >= 1:
        return "all"
    for crowd in CROWDS:
        people = round(share * crowd)
        if 0 < people < crowd and abs(people / crowd - share) <= NEAR * share:
            about = "" if people / crowd == share else "about "
            if crowd == 10 and people in (2, 8):
                return f"{about}{people // 2} in 5"
            return f"{about}{people} in {crowd:,}"
    rest = 1 - share
    if rest < share:
        return f"all but {people_in(rest)}"
    return f"fewer than 1 in {CROWDS[-1]:,}"


def label(text: str) -> str:
    """A symbol or column name, such that no two of them look alike (`wording.escaped`)."""
    # An empty cell is a symbol like any other, and must be seen.
    return escaped(text) or '""'


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
    # Most labels are ASCII, and a report has as many as there are released rows.
    if text.isascii():
        return text
    if any(unicodedata.bidirectional(letter) in RIGHT_TO_LEFT for letter in text):
        # FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE of Unicode.
        return f"\u2068{text}\u2069"
    return text


def short(text: str) -> str:
    """`text` as a label, with its middle left out if it is long."""
    shown = label(text)
    if len(shown) > LONGEST_LABEL:
        # The start, one sign for the middle, and the last 12 characters: `LONGEST_LABEL` in all.
        shown = f"{shown[: LONGEST_LABEL - 13]}…{shown[-12:]}"
    return isolated(shown)


def title(columns: tuple[str, ...], between: str = " x ") -> str:
    """The columns of a variable as one name."""
    return between.join(isolated(label(column)) for column in columns)


DIGITS_OF_TIMES = 2
LARGE_NUMBER = 1e6
"""A number of times from which on it is written with a power of ten."""


def times_at_most(factor: float) -> str:
    """A number of times, rounded up to two digits: ``4.6``, ``380``, ``1,200``, ``3.8e+07``."""
    text = at_most(factor, DIGITS_OF_TIMES)
    rounded = float(text)
    if 100 <= rounded < LARGE_NUMBER:
        return f"{rounded:,.0f}"
    return text


MOST_IN_TITLE = 12
"""Columns of a row that a sentence names; a report has the list of all beside it."""


def short_title(columns: tuple[str, ...], most: int = MOST_IN_TITLE) -> str:
    """The first `most` columns of a variable as one name, and the number of the others."""
    names = title(columns[:most])
    left = len(columns) - most
    if left > 0:
        names += f" and {count(left, 'other column')}"
    return names


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
    eps_l = _budget_text(achieved.eps_l)
    eps_u = _budget_text(achieved.eps_u)
    eps_ldp = _budget_text(achieved.eps_ldp)
    return f"eps_l {eps_l}, eps_u {eps_u}, local differential privacy {eps_ldp}"


def _budget_text(nats: float) -> str:
    """A budget rounded up."""
    if math.isinf(nats):
        return "unbounded"
    return at_most(nats)


def factor_text(nats: float, *, upper: bool) -> str:
    """exp(nats) rounded up, or exp(-nats) rounded down; "any" and "0" where nats is infinite."""
    if math.isinf(nats):
        return _unbounded_factor(upper=upper)
    if upper:
        return factor_at_most(nats)
    return factor_at_least(nats)


def short_factor(nats: float, *, upper: bool) -> str:
    """exp(nats) rounded up, or exp(-nats) rounded down, to the three digits that people say."""
    if math.isinf(nats):
        return _unbounded_factor(upper=upper)
    if upper:
        return factor_at_most(nats, SPOKEN_DIGITS)
    # Lower factors are below 1, where two digits are as fine as three above: 0.60 and not 0.606.
    return factor_at_least(nats, SPOKEN_DIGITS - 1)


def _unbounded_factor(*, upper: bool) -> str:
    """The factor of an infinite budget: exp(inf), or exp(-inf)."""
    if upper:
        return "any"
    return "0"


def bounded_sides(achieved: Achieved, notion: Notion) -> tuple[float, float]:
    """eps_l and eps_u that were achieved; infinite on a side that the notion leaves free.

    Nobody asked for anything on such a side, and what is achieved there by chance is no promise.
    """
    free = notion.limits.free_sides
    lower, upper = achieved.eps_l, achieved.eps_u
    if "lower" in free:
        lower = math.inf
    if "upper" in free:
        upper = math.inf
    return lower, upper


def proof_text(scope: str) -> str:
    """How a bound on other channels is known, by the scope of its certificate."""
    if scope == STATED:
        return "stated by the file, not proven again here"
    return scope


def frequencies_of(names: Sequence[str]) -> str:
    """What a table of frequencies is: those of one column, or of the combinations of several."""
    if len(names) == 1:
        return f"Frequencies of {names[0]}"
    return f"Joint frequencies of {', '.join(names[:-1])} and {names[-1]}"


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


# -------------------------------------------------------------------------------- lines

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
    rows = [[fitted(cell) for cell in row] for row in rows]
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


def fitted(cell: str) -> str:
    """A cell without its middle if it is longer than a line: it would widen all lines."""
    if len(cell) <= WIDTH:
        return cell
    half = WIDTH // 2
    return f"{cell[: half - 1]}…{cell[-(WIDTH - half) :]}"


def largest(
    records: Sequence[Mapping[str, Any]], names: int, all_in: str
) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    """The records that a terminal shows, and a line on the others if there are any.

    Up to `MOST_ESTIMATES` records are all shown, in the order in which people read their first
    `names` entries; of more, those with the largest ``estimate``. `all_in` names the options that
    show all.
    """
    # A column of 10,000 symbols would scroll away what was said above it.
    if len(records) <= MOST_ESTIMATES:
        order = reading_order([[*record.values()][:names] for record in records])
        return [records[place] for place in order], []
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
    percents = (percent, percent_at_least, percent_at_most)
    for function in (about, at_least, at_most, count, fitted, label, *percents):
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


def unchanged_text(share: float, useful: str) -> str:
    """How many records keep their own value, without a full stop."""
    kept = percent_at_least(share)
    return f"{kept} of the records are released with their own {useful} (expected)"
