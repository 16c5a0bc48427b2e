"""Interior point method for `Assignment` problems (Mehrotra 1992), made for their structure.

The problem (`solvers.assignment.assignment`) is to

    minimise  sum_xy c(x, y) q(x, y)   over q >= 0 with  sum_y q(x, y) = p_x,

where every column q(., y) is a multiple of a member of a polytope. Its bounds, written for any
multiple, are one-sided rows T B q(., y) >= 0. B holds the distinct rows of the polytope and a row
of ones, which gives the mass of the column. Each row of T is one bound. For example, the polytope
v_0 <= 3/4, v_1 <= 3/4 has, up to the order of the rows,

    B = ((1, 0), (0, 1), (1, 1)),   T = ((-1, 0, 3/4), (0, -1, 3/4)).

A row that is bounded on both sides is twice in T, but only once in B.

The iterates have slacks w and multipliers lambda of the one-sided rows, prices u of the sums of the
masses, f of the masses of the columns (where they are kept), and reduced costs z. At an optimum

    sum_y q(x, y) = p_x,   T B q(., y) = w_y,   c(x, y) - (B' T' lambda_y)_x - f_y - u_x = z(x, y),

and q z = 0, w lambda = 0. Interior iterates have positive products instead; on the central path
they are mu times fixed natural sizes (p_x p_y for a pair), and mu goes to 0.

A step (`InteriorPoint._step`):

1. The predictor is Newton's direction towards products of 0. How far it can go shows how much of
   the gap is easy to remove.
2. The corrector aims at products mu' times the sizes, with mu' the smaller the farther the
   predictor went, and makes up for what is not linear.
3. Primal and dual variables go `STEP` of the way to the boundary, at most.

Both directions solve Newton's equations with the same matrix (`_NewtonSystem`), which couples the
columns only through the n sums. If the prices change by du, column y changes by N_y du and a
constant. With the diagonal matrices D_y of q(., y) / z(., y), and V_y of w_y / lambda_y,

    N_y = D_y - D_y B' T' (V_y + T B D_y B' T')^-1 T B D_y.

The changes of all columns together must make the sums p_x. This is one n x n system for du, whose
matrix is the sum of all N_y. `_Barrier` factorises it. Then the columns follow one by one.

Only pairs (x, y) that are allowed are variables: with w of them in a column and k rows of B a step
takes n (w^2 k + w k^2) + n^3 / 3 operations. A general method would treat the m one-sided rows of
all n columns at once.

With this polytope, p = (1/2, 1/2), and a cost of 1 outside of a mass's own column (the example of
`solvers.assignment.assignment`), the share of each mass in its own column is 0.591 after one step,
and then 0.734, 0.7484, 0.74984; 3/4 is optimal. The bounds of the multipliers are 0.042, 0.190,
0.2439 and 0.24939 on their way to 1/4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from solvers.assignment.assignment import Assignment, Multipliers
from solvers.points import Array

MOST_STEPS = 120
"""Newton steps; 15 to 50 are usual."""

STEP = 0.9
"""Share of the way to the boundary that a step takes, where it ends there."""

SHORT_STEP = 1e-4
"""Share of a Newton step that hardly moves an iterate."""

MOST_SHORT = 6
"""Short steps in a row after which rounding ends the run."""

MASS_SLACK = 1e-13
"""Regularisation of the masses of the columns, relative to 1 / curvature: proximal, so it moves no
solution."""

JITTERS = (1e-14, 1e-12, 1e-10, 1e-8)
"""Shares of its diagonal added to the matrix of the rows, until it can be factorised."""

REFINEMENTS = 2
"""Steps of iterative refinement of the prices."""


class InteriorPoint:
    """The iterates of the method; `run` yields shares q(x, y) / p_x, multipliers and an error.

    Variables are the pairs (x, y) that are allowed, column by column. Auxiliary variables of the
    columns are further rows x of q, behind the n masses, whose sums are free.

    Attributes
    ----------
    q, z : (pairs,) arrays
        Masses above the floors, and their reduced costs.
    w, lam : (n, m) arrays
        Slacks of the one-sided rows of each column, and their multipliers.
    u, f : (n,) arrays
        Prices of the sums of the rows, and of the masses of the columns.
    x, starts : (pairs,) and (n + 1,) arrays
        The row of each pair, and where the pairs of each column begin.
    b_columns : (pairs, k) array
        The column x of B for each pair.
    t : (rows, k) array
        T; where masses are kept, its last row is the mass of the column.
    """

    def __init__(self, problem: Assignment) -> None:
        self.problem = problem
        self.n = problem.n
        self.auxiliaries = problem.sides[2].shape[1]
        self._p = problem.masses
        self._set_rows()
        self._set_variables()
        self._set_start()

    def _set_rows(self) -> None:
        """B: distinct rows, the row of ones, auxiliary variables; T: one-sided rows from these."""
        problem = self.problem
        n = self.n
        a = self.auxiliaries
        rows, offset, auxiliary = problem.sides
        m = len(rows)
        # Of rows that are negatives of each other one is enough: that whose first entry other
        # than 0 is positive.
        first = np.argmax(rows != 0.0, axis=1)
        sign = np.where(rows[np.arange(m), first] < 0.0, -1.0, 1.0)
        images, position = np.unique(rows * sign[:, None], axis=0, return_inverse=True)
        k = len(images) + 1
        self._m = m
        self._mass = k - 1
        b = np.zeros((k + a, n + a))
        b[: k - 1, :n] = images
        b[k - 1, :n] = 1.0
        b[k:, n:] = np.eye(a)
        self._bt = b.T
        self.t = np.zeros((m + problem.keep, k + a))
        self.t[np.arange(m), position.ravel()] = sign
        # (row - offset) v is the row minus the offset times the mass.
        self.t[:m, self._mass] -= offset
        self.t[:m, k:] = auxiliary
        # Where masses are kept, a last row: the mass of the column.
        self.t[m:, self._mass] = 1.0

    def _set_variables(self) -> None:
        """The pairs (x, y), column by column; those of masses are `_real`, others auxiliary."""
        problem = self.problem
        auxiliary = np.ones((self.n, self.auxiliaries), dtype=np.bool_)
        opened = np.hstack([problem.open.T, auxiliary])
        y, x = np.nonzero(opened)
        self.x = x
        self._y = y
        self._real = x < self.n
        # Any valid index will do for auxiliary variables: what is looked up there is not used.
        self._xs = np.minimum(x, self.n - 1)
        self.starts = np.concatenate([[0], np.cumsum(opened.sum(axis=1))])
        self.b_columns = self._bt[x]
        self._base = np.where(x == y, problem.floors[y] * self._p[y], 0.0)
        # Costs of about one: a problem without costs keeps its zeros.
        self._scale = max(float(np.abs(problem.cost).max()), 1e-300)
        costs = np.where(self._real, problem.cost[self._xs, y], 0.0)
        self._c = costs / self._scale

    def _set_start(self) -> None:
        """The first iterate: rows sum to p, products q z and w lambda are near the central path."""
        p = self._p
        m = self._m
        y = self._y
        xs = self._xs
        # Every interior iterate is positive, so something is left above a floor of 1, too.
        above_floor = np.maximum((1.0 - self.problem.floors) * p, 1e-3 * p)
        q = above_floor[xs] * p[y] / self.rows(p[y])[xs]
        if self.auxiliaries:
            q = np.where(self._real, q, self._first_auxiliary(q) * p[y])
        self.q = q
        sides = self.columns(self.q + self._base) @ self.t[:m].T
        self.w = np.maximum(sides, 1e-3 * p[:, None])
        # Natural sizes of the products q z and w lambda: the central path is weighted by them, so
        # that rare masses, whose products are small, are no farther from it than others.
        self._sizes = np.where(self._real, p[xs], p.mean()) * p[y]
        self._levels = np.broadcast_to((p * p.mean())[:, None], self.w.shape)
        self.lam = self._levels / self.w
        self.u = np.full(self.n, -1.0)
        self.f = np.zeros(self.n)
        # With prices of -1 and small multipliers these are nearly the reduced costs.
        self.z = np.where(self._real, self._c + 1.0, self._sizes / self.q)

    def _first_auxiliary(self, q: Array) -> float:
        """Common value of the auxiliary variables, in units of p_y, with most room in the sides."""
        auxiliary = self.problem.sides[2].sum(axis=1)
        level = self.columns(np.where(self._real, q, 0.0)) @ self.t[: self._m].T
        thetas = np.geomspace(1e-3, 1.0, 25)
        rooms = [
            (level + theta * auxiliary * self._p[:, None]).min() for theta in thetas
        ]
        return float(thetas[int(np.argmax(rooms))])

    def columns(self, values: Array) -> Array:
        """B of values on the pairs, for each column; (n, k)."""
        from scipy.sparse import csr_array

        sparse: Any = csr_array(
            (values, self.x, self.starts), shape=(self.n, self.n + self.auxiliaries)
        )
        return sparse @ self._bt

    def rows(self, values: Array) -> Array:
        """Sums over the pairs of each row."""
        sums = np.bincount(self.x, values, minlength=self.n)
        return np.asarray(sums, dtype=np.float64)[: self.n]

    def padded(self, prices: Array) -> Array:
        """`prices` of the rows on every pair; zero on auxiliary ones."""
        return np.append(prices, np.zeros(self.auxiliaries))[self.x]

    def _iterate(self) -> tuple[Array, Multipliers, float]:
        """Present shares, multipliers in units of the cost, and error relative to the masses."""
        p = self._p
        q = self.q + self._base
        shares = np.zeros((self.n, self.n))
        shares[self.x[self._real], self._y[self._real]] = q[self._real]
        # B q of each column: values of the rows, and the mass.
        zeta = self.columns(q)
        sums = [self.rows(q) - p]
        if self.problem.keep:
            sums.append(zeta[:, self._mass] - p)
        of_sides = self.w - zeta @ self.t[: self._m].T
        errors = np.column_stack([*sums, of_sides])
        missed = float((np.abs(errors).max(axis=1) / p).max())
        multipliers = Multipliers(self.lam.T * self._scale, self.f * self._scale)
        return shares / shares.sum(axis=1)[:, None], multipliers, missed

    def run(self) -> Iterator[tuple[Array, Multipliers, float]]:
        """Iterates, until steps no longer move."""
        idle = 0
        for _ in range(MOST_STEPS):
            try:
                step = self._step()
            except np.linalg.LinAlgError:
                # The matrix is too near to singular for the last jitter: the end of precision.
                return
            yield self._iterate()
            if step < SHORT_STEP:
                idle += 1
            else:
                idle = 0
            if idle >= MOST_SHORT:
                return

    def slope(self, multipliers: Array) -> Array:
        """B' T' of multipliers (n, rows), on every pair."""
        return np.einsum("ij,ij->i", self.b_columns, (multipliers @ self.t)[self._y])

    def _step(self) -> float:
        """One predictor-corrector step (Mehrotra 1992); the shorter of its primal and dual
        lengths.
        """
        newton = _NewtonSystem(self)
        q = self.q
        w = self.w
        gap = float(q @ self.z + (self.lam * w).sum())
        mu = gap / float(self._sizes.sum() + self._levels.sum())
        # Predictor: towards complementarity without any centring.
        affine = newton.direction(-q * self.z, -w * self.lam)
        primal, dual = self._lengths(affine, 1.0)
        after = (q + primal * affine.q) @ (self.z + dual * affine.z)
        after += ((w + primal * affine.w) * (self.lam + dual * affine.lam)).sum()
        # Corrector: the less of the gap the predictor would leave, the less centring (the cube is
        # Mehrotra's); the products of the predictor's changes correct its linearisation.
        aim = min(1.0, max(float(after) / gap, 0.0)) ** 3 * mu
        target_q = aim * self._sizes - q * self.z - affine.q * affine.z
        target_w = aim * self._levels - w * self.lam - affine.w * affine.lam
        step = newton.direction(target_q, target_w)
        primal, dual = self._lengths(step, STEP)
        self.q = q + primal * step.q
        self.w = w + primal * step.w
        self.z = self.z + dual * step.z
        self.lam = self.lam + dual * step.lam
        self.u = self.u + dual * step.u
        self.f = self.f + dual * step.f
        return min(primal, dual)

    def _lengths(self, step: _Direction, share: float) -> tuple[float, float]:
        """How far the primal and the dual variables can go, at most 1."""

        def most(change: Array, value: Array) -> float:
            return float((-change / value).max(initial=share))

        primal = max(most(step.q, self.q), most(step.w, self.w))
        dual = max(most(step.z, self.z), most(step.lam, self.lam))
        return share / primal, share / dual

    def residuals(self) -> tuple[Array, Array, Array, Array]:
        """Errors of the equations: of sides, sums of rows, masses (n, 0 or 1) and reduced costs."""
        p = self._p
        q = self.q + self._base
        zeta = self.columns(q)
        of_sides = self.w - zeta @ self.t[: self._m].T
        of_sums = p - self.rows(q)
        of_masses = np.zeros((self.n, 0))
        f = of_masses
        if self.problem.keep:
            of_masses = (p - zeta[:, self._mass])[:, None]
            f = self.f[:, None]
        slope = self.slope(np.hstack([self.lam, f]))
        of_costs = self._c - slope - self.z - self.padded(self.u)
        return of_sides, of_sums, of_masses, of_costs

    def side_weights(self, d: Array) -> Array:
        """V^-1, (n, rows): multipliers over slacks; for kept masses a regularised weight."""
        weights = self.lam / self.w
        if not self.problem.keep:
            return weights
        # The mass of a column must be exact, so its V is next to nothing.
        inside = np.add.reduceat(np.where(self._real, d, 0.0), self.starts[:-1])
        of_mass = 1.0 / (MASS_SLACK * inside)
        return np.hstack([weights, of_mass[:, None]])


@dataclass(frozen=True, eq=False)
class _Direction:
    """Changes of the variables of `InteriorPoint` of the same names."""

    q: Array
    w: Array
    z: Array
    lam: Array
    u: Array
    f: Array


class _NewtonSystem:
    """Newton's equations at one iterate, factorised once for predictor and corrector.

    With targets for the changes of the products, z dq + q dz = target_q and w dlam + lam dw =
    target_w, and the errors of the equations, dz and dw are eliminated:

        dq = D (h + du + B' T' dm)   with   h = target_q / q - error of costs,
        (V + T B D B' T') dm = target_w / lam + error of sides - T B D (h + du)   in each column,
        sum over y of N_y du = error of sums - sum over y of dq at du = 0,

    where m are lambda and, where masses are kept, f.
    """

    def __init__(self, at: InteriorPoint) -> None:
        self._at = at
        self._d = at.q / at.z
        self._barrier = _Barrier(at, self._d, at.side_weights(self._d))
        self._of_sides, self._of_sums, self._of_masses, self._of_costs = at.residuals()

    def direction(self, target_q: Array, target_w: Array) -> _Direction:
        """The change that increases the products q z and w lambda by these targets."""
        at = self._at
        d = self._d
        sides = at.w.shape[1]
        h = target_q / at.q - self._of_costs
        right = np.hstack([target_w / at.lam + self._of_sides, self._of_masses])
        # Eliminate the multipliers of the columns, solve for the prices of the rows, put them back.
        first = self._barrier.rows(right - at.columns(d * h) @ at.t.T)
        missing = self._of_sums - at.rows(d * (h + at.slope(first)))
        du = self._barrier.prices(missing)
        h += at.padded(du)
        multipliers = self._barrier.rows(right - at.columns(d * h) @ at.t.T)
        slope = at.slope(multipliers)
        dlam = multipliers[:, :sides]
        return _Direction(
            q=d * (h + slope),
            w=target_w / at.lam - dlam / (at.lam / at.w),
            z=self._of_costs - at.padded(du) - slope,
            lam=dlam,
            u=du,
            f=multipliers[:, sides:].sum(axis=1),
        )


class _Barrier:
    """The inverse Hessians N_y, and the factorised sum of them.

    `d` (pairs,) is D, and `weights` (n, rows) are V^-1.
    """

    def __init__(self, at: InteriorPoint, d: Array, weights: Array) -> None:
        self._at = at
        self._d = d
        n = at.n
        t = at.t
        spans = [slice(first, last) for first, last in pairwise(at.starts.tolist())]
        weighted = at.b_columns * d[:, None]
        # B D_y B' of every column; (n, k, k).
        image = np.stack([at.b_columns[span].T @ weighted[span] for span in spans])
        root = t.T * np.sqrt(weights)[:, None, :]
        # The rows are scaled by the roots of their weights, so that no pivot is below 1.
        inner = np.eye(len(t)) + root.transpose(0, 2, 1) @ (image @ root)
        inverse_root = np.linalg.inv(np.linalg.cholesky(inner))
        self._inverse = inverse_root * np.sqrt(weights)[:, None, :]
        factor = self._inverse @ t
        # Only factor' factor is used, so a square root of it with fewer rows will do.
        if len(t) > t.shape[1]:
            factor = np.linalg.qr(factor, mode="r")
        total = np.zeros((n, n))
        for span, column_factor in zip(spans, factor, strict=True):
            # Auxiliary variables are the last ones of a column, and have no sum of a row.
            masses = slice(span.start, span.stop - at.auxiliaries)
            x = at.x[masses]
            column = weighted[masses] @ column_factor.T
            # Over all masses of the column no index is needed, which saves copies of the matrix.
            if len(x) == n:
                total -= column @ column.T
            else:
                total[np.ix_(x, x)] -= column @ column.T
        sums = at.rows(d)
        from scipy.linalg import cho_factor

        # Rounding can leave the sum a little indefinite. More of its diagonal is added until it has
        # a factor; refinement makes up for that.
        for jitter in JITTERS:
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
        at = self._at
        d = self._d
        moved = d * at.padded(prices)
        return at.rows(moved - d * at.slope(self.rows(at.columns(moved) @ at.t.T)))

    def prices(self, right: Array) -> Array:
        """The prices that make the rows sum to `right`."""
        from scipy.linalg import cho_solve

        prices = cho_solve(self._sum, right)
        for _ in range(REFINEMENTS):
            missing = right - self.apply(prices)
            prices = prices + cho_solve(self._sum, missing)
        return prices
