"""Geometry and optimisation over polytopes of probability vectors; usable alone.

A set of vectors v >= 0 with sum v = 1 is given by rows (`Polytope`), by convex functions of a few
sums (`ConvexSet`), by such that are not convex (`CoveredSet`), or by rows with uncertain entries
(`UncertainSet`). At a point p of it, an envelope is the least sum_k w_k H(v_k) over decompositions
p = sum_k w_k v_k into members, with a bound that is proven: `lower_envelope`, `convex_envelope`,
`covered_envelope` and `robust_envelope`. `vertices` lists a polytope. Here v_0, v_1 <= 3/4:

>>> import numpy as np
>>> from solvers import Polytope, lower_envelope, vertices
>>> polytope = Polytope(np.eye(2), np.full(2, -np.inf), np.full(2, 0.75))
>>> vertices(polytope).points
array([[0.25, 0.75],
       [0.75, 0.25]])
>>> envelope = lower_envelope(polytope, np.array([0.5, 0.5]))
>>> round(envelope.value, 3), envelope.weights
(0.562, array([0.5, 0.5]))
"""

# Names are listed once, in __init__.pyi: pyright reads it, and lazy_loader imports on first use.
from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
