"""Frequencies of columns, and of pairs of columns, from rows that a row channel released.

At a node the level's channel is a matrix W(y|x). Weights b over the node's outputs with ``W b = c``
turn an output into an unbiased score of c(x), because E[b(y) | x, node] = c(x). With c the
indicator of a symbol, the mean of the scores estimates its frequency: with the rows (0.8, 0.2) and
(0.3, 0.7) of W, the first symbol has b = (1.4, -0.6), and half of the records with the first output
make it 0.5 * 1.4 - 0.5 * 0.6 = 0.4.

Levels draw independently given what is released before, so the product of the scores of two levels
is an unbiased score of the pair: E[b_i b_j | x] = E[b_i E[b_j | prefix, x] | x] = c_i(x_i)
c_j(x_j).

Where a node merges symbols that c tells apart, no such weights exist. A pair of linear programs
then finds weights with ``W l <= c <= W h``, so that E[l(y) | x] <= c(x) <= E[h(y) | x]; at nodes of
few records 0 and 1 serve as l and h. For the bounds of a pair all four products are compared:
whatever the sign of a score, the smallest has at most the expectation c_i c_j, and the largest at
least that. The interval runs from the lower end for the means of l to the upper end for those of h.

`estimate_rows` makes a `Factor` of each column, the scores [l, h] of every slot that a record can
be released in, and `_combined` averages their products over the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.row_paths import RowPaths, paths_of
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR, LevelTable
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.column_names import require_column
from mechdesign.formats.distinct import Numbering

Array = NDArray[np.float64]

RESIDUAL = 1e-9
"""Weights whose equations miss by more than this do not identify a symbol; probabilities are
multiples of 2^-53.
"""

MOST_PROGRAMS = 4_000
"""Linear programs for symbols that are not identified; further nodes are bounded by 0 and 1."""

LARGEST_SCORE = 4.0
"""Bounds of the weights of these programs: larger ones have a smaller bias and a larger variance.
"""

MOST_CELLS = 5_000_000
"""Cells (combinations of outputs times combinations of symbols) up to which a joint table is
estimated.
"""


@dataclass(frozen=True)
class RowFrequencies:
    """Estimated frequencies of one column, or of the combinations of several.

    Attributes
    ----------
    columns : tuple of str
    symbols : tuple of tuple of str
        One text for each column.
    estimates, standard_errors, lower, upper : (symbols,) arrays
        Estimates are within [lower, upper], and intervals within [0, 1].
    unbiased : (symbols,) array
        The unbiased estimates, which may lie outside of [0, 1].
    records : int
    level : float
        Confidence level of each interval (normal approximation for the population of the records).
    unresolved : (symbols,) array
        The part of the interval's width that more records would not remove, because released
        values do not tell the symbols apart.
    unidentified : float
        Share of the records whose released values cannot tell some of these symbols apart; it
        widens the intervals.
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    estimates: Array
    standard_errors: Array
    lower: Array
    upper: Array
    unbiased: Array
    records: int
    level: float
    unresolved: Array
    unidentified: float

    def rows(self) -> list[dict[str, Any]]:
        """A record for each combination of symbols."""
        records: list[dict[str, Any]] = []
        for k, texts in enumerate(self.symbols):
            record: dict[str, Any] = dict(zip(self.columns, texts, strict=True))
            record["estimate"] = float(self.estimates[k])
            record["standard_error"] = float(self.standard_errors[k])
            record["unresolved"] = float(self.unresolved[k])
            record["lower"] = float(self.lower[k])
            record["upper"] = float(self.upper[k])
            records.append(record)
        return records


def estimate_rows(
    channel: RowChannel,
    columns: Mapping[str, Encoded],
    names: Sequence[str],
    *,
    level: float = 0.95,
) -> RowFrequencies:
    """Estimate the frequencies of a released column, or the joint ones of several.

    Parameters
    ----------
    channel : RowChannel
    columns : mapping of str to Encoded
        The columns of the released table.
    names : sequence of str
        Released, given, or kept columns.
    level : float
        Confidence level of each interval, in (0, 1).

    Raises
    ------
    InputError
        If a column is missing or named twice, a record cannot have been released, or the joint
        table is too large.
    """
    confidence = number("level", level, "in (0, 1)")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"level ({level!r}) must be a number in (0, 1)")
    paths = paths_of(channel, columns)
    impossible = paths.impossible
    if len(impossible):
        raise InputError(
            f"record {impossible[0] + 1} of the released table cannot come from this "
            "channel; `mechdesign check` lists such records"
        )
    if not len(paths):
        raise InputError("the released table has no records")
    if not names:
        raise InputError("name at least one column to estimate")
    for name in names:
        require_column(name, list(columns))
        if list(names).count(name) > 1:
            raise InputError(f"the column {quoted(name)} is named twice")
    factors = [_factor(paths, columns, name) for name in names]
    return _combined(tuple(names), factors, len(paths), confidence)


