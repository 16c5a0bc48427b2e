"""How far a released value can move a belief: the extreme posteriors P(s|y) of every sensitive symbol."""

from __future__ import annotations

import math
from fractions import Fraction

from mechdesign.auditing.means import masses_by_output
from mechdesign.channel.channel import Channel
from mechdesign.tables.joint import Joint


def belief_ranges(channel: Channel, joint: Joint) -> list[tuple[float, float]]:
    """The smallest and the largest P(s|y) over all outputs y, for each s, from integers and rounded outwards.

    Of several secrets, one after the other.
    """
    if joint.sensitive.each:
        return [each for secret in joint.secrets for each in belief_ranges(channel, secret)]
    ranges = [[(1, 1), (0, 1)] for _ in joint.sensitive.symbols]
    for out in masses_by_output(joint.counts, channel.integers.columns, joint):
        for extremes, mass in zip(ranges, out.masses, strict=True):
            low, high = extremes
            if mass * low[1] < low[0] * out.output:
                extremes[0] = (mass, out.output)
            if mass * high[1] > high[0] * out.output:
                extremes[1] = (mass, out.output)
    return [(_rounded(*low, -math.inf), _rounded(*high, math.inf)) for low, high in ranges]


def _rounded(numerator: int, denominator: int, direction: float) -> float:
    """The double next to a share on the side of `direction`."""
    value, exact = numerator / denominator, Fraction(numerator, denominator)
    wrong = value > exact if direction < 0.0 else value < exact
    return math.nextafter(value, direction) if wrong else value
