"""Checks of options and vectors that several modules take."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidOption, InvalidPolytope

Array = NDArray[np.float64]


def check_limits(workers: int, memory_limit: int) -> None:
    """Raise InvalidOption unless both are positive."""
    if workers < 1:
        raise InvalidOption(f"workers ({workers}) must be at least 1")
    if memory_limit <= 0:
        raise InvalidOption(f"memory_limit ({memory_limit}) must be a positive number of bytes")


def check_prices(name: str, prices: ArrayLike, n: int) -> Array:
    """Return them as a float array; InvalidPolytope unless they are n finite numbers."""
    y = np.ascontiguousarray(prices, dtype=np.float64)
    if y.shape != (n,):
        raise InvalidPolytope(f"{name} must have one entry per coordinate ({n}), not shape {y.shape}")
    if not np.isfinite(y).all():
        raise InvalidPolytope(
            f"{name} has a NaN or infinite entry at {int(np.flatnonzero(~np.isfinite(y))[0])}"
        )
    return y
