"""Exact evidence against chance from a table of counts: how often each symbol came in each context.

A file that is sorted or grouped discloses symbols by the place of a record (`Order`), and a kept
column that copies the useful one discloses them outright (`crossing`, `twins`). Both are
tables of counts n_yx: how many records have the symbol x in the context y (after which symbol, in
which part of the file, beside which value). `log_evidence` weighs such a table against chance, and
`decisive` says whether the evidence is enough.

An e-value is a number whose mean is at most 1 if chance alone made the table; so it is 100,000 or
more with a probability of at most 1 in 100,000 (Markov). Unlike p-values, e-values can be averaged,
whatever their dependence.

*The order of records* may disclose their symbols. Two tables of counts are weighed against chance,
half and half (`evidence`): symbols by the symbol before (runs, and anything periodic), and symbols
by the part of the file, in parts of several sizes (sorted or grouped by the symbol, or by what it
depends on). In the sorted file a a a a b b b b the symbol a is followed by an a three times and by
a b once, and the two halves of the file have the counts (4, 0) and (0, 4).

An `Order` is fed with the codes of the symbols batch by batch (`add`); `evidence` is the logarithm
of its e-value. Memory does not grow with the file: when there are too many parts, neighbours are
joined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers

LEVEL = 1e-5
"""The chance, at most, that a file in random order is refused for its order, or a column that is
drawn at random for what it discloses.
"""

STRENGTHS = (1.0, 32.0, 1024.0)
"""How many records the prior of a context counts as: few for sharp patterns, many for faint ones.
"""

LOOKED = 1 << 12
"""Records of a batch that are compared, about, for what columns disclose of each other: of all
batches up to so many records, and then of one whenever their number has doubled. Comparing all
would take longer than the release.
"""

_log_gamma: Any = np.frompyfunc(math.lgamma, 1, 1)


def log_evidence(contexts: Integers, symbols: Integers, counts: Integers) -> float:
    """The logarithm of an e-value of a table of counts against chance.

    Let the order of the symbols be random: all N! / prod_x n_x! arrangements of these symbols are
    equally likely, each with P. Let Q be the probability of an arrangement when the symbols in each
    context y come from a Polya urn, (k pi_x + n_yx) / (k + n_y) for the next x, with pi the shares
    of the symbols in the table, which chance leaves alone; the context of a record may depend on
    the records before it. Q sums to at most 1 over the arrangements, so the mean of Q / P is at
    most 1, also when it is averaged over several k (`STRENGTHS`), and by Markov's inequality
    P(Q / P >= 1 / a) <= a for every a. Of each context Q needs the counts alone:
    log Q = sum_y [log G(k) - log G(k + n_y) + sum_x (log G(k pi_x + n_yx) - log G(k pi_x))],
    G being the gamma function.

    Parameters
    ----------
    contexts, symbols : (m,) integers
        Of each of the m cells of the table that are not empty.
    counts : (m,) integers
        The records of each cell, all positive.

    Returns
    -------
    float
        In nats; 0 where there are fewer than two records or symbols.
    """
    symbol_counts = np.bincount(symbols, counts)
    context_counts = np.bincount(contexts, counts)
    context_counts = context_counts[context_counts > 0]
    total = int(context_counts.sum())
    # One arrangement alone is possible, so nothing can speak against chance: log 1.
    if total < 2 or np.count_nonzero(symbol_counts) < 2:
        return 0.0
    # log P = log (prod_x n_x! / N!), the same for every arrangement.
    chance = _log_gamma(symbol_counts + 1).sum() - math.lgamma(total + 1)
    logarithms: list[float] = []
    for strength in STRENGTHS:
        # log Q with k = strength; cells without records add nothing to the inner sum.
        prior = strength * symbol_counts[symbols] / total
        urns = (_log_gamma(prior + counts) - _log_gamma(prior)).sum()
        urns += len(context_counts) * math.lgamma(strength)
        urns -= _log_gamma(strength + context_counts).sum()
        logarithms.append(float(urns - chance))
    return mean_evidence(logarithms)


def mean_evidence(logarithms: Sequence[float]) -> float:
    """The logarithm of the mean of e-values, which is an e-value."""
    # Added as logarithms: e-values of long files are far beyond the largest double.
    return float(np.logaddexp.reduce(logarithms)) - math.log(len(logarithms))


def decisive(evidence: float, looks: float = 1) -> bool:
    """Whether an e-value refutes chance at `LEVEL`, being one of so many that are tested.

    Markov's inequality holds for each of them at `LEVEL` / `looks`, and so for all together at
    `LEVEL` (Bonferroni).
    """
    return evidence >= math.log(looks / LEVEL)


# --------------------------------------------------------------------- order of records

CLASSES = 64
"""Symbols are lumped together down to so many, for tables of bounded size."""

BLOCKS = 512
"""Parts of the file in which symbols are counted, at most; when there are more, neighbours are
joined.
"""

FIRST_BLOCK = 8
"""Records of a part at the beginning."""

LUMPED = 4
"""Neighbouring parts that are joined for the next coarser table."""


class Order:
    """Collects symbols in the order of their records, and weighs that order against a random one.

    Parameters
    ----------
    size : int
        The number of symbols; a symbol is a code below it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes = min(size, CLASSES)
        self._records = 0
        # Counts by the symbol before; the first record has a context of its own, the last row.
        self._pairs = np.zeros((self._classes + 1) * self._classes, np.int64)
        self._last = self._classes
        # Counts by the part of the file, of so many records each.
        self._parts = np.zeros((BLOCKS, self._classes), np.int64)
        self._block = FIRST_BLOCK

    def add(self, codes: Integers) -> None:
        """Count the next records."""
        if not len(codes):
            return
        classes = codes
        if self._size > CLASSES:
            # Neighbouring codes share a class, so that a trend of ordered symbols is still seen.
            classes = codes * CLASSES // self._size
        self._count_pairs(classes)
        self._count_parts(classes)
        self._records += len(classes)

    def _count_pairs(self, classes: Integers) -> None:
        """Count each symbol by the one before it, across batches."""
        before = np.empty_like(classes)
        before[0] = self._last
        before[1:] = classes[:-1]
        cells = before * self._classes + classes
        self._pairs += np.bincount(cells, minlength=len(self._pairs))
        self._last = int(classes[-1])

    def _count_parts(self, classes: Integers) -> None:
        """Count each symbol by the part of the file that its record lies in."""
        records = self._records + len(classes)
        while records > BLOCKS * self._block:
            self._join_neighbours()
        places = np.arange(self._records, records) // self._block
        # Only the rows of the parts that the batch lies in.
        first = int(places[0])
        counts = np.bincount((places - first) * self._classes + classes)
        start = first * self._classes
        flat = self._parts.reshape(-1)
        flat[start : start + len(counts)] += counts

    def _join_neighbours(self) -> None:
        """Parts of twice the size, which leave room for as many again."""
        # Counts of joined parts are sums, so no record has to be seen again.
        half = BLOCKS // 2
        self._parts[:half] = self._parts.reshape(half, 2, -1).sum(axis=1)
        self._parts[half:] = 0
        self._block *= 2

    def evidence(self) -> float:
        """The logarithm of the e-value against a random order."""
        by_symbol_before = _table_evidence(self._pairs.reshape(-1, self._classes))
        # Fine parts show short groups, coarse ones a faint trend.
        parts = self._parts
        by_parts = [_table_evidence(parts)]
        while len(parts) > LUMPED:
            parts = parts.reshape(-1, LUMPED, parts.shape[1]).sum(axis=1)
            by_parts.append(_table_evidence(parts))
        # A mean of e-values is one, so no correction for several tests is needed. The tables by
        # parts share their half, because they are sums of each other.
        return mean_evidence([by_symbol_before, mean_evidence(by_parts)])


def _table_evidence(table: Integers) -> float:
    """The evidence of a table of counts, contexts by symbols."""
    contexts, symbols = np.nonzero(table)
    return log_evidence(contexts, symbols, table[contexts, symbols])
