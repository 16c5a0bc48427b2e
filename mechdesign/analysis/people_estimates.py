"""Shares of values among the records of people, from what was released of their sequences.

The share of a value v among R records is the sum over people of f_v(y) / R, where f_v(y) is how
many records of the released sequence y have it. The numbers of records are released as they are, so
R is known. With the law of the sequences kept, the expectation of the sum is that of the table;
else `shares_of_people` takes off what the channel and its table say that it moved. Errors:

- *For the table.* Independent draws add the variance sum over people of Var f_v(Y | x) / R^2; fixed
  counts add nothing.
- *For the population* that the people are an independent sample of, the variance of the ratio
  (sum of f_v) / (sum of n) more, with n records of a person: the sum over people of
  (f_v(y) - p n)^2 / R^2. Records of one person are alike, so this is more than for as many people
  with one record each.

For example, two of three records of one person are nurses and none of the two of another one: the
share is 2/5.
"""

# SciPy has no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.analysis.column_frequencies import Array, ColumnFrequencies, of_shares
from mechdesign.channel.row_law import RowLaw
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed
from mechdesign.tables.people import People


def groups_of_people(
    people: People, columns: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """The columns of a record whose values are crossed; by default each by itself."""
    if columns is None:
        return [(name,) for name in people.columns]
    unknown = [name for name in columns if name not in people.columns]
    if unknown:
        raise InputError(
            f"the channel releases no column {listed(unknown)} (it releases "
            f"{listed(people.columns)})"
        )
    return [tuple(columns)]


def shares_of_people(
    law: RowLaw,
    people: People,
    counts: Integers,
    group: tuple[str, ...],
    level: float,
    *,
    of_population: bool,
    fixed: bool,
) -> ColumnFrequencies:
    """The shares of the crossed values of some columns among the records of people.

    Parameters
    ----------
    law : RowLaw
        How sequences of people are drawn.
    people : People
    counts : (outputs,) array
        How many people have each released sequence.
    group : tuple of str
        Columns of a record.
    level : float
    of_population : bool
        Whether the intervals are for the population of the people.
    fixed : bool
        Whether the counts of the draws were fixed.
    """
    values: dict[tuple[str, ...], int] = {}
    released = _numbers_of_values(people, law.outputs, group, values)
    true = _numbers_of_values(people, law.rows, group, values)
    size = len(values)
    of_output = _dense(released, size)
    lengths = of_output.sum(axis=1)
    records = round(float(counts @ lengths))
    shares = counts @ of_output / max(records, 1)
    if not law.is_kept:
        shares = shares - _moved(law, of_output, _dense(true, size))
    variance = np.zeros(size)
    if not fixed:
        variance += _drawn(law, of_output, int(counts.sum())) / max(records, 1) ** 2
    if of_population:
        residuals = of_output - np.outer(lengths, np.clip(shares, 0.0, 1.0))
        variance += counts @ residuals**2 / max(records, 1) ** 2
    return of_shares(group, tuple(values), shares, variance, records, level)


def _numbers_of_values(
    people: People,
    symbols: Sequence[tuple[str, ...]],
    group: tuple[str, ...],
    values: dict[tuple[str, ...], int],
) -> list[dict[int, int]]:
    """For each sequence how many of its records have each value; new values are numbered on."""
    places = [people.columns.index(name) for name in group]
    numbers: list[dict[int, int]] = []
    for symbol in symbols:
        times: dict[int, int] = {}
        for record in people.records(symbol):
            value = tuple(record[place] for place in places)
            number = values.setdefault(value, len(values))
            times[number] = times.get(number, 0) + 1
        numbers.append(times)
    return numbers


def _dense(numbers: Sequence[dict[int, int]], size: int) -> Array:
    """(sequences, values) array of how many records have each value."""
    table = np.zeros((len(numbers), size))
    for row, times in zip(table, numbers, strict=True):
        for value, number in times.items():
            row[value] = number
    return table


def _moved(law: RowLaw, of_output: Array, of_input: Array) -> Array:
    """The expected share of every value among released records, less that of the table."""
    after = law.expected @ of_output
    before = law.row_masses @ of_input
    return (after - before) / before.sum()


def _drawn(law: RowLaw, of_output: Array, people: int) -> Array:
    """The sum over so many people of the variance of each number of records, given their own."""
    from scipy.sparse import csr_array

    shape = (len(law.masses), len(law.outputs))
    rows = csr_array((law.shares, (law.class_of, law.indices)), shape=shape)
    means = rows @ of_output
    squares = rows @ of_output**2
    return people * (law.masses @ np.maximum(squares - means**2, 0.0))
