"""How improbable an agreement between two data sets is by chance, in bits.

Records without their identifiers (`bare_records`) may agree because they are the same records, or
because they look alike. Each of three tests bounds the probability that records that have nothing
to do with each other agree so well, under a hypothesis that is kind to the user; its bits are the
negative logarithm of the bound to base 2, and at least 0.

Rows that two data sets have once each (`pairs_bits`)
    Hypothesis: which of the M pooled records belong to which data set is chance, given the
    pooled records. Take the t values that two of the pooled records have. Pair after pair, the
    two come apart, one in each data set, with a probability of at most R/(2(R - 1)), where R
    records are left. So P(at least s pairs apart) is at most the product of R/(R - 1), which is
    below sqrt(2M), times P(Bin(t, 1/2) >= s) <= 2^(-t (1 - H(s/t))), where H is the binary
    entropy. Which values are looked at is decided by their hashes, and so by nothing else.
Equal numbers of every row (`numbers_bits`)
    Same hypothesis. With c_i equal records of kind i in each of the two, n in all, the
    probability is the product of C(2 c_i, c_i) divided by C(2n, n). Kinds may be merged, which
    makes it larger: that is done with all that the sample lacks. Where each row of a data set is
    there twice, or k times, k of them count as one record.
The same order (`order_bits`)
    Hypothesis: every order is equally likely in which each kind of row follows each other kind as
    often as it does here. Sorted tables have one such order, which proves nothing. By the theorem
    of de Bruijn, van Aardenne-Ehrenfest, Smith and Tutte there are at least
    prod_a (n_a - 1)! / prod_ab n_ab! of them, where n_ab counts the steps from a to b, and n_a all
    steps from a.

For example, 100 pairs of equal records among 1,000 pooled ones, all of them apart, are worth
100 - log2(2,000)/2 = 94.5 bits. If only 50 of the pairs are apart, chance does that: 0 bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers


def pairs_bits(apart: int, pairs: int, pooled: int) -> float:
    """The bits of so many pairs `apart` (s), of all `pairs` of equal records (t) among the `pooled`
    ones (M).
    """
    # The bound needs a share above one half; up to there, chance alone explains it.
    if 2 * apart <= pairs:
        return 0.0
    share = apart / pairs
    entropy = 0.0
    for part in (share, 1 - share):
        if part:
            entropy -= part * math.log2(part)
    return max(0.0, pairs * (1 - entropy) - math.log2(2 * pooled) / 2)


def numbers_bits(counts: Integers, records: int) -> float:
    """The bits of equal numbers of every kind of row: `counts` (c_i) of those in the sample, of all
    `records` (n) of one data set.
    """
    # All that the sample lacks is one kind more.
    rest = records - int(counts.sum())
    nats = _log_halves(records) - _log_halves(rest)
    for count in counts.tolist():
        nats -= _log_halves(count)
    return max(0.0, nats / math.log(2))


def _log_halves(count: int) -> float:
    """The natural logarithm of C(2 count, count)."""
    # By logarithms of factorials, which are themselves beyond all doubles from 171! on.
    return math.lgamma(2 * count + 1) - 2 * math.lgamma(count + 1)


def order_bits(steps: NDArray[np.int64]) -> float:
    """The logarithm to base 2 of the fewest orders with ``steps[a, b]`` steps (n_ab) from the kind
    a to the kind b.
    """
    nats = 0.0
    for row in steps.tolist():
        total = sum(row)
        if total:
            # log (n_a - 1)! less the sum of log n_ab!, as gamma functions.
            nats += math.lgamma(total) - sum(math.lgamma(count + 1) for count in row)
    return max(0.0, nats / math.log(2))
