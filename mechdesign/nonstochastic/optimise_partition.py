"""The epsilon-identifiable map of least distortion: cells of at least n 2^-epsilon symbols.

Farokhi and Ding 2020 (brute-force guessing) measure such maps; finding the best one is optimal
microaggregation (theory.md, section 7). In one dimension with equal weights contiguous cells are
optimal and a dynamic program is exact; elsewhere cells need not be contiguous, and a set-partition
program is exact for few points, a named heuristic serves for many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.domains import doubles
from mechdesign.nonstochastic.levels import smallest_cell
from mechdesign.nonstochastic.microaggregation import Loss, best_edges, check_loss
from mechdesign.nonstochastic.solving import solution_of
from solvers.programs.highs import Program, SparseRows

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
        cover = SparseRows()
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
        duals = solution_of(every.program(active, integer=False)).duals
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
    found = solution_of(every.program(columns, integer=True), time_limit=time_limit, start=start)
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


PartitionMethod = Literal["auto", "dp", "milp", "mdav"]

TIME_LIMIT = 60.0
"""Seconds for a MILP unless told otherwise."""

LARGEST_COLUMNS = 600_000
"""Candidate cells of the set-partition program; n = 24 with cells of 4 to 7 has 530,000."""

MOST_DISTANCES = 200_000_000
"""Points squared by the smallest cell, for the heuristic (some 10 s): 20,000 points in pairs."""

LARGEST_VALUE = 1e120
"""Squares of differences of larger points, summed, could leave the doubles."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """An epsilon-identifiable partition of n symbols."""

    cell_of: Indices
    sizes: Indices
    smallest: int
    representatives: Floats
    distortion: float
    bound: float
    method: str
    optimal: bool
    restriction: str = ""

    @property
    def leakage(self) -> float:
        """L0(X;Y) = log2(n / smallest cell) in bits: the budget kept."""
        return math.log2(int(self.sizes.sum()) / int(self.sizes.min()))

    @property
    def maximal_leakage(self) -> float:
        """L*(X -> Y) = log2(n - smallest cell + 1) in bits (theory.md, section 6)."""
        return math.log2(int(self.sizes.sum()) - int(self.sizes.min()) + 1)


def identifiable_partition(
    points: Any,
    epsilon: object,
    *,
    weights: Sequence[float] | None = None,
    loss: Loss = "squared",
    method: PartitionMethod = "auto",
    time_limit: float = TIME_LIMIT,
) -> Partition:
    """Partition symbols into cells of at least n 2^-epsilon with least distortion.

    Parameters
    ----------
    points : (n,) or (n, d) array
        One row for each symbol; equal rows are different symbols (records), as in microaggregation.
    epsilon
        In bits.
    weights : (n,) non-negative
        How much the loss of each symbol counts; equal by default. The size of a cell counts symbols
        whatever their weights.
    loss
        "squared", or in one dimension "absolute" or "worst".
    method
        - "dp": contiguous cells, one dimension. Optimal for equal weights (and for "worst");
          with unequal weights a restriction, and the result says so.
        - "milp": all cells of smallest to 2 smallest - 1 symbols, by HiGHS; exact, for few symbols.
        - "mdav": the heuristic of maximum distance to the average vector; no proof.
        - "auto": "dp" where it is optimal; else "milp" where small; else "dp" or "mdav".

    Raises
    ------
    InputError
        On NaN, no points, wrong weights, or a method that does not fit the problem.
    """
    rows = _check_points(points)
    check_loss(loss)
    count, dimension = rows.shape
    mass = _check_weights(weights, count)
    if dimension > 1 and loss != "squared":
        raise InputError(f"loss {loss!r} needs points of one dimension, not {dimension}; use 'squared'")
    smallest = smallest_cell(count, epsilon)
    even = loss == "worst" or bool((mass == mass[0]).all())
    chosen = _choose(method, count, dimension, smallest, even)
    bound = 0.0
    if chosen == "dp":
        cells = _contiguous(rows[:, 0], mass, smallest, loss)
        optimal = True
    elif chosen == "milp":
        cells, bound, optimal = best_cells(rows, mass, smallest, loss, time_limit)
    else:
        cells, optimal = mdav(rows, smallest), count < 2 * smallest
    cell_of, sizes = _labels(cells, count)
    if int(sizes.min()) < smallest:
        raise SolverFailure(
            f"a cell has {int(sizes.min())} symbols where {smallest} are needed; nothing is returned"
        )
    representatives, distortion = _price(rows, mass, cells, loss)
    return Partition(
        cell_of=cell_of,
        sizes=sizes,
        smallest=smallest,
        representatives=representatives,
        distortion=distortion,
        bound=distortion if chosen == "dp" and even else min(bound, distortion),
        method=chosen,
        optimal=optimal,
        restriction=""
        if chosen != "dp" or even
        else "contiguous cells only: with unequal weights others can be better",
    )


def _choose(method: str, count: int, dimension: int, smallest: int, even: bool) -> str:
    if method not in ("auto", "dp", "milp", "mdav"):
        raise InputError(f"method ({method!r}) must be auto, dp, milp or mdav")
    small = candidate_cells(count, smallest, LARGEST_COLUMNS) <= LARGEST_COLUMNS
    if method == "auto":
        if dimension == 1 and even:
            return "dp"
        method = "milp" if small else ("dp" if dimension == 1 else "mdav")
    if method == "dp" and dimension > 1:
        raise InputError(f"method 'dp' needs points of one dimension, not {dimension}; use 'milp' or 'mdav'")
    if method == "milp" and not small:
        raise InputError(
            f"{count} symbols in cells of {smallest} and more have over {LARGEST_COLUMNS:,} candidate cells; "
            "use method 'mdav', or 'dp' in one dimension"
        )
    if method == "mdav" and count * count > MOST_DISTANCES * smallest:
        raise InputError(
            f"{count:,} points in cells of {smallest:,} are too many for 'mdav', whose time is their square by the "
            "size of a cell; take a smaller epsilon, or parts of the points"
        )
    return method


def _check_points(points: Any) -> Floats:
    rows = doubles("points", points)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.size == 0:
        raise InputError("points must be a non-empty array of shape (n,) or (n, d)")
    if not bool(np.isfinite(rows).all()):
        raise InputError("the points contain NaN or an infinite value; drop it first")
    if float(np.abs(rows).max()) > LARGEST_VALUE:
        raise InputError(f"points beyond {LARGEST_VALUE:g} overflow when squared; use a larger unit")
    return rows


def _check_weights(weights: Sequence[float] | None, count: int) -> Floats:
    mass = np.ones(count) if weights is None else doubles("weights", weights)
    if mass.shape != (count,):
        raise InputError(f"{count} points need {count} weights, not {mass.size}")
    if not bool(np.isfinite(mass).all()) or bool((mass < 0).any()) or not bool((mass > 0).any()):
        raise InputError("weights must be finite, not negative, and not all zero")
    return mass


def _contiguous(values: Floats, mass: Floats, smallest: int, loss: Loss) -> list[Indices]:
    order = np.argsort(values, kind="stable")
    edges = best_edges(values[order], mass[order], smallest, loss)
    return [order[a:b] for a, b in itertools.pairwise(edges)]


def _labels(cells: Sequence[Indices], count: int) -> tuple[Indices, Indices]:
    cell_of = np.full(count, -1, dtype=np.int64)
    for label, members in enumerate(cells):
        cell_of[members] = label
    if bool((cell_of < 0).any()) or sum(c.size for c in cells) != count:
        raise SolverFailure("the cells found do not partition the symbols; nothing is returned")
    return cell_of, np.bincount(cell_of, minlength=len(cells))


def _price(rows: Floats, mass: Floats, cells: Sequence[Indices], loss: Loss) -> tuple[Floats, float]:
    """Representatives and distortion, recomputed cell by cell from the points themselves."""
    centres = np.empty((len(cells), rows.shape[1]))
    losses: list[float] = []
    for k, members in enumerate(cells):
        centres[k], cost = cell_loss(rows[members], mass[members], loss)
        losses.append(cost)
    if loss == "worst":
        return centres, max(losses)
    return centres, math.fsum(losses) / math.fsum(mass.tolist())


def cell_loss(rows: Floats, mass: Floats, loss: Loss) -> tuple[Floats, float]:
    """The representative of one cell and its loss (weighted sum, or half the width for "worst")."""
    if loss == "worst":
        low, high = rows[:, 0].min(), rows[:, 0].max()
        return np.array([(low + high) / 2]), float(high - low) / 2
    shares = mass if mass.sum() > 0 else np.ones_like(mass)
    if loss == "squared":
        centre = rows[0] + (shares @ (rows - rows[0])) / shares.sum()
        return centre, float(mass @ ((rows - centre) ** 2).sum(axis=1))
    order = np.argsort(rows[:, 0], kind="stable")
    below = np.cumsum(shares[order])
    centre = rows[order[np.searchsorted(below, below[-1] / 2)]]
    return centre, float(mass @ np.abs(rows - centre).sum(axis=1))
