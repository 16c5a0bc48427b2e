"""The best response within every set of a partition: the optimum on faces of the set of posteriors.

A set's problem is that of the optimal channel on the face where only the set has mass, at the point P(X | T)
(Zarrabian et al. 2023, eq. (25)); it has a solution if and only if the merged set satisfies the notion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from solvers import Envelope, EnvelopeStatus, OutsidePolytope, Points, SolverError, TooManyVertices

Array = NDArray[np.float64]

Solve: TypeAlias = Callable[..., Envelope]
"""The optimum of all symbols, or of the `members` that it is given, at their P(X | T)."""


def respond(
    solve: Solve,
    p_x: Array,
    groups: Sequence[Sequence[int]],
    end: float,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Array, Points, bool]:
    """Weights (k,) and posteriors (k, n) of all sets together, and whether Ctrl-C came.

    A set that cannot be improved on before `end` (of `time.perf_counter`), or lies in the margin, stays one output.
    """
    weights: list[Array] = []
    parts: list[Points] = []
    interrupted = False
    for done, group in enumerate(groups):
        members = np.array(group)
        mass = float(p_x[members].sum())
        found = None
        if len(group) > 1:
            progress(done)
            found = None if interrupted or time.perf_counter() >= end else _solved(solve, members)
        interrupted = interrupted or (found is not None and found.status is EnvelopeStatus.INTERRUPTED)
        weights.append(np.array([mass]) if found is None else mass * found.weights)
        inside = Points.from_dense(p_x[members][None, :] / mass) if found is None else found.points
        at = members[inside.indices].astype(np.int32)
        parts.append(Points(inside.indptr, at, inside.data, (len(inside), len(p_x))))
    return np.concatenate(weights), Points.concatenate(parts), interrupted


def _solved(solve: Solve, members: NDArray[np.intp]) -> Envelope | None:
    """The optimum within one set; None where the merged set lies in the margin."""
    try:
        return solve(members)
    except OutsidePolytope:
        return None
    except TooManyVertices as error:
        raise SolverFailure(f"{error}") from error
    except SolverError as error:
        raise SolverFailure(
            f"a set of {len(members)} symbols could not be solved ({error}); use --mechanism subset-merging"
        ) from error
