"""Linear unbiased estimation from the channel alone: what is identified, weights, precision.

Let a released record with label y count as the number ``b(y)``. Then ``E b(Y) = sum_x P(x) c(x)``
for every P_X exactly if ``W b = c``. So released data identify ``sum_x P(x) c(x)`` if and only if c
lies in the column space of W.

`identify` finds the rank of W and the groups of symbols whose sums are identified; `coefficients`
solves ``W b = c``; `covariance_of` is the precision of the estimates. If W has the rows (0.8, 0.2),
(0.5, 0.5) and again (0.5, 0.5), the rank is 2: the frequency of the first symbol and the sum of the
other two are identified.

*Estimators.* A cell is a functional to estimate, by the mean weight b(y) of the records.
`Estimator.of` chooses the cells (`choose_cells`) and finds out what the channel identifies; the
weights follow when they are asked for.

For example, W has the rows (0.8, 0.2) and (0.3, 0.7), and the cell is the first symbol, c = (1, 0).
Then b = (1.4, -0.6): 0.8 * 1.4 - 0.2 * 0.6 = 1 and 0.3 * 1.4 - 0.7 * 0.6 = 0. If half of the
records have the first label, the estimate is 0.5 * 1.4 - 0.5 * 0.6 = 0.4.

For the frequencies among the records themselves the variance of an estimate is (the mean of b(y)^2
minus sum_x P(x) c(x)^2) / N. `products` estimates that second sum, from the labels as well.

*Functionals.* A functional is sum_x P(x) c(x), one column c of a matrix with a row for each symbol.
With the symbols a, b and c the columns are, for instance:

    asked for                                      a     b     c
    {"a": "a"}, the frequency of a                 1     0     0
    {"b or c": ["b", "c"]}, their sum              0     1     1
    {"age": {"a": 20, "b": 30, "c": 50}}, a mean  20    30    50

`choose_cells` takes the user's functionals (`_users_cells`), and refuses those that are not
identified. Without any it takes every symbol; where single symbols are not identified, it joins
those that no label tells apart into groups.

*How much less than the true values released labels say* (`error_factor`). Of N records an estimate
has the variance Var b(Y) / N, and the share among the true values Var c(X) / N. The factor is the
square root of their quotient, the largest of all symbols, or of groups where the labels do not tell
symbols apart.

For example, a fair coin is told truly with the probability 0.75: b = (1.5, -0.5) for heads, and
Var b(Y) = 1 against Var c(X) = 1/4, so standard errors double.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.analysis.model import ReleaseModel
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Singular values of W below this share of the largest count as zero. Rows that are equal by design
differ after exact rounding by units of 2**-53; a functional that such differences alone identify
would take 10**18 records to estimate.
"""

MOST_SHOWN = 20
"""Most symbols of a group, and most groups of a statement, that are named."""

SUPPORT_TOLERANCE = 1e-6
"""Coefficients of one row of W in terms of others below this are zero: they are known to about
2**-53 / `RANK_TOLERANCE`."""


@dataclass(frozen=True)
class Identification:
    """Which linear functionals of P_X a release identifies.

    Attributes
    ----------
    symbols : tuple of str
    rank : int
        Rank of the channel W.
    groups : tuple of tuples of int
        A partition of the symbols; the sum of P_X over each group is identified.
    null : (|X| - rank, |X|) array
        Rows span the vectors u with ``u W = 0``.
    condition : float
        Quotient of the largest and the smallest singular value of W that is not zero.
    """

    symbols: tuple[str, ...]
    rank: int
    groups: tuple[tuple[int, ...], ...]
    null: Array
    condition: float

    @property
    def identified(self) -> bool:
        """Whether the frequency of every symbol can be estimated (W has full row rank)."""
        return self.rank == len(self.symbols)

    @property
    def group_names(self) -> tuple[tuple[str, ...], ...]:
        """The groups by the names of their symbols."""
        names: list[tuple[str, ...]] = []
        for group in self.groups:
            names.append(tuple(self.symbols[x] for x in group))
        return tuple(names)

    @property
    def indicators(self) -> Array:
        """(symbols, groups) array: the sum of P_X over each group as a functional."""
        sums = np.zeros((len(self.symbols), len(self.groups)))
        for k, group in enumerate(self.groups):
            sums[list(group), k] = 1.0
        return sums

    def identifies(self, coefficients: ArrayLike) -> NDArray[np.bool_]:
        """Whether ``sum_x P(x) coefficients[x]`` has an unbiased estimate, for each column.

        It has one if the coefficients are orthogonal to the left null space of W.
        """
        # Relative to the largest coefficient: a functional in other units is identified as well.
        c = np.asarray(coefficients, dtype=np.float64)
        scale = np.abs(c).max(axis=0)
        return (np.abs(self.null @ c) <= SUPPORT_TOLERANCE * scale).all(axis=0)

    def statement(self) -> str:
        """One sentence for people."""
        size = len(self.symbols)
        if self.identified:
            return (
                f"the frequencies of all {size} symbols can be estimated (the channel "
                f"has rank {size})"
            )
        joined = [group_name(group) for group in self.group_names if len(group) > 1]
        shown = "; ".join(joined[:MOST_SHOWN])
        more = ""
        if len(joined) > MOST_SHOWN:
            more = f" and {len(joined) - MOST_SHOWN} more such groups"
        return (
            f"the channel has rank {self.rank} for {size} symbols: released data "
            f"cannot tell apart the frequencies within {shown}{more}, only their sum"
        )


