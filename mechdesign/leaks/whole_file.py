"""What somebody believes who knows the table and the channel, and sees the whole released file.

He knows the rows of the table, their numbers of records and secrets, but not who has which. Of
independent draws the counts that come out tell him which moves were made. He scales the pairs F
until rows and columns add up to what he knows: the rows to the table, the columns to the file. Let
100 records have the row a and 100 the row b; each keeps its row with probability 3/4:

           F             the file has 120 x and 80 y         scaled
    a    75  25                                              83.7  16.3   = 100
    b    25  75                                              36.3  63.7   = 100
                                                             = 120 = 80

Of a record with y he believes that it was a with probability 16.3 / 80 = .204, less than the 25 /
100 = .25 of the channel. If a has a secret that b has not, that is his belief of the secret.

The scaled pairs are the mean ones if pairs have many records. **Where they have few, he can know
far more than scaling says**: had a and b one record each, and the file one x and one y, it would be
1/10 (both moved or none), and scaling changes nothing. `file_messages` is the stronger observer
there. With draws of fixed counts (`release.fixed_counts`) he knows what the channel says, however
few the records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers

Floats = NDArray[np.float64]

CLOSE = 1e-9
"""The relative deviation of the rows at which scaling ends: far below what is printed of beliefs,
far above the rounding errors of sums.
"""

MOST_ROUNDS = 2_000
"""Rounds of scaling. Counts that a few pairs alone allow are approached as slowly as one over the
number of rounds; `FilePosterior.deviation` says how far it came.
"""


@dataclass(frozen=True, eq=False)
class FilePosterior:
    """Beliefs of somebody who sees the whole file.

    Attributes
    ----------
    posteriors : (k, m) array
        The probability of each secret for a record with each output; NaN for outputs that no
        record has.
    flows : (p,) array
        The scaled pairs, in records.
    deviation : float
        The largest relative deviation of a row of `flows` from its number of records.
    rounds : int
        Rounds of scaling.
    """

    posteriors: Floats
    flows: Floats
    deviation: float
    rounds: int


def posterior_given_file(
    rows: Integers,
    columns: Integers,
    values: Any,
    released: Integers,
    shares: Floats,
    *,
    close: float = CLOSE,
    most_rounds: int = MOST_ROUNDS,
) -> FilePosterior:
    """P(secret | output, all counts of the file), for large counts.

    Parameters
    ----------
    rows, columns : (p,) arrays
        Input and output of each pair.
    values : (p,) array
        What each pair gets in the mean, in any unit: the number of records of the input, times
        the probability of the output.
    released : (m,) array
        Records of the file with each output.
    shares : (k, n) array
        The share of each secret among the records of each input.
    close : float
        The relative deviation at which scaling ends.
    most_rounds : int
        Rounds after which it ends otherwise.

    Raises
    ------
    InputError
        If no draws from these pairs give such a file.
    """
    flows = np.asarray(values, dtype=np.float64)
    targets = np.asarray(released, dtype=np.float64)
    row_count = shares.shape[1]
    if not flows.sum() > 0 or not targets.sum() > 0:
        raise InputError("there must be at least one pair and one released record")
    # In records of the file.
    flows = flows * (targets.sum() / flows.sum())
    row_targets: Floats = np.bincount(rows, flows, row_count).astype(np.float64)
    rounds = 0
    deviation = np.inf
    while True:
        flows = flows * factors(columns, flows, targets)[columns]
        rounds += 1
        sums = np.bincount(rows, flows, minlength=row_count)
        known = row_targets > 0
        deviation = float(np.max(np.abs(sums[known] / row_targets[known] - 1)))
        # After the columns, whose beliefs then add up to one.
        if deviation <= close or rounds >= most_rounds:
            break
        flows = flows * factors(rows, flows, row_targets)[rows]
    return FilePosterior(
        beliefs(columns, flows, targets, shares[:, rows]), flows, deviation, rounds
    )


def beliefs(
    columns: Integers, flows: Floats, targets: Floats, shares: Floats
) -> Floats:
    """The probability of each secret given the output; NaN for outputs without records.

    Parameters
    ----------
    columns, flows : (p,) arrays
        Output and records of each pair; the records of an output add up to its target.
    targets : (m,) array
        Records of each output.
    shares : (k, p) array
        The share of each secret among the records of a pair's input.
    """
    posteriors = np.full((len(shares), len(targets)), np.nan)
    seen = targets > 0
    for secret, share in enumerate(shares):
        found = np.bincount(columns, share * flows, minlength=len(targets))
        posteriors[secret, seen] = found[seen] / targets[seen]
    return posteriors


def success(believed: Floats, holds: NDArray[np.bool_], share: float) -> float:
    """How often an observer is right about the records of which he is surest.

    Parameters
    ----------
    believed : (n_records,) array
        His probability that a record has the secret.
    holds : (n_records,) array
        Whether it has.
    share : float
        The share of the records that he points at, in (0, 1].

    Returns
    -------
    float
        The share of these that have the secret. Of equally sure ones he picks at random, and this
        is the mean.
    """
    if not 0 < share <= 1:
        raise InputError(f"share ({share}) must be above 0 and at most 1")
    picked = math.ceil(share * len(believed))
    least = np.partition(believed, len(believed) - picked)[len(believed) - picked]
    surer = believed > least
    equal = believed == least
    of_equal = (picked - surer.sum()) * holds[equal].mean()
    return float((holds[surer].sum() + of_equal) / picked)


def factors(places: Integers, flows: Floats, targets: Floats) -> Floats:
    """What scales the flows of each row, or column, to its target."""
    sums = np.bincount(places, flows, minlength=len(targets))
    if np.any((sums == 0) & (targets > 0)):
        raise InputError(
            "no draws of this channel from this table can give the released counts"
        )
    return np.divide(targets, sums, out=np.zeros_like(sums), where=sums > 0)
