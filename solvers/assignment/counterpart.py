"""The robust counterpart of an assignment: one linear program for columns in an uncertain set.

The columns w_y(x) = q(x, y) / (p_x p_y) of an `Assignment` shall keep every inequality of an
`UncertainSet`. Its inequalities are written in h_s(w), the largest, and g_s(w), the smallest p.w
over the box B_s = {lo <= p <= lo + width, sum p = 1}. Both are fractional knapsacks, whose duals
are linear programs. With free = 1 - sum lo,

    h_s(w) = lo.w + min over lam, r >= 0 with r_x >= w_x - lam   of  free lam + width.r
    g_s(w) = lo.w + max over mu, t >= 0 with t_x >= mu - w_x     of  free mu - width.t

So `RobustCounterpart` has variables H_s >= h_s and G_s <= g_s, with one row each besides those of r
and t. Every inequality grows with h_s and falls with g_s. Hence it holds for all coefficients
exactly if it holds for some such H and G (docs/explanation/population.md, 'Boxes by one linear
program', has the proof).

The mean over the box of pi is a knapsack as well. For two secrets pi_s is a number, and its least
value is always the worst. For more secrets this knapsack is dualised, too.

For example, let p_s be between (0.6, 0.3) and (0.7, 0.4), and w = (1.2, 0.8). Then lo.w = 0.96, the
free mass 0.1 goes to the larger entry, and h_s = 0.96 + 0.1 * 1.2 = 1.08: lam = 1.2 and r = 0.

`RobustCounterpart` only builds and reads the program; `uncertain.robust_plan` solves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.assignment.assignment import Assignment
from solvers.points import Array
from solvers.sets.uncertain import UncertainSet

Places = NDArray[np.intp]
"""Numbers of variables or of rows."""


@dataclass
class Blocks:
    """A linear program that grows by blocks of variables, rows and entries."""

    columns: int = 0
    rows: int = 0
    costs: list[Array] = field(default_factory=list[Array])
    column_lower: list[Array] = field(default_factory=list[Array])
    column_upper: list[Array] = field(default_factory=list[Array])
    row_lower: list[Array] = field(default_factory=list[Array])
    row_upper: list[Array] = field(default_factory=list[Array])
    entry_rows: list[Places] = field(default_factory=list[Places])
    entry_columns: list[Places] = field(default_factory=list[Places])
    entry_values: list[Array] = field(default_factory=list[Array])

    def variables(
        self,
        shape: tuple[int, ...],
        lower: Array | float = 0.0,
        upper: Array | float = np.inf,
        cost: Array | float = 0.0,
    ) -> Places:
        """New variables; their numbers in an array of this shape."""
        size = int(np.prod(shape))
        first = self.columns
        self.columns += size
        self.column_lower.append(np.broadcast_to(lower, shape).ravel())
        self.column_upper.append(np.broadcast_to(upper, shape).ravel())
        self.costs.append(np.broadcast_to(cost, shape).ravel())
        return np.arange(first, first + size).reshape(shape)

    def rows_between(
        self, shape: tuple[int, ...], lower: float, upper: float
    ) -> Places:
        """New rows without entries; their numbers in an array of this shape."""
        size = int(np.prod(shape))
        first = self.rows
        self.rows += size
        self.row_lower.append(np.full(size, lower))
        self.row_upper.append(np.full(size, upper))
        return np.arange(first, first + size).reshape(shape)

    def put(self, rows: Places, columns: Places, values: Array | float) -> None:
        """Entries, the three arrays broadcast against each other; zeros are left out."""
        at, of, value = np.broadcast_arrays(rows, columns, values)
        kept = value != 0.0
        self.entry_rows.append(at[kept])
        self.entry_columns.append(of[kept])
        self.entry_values.append(value[kept].astype(np.float64))

    def load(self, highs: Any) -> None:
        """Hand the program to a HiGHS that is empty."""
        from scipy.sparse import csr_matrix

        matrix = csr_matrix(
            (
                np.concatenate(self.entry_values),
                (
                    np.concatenate(self.entry_rows),
                    np.concatenate(self.entry_columns),
                ),
            ),
            shape=(self.rows, self.columns),
        )
        highs.addCols(
            self.columns,
            np.concatenate(self.costs),
            np.concatenate(self.column_lower),
            np.concatenate(self.column_upper),
            0,
            np.zeros(self.columns, np.int32),
            [],
            [],
        )
        highs.addRows(
            self.rows,
            np.concatenate(self.row_lower),
            np.concatenate(self.row_upper),
            matrix.nnz,
            matrix.indptr[:-1],
            matrix.indices,
            matrix.data,
        )


@dataclass(frozen=True, eq=False)
class Knapsacks:
    """The variables and rows of H_s (sign 1) or G_s (sign -1) of all columns y.

    Attributes
    ----------
    sign : int
    values : (S, n) array
        The variables H_s or G_s.
    rows : (S, n) array
        The rows that define them.
    secrets, symbols : (k,) arrays
        The s and x of the variables r or t: where the box has a width.
    over : (k, n) array
        The rows of these variables.
    """

    sign: int
    values: Places
    rows: Places
    secrets: Places
    symbols: Places
    over: Places


@dataclass(frozen=True, eq=False)
class Inequality:
    """One inequality of the set, for all columns y.

    It says, with the vectors p of the extremes in place of their values,

        sum_s of_high[s] h_s + sum_s of_low[s] g_s  <=  0,

    and with `shares` further multiples, `factor` times pi_t for each pair of a row and a variable.

    Attributes
    ----------
    rows : (n,) array
    of_high, of_low : (S,) arrays
        Fixed factors of h and g.
    mean : tuple or None
        The rows (S, n) of a mean over the box of pi that was dualised, its factor, and the secret
        whose extreme is not of the kind of the others.
    """

    rows: Places
    of_high: Array
    of_low: Array
    mean: Mean | None = None


@dataclass(frozen=True, eq=False)
class Mean:
    """A mean over the box of pi that was dualised; `special` is s of mean(a_s, b_t).

    `over` are the rows (S, n) of its variables, whose duals choose pi; `factor` is that of the mean
    in the inequality, and `is_least` whether it is the least mean, of g_t with h_s.
    """

    special: int
    factor: float
    is_least: bool
    over: Places


class RobustCounterpart:
    """The linear program of an assignment whose columns lie in an uncertain set with a margin.

    Parameters
    ----------
    problem : Assignment
        Its polytope is not looked at.
    uncertain : UncertainSet
    margin : float
        Slack of every inequality, for columns of mass 1.

    Attributes
    ----------
    blocks : Blocks
        The program.
    w : (n, n) array
        The variables w_y(x), at [x, y].
    masses : (n,) array
        The rows sum_x p_x w(x, y) = mass of the column.
    """

    def __init__(
        self, problem: Assignment, uncertain: UncertainSet, margin: float
    ) -> None:
        self.problem = problem
        self.uncertain = uncertain
        self.blocks = Blocks()
        self._margin = margin
        n = problem.n
        p = problem.masses
        blocks = self.blocks
        # In the unit of w a column that tells nothing is 1, whatever its mass.
        least = np.diag(problem.floors / p)
        most = np.where(problem.open, np.inf, 0.0)
        self.w = blocks.variables((n, n), least, most, np.outer(p, p) * problem.cost)
        if problem.keep:
            self._mass = blocks.variables((n,), 1.0, 1.0)
        else:
            self._mass = blocks.variables((n,))
        whole = blocks.rows_between((n,), 1.0, 1.0)
        blocks.put(whole[:, None], self.w, p[None, :])
        self.masses = blocks.rows_between((n,), 0.0, 0.0)
        blocks.put(self.masses[None, :], self.w, p[:, None])
        blocks.put(self.masses, self._mass, -1.0)
        self.high = self._knapsacks(1)
        self.low = self._knapsacks(-1)
        self.inequalities: list[Inequality] = []
        self._add_ratios()
        if len(uncertain.lower) == 2:
            self._add_pairs()
        else:
            self._add_means()

    def _knapsacks(self, sign: int) -> Knapsacks:
        """The variables H_s (sign 1) or G_s (sign -1), by the duals of their knapsacks."""
        blocks = self.blocks
        lower, width, free = self.uncertain.boxes
        # Symbols without a point have the same w, a multiple of the mass of the column.
        places = np.vstack([self.w, self._mass])
        scale = np.append(np.ones(self.problem.n), self.uncertain.rest)
        size, count = lower.shape
        n = self.problem.n
        values = blocks.variables((size, n))
        level = blocks.variables((size, n))
        # H - lo.w - free lam - width.r >= 0, and G - lo.w - free mu + width.t <= 0.
        bounds = (0.0, np.inf)
        if sign < 0:
            bounds = (-np.inf, 0.0)
        rows = blocks.rows_between((size, n), *bounds)
        blocks.put(rows, values, 1.0)
        blocks.put(rows, level, -free[:, None])
        for x in range(count):
            blocks.put(rows, places[x][None, :], -scale[x] * lower[:, x][:, None])
        # r - w + lam >= 0, and t + w - mu >= 0; without a width there is nothing to fill.
        secrets, symbols = np.nonzero(width > 0.0)
        variables = blocks.variables((len(secrets), n))
        over = blocks.rows_between((len(secrets), n), 0.0, np.inf)
        blocks.put(over, variables, 1.0)
        blocks.put(over, places[symbols], -sign * scale[symbols][:, None])
        blocks.put(over, level[secrets], float(sign))
        blocks.put(rows[secrets], variables, -sign * width[secrets, symbols][:, None])
        return Knapsacks(sign, values, rows, secrets, symbols, over)

    def _add(self, of_high: Array, of_low: Array, mean: Mean | None = None) -> Places:
        """Rows of an inequality for all columns; a mean's own entries are put by the caller."""
        blocks = self.blocks
        rows = blocks.rows_between((self.problem.n,), -np.inf, 0.0)
        for s in range(len(of_high)):
            blocks.put(rows, self.high.values[s], float(of_high[s]))
            blocks.put(rows, self.low.values[s], float(of_low[s]))
        blocks.put(rows, self._mass, self._margin)
        self.inequalities.append(Inequality(rows, of_high, of_low, mean))
        return rows

    def _add_ratios(self) -> None:
        """h_s <= ratio g_t for s != t."""
        ratio = self.uncertain.ratio
        if not np.isfinite(ratio):
            return
        units = np.eye(len(self.uncertain.lower))
        for s in range(len(units)):
            for t in range(len(units)):
                if s != t:
                    self._add(units[s], -ratio * units[t])

    def _add_pairs(self) -> None:
        """Both sides of the lift for two secrets, at the least share of each.

        The mean of h_s and g_t matters only where h_s > g_t, for else h_s <= most mean(h_s, g_t)
        holds anyway. There it grows with pi_s, so the least pi_s is the worst; on the lower side,
        too.
        """
        uncertain = self.uncertain
        units = np.eye(2)
        for s in range(2):
            t = 1 - s
            share = max(uncertain.share_lower[s], 1.0 - uncertain.share_upper[t])
            most = float(uncertain.mosts[s])
            least = float(uncertain.leasts[s])
            if np.isfinite(most) and most * share < 1.0:
                # h_s <= most (share h_s + (1 - share) g_t). Where the factor of h_s is not
                # positive, this holds for any w >= 0.
                self._add(
                    (1.0 - most * share) * units[s],
                    -most * (1.0 - share) * units[t],
                )
            if least > 0.0:
                self._add(
                    least * (1.0 - share) * units[t],
                    (least * share - 1.0) * units[s],
                )

    def _add_means(self) -> None:
        """Both sides of the lift for any number of secrets."""
        uncertain = self.uncertain
        size = len(uncertain.lower)
        units = np.eye(size)
        zeros = np.zeros(size)
        for s in range(size):
            most = float(uncertain.mosts[s])
            least = float(uncertain.leasts[s])
            if np.isfinite(most):
                self._add_mean(s, -most, is_least=True, alone=(units[s], zeros))
            if least > 0.0:
                self._add_mean(s, least, is_least=False, alone=(zeros, -units[s]))

    def _add_mean(
        self, s: int, factor: float, *, is_least: bool, alone: tuple[Array, Array]
    ) -> None:
        """The inequality ``alone + factor mean(a_s, b_t) <= 0`` for the worst pi of its box.

        The values V are H_s and G_t for the least mean, and G_s and H_t for the largest one. The
        knapsack of pi is dualised like those of p: the least mean as g, the largest one as h.
        """
        uncertain = self.uncertain
        blocks = self.blocks
        n = self.problem.n
        low = uncertain.share_lower
        width = uncertain.share_upper - low
        free = max(1.0 - float(low.sum()), 0.0)
        sign = 1
        values = self.high.values.copy()
        values[s] = self.low.values[s]
        if is_least:
            sign = -1
            values = self.low.values.copy()
            values[s] = self.high.values[s]
        # factor V.lo is put by hand: `alone` may have an entry at the same place.
        over = blocks.rows_between((len(low), n), 0.0, np.inf)
        rows = self._add(*alone, Mean(s, factor, is_least, over))
        blocks.put(rows[None, :], values, factor * low[:, None])
        level = blocks.variables((n,))
        variables = blocks.variables((len(low), n))
        blocks.put(rows, level, factor * free)
        blocks.put(rows[None, :], variables, factor * sign * width[:, None])
        # rho_t - V_t + lam >= 0 for the largest mean, tau_t + V_t - mu >= 0 for the least one.
        blocks.put(over, variables, 1.0)
        blocks.put(over, values, -float(sign))
        blocks.put(over, level[None, :], float(sign))

    def inequalities_of(self, dual: Array) -> tuple[Array, Places, Array, Array]:
        """The inequalities that the duals of all rows choose, in any state of a solver.

        Each fixes coefficients p and pi inside their boxes, so a.w >= 0 holds for all members.

        Returns
        -------
        rows : (k, n) array
            The a.
        columns : (k,) array
            The column y of each.
        multipliers : (k,) array
            Not negative.
        prices : (n,) array
            Of the masses of the columns.
        """
        finite = np.nan_to_num(dual, nan=0.0, posinf=0.0, neginf=0.0)
        high = self._coefficients(self.high, finite)
        low = self._coefficients(self.low, finite)
        found: list[Array] = []
        multipliers: list[Array] = []
        for inequality in self.inequalities:
            # The rows are at most zero, so their duals are not positive.
            weights = np.maximum(-finite[inequality.rows], 0.0)
            total = np.einsum("s,syx->yx", inequality.of_high, high)
            total += np.einsum("s,syx->yx", inequality.of_low, low)
            if inequality.mean is not None:
                total += self._mean_of(inequality.mean, weights, finite, high, low)
            found.append(-total)
            multipliers.append(weights)
        n = self.problem.n
        if not found:
            none = np.zeros((0, n))
            return none, np.zeros(0, np.intp), np.zeros(0), finite[self.masses]
        stacked = np.concatenate(found)
        columns = np.tile(np.arange(n), len(found))
        # The coordinate without a point has w = rest * sum v, a multiple of point.w.
        rest = self.uncertain.rest * self.uncertain.point
        rows = stacked[:, :-1] + np.outer(stacked[:, -1], rest)
        of_rows = np.concatenate(multipliers)
        # In the program that coordinate is a multiple of the mass, whose price loses what the rows
        # now have.
        folded = np.bincount(columns, of_rows * stacked[:, -1], minlength=n)
        prices = finite[self.masses] - self.uncertain.rest * folded
        return rows, columns, of_rows, prices

    def _coefficients(self, knapsacks: Knapsacks, dual: Array) -> Array:
        """The p of every s and column y that the duals choose, (S, n, n + 1)."""
        lower, width, free = self.uncertain.boxes
        n = self.problem.n
        added = np.zeros((len(lower), n, lower.shape[1]))
        added[knapsacks.secrets, :, knapsacks.symbols] = dual[knapsacks.over]
        total = np.abs(dual[knapsacks.rows])[:, :, None]
        shares = np.divide(added, total, out=np.zeros_like(added), where=total > 0.0)
        return lower[:, None, :] + filled(shares, width[:, None, :], free[:, None])

    def _mean_of(
        self, mean: Mean, weights: Array, dual: Array, high: Array, low: Array
    ) -> Array:
        """The mean's part of an inequality, with the pi that the duals choose; (n, n + 1)."""
        share_low = self.uncertain.share_lower
        width = self.uncertain.share_upper - share_low
        free = max(1.0 - float(share_low.sum()), 0.0)
        chosen = dual[mean.over].T
        total = abs(mean.factor) * weights[:, None]
        shares = np.divide(chosen, total, out=np.zeros_like(chosen), where=total > 0.0)
        pi = share_low + filled(shares, width[None, :], np.full(len(shares), free))
        vectors = high.copy()
        vectors[mean.special] = low[mean.special]
        if mean.is_least:
            vectors = low.copy()
            vectors[mean.special] = high[mean.special]
        return mean.factor * np.einsum("ys,syx->yx", pi, vectors)


def counterpart_rows(uncertain: UncertainSet) -> int:
    """About how many rows the program of a set has: those of r and t of all columns."""
    _, width, _ = uncertain.boxes
    return 2 * int(np.count_nonzero(width)) * uncertain.n


def filled(amounts: Array, width: Array, free: Array) -> Array:
    """The nearest amounts within [0, width] whose sum is `free`, along the last axis.

    What is too much is taken off in proportion, what is missing goes to where there is room.
    """
    inside = np.clip(amounts, 0.0, width)
    sums = inside.sum(axis=-1)
    shrink = np.divide(free, sums, out=np.ones_like(sums), where=sums > free)
    inside = inside * shrink[..., None]
    room = np.broadcast_to(width, inside.shape) - inside
    missing = np.maximum(free - inside.sum(axis=-1), 0.0)
    rooms = room.sum(axis=-1)
    part = np.divide(missing, rooms, out=np.zeros_like(rooms), where=rooms > 0.0)
    return inside + room * np.minimum(part, 1.0)[..., None]
