"""The best random response within each set of a partition, in floating point.

Merging releases a set T of symbols as one output. Within T more can be kept: the problem of the
optimal channel is solved on the face where only T has mass, at the point P(X | T) (Zarrabian et al.
2023, eq. (25)). It has a solution if and only if the merged set satisfies the notion. The outputs
of T get the weights P(T) t_k, where t_k are those of its solution.

For example, let {a, b} have the mass 0.4 and its solution two posteriors of weight 1/2, (0.75,
0.25) and (0.25, 0.75) over a and b, and let c stay alone. Then `respond` returns

    weights   points over a, b, c
    0.2       0.75  0.25  0
    0.2       0.25  0.75  0
    0.6       0     0     1

`subset_response` makes a channel of them. For the optimum they are one of the channels that are
known beside the search (`incumbents`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.search import Solve
from solvers import (
    Array,
    EmptyPolytope,
    Envelope,
    EnvelopeStatus,
    OutsidePolytope,
    Points,
    SolverError,
    TooManyVertices,
)


class Response(NamedTuple):
    """A channel that answers at random within the sets of a partition, in floating point.

    `weights` (k,) and `points` (k, n) are its outputs and their posteriors; `interrupted` is
    whether Ctrl-C came.
    """

    weights: Array
    points: Points
    interrupted: bool


def respond(
    solve: Solve,
    p_x: Array,
    groups: Sequence[Sequence[int]],
    end: float,
    progress: Callable[[int], None] = lambda _: None,
    most_lost: float = math.inf,
) -> Response | None:
    """The optimum within every set of a partition; None if H(X|Y) exceeds `most_lost` (nats).

    `solve` is called with the members of a set, and `progress` with the number of sets before it. A
    set that is not improved before `end` (of `time.process_time`), or lies in the margin, stays one
    output.
    """
    weights: list[Array] = []
    parts: list[Points] = []
    interrupted = False
    lost = 0.0
    for done, group in enumerate(groups):
        if lost > most_lost:
            return None
        members = np.array(group)
        mass = float(p_x[members].sum())
        envelope: Envelope | None = None
        if len(group) > 1:
            progress(done)
            if not interrupted and time.process_time() < end:
                envelope = _within_set(solve, members)
        if envelope is None:
            weights.append(np.array([mass]))
            points = Points.from_dense(p_x[members][None, :] / mass)
        else:
            weights.append(mass * envelope.weights)
            points = envelope.points
            if envelope.status is EnvelopeStatus.INTERRUPTED:
                interrupted = True
        # H(X|Y) adds up over the sets, so that it can be given up before the last one.
        lost += float(weights[-1] @ points.entropies())
        # Indices among the members become indices among all symbols.
        indices = members[points.indices].astype(np.int32)
        shape = (len(points), len(p_x))
        parts.append(Points(points.indptr, indices, points.data, shape))
    if lost > most_lost:
        return None
    return Response(np.concatenate(weights), Points.concatenate(parts), interrupted)


def _within_set(solve: Solve, members: NDArray[np.intp]) -> Envelope | None:
    """The optimum of a set; None where the merged set lies in the margin."""
    try:
        return solve(members)
    except (OutsidePolytope, EmptyPolytope):
        return None
    except TooManyVertices as error:
        raise SolverFailure(f"{error}") from error
    except SolverError as error:
        raise SolverFailure(
            f"a set of {len(members)} symbols could not be solved ({error}); use "
            "--mechanism subset-merging"
        ) from error
