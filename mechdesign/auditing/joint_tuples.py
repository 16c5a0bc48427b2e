"""Tuples of outputs that may have the largest or the smallest lift of all.

Only the direction of the column of a tuple matters for lifts, so tuples with proportional columns
count once (`columns.directions`, in integers). The last channel is joined in floating point, where
sums of non-negative terms have a proven relative error; every tuple that could be extreme within it
is then compared in integers. With three channels and more the directions may be too many: those
whose completions are surely harmless go first, and what is left out is bounded.

Floating point selects candidates only, with margins wider than its error, and bounds on what is
left out are rounded outwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import Direction, Entries, directions
from mechdesign.auditing.measures import ROUNDOFF
from mechdesign.channel.channel import Array
from mechdesign.tables.joint import Joint

BLOCK = 2**22
"""Doubles of one block of products: 32 MB."""

LEAST_PRODUCT = 2.0**-900
"""Smallest product of positive entries for which nothing can underflow; below it nothing rests on
doubles.
"""

OUTWARDS = 1.0 + 1e-9
"""Factor on bounds of what is left out: far more than rounding, and nothing that matters."""

LARGEST_LOG = math.log(1e300)
"""Largest log lift that the margin of a comparison grows with: an infinite one needs no margin."""


def _dense(columns: Sequence[Entries], n: int) -> Array:
    """Columns as rows of doubles, each entry correctly rounded, the largest of each 1; (k, n)."""
    dense = np.zeros((len(columns), n))
    for k, (inputs, values) in enumerate(columns):
        largest = max(values)
        dense[k, list(inputs)] = [value / largest for value in values]
    return dense


def candidates(
    table: Joint, followed: Sequence[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Every tuple that may be extreme: in its largest lift, its smallest, or their quotient."""
    n = len(table.useful)
    size = len(table.sensitive)
    last = _dense(columns, n)
    first = _dense([column for column, _ in followed], n)
    smallest_product = math.prod(
        float(part[part > 0.0].min()) for part in (table.p, last, first)
    )
    entries = sum(len(inputs) for inputs, _ in columns)
    entries += sum(len(inputs) for (inputs, _), _ in followed)
    lost = np.count_nonzero(first) + np.count_nonzero(last) < entries
    if lost or smallest_product < LEAST_PRODUCT:
        return directions(followed, columns)
    # Nothing underflows, so zeros are exact. A lift is wrong by n + 5 roundings in P(s, y) and |S|
    # more in P(y).
    slack = 8.0 * (2 * n + size + 20) * ROUNDOFF
    nearest = [_Nearest(slack) for _ in range(3)]
    step = max(1, BLOCK // (size * max(n, len(last))))
    for start in range(0, len(first), step):
        block = first[start : start + step]
        products = (block[:, None, :] * table.p).reshape(-1, n) @ last.T
        masses = products.reshape(len(block), size, -1)
        # (direction, output) of the tuples that can occur
        places = np.argwhere(masses.any(axis=1))
        masses = masses[places[:, 0], :, places[:, 1]]
        places[:, 0] += start
        with np.errstate(divide="ignore"):
            logs = np.log(masses / (table.p_s * masses.sum(axis=1, keepdims=True)))
        high = logs.max(axis=1)
        low = logs.min(axis=1)
        for side, values in zip(nearest, (high, -low, high - low), strict=True):
            side.add(values, places)
    pairs: set[tuple[int, int]] = set()
    for side in nearest:
        pairs |= {(int(i), int(y)) for i, y in side.places}
    found: list[Direction] = []
    for i, y in sorted(pairs):
        outputs = followed[i][1]
        for column, _ in directions([followed[i]], [columns[y]]):
            found.append((column, (*outputs, y)))
    return found


class _Nearest:
    """The tuples whose value may be the largest, given that values are wrong by at most `slack`
    each.
    """

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._values: Array = np.zeros(0)
        self.places: NDArray[np.intp] = np.zeros((0, 2), dtype=np.intp)

    def add(self, values: Array, places: NDArray[np.intp]) -> None:
        """Take in more tuples, and drop those that are surely smaller than another."""
        values = np.append(self._values, values)
        places = np.concatenate([self.places, places])
        best = float(values.max(initial=0.0))
        margin = self._slack * (1.0 + min(best, LARGEST_LOG))
        near = np.flatnonzero(values >= best - margin)
        if math.isinf(best):
            near = near[:1]  # of lifts of zero one is enough
        self._values = values[near]
        self.places = places[near]


def prune_directions(
    table: Joint, found: list[Direction], rest: Sequence[Sequence[Entries]], most: int
) -> tuple[list[Direction], Array]:
    """The directions that can come to most, and what the others can come to at most: (eps_l, eps_u,
    eps_ldp).

    The columns of the remaining channels multiply the entries of a direction by factors between 1
    and r, up to scale. A lift is a quotient of linear functions of the factors, so it is largest
    where those of the symbols with the largest P(s|x) are r and the others 1: one of n candidates.
    The smallest alike.
    """
    columns = _dense([column for column, _ in found], len(table.useful))
    least = np.exp(-_stretches(columns > 0.0, rest))[:, None]  # 1 / r
    masses = columns * table.p_x
    bounds = np.zeros((len(columns), 2))
    for secret in table.secrets:
        for lifts in secret.lift:
            of_secret = [
                _largest_log(masses, lifts, least, sign=1.0),
                _largest_log(masses, lifts, least, sign=-1.0),
            ]
            bounds = np.maximum(bounds, np.column_stack(of_secret))
    limits = np.column_stack([bounds, bounds.sum(axis=1)])
    limits = limits * OUTWARDS + (OUTWARDS - 1.0)
    smallest_entry = min(min(values) / max(values) for (_, values), _ in found)
    if smallest_entry * float(table.p_x.min()) < LEAST_PRODUCT:
        limits[:] = math.inf  # entries are lost, or known too badly
    # The best rank of a direction on any side decides whether it is followed.
    ranks = np.argsort(np.argsort(-limits, axis=0, kind="stable"), axis=0)
    order: NDArray[np.intp] = np.argsort(ranks.min(axis=1), kind="stable")
    followed: list[int] = sorted(order[:most].tolist())
    kept = [found[i] for i in followed]
    return kept, limits[order[most:]].max(axis=0)


def _largest_log(masses: Array, lifts: Array, least: Array, *, sign: float) -> Array:
    """Of every direction the largest logarithm of a lift (sign -1), or of the inverse of one (sign
    1).

    Candidate j gives factor 1 to the first j symbols in the order of their lifts and `least` = 1 /
    r to the others.
    """
    order = np.argsort(sign * lifts)
    below = masses[:, order]
    top = _stretched_sums(below * lifts[order], least)
    bottom = _stretched_sums(below, least)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -sign * np.log(np.where(below > 0.0, top / bottom, 1.0))
    return logs.max(axis=1)


def _stretched_sums(parts: Array, least: Array) -> Array:
    """Sums of each row with factor 1 on the first entries and `least` on the others, for every
    number of first ones.
    """
    return (1.0 - least) * parts.cumsum(axis=1) + least * parts.sum(
        axis=1, keepdims=True
    )


def _stretches(support: NDArray[np.bool_], rest: Sequence[Sequence[Entries]]) -> Array:
    """log r of every direction: of each channel the largest quotient of two entries of an output in
    the support.
    """
    n = support.shape[1]
    total = np.zeros((n, n))
    for columns in rest:
        largest = np.full((n, n), -math.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            for logs in np.log(_dense(columns, n)):
                # log 0 - log 0 is no number: a symbol that neither gives does not matter, and fmax
                # leaves it out.
                largest = np.fmax(largest, logs[:, None] - logs)
        total += largest
    patterns, pattern_of = np.unique(support, axis=0, return_inverse=True)
    stretches = [total[np.ix_(pattern, pattern)].max() for pattern in patterns]
    return np.array(stretches)[pattern_of.ravel()]
