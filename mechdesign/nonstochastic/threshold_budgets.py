"""The two budgets that thresholds can be chosen under, as constraints and as exact counts.

Noiseless privacy (Farokhi 2020) limits the outputs on a fibre. Indistinguishability (Farokhi 2021,
Definition 5) limits, for every individual and every two of its values, how many outputs are possible
with the one and not with the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.gaps import GapProblem
from mechdesign.nonstochastic.noiseless import Certificate, certify
from mechdesign.nonstochastic.quantizers import quantizer_between
from mechdesign.nonstochastic.separation import Separation

Budget = Literal["noiseless", "indistinguishability"]


def check_budget(problem: GapProblem, budget: str) -> None:
    """Raise InputError if the budget is not known, or the problem does not carry what it compares."""
    if budget not in ("noiseless", "indistinguishability"):
        raise InputError(f"budget ({budget!r}) must be noiseless or indistinguishability")
    if budget == "indistinguishability" and not problem.classes:
        raise InputError("indistinguishability needs a linear or a tabulated query; tabulate this one")


def budget_model(problem: GapProblem, outputs: int, budget: Budget) -> Separation:
    """The constraints of the integer program.

    Two sets A and B of answers meet 1 + N(A) and 1 + N(B) cells, N counting the separated pairs of
    consecutive members, and differ in 2 N(A u B) - N(A) - N(B) cells.
    """
    model = Separation(problem.gaps)
    if budget == "noiseless":
        for fibre in problem.binding(outputs):
            model.limit_fibre(fibre, outputs)
        return model
    for one in problem.classes:
        members = list(dict.fromkeys(tuple(np.unique(c).tolist()) for c in one))
        for k, a in enumerate(members):
            for b in members[:k]:
                model.limit_difference(a, b, outputs)
    return model


def recount(
    problem: GapProblem, gaps: Sequence[int], outputs: int, budget: Budget
) -> tuple[int, Certificate | None]:
    """Count exactly what the budget limits, by code that knows nothing of the program solved.

    Raises
    ------
    SolverFailure
        If the budget is exceeded after all.
    """
    if budget == "noiseless":
        certificate = certify(problem.query, quantizer_between(problem.values, gaps))
        attained, what = certificate.outputs, "outputs on a fibre"
    else:
        certificate, attained, what = None, problem.most_differing(gaps), "outputs that differ"
    if attained > outputs:
        raise SolverFailure(
            f"the thresholds found give {attained} {what} where {outputs} are allowed; nothing is returned; "
            "try another method, and please report it"
        )
    return attained, certificate
