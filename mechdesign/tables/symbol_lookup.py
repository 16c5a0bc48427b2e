"""The symbols of a variable as codes: their cells column by column, and where records are among
them.

*Coded cells.* With the symbols (nurse, 30), (clerk, 30) and (nurse, 41) the first column has the
texts nurse and clerk and the codes 0, 1, 0, the second one the texts 30 and 41 and the codes 0, 0,
1.

*Lookup* of many records, without a Python loop over them. Every column has numbers for its own
texts. A symbol is found column by column: the symbols that agree with a record so far have a
number, and that number together with the code of the next column leads to the next one. So the
integers stay small, however many columns there are.

For example, the symbols are (a, x), (b, x) and (b, y). After the first column there are two
numbers, 0 for a and 1 for b. After the second there are three: 0 from (0, x), 1 from (1, x) and 2
from (1, y). A record (a, y) would be (0, y), which leads nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded, as_whole

# -------------------------------------------------------------------------- coded cells


@dataclass(frozen=True, eq=False)
class CodedCells:
    """The cells of every symbol as codes, column by column.

    `codes` is an (n, columns) array of places in `texts`, which has the different texts of each
    column in the order of their first use.
    """

    columns: tuple[str, ...]
    codes: Integers
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, columns: tuple[str, ...], symbols: Sequence[tuple[str, ...]]
    ) -> CodedCells:
        """The cells of some symbols."""
        codes = np.empty((len(symbols), len(columns)), dtype=np.int64)
        texts: list[tuple[str, ...]] = []
        for k, cells in enumerate(zip(*symbols, strict=True)):
            places = {text: place for place, text in enumerate(dict.fromkeys(cells))}
            codes[:, k] = list(map(places.__getitem__, cells))
            texts.append(tuple(places))
        return cls(columns, codes, tuple(texts))


# ------------------------------------------------------------------------------- lookup

Codes = NDArray[np.int64]

NOWHERE = -1
"""The position of a record that agrees with no symbol."""

DENSE_LIMIT = 1 << 20
"""Most numbers of a step that are looked up in an array (4 MB); more are searched for."""

DENSE_LIMIT_OF_ALL = 1 << 24
"""The same of all steps together (64 MB): people with many records have hundreds of columns."""


@dataclass(frozen=True)
class _Step:
    """From the symbols that agree in the columns so far to those that agree in one more.

    Attributes
    ----------
    size : int
        One more than the different texts of the column: the last code is that of no text of it.
    present : (k,) array
        The sorted ``number * size + code`` that occur; their places are the next numbers, and k is
        the number of a record that agrees with no symbol.
    dense : array or None
        The next number of each of them, and of all others k; None where it would be too large.
    """

    size: int
    present: Codes
    dense: NDArray[np.int32] | None

    def next(self, numbers: Codes, codes: Codes) -> Codes:
        """The next number of every record."""
        joined = numbers * self.size
        joined += codes
        if self.dense is not None:
            return self.dense.take(joined).astype(np.int64)
        nowhere = len(self.present)
        places = np.searchsorted(self.present, joined)
        places[places == nowhere] = 0
        return np.where(self.present[places] == joined, places, nowhere)


class SymbolLookup:
    """Finds records among symbols.

    Parameters
    ----------
    symbols : sequence of tuples of str
        All different, with a text for each column.
    """

    def __init__(self, symbols: Sequence[tuple[str, ...]]) -> None:
        self._code_of: list[dict[str, int]] = []
        self._steps: list[_Step] = []
        numbers = np.zeros(len(symbols), np.int64)
        count = 1
        room = DENSE_LIMIT_OF_ALL
        for part in range(len(symbols[0])):
            code_of: dict[str, int] = {}
            texts = [symbol[part] for symbol in symbols]
            codes = [code_of.setdefault(text, len(code_of)) for text in texts]
            size = len(code_of) + 1
            joined = numbers * size + np.array(codes, np.int64)
            present, numbers = np.unique(joined, return_inverse=True)
            dense: NDArray[np.int32] | None = None
            # One number more than those of symbols: that of a record that agrees with none.
            needed = (count + 1) * size
            if needed <= min(DENSE_LIMIT, room):
                room -= needed
                dense = np.full(needed, len(present), dtype=np.int32)
                dense[present] = np.arange(len(present))
            self._code_of.append(code_of)
            self._steps.append(_Step(size, present, dense))
            count = len(present)
        # The position of each last number; one more for records that lead nowhere.
        self._positions = np.full(len(symbols) + 1, NOWHERE)
        self._positions[numbers] = np.arange(len(symbols))

    def has_empty(self, part: int) -> bool:
        """Whether a symbol has the empty text in a column."""
        return "" in self._code_of[part]

    def positions(self, columns: Sequence[Encoded]) -> Codes:
        """The position of every record among the symbols, or `NOWHERE`.

        A missing cell is looked up as the empty text. A float is looked up as it is shown
        (``1.0``), and then as an integer (``1``).
        """
        positions = self._found(columns, whole=False)
        if any(column.is_float for column in columns):
            # pandas turns integers with gaps into floats, and the symbols are the integers.
            lost = np.flatnonzero(positions == NOWHERE)
            if lost.size:
                rest = [column.recoded(column.codes[lost]) for column in columns]
                positions[lost] = self._found(rest, whole=True)
        return positions

    def lacks(self, columns: Sequence[Encoded]) -> NDArray[np.bool_]:
        """Which records have an empty cell in a column in which no symbol is empty."""
        lacking = np.zeros(len(columns[0]), np.bool_)
        for part, column in enumerate(columns):
            if self.has_empty(part):
                continue
            empty = np.array([*(not text for text in column.texts), True])
            lacking |= _by_code(empty, column)
        return lacking

    def _found(self, columns: Sequence[Encoded], *, whole: bool) -> Codes:
        """The positions by the texts as they are, or by those of floats as integers."""
        numbers = np.zeros(len(columns[0]), np.int64)
        steps = zip(columns, self._code_of, self._steps, strict=True)
        for column, code_of, step in steps:
            texts: Sequence[str] = column.texts
            if whole and column.is_float:
                texts = [as_whole(text) for text in texts]
            nowhere = len(code_of)
            codes = [code_of.get(text, nowhere) for text in texts]
            codes.append(code_of.get("", nowhere))
            codes_of_records = _by_code(np.array(codes, np.int64), column)
            numbers = step.next(numbers, codes_of_records)
        return self._positions[numbers]


def _by_code(of_texts: NDArray[Any], column: Encoded) -> NDArray[Any]:
    """What belongs to the text of every record; the last entry belongs to a missing cell."""
    return of_texts[np.maximum(column.codes, -1)]
