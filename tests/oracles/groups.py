"""Slow, obvious answers about smallest groups."""

from __future__ import annotations

from collections import Counter
from itertools import product


def group_sizes(rows, known):
    """How many of the rows, one a record, share the known part of each."""
    parts = [tuple(row[j] for j in known) for row in rows]
    return Counter(parts)


def smallest_group(rows, known):
    """The k of k-anonymity."""
    return min(group_sizes(rows, known).values())


def best_by_listing(records, k, known, objective):
    """The least objective of all ways to release, for every record, a row of the table so that every
    known part occurs at least k times; None if there is none.
    """
    rows = sorted(set(records))
    best = None
    for released in product(rows, repeat=len(records)):
        if smallest_group(released, known) >= k:
            value = objective(records, released)
            if best is None or value < best:
                best = value
    return best
