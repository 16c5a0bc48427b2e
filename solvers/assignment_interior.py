"""Interior point method for `Assignment` problems (Mehrotra 1992), made for their structure.

Newton's equations couple the columns only through the n sums of the rows. With B the distinct rows of the polytope and
a row of ones, T B q(., y) the one-sided rows, D_y = q(., y) / z(., y) for reduced costs z, V_y the slacks over their
multipliers, column y has the inverse Hessian

    N_y = D_y - D_y B' T' (V_y + T B D_y B' T')^-1 T B D_y,

so that one n x n matrix, the sum of all N_y, is factorised. Only pairs (x, y) that are allowed are variables: with w of
them in a column a step takes n (w^2 k + w k^2) + n^3 / 3 operations, where a general method sees all n m rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

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


class InteriorPoint:
    """Iterates of the method; each step yields its shares q(x, y) / p_x, multipliers, and largest relative error.

    Variables are the pairs (x, y) that are allowed, column by column. Auxiliary variables of the columns are further
    rows x of q without a sum of their own, behind the n masses.
    """

    def __init__(self, problem: Assignment) -> None:
        self.problem = problem
        n, p = problem.n, problem.masses
        rows, offset, auxiliary = problem.sides
        # Of rows that are negatives of each other one is enough.
        sign = np.where(
            rows[np.arange(len(rows)), np.argmax(rows != 0.0, axis=1)] < 0.0, -1.0, 1.0
        )
        images, where = np.unique(rows * sign[:, None], axis=0, return_inverse=True)
        m, k, a = len(rows), len(images) + 1, auxiliary.shape[1]
        b = np.zeros((k + a, n + a))
        b[: k - 1, :n], b[k - 1, :n] = images, 1.0
        b[k:, n:] = np.eye(a)
        self._mass = k - 1
        self.t = np.zeros((m + problem.keep, k + a))
        self.t[np.arange(m), where.ravel()] = sign
        self.t[:m, self._mass] -= offset
        self.t[:m, k:] = auxiliary
        self.t[m:, self._mass] = 1.0
        opened = np.hstack([problem.open.T, np.ones((n, a), dtype=np.bool_)])
        y, x = np.nonzero(opened)
        self.x, self._y, self._real = x, y, x < n
        self.starts = np.concatenate([[0], np.cumsum(opened.sum(axis=1))])
        self._bt, self.g = b.T, b.T[x]
        self._p, self.n, self._m, self.a = p, n, m, a
        self._base = np.where(x == y, problem.floors[y] * p[y], 0.0)
        self._scale = max(float(np.abs(problem.cost).max()), 1e-300)
        xs = np.minimum(x, n - 1)
        self._c = np.where(self._real, problem.cost[xs, y], 0.0) / self._scale
        # Rows sum to p from the first.
        q = (
            np.maximum((1.0 - problem.floors) * p, 1e-3 * p)[xs]
            * p[y]
            / self.rows(p[y])[xs]
        )
        if a:
            thetas = np.geomspace(1e-3, 1.0, 25)
            level = self.columns(np.where(self._real, q, 0.0)) @ self.t[:m].T
            room = [
                (level + theta * auxiliary.sum(axis=1) * p[:, None]).min()
                for theta in thetas
            ]
            q = np.where(self._real, q, float(thetas[int(np.argmax(room))]) * p[y])
        self.q = q
        self.w = np.maximum(
            self.columns(self.q + self._base) @ self.t[:m].T, 1e-3 * p[:, None]
        )
        # Natural sizes of the products q z and w lambda: the central path is weighted by them.
        self._sizes = np.where(self._real, p[xs], p.mean()) * p[y]
        self._levels = np.broadcast_to((p * p.mean())[:, None], self.w.shape)
        self.lam = self._levels / self.w
        self.u, self.f = np.full(n, -1.0), np.zeros(n)
        self.z = np.where(
            self._real, self._c + 1.0, self._sizes / self.q
        )  # all but feasible

    def columns(self, values: Array) -> Array:
        """B of values on the pairs, for each column; (n, k)."""
        from scipy.sparse import csr_array

        sparse: Any = csr_array(
            (values, self.x, self.starts), shape=(self.n, self.n + self.a)
        )
        return sparse @ self._bt

    def rows(self, values: Array) -> Array:
        """Sums over the pairs of each row."""
        return np.asarray(
            np.bincount(self.x, values, minlength=self.n), dtype=np.float64
        )[: self.n]

    def padded(self, prices: Array) -> Array:
        """`prices` of the rows on every pair; zero on auxiliary ones."""
        return np.append(prices, np.zeros(self.a))[self.x]

    def _iterate(self) -> tuple[Array, Multipliers, float]:
        """The present one, multipliers in the units of the cost, the error that of sums and rows by the masses."""
        p, q, whole = self._p, self.q + self._base, np.zeros((self.n, self.n))
        whole[self.x[self._real], self._y[self._real]] = q[self._real]
        zeta = self.columns(q)
        masses = (
            np.stack([self.rows(q), zeta[:, self._mass]])[: 1 + self.problem.keep].T
            - p[:, None]
        )
        errors = np.hstack([masses, self.w - zeta @ self.t[: self._m].T])
        missed = float((np.abs(errors).max(axis=1) / p).max())
        found = Multipliers(self.lam.T * self._scale, self.f * self._scale)
        return whole / whole.sum(axis=1)[:, None], found, missed

    def run(self) -> Iterator[tuple[Array, Multipliers, float]]:
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

    def slope(self, multipliers: Array) -> Array:
        """B' T' of multipliers (n, rows), on every pair."""
        return np.einsum("ij,ij->i", self.g, (multipliers @ self.t)[self._y])

    def _step(self) -> float:
        p, n, m, keep = self._p, self.n, self._m, self.problem.keep
        q, w, t = self.q, self.w, self.t
        zeta = self.columns(self.q + self._base)
        r_w = w - zeta @ t[:m].T
        r_p = p - self.rows(q + self._base)
        r_k = (p - zeta[:, self._mass])[:, None] if keep else np.zeros((n, 0))
        f = self.f[:, None] if keep else r_k
        r_d = (
            self._c
            - self.slope(np.hstack([self.lam, f]))
            - self.z
            - self.padded(self.u)
        )
        d = q / self.z
        weights = weight = self.lam / w
        if keep:
            inside = np.add.reduceat(np.where(self._real, d, 0.0), self.starts[:-1])
            weights = np.hstack([weight, (1.0 / (MASS_SLACK * inside))[:, None]])
        barrier = _Barrier(self, d, weights)
        gap = float(q @ self.z + (self.lam * w).sum())
        mu = gap / float(self._sizes.sum() + self._levels.sum())

        def direction(target_q: Array, target_w: Array) -> tuple[Array, ...]:
            g = target_q / q - r_d
            right = np.hstack([target_w / self.lam + r_w, r_k])
            first = barrier.rows(right - self.columns(d * g) @ t.T)
            du = barrier.prices(r_p - self.rows(d * (g + self.slope(first))))
            g += self.padded(du)
            dlam = barrier.rows(right - self.columns(d * g) @ t.T)
            slope = self.slope(dlam)
            dq = d * (g + slope)
            dw = target_w / self.lam - dlam[:, :m] / weight
            dz = r_d - self.padded(du) - slope
            return dq, dw, dz, dlam[:, :m], du, dlam[:, m:].sum(axis=1)

        affine = direction(-q * self.z, -w * self.lam)
        a_p, a_d = self._lengths(affine, 1.0)
        dq, dw, dz, dlam, _, _ = affine
        after = (q + a_p * dq) @ (self.z + a_d * dz)
        after += ((w + a_p * dw) * (self.lam + a_d * dlam)).sum()
        aim = min(1.0, max(float(after) / gap, 0.0)) ** 3 * mu
        centred = aim * self._sizes - q * self.z - dq * dz
        step = direction(centred, aim * self._levels - w * self.lam - dw * dlam)
        a_p, a_d = self._lengths(step, STEP)
        dq, dw, dz, dlam, du, df = step
        self.q, self.w = q + a_p * dq, w + a_p * dw
        self.z, self.lam = self.z + a_d * dz, self.lam + a_d * dlam
        self.u, self.f = self.u + a_d * du, self.f + a_d * df
        return min(a_p, a_d)

    def _lengths(self, step: tuple[Array, ...], share: float) -> tuple[float, float]:
        """How far the primal and the dual variables can go, at most 1."""
        at = zip(step, (self.q, self.w, self.z, self.lam), strict=False)
        q, w, z, lam = (
            float((-change / value).max(initial=share)) for change, value in at
        )
        return share / max(q, w), share / max(z, lam)


class _Barrier:
    """The inverse Hessians N_y, and the factorised sum of them."""

    def __init__(self, at: InteriorPoint, d: Array, weights: Array) -> None:
        self._at, self._d = at, d
        n, t = at.n, at.t
        spans = [slice(first, last) for first, last in pairwise(at.starts.tolist())]
        weighted = at.g * d[:, None]
        image = np.stack([at.g[span].T @ weighted[span] for span in spans])
        root = t.T * np.sqrt(weights)[:, None, :]
        inner = np.eye(len(t)) + root.transpose(0, 2, 1) @ (image @ root)
        self._inverse = (
            np.linalg.inv(np.linalg.cholesky(inner)) * np.sqrt(weights)[:, None, :]
        )
        factor = self._inverse @ t
        if len(t) > t.shape[1]:
            factor = np.linalg.qr(factor, mode="r")
        total = np.zeros((n, n))
        for span, each in zip(spans, factor, strict=True):
            span = slice(span.start, span.stop - at.a)
            x, column = at.x[span], weighted[span] @ each.T
            if len(x) == n:
                total -= column @ column.T
            else:
                total[np.ix_(x, x)] -= column @ column.T
        sums = at.rows(d)
        from scipy.linalg import cho_factor

        for jitter in JITTERS:  # refinement makes up for them
            try:
                self._sum = cho_factor(
                    total + np.diag((1.0 + jitter) * sums), lower=True
                )
                break
            except np.linalg.LinAlgError:
                if jitter == JITTERS[-1]:
                    raise

    def rows(self, right: Array) -> Array:
        """(V + T B D B' T')^-1 of the right-hand sides of all columns, (n, rows)."""
        image = self._inverse @ right[:, :, None]
        return (image.transpose(0, 2, 1) @ self._inverse)[:, 0]

    def apply(self, prices: Array) -> Array:
        """The sums over y of N_y `prices`."""
        at, d = self._at, self._d
        g = d * at.padded(prices)
        return at.rows(g - d * at.slope(self.rows(at.columns(g) @ at.t.T)))

    def prices(self, right: Array) -> Array:
        """The prices that make the rows sum to `right`."""
        from scipy.linalg import cho_solve

        prices = cho_solve(self._sum, right)
        for _ in range(REFINEMENTS):
            missing = right - self.apply(prices)
            prices = prices + cho_solve(self._sum, missing)
        return prices
