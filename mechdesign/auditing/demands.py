"""Limits that are stacked: several tables, each with limits of its own on every sensitive symbol.

A promise is about more than one table where several secrets are protected each for itself, and where earlier
releases were made of the same record: given their outputs, the table ``sum P(s, x) u(x)`` is what is left, with
u the product of their columns, and its lifts are still measured against P(s). A symbol may have budgets of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechdesign.auditing.lifts import Demand
from mechdesign.auditing.tuples import columns_on, directions, everything, rows_on
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import SymbolBudgets
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.notions import LiftLimits, Notion
from mechdesign.tables.joint import Joint

MOST_TUPLES = 100_000
"""Different combinations of earlier outputs that a further channel is held against."""


def demands_of(
    joint: Joint, notion: Notion, after: Sequence[Channel] = (), useful: Joint | None = None
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
    place = range(len(joint.useful)) if target is joint else rows_on(target.useful, joint)
    demands: list[Demand] = []
    for (at, values), outputs in found:
        counts = [[0] * len(target.useful) for _ in joint.counts]
        for row, whole in zip(counts, joint.counts, strict=True):
            for x, value in zip(at, values, strict=True):
                row[place[x]] += whole[x] * value
        before = tuple(channel.outputs[y] for channel, y in zip(after, outputs, strict=True))
        demands += stacked(counts, joint, notion, before)
    return demands


def stacked(
    counts: Sequence[Sequence[int]], joint: Joint, notion: Notion, before: tuple[str, ...] = ()
) -> list[Demand]:
    """What the notion asks of each secret of the table, on counts with a row for each sensitive symbol of it."""
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(
            f"{notion.name} bounds averages: with protect-each, budgets of symbols, or after other releases use alip, "
            "lip, ldp, max-lift or min-lift"
        )
    own = _own(joint, limits)
    demands: list[Demand] = []
    for secret, names, rows in zip(
        joint.secrets, joint.sensitive.secret_names, joint.sensitive.added(counts), strict=True
    ):
        sides = [own.get(name, (limits.lower, limits.upper)) for name in names]
        lower, upper = zip(*sides, strict=True)
        demands.append(Demand(rows, secret.sensitive_counts, names, lower, upper, limits.ratio, before))
    return demands


def own_budgets(joint: Joint, notion: Notion) -> tuple[SymbolBudgets, ...]:
    """Budgets of single symbols as the channel file has them."""
    limits = notion.limits
    if limits.mean is not None or not limits.own:
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
