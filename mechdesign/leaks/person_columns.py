"""Columns that name people with several records.

A promise about a record says nothing of a person with several: the released records of one person
add up. So whoever releases record by record must know where a table has people. Nothing in a file
says so, but their column is like no other: it has many values that come again, each in a few
records, and the records of one value have the same secret far more often than those of two.

`find_person_columns` looks at every column for this. For example, 600 values with four records each
whose secrets agree within 580 of them name people. Hours of work do not, since thousands of records
share a value; a postcode may, and then its residents are alike, which is as bad.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.tables.people import MOST_RECORDS

FEWEST_PEOPLE = 20
"""Fewest values that come again: with fewer, secrets may agree by chance."""

REPEATED = 0.75
"""Share of the records whose value must come again; below it the column is rather one of numbers
that a few records share, such as survey weights."""

ALIKE = 0.9
"""Share of the repeated values that must have one secret alone. A secret of a person never changes,
and some records are wrong."""

BEYOND_CHANCE = 0.2
"""How far this share must be beyond the one that secrets in random order would have."""

DEVIATIONS = 6.0
"""How many standard deviations it must be beyond that: by chance one column in 10^9 is."""


@dataclass(frozen=True)
class PersonColumn:
    """A column that names people, by its figures in one table.

    Attributes
    ----------
    name : str
    people : int
        Its values.
    records : int
        Their records.
    most : int
        Most records of one value.
    alike : float
        Share of the values with several records that have one secret alone.
    """

    name: str
    people: int
    records: int
    most: int
    alike: float


def find_person_columns(
    columns: Mapping[str, Integers], secret: Integers
) -> list[PersonColumn]:
    """The columns that name people, the one with most records of a person first.

    Parameters
    ----------
    columns : mapping of name to (n,) codes of at least 0
    secret : (n,) codes of the sensitive column, of at least 0
    """
    found: list[PersonColumn] = []
    for name, codes in columns.items():
        column = _person_column(name, codes, secret)
        if column is not None:
            found.append(column)
    return sorted(found, key=lambda column: column.people)


def _person_column(name: str, codes: Integers, secret: Integers) -> PersonColumn | None:
    """What a column says of people; None where it names none."""
    if not len(codes):
        return None
    sizes = np.bincount(codes)
    most = int(sizes.max())
    repeated = sizes > 1
    if most > MOST_RECORDS or np.count_nonzero(repeated) < FEWEST_PEOPLE:
        return None
    if sizes[repeated].sum() < REPEATED * len(codes):
        return None
    width = int(secret.max()) + 1
    pairs = np.unique(codes.astype(np.int64) * width + secret)
    secrets = np.bincount(pairs // width, minlength=len(sizes))
    alike = secrets[repeated] == 1
    # P(n records have one secret) in random order, and the variance of the share of such values.
    shares = np.bincount(secret) / len(secret)
    chances_by_size = {
        int(size): float((shares**size).sum()) for size in np.unique(sizes[repeated])
    }
    chances = np.array([chances_by_size[int(size)] for size in sizes[repeated]])
    share = float(alike.mean())
    expected = float(chances.mean())
    deviation = float(np.sqrt((chances * (1.0 - chances)).sum())) / len(chances)
    beyond = share - expected
    if share < ALIKE or beyond < BEYOND_CHANCE or beyond < DEVIATIONS * deviation:
        return None
    people = int(np.count_nonzero(sizes))
    return PersonColumn(name, people, len(codes), most, share)
