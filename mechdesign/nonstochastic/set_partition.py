"""Partitions into cells that need not be contiguous: exact for few points, a heuristic for many."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.cell_costs import Loss
from mechdesign.nonstochastic.milp import Program, Rows, solve

PRICE_TOLERANCE = 1e-9
"""Reduced costs (in units of the dearest cell) above minus this are not worth another round."""

COLUMNS_PER_ROUND = 400
"""Candidates added to the linear program at a time."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def candidate_cells(count: int, smallest: int, limit: int) -> int:
    """How many sets have `smallest` to 2 `smallest` - 1 of `count` points; above `limit`, anything above it.

    Larger cells are never needed: splitting one in two does not raise the loss. With fewer than
    2 `smallest` points there is one cell.
    """
    if count < 2 * smallest:
        return 1
    total, sets = 0, 1
    for size in range(1, 2 * smallest):
        sets = sets * (count - size + 1) // size
        # Binomials grow up to count / 2, and smallest lies below that.
        if size <= smallest and sets > limit:
            return limit + 1
        total += sets if size >= smallest else 0
        if total > limit:
            return limit + 1
    return total


def _subsets(count: int, size: int) -> Indices:
    flat = itertools.chain.from_iterable(itertools.combinations(range(count), size))
    return np.fromiter(flat, dtype=np.int64, count=math.comb(count, size) * size).reshape(-1, size)


def _costs(rows: Floats, mass: Floats, members: Indices, loss: Loss) -> Floats:
    """The loss of each candidate cell: members (c, size) -> (c,)."""
    points, weights = rows[members], mass[members]
    if loss == "worst":
        return (points[..., 0].max(axis=1) - points[..., 0].min(axis=1)) / 2
    shares = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    if loss == "squared":
        centre = (shares[..., None] * points).sum(axis=1) / shares.sum(axis=1)[:, None]
        return (weights * ((points - centre[:, None]) ** 2).sum(axis=2)).sum(axis=1)
    distances = np.abs(points[:, :, None, 0] - points[:, None, :, 0])
    return (weights[:, :, None] * distances).sum(axis=1).min(axis=1)


class _Candidates:
    """Every set of k to 2k - 1 points, with its loss scaled to at most 1."""

    def __init__(self, rows: Floats, mass: Floats, smallest: int, loss: Loss) -> None:
        count = rows.shape[0]
        self.points = count
        self.sets = [_subsets(count, size) for size in range(smallest, min(2 * smallest - 1, count) + 1)]
        costs = np.concatenate([_costs(rows, mass, members, loss) for members in self.sets])
        self.scale = float(costs.max()) or 1.0
        self.costs = costs / self.scale
        self.firsts = np.cumsum([0, *(len(m) for m in self.sets)])

    def members(self, column: int) -> Indices:
        """The points of one candidate."""
        group = int(np.searchsorted(self.firsts, column, side="right")) - 1
        return self.sets[group][column - self.firsts[group]]

    def column(self, cell: Indices) -> int:
        """The candidate that is this set."""
        for members, first in zip(self.sets, self.firsts.tolist(), strict=False):
            if members.shape[1] == cell.size:
                return int(first) + int(np.flatnonzero((members == np.sort(cell)).all(axis=1))[0])
        raise SolverFailure(f"a cell of {cell.size} points is no candidate; nothing is returned")

    def reduced(self, duals: Floats) -> Floats:
        """Costs less the duals of the points covered."""
        return self.costs - np.concatenate([duals[members].sum(axis=1) for members in self.sets])

    def program(self, columns: Indices, *, integer: bool) -> Program:
        """Cover every point exactly once with these candidates."""
        cells = [self.members(int(c)) for c in columns]
        owners = np.repeat(np.arange(columns.size), [c.size for c in cells])
        points = np.concatenate(cells)
        cover = Rows()
        for point in range(self.points):
            group = owners[points == point]
            cover.add(group.tolist(), [1.0] * group.size, 1.0, 1.0)
        flags = np.ones(columns.size, dtype=np.bool_) if integer else None
        return Program(self.costs[columns], np.zeros(columns.size), np.ones(columns.size), cover, flags)


