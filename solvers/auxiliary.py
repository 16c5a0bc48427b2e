"""Membership in a polytope with auxiliary variables, without eliminating them.

If every row bounds a single auxiliary variable from below, or bounds variables from above only, then there is
a least choice of them for each v, and v is a member if and only if this choice satisfies the other rows.
Elimination would multiply the rows instead: k variables with one lower bound each make 2^k of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeastAuxiliary:
    """Lower bounds ``r[owner] >= floors v - floor_bounds`` and rows ``rows v + weights r <= bounds``."""

    floors: Array
    floor_bounds: Array
    owner: NDArray[np.intp]
    rows: Array
    weights: Array
    bounds: Array

    def excess(self, images: Callable[[Array], Array]) -> Array:
        """By how much each row is violated at the least choice, (points, m); `images` maps rows to their values."""
        least = self._least(images(self.floors) - self.floor_bounds)
        return images(self.rows) + least @ self.weights.T - self.bounds

    def separation(self, v: Array) -> tuple[Array, float]:
        """The inequality ``normal v <= offset`` of the set that `v` (n,) violates most."""
        floors = self.floors @ v - self.floor_bounds
        row = int(np.argmax(self.excess(lambda matrix: (matrix @ v)[None, :])[0]))
        normal, offset = self.rows[row].copy(), float(self.bounds[row])
        for k in np.flatnonzero(self.weights[row]):
            own = np.flatnonzero(self.owner == k)
            if own.size and floors[own].max() > 0.0:
                highest = int(own[np.argmax(floors[own])])
                normal += self.weights[row, k] * self.floors[highest]
                offset += float(self.weights[row, k] * self.floor_bounds[highest])
        return normal, offset

    @property
    def eliminated_rows(self) -> float:
        """Number of rows that elimination would leave, duplicates counted."""
        choices = 1.0 + np.bincount(self.owner, minlength=self.weights.shape[1])
        return float(np.where(self.weights > 0.0, choices, 1.0).prod(axis=1).sum())

    def _least(self, floors: Array) -> Array:
        least = np.zeros((len(floors), self.weights.shape[1]))
        for k in range(least.shape[1]):
            own = self.owner == k
            if own.any():
                least[:, k] = np.maximum(floors[:, own].max(axis=1), 0.0)
        return least


def least_auxiliary(rows: Array, lower: Array, upper: Array, auxiliary: Array) -> LeastAuxiliary | None:
    """The rule for ``lower <= rows v + auxiliary r <= upper``, or None where there is no least choice."""
    has_upper, has_lower = np.isfinite(upper), np.isfinite(lower)
    matrix = np.vstack([rows[has_upper], -rows[has_lower]])
    weights = np.vstack([auxiliary[has_upper], -auxiliary[has_lower]])
    bounds = np.concatenate([upper[has_upper], -lower[has_lower]])
    below = (weights < 0.0).any(axis=1)
    if ((weights[below] != 0.0).sum(axis=1) > 1).any():
        return None
    owner = np.argmin(weights[below], axis=1)
    scale = -weights[below, owner]
    return LeastAuxiliary(
        matrix[below] / scale[:, None],
        bounds[below] / scale,
        owner,
        matrix[~below],
        weights[~below],
        bounds[~below],
    )
