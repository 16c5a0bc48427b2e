"""Which products of the first channels' columns are followed, and a proven bound on the others.

With three channels and more, the products u of the columns of all channels but the last (the
directions) may be millions. `prune_directions` goes three steps:

1. `_limits` bounds eps_l, eps_u and eps_ldp of all tuples that a direction can still be completed
   to by the remaining channels;
2. the directions are ranked by each of the three bounds, and those with the best ranks on any of
   them are followed;
3. the largest bounds of the others are returned: what was left out cannot exceed them.

The bound is proposition 2 of docs/how-to/many-releases.md. The columns of the remaining channels
multiply the entries of u by factors f(x), up to scale between 1 and r (`_stretches`): one channel
with the rows (3/4, 1/4) and (1/4, 3/4) has r = 3. With q(x) = P(x) u(x) and A(s, x) = P(s|x) / P(s)
the lift of such a completion is

    sum over x of A(s, x) q(x) f(x) / sum over x of q(x) f(x),

which is largest where f is r on the k symbols with the largest A(s, x) and 1 on the others, for
some k = 0, .., n - 1 (k = n is k = 0 up to scale). So n candidates bound every completion, and the
smallest lift alike (`_extreme_logs`).

For example, two symbols have q = 1/2 each and the A(s, x) 1.5 and 0.5, so the lift of u itself is
1. With r = 3 the largest lift of a completion is (3 * 1.5 + 0.5) / (3 + 1) = 1.25, and the smallest
(1.5 + 3 * 0.5) / (1 + 3) = 0.75.

All is in floating point, and the bounds are rounded outwards far more than its error. Where doubles
may lose an entry (`_is_precise`), the bounds are infinite.
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
    limits = np.full((len(products), 3), math.inf)
    if _is_precise(table, products):
        limits = _limits(table, products, rest)
    # The best rank of a direction on any side decides whether it is followed: each side has a bound
    # of its own on what is left out, and all three are to be small.
    ranks = np.argsort(np.argsort(-limits, axis=0, kind="stable"), axis=0)
    order: NDArray[np.intp] = np.argsort(ranks.min(axis=1), kind="stable")
    first_ones: list[int] = sorted(order[:most].tolist())
    followed = [products[i] for i in first_ones]
    return followed, limits[order[most:]].max(axis=0)


def _is_precise(table: Joint, products: list[Direction]) -> bool:
    """Whether doubles hold all entries of the directions; else some are lost, or known too badly,
    and nothing is known of any completion.
    """
    smallest_entry = 1.0
    for (_, values), _ in products:
        smallest_entry = min(smallest_entry, min(values) / max(values))
    return smallest_entry * float(table.p_x.min()) >= LEAST_PRODUCT


def _limits(
    table: Joint, products: list[Direction], rest: Sequence[Sequence[Entries]]
) -> Array:
    """eps_l, eps_u and eps_ldp of all completions of each direction at most, in nats; (k, 3)."""
    columns = dense_columns([column for column, _ in products], len(table.useful))
    # 1 / r in place of r: r is infinite where a remaining channel excludes a symbol of the support,
    # and the factors 1 and 0 still give the limit of the quotients.
    least = np.exp(-_stretches(columns > 0.0, rest))[:, None]
    masses = columns * table.p_x
    # eps_l and eps_u of every direction: the largest over all secrets and sensitive symbols.
    bounds = np.zeros((len(columns), 2))
    for secret in table.secrets:
        for lifts in secret.lift:
            bounds = np.maximum(bounds, _extreme_logs(masses, lifts, least))
    # A quotient of two lifts is at most the largest lift times the largest inverse.
    limits = np.column_stack([bounds, bounds.sum(axis=1)])
    return limits * OUTWARDS + (OUTWARDS - 1.0)


def _extreme_logs(masses: Array, lifts: Array, least: Array) -> Array:
    """-log of the smallest and log of the largest lift of all completions, (k, 2).

    `masses` (k, n) has q(x) of every direction, `lifts` (n,) has A(s, x) of one s, and `least`
    (k, 1) is 1 / r. Up to scale the factors r and 1 of proposition 2 are 1 and 1 / r, and the large
    ones belong to the symbols that come first here: those of small A(s, x) for the smallest lift.
    """
    smallest = _candidate_logs(masses, lifts, least, np.argsort(lifts)).min(axis=1)
    largest = _candidate_logs(masses, lifts, least, np.argsort(-lifts)).max(axis=1)
    return np.column_stack([-smallest, largest])


def _candidate_logs(
    masses: Array, lifts: Array, least: Array, order: NDArray[np.intp]
) -> Array:
    """Log lifts of the n candidates of every direction, (k, n).

    Candidate j has the factor 1 on the first j + 1 symbols of the order, `least` on the others.
    """
    ordered = masses[:, order]
    top = _stretched_sums(ordered * lifts[order], least)
    bottom = _stretched_sums(ordered, least)
    # A symbol without mass makes no new candidate, and the first ones may make 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.where(ordered > 0.0, top / bottom, 1.0))


def _stretched_sums(parts: Array, least: Array) -> Array:
    """Sums of each row with factor 1 on the first entries and `least` on the others, for every
    number of first ones.

    sum of the first + least * sum of the others = (1 - least) * sum of the first + least * sum.
    """
    whole = parts.sum(axis=1, keepdims=True)
    return (1.0 - least) * parts.cumsum(axis=1) + least * whole


def _stretches(support: NDArray[np.bool_], rest: Sequence[Sequence[Entries]]) -> Array:
    """log r of every direction, whose support is a row (k, n).

    An output y of a channel multiplies the entries of x and x' by W(y|x) and W(y|x'). So log r is
    the largest sum over the channels of log W(y|x) / W(y|x'), for any outputs and any two symbols
    in the support.
    """
    n = support.shape[1]
    # Entry (x, x') is the largest log quotient of the two over all tuples of outputs.
    quotients = np.zeros((n, n))
    for columns in rest:
        largest = np.full((n, n), -math.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            for logs in np.log(dense_columns(columns, n)):
                # log 0 - log 0 is no number: a symbol that neither gives does not matter, and fmax
                # leaves it out.
                largest = np.fmax(largest, logs[:, None] - logs)
        quotients += largest
    # Directions share few supports, so the maximum is taken once for each of these.
    patterns, pattern_of = np.unique(support, axis=0, return_inverse=True)
    stretches = [quotients[np.ix_(pattern, pattern)].max() for pattern in patterns]
    return np.array(stretches)[pattern_of.ravel()]
