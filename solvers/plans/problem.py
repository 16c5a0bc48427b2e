"""The question of a plan: what moves to what, at least cost, within linear limits.

A plan F(x, y) >= 0 moves the mass p_x of every symbol x to symbols y. Its row sums are p; its
column sums are given targets q, or free. On what goes to each y there are limits

    lower_k q_y <= sum_x t_k(x) F(x, y) <= upper_k q_y
    sum_x t_i(x) F(x, y) <= ratio sum_x t_j(x) F(x, y)      i, j in one group

For example, two symbols of mass 1/2 with t = (0, 2) and limits from 1/2 to 3/2: of what goes to
each y at least a quarter comes from either symbol, so the best plan keeps three quarters.

*Costs* d(x, y) of a move are given by blocks of rows and columns. `MatrixCosts` holds a matrix.
`CellCosts` holds n symbols of c cells each, such as the distinct rows of a table, and needs memory
for n c codes only: a cell that differs costs the weight of its column, or, in a column with
positions, the weight times the distance as a share of the column's span.

*Blocks as products.* Let phi(x) have one coordinate a symbol of every column without positions.
Then the weight of the cells that agree is phi(x) . W phi(y), a product of matrices. It takes one
pass over the block, where comparing the columns one by one takes one each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidPlanProblem
from solvers.points import Array

# -------------------------------------------------------------------------------- costs

Indices = NDArray[np.int64]


class MatrixCosts:
    """Costs d(x, y) >= 0 as a matrix.

    Parameters
    ----------
    matrix : (n, n) array
        Row x, column y.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        square = self.matrix.ndim == 2 and self.matrix.shape[0] == self.matrix.shape[1]
        if not square:
            raise InvalidPlanProblem(
                f"costs need a square matrix, not one of shape {self.matrix.shape}"
            )
        if not np.isfinite(self.matrix).all() or (self.matrix < 0.0).any():
            raise InvalidPlanProblem("costs must be finite and not negative")

    @property
    def size(self) -> int:
        """Number n of symbols."""
        return len(self.matrix)

    @property
    def largest(self) -> float:
        """No cost is larger than this."""
        return float(self.matrix.max(initial=0.0))

    def block(self, rows: Indices, columns: Indices) -> Array:
        """Costs from each of `rows` to each of `columns`."""
        return self.matrix[np.ix_(rows, columns)]

    def pairs(self, rows: Indices, columns: Indices) -> Array:
        """Costs of the pairs (rows[i], columns[i])."""
        return self.matrix[rows, columns]

    def keys(self, rows: Indices, rng: np.random.Generator) -> Iterator[Indices]:
        """Ranks from 0 along which a set of symbols can be cut in two: how much nearer one is to
        the first than to the second of two random symbols.
        """
        for _ in range(3):
            first, second = rng.choice(rows, 2, replace=False)
            there = self.matrix[rows, first] - self.matrix[rows, second]
            back = self.matrix[first, rows] - self.matrix[second, rows]
            yield np.unique(there + back, return_inverse=True)[1]

    def means(self, rows: Indices, columns: Indices, masses: Array) -> Array:
        """The mean cost from each of `rows` to one of `columns` that is drawn by these masses."""
        return self.block(rows, columns) @ (masses / masses.sum())

    def spread(self, rows: Indices, masses: Array) -> float:
        """The mean cost between two symbols that are drawn by these masses."""
        shares = masses / masses.sum()
        return float(shares @ self.block(rows, rows) @ shares)

    def order(self, rows: Indices, rng: np.random.Generator) -> Indices:
        """Places of `rows` in an order that keeps near ones together."""
        return np.argsort(next(self.keys(rows, rng)), kind="stable")


