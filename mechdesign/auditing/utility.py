"""What a channel is worth: I(X;Y) of its integers, rounded so that it never claims too much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul

import numpy as np

from mechdesign.auditing.demands import columns_on, released_part
from mechdesign.channel.channel import Channel
from mechdesign.tables.joint import Joint

ROUNDOFF = 2.0**-53
"""Largest relative error of one floating-point operation."""

SUM_ERROR = 18 * ROUNDOFF
"""Bound on the relative error of a sum of terms t log(m/t), all of one sign: five conversions of integers,
two quotients, a product and the exact sum round once each; the logarithm is within 4 units in the last place,
8 roundoffs (NumPy's vector loops; usually 1). Computed as log1p((m - t)/t) it loses nothing near m = t."""


@dataclass(frozen=True)
class Utility:
    """Utility in nats. `mutual_information` and `nmi` are never above the true values.

    They are below them by at most about 5e-15 H(X) and 5e-15. `entropy` is H(X), with a relative error of at
    most 2e-15; `nmi` is I(X;Y)/H(X), and 1 when X is constant (nothing is lost).
    """

    mutual_information: float
    entropy: float
    nmi: float


def utility(channel: Channel, joint: Joint) -> Utility:
    """I(X;Y), H(X) and their quotient for the integers of `channel` under `joint`.

    I(X;Y) = H(X) - H(X|Y), each summed exactly from non-negative terms such as P(x, y) log(P(y) / P(x, y)),
    whose arguments are formed of exact integers: their relative error does not grow with the channel.
    """
    joint = released_part(channel, joint)
    weights, total = joint.useful_counts, joint.total
    if len(weights) == 1:
        return Utility(0.0, 0.0, 1.0)
    h = _sum_of_logs([([*weights], total)], total)
    # An output that names its input leaves no uncertainty.
    masses = [
        list(map(mul, [weights[x] for x in at], v)) for at, v in columns_on(channel, joint) if len(at) > 1
    ]
    groups = [(each, sum(each)) for each in masses]
    low = h * (1.0 - SUM_ERROR)
    if not groups:
        return Utility(low, h, 1.0)
    lost = _sum_of_logs(groups, total * channel.denominator) * (1.0 + SUM_ERROR)
    share = 1.0 - lost / low * (1.0 + 4 * ROUNDOFF)
    return Utility(
        mutual_information=max(0.0, math.nextafter(low - lost, -math.inf)),
        entropy=h,
        nmi=max(0.0, math.nextafter(share, -math.inf)),
    )


def _sum_of_logs(groups: list[tuple[list[int], int]], scale: int) -> float:
    """Sum of t log(m/t) / scale over the positive integers t of every group (list of t, m >= t)."""
    terms = np.array([float(t) for masses, _ in groups for t in masses])
    rests = np.array([float(m - t) for masses, m in groups for t in masses])
    return math.fsum((terms * np.log1p(rests / terms)).tolist()) / float(scale)
