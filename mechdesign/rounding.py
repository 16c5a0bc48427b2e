"""From a float design to a channel of integers that was verified exactly, or to a refusal.

A design is a set of posteriors v_y with weights beta_y whose mean is P_X, up to floating-point errors.
W(y|x) = beta_y v_y(x) / P_X(x), with every row divided by its own sum, so that P_X is met exactly whatever
the error of the weights; rows become integers by largest remainders. What the errors and the rounding
then break is repaired output by output: a failing output y gets a tiny weight a_y on every row,

    W'(y|x) = (1 - t) W(y|x) + a_y,    t = sum of the a_y,

which moves its posterior towards P_X, hence its lifts towards 1, and leaves the posteriors of the others
where they are. Every notion that is convex in the posterior survives this. Auditing has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing import Audit, audit, failing_outputs
from mechdesign.channel import DENOMINATOR, Channel
from mechdesign.exact import quoted
from mechdesign.float_design import FloatDesign, RoundingFailure, read_design
from mechdesign.integer_rows import IntegerRows
from mechdesign.joint import Joint
from mechdesign.labels import output_labels
from mechdesign.notions import Limits, MeanLimits, Notion

__all__ = ["Rounded", "RoundingFailure", "partition_channel", "round_channel"]

Array = NDArray[np.float64]

UNIT = 1.0 / DENOMINATOR
"""Rounding moves an entry of W by less than this."""

LARGEST_MIXING = 2e-9
"""Largest t, in units of H(X) up to one nat: mixing t loses about t log(1/t), so less than 1e-7 of H(X)."""

MOST_REPAIRS = 6
"""Rounds of repair: the first asks for what is known to be missing, each further one for ten times more."""


@dataclass(frozen=True)
class Rounded:
    """A channel with its exact verdict, and what rounding did to the design.

    The verdict is yes, except for a partition that was asked for with ``must_satisfy=False``.

    `mixing` is t above (0: nothing had to be repaired), `merged` the number of outputs that were merged
    into another one because they had the same posterior or hardly any mass.
    """

    channel: Channel
    audit: Audit
    mixing: float = 0.0
    merged: int = 0


def round_channel(weights: Any, posteriors: Any, joint: Joint, notion: Notion) -> Rounded:
    """Turn a float design into a verified channel with denominator 2**53.

    Parameters
    ----------
    weights : (k,) array
        P(y), close to non-negative numbers.
    posteriors : (k, |X|) array or scipy sparse matrix
        P(x|y), one per row, whose mean under the weights is close to P_X.
    joint : Joint
    notion : Notion
        The stated budget, not a shrunk one.

    Raises
    ------
    RoundingFailure
        If the design is no distribution, does not reproduce P_X, or is so far outside the budget that the
        repair would cost more than about 1e-7 of H(X). A design on a polytope with a larger margin helps.
    """
    design = read_design(weights, posteriors, joint.p_x)
    limit = LARGEST_MIXING * min(1.0, -float(joint.p_x @ np.log(joint.p_x)))
    added = np.zeros(design.k)
    repairs = 0
    while True:
        rows, kept = _integer_rows(design, added)
        channel = Channel(joint.useful, output_labels(joint.useful.names, rows), rows, DENOMINATOR, joint)
        verdict = audit(channel, joint, notion)
        if verdict.satisfied:
            return Rounded(channel, verdict, mixing=float(added.sum()), merged=design.merged)
        failing = failing_outputs(channel, joint, notion)
        needed = _needed_mixing(rows, failing, joint, notion.limits)
        at = kept[list(failing)]
        added[at] = np.maximum(needed, 10.0 * added[at])
        repairs += 1
        if not added.sum() <= limit or repairs > MOST_REPAIRS:
            worst = verdict.worst
            raise RoundingFailure(
                f"the design breaks its budget by more than rounding can repair (output {quoted(worst.output)}, "
                f"sensitive symbol {quoted(worst.sensitive)}, lift {worst.lift:.17g}); design with a larger margin",
                verdict,
            )


def partition_channel(
    groups: Sequence[Sequence[int]],
    joint: Joint,
    notion: Notion,
    *,
    shares: Mapping[int, Sequence[int]] | None = None,
    must_satisfy: bool = True,
) -> Rounded:
    """The verified channel that publishes which group a symbol belongs to: exact, without any rounding.

    Parameters
    ----------
    groups : sequences of positions in the useful variable
        A partition: every position in exactly one group.
    joint : Joint
    notion : Notion
    shares : mapping, optional
        For some of the groups (by position in `groups`), positive integers that sum to 2**53: the members
        draw one of so many outputs with these probabilities instead of sharing one. Every output then has the
        lifts of the group, because no member is preferred.
    must_satisfy : bool
        Whether to refuse a channel that violates the notion.

    Raises
    ------
    RoundingFailure
        If the groups are no partition, or the channel violates the notion.
    """
    n = len(joint.useful)
    drawn = {min(groups[k]): list(each) for k, each in (shares or {}).items()}
    ordered = sorted(sorted(int(x) for x in group) for group in groups)
    if sorted(x for group in ordered for x in group) != list(range(n)) or [] in ordered:
        raise RoundingFailure(f"the groups are no partition of the {n} useful symbols")
    rows = _shared_rows(ordered, [drawn.get(group[0], [DENOMINATOR]) for group in ordered], n)
    channel = Channel(joint.useful, output_labels(joint.useful.names, rows), rows, DENOMINATOR, joint)
    verdict = audit(channel, joint, notion)
    if must_satisfy and not verdict.satisfied:
        raise RoundingFailure(
            f"merging leaves the output {quoted(verdict.worst.output)} outside the budget", verdict
        )
    return Rounded(channel, verdict)


def _shared_rows(groups: Sequence[Sequence[int]], shares: Sequence[Sequence[int]], n: int) -> IntegerRows:
    """Rows in which the members of a group have the same entries, on outputs of their own."""
    ends = np.cumsum([len(each) for each in shares])
    group_of = np.empty(n, dtype=np.int64)
    for k, group in enumerate(groups):
        group_of[list(group)] = k
    columns = [range(end - len(each), end) for end, each in zip(ends.tolist(), shares, strict=True)]
    y = np.array([y for k in group_of.tolist() for y in columns[k]])
    values = np.array([value for k in group_of.tolist() for value in shares[k]])
    indptr = np.concatenate(([0], np.cumsum([len(shares[k]) for k in group_of.tolist()])))
    return IntegerRows((n, int(ends[-1])), indptr, y, values)


def _integer_rows(design: FloatDesign, added: Array) -> tuple[IntegerRows, NDArray[np.int64]]:
    """Rows of integers that sum to the denominator, and which output of the design each column is."""
    mixed = design.mixed(added) if added.any() else design
    x, y, values = mixed.x, mixed.y, _largest_remainders(mixed)
    positive = values > 0
    x, y, values = x[positive], y[positive], values[positive]
    # An output may have rounded away altogether; the others keep their order.
    kept, y = np.unique(y, return_inverse=True)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(x, minlength=mixed.n))))
    return IntegerRows((mixed.n, len(kept)), indptr, y, values), kept


def _largest_remainders(design: FloatDesign) -> NDArray[np.int64]:
    """Integers next to W * 2**53 whose rows sum to 2**53; zeros stay zeros."""
    scaled = design.w * float(DENOMINATOR)
    whole = np.floor(scaled)
    values = whole.astype(np.int64)
    starts = design.starts
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    order = np.lexsort((whole - scaled, design.x))  # largest remainder first within each row
    rank = np.arange(len(order)) - starts[design.x[order]]
    values[order[rank < missing[design.x[order]]]] += 1
    # Rows whose floats sum to more than 1, or to less by more than a unit each, settle it on their largest entry.
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    for row in np.flatnonzero(missing).tolist():
        values[starts[row] + int(np.argmax(values[starts[row] : starts[row + 1]]))] += missing[row]
    return values


def _needed_mixing(rows: IntegerRows, failing: Sequence[int], joint: Joint, limits: Limits) -> Array:
    """A weight a_y for each failing output that brings its lifts inside the limits in spite of rounding.

    With rounding moving P(y|s) and P(y) by at most u, ``(l P + a + u) / (P + a - u) <= b`` asks for
    ``a >= (P (l - b) + u (1 + b)) / (b - 1)``; the lower side and the ratio alike. The float errors of
    the left-hand side are covered by a few more u.
    """
    w = np.zeros((rows.shape[0], len(failing)))
    for j, y in enumerate(failing):
        at, values = rows.columns[y]
        w[list(at), j] = np.array(values) * UNIT
    given_s = joint.p / joint.p_s[:, None] @ w  # P(y|s)
    mass = joint.p_x @ w
    high, low = given_s.max(axis=0), given_s.min(axis=0)
    needed = np.full(len(failing), 2.0 * UNIT)
    if isinstance(limits, MeanLimits):
        return np.maximum(needed, _needed_for_means(given_s, mass, joint, limits))
    for limit, more, less in (
        (limits.upper, high, mass),
        (limits.lower, mass, low),
        (limits.ratio, high, low),
    ):
        if math.isfinite(limit):
            b = math.exp(limit)
            excess = np.maximum(more - b * less, 0.0) + UNIT * (2.0 * (1.0 + b) + 8.0 * (more + b * less))
            needed = np.maximum(needed, excess / math.expm1(limit))
    return needed


def _needed_for_means(given_s: Array, mass: Array, joint: Joint, limits: MeanLimits) -> Array:
    """The same for an average of |l - 1|, which mixing divides by 1 + a / P: ``a >= (P d - P c + u) / c``.

    The other averages shrink at least in proportion to the distances of their lifts from 1 as well; where the
    first guess is too small for them, the caller asks for ten times more.
    """
    needed = np.zeros(len(mass))
    for limit, distance in (
        (limits.upper, np.abs(given_s - mass)),
        (limits.lower, np.abs(given_s - mass) * (mass / np.maximum(given_s, UNIT))),
    ):
        if math.isfinite(limit):
            c = math.expm1(limit)
            excess = np.maximum(joint.p_s @ distance - c * mass, 0.0) + UNIT * (8.0 + 4.0 * c + 16.0 * mass)
            needed = np.maximum(needed, excess / c)
    return needed
