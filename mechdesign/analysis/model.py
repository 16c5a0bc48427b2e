"""What an estimate starts from: the channel as seen by an analyst, counts of its labels, and what
is asked for.

The model holds the chance of each label given the symbol behind it; released columns, or counts of
them, become arrays of counts; single symbols, groups of them, or any linear functional of P_X can
be asked for.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.linear import (
    Identification,
    coefficients,
    group_name,
    identify,
)
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import encode
from mechdesign.release.released_values import (
    FORMS,
    LABEL,
    by_output,
    released_variable,
)
from mechdesign.tables.bins import Bins

SUM_TOLERANCE = 1e-6
"""How far a prior given by the user may be from summing to 1; it is normalised. The same as for
tables of probabilities: enough for figures rounded to six digits, too little for a forgotten symbol
that matters.
"""


@dataclass(frozen=True)
class ReleaseModel:
    """The matrix that turned the symbols into what is in the released column."""

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
        """P(label) if the symbols had the table's frequencies, or all the same where there is no
        table; positive.
        """
        size = len(self.symbols)
        prior = np.full(size, 1.0 / size) if self.prior is None else self.prior
        masses: Array = prior @ self.matrix
        return masses


def release_model(channel: Channel, form: str = "label") -> ReleaseModel:
    """The model of a column released by `channel`."""
    require_type(
        "channel", channel, Channel, "; the channel comes first, then what was released"
    )
    if form not in FORMS:
        raise InputError(
            f"the form of the release ({quoted(form)}) must be one of {listed(FORMS)}"
        )
    prior = None if channel.joint is None else channel.joint.p_x
    matrix = (
        channel.matrix if form == LABEL else channel.matrix @ by_output(channel, form)
    )
    released = released_variable(channel, form)
    bins = released.bins[0] if len(released.bins) == 1 else None
    return ReleaseModel(channel.useful.names, released.names, matrix, prior, bins)


def prior_of(model: ReleaseModel, prior: Any, what: str) -> Array:
    """P(x) as an array: what the user gives, else that of the channel's table."""
    if prior is None:
        if model.prior is None:
            raise InputError(
                f"{what} needs the frequencies of the symbols, which a public channel "
                "does not carry; give them (prior=...), for instance estimated ones"
            )
        return model.prior
    if isinstance(prior, Mapping):
        given = cast("Mapping[str, Any]", prior)
        unknown = [str(name) for name in given if name not in model.position]
        if unknown:
            raise InputError(
                f"the prior names {listed(unknown)}, which the channel does not know"
            )
        absent = [name for name in model.symbols if name not in given]
        if absent:
            raise InputError(
                f"the prior has no entry for {listed(absent)}; give 0 for symbols that do not occur"
            )
        prior = [given[name] for name in model.symbols]
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the prior must be numbers, one for each symbol") from None
    if values.shape != (len(model.symbols),):
        raise InputError(
            f"the prior must have one entry for each of the {len(model.symbols)} symbols"
        )
    if (
        not np.isfinite(values).all()
        or (values < 0.0).any()
        or abs(values.sum() - 1.0) > SUM_TOLERANCE
    ):
        raise InputError(
            "the prior must be probabilities that sum to 1; unbiased estimates can be negative: "
            "use those of method='ml'"
        )
    return values / values.sum()


Codes = NDArray[np.int64]

LARGEST_COUNT = 2**53
"""Counts above this would not be exact as doubles."""


