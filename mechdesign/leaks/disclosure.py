"""What a column, or several together, say about a sensitive column S: one set of figures.

Everything is read from the table of counts n(v, s): how many records have the value v and the
symbol s. Two kinds of figures come from it. *Lifts* P(s | v) / P(s) are those of the table, over
values of two records or more. *Information*, and the share of records *guessed* right, are read
from the other records with the same value. So a column whose values are all different says nothing,
although a table of counts calls it perfectly informative.

For example, let the value v have the symbols s, s, s, t. Taken out one by one, each record with s
still finds two others against one t, and is guessed right; the record with t is not. So 3 of these
4 records count as guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.leaks.left_out import logarithms_left_out


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
    """The sensitive columns, crossed: record i has the symbol ``symbols[codes[i]]``."""

    names: tuple[str, ...]
    codes: Integers
    symbols: tuple[str, ...]


def disclosure_of(
    columns: tuple[str, ...], codes: Integers, secret: Secret
) -> Disclosure:
    """Measure the columns with these codes, one for each record.

    The table of counts n(v, s) is a list of its cells with records: arrays `value`, `symbol` and
    `counts`.
    """
    width = len(secret.symbols)
    pairs, counts = np.unique(codes * width + secret.codes, return_counts=True)
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
    masses = np.bincount(secret.codes, minlength=width)
    mass = masses[symbol]
    total = int(counts.sum())
    # P(s | v) / P(s) = (n(v, s) / n(v)) / (n(s) / N).
    lifts = counts * total / (size * mass)

    # A value of a single record has extreme lifts in every table, so it counts for none.
    repeated = size > 1
    largest: float | None = None
    smallest: float | None = None
    largest_at: str | None = None
    if repeated.any():
        at = int(np.argmax(np.where(repeated, lifts, -1.0)))
        largest = float(lifts[at])
        largest_at = secret.symbols[int(symbol[at])]
        if (cells_of_value[sizes > 1] < width).any():
            # A value that lacks a symbol of S has the lift 0 there, and no cell in the list.
            smallest = 0.0
        else:
            smallest = float(lifts[repeated].min())

    information = _information(counts, size, mass, masses)
    # All records of the value have one symbol of S.
    pinned = counts[repeated & (counts == size)].sum() / total
    return Disclosure(
        columns=columns,
        values=len(starts),
        information=information,
        largest_lift=largest,
        smallest_lift=smallest,
        largest_at=largest_at,
        pinned=float(pinned),
        guessed=_guessed(value, counts, starts, total),
    )


def _information(
    counts: Integers, size: Integers, mass: Integers, masses: Integers
) -> float:
    """The share of H(S) that values tell about a record left out.

    The figure is 1 - (mean negative logarithm of `logarithms_left_out`) / H(S), or 0 where that is
    negative. `size` and `mass` are those of each cell, `masses` those of all symbols.
    """
    total = int(masses.sum())
    logarithms = logarithms_left_out(counts, size, mass, total, len(masses))
    score = -float((counts / total * logarithms).sum())
    shares = masses[masses > 0] / total
    entropy = -float((shares * np.log(shares)).sum())
    return max(0.0, 1 - score / entropy)


def _guessed(value: Integers, counts: Integers, starts: Integers, total: int) -> float:
    """Share guessed right from the other records with the same value.

    A record is guessed right if its symbol is still the most frequent one once the record itself is
    taken out. So a value that one record has alone says nothing.
    """
    # Within each value, the most frequent symbol first.
    order = np.lexsort((-counts, value))
    ranked = counts[order]
    ends = np.append(starts[1:], len(value))
    most = ranked[starts]
    second = np.zeros_like(most)
    several = ends - starts > 1
    second[several] = ranked[starts[several] + 1]
    # Only records with the most frequent symbol can be right, and a tie is not.
    right = int(most[most - 1 > second].sum())
    return right / total


def severity(disclosure: Disclosure) -> tuple[float, float, float]:
    """The order of columns and pairs: information, records pinned down, the largest lift."""
    return disclosure.information, disclosure.pinned, disclosure.largest_lift or 0.0
