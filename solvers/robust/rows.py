"""Rows of an uncertain set in assignment problems: which ones columns break, and what they prove.

The columns w_y(x) = q(x, y) / p_x of an assignment shall keep the rows a.w >= 0 of an
`UncertainSet`, one for each choice of coefficients. `separated` finds the rows that given columns
break most, and pulls the columns into the set; `priced` charges for rows with multipliers, so that
`assignment.lower_bound` bounds every assignment that keeps them.

For example, a column w = (1, 0) breaks the row a = (-0.1, 1.1). With the multiplier 2 the cost of
the first mass in that column grows by 0.2 / p_1, that of the second falls by 2.2 / p_2: whoever
keeps the row pays no more than before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.assignment import assignment
from solvers.assignment.assignment import Assignment, Multipliers
from solvers.points import Array
from solvers.sets.uncertain import UncertainSet

VIOLATED = 1e-10
"""Share of its mass by which a column must break a row for the row to be added: what the simplex
method leaves."""


def separated(
    problem: Assignment, uncertain: UncertainSet, shares: Array, margin: float
) -> tuple[float, Array, list[tuple[int, Array]]]:
    """Find the rows that columns of the shares (n, n) break, and pull the columns into the set.

    Returns
    -------
    worst : float
        Share of columns that tell nothing to mix in, so that all columns are members; 0 if they
        are already.
    pulled : (n, n) array
        The shares with so much mixed in.
    broken : list of (column, rows)
        The rows that each column breaks.
    """
    masses = problem.masses @ shares
    # Columns with next to no mass are left out: their direction is rounding.
    used = np.flatnonzero(masses > VIOLATED * problem.masses)
    columns = (shares[:, used] / masses[used]).T
    excess = uncertain.excess(columns * problem.masses) + margin
    outside = excess[excess > 0.0]
    # The excess is convex, and margin - room at columns that tell nothing.
    shares_of_nothing = outside / (outside + uncertain.room - margin)
    worst = float(shares_of_nothing.max(initial=0.0))
    # Half of what counts as violated, so that no violated column is left without a row.
    limit = margin - 0.5 * VIOLATED * uncertain.room
    broken: list[tuple[int, Array]] = []
    for y, w in zip(used.tolist(), columns, strict=True):
        cuts = uncertain.cuts(w)
        below = cuts @ w < limit
        if below.any():
            broken.append((y, cuts[below]))
    return worst, (1.0 - worst) * shares + worst * masses, broken


def priced(
    problem: Assignment,
    uncertain: UncertainSet,
    rows: Array,
    columns: NDArray[np.intp],
    multipliers: Multipliers,
) -> Assignment:
    """The problem whose costs charge for rows (k, n), row i for column ``columns[i]`` alone.

    With multipliers nu >= 0 these rows contribute nothing positive to the cost of any assignment
    that keeps them. So a lower bound of the charged problem is one for the problem with the rows.
    Costs are rounded downwards.
    """
    nu = np.nan_to_num(multipliers.cuts, nan=0.0, posinf=0.0)
    prices = np.zeros_like(problem.cost)
    sizes = np.zeros_like(problem.cost)
    np.add.at(prices.T, columns, nu[:, None] * rows)
    np.add.at(sizes.T, columns, nu[:, None] * (np.abs(rows) + uncertain.row_error))
    # Rows of the set itself may lie this far from those that sorting found.
    shift = np.outer(nu * uncertain.row_error, np.ones(problem.n))
    np.add.at(prices.T, columns, shift)
    p = problem.masses[:, None]
    # Sums of len(nu) + 8 terms, each of them a product of rounded numbers.
    error = 4.0 * assignment.UNIT * (len(nu) + 8) * (np.abs(problem.cost) + sizes / p)
    return replace(problem, cost=problem.cost - prices / p - error)
