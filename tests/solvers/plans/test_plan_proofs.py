"""The multipliers of a plan prove its bound for the limits as they were given, whichever of them are
affine functions of each other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.plans import PlanLimits, solve_plan
from tests.solvers.plans.problems import Kind, random_problem


def proven(problem, proof):
    """The bound of `PlanProof`, from its definition."""
    limits = problem.limits
    lam = proof.limits
    ends = np.where(lam > 0.0, limits.lower[:, None], limits.upper[:, None])
    # What is not limited has no multiplier.
    assert np.isfinite(ends[lam != 0.0]).all()
    paid = np.where(lam != 0.0, lam * np.where(lam != 0.0, ends, 0.0), 0.0)
    everything = np.arange(problem.size)
    left = problem.costs.block(everything, everything) - proof.masses
    left -= limits.values.T @ lam - paid.sum(axis=0)
    if problem.strata is not None:
        left[problem.strata[:, None] != problem.strata] = np.inf
    bound = float(problem.masses @ left.min(axis=1))
    if problem.targets is not None:
        bound += float(proof.masses @ problem.targets)
    return bound


def with_affine_rows(problem, rng):
    """Further limits on affine functions of the values; none of them binds before."""
    limits = problem.limits
    values, lower, upper = [limits.values], [limits.lower], [limits.upper]
    for slope in (0.5, -0.25, 3.0):
        offset = 0.1 + max(0.0, -slope) * float(limits.values.max())
        values.append(offset + slope * limits.values)
        # Tighter at either end by chance, and never as tight as the mean of all masses.
        ends = np.sort(
            offset
            + slope * np.exp(rng.uniform(0.05, 0.3, (2, len(lower[0]))) * [[-1], [1]]),
            axis=0,
        )
        lower.append(ends[0])
        upper.append(ends[1])
    size = sum(map(len, values))
    more = PlanLimits(
        values=np.concatenate(values),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        groups=np.zeros(size, np.int64),
    )
    return replace(problem, limits=more)


@pytest.mark.parametrize("n", [2, 3, 9])
@pytest.mark.parametrize("law", ["kept", "free"])
@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_the_multipliers_prove_the_bound(n, law, strata, affine):
    bounds = []
    for seed in range(4):
        kind = Kind(law=law, strata=strata and n > 3)
        problem = random_problem(seed, n, kind)
        if affine:
            problem = with_affine_rows(problem, np.random.default_rng(seed))
        plan = solve_plan(problem)
        bounds.append(plan.lower_bound)
        if plan.proof is None:
            assert plan.lower_bound <= 0.0
            continue
        assert proven(problem, plan.proof) == pytest.approx(plan.lower_bound, abs=1e-7)
    assert max(bounds) > 0.01
