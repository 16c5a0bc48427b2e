"""All probability vectors with entries on a grid: by their partitions, without the package."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np


@cache
def simplex_grid(symbols: int, steps: int) -> np.ndarray:
    """All vectors (k, symbols) of multiples of 1 / steps whose sum is one."""
    places = steps + symbols - 1
    bars = np.array(list(combinations(range(places), symbols - 1)))
    bars = bars.reshape(-1, symbols - 1)
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), places)])
    # What lies between two bars goes to one symbol.
    grid = (np.diff(ends, axis=1) - 1) / steps
    grid.flags.writeable = False
    return grid
