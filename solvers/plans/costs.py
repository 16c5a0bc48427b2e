"""Costs d(x, y) of a move from one symbol to another, by blocks of rows and columns.

`MatrixCosts` holds a matrix. `CellCosts` holds n symbols of c cells each, such as the distinct rows
of a table, and needs memory for n c codes only: a cell that differs costs the weight of its column,
or, in a column with positions, the weight times the distance as a share of the column's span.

*Blocks as products.* Let phi(x) have one coordinate a symbol of every column without positions.
Then the weight of the cells that agree is phi(x) . W phi(y), a product of matrices. It takes one
pass over the block, where comparing the columns one by one takes one each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidPlanProblem
from solvers.points import Array

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


Costs = CellCosts | MatrixCosts
