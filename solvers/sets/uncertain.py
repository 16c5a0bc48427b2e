"""Sets of probability vectors cut by inequalities with uncertain coefficients.

They are the posteriors v = P(X | y) that keep a promise for every population in a confidence set
(docs/explanation/population.md, 'The set'). The uncertain coefficients are the rows p_s = P(X | s)
and the distribution pi of S, each known to lie in a box. docs/explanation/optimum-theory.md,
'Uncertain sets, with rows found by sorting', has the proofs.

With w = v / point, the point itself being w = 1, and for every s a box B_s = {lower_s <= p <=
upper_s, sum p = 1}, let h_s(w) be the largest and g_s(w) the smallest p.w over p in B_s. The set of
an `UncertainSet` is

    h_s <= ratio g_t (s != t),   h_s <= upper mean(h_s, g_t),   g_s >= lower mean(g_s, h_t)

where mean(a_s, b_t) = pi_s a_s + sum over t != s of pi_t b_t and pi is any point of a box in the
simplex; upper and lower may differ from s to s. h is convex and g concave in w, so the set is
convex; it is the intersection of the polytopes of all coefficients at once, and a polytope itself
(the boxes have finitely many vertices), with far too many rows to list.

h and g need no list, for p.w over a box is a fractional knapsack: p takes the lower ends, and then
fills up the largest w first for h, the smallest first for g (`extremes`). So one sort of w decides
membership (`excess`), and tells the coefficients of the rows that w violates most (`cuts`).

For example, at the point (1/2, 1/2) v = (0.6, 0.4) has w = (1.2, 0.8). Let the box of every s be
0.4 <= p <= 0.6: h = 0.6 * 1.2 + 0.4 * 0.8 = 1.04 and g = 0.4 * 1.2 + 0.6 * 0.8 = 0.96. So v is a
member for a ratio of 1.1, where h may be up to 1.056.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidPolytope
from solvers.points import Array, Points
from solvers.sets.polytope import towards_units

ROUNDING = 2.0**-50
"""Relative error of the entries of a row, per term: sums of ends, differences and products of
doubles."""

MOST_DENSE = 24
"""Sensitive symbols up to which means with one value replaced are taken of a square matrix. At 60
that takes five times as long as one sort for all of them."""

AT_ONCE = 1 << 13
"""Means that are computed at once where there are more symbols than that."""

MOST_CHORDS = 40
"""Chords drawn from the point towards the unit vectors. The second one meets the boundary; only
faces need more."""

LEAST_STEP = 1e-12
"""Step, as a share of the way to a unit vector, that ends the drawing of chords: it moves nothing
any more."""

EMPTY = 1e-12
"""By how much the ends of a box may miss a sum of 1 through rounding."""

PART = 2000
"""Points whose extremes are computed at a time, so that their sorted copies fit the memory."""


@dataclass(frozen=True, eq=False)
class Sets:
    """A partition of n coordinates into k sets, none of them empty.

    `of` (n,) has the set of each coordinate, `masses` (k,) the mass of each set, and `point` (n,)
    the point whose masses these are.
    """

    of: NDArray[np.intp]
    masses: Array
    point: Array

    @classmethod
    def of_each(cls, point: Array) -> Sets:
        """Every coordinate by itself."""
        return cls(np.arange(len(point)), point, point)

    @classmethod
    def of_mass(cls, point: Array, most: int) -> Sets:
        """At most so many sets, of masses as equal as the coordinates allow.

        The largest coordinate goes first, and each into the set that is least so far. So large
        coordinates stay by themselves, and small ones share a set.
        """
        count = min(most, len(point))
        of = np.empty(len(point), dtype=np.intp)
        least = [(0.0, place) for place in range(count)]
        for coordinate in np.argsort(-point, kind="stable").tolist():
            mass, place = least[0]
            of[coordinate] = place
            heapq.heapreplace(least, (mass + float(point[coordinate]), place))
        masses = np.asarray(np.bincount(of, point, count), dtype=np.float64)
        return cls(of, masses, point)

    def sums(self, values: Array) -> Array:
        """The sums of the rows of `values` (m, n) over each set, (m, k)."""
        count = len(self.masses)
        if count == len(self.of):
            return values
        sums = np.zeros((len(values), count))
        for row, of_row in zip(values, sums, strict=True):
            of_row[:] = np.bincount(self.of, row, count)
        return sums

    def towards(self, shares: Array) -> Array:
        """The points at these shares of the ways from the point to each set, (k, n).

        The way to a set ends at the point on the set, with no mass elsewhere.
        """
        if len(shares) == len(self.point):
            return towards_units(self.point, shares)
        points = (1.0 - shares)[:, None] * self.point
        coordinates = np.arange(len(self.point))
        points[self.of, coordinates] += (shares / self.masses)[self.of] * self.point
        return points


@dataclass(frozen=True, eq=False)
class UncertainSet:
    """The v >= 0 with sum v = 1 that satisfy the inequalities above for all coefficients.

    Parameters
    ----------
    point : (n,) array
        Positive, with sum 1; it is a member of the set.
    lower, upper : (S, n) or (S, n + 1) arrays
        The boxes of p. A last coordinate without a point holds all symbols whose w is `rest`
        whatever v is.
    share_lower, share_upper : (S,) arrays
        The box of pi.
    ratio : float
        The factor of quotients; ``inf`` where they are not bounded.
    most, least : float or (S,) array
        The factors of means, for all s or for each; ``inf`` and 0 where none is asked for.
    slack : float
        Number added to the entries of a row. It is positive only where the factors are smaller than
        those of the set that bounds are about: with it the row holds for that larger set.

    Raises
    ------
    InvalidPolytope
        On wrong shapes, NaN, an empty box or factors on the wrong side of 1.
    """

    point: Array
    lower: Array
    upper: Array
    share_lower: Array
    share_upper: Array
    ratio: float = np.inf
    most: float | Array = np.inf
    least: float | Array = 0.0
    rest: float = 1.0
    slack: float = 0.0

    def __post_init__(self) -> None:
        for name in ("point", "lower", "upper", "share_lower", "share_upper"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if not np.isfinite(array).all():
                raise InvalidPolytope(f"{name} contains NaN or an infinity")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        n = len(self.point)
        shape = self.lower.shape
        if len(shape) != 2 or shape != self.upper.shape or shape[1] not in (n, n + 1):
            raise InvalidPolytope(
                f"lower and upper must have {n} columns, or one more, and the same shape"
            )
        if not self.share_lower.shape == self.share_upper.shape == (len(self.lower),):
            raise InvalidPolytope(
                f"the shares must have one entry per box ({len(self.lower)})"
            )
        if self.point.min() <= 0.0:
            raise InvalidPolytope(
                "point must be positive: coordinates without mass have no w"
            )
        sides = (self.mosts > 1.0) & (self.leasts >= 0.0) & (self.leasts < 1.0)
        if not (self.ratio > 1.0 and sides.all()):
            raise InvalidPolytope(
                "ratio and most must be above 1, least at least 0 and below 1"
            )
        _check_boxes(self.lower, self.upper)
        _check_boxes(self.share_lower[None], self.share_upper[None])

    def face(self, members: NDArray[np.intp]) -> UncertainSet:
        """The face where only `members` have mass, as a set; its point need not be a member.

        Raises
        ------
        InvalidPolytope
            If the boxes have a last coordinate without a point already.
        """
        if self.lower.shape[1] != self.n:
            raise InvalidPolytope(
                "a set with a coordinate that has no point has no faces of its own"
            )
        mass = self.point[members]
        return replace(
            self,
            point=mass / mass.sum(),
            lower=_with_rest(self.lower, members),
            upper=_with_rest(self.upper, members),
            rest=0.0,
        )

    @property
    def n(self) -> int:
        """Number of coordinates of v."""
        return len(self.point)

    @cached_property
    def mosts(self) -> Array:
        """`most` of every s."""
        return np.broadcast_to(np.asarray(self.most, np.float64), len(self.lower))

    @cached_property
    def leasts(self) -> Array:
        """`least` of every s."""
        return np.broadcast_to(np.asarray(self.least, np.float64), len(self.lower))

    @property
    def is_uniform(self) -> bool:
        """Whether the factors are the same for all s, as the compiled search needs them."""
        return np.ndim(self.most) == 0 and np.ndim(self.least) == 0

    @cached_property
    def boxes(self) -> tuple[Array, Array, Array]:
        """Lower ends, widths (S, n + 1 each) and free masses (S,) of the boxes.

        The free mass is what the lower ends leave of 1; the extremes spread it over the widths.
        """
        # A last coordinate of no width stands in for symbols without a point, where there are none.
        missing = self.n + 1 - self.lower.shape[1]
        lower = np.pad(self.lower, ((0, 0), (0, missing)))
        upper = np.pad(self.upper, ((0, 0), (0, missing)))
        # Below zero by rounding only: the boxes were checked.
        free_mass = np.maximum(1.0 - lower.sum(axis=1), 0.0)
        return lower, upper - lower, free_mass

    def extremes(self, points: ArrayLike) -> tuple[Array, Array]:
        """h and g of every point, (k, S) each.

        Each is a fractional knapsack (docs/explanation/optimum-theory.md, 'Uncertain sets, with
        rows found by sorting'): with the coordinates sorted by w, the free mass of the box goes to
        the largest ones for h, to the smallest ones for g.

        Parameters
        ----------
        points : (k, n) array
        """
        v = np.atleast_2d(np.asarray(points, dtype=np.float64))
        w = np.hstack([v / self.point, np.full((len(v), 1), self.rest)])
        order = np.argsort(-w, axis=1, kind="stable")
        falling = np.take_along_axis(w, order, axis=1)
        rising = falling[:, ::-1]
        lower, width, free_mass = self.boxes
        largest = np.empty((len(v), len(lower)))
        smallest = np.empty((len(v), len(lower)))
        for s in range(len(lower)):
            # Widths in the order of falling w: one sort serves all boxes, and both extremes.
            widths = width[s][order]
            at_lower_ends = w @ lower[s]
            added_from_top = _filled(widths, free_mass[s])
            added_from_bottom = _filled(widths[:, ::-1], free_mass[s])
            largest[:, s] = at_lower_ends + (added_from_top * falling).sum(axis=1)
            smallest[:, s] = at_lower_ends + (added_from_bottom * rising).sum(axis=1)
        return largest, smallest

    def excess(self, points: ArrayLike) -> Array:
        """By how much the worst inequality fails at every point, (k,); at `point` it is below 0."""
        return self._kinds(self.extremes(points)).max(axis=0)

    def _extremes_towards(self, sets: Sets, reach: Array) -> tuple[Array, Array]:
        """`extremes` of the points at these shares of the ways to k sets, (k, S) each.

        Such a point has three different w: that of its own symbols, that of all others, and `rest`.
        So no sort is needed, and an extreme takes three steps in place of n.
        """
        lower, width, free_mass = self.boxes
        others = 1.0 - reach
        rest = np.full(len(reach), self.rest)
        w = np.stack([others + reach / sets.masses, others, rest])
        # Lower ends and widths of the three kinds of symbols, (3, k, S).
        lowers = _of_three_kinds(lower, sets)
        widths = _of_three_kinds(width, sets)
        at_lower_ends = (lowers * w[:, :, None]).sum(axis=0)
        sides: list[Array] = []
        for order in (np.argsort(-w, axis=0), np.argsort(w, axis=0)):
            left = np.broadcast_to(free_mass, at_lower_ends.shape)
            side = at_lower_ends
            for kind in order:
                # The kind whose turn it is, of every set.
                each = np.arange(len(reach))
                filled = np.minimum(widths[kind, each], left)
                side = side + filled * w[kind, each][:, None]
                left = left - filled
            sides.append(side)
        largest, smallest = sides
        return largest, smallest

    def _kinds(self, extremes: tuple[Array, Array]) -> Array:
        """`excess` of each kind of inequality at the `extremes` of k points, (kinds, k)."""
        h, g = extremes
        low = self.share_lower
        high = self.share_upper
        # A set without any inequality is never violated.
        worst = [np.full(len(h), -np.inf)]
        if np.isfinite(self.ratio) and h.shape[1] > 1:
            # h_s <= ratio g_t is hardest for the t != s of least g_t.
            hardest = np.take_along_axis(g, least_others(g), axis=1)
            worst.append((h - self.ratio * hardest).max(axis=1))
        above = np.isfinite(self.mosts)
        if above.any():
            mean = extreme_means(g, h, 1, low, high)
            failing = h[:, above] - self.mosts[above] * mean[:, above]
            worst.append(failing.max(axis=1))
        below = self.leasts > 0.0
        if below.any():
            mean = extreme_means(h, g, -1, low, high)
            failing = self.leasts[below] * mean[:, below] - g[:, below]
            worst.append(failing.max(axis=1))
        return np.stack(worst)

    def pulled(self, margin: float, end: float = math.inf) -> Array:
        """For every coordinate the farthest member on the way to its unit vector; (n, n)."""
        return towards_units(self.point, self.reach(margin, end))

    def reach(
        self, margin: float, end: float = math.inf, sets: Sets | None = None
    ) -> Array:
        """Shares of the ways from the point to k sets of coordinates that members go; (k,).

        Without `sets` they are the ways to the unit vectors. The excess of a kind of inequality is
        convex along the way (with `rest` 1 it is linear, for h(1 + t u) = 1 + t h(u)). So it lies
        below its chord from a member to the end of the way, and is at most zero where the chord
        is: another member. Chords are drawn until none moves, and after the first one only until
        `end`, a moment of `time.process_time`.
        """
        if sets is None:
            sets = Sets.of_each(self.point)
        reach = np.zeros(len(sets.masses))
        ends = self._kinds(self._extremes_towards(sets, reach + 1.0)) + margin
        for _ in range(MOST_CHORDS):
            here = self._kinds(self._extremes_towards(sets, reach)) + margin
            # Where the end of the way is a member, the whole way is inside.
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = np.where(ends > 0.0, here / (here - ends), 1.0)
            step = (1.0 - reach) * parts.min(axis=0)
            if step.max() <= LEAST_STEP:
                break
            reach += step
            if time.process_time() >= end:
                break
        return reach

    def chords(self, origin: Array) -> Array:
        """Shares of the ways from a member, (n,), to the unit vectors up to which chords of the
        excess prove that there are members; (n,).
        """
        here = self._kinds(self.extremes(origin))
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(self._at_units > 0.0, here / (here - self._at_units), 1.0)
        return np.clip(parts.min(axis=0), 0.0, 1.0)

    @cached_property
    def _at_units(self) -> Array:
        """The excess of each kind of inequality at the unit vectors, (kinds, n)."""
        each = Sets.of_each(self.point)
        return self._kinds(self._extremes_towards(each, np.ones(self.n)))

    @property
    def room(self) -> float:
        """Slack of the inequalities at the point, where w is 1: the largest possible margin."""
        room = min(self.ratio - 1.0, float(self.mosts.min()) - 1.0)
        if (self.leasts > 0.0).any():
            room = min(room, 1.0 - float(self.leasts.max()))
        return room

    @property
    def row_error(self) -> float:
        """Largest error of an entry of `cuts`, as a row of the exact boxes inside these.

        The ends of these boxes were rounded outwards, and the entries are sums of rounded products.
        """
        # Entries are at most ratio (or most) times a mean of p, less another one.
        terms = self.n + len(self.lower) + 16
        return self.slack + ROUNDING * terms * (1.0 + self.largest_factor)

    @property
    def largest_factor(self) -> float:
        """The largest finite factor, at least 1."""
        factors = np.append(self.mosts, self.ratio)
        return max(1.0, float(factors.max(initial=1.0, where=np.isfinite(factors))))

    def cuts(self, w: Array) -> Array:
        """Rows a (k, n) with a.w >= 0 for w = v / point of every member v, least at this w (n,).

        Each row fixes the coefficients p_s and pi at which its inequality is tightest at `w`: two
        sorts separate w from the set (docs/explanation/optimum-theory.md, 'Uncertain sets, with
        rows found by sorting').
        """
        full = np.append(w, self.rest * float(self.point @ w))
        lower, width, _ = self.boxes
        upper = lower + width
        wide = np.broadcast_to(full, lower.shape)
        # Coefficients that attain h_s and g_s; (S, n + 1).
        high = _extreme_weights(-wide, lower, upper)
        low = _extreme_weights(wide, lower, upper)
        h = high @ full
        g = low @ full
        size = len(lower)
        rows = [np.zeros((0, len(full)))]
        if np.isfinite(self.ratio) and size > 1:
            # h_s <= ratio g_t is tightest for the t != s of least g_t.
            hardest = least_others(g[None, :])[0]
            rows.append(self.ratio * low[hardest] - high)
        above = np.isfinite(self.mosts)
        if above.any():
            mean = self._tightest_means(g, h, 1, low, high)
            rows.append(self.mosts[above, None] * mean[above] - high[above])
        below = self.leasts > 0.0
        if below.any():
            mean = self._tightest_means(h, g, -1, high, low)
            rows.append(low[below] - self.leasts[below, None] * mean[below])
        stacked = np.vstack(rows)
        # The coordinate without a point has w = rest * sum v, a multiple of point.w.
        return stacked[:, :-1] + np.outer(stacked[:, -1], self.rest * self.point)

    def _tightest_means(
        self, values: Array, special: Array, sign: int, rows: Array, special_rows: Array
    ) -> Array:
        """Rows of the least (sign 1) or largest mean over pi; (S, n + 1).

        Row s is mean(a_s, b_t) of the module's text: b_t are the `values` and come from `rows`, and
        a_s is ``special[s]`` and comes from its special row.
        """
        size = len(values)
        if size > MOST_DENSE:
            ends = self.share_lower, self.share_upper
            pair = sign * values, sign * special
            return _least_rows(*pair, rows, special_rows, *ends)
        averaged = np.tile(values, (size, 1))
        np.fill_diagonal(averaged, special)
        weights = _extreme_weights(sign * averaged, self.share_lower, self.share_upper)
        # All rows with their weights, and then the special one in the place of row s.
        share = np.diagonal(weights)[:, None]
        return weights @ rows + share * (special_rows - rows)

    def excess_of(self, points: Points) -> Array:
        """`excess` of a list of sparse points, in parts that fit the memory."""
        parts = np.array_split(np.arange(len(points)), len(points) // PART + 1)
        excesses = [self.excess(points.take(part).toarray()) for part in parts]
        return np.concatenate(excesses)


def _check_boxes(low: Array, high: Array) -> None:
    """Raise InvalidPolytope unless each box holds a probability vector."""
    empty = (low.sum(axis=1) > 1.0 + EMPTY) | (high.sum(axis=1) < 1.0 - EMPTY)
    if empty.any() or (low > high).any():
        raise InvalidPolytope("a box holds no probability vector")


def _with_rest(side: Array, members: NDArray[np.intp]) -> Array:
    """Ends of the members, and after them the sum of all other ends."""
    rest = np.delete(side, members, axis=1).sum(axis=1)
    return np.column_stack([side[:, members], rest])


def _of_three_kinds(ends: Array, sets: Sets) -> Array:
    """Ends (S, n + 1) of each of k sets, all others together and the last one; (3, k, S)."""
    own = sets.sums(ends[:, :-1]).T
    others = ends[:, :-1].sum(axis=1) - own
    last = np.broadcast_to(ends[:, -1], own.shape)
    return np.stack([own, np.maximum(others, 0.0), last])


def _filled(capacity: Array, mass: Array | float) -> Array:
    """How much of each capacity the mass fills, along the last axis from the first entry on."""
    before = np.cumsum(capacity, axis=-1) - capacity
    return np.clip(mass - before, 0.0, capacity)


def least_others(values: Array) -> NDArray[np.intp]:
    """Where the least of all other values of its row is, for every one of S >= 2; (k, S)."""
    rows = np.arange(len(values))
    least = values.argmin(axis=1)
    without = values.copy()
    without[rows, least] = np.inf
    places = np.repeat(least[:, None], values.shape[1], axis=1)
    # The least one itself has the next one as the least of the others.
    places[rows, least] = without.argmin(axis=1)
    return places


def extreme_means(
    values: Array, special: Array, sign: int, low: Array, high: Array
) -> Array:
    """The least (sign 1) or largest mean over weights in a box; (k, S).

    Mean s is of the `values` (k, S), with ``special[:, s]`` in place of ``values[:, s]``.
    """
    size = values.shape[1]
    if size > MOST_DENSE:
        means = np.empty_like(values)
        # Few at a time, which stay in the cache of a processor.
        at_once = max(1, AT_ONCE // size)
        for start in range(0, len(values), at_once):
            part = slice(start, start + at_once)
            pair = sign * values[part], sign * special[part]
            means[part] = sign * _least_means(*pair, low, high)
        return means
    averaged = np.repeat(values[:, None, :], values.shape[1], axis=1)
    # This view of the diagonals of all k matrices can be written to.
    np.einsum("kss->ks", averaged)[:] = special
    return (averaged * _extreme_weights(sign * averaged, low, high)).sum(axis=2)


class _Taken(NamedTuple):
    """Where the least means of k lists of S values take their mass from, all (k, S).

    For mean s the first `last` values of the ascending `order` are taken as far as their widths
    allow, and `part` of the next one. Of s itself `own` is taken at its special value, and
    `taken_out` of it is no part of the others.
    """

    order: NDArray[np.intp]
    last: NDArray[np.intp]
    part: Array
    own: Array
    taken_out: Array


def _least_taken(values: Array, special: Array, low: Array, high: Array) -> _Taken:
    """What the least mean takes for every s of k lists of values, (k, S).

    One order of the values serves all s, in the time and memory of a sort: the others take the free
    mass as if s were not there, and s comes behind those that are less than its special value.
    """
    order = np.argsort(values, axis=1, kind="stable")
    ascending = np.take_along_axis(values, order, axis=1)
    widths = high - low
    masses = _sums_before(widths[order])
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(widths))[None, :], axis=1)
    less = _number_below(ascending, special)
    before = np.take_along_axis(masses, less, axis=1)
    before -= np.where(rank < less, widths, 0.0)
    room = max(1.0 - float(low.sum()), 0.0)
    own = np.clip(room - before, 0.0, widths)
    # Beyond the place of s the others are filled with its width, too, which is taken out again.
    beyond = room - own > np.take_along_axis(masses, rank, axis=1)
    taken_out = np.where(beyond, widths, 0.0)
    taken = np.minimum(room - own + taken_out, masses[:, -1:])
    last = np.clip(_number_below(masses, taken) - 1, 0, len(widths) - 1)
    part = taken - np.take_along_axis(masses, last, axis=1)
    return _Taken(order, last, part, own, taken_out)


def _sums_before(values: Array) -> Array:
    """The sums of the first 0, 1, .. of m values of each row, (k, m + 1)."""
    sums = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return sums


def _number_below(ascending: Array, asked: Array) -> NDArray[np.intp]:
    """How many of the ascending numbers of its row each asked one, (k, S), is above."""
    pairs = zip(ascending, asked, strict=True)
    return np.array([np.searchsorted(*pair) for pair in pairs])


def _least_means(values: Array, special: Array, low: Array, high: Array) -> Array:
    """The least means of `extreme_means`, (k, S)."""
    taken = _least_taken(values, special, low, high)
    ascending = np.take_along_axis(values, taken.order, axis=1)
    worth = _sums_before((high - low)[taken.order] * ascending)
    filled = np.take_along_axis(worth, taken.last, axis=1)
    filled += taken.part * np.take_along_axis(ascending, taken.last, axis=1)
    filled += (taken.own + low) * special - (taken.taken_out + low) * values
    return (values @ low)[:, None] + filled


def _least_rows(
    values: Array,
    special: Array,
    rows: Array,
    special_rows: Array,
    low: Array,
    high: Array,
) -> Array:
    """Means of `rows` over the shares of the least means of `values`; (S, columns).

    Mean s has ``special[s]`` and ``special_rows[s]`` in place of those of s.
    """
    taken = _least_taken(values[None], special[None], low, high)
    order, last, part, own, taken_out = (column[0] for column in taken)
    worth = np.zeros((len(rows) + 1, rows.shape[1]))
    np.cumsum(((high - low)[:, None] * rows)[order], axis=0, out=worth[1:])
    filled = worth[last] + part[:, None] * rows[order[last]]
    filled += (own + low)[:, None] * special_rows - (taken_out + low)[:, None] * rows
    return low @ rows + filled


def _extreme_weights(costs: Array, low: Array, high: Array) -> Array:
    """Probability vectors in a box that minimise the inner product with each row of costs.

    The free mass goes to the least costs first, as far as their widths allow.
    """
    order = np.argsort(costs, axis=-1, kind="stable")
    widths = np.broadcast_to(high - low, costs.shape)
    cheapest_first = np.take_along_axis(widths, order, axis=-1)
    free_mass = np.maximum(1.0 - low.sum(axis=-1), 0.0)[..., None]
    added = np.empty_like(costs)
    np.put_along_axis(added, order, _filled(cheapest_first, free_mass), axis=-1)
    return low + added
