"""Tables of counts, weights or probabilities as labelled exact integers.

`exact_table` takes a wide table in four steps: cells and labels from any container (`table_layout`,
below), each cell as an exact fraction (``0.25`` is 1/4), all fractions times their common
denominator (`scaled`), and rows and columns of zeros dropped (`without_empty`). Counts skip the
fractions. A row or column that is the sum of the others is refused: it would count everybody twice.
In the rows (1, 2), (3, 4), (4, 6) the third is such a margin; it is found as half of the sums of
all three, (8, 12).

For example, the probabilities 0.25 and 0.5 in one row, 0.25 and 0 in the other, have the common
denominator 4 and become the integers 1, 2 and 1, 0.

*Containers.* `table_layout` looks at the type of the container once, and returns the cells as lists
of rows with the labels that it found. Cells stay Python values, of any type. Only frames of pandas
have labels that are used, and pandas is looked up among the imported modules, so it is not imported
for the question.

For example, the cross table ``pd.crosstab(records.job, records.pain)`` becomes::

    cells          [[1, 0], [0, 2]]
    row_labels     ['clerk', 'nurse']      row_title     ('job',)
    column_labels  ['no', 'yes']           column_title  ('pain',)

The list [[1, 0], [0, 2]] has the same cells, None as labels, and the titles that the caller gave.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import (
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    cast,
    runtime_checkable,
)

import numpy as np

from mechdesign.core.arguments import HOW_WRITTEN, fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import text_of
from mechdesign.tables.variable import Variable

LARGEST_ENTRY = 2**256
"""Bound of the entries, as in the channel file: all are below it. It has 78 decimal digits."""

MOST_DIGITS = 18
"""Longest text of a count that is read without looking at every character of its own. Longer ones
are read as other numbers are.
"""

SUM_TOLERANCE = Fraction(1, 10**6)
"""Largest distance of a sum of probabilities from 1. Printed tables are rounded, so some distance
is allowed; a larger one is a mistake."""

SUM_WORTH_A_NOTICE = Fraction(1, 10**9)
"""Distance of the sum from 1 that needs no notice: rounding to doubles alone causes less."""

MARGINS = re.compile(
    "all|(grand )?total|totals|sum|overall|alle|gesamt|insgesamt|summe|ensemble"
)
"""Names, in small letters, that pivot tables give to the sum of the others."""

NEARLY = 0.01
"""Share by which a named margin may miss the sum of the others: offices round each cell by
itself."""

FEWEST = 3
"""Fewest lines among which an unnamed margin is sought. Of two equal lines each would be one."""

Entry: TypeAlias = Literal["count", "weight", "probability"]
"""The kind of the entries of a table."""


class ExactTable(NamedTuple):
    """The content of a Joint: labels, non-negative integers, notices; no row or column is empty.

    `empty_sensitive` and `empty_useful` are the names of the symbols that were listed without mass.
    """

    sensitive: Variable
    useful: Variable
    counts: tuple[tuple[int, ...], ...]
    notices: tuple[str, ...]
    empty_sensitive: tuple[str, ...] = ()
    empty_useful: tuple[str, ...] = ()


def exact_table(
    array: Any,
    labels: tuple[Sequence[Any] | None, Sequence[Any] | None],
    columns: tuple[str | Sequence[str], str | Sequence[str]],
    *,
    what: Entry,
) -> ExactTable:
    """The exact table behind an array, scaled to integers unless it holds counts.

    Parameters
    ----------
    array : (|S|, |X|) array, nested lists or data frame
        The entries.
    labels : pair of sequences or None
        The labels of rows and columns; by default those of a pandas frame.
    columns : pair of str or sequences of str
        The names of the sensitive and the useful columns.
    what : 'count', 'weight' or 'probability'
        What the entries are.
    """
    layout = table_layout(array, columns)
    cells = layout.cells
    row_labels = layout.row_labels if labels[0] is None else labels[0]
    column_labels = layout.column_labels if labels[1] is None else labels[1]
    sensitive = _variable(row_labels, layout.row_title, len(cells), "row")
    useful = _variable(column_labels, layout.column_title, len(cells[0]), "column")
    # The usual case needs no fractions.
    if what == "count":
        counts = _without_text(cells)
        if _are_counts(counts):
            return without_empty(sensitive, useful, counts)
    values: list[list[Fraction]] = []
    for s, row in enumerate(cells):
        entries: list[Fraction] = []
        for x, cell in enumerate(row):
            place = cell_name(sensitive, useful, s, x)
            entries.append(_value(cell, what, place))
        values.append(entries)
    counts = scaled(values, sensitive, useful)
    notices: tuple[str, ...] = ()
    if what == "probability":
        # A margin explains a sum of 2 or 4 better than the sum does.
        refuse_margins(sensitive, useful, counts)
        notices = _check_sum(values)
    return without_empty(sensitive, useful, counts, notices)


def scaled(
    values: Sequence[Sequence[Fraction | int]], sensitive: Variable, useful: Variable
) -> list[list[int]]:
    """`values` times their common denominator.

    If that is not 1, the products are divided by their greatest common divisor.
    """
    denominators: set[int] = set()
    for row in values:
        # Rows of counts have no others than 1.
        if set(map(type, row)) != {int}:
            denominators.update(value.denominator for value in row)
    common = math.lcm(*denominators)
    counts: list[list[int]] = []
    for row in values:
        if common == 1:
            counts.append(list(map(int, row)))
            continue
        # Multiplying fractions would reduce each product by a gcd of its own.
        counts.append([v.numerator * (common // v.denominator) for v in row])
    if common > 1:
        # The smallest integers in the same proportions. Counts stay as they are: their sum is the
        # number of records.
        counts = _in_lowest_terms(counts)
    for s, row in enumerate(counts):
        if max(row, default=0) < LARGEST_ENTRY:
            continue
        for x, entry in enumerate(row):
            if entry >= LARGEST_ENTRY:
                hint = _smallest_entry(values) if common > 1 else ""
                raise InputError(
                    f"the entry at {cell_name(sensitive, useful, s, x)} is 2^256 or more once the "
                    f"table is scaled to integers{hint}: round the table to fewer digits"
                )
    return counts


def without_empty(
    sensitive: Variable,
    useful: Variable,
    counts: Sequence[Sequence[int]],
    notices: tuple[str, ...] = (),
) -> ExactTable:
    """Drop rows and columns without mass, with a notice; refuse what leaves nothing to design."""
    rows = _with_mass(counts)
    if not rows:
        raise InputError("the table has no mass: every entry is zero")
    columns = _with_mass(zip(*counts, strict=True))
    # A lift is defined where P(s) and P(x) are positive. The names of the others are kept, because
    # a promise for the population includes them.
    empty_sensitive = _names_without(sensitive, rows)
    empty_useful = _names_without(useful, columns)
    notices += _notice_of_dropped(empty_sensitive, "sensitive")
    notices += _notice_of_dropped(empty_useful, "useful")
    # The usual case is a table without empty lines, which need not be copied.
    if len(rows) < len(sensitive) or len(columns) < len(useful):
        sensitive = sensitive.select(rows)
        useful = useful.select(columns)
        left: list[list[int]] = []
        for s in rows:
            left.append([counts[s][x] for x in columns])
        counts = left
    if len(useful) == 1:
        raise InputError(
            f"the useful column {quoted(','.join(useful.columns))} has a single symbol "
            f"({quoted(useful.names[0])}); there is nothing to release"
        )
    refuse_margins(sensitive, useful, counts)
    return ExactTable(
        sensitive,
        useful,
        tuple(map(tuple, counts)),
        notices,
        empty_sensitive,
        empty_useful,
    )


def refuse_margins(
    sensitive: Variable,
    useful: Variable,
    counts: Sequence[Sequence[int]],
    *,
    unnamed: bool = False,
) -> None:
    """Refuse a row or column that is the sum of the others: it would count everybody twice.

    Only one with a name such as `Total` is refused, or any one if `unnamed`.
    """
    # The other direction sees the transposed table.
    columns = list(zip(*counts, strict=True))
    _refuse_margin("row", sensitive, counts, unnamed)
    _refuse_margin("column", useful, columns, unnamed)
    _refuse_subtotals(sensitive, counts)
    _refuse_subtotals(useful, columns)


def cell_name(sensitive: Variable, useful: Variable, s: int, x: int) -> str:
    """A cell in messages, by the labels of its row and column."""
    return f"row {quoted(sensitive.names[s])}, column {quoted(useful.names[x])}"


def _variable(
    labels: Sequence[Any] | None, columns: str | Sequence[str], size: int, axis: str
) -> Variable:
    """The variable of one axis of a table; without labels its symbols are numbered."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if labels is None:
        # s0, s1, .. for sensitive symbols, x0, x1, .. for useful ones.
        letter = "s" if axis == "row" else "x"
        labels = [f"{letter}{i}" for i in range(size)]
    if isinstance(labels, str):
        raise InputError(
            f"{axis} labels must be a sequence of texts, not one text ({quoted(labels)})"
        )
    symbols = [_symbol(label, f"label of {axis}") for label in labels]
    if len(symbols) != size:
        raise InputError(
            f"the table has {size} {axis}(s) but {len(symbols)} {axis} label(s)"
        )
    return Variable(names, tuple(symbols))


