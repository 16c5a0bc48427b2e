"""Directions of the first channels that are followed, where there are too many, and a bound on the
rest.

With three channels and more, the products u of the columns of all channels but the last may be
millions. `prune_directions` follows only those that can come to most and bounds what the others can
come to, by proposition 2 of docs/how-to/many-releases.md. The columns of the remaining channels
multiply the entries of u by factors f(x), up to scale between 1 and r. With q(x) = P(x) u(x) and
A(s, x) = P(s|x) / P(s) the lift of a completion is

    sum over x of A(s, x) q(x) f(x) / sum over x of q(x) f(x),

which is largest where f is r on the k symbols with the largest A(s, x) and 1 on the others, for
some k = 0, .., n - 1 (k = n is k = 0 up to scale). So n candidates bound every completion, and the
smallest lift alike.

All is in floating point; the bounds are rounded outwards far more than its error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import Direction, Entries
from mechdesign.auditing.joint_tuples import LEAST_PRODUCT, dense_columns
from mechdesign.channel.channel import Array
from mechdesign.tables.joint import Joint

OUTWARDS = 1.0 + 1e-9
"""Factor on bounds of what is left out: far more than rounding, and nothing that matters."""


def prune_directions(
    table: Joint,
    products: list[Direction],
    rest: Sequence[Sequence[Entries]],
    most: int,
) -> tuple[list[Direction], Array]:
    """The `most` directions that can come to most, and what the others can come to at most.

    Parameters
    ----------
    table : Joint
    products : list of Direction
        More than `most`, of the channels so far.
    rest : sequence of lists of Entries
        The columns of each remaining channel.
    most : int

    Returns
    -------
    followed : list of Direction
    bounds : (3,) array
        eps_l, eps_u and eps_ldp of all completions of the directions that are left out, in nats.
    """
    columns = dense_columns([column for column, _ in products], len(table.useful))
    least = np.exp(-_stretches(columns > 0.0, rest))[:, None]  # 1 / r
    masses = columns * table.p_x
    # eps_l and eps_u of every direction: the largest over all secrets and sensitive symbols.
    bounds = np.zeros((len(columns), 2))
    for secret in table.secrets:
        for lifts in secret.lift:
            of_secret = [
                _largest_log(masses, lifts, least, sign=1.0),
                _largest_log(masses, lifts, least, sign=-1.0),
            ]
            bounds = np.maximum(bounds, np.column_stack(of_secret))
    # A quotient of two lifts is at most the largest lift times the largest inverse.
    limits = np.column_stack([bounds, bounds.sum(axis=1)])
    limits = limits * OUTWARDS + (OUTWARDS - 1.0)
    smallest_entry = 1.0
    for (_, values), _ in products:
        smallest_entry = min(smallest_entry, min(values) / max(values))
    if smallest_entry * float(table.p_x.min()) < LEAST_PRODUCT:
        limits[:] = math.inf  # entries are lost, or known too badly
    # The best rank of a direction on any side decides whether it is followed.
    ranks = np.argsort(np.argsort(-limits, axis=0, kind="stable"), axis=0)
    order: NDArray[np.intp] = np.argsort(ranks.min(axis=1), kind="stable")
    first_ones: list[int] = sorted(order[:most].tolist())
    followed = [products[i] for i in first_ones]
    return followed, limits[order[most:]].max(axis=0)


def _largest_log(masses: Array, lifts: Array, least: Array, *, sign: float) -> Array:
    """Of every direction the largest logarithm of a lift (sign -1), or of the inverse of one (sign
    1).

    `masses` has q(x) of every direction and `lifts` has A(s, x) of one s. Candidate j gives factor
    1 to the first j symbols in the order of A and `least` = 1 / r to the others: up to scale, the
    factors r and 1 of proposition 2.
    """
    order = np.argsort(sign * lifts)
    below = masses[:, order]
    top = _stretched_sums(below * lifts[order], least)
    bottom = _stretched_sums(below, least)
    # A symbol without mass makes no new candidate, and the first ones may make 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -sign * np.log(np.where(below > 0.0, top / bottom, 1.0))
    return logs.max(axis=1)


def _stretched_sums(parts: Array, least: Array) -> Array:
    """Sums of each row with factor 1 on the first entries and `least` on the others, for every
    number of first ones.

    sum of the first + least * sum of the others = (1 - least) * sum of the first + least * sum.
    """
    whole = parts.sum(axis=1, keepdims=True)
    return (1.0 - least) * parts.cumsum(axis=1) + least * whole


def _stretches(support: NDArray[np.bool_], rest: Sequence[Sequence[Entries]]) -> Array:
    """log r of every direction: of each channel the largest quotient of two entries of an output in
    the support.
    """
    n = support.shape[1]
    total = np.zeros((n, n))
    for columns in rest:
        largest = np.full((n, n), -math.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            for logs in np.log(dense_columns(columns, n)):
                # log 0 - log 0 is no number: a symbol that neither gives does not matter, and fmax
                # leaves it out.
                largest = np.fmax(largest, logs[:, None] - logs)
        total += largest
    patterns, pattern_of = np.unique(support, axis=0, return_inverse=True)
    stretches = [total[np.ix_(pattern, pattern)].max() for pattern in patterns]
    return np.array(stretches)[pattern_of.ravel()]
