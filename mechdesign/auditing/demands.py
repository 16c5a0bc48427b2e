"""Limits on lifts as comparisons of integers, and the extreme lifts of a channel.

No floating point decides anything. For every output y and all sensitive symbols s, t a notion
limits

    l(s, y) <= e^eps_u,   1 / l(s, y) <= e^eps_l,   l(s, y) / l(t, y) <= e^eps_ldp,

where l(s, y) = P(s, y) / (P(s) P(y)) is the lift.

Every left side is a quotient of integers, because P(s, y) is a sum of counts times entries of the
channel. The largest quotient of each kind is found by exact comparison and its logarithm is rounded
up to a double (`log_upper`): the limit holds exactly if and only if that double is at most the
budget.

A promise is about more than one table if several secrets are protected each for itself, or if there
were earlier releases of the same record. Given their outputs, the table ``sum P(s, x) u(x)`` is
left, with u the product of their columns, and its lifts are still measured against P(s). A symbol
may have budgets of its own. Only the direction of a product matters for lifts, so tuples of outputs
with proportional columns count once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import Literal, TypeAlias

from flint import arb, fmpq

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import SymbolBudgets
from mechdesign.core.balls import double_above
from mechdesign.core.errors import InputError
from mechdesign.core.limits import SymbolBudget
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Rows of the positive entries of one output, and those entries."""

Direction: TypeAlias = tuple[Entries, tuple[int, ...]]
"""A column over the useful symbols without common divisor, and the outputs of its first tuple."""

MOST_TUPLES = 100_000
"""Different combinations of earlier outputs up to which a further channel is judged."""


@dataclass(frozen=True)
class Demand:
    """One table with its limits.

    Parameters
    ----------
    counts : integers by sensitive symbol and by useful symbol
        In proportion to P(s, x), after earlier releases times u(x).
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
    def total(self) -> int:
        """The common denominator of P(s)."""
        return sum(self.sums)

    @cached_property
    def groups(self) -> list[tuple[str, float, list[int]]]:
        """(side, budget, symbols with this budget on this side); quotients have one for all
        symbols.

        One comparison of integers decides a whole group: that of its extreme symbols.
        """
        members: dict[tuple[str, float], list[int]] = {}
        for s, budget in enumerate(self.lower):
            members.setdefault(("eps_l", budget), []).append(s)
        for s, budget in enumerate(self.upper):
            members.setdefault(("eps_u", budget), []).append(s)
        for s in range(len(self.sums)):
            members.setdefault(("eps_ldp", self.ratio), []).append(s)
        return [(side, budget, symbols) for (side, budget), symbols in members.items()]


@dataclass(frozen=True)
class Extreme:
    """The largest quotient of one side, with the budget whose exp must bound it.

    Parameters
    ----------
    side : 'eps_l', 'eps_u' or 'eps_ldp'
        The field of `verdict.Achieved` that it belongs to.
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


def extreme_lifts(
    columns: Iterable[Entries], demands: Sequence[Demand]
) -> list[Extreme]:
    """For every side and every different budget the largest quotient, of all outputs and tables.

    Every cell is compared exactly; of equal quotients the first counts. Outputs that never occur
    demand nothing.
    """
    largest: dict[tuple[str, float], Extreme] = {}
    for y, (inputs, values) in enumerate(columns):
        for demand in demands:
            masses = _masses_of(demand, inputs, values)
            output = sum(masses)
            if not output:
                continue
            for side, budget, symbols in demand.groups:
                extreme = _extreme_of(demand, side, budget, symbols, masses, output, y)
                best = largest.get((side, budget))
                if best is None or _is_larger(extreme.over, best.over):
                    largest[side, budget] = extreme
    return list(largest.values())


def _masses_of(
    demand: Demand, inputs: Sequence[int], values: Sequence[int]
) -> list[int]:
    """The mass of an output with each sensitive symbol of the demand."""
    masses: list[int] = []
    for row in demand.counts:
        counts = [row[x] for x in inputs]
        masses.append(sum(map(mul, counts, values)))
    return masses


