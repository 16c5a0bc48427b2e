"""The two sparse forms of a design: outputs with their posteriors, and joint masses q(x, y).

Weights beta = (.5, .5) with the posteriors (1, 0) and (.4, .6) are the `DesignOutputs`

    y = (0, 1, 1)    x = (0, 0, 1)    v = (1, .4, .6)

and, as q(x, y) = beta_y v_y(x), the `DesignMasses` with the same y and x and q = (.5, .2, .3).
Zeros have no entry. Outputs are merged as masses, where those of the same x add up.

`float_design` makes and uses both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers import Array

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DesignOutputs:
    """Outputs in sparse form: entry i says that output ``y[i]`` has v(x[i]) = ``v[i]``.

    `beta` (k,) are the weights of the outputs.
    """

    y: Index
    x: Index
    v: Array
    beta: Array

    @property
    def k(self) -> int:
        """The number of outputs."""
        return len(self.beta)

    def masses(self) -> DesignMasses:
        """q(x, y) = beta_y v_y(x)."""
        return DesignMasses(self.y, self.x, self.beta[self.y] * self.v, self.k)


@dataclass(frozen=True, eq=False)
class DesignMasses:
    """Joint masses in sparse form: entry i says that q(x[i], y[i]) is ``q[i]``; of `k` outputs."""

    y: Index
    x: Index
    q: Array
    k: int

    def by_input(self, n: int) -> Array:
        """The mass of every input, (n,)."""
        return totals(self.x, self.q, n)

    def by_output(self) -> Array:
        """The mass of every output, (k,)."""
        return totals(self.y, self.q, self.k)

    def merged(self, into: Index) -> DesignMasses:
        """Output ``into[y]`` in the place of y, (k,); what is left is numbered without gaps."""
        used, y = np.unique(into[self.y], return_inverse=True)
        y, x, q = added_up(y, self.x, int(self.x.max()) + 1, self.q)
        return DesignMasses(y, x, q, len(used))


def totals(index: Index, values: Array, size: int = 0) -> Array:
    """Sums of the values at each index, as floats also where there are none."""
    return np.bincount(index, values, minlength=size).astype(np.float64)


def added_up(
    major: Index, minor: Index, width: int, values: Array
) -> tuple[Index, Index, Array]:
    """Entries in order of `major`, then `minor` (below `width`); those at the same place add up."""
    flat, inverse = np.unique(major * width + minor, return_inverse=True)
    majors, minors = np.divmod(flat, width)
    return majors, minors, totals(inverse, values)
