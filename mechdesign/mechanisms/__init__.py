"""Mechanisms: each computes a channel for a table and a notion, verified exactly before it is
returned.

`design` runs the optimum, a heuristic or a least-cost objective, as a `DesignRequest` says.
"""

from mechdesign.mechanisms.designing import design, design_requested
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import MECHANISMS, OBJECTIVES, DesignRequest
from mechdesign.mechanisms.search import Search
from mechdesign.mechanisms.watchdog import HEURISTICS

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