def _symbol(label: Any, what: str) -> tuple[str, ...]:
    """A label as a symbol; that of crossed columns is a tuple."""
    # A frame with several levels on an axis has tuples as labels.
    parts: list[Any] = [label]
    if isinstance(label, tuple):
        parts = list(cast("tuple[Any, ...]", label))
    texts: list[str] = []
    for part in parts:
        text = text_of(part, what)
        if text is None:
            raise InputError(f"a {what} is missing ({quoted(cast('object', label))})")
        texts.append(text)
    return tuple(texts)


def _without_text(cells: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """The cells as integers if all of them are texts of a few digits, as in most files.

    Otherwise as they are.
    """
    counts: list[list[int]] = []
    for row in cells:
        if set(map(type, row)) != {str}:
            return cells
        # The text of all of them has no other character; an empty cell would not show in it.
        digits = "".join(row)
        if not (digits.isascii() and digits.isdigit()) or "" in row:
            return cells
        if max(map(len, row)) > MOST_DIGITS:
            return cells
        counts.append(list(map(int, row)))
    return counts


def _are_counts(cells: Sequence[Sequence[Any]]) -> bool:
    """Whether all entries are Python integers in range, which is the usual case."""
    # Three passes in C, without a fraction and a name for every cell.
    for row in cells:
        if set(map(type, row)) != {int}:
            return False
        if min(row) < 0 or max(row) >= LARGEST_ENTRY:
            return False
    return True


def _value(cell: Any, what: Entry, place: str) -> Fraction:
    """The exact entry of a cell."""
    subject = f"the {what} at {place} is"
    try:
        value = fraction_of(cell)
    except InputError as error:
        remedy = ""
        if isinstance(cell, str) and not cell.strip():
            remedy = "; write 0 for none"
        elif isinstance(cell, str) and any(map(str.isdigit, cell)):
            remedy = f"; {HOW_WRITTEN}"
        raise InputError(f"{subject} not usable: {error}{remedy}") from None
    if value < 0:
        raise InputError(f"{subject} negative ({quoted(cell)})")
    if what == "count" and value.denominator != 1:
        raise InputError(
            f"{subject} fractional ({quoted(cell)}); counts are whole "
            "numbers; say so if these are survey weights (--weighted) or probabilities "
            "(--probabilities)"
        )
    return value


def _check_sum(values: Sequence[Sequence[Fraction]]) -> tuple[str, ...]:
    """Refuse probabilities that do not sum to 1; return a notice if they do not exactly."""
    total = Fraction(0)
    for row in values:
        total += sum(row)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"the probabilities sum to {float(total):.9g} and not to 1 (within "
            f"{float(SUM_TOLERANCE):g}); correct them, or give counts"
        )
    if abs(total - 1) > SUM_WORTH_A_NOTICE:
        return (
            f"the probabilities summed to {float(total):.12g}; they were normalised",
        )
    return ()


