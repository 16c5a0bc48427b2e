"""Linear unbiased estimation: which frequencies can be known at all, with which coefficients, how precisely.

A released record with label y says the number ``b(y)``; ``E b(Y) = sum_x P(x) c(x)`` for every P_X exactly if
``W b = c``. So ``sum_x P(x) c(x)`` can be known from released data if and only if c lies in the column space of W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Singular values of W below this share of the largest count as zero. Rows that are equal by design differ after
exact rounding by units of 2**-53; what shows only through such differences would take 10**18 records to see."""

SUPPORT_TOLERANCE = 1e-6
"""Entries of a reduced null space basis below this are zero: they are sums of products of a few entries of W, known
to about 2**-53 / `RANK_TOLERANCE`."""


@dataclass(frozen=True)
class Identification:
    """Which linear functionals of P_X a release identifies.

    Parameters
    ----------
    symbols : tuple of str
    rank : int
        Rank of W: the number of linearly independent functionals that can be estimated.
    groups : tuple of tuples of int
        A partition of the symbols: the frequency of every group can be estimated, a group of one is a symbol that
        can be estimated alone. Other functionals may be identified, too: `identifies` tells.
    null : (|X| - rank, |X|) array
        Orthonormal basis of the changes of P_X that no released data can show.
    condition : float
        Ratio of the largest singular value of W to the smallest that is not zero: how much noise is magnified.
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
        return tuple(tuple(self.symbols[x] for x in group) for group in self.groups)

    def identifies(self, coefficients: Sequence[float] | Array) -> bool:
        """Whether ``sum_x P(x) coefficients[x]`` can be estimated without bias."""
        c = np.asarray(coefficients, dtype=np.float64)
        scale = float(np.abs(c).max(initial=0.0))
        return bool((np.abs(self.null @ c) <= SUPPORT_TOLERANCE * scale).all())

    def statement(self) -> str:
        """One sentence for people."""
        size = len(self.symbols)
        if self.identified:
            return f"the frequencies of all {size} symbols can be estimated (the channel has rank {size})"
        joined = [group for group in self.group_names if len(group) > 1]
        shown = "; ".join("{" + ", ".join(group) + "}" for group in joined)
        return (
            f"the channel has rank {self.rank} for {size} symbols: released data cannot tell apart the frequencies "
            f"within {shown}, only their sum"
        )


def identify(symbols: Sequence[str], matrix: Array) -> Identification:
    """Find what a channel identifies.

    Parameters
    ----------
    symbols : sequence of str
    matrix : (|X|, |Y|) array
        P(y|x).
    """
    left, values, _ = np.linalg.svd(matrix)
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    null = np.ascontiguousarray(left[:, rank:].T)
    return Identification(tuple(symbols), rank, _groups(null), null, float(values[0] / values[rank - 1]))


def _groups(null: Array) -> tuple[tuple[int, ...], ...]:
    """The finest partition along which the null space is a direct sum.

    In reduced form ``[I R]`` each basis vector touches its own symbol and those of its row of R; symbols are in one
    part exactly if such vectors connect them. Every null vector sums to 0 (rows of W sum to 1), and so does its
    restriction to a part, which is a null vector itself: hence the sum of P_X over a part is identified.
    """
    size = null.shape[1]
    parent = list(range(size))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    if len(null):
        pivots, reduced = _reduced(null)
        for own, row in zip(pivots, reduced, strict=True):
            for x in np.flatnonzero(np.abs(row) > SUPPORT_TOLERANCE).tolist():
                parent[root(x)] = root(own)
    parts: dict[int, list[int]] = {}
    for x in range(size):
        parts.setdefault(root(x), []).append(x)
    return tuple(tuple(part) for part in parts.values())


def _reduced(basis: Array) -> tuple[list[int], Array]:
    """The same space with an identity in the columns that are returned (Gauss and Jordan, largest pivots)."""
    rows, pivots = basis.copy(), list[int]()
    for k in range(len(rows)):
        i, j = np.unravel_index(int(np.argmax(np.abs(rows[k:]))), rows[k:].shape)
        rows[[k, k + int(i)]] = rows[[k + int(i), k]]
        rows[k] /= rows[k, j]
        others = np.arange(len(rows)) != k
        rows[others] -= np.outer(rows[others, j], rows[k])
        pivots.append(int(j))
    return pivots, rows


def coefficients(matrix: Array, functionals: Array, reference: Array, rank: int) -> Array:
    """b with ``W b = c`` for each functional c, of least variance where the labels have the frequencies `reference`.

    For functionals outside the column space the same formula gives the nearest ones inside it (minimum norm).

    Parameters
    ----------
    matrix : (|X|, |Y|) array
    functionals : (|X|, m) array
    reference : (|Y|,) array
        Positive; not from the data at hand, or the estimates would be biased.
    rank : int
        Rank of the matrix (see `identify`).

    Returns
    -------
    (|Y|, m) array
    """
    spread = 1.0 / np.sqrt(reference)
    left, values, right = np.linalg.svd(matrix * spread, full_matrices=False)
    inner = (left[:, :rank].T @ functionals) / values[:rank, None]
    solution: Array = spread[:, None] * (right[:rank].T @ inner)
    return solution


def population_covariance(weights: Array, frequencies: Array, records: int) -> Array:
    """Unbiased covariance of ``weights.T @ frequencies`` if the records are independent draws of a population.

    Parameters
    ----------
    weights : (|Y|, m) array
    frequencies : (|Y|,) array
        Shares of the labels among `records` records.
    records : int
        At least 2.
    """
    estimate = weights.T @ frequencies
    second: Array = (weights.T * frequencies) @ weights
    return (second - np.outer(estimate, estimate)) / (records - 1)


def randomisation_covariance(weights: Array, frequencies: Array, records: int, products: Array) -> Array:
    """Unbiased covariance of the same over the draws of the channel alone, the symbols of the records fixed.

    ``Cov = (1/N) sum_x P(x) (sum_y W(y|x) b(y) b(y)' - c(x) c(x)')`` with P the shares of the symbols in the file.

    Parameters
    ----------
    products : (m, m) array
        Unbiased estimate of ``sum_x P(x) c_i(x) c_j(x)``.
    """
    second: Array = (weights.T * frequencies) @ weights
    return (second - products) / records
