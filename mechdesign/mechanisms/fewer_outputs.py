"""A design with fewer outputs, where all of them would take too long to verify.

A search that ends early may leave an output for every symbol, with entries for all symbols. The
exact audit of 2,000 x 2,000 integers takes seconds, and so do the figures and the file that come
after it. They belong to the time limit of a design. `rounded_in_time` therefore

1. verifies the design with `PROBED` outputs, which prepares what every verdict needs,
2. verifies it again, and takes the time of that,
3. estimates from it how many outputs can be verified and written in time, and merges the others,
4. moves the merged posteriors away from P_X again, as far as the promise allows (`lengthened`).

Outputs are merged as masses, so that P_X is met as before. The posterior of merged outputs is their
mean. A promise whose posteriors form a convex set stays satisfied, and the bound on every other
channel holds. For example, 2,000 outputs of which 500 are affordable become 500 of four each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from solvers import Array, Points
from solvers.sets.polytope import last_inside

if TYPE_CHECKING:
    from mechdesign.mechanisms.rules import Rules

PROBED = 16
"""Outputs whose verification is timed."""

PROBED_FROM = 250_000
"""Entries of a design from which that is done: fewer are verified and written in a second."""

AFTERWARDS = 2.0
"""So many times the time of rounding and verifying go into the figures and the file."""

HALVINGS = 8
"""Bisections of the ways along which merged outputs move. Each looks at all outputs, and they leave
less than a hundredth of the longest way."""

LONGEST = 30.0
"""Most times that such a way becomes longer."""

TOUCHING = 1e-9
"""Share of a way that is left where a symbol would lose all of its probability."""


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
        few = merged_outputs(weights, points, p_x, PROBED)
        rules.rounded(*few)
        before = time.process_time()
        probe = rules.rounded(*_as_far_as_allowed(rules, *few))
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
    many = merged_outputs(weights, points, p_x, most)
    return rules.rounded(*_as_far_as_allowed(rules, *many))


def _as_far_as_allowed(
    rules: Rules, weights: Array, points: Points
) -> tuple[Array, Points]:
    """The outputs as far from P_X as the promise allows."""
    is_inside = rules.is_inside
    if is_inside is None:
        return weights, points
    return lengthened(weights, points.toarray(), rules.joint.p_x, is_inside)


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


def lengthened(
    weights: Array,
    posteriors: Array,
    p_x: Array,
    is_inside: Callable[[Array], NDArray[np.bool_]],
) -> tuple[Array, Points]:
    """The outputs moved away from P_X as far as they are inside, by bisection of all ways.

    With v' = p + c (v - p) the weights beta / c, divided by their sum, decompose P_X as before. The
    given outputs are those of v' and an output that tells nothing, mixed: so they tell less.
    """
    ways = posteriors - p_x
    # Up to where a symbol has no probability any more.
    shrinking = np.maximum(-ways / p_x, 0.0).max(axis=1)
    with np.errstate(divide="ignore"):
        high = np.minimum((1.0 - TOUCHING) / shrinking, LONGEST)
    low = np.ones(len(ways))
    low = last_inside(
        lambda shares: is_inside(p_x + shares[:, None] * ways),
        low,
        np.maximum(high, low),
        HALVINGS,
    )
    beta = weights / low
    return beta / beta.sum(), Points.from_dense(p_x + low[:, None] * ways)
