"""Protocols of local differential privacy of a column itself, as exact channels beside the optimum.

Each gives every output y a set of values: P(y|x) is larger by the factor e^epsilon, or a product of
such factors, for the values in it. With k values and e = e^epsilon:

    randomised response   k outputs, each for one value
    subset selection      all sets of one size near k / (1 + e) (Ye and Barg 2018)
    unary encoding        2^k outputs: every value has a bit, set with probability p for the own
                          value and q for the others; p = 1 - q (RAPPOR), or p = 1/2 and
                          q = 1 / (1 + e) (OUE, Wang et al. 2017)
    Hadamard response     K outputs, the least power of two above k: value x has the half of them
                          where row x + 1 of the Hadamard matrix is positive (Acharya et al. 2019)

For example, of two values randomised response tells the own one with probability e / (1 + e).

A protocol whose outputs are too many to list has no channel here. Of unary encodings the variance
of their own estimates is known all the same: bit x is set with r = p_x p + (1 - p_x) q, and
estimates p_x by (bit - q) / (p - q).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about
from mechdesign.mechanisms.queries import FREQUENCIES
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import Rules, table_rules
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Array, Points

Sets: TypeAlias = NDArray[np.bool_]

MOST_OUTPUTS = 5_000
"""Outputs that a protocol may have to be a channel here: a second each."""

RESPONSE, SELECTION = "randomised response", "subset selection"
RAPPOR, OUE = "unary encoding (RAPPOR)", "unary encoding (OUE)"
HADAMARD = "Hadamard response"


@dataclass(frozen=True)
class Protocol:
    """The verified channel of a protocol, and the seconds it took."""

    name: str
    rounded: Rounded
    seconds: float


def are_compared(joint: Joint, notion: Notion) -> bool:
    """Whether protocols belong beside a design: the column itself, under LDP."""
    limits = notion.limits
    if not isinstance(limits, LiftLimits) or not joint.is_of_itself:
        return False
    has_lifts = math.isfinite(limits.lower) or math.isfinite(limits.upper)
    return math.isfinite(limits.ratio) and not has_lifts and not limits.symbol_budgets


def protocols(
    joint: Joint, notion: Notion, objective: object
) -> tuple[list[Protocol], list[str]]:
    """The channels of all protocols with few outputs, and the reason for each other one."""
    rules = table_rules(joint, notion)
    k = len(joint.useful)
    factor = math.exp(notion.limits.loosest.ratio)
    size = _best_size(k, factor)
    root = math.sqrt(factor)
    unary: dict[str, tuple[float, float]] = {
        RAPPOR: (root / (1.0 + root), 1.0 / (1.0 + root)),
        OUE: (0.5, 1.0 / (1.0 + factor)),
    }
    outputs = {
        RESPONSE: k,
        SELECTION: math.comb(k, size),
        RAPPOR: 1 << k,
        OUE: 1 << k,
        HADAMARD: 1 << k.bit_length(),
    }
    made: dict[str, Callable[[], Array]] = {
        RESPONSE: lambda: _of_sets(np.eye(k, dtype=np.bool_), factor),
        SELECTION: lambda: _of_sets(_sets_of(k, size), factor),
        RAPPOR: lambda: _of_bits(k, *unary[RAPPOR]),
        OUE: lambda: _of_bits(k, *unary[OUE]),
        HADAMARD: lambda: _of_sets(_hadamard(k), factor),
    }
    found: list[Protocol] = []
    remarks: list[str] = []
    for name, count in outputs.items():
        if count > MOST_OUTPUTS:
            remark = f"{name} has {count:,} outputs, too many to list them"
            if name in unary and objective == FREQUENCIES:
                variance = about(_own_variance(joint.p_x, *unary[name]))
                remark += f"; N x variance of its own estimates is {variance}"
            remarks.append(remark)
            continue
        started = time.process_time()
        try:
            rounded = _verified(made[name](), rules)
        except SolverFailure as error:
            remarks.append(f"{name}: {error}")
            continue
        found.append(Protocol(name, rounded, time.process_time() - started))
    return found, remarks


def _verified(columns: Array, rules: Rules) -> Rounded:
    """The channel P(y|x), (k, outputs), in integers."""
    masses = rules.joint.p_x @ columns
    posteriors = (columns * rules.joint.p_x[:, None] / masses).T
    return rules.rounded(masses, Points.from_dense(posteriors))


def _best_size(k: int, factor: float) -> int:
    """The size of sets with the least variance of frequencies: one of two near k / (1 + e)."""
    below = max(1, math.floor(k / (1.0 + factor)))

    def variance(size: int) -> float:
        # Ye and Barg 2018, eq. (13), up to terms that no size changes.
        own = size * factor / (size * factor + k - size)
        other = own * (size - 1) / (k - 1) + (1.0 - own) * size / (k - 1)
        return other * (1.0 - other) / (own - other) ** 2

    return min((below, min(below + 1, k - 1)), key=variance)


def _sets_of(k: int, size: int) -> Sets:
    """All sets of one size, (sets, k) of bool."""
    chosen = np.array(list(combinations(range(k), size)))
    sets = np.zeros((len(chosen), k), dtype=np.bool_)
    np.put_along_axis(sets, chosen, values=True, axis=1)
    return sets


def _hadamard(k: int) -> Sets:
    """The sets of values, (outputs, k), whose row of the Hadamard matrix is positive there."""
    signs = np.ones((1, 1))
    while len(signs) <= k:
        signs = np.block([[signs, signs], [signs, -signs]])
    return signs[1 : k + 1].T > 0.0


def _of_sets(sets: Sets, factor: float) -> Array:
    """P(y|x), (k, sets), larger by the factor for the values in a set."""
    weights = np.where(sets.T, factor, 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _of_bits(k: int, own: float, other: float) -> Array:
    """P(y|x), (k, 2^k): a bit for each value, all drawn for themselves."""
    is_set = (np.arange(1 << k)[:, None] >> np.arange(k)) & 1 == 1
    of_others = np.where(is_set, other, 1.0 - other).prod(axis=1)
    ratio = np.where(is_set, own / other, (1.0 - own) / (1.0 - other))
    return ratio.T * of_others


def _own_variance(p_x: Array, own: float, other: float) -> float:
    """N times the summed variance of the estimates (bit - q) / (p - q)."""
    rate = p_x * own + (1.0 - p_x) * other
    return float((rate * (1.0 - rate)).sum()) / (own - other) ** 2
