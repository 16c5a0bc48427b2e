"""Entropy, information and leakage measures on plain arrays (nats).

Every function takes a joint distribution as a (|S|, |Y|) array of probabilities, rows one variable
and columns the other, whose columns all have mass. Functions of the lift give one number per column
(output) and follow Zarrabian et al. 2023, Definitions 1 to 9: l(s, y) = P(s, y) / (P(s) P(y)). A
lift of zero makes the inverse measures infinite; no cell is ever left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.core.errors import InputError

Array = NDArray[np.float64]

SUM_TOLERANCE = 1e-9
"""A distribution may miss a sum of 1 by this much: a million times the rounding of a thousand additions."""

ORDER_ONE = 1e-8
"""Orders closer to 1 are computed as order 1: the general formula divides rounding errors of 1e-16 by
the distance to 1, and the measure itself moves by about that distance."""


def entropy(p: ArrayLike) -> float:
    """H = -sum p log p of a distribution (any shape), in nats."""
    values = _distribution(np.asarray(p, dtype=np.float64).ravel())
    positive = values[values > 0.0]
    return math.fsum((-positive * np.log(positive)).tolist())


def mutual_information(p: ArrayLike) -> float:
    """I = sum p(s, y) log l(s, y) over the cells of positive mass, in nats."""
    joint = _joint(p)
    cells = joint > 0.0
    terms = joint[cells] * np.log(lift(joint)[cells])
    return max(0.0, math.fsum(terms.tolist()))


def normalised_information(p: ArrayLike) -> float:
    """NMI = I / H of the row variable; 1 if that variable is constant (nothing is lost)."""
    joint = _joint(p)
    h = entropy(joint.sum(axis=1))
    return mutual_information(joint) / h if h > 0.0 else 1.0


def lift(p: ArrayLike) -> Array:
    """The lift l(s, y), (|S|, |Y|)."""
    joint = _joint(p)
    return joint / joint.sum(axis=1, keepdims=True) / joint.sum(axis=0, keepdims=True)


def max_lift(p: ArrayLike) -> Array:
    """Lambda(y) = max_s l(s, y), (|Y|,)."""
    return lift(p).max(axis=0)


def min_lift(p: ArrayLike) -> Array:
    """Psi(y) = min_s l(s, y), (|Y|,)."""
    return lift(p).min(axis=0)


def lift_ratio(p: ArrayLike) -> Array:
    """Gamma(y) = Lambda(y) / Psi(y), (|Y|,); infinite where a lift is zero."""
    lifts = lift(p)
    return lifts.max(axis=0) * _reciprocal(lifts.min(axis=0))


def l1_lift(p: ArrayLike) -> Array:
    """sum_s P(s) |l - 1|, (|Y|,)."""
    joint = _joint(p)
    return joint.sum(axis=1) @ np.abs(lift(joint) - 1.0)


def chi2_lift(p: ArrayLike) -> Array:
    """sum_s P(s) (l - 1)^2, (|Y|,)."""
    joint = _joint(p)
    return joint.sum(axis=1) @ (lift(joint) - 1.0) ** 2


def alpha_lift(p: ArrayLike, alpha: float) -> Array:
    """(sum_s P(s) l^alpha)^(1/alpha), (|Y|,), for alpha > 1; the largest lift for alpha = inf."""
    joint = _joint(p)
    return _power_mean(joint.sum(axis=1), lift(joint), _order_above_one(alpha))


def l1_lift_inverse(p: ArrayLike) -> Array:
    """sum_s P(s) |1/l - 1|, (|Y|,); infinite where a lift is zero."""
    joint = _joint(p)
    return joint.sum(axis=1) @ np.abs(_reciprocal(lift(joint)) - 1.0)


def chi2_lift_inverse(p: ArrayLike) -> Array:
    """sum_s P(s) (1/l - 1)^2, (|Y|,); infinite where a lift is zero."""
    joint = _joint(p)
    return joint.sum(axis=1) @ (_reciprocal(lift(joint)) - 1.0) ** 2


def alpha_lift_inverse(p: ArrayLike, alpha: float) -> Array:
    """(sum_s P(s) l^-alpha)^(1/alpha), (|Y|,), for alpha > 1; infinite where a lift is zero."""
    joint = _joint(p)
    return _power_mean(
        joint.sum(axis=1), _reciprocal(lift(joint)), _order_above_one(alpha)
    )


def total_variation(p: ArrayLike) -> float:
    """T(S;Y) = 1/2 sum |P(s, y) - P(s) P(y)|."""
    joint = _joint(p)
    return 0.5 * math.fsum(np.abs(joint - _independent(joint)).ravel().tolist())


def chi2_information(p: ArrayLike) -> float:
    """chi2(S;Y) = sum (P(s, y) - P(s) P(y))^2 / (P(s) P(y))."""
    joint = _joint(p)
    product = _independent(joint)
    return math.fsum(((joint - product) ** 2 / product).ravel().tolist())


def sibson_information(p: ArrayLike, order: float) -> float:
    """Sibson's mutual information of S and Y of an order in (0, inf], in nats.

    order/(order-1) log sum_y (sum_s P(s) P(y|s)^order)^(1/order); order 1 is I(S;Y), order inf the
    maximal leakage.
    """
    joint = _joint(p)
    order = _order(order)
    if abs(order - 1.0) <= ORDER_ONE:
        return mutual_information(joint)
    p_s = joint.sum(axis=1)
    norms = _power_mean(p_s, joint / p_s[:, None], order)
    return max(0.0, _factor(order) * math.log(math.fsum(norms.tolist())))


def arimoto_information(p: ArrayLike, order: float) -> float:
    """Arimoto's mutual information of S and Y (S guessed from Y) of an order in (0, inf], in nats.

    order/(order-1) log [sum_y (sum_s P(s, y)^order)^(1/order) / (sum_s P(s)^order)^(1/order)].
    """
    joint = _joint(p)
    order = _order(order)
    if abs(order - 1.0) <= ORDER_ONE:
        return mutual_information(joint)
    p_s = joint.sum(axis=1)
    ones = np.ones(len(p_s))
    before = float(_power_mean(ones, p_s[:, None], order)[0])
    after = math.fsum(_power_mean(ones, joint, order).tolist())
    return max(0.0, _factor(order) * math.log(after / before))


def maximal_leakage(p: ArrayLike) -> float:
    """log sum_y max_s P(y|s), in nats: the leakage about any function of S."""
    return sibson_information(p, math.inf)


def leakage(p: ArrayLike, alphas: Sequence[float] = (2.0,)) -> dict[str, float]:
    """Every measure of this module that says what Y leaks of S: worst output, or average.

    Parameters
    ----------
    p : (|S|, |Y|) array
        Joint distribution of S and Y.
    alphas : sequence of float
        Orders (above 1) of the alpha-lift, of Sibson's and of Arimoto's information.

    Returns
    -------
    dict
        From the name of a measure to its value; logarithms in nats, infinities as floats.
    """
    joint = _joint(p)
    values = {
        "max_log_lift": float(_log(max_lift(joint).max())),
        "min_log_lift": float(_log(min_lift(joint).min())),
        "max_log_lift_ratio": float(_log(lift_ratio(joint).max())),
        "l1_lift": float(l1_lift(joint).max()),
        "chi2_lift": float(chi2_lift(joint).max()),
        "l1_lift_inverse": float(l1_lift_inverse(joint).max()),
        "chi2_lift_inverse": float(chi2_lift_inverse(joint).max()),
        "mutual_information": mutual_information(joint),
        "total_variation": total_variation(joint),
        "chi2_information": chi2_information(joint),
        "maximal_leakage": maximal_leakage(joint),
        "min_entropy_leakage": arimoto_information(joint, math.inf),
    }
    for alpha in alphas:
        values[f"alpha_lift[{alpha:g}]"] = float(alpha_lift(joint, alpha).max())
        values[f"alpha_lift_inverse[{alpha:g}]"] = float(
            alpha_lift_inverse(joint, alpha).max()
        )
        values[f"sibson_information[{alpha:g}]"] = sibson_information(joint, alpha)
        values[f"arimoto_information[{alpha:g}]"] = arimoto_information(joint, alpha)
    return values


def _distribution(values: Array) -> Array:
    if not np.isfinite(values).all() or (values < 0.0).any():
        raise InputError("a distribution must have finite, non-negative entries")
    total = math.fsum(values.ravel().tolist())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InputError(f"a distribution must sum to 1, not {total:.12g}")
    return values


def _joint(p: ArrayLike) -> Array:
    joint = np.asarray(p, dtype=np.float64)
    if joint.ndim != 2:
        raise InputError(
            f"a joint distribution must have 2 dimensions, not {joint.ndim}"
        )
    _distribution(joint)
    for axis, what in ((0, "column"), (1, "row")):
        empty = np.flatnonzero(~joint.any(axis=axis))
        if empty.size:
            raise InputError(
                f"{what} {int(empty[0]) + 1} of the joint distribution has no mass; drop it"
            )
    return joint


def _independent(joint: Array) -> Array:
    return joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)


def _reciprocal(values: Array) -> Array:
    with np.errstate(divide="ignore"):  # 1/0 = inf is the value that is meant
        return 1.0 / values


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _power_mean(weights: Array, values: Array, order: float) -> Array:
    """(sum_s weights[s] values[s, y]^order)^(1/order), scaled by the largest so that no power
    overflows.
    """
    largest = values.max(axis=0)
    if math.isinf(order):
        return largest
    finite = np.isfinite(largest)
    scale = np.where(finite, largest, 1.0)
    means = scale * (weights @ (np.where(finite, values, 0.0) / scale) ** order) ** (
        1.0 / order
    )
    return np.where(finite, means, np.inf)


def _factor(order: float) -> float:
    return 1.0 if math.isinf(order) else order / (order - 1.0)


def _order(order: float) -> float:
    if math.isnan(order) or order <= 0.0:
        raise InputError(f"the order ({order:g}) must be positive (or inf)")
    return order


def _order_above_one(alpha: float) -> float:
    if math.isnan(alpha) or alpha <= 1.0:
        raise InputError(f"alpha ({alpha:g}) must be above 1 (or inf)")
    return alpha
