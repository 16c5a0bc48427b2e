from .concave import ConcaveSearch, RobustSearch, SearchStatus
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
