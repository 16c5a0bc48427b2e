"""What is demanded of lifts, as ratios of integers, and the extreme ones of a channel; no floating point.

A promise is about more than one table where several secrets are protected each for itself, and where earlier
releases were made of the same record: given their outputs, the table ``sum P(s, x) u(x)`` is what is left, with
u the product of their columns, and its lifts are still measured against P(s). A symbol may have budgets of its own.
Only the direction of a product matters for lifts, so tuples of outputs with proportional columns count once.
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
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion, OwnBudget
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Rows of the positive entries of one output, and those entries."""

Direction: TypeAlias = tuple[Entries, tuple[int, ...]]
"""A column over the useful symbols without common divisor, and the outputs of its first tuple."""

MOST_TUPLES = 100_000
"""Different combinations of earlier outputs that a further channel is held against."""


@dataclass(frozen=True)
class Demand:
    """One table with its limits.

    `counts` has a row for each sensitive symbol and a column for each useful one, `sums` are total * P(s), `lower`
    and `upper` the budgets of each symbol in nats, `ratio` that of their quotients, `before` the earlier outputs.
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
        """Symbols with the same budget, by side; all of them have one for their quotients."""
        found: dict[tuple[str, float], list[int]] = {}
        ratios = [self.ratio] * len(self.sums)
        for side, budgets in (
            ("eps_l", self.lower),
            ("eps_u", self.upper),
            ("eps_ldp", ratios),
        ):
            for s, budget in enumerate(budgets):
                found.setdefault((side, budget), []).append(s)
        return [(*key, rows) for key, rows in found.items()]


@dataclass(frozen=True)
class Extreme:
    """The largest quotient `over` of one side, with the budget whose exp must bound it; a zero below is infinity.

    `side` is what of `verdict.Achieved` it tells; `lift` is that of `sensitive` on output `y`.
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
        """The smallest double that bounds its logarithm."""
        return log_upper(*self.over)

    @property
    def kept(self) -> bool:
        """Whether it keeps to its budget, decided exactly (`log_upper`); an infinite one is no limit."""
        return self.used <= self.budget


def extreme_lifts(
    columns: Iterable[Entries], demands: Sequence[Demand]
) -> list[Extreme]:
    """For every side and every different budget the largest quotient, of all outputs and tables.

    Found by exact comparison of every cell; of equal ones the first. Outputs that never occur demand nothing.
    """
    most: dict[tuple[str, float], Extreme] = {}
    for y, (at, values) in enumerate(columns):
        for demand in demands:
            sums, names = demand.sums, demand.names
            masses = [
                sum(map(mul, [row[x] for x in at], values)) for row in demand.counts
            ]
            output = sum(masses)
            if not output:
                continue
            for side, budget, rows in demand.groups:
                s, against = _extreme(rows, masses, sums, largest=side != "eps_l"), None
                over = lift = masses[s] * demand.total, sums[s] * output
                if side == "eps_l":
                    over = lift[1], lift[0]
                elif side == "eps_ldp":
                    t = _extreme(rows, masses, sums, largest=False)
                    over, against = (masses[s] * sums[t], masses[t] * sums[s]), names[t]
                key = side, budget
                best = most.get(key)
                if best is None or over[0] * best.over[1] > best.over[0] * over[1]:
                    most[key] = Extreme(
                        *key, over, lift, names[s], y, against, demand.before
                    )
    return list(most.values())


def _extreme(
    rows: Sequence[int], masses: Sequence[int], sums: Sequence[int], *, largest: bool
) -> int:
    """The symbol with the largest or the smallest lift among some."""
    best = rows[0]
    for s in rows[1:]:
        difference = masses[s] * sums[best] - masses[best] * sums[s]
        if difference > 0 if largest else difference < 0:
            best = s
    return best


def log_upper(numerator: int, denominator: int) -> float:
    """The smallest double b >= 0 with numerator / denominator <= e^b; ``inf`` for a zero denominator.

    So the quotient is at most e^x for a double x >= 0 exactly where b <= x, and there is always such a b: the logarithm
    of a quotient other than 1 is no rational number (e^x is irrational for rational x != 0: Lindemann).
    """
    if numerator <= denominator:
        return 0.0
    return (
        double_above(lambda: arb(fmpq(numerator, denominator)).log())
        if denominator
        else math.inf
    )


def rows_on(useful: Variable, joint: Joint) -> list[int]:
    """Which row of a channel on `useful` each useful symbol of the table has; its columns may be some of those."""
    columns, whole = useful.columns, joint.useful
    if set(columns) <= set(whole.columns):
        at = [whole.columns.index(column) for column in columns]
    elif len(columns) == len(
        whole.columns
    ):  # a wide table need not say how its column is called
        at = list(range(len(columns)))
    else:
        missing = [column for column in columns if column not in whole.columns]
        raise InputError(
            f"the table has no useful column {listed(missing)}, which the channel releases"
        )
    symbols = [tuple(symbol[i] for i in at) for symbol in whole.symbols]
    present, named = {*symbols}, zip(useful.names, useful.symbols, strict=True)
    if unknown := [name for name, symbol in named if symbol not in present]:
        raise InputError(
            f"the table has no useful symbol {listed(unknown)}, which the channel has"
        )
    if missing := [
        ", ".join(symbol)
        for symbol in dict.fromkeys(symbols)
        if symbol not in useful.index
    ]:
        raise InputError(
            f"the channel has no row for the useful symbol {listed(missing)} of the table"
        )
    return [useful.index[symbol] for symbol in symbols]


