"""Limits that are stacked: several tables, each with limits of its own on every sensitive symbol.

A promise is about more than one table where several secrets are protected each for itself, and where earlier
releases were made of the same record: given their outputs, the table ``sum P(s, x) u(x)`` is what is left, with
u the product of their columns, and its lifts are still measured against P(s). A symbol may have budgets of its own.
The verdict compares every cell with its own limits, in integers; a tuple of outputs that never occurs asks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul

from mechdesign.auditing.exponentials import at_most_exp
from mechdesign.auditing.lifts import Entries, LiftCell
from mechdesign.auditing.tuples import columns_on, directions, everything, rows_on
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import SymbolBudgets
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.notions import LiftLimits, Notion
from mechdesign.tables.joint import Joint

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


def demands_of(
    joint: Joint, notion: Notion, after: Sequence[Channel] = (), useful: Joint | None = None
) -> list[Demand]:
    """What the notion asks of a channel on the table `useful` (this one by default) after earlier releases."""
    limits = notion.limits
    if not isinstance(limits, LiftLimits):
        raise InputError(
            f"{notion.name} bounds averages: with protect-each, budgets of symbols, or after other releases use alip, "
            "lip, ldp, max-lift or min-lift"
        )
    own = _own(joint, limits)
    found = everything(joint)
    for channel in after:
        found = directions(found, columns_on(channel, joint))
        if len(found) > MOST_TUPLES:
            raise InputError(
                f"the earlier channels have more than {MOST_TUPLES:,} different combinations of outputs; merge outputs"
            )
    target = joint if useful is None else useful
    place = rows_on(target.useful, joint)
    demands: list[Demand] = []
    for (at, values), outputs in found:
        before = tuple(channel.outputs[y] for channel, y in zip(after, outputs, strict=True))
        for secret, names in zip(joint.secrets, joint.sensitive.secret_names, strict=True):
            counts = [[0] * len(target.useful) for _ in names]
            for x, value in zip(at, values, strict=True):
                for row, whole in zip(counts, secret.counts, strict=True):
                    row[place[x]] += whole[x] * value
            sides = [own.get(name, (limits.lower, limits.upper)) for name in names]
            lower, upper = zip(*sides, strict=True)
            demands.append(Demand(counts, secret.sensitive_counts, names, lower, upper, limits.ratio, before))
    return demands


def own_budgets(joint: Joint, notion: Notion) -> tuple[SymbolBudgets, ...]:
    """Budgets of single symbols as the channel file has them."""
    limits = notion.limits
    if not isinstance(limits, LiftLimits) or not limits.own:
        return ()
    own = _own(joint, limits)
    return tuple(
        SymbolBudgets(
            symbol=symbol,
            column=secret.sensitive.columns[0] if joint.sensitive.each else None,
            eps_l=own[name][0] if own[name][0] < math.inf else "inf",
            eps_u=own[name][1] if own[name][1] < math.inf else "inf",
        )
        for secret, names in zip(joint.secrets, joint.sensitive.secret_names, strict=True)
        for symbol, name in zip(secret.sensitive.symbols, names, strict=True)
        if name in own
    )


def _own(joint: Joint, limits: LiftLimits) -> dict[str, tuple[float, float]]:
    """Own budgets by the name of the symbol; of several secrets a name may be given as column=symbol."""
    known: dict[str, str | None] = {}
    for secret, names in zip(joint.secrets, joint.sensitive.secret_names, strict=True):
        for plain, name in zip(secret.sensitive.names, names, strict=True):
            known[f"{secret.sensitive.columns[0]}={plain}"] = name
            known[plain] = None if known.get(plain, name) != name else name
    found: dict[str, tuple[float, float]] = {}
    for symbol, lower, upper in limits.own:
        if symbol not in known:
            raise InputError(
                f"a budget is given for {quoted(symbol)}, which is no sensitive symbol of the table"
            )
        name = known[symbol]
        if name is None or name in found:
            what = "stands in two columns: write COLUMN=SYMBOL" if name is None else "is given twice"
            raise InputError(f"a budget for the symbol {quoted(symbol)} {what}")
        found[name] = lower, upper
    return found


@dataclass(frozen=True)
class DemandCell:
    """A quotient with the budget whose exp must bound it; `side` is what of `verdict.Achieved` it tells."""

    side: str
    budget: float
    over: tuple[int, int]
    cell: LiftCell
    demand: Demand
    against: int | None = None

    @property
    def kept(self) -> bool:
        """Whether it keeps to its budget, decided exactly."""
        return math.isinf(self.budget) or at_most_exp(*self.over, self.budget)


def extreme_cells(columns: Iterable[Entries], demands: Sequence[Demand]) -> list[DemandCell]:
    """For every side and every different budget the cell with the largest quotient, of all outputs and tables."""
    most: dict[tuple[str, float], DemandCell] = {}

    def offer(
        side: str, budget: float, over: tuple[int, int], cell: LiftCell, against: int | None = None
    ) -> None:
        best = most.get((side, budget))
        if best is None or over[0] * best.over[1] > best.over[0] * over[1]:  # a zero below means infinity
            most[side, budget] = DemandCell(side, budget, over, cell, demand, against)

    for y, (at, values) in enumerate(columns):
        for demand in demands:
            masses = [sum(map(mul, [row[x] for x in at], values)) for row in demand.counts]
            output, total = sum(masses), sum(demand.sums)
            if not output:
                continue
            rows = zip(masses, demand.sums, strict=True)
            cells = [LiftCell(s, y, mass, row, output, total) for s, (mass, row) in enumerate(rows)]
            above = below = cells[0]
            for cell in cells:
                offer("eps_u", demand.upper[cell.s], cell.lift, cell)
                offer("eps_l", demand.lower[cell.s], cell.inverse, cell)
                above = cell if cell.mass * above.row > above.mass * cell.row else above
                below = cell if cell.mass * below.row < below.mass * cell.row else below
            ratio = above.mass * below.row, below.mass * above.row
            offer("eps_ldp", demand.ratio, ratio, above, below.s)
    return list(most.values())
