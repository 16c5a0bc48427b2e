"""A record's symbol predicted from the *other* records with its value: what a column really tells.

The plain I(S; X) / H(S) of a table calls every column with many values telling, because most of its
values come with one symbol only. So each record is left out of the counts that predict it. If all
five records with a value have the symbol s, each is predicted from four others with s, and k = 1
more at the shares of the table: with probability (4 + P(s)) / 5. A value of one record predicts
nothing but P(s).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers

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
