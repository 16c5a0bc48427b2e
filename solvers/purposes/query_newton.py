"""Steps of an interior-point method for `solvers.purposes.queries`: least variance over listed
posteriors.

    minimise f(t) = tr(G M(t)^-1)   subject to   sum_k t_k v_k = p,  t >= 0,

where M(t) = sum_k t_k u_k u_k^T and u_k = v_k / p. The v_k are posteriors and t_k their
probabilities. p is the distribution of the symbols, and G = Q^T Q for the queries Q. The gradient
of f is -s with s_k = u_k^T M^-1 G M^-1 u_k, so the conditions of an optimum are, with prices y and
slacks z,

    y.v_k - s_k = z_k,   sum_k t_k v_k = p,   t_k z_k = 0,   t, z >= 0.

1. `_direction` solves their linearisation with t_k z_k = mu in the place of 0, where mu is a share
   of the present mean (Mehrotra's way of following the central path, without his corrector). The
   changes of z and t are eliminated, which leaves n equations for that of y.
2. `step` goes along it as far as t and z stay positive.
3. `bound` proves that no t has less than f^2 / (y.p), with the prices of the moment raised until
   y.v_k >= s_k for all vertices (the head of `solvers.purposes.queries` has the proof).

The Hessian of f, H_kl = 2 (u_k^T M^-1 G M^-1 u_l) (u_k^T M^-1 u_l), has rank n (n + 1) / 2 at most,
so a step costs one small factorisation, however many vertices there are (`_hessian_solver`). With
n = 10 symbols and 5000 vertices it is one of a 55 x 55 matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.errors import BackendFailure
from solvers.points import Array

CENTRING = (0.02, 0.3)
"""The complementarity that a step aims for, as a share of the present one: little where the last
step went nearly all its way, more where the boundary cut it short."""

LONG_STEP = 0.8
"""Share of its way from which a step counts as a long one."""

TO_THE_BOUNDARY = 0.99
"""Share of the way to the boundary that a step may go."""

BOUND_ERROR = 1e-10
"""Relative error that is taken off a bound: doubles, and vertices known to about 1e-12."""

SHORTEST_STEP = 1e-10
"""Share of a step below which the method counts as stuck."""

HALVINGS = 30
"""Halvings of a step at which f explodes."""

SINGULAR = 1e-12
"""Singular values of the posteriors below this share of their largest entry count as zero."""

RIDGE = 1e-13
"""Share of the largest diagonal entry that is added where a factorisation fails in doubles."""


class InteriorPoint:
    """Infeasible-start primal-dual steps for the program above.

    The caller takes one `step` after the other, until `bound` is near `value`, f at the weights, or
    `is_stuck`. `t` are the weights, `z` the slacks y.v_k - s_k of the dual rows, (k,), and `y` the
    prices of the symbols, (n,). t and z stay positive; the equations are met in the limit, and
    `miss` is the largest relative error of sum_k t_k v_k = p.

    Parameters
    ----------
    points : (k, n) array
        v.
    point : (n,) array
        p.
    gram : (n, n) array
        G, the products of the queries with each other.
    relaxation : (l, n) array or None
        Points of the set that the bound is for, as in `solvers.purposes.queries`; by default the
        points themselves.
    """

    def __init__(
        self, points: Array, point: Array, gram: Array, relaxation: Array | None
    ) -> None:
        self._v = points
        self._u = points / point
        self._point = point
        self._gram = gram
        if relaxation is None:
            relaxation = points
        self._relaxed = relaxation
        # Equal weights need not meet p: the equations are met by and by.
        size = len(points)
        self.t = np.full(size, 1.0 / size)
        if np.linalg.matrix_rank(self._u, tol=SINGULAR * self._u.max()) < len(point):
            raise BackendFailure(
                "the information matrix of the posteriors is singular: they do not tell "
                "all symbols apart"
            )
        self._evaluate()
        s = self._sensitivities(self._u)
        # Prices at which no row is violated: all symbols at the largest sensitivity. A tenth more
        # makes all slacks positive.
        self.y = np.full(len(point), 1.1 * float(s.max()))
        self.z = points @ self.y - s
        self.is_stuck = False
        # Share of its way that the last step went.
        self._along = 1.0

    def _evaluate(self) -> None:
        """M^-1, its product with the queries, and f at the present weights."""
        factor, scaling = balanced_factor(self._u, self.t)
        # The inverse itself is needed for the Hessian, at all pairs of vertices.
        inverse = solved(factor, np.eye(len(scaling))) * scaling
        self.inverse = 0.5 * (inverse + inverse.T)
        self._sandwich = self.inverse @ self._gram @ self.inverse
        self.value = float(np.sum(self._gram * self.inverse))
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
        direction = self._direction()
        t = self.t
        # One length for all: for a nonlinear f the dual rows hold for t and y together only.
        along = min(_reach(t, direction.t), _reach(self.z, direction.z))
        self.is_stuck = not along > SHORTEST_STEP
        before = self.value
        for _ in range(HALVINGS):
            self.t = t + along * direction.t
            self._evaluate()
            # Far from the path the quadratic model may be wrong: f must not explode.
            if self.value <= 10.0 * before:
                break
            along *= 0.5
        self._along = along
        self.y = self.y + along * direction.y
        self.z = self.z + along * direction.z

    def _direction(self) -> _Direction:
        """The Newton step for y.v_k - s_k = z_k, sum_k t_k v_k = p and t_k z_k = mu.

        The last gives dz = mu / t - z - D dt with D = z / t. As ds = -H dt, the first becomes
        (H + D) dt + V dy = r with r = s - V y + mu / t. Eliminating dt leaves the symmetric system
        V^T (H + D)^-1 V dy = V^T (H + D)^-1 r - (p - V^T t).
        """
        t = self.t
        z = self.z
        centring = CENTRING[1]
        if self._along >= LONG_STEP:
            centring = CENTRING[0]
        mu = centring * float(t @ z) / len(t)
        diagonal = z / t
        right = self._sensitivities(self._u) - self._v @ self.y + mu / t
        solve = self._hessian_solver(diagonal)
        schur = self._v.T @ solve(self._v)
        # Symmetric up to rounding; a Cholesky factor reads one half only.
        schur = 0.5 * (schur + schur.T)
        step_y = solved(
            positive_factor(schur),
            self._v.T @ solve(right[:, None])[:, 0] - self._missing,
        )
        step_t = solve((right - self._v @ step_y)[:, None])[:, 0]
        step_z = mu / t - z - diagonal * step_t
        return _Direction(step_t, step_y, step_z)

    def _hessian_solver(self, diagonal: Array) -> Callable[[Array], Array]:
        """(H + D)^-1 as a function, by whichever is the smaller: vertices, or the rank of H."""
        n = len(self._point)
        if len(diagonal) <= n * (n + 1) // 2:
            whole = self._hessian()
            whole[np.diag_indices_from(whole)] += diagonal
            factor = positive_factor(whole)
            return lambda matrix: solved(factor, matrix)
        factors = self._hessian_factors()
        weighted = factors / diagonal[:, None]
        inner = positive_factor(np.eye(factors.shape[1]) + factors.T @ weighted)

        def solve(matrix: Array) -> Array:
            """Woodbury's identity for H = P P^T: with B = I + P^T D^-1 P, the inverse of H + D is
            D^-1 - D^-1 P B^-1 P^T D^-1.
            """
            shifted = (matrix.T / diagonal).T
            return shifted - weighted @ solved(inner, factors.T @ shifted)

        return solve

    def _hessian(self) -> Array:
        """H_kl = 2 (u_k M^-1 u_l) (u_k M^-1 G M^-1 u_l), (k, k)."""
        return 2.0 * (
            (self._u @ self.inverse @ self._u.T)
            * (self._u @ self._sandwich @ self._u.T)
        )

    def _hessian_factors(self) -> Array:
        """P with H = P P^T: (k, n (n + 1) / 2), products of every two coordinates.

        In coordinates a_k of u_k in which M^-1 is the identity and M^-1 G M^-1 the diagonal sigma,
        H_kl = 2 (sum_i sigma_i a_ki a_li) (sum_j a_kj a_lj) sums over pairs i <= j of columns
        a_ki a_kj, weighted by 2 sigma_i if i = j, and by 2 (sigma_i + sigma_j) else.
        """
        # u_k^T M^-1 u_l = (root^T u_k).(root^T u_l), and then one rotation makes G diagonal.
        values, vectors = np.linalg.eigh(self.inverse)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        middle = root.T @ self._gram @ root
        sigma, turned = np.linalg.eigh(0.5 * (middle + middle.T))
        sigma = np.maximum(sigma, 0.0)
        a = self._u @ (root @ turned)
        i, j = np.triu_indices(len(sigma))
        weight = np.where(i == j, 2.0 * sigma[i], 2.0 * (sigma[i] + sigma[j]))
        return a[:, i] * a[:, j] * np.sqrt(weight)


@dataclass(frozen=True, eq=False)
class _Direction:
    """The changes of t (k,), y (n,) and z (k,) that a whole step makes."""

    t: Array
    y: Array
    z: Array


def _reach(values: Array, step: Array) -> float:
    """How far a step may go with all values positive; 1 at most."""
    falling = step < 0.0
    if not falling.any():
        return 1.0
    return min(1.0, TO_THE_BOUNDARY * float(np.min(-values[falling] / step[falling])))


def balanced_factor(u: Array, weights: Array) -> tuple[tuple[Array, bool], Array]:
    """A Cholesky factor of M = sum_k t_k u_k u_k^T with a unit diagonal, and the scaling, (n, n).

    The factor is that of M times the scaling, entry by entry, and the inverse of M is the inverse
    of that, times the scaling again. In a factor of M itself rare symbols would be lost.
    """
    information = (u.T * weights) @ u
    scale = 1.0 / np.sqrt(np.diag(information))
    scaling = np.outer(scale, scale)
    return positive_factor(information * scaling), scaling


def solved(factor: tuple[Array, bool], right: Array) -> Array:
    """M^-1 times the right side, by the Cholesky factor of M."""
    # scipy.linalg takes as long to load as numpy, and few searches need it.
    from scipy.linalg import cho_solve

    return cho_solve(factor, right)


def positive_factor(matrix: Array) -> tuple[Array, bool]:
    """A Cholesky factor; with a tiny ridge where rounding has made the matrix indefinite."""
    from scipy.linalg import cho_factor

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
