"""Posterior probabilities of the true cells of a released row: P(x_j | y).

With the law of the table as the prior, Bayes' rule over the rows x of the table gives

    P(x | y) = P(x) W(y | x) / sum over x' of P(x') W(y | x'),

and the probability of a cell is the sum over the rows that have it. For example, of a table with
the rows (nurse, 30) and (clerk, 50), equally many, the released row (nurse, 30) comes from the
first with W = 0.9 and from the second with W = 0.3: the true job is nurse with 0.75, and the true
age is 30 with 0.75 as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encoded_columns
from mechdesign.tables.columns import positions_of
from mechdesign.tables.variable import Variable

Array = NDArray[np.float64]


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


def row_posteriors(channel: Channel, released: Any) -> dict[str, CellPosteriors]:
    """The probabilities of the true cells of released records, for every released column.

    The prior is the table of the channel, so this is for those who may see that table.

    Parameters
    ----------
    channel : Channel
        One that releases rows, with its table.
    released : pandas, polars or pyarrow table
        The release, with all columns of the channel.

    Returns
    -------
    dict of str to CellPosteriors
        One entry for each column that is not given.

    Raises
    ------
    InputError
        If the channel is public or releases no rows, a released column is missing, or the channel
        cannot have released a record.
    """
    joint = channel.joint
    if joint is None:
        raise InputError(
            "a public channel has no table, which is the prior of the posterior probabilities; "
            "load the channel file that was designed without --public"
        )
    if channel.published is None:
        raise InputError(
            "row_posteriors is for channels that release rows (--release); posterior_table is for "
            "labels"
        )
    variable = Variable(channel.output_columns, channel.output_cells)
    outputs = positions_of(encoded_columns(released, variable.columns), variable)
    unknown = np.flatnonzero(outputs < 0)
    if unknown.size:
        raise InputError(
            f"record {unknown[0] + 1} of the released table cannot come from this channel; "
            "`mechdesign check` lists such records"
        )
    integers = channel.integers
    masses = joint.p_x[integers.row_of] * channel.shares
    of_output = np.bincount(integers.indices, masses, len(channel.outputs))
    shares = masses / of_output[integers.indices]
    posteriors: dict[str, CellPosteriors] = {}
    for place, name in enumerate(channel.useful.columns):
        if name in channel.given:
            continue
        texts = sorted({symbol[place] for symbol in channel.useful.symbols})
        code_of = dict(zip(texts, range(len(texts)), strict=True))
        codes = np.array([code_of[symbol[place]] for symbol in channel.useful.symbols])
        # One line for each output, and a column for each symbol.
        numbers = integers.indices * len(texts) + codes[integers.row_of]
        size = len(channel.outputs) * len(texts)
        matrix: Array = np.bincount(numbers, shares, size).astype(np.float64)
        matrix = matrix.reshape(len(channel.outputs), len(texts))
        posteriors[name] = CellPosteriors(tuple(texts), matrix[outputs])
    return posteriors
