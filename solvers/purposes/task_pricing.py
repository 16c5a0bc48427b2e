"""Pricing for `solvers.purposes.task`: the posterior v of least h(B v) - y.v in a polytope, with a
bound.

Both classes have the method `least`. `Listing` evaluates all vertices, for a concave cost has its
minimum at one of them. `Branching` searches the |T| coordinates z = B v by branch and bound,
however many symbols v has:

1. On a box of z, each term -z log z lies above its chord, so the chords make a linear program in v,
   whose value bounds the box from below (`task_program`).
2. The box of least bound is cut in two, where a term lies furthest above its chord.
3. The search ends when the least bound meets the cost of the best posterior.

For example, on the box [0, 1] the chord of -z log z is 0, and at z = 1/2 the term lies .35 above
it; on [1/4, 1/2] the chord is .347 at both ends, and the term at most .022 above it.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass

import numpy as np

from solvers.points import Array, entropy_terms
from solvers.purposes.task_program import MULTIPLIER_ERROR, NodeProgram
from solvers.sets.polytope import Polytope

NODES_A_ROUND = 2000
"""Boxes after which pricing is content with the columns so far, if they gain anything: new prices
are worth more than a proof for old ones."""

VERTEX_ERROR = 1e-12
"""Distance from a vertex within which doubles place it, beside the residual that is measured."""


class Listing:
    """min over the relaxation of h(B v) - prices.v, at its vertices; columns are the inner ones.

    Parameters
    ----------
    outer : Polytope
        The relaxation.
    task : (|T|, n) array
        B.
    listed, members : (k, n) arrays
        The vertices of the relaxation, and those of the inner polytope.
    """

    nodes = 0

    def __init__(
        self, outer: Polytope, task: Array, listed: Array, members: Array
    ) -> None:
        self._vertices = listed
        self._members = members
        self._member_costs = task_entropies(members, task)
        self._costs = task_entropies(listed, task)
        # Distance of a listed vertex from the true one.
        self._error = float(max(outer.residual(listed).max(), 0.0)) + VERTEX_ERROR
        self._terms = len(task)

    def least(
        self, prices: Array, tolerance: float, end: float, most: int
    ) -> tuple[float, Array]:
        """As `Branching.least`; listed vertices need neither a tolerance nor time."""
        reduced = self._costs - self._vertices @ prices
        error = self._error
        # Each of the |T| terms moves by at most the entropy of the error, as they are concave.
        slack = self._terms * float(entropy_terms(np.array([error])).sum())
        slack += float(np.abs(prices).max()) * error * len(prices)
        gains = self._member_costs - self._members @ prices
        best = np.argsort(gains, kind="stable")[:most]
        best = best[gains[best] < 0.0]
        return float(reduced.min()) - slack, self._members[best]


class Branching:
    """min over the relaxation of h(B v) - prices.v, by best-first branch and bound in z = B v.

    `nodes` counts the linear programs of all calls.
    """

    def __init__(self, inner: Polytope, outer: Polytope, task: Array) -> None:
        self._task = task
        self._program = NodeProgram(inner, outer, task)
        self.nodes = 0

    def least(
        self, prices: Array, tolerance: float, end: float, most: int
    ) -> tuple[float, Array]:
        """A proven lower bound of the minimum, and points of negative reduced cost; (k, n).

        The search stops when the bound is within `tolerance` of the least reduced cost that was
        found, or of zero, and at `end`.
        """
        size = len(self._task)
        root = self._node(prices, np.zeros(size), np.ones(size))
        if root is None:
            # An empty node proves everything; at the root it would be a failure of HiGHS.
            return -math.inf, np.zeros((0, len(prices)))
        # The serial number orders nodes of equal bounds, which cannot be compared themselves.
        queue: list[tuple[float, int, _Node]] = [(root.bound, 0, root)]
        order = itertools.count(1)
        gaining: list[tuple[float, Array]] = []
        best = 0.0
        bound = root.bound
        last = self.nodes + NODES_A_ROUND
        while queue:
            # The least bound of all open boxes bounds the minimum.
            bound, _, node = heapq.heappop(queue)
            if bound >= best - tolerance or time.process_time() >= end:
                break
            if self.nodes > last and best < -tolerance:
                break
            terms = entropy_terms(np.clip(self._task @ node.v, 0.0, 1.0))
            cost = float(terms.sum() - prices @ node.v)
            if cost < 0.0:
                gaining.append((cost, node.v))
                best = min(best, cost)
            for low, high in self._branches(node):
                child = self._node(prices, low, high)
                if child is None:
                    continue
                # A part of a box has at least the bound of the whole.
                tightened = _Node(low, high, max(child.bound, bound), child.v, child.z)
                heapq.heappush(queue, (tightened.bound, next(order), tightened))
        else:
            # All boxes were empty or closed: nothing is below the best point found.
            bound = best
        gaining.sort(key=lambda pair: pair[0])
        columns = [v for _, v in gaining[:most]]
        if not columns:
            return bound, np.zeros((0, len(prices)))
        return bound, np.array(columns)

    def _branches(self, node: _Node) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Two boxes that cover the node's, cut where a term lies furthest above its chord."""
        terms = entropy_terms(np.clip(node.z, 0.0, 1.0))
        slope, intercept = _chords(node.low, node.high)
        error = terms - (slope * node.z + intercept)
        t = int(np.argmax(error))
        width = node.high[t] - node.low[t]
        # Near an end the cut would leave a box as wide as before.
        least = node.low[t] + 0.1 * width
        most = node.high[t] - 0.1 * width
        cut = float(np.clip(node.z[t], least, most))
        left_high = node.high.copy()
        left_high[t] = cut
        right_low = node.low.copy()
        right_low[t] = cut
        return (node.low, left_high), (right_low, node.high)

    def _node(self, prices: Array, low: Array, high: Array) -> _Node | None:
        """The program of a box; None where the box has no member."""
        self.nodes += 1
        slope, intercept = _chords(low, high)
        solution = self._program.solve(-prices, slope, low, high)
        if solution is None:
            return None
        bound, v, z = solution
        return _Node(low, high, bound + float(intercept.sum()), v, z)


@dataclass(frozen=True, eq=False)
class _Node:
    """A box of z, (|T|,), the minimiser v (n,) of its program and the bound that is proven."""

    low: Array
    high: Array
    bound: float
    v: Array
    z: Array


def task_entropies(points: Array, task: Array) -> Array:
    """Entropy of the task at each point, (k,), in nats."""
    return entropy_terms(np.clip(points @ task.T, 0.0, 1.0)).sum(axis=1)


def _chords(low: Array, high: Array) -> tuple[Array, Array]:
    """Slope and intercept of the chord of -z log z on each interval, rounded downwards."""
    at_low = entropy_terms(low)
    at_high = entropy_terms(high)
    width = high - low
    positive = width > 0.0
    slope = np.where(positive, (at_high - at_low) / np.where(positive, width, 1.0), 0.0)
    # Below both ends whatever the rounding of the slope: then below the concave term in between.
    intercept = np.minimum(at_low - slope * low, at_high - slope * high)
    size = np.abs(at_low) + np.abs(at_high) + np.abs(slope)
    return slope, intercept - MULTIPLIER_ERROR * size
