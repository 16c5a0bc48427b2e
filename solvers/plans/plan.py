"""A plan of least cost: one search for each stratum, and their sum."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.errors import InvalidOption, NoPlan
from solvers.pace import NEVER, Clock
from solvers.plans.costs import Indices
from solvers.plans.problem import SUM_TOLERANCE, PlanProblem
from solvers.plans.ranges import Ranges
from solvers.plans.search import Start, Stratum
from solvers.points import Array

GAP = 1e-6
"""The search ends where cost and bound differ by less than this, relative."""

MARGIN = 1e-7
"""Limits are drawn in by this, relative: rounding to 2**40 integers a record changes a mean by
1e-11, and the programs keep their rows to 1e-9."""

RESERVE = 1e-2
"""What is added to the shares that must stay, in margins: rounding to 2**40 integers a record moves
a share by some 1e-10, a hundredth of what programs leave of a limit."""

Report = Callable[[float, float], None]
"""Called with the cost and the bound so far."""


@dataclass(frozen=True, eq=False)
class PlanProof:
    """Multipliers that prove the bound of a plan, for whoever computes it anew.

    For every output y let E(x, y) = d(x, y) - f_y - sum_k (lam_ky (t_k(x) - end_ky) +
    rho_ky t_k(x)), where end is the lower limit for a positive lam and the upper one for a negative
    one. If in every group the positive rho of y sum to at least ratio times the negative ones, no
    plan costs less than sum_x m_x min_y E(x, y) + sum_y q_y f_y: y in the stratum of x, and
    E(x, x) in the place of the least for what must stay.

    Attributes
    ----------
    masses : (n,) array
        f; zeros without targets.
    limits, compared : (k, n) arrays
        lam and rho, for the rows of `PlanLimits.values`.
    forms : (j, n) array
        Of the forms of the penalty: sum_j forms_jy f_j(x) is added to E. They are not negative, and
        sum to the price at most in each group.
    """

    masses: Array
    limits: Array
    compared: Array
    forms: Array


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan F(x, y) > 0 on few pairs.

    Attributes
    ----------
    rows, columns : (m,) int arrays
        Pairs x, y.
    flows : (m,) array
        Their masses, with sum 1 up to the tolerance of the programs (1e-9, relative to each row).
    cost : float
        sum d F, and the penalty.
    lower_bound : float
        Proven: no plan within the limits costs less. It follows from multipliers and a pass over
        all pairs, or from `ceiling`, not from a solver's word.
    blocks : int
        Parts that the search started with.
    seconds : float
        Processor time.
    ended_early : bool
        Whether the time was over before cost and bound met.
    proof : PlanProof or None
        What proves the bound; None where nothing does in some stratum.
    prices : (n,) array
        Of the symbols as inputs, for a search that begins with this plan.
    """

    rows: Indices
    columns: Indices
    flows: Array
    cost: float
    lower_bound: float
    blocks: int
    seconds: float
    ended_early: bool
    proof: PlanProof | None
    prices: Array


def solve_plan(
    problem: PlanProblem,
    *,
    time_limit: float | None = None,
    deadline: float | None = None,
    start: Plan | None = None,
    gap: float = GAP,
    margin: float = MARGIN,
    seed: int = 0,
    progress: Report | None = None,
) -> Plan:
    """Find a plan of least cost.

    Parameters
    ----------
    problem : PlanProblem
    time_limit : float, optional
        Seconds of processor time. A first plan is found in any case, however long it takes, unless
        there is a deadline.
    deadline : float, optional
        Seconds of processor time after which there is no plan if there is none yet.
    start : Plan, optional
        A plan within the limits, drawn in by the margin; the search begins with it.
    gap : float
        Relative difference of cost and bound at which the search ends.
    margin : float
        Relative share by which the limits are drawn in, so that a plan that is rounded to integers
        keeps them; `RESERVE` of it is added to the shares that must stay.
    seed : int
        Of the random cuts.
    progress : callable, optional
        Called with the cost and the bound so far.

    Raises
    ------
    NoPlan
        If no plan keeps the limits.
    OutOfTime
        If there was no plan at the deadline.
    """
    if not (time_limit is None or time_limit > 0.0):
        raise InvalidOption(f"time_limit ({time_limit}) must be positive")
    if not 0.0 <= margin < 1.0 or not gap >= 0.0:
        raise InvalidOption(
            f"margin ({margin}) must be from 0 to below 1, and gap ({gap}) not negative"
        )
    problem = replace(problem, reserve=RESERVE * margin)
    started = time.process_time()
    limit = math.inf if time_limit is None else time_limit
    whole = Clock(limit)
    end = NEVER if deadline is None else Clock(deadline)
    rng = np.random.default_rng(seed)
    members = problem.strata_members()
    # Small strata first: the time that they do not need goes to the large ones.
    members.sort(key=len)
    sizes = np.array([float(len(one)) ** 2 for one in members])
    done: list[Stratum] = []
    cost = bound = 0.0
    # A sum of bounds is rounded once for each.
    rounded = 1.0 - len(members) * 2.0**-52
    for k, one in enumerate(members):
        now = time.process_time() - started
        share = sizes[k] / sizes[k:].sum()
        clock = Clock((limit - now) * share, whole)

        def report(
            part: float, below: float, cost: float = cost, bound: float = bound
        ) -> None:
            if progress is not None:
                # Strata to come cost at least nothing, and nobody knows yet how much more.
                progress(cost + part, (bound + max(below, 0.0)) * rounded)

        stratum = _stratum(problem, one, rng, margin, gap, clock, report, end, start)
        done.append(stratum)
        cost += stratum.cost
        bound += stratum.bound
    return Plan(
        np.concatenate([one.rows for one in done]),
        np.concatenate([one.columns for one in done]),
        np.concatenate([one.flows for one in done]),
        cost,
        bound * rounded,
        sum(one.blocks for one in done),
        time.process_time() - started,
        any(one.ended_early for one in done),
        _proof(problem, done),
        _prices(problem, done),
    )


