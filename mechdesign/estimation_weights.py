"""What a released label says of the symbol behind it: posterior probabilities, and weights for weighted analyses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel import Channel
from mechdesign.errors import InputError
from mechdesign.estimation_cells import Estimator
from mechdesign.estimation_counts import label_codes
from mechdesign.estimation_model import ReleaseModel, prior_of, release_model
from mechdesign.exact import quoted

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

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
        return {
            label: {x: p for x, p in zip(self.symbols, row, strict=True) if p != 0.0}
            for label, row in zip(self.labels, self.matrix.tolist(), strict=True)
        }


@dataclass(frozen=True)
class ExpandedRecords:
    """Released records with one row for every symbol that has a weight: ready for a weighted analysis.

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


def posterior_table(channel: Channel, prior: Any = None, *, form: str = "label") -> PosteriorTable:
    """P(x | label) for every label.

    Parameters
    ----------
    channel : Channel
    prior : mapping of symbol to probability, or |X| probabilities, optional
        P(x) among the records of interest, for instance estimated by maximum likelihood; that of the channel's
        table by default.
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        If there is no prior (a public channel), or it is not one.
    """
    model = release_model(channel, form)
    return PosteriorTable(model.labels, model.symbols, _posteriors(model, prior))


def _posteriors(model: ReleaseModel, prior: Any) -> Array:
    joint = prior_of(model, prior, "the posterior table")[:, None] * model.matrix
    masses = joint.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares: Array = np.where(masses > 0.0, joint / masses, np.nan)
    return np.ascontiguousarray(shares.T)


def record_weights(
    channel: Channel, *, kind: Kind = "unbiased", prior: Any = None, form: str = "label"
) -> Array:
    """(labels, |X|) array: the weight that a record with this label gives each symbol; rows sum to 1.

    'posterior' weights are P(x|y). They are right for what Y says of X (the best guess of a record's symbol), but a
    regression on X weighted by them is attenuated, as with any misclassified regressor.

    'unbiased' weights b have ``E[b(Y, x) | X = x'] = 1 if x = x' else 0``: every sum over records that is linear in
    the indicators of X, such as the normal equations of a regression, has the same expectation as with X itself,
    given X and all kept columns. They can be negative, and magnify noise; they need no prior.

    Parameters
    ----------
    channel : Channel
    kind : 'unbiased' or 'posterior'
    prior : optional
        For 'posterior', as in `posterior_table`.
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        For 'unbiased' if the channel does not identify every symbol, for 'posterior' if there is no prior.
    """
    model = release_model(channel, form)
    if kind == "posterior":
        return _posteriors(model, prior)
    if kind != "unbiased":
        raise InputError(f"the kind of weights ({quoted(kind)}) must be unbiased or posterior")
    if prior is not None:
        raise InputError("unbiased weights take no prior: they hold for every one")
    return Estimator.of(model, unidentified="refuse").weights


def expand_records(
    channel: Channel, released: Any, *, kind: Kind = "unbiased", prior: Any = None, form: str = "label"
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
    model = release_model(channel, form)
    table = record_weights(channel, kind=kind, prior=prior, form=form)
    codes = label_codes(model.labels, released)
    if not np.isfinite(table[np.unique(codes)]).all():
        raise InputError(
            "the data hold a label that no symbol of positive prior gives: the prior does not fit them"
        )
    at, symbol = np.nonzero(np.nan_to_num(table))
    sizes = np.bincount(at, minlength=len(table))
    starts = np.cumsum(sizes) - sizes
    lengths = sizes[codes]
    record = np.repeat(np.arange(len(codes), dtype=np.int64), lengths)
    within = np.arange(len(record)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    chosen = np.repeat(starts[codes], lengths) + within
    return ExpandedRecords(record, symbol[chosen], table[at, symbol][chosen], model.symbols, kind)
