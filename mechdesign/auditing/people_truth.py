"""What people keep of the cells of their records.

In the folded table a person with fewer records has the cell `ABSENT` at the other places, which
never changes. It is no cell of a record, so it must not count as one that is kept: with a share t
of unchanged cells at a place and a share a of people who have no record there, the records at this
place keep t - a, of the 1 - a that there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, at_place


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
