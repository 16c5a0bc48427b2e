"""Tables of counts or probabilities, in whatever container, as labelled exact integers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of, listed, quoted
from mechdesign.formats.cells import text_of
from mechdesign.tables.variable import Variable

LARGEST_ENTRY = 2**256
"""Entries stay below this, the bound of the channel file; it holds 77 decimal digits."""

SUM_TOLERANCE = Fraction(1, 10**6)
"""Probabilities may miss a sum of 1 by this much (printed tables are rounded); more is a mistake."""

SUM_WORTH_A_NOTICE = Fraction(1, 10**9)
"""Below this a table of doubles misses 1 by rounding alone, and nobody needs to know."""

MARGINS = re.compile(
    "all|(grand )?total|totals|sum|overall|alle|gesamt|insgesamt|summe|ensemble"
)
"""What pivot tables call the sum of the others, in small letters."""

NEARLY = 0.01
"""A named margin may miss the sum of the others by this share: offices round each cell for itself."""

FEWEST = 3
"""Of fewer symbols one is the sum of the others whenever two are alike."""

Entry: TypeAlias = Literal["count", "weight", "probability"]
"""What the entries of a table are."""

ExactTable: TypeAlias = tuple[
    Variable, Variable, tuple[tuple[int, ...], ...], tuple[str, ...]
]
"""What a Joint is made of: labels, non-negative integers without empty rows and columns, and notices."""


def cell_name(sensitive: Variable, useful: Variable, s: int, x: int) -> str:
    """How messages name a cell: by the labels of its row and column."""
    return f"row {quoted(sensitive.names[s])}, column {quoted(useful.names[x])}"


def exact_table(
    array: Any,
    labels: tuple[Sequence[Any] | None, Sequence[Any] | None],
    columns: tuple[str | Sequence[str], str | Sequence[str]],
    *,
    what: Entry,
) -> ExactTable:
    """The exact table behind `array`, scaled to integers unless it holds counts."""
    rows = _title(array, "index", columns[0], "sensitive")
    header = _title(array, "columns", columns[1], "useful")
    cells, row_labels, column_labels = _unpack(array)
    sensitive = _variable(
        row_labels if labels[0] is None else labels[0], rows, len(cells), "row"
    )
    useful = _variable(
        column_labels if labels[1] is None else labels[1],
        header,
        len(cells[0]),
        "column",
    )
    known = what == "count" and all(
        set(map(type, row)) == {int} and 0 <= min(row) <= max(row) < LARGEST_ENTRY
        for row in cells
    )
    if known:  # the usual case; only others are looked at cell by cell
        return without_empty(sensitive, useful, cells)
    where = partial(cell_name, sensitive, useful)
    values = [
        [_value(cell, what, where(s, x)) for x, cell in enumerate(row)]
        for s, row in enumerate(cells)
    ]
    notices: tuple[str, ...] = ()
    if what == "probability":
        total = sum((value for row in values for value in row), Fraction(0))
        if abs(total - 1) > SUM_TOLERANCE:
            raise InputError(
                f"the probabilities sum to {float(total):.9g} and not to 1 (within {float(SUM_TOLERANCE):g}); "
                "correct them, or give counts"
            )
        if abs(total - 1) > SUM_WORTH_A_NOTICE:
            notices = (
                f"the probabilities summed to {float(total):.12g}; they were normalised",
            )
    return without_empty(sensitive, useful, scaled(values, sensitive, useful), notices)


def scaled(
    values: Sequence[Sequence[Fraction | int]], sensitive: Variable, useful: Variable
) -> list[list[int]]:
    """`values` times their common denominator, over their greatest common divisor if that was not 1."""
    common = math.lcm(*{value.denominator for row in values for value in row})
    counts = [
        [value.numerator * (common // value.denominator) for value in row]
        for row in values
    ]
    if common > 1:
        divisor = math.gcd(*(entry for row in counts for entry in row)) or 1
        counts = [[entry // divisor for entry in row] for row in counts]
    large = (
        (s, x)
        for s, row in enumerate(counts)
        for x, entry in enumerate(row)
        if entry >= LARGEST_ENTRY
    )
    for s, x in large:
        positive = [float(value) for row in values for value in row if value]
        smallest = f"; the smallest entry is {min(positive):.3g}" if common > 1 else ""
        raise InputError(
            f"the entry at {cell_name(sensitive, useful, s, x)} is 2^256 or more once the table is scaled "
            f"to integers{smallest}: round the table to fewer digits"
        )
    return counts


def without_empty(
    sensitive: Variable,
    useful: Variable,
    counts: Sequence[Sequence[int]],
    notices: tuple[str, ...] = (),
) -> ExactTable:
    """Drop rows and columns without mass, with a notice; refuse what leaves nothing to design."""
    rows = [s for s, row in enumerate(counts) if any(row)]
    if not rows:
        raise InputError("the table has no mass: every entry is zero")
    columns = [x for x, column in enumerate(zip(*counts, strict=True)) if any(column)]
    for kept, variable, what in (
        (rows, sensitive, "sensitive"),
        (columns, useful, "useful"),
    ):
        if len(kept) < len(variable):
            dropped = [
                variable.names[i] for i in sorted({*range(len(variable))} - {*kept})
            ]
            notices += (
                f"dropped {len(dropped)} {what} symbol(s) of zero mass: {listed(dropped)}",
            )
    if len(rows) < len(sensitive) or len(columns) < len(useful):
        sensitive, useful = sensitive.select(rows), useful.select(columns)
        counts = [[counts[s][x] for x in columns] for s in rows]
    if len(useful) == 1:
        raise InputError(
            f"the useful column {quoted(','.join(useful.columns))} has a single symbol ({quoted(useful.names[0])}); "
            "there is nothing to release"
        )
    refuse_margins(sensitive, useful, counts)
    return sensitive, useful, tuple(map(tuple, counts)), notices


def refuse_margins(
    sensitive: Variable,
    useful: Variable,
    counts: Sequence[Sequence[int]],
    *,
    unnamed: bool = False,
) -> None:
    """Refuse a row or column that is the sum of the others: if it is called so, or, if `unnamed`, whatever its name."""
    columns = [*zip(*counts, strict=True)]
    for what, variable, lines in (
        ("row", sensitive, counts),
        ("column", useful, columns),
    ):
        totals = [sum(line) for line in zip(*lines, strict=True)]
        for name, line in zip(variable.names, lines, strict=True):
            named = MARGINS.fullmatch(name.strip().lower()) is not None
            share = NEARLY if named else 0.0
            if (named or (unnamed and len(lines) >= FEWEST)) and all(
                abs(2 * entry - total) <= share * entry
                for entry, total in zip(line, totals, strict=True)
            ):
                way = (
                    "of this name needs another"
                    if named
                    else "needs the long form, --weight"
                )
                raise InputError(
                    f"the {what} {quoted(name)} is the sum of the other {what}s, a margin that would count everybody "
                    f"twice; remove it (a symbol {way})"
                )


def _unpack(array: Any) -> tuple[list[list[Any]], list[Any] | None, list[Any] | None]:
    """Rows of cells, all of one length, and the labels of a pandas frame that has its own."""
    row_labels = column_labels = None
    if hasattr(array, "iloc") and hasattr(array, "columns"):
        row_labels, column_labels = _own_labels(array.index), _own_labels(array.columns)
    if hasattr(array, "to_numpy"):
        array = array.to_numpy()
    if isinstance(array, np.ndarray):
        if array.ndim != 2:
            raise InputError(
                f"the table must have two dimensions (sensitive, useful), not {array.ndim}"
            )
        cells = cast("list[list[Any]]", array.tolist())
    else:
        try:
            cells = [[*row] for row in array]
        except TypeError:
            raise InputError(
                f"the table must be rows of numbers, not {type(array).__name__}"
            ) from None
        for s, row in enumerate(cells):
            if len(row) != len(cells[0]):
                raise InputError(
                    f"row {s} of the table has {len(row)} entries, row 0 has {len(cells[0])}"
                )
    if not cells or not cells[0]:
        raise InputError(
            "the table is empty: it needs at least one sensitive row and one useful column"
        )
    return cells, row_labels, column_labels


def _title(
    array: Any, axis: str, given: str | Sequence[str], default: str
) -> str | Sequence[str]:
    """The name of a variable: as given, or that of a pandas axis (as of a cross table) where nothing else is."""
    names = [
        name
        for name in getattr(getattr(array, axis, None), "names", None) or ()
        if name is not None
    ]
    depth = getattr(getattr(array, axis, None), "nlevels", 0)
    return (
        tuple(map(str, names))
        if given == default and names and len(names) == depth
        else given
    )


def _own_labels(index: Any) -> list[Any] | None:
    """The labels of a pandas axis, None for the default 0, 1, 2, .."""
    return None if type(index).__name__ == "RangeIndex" else list(index)


def _variable(
    labels: Sequence[Any] | None, columns: str | Sequence[str], size: int, axis: str
) -> Variable:
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if labels is None:
        labels = [f"{'s' if axis == 'row' else 'x'}{i}" for i in range(size)]
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
    shown = quoted(label)
    parts = cast("list[Any]", [*label] if isinstance(label, tuple) else [label])
    texts = [text_of(part, what) for part in parts]
    if None in texts:
        raise InputError(f"a {what} is missing ({shown})")
    return tuple(text or "" for text in texts)


def _value(cell: Any, what: str, where: str) -> Fraction:
    where = f"the {what} at {where} is"
    try:
        value = fraction_of(cell)
    except InputError as error:
        raise InputError(f"{where} not usable: {error}") from None
    if value < 0:
        raise InputError(f"{where} negative ({quoted(cell)})")
    if what == "count" and value.denominator != 1:
        raise InputError(
            f"{where} fractional ({quoted(cell)}); counts are whole "
            "numbers; say so if these are survey weights (--weighted) or probabilities (--probabilities)"
        )
    return value
