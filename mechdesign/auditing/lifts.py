"""What a notion demands of the lifts of a channel, and its extreme lifts, compared in integers.

For every output y and all sensitive symbols s, t a notion limits

    l(s, y) <= e^eps_u,   1 / l(s, y) <= e^eps_l,   l(s, y) / l(t, y) <= e^eps_ldp,

where l(s, y) = P(s, y) / (P(s) P(y)) is the lift.

*Demands.* A `Demand` is one table with these limits. Often there is one table. A promise is about
more than one in two cases:

- several secrets are protected each for itself: one table for each of them (`stacked`);
- there were earlier releases of the same record. Given their outputs y1, .., yk the table

      sum over x of P(s, x) u(x) W(y|x),   u(x) = W1(y1|x) .. Wk(yk|x),

  is left of P(s, y), and its lifts are still measured against P(s) before all releases. Only the
  direction of u matters for lifts, so tuples of outputs with proportional u count once
  (`columns.directions`). `demands_of` forms the tables for all of them.

Example: the counts (4, 2) of s and (2, 4) of t, after an output with u = (3, 1), leave the table
(12, 2), (6, 4) with `sums` still (6, 6). An output that then gives the first symbol alone has the
masses (12, 6), and s the lift (12 / 18) / (6 / 12) = 4/3.

A symbol may also have budgets of its own, which take the place of the common ones
(`_special_budgets`).

*Extremes.* With masses m_s proportional to P(s, y), o their sum, sums r_s proportional to P(s) and
N their sum, the lift is l(s, y) = m_s N / (r_s o), and the limits are on the quotients

    eps_u     l(s, y)            =  m_s N / (r_s o)
    eps_l     1 / l(s, y)        =  r_s o / (m_s N)
    eps_ldp   l(s, y) / l(t, y)  =  m_s r_t / (m_t r_s)

each by exp of a budget. `LargestQuotients` is fed output by output. It keeps the largest quotient
of every side and every different budget, comparing a/b with c/d by the products a d and c b. Only
these few have their logarithms enclosed (`log_upper`), which is slow. The limits hold exactly if
and only if none of these logarithms, rounded up to a double, is above its budget.

Example: masses (3, 1) with sums (5, 5) have the lifts 6/4 and 2/4. The quotients are 3/2 for
eps_u, 2 for eps_l and 3 for eps_ldp, so the budgets that are used are log(3/2), log 2 and log 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from mechdesign.auditing.columns import (
    SPARSE,
    Direction,
    Entries,
    FilledCounts,
    columns_on,
    directions,
    everything,
    first_of_constants,
    rows_on,
)
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import SymbolBudgets
from mechdesign.core.balls import double_above
from mechdesign.core.errors import InputError
from mechdesign.core.limits import SymbolBudget
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Array = NDArray[np.float64]

# ------------------------------------------------------------------------------ demands

MOST_TUPLES = 100_000
"""Different combinations of earlier outputs up to which a further channel is judged."""


class Limit(NamedTuple):
    """One budget (nats) on one side ('eps_l', 'eps_u' or 'eps_ldp'), and the symbols that have
    it.
    """

    side: str
    budget: float
    symbols: list[int]


@dataclass(frozen=True)
class Demand:
    """One table with its limits.

    Parameters
    ----------
    counts : integers by sensitive symbol and by useful symbol
        In proportion to P(s, x), after earlier releases times u(x). Empty where the masses of
        outputs come from elsewhere.
    sums : integers by sensitive symbol
        In proportion to P(s), before all releases.
    names : tuple of str
        Of the sensitive symbols.
    lower, upper : floats by sensitive symbol
        Budgets eps_l and eps_u in nats, possibly infinite.
    ratio : float
        Budget of the quotients of lifts, in nats.
    before : tuple of str
        The earlier outputs, given which this table is left.
    """

    counts: Sequence[Sequence[int]]
    sums: Sequence[int]
    names: Sequence[str]
    lower: Sequence[float]
    upper: Sequence[float]
    ratio: float
    before: tuple[str, ...] = ()

    @cached_property
    def filled(self) -> FilledCounts:
        """The counts, and where they are not zero."""
        return FilledCounts(self.counts)

    @cached_property
    def total(self) -> int:
        """The common denominator of P(s)."""
        return sum(self.sums)

    @cached_property
    def limits(self) -> list[Limit]:
        """The limits, symbols with the same budget on a side together.

        One comparison of integers decides such a group: that of its extreme symbols.
        """
        # A symbol without records in a stratum has no lift against the stratum's prior (0/0).
        present = [s for s, count in enumerate(self.sums) if count]
        symbols_of: dict[tuple[str, float], list[int]] = {}
        for s in present:
            symbols_of.setdefault(("eps_l", self.lower[s]), []).append(s)
        for s in present:
            symbols_of.setdefault(("eps_u", self.upper[s]), []).append(s)
        # A quotient compares any two symbols, so all share one budget.
        if present:
            symbols_of["eps_ldp", self.ratio] = present
        limits: list[Limit] = []
        for (side, budget), symbols in symbols_of.items():
            limits.append(Limit(side, budget, symbols))
        return limits


def demands_of(
    joint: Joint,
    notion: Notion,
    after: Sequence[Channel] = (),
    useful: Joint | None = None,
) -> list[Demand]:
    """The limits that the notion sets a channel after earlier releases.

    The channel is on the table `useful`, by default `joint` itself.

    Raises
    ------
    InputError
        If the notion bounds averages, has a budget for no symbol or for an ambiguous one, or the
        earlier channels have too many combinations of outputs.
    """
    if useful is None or useful is joint:
        target = joint
        places: Sequence[int] = range(len(joint.useful))
    else:
        # Earlier channels may release columns that this one does not, so tables are formed on all
        # columns, and symbols then merged.
        target = useful
        places = rows_on(target.useful, joint)
    if not after and target is joint:
        return stacked(joint.counts, joint, notion, ())
    demands: list[Demand] = []
    for (inputs, values), outputs in _earlier_tuples(joint, after):
        counts = [[0] * len(target.useful) for _ in joint.counts]
        for row, whole in zip(counts, joint.counts, strict=True):
            for x, value in zip(inputs, values, strict=True):
                row[places[x]] += whole[x] * value
        before: list[str] = []
        for channel, y in zip(after, outputs, strict=True):
            before.append(channel.outputs[y])
        demands += stacked(counts, joint, notion, tuple(before))
    return demands


def _earlier_tuples(joint: Joint, after: Sequence[Channel]) -> list[Direction]:
    """The different products u(x) of the columns of earlier channels."""
    earlier = everything(joint)
    for channel in after:
        earlier = directions(earlier, columns_on(channel, joint))
        if len(earlier) > MOST_TUPLES:
            raise InputError(
                f"the earlier channels have more than {MOST_TUPLES:,} different "
                "combinations of outputs; merge outputs"
            )
    return earlier


def stacked(
    counts: Sequence[Sequence[int]],
    joint: Joint,
    notion: Notion,
    before: tuple[str, ...] = (),
) -> list[Demand]:
    """The limits for each secret of the table, on counts with a row for each of its sensitive
    symbols.

    A table that protects several columns each for itself has several secrets, else it has one.
    """
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(
            f"{notion.name} bounds averages: with protect-each, budgets of symbols, or "
            "after other releases use alip, lip, ldp, max-lift or min-lift"
        )
    sensitive = joint.sensitive
    special = _special_budgets(sensitive, limits.symbol_budgets)
    common = (limits.lower, limits.upper)
    demands: list[Demand] = []
    for secret, names, rows in zip(
        joint.secrets, sensitive.secret_names, sensitive.added(counts), strict=True
    ):
        budgets = [special.get(name, common) for name in names]
        lower, upper = zip(*budgets, strict=True)
        demand = Demand(
            counts=rows,
            sums=secret.sensitive_counts,
            names=names,
            lower=lower,
            upper=upper,
            ratio=limits.ratio,
            before=before,
        )
        demands.append(demand)
    return demands


def allowed_sides(sensitive: Variable, notion: Notion) -> list[tuple[float, float]]:
    """eps_l and eps_u of every protected symbol, in the order of `Variable.protected`."""
    special = _special_budgets(sensitive, notion.symbol_budgets)
    common = (notion.limits.lower, notion.limits.upper)
    return [special.get(name, common) for _, _, name in sensitive.protected]


def own_budgets(joint: Joint, notion: Notion) -> tuple[SymbolBudgets, ...]:
    """Budgets of single symbols as the channel file has them."""
    special = _special_budgets(joint.sensitive, notion.symbol_budgets)
    budgets: list[SymbolBudgets] = []
    for column, symbol, name in joint.sensitive.protected:
        if name not in special:
            continue
        eps_l, eps_u = special[name]
        budgets.append(
            SymbolBudgets(
                symbol=symbol,
                column=column,
                eps_l=_json_budget(eps_l),
                eps_u=_json_budget(eps_u),
            )
        )
    return tuple(budgets)


def _special_budgets(
    sensitive: Variable, budgets: Sequence[SymbolBudget]
) -> dict[str, tuple[float, float]]:
    """Budgets (eps_l, eps_u) of single symbols, by their names (`Variable.protected`)."""
    special: dict[str, tuple[float, float]] = {}
    for symbol, lower, upper in budgets:
        names = sensitive.meant(symbol)
        if not names:
            raise InputError(
                f"a budget is given for {quoted(symbol)}, which is no sensitive symbol"
            )
        if len(names) > 1:
            raise InputError(
                f"a budget for the symbol {quoted(symbol)} stands in two columns: "
                f"write COLUMN=SYMBOL ({listed(names)})"
            )
        if names[0] in special:
            raise InputError(f"a budget for the symbol {quoted(symbol)} is given twice")
        special[names[0]] = (lower, upper)
    return special


def _json_budget(budget: float) -> float | Literal["inf"]:
    """A budget for JSON, which has no infinity."""
    if math.isinf(budget):
        return "inf"
    return budget


# ----------------------------------------------------------------------------- extremes

MANY_OUTPUTS = 100
"""Outputs from which those that cannot have the largest quotient are left out by doubles first."""

LARGEST_ENTRY = 2**900
"""Entries from which they are divided by the largest one: sums of doubles stay finite."""

LEAST_SHARE = 2.0**-900
"""Least share of the largest entry; all quotients of sums keep their digits."""

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
    of_outputs = _masses_of_outputs([columns[y] for y in chosen], demands)
    for y, of_demands in zip(chosen, of_outputs, strict=True):
        for demand, masses in zip(demands, of_demands, strict=True):
            largest.add(masses, demand, y)
    return largest.extremes


def _masses_of_outputs(
    columns: Sequence[Entries], demands: Sequence[Demand]
) -> Iterator[list[list[int]]]:
    """The masses of each output in turn, on the table of every demand."""
    if len(demands) == 1:
        for masses in demands[0].filled.masses_of_each(columns):
            yield [masses]
        return
    # Masses of many outputs at once on each of thousands of tables would not fit into memory.
    for inputs, values in columns:
        yield [output_masses(demand, inputs, values) for demand in demands]


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
        doubles = chain.from_iterable(_in_doubles(w) for _, w in columns)
        values = np.fromiter(doubles, np.float64)
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
        # Counts beyond the largest double, or quotients next to 0.
        return range(len(columns))
    return np.flatnonzero(is_possible).tolist()


def _in_doubles(values: Sequence[int]) -> Sequence[float]:
    """The entries of an output, or their shares of the largest one where it is a long integer.

    No lift changes when all entries are divided by the same number.

    Raises
    ------
    FloatingPointError
        If such a share has fewer digits than a double.
    """
    largest = max(values, default=0)
    if largest < LARGEST_ENTRY:
        return values
    # Python rounds quotients of integers correctly.
    shares = [value / largest for value in values]
    if min(shares) < LEAST_SHARE:
        raise FloatingPointError("a share of the largest entry is too small")
    return shares


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
