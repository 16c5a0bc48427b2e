"""How alike two data sets are without their identifiers, and which share of one the other has.

`likeness` compares two contents (`bare_records.BareContent`) up to the smaller limit of their
samples, where both are complete. It pools the values of both. A value that two of the pooled
records have is a pair; it is apart if each data set has one of the two. Whatever the three tests of
`chance_bits` make of that, the largest number of bits counts: `CERTAIN` and `NOTABLE` are the
thresholds. `share_of` then adds up over several earlier data sets.

For example, with the hashes 1, 2, 3 in the new data set and 2, 3, 4 in the old one, there are two
pairs, 2 and 3, and both are apart: the new one shares two thirds of its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mechdesign.formats.census import ALL, Hashes
from mechdesign.jobs.bare_records import BareContent
from mechdesign.jobs.chance_bits import numbers_bits, pairs_bits

CERTAIN = 50.0
"""From so many bits on, an agreement is no chance: it happens once in 10^15 times at most."""

NOTABLE = 10.0
"""From so many bits on, an agreement is worth a note: it happens once in 1,000 times at most."""


@dataclass(frozen=True)
class Likeness:
    """How alike two data sets are.

    `bits` is what their agreement is worth as evidence. `whole` says whether they have the same
    rows equally often, or one has each row the same number of times as often as the other. `shared`
    has the hashes that both have once, as far as they are in the sample.
    """

    bits: float
    whole: bool
    limit: int
    shared: Hashes = field(repr=False)

    @property
    def certain(self) -> bool:
        """Whether chance is out of the question."""
        return self.bits >= CERTAIN


def likeness(new: BareContent, old: BareContent) -> Likeness:
    """Compare two data sets by their bare records."""
    # Rows that come several times as often in one data set count as one each (`in_units`).
    limit = min(new.limit, old.limit)
    new_values, new_counts = new.in_units(limit)
    old_values, old_counts = old.in_units(limit)
    values, places = np.unique(
        np.concatenate([new_values, old_values]), return_inverse=True
    )
    counts = np.concatenate([new_counts, old_counts])
    # Weights make the counts doubles, which are exact: there are fewer than 2**53 records.
    pooled_counts = np.bincount(places, counts, len(values)).astype(np.int64)
    from_new = np.zeros(len(values), np.int64)
    from_new[places[: len(new_values)]] = new_counts

    pairs = pooled_counts == 2
    apart = pairs & (from_new == 1)
    new_units = new.records // new.copies
    old_units = old.records // old.copies
    bits = pairs_bits(int(apart.sum()), int(pairs.sum()), new_units + old_units)
    # Each test bounds the chance by itself, so the strongest of them counts.
    whole = _have_equal_numbers(new, old)
    if whole:
        bits = max(bits, numbers_bits(new.counts // new.copies, new_units))
    if new.ordered == old.ordered:
        bits = max(bits, new.order)
    return Likeness(bits, whole, limit, values[apart])


def _have_equal_numbers(new: BareContent, old: BareContent) -> bool:
    """Whether two data sets have equal numbers of every row, or one has all rows so many times."""
    if new.unordered == old.unordered:
        return True
    # A sample of some records cannot show that all of them agree.
    if min(new.limit, old.limit) < ALL:
        return False
    new_values, new_counts = new.in_units(ALL)
    old_values, old_counts = old.in_units(ALL)
    return np.array_equal(new_values, old_values) and np.array_equal(
        new_counts, old_counts
    )


def share_of(new: BareContent, alike: Sequence[Likeness]) -> float:
    """The share of the new records, between 0 and 1, that some data sets have together, all of
    which are alike for certain.
    """
    if any(other.whole for other in alike):
        return 1.0
    # Up to the smallest limit all samples are complete.
    limit = min([ALL, *(other.limit for other in alike)])
    values, counts = new.in_units(limit)
    shared = np.concatenate(
        [np.zeros(0, np.uint64), *(other.shared for other in alike)]
    )
    total = int(counts.sum())
    if not total:
        return 0.0
    return float(np.isin(values, shared).sum() / total)
