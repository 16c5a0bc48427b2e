"""Plans of least cost: what moves to what, with given sums and linear limits on every output.

>>> import numpy as np
>>> from solvers.plans import MatrixCosts, PlanLimits, PlanProblem, solve_plan
>>> limits = PlanLimits(
...     values=np.array([[0.0, 2.0]]),
...     lower=np.array([0.5]),
...     upper=np.array([1.5]),
...     groups=np.array([0]),
... )
>>> masses = np.array([0.5, 0.5])
>>> plan = solve_plan(
...     PlanProblem(
...         masses=masses,
...         targets=masses,
...         costs=MatrixCosts([[0.0, 1.0], [1.0, 0.0]]),
...         limits=limits,
...     )
... )
>>> round(plan.cost, 6)
0.25
"""

from solvers.errors import InvalidPlanProblem, NoPlan, PlanError
from solvers.plans.plan import Plan, PlanProof, integer_plan, solve_plan
from solvers.plans.problem import (
    CellCosts,
    Costs,
    MatrixCosts,
    PlanLimits,
    PlanPenalty,
    PlanProblem,
)

__all__ = [
    "CellCosts",
    "Costs",
    "InvalidPlanProblem",
    "MatrixCosts",
    "NoPlan",
    "Plan",
    "PlanError",
    "PlanLimits",
    "PlanPenalty",
    "PlanProblem",
    "PlanProof",
    "integer_plan",
    "solve_plan",
]