def errors_of_level(level: float) -> float:
    """So many standard errors does a normal interval of this level reach on each side."""
    # Of a level near 1 the share below the upper end is 1 in floating point; that below the lower
    # end is not 0.
    return -NormalDist().inv_cdf((1.0 - level) / 2.0)


def group_name(group: Sequence[str]) -> str:
    """The name of a symbol, or ``{a, b, +3 more}``."""
    if len(group) == 1:
        return group[0]
    more = ""
    if len(group) > MOST_SHOWN:
        more = f", +{len(group) - MOST_SHOWN} more"
    return "{" + ", ".join(group[:MOST_SHOWN]) + more + "}"


def identify(symbols: Sequence[str], matrix: Array) -> Identification:
    """Find the functionals that a channel identifies, by a singular value decomposition of W."""
    left, values, _ = np.linalg.svd(matrix)
    # The left singular vectors behind the rank span the null space.
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    null = np.ascontiguousarray(left[:, rank:].T)
    condition = float(values[0] / values[rank - 1])
    return Identification(tuple(symbols), rank, _groups(matrix, rank), null, condition)


def _groups(matrix: Array, rank: int) -> tuple[tuple[int, ...], ...]:
    """The finest partition along which the null space is a direct sum.

    Choose `rank` independent rows of W; every other row is a combination of some of them. Symbols
    are in one part exactly if such dependences connect them (the connected components of the
    matroid of the rows). Every null vector sums to 0, because rows of W sum to 1, and so does its
    restriction to a part, which is a null vector itself: hence the sum of P_X over a part is
    identified.
    """
    size = len(matrix)
    if rank == size:
        return tuple((x,) for x in range(size))
    # Without stubs: those of scipy describe every combination of the arguments at once.
    qr: Any = import_module("scipy.linalg").qr
    # Pivoting puts `rank` independent rows of W first; the rest of the triangle expresses the
    # other rows by them.
    factors: tuple[Array, NDArray[np.int64]] = qr(matrix.T, mode="r", pivoting=True)
    triangle, order = factors
    shares = np.linalg.solve(triangle[:rank, :rank], triangle[:rank, rank:])
    # An edge from each dependent row to the independent ones that it is a combination of.
    independent, dependent = np.nonzero(np.abs(shares) > SUPPORT_TOLERANCE)
    graph = np.zeros((size, size), dtype=np.bool_)
    graph[order[:rank][independent], order[rank:][dependent]] = True
    components: Any = import_module("scipy.sparse.csgraph").connected_components
    _, component_of = components(graph)
    groups: dict[int, list[int]] = {}
    for x, component in enumerate(component_of.tolist()):
        groups.setdefault(component, []).append(x)
    return tuple(tuple(group) for group in groups.values())


def coefficients(
    matrix: Array, functionals: Array, reference: Array, rank: int
) -> Array:
    """b with ``W b = c`` for each functional c, of least variance under label frequencies
    `reference`.

    A functional outside of the column space gets the weights of the nearest one inside (minimum
    norm).

    Parameters
    ----------
    matrix : (|X|, labels) array
        W.
    functionals : (|X|, m) array
    reference : (labels,) array
        Positive.
    rank : int
        Of W; further singular values count as zero.

    Returns
    -------
    (labels, m) array
    """
    # sum_y reference(y) b(y)^2 is the norm of b after this scaling, and the pseudo-inverse has the
    # least one.
    spread = 1.0 / np.sqrt(reference)
    left, values, right = np.linalg.svd(matrix * spread, full_matrices=False)
    inner = (left[:, :rank].T @ functionals) / values[:rank, None]
    solution: Array = spread[:, None] * (right[:rank].T @ inner)
    return solution


