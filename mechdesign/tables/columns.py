"""Records as positions of symbols, and the error about a record that has no symbol.

A channel is applied in two steps: `values_of` (or `encode_for`, for one column with bins) makes
texts of the cells, and `positions_of` looks the texts up among the variable's symbols. A record
without a symbol gets `UNKNOWN` or `MISSING` there; `unknown_at` explains such a record.

For example, with the symbols clerk and nurse the cells nurse, pilot and an empty one have the
positions 1, -1 and -2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import arrow_texts, combined, is_arrow
from mechdesign.formats.cells import Encoded, encode, encoded_columns
from mechdesign.formats.spellings import plain_spelling
from mechdesign.tables.bins import NO_NUMBER, OUTSIDE, Bins
from mechdesign.tables.cell_values import WHAT
from mechdesign.tables.people import ABSENT
from mechdesign.tables.variable import NOWHERE, Variable

Codes = NDArray[np.int64]

UNKNOWN = -1
"""Code of a record whose symbol the variable does not have."""

MISSING = -2
"""Code of a record with a missing or empty cell that is not a symbol of the variable."""

SHORTENED = re.compile(r"-?\d[.,]\d+E\+\d+")
"""Long numbers in the notation of spreadsheets, which keep some digits of them."""


class RecordFault(InputError):
    """A record that cannot be released as it is.

    Whoever knows where the record comes from says so in the place of "entry": the line of a file.

    Attributes
    ----------
    position : int
        The record, from 0.
    what : str
        Its fault.
    """

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"entry {position}: {what}")
        self.position = position
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the constructor with the message alone.
        return type(self), (self.position, self.what)


class UnknownSymbol(RecordFault):
    """A record that has no symbol of the variable."""


def is_frame(records: Any) -> bool:
    """True for a pandas or polars frame and an arrow table, which have columns with names."""
    return hasattr(records, "columns")


def values_of(column: Any, variable: Variable) -> list[Encoded]:
    """The cells of `column` as text, one `Encoded` for each column of the variable.

    Parameters
    ----------
    column : data frame with the columns; for one column also a column of any kind, for several a
        list of tuples
        The records.
    variable : Variable
        Names the columns.
    """
    names = variable.columns
    if is_frame(column):
        return encoded_columns(column, names)
    if len(names) == 1:
        return [encode(column, names[0])]
    if isinstance(column, (list, tuple)):
        return _values_of_tuples(cast("Sequence[Any]", column), names)
    return encoded_columns(column, names)


def _values_of_tuples(records: Sequence[Any], names: Sequence[str]) -> list[Encoded]:
    """The cells of records that are tuples with a value for each column."""
    for position, record in enumerate(records):
        size: int | None = None
        if isinstance(record, tuple):
            size = len(cast("tuple[Any, ...]", record))
        if size == len(names):
            continue
        fact = f"of type {type(cast('object', record)).__name__}"
        if size is not None:
            fact = f"a tuple of {size}"
        wanted = ", ".join(map(quoted, names))
        raise InputError(
            f"entry {position} must be a tuple with one value for each of {wanted}, not {fact}"
        )
    columns: list[Encoded] = []
    for k, name in enumerate(names):
        columns.append(encode([record[k] for record in records], name))
    return columns


def encode_for(column: Any, name: str, variable: Variable, part: int) -> Encoded:
    """The cells of one column of the variable as text.

    Where the variable has bins for it, arrow numbers become the labels of their bins.
    """
    bins = variable.bins_of(part)
    if bins is not None and is_arrow(column):
        labelled = bins.sorted_values(combined(column), name)
        if labelled is not None:
            return labelled
    return encode(column, name)


def positions_of(columns: Sequence[Encoded], variable: Variable) -> Codes:
    """Position in ``variable.symbols`` of every record, or `UNKNOWN`, or `MISSING`.

    A missing cell is looked up as the empty text, which is a symbol with missing='symbol'. A float
    is looked up as it is shown (``1.0``) and then as an integer (``1``): pandas turns integers with
    gaps into floats.
    """
    columns = in_bins(columns, variable)
    positions = variable.lookup.positions(columns)
    lost = np.flatnonzero(positions == NOWHERE)
    if lost.size:
        rest = [column.recoded(column.codes[lost]) for column in columns]
        lacks = variable.lookup.lacks(rest)
        positions[lost] = np.where(lacks, MISSING, UNKNOWN)
    return positions


def in_bins(columns: Sequence[Encoded], variable: Variable) -> Sequence[Encoded]:
    """The columns with the labels of bins in place of numbers."""
    if not variable.bins:
        return columns
    in_bins: list[Encoded] = []
    for column, bins in zip(columns, variable.bins, strict=True):
        if bins is not None:
            column = _sorted_in(column, bins, variable)
        in_bins.append(column)
    return in_bins


def _sorted_in(column: Encoded, bins: Bins, variable: Variable) -> Encoded:
    """The column with the labels of bins; of people the cells of absent records stay."""
    if variable.people is None or ABSENT not in column.texts:
        return bins.sorted_in(column)
    if column.texts == (*bins.marked, ABSENT):
        return column
    is_absent = column.codes == column.texts.index(ABSENT)
    labelled = bins.sorted_in(column.recoded(np.where(is_absent, -1, column.codes)))
    texts = (*labelled.texts, ABSENT)
    return Encoded(np.where(is_absent, len(texts) - 1, labelled.codes), texts)


def texts_of(columns: Sequence[Encoded], key: tuple[int, ...]) -> tuple[str, ...]:
    """The cells of a record by their codes; a missing one is the empty text."""
    texts: list[str] = []
    for column, code in zip(columns, key, strict=True):
        texts.append(column.texts[code] if code >= 0 else "")
    return tuple(texts)


def _empty_part(cells: Sequence[str], variable: Variable) -> int | None:
    """The first empty cell in a column in which no symbol is empty; None if there is none."""
    # With missing="symbol" the empty text is a symbol like any other.
    for i, cell in enumerate(cells):
        if not cell and not variable.lookup.has_empty(i):
            return i
    return None


def unknown_at(
    position: int,
    columns: Sequence[Encoded],
    variable: Variable,
    given: Sequence[str] = (),
    left_out: str = "",
    *,
    has_policy: bool = True,
) -> UnknownSymbol:
    """The error about the record at `position`, which has no symbol of the variable.

    `given` are the columns that are released as they are, `left_out` says which records the table
    of the design lacks, and without `has_policy` nothing can be published for the record.
    """
    columns = in_bins(columns, variable)
    key = tuple(int(column.codes[position]) for column in columns)
    cells = texts_of(columns, key)
    what = describe_unknown(cells, variable, given, left_out, has_policy=has_policy)
    return UnknownSymbol(position, what)


def other_spelling(cells: Sequence[str], symbols: Iterable[Sequence[str]]) -> str:
    """What to add to a message about unknown cells: whether a symbol is another spelling of them.

    The empty text where none is.
    """
    flat = [*cells, *(part for symbol in symbols for part in symbol)]
    plain = plain_spelling(arrow_texts(flat))
    texts: list[str] = flat if plain is None else plain.to_pylist()
    folded = [text.casefold() for text in texts]
    size = len(cells)
    known = (folded[at : at + size] for at in range(size, len(flat), size))
    if folded[:size] not in known:
        if any(SHORTENED.fullmatch(cell) for cell in cells):
            return (
                "; one of them is a long number as spreadsheets write it (as 1.2E+17), which has "
                "lost digits: export the file anew, with this column as text"
            )
        return ""
    return (
        "; one of them differs in nothing but blanks, leading zeros, a sign, .0, capital letters "
        "or the Unicode form, as when another program has written the file: write both alike"
    )


def describe_unknown(
    cells: Sequence[str],
    variable: Variable,
    given: Sequence[str] = (),
    left_out: str = "",
    *,
    has_policy: bool = True,
) -> str:
    """The fault of a record that has no symbol; a missing cell is the empty text.

    The other arguments are those of `unknown_at`.
    """
    # An output that is drawn without a row would change the given columns, so none is offered.
    publish_missing = "say what to publish (--missing marginal)"
    publish_unknown = "say what to publish for it (--unknown)"
    if not has_policy:
        publish_missing = "leave the record out of the file"
        publish_unknown = "leave the record out of the file"
    elif given:
        publish_missing = "leave the record out of the file"
        publish_unknown = (
            "leave the record out of the file, or release it as the nearest row "
            "(--unknown nearest)"
        )
    empty = _empty_part(cells, variable)
    if empty is not None:
        return (
            f"the column {quoted(variable.columns[empty])} has an empty cell, which the channel "
            "has no row for; fill it, design the channel with missing cells as a symbol "
            f"(--missing symbol), or {publish_missing}"
        )
    for name, bins, cell in zip(variable.columns, variable.bins, cells, strict=False):
        if bins is not None and cell == NO_NUMBER:
            return (
                f"the column {quoted(name)} has a cell that is no {WHAT[bins.kind]}, and the "
                f"channel sorts these into bins; correct it, or {publish_unknown}"
            )
        if bins is not None and cell == OUTSIDE:
            return (
                f"the column {quoted(name)} has a value outside the channel's bins, "
                f"{bins.edges[0]} to {bins.edges[-1]}; {publish_unknown}, "
                "or design the channel with edges that hold it (-inf, inf)"
            )
    if variable.people is not None:
        return (
            "the channel does not know the records of this person, which are those of none of the "
            "people of its table: design a channel for these data"
        )
    # What is left: the record has a symbol, but not one of this variable. The symbol is somebody's
    # cell, and messages end in logs, so the place has to do.
    title = ",".join(variable.columns)
    if tuple(cells) == variable.columns:
        return (
            f"the record is the header of the file again, with the name of {quoted(title)}, as "
            "where files were joined: take this line out"
        )
    remedy = other_spelling(cells, variable.symbols)
    if not remedy and left_out:
        remedy = (
            f"; {left_out}, of which this may be one: {publish_unknown}, or design the channel "
            "with missing cells as a symbol (--missing symbol)"
        )
    elif not remedy:
        remedy = f"; correct it, or {publish_unknown}"
    return (
        f"the channel does not know the symbol of {quoted(title)}, which is none of its "
        f"{len(variable):,}{remedy}"
    )
