"""The blurring policy against a hypothesis, and how private it really is.

Farokhi 2020, Theorem 4: where the hypothesis is x_i >= g(x_-i), report g(x_-i) in place of every
x_i within 1/rho of it. The theorem measures Y by Lebesgue measure, under which the blurred strip is
a surface of measure zero and nothing is gained. Here sets of outputs are measured by their
pre-images in X, and a fibre of the strip counts only if both hypotheses occur in it: then a
report on the boundary tells nothing. Sizes are measures of boxes (epsilon is a ratio, no unit).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.hypothesis import finite_problem
from mechdesign.nonstochastic.ranges import JointRange

Points = NDArray[np.float64]
Boundary = Callable[[Points], Any]


@dataclass(frozen=True, kw_only=True)
class BlurringPolicy:
    """Report the boundary instead of anything within 1/rho of it (Theorem 4).

    Parameters
    ----------
    boundary
        g, on arrays of the other coordinates, shape (N, n - 1), to values of shape (N,).
    coordinate
        Which coordinate i the boundary bounds, from 0.
    rho
        Accuracy: no report is farther than 1/rho from the truth.
    """

    boundary: Boundary
    coordinate: int
    rho: float

    def __post_init__(self) -> None:
        if not 0 < self.rho < math.inf:
            raise InputError(f"rho ({self.rho:g}) must be positive and finite; 1/rho is the largest error")
        if self.coordinate < 0:
            raise InputError(f"coordinate ({self.coordinate}) must be 0 or more")

    def _split(self, points: ArrayLike) -> tuple[Points, Points, Points]:
        table = np.asarray(points, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] <= self.coordinate:
            raise InputError(
                f"points must have shape (N, n) with n above coordinate {self.coordinate}, not {table.shape}"
            )
        if not bool(np.isfinite(table).all()):
            raise InputError("points must be finite numbers; drop NaN and infinities")
        return table, table[:, self.coordinate], self.evaluate(np.delete(table, self.coordinate, axis=1))

    def evaluate(self, others: Points) -> Points:
        """The boundary at the other coordinates, checked.

        Raises
        ------
        InputError
            If the boundary function returns another shape or something not finite.
        """
        values = np.asarray(self.boundary(others), dtype=np.float64)
        if values.shape != (others.shape[0],):
            raise InputError(
                f"the boundary function must return shape ({others.shape[0]},), not {values.shape}"
            )
        if not bool(np.isfinite(values).all()):
            raise InputError("the boundary function must return finite numbers on the whole domain")
        return values

    def hypothesis(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether p0 (x_i >= g) holds for each point, shape (N,)."""
        _, mine, limit = self._split(points)
        return mine >= limit

    def apply(self, points: ArrayLike) -> Points:
        """The reports, shape (N, n)."""
        table, mine, limit = self._split(points)
        reports = table.copy()
        reports[:, self.coordinate] = np.where(np.abs(mine - limit) <= 1 / self.rho, limit, mine)
        return reports


def preimage_epsilon(
    joint: JointRange, hypothesis: Callable[[Any], bool] | Mapping[Hashable, bool]
) -> Fraction | None:
    """Epsilon of a deterministic policy on finitely many x, outputs measured by their pre-images.

    The number of x whose output is compatible with both hypotheses over the number of the others;
    None if there are no others (unlimited).

    Raises
    ------
    InputError
        If an x has several outputs, or a hypothesis never occurs.
    """
    if int(joint.y_sizes.max()) > 1:
        raise InputError("pre-images measure deterministic policies: here some x has several outputs")
    problem = finite_problem(joint, hypothesis)
    ambiguous = sum(joint.y_symbols[j] in problem.ambiguous for j in joint.columns.tolist())
    telling = joint.n_pairs - ambiguous
    return Fraction(ambiguous, telling) if telling else None