def _is_larger(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a / b > c / d; a denominator of zero is infinity."""
    a, b = one
    c, d = other
    # Both denominators are at least zero. Against another infinity the products are equal (0).
    return a * d > c * b


def _extreme_of(
    demand: Demand,
    side: str,
    budget: float,
    symbols: Sequence[int],
    masses: Sequence[int],
    output: int,
    y: int,
) -> Extreme:
    """The largest quotient of one side among some symbols on one output.

    With masses m_s proportional to P(s, y) and sums r_s proportional to P(s), l(s, y) = m_s total /
    (r_s output).
    """
    sums = demand.sums
    names = demand.names
    s = _extreme_symbol(symbols, masses, sums, largest=side != "eps_l")
    lift = (masses[s] * demand.total, sums[s] * output)
    over = lift
    against = None
    if side == "eps_l":
        over = (lift[1], lift[0])
    elif side == "eps_ldp":
        t = _extreme_symbol(symbols, masses, sums, largest=False)
        over = (masses[s] * sums[t], masses[t] * sums[s])
        against = names[t]
    return Extreme(side, budget, over, lift, names[s], y, against, demand.before)


def _extreme_symbol(
    symbols: Sequence[int],
    masses: Sequence[int],
    sums: Sequence[int],
    *,
    largest: bool,
) -> int:
    """The first of the symbols with the largest or the smallest lift, by products of integers."""
    best = symbols[0]
    for s in symbols[1:]:
        difference = masses[s] * sums[best] - masses[best] * sums[s]
        if not largest:
            difference = -difference
        if difference > 0:
            best = s
    return best


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


def rows_on(useful: Variable, joint: Joint) -> list[int]:
    """The row of a channel on `useful` for each useful symbol of the table.

    The table may have further useful columns.
    """
    columns = useful.columns
    whole = joint.useful
    if set(columns) <= set(whole.columns):
        positions = [whole.columns.index(column) for column in columns]
    elif len(columns) == len(whole.columns):
        # A wide table has the symbols in its header, and no name of the column.
        positions = list(range(len(columns)))
    else:
        missing = [column for column in columns if column not in whole.columns]
        raise InputError(
            f"the table has no useful column {listed(missing)}, which the channel releases"
        )
    symbols = whole.parts_of_symbols(positions)
    present = set(symbols)
    unknown: list[str] = []
    for name, symbol in zip(useful.names, useful.symbols, strict=True):
        if symbol not in present:
            unknown.append(name)
    if unknown:
        raise InputError(
            f"the table has no useful symbol {listed(unknown)}, which the channel has"
        )
    without_row: list[str] = []
    for symbol in dict.fromkeys(symbols):
        if symbol not in useful.index:
            without_row.append(", ".join(symbol))
    if without_row:
        raise InputError(
            f"the channel has no row for the useful symbol {listed(without_row)} of the table"
        )
    return [useful.index[symbol] for symbol in symbols]


def released_part(channel: Channel, joint: Joint) -> Joint:
    """The table of the useful columns that a channel releases, from a table that may have more."""
    columns = channel.useful.columns
    if set(columns) < set(joint.useful.columns):
        return joint.releasing(columns)
    return joint


def columns_on(channel: Channel, joint: Joint) -> list[Entries]:
    """The column of every output over the useful symbols of the table."""
    if channel.useful is joint.useful:
        return list(channel.integers.columns)
    # Symbols of the table that differ only in columns that are not released share a row.
    sharing: list[list[int]] = [[] for _ in channel.useful.symbols]
    for x, row in enumerate(rows_on(channel.useful, joint)):
        sharing[row].append(x)
    columns: list[Entries] = []
    for rows, values in channel.integers.columns:
        pairs: list[tuple[int, int]] = []
        for row, value in zip(rows, values, strict=True):
            pairs += [(x, value) for x in sharing[row]]
        pairs.sort()
        inputs = [x for x, _ in pairs]
        columns.append((inputs, [value for _, value in pairs]))
    return columns


def everything(joint: Joint) -> list[Direction]:
    """The direction of no release at all: the column of ones, after no outputs."""
    n = len(joint.useful)
    return [((range(n), [1] * n), ())]


def directions(
    earlier: Iterable[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Products of every direction and column, each direction once.

    Tuples of outputs that never occur together are left out.
    """
    first_tuples: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}
    entries = [dict(zip(*column, strict=True)) for column in columns]
    for (inputs, values), outputs in earlier:
        for y, entry_of in enumerate(entries):
            support: list[int] = []
            products: list[int] = []
            for x, value in zip(inputs, values, strict=True):
                if x in entry_of:
                    support.append(x)
                    products.append(value * entry_of[x])
            if not support:
                continue
            # Proportional columns are equal without their common divisor.
            divisor = math.gcd(*products)
            key = (
                tuple(support),
                tuple(product // divisor for product in products),
            )
            first_tuples.setdefault(key, (*outputs, y))
    return list(first_tuples.items())


def demands_of(
    joint: Joint,
    notion: Notion,
    after: Sequence[Channel] = (),
    useful: Joint | None = None,
) -> list[Demand]:
    """The limits that the notion sets a channel after earlier releases.

    The channel is on the table `useful`, by default `joint` itself.
    """
    earlier = everything(joint)
    for channel in after:
        earlier = directions(earlier, columns_on(channel, joint))
        if len(earlier) > MOST_TUPLES:
            raise InputError(
                f"the earlier channels have more than {MOST_TUPLES:,} different "
                "combinations of outputs; merge outputs"
            )
    if useful is None or useful is joint:
        target = joint
        places: Sequence[int] = range(len(joint.useful))
    else:
        # Earlier channels may release columns that this one does not, so tables are formed on all
        # columns, and symbols then merged.
        target = useful
        places = rows_on(target.useful, joint)
    demands: list[Demand] = []
    for (inputs, values), outputs in earlier:
        counts = [[0] * len(target.useful) for _ in joint.counts]
        for row, whole in zip(counts, joint.counts, strict=True):
            for x, value in zip(inputs, values, strict=True):
                row[places[x]] += whole[x] * value
        before = tuple(
            channel.outputs[y] for channel, y in zip(after, outputs, strict=True)
        )
        demands += stacked(counts, joint, notion, before)
    return demands


def stacked(
    counts: Sequence[Sequence[int]],
    joint: Joint,
    notion: Notion,
    before: tuple[str, ...] = (),
) -> list[Demand]:
    """The limits for each secret of the table, on counts with a row for each of its sensitive
    symbols.
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
        demand = Demand(
            counts=rows,
            sums=secret.sensitive_counts,
            names=names,
            lower=tuple(lower for lower, _ in budgets),
            upper=tuple(upper for _, upper in budgets),
            ratio=limits.ratio,
            before=before,
        )
        demands.append(demand)
    return demands


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


def _json_budget(budget: float) -> float | Literal["inf"]:
    """A budget for JSON, which has no infinity."""
    if math.isinf(budget):
        return "inf"
    return budget


def allowed_sides(sensitive: Variable, notion: Notion) -> list[tuple[float, float]]:
    """eps_l and eps_u of every protected symbol, in the order of `Variable.protected`."""
    special = _special_budgets(sensitive, notion.symbol_budgets)
    common = (notion.limits.lower, notion.limits.upper)
    return [special.get(name, common) for _, _, name in sensitive.protected]


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
