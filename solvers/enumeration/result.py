"""Limits and result of an enumeration, and the last steps that all algorithms share.

`ListingLimits` are checked numbers and an end; `Vertices` is the result. An algorithm lists points
in any order, with repetitions. The last steps are the same for all:

1. `ordered` sorts them and drops the repeated ones: of (0.5, 0.5, 0) and (0.5, 0.5 - 1e-13, 1e-13)
   the first stays, which has fewer positive entries. (The walk of `pivot` does so itself.)
2. `finished_vertices` holds every point against the original rows before it is called a vertex.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from solvers.errors import BackendFailure, InvalidOption, OutOfTime
from solvers.points import Array
from solvers.sets.polytope import MEMBERSHIP_TOLERANCE, Polytope

MERGE_TOLERANCE = 1e-10
"""Points that differ by no more than this in every coordinate are one vertex: a hundred times the
error of a vertex solved in doubles on an ordinary table, far below a difference that changes a
cost."""

DEFAULT_MAX_VERTICES = 2_000_000
"""About half a minute of pivoting on a table of 200 symbols, and 3 GB of points."""

DEFAULT_MEMORY_LIMIT = 8 << 30
"""Bytes; a third of a machine with 24 GB, so that a program over the vertices still fits."""

_CHECK_ROWS = 1 << 16
"""Points checked at a time, so that the check needs little memory beside the points."""


@dataclass(frozen=True, kw_only=True)
class ListingLimits:
    """How large an enumeration may become."""

    max_vertices: int = DEFAULT_MAX_VERTICES
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    end: float = math.inf
    """On the clock of `time.process_time`."""

    def left(self) -> float:
        """Seconds until the end."""
        return self.end - time.process_time()

    def check_time(self) -> None:
        """Raise OutOfTime if the end has come."""
        if self.left() <= 0.0:
            raise OutOfTime(
                "the vertices were not enumerated in time; allow more seconds, or use "
                'method="columns"'
            )

    def __post_init__(self) -> None:
        _check_whole("max_vertices", self.max_vertices, "vertices")
        _check_whole("memory_limit", self.memory_limit, "bytes")


def _check_whole(name: str, value: object, unit: str) -> None:
    """Raise InvalidOption unless the value is a whole number, at least 1."""
    whole = 0
    # In Python a boolean is an integer, too.
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        whole = int(value)
    if whole < 1:
        raise InvalidOption(
            f"{name} ({value!r}) must be a whole number of {unit}, at least 1"
        )


@dataclass(frozen=True, eq=False)
class Vertices:
    """The vertices of a polytope.

    Attributes
    ----------
    points : (k, n) array
        One vertex per row, in lexicographic order of the rows; read-only.
    method : str
        The algorithm that found them: "pivot", "cdd" or "cdd-exact".
    exact : bool
        True only if they were enumerated in exact arithmetic; a float enumeration is no proof that
        none is missing.
    bases : int or None
        Bases that were visited, where the algorithm visits bases. More than k where some vertices
        belong to several.
    degenerate : int or None
        Vertices at which more constraints are tight than needed, up to rounding; None if not known.
    """

    points: Array
    method: str
    exact: bool
    bases: int | None = None
    degenerate: int | None = None

    def __len__(self) -> int:
        return self.points.shape[0]


def finished_vertices(
    points: Array,
    polytope: Polytope,
    method: str,
    *,
    exact: bool = False,
    **counts: int,
) -> Vertices:
    """Check ordered, distinct points against the original rows and seal them.

    `counts` are `bases` and `degenerate` of the result, where the algorithm has them.
    """
    explicit = polytope.explicit
    # A row is only as accurate as its largest entry.
    size = np.abs(explicit.rows).max(axis=1, initial=0.0)
    slack = MEMBERSHIP_TOLERANCE * np.where(size > 0.0, size, 1.0)
    lower = explicit.lower - slack
    upper = explicit.upper + slack
    for start in range(0, len(points), _CHECK_ROWS):
        part = points[start : start + _CHECK_ROWS]
        w = part @ explicit.rows.T
        inside = ((w >= lower) & (w <= upper)).all() and part.min() >= 0.0
        if not inside or np.abs(part.sum(axis=1) - 1.0).max() > MEMBERSHIP_TOLERANCE:
            raise BackendFailure(
                f'enumeration by "{method}" returned a point outside the polytope: the '
                "data are too close to a tie for it; use exact cddlib (pycddlib with "
                "GMP), or "
                'method="columns", which needs no vertices'
            )
    points.setflags(write=False)
    return Vertices(points, method, exact, **counts)


def ordered(points: Array) -> Array:
    """Distinct rows in lexicographic order.

    Of rows within `MERGE_TOLERANCE` the one with the fewest positive entries stays. Close points
    are neighbours along a fixed generic direction: their keys differ by less than a window, so few
    pairs are compared.
    """
    if len(points) == 0:
        return points
    direction = np.random.default_rng(0).random(points.shape[1])
    key = points @ direction
    order = np.argsort(key, kind="stable")
    points = points[order]
    key = key[order]
    support = np.count_nonzero(points, axis=1)
    dropped = np.zeros(len(points), dtype=bool)
    # Entries of the direction are at most 1, so the keys differ by n tolerances at most.
    window = points.shape[1] * MERGE_TOLERANCE
    for i in np.flatnonzero(np.diff(key) <= window).tolist():
        if dropped[i]:
            continue
        last = int(np.searchsorted(key, key[i] + window, side="right"))
        for j in range(i + 1, last):
            apart = np.abs(points[i] - points[j]).max()
            if dropped[j] or apart > MERGE_TOLERANCE:
                continue
            dropped[j] = True
            # Zeros are exact where an algorithm finds them: an entry of 1e-13 is its rounding.
            if support[j] < support[i]:
                points[i] = points[j]
                support[i] = support[j]
    points = points[~dropped]
    # lexsort takes its last key first.
    return np.ascontiguousarray(points[np.lexsort(points.T[::-1])])
