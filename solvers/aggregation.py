"""A smaller problem whose prices are a good first guess for a large one.

Symbols with similar columns are merged by cutting the cloud of columns in halves along its longest side.
A decomposition of the merged problem splits into one of the original (each output picks one member of
every group) of the same cost and nearly the same rows, so the prices of a group fit its members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.polytope import Polytope

Array = NDArray[np.float64]

GROUP = 4
"""Largest number of symbols in a group."""

SMALL = 64
"""Problems of up to this many symbols are solved as they are."""


@dataclass(frozen=True, eq=False)
class Aggregation:
    """The merged polytope and point, and for every symbol its group (n,)."""

    polytope: Polytope
    point: Array
    group: NDArray[np.intp]


def aggregate(polytope: Polytope, point: Array) -> Aggregation:
    """Merge symbols with similar columns in groups of at most `GROUP`."""
    group = _groups(polytope.rows)
    count = int(group.max()) + 1
    mass = np.asarray(np.bincount(group, weights=point, minlength=count), dtype=np.float64)
    # A group without mass still has a column: the plain mean of its members.
    weight = np.where(mass[group] > 0.0, point, 1.0)
    total = np.bincount(group, weights=weight, minlength=count)
    rows = np.array(
        [np.bincount(group, weights=row * weight, minlength=count) / total for row in polytope.rows]
    )
    merged = Polytope(rows.reshape(polytope.m, count), polytope.lower, polytope.upper, polytope.auxiliary)
    return Aggregation(merged, mass, group)


def _groups(rows: Array) -> NDArray[np.intp]:
    group = np.zeros(rows.shape[1], dtype=np.intp)
    stack, count = [np.arange(rows.shape[1])], 0
    while stack:
        members = stack.pop()
        if len(members) <= GROUP or rows.shape[0] == 0:
            group[members] = count
            count += 1
            continue
        widest = int(np.argmax(np.ptp(rows[:, members], axis=1)))
        order = members[np.argsort(rows[widest, members], kind="stable")]
        half = len(order) // 2
        stack += [order[:half], order[half:]]
    return group
