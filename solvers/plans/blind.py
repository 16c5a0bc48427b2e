"""Blind draws: plans that need no program, for where the time is over.

Inputs of equal limited values are a class. Every output takes the same share of each class as all
outputs do together, so its means are those of the group. Which inputs of a class go where is free:
one after the other goes to its nearest outputs. Where the sums of outputs are free, all inputs go
to one output. A plan of n inputs in k classes to o outputs has about n + k o pairs.
"""

from __future__ import annotations

import numpy as np

from solvers.plans.costs import Indices
from solvers.plans.generation import Flows
from solvers.plans.problem import PlanProblem
from solvers.plans.program import Group, Prices
from solvers.points import Array

MOST_PAIRS = 5_000_000
"""Pairs of a group at most: looking at these takes about half a second. Blocks that cannot be cut
for their many secrets have some hundred symbols."""

CANDIDATES = 64
"""Outputs of the largest masses among which the one for all inputs is chosen."""


def blind_draw(
    problem: PlanProblem, group: Group, rng: np.random.Generator
) -> Flows | None:
    """A plan of a group whose outputs all have its means; None where the limits or restrictions
    allow none, or the group is too large.
    """
    means = group.ranges.limited @ group.masses / group.masses.sum()
    if group.ranges.usage(means[:, None])[0] > 1.0:
        return None
    stay = problem.stay
    if stay is not None and (stay[group.inputs] > 0.0).any():
        return None
    if group.is_free:
        found = _to_one(problem, group)
    else:
        found = _near_first(problem, group, rng)
    if found is None:
        return None
    rows, columns, flows = found
    x, y = group.inputs[rows], group.outputs[columns]
    if problem.is_forbidden(x, y).any():
        return None
    cost = float(problem.costs.pairs(x, y) @ flows)
    cost += group.ranges.penalty.price * group.ranges.penalty.of(rows, columns, flows)
    return Flows(group, x, y, flows, cost, -np.inf, _no_prices(group))


def _to_one(problem: PlanProblem, group: Group) -> tuple[Indices, Indices, Array]:
    """All inputs to the output that costs least, among those of the largest masses."""
    some = np.argsort(-group.targets, kind="stable")[:CANDIDATES]
    costs = problem.costs.block(group.inputs, group.outputs[some])
    best = some[np.argmin(group.masses @ costs)]
    n = len(group.inputs)
    return np.arange(n), np.full(n, best), group.masses


def _near_first(
    problem: PlanProblem, group: Group, rng: np.random.Generator
) -> tuple[Indices, Indices, Array] | None:
    """One input after the other to the nearest outputs that want more of its class; None where
    that takes too long.
    """
    n, o = len(group.inputs), len(group.outputs)
    if n * o > MOST_PAIRS:
        return None
    classes = np.zeros(n, np.int64)
    if not group.ranges.is_empty:
        _, classes = np.unique(group.ranges.limited.T, axis=0, return_inverse=True)
        classes = classes.ravel()
    shares = group.targets / group.targets.sum()
    wanted = np.bincount(classes, group.masses)[:, None] * shares
    rows: list[Indices] = []
    columns: list[Indices] = []
    flows: list[Array] = []
    for x in rng.permutation(n).tolist():
        left = wanted[classes[x]]
        costs = problem.costs.block(group.inputs[x : x + 1], group.outputs)[0]
        near = np.argsort(costs, kind="stable")
        near = near[left[near] > 0.0]
        filled = np.minimum(np.cumsum(left[near]), group.masses[x])
        taken = np.diff(filled, prepend=0.0)
        used = taken > 0.0
        left[near] -= taken
        rows.append(np.full(int(used.sum()), x))
        columns.append(near[used])
        flows.append(taken[used])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(flows)


def _no_prices(group: Group) -> Prices:
    """Prices that say nothing."""
    o = len(group.outputs)
    return Prices(
        np.zeros(len(group.inputs)),
        np.zeros(o),
        np.zeros((len(group.ranges.values), o)),
        np.zeros((len(group.ranges.compared), o)),
        np.zeros((len(group.ranges.penalty.forms), o)),
    )
