"""Columns to begin with where the rows see one number: symbols of like number have like prices.

Neighbours are merged into groups, again and again, until all pairs of groups can be listed. On the way back the
decomposition of the merged point, followed member by member, nearly decomposes the finer one; what it leaves over
is paired off at its own mean. So a master begins with columns that decompose the point at about the least cost, and
its prices do not jump (5000 symbols: two to six rounds). Nothing of this is believed: the search over all pairs prices
what it leads to.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solvers.generation import Generation
from solvers.line import LineSearch
from solvers.points import Points
from solvers.results import EnvelopeStatus

Array = NDArray[np.float64]
Index = NDArray[np.intp]

Masses: TypeAlias = deque[tuple[int, float]]
"""Symbols and what there is of each, in order."""

Pair: TypeAlias = tuple[int, int, float, float]
"""Two symbols, the level at which they meet, and the weight of that output."""

FEWEST = 150
"""Symbols for which all pairs are listed."""

MEMBERS = 5
"""Symbols of a group, on average."""

SPARE = 0.02
"""Share of the point that does not follow the merged decomposition, so that the mean of what is left over is about
that of the point: only then it can be paired off inside the polytope."""


NOTHING = 1e-18
"""Mass below which a symbol counts as used up."""


def first_columns(search: LineSearch, point: Array, gap: float, end: float) -> Points:
    """Members of the polytope that decompose `point` (n,); `gap` as for the envelope, `end` on the clock."""
    order = np.argsort(search.a, kind="stable")
    _, mean = at_mean(search, point)
    if search.n <= FEWEST:
        return Points.concatenate([mean, *(_listed(search, e) for e in search.inner)])
    if time.monotonic() > end:
        return mean
    group = _groups(search, point, order)
    mass = np.asarray(np.bincount(group, weights=point), dtype=np.float64)
    # A group without mass still has a number: the plain mean of its members.
    weight = point + np.finfo(np.float64).tiny
    values = np.bincount(group, weights=weight * search.a) / np.bincount(group, weights=weight)
    merged = search.over(values)
    run = Generation(
        cost=search.cost,
        target=mass,
        pricer=merged,
        initial=Points.concatenate(
            [
                Points.from_dense(mass),
                Points.units(np.flatnonzero(merged.units), merged.n),
                first_columns(merged, mass, gap, end),
            ]
        ),
        gap=gap,
        time_limit=end - time.monotonic(),
        stabilise=False,
    )
    if run.run() is EnvelopeStatus.INTERRUPTED:
        raise KeyboardInterrupt
    members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return Points.concatenate([mean, *_followed(search, point, members, values, run)])


def _groups(search: LineSearch, point: Array, order: Index) -> Index:
    """The group of every symbol, (n,), numbered by value; none holds symbols on both sides of an end."""
    a, n = search.a[order], search.n
    place = np.cumsum(point[order] / point.sum() + 1.0 / n) / 2.0
    part = np.floor(place * (n // MEMBERS) * (1.0 - 1e-12)).astype(np.intp)
    side = (a >= search.inner[0]).astype(np.intp) + (a > search.inner[1])
    new = (np.diff(part, prepend=part[0]) != 0) | (np.diff(side, prepend=side[0]) != 0)
    group = np.empty(n, dtype=np.intp)
    group[order] = np.cumsum(new)
    return group


def _listed(search: LineSearch, level: float) -> Points:
    """Every pair of symbols across the level."""
    x, z = np.nonzero((search.a[:, None] < level) & (search.a[None, :] >= level))
    return search.pairs(x, z, level)


def _followed(
    search: LineSearch, point: Array, members: list[Index], a: Array, run: Generation
) -> list[Points]:
    """The outputs of the merged decomposition with members in the place of groups, and what these leave over."""
    keep = np.flatnonzero(run.weights > 0.0)
    keep = keep[np.diff(run.pool.indptr)[keep] == 2]
    used, weights = run.pool.take(keep), (1.0 - SPARE) * run.weights[keep]
    halves = used.indices.reshape(-1, 2)
    masses = used.data.reshape(-1, 2) * weights[:, None]
    # The groups stand in order of their values, so members and partners meet in order, too.
    wanted: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for k, (i, j) in enumerate(halves.tolist()):
        wanted[i].append((j, k, 0))
        wanted[j].append((i, k, 1))
    taken: dict[tuple[int, int], Masses] = {}
    for i, symbols in enumerate(members):
        line: Masses = deque((x, (1.0 - SPARE) * float(point[x])) for x in symbols.tolist())
        for _, k, half in sorted(wanted[i]):
            taken[k, half] = _taken(line, float(masses[k, half]))
    left = point.copy()
    low, high = search.inner
    pairs: list[Pair] = []
    for k, value in enumerate(used.dot(a).tolist()):
        level = min(max(value, low), high)
        pairs += _paired_off(search.a, level, taken[k, 0], taken[k, 1], left)
    return [_points(search, pairs), at_mean(search, np.maximum(left, 0.0))[1]]


def _taken(line: Masses, mass: float) -> Masses:
    """As much from the head of the line."""
    out: Masses = deque()
    while line and mass > 0.0:
        symbol, has = line.popleft()
        if has > mass:
            line.appendleft((symbol, has - mass))
        out.append((symbol, min(has, mass)))
        mass -= has
    return out


def at_mean(search: LineSearch, mass: Array) -> tuple[Array, Points]:
    """Weights and outputs of the mean value of `mass` (n,), which they decompose; none where the mean is outside."""
    mean = float(search.a @ mass) / float(mass.sum())
    if not search.inner[0] <= mean <= search.inner[1]:
        return np.zeros(0), Points.empty(search.n)
    order = np.argsort(search.a, kind="stable")
    some = order[mass[order] > 0.0]
    low, high = some[search.a[some] < mean], some[search.a[some] > mean][::-1]
    # Rounding adds up in what is left at the end, which must be heavy.
    low, high = (
        np.roll(side, -1 - int(np.argmax(mass[side]))) if len(side) else side for side in (low, high)
    )
    one, other = (deque(zip(side.tolist(), mass[side].tolist(), strict=True)) for side in (low, high))
    pairs = _paired_off(search.a, mean, one, other, mass.copy())
    alone = some[search.a[some] == mean]
    weights = np.concatenate([[whole for *_, whole in pairs], mass[alone]])
    return weights, Points.concatenate([_points(search, pairs), Points.units(alone, search.n)])


def _paired_off(a: Array, level: float, one: Masses, other: Masses, left: Array) -> list[Pair]:
    """Outputs at the level, of the heads of both lines until one of these has ended; `left` pays for them."""
    pairs: list[Pair] = []
    while one and other:
        (x, of_x), (z, of_z) = one[0], other[0]
        share = (level - a[x]) / (a[z] - a[x]) if a[z] != a[x] else 0.0
        if not 0.0 < share < 1.0:
            (one if (a[x] < level) == (a[z] < a[x]) else other).popleft()
            continue
        whole = min(of_x / (1.0 - share), of_z / share)
        left[x] -= (1.0 - share) * whole
        left[z] -= share * whole
        pairs.append((x, z, level, whole))
        for line, symbol, rest in ((one, x, of_x - (1.0 - share) * whole), (other, z, of_z - share * whole)):
            line.popleft()
            if rest > NOTHING:
                line.appendleft((symbol, rest))
    return pairs


def _points(search: LineSearch, pairs: list[Pair]) -> Points:
    i, j, level, _ = np.array(pairs).T if pairs else np.zeros((4, 0))
    return search.pairs(i.astype(np.intp), j.astype(np.intp), level)
