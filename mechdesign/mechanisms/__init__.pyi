from .design_call import design
from .designing import design_requested
from .heuristics import HEURISTICS
from .optimal import OPTIMAL
from .request import MECHANISMS, OBJECTIVES, DesignRequest
from .search_options import Search

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
