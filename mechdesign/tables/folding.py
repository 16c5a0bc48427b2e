"""Folding: from the records of a long table to one row for each person (`people`).

`fold` finds the person and the place of every record by sorting once, whatever the lengths of the
sequences. `FoldedRecords` then makes the columns of the folded table, column by column in arrays,
and leads from its cells back to those of the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.arrow_arrays import arrow_texts
from mechdesign.formats.cells import Encoded
from mechdesign.formats.distinct import distinct_records
from mechdesign.formats.spellings import plain_spelling
from mechdesign.tables.cell_values import kind_of, number_of
from mechdesign.tables.columns import RecordFault
from mechdesign.tables.people import (
    ABSENT,
    MOST_RECORDS,
    PERSON,
    RECORDS,
    People,
    at_place,
)


@dataclass(frozen=True, eq=False)
class FoldedRecords:
    """The records of a long table by person and place.

    Attributes
    ----------
    person_of : (records,) array
        The person of every record; people are numbered by their first record.
    place_of : (records,) array
        The place of every record in the sequence of its person, from 0.
    lengths : (people,) array
        How many records each person has.
    first : (people,) array
        The first record of each person in the order of the table.
    """

    person_of: Integers
    place_of: Integers
    lengths: Integers
    first: Integers

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """The largest number of records of one person."""
        return int(self.lengths.max())

    def numbers(self) -> Encoded:
        """The number of records of each person, as a column of the folded table."""
        texts = tuple(str(length) for length in range(1, self.longest + 1))
        return Encoded(self.lengths - 1, texts)

    def once(self, column: Encoded, name: str) -> Encoded:
        """A column with one value for each person.

        Raises
        ------
        InputError
            If the records of a person have different values.
        """
        of_person = column.codes[self.first]
        # Two codes may have one text.
        canonical = _canonical_codes(column)
        differ = canonical[column.codes] != canonical[of_person[self.person_of]]
        if differ.any():
            people = len(np.unique(self.person_of[differ]))
            raise InputError(
                f"the sensitive column {quoted(name)} has different values in the records of "
                f"{people:,} of {len(self):,} people: say that the sequence of its values is the "
                "secret (--sensitive-of sequence), or correct it where it is one value of a person"
            )
        return column.recoded(of_person)

    def at_places(self, column: Encoded, longest: int) -> list[Encoded]:
        """The cells of a column at each place; `ABSENT` where a person has fewer records."""
        texts = column.texts
        if ABSENT in texts:
            absent = texts.index(ABSENT)
        else:
            absent = len(texts)
            texts = (*texts, ABSENT)
        columns: list[Encoded] = []
        for place in range(longest):
            codes = np.full(len(self), absent, dtype=np.int64)
            here = self.place_of == place
            codes[self.person_of[here]] = column.codes[here]
            columns.append(Encoded(codes, texts))
        return columns

    def folded(
        self, people: People, columns: Mapping[str, Encoded]
    ) -> dict[str, Encoded]:
        """The columns of the folded table for those of the long one that are at hand.

        Raises
        ------
        InputError
            If a person has more records than `people` knows, or several secrets where it has one.
        """
        if self.longest > people.longest:
            many = int(np.count_nonzero(self.lengths > people.longest))
            raise InputError(
                f"{many:,} people have more than the {people.longest} records that the channel "
                "knows: design one for these data"
            )
        folded: dict[str, Encoded] = {RECORDS: self.numbers()}
        for name, column in columns.items():
            if name in people.sensitive and people.sensitive_of == PERSON:
                folded[name] = self.once(column, name)
                continue
            for place, cells in enumerate(self.at_places(column, people.longest)):
                folded[at_place(name, place)] = cells
        return folded

    def unfolded(
        self, people: People, columns: Mapping[str, Encoded]
    ) -> dict[str, Encoded]:
        """The columns of the records for those of the folded table, one value for each record.

        Parameters
        ----------
        people : People
        columns : mapping of folded column to (people,) column
            All columns of the sequences.
        """
        records: dict[str, Encoded] = {}
        for name in people.columns:
            code_of: dict[str, int] = {}
            codes = np.full(len(self.person_of), -1, dtype=np.int64)
            for place in range(self.longest):
                here = np.flatnonzero(self.place_of == place)
                column = columns[at_place(name, place)]
                cells = column.codes[self.person_of[here]]
                # Only texts that a record has: a place holds `ABSENT` for people without one.
                used: list[int] = np.unique(cells[cells >= 0]).tolist()
                translated = np.full(len(column.texts) + 1, -1, dtype=np.int64)
                for code in used:
                    text = column.texts[code]
                    translated[code] = code_of.setdefault(text, len(code_of))
                codes[here] = translated[cells]
            records[name] = Encoded(codes, tuple(code_of))
        return records

    def people_anew(self, order: Integers | None = None) -> Encoded:
        """A new number for each person, from 1 on, for each record.

        `order` gives the person of each number; by default they are numbered as they appear.
        """
        number_of = np.arange(len(self))
        if order is not None:
            number_of = np.empty(len(self), dtype=np.int64)
            number_of[order] = np.arange(len(self))
        texts = tuple(str(number + 1) for number in range(len(self)))
        return Encoded(number_of[self.person_of], texts)

    def places_anew(self) -> Encoded:
        """The place of each record in the sequence of its person, from 1 on."""
        texts = tuple(str(place + 1) for place in range(self.longest))
        return Encoded(self.place_of, texts)


def _canonical_codes(column: Encoded) -> Integers:
    """For every code the first code with the same text; the last entry is that of a missing cell.

    Indexed with the code -1 it gives -1.
    """
    first: dict[str, int] = {}
    for code, text in enumerate(column.texts):
        first.setdefault(text, code)
    return np.array([*(first[text] for text in column.texts), -1], dtype=np.int64)


def fold(
    person: Mapping[str, Encoded], wave: tuple[str, Encoded] | None
) -> FoldedRecords:
    """Find the person and the place of every record.

    Parameters
    ----------
    person : mapping of name to (n,) column
        What names the person.
    wave : name and (n,) column, optional
        What orders a person's records: numbers, dates and times by their value, anything else as
        text. Without it they stand in the order of the table.

    Raises
    ------
    RecordFault
        At a record without a person or a wave.
    InputError
        If a person has two records in one wave, or more than `MOST_RECORDS`, or there are none.
    """
    named = list(person.items())
    if wave is not None:
        named.append(wave)
    for name, column in named:
        # The last entry is that of a missing cell, which has the code -1.
        blank = np.array([not text.strip() for text in column.texts] + [True])
        empty = np.flatnonzero(blank[column.codes])
        if empty.size:
            raise RecordFault(
                int(empty[0]),
                f"the column {quoted(name)} is empty, so the record belongs to no person or wave: "
                "fill it, or leave the record out",
            )
    count = len(named[0][1])
    if not count:
        raise InputError("there are no records")
    texts = {name: _canonical_codes(column) for name, column in person.items()}
    keys = [
        column.recoded(texts[name][column.codes]) for name, column in person.items()
    ]
    _, numbers = distinct_records(keys)
    _, first, of_record = np.unique(numbers, return_index=True, return_inverse=True)
    if len(first) > 1 and _plain_people(keys) < len(first):
        raise InputError(
            f"two people in {listed([*person])} differ only in blanks, leading zeros, a sign, "
            ".0 or the Unicode form: nobody can tell whether they are one; spell all of them alike "
            "(--normalise NFC)"
        )
    # By first appearance, so that the people stand in the order of the table.
    order_of_people = np.argsort(first, kind="stable")
    rank = np.empty(len(first), dtype=np.int64)
    rank[order_of_people] = np.arange(len(first))
    person_of = rank[of_record.reshape(-1)]
    lengths = np.bincount(person_of)
    if lengths.max() > MOST_RECORDS:
        many = int(np.count_nonzero(lengths > MOST_RECORDS))
        raise InputError(
            f"{many:,} of {len(lengths):,} people have more than {MOST_RECORDS} records, up to "
            f"{int(lengths.max()):,}: see that --person names a person, or release shorter spans"
        )
    waves = np.zeros(count, dtype=np.int64)
    if wave is not None:
        waves = _wave_ranks(wave[1])[wave[1].codes]
    order = np.lexsort((np.arange(count), waves, person_of))
    starts = np.cumsum(lengths) - lengths
    place_of = np.empty(count, dtype=np.int64)
    place_of[order] = np.arange(count) - starts[person_of[order]]
    if wave is not None:
        same_person = person_of[order][1:] == person_of[order][:-1]
        twice = same_person & (waves[order][1:] == waves[order][:-1])
        if twice.any():
            people = len(np.unique(person_of[order][1:][twice]))
            raise InputError(
                f"{people:,} of {len(lengths):,} people have two records in one wave "
                f"({quoted(wave[0])}): name all columns that make a person (--person A,B), or "
                "correct them"
            )
    return FoldedRecords(person_of, place_of, lengths, first[order_of_people])


def _plain_people(keys: Sequence[Encoded]) -> int:
    """How many people there are by the plain spelling of what names them."""
    plain_keys: list[Encoded] = []
    for column in keys:
        texts = plain_spelling(arrow_texts(column.texts))
        if texts is not None:
            plain = Encoded(column.codes, tuple(texts.to_pylist()))
            column = plain.recoded(_canonical_codes(plain)[plain.codes])
        plain_keys.append(column)
    _, numbers = distinct_records(plain_keys)
    return len(np.unique(numbers))


def _wave_ranks(column: Encoded) -> Integers:
    """The rank of every text of a column of waves; equal moments have one rank."""
    texts = column.texts
    kind = kind_of(texts)
    if kind is None:
        place = {text: k for k, text in enumerate(sorted(set(texts)))}
        return np.array([place[text] for text in texts], dtype=np.int64)
    numbers: list[Fraction] = []
    for text in texts:
        number = number_of(text, kind)
        # `kind_of` has read every one of them.
        assert number is not None
        numbers.append(number)
    rank = {number: k for k, number in enumerate(sorted(set(numbers)))}
    return np.array([rank[number] for number in numbers], dtype=np.int64)
