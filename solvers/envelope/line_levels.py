"""First columns where all rows depend on a single number (see `solvers.pricing.line`).

1. Neighbours on the line are merged into groups, again and again, until all pairs of groups can be
   listed. The merged point is decomposed at least cost, by a `Generation` of its own.
2. On the way back, an output that mixes two groups becomes outputs that mix their members, in
   order: the first member of one with the first of the other, until the mass of one is used up,
   then the next. They nearly decompose the finer point.
3. What they leave over is paired off at its own mean: again the first symbol below the mean with
   the first one above it, and so on.

So a master begins with columns that decompose the point at about the least cost, and its prices do
not jump (5000 symbols: two to six rounds). No proof rests on these columns: the search over all
pairs prices them like any others.

For example, let symbols at 0, 0.1 | 1, 1.1 with masses of 1/4 be two groups. The output of both
groups at the level 0.5 becomes pairs of 0 with 1, and of 0.1 with 1.1, as far as their masses go.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import TypeAlias

import numpy as np

from solvers.envelope.generation import Generation
from solvers.points import Array, Points
from solvers.pricing.line import Index, LineSearch
from solvers.results import EnvelopeStatus

Masses: TypeAlias = deque[tuple[int, float]]
"""Symbols in order, each with the mass that is left of it."""

Pair: TypeAlias = tuple[int, int, float, float]
"""Two symbols, the level at which they meet, and the weight of that output."""

FEWEST = 150
"""Symbols up to which all pairs are listed, instead of columns from levels of merged symbols."""

MEMBERS = 5
"""Symbols of a group, on average."""

SPARE = 0.02
"""Share of the point that does not follow the merged decomposition, so that the mean of what is
left over is about that of the point: only then it can be paired off inside the polytope."""

NOTHING = 1e-18
"""Mass below which a symbol counts as used up."""


def first_columns(search: LineSearch, point: Array, gap: float, end: float) -> Points:
    """Members of the polytope that decompose `point` (n,).

    `gap` is that of the envelope in nats, and `end` a time on the clock of `time.process_time`.
    """
    # At the mean alone they decompose the point, too, at a high cost.
    _, mean = at_mean(search, point)
    if search.n <= FEWEST:
        low, high = search.inner
        return Points.concatenate(
            [mean, _all_pairs(search, low), _all_pairs(search, high)]
        )
    if time.process_time() > end:
        return mean

    # The merged problem: groups with their masses, at the means of their members.
    order = np.argsort(search.a, kind="stable")
    group = _groups(search, point, order)
    mass = np.asarray(np.bincount(group, weights=point), dtype=np.float64)
    # A group without mass still has a number: the plain mean of its members.
    weight = point + np.finfo(np.float64).tiny
    total = np.bincount(group, weights=weight)
    values = np.bincount(group, weights=weight * search.a) / total
    merged = search.over(values)
    units = Points.units(np.flatnonzero(merged.units), merged.n)

    # The groups are merged again, until there are so few that all pairs are listed.
    coarser = first_columns(merged, mass, gap, end)
    # All pairs are priced exactly in every round, so no local searches come first.
    run = Generation(
        mass,
        merged.run,
        Points.concatenate([Points.from_dense(mass), units, coarser]),
        gap,
        end - time.process_time(),
        stabilise=False,
    )
    if run.run() is EnvelopeStatus.INTERRUPTED:
        # The inner run took Ctrl-C for itself; the whole computation has to end.
        raise KeyboardInterrupt

    ends_of_groups = np.flatnonzero(np.diff(group[order])) + 1
    members = np.split(order, ends_of_groups)
    return Points.concatenate([mean, *_followed(search, point, members, values, run)])


def _groups(search: LineSearch, point: Array, order: Index) -> Index:
    """The group of every symbol, (n,), numbered by value; none has symbols on both sides of an end.

    Groups are of equal size by mass and by number of symbols at once.
    """
    n = search.n
    a = search.a[order]
    # Mean of the share of mass and the share of symbols up to each symbol, from 0 to 1.
    place = np.cumsum(point[order] / point.sum() + 1.0 / n) / 2.0
    part = np.floor(place * (n // MEMBERS) * (1.0 - 1e-12)).astype(np.intp)
    # 0 below the interval, 1 inside, 2 above: a group across an end would hide pairs that meet it.
    side = (a >= search.inner[0]).astype(np.intp) + (a > search.inner[1])
    new_part = np.diff(part, prepend=part[0]) != 0
    new_side = np.diff(side, prepend=side[0]) != 0
    group = np.empty(n, dtype=np.intp)
    group[order] = np.cumsum(new_part | new_side)
    return group


def _all_pairs(search: LineSearch, level: float) -> Points:
    """The outputs of all pairs of symbols on either side of a level."""
    below = search.a[:, None] < level
    above = search.a[None, :] >= level
    i, j = np.nonzero(below & above)
    return search.pairs(i, j, level)


def _followed(
    search: LineSearch,
    point: Array,
    members: list[Index],
    numbers: Array,
    run: Generation,
) -> list[Points]:
    """The outputs of the merged decomposition with members in place of groups, and of the rest.

    `members` are the symbols of each group, in order, and `numbers` those of the groups.
    """
    keep = np.flatnonzero(run.weights > 0.0)
    # Outputs of a single group need no following: its members are paired off with the rest.
    keep = keep[run.pool.sizes[keep] == 2]
    used = run.pool.take(keep)
    weights = (1.0 - SPARE) * run.weights[keep]
    shares = _shares_of_members(point, members, used, weights)
    left = point.copy()
    low, high = search.inner
    pairs: list[Pair] = []
    # An output is at the mixture of its groups' numbers; rounding must not put it beyond an end.
    for k, value in enumerate(used.dot(numbers).tolist()):
        level = min(max(value, low), high)
        pairs += _paired_off(search.a, level, shares[k, 0], shares[k, 1], left)
    # Subtractions may leave some -1e-17 of a symbol that is used up.
    _, rest = at_mean(search, np.maximum(left, 0.0))
    return [_outputs(search, pairs), rest]


def _shares_of_members(
    point: Array, members: list[Index], used: Points, weights: Array
) -> dict[tuple[int, int], Masses]:
    """The members, with masses, that make up each half (0 or 1) of each output of two groups."""
    groups = used.indices.reshape(-1, 2)
    masses = used.data.reshape(-1, 2) * weights[:, None]
    # Groups stand in order of their values. So outputs of a group take its members in the order
    # of their partners, and members and partners meet in order, too.
    halves: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for k, (i, j) in enumerate(groups.tolist()):
        halves[i].append((j, k, 0))
        halves[j].append((i, k, 1))
    shares: dict[tuple[int, int], Masses] = {}
    for i, symbols in enumerate(members):
        # What is taken for one output is gone for the next: each symbol is used once.
        line: Masses = deque()
        for symbol in symbols.tolist():
            line.append((symbol, (1.0 - SPARE) * float(point[symbol])))
        for _, k, half in sorted(halves[i]):
            shares[k, half] = _taken(line, float(masses[k, half]))
    return shares


def _taken(line: Masses, mass: float) -> Masses:
    """Take this mass off the head of a line."""
    taken: Masses = deque()
    while line and mass > 0.0:
        symbol, available = line.popleft()
        if available > mass:
            line.appendleft((symbol, available - mass))
        taken.append((symbol, min(available, mass)))
        mass -= available
    return taken


def at_mean(search: LineSearch, mass: Array) -> tuple[Array, Points]:
    """Weights and outputs that decompose `mass` (n,), all at its mean; none if this is outside."""
    mean = float(search.a @ mass) / float(mass.sum())
    if not search.inner[0] <= mean <= search.inner[1]:
        return np.zeros(0), Points.units([], search.n)
    order = np.argsort(search.a, kind="stable")
    some = order[mass[order] > 0.0]
    # From both ends inwards: the lowest symbol meets the highest.
    below = _line_of(some[search.a[some] < mean], mass)
    above = _line_of(some[search.a[some] > mean][::-1], mass)
    alone = some[search.a[some] == mean]
    pairs = _paired_off(search.a, mean, below, above, mass.copy())
    of_pairs = [weight for *_, weight in pairs]
    weights = np.concatenate([of_pairs, mass[alone]])
    units = Points.units(alone, search.n)
    return weights, Points.concatenate([_outputs(search, pairs), units])


def _line_of(symbols: Index, mass: Array) -> Masses:
    """The symbols with their masses, the heaviest last.

    Rounding of the masses adds up in the last symbol, where it weighs least.
    """
    if len(symbols):
        symbols = np.roll(symbols, -1 - int(np.argmax(mass[symbols])))
    return deque(zip(symbols.tolist(), mass[symbols].tolist(), strict=True))


def _paired_off(
    a: Array, level: float, first: Masses, second: Masses, left: Array
) -> list[Pair]:
    """Outputs at the level from the heads of both lines, until one line ends.

    Their masses are taken from `left` (n,).
    """
    pairs: list[Pair] = []
    while first and second:
        x, mass_x = first[0]
        z, mass_z = second[0]
        share = 0.0
        if a[z] != a[x]:
            share = (level - a[x]) / (a[z] - a[x])
        if not 0.0 < share < 1.0:
            # Both lie on one side of the level: the one nearer to it has no partner any more.
            if (a[x] < level) == (a[z] < a[x]):
                first.popleft()
            else:
                second.popleft()
            continue
        # As much as the scarcer of the two allows: one head is used up each time.
        weight = min(mass_x / (1.0 - share), mass_z / share)
        left[x] -= (1.0 - share) * weight
        left[z] -= share * weight
        pairs.append((x, z, level, weight))
        _use_head(first, (1.0 - share) * weight)
        _use_head(second, share * weight)
    return pairs


def _use_head(line: Masses, mass: float) -> None:
    """Use up this mass of the head of a line."""
    symbol, available = line.popleft()
    rest = available - mass
    if rest > NOTHING:
        line.appendleft((symbol, rest))


def _outputs(search: LineSearch, pairs: list[Pair]) -> Points:
    """The outputs of these pairs, each at its level."""
    table = np.array(pairs).reshape(-1, 4)
    i = table[:, 0].astype(np.intp)
    j = table[:, 1].astype(np.intp)
    return search.pairs(i, j, table[:, 2])
