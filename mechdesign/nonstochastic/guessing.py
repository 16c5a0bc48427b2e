"""Leakage against an adversary who guesses: brute force, one shot, and stochastic (bits).

Source: Farokhi and Ding 2020 (Measuring information leakage in non-stochastic brute-force
guessing). Its Proposition 3(e), that the maximal leakage of unrelated pairs adds up, is false: it
is only superadditive. `composed_maximal_leakage` has the exact value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.information import range_leakage
from mechdesign.nonstochastic.levels import smallest_cell
from mechdesign.nonstochastic.ranges import JointRange


def brute_force_leakage(joint: JointRange, feature: Callable[[Any], Hashable] | None = None) -> float:
    """L(U -> Y) = log2(|U| / min_y |U|y|) for U = feature(X), or for X itself (bits).

    The factor by which the output saves guesses in the worst case (Definition 1).
    """
    return range_leakage(joint if feature is None else joint.map_x(feature))


@dataclass(frozen=True)
class WorstAttribute:
    """The feature of X that brute-force guessing profits from most (Remark 1).

    It merges the values compatible with `output`, one of the outputs with the fewest, and tells
    all others apart; call it with an x to get the value of the feature.
    """

    output: Hashable
    merged: frozenset[Hashable]
    n_values: int

    @property
    def leakage(self) -> float:
        """log2(n_values), the maximal leakage L*(X -> Y), in bits."""
        return math.log2(self.n_values)

    def __call__(self, x: Hashable) -> tuple[Hashable, ...]:
        """The value of the attribute at x."""
        return ("merged",) if x in self.merged else ("kept", x)


def worst_attribute(joint: JointRange) -> WorstAttribute:
    """The attribute that attains the maximal leakage (eq. (8))."""
    output = joint.y_symbols[int(joint.x_sizes.argmin())]
    return WorstAttribute(output, joint.x_given(output), joint.x_total - joint.smallest_x + 1)


def maximal_leakage(joint: JointRange) -> float:
    """L*(X -> Y) = log2(|X| - min_y |X|y| + 1), over all features of X (Proposition 4, bits)."""
    return math.log2(joint.x_total - joint.smallest_x + 1)


def composed_maximal_leakage(parts: Iterable[JointRange]) -> float:
    """L* of unrelated pairs (X_i, Y_i) taken together: log2(prod |X_i| - prod m_i + 1) (bits).

    m_i is the smallest conditional range of part i. This is Proposition 4 on the product; it is at
    least the sum of the parts' leakages, and often more, so the sum of Proposition 3(e) is no
    upper bound.

    Raises
    ------
    InputError
        If there is no part.
    """
    given = list(parts)
    if not given:
        raise InputError("a composition needs at least one joint range")
    return math.log2(prod(p.x_total for p in given) - prod(p.smallest_x for p in given) + 1)


def is_identifiable(joint: JointRange, epsilon: object) -> bool:
    """Whether |X|y| >= |X| 2^-epsilon for every output y, decided exactly (Definition 3)."""
    return joint.smallest_x >= smallest_cell(joint.x_total, epsilon)


def identifiable_epsilon(joint: JointRange) -> float:
    """The smallest double epsilon (bits) at which the mapping is epsilon-identifiable.

    It is L0(X;Y) rounded upwards, so that `is_identifiable` says yes at this very number.
    """
    epsilon = max(range_leakage(joint), 0.0)
    while not is_identifiable(joint, epsilon):
        epsilon = math.nextafter(epsilon, math.inf)
    while epsilon > 0 and is_identifiable(joint, math.nextafter(epsilon, 0.0)):
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def is_one_shot(joint: JointRange, feature: Callable[[Any], Hashable]) -> bool:
    """Whether every output determines the feature, so that a single guess is always right."""
    return joint.map_x(feature).largest_x == 1


def largest_stochastic_leakage(joint: JointRange) -> float:
    """The supremum of the stochastic maximal leakage over all channels with this range (bits).

    It is log2 of the largest matching between inputs and outputs, hence at most H0(Y) and at most
    H0(X): an optimal channel lets as many inputs as possible announce an output of their own. With
    H0(X|Y) added it bounds the maximal leakage (Proposition 8): an input whose output is not
    covered by its own vertex lies in a covered [[X|y]], so |X| <= matching * max |X|y| (Koenig).
    """
    from scipy.sparse.csgraph import maximum_bipartite_matching

    matched = np.asarray(maximum_bipartite_matching(joint.incidence, perm_type="column"))
    return math.log2(int((matched >= 0).sum()))