@dataclass(frozen=True, eq=False)
class Factor:
    """Scores of one column: a record with the key k has a score in [lower[k, t], upper[k, t]] for
    the symbol t.

    Keys of a released column are slots. Those of a given or kept one are numbers of its values,
    whose scores are exact: 1 for the value itself, 0 for the others.
    """

    symbols: tuple[str, ...]
    keys: Integers
    lower: Array
    upper: Array


def _factor(paths: RowPaths, columns: Mapping[str, Encoded], name: str) -> Factor:
    """The scores of a released column; of a given or kept one its indicator."""
    channel = paths.channel
    for level, variable in enumerate(channel.levels):
        if name in variable.columns:
            place = variable.columns.index(name)
            return _level_factor(paths, level, place)
        if name == ",".join(variable.columns):
            return _level_factor(paths, level, None)
    numbering = Numbering()
    keys = numbering.number([columns[name]])
    indicator = np.eye(len(numbering))
    symbols = tuple(text for (text,) in numbering.texts)
    return Factor(symbols, keys, indicator, indicator)


def _level_factor(paths: RowPaths, level: int, place: int | None) -> Factor:
    """Scores by slot of a level, for one of its columns (`place`) or for its crossed symbols
    (None).
    """
    channel = paths.channel
    variable = channel.levels[level]
    if place is None:
        texts = list(variable.names)
    else:
        texts = [symbol[place] for symbol in variable.symbols]
    symbols = tuple(dict.fromkeys(texts))
    # c(x) of each symbol: a column for each text, a row for each symbol of the level.
    indicator = np.zeros((len(texts), len(symbols)))
    for x, text in enumerate(texts):
        indicator[x, symbols.index(text)] = 1.0

    table = channel.tree.levels[level]
    # Between 0 and 1 wherever nothing better is computed: at constant nodes, which release nothing
    # of the record, and at nodes that come after the last program.
    lower = np.zeros((len(table.slot_nodes), len(symbols)))
    upper = np.ones((len(table.slot_nodes), len(symbols)))
    nodes, counts = np.unique(paths.nodes[level], return_counts=True)
    programs = 0
    # Nodes of many records first, for the number of programs is limited.
    for node in nodes[np.argsort(-counts)].tolist():
        if table.constant[node]:
            continue
        matrix, inputs, first = _node_matrix(table, node)
        targets = indicator[inputs]
        scores, identified = _scores(matrix, targets)
        slots = slice(first, first + matrix.shape[1])
        lower[slots, identified] = scores[:, identified]
        upper[slots, identified] = scores[:, identified]
        for text in np.flatnonzero(~identified).tolist():
            if programs < MOST_PROGRAMS:
                # One for either end.
                programs += 2
                low, high = _enclosing(matrix, targets[:, text])
                lower[slots, text] = low
                upper[slots, text] = high
    return Factor(symbols, paths.slots[level], lower, upper)


def _node_matrix(table: LevelTable, node: int) -> tuple[Array, Integers, int]:
    """W (inputs x outputs) of a node, its inputs, and its first slot."""
    # Pairs and slots are numbered node by node, so those of one node are consecutive.
    first_pair, end_pair = np.searchsorted(table.pair_nodes, [node, node + 1])
    first_slot, end_slot = np.searchsorted(table.slot_nodes, [node, node + 1])
    inputs = table.pair_inputs[first_pair:end_pair]
    pairs = np.arange(first_pair, end_pair)
    owner, places = table.expanded(pairs)
    matrix = np.zeros((len(pairs), end_slot - first_slot))
    shares = table.rows.values[places].astype(np.float64) / DENOMINATOR
    matrix[owner, table.rows.indices[places] - first_slot] = shares
    return matrix, inputs, int(first_slot)