def _prices(problem: PlanProblem, done: list[Stratum]) -> Array:
    """The prices of inputs of all strata."""
    prices = np.zeros(problem.size)
    for stratum in done:
        prices[stratum.members] = stratum.input_prices
    return prices


def _proof(problem: PlanProblem, done: list[Stratum]) -> PlanProof | None:
    """The multipliers of all strata together, for the rows of the limits as they were given."""
    rows = len(problem.limits.values)
    masses = np.zeros(problem.size)
    limits = np.zeros((rows, problem.size))
    compared = np.zeros((rows, problem.size))
    forms = np.zeros((0, problem.size))
    if problem.penalty is not None:
        forms = np.zeros((len(problem.penalty.forms), problem.size))
    for stratum in done:
        proof = stratum.proof
        if proof is None:
            if stratum.bound > 0.0:
                return None
            # Costs are not negative: multipliers of 0 prove as much.
            continue
        outputs = stratum.outputs
        ranges = stratum.ranges
        masses[outputs] = proof.masses
        forms[:, outputs] = proof.forms
        for row, unit, prices in zip(
            ranges.sources, ranges.units, proof.ranges, strict=True
        ):
            limits[row, outputs] = prices / unit
        for row, unit, prices in zip(
            ranges.compared_sources,
            ranges.compared_units,
            proof.compared,
            strict=True,
        ):
            compared[row, outputs] = prices / unit
    return PlanProof(masses, limits, compared, forms)


def _stratum(
    problem: PlanProblem,
    members: Indices,
    rng: np.random.Generator,
    margin: float,
    gap: float,
    clock: Clock,
    report: Report,
    deadline: Clock,
    start: Plan | None,
) -> Stratum:
    """The plan of one stratum."""
    masses = problem.masses[members]
    where = "" if problem.strata is None else _named(problem, members)
    if problem.targets is not None:
        into = float(problem.targets[members].sum())
        if abs(into - float(masses.sum())) > SUM_TOLERANCE:
            raise NoPlan(
                f"no plan meets the targets{where}: masses of {masses.sum():.6g} cannot "
                f"become {into:.6g}"
            )
        if problem.stay is not None:
            stays = problem.stay[members] * masses
            if (stays > problem.targets[members] * (1.0 + SUM_TOLERANCE)).any():
                raise NoPlan(
                    f"no plan: more must stay at a symbol than its target{where}"
                )
    try:
        ranges = Ranges.of(problem.limits, members, masses, margin, problem.penalty)
        _check_stays(problem, members, ranges)
        begin = None
        if start is not None:
            begin = Start(start.rows, start.columns, start.flows, start.prices)
        stratum = Stratum(
            problem, members, ranges, rng, clock, gap, report, deadline, begin
        )
        stratum.run()
    except NoPlan as error:
        raise NoPlan(f"{error}{where}") from error
    return stratum


def _check_stays(problem: PlanProblem, members: Indices, ranges: Ranges) -> None:
    """Raise NoPlan where what must stay at a symbol exceeds a limit by itself, so that a short time
    suffices to know it.
    """
    if problem.stay is None or problem.targets is None:
        return
    targets = problem.targets[members]
    there = targets > 0.0
    # Values are not negative, so whatever else comes adds to the mean.
    stays = (problem.stay[members] * problem.masses[members])[there] / targets[there]
    means = ranges.values[:, there] * stays
    if (means > ranges.true_upper[:, None] * (1.0 + SUM_TOLERANCE)).any():
        raise NoPlan("no plan: what must stay at a symbol breaks a limit by itself")


def _named(problem: PlanProblem, members: Indices) -> str:
    """Which stratum an error is about."""
    strata = problem.strata
    assert strata is not None
    return f" (stratum {strata[members[0]]})"
