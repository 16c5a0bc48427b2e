from .designing import design, design_requested
from .optimal import OPTIMAL
from .request import MECHANISMS, OBJECTIVES, DesignRequest
from .search import Search
from .watchdog import HEURISTICS

__all__ = [
    "HEURISTICS",
    "MECHANISMS",
    "OBJECTIVES",
    "OPTIMAL",
    "DesignRequest",
    "Search",
    "design",
    "design_requested",
]
