"""The epsilon-identifiable map of least distortion: cells of at least n 2^-epsilon symbols.

Farokhi and Ding 2020 (brute-force guessing) measure such maps; finding the best one is optimal
microaggregation (theory.md, section 7). In one dimension with equal weights contiguous cells are
optimal and a dynamic program is exact; elsewhere a set-partition program or a named heuristic.
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
from mechdesign.nonstochastic.cell_costs import Loss, check_loss
from mechdesign.nonstochastic.levels import smallest_cell
from mechdesign.nonstochastic.microaggregation import best_edges
from mechdesign.nonstochastic.set_partition import best_cells, candidate_cells, mdav

PartitionMethod = Literal["auto", "dp", "milp", "mdav"]

TIME_LIMIT = 60.0
"""Seconds for a MILP unless told otherwise."""

LARGEST_COLUMNS = 600_000
"""Candidate cells of the set-partition program; n = 24 with cells of 4 to 7 has 530,000."""

MOST_DISTANCES = 200_000_000
"""Points squared by the smallest cell, for the heuristic (some 10 s): 20,000 points in pairs."""

LARGEST_VALUE = 1e120
"""Squares of differences of larger points, summed, could leave the doubles."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """An epsilon-identifiable partition of n symbols.

    Parameters
    ----------
    cell_of : (n,) integers
        The cell of each symbol, in the order given.
    sizes : (cells,) integers
        Number of symbols of each cell; none below `smallest`.
    smallest
        The least integer that is at least n 2^-epsilon.
    representatives : (cells, d) floats
        What is released for each cell.
    distortion
        The weighted mean loss, or the largest for loss "worst".
    bound
        Proven: no allowed partition has less (0 where nothing is proven).
    restriction
        Empty, or to which partitions `optimal` is restricted.
    """

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
    try:
        rows = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("points must be numbers, all rows of one length") from None
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
    mass = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
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
