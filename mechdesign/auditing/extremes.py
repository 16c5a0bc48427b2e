"""The extreme lifts of a channel: the largest quotient of each limit, compared in integers.

With masses m_s proportional to P(s, y), o their sum, sums r_s proportional to P(s) and N their sum,
the lift is l(s, y) = P(s, y) / (P(s) P(y)) = m_s N / (r_s o). The three sides of a notion
(`demands`) limit the quotients

    eps_u     l(s, y)            =  m_s N / (r_s o)
    eps_l     1 / l(s, y)        =  r_s o / (m_s N)
    eps_ldp   l(s, y) / l(t, y)  =  m_s r_t / (m_t r_s)

each by exp of a budget. `LargestQuotients` is fed output by output. It keeps the largest quotient
of every side and every different budget, comparing a/b with c/d by the products a d and c b. Only
these few have their logarithms enclosed (`log_upper`), which is slow. The limits hold exactly if
and only if none of these logarithms, rounded up to a double, is above its budget.

Example: masses (3, 1) with sums (5, 5) have the lifts 6/4 and 2/4. The quotients are 3/2 for
eps_u, 2 for eps_l and 3 for eps_ldp, so the budgets that are used are log(3/2), log 2 and log 3.

*Strata.* The relative promise is about somebody who knows the given columns. The given columns k of
a record are seen with every output. A *total* promise bounds P(s|k, y) against P(s), as for every
channel. A *relative* one bounds it against P(s|k), the belief of somebody who knows the given
columns. So each stratum, a combination of given cells, has limits of its own (`stratum_demands`):
those of the table with the sums of the stratum in the place of P(s).

For example, of 60 and 40 records of s and t a stratum has 10 and 30. An output of the stratum with
the masses 2 and 3 has the lift (2/5) / (10/40) = 1.6 of s there, and (2/5) / (60/100) = 0.67 in
total.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from mechdesign.auditing.columns import SPARSE, Entries, first_of_constants
from mechdesign.auditing.demands import Demand, stacked
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import double_above
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

Array = NDArray[np.float64]

MANY_OUTPUTS = 100
"""Outputs from which those that cannot have the largest quotient are left out by doubles first."""

ROUNDING = 2.0**-49
"""Two quotients in doubles, of sums of k terms, are compared wrongly only if they differ by less
than k times this, relative: each rounds 2 k + 9 times at most, by 2^-53."""


@dataclass(frozen=True)
class Achieved:
    """The smallest doubles (nats) that bound the lifts; ``inf`` where a lift is 0.

    ``exp(-eps_l) <= l(s, y) <= exp(eps_u)`` and ``l(s, y) <= exp(eps_ldp) l(s', y)`` hold exactly,
    for all s, s' and y, and fail for the next smaller double.
    """

    eps_l: float
    eps_u: float
    eps_ldp: float


def largest_of(parts: Iterable[Achieved]) -> Achieved:
    """The smallest budgets that bound all of these, side by side; 0 if there are none."""
    eps_l = 0.0
    eps_u = 0.0
    eps_ldp = 0.0
    for part in parts:
        eps_l = max(eps_l, part.eps_l)
        eps_u = max(eps_u, part.eps_u)
        eps_ldp = max(eps_ldp, part.eps_ldp)
    return Achieved(eps_l, eps_u, eps_ldp)


@dataclass(frozen=True)
class Extreme:
    """The largest quotient of one side, with the budget whose exp must bound it.

    Parameters
    ----------
    side : 'eps_l', 'eps_u' or 'eps_ldp'
        The field of `Achieved` that it belongs to.
    budget : float
        In nats.
    over : (numerator, denominator)
        The quotient; a denominator of zero is infinity.
    lift : (numerator, denominator)
        The lift of `sensitive` on output `y`.
    sensitive : str
    y : int
    against : str, optional
        The other sensitive symbol of a quotient of two lifts.
    before : tuple of str
        The earlier outputs.
    """

    side: str
    budget: float
    over: tuple[int, int]
    lift: tuple[int, int]
    sensitive: str
    y: int
    against: str | None = None
    before: tuple[str, ...] = ()

    @cached_property
    def used(self) -> float:
        """The smallest double (nats) that bounds the logarithm of the quotient."""
        return log_upper(*self.over)

    @property
    def kept(self) -> bool:
        """Whether quotient <= e^budget, decided exactly; an infinite budget is no limit.

        `used` is a double, and so is the budget: `log_upper` shows that comparing them is exact.
        """
        return self.used <= self.budget

    @property
    def share(self) -> float:
        """The share of the budget that is used, -inf where there is no limit.

        `used` is rounded up, but never beyond a budget that holds. So the share is above 1 exactly
        for a violated budget, and the extreme with the largest share violates its own if any does.
        """
        if math.isinf(self.budget):
            return -math.inf
        return self.used / self.budget

    @property
    def rounded_lift(self) -> float:
        """The lift as the nearest double, for messages."""
        numerator, denominator = self.lift
        if not denominator:
            return math.inf
        return numerator / denominator


def extreme_lifts(
    columns: Iterable[Entries], demands: Sequence[Demand]
) -> list[Extreme]:
    """For every side and every different budget the largest quotient, of all outputs and tables.

    Every cell is compared exactly; of equal quotients the first counts. Outputs that never occur
    demand nothing.
    """
    columns = list(columns)
    largest = LargestQuotients()
    if not demands:
        return largest.extremes
    chosen = first_of_constants(columns, len(demands[0].counts[0]))
    if len(chosen) > MANY_OUTPUTS:
        possible = _possible_extremes([columns[y] for y in chosen], demands)
        chosen = [chosen[place] for place in possible]
    for y in chosen:
        for demand in demands:
            largest.add(output_masses(demand, *columns[y]), demand, y)
    return largest.extremes


def _possible_extremes(
    columns: Sequence[Entries], demands: Sequence[Demand]
) -> Sequence[int]:
    """The outputs that can have the largest quotient of a side, ascending.

    A quotient in doubles is off by a known share at most: its terms are positive integers, so no
    sum cancels. Outputs whose quotient is smaller than the largest one by more are not compared.
    """
    from scipy.sparse import csc_array  # pyright: ignore[reportMissingTypeStubs]

    lengths = [len(inputs) for inputs, _ in columns]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    inputs = np.fromiter(chain.from_iterable(x for x, _ in columns), np.int64)
    is_possible = np.zeros(len(columns), dtype=bool)
    try:
        values = np.fromiter(chain.from_iterable(w for _, w in columns), np.float64)
        width = len(demands[0].counts[0])
        entries = csc_array((values, inputs, ends), shape=(width, len(columns)))
        for demand in demands:
            rows = np.array(demand.counts, dtype=np.float64)
            sums = np.array(demand.sums, dtype=np.float64)
            masses = _product(rows, entries)
            if not np.isfinite(masses.sum(axis=0)).all():
                return range(len(columns))
            terms = max(lengths) + len(rows)
            is_possible |= _near_extremes(masses, sums, demand, ROUNDING * terms)
    except (OverflowError, FloatingPointError):
        # Integers beyond the largest double, or quotients next to 0.
        return range(len(columns))
    return np.flatnonzero(is_possible).tolist()


def _product(rows: Array, entries: Any) -> Array:
    """The product of counts (k, n) and a sparse array (n, m), infinite where it is too large."""
    if SPARSE * np.count_nonzero(rows) >= rows.size:
        return rows @ entries
    from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

    return (csr_array(rows) @ entries).toarray()


def _near_extremes(
    masses: Array, sums: Array, demand: Demand, error: float
) -> NDArray[np.bool_]:
    """Outputs whose quotient of some limit is the largest, up to a relative error."""
    there = masses.sum(axis=0) > 0.0
    is_near = np.zeros(len(there), dtype=bool)
    # A lift of 0 makes a quotient infinite; digits must not be lost in any other way.
    with np.errstate(divide="ignore", invalid="ignore", over="raise", under="raise"):
        for limit in demand.limits:
            lifts = masses[limit.symbols] / sums[limit.symbols, None]
            if limit.side == "eps_u":
                quotients = lifts.max(axis=0) / masses.sum(axis=0)
            elif limit.side == "eps_l":
                quotients = masses.sum(axis=0) / lifts.min(axis=0)
            else:
                quotients = lifts.max(axis=0) / lifts.min(axis=0)
            largest = quotients[there].max(initial=0.0)
            # What is no number cannot be left out.
            is_near |= there & ~(quotients < largest * (1.0 - error))
    return is_near


def output_masses(
    demand: Demand, inputs: Sequence[int], values: Sequence[int]
) -> list[int]:
    """P(s, y) of an output in proportion: the sums over x of count(s, x) W(y|x)."""
    return demand.filled.masses(inputs, values)


def smallest_budgets(extremes: Iterable[Extreme]) -> Achieved:
    """The smallest budgets of the three sides that all extremes keep; 0 for a side without any."""
    used = {"eps_l": 0.0, "eps_u": 0.0, "eps_ldp": 0.0}
    for extreme in extremes:
        used[extreme.side] = max(used[extreme.side], extreme.used)
    return Achieved(**used)


class LargestQuotients:
    """The largest quotient of every side and budget among the outputs added so far."""

    def __init__(self) -> None:
        self._largest: dict[tuple[str, float], Extreme] = {}

    @property
    def extremes(self) -> list[Extreme]:
        """One extreme for every side and different budget."""
        return list(self._largest.values())

    def add(self, masses: Sequence[int], demand: Demand, y: int) -> None:
        """Compare an output with the masses P(s, y) under the limits of a demand."""
        output = sum(masses)
        if not output:
            return
        sums = demand.sums
        total = demand.total
        for limit in demand.limits:
            # One budget for all symbols of the limit: only their extreme lifts can be the worst.
            s = _extreme_symbol(
                limit.symbols, masses, sums, largest=limit.side != "eps_l"
            )
            against = None
            if limit.side == "eps_u":
                over = (masses[s] * total, sums[s] * output)
            elif limit.side == "eps_l":
                over = (sums[s] * output, masses[s] * total)
            else:
                t = _extreme_symbol(limit.symbols, masses, sums, largest=False)
                over = (masses[s] * sums[t], masses[t] * sums[s])
                against = demand.names[t]
            key = (limit.side, limit.budget)
            best = self._largest.get(key)
            if best is not None and not _is_larger(over, best.over):
                continue
            self._largest[key] = Extreme(
                side=limit.side,
                budget=limit.budget,
                over=over,
                lift=(masses[s] * total, sums[s] * output),
                sensitive=demand.names[s],
                y=y,
                against=against,
                before=demand.before,
            )


def _extreme_symbol(
    symbols: Sequence[int],
    masses: Sequence[int],
    sums: Sequence[int],
    *,
    largest: bool,
) -> int:
    """The first of the symbols with the largest or the smallest lift.

    N and o are common to all lifts m_s N / (r_s o) of one output, so m_s / r_s orders them.
    """
    best = symbols[0]
    for s in symbols[1:]:
        difference = masses[s] * sums[best] - masses[best] * sums[s]
        if not largest:
            difference = -difference
        if difference > 0:
            best = s
    return best


def _is_larger(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a / b > c / d; a denominator of zero is infinity."""
    a, b = one
    c, d = other
    # Both denominators are at least zero. Against another infinity the products are equal (0).
    return a * d > c * b


def log_upper(numerator: int, denominator: int) -> float:
    """The smallest double b >= 0 with numerator / denominator <= e^b.

    It is ``inf`` for a zero denominator. The quotient is at most e^x for a double x >= 0 exactly
    where b <= x. Such a b can always be found: the logarithm of a rational quotient other than 1 is
    irrational (Lindemann), so it lies strictly between two doubles.
    """
    if numerator <= denominator:
        return 0.0
    if not denominator:
        return math.inf
    return double_above(lambda: arb(fmpq(numerator, denominator)).log())


# ------------------------------------------------------------------------------- strata


def strata_of(given: Sequence[str], joint: Joint) -> list[int]:
    """The stratum of every useful symbol of a table: strata are numbered as they first occur."""
    useful = joint.useful
    places = [useful.columns.index(name) for name in given]
    numbers: dict[tuple[str, ...], int] = {}
    strata: list[int] = []
    for cells in useful.parts_of_symbols(places):
        strata.append(numbers.setdefault(cells, len(numbers)))
    return strata


def members_of(strata: Sequence[int]) -> list[list[int]]:
    """The useful symbols of each stratum, ascending."""
    members: list[list[int]] = [[] for _ in range(max(strata) + 1)]
    for x, stratum in enumerate(strata):
        members[stratum].append(x)
    return members


def stratum_demands(
    demands: Sequence[Demand], joint: Joint, notion: Notion, strata: Sequence[int]
) -> list[list[Demand]]:
    """For each stratum the demands with P(s|k) in the place of P(s).

    Parameters
    ----------
    demands : sequence of Demand
        Those of the table: for each earlier output one for each secret, in this order.
    joint : Joint
        The table over the columns that are released.
    notion : Notion
    strata : sequence of int
        The stratum of every useful symbol.
    """
    secrets = stacked(joint.counts, joint, notion)
    by_stratum: list[list[Demand]] = []
    for members in members_of(strata):
        sums = [
            [sum(row[x] for x in members) for row in secret.counts]
            for secret in secrets
        ]
        of_stratum: list[Demand] = []
        for place, demand in enumerate(demands):
            of_stratum.append(replace(demand, sums=sums[place % len(secrets)]))
        by_stratum.append(of_stratum)
    return by_stratum


def given_achieved(joint: Joint, given: Sequence[str]) -> Achieved:
    """The smallest budgets that bound what the given columns alone tell, against P(s)."""
    strata = strata_of(given, joint)
    largest = LargestQuotients()
    for secret in joint.secrets:
        free = (math.inf,) * len(secret.sensitive)
        demand = Demand(
            counts=secret.counts,
            sums=secret.sensitive_counts,
            names=secret.sensitive.names,
            lower=free,
            upper=free,
            ratio=math.inf,
        )
        for stratum, inputs in enumerate(members_of(strata)):
            largest.add(
                output_masses(demand, inputs, [1] * len(inputs)), demand, stratum
            )
    return smallest_budgets(largest.extremes)


def given_away(joint: Joint, given: Sequence[str]) -> int:
    """How many records have given cells that occur with a single sensitive value."""
    certain = 0
    for inputs in members_of(strata_of(given, joint)):
        sums_by_secret = [
            [sum(row[x] for x in inputs) for row in secret.counts]
            for secret in joint.secrets
        ]
        if any(sums.count(0) == len(sums) - 1 for sums in sums_by_secret):
            certain += sum(sums_by_secret[0])
    return certain


def relative_lifts(
    channel: Channel,
    columns: Sequence[Entries],
    demands: Sequence[Demand],
    joint: Joint,
    notion: Notion,
) -> list[Extreme]:
    """As `extremes.extreme_lifts`, each output measured against its stratum."""
    strata = strata_of(channel.given, joint)
    by_stratum = stratum_demands(demands, joint, notion, strata)
    largest = LargestQuotients()
    for y, (inputs, values) in enumerate(columns):
        # All inputs of an output have its given cells (`Channel`).
        for demand in by_stratum[strata[inputs[0]]]:
            largest.add(output_masses(demand, inputs, values), demand, y)
    return largest.extremes
