"""Entropies -sum p log p in nats of released rows, in floating point; 0 log 0 counts as 0.

`conditional_entropy` is H(X | K) of a table, the unit in which kept information is told.
"""

from __future__ import annotations

import numpy as np

from mechdesign.tables.records import Records
from solvers import Array


def entropy(masses: Array) -> float:
    """Entropy of masses that sum to 1."""
    positive = masses[masses > 0.0]
    return float(-(positive * np.log(positive)).sum())


def conditional_entropy(records: Records, given: int) -> float:
    """H(X | K) = H(K, X) - H(K) of the released columns; the first `given` groups are K."""
    return _entropy_of(records, len(records.groups)) - _entropy_of(records, given)


def _entropy_of(records: Records, groups: int) -> float:
    """Entropy of the first so many groups together."""
    if not groups:
        return 0.0
    # The same row occurs once for each of its sensitive symbols.
    _, place = np.unique(records.codes[:, :groups], axis=0, return_inverse=True)
    return entropy(np.bincount(place.ravel(), records.masses).astype(np.float64))
