"""Blind draws: plans that need no program, for where the time is over.

Inputs of equal limited values are a class. Every output takes the same share of each class as all
outputs do together, so its means are those of the group. Which inputs of a class go where is free:
one after the other goes to its nearest outputs. Where the sums of outputs are free, all inputs go
to one output. A plan of n inputs in k classes to o outputs has about n + k o pairs.

*Restrictions.* What must stay stays, and only the rest is drawn. A forbidden flow changes places
with others of its class (`_exchanged`). Where these are not enough, it is divided among other
outputs, each of which gives as much of its mixture in return (`_divided`). Outputs may then have
means of their own, so the limits decide whether that is a plan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solvers.plans.costs import Indices
from solvers.plans.generation import Flows, least_flows
from solvers.plans.problem import PlanProblem
from solvers.plans.program import Group, Prices, places_of
from solvers.points import Array

MOST_PAIRS = 5_000_000
"""Pairs of a group at most: looking at these takes about half a second. Blocks that cannot be cut
for their many secrets have some hundred symbols."""

CANDIDATES = 64
"""Outputs of the largest masses among which the one for all inputs is chosen."""

SPREAD = 8
"""Outputs among which a forbidden flow is divided: all to one would change its means too much."""

TINY = float(np.finfo(np.float64).tiny)
"""A positive divisor of zeros."""

_Flows: TypeAlias = tuple[Indices, Indices, Array]
"""Places of inputs and of outputs, and flows."""


def blind_draw(
    problem: PlanProblem, group: Group, rng: np.random.Generator
) -> Flows | None:
    """A plan of a group whose outputs all have its means; None where the limits or restrictions
    allow none, or the group is too large.
    """
    means = group.ranges.limited @ group.masses / group.masses.sum()
    if group.ranges.usage(means[:, None])[0] > 1.0:
        return None
    drawn = group
    staying = _staying(problem, group)
    if staying is not None:
        own, places, kept = staying
        masses, targets = group.masses.copy(), group.targets.copy()
        masses[own] -= kept
        if not group.is_free:
            targets[places] -= kept
        if min(masses.min(), targets.min()) < 0.0:
            return None
        drawn = replace(group, masses=masses, targets=targets)
    if group.is_free:
        found = _to_one(problem, drawn)
    else:
        found = _near_first(problem, drawn, rng)
    if found is None:
        return None
    rows, columns, flows = found
    if staying is not None or problem.forbidden is not None:
        restricted = _restricted(problem, group, found, staying)
        if restricted is None:
            return None
        rows, columns, flows = restricted
    x, y = group.inputs[rows], group.outputs[columns]
    cost = float(problem.costs.pairs(x, y) @ flows)
    cost += group.ranges.penalty.price * group.ranges.penalty.of(rows, columns, flows)
    return Flows(group, x, y, flows, cost, -np.inf, _no_prices(group))


def _staying(problem: PlanProblem, group: Group) -> _Flows | None:
    """What must stay; None where nothing must."""
    x, rows, columns = np.intersect1d(group.inputs, group.outputs, return_indices=True)
    kept = least_flows(problem, x, x)
    if kept is None or not kept.any():
        return None
    return rows, columns, kept


def _restricted(
    problem: PlanProblem, group: Group, drawn: _Flows, staying: _Flows | None
) -> _Flows | None:
    """What is drawn and what must stay, with other flows in the place of forbidden ones; None where
    that breaks a limit, or the group is too large.
    """
    n, o = len(group.inputs), len(group.outputs)
    if n * o > MOST_PAIRS:
        return None
    rows, columns, flows = drawn
    free = np.zeros((n, o))
    free[rows, columns] = flows
    allowed = np.ones((n, o), np.bool_)
    x, y = np.divmod(problem.forbidden_keys, problem.size)
    inside = np.isin(x, group.inputs) & np.isin(y, group.outputs)
    places = places_of(group.inputs, x[inside]), places_of(group.outputs, y[inside])
    allowed[places] = False
    # Shares of each output that have changed places.
    moved = np.zeros(o)
    classes = _classes(group)
    for row, column in zip(*(place.tolist() for place in places), strict=True):
        _exchanged(free, allowed, classes, row, column)
        if free[row, column] and not _divided(free, allowed, moved, row, column):
            return None
    whole = free
    if staying is not None:
        rows, columns, flows = staying
        whole[rows, columns] += flows
    sums = whole.sum(axis=0)
    used = sums > 0.0
    means = group.ranges.limited @ whole[:, used] / sums[used]
    if (group.ranges.usage(means) > 1.0).any():
        return None
    rows, columns = np.nonzero(whole)
    return rows, columns, whole[rows, columns]


def _exchanged(
    free: Array,
    allowed: NDArray[np.bool_],
    classes: Indices,
    row: int,
    column: int,
) -> None:
    """Let others of its class have the places of a flow, and it theirs: no mean changes."""
    others = np.flatnonzero((classes == classes[row]) & allowed[:, column])
    possible = np.where(allowed[row], free[others], 0.0)
    for place in np.argsort(-possible, axis=None, kind="stable").tolist():
        which, output = divmod(place, possible.shape[1])
        part = min(possible[which, output], free[row, column])
        if part <= 0.0:
            return
        free[others[which], output] -= part
        free[others[which], column] += part
        free[row, output] += part
        free[row, column] -= part


def _divided(
    free: Array, allowed: NDArray[np.bool_], moved: Array, row: int, column: int
) -> bool:
    """Divide a flow among other outputs, each of which gives as much of its mixture in return;
    whether they have enough of it.
    """
    sums = free.sum(axis=0)
    mass = free[row, column]
    possible = np.flatnonzero(allowed[row] & (sums > 0.0))
    if not len(possible):
        return False
    # The outputs that have changed least so far.
    others = possible[np.argsort(moved[possible], kind="stable")[:SPREAD]]
    part = mass / len(others)
    for other in others.tolist():
        mixture = np.where(allowed[:, column], free[:, other], 0.0)
        total = mixture.sum()
        if total <= part:
            return False
        given = mixture * (part / total)
        free[:, other] -= given
        free[:, column] += given
        free[row, other] += part
        moved[other] += part / sums[other]
    free[row, column] = 0.0
    moved[column] += mass / sums[column]
    return True


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
    # Where everything stays there is nothing to draw.
    shares = group.targets / max(float(group.targets.sum()), TINY)
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


def _classes(group: Group) -> Indices:
    """The class of each input: inputs of equal limited values are one."""
    if group.ranges.is_empty:
        return np.zeros(len(group.inputs), np.int64)
    _, classes = np.unique(group.ranges.limited.T, axis=0, return_inverse=True)
    return classes.ravel()


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
