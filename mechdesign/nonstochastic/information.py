"""Entropy, information and leakage of ranges, and the overlap partition (no probabilities).

Every function counts symbols (**bits**) and is about X unless it says otherwise; ask for
``joint.reverse`` to swap X and Y.

Sources: Farokhi 2020 (Non-stochastic hypothesis testing), eq. (1) to (5); Farokhi 2019 (Noiseless
privacy), eq. (1) to (9); Nair 2013 for maximin information.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.nonstochastic.ranges import JointRange

__all__ = [
    "OverlapPartition",
    "RangeReport",
    "conditional_range_entropy",
    "maximin_information",
    "overlap_partition",
    "range_entropy",
    "range_information",
    "range_leakage",
    "range_report",
    "symmetric_leakage",
]


def range_entropy(joint: JointRange) -> float:
    """H0(X) = log2 of the number of values (bits)."""
    return joint.log(Fraction(joint.x_total))


def conditional_range_entropy(joint: JointRange) -> float:
    """H0(X|Y): log of the largest conditional range [[X|y]]."""
    return joint.log(Fraction(joint.largest_x))


def range_information(joint: JointRange) -> float:
    """I0(X;Y) = H0(X) - H0(X|Y), the least gain over the outputs; not symmetric (bits)."""
    return joint.log(Fraction(joint.x_total) / joint.largest_x)


def range_leakage(joint: JointRange) -> float:
    """L0(X;Y): the largest log(|X| / |X|y|) over all outputs y (bits)."""
    return joint.log(Fraction(joint.x_total) / joint.smallest_x)


def symmetric_leakage(joint: JointRange) -> float:
    """L0s(X;Y) = min(L0(X;Y), L0(Y;X)) (bits)."""
    return min(range_leakage(joint), joint.log(Fraction(joint.reverse.x_total) / joint.reverse.smallest_x))


@dataclass(frozen=True)
class OverlapPartition:
    """The finest partition of [[X]] into sets that no conditional range [[X|y]] crosses."""

    n_classes: int
    x_classes: NDArray[np.int64]
    y_classes: NDArray[np.int64]


def overlap_partition(joint: JointRange) -> OverlapPartition:
    """The overlap partition [[X|Y]]_*: connected components of the bipartite graph of the pairs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n_x, n_y = joint.shape
    ones = np.ones(joint.n_pairs, dtype=np.int8)
    graph = csr_array((ones, (joint.rows, joint.columns + n_x)), shape=(n_x + n_y, n_x + n_y))
    n_classes, labels = connected_components(graph, directed=False)
    classes = np.asarray(labels, dtype=np.int64)
    classes.setflags(write=False)
    return OverlapPartition(int(n_classes), classes[:n_x], classes[n_x:])


def maximin_information(joint: JointRange) -> float:
    """I*(X;Y) = log2 of the number of classes of the overlap partition; symmetric (bits)."""
    return math.log2(overlap_partition(joint).n_classes)


@dataclass(frozen=True)
class RangeReport:
    """All measures of a joint range, in one `unit` (bits).

    The chain ``maximin <= symmetric_leakage <= leakage_reverse`` holds in that unit.
    """

    unit: str
    entropy: float
    entropy_reverse: float
    conditional_entropy: float
    conditional_entropy_reverse: float
    information: float
    information_reverse: float
    leakage: float
    leakage_reverse: float
    symmetric_leakage: float
    classes: int
    maximin: float


def range_report(joint: JointRange) -> RangeReport:
    """Every measure of this module for X given Y, and `_reverse` for Y given X."""
    back = joint.reverse
    classes = overlap_partition(joint).n_classes
    return RangeReport(
        unit=joint.unit,
        entropy=range_entropy(joint),
        entropy_reverse=range_entropy(back),
        conditional_entropy=conditional_range_entropy(joint),
        conditional_entropy_reverse=conditional_range_entropy(back),
        information=range_information(joint),
        information_reverse=range_information(back),
        leakage=range_leakage(joint),
        leakage_reverse=range_leakage(back),
        symmetric_leakage=symmetric_leakage(joint),
        classes=classes,
        maximin=joint.log(Fraction(classes)),
    )
