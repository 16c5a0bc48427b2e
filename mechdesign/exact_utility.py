"""What a channel is worth: I(X;Y) of its integers, rounded so that it never claims too much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul

import numpy as np

from mechdesign.channel import Channel
from mechdesign.errors import InputError
from mechdesign.joint import Joint

ROUNDOFF = 2.0**-53
"""Largest relative error of one floating-point operation."""

TERM_ERROR = 24 * ROUNDOFF
"""Bound on the relative error of one term t log(m/t) of an entropy apart from that of m/t: two
conversions, two products, and a logarithm within 4 units in the last place (NumPy's vector loops; usually 1)."""

RATIO_ERROR = 4 * ROUNDOFF
"""Bound on the relative error of m/t (three roundings), hence on the absolute error of its logarithm."""


@dataclass(frozen=True)
class Utility:
    """Utility in nats. `mutual_information` and `nmi` are never above the true values (by about 1e-15).

    `entropy` is H(X) to the nearest 1e-15; `nmi` is I(X;Y)/H(X), and 1 when X is constant.
    """

    mutual_information: float
    entropy: float
    nmi: float


def utility(channel: Channel, joint: Joint) -> Utility:
    """I(X;Y), H(X) and their quotient for the integers of `channel` under `joint`.

    H(X) - I(X;Y) = H(X|Y) is summed from its non-negative terms P(x, y) log(P(y) / P(x, y)); their
    arguments are quotients of exact integers and an exact sum adds them, so the error does not grow with
    the size of the channel.

    Raises
    ------
    InputError
        If channel and joint have different useful variables.
    """
    if channel.useful.symbols != joint.useful.symbols:
        raise InputError("the useful symbols of the channel are not those of the joint table, in that order")
    weights = [sum(column) for column in zip(*joint.counts, strict=True)]
    total = sum(weights)
    h = _Sum.of([(weights, total)] if len(weights) > 1 else [], total)
    products: list[tuple[list[int], int]] = []
    for at, values in channel.integers.columns:
        if len(at) > 1:  # an output that names its input leaves no uncertainty
            masses = list(map(mul, [weights[x] for x in at], values))
            products.append((masses, sum(masses)))
    lost = _Sum.of(products, total * channel.denominator)
    if h.low <= 0.0:
        return Utility(0.0, 0.0, 1.0)
    return Utility(
        mutual_information=max(0.0, math.nextafter(h.low - lost.high, -math.inf)) if lost.high else h.low,
        entropy=h.value,
        nmi=max(0.0, math.nextafter(1.0 - lost.high / h.low * (1.0 + 4 * ROUNDOFF), -math.inf)) if lost.high else 1.0,
    )


@dataclass(frozen=True)
class _Sum:
    """A sum of terms t log(m/t) / scale, with proven bounds."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, groups: list[tuple[list[int], int]], scale: int) -> _Sum:
        """Add up t log(m/t) over the positive integers t of every group (list of t, m)."""
        if not groups:
            return cls(0.0, 0.0, 0.0)
        terms = np.array([float(t) for masses, _ in groups for t in masses])
        wholes = np.repeat([float(m) for _, m in groups], [len(masses) for masses, _ in groups])
        value = math.fsum((terms * np.log(wholes / terms)).tolist()) / float(scale)
        # Conversions of `scale` and the quotient are within the slack of TERM_ERROR.
        error = value * TERM_ERROR + RATIO_ERROR * math.fsum(terms.tolist()) / float(scale) * (1.0 + TERM_ERROR)
        return cls(value, value - error, value + error)
