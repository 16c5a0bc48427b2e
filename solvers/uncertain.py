"""Sets of probability vectors cut by inequalities with uncertain coefficients.

With w = v / point, the point itself being w = 1, and for every s a box B_s = {lower_s <= p <= upper_s, sum p = 1},
let h_s(w) be the largest and g_s(w) the smallest p.w over p in B_s. The set of an `UncertainSet` is

    h_s <= ratio g_t (s != t),   h_s <= upper mean(h_s, g_t),   g_s >= lower mean(g_s, h_t)

where mean(a_s, b_t) = pi_s a_s + sum over t != s of pi_t b_t and pi is any point of a box in the simplex. h is
convex and g concave in w, so the set is; it is the intersection of the polytopes of all coefficients at once, and a
polytope itself (the boxes have finitely many vertices), with far too many rows to list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidPolytope
from solvers.points import Array, Points


@dataclass(frozen=True, eq=False)
class UncertainSet:
    """The v >= 0 with sum v = 1 that satisfy the inequalities above for every choice of coefficients.

    Parameters
    ----------
    point : (n,) array
        Positive, with sum 1; it is a member of the set.
    lower, upper : (S, n) or (S, n + 1) arrays
        The boxes of p. A last coordinate without a point stands for everything whose w is `rest` whatever v is.
    share_lower, share_upper : (S,) arrays
        The box of pi.
    ratio, most, least : float
        The factors; ``inf``, ``inf`` and 0 where an inequality is not asked for.
    slack : float
        What must be added to the entries of a row before it holds for the set that bounds are meant for.

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
    most: float = np.inf
    least: float = 0.0
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
        if not (self.ratio > 1.0 and self.most > 1.0 and 0.0 <= self.least < 1.0):
            raise InvalidPolytope(
                "ratio and most must be above 1, least at least 0 and below 1"
            )
        for low, high in (
            (self.lower, self.upper),
            (self.share_lower[None], self.share_upper[None]),
        ):
            empty = (low.sum(axis=1) > 1.0 + EMPTY) | (high.sum(axis=1) < 1.0 - EMPTY)
            if empty.any() or (low > high).any():
                raise InvalidPolytope("a box holds no probability vector")

    def face(self, members: NDArray[np.intp]) -> UncertainSet:
        """The part of the set where only `members` have mass, as a set of its own; its point need not be a member.

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
        lower, upper = (
            np.column_stack(
                [side[:, members], np.delete(side, members, axis=1).sum(axis=1)]
            )
            for side in (self.lower, self.upper)
        )
        return replace(
            self, point=mass / mass.sum(), lower=lower, upper=upper, rest=0.0
        )

    @property
    def n(self) -> int:
        """Number of coordinates of v."""
        return len(self.point)

    @cached_property
    def boxes(self) -> tuple[Array, Array, Array]:
        """Lower ends, widths (S, n + 1 each) and free masses (S,) of the boxes."""
        missing = self.n + 1 - self.lower.shape[1]
        lower, upper = (
            np.pad(side, ((0, 0), (0, missing))) for side in (self.lower, self.upper)
        )
        return lower, upper - lower, np.maximum(1.0 - lower.sum(axis=1), 0.0)

    def extremes(self, points: ArrayLike) -> tuple[Array, Array]:
        """h and g of every point, (k, S) each.

        Parameters
        ----------
        points : (k, n) array
        """
        v = np.atleast_2d(np.asarray(points, dtype=np.float64))
        w = np.hstack([v / self.point, np.full((len(v), 1), self.rest)])
        order = np.argsort(-w, axis=1, kind="stable")
        falling = np.take_along_axis(w, order, axis=1)
        lower, width, room = self.boxes
        ends = np.empty((2, len(v), len(lower)))
        for s in range(len(lower)):
            free, base = width[s][order], w @ lower[s]
            for k, sign in ((0, 1), (1, -1)):
                turned = free[:, ::sign]
                filled = np.clip(
                    room[s] - (np.cumsum(turned, axis=1) - turned), 0.0, turned
                )
                ends[k, :, s] = base + (filled * falling[:, ::sign]).sum(axis=1)
        return ends[0], ends[1]

    def excess(self, points: ArrayLike) -> Array:
        """By how much the worst inequality fails at every point, (k,); at `point` it is below 0."""
        return self._kinds(points).max(axis=0)

    def _kinds(self, points: ArrayLike) -> Array:
        """`excess` of each kind of inequality, (kinds, k)."""
        h, g = self.extremes(points)
        shares = self.share_lower, self.share_upper
        worst = [np.full(len(h), -np.inf)]
        if np.isfinite(self.ratio):
            others = [
                np.delete(g, s, axis=1).min(axis=1, initial=np.inf)
                for s in range(h.shape[1])
            ]
            worst.append((h - self.ratio * np.stack(others, axis=1)).max(axis=1))
        if np.isfinite(self.most):
            worst.append((h - self.most * extreme_means(g, h, 1, *shares)).max(axis=1))
        if self.least > 0.0:
            worst.append(
                (self.least * extreme_means(h, g, -1, *shares) - g).max(axis=1)
            )
        return np.stack(worst)

    def pulled(self, margin: float) -> Array:
        """For every coordinate the member farthest from the point on the way to its unit vector, (n, n).

        Along it a kind of inequality is convex (with `rest` 1 linear: h(1 + t u) = 1 + t h(u)), so that its chord
        from a member on meets its limit at another one.
        """
        ends, reach = self._kinds(np.eye(self.n)) + margin, np.zeros(self.n)
        pulled = np.tile(self.point, (self.n, 1))
        for _ in range(CHORDS):
            here = self._kinds(pulled) + margin
            with np.errstate(divide="ignore", invalid="ignore"):
                parts = np.where(ends > 0.0, here / (here - ends), 1.0)
            step = (1.0 - reach) * parts.min(axis=0)
            if step.max() <= LEAST_STEP:
                break
            reach += step
            pulled = (1.0 - reach)[:, None] * self.point + np.diag(reach)
        return pulled

    @property
    def room(self) -> float:
        """What the inequalities have to spare at the point, where w is 1: as much as a margin can be."""
        return min(
            self.ratio - 1.0,
            self.most - 1.0,
            1.0 - self.least if self.least > 0.0 else np.inf,
        )

    @property
    def row_error(self) -> float:
        """How far entries of `cuts` may be from a row of the boxes whose ends were rounded outwards to these."""
        factors = [f for f in (self.ratio, self.most, 1.0) if np.isfinite(f)]
        return self.slack + ROUNDING * (self.n + len(self.lower) + 16) * (
            1.0 + max(factors)
        )

    def cuts(self, w: Array) -> Array:
        """Rows a (k, n) with a.w >= 0 for w = v / point of every member v, those that are least at this w (n,)."""
        full = np.append(w, self.rest * float(self.point @ w))
        lower, width, _ = self.boxes
        size, upper = len(lower), lower + width
        wide = np.broadcast_to(full, lower.shape)
        high, low = (
            _extreme_weights(-wide, lower, upper),
            _extreme_weights(wide, lower, upper),
        )
        h, g = high @ full, low @ full
        rows = [np.zeros((0, len(full)))]
        each = np.arange(size)
        if np.isfinite(self.ratio) and size > 1:
            others = np.where(np.eye(size, dtype=np.bool_), np.inf, g)
            rows.append(self.ratio * low[others.argmin(axis=1)] - high)
        sides = (self.most, 1, g, h, (low, high)), (self.least, -1, h, g, (high, low))
        for factor, sign, values, own, ends in sides:
            if 0.0 < factor < np.inf:
                c = np.tile(values, (size, 1))
                c[each, each] = own
                weights = _extreme_weights(sign * c, self.share_lower, self.share_upper)
                mean = weights @ ends[0] + np.diagonal(weights)[:, None] * (
                    ends[1] - ends[0]
                )
                rows.append(sign * (factor * mean - ends[1]))
        found = np.vstack(rows)
        return found[:, :-1] + np.outer(found[:, -1], self.rest * self.point)

    def excess_of(self, points: Points) -> Array:
        """`excess` of a list of sparse points, in parts that fit the memory."""
        parts = np.array_split(np.arange(len(points)), len(points) // PART + 1)
        return np.concatenate(
            [self.excess(points.take(part).toarray()) for part in parts]
        )


def extreme_means(
    values: Array, own: Array, sign: int, low: Array, high: Array
) -> Array:
    """The least (sign 1) or largest mean of `values` over weights in a box, with `own` in place of each s; (k, S)."""
    c = np.repeat(values[:, None, :], values.shape[1], axis=1)
    np.einsum("kss->ks", c)[:] = own
    return (c * _extreme_weights(sign * c, low, high)).sum(axis=2)


def _extreme_weights(c: Array, low: Array, high: Array) -> Array:
    """Probability vectors in a box, with as much as can be on the least entries of each row of c."""
    order = np.argsort(c, axis=-1, kind="stable")
    free = np.take_along_axis(np.broadcast_to(high - low, c.shape), order, axis=-1)
    room = np.maximum(1.0 - low.sum(axis=-1), 0.0)[..., None]
    filled = np.clip(room - (np.cumsum(free, axis=-1) - free), 0.0, free)
    weights = np.empty_like(c)
    np.put_along_axis(weights, order, filled, axis=-1)
    return low + weights


ROUNDING = 2.0**-50
"""Relative error of the entries of a row, per term: sums of ends, differences and products of doubles."""

CHORDS, LEAST_STEP = 40, 1e-12
"""Chords drawn from the point towards unit vectors, and steps that end them: the second one, but for faces."""

EMPTY = 1e-12
"""By how much the ends of a box may miss a sum of 1 through rounding."""

PART = 2000
"""Points looked at together."""
