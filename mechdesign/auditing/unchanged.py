"""How many cells of released rows are those of their records, exactly.

A channel W of a table with the counts c_x releases the row y for the row x. The expected share of
unchanged cells of a column is

    sum over x of c_x / N  times  sum of W(y|x) over the y whose cell is that of x

For example, of 3 records (a) and 1 (b) all but half of the last one keep their row: 7/8.

Everything is computed in integers; only the shares are rounded, downwards.

*People.* In the folded table a person with fewer records has the cell `ABSENT` at the other places,
which never changes. It is no cell of a record, so it must not count as one that is kept: with a
share t of unchanged cells at a place and a share a of people who have no record there, the records
at this place keep t - a, of the 1 - a that there are.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.balls import quotient_above
from mechdesign.core.integers import NOWHERE, Integers
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, at_place

# ------------------------------------------------------------------------------- people


def truth_of_records(joint: Joint, truth: Mapping[str, float]) -> dict[str, float]:
    """The expected share of unchanged cells of each released column of a record.

    Parameters
    ----------
    joint : Joint
        Of people.
    truth : mapping of folded column to share
        Lower bounds of the shares of unchanged cells among all people.

    Returns
    -------
    dict of column to share
        Rounded down.
    """
    people = joint.useful.people
    if people is None:
        raise TypeError("the table has no people")
    place_of_length = joint.useful.columns.index(RECORDS)
    # How many people have a record at each place.
    present = [0] * people.longest
    for symbol, count in zip(joint.useful.symbols, joint.useful_counts, strict=True):
        for place in range(int(symbol[place_of_length])):
            present[place] += count
    records = sum(present)
    shares: dict[str, float] = {}
    for name in people.released:
        kept = 0.0
        for place, count in enumerate(present):
            absent = joint.total - count
            kept += truth[at_place(name, place)] * joint.total - absent
        # The sum of so many doubles errs by less than one unit in 2^40.
        shares[name] = max(0.0, kept / records * (1.0 - 2.0**-40) - 2.0**-40)
    return shares


def constant_truth_of_records(joint: Joint) -> dict[str, float]:
    """For each column of a record the share of the records that have its most frequent value."""
    people = joint.useful.people
    if people is None:
        raise TypeError("the table has no people")
    places = {name: k for k, name in enumerate(joint.useful.columns)}
    shares: dict[str, float] = {}
    for name in people.columns:
        columns = [places[at_place(name, place)] for place in range(people.longest)]
        times: Counter[str] = Counter()
        for symbol, count in zip(
            joint.useful.symbols, joint.useful_counts, strict=True
        ):
            for column in columns[: int(symbol[places[RECORDS]])]:
                times[symbol[column]] += count
        shares[name] = max(times.values()) / times.total()
    return shares


# -------------------------------------------------------------------------------- cells


def unchanged_cells(channel: Channel, joint: Joint) -> dict[str, float]:
    """The expected share of unchanged cells of each released column, rounded down.

    Given columns never change, and are left out. Of people with several records these are the
    columns and cells of their records.

    Parameters
    ----------
    channel : Channel
        One that releases rows of its useful columns.
    joint : Joint
        The table, for the records of each row.
    """
    integers = channel.integers
    row_of = integers.row_of
    index = channel.useful.index
    # The symbols that outputs are, where all of them are some.
    places = [index.get(cells, NOWHERE) for cells in channel.output_cells]
    symbols = np.array(places)
    mean_below = _MeanOfRecords(channel.row_totals, joint.useful_counts)
    truth: dict[str, float] = {}
    for k, name in enumerate(channel.useful.columns):
        if name in channel.given:
            continue
        if NOWHERE in places:
            before, after = _numbered(channel, k)
        else:
            before = channel.useful.coded.codes[:, k]
            after = before[symbols]
        is_same = before[row_of] == after[integers.indices]
        # No sum exceeds the total of its row, which fits.
        same = np.zeros(len(before), dtype=np.int64)
        np.add.at(same, row_of[is_same], integers.values[is_same])
        truth[name] = mean_below(same.tolist())
    if joint.useful.people is not None:
        return truth_of_records(joint, truth)
    return truth


def share_of_cells(truth: dict[str, float]) -> float:
    """The share of unchanged cells of all columns, whatever they weigh in the cost of a design."""
    return sum(truth.values()) / max(len(truth), 1)


def _numbered(channel: Channel, column: int) -> tuple[Integers, Integers]:
    """The texts of inputs and outputs in a column by one numbering."""
    coded = channel.useful.coded
    numbers = {text: place for place, text in enumerate(coded.texts[column])}
    released = [
        numbers.setdefault(cells[column], len(numbers))
        for cells in channel.output_cells
    ]
    return coded.codes[:, column], np.array(released)


class _MeanOfRecords:
    """The mean over all records of what has a share of the total of its row.

    Of a channel that keeps the law all c_x / total_x are one number, so there is one sum.
    """

    def __init__(self, totals: Sequence[int], counts: Sequence[int]) -> None:
        divisors = list(map(math.gcd, totals, counts))
        self._bottoms = [t // d for t, d in zip(totals, divisors, strict=True)]
        self._factors = [c // d for c, d in zip(counts, divisors, strict=True)]
        self._common = math.lcm(*set(self._bottoms))
        self._whole = self._common * sum(counts)

    def __call__(self, parts: Sequence[int]) -> float:
        """The mean of parts[x] / totals[x], rounded down."""
        sums: dict[int, int] = defaultdict(int)
        shares = zip(self._bottoms, self._factors, parts, strict=True)
        for bottom, factor, part in shares:
            sums[bottom] += part * factor
        whole = sum(value * (self._common // b) for b, value in sums.items())
        return 0.0 - quotient_above(-whole, self._whole)
