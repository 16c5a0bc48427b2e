"""A promise as limits of a transport plan: what goes to an output must have lifts within budgets.

A plan F(x, y) sends the mass P(x) of every symbol x to outputs y. With t_s(x) = P(s|x) / P(s) the
lift of s at y is

    l(s, y) = sum over x of t_s(x) F(x, y) / sum over x of F(x, y),

so a budget is linear in F (`solvers.plans.PlanLimits`). After earlier releases a table of P(s, x)
u(x) is left (`auditing.demands`), and the lift is the quotient of two sums,

    l(s, y) = sum of t_s(x) u(x) F(x, y) / sum of u(x) F(x, y).

An upper budget b then bounds the sum of (t_s(x) - b) u(x) F(x, y) by 0, which is the same as
bounding that of (t_s(x) - b) u(x) + c by c times the mass of y, for any number c.

For example, with P(s) = 1/4 and P(s|x) = 1/2, t_s(x) = 2: a plan that sends x alone to an output
has the lift 2 there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import Demand
from mechdesign.core.errors import InputError
from solvers import Array
from solvers.plans import PlanLimits

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
    row = of_strata[0].counts[s]
    for x, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
        demand = of_strata[stratum]
        if demand.sums[s]:
            shares.append(row[x] * demand.total / (count * demand.sums[s]))
        else:
            shares.append(0.0)
    return np.array(shares)


def _present(
    of_strata: Sequence[Demand], strata: Sequence[int], s: int
) -> NDArray[np.bool_]:
    """(n,) array: True where the stratum of a symbol has records of the sensitive symbol."""
    return np.array([of_strata[stratum].sums[s] > 0 for stratum in strata])