def covariance_of(
    weights: Array, frequencies: Array, records: int, products: Array | None = None
) -> Array:
    """Unbiased covariance of the estimates ``weights.T @ frequencies``, the b(y) of every
    functional by the frequencies of the labels.

    Records are independent draws of a population. With `products` their symbols are fixed, and only
    the draws of the channel are random: ``Cov = (1/N) sum_x P(x) (sum_y W(y|x) b(y) b(y)' - c(x)
    c(x)')`` with P the shares of the symbols in the file.
    """
    second: Array = (weights.T * frequencies) @ weights
    if products is not None:
        return (second - products) / records
    # The outer product of the estimates is too large by their covariance on average. Dividing by
    # one record less makes up for it.
    estimate = weights.T @ frequencies
    return (second - np.outer(estimate, estimate)) / (records - 1)


# ---------------------------------------------------------------------------- estimator

# -------------------------------------------------------------------------- functionals


@dataclass(frozen=True)
class Cells:
    """The functionals ``sum_x P(x) c(x)`` to estimate.

    Attributes
    ----------
    names : tuple of str
    functionals : (|X|, m) array
        The coefficients c.
    disjoint : bool
        Whether all are indicators of disjoint sets of symbols.
    notices : tuple of str
    """

    names: tuple[str, ...]
    functionals: Array
    disjoint: bool
    notices: tuple[str, ...] = ()

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest value that each can have."""
        return self.functionals.min(axis=0), self.functionals.max(axis=0)


def choose_cells(
    model: ReleaseModel,
    identification: Identification,
    functionals: Any,
    unidentified: str,
) -> Cells:
    """The user's functionals, or every symbol, or groups where symbols are not identified."""
    if unidentified not in ("groups", "refuse"):
        raise InputError(
            f"unidentified ({quoted(unidentified)}) must be groups or refuse"
        )
    if functionals is not None:
        return _users_cells(model, identification, functionals)
    # One functional for each symbol: its own indicator.
    sums = identification.indicators
    if identification.identified:
        return Cells(model.symbols, sums, disjoint=True)
    statement = identification.statement()
    if unidentified == "refuse":
        raise InputError(
            f"{statement}; ask for these sums (unidentified='groups') or for "
            "functionals that are identified"
        )
    # The sum of P_X over a group is identified, whatever the channel does inside of it.
    names = tuple(_own_name(group, model) for group in identification.group_names)
    return Cells(names, sums, disjoint=True, notices=(statement,))


def _users_cells(
    model: ReleaseModel, identification: Identification, functionals: Any
) -> Cells:
    """Functionals by name; InputError if one is not identified."""
    if not isinstance(functionals, Mapping) or not functionals:
        raise InputError(
            "the functionals must be a mapping of name to symbol, symbols or coefficients"
        )
    by_name = cast("Mapping[Any, Any]", functionals)
    names = tuple(str(name) for name in by_name)
    columns = [_functional(model, name, value) for name, value in by_name.items()]
    matrix = np.column_stack(columns)
    identified = identification.identifies(matrix)
    if not identified.all():
        hidden = [names[k] for k in np.flatnonzero(~identified)]
        raise InputError(
            f"{listed(hidden)} cannot be estimated: {identification.statement()}"
        )
    # Indicators of sets that share no symbol: variances are then simpler (`Estimator.products`).
    zero_or_one = bool(np.isin(matrix, (0.0, 1.0)).all())
    disjoint = zero_or_one and bool((matrix.sum(axis=1) <= 1.0).all())
    return Cells(names, matrix, disjoint)


def _functional(model: ReleaseModel, name: Any, value: Any) -> Array:
    """The coefficients of a functional: of a symbol, of symbols, or the user's own."""
    parts: dict[Any, Any]
    if isinstance(value, str):
        parts = {value: 1.0}
    elif isinstance(value, Mapping):
        parts = dict(cast("Mapping[Any, Any]", value))
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = dict.fromkeys(cast("Sequence[Any]", value), 1.0)
    else:
        raise InputError(
            f"the functional {quoted(name)} must be a symbol, symbols or coefficients, "
            f"not {quoted(value)}"
        )
    c = np.zeros(len(model.symbols))
    for symbol, coefficient in parts.items():
        if symbol not in model.position:
            raise InputError(
                f"the functional {quoted(name)} names {quoted(symbol)}, which the "
                "channel does not know"
            )
        try:
            c[model.position[symbol]] = float(coefficient)
        except (TypeError, ValueError):
            raise InputError(
                f"the coefficient of {quoted(symbol)} in {quoted(name)} must be a number"
            ) from None
    # A functional of zeros is 0 whatever the data: it is asked for by mistake.
    if not np.isfinite(c).all() or not c.any():
        raise InputError(
            f"the functional {quoted(name)} must have finite coefficients, not all zero"
        )
    return c


