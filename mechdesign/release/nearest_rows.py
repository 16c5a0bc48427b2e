"""The nearest known row of a record whose row the channel does not have.

The nearest row has the fewest changed cells, and among such rows the one whose numbers are nearest,
in ranks of the numbers that the channel knows; of equal ones it is the first. Given columns must
agree, because they are released as they are. For example, with the rows

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

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed
from mechdesign.formats.cells import Encoded, as_whole
from mechdesign.release.policies import NEAREST, Policy, normalised
from mechdesign.release.protocol import Releasable
from mechdesign.tables.cell_numbers import Kind, kind_of, number_of
from mechdesign.tables.columns import UnknownSymbol, in_bins, texts_of
from mechdesign.tables.variable import Variable, numbers_of

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
