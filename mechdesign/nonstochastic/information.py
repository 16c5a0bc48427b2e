"""Entropy, information and leakage of ranges, and leakage against guessing (bits).

|X| is the number of values of X, and |X|y| the number of those that are possible together with the
output y. Every measure is a binary logarithm of such numbers:

- H0(X) = log |X|, and H0(X|Y) = max over y of log |X|y| (Farokhi 2019, eq. (1) and (3));
- I0(X;Y) = H0(X) - H0(X|Y) = min over y of log(|X| / |X|y|) (eq. (5));
- L0(X;Y) = max over y of log(|X| / |X|y|), and L0s = min(L0(X;Y), L0(Y;X)) (eq. (6) and (8));
- I*(X;Y) = log of the number of overlap classes (eq. (9), after Nair 2013; `overlap_partition`);
- L*(X -> Y) = log(|X| - min over y of |X|y| + 1), the largest L0 of any feature of X (Farokhi and
  Ding 2020, Definition 2 and Proposition 4).

For example, output 1 occurs with a, b and c, and output 2 with d and e. H0(X) is log 5 = 2.32 and
H0(X|Y) is log 3 = 1.58, so I0(X;Y) = 0.74. L0(X;Y) = log(5 / 2) = 1.32, and L0(Y;X) = L0s = 1. The
outputs share no value, so there are two classes and I* = 1. L* = log(5 - 2 + 1) = 2: of the four
values a, b, c and 'd or e' of a feature, output 2 leaves one.

Every function counts symbols and measures X unless its docstring names another variable;
``joint.reverse`` swaps X and Y. Theorems in the docstrings about guessing are those of Farokhi and
Ding 2020. Its Proposition 3(e) is false: L* of unrelated pairs is superadditive
(docs/explanation/ranges-theory.md, 'Guessing').
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.balls import log2_above
from mechdesign.nonstochastic.output_budgets import smallest_cell
from mechdesign.nonstochastic.ranges import JointRange


def range_leakage(joint: JointRange) -> float:
    """L0(X;Y) = max over y of log(|X| / |X|y|) (Farokhi 2019, eq. (6), bits)."""
    return joint.log(Fraction(joint.x_total) / joint.smallest_x)


def symmetric_leakage(joint: JointRange) -> float:
    """L0s(X;Y) = min(L0(X;Y), L0(Y;X)) (Farokhi 2019, eq. (8), bits)."""
    return min(range_leakage(joint), range_leakage(joint.reverse))


def overlap_partition(joint: JointRange) -> tuple[int, NDArray[np.int64]]:
    """The finest partition [[X|Y]]_* of [[X]] whose classes no [[X|y]] crosses.

    The classes are the connected components of the bipartite graph of the pairs; the log of their
    number is I*(X;Y).

    Returns
    -------
    The number of classes, and the class of each x: (|X|,) integers.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n_x, n_y = joint.shape
    ones = np.ones(joint.n_pairs, dtype=np.int8)
    # The nodes are all x, followed by all y. Two x with a common output are joined through it, so
    # chains of overlapping conditional ranges are paths.
    nodes = n_x + n_y
    graph = csr_array((ones, (joint.rows, joint.columns + n_x)), shape=(nodes, nodes))
    n_classes, labels = connected_components(graph, directed=False)
    return int(n_classes), np.asarray(labels[:n_x], dtype=np.int64)


@dataclass(frozen=True)
class RangeReport:
    """The measures of a joint range in bits: of X given Y, and `_reverse` of Y given X.

    They are H0(X) (`entropy`), H0(X|Y), I0(X;Y), L0(X;Y) (`leakage`), L0s, and the number of
    overlap classes with its log, I*. The chain ``maximin <= symmetric_leakage <= leakage_reverse``
    holds (docs/explanation/ranges-theory.md, 'Measures of ranges').
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
    reverse = joint.reverse
    x_total = Fraction(joint.x_total)
    y_total = Fraction(reverse.x_total)
    x_largest = Fraction(joint.largest_x)
    y_largest = Fraction(reverse.largest_x)
    classes, _ = overlap_partition(joint)
    return RangeReport(
        unit=joint.unit,
        entropy=joint.log(x_total),
        entropy_reverse=joint.log(y_total),
        conditional_entropy=joint.log(x_largest),
        conditional_entropy_reverse=joint.log(y_largest),
        information=joint.log(x_total / x_largest),
        information_reverse=joint.log(y_total / y_largest),
        leakage=range_leakage(joint),
        leakage_reverse=range_leakage(reverse),
        symmetric_leakage=symmetric_leakage(joint),
        classes=classes,
        maximin=joint.log(Fraction(classes)),
    )


def brute_force_leakage(
    joint: JointRange, feature: Callable[[Any], Hashable] | None = None
) -> float:
    """L(U -> Y) = log2(|U| / min_y |U|y|) for U = feature(X), or for X itself (bits).

    Its power of two is the factor by which the output saves guesses in the worst case
    (Definition 1).
    """
    if feature is not None:
        joint = joint.map_x(feature)
    return range_leakage(joint)


@dataclass(frozen=True)
class WorstAttribute:
    """The feature of X that `output` helps most to guess (Remark 1).

    It merges all values of X that are possible at the output, `merged`, and has `n_values` values.
    """

    output: Hashable
    merged: frozenset[Hashable]
    n_values: int


def worst_attribute(joint: JointRange) -> WorstAttribute:
    """The attribute that attains the maximal leakage (eq. (8))."""
    output = joint.y_symbols[int(joint.x_sizes.argmin())]
    # One value for all that are possible at the output, and the others each on their own.
    n_values = joint.x_total - joint.smallest_x + 1
    return WorstAttribute(output, joint.x_given(output), n_values)


def maximal_leakage(joint: JointRange) -> float:
    """L*(X -> Y) = log2(|X| - min_y |X|y| + 1), over all features of X (Proposition 4, bits)."""
    return math.log2(joint.x_total - joint.smallest_x + 1)


def is_identifiable(joint: JointRange, epsilon: object) -> bool:
    """Whether |X|y| >= |X| 2^-epsilon for every output y, decided exactly (Definition 3)."""
    return joint.smallest_x >= smallest_cell(joint.x_total, epsilon)


def identifiable_epsilon(joint: JointRange) -> float:
    """The smallest double epsilon (bits) at which the mapping is epsilon-identifiable.

    It is L0(X;Y) rounded upwards, so `is_identifiable` is true at this very number.
    """
    return log2_above(Fraction(joint.x_total, joint.smallest_x))


def largest_stochastic_leakage(joint: JointRange) -> float:
    """The supremum of the stochastic maximal leakage over all channels with this range (bits).

    It is log2 of the largest matching between inputs and outputs, hence at most H0(Y) and at most
    H0(X): an optimal channel gives as many inputs as possible an output of their own. With
    H0(X|Y) added it bounds the maximal leakage (Proposition 8): an input whose output is not
    covered by its own vertex lies in a covered [[X|y]], so |X| <= matching * max |X|y| (Koenig).
    """
    from scipy.sparse.csgraph import maximum_bipartite_matching

    # Unmatched inputs have -1.
    matching = maximum_bipartite_matching(joint.incidence, perm_type="column")
    return math.log2(int((np.asarray(matching) >= 0).sum()))
