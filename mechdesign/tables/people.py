"""People with several records: a long table with a row for each record becomes one with a row for
each person.

A person's symbol is the whole sequence of records, in the order of the waves. The folded table has
the number of records and then, for each place of the longest sequence, a cell for each column;
places that a person does not have hold `ABSENT`. For example, with the person p, the wave w and the
released column job:

    p  w  job              number of records  job 1   job 2
    a  1  nurse     a      2                  nurse   clerk
    a  2  clerk     b      1                  clerk   (none)
    b  1  clerk

Everything that is proven of a record of a table then holds for a person of the folded one: lifts,
the law of the sequences, and counts of people. The number of records is given: it is released as it
is, so a sequence is only ever released as one of the same length.

`People` says which columns these are, and belongs to the variable of the sequences. The folding
itself is in `folding`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted

RECORDS = "number of records"
"""The given column of the folded table with the length of the sequence."""

ABSENT = "(none)"
"""The cell of a record that a person does not have. The number of records tells it from a cell of
the same text."""

MOST_RECORDS = 100
"""Most records of one person. Beyond it a table of one row a person has thousands of columns, and
whoever has so many records is known by their number alone."""

RECORD = "record"
"""The unit of a promise that is knowingly about each record alone, where people have several."""

SensitiveOf: TypeAlias = Literal["person", "sequence"]

PERSON: Literal["person"] = "person"
"""The secret is one value of each person."""

SEQUENCE: Literal["sequence"] = "sequence"
"""The secret is the sequence of the values of all records of a person."""

SECRETS = (PERSON, SEQUENCE)


@dataclass(frozen=True, kw_only=True)
class People:
    """Which columns make people of records.

    Attributes
    ----------
    person : tuple of str
        The columns that name a person.
    wave : str or None
        The column by which a person's records are ordered; the order of the file without one.
    columns : tuple of str
        The columns of a record that are part of its symbol, given ones first.
    given : tuple of str
        Those of them that are released as they are.
    longest : int
        The largest number of records of one person.
    sensitive : tuple of str
        The sensitive columns of a record.
    sensitive_of : {"person", "sequence"}
        Whether the secret is one value of the person, or the sequence of those of all records.
    """

    person: tuple[str, ...]
    wave: str | None
    columns: tuple[str, ...]
    given: tuple[str, ...]
    longest: int
    sensitive: tuple[str, ...] = ()
    sensitive_of: SensitiveOf = PERSON

    def __post_init__(self) -> None:
        if not self.person:
            raise InputError("person: name at least one column that names a person")
        if self.sensitive_of not in SECRETS:
            raise InputError(
                f"--sensitive-of ({quoted(self.sensitive_of)}) must be one of {listed(SECRETS)}"
            )
        if self.longest < 1:
            raise InputError("a person has at least one record")
        names = (*self.person, *self.columns, *self.sensitive)
        twice = repeated(names)
        if twice is not None:
            raise InputError(
                f"the column {quoted(twice)} has two roles: what names a person (--person) is "
                "neither released nor sensitive, and no column is both of these"
            )
        strangers = [name for name in self.given if name not in self.columns]
        if strangers:
            raise InputError(f"given: {listed(strangers)} is no column of a record")
        if self.wave in (*self.person, *self.sensitive):
            raise InputError(
                f"the column {quoted(self.wave)} orders the records of a person (--wave), and "
                "cannot name the person or be sensitive"
            )

    @property
    def released(self) -> tuple[str, ...]:
        """The columns of a record that are released and not given."""
        return tuple(name for name in self.columns if name not in self.given)

    @property
    def given_columns(self) -> tuple[str, ...]:
        """The given columns of the folded table: the number of records comes first."""
        return (RECORDS, *self._at_places(self.given))

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The released columns of the folded table."""
        return self._at_places(self.released)

    @property
    def folded_columns(self) -> tuple[str, ...]:
        """The useful columns of the folded table."""
        return (*self.given_columns, *self.released_columns)

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The sensitive columns of the folded table."""
        if self.sensitive_of == PERSON:
            return self.sensitive
        return self._at_places(self.sensitive)

    @cached_property
    def column_of(self) -> Mapping[str, str]:
        """The column of a record that each column of the folded table has a cell of."""
        names: dict[str, str] = {}
        for name in (*self.columns, *self.sensitive):
            for place in range(self.longest):
                names[at_place(name, place)] = name
        return names

    @property
    def number(self) -> str:
        """The name of the column in which people are numbered anew."""
        return ",".join(self.person)

    def _at_places(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of the folded table for columns of a record."""
        columns: list[str] = []
        for place in range(self.longest):
            columns += [at_place(name, place) for name in names]
        return tuple(columns)

    def releasing(self, folded: Sequence[str]) -> People | None:
        """The people with the columns of records whose folded ones are named; None if the folded
        columns are not those of whole sequences.
        """
        columns = dict.fromkeys(
            self.column_of[name] for name in folded if name in self.column_of
        )
        given = tuple(name for name in self.given if name in columns)
        released = tuple(name for name in columns if name not in given)
        people = replace(self, columns=(*given, *released), given=given)
        return people if people.folded_columns == tuple(folded) else None

    def symbol(self, records: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """The symbol of a person with these records, a text for each of `columns` in each.

        Raises
        ------
        InputError
            If there are no records or too many, or a record has another number of texts.
        """
        if not 1 <= len(records) <= self.longest:
            raise InputError(
                f"the person has {len(records)} records; the channel knows people with 1 to "
                f"{self.longest}"
            )
        cells = {RECORDS: str(len(records))}
        for place, record in enumerate(records):
            if len(record) != len(self.columns):
                raise InputError(
                    f"record {place + 1} has {len(record)} texts for the {len(self.columns)} "
                    f"columns {listed(self.columns)}"
                )
            for name, text in zip(self.columns, record, strict=True):
                cells[at_place(name, place)] = text
        return tuple(cells.get(name, ABSENT) for name in self.folded_columns)

    def records(self, symbol: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The records of a symbol, a text for each of `columns` in each."""
        cells = dict(zip(self.folded_columns, symbol, strict=True))
        records: list[tuple[str, ...]] = []
        for place in range(int(cells[RECORDS])):
            record = tuple(cells[at_place(name, place)] for name in self.columns)
            records.append(record)
        return tuple(records)


def at_place(name: str, place: int) -> str:
    """The column of the folded table with a column's cell at a place of the sequence, from 0."""
    return f"{name} {place + 1}"