def _in_lowest_terms(counts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The counts without their greatest common divisor."""
    divisor = 0
    for row in counts:
        divisor = math.gcd(divisor, *row)
    # The divisor of zeros alone is 0.
    if divisor < 2:
        return [list(row) for row in counts]
    reduced: list[list[int]] = []
    for row in counts:
        reduced.append([entry // divisor for entry in row])
    return reduced


def _smallest_entry(values: Sequence[Sequence[Fraction | int]]) -> str:
    """The smallest positive entry, as a part of a message."""
    positive: list[Fraction | int] = []
    for row in values:
        positive.extend(filter(None, row))
    return f"; the smallest entry is {float(min(positive)):.3g}"


def _with_mass(lines: Iterable[Sequence[int]]) -> list[int]:
    """The positions of the lines (rows or columns) with an entry that is not zero."""
    positions: list[int] = []
    for position, line in enumerate(lines):
        if any(line):
            positions.append(position)
    return positions


def _names_without(variable: Variable, kept: Sequence[int]) -> tuple[str, ...]:
    """The names of the symbols that are not kept."""
    dropped = sorted(set(range(len(variable))) - set(kept))
    return tuple(variable.names[i] for i in dropped)


def _notice_of_dropped(names: Sequence[str], what: str) -> tuple[str, ...]:
    """The notice of dropped symbols, if there are any."""
    if not names:
        return ()
    return (f"dropped {len(names)} {what} symbol(s) of zero mass: {listed(names)}",)


def _refuse_margin(
    what: str, variable: Variable, lines: Sequence[Sequence[int]], unnamed: bool
) -> None:
    """Refuse a margin among some lines, the rows or the columns of a table."""
    # With a margin among them, the lines add up to twice the margin, entry by entry.
    totals = list(map(sum, zip(*lines, strict=True)))
    for name, line in zip(variable.names, lines, strict=True):
        if MARGINS.fullmatch(name.strip().lower()) is not None:
            tolerance = NEARLY
            remedy = "of this name needs another"
        elif unnamed and len(lines) >= FEWEST:
            tolerance = 0.0
            remedy = "needs the long form, --weight"
        else:
            continue
        if _is_sum_of_others(line, totals, tolerance):
            raise InputError(
                f"the {what} {quoted(name)} is the sum of the other {what}s, a margin that would "
                f"count everybody twice; remove it (a symbol {remedy})"
            )


def _refuse_subtotals(variable: Variable, lines: Sequence[Sequence[int]]) -> None:
    """Refuse a value of one of several crossed columns that stands for the sum of the others.

    Such lines come from a cross table of three columns with margins, or from ROLLUP in SQL.
    """
    if len(variable.columns) < 2:
        return
    for k, column in enumerate(variable.columns):
        texts = {symbol[k] for symbol in variable.symbols}
        for text in sorted(texts):
            is_named = MARGINS.fullmatch(text.strip().lower()) is not None
            if is_named and _is_subtotal(variable, lines, k, text):
                raise InputError(
                    f"{quoted(text)} in the column {quoted(column)} is the sum of its other "
                    "values, a margin that would count everybody twice; remove these rows (a "
                    "value of this name needs another)"
                )


def _is_subtotal(
    variable: Variable, lines: Sequence[Sequence[int]], k: int, text: str
) -> bool:
    """Whether a value of column `k` is the sum of its others for all values of other columns."""
    subtotals: dict[tuple[str, ...], Sequence[int]] = {}
    others: dict[tuple[str, ...], list[Sequence[int]]] = {}
    for symbol, line in zip(variable.symbols, lines, strict=True):
        rest = symbol[:k] + symbol[k + 1 :]
        if symbol[k] == text:
            subtotals[rest] = line
        else:
            others.setdefault(rest, []).append(line)
    # One sum may be an accident, and a margin is there for all values of the other columns.
    if len(others) < FEWEST - 1 or not others.keys() <= subtotals.keys():
        return False
    for rest, parts in others.items():
        margin = subtotals[rest]
        totals = list(map(sum, zip(margin, *parts, strict=True)))
        if not _is_sum_of_others(margin, totals, NEARLY):
            return False
    return True


def _is_sum_of_others(
    line: Sequence[int], totals: Sequence[int], tolerance: float
) -> bool:
    """Whether a line is half of the totals, which include it."""
    for entry, total in zip(line, totals, strict=True):
        if abs(2 * entry - total) > tolerance * entry:
            return False
    return True


@dataclass(frozen=True)
class TableLayout:
    """A table of cells, all rows of one length.

    Labels are None, and titles are as the caller named them, where the container has none.
    """

    cells: list[list[Any]]
    row_labels: list[Any] | None
    column_labels: list[Any] | None
    row_title: str | Sequence[str]
    column_title: str | Sequence[str]


@runtime_checkable
class _HasNumpyArray(Protocol):
    """A container such as a frame of pandas or polars."""

    def to_numpy(self) -> Any: ...


def table_layout(
    table: Any, titles: tuple[str | Sequence[str], str | Sequence[str]]
) -> TableLayout:
    """The layout of nested sequences, a NumPy array, or a frame of pandas, polars or pyarrow.

    The default titles give way to the names of a pandas frame's axes, as of a cross table.
    """
    row_title, column_title = titles
    row_labels: list[Any] | None = None
    column_labels: list[Any] | None = None
    if _is_pandas_frame(table):
        row_labels = _labels_of(table.index)
        column_labels = _labels_of(table.columns)
        if row_title == "sensitive":
            row_title = _title_of(table.index) or row_title
        if column_title == "useful":
            column_title = _title_of(table.columns) or column_title
    return TableLayout(
        _cells_of(table), row_labels, column_labels, row_title, column_title
    )


def _is_pandas_frame(table: Any) -> bool:
    """Whether a table is a frame of pandas, which need not be installed."""
    # A frame exists only if pandas was imported.
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(table, pandas.DataFrame)


def _labels_of(index: Any) -> list[Any] | None:
    """The labels of a pandas axis, None for the default 0, 1, 2, .."""
    pandas: Any = sys.modules["pandas"]
    return None if isinstance(index, pandas.RangeIndex) else list(index)


def _title_of(index: Any) -> tuple[str, ...] | None:
    """The names of all levels of a pandas axis, None unless all have one.

    An axis has several levels where a cross table crosses several columns.
    """
    if any(name is None for name in index.names):
        return None
    return tuple(map(str, index.names))


def _cells_of(table: Any) -> list[list[Any]]:
    """The cells of a table of any container as Python values; at least one."""
    # Frames of all libraries have this method, so the cells need no library by name.
    if isinstance(table, _HasNumpyArray):
        table = table.to_numpy()
    if not isinstance(table, np.ndarray):
        cells = _cells_of_rows(table)
    elif table.ndim != 2:
        raise InputError(
            f"the table must have two dimensions (sensitive, useful), not {table.ndim}"
        )
    else:
        cells = table.tolist()
    if not cells or not cells[0]:
        raise InputError(
            "the table is empty: it needs at least one sensitive row and one useful column"
        )
    return cells


def _cells_of_rows(table: Any) -> list[list[Any]]:
    """The cells of nested sequences, all of one length."""
    # NumPy would make texts, or doubles, of mixed and of large numbers.
    try:
        cells = list(map(list, table))
    except TypeError:
        raise InputError(
            f"the table must be rows of numbers, not {type(table).__name__}"
        ) from None
    for s, row in enumerate(cells):
        if len(row) != len(cells[0]):
            raise InputError(
                f"row {s} of the table has {len(row)} entries, row 0 has {len(cells[0])}"
            )
    return cells
