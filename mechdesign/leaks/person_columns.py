"""Columns that name people with several records, and what those records reach together.

A promise about a record says nothing of a person with several: the released records of one person
add up. So whoever releases record by record must know where a table has people. Nothing in a file
says so, but their column is like no other: it has many values that come again, each in a few
records, and the records of one value have the same secret far more often than those of two. A few
values may have very many records.

`find_person_columns` looks at every column for this. For example, 600 values with four records each
whose secrets agree within 580 of them name people. Hours of work do not, since thousands of records
share a value; a postcode may, and then its residents are alike, which is as bad.

*Reach.* Draws are independent, so for whoever knows that the outputs y_1, .., y_n are those of one
person the probabilities multiply: P(s | y_1, .., y_n) is in proportion to P(s) times the product of
P(y_i | s) / P(y_i), which the channel and its table give exactly. `reach_of_people` gives every
person the outputs that are most likely for their records, and compares what they reach together
with what one record can reach.

For example, with a secret of two values at one half each, one record makes it 1.5 times as likely
at most: .75. Four such records of one person have the odds 3^4 to 1: .988, so 1.98 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.core.integers import Integers
from mechdesign.tables.people import MOST_RECORDS

FEWEST_PEOPLE = 20
"""Fewest values that come again: with fewer, secrets may agree by chance."""

REPEATED = 0.75
"""Share of the records whose value must come again; below it the column is rather one of numbers
that a few records share, such as survey weights."""

EXCEPTIONS = 0.05
"""Share of the repeated values that may have more than `MOST_RECORDS`: an account for tests must
not hide all others."""

OF_EXCEPTIONS = 1 / 3
"""Share of the records that these may have together. Amounts are mostly zero in many tables (gains
of 92 % of the people of a census), and their other values name nobody."""

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
    large = repeated > MOST_RECORDS
    return may_name_people_by(
        values=len(repeated),
        repeated=int(repeated.sum()),
        large=int(np.count_nonzero(large)),
        of_large=int(repeated[large].sum()),
        records=records,
    )


def may_name_people_by(
    *, values: int, repeated: int, large: int, of_large: int, records: int
) -> bool:
    """As `may_name_people`, by figures of the values with several records.

    There are `values` of them with `repeated` records; `large` of these have more than
    `MOST_RECORDS` each, `of_large` in all.
    """
    if large > EXCEPTIONS * values or of_large > OF_EXCEPTIONS * records:
        return False
    if values - large < FEWEST_PEOPLE:
        return False
    return repeated - of_large >= REPEATED * (records - of_large)


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


# ---------------------------------------------------- what their records reach together

SURE = 0.9
"""Probability of a value of the secret beyond which people are counted as found out."""

ROUNDING = 1e-9
"""By how much a lift must exceed what one record reaches to be counted: sums of logarithms are not
exact, and most people reach exactly as much."""


IMPOSSIBLE = -1e6
"""The logarithm of a likelihood of zero: far below that of any record, and still a number."""


@dataclass(frozen=True)
class PersonReach:
    """What a person's records reach together in a table.

    Attributes
    ----------
    people : int
    single : (float, float)
        The smallest and largest factor that one released record reaches.
    lowest, highest : float
        The smallest and largest factor that all records of a person reach together: those of the
        people at the extremes are computed in fractions, and rounded outwards.
    above : int
        People whose records together reach more than one record can.
    sure : int
        People for whom a value of the secret is more likely than `SURE`.
    """

    people: int
    single: tuple[float, float]
    lowest: float
    highest: float
    above: int
    sure: int


def reach_of_people(
    channel: Channel, symbols: Integers, person_of: Integers
) -> PersonReach | None:
    """What the people of a table reach.

    Parameters
    ----------
    channel : Channel
        With its table; each record is drawn by itself.
    symbols : (n,) array
        The useful symbol of every record.
    person_of : (n,) array
        The person of every record, numbered from 0.

    Returns
    -------
    PersonReach or None
        None where the channel has no table, or protects each of several columns.
    """
    joint = channel.joint
    if joint is None or joint.sensitive.protects_columns:
        return None
    # The most likely output of each symbol: with ties the first one.
    integers = channel.integers
    likely = np.zeros(len(channel.useful), dtype=np.int64)
    shares = channel.shares
    for x in range(len(likely)):
        span = slice(int(integers.indptr[x]), int(integers.indptr[x + 1]))
        likely[x] = integers.indices[span][int(np.argmax(shares[span]))]

    def exact(y: int) -> list[int]:
        inputs, values = channel.columns[y]
        return [
            sum(counts[x] * w for x, w in zip(inputs, values, strict=True))
            for counts in joint.counts
        ]

    achieved = achieved_by(channel, joint)
    single = (math.exp(-achieved.eps_l), math.exp(achieved.eps_u))
    masses = _masses(channel)
    prior = joint.sensitive_counts
    return _reach(masses, prior, exact, likely[symbols], person_of, single)


def reach_of_values(
    values: Integers, secret: Integers, person_of: Integers
) -> PersonReach:
    """What the people of a table reach by one column as it is, before any release.

    Parameters
    ----------
    values, secret, person_of : (n,) arrays
        For every record its value, the secret and the person, each numbered from 0.
    """
    width = int(secret.max()) + 1
    table = np.bincount(
        values * width + secret, minlength=(int(values.max()) + 1) * width
    )
    counts = table.reshape(-1, width).T
    total = len(values)
    with np.errstate(invalid="ignore"):
        lifts = counts / counts.sum(axis=0) * total / counts.sum(axis=1)[:, None]
    single = (float(np.nanmin(lifts)), float(np.nanmax(lifts)))

    def exact(y: int) -> list[int]:
        return [int(count) for count in counts[:, y]]

    prior: list[int] = counts.sum(axis=1).tolist()
    return _reach(counts / total, prior, exact, values, person_of, single)


def _reach(
    masses: np.ndarray,
    prior_counts: Sequence[int],
    exact: Callable[[int], list[int]],
    outputs: Integers,
    person_of: Integers,
    single: tuple[float, float],
) -> PersonReach:
    """What people reach whose records have these outputs.

    Parameters
    ----------
    masses : (|S|, outputs) array of P(s, y)
    prior_counts : sequence of int
        P(s) in integers of a common unit.
    exact : function
        Gives P(s, y) of an output in integers of a common unit.
    outputs, person_of : (n,) arrays
        The output and the person of every record.
    single : (float, float)
        The smallest and largest factor of one record.
    """
    prior = masses.sum(axis=1) / masses.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.log(masses / masses.sum(axis=0) / prior[:, None])
    people = int(person_of.max()) + 1
    posterior = np.empty((len(prior), people))
    for s, row in enumerate(likelihood):
        weights = np.bincount(person_of, np.maximum(row[outputs], IMPOSSIBLE), people)
        posterior[s] = math.log(prior[s]) + weights
    # Where the records of a person have different secrets, they may exclude every value.
    excluded = posterior.max(axis=0) < IMPOSSIBLE / 2
    posterior[:, excluded] = np.log(prior)[:, None]
    posterior -= posterior.max(axis=0)
    posterior = np.exp(posterior)
    posterior /= posterior.sum(axis=0)
    lifts = posterior / prior[:, None]
    low, high = single[0] * (1.0 - ROUNDING), single[1] * (1.0 + ROUNDING)
    outside = ((lifts < low) | (lifts > high)).any(axis=0)

    def extreme(place: int) -> Fraction:
        s, person = map(int, np.unravel_index(place, lifts.shape))
        of_person = outputs[person_of == person].tolist()
        weights = [Fraction(count) for count in prior_counts]
        for y in of_person:
            weights = [
                weight * mass / count
                for weight, mass, count in zip(
                    weights, exact(y), prior_counts, strict=True
                )
            ]
        whole = sum(weights)
        if not whole:
            return Fraction(1)
        share = Fraction(prior_counts[s], sum(prior_counts))
        return weights[s] / whole / share

    lowest = extreme(int(np.argmin(lifts)))
    highest = extreme(int(np.argmax(lifts)))
    return PersonReach(
        people=people,
        single=single,
        lowest=max(0.0, math.nextafter(float(lowest), -math.inf)),
        highest=math.nextafter(float(highest), math.inf),
        above=int(np.count_nonzero(outside)),
        sure=int(np.count_nonzero((posterior > SURE).any(axis=0))),
    )


def _masses(channel: Channel) -> np.ndarray:
    """(|S|, outputs) array of P(s, y)."""
    joint = channel.joint
    if joint is None:
        raise TypeError("the channel has no table")
    # The sparse array stands on the left: (Y, X) times (X, S).
    return np.asarray(channel.probabilities.T @ joint.p.T).T
