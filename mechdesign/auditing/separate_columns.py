"""The exact law of columns that are released each by itself, and the promise that this breaks.

People give every column a channel of its own. With channels W1, .., Wk the released row has

    P(s, k, y1, .., yk) = sum over x1, .., xk of P(s, k, x1, .., xk) W1(y1|x1) .. Wk(yk|xk),

with k the given columns, and its lifts may be far outside the budget of each column.

Example: four rows, two fair bits x1 and x2 with s their exclusive or, and for each bit the channel
(3, 1), (1, 3). Each released bit alone has all lifts 1. The released row (0, 0) has the masses
3 * 3 + 1 * 1 = 10 for s = 0 and 3 * 1 + 1 * 3 = 6 for s = 1, so the lifts 1.25 and 0.75.

`separate_law` does the sum for one column after the other, the last one first, over the distinct
rows of the columns that are left: the table of all released rows is the only thing that is as large
as the product of the numbers of outputs. Entries are integers (counts times entries of the
channels), so the verdict of `audit_separate` is exact; doubles serve for figures and searches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import Demand
from mechdesign.auditing.extremes import (
    Achieved,
    LargestQuotients,
    smallest_budgets,
)
from mechdesign.auditing.rows import RowWorst, promise_demands
from mechdesign.core.integers import Integers
from mechdesign.notions import Notion
from mechdesign.tables.records import Records

MOST_CELLS = 600_000
"""Cells (strata, secrets and released rows) of a law that is computed: some seconds in integers."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeparateLaw:
    """The joint law of the secret and a released row, in the unit of the entries.

    Attributes
    ----------
    strata : (strata, given) array
        Codes of the given columns of every stratum.
    shape : tuple of int
        Number of outputs of every level.
    masses : (strata, |S|, released rows) array
        Of Python integers, or of doubles that sum to 1.
    """

    strata: Integers
    shape: tuple[int, ...]
    masses: NDArray[Any]

    def outputs(self, leaf: int) -> tuple[int, ...]:
        """The output of every level of a released row."""
        return tuple(int(place) for place in np.unravel_index(leaf, self.shape))


def cells_of(records: Records, given: int, outputs: Sequence[int]) -> int:
    """How many cells the law has, for so many outputs of every level."""
    strata = 1
    if given:
        strata = len(np.unique(records.codes[:, :given], axis=0))
    return strata * len(records.sensitive) * math.prod(outputs)


def separate_law(
    records: Records, given: int, channels: Sequence[NDArray[Any]], *, exact: bool
) -> SeparateLaw:
    """The law of released rows where every level has a channel of its own.

    Parameters
    ----------
    records : Records
        Its first `given` groups are released as they are, the next ones through the channels.
        Further groups are not released.
    channels : sequence of (inputs, outputs) arrays
        Integers, each row with the same sum.
    exact : bool
        Python integers; doubles of probabilities otherwise.
    """
    levels = len(channels)
    # The secret comes first, so that the last column is the next one to be released.
    keys = np.column_stack([records.secrets, records.codes[:, : given + levels]])
    keys, place = np.unique(keys, axis=0, return_inverse=True)
    if exact:
        weights: NDArray[Any] = records.integers
    else:
        weights = records.masses
    # A row for each key, and a column for each combination of outputs so far: first there is one.
    masses: NDArray[Any] = np.zeros((len(keys), 1), dtype=weights.dtype)
    np.add.at(masses[:, 0], place.ravel(), weights)
    for matrix in reversed(channels):
        if exact:
            entries: NDArray[Any] = matrix.astype(object)
        else:
            entries = matrix / matrix[0].sum()
        keys, masses = _released(keys, masses, entries)
    # What is left of the keys are the secret and the given columns.
    strata, place = np.unique(keys[:, 1:], axis=0, return_inverse=True)
    size = len(records.sensitive)
    law = np.zeros((len(strata), size, masses.shape[1]), dtype=masses.dtype)
    law[place.ravel(), keys[:, 0]] = masses
    shape = tuple(matrix.shape[1] for matrix in channels)
    return SeparateLaw(strata, shape, law)


