"""Lists of sparse points: the columns of an envelope program.

A posterior of an optimal channel has few positive entries (docs/explanation/optimum-theory.md,
'Few positive entries in vertices'), so a list of them is stored in compressed rows. For example,
(0.5, 0, 0.5) and (0, 1, 0) are

    indptr = [0, 2, 3]     point i has the entries indptr[i] to indptr[i + 1] - 1
    indices = [0, 2, 1]    their coordinates
    data = [0.5, 0.5, 1]   their values

Sums over each point (`sums`, `entropies`, `dot`, `images`) run over all entries at once, by the
point that owns each. SciPy's sparse arrays would do, but importing them takes longer than most
designs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidPolytope

Array = NDArray[np.float64]

MOST_TERMS = 2**26
"""Terms of images, half a gigabyte, that are made before they are added up. 813 points of as many
entries under as many rows have 500 million."""


def entropy_terms(x: Array) -> Array:
    """-x log x (nats) of every entry, with the limit 0 at 0."""
    # log 1 = 0 in place of the logarithm of 0, and of entries that rounding made negative.
    positive = np.where(x > 0.0, x, 1.0)
    return -x * np.log(positive)


@dataclass(frozen=True, eq=False)
class Points:
    """k points of R^n in compressed rows; the attributes are those of a SciPy CSR array.

    Attributes
    ----------
    indptr : (k + 1,) int array
    indices, data : (nnz,) arrays
        Coordinates and values of point i stand at ``indptr[i]:indptr[i + 1]``.
    shape : (k, n)
    """

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: Array
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """Number of stored coordinates of every point; (k,)."""
        return self.indptr[1:] - self.indptr[:-1]

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """The point to which each stored coordinate belongs; (nnz,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    # ------------------------------------------------------------ constructors

    @classmethod
    def of_sizes(
        cls, sizes: ArrayLike, indices: ArrayLike, data: Array, n: int
    ) -> Points:
        """From the number of coordinates of every point, and the coordinates and values of all in
        order.
        """
        indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        coordinates = np.asarray(indices, dtype=np.int32)
        return cls(indptr, coordinates, data, (len(indptr) - 1, n))

    @classmethod
    def from_dense(cls, points: ArrayLike) -> Points:
        """From a (k, n) array; zeros are left out."""
        dense = np.atleast_2d(np.asarray(points, dtype=np.float64))
        nonzero = dense != 0.0
        sizes = nonzero.sum(axis=1)
        coordinates = np.nonzero(nonzero)[1]
        return cls.of_sizes(sizes, coordinates, dense[nonzero], dense.shape[1])

    @classmethod
    def units(cls, coordinates: ArrayLike, n: int) -> Points:
        """The unit vectors of these coordinates."""
        index = np.asarray(coordinates, dtype=np.int32).ravel()
        ones = np.ones(len(index))
        return cls.of_sizes(ones, index, ones, n)

    @classmethod
    def between(
        cls, first: ArrayLike, second: ArrayLike, shares: Array, n: int
    ) -> Points:
        """Mixtures of two unit vectors: the second one of each pair has the share."""
        indices = np.column_stack([first, second]).ravel()
        data = np.column_stack([1.0 - shares, shares]).ravel()
        return cls.of_sizes(np.full(len(shares), 2), indices, data, n)

    @classmethod
    def blocks(cls, groups: Sequence[Sequence[int]], weights: ArrayLike) -> Points:
        """For every group of coordinates the vector of their weights (n,), normalised.

        With weights (0.2, 0.3, 0.5) the group [0, 1] becomes (0.4, 0.6, 0).
        """
        w = np.asarray(weights, dtype=np.float64)
        sizes = [len(group) for group in groups]
        members = [np.asarray(group, dtype=np.int32) for group in groups]
        # Groups stand one after the other, each with a sum of its own.
        indices = np.concatenate(members)
        starts = np.cumsum([0, *sizes[:-1]])
        mass = np.add.reduceat(w[indices], starts)
        return cls.of_sizes(sizes, indices, w[indices] / np.repeat(mass, sizes), len(w))

    @classmethod
    def concatenate(cls, parts: Sequence[Points]) -> Points:
        """All points of the parts, in order; every part has the same n."""
        lengths = {part.shape[1] for part in parts}
        if len(lengths) != 1:
            raise InvalidPolytope(
                f"points of different lengths cannot stand in one list: {sorted(lengths)}"
            )
        # Points are never changed, so no copy is needed.
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([part.sizes for part in parts])
        indices = np.concatenate([part.indices for part in parts])
        data = np.concatenate([part.data for part in parts])
        return cls.of_sizes(sizes, indices, data, lengths.pop())

    # -------------------------------------------------------------- selection

    def take(self, selection: ArrayLike) -> Points:
        """The points at these positions (or where this mask is true), in order."""
        index = np.asarray(selection)
        if index.dtype == np.bool_:
            if index.all():
                return self
            index = np.flatnonzero(index)
        sizes = self.sizes[index]
        # Entry e of the new list stands in the old one at the old start of its point plus
        # its rank within the point.
        new_starts = np.cumsum(sizes) - sizes
        shift = np.repeat(self.indptr[:-1][index] - new_starts, sizes)
        gather = shift + np.arange(sizes.sum())
        return Points.of_sizes(
            sizes, self.indices[gather], self.data[gather], self.shape[1]
        )

    def placed(self, coordinates: NDArray[np.integer], n: int) -> Points:
        """The same points in R^n, which has these coordinates (ascending) and others, all zero."""
        indices = coordinates[self.indices].astype(np.int32)
        return Points(self.indptr, indices, self.data, (len(self), n))

    def toarray(self) -> Array:
        """The points as a dense (k, n) array."""
        dense = np.zeros(self.shape)
        dense[self.owner, self.indices] = self.data
        return dense

    # ------------------------------------------------------------- arithmetic

    def sums(self, entries: Array) -> Array:
        """Sum over each point of `entries`, one number per stored coordinate; (k,)."""
        totals = np.bincount(self.owner, entries, len(self))
        # Given no entries at all, bincount returns integers.
        return totals.astype(np.float64, copy=False)

    def entropies(self) -> Array:
        """Entropy (nats) of every point; (k,)."""
        return self.sums(entropy_terms(self.data))

    def dot(self, vector: ArrayLike) -> Array:
        """Inner product of every point with a vector of length n; (k,)."""
        factors = np.asarray(vector, dtype=np.float64)
        return self.sums(self.data * factors[self.indices])

    def images(self, rows: Array) -> Array:
        """``rows @ v`` of every point; (k, m) for (m, n) rows."""
        if len(self.data) * len(rows) > MOST_TERMS:
            # Worth the import of SciPy, which adds the terms up as it makes them.
            from scipy.sparse import csr_array

            parts = (self.data, self.indices, self.indptr)
            return np.asarray(csr_array(parts, shape=self.shape) @ rows.T)
        images = np.zeros((len(self), rows.shape[0]))
        terms = rows.T[self.indices] * self.data[:, None]
        filled = self.sizes > 0
        # Sums over the entries of one point after the other; a point without any has none.
        images[filled] = np.add.reduceat(terms, self.indptr[:-1][filled], axis=0)
        return images

    def combine(self, weights: ArrayLike) -> Array:
        """``sum_k weights_k v_k``; (n,)."""
        w = np.asarray(weights, dtype=np.float64)[self.owner]
        total = np.bincount(
            self.indices, weights=w * self.data, minlength=self.shape[1]
        )
        return np.asarray(total, dtype=np.float64)
