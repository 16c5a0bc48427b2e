"""The channel from whose outputs linear queries are estimated with least variance.

With u_k = v_k / p and t_k = P(y_k), M(t) = sum_k t_k u_k u_k^T is the information that one released
record carries about the frequencies. N times the covariance of the best linear unbiased estimate is
M^-1 - p p^T, so for queries Q and G = Q^T Q the program is

    minimise f(t) = tr(G M(t)^-1)   subject to   sum_k t_k v_k = p,  t >= 0,

which is convex in t. Splitting a posterior into extreme points of the polytope can only raise M, so
its vertices suffice.

*Bound.* With s_k = u_k^T M^-1 G M^-1 u_k and any y with y.v_k >= s_k for all vertices, no t has
f(t) < f^2 / (y.p). Proof: 1/f is concave and homogeneous of degree one in t, and its gradient is
s / f^2, hence 1/f(t') <= sum_k t'_k s_k / f^2 <= y.p / f^2. QED

The program is solved by a primal-dual interior-point method. The Hessian 2 (u_k^T M^-1 G M^-1 u_l)
(u_k^T M^-1 u_l) has rank n (n + 1) / 2 at most, so a step costs one small factorisation, however
many vertices there are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from solvers.errors import BackendFailure
from solvers.points import Array, Points
from solvers.programs.highs import HighsMaster
from solvers.results import EnvelopeStatus, Progress

MOST_STEPS = 200
"""Newton steps; real tables take 15 to 40."""

CENTRING = (0.02, 0.3)
"""The complementarity that a step aims for, as a share of the present one: little where the last
step went nearly all its way, more where the boundary cut it short."""

LONG_STEP = 0.8
"""Share of its way from which a step counts as a long one."""

TO_THE_BOUNDARY = 0.99
"""Share of the way to the boundary that a step may go."""

NEGLIGIBLE = 1e-10
"""Share of the largest possible weight of a vertex below which it is left out in the end."""

CORRECTIONS = 3
"""Corrections of the final weights; the first leaves about the square of what was missing."""

FEASIBLE = 1e-9
"""Relative miss of the point below which the weights count as a decomposition."""

BOUND_ERROR = 1e-10
"""Relative error that is taken off a bound: doubles, and vertices known to about 1e-12."""

CROSSOVER_SECONDS = 10.0
"""What the search for few outputs may take; it needs far less."""

SINGULAR = 1e-12
"""Singular values of the posteriors below this share of their largest entry count as zero."""

RIDGE = 1e-13
"""Share of the largest diagonal entry that is added where a factorisation fails in doubles."""


@dataclass(frozen=True, eq=False)
class LeastVariance:
    """Weights of the points, f at them, and what no weights can go below.

    Attributes
    ----------
    weights : (k,) array
    points : Points, (k, n)
    value, bound : float
        tr(G M^-1): N times the total variance plus p^T G p.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    value: float
    bound: float
    steps: int


