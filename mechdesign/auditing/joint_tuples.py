"""Tuples of outputs that may have the largest or the smallest lift of all.

Releases of one record are one channel, whose outputs are tuples and whose columns are products of
their columns (docs/how-to/many-releases.md, proposition 1). There are too many tuples to compare
all of them in integers. So the first channels come as `followed` directions
(`columns.directions`), and `candidates` joins the last channel to them in floating point:

    P(s, (direction i, y)) = sum over x of P(s, x) u_i(x) W(y|x),

one matrix product for a block of directions (`_log_lifts`). Sums of n non-negative terms have a
proven relative error, so a tuple whose lift is smaller than another's by more than the errors of
both is surely not extreme. `_Nearest` keeps the few others, for the largest lift, the smallest lift
and their quotient each. They are formed again in integers, and the caller compares them exactly.

Example: P(s, x) is 0.4, 0.1 for s and 0.1, 0.4 for t. The direction (1, 0.5) and the output (1,
0.5) have the product (1, 0.25) and the masses 0.425 and 0.2, so the lifts are 1.36 and 0.64.

Floating point only selects, with margins wider than its error. Where products could underflow
(`_may_underflow`), all tuples are returned.

*Directions that are followed*, and a proven bound on the others. With three channels and more, the
products u of the columns of all channels but the last (the directions) may be millions.
`prune_directions` goes three steps:

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

from mechdesign.auditing.columns import Direction, Entries, directions
from mechdesign.auditing.measures import ROUNDOFF
from mechdesign.channel.channel import Array
from mechdesign.tables.joint import Joint

# ------------------------------------------------------------------------------- tuples

BLOCK = 2**22
"""Doubles of one block of products: 32 MB."""

LEAST_PRODUCT = 2.0**-900
"""Smallest product of positive entries for which nothing can underflow; below it nothing rests on
doubles.
"""

LARGEST_LOG = math.log(1e300)
"""Largest log lift that the margin of a comparison grows with: an infinite one needs no margin."""


def candidates(
    table: Joint, followed: Sequence[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Every tuple of a followed direction and an output that may be extreme.

    That is, in its largest lift, in its smallest lift, or in their quotient.

    Parameters
    ----------
    table : Joint
        With one secret.
    followed : sequence of Direction
        Of all channels but the last.
    columns : sequence of Entries
        Of the last channel.
    """
    n = len(table.useful)
    size = len(table.sensitive)
    first = dense_columns([column for column, _ in followed], n)
    last = dense_columns(columns, n)
    if _may_underflow(table, followed, columns, first, last):
        return directions(followed, columns)
    # Zeros are exact, because nothing underflows. A lift is wrong by n + 5 roundings in P(s, y) and
    # |S| more in P(y).
    slack = 8.0 * (2 * n + size + 20) * ROUNDOFF
    largest = _Nearest(slack)
    smallest = _Nearest(slack)
    quotients = _Nearest(slack)
    step = max(1, BLOCK // (size * max(n, len(last))))
    for start in range(0, len(first), step):
        places, logs = _log_lifts(table, first[start : start + step], last)
        places[:, 0] += start
        high = logs.max(axis=1)
        low = logs.min(axis=1)
        largest.add(high, places)
        smallest.add(-low, places)
        quotients.add(high - low, places)
    # One tuple may be extreme in several ways, and is formed in integers once.
    pairs: set[tuple[int, int]] = set()
    for nearest in (largest, smallest, quotients):
        for i, y in nearest.places.tolist():
            pairs.add((i, y))
    extreme: list[Direction] = []
    for i, y in sorted(pairs):
        _, outputs = followed[i]
        # Formed again, in integers; `directions` numbers the outputs of the one column from 0.
        for column, _ in directions([followed[i]], [columns[y]]):
            extreme.append((column, (*outputs, y)))
    return extreme


def dense_columns(columns: Sequence[Entries], n: int) -> Array:
    """Columns as rows of doubles, each entry correctly rounded, the largest of each 1; (k, n)."""
    dense = np.zeros((len(columns), n))
    for k, (inputs, values) in enumerate(columns):
        largest = max(values)
        dense[k, list(inputs)] = [value / largest for value in values]
    return dense


def _may_underflow(
    table: Joint,
    followed: Sequence[Direction],
    columns: Sequence[Entries],
    first: Array,
    last: Array,
) -> bool:
    """Whether an entry is lost in doubles, or a product of positive entries may be."""
    entries = sum(len(inputs) for inputs, _ in columns)
    entries += sum(len(inputs) for (inputs, _), _ in followed)
    if np.count_nonzero(first) + np.count_nonzero(last) < entries:
        return True
    # No positive product P(s, x) u(x) W(y|x) is smaller than that of the smallest of each.
    smallest_product = 1.0
    for factors in (table.p, last, first):
        smallest_product *= float(factors[factors > 0.0].min())
    return smallest_product < LEAST_PRODUCT


def _log_lifts(
    table: Joint, block: Array, last: Array
) -> tuple[NDArray[np.intp], Array]:
    """The tuples (direction in the block, output) that can occur, (k, 2), and the logarithm of each
    of their lifts, (k, |S|).
    """
    n = len(table.useful)
    # (directions, |S|, n) -> (directions, |S|, outputs): the sum over x is a matrix product.
    products = block[:, None, :] * table.p
    masses = (products.reshape(-1, n) @ last.T).reshape(len(block), -1, len(last))
    places = np.argwhere(masses.any(axis=1))
    masses = masses[places[:, 0], :, places[:, 1]]
    with np.errstate(divide="ignore"):
        logs = np.log(masses / (table.p_s * masses.sum(axis=1, keepdims=True)))
    return places, logs


class _Nearest:
    """The tuples whose value may be the largest, if values are wrong by at most `slack` each.

    `places` has them, as rows (direction, output), after each `add`.
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
        # A log lift is wrong by a few roundings of its lift, and by one more of its own size.
        margin = self._slack * (1.0 + min(best, LARGEST_LOG))
        near = np.flatnonzero(values >= best - margin)
        if math.isinf(best):
            near = near[:1]  # of lifts of zero one is enough
        self._values = values[near]
        self.places = places[near]


# --------------------------------------------------------- directions that are followed

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
