"""What a notion demands of a channel: tables of integers, each with the limits on its lifts.

For every output y and all sensitive symbols s, t a notion limits

    l(s, y) <= e^eps_u,   1 / l(s, y) <= e^eps_l,   l(s, y) / l(t, y) <= e^eps_ldp,

where l(s, y) = P(s, y) / (P(s) P(y)) is the lift. A `Demand` is one table with these limits;
`extremes` decides whether a channel keeps them.

Often there is one table. A promise is about more than one in two cases:

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from mechdesign.auditing.columns import (
    Direction,
    FilledCounts,
    columns_on,
    directions,
    everything,
    rows_on,
)
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import SymbolBudgets
from mechdesign.core.errors import InputError
from mechdesign.core.limits import SymbolBudget
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

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
