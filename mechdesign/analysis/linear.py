"""Linear unbiased estimation: identified functionals, their coefficients, and their precision.

Let a released record with label y count as the number ``b(y)``. Then ``E b(Y) = sum_x P(x) c(x)``
for every P_X exactly if ``W b = c``. So released data identify ``sum_x P(x) c(x)`` if and only if c
lies in the column space of W.

`identify` finds the rank of W and the groups of symbols whose sums are identified; `coefficients`
solves ``W b = c``; `covariance_of` is the precision of the estimates. If W has the rows (0.8, 0.2),
(0.5, 0.5) and again (0.5, 0.5), the rank is 2: the frequency of the first symbol and the sum of the
other two are identified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