def _own_name(group: Sequence[str], model: ReleaseModel) -> str:
    """A name that no symbol has, for a group of several."""
    name = group_name(group)
    # A symbol may be called "{a, b}" itself; results are looked up by name.
    while len(group) > 1 and name in model.position:
        name += "+"
    return name


# ---------------------------------------------------------------------------- estimator

MOST_ENTRIES = 2**23
"""Entries of W whose singular values are computed: 8 s for 2,896 symbols and as many outputs."""

MOST_SYMBOLS = 5_792
"""Symbols of which this is done: what labels do not tell apart is a matrix of symbols by symbols,
some 270 MB then, however few the outputs are."""


@dataclass(frozen=True)
class Estimator:
    """Cells with the weights b(y) that estimate them: ``W b = c`` (`analysis.linear`)."""

    model: ReleaseModel
    identification: Identification
    cells: Cells

    @classmethod
    def of(
        cls, model: ReleaseModel, functionals: Any = None, unidentified: str = "groups"
    ) -> Estimator:
        """Choose the cells; raises as `choose_cells`, and InputError for a channel too large for
        its singular values.
        """
        symbols, labels = model.matrix.shape
        if model.matrix.size > MOST_ENTRIES or symbols > MOST_SYMBOLS:
            raise InputError(
                f"the channel has {symbols:,} symbols and {labels:,} outputs, too many to undo its "
                "draws: of a release of rows estimate columns (--of COL,..; of=)"
            )
        identification = identify(model.symbols, model.matrix)
        cells = choose_cells(model, identification, functionals, unidentified)
        return cls(model, identification, cells)

    def weights_for(self, functionals: Array) -> Array:
        """(labels, m) array b for other functionals of the same release."""
        model = self.model
        rank = self.identification.rank
        return coefficients(model.matrix, functionals, model.reference, rank)

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

        Where a square is not identified, the diagonal has the smallest value that it can have
        (Cauchy and Schwarz), so that variances are too large rather than too small.
        """
        c = self.cells.functionals
        if self.cells.disjoint:
            # Indicators: squares are themselves, and products of two are zero.
            return np.diag(estimate), True
        identified = self.identification.identifies(self.outer)
        # A product c_i c_j is a functional, too, with weights of its own.
        values = self.weights_for(self.outer).T @ frequencies
        values = np.where(identified, values, np.outer(estimate, estimate).ravel())
        return values.reshape(c.shape[1], c.shape[1]), bool(identified.all())


# --------------------------------------------------------------------- factor on errors

MOST_ENTRIES_FOR_FACTOR = 2**18
"""Entries of a matrix whose weights are computed for a sentence: below a second."""

MOST_SYMBOLS_FOR_FACTOR = 2_048
"""Symbols of such a matrix, whose square is computed, too (`MOST_SYMBOLS`)."""

SMALLEST_VARIANCE = 1e-12
"""Variance of a share below which it is that of a symbol that always or never occurs."""


def error_factor(channel: Channel) -> float | None:
    """The largest standard error of a frequency from labels, over that from true values.

    None without a table, where the labels identify no frequency but the sum of all, and for
    matrices of more than `MOST_ENTRIES_FOR_FACTOR` entries or `MOST_SYMBOLS_FOR_FACTOR` rows.
    """
    rows, columns = len(channel.useful), len(channel.outputs)
    if (
        channel.joint is None
        or rows * columns > MOST_ENTRIES_FOR_FACTOR
        or rows > MOST_SYMBOLS_FOR_FACTOR
    ):
        return None
    prior = channel.joint.p_x
    matrix = channel.matrix
    released = prior @ matrix
    found = identify(channel.useful.names, matrix)
    weights = coefficients(matrix, found.indicators, released, found.rank)
    of_labels = _variances(released, weights)
    of_values = _variances(prior, found.indicators)
    varies = of_values > SMALLEST_VARIANCE
    if not varies.any():
        return None
    return float(np.sqrt((of_labels[varies] / of_values[varies]).max()))


def _variances(masses: Array, weights: Array) -> Array:
    """The variance of each column of weights under these masses."""
    means = masses @ weights
    variances: Array = masses @ (weights - means) ** 2
    return variances
