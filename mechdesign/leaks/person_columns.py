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
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        Share of the values with several records that have one secret alone; of what may change the
        share of the pairs of records of one value that have the same.
    """

    name: str
    people: int
    records: int
    most: int
    alike: float


def find_person_columns(
    columns: Mapping[str, NDArray[np.integer[Any]]],
    secret: Integers,
    *,
    may_change: bool = False,
) -> list[PersonColumn]:
    """The columns that name people, the one with most records of a person first.

    Parameters
    ----------
    columns : mapping of name to (n,) codes of at least 0
    secret : (n,) codes of the sensitive column, of at least 0
    may_change : bool
        Whether these are codes of what may differ between the records of a person: then two records
        of a value need only have the same far more often than two of the table.
    """
    found: list[PersonColumn] = []
    for name, codes in columns.items():
        column = _person_column(name, codes, secret, may_change=may_change)
        if column is not None:
            found.append(column)
    return sorted(found, key=lambda column: column.people)


def may_name_people(repeated: Integers, records: int) -> bool:
    """Whether a column may name people, whatever else its table has.

    Parameters
    ----------
    repeated : array
        How many records each value has, of those with several.
    records : int
        All records.
    """
    most = int(repeated.max(initial=0))
    return may_name_people_by(len(repeated), most, int(repeated.sum()), records)


def may_name_people_by(values: int, most: int, repeated: int, records: int) -> bool:
    """As `may_name_people`, by figures of the values with several records: how many there are, the
    most records of one, and those of all.
    """
    if most > MOST_RECORDS or values < FEWEST_PEOPLE:
        return False
    return repeated >= REPEATED * records


def _person_column(
    name: str, codes: NDArray[np.integer[Any]], secret: Integers, *, may_change: bool
) -> PersonColumn | None:
    """What a column says of people; None where it names none."""
    if not len(codes):
        return None
    sizes = np.bincount(codes)
    repeated = sizes > 1
    if not may_name_people(sizes[repeated], len(codes)):
        return None
    most = int(sizes.max())
    people = int(np.count_nonzero(sizes))
    width = int(secret.max()) + 1
    pairs, times = np.unique(
        codes.astype(np.int64) * width + secret, return_counts=True
    )
    if may_change:
        share = _agreement(times, sizes)
        chance = _agreement(np.bincount(secret), np.array([len(secret)]))
        # In random order two pairs of records agree nearly independently of each other.
        pairs_of_records = float((sizes * (sizes - 1.0)).sum()) / 2.0
        deviation = float(np.sqrt(chance * (1.0 - chance) / pairs_of_records))
        beyond = share - chance
        if beyond < BEYOND_CHANCE * (1.0 - chance) or beyond < DEVIATIONS * deviation:
            return None
        return PersonColumn(name, people, len(codes), most, share)
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
    return PersonColumn(name, people, len(codes), most, share)


def is_measurement(
    codes: Integers, secret: Integers, numbers: NDArray[np.float64]
) -> bool:
    """Whether records of neighbouring numbers have the same secret nearly as often as those of one.

    So it is with ages or incomes, which tell of a secret the more the nearer they are. People who
    are numbered have no more in common with the next one than with any other.

    Parameters
    ----------
    codes, secret : (n,) codes of the column and of the secret, of at least 0
    numbers : (values,) array
        The number that each code means; NaN for none.
    """
    width = int(secret.max()) + 1
    cells = np.bincount(codes * width + secret, minlength=len(numbers) * width)
    table = cells.reshape(len(numbers), width)
    known = np.flatnonzero(~np.isnan(numbers))
    ordered = table[known[np.argsort(numbers[known])]].astype(np.float64)
    sizes = ordered.sum(axis=1)
    pairs = float(sizes[1:] @ sizes[:-1])
    if not pairs:
        return False
    near = float((ordered[1:] * ordered[:-1]).sum()) / pairs
    within = _agreement(ordered, sizes)
    deviation = float(np.sqrt(near * (1.0 - near) / pairs))
    beyond = within - near
    return beyond < BEYOND_CHANCE * (1.0 - near) or beyond < DEVIATIONS * deviation


def _agreement(times: NDArray[Any], sizes: NDArray[Any]) -> float:
    """The share of the pairs of records within groups of these sizes that have the same symbol.

    `times` is how many records of a group have a symbol, over all groups and symbols.
    """
    pairs = float((sizes.astype(np.float64) * (sizes - 1)).sum())
    same = float((times.astype(np.float64) * (times - 1)).sum())
    return same / max(pairs, 1.0)
