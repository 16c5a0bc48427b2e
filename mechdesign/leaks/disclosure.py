"""What a column, or several together, say about a sensitive column S: one set of figures.

Everything is read from the table of counts n(v, s): how many records have the value v and the
symbol s. Two kinds of figures come from it. *Lifts* P(s | v) / P(s) are those of the table, over
values of two records or more. *Information*, and the share of records *guessed* right, are read
from the other records with the same value. So a column whose values are all different says nothing,
although a table of counts calls it perfectly informative.

For example, let the value v have the symbols s, s, s, t. Taken out one by one, each record with s
still finds two others against one t, and is guessed right; the record with t is not. So 3 of these
4 records count as guessed.

*Leaving a record out.* The plain I(S; X) / H(S) of a table calls every column with many values
telling, because most of its values come with one symbol only. So each record is left out of the
counts that predict it. If all five records with a value have the symbol s, each is predicted from
four others with s, and k = 1 more at the shares of the table: with probability (4 + P(s)) / 5. A
value of one record predicts nothing but P(s).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.distinct import (
    DENSE_LIMIT,
    SORTED_TOGETHER,
    counted_numbers,
    parts_in_order,
)

# ------------------------------------------------------------------ leaving records out

PRIOR = 1.0
"""Records that the shares of S count as when S is predicted from the other records with a value."""


def logarithms_left_out(
    counts: Integers, sizes: Integers, masses: Integers, total: int, symbols: int
) -> NDArray[np.float64]:
    """The logarithm of the probability that the other records give to a record's symbol.

    A record with the value v and the symbol s is predicted from the others as
    (n_vs - 1 + k P(s)) / (n_v - 1 + k), where k is `PRIOR` and P(s) comes from the other records,
    too: (n_s - 1 + k / m) / (n - 1 + k) for m symbols.

    Parameters
    ----------
    counts : (cells,) integers
        n_vs, positive.
    sizes : (cells,) integers
        n_v of the value of each cell.
    masses : (cells,) integers
        n_s of the symbol of each cell.
    total : int
        n, the number of records.
    symbols : int
        m, the number of symbols.
    """
    # Each "- 1" takes the record itself out: a value of one record then says nothing but the prior.
    prior: Any = (masses - 1 + PRIOR / symbols) / (total - 1 + PRIOR)
    return np.log((counts - 1 + PRIOR * prior) / (sizes - 1 + PRIOR))


def scores_left_out(
    features: Integers, widths: Integers, classes: Integers, symbols: int
) -> NDArray[np.float64]:
    """The mean logarithm of `logarithms_left_out` for each of many columns; more is better.

    Parameters
    ----------
    features : (records, columns) integers
        The values of each column, below its entry of `widths`.
    widths : (columns,) integers
    classes : (records,) integers
        The symbols.
    symbols : int
    """
    # Every value of every column has a row of the table of its own.
    first_rows = np.cumsum(widths) - widths
    cells = (features + first_rows) * symbols + classes[:, None]
    rows = int(widths.sum())
    table = np.bincount(cells.ravel(), minlength=rows * symbols)
    counts = table.reshape(rows, symbols)
    value, symbol = np.nonzero(counts)
    sizes = counts.sum(axis=1)[value]
    masses = np.bincount(classes, minlength=symbols)[symbol]
    logarithms = logarithms_left_out(
        counts[value, symbol], sizes, masses, len(classes), symbols
    )
    # All n_vs records of a cell have the same logarithm, so cells are weighted, not records listed.
    column = np.repeat(np.arange(len(widths)), widths)[value]
    weighted = counts[value, symbol] * logarithms
    return np.bincount(column, weighted, minlength=len(widths)) / len(classes)


# ------------------------------------------------------------------------------ figures

COUNTED_TOGETHER = 1 << 18
"""Records that are counted at once (2 MB): their cells stay in the processor's cache."""


@dataclass(frozen=True)
class Disclosure:
    """What one column, or several together, say about S in this table.

    Attributes
    ----------
    columns : tuple of str
    values : int
        Distinct values (of several columns: distinct combinations).
    information : float
        Share of H(S) that a record's value tells, read from the *other* records with that value.
        The plain I(S; columns) / H(S) of the table would call any column with many values telling.
    largest_lift, smallest_lift : float or None
        The extremes of P(s | value) / P(s) over values of two records or more; None where there are
        none.
    largest_at : str or None
        The symbol of S with the largest lift. The value of the column is not named: it may be a
        person's.
    pinned : float
        Share of the records whose value comes again, always with the same symbol of S.
    guessed : float
        Share of the records whose symbol is right when it is guessed from the other records with
        their value.
    """

    columns: tuple[str, ...]
    values: int
    information: float
    largest_lift: float | None
    smallest_lift: float | None
    largest_at: str | None
    pinned: float
    guessed: float