def least_variance(
    points: Array,
    point: Array,
    gram: Array,
    *,
    gap: float,
    end: float = math.inf,
    relaxation: Array | None = None,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> LeastVariance:
    """The weights of least total variance over listed points.

    Parameters
    ----------
    points : (k, n) array
        Posteriors that may be used; the vertices of the polytope.
    point : (n,) array
        P_X, positive, in the convex hull of the points.
    gram : (n, n) array
        G = Q^T Q of the queries Q, (m, n).
    gap : float
        Stop when value minus bound is at most this share of ``value - p^T G p``, the variance.
    end : float
        When to stop, on the clock of `time.perf_counter`.
    relaxation : (l, n) array, optional
        Points of the set that the bound is for, by default the points themselves.
    start : (k,) array, optional
        Weights that decompose the point: they are the answer where no step comes to better ones.

    Raises
    ------
    BackendFailure
        If no weights were found that decompose the point.
    """
    best = _Best()
    if start is not None:
        best.weights = start
        best.value = _value(points / point, start, gram)
    method = _InteriorPoint(points, point, gram, relaxation)
    least = float(point @ gram @ point)
    while best.steps < MOST_STEPS:
        best.steps += 1
        try:
            method.step()
        except BackendFailure:
            # Close to the optimum the equations lose their last digits; what was found stays.
            break
        if method.miss <= FEASIBLE:
            best.learn(method)
            if progress is not None:
                progress(Progress(best.value, best.bound, best.steps, len(points), 0))
            if best.value - best.bound <= 0.5 * gap * (best.value - least):
                best.status = EnvelopeStatus.OPTIMAL
                break
        if method.is_stuck:
            break
        if time.perf_counter() >= end:
            best.status = EnvelopeStatus.TIME_LIMIT
            break
    if best.weights is None:
        raise BackendFailure(
            "no weights of the posteriors meet the frequencies: their program failed in doubles"
        )
    points, weights = _with_few_points(points, point, best.weights)
    return LeastVariance(
        status=best.status,
        weights=weights,
        points=Points.from_dense(points),
        value=best.value,
        bound=best.bound,
        steps=best.steps,
    )


def _value(u: Array, weights: Array, gram: Array) -> float:
    """tr(G M^-1) with M = sum_k t_k u_k u_k^T."""
    information = (u.T * weights) @ u
    scale = 1.0 / np.sqrt(np.diag(information))
    factor = _factor(information * np.outer(scale, scale))
    return float(np.trace(cho_solve(factor, gram * np.outer(scale, scale))))


@dataclass
class _Best:
    """The best weights so far, f at them, and the bound."""

    value: float = math.inf
    weights: Array | None = None
    bound: float = -math.inf
    steps: int = 0
    status: EnvelopeStatus = EnvelopeStatus.STALLED

    def learn(self, method: _InteriorPoint) -> None:
        """Take in the weights of a step that meets the equations."""
        self.bound = max(self.bound, method.bound())
        if self.weights is None or method.value <= self.value:
            self.value = method.value
            self.weights = method.t.copy()


def _with_few_points(
    points: Array, point: Array, weights: Array
) -> tuple[Array, Array]:
    """The points in use by weights of the same variance, of which few are positive."""
    # A vertex cannot have more weight than its scarcest symbol allows.
    largest = 1.0 / np.max(points / point, axis=1)
    used = weights > NEGLIGIBLE * largest
    points = points[used]
    weights = _with_few_outputs(points, point, weights[used])
    used = weights > NEGLIGIBLE * largest[used]
    points = points[used]
    return points, _meeting(points, point, weights[used])


def _with_few_outputs(points: Array, point: Array, weights: Array) -> Array:
    """Weights of the same information M and the same mean, of which few are positive; (k,).

    Both are linear in the weights, so a basic solution has at most n (n + 3) / 2 positive ones. The
    given weights stay where HiGHS finds none.
    """
    n = len(point)
    u = points / point
    i, j = np.triu_indices(n)
    columns = np.hstack([points, u[:, i] * u[:, j]])
    if len(points) <= columns.shape[1]:
        return weights
    target = weights @ columns
    possible = target > 0.0
    master = HighsMaster(target[possible])
    # Any basic solution will do; large weights first, so that the basis is a good one.
    master.add(Points.from_dense(columns[:, possible]), -weights)
    solution = master.solve(CROSSOVER_SECONDS)
    if not solution.is_optimal:
        return weights
    return solution.weights


def _meeting(points: Array, point: Array, weights: Array) -> Array:
    """The weights, changed relatively least, such that they meet the point to the last digits.

    Rare symbols need that: a channel's rows are divided by what the weights give each symbol.
    """
    for _ in range(CORRECTIONS):
        missing = (point - points.T @ weights) / point
        scaled = points / point
        normal = (scaled.T * weights) @ scaled
        change = weights * (scaled @ cho_solve(_factor(normal), missing))
        if (weights + change <= 0.0).any():
            return weights
        weights = weights + change
    return weights


class _InteriorPoint:
    """Infeasible-start primal-dual steps for the program above.

    `t` are the weights, `z` the slacks y.v_k - s_k of the dual rows, `y` the prices of the
    symbols. All stay positive where they must; the equations are met in the limit.
    """

    def __init__(
        self, points: Array, point: Array, gram: Array, relaxation: Array | None
    ) -> None:
        self._v = points
        self._u = points / point
        self._point = point
        self._gram = gram
        self._relaxed = self._v if relaxation is None else relaxation
        size = len(points)
        self.t = np.full(size, 1.0 / size)
        if np.linalg.matrix_rank(self._u, tol=SINGULAR * self._u.max()) < len(point):
            raise BackendFailure(
                "the information matrix of the posteriors is singular: they do not tell "
                "all symbols apart"
            )
        self._evaluate()
        s = self._sensitivities(self._u)
        # Prices at which no row is violated: all symbols at the largest sensitivity.
        self.y = np.full(len(point), 1.1 * float(s.max()))
        self.z = points @ self.y - s
        self.is_stuck = False
        self._along = 1.0

    def _evaluate(self) -> None:
        """M^-1, its product with the queries, and f at the present weights."""
        information = (self._u.T * self.t) @ self._u
        scale = 1.0 / np.sqrt(np.diag(information))
        balanced = information * np.outer(scale, scale)
        factor = _factor(balanced)
        inverse = cho_solve(factor, np.eye(len(scale))) * np.outer(scale, scale)
        self._inverse = 0.5 * (inverse + inverse.T)
        self._sandwich = self._inverse @ self._gram @ self._inverse
        self.value = float(np.sum(self._gram * self._inverse))
        missing = self._point - self._v.T @ self.t
        self.miss = float(np.max(np.abs(missing) / self._point))
        self._missing = missing

    def _sensitivities(self, u: Array) -> Array:
        """s_k = u_k^T M^-1 G M^-1 u_k, minus the derivative of f by t_k."""
        return np.einsum("ki,ij,kj->k", u, self._sandwich, u, optimize=True)

    def bound(self) -> float:
        """f^2 / (y.p) with the present prices, raised until they hold at every relaxed point."""
        u = self._relaxed / self._point
        s = self._sensitivities(u)
        # Posteriors sum to 1, so raising all prices raises every row by the same.
        raised = max(float(np.max(s - self._relaxed @ self.y)), 0.0)
        prices = float(self.y @ self._point) + raised
        # Prices that sum to less than f at the point would contradict the theorem by rounding.
        return self.value**2 / prices * (1.0 - BOUND_ERROR)

    def step(self) -> None:
        """One step towards the point of the central path with `CENTRING` of its complementarity."""
        t = self.t
        z = self.z
        s = self._sensitivities(self._u)
        centring = CENTRING[0] if self._along >= LONG_STEP else CENTRING[1]
        target = centring * float(t @ z) / len(t)
        # (H + D) dt + V dy = r with D = z / t; V^T dt = missing.
        diagonal = z / t
        right = s - self._v @ self.y + target / t
        solve = self._hessian_solver(diagonal)
        by_price = solve(self._v)
        schur = self._v.T @ by_price
        schur = 0.5 * (schur + schur.T)
        step_y = cho_solve(
            _factor(schur), self._v.T @ solve(right[:, None])[:, 0] - self._missing
        )
        step_t = solve((right - self._v @ step_y)[:, None])[:, 0]
        step_z = target / t - z - diagonal * step_t
        along_t = _reach(t, step_t)
        along_z = _reach(z, step_z)
        along = min(along_t, along_z)
        self.is_stuck = not along > 1e-10
        before = self.value
        for _ in range(30):
            self.t = t + along * step_t
            self._evaluate()
            # Far from the path the quadratic model may be wrong: f must not explode.
            if self.value <= 10.0 * before:
                break
            along *= 0.5
        self._along = along
        self.y = self.y + along * step_y
        self.z = z + along * step_z

    def _hessian_solver(self, diagonal: Array) -> Callable[[Array], Array]:
        """(H + D)^-1 as a function, by whichever of the two sizes of H is the smaller."""
        n = len(self._point)
        if len(diagonal) <= n * (n + 1) // 2:
            whole = self._hessian()
            whole[np.diag_indices_from(whole)] += diagonal
            factor = _factor(whole)
            return lambda matrix: cho_solve(factor, matrix)
        factors = self._hessian_factors()
        weighted = factors / diagonal[:, None]
        inner = _factor(np.eye(factors.shape[1]) + factors.T @ weighted)

        def solve(matrix: Array) -> Array:
            """Woodbury's identity."""
            shifted = (matrix.T / diagonal).T
            return shifted - weighted @ cho_solve(inner, factors.T @ shifted)

        return solve

    def _hessian(self) -> Array:
        """H_kl = 2 (u_k M^-1 u_l) (u_k M^-1 G M^-1 u_l), (k, k)."""
        return 2.0 * (
            (self._u @ self._inverse @ self._u.T)
            * (self._u @ self._sandwich @ self._u.T)
        )

    def _hessian_factors(self) -> Array:
        """P with H = P P^T: (k, n (n + 1) / 2), products of every two coordinates."""
        values, vectors = np.linalg.eigh(self._inverse)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        middle = root.T @ self._gram @ root
        sigma, turned = np.linalg.eigh(0.5 * (middle + middle.T))
        sigma = np.maximum(sigma, 0.0)
        a = self._u @ (root @ turned)
        i, j = np.triu_indices(len(sigma))
        weight = np.where(i == j, 2.0 * sigma[i], 2.0 * (sigma[i] + sigma[j]))
        return a[:, i] * a[:, j] * np.sqrt(weight)


def _reach(values: Array, step: Array) -> float:
    """How far a step may go with all values positive; 1 at most."""
    falling = step < 0.0
    if not falling.any():
        return 1.0
    return min(1.0, TO_THE_BOUNDARY * float(np.min(-values[falling] / step[falling])))


def _factor(matrix: Array) -> tuple[Array, bool]:
    """A Cholesky factor; with a tiny ridge where rounding has made the matrix indefinite."""
    ridge = 0.0
    largest = float(np.abs(np.diag(matrix)).max())
    while True:
        try:
            return cho_factor(matrix + ridge * np.eye(len(matrix)), lower=True)
        except np.linalg.LinAlgError:
            ridge = max(10.0 * ridge, RIDGE * largest)
            if not ridge < largest:
                raise BackendFailure(
                    "the information matrix of the posteriors is singular in doubles"
                ) from None