def released_part(channel: Channel, joint: Joint) -> Joint:
    """The table of the useful columns that a channel releases, of one that may have more."""
    columns = channel.useful.columns
    return (
        joint.releasing(columns) if set(columns) < set(joint.useful.columns) else joint
    )


def columns_on(channel: Channel, joint: Joint) -> list[Entries]:
    """The column of every output over the useful symbols of the table."""
    if channel.useful is joint.useful:
        return list(channel.integers.columns)
    places: list[list[int]] = [[] for _ in channel.useful.symbols]
    for x, row in enumerate(rows_on(channel.useful, joint)):
        places[row].append(x)
    columns: list[Entries] = []
    for rows, values in channel.integers.columns:
        pairs = sorted(
            (x, value)
            for row, value in zip(rows, values, strict=True)
            for x in places[row]
        )
        columns.append(([x for x, _ in pairs], [value for _, value in pairs]))
    return columns


def everything(joint: Joint) -> list[Direction]:
    """The direction of no release at all."""
    n = len(joint.useful)
    return [((range(n), [1] * n), ())]


def directions(
    found: Iterable[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Products of every direction and column, each direction once; tuples that never occur are left out."""
    seen: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}
    lookup = [dict(zip(*column, strict=True)) for column in columns]
    for (at, values), outputs in found:
        for y, column in enumerate(lookup):
            pairs = [
                (x, value * column[x])
                for x, value in zip(at, values, strict=True)
                if x in column
            ]
            if pairs:
                divisor = math.gcd(*(value for _, value in pairs))
                key = (
                    tuple(x for x, _ in pairs),
                    tuple(value // divisor for _, value in pairs),
                )
                seen.setdefault(key, (*outputs, y))
    return [((at, values), outputs) for (at, values), outputs in seen.items()]


def demands_of(
    joint: Joint,
    notion: Notion,
    after: Sequence[Channel] = (),
    useful: Joint | None = None,
) -> list[Demand]:
    """What the notion asks of a channel on the table `useful` (this one by default) after earlier releases."""
    found = everything(joint)
    for channel in after:
        found = directions(found, columns_on(channel, joint))
        if len(found) > MOST_TUPLES:
            raise InputError(
                f"the earlier channels have more than {MOST_TUPLES:,} different combinations of outputs; merge outputs"
            )
    target = joint if useful is None else useful
    place = (
        range(len(joint.useful)) if target is joint else rows_on(target.useful, joint)
    )
    demands: list[Demand] = []
    for (at, values), outputs in found:
        counts = [[0] * len(target.useful) for _ in joint.counts]
        for row, whole in zip(counts, joint.counts, strict=True):
            for x, value in zip(at, values, strict=True):
                row[place[x]] += whole[x] * value
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
    """What the notion asks of each secret of the table, on counts with a row for each sensitive symbol of it."""
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(
            f"{notion.name} bounds averages: with protect-each, budgets of symbols, or after other releases use alip, "
            "lip, ldp, max-lift or min-lift"
        )
    own, sensitive = _own(joint.sensitive, limits.own), joint.sensitive
    demands: list[Demand] = []
    parts = zip(
        joint.secrets, sensitive.secret_names, sensitive.added(counts), strict=True
    )
    for secret, names, rows in parts:
        lower, upper = zip(
            *(own.get(name, (limits.lower, limits.upper)) for name in names),
            strict=True,
        )
        demands.append(
            Demand(
                rows, secret.sensitive_counts, names, lower, upper, limits.ratio, before
            )
        )
    return demands


def own_budgets(joint: Joint, notion: Notion) -> tuple[SymbolBudgets, ...]:
    """Budgets of single symbols as the channel file has them."""
    own, found = _own(joint.sensitive, notion.own), list[SymbolBudgets]()
    for column, symbol, name in joint.sensitive.protected:
        if name in own:
            sides: list[float | Literal["inf"]] = [
                side if side < math.inf else "inf" for side in own[name]
            ]
            found.append(
                SymbolBudgets(
                    symbol=symbol, column=column, eps_l=sides[0], eps_u=sides[1]
                )
            )
    return tuple(found)


def allowed_sides(sensitive: Variable, notion: Notion) -> list[tuple[float, float]]:
    """eps_l and eps_u of everything that is protected, in the order of `Variable.protected`."""
    own, both = _own(sensitive, notion.own), (notion.limits.lower, notion.limits.upper)
    return [own.get(name, both) for _, _, name in sensitive.protected]


def _own(
    sensitive: Variable, budgets: Sequence[OwnBudget]
) -> dict[str, tuple[float, float]]:
    """Own budgets by the name of the symbol (`Variable.protected`)."""
    found: dict[str, tuple[float, float]] = {}
    for symbol, lower, upper in budgets:
        match sensitive.meant(symbol):
            case []:
                raise InputError(
                    f"a budget is given for {quoted(symbol)}, which is no sensitive symbol"
                )
            case [name] if name not in found:
                found[name] = lower, upper
            case [_]:
                raise InputError(
                    f"a budget for the symbol {quoted(symbol)} is given twice"
                )
            case several:
                raise InputError(
                    f"a budget for the symbol {quoted(symbol)} stands in two columns: write COLUMN=SYMBOL "
                    f"({listed(several)})"
                )
    return found
