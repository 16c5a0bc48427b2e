"""What is asked of a release of rows as rows of the table, and what its promise asks of a plan.

*The request.* `forbidden` lists the pairs of rows that no plan may use: those that `forbid` names,
and every pair whose output has a combination of cells that is never released.

*A promise as limits of a transport plan.* A plan F(x, y) sends the mass P(x) of every symbol x to
outputs y. With t_s(x) = P(s|x) / P(s) the lift of s at y is

    l(s, y) = sum over x of t_s(x) F(x, y) / sum over x of F(x, y),

so a budget is linear in F (`solvers.plans.PlanLimits`). After earlier releases a table of P(s, x)
u(x) is left (`auditing.lifts`), and the lift is the quotient of two sums,

    l(s, y) = sum of t_s(x) u(x) F(x, y) / sum of u(x) F(x, y).

An upper budget b then bounds the sum of (t_s(x) - b) u(x) F(x, y) by 0, which is the same as
bounding that of (t_s(x) - b) u(x) + c by c times the mass of y, for any number c.

For example, with P(s) = 1/4 and P(s|x) = 1/2, t_s(x) = 2: a plan that sends x alone to an output
has the lift 2 there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.lifts import Demand
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import TOTAL
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.integers import Integers
from mechdesign.core.progress import Steps
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.least_cost_objective import check_pair
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_restrictions import forbidden_pairs, never_released
from solvers import Array
from solvers.plans import PlanLimits

# ------------------------------------------------------------------------------ request

TRUTH = "truth"


DISTANCE = "distance"


COSTS = "costs"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanRequest:
    """What is asked of a release of rows as rows of the table.

    Parameters
    ----------
    joint : Joint
        The table over the released columns, given ones included.
    notion : Notion
        On single lifts.
    given : tuple of str
        Columns that are released as they are.
    promise : {"total", "relative"}
    objective : {"truth", "distance"} or matrix of costs
    distance : {"ranks", "absolute"}, optional
        With the objective distance: of ranks of numbers (the default), or of numbers themselves.
    column_weights : mapping of column to number, optional
    keep_law : bool
        Whether every row is released as often as the table has it.
    stay, forbid : as for `DesignRequest`
    never : sequence of mappings of column to text
        Combinations of cells that are never released.
    smallest_group : int or None
        Least number of records of the rows that are released; None for the default.
    known : tuple of str
        Columns that count for the groups; all released ones by default.
    average : mapping of a measure to its budget, optional
        Budgets on averages over the released rows, as for `DesignRequest`.
    is_average_alone : bool
        Whether nothing was promised of single rows; the channel then states its own lifts.
    whole, after : Joint and channels
        The table with the columns of earlier releases, and these.
    time_limit : float, optional
        Seconds of processor time.
    gap : float
        Distance from the proven least cost at which the search ends.
    """

    joint: Joint
    notion: Notion
    given: tuple[str, ...] = ()
    promise: str = TOTAL
    objective: Any = TRUTH
    distance: str | None = None
    column_weights: Mapping[str, Any] | None = None
    keep_law: bool = True
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    never: Sequence[Mapping[str, str]] = ()
    smallest_group: int | None = None
    known: tuple[str, ...] = ()
    average: Mapping[str, Any] | None = None
    is_average_alone: bool = False
    whole: Joint | None = None
    after: Sequence[Channel] = ()
    time_limit: float | None = None
    gap: float = 1e-4
    progress: Steps | None = None


def forbidden(request: PlanRequest) -> tuple[Integers, Integers] | None:
    """The pairs of rows (from, to) that no plan may use."""
    useful = request.joint.useful
    for pair in request.forbid:
        check_pair(pair)
    rows, columns = forbidden_pairs(useful, request.forbid)
    never = never_released(useful, request.never)
    if never and request.keep_law:
        raise NotPrivate(
            "--never: records of the table have such a row, and the law of the table is kept; "
            "leave it open (--free-frequencies), or leave --never out"
        )
    every = np.arange(len(useful))
    rows = np.concatenate([rows, np.tile(every, len(never))])
    columns = np.concatenate([columns, np.repeat(np.array(never, int), len(useful))])
    if not len(rows):
        return None
    return rows, columns


def check_stays(
    request: PlanRequest,
    stays: Sequence[Fraction],
    pairs: tuple[Integers, Integers] | None,
) -> None:
    """Refuse a row that must stay with some probability, and must not stay.

    Parameters
    ----------
    stays
        The least share of each row that stays.
    pairs
        The pairs of rows of `forbidden`.

    Raises
    ------
    InputError
        If `stay` contradicts `forbid` or `never`.
    """
    if pairs is None:
        return
    sources, targets = pairs
    never = never_released(request.joint.useful, request.never)
    for x in sources[sources == targets].tolist():
        if stays[x]:
            option = "--never" if x in never else "--forbid"
            raise InputError(
                f"--stay and {option} contradict each other for "
                f"{quoted(request.joint.useful.names[x])}: say which other rows stay, "
                "each with a share of its own, or leave one of the two out"
            )


# ------------------------------------------------------------------ limits of a promise

LARGEST_EXPONENT = 700.0
"""Budgets in nats above which factors overflow; no finite budget may be larger."""

LOOSE = 1.0 + 1e-9
"""Factor beyond the largest lift from which an upper limit binds nothing, whatever was rounded."""

EQUAL = 1e-12
"""Relative spread of u(x) below which earlier releases say the same of every symbol."""


def limits_of_demands(
    demands: Sequence[Sequence[Demand]], strata: Sequence[int], counts: Sequence[int]
) -> PlanLimits:
    """The limits of some tables on a plan.

    Parameters
    ----------
    demands : for each stratum a sequence of Demand
        The same tables for every stratum, measured against the sums of the stratum.
    strata : sequence of int
        The stratum of every symbol.
    counts : sequence of int
        The records of every symbol.
    """
    values: list[Array] = []
    lower: list[float] = []
    upper: list[float] = []
    groups: list[int] = []
    ratio = math.inf
    for group, of_strata in enumerate(zip(*demands, strict=True)):
        demand = of_strata[0]
        if math.isfinite(demand.ratio):
            ratio = min(ratio, math.exp(min(demand.ratio, LARGEST_EXPONENT)))
        left = _left(demand, counts)
        scale = float(left.max())
        is_plain = float(left.min()) >= scale * (1.0 - EQUAL)
        for s in range(len(demand.sums)):
            t = _lifts(of_strata, strata, counts, s) / scale
            least = math.exp(-demand.lower[s])
            most = math.exp(min(demand.upper[s], LARGEST_EXPONENT))
            if math.isinf(demand.upper[s]):
                most = math.inf
            if is_plain:
                # What no mixture of symbols can exceed is no limit, and solvers do not scale
                # factors as large as e^50.
                if most > float(t.max()) * LOOSE:
                    most = math.inf
                values.append(t)
                lower.append(least)
                upper.append(most)
                groups.append(group)
                continue
            for bound, sign in ((least, -1.0), (most, 1.0)):
                if bound in (0.0, math.inf):
                    continue
                # A symbol that a stratum does not have limits nothing there.
                present = _present(of_strata, strata, s)
                excess = np.where(present, sign * (t - bound * left / scale), 0.0)
                shift = max(0.0, -float(excess.min())) + 1.0
                values.append(excess + shift)
                lower.append(0.0)
                upper.append(shift)
                # These values are no lifts: no ratio compares them with each other.
                groups.append(-1 - len(groups))
        if not is_plain and math.isfinite(demand.ratio):
            raise InputError(
                "a limit on the ratio of two lifts (ldp) is not built for rows after earlier "
                "releases: use alip, lip, max-lift or min-lift"
            )
    width = len(counts)
    return PlanLimits(
        values=np.array(values).reshape(len(values), width),
        lower=np.array(lower),
        upper=np.array(upper),
        groups=np.array(groups, dtype=np.int64),
        ratio=ratio,
    )


def rows_of_demands(
    demands: Sequence[Demand], counts: Sequence[int]
) -> Iterator[tuple[int, int, float]]:
    """Each row of `limits_of_demands` on one stratum, with the row of lifts that it bounds and the
    factor by which a multiplier of it is one of that lift, in the unit of `StackedRows`.
    """
    place = 0
    first = 0
    for demand in demands:
        left = _left(demand, counts)
        scale = float(left.max())
        # sum_x of P(s, x | u): all of it, where the table is of N records.
        unit = sum(map(sum, demand.counts)) / sum(counts)
        is_plain = float(left.min()) >= scale * (1.0 - EQUAL)
        for s in range(len(demand.sums)):
            if is_plain:
                yield place, first + s, 1.0
                place += 1
                continue
            if math.isfinite(demand.lower[s]):
                yield place, first + s, -unit / scale
                place += 1
            if math.isfinite(demand.upper[s]):
                yield place, first + s, unit / scale
                place += 1
        first += len(demand.sums)


def _left(demand: Demand, counts: Sequence[int]) -> Array:
    """u(x) in proportion: what is left of the mass of each symbol after earlier releases."""
    columns = zip(*demand.counts, strict=True)
    return np.array(
        [sum(column) / n for column, n in zip(columns, counts, strict=True)]
    )


def _lifts(
    of_strata: Sequence[Demand], strata: Sequence[int], counts: Sequence[int], s: int
) -> Array:
    """t_s(x) u(x) of every symbol x, 0 in a stratum without the sensitive symbol."""
    shares: list[float] = []
    places, cells = of_strata[0].filled.rows[s]
    for x, cell in zip(places, cells, strict=True):
        demand = of_strata[strata[x]]
        share = 0.0
        if demand.sums[s]:
            share = cell * demand.total / (counts[x] * demand.sums[s])
        shares.append(share)
    lifts = np.zeros(len(counts))
    lifts[places] = shares
    return lifts


def _present(
    of_strata: Sequence[Demand], strata: Sequence[int], s: int
) -> NDArray[np.bool_]:
    """(n,) array: True where the stratum of a symbol has records of the sensitive symbol."""
    return np.array([of_strata[stratum].sums[s] > 0 for stratum in strata])
