"""The coder of a channel of boxes: from the cells of a record to its stratum and its box.

The given columns choose the stratum. Each stratum has a partition of all rows of the other columns
(`row_boxes`), learned on a slice of the records. The symbol of a record in its channel is its given
cells and the name of its box: the record (F; nurse, 40) with the given column sex is in the stratum
of F, and if its box there is 'job nurse, clerk; hours 38-42', the third one, its symbol is (F, 'box
3').

*The fill* of the boxes is the rows of the table in each. A released box can be replaced by a row of
the table in it, which depends on the record through the box alone. `rows` are drawn for that, from
all records. `counts` are for estimates, and count the records that the promise was proven on alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, Integers
from mechdesign.tables.people import ABSENT, People, at_place
from mechdesign.tables.row_boxes import NOTHING, Boxes, box_name
from mechdesign.tables.variable import Symbol, Variable, column_names

NO_STRATUM = -1
"""In the place of a stratum: no record of the slice has these given symbols."""


@dataclass(frozen=True)
class Stratum:
    """The codes of its given symbols, none without given columns; and its boxes."""

    codes: tuple[int, ...]
    boxes: Boxes


@dataclass(frozen=True)
class BoxCoder:
    """The columns of a record, and the boxes of each stratum.

    Parameters
    ----------
    given, columns : tuple of Variable
        Columns that are released as they are, and columns that the boxes are made of.
    strata : tuple of Stratum
        One without given columns.
    people : People, optional
        How a row is the sequence of a person's records, where it is one.

    Raises
    ------
    InputError
        If strata repeat, or a stratum or a split has no symbol of its column.
    """

    given: tuple[Variable, ...]
    columns: tuple[Variable, ...]
    strata: tuple[Stratum, ...]
    people: People | None = None

    def __post_init__(self) -> None:
        people = self.people
        if people is not None and self.released_columns != people.folded_columns:
            raise InputError(
                "people: the columns are not those of the sequences of their records"
            )
        codes = [stratum.codes for stratum in self.strata]
        if not codes or len(set(codes)) < len(codes):
            raise InputError("the parts must be of different strata")
        for stratum in self.strata:
            self._check(stratum)

    def _check(self, stratum: Stratum) -> None:
        """Refuse codes that the columns do not have."""
        if len(stratum.codes) != len(self.given):
            raise InputError("a stratum must have a code for every given column")
        for variable, code in zip(self.given, stratum.codes, strict=True):
            if not 0 <= code < len(variable):
                raise InputError("a stratum has no symbol of its column")
        for split in stratum.boxes.splits:
            if not 0 <= split.column < len(self.columns):
                raise InputError("a split is on a column that is not there")
            size = len(self.columns[split.column])
            if not all(0 <= code < size for code in split.inside):
                raise InputError("a split has no symbol of its column")

    @property
    def groups(self) -> tuple[Variable, ...]:
        """The given columns, then those of the boxes."""
        return self.given + self.columns

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that are needed of a record, given ones first."""
        return column_names(self.groups)

    @property
    def size(self) -> int:
        """Number of boxes of all strata."""
        return len(self.symbols)

    def strata_of(self, codes: Integers) -> Integers:
        """(records,) place of the stratum of each row of codes of the given columns, or
        `NO_STRATUM`.
        """
        if not self.given:
            return np.zeros(len(codes), dtype=np.int64)
        places = {stratum.codes: place for place, stratum in enumerate(self.strata)}
        # There are few different combinations, and many records.
        combinations, inverse = np.unique(codes, axis=0, return_inverse=True)
        strata = [places.get(tuple(row), NO_STRATUM) for row in combinations.tolist()]
        return np.array(strata, dtype=np.int64)[inverse.ravel()]

    def numbers_of(self, strata: Integers, codes: Integers) -> Integers:
        """(records,) number of the box of each row of codes of the other columns, in the stratum at
        its place; the boxes of all strata are numbered one after the other.
        """
        numbers = np.zeros(len(strata), dtype=np.int64)
        first = 0
        for place, stratum in enumerate(self.strata):
            at = np.flatnonzero(strata == place)
            if at.size:
                numbers[at] = first + stratum.boxes.of(codes[at])
            first += len(stratum.boxes)
        return numbers

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The given cells and the name of every box, by its number."""
        symbols: list[Symbol] = []
        for stratum in self.strata:
            given = self.given_texts(stratum.codes)
            for box in range(len(stratum.boxes)):
                symbols.append((*given, box_name(box)))
        return tuple(symbols)

    def given_texts(self, codes: Sequence[int]) -> Symbol:
        """The given cells of a stratum."""
        texts: list[str] = []
        for variable, code in zip(self.given, codes, strict=True):
            texts += variable.symbols[code]
        return tuple(texts)

    def cells_of(self, stratum: Sequence[int], codes: Integers) -> list[list[str]]:
        """By column the cells of rows of codes in a stratum, given ones first."""
        columns = [[text] * len(codes) for text in self.given_texts(stratum)]
        for variable, places in zip(self.columns, codes.T.tolist(), strict=True):
            for cells in zip(*variable.symbols, strict=True):
                columns.append([cells[place] for place in places])
        return columns

    def silent_row(self, codes: Sequence[int]) -> Symbol:
        """What is written for rows of a stratum that releases nothing, where boxes are filled."""
        given = self.given_texts(codes)
        cells = dict.fromkeys(self.released_columns, NOTHING)
        if self.people is not None:
            length = int(given[0])
            for name in self.people.released:
                for place in range(length, self.people.longest):
                    cells[at_place(name, place)] = ABSENT
        cells.update(zip(column_names(self.given), given, strict=True))
        return tuple(cells.values())

    def stratum_text(self, codes: Sequence[int]) -> str:
        """The given symbols of a stratum, as 'sex Male: '; empty without given columns."""
        texts: list[str] = []
        for variable, code in zip(self.given, codes, strict=True):
            texts.append(f"{','.join(variable.columns)} {variable.names[code]}")
        if not texts:
            return ""
        return f"{', '.join(texts)}: "

    def box_texts(self, boxes: Boxes) -> list[str]:
        """Every box in words: 'box 1: job {clerk, nurse}; hours {38, any other}'."""
        texts = self.sets_of_rows(boxes)
        return [f"{box_name(box)}: {text}" for box, text in enumerate(texts)]

    @property
    def row_sets(self) -> list[str]:
        """The rows of every box in words, by its number."""
        texts: list[str] = []
        for stratum in self.strata:
            texts += self.sets_of_rows(stratum.boxes)
        return texts

    def sets_of_rows(self, boxes: Boxes) -> list[str]:
        """The rows of every box in words."""
        texts: list[str] = []
        for members in self.members(boxes):
            pieces: list[str] = []
            for column, (inside, is_closed) in sorted(members.items()):
                variable = self.columns[column]
                names = [variable.names[x] for x in sorted(inside)]
                if not is_closed:
                    # Symbols that the slice has not seen are on this side of every split.
                    names.append("any other")
                pieces.append(f"{','.join(variable.columns)} {{{', '.join(names)}}}")
            texts.append("; ".join(pieces) or "every row")
        return texts

    def members(self, boxes: Boxes) -> list[dict[int, tuple[set[int], bool]]]:
        """For every box the symbols of each column that it splits on, and whether these are all;
        else symbols that the slice has not seen are in it, too.
        """
        of_boxes: list[dict[int, tuple[set[int], bool]]] = []
        for conditions in boxes.sets():
            # A box is the intersection of the sides of all splits above it. A side 'inside' lists
            # its symbols; the other side has all the rest, seen or not.
            members: dict[int, tuple[set[int], bool]] = {}
            for column, sets in conditions.items():
                inside = set(range(len(self.columns[column])))
                is_closed = False
                for is_inside, symbols in sets:
                    if is_inside:
                        inside &= set(symbols)
                        is_closed = True
                    else:
                        inside -= set(symbols)
                members[column] = (inside, is_closed)
            of_boxes.append(members)
        return of_boxes

    def public(self) -> BoxCoder:
        """The coder without the values inside of bins, which are cells of the table."""
        return replace(
            self,
            given=tuple(variable.public() for variable in self.given),
            columns=tuple(variable.public() for variable in self.columns),
        )


# --------------------------------------------------------------------------------- fill

RowsByBox: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
"""The distinct rows of each box: entry [b][i] has the codes of row i, and then its records."""

SymbolCounts: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
"""Records by box, column and symbol: entry [b][j][x] counts those in box b with symbol x."""


@dataclass(frozen=True)
class BoxFill:
    """The rows and the counts of the boxes, stratum by stratum.

    Parameters
    ----------
    rows : tuple of RowsByBox
        Empty for each stratum where labels of boxes are released.
    counts : tuple of SymbolCounts
        Empty for a stratum that releases nothing.
    """

    rows: tuple[RowsByBox, ...]
    counts: tuple[SymbolCounts, ...]

    @property
    def has_rows(self) -> bool:
        """True if boxes are filled with rows."""
        return any(self.rows)

    def check(self, coder: BoxCoder, records: Sequence[Mapping[str, int]]) -> None:
        """Refuse rows and counts that are not those of their boxes.

        Parameters
        ----------
        coder : BoxCoder
        records : sequence of mapping of box name to int
            For each stratum the records of the proof in each box that has some.
        """
        if not len(self.rows) == len(self.counts) == len(coder.strata):
            raise InputError("there must be rows and counts of every stratum")
        sizes = [len(variable) for variable in coder.columns]
        for stratum, rows, counts, of_boxes in zip(
            coder.strata, self.rows, self.counts, records, strict=True
        ):
            if rows:
                _check_rows(stratum, rows, sizes)
            if counts:
                _check_counts(stratum, counts, sizes, of_boxes)


def _check_rows(stratum: Stratum, by_box: RowsByBox, sizes: Sequence[int]) -> None:
    """Refuse rows that are not in their boxes."""
    if len(by_box) != len(stratum.boxes):
        raise InputError("there must be rows to fill every box")
    for box, rows in enumerate(by_box):
        # A box that no record is in is never released, so nothing fills it.
        if not rows:
            continue
        table = _table_of(rows, len(sizes) + 1)
        codes = table[:, :-1]
        if (codes < 0).any() or (codes >= np.array(sizes)).any():
            raise InputError("a row that fills a box has no symbol of its column")
        if (table[:, -1] < 1).any():
            raise InputError("a row that fills a box has no record")
        if (stratum.boxes.of(codes) != box).any():
            raise InputError("a row that fills a box lies in another one")


def _table_of(rows: Sequence[Sequence[int]], width: int) -> Integers:
    """The rows as an array; all must have this width."""
    if any(len(row) != width for row in rows):
        raise InputError(
            "a row that fills a box must have a code for every column, and its records"
        )
    if any(not -1 <= number <= LARGEST_INTEGER for row in rows for number in row):
        raise InputError("a row that fills a box has no number of records")
    return np.array(rows, dtype=np.int64)


def _check_counts(
    stratum: Stratum,
    by_box: SymbolCounts,
    sizes: Sequence[int],
    records: Mapping[str, int],
) -> None:
    """Refuse counts of the symbols in a box that are not those of its records."""
    if len(by_box) != len(stratum.boxes):
        raise InputError("there must be counts of the symbols in every box")
    for box, columns in enumerate(by_box):
        if [len(counts) for counts in columns] != sizes:
            raise InputError("every symbol of every column needs a count in a box")
        total = records.get(box_name(box), 0)
        for counts in columns:
            if min(counts) < 0 or sum(counts) != total:
                raise InputError(
                    "the counts of symbols in a box are not those of its records"
                )
