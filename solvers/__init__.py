"""Geometry and optimisation over polytopes of probability vectors; usable alone.

>>> from solvers import Polytope, lower_envelope, vertices
"""

from __future__ import annotations

from solvers.concave import ConcaveSearch, RobustSearch, SearchStatus
from solvers.enumeration import Estimate, Vertices, estimate, vertices
from solvers.envelope import lower_envelope, robust_envelope
from solvers.errors import (
    BackendFailure,
    EmptyPolytope,
    InvalidOption,
    InvalidPolytope,
    OutOfTime,
    OutsidePolytope,
    SolverError,
    TooManyVertices,
)
from solvers.points import Array, Points
from solvers.polytope import Polytope
from solvers.results import Envelope, EnvelopeStatus, Progress
from solvers.uncertain import UncertainSet

__all__ = [
    "Array",
    "BackendFailure",
    "ConcaveSearch",
    "EmptyPolytope",
    "Envelope",
    "EnvelopeStatus",
    "Estimate",
    "InvalidOption",
    "InvalidPolytope",
    "OutOfTime",
    "OutsidePolytope",
    "Points",
    "Polytope",
    "Progress",
    "RobustSearch",
    "SearchStatus",
    "SolverError",
    "TooManyVertices",
    "UncertainSet",
    "Vertices",
    "estimate",
    "lower_envelope",
    "robust_envelope",
    "vertices",
]
