"""What an analyst knows of a released column: its labels, and the chance of each given the symbol behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel import Channel
from mechdesign.errors import InputError
from mechdesign.exact import listed, quoted

Array = NDArray[np.float64]

Form = Literal["label", "posterior-draw"]
FORMS = ("label", "posterior-draw")

SUM_TOLERANCE = 1e-6
"""How far a prior given by the user may be from summing to 1; it is normalised. The same as for tables of
probabilities: enough for figures rounded to six digits, too little for a forgotten symbol that matters."""


@dataclass(frozen=True)
class ReleaseModel:
    """The matrix that turned the symbols into what is in the released column.

    Parameters
    ----------
    symbols : tuple of str
        Names of the |X| symbols of the useful column.
    labels : tuple of str
        What the released column can hold.
    matrix : (|X|, labels) array
        P(label | x); rows sum to 1.
    prior : (|X|,) array or None
        P(x) of the channel's own table; None where the channel carries none (a public one).
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    matrix: Array
    prior: Array | None

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of every symbol."""
        return {name: x for x, name in enumerate(self.symbols)}

    @cached_property
    def reference(self) -> Array:
        """P(label) if the symbols had the table's frequencies, or all the same where there is no table; positive."""
        size = len(self.symbols)
        prior = np.full(size, 1.0 / size) if self.prior is None else self.prior
        masses: Array = prior @ self.matrix
        return masses


def release_model(channel: Channel, form: str = "label") -> ReleaseModel:
    """The model of a column released by `channel`.

    Parameters
    ----------
    channel : Channel
    form : 'label' or 'posterior-draw'
        Whether the column has the output labels, or symbols of X drawn from the posterior of the output
        (which needs the channel's table).

    Raises
    ------
    InputError
        On another form, or posterior draws of a channel without table.
    """
    if form not in FORMS:
        raise InputError(f"the form of the release ({quoted(form)}) must be label or posterior-draw")
    prior = None if channel.joint is None else channel.joint.p_x
    names = channel.useful.names
    if form == "label":
        return ReleaseModel(names, channel.outputs, channel.matrix, prior)
    if channel.joint is None:
        raise InputError(
            "posterior draws need the channel's table, which a public channel does not carry; use the internal file"
        )
    return ReleaseModel(names, names, channel.matrix @ channel.posteriors, prior)


def prior_of(model: ReleaseModel, prior: Any, what: str) -> Array:
    """P(x) as an array: what the user gives, else that of the channel's table.

    Parameters
    ----------
    prior : None, mapping of symbol to probability, or sequence of |X| probabilities
    what : str
        What it is needed for, for the message.

    Raises
    ------
    InputError
        If there is none, a symbol is unknown or missing, or the numbers are no probabilities.
    """
    if prior is None:
        if model.prior is None:
            raise InputError(
                f"{what} needs the frequencies of the symbols, which a public channel does not carry; "
                "give them (prior=...), for instance estimated ones"
            )
        return model.prior
    if isinstance(prior, Mapping):
        given = cast("Mapping[str, Any]", prior)
        unknown = [str(name) for name in given if name not in model.position]
        if unknown:
            raise InputError(f"the prior names {listed(unknown)}, which the channel does not know")
        absent = [name for name in model.symbols if name not in given]
        if absent:
            raise InputError(
                f"the prior has no entry for {listed(absent)}; give 0 for symbols that do not occur"
            )
        prior = [given[name] for name in model.symbols]
    values = _numbers(prior)
    if values.shape != (len(model.symbols),):
        raise InputError(f"the prior must have one entry for each of the {len(model.symbols)} symbols")
    if not np.isfinite(values).all() or (values < 0.0).any() or abs(values.sum() - 1.0) > SUM_TOLERANCE:
        raise InputError(
            "the prior must be probabilities that sum to 1; unbiased estimates can be negative: "
            "use those of method='ml'"
        )
    return values / values.sum()


def _numbers(values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the prior must be numbers, one for each symbol") from None
