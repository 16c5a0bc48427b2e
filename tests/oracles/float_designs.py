"""Designs as a solver would return them, by the shortest route: cddlib and scipy, no check of
anything.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.limits import LiftLimits
from mechdesign.tables.joint import Joint

Array = NDArray[np.float64]


def random_table(rng: np.random.Generator, most_s: int = 5, most_x: int = 12) -> Joint:
    """A table of 2 x 2 up to the given size: plain, sparse, near-tied, tiny, huge or with rare
    symbols.
    """
    shape = int(rng.integers(2, most_s + 1)), int(rng.integers(2, most_x + 1))
    kind = int(rng.integers(6))
    if kind == 0:
        table = rng.integers(1, 3000, shape)
    elif kind == 1:
        table = rng.integers(1, 3000, shape) * (rng.random(shape) < 0.6)
    elif kind == 2:
        table = rng.integers(1000, 1003, shape)
    elif kind == 3:
        table = rng.integers(0, 4, shape)
    elif kind == 4:
        table = (rng.random(shape) * 2**60).astype(np.int64)
    else:
        table = rng.integers(1, 10 ** rng.integers(1, 7, shape[1]), shape)
    table[np.arange(max(shape)) % shape[0], np.arange(max(shape)) % shape[1]] += (
        1  # full support
    )
    return Joint.from_counts(table)


def boundary(
    joint: Joint, limits: LiftLimits, rng: np.random.Generator
) -> tuple[Array, Array]:
    """A random channel, mixed with its output marginal until its worst lift is at the limit, up to
    rounding.
    """
    n = len(joint.useful)
    w = rng.random((n, n)) ** 4 * (rng.random((n, n)) < 0.5) + np.eye(n)
    w /= w.sum(axis=1, keepdims=True)
    p_y = joint.p_x @ w
    lifts = (joint.p / joint.p_s[:, None] @ w) / p_y
    high = lifts.max(axis=0)
    low = lifts.min(axis=0)
    t = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        if math.isfinite(limits.upper):
            t = max(t, float(np.nanmax((high - math.exp(limits.upper)) / (high - 1.0))))
        if math.isfinite(limits.lower):
            t = max(t, float(np.nanmax((math.exp(-limits.lower) - low) / (1.0 - low))))
        if math.isfinite(limits.ratio):
            b = math.exp(limits.ratio)
            t = max(t, float(np.nanmax((high - b * low) / (high - 1.0 - b * low + b))))
    w = (1.0 - t) * w + t * p_y
    return p_y, (joint.p_x[:, None] * w / p_y).T


def vertices(joint: Joint, limits: LiftLimits, margin: float = 1e-12) -> Array | None:
    """Vertices (k, |X|) of the posteriors within the limits shrunk by a relative margin; None if
    cddlib fails.
    """
    import cdd

    n = len(joint.useful)
    a = joint.lift
    rows: list[Array] = []
    for limit, sign in ((limits.upper, 1.0), (limits.lower, -1.0)):
        if math.isfinite(limit):
            bound = math.exp(sign * limit) * (1.0 - sign * margin)
            rows.append(np.hstack([np.full((len(a), 1), sign * bound), -sign * a]))
    if math.isfinite(limits.ratio):
        factor = math.exp(limits.ratio) * (1.0 - margin)
        for s in range(len(a)):
            rows.append(np.hstack([np.zeros((len(a), 1)), factor * a - a[s]]))
    rows.append(np.hstack([np.zeros((n, 1)), np.eye(n)]))
    simplex = np.concatenate(([-1.0], np.ones(n)))[None, :]
    table = np.vstack([*rows, simplex])
    matrix = cdd.matrix_from_array(
        table.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set={len(table) - 1}
    )
    try:
        points = np.array(cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array)
    except RuntimeError:  # 'numerical inconsistency'
        return None
    return np.maximum(points[:, 1:], 0.0) if points.ndim == 2 else None


def optimal(
    joint: Joint, limits: LiftLimits, margin: float = 1e-12
) -> tuple[Array, Array] | None:
    """Weights and posteriors of the design of least H(X|Y) over `vertices`; None if there is none."""
    from scipy.optimize import linprog

    points = vertices(joint, limits, margin)
    if points is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = -np.where(points > 0.0, points * np.log(points), 0.0).sum(axis=1)
    result = linprog(cost, A_eq=points.T, b_eq=joint.p_x, method="highs-ds")
    if result.x is None:
        return None
    used = result.x > 0.0
    return result.x[used], points[used]
