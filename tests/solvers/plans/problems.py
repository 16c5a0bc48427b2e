"""Random problems of plans, and what a plan must keep, checked from the definitions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solvers.plans import CellCosts, MatrixCosts, PlanLimits, PlanPenalty, PlanProblem
from tests.oracles.plan_program import least_cost_plan


@dataclass(frozen=True)
class Kind:
    """What a random problem has."""

    notion: str = "lip"
    law: str = "kept"
    strata: bool = False
    forbid: bool = False
    stay: bool = False
    groups: int = 1
    cells: bool = True
    penalty: str = "none"


def lifts(rng, n, secrets, masses, strata):
    """P(s | x) / P(s) within each stratum; some rows know their secret for sure."""
    posterior = rng.dirichlet(np.full(secrets, 0.7), size=n).T
    sure = rng.random(n) < 0.4
    posterior[:, sure] = np.eye(secrets)[rng.integers(secrets, size=sure.sum())].T
    out = np.zeros((secrets, n))
    for k in np.unique(strata):
        here = strata == k
        mean = posterior[:, here] @ masses[here] / masses[here].sum()
        known = mean > 0
        out[np.ix_(known, here)] = posterior[np.ix_(known, here)] / mean[known, None]
    return out


def random_problem(seed: int, n: int, kind: Kind) -> PlanProblem:
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.full(n, 2.0))
    strata = rng.integers(2, size=n) if kind.strata else np.zeros(n, np.int64)
    values = np.vstack(
        [
            lifts(rng, n, int(rng.integers(2, 4)), masses, strata)
            for _ in range(kind.groups)
        ]
    )
    sizes = len(values)
    groups = np.arange(sizes) * kind.groups // sizes
    budget = rng.uniform(0.1, 1.2)
    lower, upper, ratio = np.zeros(sizes), np.full(sizes, np.inf), math.inf
    if kind.notion in ("lip", "both"):
        lower, upper = np.full(sizes, np.exp(-budget)), np.full(sizes, np.exp(budget))
    if kind.notion == "upper":
        upper = np.full(sizes, np.exp(budget))
    if kind.notion == "lower":
        lower = np.full(sizes, np.exp(-budget))
    if kind.notion in ("ldp", "both"):
        ratio = math.exp(1.5 * budget)
    if kind.law == "kept":
        targets = masses
    elif kind.law == "other":
        targets = masses * rng.integers(0, 3, size=n)
        for k in np.unique(strata):
            here = strata == k
            if not targets[here].any():
                targets[here] = masses[here]
            targets[here] *= masses[here].sum() / targets[here].sum()
    else:
        targets = None
    if kind.cells:
        codes = rng.integers(0, 3, size=(n, 3))
        weights = rng.dirichlet(np.ones(3))
        costs = CellCosts(codes, weights, [None, None, [0.0, 1.0, 3.0]])
    else:
        costs = MatrixCosts(rng.random((n, n)) * (1 - np.eye(n)))
    forbidden = None
    if kind.forbid:
        chosen = rng.random((n, n)) < 0.25
        np.fill_diagonal(chosen, False)
        forbidden = np.nonzero(chosen)
    stay = rng.uniform(0, 0.6, size=n) if kind.stay else None
    penalty = None
    if kind.penalty != "none":
        # Half the distance of each mean from 1, or the largest of some values.
        forms, numbers = values / 2, np.zeros(len(values), np.int64)
        if kind.penalty == "distance":
            forms = np.vstack([(values - 1) / 2, (1 - values) / 2])
            numbers = np.tile(np.arange(len(values)), 2)
        penalty = PlanPenalty(
            forms=forms, groups=numbers, price=float(rng.uniform(0, 1.5))
        )
    return PlanProblem(
        masses=masses,
        targets=targets,
        costs=costs,
        limits=PlanLimits(
            values=values, lower=lower, upper=upper, groups=groups, ratio=ratio
        ),
        strata=strata if kind.strata else None,
        forbidden=forbidden,
        stay=stay,
        penalty=penalty,
    )


def dense_costs(problem: PlanProblem):
    everything = np.arange(problem.size)
    return problem.costs.block(everything, everything)


def optimum(problem: PlanProblem) -> float | None:
    limits = problem.limits
    forbidden = ()
    if problem.forbidden is not None:
        forbidden = set(
            zip(*(list(map(int, one)) for one in problem.forbidden), strict=True)
        )
    return least_cost_plan(
        problem.masses,
        problem.targets,
        dense_costs(problem),
        limits.values,
        limits.lower,
        limits.upper,
        limits.groups,
        limits.ratio,
        strata=problem.strata,
        forbidden=forbidden,
        stay=problem.stay,
        penalty=None
        if problem.penalty is None
        else (
            problem.penalty.forms,
            problem.penalty.groups.tolist(),
            problem.penalty.price,
        ),
    )


def check(problem: PlanProblem, plan, tolerance: float = 1e-7) -> None:
    """The plan keeps its sums, limits, strata, forbidden pairs and what stays."""
    n = problem.size
    assert (plan.flows > 0).all()
    keys = plan.rows * n + plan.columns
    assert len(np.unique(keys)) == len(keys)
    rows = np.bincount(plan.rows, plan.flows, n)
    columns = np.bincount(plan.columns, plan.flows, n)
    np.testing.assert_allclose(rows, problem.masses, rtol=tolerance)
    if problem.targets is not None:
        np.testing.assert_allclose(columns, problem.targets, rtol=tolerance, atol=0)
    limits = problem.limits
    strata = np.zeros(n) if problem.strata is None else problem.strata
    assert (strata[plan.rows] == strata[plan.columns]).all()
    used = columns > 0
    means = np.array(
        [
            np.bincount(plan.columns, plan.flows * row[plan.rows], n)
            for row in limits.values
        ]
    ).reshape(len(limits.values), n)
    for y in np.flatnonzero(used):
        here = strata == strata[y]
        bound = limits.values[:, here].any(axis=1)
        mean = means[:, y] / columns[y]
        assert (mean[bound] >= limits.lower[bound] * (1 - tolerance)).all()
        assert (mean[bound] <= limits.upper[bound] * (1 + tolerance)).all()
        for group in np.unique(limits.groups):
            of_group = mean[bound & (limits.groups == group)]
            if len(of_group) > 1 and math.isfinite(limits.ratio):
                assert of_group.max() <= limits.ratio * of_group.min() * (1 + tolerance)
    if problem.forbidden is not None:
        forbidden = set((problem.forbidden[0] * n + problem.forbidden[1]).tolist())
        assert not forbidden & set(keys.tolist())
    if problem.stay is not None:
        own = plan.rows == plan.columns
        kept = np.bincount(plan.rows[own], plan.flows[own], n)
        assert (kept >= problem.stay * problem.masses * (1 - tolerance) - 1e-15).all()
    cost = dense_costs(problem)[plan.rows, plan.columns] @ plan.flows
    penalty = problem.penalty
    if penalty is not None:
        for number in set(penalty.groups.tolist()):
            forms = penalty.forms[penalty.groups == number]
            for y in np.flatnonzero(used):
                goes = np.bincount(plan.rows, plan.flows * (plan.columns == y), n)
                cost += penalty.price * (forms @ goes).max()
    assert abs(cost - plan.cost) <= 1e-9
