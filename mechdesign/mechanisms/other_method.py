"""The envelope over a polytope by one method, and by another one where the first gets stuck.

Listing vertices and generating columns fail on different tables: rounding loses coordinates of
probability 1e-9 in one and not in the other. So a search that stalls, or a back end that gives up,
is followed by the other method, and the better channel and the better bound are kept. Both bounds
are proven, so the larger one holds, whichever method found the channel. For example, listing ends
with the entropy 1.204 and the bound 1.190, and columns with 1.200 and 1.185: the answer is 1.200
with the bound 1.190.

`rules` calls `envelope_by_any_method` for every margin and every face of a polytope.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from solvers import Array, Envelope, EnvelopeStatus, Polytope, lower_envelope
from solvers.errors import BackendFailure, TooManyVertices

STUCK = (EnvelopeStatus.STALLED, EnvelopeStatus.BACKEND_FAILED)
"""Ends of a search that more time would not have avoided."""


def envelope_by_any_method(
    polytope: Polytope, point: Array, relaxation: Polytope, options: dict[str, Any]
) -> Envelope:
    """The envelope by the method of the options, rescued by the other method where that is stuck.

    Parameters
    ----------
    polytope : Polytope
        Whose points are decomposed.
    point : (n,) array
        The point to decompose, P_X.
    relaxation : Polytope
        The larger polytope that the bound is about.
    options : dict
        Keywords of `solvers.lower_envelope`; `method`, `gap` and `time_limit` must be among them.

    Raises
    ------
    SolverError
        The error of the first method, where the other one fails, too.
    """
    started = time.process_time()
    try:
        first = lower_envelope(polytope, point, relaxation=relaxation, **options)
    except BackendFailure:
        other = _by_other_method(
            polytope, point, relaxation, options, options["method"], started
        )
        if other is None:
            raise
        return other
    if first.status not in STUCK or first.gap <= options["gap"]:
        return first
    other = _by_other_method(
        polytope, point, relaxation, options, first.method, started
    )
    if other is None:
        return first
    best = better_of(first, other)
    if other.status is EnvelopeStatus.OPTIMAL:
        # The first one is stuck, so the proof is that of the other method.
        return replace(best, status=EnvelopeStatus.OPTIMAL)
    return best


def _by_other_method(
    polytope: Polytope,
    point: Array,
    relaxation: Polytope,
    options: dict[str, Any],
    tried: str,
    started: float,
) -> Envelope | None:
    """The envelope by the method that was not tried; None where there is none, or it fails."""
    method = "columns"
    if tried != "vertices":
        # Lists the vertices if they are few, and generates columns otherwise.
        method = "auto"
    if method == options["method"]:
        return None
    left = options["time_limit"]
    if left is not None:
        left = max(0.0, left - (time.process_time() - started))
    changed = options | {"method": method, "enumeration": "auto", "time_limit": left}
    try:
        return lower_envelope(polytope, point, relaxation=relaxation, **changed)
    except (BackendFailure, TooManyVertices):
        return None


def better_of(first: Envelope, second: Envelope) -> Envelope:
    """The cheaper decomposition with the higher bound; both bounds are proven."""
    cheaper = first
    if second.value < first.value:
        cheaper = second
    proof = first
    if second.bound > first.bound:
        proof = second
    return replace(cheaper, bound=proof.bound, dual=proof.dual)
