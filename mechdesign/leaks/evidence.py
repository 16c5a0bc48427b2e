"""What a release gives away beside the released column, measured on the data while they stream.

A file that is sorted or grouped tells symbols by the place of a record, and a kept column that is a copy of the useful
one, whatever its name, tells them outright. Both are tables of counts: how often each symbol x came in each context
y (after which symbol, in which part of the file, beside which value). `log_evidence` weighs such a table against
chance.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded

LEVEL = 1e-5
"""The chance, at most, that a file in random order is refused for its order, or a column that is drawn at random for
what it tells."""

STRENGTHS = (1.0, 32.0, 1024.0)
"""How many records the prior of a context counts as: few for sharp patterns, many for faint ones."""

CLASSES = 64
"""Symbols are lumped together down to so many, for tables of bounded size."""

BLOCKS = 512
"""Parts of the file in which symbols are counted, at most; when there are more, neighbours are joined."""

FIRST_BLOCK = 8
"""Records of a part at the beginning."""

LUMPED = 4
"""Neighbouring parts that are joined for the next coarser look."""

_log_gamma: Any = np.frompyfunc(math.lgamma, 1, 1)


def log_evidence(contexts: Integers, symbols: Integers, counts: Integers) -> float:
    """The logarithm of an e-value against chance of a table: so many records of a symbol in a context, all positive.

    Let the order of the symbols be random: all N! / prod_x n_x! arrangements of these symbols are equally likely, each
    with P. Let Q be the probability of an arrangement when the symbols in each context y come from a Polya urn,
    (k pi_x + n_yx) / (k + n_y) for the next x, with pi the shares of the symbols in the table, which chance leaves
    alone; the context of a record may depend on the records before it. Q sums to at most 1 over the arrangements, so
    the mean of Q / P is at most 1, also when it is averaged over several k (`STRENGTHS`), and by Markov's inequality
    P(Q / P >= 1 / a) <= a for every a. Of each context Q needs the counts alone: log Q = sum_y [log G(k) -
    log G(k + n_y) + sum_x (log G(k pi_x + n_yx) - log G(k pi_x))], G being the gamma function.
    """
    each = np.bincount(symbols, counts)
    whole = np.bincount(contexts, counts)
    whole, total = whole[whole > 0], int(whole.sum())
    if total < 2 or np.count_nonzero(each) < 2:
        return 0.0
    chance = _log_gamma(each + 1).sum() - math.lgamma(total + 1)
    found: list[float] = []
    for strength in STRENGTHS:
        prior = strength * each[symbols] / total
        urns = (_log_gamma(prior + counts) - _log_gamma(prior)).sum()
        urns += len(whole) * math.lgamma(strength) - _log_gamma(strength + whole).sum()
        found.append(float(urns - chance))
    return mean_evidence(found)


def mean_evidence(logarithms: Sequence[float]) -> float:
    """The logarithm of the mean of e-values, which is an e-value."""
    return float(np.logaddexp.reduce(logarithms)) - math.log(len(logarithms))


def decisive(evidence: float, looks: float = 1) -> bool:
    """Whether an e-value refutes chance at `LEVEL`, among so many."""
    return evidence >= math.log(looks / LEVEL)


class Order:
    """Whether the records of a file stand in an order that tells of a symbol, which is given by codes below `size`.

    Two tables are weighed, half and half: symbols by the one before (runs, and anything periodic), and symbols by the
    part of the file, in parts of several sizes (sorted or grouped by the symbol, or by what it depends on).
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes = min(size, CLASSES)
        self._pairs = np.zeros((self._classes + 1) * self._classes, np.int64)
        self._last = self._classes  # the context of the first record
        self._block, self._records = FIRST_BLOCK, 0
        self._parts = np.zeros((BLOCKS, self._classes), np.int64)

    def add(self, codes: Integers) -> None:
        """The next records."""
        if not len(codes):
            return
        classes = codes if self._size <= CLASSES else codes * CLASSES // self._size
        before = np.empty_like(classes)
        before[0], before[1:] = self._last, classes[:-1]
        self._pairs += np.bincount(
            before * self._classes + classes, minlength=len(self._pairs)
        )
        self._last = int(classes[-1])
        while self._records + len(classes) > BLOCKS * self._block:
            self._parts[: BLOCKS // 2] = self._parts.reshape(BLOCKS // 2, 2, -1).sum(
                axis=1
            )
            self._parts[BLOCKS // 2 :] = 0
            self._block *= 2
        places = np.arange(self._records, self._records + len(classes)) // self._block
        first = int(places[0])
        counts = np.bincount((places - first) * self._classes + classes)
        flat = self._parts.reshape(-1)
        flat[first * self._classes : first * self._classes + len(counts)] += counts
        self._records += len(classes)

    def evidence(self) -> float:
        """The logarithm of the e-value against a random order."""
        tables = [self._pairs.reshape(-1, self._classes), parts := self._parts]
        while len(parts) > LUMPED:
            tables.append(
                parts := parts.reshape(-1, LUMPED, parts.shape[1]).sum(axis=1)
            )
        cells = [(table, np.nonzero(table)) for table in tables]
        runs, *found = [log_evidence(at[0], at[1], table[at]) for table, at in cells]
        return mean_evidence([runs, mean_evidence(found)])


LOOKED = 1 << 12
"""Records of a batch that are looked at, about, for what columns tell of each other: of all batches up to so many
records, and then of one whenever their number has doubled. Looking at all would take longer than the release."""

VALUES = 4096
"""Different values from which on a column is not looked at any more (2 MB)."""

SYMBOLS = 1 << 16
"""The same of what it may stand for."""

NEARLY = 0.95
"""A column stands for another one if guessing from it removes this share of the errors of guessing without it."""

SHARED = 8
"""Records with the same value, on average, in a column that stands for another; of fewer it rather names individuals,
whose symbols nobody can tell from their names alone."""


class Crossing:
    """How often each value of one column came with each symbol of another, unless there are too many values."""

    def __init__(self, limit: int = VALUES) -> None:
        self._limit, self.full = limit, False
        self.values: dict[str, int] = {}
        self.symbols: dict[str, int] = {}
        self._same, self._looked = 0, 0
        self._keys, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, values: Encoded, symbols: Encoded) -> None:
        """The next records; a missing cell is the empty text."""
        if self.full:
            return
        own, other = (
            np.array(
                [place.setdefault(text, len(place)) for text in (*cells.texts, "")]
            )[cells.codes]
            for place, cells in ((self.values, values), (self.symbols, symbols))
        )
        place = np.array([self.symbols.get(text, -1) for text in (*values.texts, "")])[
            values.codes
        ]
        self._same += int(np.count_nonzero(place == other))
        self._looked += len(own)
        keys, counts = np.unique(own << 32 | other, return_counts=True)
        self._keys, at = np.unique(
            np.concatenate([self._keys, keys]), return_inverse=True
        )
        self._counts = np.bincount(at, np.concatenate([self._counts, counts])).astype(
            np.int64
        )
        self.full = len(self.values) > self._limit or len(self.symbols) > SYMBOLS
        if self.full:  # nobody asks for their texts any more
            self.values, self.symbols = {}, {}

    @property
    def size(self) -> int:
        """How many different values there are."""
        return len(np.unique(self._keys >> 32))

    def table(self) -> tuple[Integers, Integers, Integers]:
        """Numbers of value and symbol, and how many records have both."""
        return self._keys >> 32, self._keys & (2**32 - 1), self._counts

    @property
    def same(self) -> bool:
        """Whether nearly all cells of the two columns have the same text, and not always the same."""
        return len(np.unique(self.table()[1])) > 1 and self._same >= NEARLY * max(
            self._looked, 2
        )

    def guessed(self) -> tuple[float, float]:
        """The shares of records whose symbol is guessed right: from the values of the others, and without any.

        From the others, so that a value that one record has alone, an identifier, say, tells nothing.
        """
        values, symbols, counts = self.table()
        order = np.lexsort((-counts, values))
        values, counts = values[order], counts[order]
        first = np.flatnonzero(np.diff(values, prepend=-1))
        most, later = counts[first], first + 1
        second = np.where(
            np.append(values, -1)[later] == values[first],
            np.append(counts, 0)[later],
            0,
        )
        total = max(1, int(counts.sum()))
        alone = np.bincount(symbols, self._counts).max(initial=0)
        return float(most[most - 1 > second].sum() / total), float(alone / total)

    def stands_for(self, looks: int = 1) -> bool:
        """Whether the values give the symbols away, one and all or nearly, among so many pairs of columns."""
        known, alone = self.guessed()
        nearly = not self.full and SHARED * self.size <= self._looked
        nearly = nearly and 1 - known <= (1 - NEARLY) * (1 - alone)
        return self.same or (nearly and decisive(log_evidence(*self.table()), looks))


class Twins:
    """Looks in kept columns for copies of others, which are protected."""

    def __init__(self, kept: Sequence[Any], hidden: Sequence[Any]) -> None:
        self._pairs = {(name, other): Crossing() for name in kept for other in hidden}
        self._records = self._next = 0

    def add(
        self, count: int, some: Callable[[int], Callable[[Any], Encoded | None]]
    ) -> None:
        """The next `count` records; `some` gives the cells of every so manieth of them."""
        due = self._records < LOOKED or self._records >= self._next
        self._records += count
        if not due or not count:
            return
        self._next = 2 * self._records
        column = lru_cache(64)(
            some(max(1, count // LOOKED))
        )  # of many columns not all at once
        for pair, crossing in self._pairs.items():
            values, symbols = (None, None) if crossing.full else map(column, pair)
            if values is not None and symbols is not None:
                crossing.add(values, symbols)

    def found(self) -> list[tuple[Any, Any]]:
        """Columns that stand for other ones, and for which."""
        return [
            pair
            for pair, each in self._pairs.items()
            if each.stands_for(len(self._pairs))
        ]
