"""The lifts that the outputs of a node have, and the inequalities that their bounds ask of them.

A row is released level by level (a column, or several as one symbol), and what was released of it
so far is a node of a tree. The channel W(y|x) of the node releases the symbol x of the next level
as an output y (`row_node`). How far the lifts of the outputs may go is said by the node's `Bounds`
(`row_budgets`): for each s a lower and an upper one, and a largest quotient of two lifts.

Let A[s, x] be the lift of the sensitive value s after the symbol x: P(s | node, x) over the prior
of the promise. With the mass p(x) of x within the node, the output y has the lifts

    L_s(y) = sum_x A[s, x] p(x) W(y|x) / sum_x p(x) W(y|x) = (A v)_s,

v the posterior of x after y. So lower <= L_s(y) <= upper are linear inequalities in the posterior
(`lift_polytope`), or, multiplied out by the mass of y, in the column (`output_rows`). A bound on
quotients, L_s(y) <= ratio L_t(y) for all s and t, is linear with one more variable t_y
(docs/explanation/rows-theory.md, proposition 7):

    t_y <= L_s(y) <= ratio t_y for all s.

For example, with A = [[1.5, 0.5]] and p = (1/2, 1/2) an output that has the first symbol in three
of four cases has the lift 1.5 * 3/4 + 0.5 * 1/4 = 1.25.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.mechanisms.row_budgets import Bounds
from solvers import Array, Polytope


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The law at a node.

    Parameters
    ----------
    lifts : (|S|, n) array
        A[s, x]; every entry finite.
    masses : (n,) array
        p(x), positive, summing to 1.
    task : (|T|, n) array, optional
        P(t | x) at the node, where the outputs should tell of T.
    """

    lifts: Array
    masses: Array
    task: Array | None = None

    def own_lifts(self) -> Array:
        """(|S|,) array A p: the lifts of the node itself, which are the means of its outputs'."""
        return self.lifts @ self.masses

    def of_outputs(self, rows: Array) -> tuple[Array, Array]:
        """Masses of the outputs (m,) and their lifts times these masses (|S|, m) for W as an (n, m)
        array.
        """
        joint = self.masses[:, None] * rows
        return joint.sum(axis=0), self.lifts @ joint


def reachable(bounds: Bounds, own: Array, margin: float) -> Bounds:
    """Bounds moved inwards by a relative margin, as far as the node's own lifts allow.

    A constant output has the node's own lifts, so it always stays within.
    """
    lower = np.minimum(bounds.lower * (1.0 + margin), own[:, None])
    upper = np.maximum(bounds.upper * (1.0 - margin), own[:, None])
    ratio = bounds.ratio
    if bounds.has_ratio:
        positive = own[own > 0.0]
        ratio = np.maximum(
            ratio * (1.0 - margin), float(positive.max() / positive.min())
        )
    return Bounds(lower, upper, ratio)


def symbols_keep(lifts: Array, bounds: Bounds) -> bool:
    """Whether every symbol may be released as it is."""
    if (lifts > bounds.upper).any() or (lifts < bounds.lower).any():
        return False
    if not bounds.has_ratio:
        return True
    present = lifts[lifts.any(axis=1)]
    return bool((present.max(axis=0) <= bounds.ratio * present.min(axis=0)).all())


def lift_polytope(lifts: Array, bounds: Bounds) -> Polytope:
    """The posteriors v over x whose lifts A v keep the bounds, the same for all outputs.

    A posterior v is the law of x after an output, and A v are its lifts. A bound on the quotients
    of lifts needs an auxiliary variable t with t <= A v <= ratio t (proposition 7).
    """
    least = bounds.lower[:, 0]
    most = bounds.upper[:, 0]
    rows: list[Array] = []
    lower: list[Array] = []
    upper: list[Array] = []
    # Coefficients of t, zero where a row bounds a single lift.
    auxiliary: list[Array] = []
    bounded = (least > 0.0) | np.isfinite(most)
    if bounded.any():
        rows.append(lifts[bounded])
        lower.append(np.where(least > 0.0, least, -math.inf)[bounded])
        upper.append(most[bounded])
        auxiliary.append(np.zeros(int(bounded.sum())))
    if bounds.has_ratio:
        # Symbols that do not occur here have lift zero in every output; a relative promise says
        # nothing of them.
        present = lifts.any(axis=1)
        count = int(present.sum())
        # A v - t >= 0 and A v - ratio t <= 0.
        rows += [lifts[present], lifts[present]]
        lower += [np.zeros(count), np.full(count, -math.inf)]
        upper += [np.full(count, math.inf), np.zeros(count)]
        auxiliary += [np.full(count, -1.0), np.full(count, -bounds.ratio[0])]
    column = None
    if bounds.has_ratio:
        column = np.concatenate(auxiliary)[:, None]
    return Polytope(
        np.vstack(rows), np.concatenate(lower), np.concatenate(upper), column
    )


def output_rows(lifts: Array, bounds: Bounds) -> tuple[Array, Array]:
    """Rows G (k, m, n) and g (k, m) with sum_x G[y, r, x] p(x) W(y|x) + g[y, r] t_y <= 0 for every
    output y; k is 1 where all outputs have the same bounds.

    A bound that no symbol's own lift breaks holds for every mixture, and is left out.
    """
    largest = lifts.max(axis=1, keepdims=True)
    smallest = lifts.min(axis=1, keepdims=True)
    above = np.flatnonzero((largest > bounds.upper).any(axis=1))
    below = np.flatnonzero((smallest < bounds.lower).any(axis=1))
    count = len(bounds.ratio)
    # (k, m, n): bounds of some outputs may be infinite only where all are.
    general = [
        lifts[above] - bounds.upper[above].T[:, :, None],
        bounds.lower[below].T[:, :, None] - lifts[below],
    ]
    weights = [np.zeros((count, len(above))), np.zeros((count, len(below)))]
    if bounds.has_ratio:
        # t_y lies between all lifts and their largest over exp(epsilon).
        present = lifts[lifts.any(axis=1)]
        shape = (count, *present.shape)
        general += [np.broadcast_to(-present, shape), np.broadcast_to(present, shape)]
        ratios = np.broadcast_to(-bounds.ratio[:, None], (count, len(present)))
        weights += [np.ones((count, len(present))), ratios]
    return np.concatenate(general, axis=1), np.concatenate(weights, axis=1)
