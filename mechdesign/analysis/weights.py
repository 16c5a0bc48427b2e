"""Weights of symbols for released labels: posterior probabilities and unbiased weights.

A released record has a label y in the place of its symbol x, and a weighted analysis gives it a
weight for every symbol. There are two kinds (`record_weights`). *Posterior* weights are P(x | y),
by Bayes' rule (`posterior_table`). *Unbiased* weights b(y, x) have the indicator of X as their
expectation: with the channel W(y | x'), the sum over y of W(y | x') b(y, x) is 1 if x = x', else 0.
For example, a channel that keeps either of two symbols with probability 3/4 has b = 3/2 for the
symbol of the label and -1/2 for the other: 3/4 * 3/2 - 1/4 * 1/2 = 1, and -3/4 * 1/2 + 1/4 * 3/2 =
0.

`expand_records` writes the weights out, one row for each record and symbol. Two records with the
labels a and b become

    record    symbol    weight
         0    a            3/2
         0    b           -1/2
         1    a           -1/2
         1    b            3/2

Unbiased weights suit whatever is linear in the indicators of X, such as the normal equations of a
regression (`regression`). Posterior weights suit guesses about single records.

*Cells of a released row* have the posteriors P(x_j | y). With the law of the table as the prior,
Bayes' rule over the rows x of the table gives

    P(x | y) = P(x) W(y | x) / sum over x' of P(x') W(y | x'),

and the probability of a cell is the sum over the rows that have it. For example, of a table with
the rows (nurse, 30) and (clerk, 50), equally many, the released row (nurse, 30) comes from the
first with W = 0.9 and from the second with W = 0.3: the true job is nurse with 0.75, and the true
age is 30 with 0.75 as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from mechdesign.analysis.estimator import Estimator
from mechdesign.analysis.model import (
    Codes,
    ReleaseModel,
    label_codes,
    prior_of,
    release_model,
)
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encoded_columns
from mechdesign.tables.columns import positions_of
from mechdesign.tables.variable import Variable

Kind = Literal["unbiased", "posterior"]


@dataclass(frozen=True)
class PosteriorTable:
    """P(x | label): one row a label, one column a symbol, rows sum to 1.

    A label that no symbol of positive prior gives has a row of NaN.
    """

    labels: tuple[str, ...]
    symbols: tuple[str, ...]
    matrix: Array

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Label to the symbols that can have caused it, with their probabilities."""
        table: dict[str, dict[str, float]] = {}
        for label, row in zip(self.labels, self.matrix.tolist(), strict=True):
            chances = zip(self.symbols, row, strict=True)
            # NaN differs from 0 and stays: a label without posterior is not an empty entry.
            table[label] = {x: p for x, p in chances if p != 0.0}
        return table


def posterior_table(
    channel: Channel, prior: Any = None, *, form: str = "label"
) -> PosteriorTable:
    """P(x | label) for every label.

    Parameters
    ----------
    channel : Channel
    prior : mapping of symbol to probability, or |X| probabilities, optional
        P(x) among the records of interest, for instance estimated by maximum likelihood; that of
        the channel's table by default.
    form : 'label', 'posterior-draw', 'representative' or 'within'

    Raises
    ------
    InputError
        If there is no prior (a public channel), or it is not one.
    """
    model = release_model(channel, form)
    return PosteriorTable(model.labels, model.symbols, _posteriors(model, prior))


def _posteriors(model: ReleaseModel, prior: Any) -> Array:
    """P(x | label) by Bayes' rule, (labels, |X|); NaN for labels without mass."""
    joint = prior_of(model, prior, "the posterior table")[:, None] * model.matrix
    # A label that the prior excludes gives 0 / 0, so NaN: any number would look like a posterior.
    masses = joint.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares: Array = np.where(masses > 0.0, joint / masses, np.nan)
    return np.ascontiguousarray(shares.T)


def record_weights(
    channel: Channel, *, kind: Kind = "unbiased", prior: Any = None, form: str = "label"
) -> Array:
    """(labels, |X|) weights that a record with this label gives each symbol; rows sum to 1.

    'posterior' weights are P(x|y). They suit inference about single records (the best guess of a
    symbol), but a regression on X weighted by them is attenuated, as with any misclassified
    regressor.

    'unbiased' weights b have ``E[b(Y, x) | X = x'] = 1 if x = x' else 0``. So every sum over
    records that is linear in the indicators of X, such as the normal equations of a regression, has
    the same expectation as with X itself, given X and all kept columns. They need no prior, but can
    be negative and magnify noise.

    Parameters
    ----------
    channel : Channel
    kind : 'unbiased' or 'posterior'
    prior : optional
        For 'posterior', as in `posterior_table`.
    form : 'label', 'posterior-draw', 'representative' or 'within'

    Raises
    ------
    InputError
        For 'unbiased' if the channel does not identify every symbol, for 'posterior' if there is no
        prior.
    """
    model = release_model(channel, form)
    if kind == "posterior":
        return _posteriors(model, prior)
    if kind != "unbiased":
        raise InputError(
            f"the kind of weights ({quoted(kind)}) must be unbiased or posterior"
        )
    if prior is not None:
        raise InputError("unbiased weights take no prior: they hold for every one")
    # Refused rather than joined into groups: the columns of the result are the channel's symbols.
    return Estimator.of(model, unidentified="refuse").weights


@dataclass(frozen=True)
class ExpandedRecords:
    """Released records, with one row for every symbol that has a weight, for weighted analyses.

    Parameters
    ----------
    record : (rows,) array
        Position of the released record, ascending.
    symbol : (rows,) array
        Position in `symbols`.
    weight : (rows,) array
        The weights of one record sum to 1.
    symbols : tuple of str
    kind : 'unbiased' or 'posterior'
    """

    record: Codes
    symbol: Codes
    weight: Array
    symbols: tuple[str, ...]
    kind: str

    def __len__(self) -> int:
        return len(self.record)


def expand_records(
    channel: Channel,
    released: Any,
    *,
    kind: Kind = "unbiased",
    prior: Any = None,
    form: str = "label",
) -> ExpandedRecords:
    """One row for every released record and symbol of X with a weight other than 0.

    Parameters
    ----------
    channel : Channel
    released : column of labels
    kind, prior, form
        As in `record_weights`.

    Raises
    ------
    InputError
        As `record_weights`; on labels that are not the channel's.
    """
    from scipy.sparse import csr_array

    model = release_model(channel, form)
    table = record_weights(channel, kind=kind, prior=prior, form=form)
    codes = label_codes(model.labels, released, bins=model.bins)
    # Only the labels that occur need weights.
    if not np.isfinite(table[np.unique(codes)]).all():
        raise InputError(
            "the data hold a label that no symbol of positive prior gives: the prior "
            "does not fit them"
        )
    # Sparse, for most labels have few symbols behind them. Labels without mass do not occur.
    expanded = csr_array(np.nan_to_num(table))[codes].tocoo()
    record, symbol = (part.astype(np.int64) for part in expanded.coords)
    return ExpandedRecords(record, symbol, expanded.data, model.symbols, kind)


# ----------------------------------------------------------------------- cells of a row


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