class CellCosts:
    """Costs of symbols made of cells: the sum of the weights of the cells that differ.

    Parameters
    ----------
    codes : (n, c) int array
        Code of each cell, from 0, column by column.
    weights : (c,) array
        Weight of each column, not negative. With a sum of 1 the cost is a share of changed cells.
    positions : per column None or an array, optional
        A place for every code of the column. A change then costs the weight times the distance of
        the two places, as a share of the distance between the first and the last of them.
    """

    def __init__(
        self,
        codes: ArrayLike,
        weights: ArrayLike,
        positions: Sequence[ArrayLike | None] | None = None,
    ) -> None:
        given = np.asarray(codes)
        if given.ndim != 2 or given.dtype.kind not in "iu":
            raise InvalidPlanProblem("codes of cells need an array (n, c) of integers")
        self.codes = given.astype(np.int64)
        self.weights = np.asarray(weights, dtype=np.float64)
        c = self.codes.shape[1]
        if self.weights.shape != (c,) or not np.isfinite(self.weights).all():
            raise InvalidPlanProblem(f"{c} columns need {c} finite weights")
        if (self.weights < 0.0).any() or (self.codes < 0).any():
            raise InvalidPlanProblem("codes and weights must not be negative")
        listed = [None] * c if positions is None else list(positions)
        if len(listed) != c:
            raise InvalidPlanProblem(f"{c} columns need {c} entries of positions")
        self.positions: list[Array | None] = []
        for column, places in enumerate(listed):
            self.positions.append(self._places(column, places))

    def _places(self, column: int, given: ArrayLike | None) -> Array | None:
        """Weight times place over span, so that a cost is a plain difference; None for none."""
        if given is None:
            return None
        places = np.asarray(given, dtype=np.float64)
        used = self.codes[:, column]
        if places.ndim != 1 or used.max(initial=-1) >= len(places):
            raise InvalidPlanProblem(f"column {column} has codes without a position")
        if not np.isfinite(places).all():
            raise InvalidPlanProblem(
                f"column {column} has a position that is not finite"
            )
        span = float(np.ptp(places)) if len(places) else 0.0
        if span == 0.0:
            return np.zeros(len(places))
        return self.weights[column] * (places - places.min()) / span

    @property
    def size(self) -> int:
        """Number n of symbols."""
        return len(self.codes)

    @property
    def largest(self) -> float:
        """No cost is larger than this."""
        return float(self.weights.sum())

    @cached_property
    def _equal_columns(self) -> list[int]:
        """Columns whose cells are compared for equality."""
        return [j for j, places in enumerate(self.positions) if places is None]

    def block(self, rows: Indices, columns: Indices) -> Array:
        """Costs from each of `rows` to each of `columns`."""
        out = np.zeros((len(rows), len(columns)))
        if self._equal_columns:
            self._add_differences(out, rows, columns)
        for j, places in enumerate(self.positions):
            if places is not None:
                here = places[self.codes[rows, j]]
                there = places[self.codes[columns, j]]
                out += np.abs(here[:, None] - there[None, :])
        return out

    def _add_differences(self, out: Array, rows: Indices, columns: Indices) -> None:
        """Add the costs of the columns without positions."""
        chosen = self._equal_columns
        total = self.weights[chosen].sum()
        left: list[Array] = []
        right: list[Array] = []
        for j in chosen:
            symbols, places = np.unique(self.codes[columns, j], return_inverse=True)
            here = self.codes[rows, j]
            left.append((here[:, None] == symbols[None, :]) * self.weights[j])
            right.append(np.eye(len(symbols))[places])
        out += total
        out -= np.hstack(left) @ np.hstack(right).T
        # Rounding must not make the cost of a symbol to itself negative.
        np.maximum(out, 0.0, out=out)

    def pairs(self, rows: Indices, columns: Indices) -> Array:
        """Costs of the pairs (rows[i], columns[i])."""
        out = np.zeros(len(rows))
        for j, places in enumerate(self.positions):
            here, there = self.codes[rows, j], self.codes[columns, j]
            if places is None:
                out += self.weights[j] * (here != there)
            else:
                out += np.abs(places[here] - places[there])
        return out

    @cached_property
    def _ranks(self) -> list[Indices]:
        """The rank of every code of each column: that of its position, or the code itself."""
        ranks: list[Indices] = []
        for j, places in enumerate(self.positions):
            if places is None:
                ranks.append(np.arange(self.codes[:, j].max(initial=-1) + 1))
            else:
                ranks.append(np.unique(places, return_inverse=True)[1])
        return ranks

    def keys(self, rows: Indices, rng: np.random.Generator) -> Iterator[Indices]:
        """Ranks from 0 along which a set of symbols can be cut in two: every column in the order of
        its codes or positions, and in a random order.
        """
        for j, places in enumerate(self.positions):
            ranks = self._ranks[j]
            cells = ranks[self.codes[rows, j]]
            size = len(ranks)
            if size > len(rows):
                # Whoever counts symbols by their ranks is not to count those that are not there.
                symbols, cells = np.unique(cells, return_inverse=True)
                size = len(symbols)
            yield cells
            if places is None and size > 2:
                yield rng.permutation(size)[cells]

    def means(self, rows: Indices, columns: Indices, masses: Array) -> Array:
        """The mean cost from each of `rows` to one of `columns` that is drawn by these masses."""
        shares = masses / masses.sum()
        out = np.zeros(len(rows))
        for j, places in enumerate(self.positions):
            here, there = self.codes[rows, j], self.codes[columns, j]
            if places is None:
                size = int(max(here.max(initial=0), there.max(initial=0))) + 1
                by_cell = np.bincount(there, shares, size)
                out += self.weights[j] * (1.0 - by_cell[here])
            else:
                out += _distances(places[here], places[there], shares)
        return np.maximum(out, 0.0)

    def spread(self, rows: Indices, masses: Array) -> float:
        """The mean cost between two symbols that are drawn by these masses."""
        shares = masses / masses.sum()
        mean = 0.0
        for j, places in enumerate(self.positions):
            cells = self.codes[rows, j]
            if places is not None:
                order = np.argsort(places[cells])
                below = np.cumsum(shares[order])[:-1]
                steps = np.diff(places[cells][order])
                mean += 2.0 * float((below * (1.0 - below)) @ steps)
                continue
            if len(self._ranks[j]) > len(rows):
                cells = np.unique(cells, return_inverse=True)[1]
            by_cell = np.bincount(cells, shares)
            mean += float(self.weights[j] * (1.0 - by_cell @ by_cell))
        return mean

    def order(self, rows: Indices, rng: np.random.Generator) -> Indices:
        """Places of `rows` in a lexicographic order with random order of columns and codes."""
        keys: list[Array] = []
        for j in rng.permutation(self.codes.shape[1]):
            symbols, cells = np.unique(self.codes[rows, j], return_inverse=True)
            keys.append(rng.permutation(len(symbols))[cells].astype(np.float64))
        return np.lexsort(keys)