def best_cells(
    rows: Floats, mass: Floats, smallest: int, loss: Loss, time_limit: float
) -> tuple[list[Indices], float, bool]:
    """The cells of least loss, a bound on the distortion, and whether they are optimal.

    The linear program is solved by columns; then every candidate whose reduced cost exceeds the
    distance between its bound and the best partition known can be left out, and few remain for the
    branch and bound.
    """
    if loss == "worst":
        raise InputError("loss 'worst' is solved by 'dp', which is optimal for it; use method 'dp' or 'auto'")
    if rows.shape[0] < 2 * smallest:
        every_point: Indices = np.arange(rows.shape[0], dtype=np.int64)[None]
        return [every_point[0]], float(_costs(rows, mass, every_point, loss)[0]) / float(mass.sum()), True
    every = _Candidates(rows, mass, smallest, loss)
    known = np.array(sorted(every.column(cell) for cell in mdav(rows, smallest)))
    active, duals, floor = _by_columns(every, known, rows.shape[0] // smallest)
    known = _search(every, active, known, time_limit)[0]
    best = float(every.costs[known].sum())
    kept = np.union1d(np.flatnonzero(every.reduced(duals) <= best - floor + PRICE_TOLERANCE), known)
    known, bound, optimal = _search(every, kept, known, time_limit)
    cells = [every.members(int(c)) for c in known]
    return cells, max(floor, bound, 0.0) * every.scale / float(mass.sum()), optimal


def _by_columns(every: _Candidates, known: Indices, most_cells: int) -> tuple[Indices, Floats, float]:
    """Columns, duals and a proven bound of the linear program over all candidates."""
    cheapest = np.argsort(every.costs, kind="stable")[:COLUMNS_PER_ROUND]
    active = np.union1d(known, cheapest)
    while True:
        duals = solve(every.program(active, integer=False)).duals
        reduced = every.reduced(duals)
        cheap = np.argsort(reduced, kind="stable")[:COLUMNS_PER_ROUND]
        fresh = np.setdiff1d(cheap[reduced[cheap] < -PRICE_TOLERANCE], active)
        if not fresh.size:
            # The solver's own tolerance can leave an active column below zero; the bound pays for it:
            # at most most_cells columns are used, so the duals prove this, whatever their rounding.
            return active, duals, float(duals.sum()) + most_cells * min(0.0, float(reduced.min()))
        active = np.union1d(active, fresh)


def _search(
    every: _Candidates, columns: Indices, known: Indices, time_limit: float
) -> tuple[Indices, float, bool]:
    """Branch and bound over some of the candidates, from a partition that is known."""
    start = np.isin(columns, known).astype(np.float64)
    found = solve(every.program(columns, integer=True), time_limit=time_limit, start=start)
    return columns[np.rint(found.x) == 1], found.bound, found.optimal


def mdav(rows: Floats, smallest: int) -> list[Indices]:
    """Maximum distance to average vector (Domingo-Ferrer and Torra 2005): cells of `smallest`, two at a time.

    Take the point farthest from the centroid with its nearest neighbours, then the same around the
    point farthest from it, until fewer than 3 `smallest` points are left. A heuristic: it has no
    bound on its distance to the optimum.
    """
    left: Indices = np.arange(rows.shape[0], dtype=np.int64)
    cells: list[Indices] = []

    def take(centre: Floats) -> Floats:
        nonlocal left
        near = np.argsort(_squared(rows[left], centre), kind="stable")[:smallest]
        cells.append(left[near])
        left = np.setdiff1d(left, left[near], assume_unique=True)
        return centre

    while left.size >= 3 * smallest:
        far = rows[left[int(_squared(rows[left], rows[left].mean(axis=0)).argmax())]]
        take(far)
        take(rows[left[int(_squared(rows[left], far).argmax())]])
    if left.size >= 2 * smallest:
        take(rows[left[int(_squared(rows[left], rows[left].mean(axis=0)).argmax())]])
    if left.size:
        cells.append(left)
    return cells


def _squared(rows: Floats, centre: Floats) -> Floats:
    return ((rows - centre) ** 2).sum(axis=1)
