from .concave import ConcaveSearch, SearchStatus
from .convex import convex_envelope
from .convex_set import ConvexFunction, ConvexSet, Cut
from .covered import covered_envelope
from .covered_set import CoveredSet, NonconvexFunction
from .enumeration import Estimate, Vertices, estimate, vertices
from .envelope import lower_envelope
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
from .robust_envelope import robust_envelope
from .robust_search import RobustSearch
from .uncertain import UncertainSet

__all__ = [
    "Array",
    "BackendFailure",
    "ConcaveSearch",
    "ConvexFunction",
    "ConvexSet",
    "CoveredSet",
    "Cut",
    "EmptyPolytope",
    "Envelope",
    "EnvelopeStatus",
    "Estimate",
    "InvalidOption",
    "InvalidPolytope",
    "NonconvexFunction",
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
    "covered_envelope",
    "estimate",
    "lower_envelope",
    "robust_envelope",
    "vertices",
]
