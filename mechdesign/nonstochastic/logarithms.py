"""Logarithms of exact ratios, in bits or in nats."""

from __future__ import annotations

import math
from fractions import Fraction


def log_ratio(ratio: Fraction, unit: str) -> float:
    """Log of a ratio of integers of any size: base 2 for "bits", base e for "nats"; -inf at zero.

    Between 1/2 and 2 the difference of two logarithms would lose digits, so the excess over one is used.
    """
    if ratio == 0:
        return -math.inf
    if Fraction(1, 2) < ratio < 2:
        nats = math.log1p((ratio.numerator - ratio.denominator) / ratio.denominator)
        return nats / math.log(2) if unit == "bits" else nats
    log = math.log2 if unit == "bits" else math.log
    return log(ratio.numerator) - log(ratio.denominator)
