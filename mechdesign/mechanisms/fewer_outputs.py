"""A design with fewer outputs, where all of them would take too long to verify.

A search that ends early may leave an output for every symbol, with entries for all symbols. The
exact audit of 2,000 x 2,000 integers takes seconds, and so do the figures and the file that come
after it. They belong to the time limit of a design. `rounded_in_time` therefore

1. verifies one output for everything, which prepares what every verdict needs,
2. verifies the design with `PROBED` outputs, and takes the time of that,
3. estimates from it how many outputs can be verified and written in time, and merges the others.

Outputs are merged as masses, so that P_X is met as before. The posterior of merged outputs is their
mean. A promise whose posteriors form a convex set stays satisfied, and the bound on every other
channel holds. For example, 2,000 outputs of which 500 are affordable become 500 of four each.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from solvers import Array, Points

if TYPE_CHECKING:
    from mechdesign.mechanisms.rules import Rules

PROBED = 16
"""Outputs whose verification is timed."""

PROBED_FROM = 250_000
"""Entries of a design from which that is done: fewer are verified and written in a second."""

AFTERWARDS = 2.0
"""So many times the time of rounding and verifying go into the figures and the file."""


def rounded_in_time(
    rules: Rules, weights: Array, points: Points, seconds: float | None
) -> Rounded:
    """The verified channel of a float design, with as many outputs as `seconds` are enough for.

    Parameters
    ----------
    weights : (k,) array
    points : Points, (k, n)
        Over the symbols of the table.
    seconds : float or None
        Processor time for verification, figures and file; None without a limit.

    Raises
    ------
    RoundingFailure
        As `Rules.rounded`.
    """
    if seconds is None or len(points.data) < PROBED_FROM:
        return rules.rounded(weights, points)
    p_x = rules.joint.p_x
    try:
        rules.rounded(np.ones(1), Points.from_dense(p_x))
        few = merged_outputs(weights, points, p_x, PROBED)
        before = time.process_time()
        probe = rules.rounded(*few)
        spent = time.process_time() - before
    except RoundingFailure:
        # What is wrong with the design is said about all of its outputs.
        return rules.rounded(weights, points)
    entries = len(probe.channel.integers.values)
    needed = (1.0 + AFTERWARDS) * spent * len(points.data) / entries
    if needed <= seconds:
        return rules.rounded(weights, points)
    most = int(len(points) * seconds / needed)
    if most <= PROBED:
        return probe
    return rules.rounded(*merged_outputs(weights, points, p_x, most))


def merged_outputs(
    weights: Array, points: Points, p_x: Array, most: int
) -> tuple[Array, Points]:
    """At most so many outputs: those that tell least are merged with each other, in equal groups.

    Returns weights, (k,), and posteriors, (k, n), as they are given.
    """
    if len(points) <= most:
        return weights, points
    # What an output tells of X: beta KL(v, p).
    told = weights * (-points.dot(np.log(p_x)) - points.entropies())
    order = np.argsort(told, kind="stable")
    into = np.empty(len(points), dtype=np.int64)
    # The first groups are the larger ones, so that outputs that tell much stay by themselves.
    for group, members in enumerate(np.array_split(order, most)):
        into[members] = group
    masses = np.bincount(
        into[points.owner] * len(p_x) + points.indices,
        weights[points.owner] * points.data,
        most * len(p_x),
    ).reshape(most, len(p_x))
    totals = masses.sum(axis=1)
    used = totals > 0.0
    return totals[used], Points.from_dense(masses[used] / totals[used, None])