def _scores(matrix: Array, targets: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Weights b with W b = c for every target c of least norm, and for which targets they exist.

    Parameters
    ----------
    matrix : (inputs, outputs) array
    targets : (inputs, symbols) array
    """
    # Of all solutions the one of least norm has the least mean square for uniform outputs.
    weights: Array = np.asarray(
        np.linalg.lstsq(matrix, targets, rcond=None)[0], np.float64
    )
    residual = np.abs(matrix @ weights - targets).max(axis=0, initial=0.0)
    return weights, residual <= RESIDUAL


def _enclosing(matrix: Array, target: Array) -> tuple[Array, Array]:
    """Weights l and h with W l <= c <= W h that are close to c on average over the inputs of the
    node.

    As c lies in [0, 1], the constants 0 and 1 are feasible: they stand in where a program fails.
    """
    from scipy.optimize import linprog

    outputs = matrix.shape[1]
    # The mean of W l over the inputs is linear in l: the largest below c, the smallest above it.
    mean = matrix.mean(axis=0)
    bounds = (-LARGEST_SCORE, LARGEST_SCORE)
    below = linprog(-mean, A_ub=matrix, b_ub=target, bounds=bounds)
    above = linprog(mean, A_ub=-matrix, b_ub=-target, bounds=bounds)
    low = np.zeros(outputs)
    high = np.ones(outputs)
    if below.status == 0:
        # The solver misses its constraints by rounding: that is taken off again.
        excess = max(0.0, float((matrix @ below.x - target).max()))
        low = below.x - excess
    if above.status == 0:
        shortfall = max(0.0, float((target - matrix @ above.x).max()))
        high = above.x + shortfall
    return low, high


def _combined(
    names: tuple[str, ...], factors: Sequence[Factor], records: int, level: float
) -> RowFrequencies:
    """Products of the scores of all columns, averaged over the records."""
    # Records with the same keys have the same scores, which are computed once.
    stacked = np.stack([factor.keys for factor in factors], axis=1)
    keys, counts = np.unique(stacked, axis=0, return_counts=True)
    symbols = list(product(*(factor.symbols for factor in factors)))
    if len(keys) * len(symbols) > MOST_CELLS:
        raise InputError(
            f"{listed([quoted(name) for name in names])} have too many combinations to "
            "estimate together: ask for fewer columns"
        )
    # (keys, combinations of symbols), beginning with the empty product.
    lower = np.ones((len(keys), 1))
    upper = np.ones((len(keys), 1))
    for k, factor in enumerate(factors):
        low = factor.lower[keys[:, k]]
        high = factor.upper[keys[:, k]]
        lower, upper = _products(lower, upper, low, high)
    weights = counts / records
    low_mean = weights @ lower
    high_mean = weights @ upper
    spread = NormalDist().inv_cdf(0.5 + level / 2)
    low_error = _standard_error(lower, low_mean, weights, records)
    high_error = _standard_error(upper, high_mean, weights, records)
    middle = (low_mean + high_mean) / 2
    # Half of what one record can change, as in the continuity correction for a binomial count.
    step = (upper.max(axis=0) - lower.min(axis=0)) / (2 * records)
    low_end = np.clip(low_mean - spread * low_error - step, 0.0, 1.0)
    high_end = np.clip(high_mean + spread * high_error + step, 0.0, 1.0)
    # Exact scores have equal ends, so any width comes from symbols that are not told apart.
    ambiguous = (upper - lower).max(axis=1) > 0.0
    return RowFrequencies(
        columns=names,
        symbols=tuple(symbols),
        estimates=np.clip(middle, low_end, high_end),
        standard_errors=np.maximum(low_error, high_error),
        lower=low_end,
        upper=high_end,
        unbiased=middle,
        records=records,
        level=level,
        unresolved=np.maximum(high_mean - low_mean, 0.0),
        unidentified=float(weights[ambiguous].sum()),
    )


def _products(
    low: Array, high: Array, other_low: Array, other_high: Array
) -> tuple[Array, Array]:
    """Bounds of products of intervals, symbol by symbol: (keys, symbols) and (keys, others) to
    (keys, both).
    """
    # The product of two intervals has its ends at products of theirs, whatever the signs.
    corners: list[Array] = []
    for left in (low, high):
        for right in (other_low, other_high):
            products = left[:, :, None] * right[:, None, :]
            corners.append(products.reshape(len(left), -1))
    stacked = np.stack(corners)
    return stacked.min(axis=0), stacked.max(axis=0)


def _standard_error(scores: Array, means: Array, weights: Array, records: int) -> Array:
    """Of the mean of the scores of independent records."""
    # One record less makes the variance of the sample unbiased; a single record has none.
    variance = weights @ (scores - means) ** 2
    return np.asarray(np.sqrt(variance / max(records - 1, 1)), dtype=np.float64)
