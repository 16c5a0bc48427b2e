"""Interior point method for `Assignment` problems (Mehrotra 1992), made for their structure.

Newton's equations couple the columns only through the n sums of the rows. With B the distinct rows of the polytope and
a row of ones, T B q(., y) the one-sided rows, D_y = q(., y) / z(., y) for reduced costs z, V_y the slacks over their
multipliers, column y has the inverse Hessian

    N_y = D_y - D_y B' T' (V_y + T B D_y B' T')^-1 T B D_y,

so that one n x n matrix, the sum of all N_y, is factorised: n^3 k operations a step, all of them matrix products,
where a general method sees n^2 variables and n m rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.assignment import Assignment, Multipliers
from solvers.points import Array

MOST_STEPS = 120
"""Newton steps; 15 to 50 are usual."""

STEP = 0.9
"""Share of the way to the boundary that a step takes, where it ends there."""

MASS_SLACK = 1e-13
"""Regularisation of the masses of the columns, relative to 1 / curvature: proximal, so it moves no solution."""

JITTERS = (1e-14, 1e-12, 1e-10, 1e-8)
"""Shares of its diagonal added to the matrix of the rows, until it can be factorised."""

REFINEMENTS = 2
"""Steps of iterative refinement of the prices."""

PART = 2**25
"""Entries of the factors of the columns that are held at once (256 MB)."""


@dataclass(eq=False)
class Iterate:
    """Shares q(x, y) / p_x, multipliers, and the relative error with which rows (and masses) are met."""

    shares: Array
    multipliers: Multipliers
    missed: float


class InteriorPoint:
    """Iterates of the method; each step yields one.

    Auxiliary variables of the columns are further rows of q without a sum of their own, behind the n masses.
    """

    def __init__(self, problem: Assignment) -> None:
        self.problem = problem
        n, p = problem.n, problem.masses
        rows, offset, auxiliary = problem.sides
        images, sign, where = _up_to_sign(rows)
        m, k, a = len(rows), len(images) + 1, auxiliary.shape[1]
        self._n, self._m = n, m
        self._b = np.zeros((k + a, n + a))
        self._b[: k - 1, :n], self._b[k - 1, :n] = images, 1.0
        self._b[k:, n:] = np.eye(a)
        self._mass = k - 1
        self._t = np.zeros((m + problem.keep, k + a))
        self._t[np.arange(m), where] = sign
        self._t[:m, self._mass] -= offset
        self._t[:m, k:] = auxiliary
        if problem.keep:
            self._t[m, self._mass] = 1.0
        self._base = np.vstack([np.diag(problem.floors * p), np.zeros((a, n))])
        self._open = np.vstack([problem.open, np.ones((a, n), dtype=np.bool_)])
        self._scale = max(float(np.abs(problem.cost).max()), 1e-300)
        self._c = np.vstack([problem.cost / self._scale, np.zeros((a, n))])
        left = (1.0 - problem.floors) * p
        q = np.outer(np.maximum(left, 1e-3 * p), p)
        if a:
            thetas = np.geomspace(1e-3, 1.0, 25)
            level = self._t[:m, :k] @ (self._b[:k, :n] @ q)
            room = [(level + theta * auxiliary.sum(axis=1)[:, None] * p).min() for theta in thetas]
            q = np.vstack([q, np.tile(float(thetas[int(np.argmax(room))]) * p, (a, 1))])
        self.q = np.where(self._open, q, 0.0)
        self.w = np.maximum(self._t[:m] @ self._zeta(), 1e-3 * p)
        # Natural sizes of the products q z and w lambda: the central path is weighted by them.
        self._sizes = np.where(self._open, np.outer(np.append(p, np.full(a, p.mean())), p), 0.0)
        self._levels = np.broadcast_to(p * p.mean(), self.w.shape)
        self.z = np.where(self._open, self._sizes / np.where(self._open, self.q, 1.0), 1.0)
        self.lam = self._levels / self.w
        self.u, self.f = np.full(n, -1.0), np.zeros(n)
        self.z[:n] = np.where(problem.open, self._c[:n] + 1.0, 1.0)  # feasible but for the small multipliers

    def _zeta(self) -> Array:
        return self._b @ (self.q + self._base)

    def _iterate(self) -> Iterate:
        """The present one, multipliers in the units of the cost."""
        p = self.problem.masses
        whole = (self.q + self._base)[: self._n]
        missed = float(np.abs(whole.sum(axis=1) / p - 1.0).max())
        if self.problem.keep:
            missed = max(missed, float(np.abs(whole.sum(axis=0) / p - 1.0).max()))
        found = Multipliers(self.lam * self._scale, self.f * self._scale)
        return Iterate(whole / whole.sum(axis=1)[:, None], found, missed)

    def run(self) -> Iterator[Iterate]:
        """Iterates, until steps no longer move."""
        idle = 0
        for _ in range(MOST_STEPS):
            try:
                step = self._step()
            except np.linalg.LinAlgError:
                return
            yield self._iterate()
            idle = idle + 1 if step < 1e-4 else 0
            if idle >= 6:
                return

    def _step(self) -> float:
        p, n, m, b = self.problem.masses, self._n, self._m, self._b
        q, w, t, opened = self.q, self.w, self._t, self._open
        zeta = self._zeta()
        r_w = w - t[:m] @ zeta
        r_p = p - (q + self._base)[:n].sum(axis=1)
        r_k = (p - zeta[self._mass])[None, :] if self.problem.keep else np.zeros((0, n))
        f = self.f[None, :] if self.problem.keep else np.zeros((0, n))
        r_d = self._c - b.T @ (t.T @ np.vstack([self.lam, f])) - self.z
        r_d[:n] -= self.u[:, None]
        safe = np.where(opened, q, 1.0)
        d = np.where(opened, q / self.z, 0.0)
        weight = self.lam / w
        stiff = 1.0 / (MASS_SLACK * d[:n].sum(axis=0))[None, :] if self.problem.keep else r_k
        weights = np.vstack([weight, stiff])
        barrier = _Barrier(b, d, t, weights, n)
        gap = float((q * self.z)[opened].sum() + (self.lam * w).sum())
        mu = gap / float(self._sizes.sum() + self._levels.sum())

        def direction(target_q: Array, target_w: Array) -> tuple[Array, ...]:
            g = np.where(opened, target_q / safe - r_d, 0.0)
            right = np.vstack([target_w / self.lam + r_w, r_k])
            first = barrier.rows(right - t @ (b @ (d * g)))
            du = barrier.prices(r_p - (d * (g + b.T @ (t.T @ first)))[:n].sum(axis=1))
            g += _padded(du, d.shape)
            dlam = barrier.rows(right - t @ (b @ (d * g)))
            slope = b.T @ (t.T @ dlam)
            dq = d * (g + slope)
            dw = target_w / self.lam - dlam[:m] / weight
            dz = np.where(opened, r_d - _padded(du, d.shape) - slope, 0.0)
            return dq, dw, dz, dlam[:m], du, dlam[m:].sum(axis=0)

        affine = direction(np.where(opened, -q * self.z, 0.0), -w * self.lam)
        a_p, a_d = self._lengths(affine, 1.0)
        dq, dw, dz, dlam, _, _ = affine
        after = ((q + a_p * dq) * (self.z + a_d * dz))[opened].sum()
        after += ((w + a_p * dw) * (self.lam + a_d * dlam)).sum()
        aim = min(1.0, max(float(after) / gap, 0.0)) ** 3 * mu
        centred = np.where(opened, aim * self._sizes - q * self.z - dq * dz, 0.0)
        step = direction(centred, aim * self._levels - w * self.lam - dw * dlam)
        a_p, a_d = self._lengths(step, STEP)
        dq, dw, dz, dlam, du, df = step
        self.q, self.w = q + a_p * dq, w + a_p * dw
        self.z, self.lam = self.z + a_d * dz, self.lam + a_d * dlam
        self.u, self.f = self.u + a_d * du, self.f + a_d * df
        return min(a_p, a_d)

    def _lengths(self, step: tuple[Array, ...], share: float) -> tuple[float, float]:
        """How far the primal and the dual variables can go, at most 1."""
        dq, dw, dz, dlam, _, _ = step
        safe = np.where(self._open, self.q, np.inf)
        worst = (
            max(float((-dq / safe).max()), float((-dw / self.w).max(initial=0.0))),
            max(float((-dz / self.z).max()), float((-dlam / self.lam).max(initial=0.0))),
        )
        primal, dual = (min(1.0, share / value) if value > 0.0 else 1.0 for value in worst)
        return primal, dual


class _Barrier:
    """The inverse Hessians N_y, and the factorised sum of them."""

    def __init__(self, b: Array, d: Array, t: Array, weights: Array, n: int) -> None:
        self._b, self._d, self._t, self._n = b, d, t, n
        k = len(b)
        pairs = (b[:, None, :] * b[None, :, :]).reshape(k * k, -1)
        image = (pairs @ d).reshape(k, k, n).transpose(2, 0, 1)
        root = t.T[None] * np.sqrt(weights).T[:, None, :]
        inner = np.eye(len(t)) + root.transpose(0, 2, 1) @ (image @ root)
        self._inverse = np.linalg.inv(np.linalg.cholesky(inner)) * np.sqrt(weights).T[:, None, :]
        factor = t.T @ self._inverse.transpose(0, 2, 1)
        if len(t) > k:
            left, values, _ = np.linalg.svd(factor, full_matrices=False)
            factor = left * values[:, None, :]
        total = np.diag(d[:n].sum(axis=1))
        part = max(1, PART // (n * k))
        for start in range(0, n, part):
            y = slice(start, min(start + part, n))
            columns = (b[:, :n].T @ factor[y]) * d[:n, y].T[:, :, None]
            wide = columns.transpose(1, 0, 2).reshape(n, -1)
            total -= wide @ wide.T
        from scipy.linalg import cho_factor

        for jitter in JITTERS:  # refinement makes up for them
            try:
                self._sum = cho_factor(total + jitter * np.diag(d[:n].sum(axis=1)), lower=True)
                break
            except np.linalg.LinAlgError:
                if jitter == JITTERS[-1]:
                    raise

    def rows(self, right: Array) -> Array:
        """(V + T B D B' T')^-1 of the right-hand sides of all columns, (rows, n)."""
        image = np.einsum("yij,jy->yi", self._inverse, right)
        return np.einsum("yij,yi->jy", self._inverse, image)

    def apply(self, prices: Array) -> Array:
        """The sums over y of N_y `prices`."""
        b, t, d = self._b, self._t, self._d
        g = d * _padded(prices, d.shape)
        return (g - d * (b.T @ (t.T @ self.rows(t @ (b @ g)))))[: self._n].sum(axis=1)

    def prices(self, right: Array) -> Array:
        """The prices that make the rows sum to `right`."""
        from scipy.linalg import cho_solve

        prices = cho_solve(self._sum, right)
        for _ in range(REFINEMENTS):
            missing = right - self.apply(prices)
            prices = prices + cho_solve(self._sum, missing)
        return prices


def _padded(prices: Array, shape: tuple[int, int]) -> Array:
    """`prices` on the rows of masses, the same in every column; zero on auxiliary rows."""
    full = np.zeros(shape)
    full[: len(prices)] = prices[:, None]
    return full


def _up_to_sign(rows: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """Rows of which none is the negative of another, with sign and position of each of the given ones."""
    sign = np.where(rows[np.arange(len(rows)), np.argmax(rows != 0.0, axis=1)] < 0.0, -1.0, 1.0)
    images, where = np.unique(rows * sign[:, None], axis=0, return_inverse=True)
    return images, sign, where.ravel()
