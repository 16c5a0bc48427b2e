"""Posterior probabilities of the true cells of a released row: P(x_j | k, y_1 .. y_m).

A row channel is a product over its levels (`channel.row_channel`), so Bayes' rule over the distinct
rows r of the table gives

    P(r | k, y) = P(r) W_1(y_1 | r_1; k) .. W_m(y_m | r_m; k, y_1 .. y_(m-1)) / (their sum),

over the rows with the same given symbols k. The probability of a cell is the sum over the rows that
have it. Columns depend on each other, so the output of one level is information about all columns.

For example, a table has the rows (nurse, 30) and (clerk, 50), equally many. The first level
releases nurse for a nurse with 0.9 and for a clerk with 0.3; the second gives one constant age. Of
a released nurse the first row has 0.9 / (0.9 + 0.3) = 0.75, so the age is 30 with 0.75 as well.

`row_posteriors` follows the released rows through the tree (`row_paths`), computes this rule once
for each distinct released row, and adds up the rows for every symbol of every column
(`_marginals`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.row_paths import RowPaths, paths_of
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR, LevelTable
from mechdesign.formats.cells import encoded_columns
from mechdesign.tables.records import Records
from mechdesign.tables.variable import Variable

Array = NDArray[np.float64]

CELLS_AT_ONCE = 4_000_000
"""Released rows times rows of the table that are held at once (32 MB)."""


class CellPosteriors(NamedTuple):
    """P(x | released row) for one column of N released records.

    Attributes
    ----------
    symbols : tuple of str
        The symbols of the column.
    matrix : (N, |X|) array
        Rows sum to 1.
    """

    symbols: tuple[str, ...]
    matrix: Array


def row_posteriors(channel: RowChannel, released: Any) -> dict[str, CellPosteriors]:
    """The probabilities of the true cells of released records, for every released column.

    The prior is the table of the channel, so this is for those who may see that table.

    Parameters
    ----------
    channel : RowChannel
        With its table.
    released : pandas, polars or pyarrow table
        The release, with all columns of the channel.

    Returns
    -------
    dict of str to CellPosteriors
        One entry for each randomised column, in the order of release.

    Raises
    ------
    InputError
        If the channel is public, a released column is missing, or the channel cannot have released
        a record from any row of its table.
    """
    if channel.table is None:
        raise InputError(
            "a public channel has no table, which is the prior of the posterior probabilities; "
            "load the channel file that was designed without --public"
        )
    names = channel.output_columns
    columns = dict(zip(names, encoded_columns(released, names), strict=True))
    paths = paths_of(channel, columns)
    _refuse(paths.impossible)
    first, which = _distinct(paths)
    marginals = _marginals(paths, first, channel.table)
    # The tree has a path for such a record, but no row of the table can have taken it. All of its
    # probabilities are NaN, so one of them tells.
    no_row_fits = np.isnan(marginals[0][which, 0])
    _refuse(np.flatnonzero(no_row_fits))

    posteriors: dict[str, CellPosteriors] = {}
    for variable, shares in zip(channel.levels, marginals, strict=True):
        for place, name in enumerate(variable.columns):
            symbols, matrix = _of_column(variable, place, shares)
            posteriors[name] = CellPosteriors(symbols, matrix[which])
    return posteriors


def _refuse(impossible: Integers) -> None:
    """Raise InputError about the first of the records, if there are any."""
    if len(impossible):
        raise InputError(
            f"record {impossible[0] + 1} of the released table cannot come from this channel; "
            "`mechdesign check` lists such records"
        )


def _distinct(paths: RowPaths) -> tuple[Integers, Integers]:
    """The first record of each distinct released row, and the number of the row of every record.

    Equal released rows have equal posteriors, which are computed once.
    """
    codes = np.column_stack([*paths.given, *paths.slots])
    _, first, which = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


def _marginals(paths: RowPaths, first: Integers, table: Records) -> list[Array]:
    """For each level a (distinct, |X|) array of P(x_j | released row); NaN where no row fits."""
    channel = paths.channel
    rows, prior = _rows_of(table)
    given = len(channel.given)
    # (rows, |X|) for each level: 1 where a row has the symbol. The posteriors of rows times this
    # are those of the symbols.
    indicators: list[Array] = []
    marginals: list[Array] = []
    for level, variable in enumerate(channel.levels):
        indicators.append(np.eye(len(variable))[rows[:, given + level]])
        marginals.append(np.empty((len(first), len(variable))))
    for portion in _portions(len(first), len(rows)):
        posterior = _posterior_of_rows(paths, first[portion], rows, prior)
        for marginal, indicator in zip(marginals, indicators, strict=True):
            marginal[portion] = posterior @ indicator
    return marginals


def _posterior_of_rows(
    paths: RowPaths, records: Integers, rows: Integers, prior: Array
) -> Array:
    """(records, rows) array of P(r | k, y), by Bayes' rule; NaN where no row fits.

    `rows` are those of the table, with the codes of the given columns and then of the levels, and
    `prior` has their probabilities.
    """
    given = len(paths.channel.given)
    joint = np.tile(prior, (len(records), 1))
    # Only rows of the record's stratum count.
    for codes, row_codes in zip(paths.given, rows[:, :given].T, strict=True):
        joint *= codes[records][:, None] == row_codes
    # Times W_1 .. W_m: the likelihood of every symbol of a level, taken at the symbol of each row.
    for level, level_table in enumerate(paths.channel.tree.levels):
        likelihood = _likelihoods(level_table, paths.slots[level][records])
        joint *= likelihood[:, rows[:, given + level]]
    # 0 / 0, where no row of the table can have been released so, becomes NaN.
    with np.errstate(invalid="ignore"):
        joint /= joint.sum(axis=1, keepdims=True)
    return joint


def _rows_of(table: Records) -> tuple[Integers, Array]:
    """The distinct rows without the sensitive symbol, and the probability of each."""
    rows, which = np.unique(table.codes, axis=0, return_inverse=True)
    counts = np.array([float(count) for count in table.counts])
    masses = np.bincount(which.ravel(), weights=counts)
    return rows, masses / masses.sum()


def _portions(released: int, rows: int) -> Iterator[slice]:
    """Slices of the released rows, each within `CELLS_AT_ONCE`."""
    # At least one at a time, however large the table is.
    step = max(1, CELLS_AT_ONCE // rows)
    for start in range(0, released, step):
        yield slice(start, start + step)


def _likelihoods(table: LevelTable, slots: Integers) -> Array:
    """(slots, |X|) array of W(y | x) for the output of each slot.

    It is 0 for a symbol that the slot's node does not have, and 1 everywhere at a constant node,
    which gives every row the same output.
    """
    from scipy.sparse import csr_array

    # The entries of the level's rows, gathered by slot and input: one row for each slot.
    inputs = table.pair_inputs[table.rows.row_of]
    values = np.array(table.rows.values, dtype=np.float64) / DENOMINATOR
    shape = (len(table.slot_nodes), table.size)
    law = csr_array((values, (table.rows.indices, inputs)), shape=shape)
    likelihoods: Array = law[slots].toarray()
    likelihoods[table.constant[table.slot_nodes[slots]]] = 1.0
    return likelihoods


def _of_column(
    variable: Variable, place: int, shares: Array
) -> tuple[tuple[str, ...], Array]:
    """The symbols of one column of a level, and their shares.

    Shares of crossed symbols with the same text in this column are added: of (nurse, 30) with 0.2
    and (nurse, 50) with 0.3, nurse has 0.5.
    """
    texts = [symbol[place] for symbol in variable.symbols]
    symbols = tuple(dict.fromkeys(texts))
    which = np.array([symbols.index(text) for text in texts])
    indicator = np.eye(len(symbols))[which]
    return symbols, shares @ indicator
