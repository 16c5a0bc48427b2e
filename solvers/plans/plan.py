"""A plan of least cost, one search for each stratum and their sum; and its integers.

*Integers* on the support of a plan have exactly the sums that are asked for. Row x of a table with
counts c_x has the sum c_x unit, column y the sum c_y unit. The flows are rounded, and what rounding
left over is settled along a spanning forest of the support, whose vertices are rows and columns and
whose edges are pairs: every leaf passes what it lacks to its only edge, and so on towards a root,
where nothing is left because both sums of a component agree. The forest takes the largest flows
first, so that a correction meets an edge that is much larger.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidOption, NoPlan, PlanError
from solvers.pace import NEVER, Clock
from solvers.plans.problem import SUM_TOLERANCE, Indices, PlanProblem
from solvers.plans.ranges import Ranges
from solvers.plans.search import Start, Stratum
from solvers.points import Array

# ----------------------------------------------------------------------------- integers

UNIT = 2**40
"""Integers a unit of count: a rounding is 1e-12 of a record."""

INT64 = 2**62
"""Totals below this are computed in int64, larger ones in Python integers."""

ATTEMPTS = 20
"""How often pairs whose integer would be negative are dropped before giving up. Such flows are
noise of the solver; more than two rounds have never been needed."""


def integer_plan(
    rows: ArrayLike,
    columns: ArrayLike,
    flows: ArrayLike,
    row_units: Sequence[int] | NDArray[Any],
    column_units: Sequence[int] | NDArray[Any] | None,
    unit: int = UNIT,
) -> tuple[Indices, Indices, NDArray[Any]]:
    """Positive integers near flows of total 1, with exact sums of rows and columns.

    Parameters
    ----------
    rows, columns : (m,) int arrays
        Pairs of the plan.
    flows : (m,) array
        Mass of each pair, with sum 1.
    row_units : (n,) integers
        Row x gets the sum ``row_units[x] * unit``.
    column_units : (k,) integers or None
        Column y gets the sum ``column_units[y] * unit``; None leaves the sums of columns free.
    unit : int

    Returns
    -------
    rows, columns : (m',) int arrays
    values : (m',) array
        int64 where the total is below 2**62, else Python integers (dtype object).

    Raises
    ------
    PlanError
        If the support carries no such integers.
    """
    x = np.asarray(rows, dtype=np.int64)
    y = np.asarray(columns, dtype=np.int64)
    mass = np.asarray(flows, dtype=np.float64)
    wanted_rows = [int(count) * unit for count in row_units]
    total = sum(wanted_rows)
    kind: Any = np.int64 if total < INT64 else object
    if column_units is None:
        values = _rounded(mass, total, kind)
        values = _settle_rows(x, values, wanted_rows, kind)
        return _positive(x, y, values)
    wanted_columns = [int(count) * unit for count in column_units]
    if sum(wanted_columns) != total:
        raise PlanError("sums of rows and columns need the same total")
    for _ in range(ATTEMPTS):
        values = _rounded(mass, total, kind)
        lacking = _lacking(x, y, values, wanted_rows, wanted_columns)
        _settle(x, y, mass, values, lacking, len(wanted_rows))
        kept = values >= 0
        if kept.all():
            return _positive(x, y, values)
        x, y, mass = x[kept], y[kept], mass[kept]
    raise PlanError("the pairs of the plan carry no integers with these sums")


def _positive(
    x: Indices, y: Indices, values: NDArray[Any]
) -> tuple[Indices, Indices, NDArray[Any]]:
    """Without zeros."""
    used = np.asarray(values > 0, dtype=np.bool_)
    return x[used], y[used], values[used]


def _rounded(mass: Array, total: int, kind: Any) -> NDArray[Any]:
    """Shares of a total, rounded."""
    if kind is np.int64:
        return np.rint(mass * float(total)).astype(np.int64)
    # A double holds 53 bits; the rest of the total comes in as an integer.
    shares = np.rint(mass * 2.0**53).astype(np.int64)
    out = np.empty(len(mass), dtype=object)
    out[:] = [(int(share) * total) >> 53 for share in shares]
    return out


def _sums(places: Indices, values: NDArray[Any], size: int) -> list[int]:
    """Exact sums of values by place."""
    sums = np.zeros(size, dtype=values.dtype)
    np.add.at(sums, places, values)
    return [int(one) for one in sums]


def _settle_rows(
    x: Indices, values: NDArray[Any], wanted: list[int], kind: Any
) -> NDArray[Any]:
    """Give what each row lacks to its largest entry."""
    order = np.lexsort((np.asarray(values, dtype=np.float64), x))
    last = np.flatnonzero(np.diff(np.append(x[order], -1)))
    largest = order[last]
    if len(largest) != len(wanted):
        raise PlanError("every row of the plan needs a pair")
    sums = _sums(x, values, len(wanted))
    lacking = [need - one for need, one in zip(wanted, sums, strict=True)]
    out = values.copy()
    out[largest] += np.array(lacking, dtype=kind)
    if (out[largest] <= 0).any():
        raise PlanError("the flows of a row are far from its sum")
    return out


def _lacking(
    x: Indices,
    y: Indices,
    values: NDArray[Any],
    wanted_rows: list[int],
    wanted_columns: list[int],
) -> list[int]:
    """What rows, and after them columns, lack."""
    sums = _sums(x, values, len(wanted_rows)) + _sums(y, values, len(wanted_columns))
    wanted = wanted_rows + wanted_columns
    return [need - one for need, one in zip(wanted, sums, strict=True)]


def _settle(
    x: Indices,
    y: Indices,
    mass: Array,
    values: NDArray[Any],
    lacking: list[int],
    size: int,
) -> None:
    """Change `values` along a spanning forest so that nothing is lacking any more."""
    # Edges of each vertex within the forest: (edge, the other end).
    edges: list[list[tuple[int, int]]] = [[] for _ in lacking]
    for edge in _forest(x, y + size, mass, len(lacking)):
        first, second = int(x[edge]), int(y[edge]) + size
        edges[first].append((edge, second))
        edges[second].append((edge, first))
    seen = [False] * len(lacking)
    changes: dict[int, int] = {}
    for root in range(len(lacking)):
        if seen[root]:
            continue
        seen[root] = True
        # From the root outwards, each vertex after its parent: (vertex, edge, parent).
        order = [(root, -1, -1)]
        for vertex, _, _ in order:
            for edge, other in edges[vertex]:
                if not seen[other]:
                    seen[other] = True
                    order.append((other, edge, vertex))
        for vertex, edge, parent in reversed(order[1:]):
            change = lacking[vertex]
            changes[edge] = change
            lacking[parent] -= change
        if lacking[root]:
            raise PlanError(
                "the sums of the rows and of the columns of a part of the plan differ"
            )
    for edge, change in changes.items():
        values[edge] += change


def _forest(x: Indices, y: Indices, mass: Array, size: int) -> list[int]:
    """Edges of the spanning forest of the largest masses; of equal ones the first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    order = np.argsort(-mass, kind="stable")
    # A sparse array would add the weights of edges with the same ends: the first of them is enough.
    _, first = np.unique(x[order] * size + y[order], return_index=True)
    order = order[np.sort(first)]
    # No two edges have the same weight, so that the forest is unique.
    weights = np.arange(1.0, len(order) + 1.0)
    graph = coo_array((weights, (x[order], y[order])), shape=(size, size)).tocsr()
    chosen = minimum_spanning_tree(graph).data.astype(np.int64)
    return order[chosen - 1].tolist()


# --------------------------------------------------------------------------------- plan

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
        # Positive ones are paid at the lower end, negative ones at the upper end. No row of the
        # limits is the same end of two ranges.
        paid_at = (np.maximum(proof.ranges, 0.0), np.minimum(proof.ranges, 0.0))
        for end, paid in enumerate(paid_at):
            here = np.ix_(ranges.sources[:, end], outputs)
            limits[here] += ranges.factors[:, end, None] * paid
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