def _released(
    keys: Integers, masses: NDArray[Any], entries: NDArray[Any]
) -> tuple[Integers, NDArray[Any]]:
    """The last column of the keys goes through a channel; its outputs come first among the
    released ones.

    For each rest of a key, output y and combination z of outputs of later columns, it sums masses
    over the symbols x of the column: sum over x of mass(rest, x, z) W(y|x).
    """
    rest, place = np.unique(keys[:, :-1], axis=0, return_inverse=True)
    place = place.ravel()
    released = np.zeros(
        (len(rest), entries.shape[1], masses.shape[1]), dtype=masses.dtype
    )
    for symbol, row in enumerate(entries):
        # Keys are different, so those with one symbol have different rests.
        chosen = np.flatnonzero(keys[:, -1] == symbol)
        # Products of Python integers are slow, so none is formed with a zero.
        outputs = np.flatnonzero(row)
        if len(chosen) and len(outputs):
            part = masses[chosen][:, None, :] * row[outputs][None, :, None]
            released[place[chosen][:, None], outputs[None, :]] += part
    return rest, released.reshape(len(rest), -1)


@dataclass(frozen=True)
class SeparateVerdict:
    """An exact verdict on columns that are released each by itself.

    Attributes
    ----------
    satisfied : bool
    achieved : Achieved
        Smallest doubles (nats) that bound all lifts of the released rows.
    worst : RowWorst
    """

    satisfied: bool
    achieved: Achieved
    worst: RowWorst


def audit_separate(
    records: Records,
    given: int,
    promise: str,
    notion: Notion,
    channels: Sequence[NDArray[Any]],
    texts: Sequence[Sequence[tuple[str, ...]]],
) -> SeparateVerdict:
    """Decide exactly what becomes of a promise about rows if every level has a channel of its own.

    Parameters
    ----------
    records, given, channels : as for `separate_law`
    promise : {"total", "relative"}
    notion : Notion
    texts : for every level the released texts of each output

    Raises
    ------
    InputError
        If the notion bounds averages.
    """
    law = separate_law(records, given, channels, exact=True)
    largest = LargestQuotients()
    leaves = law.masses.shape[2]
    demands = _demands(records, given, law.strata, promise, notion)
    for stratum, demand in enumerate(demands):
        columns = law.masses[stratum].T.tolist()
        for leaf, masses in enumerate(columns):
            # One number for the pair of stratum and leaf.
            largest.add(masses, demand, stratum * leaves + leaf)
    extremes = largest.extremes
    worst = max(extremes, key=lambda extreme: extreme.share)
    stratum, leaf = divmod(worst.y, leaves)
    # The given columns are the first groups.
    row: tuple[str, ...] = ()
    for variable, code in zip(records.groups, law.strata[stratum], strict=False):
        row += variable.symbols[int(code)]
    for level, output in enumerate(law.outputs(leaf)):
        row += texts[level][output]
    return SeparateVerdict(
        satisfied=all(extreme.kept for extreme in extremes),
        achieved=smallest_budgets(extremes),
        worst=RowWorst(
            sensitive=worst.sensitive,
            row=row,
            lift=worst.rounded_lift,
            against=worst.against,
        ),
    )


def _demands(
    records: Records, given: int, strata: Integers, promise: str, notion: Notion
) -> list[Demand]:
    """The prior and the budgets of every stratum."""
    rows_of_strata = [np.arange(len(records))]
    if given:
        # `np.unique` numbers strata as `separate_law` does.
        codes = records.codes[:, :given]
        _, place = np.unique(codes, axis=0, return_inverse=True)
        rows_of_strata = [
            np.flatnonzero(place.ravel() == k) for k in range(len(strata))
        ]
    return promise_demands(records, rows_of_strata, promise, notion)
