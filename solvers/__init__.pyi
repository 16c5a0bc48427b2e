from .enumeration import Estimate, Vertices, estimate, vertices
from .envelope.convex import convex_envelope
from .envelope.other_sets import covered_envelope, robust_envelope
from .envelope.polytope import lower_envelope
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
from .pricing.concave import ConcaveSearch, SearchStatus
from .pricing.set_searches import RobustSearch
from .results import Envelope, EnvelopeStatus, Progress
from .sets.convex_set import (
    ConvexFunction,
    ConvexSet,
    CoveredSet,
    Cut,
    NonconvexFunction,
)
from .sets.polytope import Polytope
from .sets.uncertain import UncertainSet

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