def label_codes(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """Position in `labels` of every entry of a released column, or of its bin."""
    cells = encode(released, "released")
    cells = cells if bins is None else bins.sorted_in(cells)
    index = {label: y for y, label in enumerate(labels)}
    known = np.array(
        [index.get(text, -1) for text in cells.texts] + [-1], dtype=np.int64
    )
    codes = known[cells.codes]
    if codes.size and codes.min() < 0:
        at = int(np.argmax(codes < 0))
        code = int(cells.codes[at])
        if code < 0:
            raise InputError(
                f"entry {at} of the released column is missing; a channel never releases that"
            )
        said = f"the channel has no output {quoted(cells.texts[code])}"
        raise InputError(f"entry {at} of the released column: {said}")
    return codes


def label_counts(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """How often each label occurs."""
    times: list[int] | None = None
    if isinstance(released, Mapping):
        times = [_whole(label, value) for label, value in released.items()]
        released = [str(label) for label in released]
        bins = None
    return np.bincount(label_codes(labels, released, bins), times, len(labels)).astype(
        np.int64
    )


def _whole(label: object, value: Any) -> int:
    try:
        number = int(value)
        whole = number == value
    except (TypeError, ValueError, OverflowError):
        number = 0
        whole = False
    if not whole or not 0 <= number <= LARGEST_COUNT:
        raise InputError(
            f"the count of {quoted(label)} ({quoted(value)}) must be a whole number of records"
        )
    return number


def crossed_counts(
    labels: Sequence[str], released: Any, kept: Any = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """How often each label occurs together with each value of another column."""
    times: list[int] | None = None
    if isinstance(released, Mapping):
        if kept is not None:
            raise InputError("counts of (label, value) take no second column")
        if not all(isinstance(key, tuple) and len(key) == 2 for key in released):
            raise InputError(
                "joint counts must be a mapping of (label, value) to count"
            )
        times = [_whole(label, number) for (label, _), number in released.items()]
        kept = [str(value) for _, value in released]
        released = [str(label) for label, _ in released]
    codes = label_codes(labels, released)
    cells = encode(kept, "kept")
    texts = [*cells.texts, ""]
    values = tuple(sorted({texts[code] for code in np.unique(cells.codes).tolist()}))
    index = {text: z for z, text in enumerate(values)}
    others = np.array([index.get(text, 0) for text in texts], dtype=np.int64)[
        cells.codes
    ]
    if len(codes) != len(others):
        raise InputError(
            f"the two columns have {len(codes)} and {len(others)} records; they must be of one file"
        )
    flat = np.bincount(codes * len(values) + others, times, len(labels) * len(values))
    return flat.reshape(len(labels), len(values)).astype(np.int64), values


@dataclass(frozen=True)
class Cells:
    """The functionals ``sum_x P(x) c(x)`` to estimate."""

    names: tuple[str, ...]
    functionals: Array
    disjoint: bool
    notices: tuple[str, ...] = ()

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value that each can have."""
        return self.functionals.min(axis=0), self.functionals.max(axis=0)


def choose_cells(
    model: ReleaseModel, known: Identification, wanted: Any, unidentified: str
) -> Cells:
    """What to estimate."""
    if unidentified not in ("groups", "refuse"):
        raise InputError(
            f"unidentified ({quoted(unidentified)}) must be groups or refuse"
        )
    if wanted is not None:
        return _asked(model, known, wanted)
    size = len(model.symbols)
    if known.identified:
        return Cells(model.symbols, np.eye(size), disjoint=True)
    if unidentified == "refuse":
        raise InputError(
            f"{known.statement()}; ask for these sums (unidentified='groups') or for "
            "functionals that are identified"
        )
    functionals = np.zeros((size, len(known.groups)))
    for k, group in enumerate(known.groups):
        functionals[list(group), k] = 1.0
    names = tuple(_own_name(group, model) for group in known.group_names)
    return Cells(names, functionals, disjoint=True, notices=(known.statement(),))


def _asked(model: ReleaseModel, known: Identification, wanted: Any) -> Cells:
    if not isinstance(wanted, Mapping) or not wanted:
        raise InputError(
            "the functionals must be a mapping of name to symbol, symbols or coefficients"
        )
    asked = cast("Mapping[Any, Any]", wanted)
    names = tuple(str(name) for name in asked)
    functionals = np.column_stack(
        [_functional(model, name, what) for name, what in asked.items()]
    )
    is_seen = known.identifies(functionals)
    hidden = [name for name, seen in zip(names, is_seen, strict=True) if not seen]
    if hidden:
        raise InputError(f"{listed(hidden)} cannot be estimated: {known.statement()}")
    zero_or_one = bool(np.isin(functionals, (0.0, 1.0)).all())
    disjoint = zero_or_one and bool((functionals.sum(axis=1) <= 1.0).all())
    return Cells(names, functionals, disjoint)


def _functional(model: ReleaseModel, name: Any, what: Any) -> Array:
    parts: dict[Any, Any]
    if isinstance(what, str):
        parts = {what: 1.0}
    elif isinstance(what, Mapping):
        parts = dict(cast("Mapping[Any, Any]", what))
    elif isinstance(what, (list, tuple, set, frozenset)):
        parts = dict.fromkeys(cast("Sequence[Any]", what), 1.0)
    else:
        raise InputError(
            f"the functional {quoted(name)} must be a symbol, symbols or coefficients, "
            f"not {quoted(what)}"
        )
    c = np.zeros(len(model.symbols))
    for symbol, value in parts.items():
        if symbol not in model.position:
            raise InputError(
                f"the functional {quoted(name)} names {quoted(symbol)}, which the "
                "channel does not know"
            )
        try:
            c[model.position[symbol]] = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the coefficient of {quoted(symbol)} in {quoted(name)} must be a number"
            ) from None
    if not np.isfinite(c).all() or not c.any():
        raise InputError(
            f"the functional {quoted(name)} must have finite coefficients, not all zero"
        )
    return c


def _own_name(group: Sequence[str], model: ReleaseModel) -> str:
    """A name that no symbol has, for a group of several."""
    name = group_name(group)
    while len(group) > 1 and name in model.position:
        name += "+"
    return name


@dataclass(frozen=True)
class Estimator:
    """Cells with the weights b(y) that estimate them: ``W b = c``."""

    model: ReleaseModel
    known: Identification
    cells: Cells

    @classmethod
    def of(
        cls, model: ReleaseModel, wanted: Any = None, unidentified: str = "groups"
    ) -> Estimator:
        """Choose the cells; raises as `choose_cells`."""
        known = identify(model.symbols, model.matrix)
        return cls(model, known, choose_cells(model, known, wanted, unidentified))

    def weights_for(self, functionals: Array) -> Array:
        """(labels, m) array b for other functionals of the same release."""
        model = self.model
        return coefficients(model.matrix, functionals, model.reference, self.known.rank)

    @cached_property
    def weights(self) -> Array:
        """(labels, m) array b for the cells."""
        return self.weights_for(self.cells.functionals)

    @cached_property
    def outer(self) -> Array:
        """(|X|, m * m) products of every two cells."""
        c = self.cells.functionals
        return (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)

    def products(self, frequencies: Array, estimate: Array) -> tuple[Array, bool]:
        """Estimate of ``sum_x P(x) c_i(x) c_j(x)``, and whether it is unbiased for all i and j.

        Where a product is not identified the smallest value that it can have (Cauchy and Schwarz)
        stands on the diagonal, which makes variances too large rather than too small.
        """
        c = self.cells.functionals
        if self.cells.disjoint:
            return np.diag(estimate), True
        seen = self.known.identifies(self.outer)
        values = self.weights_for(self.outer).T @ frequencies
        values = np.where(seen, values, np.outer(estimate, estimate).ravel())
        return values.reshape(c.shape[1], c.shape[1]), bool(seen.all())
