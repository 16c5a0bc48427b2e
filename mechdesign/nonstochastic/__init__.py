"""Privacy without probabilities: uncertain variables, what they leak, and how to blur them.

Sizes of discrete ranges are measured in bits (base 2), those of continuous ones in nats.
"""

from __future__ import annotations

from mechdesign.nonstochastic.ranges import JointRange

__all__ = ["JointRange"]
