"""Separable concave costs, with lower bounds that survive rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.errors import InvalidOption
from solvers.points import Points

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cost:
    """sum_j phi(v_j) with phi concave on [0, 1] and phi(0) = 0; `code` is its number in the kernel."""

    name: str
    code: int
    term: Callable[[Array], Array]

    def of(self, points: Points) -> Array:
        """Cost of every point; (k,)."""
        return points.sums(self.term(points.data))


def _entropy(x: Array) -> Array:
    return -x * np.log(np.where(x > 0.0, x, 1.0))


COSTS: dict[str, Cost] = {
    "entropy": Cost("entropy", 0, _entropy),
    "gini": Cost("gini", 1, lambda x: x * (1.0 - x)),
}
"""Entropy in nats, -x log x, and the Gini index x (1 - x)."""


def cost_named(name: str) -> Cost:
    """Look a cost up."""
    if name not in COSTS:
        raise InvalidOption(f"cost {name!r} is not known; use one of {', '.join(COSTS)}")
    return COSTS[name]
