"""The pricer and the first columns of a lower envelope over a polytope.

`Preparation.run` makes the pricer, the fastest exact one for the shape of the polytope:

| the rows depend on        | pricer                                             |
|---------------------------|----------------------------------------------------|
| one coordinate each       | knapsacks, by sorting (`solvers.pricing.separate`) |
| one number                | all pairs of symbols (`solvers.pricing.line`)      |
| two numbers, many symbols | all pairs and triples (`solvers.pricing.plane`)    |
| more, or auxiliary ones   | branch and bound (`solvers.pricing.concave`)       |

`columns` are then, in this order: the point itself; the unit vectors inside, which cost nothing;
first columns of a line (`first_columns`); all vertices, where the method asks for
them or they are few; the members among columns of a neighbouring problem (`add_start`); and those
of known decompositions (`add_incumbents`). The cheapest of these decompositions that uses members
alone, or the point itself, is what the loop begins with.

*First columns where all rows depend on a single number*:

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

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers import errors
from solvers.enumeration import (
    Vertices,
    estimate,
    explicit_rows,
    few_vertices,
    vertices,
)
from solvers.envelope.generation import Generation
from solvers.points import Array, Points
from solvers.pricing.concave import ConcaveSearch
from solvers.pricing.line import Index, LineSearch, leading_row
from solvers.pricing.plane import plane_search
from solvers.pricing.separate import StaircaseSearch, separate_search
from solvers.results import EnvelopeStatus, Pricer
from solvers.sets.polytope import MEMBERSHIP_TOLERANCE, Polytope

# -------------------------------------------------------------- first columns of a line

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
    weights = run.pool.weights
    keep = np.flatnonzero(weights > 0.0)
    # Outputs of a single group need no following: its members are paired off with the rest.
    keep = keep[run.pool.points.sizes[keep] == 2]
    used = run.pool.points.take(keep)
    weights = (1.0 - SPARE) * weights[keep]
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


# ------------------------------------------------------------- pricer and first columns

ESTIMATE_SHARE = 0.1
"""Share of the time that is left for an estimate of the number of vertices. It takes long where
they are many, and then they are not listed.
"""

TIGHTENING_SHARE = 0.2
"""Share of the time limit that upper bounds of the coordinates may take; they only speed the search
up."""

ROUNDING = 5e-13
"""Excess, relative to the terms of a row, up to which a column of another run counts as a member:
columns lie on the boundary, some of them outside by the tolerance of the kernel's simplex (2e-13 of
1 + the row)."""

INCUMBENT_ERROR = 1e-9
"""Relative miss of an entry of the point up to which a decomposition from elsewhere is taken as
one."""

PLANE_FROM = 400
"""Classes of symbols from which pricing all triples of a plane beats the tree: 1.2 to 2.5 times on
tables of Adult with three sensitive values."""

MOST_ROWS = 300
"""Rows, once auxiliary variables are eliminated, up to which vertices are enumerated at all."""

FEW_VERTICES = 1500
"""Estimated number of vertices up to which 'auto' enumerates them: beyond it column generation was
faster on every table measured (tests/benchmarks/test_grids.py prints the ratio)."""

Incumbents: TypeAlias = Callable[[], Sequence[tuple[ArrayLike, Points]]]
"""The source of known decompositions, as (weights, points)."""


@dataclass(frozen=True)
class Resources:
    """What a pricer may use: threads, bytes, and the seconds of the whole run."""

    workers: int
    memory_limit: int
    time_limit: float | None

    def share_of_time(self, share: float) -> float:
        """Seconds; without a limit there is no end."""
        if self.time_limit is None:
            return math.inf
        return share * self.time_limit


class Preparation:
    """The pricer and the first columns of a run; first `run`, then the `add_` methods.

    Any step may be cut short by Ctrl-C or the clock, and the run uses what there is by then. A
    missing pricer is never called, because no time is left.

    Attributes
    ----------
    pricer : callable or None
    vertices : Vertices or None
        All vertices, where the method asks for them or they are few.
    interrupted : bool
        Whether Ctrl-C ended the preparation.
    """

    def __init__(self, polytope: Polytope, point: Array) -> None:
        self.pricer: Pricer | None = None
        self.vertices: Vertices | None = None
        self.interrupted = False
        self._polytope = polytope
        self._point = point
        # The row whose values order all symbols, where every row is a function of it.
        self._leading_row = leading_row(polytope)
        # Whether every row bounds one coordinate alone, and pricing is by sorting.
        self._is_separate = False
        # Whether the pricer is branch and bound.
        self.is_tree = False
        self._line: LineSearch | None = None
        self._decompositions: list[tuple[ArrayLike, Points]] = []
        # The trivial decomposition comes first. Unit vectors inside the polytope cost nothing.
        units = Points.units(np.arange(polytope.n), polytope.n)
        self._columns = [
            Points.from_dense(point),
            units.take(_members(polytope, units)),
        ]

    @property
    def method(self) -> str:
        """Where columns come from: a list of vertices, the pairs of a line, or local searches."""
        if self.vertices is not None:
            return "vertices"
        if self._leading_row is None:
            return "columns"
        return "line"

    def run(
        self,
        outer: Polytope,
        resources: Resources,
        *,
        method: str,
        enumeration: str,
        gap: float,
        end: float,
    ) -> float:
        """Make the pricer and list vertices, as far as the time goes; the end of the whole run.

        After Ctrl-C or the deadline this end has come already.
        """
        try:
            self.make_pricer(outer, resources)
            if method != "vertices":
                self._add_columns_of_line(gap, end)
            self._list_vertices(method, enumeration, end)
        except errors.OutOfTime:
            # What was made by then is used, in no further time.
            return -math.inf
        except KeyboardInterrupt:
            self.interrupted = True
            return -math.inf
        return end

    def make_pricer(self, outer: Polytope, resources: Resources) -> None:
        """All pairs where the rows depend on one number; else branch and bound, or all triples."""
        separate = None
        if self._leading_row is None and self._polytope.may_be_separate:
            separate = separate_search(self._polytope, outer)
        if separate is not None:
            self._is_separate = True
            self.pricer = separate.run
            if isinstance(separate, StaircaseSearch):
                self._decompositions += separate.selections()
        elif self._leading_row is None:
            self.pricer, self.is_tree = _tree_pricer(self._polytope, outer, resources)
        else:
            self._line = LineSearch(self._polytope, outer, self._leading_row)
            self.pricer = self._line.run

    def _add_columns_of_line(self, gap: float, end: float) -> None:
        """Where the rows depend on one number, its cheapest pairs, and a first decomposition."""
        if self._line is None:
            return
        self._decompositions.append(at_mean(self._line, self._point))
        self._columns.append(first_columns(self._line, self._point, gap, end))

    def _list_vertices(self, method: str, enumeration: str, end: float) -> None:
        """All vertices, where the method asks for them or they are few."""
        # Pricing all pairs of a line lists its vertices anyway, and sorting needs no list.
        is_tree = self._leading_row is None and not self._is_separate
        if is_tree or method == "vertices":
            self.vertices = _listed_vertices(self._polytope, method, enumeration, end)

    def add_start(self, start: Points | None) -> None:
        """Columns of a neighbouring problem that are members here, after the vertices."""
        if self.vertices is not None:
            self._columns.append(Points.from_dense(self.vertices.points))
        if start is not None and len(start):
            inside = _members(self._polytope, start, ROUNDING)
            self._columns.append(start.take(inside))

    def add_incumbents(self, incumbents: Sequence[tuple[ArrayLike, Points]]) -> None:
        """Decompositions from elsewhere, before that of the line."""
        # Of equal values the first one stays: that from elsewhere.
        self._decompositions = [*incumbents, *self._decompositions]
        for _, points in self._decompositions:
            check_length(points, self._polytope.n)

    def columns(self) -> tuple[Points, Array]:
        """All columns, and the weights of the best decomposition among those known."""
        return _with_incumbents(
            self._polytope, self._point, self._columns, self._decompositions
        )


def _tree_pricer(
    polytope: Polytope, outer: Polytope, resources: Resources
) -> tuple[Pricer, bool]:
    """Branch and bound; or all triples, where there are many symbols on a plane. Whether it is the
    first.
    """
    tree = ConcaveSearch(
        polytope,
        relaxation=outer,
        workers=resources.workers,
        memory_limit=resources.memory_limit,
        tightening=resources.share_of_time(TIGHTENING_SHARE),
    )
    if polytope.n >= PLANE_FROM:
        plane = plane_search(polytope, outer, tree)
        if plane is not None:
            return plane.run, False
    return tree.run, True


def _listed_vertices(
    polytope: Polytope, method: str, enumeration: str, end: float
) -> Vertices | None:
    """All vertices, where the method asks for them; for "auto" only where they are few."""
    if method == "columns":
        return None
    # Counting rows is cheap, and eliminating the variables may not be.
    has_auxiliary = polytope.auxiliary is not None
    if has_auxiliary and explicit_rows(polytope, MOST_ROWS) > MOST_ROWS:
        if method == "auto":
            return None
        raise errors.TooManyVertices(
            f"the polytope has more than {MOST_ROWS} rows without its auxiliary "
            "variables, too many to enumerate "
            'vertices; use method="columns"'
        )
    if method == "auto":
        # Small polytopes are listed at once; for others an estimate comes first.
        small = few_vertices(polytope, FEW_VERTICES)
        if small is not None:
            return small
        now = time.process_time()
        size = estimate(polytope, now + ESTIMATE_SHARE * (end - now))
        if size.at_least or size.vertices > FEW_VERTICES:
            return None
    left: float | None = None
    if not math.isinf(end):
        left = max(0.0, end - time.process_time())
    try:
        return vertices(polytope, enumeration, time_limit=left)
    except errors.BackendFailure:
        if method == "auto":
            # Column generation needs no list.
            return None
        raise


def _with_incumbents(
    polytope: Polytope,
    target: Array,
    initial: list[Points],
    incumbents: Sequence[tuple[ArrayLike, Points]],
) -> tuple[Points, Array]:
    """All columns, the point itself first, and the weights of the best known decomposition."""
    columns = Points.concatenate(initial)
    parts = [columns]
    width = len(columns)
    # The trivial decomposition is the first column, the point itself.
    best = np.ones(1)
    first = 0
    least = float(columns.take([0]).entropies()[0])
    for weights, points in incumbents:
        w = np.asarray(weights, dtype=np.float64)
        inside = _members(polytope, points, ROUNDING)
        missing = np.abs(points.combine(w) - target)
        # Relative to each entry: a rare symbol must be met as well as a frequent one.
        meets_target = bool((missing <= INCUMBENT_ERROR * target).all())
        decomposes = meets_target and w.min(initial=0.0) >= 0.0
        uses_members = inside[w > 0.0].all()
        value = float(w @ points.entropies())
        if decomposes and uses_members and value < least:
            # Weights of points outside are zero here, so nothing is lost.
            best = w[inside]
            first = width
            least = value
        # Members of a decomposition that does not count are good columns all the same.
        parts.append(points.take(inside))
        width += len(parts[-1])
    whole = np.zeros(width)
    whole[first : first + len(best)] = best
    return Points.concatenate(parts), whole


def _members(
    polytope: Polytope, points: Points, rounding: float = 0.0
) -> NDArray[np.bool_]:
    """Which points are members, up to `rounding` relative to the terms of each row."""
    probability = np.abs(points.sums(points.data) - 1.0) <= MEMBERSHIP_TOLERANCE
    probability &= points.sums(np.minimum(points.data, 0.0)) == 0.0
    if polytope.least is not None:
        # Auxiliary variables at their least values decide membership without any elimination.
        excess = polytope.least.excess(points.images)
        slack = rounding * (1.0 + np.abs(polytope.least.bounds))
        return probability & np.logical_and.reduce(excess <= slack, axis=1)
    explicit = polytope.explicit
    images = points.images(explicit.rows)
    slack: Array | float = 0.0
    if rounding > 0.0:
        # Rounding of a sum is relative to the sum of the absolute values of its terms.
        slack = rounding * points.images(np.abs(explicit.rows))
    inside = (images >= explicit.lower - slack) & (images <= explicit.upper + slack)
    return probability & np.logical_and.reduce(inside, axis=1)


def check_length(points: Points, n: int) -> None:
    """Raise InvalidPolytope unless the points have n coordinates."""
    length = points.shape[1]
    if length != n:
        raise errors.InvalidPolytope(f"start has points of length {length}, not {n}")
