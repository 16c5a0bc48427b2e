"""The model of a released column: the probability of each label given the symbol, and the prior.

`release_model` takes both from a channel W(y | x). A release of the outputs themselves has the
matrix W. In every other form a value v is published for the output y, with the probability Q(v | y)
(`by_output`), so the labels are these values and the matrix is W Q:

    P(v | x) = sum over y of W(y | x) Q(v | y).

For example, let W have the rows (0.8, 0.2) and (0.2, 0.8), and the two symbols be equally frequent.
Then the posteriors Q have the same rows, and draws from them the rows (0.68, 0.32) and (0.32,
0.68): they say less of the symbol than the labels do.

`prior_of` checks the prior P(x) that a user gives instead of the table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from mechdesign.channel.channel import Array, Channel
from mechdesign.channel.loading import require_without_boxes
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.release.released_values import (
    FORMS,
    LABEL,
    by_output,
    released_variable,
)
from mechdesign.tables.bins import Bins

SUM_TOLERANCE = 1e-6
"""Largest error of the sum of a user's prior, which is then normalised. As for tables of
probabilities: enough for figures rounded to six digits, too little for a forgotten symbol that
matters."""


@dataclass(frozen=True)
class ReleaseModel:
    """The matrix P(label | symbol) of a released column, (symbols, labels), and what goes with it.

    `prior` has the table's frequencies of the symbols; None for a public channel. `bins` are those
    of a column whose released values are numbers inside of bins.
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    matrix: Array
    prior: Array | None
    bins: Bins | None = None

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of every symbol."""
        return {name: x for x, name in enumerate(self.symbols)}

    @cached_property
    def reference(self) -> Array:
        """P(label) under the table's frequencies, or uniform ones without a table; positive."""
        # They choose among unbiased weights (`linear.coefficients`). Any positive masses do; the
        # variance is least with the true ones.
        prior = self.prior
        if prior is None:
            size = len(self.symbols)
            prior = np.full(size, 1.0 / size)
        masses: Array = prior @ self.matrix
        return masses


def release_model(channel: Channel, form: str = "label") -> ReleaseModel:
    """The model of a column released by `channel`."""
    require_without_boxes(
        "channel", channel, "; the channel comes first, then what was released"
    )
    if form not in FORMS:
        raise InputError(
            f"the form of the release ({quoted(form)}) must be one of {listed(FORMS)}"
        )
    # A public channel has no joint distribution of its table.
    prior: Array | None = None
    if channel.joint is not None:
        prior = channel.joint.p_x
    matrix = channel.matrix
    if form != LABEL:
        matrix = matrix @ by_output(channel, form)
    released = released_variable(channel, form)
    bins: Bins | None = None
    if len(released.bins) == 1:
        bins = released.bins[0]
    return ReleaseModel(channel.useful.names, released.names, matrix, prior, bins)


def prior_of(model: ReleaseModel, prior: Any, purpose: str) -> Array:
    """P(x) as an array: the user's, or else that of the channel's table.

    `purpose` is named in the error about a missing prior.
    """
    if prior is None:
        if model.prior is None:
            raise InputError(
                f"{purpose} needs the frequencies of the symbols, which a public channel "
                "does not carry; give them (prior=...), for instance estimated ones"
            )
        return model.prior
    if isinstance(prior, Mapping):
        # A misspelt symbol would get no mass, and an absent one may have been forgotten.
        by_symbol = cast("Mapping[str, Any]", prior)
        unknown = [str(name) for name in by_symbol if name not in model.position]
        if unknown:
            raise InputError(
                f"the prior names {listed(unknown)}, which the channel does not know"
            )
        absent = [name for name in model.symbols if name not in by_symbol]
        if absent:
            raise InputError(
                f"the prior has no entry for {listed(absent)}; give 0 for symbols that do not occur"
            )
        prior = [by_symbol[name] for name in model.symbols]
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the prior must be numbers, one for each symbol") from None
    if values.shape != (len(model.symbols),):
        raise InputError(
            f"the prior must have one entry for each of the {len(model.symbols)} symbols"
        )
    is_possible = np.isfinite(values).all() and (values >= 0.0).all()
    if not is_possible or abs(values.sum() - 1.0) > SUM_TOLERANCE:
        raise InputError(
            "the prior must be probabilities that sum to 1; unbiased estimates can be negative: "
            "use those of method='ml'"
        )
    # Within the tolerance the sum is off by rounded figures alone.
    return values / values.sum()
