"""Slow and obvious answers about small polytopes, in rational and ball arithmetic; and instances to
ask about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
from flint import arb, ctx, fmpq, fmpq_mat
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from solvers import Polytope, lower_envelope
from tests.oracles.vertices import rational

Array = NDArray[np.float64]
INF = np.inf

ctx.prec = 160


# ------------------------------------------------------------------ exact answers


@dataclass(frozen=True)
class Exact:
    """Points that contain every vertex of a polytope, as rationals, and their costs as balls."""

    points: list[tuple[fmpq, ...]]
    costs: list[arb]

    @property
    def floats(self) -> Array:
        """The points rounded to doubles; (k, n)."""
        return np.array([[as_float(x) for x in point] for point in self.points])

    def minimum(self, prices: ArrayLike) -> arb:
        """min of cost - prices.v over the polytope: a concave function is least at a vertex."""
        y = [rational(t) for t in np.asarray(prices)]
        values = [
            c - arb(_dot(point, y))
            for point, c in zip(self.points, self.costs, strict=True)
        ]
        return min(values, key=lambda ball: float(ball.mid()))

    def dual_bound(self, prices: ArrayLike, target: Sequence[float | fmpq]) -> arb:
        """prices.target + minimum: a lower bound of the envelope at the target, and the best for
        these prices.
        """
        y, p = (
            [t if isinstance(t, fmpq) else rational(t) for t in a]
            for a in (prices, target)
        )
        return self.minimum(prices) + arb(_dot(y, p))

    def envelope(self, target: ArrayLike) -> float:
        """The lower convex envelope at the target, by a linear program over the points.

        The answer is the exact dual bound of the program's prices, thus never above the truth.
        """
        options = {
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
        costs = [float(c.mid()) for c in self.costs]
        found = linprog(
            costs, A_eq=self.floats.T, b_eq=target, method="highs-ds", options=options
        )
        assert found.status == 0, found.message
        low = float(self.dual_bound(found.eqlin.marginals, target).mid())
        assert found.fun - low < 1e-8 * (1.0 + abs(low)), "the oracle is not sharp here"
        return low


def exact(polytope: Polytope) -> Exact:
    """All vertices, by trying every basis in rationals; only for a handful of rows and columns.

    With auxiliary variables, the vertices of the extended description: their images contain all
    vertices.
    """
    rows = polytope.rows
    n = polytope.n
    if polytope.auxiliary is not None:
        rows = np.hstack([rows, polytope.auxiliary])
    a = [[rational(x) for x in row] for row in rows]
    ends = [
        [rational(x) if np.isfinite(x) else None for x in side]
        for side in (polytope.lower, polytope.upper)
    ]
    sides = [
        list(dict.fromkeys(s for s in pair if s is not None))
        for pair in zip(*ends, strict=True)
    ]
    width = rows.shape[1]
    ones = [fmpq(int(j < n)) for j in range(width)]
    bounded = [i for i in range(len(a)) if sides[i]]
    found: dict[tuple[tuple[int, int], ...], tuple[fmpq, ...]] = {}
    for k in range(1, min(width, len(bounded) + 1) + 1):
        for columns, tight in product(
            combinations(range(width), k), combinations(bounded, k - 1)
        ):
            system = fmpq_mat(
                [[a[i][j] for j in columns] for i in tight]
                + [[ones[j] for j in columns]]
            )
            if system.det() == 0:
                continue
            inverse = system.inv()
            for values in product(*(sides[i] for i in tight)):
                solution = inverse * fmpq_mat([[b] for b in values] + [[fmpq(1)]])
                point = [fmpq(0)] * width
                for i, j in enumerate(columns):
                    point[j] = solution[i, 0]
                if _member(a, ends[0], ends[1], point):
                    found[tuple((int(x.p), int(x.q)) for x in point[:n])] = tuple(
                        point[:n]
                    )
    points = list(found.values())
    return Exact(points, [exact_cost(point) for point in points])


def exact_cost(point: Sequence[fmpq]) -> arb:
    """sum of -x log x, or of x - x^2, as a ball."""
    total = arb(0)
    for x in point:
        if x > 0:
            ball = arb(x)
            total += -ball * ball.log()
    return total


def exact_value(weights: ArrayLike, points: ArrayLike) -> float:
    """sum of weights_k cost(points_k), from the doubles as they are."""
    total = arb(0)
    for w, row in zip(np.asarray(weights), np.asarray(points), strict=True):
        total += arb(rational(w)) * exact_cost([rational(x) for x in row])
    return float(total.mid())


def not_above(bound: float, truth: arb) -> bool:
    """Whether the double is surely at most the ball; minus infinity always is."""
    return bound == -INF or bool(arb(float(bound)) <= truth)


def as_float(x: fmpq) -> float:
    return float(Fraction(int(x.p), int(x.q)))


def _dot(u: Sequence[fmpq], v: Sequence[fmpq]) -> fmpq:
    return sum((a * b for a, b in zip(u, v, strict=True) if a != 0), fmpq(0))


def _member(
    a: list[list[fmpq]],
    low: list[fmpq | None],
    high: list[fmpq | None],
    point: list[fmpq],
) -> bool:
    if any(x < 0 for x in point):
        return False
    for row, least, most in zip(a, low, high, strict=True):
        w = _dot(point, row)
        if (least is not None and w < least) or (most is not None and w > most):
            return False
    return True


# ------------------------------------------------------------------ a plain search


def plain_minimum(polytope: Polytope, prices: ArrayLike, tolerance: float) -> float:
    """min of entropy - prices.v by the simplest branch and bound: chords on boxes and scipy's
    linprog.
    """
    y = np.asarray(prices)
    p = polytope.explicit
    up = np.isfinite(p.upper)
    down = np.isfinite(p.lower)
    a_ub = np.vstack([p.rows[up], -p.rows[down]])
    b_ub = np.concatenate([p.upper[up], -p.lower[down]])

    def entropy(x: Array) -> Array:
        return np.where(x > 0.0, -x * np.log(np.where(x > 0.0, x, 1.0)), 0.0)

    best = INF
    open_boxes = [(np.zeros(p.n), np.ones(p.n))]
    while open_boxes:
        low, high = open_boxes.pop()
        slope = np.where(
            high > low,
            (entropy(high) - entropy(low)) / np.where(high > low, high - low, 1.0),
            0.0,
        )
        found = linprog(
            slope - y,
            A_ub=a_ub,
            b_ub=b_ub,
            A_eq=np.ones((1, p.n)),
            b_eq=[1.0],
            bounds=list(zip(low, high, strict=True)),
        )
        if found.status != 0:
            continue
        bound = found.fun + float((entropy(low) - slope * low).sum())
        error = entropy(found.x) - entropy(low) - slope * (found.x - low)
        best = min(best, bound + float(error.sum()))
        if bound < best - tolerance:
            k = int(np.argmax(error))
            middle = float(
                np.clip(
                    found.x[k],
                    0.9 * low[k] + 0.1 * high[k],
                    0.1 * low[k] + 0.9 * high[k],
                )
            )
            for side, end in ((0, high), (1, low)):
                child = [low.copy(), high.copy()]
                child[1 - side][k] = middle
                assert end[k] != middle
                open_boxes.append((child[0], child[1]))
    return best


# ------------------------------------------------------------------ instances

TABLES = (
    "random",
    "sparse",
    "near-tied",
    "proportional",
    "small counts",
    "rare",
    "equal rows",
)
NOTIONS = ("both", "upper", "lower", "ratio", "tiny", "touching")


def random_table(rng: np.random.Generator, kind: str, s: int, n: int) -> Array:
    """A joint table with positive margins."""
    p = rng.random((s, n)) + 0.01
    if kind == "sparse":
        p *= rng.random((s, n)) < 0.6
    elif kind == "near-tied":  # columns proportional up to 1e-15 .. 1e-9
        noise = 10.0 ** rng.uniform(-15.0, -9.0)
        p = (
            p[:, rng.integers(0, n, n)]
            * rng.uniform(0.5, 2.0, n)
            * (1.0 + noise * rng.standard_normal((s, n)))
        )
    elif kind == "proportional":
        p = p[:, rng.integers(0, n, n)] * 2.0 ** rng.integers(0, 3, n)
    elif kind == "small counts":
        p = rng.integers(0, 5, (s, n)).astype(float)
    elif kind == "rare":  # a sensitive symbol of mass 1e-6 .. 1e-3: lifts up to 1e6
        p[0] *= 10.0 ** rng.uniform(-6.0, -3.0) * (rng.random(n) < 0.7)
    elif kind == "equal rows":
        p[-1] = p[0]
    p[:, p.sum(axis=0) == 0.0] = 1.0
    p = p[p.sum(axis=1) > 0.0]
    return p / p.sum()


def lift_matrix(p: Array) -> Array:
    return p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)


def table_polytope(
    rng: np.random.Generator, kind: str, notion: str, s: int, n: int
) -> tuple[Polytope, Array]:
    """Bounds around 1 on the lifts of a random table, tight to loose, and the marginal, a member."""
    p = random_table(rng, kind, s, n)
    rows = lift_matrix(p)
    m = len(rows)
    if notion == "ratio":
        return ratio_polytope(
            rows, float(np.exp(10.0 ** rng.uniform(-2.0, 0.8)))
        ), p.sum(axis=0)
    low = np.exp(-(10.0 ** rng.uniform(-2.0, 0.8)))
    high = np.exp(10.0 ** rng.uniform(-2.0, 0.8))
    if notion == "tiny":
        width = 10.0 ** rng.uniform(-9.0, -4.0)
        low = 1.0 - width
        high = 1.0 + width
    elif notion == "touching":  # the ends are lifts of single symbols
        above = rows[rows > 1.001]
        below = rows[(rows < 0.999) & (rows > 0.0)]
        high = float(rng.choice(above)) if above.size else high
        low = float(rng.choice(below)) if below.size else low
    lower = np.full(m, -INF if notion == "upper" else low)
    upper = np.full(m, INF if notion == "lower" else high)
    return Polytope(rows, lower, upper), p.sum(axis=0)


def ratio_polytope(rows: Array, ratio: float) -> Polytope:
    """All entries of rows v within a factor `ratio` of each other: r <= w_s <= ratio r."""
    s = len(rows)
    return Polytope(
        np.vstack([rows, rows]),
        np.concatenate([np.zeros(s), np.full(s, -INF)]),
        np.concatenate([np.full(s, INF), np.zeros(s)]),
        np.concatenate([-np.ones((s, 1)), np.full((s, 1), -ratio)]),
    )


def strange_polytope(rng: np.random.Generator) -> tuple[Polytope, Array]:
    """Rows of any sign and of sizes 1e-6 .. 1e6, nearly equal rows, equations, and a member."""
    m = int(rng.integers(0, 4))
    n = int(rng.integers(1, 7))
    kind = int(rng.integers(5))
    sides = int(rng.integers(5))
    rows = rng.standard_normal((m, n)) if kind else rng.integers(0, 5, (m, n)) / 4.0
    if kind == 1:
        rows *= 10.0 ** rng.uniform(-6.0, 6.0, (m, 1))
    elif kind == 2:
        rows *= 10.0 ** rng.uniform(-3.0, 3.0, (m, n))
    elif kind == 3 and m > 1:
        rows[1] = rows[0] * (1.0 + 1e-13 * rng.standard_normal(n))
    member = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 5.0])))
    w = rows @ member
    size = np.abs(rows).max(axis=1, initial=0.0)
    width = size * 10.0 ** rng.uniform(-12.0, 0.0, m)
    lower = w - width * rng.random(m)
    upper = w + width * rng.random(m)
    if sides == 0 and m:
        lower[0] = upper[0] = w[0]
    elif sides == 1:
        lower[:] = -INF
    elif sides == 2:
        upper[:] = INF
    return Polytope(rows, lower, upper), member


@cache
def hard_search() -> tuple[Polytope, Array]:
    """A search of very many nodes: at the prices of an envelope most of the set is nearly minimal."""
    p = random_table(np.random.default_rng(0), "random", 12, 60)
    polytope = Polytope(lift_matrix(p), np.full(12, 0.75), np.full(12, 1.3))
    return polytope, lower_envelope(
        polytope, p.sum(axis=0), method="columns", gap=0.1
    ).dual


def random_prices(rng: np.random.Generator, n: int) -> Array:
    """Prices of any size and sign, or those of a posterior, or all equal."""
    kind = int(rng.integers(4))
    if kind == 0:
        return rng.standard_normal(n) * 10.0 ** rng.uniform(-2.0, 1.5)
    if kind == 1:
        return -np.log(np.maximum(rng.dirichlet(np.ones(n)), 1e-9))
    return np.full(n, 0.0 if kind == 2 else 1.3)
