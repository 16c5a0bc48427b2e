"""A bound for many symbols in little time: how much must move at all.

Whatever moves costs at least delta, the least cost between two different symbols. Under the costs 0
and delta symbols of equal limited values are alike, so the plan's rows and columns can be summed by
classes of such symbols. A small program of the classes,

    minimise  sum_c m_c
    over      w_c + m_c = Q_c,   lower Q_c <= t_c w_c + tau_c <= upper Q_c,
              sum_c (t_c w_c + tau_c) = sum_c t_c P_c,
              least t m_c <= tau_c <= largest t m_c,   0 <= w_c <= what may stay of c

with masses P_c, targets Q_c, what stays w_c, and what comes from elsewhere, of mass m_c and summed
values tau_c, gives multipliers mu of the last equation and lam_c of the ranges. With u_x = mu . t_x
the bound of `pricing` then follows from the multipliers alone, whether or not they are optimal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from solvers.errors import BackendFailure
from solvers.plans.costs import Costs, MatrixCosts
from solvers.plans.pricing import CHUNK, ROUNDING, OutputPrices, range_terms
from solvers.plans.problem import PlanProblem
from solvers.plans.program import Group, Prices
from solvers.points import Array
from solvers.programs.highs import Program, SparseRows, solve_program

MOST_CLASSES = 30_000
"""Classes, times limits of an output, that the program takes: a second or two."""

MATRIX_ROWS = 512
"""Rows of a matrix of costs that are searched at once."""


class Ceiling(NamedTuple):
    """A lower bound, and the multipliers of outputs that prove it; None where it is 0."""

    bound: float
    proof: OutputPrices | None = None


def ceiling(problem: PlanProblem, group: Group) -> Ceiling:
    """A lower bound on the cost of every plan of a stratum with targets; 0 where it has none.

    Parameters
    ----------
    group : Group
        All symbols of the stratum.
    """
    ranges = group.ranges
    values = ranges.values
    if group.is_free or not len(values):
        return Ceiling(0.0)
    least = least_move(problem.costs)
    classes, first, kind = np.unique(
        values.T, axis=0, return_index=True, return_inverse=True
    )
    if least <= 0.0 or classes.size > MOST_CLASSES:
        return Ceiling(0.0)
    kind = kind.ravel()
    size = len(first)
    targets = np.zeros(problem.size)
    targets[group.outputs] = group.targets
    targets = targets[group.inputs]
    masses, wanted, stays = (
        np.bincount(kind, one, size).astype(np.float64)
        for one in (group.masses, targets, np.minimum(group.masses, targets))
    )
    used = np.flatnonzero(wanted > 0.0)
    try:
        mu, lam = _multipliers(group, classes.T, masses, wanted, stays)
    except BackendFailure:
        return Ceiling(0.0)
    mu, lam = least * mu, least * lam
    bound, prices, lam = _bound(group, classes.T, masses, wanted, mu, lam, least, used)
    if bound <= 0.0:
        return Ceiling(0.0)
    # Symbols of a class have its prices: every output has a class that is used.
    place = np.full(problem.size, -1)
    place[group.inputs] = np.searchsorted(used, kind)
    of_output = place[group.outputs]
    compared = np.zeros((len(ranges.compared), len(group.outputs)))
    forms = np.zeros((len(ranges.penalty.forms), len(group.outputs)))
    proof = OutputPrices(prices[of_output], lam[:, of_output], compared, forms)
    return Ceiling(bound, proof)


def least_move(costs: Costs) -> float:
    """No move between different symbols costs less."""
    if isinstance(costs, MatrixCosts):
        found = math.inf
        for start in range(0, costs.size, MATRIX_ROWS):
            rows = costs.matrix[start : start + MATRIX_ROWS].copy()
            places = np.arange(len(rows))
            rows[places, places + start] = math.inf
            found = min(found, float(rows.min()))
        return found if math.isfinite(found) else 0.0
    if len(np.unique(costs.codes, axis=0)) < costs.size:
        return 0.0
    # A column may count twice, by whether it changes and by how far: both change together.
    steps: dict[bytes, float] = {}
    for j, places in enumerate(costs.positions):
        symbols = np.unique(costs.codes[:, j])
        if len(symbols) < 2:
            continue
        step = float(costs.weights[j])
        if places is not None:
            step = float(np.diff(np.sort(places[symbols])).min())
        column = costs.codes[:, j].tobytes()
        steps[column] = steps.get(column, 0.0) + step
    return min(steps.values(), default=0.0)


def _multipliers(
    group: Group, values: Array, masses: Array, wanted: Array, stays: Array
) -> tuple[Array, Array]:
    """mu (r,) and lam (r, classes) of the program of the classes, for moves of cost 1."""
    ranges = group.ranges
    r, c = values.shape
    infinite = np.full(c, math.inf)
    none = np.zeros(c)
    # Variables: w, m, and tau of every range.
    costs = np.concatenate([none, np.ones(c), np.zeros(r * c)])
    lower = np.concatenate([none, none, np.zeros(r * c)])
    upper = np.concatenate([stays, infinite, np.full(r * c, math.inf)])
    rows = SparseRows()
    for k in range(c):
        rows.add([k, c + k], [1.0, 1.0], wanted[k], wanted[k])
    for i in range(r):
        largest, smallest = float(values[i].max()), float(values[i].min())
        for k in range(c):
            tau = (2 + i) * c + k
            most = ranges.true_upper[i] * wanted[k] if wanted[k] > 0.0 else math.inf
            rows.add(
                [k, tau],
                [values[i, k], 1.0],
                ranges.true_lower[i] * wanted[k],
                most,
            )
            rows.add([tau, c + k], [1.0, -largest], -math.inf, 0.0)
            rows.add([tau, c + k], [1.0, -smallest], 0.0, math.inf)
    for i in range(r):
        tau = range((2 + i) * c, (3 + i) * c)
        total = float(values[i] @ masses)
        rows.add([*range(c), *tau], [*values[i], *np.ones(c)], total, total)
    found = solve_program(Program(costs, lower, upper, rows))
    of_ranges = found.prices[c : c + 3 * r * c].reshape(r, c, 3)[:, :, 0]
    return found.prices[-r:], of_ranges


def _bound(
    group: Group,
    values: Array,
    masses: Array,
    wanted: Array,
    mu: Array,
    lam: Array,
    least: float,
    used: np.ndarray,
) -> tuple[float, Array, Array]:
    """The bound of these multipliers, less what rounding may have added; prices of the sums and
    multipliers of the ranges of each class that is used.
    """
    ranges = group.ranges
    # An infinite end proves nothing.
    limited = np.isinf(ranges.true_upper)[:, None]
    lam = np.where(limited, np.maximum(lam, 0.0), lam)[:, used]
    nothing = np.zeros(0)
    prices = Prices(nothing, nothing, lam, nothing)
    inputs = mu @ values
    # What stays at class c, and what comes to it from any other class.
    cheapest = -inputs[used] - (values[:, used] * lam).sum(axis=0)
    step = max(1, CHUNK // len(inputs))
    for start in range(0, len(used), step):
        part = slice(start, start + step)
        gains = (inputs[:, None] + values.T @ lam[:, part]).max(axis=0)
        cheapest[part] = np.minimum(cheapest[part], least - gains)
    bound = float(masses @ inputs)
    of_sums = range_terms(prices, ranges) + cheapest
    bound += float(wanted[used] @ of_sums)
    largest = values.max(axis=1)
    ends = np.where(np.isinf(ranges.true_upper), 0.0, ranges.true_upper)
    terms = np.maximum(largest, ends) @ (np.abs(lam).max(axis=1) + np.abs(mu))
    mass = float(masses.sum() + wanted.sum())
    bound -= ROUNDING * mass * (least + 2.0 * float(terms))
    return max(bound, 0.0), of_sums, lam