def _distances(points: Array, centres: Array, shares: Array) -> Array:
    """The mean distance from each of `points` to one of `centres` that is drawn by these shares."""
    order = np.argsort(centres)
    weight = np.concatenate([[0.0], np.cumsum(shares[order])])
    moment = np.concatenate([[0.0], np.cumsum(shares[order] * centres[order])])
    below = np.searchsorted(centres[order], points)
    to_lower = points * weight[below] - moment[below]
    to_upper = (moment[-1] - moment[below]) - points * (weight[-1] - weight[below])
    return to_lower + to_upper


Costs = CellCosts | MatrixCosts


# ------------------------------------------------------------------------------ problem

SUM_TOLERANCE = 1e-9
"""Sums of masses and targets may differ by this, relative: a sum of a million doubles that were
rounded one by one is off by less."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanLimits:
    """Linear limits on what goes to every output.

    Attributes
    ----------
    values : (k, n) array
        t_k(x) >= 0, such as P(s | x) / P(s). Values that are 0 on a whole stratum bind nothing
        there: they belong to something that does not occur in it.
    lower, upper : (k,) arrays
        Limits of the mean of each value over what goes to an output; 0 and infinity for none.
    groups : (k,) int array
        Values of one group are compared with each other by `ratio`.
    ratio : float
        Within a group no mean exceeds another one by more than this factor; infinity for none.
    """

    values: Array
    lower: Array
    upper: Array
    groups: NDArray[np.int64]
    ratio: float = math.inf

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or not np.isfinite(self.values).all():
            raise InvalidPlanProblem("limits need a finite array (k, n) of values")
        k = len(self.values)
        shapes = {self.lower.shape, self.upper.shape, self.groups.shape}
        if shapes != {(k,)}:
            raise InvalidPlanProblem(f"{k} rows of values need {k} limits and groups")
        if (self.values < 0.0).any():
            raise InvalidPlanProblem("values of limits must not be negative")
        if not (self.lower <= self.upper).all() or not (self.lower >= 0.0).all():
            raise InvalidPlanProblem("limits need 0 <= lower <= upper")
        if not self.ratio >= 1.0:
            raise InvalidPlanProblem(f"ratio ({self.ratio}) must be at least 1")

    @classmethod
    def none(cls, n: int) -> PlanLimits:
        """No limits on n symbols."""
        nothing = np.zeros(0)
        return cls(
            values=np.zeros((0, n)),
            lower=nothing,
            upper=nothing,
            groups=np.zeros(0, np.int64),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanPenalty:
    """A cost of what goes to every output, the largest of some linear forms of it.

    The cost of an output y is the price times the sum, over the groups, of the largest of

        sum over x of f_j(x) F(x, y)      for the forms j of the group,

    which must not be negative for any plan: that of a group with the forms f and -f is the size of
    the sum, that of forms which are not negative is not negative, either.

    Attributes
    ----------
    forms : (m, n) array
        f_j(x).
    groups : (m,) int array
        Number of the group of each form, from 0.
    price : float
        Not negative.
    """

    forms: Array
    groups: NDArray[np.int64]
    price: float

    def __post_init__(self) -> None:
        m, n = self.forms.shape
        if self.groups.shape != (m,) or not np.isfinite(self.forms).all():
            raise InvalidPlanProblem(f"{m} finite forms of {n} symbols need {m} groups")
        if not 0.0 <= self.price < float("inf"):
            raise InvalidPlanProblem(
                f"the price of a penalty ({self.price}) must not be negative"
            )

    @classmethod
    def none(cls, n: int) -> PlanPenalty:
        """No penalty on n symbols."""
        return cls(forms=np.zeros((0, n)), groups=np.zeros(0, np.int64), price=0.0)

    def of(self, rows: Indices, columns: Indices, flows: Array) -> float:
        """The sum over all outputs of a plan, for the price 1."""
        if not len(self.forms):
            return 0.0
        used, places = np.unique(columns, return_inverse=True)
        total = 0.0
        for group in np.unique(self.groups):
            largest = np.full(len(used), -np.inf)
            for form in self.forms[self.groups == group]:
                sums = np.bincount(places, form[rows] * flows, len(used))
                largest = np.maximum(largest, sums)
            total += float(largest.sum())
        return total


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanProblem:
    """Masses, targets, costs and limits of a plan over n symbols.

    Attributes
    ----------
    masses : (n,) array
        p_x > 0, with sum 1: row sums of F.
    targets : (n,) array or None
        q_y >= 0, with sum 1: column sums of F. None leaves them free.
    costs : CellCosts or MatrixCosts
        d(x, y) >= 0.
    limits : PlanLimits
    strata : (n,) int array, optional
        x may move within its own stratum only.
    forbidden : (rows, columns), optional
        Pairs that F must not use.
    stay : (n,) array, optional
        Least share of the mass of x that stays at x.
    penalty : PlanPenalty, optional
        A further cost of what goes to every output.
    reserve : float
        Added to these shares in programs, so that a plan that is rounded later keeps the shares
        themselves; proofs do without.
    """

    masses: Array
    targets: Array | None
    costs: Costs
    limits: PlanLimits
    strata: NDArray[np.int64] | None = None
    forbidden: tuple[Indices, Indices] | None = None
    stay: Array | None = None
    penalty: PlanPenalty | None = None
    reserve: float = 0.0

    def __post_init__(self) -> None:
        n = self.masses.size
        if self.masses.shape != (n,) or not n:
            raise InvalidPlanProblem("masses need an array (n,) of at least one number")
        if not np.isfinite(self.masses).all() or not (self.masses > 0.0).all():
            raise InvalidPlanProblem("masses must be positive and finite")
        self._check_sum("masses", self.masses)
        if self.costs.size != n or self.limits.values.shape[1] != n:
            raise InvalidPlanProblem(
                f"{n} masses need costs and values of {n} symbols, not of "
                f"{self.costs.size} and {self.limits.values.shape[1]}"
            )
        if self.penalty is not None and self.penalty.forms.shape[1] != n:
            raise InvalidPlanProblem(
                f"{n} masses need forms of {n} symbols, not of "
                f"{self.penalty.forms.shape[1]}"
            )
        if self.targets is not None:
            self._check_shape("targets", self.targets)
            if not (self.targets >= 0.0).all():
                raise InvalidPlanProblem("targets must not be negative")
            self._check_sum("targets", self.targets)
        if self.strata is not None:
            self._check_shape("strata", self.strata)
        if self.stay is not None:
            self._check_shape("stay", self.stay)
            if not ((self.stay >= 0.0) & (self.stay <= 1.0)).all():
                raise InvalidPlanProblem("shares that stay must be between 0 and 1")
        if self.forbidden is not None:
            rows, columns = self.forbidden
            both = np.concatenate([rows, columns])
            if len(rows) != len(columns) or ((both < 0) | (both >= n)).any():
                raise InvalidPlanProblem(f"forbidden pairs must lie within 0..{n - 1}")
        if self.stay is not None:
            own = np.arange(n)
            if (self.is_forbidden(own, own) & (self.stay > 0.0)).any():
                raise InvalidPlanProblem("a symbol that must stay is forbidden to stay")

    def _check_shape(self, name: str, array: NDArray[np.generic]) -> None:
        if array.shape != self.masses.shape:
            raise InvalidPlanProblem(
                f"{name} need shape {self.masses.shape}, not {array.shape}"
            )

    @staticmethod
    def _check_sum(name: str, array: Array) -> None:
        total = float(array.sum())
        if not abs(total - 1.0) <= SUM_TOLERANCE:
            raise InvalidPlanProblem(f"{name} sum to {total}, not to 1")

    @property
    def size(self) -> int:
        """Number n of symbols."""
        return self.masses.size

    @cached_property
    def forbidden_keys(self) -> Indices:
        """Sorted numbers x n + y of the forbidden pairs."""
        if self.forbidden is None:
            return np.zeros(0, np.int64)
        rows, columns = self.forbidden
        keys = rows.astype(np.int64) * self.size + columns.astype(np.int64)
        return np.unique(keys)

    @cached_property
    def forbidden_rows_of(self) -> tuple[Indices, Indices]:
        """Forbidden rows of column y: ``rows[starts[y]:starts[y + 1]]``, as (starts, rows)."""
        rows, columns = np.divmod(self.forbidden_keys, self.size)
        order = np.argsort(columns, kind="stable")
        starts = np.searchsorted(columns[order], np.arange(self.size + 1))
        return starts, rows[order]

    def forbidden_within(
        self, inputs: Indices, outputs: Indices
    ) -> tuple[Indices, Indices]:
        """Places among some inputs and some outputs, both ascending, of the forbidden pairs between
        them, in order. All others are not looked at: there may be millions.
        """
        starts, rows = self.forbidden_rows_of
        counts = starts[outputs + 1] - starts[outputs]
        columns = np.repeat(np.arange(len(outputs)), counts)
        before = np.cumsum(counts) - counts
        of_outputs = rows[np.arange(len(columns)) + (starts[outputs] - before)[columns]]
        place = np.full(self.size, -1)
        place[inputs] = np.arange(len(inputs))
        places = place[of_outputs]
        inside = places >= 0
        places, columns = places[inside], columns[inside]
        order = np.lexsort((columns, places))
        return places[order], columns[order]

    def is_forbidden(self, rows: Indices, columns: Indices) -> NDArray[np.bool_]:
        """Which of the pairs (rows[i], columns[i]) are forbidden."""
        keys = self.forbidden_keys
        if not len(keys):
            return np.zeros(len(rows), np.bool_)
        wanted = rows * self.size + columns
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return keys[places] == wanted

    def least_flows(self, x: Indices, y: Indices) -> Array | None:
        """What must stay of the input of each pair (x[i], y[i]); None where nothing must."""
        if self.stay is None:
            return None
        mass = self.masses[x]
        most = mass if self.targets is None else np.minimum(mass, self.targets[y])
        # What takes all of a row or of a column is exact anyway.
        least = np.minimum((self.stay[x] + self.reserve) * mass, most)
        return np.where((x == y) & (self.stay[x] > 0.0), least, 0.0)

    def strata_members(self) -> list[Indices]:
        """Symbols of each stratum; all of them where there are no strata."""
        if self.strata is None:
            return [np.arange(self.size)]
        order = np.argsort(self.strata, kind="stable")
        ends = np.flatnonzero(np.diff(self.strata[order])) + 1
        return list(np.split(order, ends))
