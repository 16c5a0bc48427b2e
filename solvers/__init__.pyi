from .concave import ConcaveSearch, RobustSearch, SearchStatus
from .convex import convex_envelope
from .convex_set import ConvexFunction, ConvexSet, Cut
from .enumeration import Estimate, Vertices, estimate, vertices
from .envelope import lower_envelope, robust_envelope
from .errors import (
    BackendFailure,
    EmptyPolytope,
    InvalidOption,
    InvalidPolytope,
    OutOfTime,
    OutsidePolytope,
    SolverError,
    TooManyVertices,
)
from .points import Array, Points
from .polytope import Polytope
from .results import Envelope, EnvelopeStatus, Progress
from .uncertain import UncertainSet

__all__ = [
    "Array",
    "BackendFailure",
    "ConcaveSearch",
    "ConvexFunction",
    "ConvexSet",
    "Cut",
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
    "convex_envelope",
    "estimate",
    "lower_envelope",
    "robust_envelope",
    "vertices",
]
