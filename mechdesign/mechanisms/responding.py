"""The best response within every set of a partition: the optimum on faces of the polytope of posteriors.

A set's problem is that of the optimal channel on the face where only the set has mass, at the point P(X | T)
(Zarrabian et al. 2023, eq. (25)); it has a solution if and only if the merged set satisfies the notion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from solvers import (
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    Points,
    Polytope,
    SolverError,
    TooManyVertices,
    lower_envelope,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard every set is worked on; `end` is on the clock of `time.perf_counter`."""

    gap: float
    method: str = "auto"
    enumeration: str = "auto"
    end: float = float("inf")
    workers: int = 1
    backend: str = "highs"


Solve: TypeAlias = Callable[[NDArray[np.intp], Array], Envelope | None]
"""The optimum of a set of symbols at its P(X | T); None where the merged set lies in the margin, or no time is left."""


def within(inner: Polytope, outer: Polytope, effort: Effort) -> Solve:
    """On the face of a polytope; bounds hold for the face of `outer`."""
    return lambda members, point: _solved(inner.restrict(members), outer.restrict(members), point, effort)


def respond(
    solve: Solve,
    p_x: Array,
    groups: Sequence[Sequence[int]],
    progress: Callable[[int], None] | None = None,
) -> tuple[Array, Points, bool]:
    """Weights (k,) and posteriors (k, n) of all sets together, and whether Ctrl-C came.

    A set that cannot be improved on in time, or lies in the margin of the polytope, stays one output.
    """
    weights: list[Array] = []
    parts: list[Points] = []
    interrupted = False
    for done, group in enumerate(groups):
        members = np.array(group)
        mass = float(p_x[members].sum())
        point = p_x[members] / mass
        found = None
        if len(group) > 1:
            if progress is not None:
                progress(done)
            found = None if interrupted else solve(members, point)
        if found is None:
            weights.append(np.array([mass]))
            inside = Points.from_dense(point[None, :])
        else:
            interrupted = interrupted or found.status is EnvelopeStatus.INTERRUPTED
            weights.append(mass * found.weights)
            inside = found.points
        parts.append(
            Points(
                inside.indptr, members[inside.indices].astype(np.int32), inside.data, (len(inside), len(p_x))
            )
        )
    return np.concatenate(weights), Points.concatenate(parts), interrupted


def _solved(inner: Polytope, outer: Polytope, point: Array, effort: Effort) -> Envelope | None:
    """The optimum within one set; None where the merged set lies in the margin, or the time is over."""
    left = effort.end - time.perf_counter()
    if left <= 0.0:
        return None
    try:
        return lower_envelope(
            inner,
            point,
            relaxation=outer,
            method=effort.method,
            enumeration=effort.enumeration,
            gap=effort.gap,
            time_limit=None if np.isinf(left) else left,
            workers=effort.workers,
            backend=effort.backend,
        )
    except OutsidePolytope:
        return None
    except TooManyVertices as error:
        raise SolverFailure(f"{error}") from error
    except SolverError as error:
        raise SolverFailure(
            f"a set of {inner.n} symbols could not be solved ({error}); use --mechanism subset-merging"
        ) from error