@dataclass(frozen=True)
class Secret:
    """The sensitive columns, crossed: row i has the symbol ``symbols[codes[i]]``, and stands for
    ``weights[i]`` records, by default one.
    """

    names: tuple[str, ...]
    codes: Integers
    symbols: tuple[str, ...]
    weights: Integers | None = None

    def counts(self) -> Integers:
        """How many records have each symbol."""
        if self.weights is None:
            return np.bincount(self.codes, minlength=len(self.symbols))
        # Sums of integers below 2^53 are exact in floating point.
        sums = np.bincount(self.codes, self.weights, len(self.symbols))
        return sums.astype(np.int64)

    def at(self, rows: Integers) -> Secret:
        """That of some rows, with their weights."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, codes=self.codes[rows], weights=weights)


def disclosure_of(
    columns: tuple[str, ...], codes: NDArray[np.integer[Any]], secret: Secret
) -> Disclosure:
    """Measure the columns with these codes, one for each row of the secret.

    The table of counts n(v, s) is taken in parts of the values, each a list of its cells with
    records: arrays `value`, `symbol` and `counts`.
    """
    masses = secret.counts()
    total = int(masses.sum())
    found = _Found()
    for pairs, counts in _cells(codes, secret):
        _add_cells(found, pairs, counts, masses)
    largest_at: str | None = None
    if found.largest_at is not None:
        largest_at = secret.symbols[found.largest_at]
    return Disclosure(
        columns=columns,
        values=found.values,
        information=_information(found.logarithms, masses),
        largest_lift=found.largest,
        smallest_lift=found.smallest,
        largest_at=largest_at,
        pinned=found.pinned / total,
        guessed=found.guessed / total,
    )


@dataclass
class _Found:
    """What the values so far say: numbers of records, and a sum of `logarithms_left_out`."""

    values: int = 0
    logarithms: float = 0.0
    largest: float | None = None
    largest_at: int | None = None
    smallest: float | None = None
    pinned: int = 0
    guessed: int = 0


def _cells(
    codes: NDArray[np.integer[Any]], secret: Secret
) -> Iterator[tuple[Integers, Integers]]:
    """The cells of the table, as ``value * width + symbol``, and their counts: in parts of the
    values, ascending.
    """
    width = len(secret.symbols)
    if secret.weights is not None:
        pairs = codes.astype(np.int64) * width + secret.codes
        present, place = np.unique(pairs, return_inverse=True)
        sums = np.bincount(place.reshape(-1), secret.weights, len(present))
        yield present, sums.astype(np.int64)
        return
    values = int(codes.max()) + 1 if len(codes) else 0
    if values * width <= DENSE_LIMIT:
        table = np.zeros(values * width, np.int64)
        for start in range(0, len(codes), COUNTED_TOGETHER):
            some = slice(start, start + COUNTED_TOGETHER)
            pairs = codes[some].astype(np.int64) * width + secret.codes[some]
            table += np.bincount(pairs, minlength=len(table))
        present = np.flatnonzero(table)
        yield present, table[present]
        return
    if len(codes) <= SORTED_TOGETHER:
        pairs = codes.astype(np.int64) * width + secret.codes
        yield counted_numbers(pairs, values * width)
        return
    for at in parts_in_order(codes, values):
        if at.size:
            pairs = codes[at].astype(np.int64) * width + secret.codes[at]
            yield counted_numbers(pairs, values * width)


def _add_cells(
    found: _Found, pairs: Integers, counts: Integers, masses: Integers
) -> None:
    """Add some values with all of their cells to what was found."""
    width = len(masses)
    value = pairs // width
    symbol = pairs % width
    # Cells of one value stand together: `starts` are the first ones, `sizes` the values' records.
    starts = np.flatnonzero(np.diff(value, prepend=-1))
    cells_of_value = np.diff(np.append(starts, len(value)))
    sizes = np.zeros(0, np.int64)
    if len(starts):
        sizes = np.add.reduceat(counts, starts)
    # n(v) and n(s) of each cell.
    size = np.repeat(sizes, cells_of_value)
    mass = masses[symbol]
    total = int(masses.sum())
    # P(s | v) / P(s) = (n(v, s) / n(v)) / (n(s) / N).
    lifts = counts * total / (size * mass)

    # A value of a single record has extreme lifts in every table, so it counts for none.
    repeated = size > 1
    if repeated.any():
        at = int(np.argmax(np.where(repeated, lifts, -1.0)))
        if found.largest is None or lifts[at] > found.largest:
            found.largest = float(lifts[at])
            found.largest_at = int(symbol[at])
        smallest = float(lifts[repeated].min())
        if (cells_of_value[sizes > 1] < width).any():
            # A value that lacks a symbol of S has the lift 0 there, and no cell in the list.
            smallest = 0.0
        if found.smallest is None or smallest < found.smallest:
            found.smallest = smallest

    found.values += len(starts)
    logarithms = logarithms_left_out(counts, size, mass, total, width)
    found.logarithms += float((counts / total * logarithms).sum())
    # All records of the value have one symbol of S.
    found.pinned += int(counts[repeated & (counts == size)].sum())
    # A value of one record says nothing of it: in a table of different rows most are such.
    found.guessed += _guessed(value[repeated], counts[repeated])


def _information(logarithms: float, masses: Integers) -> float:
    """The share of H(S) that values tell about a record left out.

    The figure is 1 - (mean negative logarithm of `logarithms_left_out`) / H(S), or 0 where that is
    negative. `masses` are the records of all symbols.
    """
    total = int(masses.sum())
    shares = masses[masses > 0] / total
    entropy = -float((shares * np.log(shares)).sum())
    return max(0.0, 1 + logarithms / entropy)


def _guessed(value: Integers, counts: Integers) -> int:
    """How many records are guessed right from the other records with the same value.

    Cells of one value stand together.

    A record is guessed right if its symbol is still the most frequent one once the record itself is
    taken out. So a value that one record has alone says nothing.
    """
    starts = np.flatnonzero(np.diff(value, prepend=-1))
    # Within each value, the most frequent symbol first.
    order = np.lexsort((-counts, value))
    ranked = counts[order]
    ends = np.append(starts[1:], len(value))
    most = ranked[starts]
    second = np.zeros_like(most)
    several = ends - starts > 1
    second[several] = ranked[starts[several] + 1]
    # Only records with the most frequent symbol can be right, and a tie is not.
    return int(most[most - 1 > second].sum())


def severity(disclosure: Disclosure) -> tuple[float, float, float]:
    """The order of columns and pairs: information, records pinned down, the largest lift."""
    return disclosure.information, disclosure.pinned, disclosure.largest_lift or 0.0
