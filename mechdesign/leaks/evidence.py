"""Exact evidence against chance from a table of counts: how often each symbol came in each context.

A file that is sorted or grouped discloses symbols by the place of a record (`Order`), and a kept
column that copies the useful one discloses them outright (`Crossing`, `twins`). Both are
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

*One column beside another* may disclose it: how often each value came with each symbol. A column
that stays beside a release must not stand for a protected one. Its *values* are compared with the
*symbols* of the protected column. A `Crossing` counts both, batch by batch (`add`), in a table with
a row for every value. Only cells that are not empty are kept, as three arrays (`Counts`): ::

    town      sick   well           numbers of values   [0, 1, 1]
    Aby         40      0           numbers of symbols  [0, 0, 1]
    Berg         1     59           records             [40, 1, 59]

The column stands for the protected one if three things hold (`determines`):

1. Enough records share a value: at least `SHARED` = 8 on average. Here 100 records have 2 values.
2. Guessing the symbol from the value errs rarely (`guessed_shares`): at most 5 % of the errors of
   guessing without it. Here 59 of 100 records are well, so guessing without the town errs 41 times.
   From the town it errs once, which is below 5 % of 41: the town stands for the illness.
3. Chance does not explain that (`evidence`).

Columns of nearly the same text, which is not constant, do so in any case (`same`). Columns with
more than `VALUES` values are given up, since they rather name individuals. `undecided` says that a
column with few records could still turn out to stand for the other; `twins` then counts more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded

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


# ------------------------------------------------------------ one column beside another

Counts: TypeAlias = tuple[Integers, Integers, Integers]
"""The cells of a table that are not empty, in order: numbers of value and symbol, and how many
records have both. For the towns above:
([0, 1, 1], [0, 0, 1], [40, 1, 59]).
"""

VALUES = 4096
"""Different values above which a column is not compared any more (2 MB)."""

SYMBOLS = 1 << 16
"""Different symbols of a protected column above which nothing is compared with it any more."""

NEARLY = 0.95
"""A column stands for another one if guessing from it removes this share of the errors of guessing
without it.
"""

SHARED = 8
"""Records with the same value, on average, in a column that stands for another; of fewer it rather
names individuals, whose symbols nobody can tell from their names alone.
"""

COUNTED_TOGETHER = 1 << 14
"""Records that are sorted and counted together: for thousands of columns, doing so batch by batch
takes as long as reading them.
"""

_CODE_BITS = 32
"""Bits of the number of a symbol in the number of a cell."""


class TextNumbers:
    """Numbers for the texts of a column, in the order in which they come.

    The crossings of many columns with one other share the numbers of that one.
    """

    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}
        self._last_cells: Encoded | None = None
        self._last_numbers = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.number_of)

    def of(self, cells: Encoded) -> Integers:
        """The numbers of the texts of all cells; the empty text is that of a missing cell.

        Those of the last cells are remembered.
        """
        if cells is not self._last_cells:
            self._last_cells = cells
            self._last_numbers = self._numbered(cells)
        return self._last_numbers

    def _numbered(self, cells: Encoded) -> Integers:
        """The numbers of all cells; new texts get the next ones."""
        numbers = self.number_of
        # The code -1 of a missing cell leads to the empty text at the end.
        texts = (*cells.texts, "")
        places = [numbers.setdefault(text, len(numbers)) for text in texts]
        return np.array(places)[cells.codes]


class Crossing:
    """How often each value of one column came with each symbol of another, unless there are too
    many values.

    `add` takes the records batch by batch. Then `stands_for` is the verdict, `undecided` says that
    more records could change it, and `table` and `guessed` have the figures.

    Parameters
    ----------
    limit : int
        Different values above which nothing more is counted.
    symbols : TextNumbers, optional
        The numbers of the symbols, where other crossings have them, too.

    Attributes
    ----------
    full : bool
        Whether there are too many values; then nothing more is counted.
    """

    def __init__(self, limit: int = VALUES, symbols: TextNumbers | None = None) -> None:
        self._limit = limit
        self.full = False
        self.values = TextNumbers()
        if symbols is None:
            symbols = TextNumbers()
        self.symbols = symbols
        # Records, and those of them with the same text in both columns.
        self._records = 0
        self._same_texts = 0
        # The table so far: a cell is one integer, the number of the value and then of the symbol.
        self._cells = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._uncounted: list[Integers] = []
        """The cells of the last records, which are sorted and counted together."""
        self._uncounted_records = 0

    def copy(self) -> Crossing:
        """The same counts, which can grow on their own."""
        other = copy(self)
        other.values = TextNumbers()
        other.values.number_of = dict(self.values.number_of)
        other._uncounted = list(self._uncounted)
        return other

    def add(self, values: Encoded, symbols: Encoded) -> None:
        """Count the next records; a missing cell is the empty text."""
        if self.full:
            return
        value_numbers = self.values.of(values)
        symbol_numbers = self.symbols.of(symbols)
        self._same_texts += self._texts_in_common(value_numbers, symbols)
        self._records += len(value_numbers)
        # One integer for each cell of the table, value first, so that sorting puts the cells of a
        # value together.
        self._uncounted.append(value_numbers << _CODE_BITS | symbol_numbers)
        self._uncounted_records += len(value_numbers)
        if self._uncounted_records > COUNTED_TOGETHER:
            self._count()

        too_many_values = len(self.values) > self._limit
        self.full = too_many_values or len(self.symbols) > SYMBOLS
        if too_many_values:
            # The texts are not needed any more.
            self.values = TextNumbers()

    def _texts_in_common(self, value_numbers: Integers, symbols: Encoded) -> int:
        """How many records have the same text in both columns."""
        # For the text of each symbol the number of the value with this text; -1 if none has it.
        value_of = self.values.number_of
        namesakes = [value_of.get(text, -1) for text in (*symbols.texts, "")]
        is_same = np.array(namesakes)[symbols.codes] == value_numbers
        return int(np.count_nonzero(is_same))

    def _count(self) -> None:
        """Count the cells of the last records, and add them to those before."""
        if not self._uncounted:
            return
        # The new cells alone are sorted first: there are mostly far fewer different ones.
        cells, counts = np.unique(np.concatenate(self._uncounted), return_counts=True)
        self._uncounted = []
        self._uncounted_records = 0
        if len(self._cells):
            # Both tables one after the other; the counts of equal cells are added.
            all_cells = np.concatenate([self._cells, cells])
            all_counts = np.concatenate([self._counts, counts])
            cells, place = np.unique(all_cells, return_inverse=True)
            counts = np.bincount(place, all_counts).astype(np.int64)
        self._cells = cells
        self._counts = counts

    @property
    def size(self) -> int:
        """The number of different values."""
        return _number_of_values(self.table())

    def table(self) -> Counts:
        """Numbers of value and symbol, and how many records have both."""
        self._count()
        return (
            self._cells >> _CODE_BITS,
            self._cells & (2**_CODE_BITS - 1),
            self._counts,
        )

    @property
    def same(self) -> bool:
        """Whether nearly all cells of the two columns have the same text, and are not constant.

        Equal texts are no chance, so this needs neither evidence nor many records of a value.
        """
        # No record, or one alone, shows nothing.
        if self._same_texts < NEARLY * max(self._records, 2):
            return False
        _, symbols, _ = self.table()
        return len(np.unique(symbols)) > 1

    @property
    def undecided(self) -> bool:
        """Whether the column may stand for the other one, but has too few records yet to see it."""
        if self.full or not self._records:
            return False
        return SHARED * self.size > self._records and is_nearly_pure(self.table())

    def guessed(self) -> tuple[float, float]:
        """The shares of records whose symbol is guessed right: from the values of the others, and
        without any value.
        """
        return guessed_shares(self.table())

    def stands_for(self, looks: int = 1) -> bool:
        """Whether the values disclose the symbols, all or nearly all.

        `looks` is the number of pairs of columns that are looked at: among many, one agrees by
        chance more easily.
        """
        if self.same:
            return True
        return not self.full and determines(self.table(), self._records, looks)


def _number_of_values(table: Counts) -> int:
    """How many different values a table has."""
    values, _, _ = table
    # The cells of a value stand together.
    return int(np.count_nonzero(np.diff(values, prepend=-1)))


def determines(table: Counts, records: int, looks: int) -> bool:
    """Whether the values of a table disclose its symbols: enough records share a value, guesses
    from it are nearly all right, and chance does not explain that.

    `looks` is the number of tables that are looked at.
    """
    if SHARED * _number_of_values(table) > records:
        return False
    # Before the evidence, which takes longer and is not needed for most columns.
    right, right_without = guessed_shares(table)
    errors = 1 - right
    errors_without = 1 - right_without
    if errors > (1 - NEARLY) * errors_without:
        return False
    return decisive(log_evidence(*table), looks)


def guessed_shares(table: Counts) -> tuple[float, float]:
    """The shares of records whose symbol is guessed right from the other records with their value,
    and without any value.

    From the others, so that a value that one record has alone, an identifier, say, discloses
    nothing. If Aby has 5 sick and 1 well, and Berg 1 sick, then 5 of 7 records are guessed right:
    the sick of Aby. The well one is outvoted, and Berg has no other record to guess from. Without
    the town, 6 of 7 are.
    """
    values, symbols, counts = table
    total = max(1, int(counts.sum()))
    # Within each value, the most frequent symbol first.
    order = np.lexsort((-counts, values))
    values = values[order]
    ranked = counts[order]
    first = np.flatnonzero(np.diff(values, prepend=-1))
    most = ranked[first]
    # The second largest count of each value, 0 where the value has one symbol alone.
    symbols_of_value = np.diff(first, append=len(values))
    has_second = symbols_of_value > 1
    second = np.zeros_like(most)
    second[has_second] = ranked[first[has_second] + 1]
    # A record is guessed right if its symbol is still the most frequent one without the record. A
    # tie counts as wrong: the guess would be a toss.
    still_most = most - 1 > second
    right = most[still_most].sum()
    right_without = np.bincount(symbols, counts).max(initial=0)
    return float(right / total), float(right_without / total)


def is_nearly_pure(table: Counts) -> bool:
    """Whether nearly every record has the most frequent symbol of its value.

    This holds for every column that stands for another, however few its records. A sample has up to
    twice the errors of the whole.
    """
    values, symbols, counts = table
    total = int(counts.sum())
    largest = np.zeros(int(values.max(initial=0)) + 1, np.int64)
    np.maximum.at(largest, values, counts)
    errors = total - int(largest.sum())
    errors_without = total - int(np.bincount(symbols, counts).max(initial=0))
    return errors <= 2 * (1 - NEARLY) * errors_without
