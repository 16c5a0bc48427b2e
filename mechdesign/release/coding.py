"""From the cells of a batch to the inputs of a channel: the symbol of each record, or its box.

Both kinds of `Coding` look the cells up in their variables, count what they find, and say by which
row of the sampler each record is drawn. `SymbolCoding` has the one variable of the channel, and
rows for missing cells and unknown symbols where the policy does not refuse these. `BoxCoding` has
the variables of a coder: the given ones choose the stratum of a record, and the others its box
there, where symbols that the table did not have belong to a box, too.

*Nearest rows.* The nearest row has the fewest changed cells, and among such rows the one whose
numbers are nearest, in ranks of the numbers that the channel knows; of equal ones it is the first.
Given columns must agree, because they are released as they are. For example, with the rows

    job     age
    clerk   30
    nurse   20
    nurse   50

the record (nurse, 27) is (nurse, 20): one cell changes for either nurse, and 27 is nearer to 20.
A record that has no released cell in common with any row is near to none.

The nearest row is a function of the record's own cells and of the channel. So what is released of
the record is a draw of its nearest row, and tells no more than that row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded, as_whole
from mechdesign.release.protocol import Releasable
from mechdesign.release.samplers import (
    NEAREST,
    REFUSE,
    Policy,
    normalised,
    normalised_cells,
)
from mechdesign.tables.box_coder import NO_STRATUM, BoxCoder
from mechdesign.tables.cell_values import Kind, kind_of, number_of
from mechdesign.tables.columns import (
    MISSING,
    UNKNOWN,
    UnknownSymbol,
    in_bins,
    positions_of,
    texts_of,
    unknown_at,
)
from mechdesign.tables.variable import Variable, column_names, numbers_of

# ------------------------------------------------------------------------- nearest rows

Array = NDArray[np.float64]

MOST_REMEMBERED = 100_000
"""Different unknown rows whose nearest row is remembered: some 50 MB of texts with 20 columns."""


class NearestRows:
    """The known rows, and the nearest of them to any other.

    Parameters
    ----------
    variable : Variable
        The rows, in the form in which cells are compared.
    given : sequence of str
        Columns that are released as they are.
    """

    def __init__(self, variable: Variable, given: Sequence[str] = ()) -> None:
        self._variable = variable
        self._given = tuple(given)
        self._columns: list[_Column] = []
        for k, name in enumerate(variable.columns):
            self._columns.append(_Column(variable, k, is_given=name in given))
        self._known: dict[tuple[str, ...], int] = {}

    @classmethod
    def of(cls, channel: Releasable, policy: Policy) -> NearestRows | None:
        """Those of a channel; None where unknown rows are not released as the nearest."""
        if policy.unknown != NEAREST:
            return None
        return cls(normalised(channel.useful, policy.cell_form), channel.given)

    def find(self, columns: Sequence[Encoded], at: Integers) -> Integers:
        """The positions of the rows nearest to the records at these places.

        Parameters
        ----------
        columns : sequence of Encoded
            The cells of all records, in the form in which they are compared.
        at : (m,) int array

        Raises
        ------
        UnknownSymbol
            If no row has the given cells of a record, or none a released cell of it.
        """
        columns = in_bins(columns, self._variable)
        codes = np.column_stack([column.codes[at] for column in columns])
        distinct, first, inverse = np.unique(
            codes, axis=0, return_index=True, return_inverse=True
        )
        found = np.zeros(len(distinct), np.int64)
        # In the order of the records, so that the first of them is the one that is named.
        for k in np.argsort(first).tolist():
            texts = texts_of(columns, tuple(distinct[k].tolist()))
            whole = tuple(
                as_whole(text) if column.is_float else text
                for text, column in zip(texts, columns, strict=True)
            )
            if whole not in self._known:
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[whole] = self._nearest(texts, whole, int(at[first[k]]))
            found[k] = self._known[whole]
        return found[inverse.ravel()]

    def _nearest(
        self, texts: Sequence[str], whole: Sequence[str], position: int
    ) -> int:
        """The nearest row of one record."""
        costs = np.zeros(len(self._variable))
        for column, text, other in zip(self._columns, texts, whole, strict=True):
            costs += column.costs(text, other, len(self._columns))
        nearest = int(costs.argmin())
        released = len(self._columns) - len(self._given)
        if np.isinf(costs[nearest]):
            raise UnknownSymbol(
                position,
                f"no row of the channel has its cells of {listed(self._given)}, which are released "
                "as they are: leave the record out of the file, or design with a table that has "
                "them",
            )
        if costs[nearest] >= released:
            names = [name for name in self._variable.columns if name not in self._given]
            raise UnknownSymbol(
                position,
                f"none of its cells of {listed(names)} is that of a row of the channel"
                f"{' with the same given cells' if self._given else ''}, so no row is the nearest: "
                "correct it, or leave the record out of the file",
            )
        return nearest


class _Column:
    """One column of the known rows: which text each has, and the ranks of numbers."""

    def __init__(self, variable: Variable, k: int, *, is_given: bool) -> None:
        places: dict[str, int] = {}
        codes = [
            places.setdefault(symbol[k], len(places)) for symbol in variable.symbols
        ]
        self._places = places
        self._codes = np.array(codes, dtype=np.int64)
        self._is_given = is_given
        self._kind: Kind | None
        self._kind, self._numbers = _numbers_of_texts(variable, k, list(places))
        self._sorted = np.unique(self._numbers)

    def costs(self, text: str, whole: str, columns: int) -> Array:
        """For every row 0 where it has this text, else 1 and a little more for far numbers."""
        place = self._places.get(text, self._places.get(whole))
        if self._is_given:
            by_text = np.full(len(self._places), np.inf)
        else:
            # All moves of numbers together count less than one more changed cell.
            by_text = 1.0 + self._moves(text) / (columns + 1)
        if place is not None:
            by_text[place] = 0.0
        return by_text[self._codes]

    def _moves(self, text: str) -> Array:
        """How far every known text is from this one, in shares of the known numbers."""
        number = None if self._kind is None else number_of(text, self._kind)
        if number is None:
            return np.zeros(len(self._places))
        ranks = np.arange(len(self._sorted)) / max(len(self._sorted) - 1, 1)
        here = np.interp(float(number), self._sorted, ranks)
        return np.abs(np.interp(self._numbers, self._sorted, ranks) - here)


def _numbers_of_texts(
    variable: Variable, k: int, texts: Sequence[str]
) -> tuple[Kind | None, Array]:
    """The kind of the numbers of a column and the number of each text; no kind for categories."""
    nothing = np.zeros(0)
    if variable.bins_of(k) is not None:
        # A number outside all bins has no place among them.
        return None, nothing
    column = Variable((variable.columns[k],), tuple((text,) for text in texts))
    try:
        numbers = numbers_of(column)
    except InputError:
        return None, nothing
    present = [number for number in numbers if number is not None]
    if len(present) < len(numbers):
        return None, nothing
    return kind_of(texts), np.array([float(number) for number in present])


# ------------------------------------------------------------------------------- coding


class Coding(ABC):
    """Reads records by some variables.

    Parameters
    ----------
    variables : sequence of Variable
    policy : Policy

    Attributes
    ----------
    codes : list of arrays
        For each variable the symbols of the records that were read last, as they are counted.
    symbol_counts : list of arrays
        For each variable how many records had each symbol, a missing cell, and an unknown symbol.
    given : int
        How many of the variables, at the beginning, are released as they are.
    title : str
        The columns, where an input of the channel is a symbol of them; for messages.
    has_one_symbol : bool
        Whether all that a record is drawn by is one symbol; else it has one of each variable.
    """

    given = 0
    title = ""
    has_one_symbol = False

    def __init__(self, variables: Sequence[Variable], policy: Policy) -> None:
        form = policy.cell_form
        self.policy = policy
        self._alphabets = [normalised(variable, form) for variable in variables]
        self.codes: list[Integers] = []
        self.symbol_counts: list[Integers] = []
        for variable in variables:
            self.symbol_counts.append(np.zeros(len(variable) + 2, dtype=np.int64))

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins, so that its cells are many different numbers."""
        return any(any(variable.bins) for variable in self._alphabets)

    @abstractmethod
    def rows(self, columns: Sequence[Encoded]) -> Integers:
        """The row of the sampler of each record; nothing is counted.

        Raises
        ------
        InputError
            On a symbol or a missing cell that is refused.
        """

    @abstractmethod
    def read(self, columns: Sequence[Encoded]) -> Integers:
        """The row of the sampler of each record; its symbols are counted."""

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add records to `symbol_counts`, each so many times; nothing is refused."""
        for k, cells in enumerate(self._cells(columns)):
            if len(cells) == 1:
                # Each text once, and before them the empty cells with code -1: there are few
                # different texts, and positions are looked up for them alone.
                size = len(cells[0].texts) + 1
                of_texts = np.bincount(cells[0].codes.astype(np.int64) + 1, times, size)
                cells = [replace(cells[0], codes=np.arange(-1, size - 1))]
                self._add(k, positions_of(cells, self._alphabets[k]), of_texts)
            else:
                self._add(k, positions_of(cells, self._alphabets[k]), times)

    def _cells(self, columns: Sequence[Encoded]) -> list[list[Encoded]]:
        """The cells of each variable, in the form of the policy."""
        cells = normalised_cells(columns, self.policy.cell_form)
        by_variable: list[list[Encoded]] = []
        start = 0
        for variable in self._alphabets:
            end = start + len(variable.columns)
            by_variable.append(cells[start:end])
            start = end
        return by_variable

    def _add(self, k: int, places: Integers, times: Integers | None = None) -> Integers:
        """Count records at these places of a variable; the symbols as they are counted."""
        counts = self.symbol_counts[k]
        symbols = places
        # Most batches have neither, and then no array is copied.
        if places.size and places.min() < 0:
            # MISSING (-2) and UNKNOWN (-1) are the last two places of the counts.
            symbols = np.where(places < 0, places + len(counts), places)
        # Weighted counts are floats, which are exact up to 2^53.
        counts += np.bincount(symbols, times, len(counts)).astype(np.int64)
        return symbols


class SymbolCoding(Coding):
    """Reads symbols of one variable; of unknown rows the nearest, where the policy says so.

    `given` are the columns that a nearest row must have in common. `left_out` says which records
    the table of the design lacks, for messages.
    """

    has_one_symbol = True

    def __init__(
        self,
        variable: Variable,
        given: Sequence[str],
        policy: Policy,
        left_out: str = "",
    ) -> None:
        super().__init__([variable], policy)
        self._left_out = left_out
        self.title = ",".join(variable.columns)
        self._given_columns = given
        self._nearest_rows: NearestRows | None = None

    def rows(self, columns: Sequence[Encoded]) -> Integers:
        """|X| for missing cells, |X| + 1 for unknown symbols."""
        (cells,) = self._cells(columns)
        (alphabet,) = self._alphabets
        codes = positions_of(cells, alphabet)
        # Most batches have neither missing cells nor unknown symbols.
        if codes.size and codes.min() < 0:
            for code, rule in (
                (MISSING, self.policy.missing),
                (UNKNOWN, self.policy.unknown),
            ):
                at = np.flatnonzero(codes == code)
                if at.size and rule == REFUSE:
                    raise unknown_at(
                        int(at[0]),
                        cells,
                        alphabet,
                        self._given_columns,
                        self._left_out,
                    )
                codes[at] = code + len(alphabet) + 2
        return codes

    def read(self, columns: Sequence[Encoded]) -> Integers:
        """The codes are those of the nearest rows in place of unknown ones."""
        codes = self._nearest(self._add(0, self.rows(columns)), columns)
        self.codes = [codes]
        return codes

    def _nearest(self, codes: Integers, columns: Sequence[Encoded]) -> Integers:
        """The codes with those of the nearest rows in place of unknown ones, by the policy."""
        (alphabet,) = self._alphabets
        at = np.flatnonzero(codes == len(alphabet) + 1)
        if self.policy.unknown != NEAREST or not at.size:
            return codes
        if self._nearest_rows is None:
            self._nearest_rows = NearestRows(alphabet, self._given_columns)
        codes = codes.copy()
        codes[at] = self._nearest_rows.find(self._cells(columns)[0], at)
        return codes


class BoxCoding(Coding):
    """Reads boxes: its rows number the boxes of all strata, one stratum after the other.

    `lost` is for each of them whether nothing can be drawn for it. `left_out` says which records
    the table of the design lacks, for messages.
    """

    def __init__(
        self,
        coder: BoxCoder,
        lost: Sequence[bool],
        policy: Policy,
        left_out: str = "",
    ) -> None:
        for name, rule in (("unknown", policy.unknown), ("missing", policy.missing)):
            if rule != REFUSE:
                raise InputError(
                    f"{name} ({rule}): a channel for boxes of rows covers symbols that its table "
                    "did not have, and refuses missing cells: leave the option out"
                )
        super().__init__(coder.groups, policy)
        self.given = len(coder.given)
        self._coder = coder
        self._lost = np.array(lost)
        self._left_out = left_out

    def rows(self, columns: Sequence[Encoded]) -> Integers:
        """The number of the box of each record."""
        return self._boxes(self._places(columns))

    def read(self, columns: Sequence[Encoded]) -> Integers:
        """The symbols are counted if none of them is refused."""
        places = self._places(columns)
        self.codes = [self._add(k, codes) for k, codes in enumerate(places)]
        return self._boxes(places)

    def _places(self, columns: Sequence[Encoded]) -> list[Integers]:
        """The place of each cell in its variable, negative for unknown symbols."""
        places: list[Integers] = []
        for k, (cells, variable) in enumerate(
            zip(self._cells(columns), self._alphabets, strict=True)
        ):
            codes = positions_of(cells, variable)
            # Given columns have no stratum for an unknown symbol.
            refused = codes < 0 if k < self.given else codes == MISSING
            at = np.flatnonzero(refused)
            if at.size:
                raise _refusal(int(at[0]), codes, cells, variable, self._left_out)
            places.append(codes)
        return places

    def _boxes(self, places: Sequence[Integers]) -> Integers:
        """The number of the box of each record."""
        coder = self._coder
        stacked = np.column_stack(places)
        strata = coder.strata_of(stacked[:, : self.given])
        lost = np.flatnonzero(strata == NO_STRATUM)
        if lost.size:
            names = ",".join(column_names(coder.given))
            raise UnknownSymbol(
                int(lost[0]),
                "the channel does not know this combination of the given columns "
                f"{quoted(names)}; leave the record out, or design the channel with a table that "
                "has it",
            )
        boxes = coder.numbers_of(strata, stacked[:, self.given :])
        lost = np.flatnonzero(self._lost[boxes])
        if lost.size:
            raise UnknownSymbol(
                int(lost[0]),
                "no record of the table was in the box of this row, and a public channel does not "
                "have the marginal that is released for it: use the channel file that `design` "
                "wrote",
            )
        return boxes


def _refusal(
    place: int,
    codes: Integers,
    cells: Sequence[Encoded],
    variable: Variable,
    left_out: str,
) -> UnknownSymbol:
    """Why a missing cell, or an unknown symbol of a given column, is refused."""
    if codes[place] != MISSING:
        return unknown_at(place, cells, variable, left_out=left_out, has_policy=False)
    title = ",".join(variable.columns)
    return UnknownSymbol(
        place,
        f"the column {quoted(title)} has an empty cell, which no box covers; fill it, leave the "
        "record out, or design the channel with missing cells as a symbol (--missing symbol)",
    )
