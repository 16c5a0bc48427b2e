"""The exact verdict on a row channel: every leaf of the tree, in integers.

For a prefix of released symbols, N(s) = sum of count(row) * product of the tree's integers along
the prefix, over the rows with the sensitive symbol s. Its lift is

    P(s | prefix) / prior(s) = N(s) T / (n(s) N),   N = sum of N(s), T = sum of n(s),

with the prior n(s) of the whole table (total promise) or of the stratum (relative one): the powers
of 2^53 in N(s) and N are the same and cancel. Leaves are all that can be seen of a release, and a
prefix is a mean of its leaves; so the largest and the smallest lift of all prefixes are those of
the leaves (docs/explanation/rows-theory.md, proposition 2). For example N(s) = 9 and N(t) = 1, with
the priors 3 and 1, are lifts of 9 * 4 / (3 * 10) = 1.2 and 1 * 4 / (1 * 10) = 0.4.

`audit_rows` goes through three steps. `row_masses.PrefixMasses` walks the tree and yields N(s) of
prefixes, level by level. `extremes.LargestQuotients`, one for each level and one for the given
columns alone, keeps the largest quotient of every side, compared in integers. `_verdict` holds
these few against exp of their budgets, by enclosures (`Extreme.used`).

The module takes the tree and the counts as they are and knows nothing of how the tree was grown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.auditing.demands import Demand, allowed_sides
from mechdesign.auditing.extremes import (
    Achieved,
    Extreme,
    LargestQuotients,
    largest_of,
    smallest_budgets,
)
from mechdesign.auditing.row_masses import PrefixMasses, table_on, texts_of_row
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RELATIVE
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.integers import Integers
from mechdesign.core.wording import at_most, quoted
from mechdesign.notions import Notion
from mechdesign.tables.records import Records

MEANS = (
    "a promise about rows bounds single lifts: use alip, lip, ldp, max-lift or min-lift"
)
"""Why a notion on averages is refused, and what to use in its place."""


@dataclass(frozen=True)
class RowWorst:
    """The released row that uses most of its budget, in proportion.

    `row` has the given and released texts up to the point from which nothing depends on the record
    any more, `lift` is that of `sensitive`, correctly rounded, and `against` the other symbol of an
    LDP comparison.
    """

    sensitive: str
    row: tuple[str, ...]
    lift: float
    against: str | None = None


@dataclass(frozen=True, repr=False)
class RowAudit(Described):
    """An exact verdict on a row channel.

    Attributes
    ----------
    satisfied : bool
    notion : Notion
    promise : {"total", "relative"}
    achieved : Achieved
        Smallest doubles (nats) that bound all lifts of released rows, measured as the promise
        measures them.
    worst : RowWorst
    given : Achieved or None
        Lifts of the given columns alone, against the whole table; None without given columns.
    spent : tuple of Achieved
        What prefixes use, level by level: the first entry is that of the first level.
    leaves : int
    """

    satisfied: bool
    notion: Notion
    promise: str
    achieved: Achieved
    worst: RowWorst
    given: Achieved | None
    spent: tuple[Achieved, ...]
    leaves: int

    def __repr__(self) -> str:
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        budgets = vars(self.achieved).items()
        sides = ", ".join(f"{name} {at_most(value)}" for name, value in budgets)
        return (
            f"RowAudit({self.notion.text}, {self.promise}: {verdict}; achieved {sides})"
        )

    def summary(self) -> str:
        """The verdict, the worst row and what each level uses, as text."""
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        row = ", ".join(map(quoted, self.worst.row)) or "any row"
        lines = [
            f"{verdict}: {self.notion.text}, {self.promise} promise, {self.leaves:,} leaves "
            "checked exactly",
            f"achieved: eps_l {at_most(self.achieved.eps_l)}, eps_u "
            f"{at_most(self.achieved.eps_u)}, eps_ldp {at_most(self.achieved.eps_ldp)}",
            f"worst: {quoted(self.worst.sensitive)} after {row}, lift {self.worst.lift:.6g}",
        ]
        for k, used in enumerate(self.spent):
            lines.append(
                f"up to level {k + 1}: eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)}"
            )
        if self.given is not None:
            lines.append(
                f"given columns alone: eps_l {at_most(self.given.eps_l)}, eps_u "
                f"{at_most(self.given.eps_u)}"
            )
        return "\n".join(lines)


def audit_rows(
    channel: RowChannel,
    table: Any = None,
    notion: Notion | None = None,
    *,
    weight: str | None = None,
    missing: Any = "refuse",
) -> RowAudit:
    """Decide exactly whether a row channel keeps a promise on a table.

    Parameters
    ----------
    channel : RowChannel
    table : frame or Records, optional
        By default the rows that the channel carries.
    notion : Notion, optional
        By default what the channel was designed for, with its budgets of single symbols.
    weight, missing : as for `Records.from_table`

    Raises
    ------
    InputError
        If the table has other columns or symbols, or a row that the channel does not know, or the
        notion bounds averages.
    """
    require_type("channel", channel, RowChannel)
    records = table_on(channel, table, weight=weight, missing=missing)
    asked = channel.notion if notion is None else notion
    require_type("notion", asked, Notion, "; write one, as in LIP(0.5)")
    masses = PrefixMasses(channel, records)
    demands = demands_by_stratum(channel, records, masses.strata, asked)
    # The given columns are seen with every row, so a stratum alone must keep the promise, too.
    start = _quotients_of_strata(channel, records, masses.strata, demands)
    by_level = _quotients_by_level(channel, masses, demands)
    return _verdict(channel, records, asked, by_level, start, masses.strata)


def given_lifts(channel: RowChannel, records: Records, strata: Integers) -> Achieved:
    """What the given columns alone tell, measured against the whole table."""
    whole = records.sensitive_counts()
    # Infinite budgets: nothing is judged here, only measured.
    free = (math.inf,) * len(whole)
    demand = Demand(
        counts=(),
        sums=whole,
        names=channel.sensitive.names,
        lower=free,
        upper=free,
        ratio=math.inf,
    )
    demands = [demand] * len(channel.strata)
    largest = _quotients_of_strata(channel, records, strata, demands)
    return smallest_budgets(largest.extremes)


def demands_by_stratum(
    channel: RowChannel, records: Records, strata: Integers, notion: Notion
) -> list[Demand]:
    """The prior and the budgets of every stratum of a channel."""
    rows = [np.flatnonzero(strata == k) for k in range(len(channel.strata))]
    return promise_demands(records, rows, channel.record.promise, notion)


def promise_demands(
    records: Records, strata: Sequence[Integers], promise: str, notion: Notion
) -> list[Demand]:
    """The prior and the budgets of each stratum.

    Parameters
    ----------
    records : Records
    strata : sequence of integer arrays
        The positions of the rows of each stratum.
    promise : {"total", "relative"}
        The prior is P(s) of the whole table, or of the stratum.
    notion : Notion

    Raises
    ------
    InputError
        If the notion bounds averages.
    """
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(f"{notion.name} bounds averages: {MEANS}")
    lower, upper = zip(*allowed_sides(records.sensitive, notion), strict=True)
    whole = records.sensitive_counts()
    demands: list[Demand] = []
    for rows in strata:
        # Total: l = P(s | row) / P(s). Relative: l = P(s | row) / P(s | given columns).
        sums = whole
        if promise == RELATIVE:
            sums = records.sensitive_counts(rows)
        demand = Demand(
            counts=(),
            sums=sums,
            names=records.sensitive.names,
            lower=lower,
            upper=upper,
            ratio=limits.ratio,
        )
        demands.append(demand)
    return demands


def _quotients_of_strata(
    channel: RowChannel, records: Records, strata: Integers, demands: Sequence[Demand]
) -> LargestQuotients:
    """Quotients of the strata before anything else is released; `Extreme.y` is the stratum."""
    largest = LargestQuotients()
    for k in range(len(channel.strata)):
        # A stratum without records on this table has no mass, and so demands nothing.
        counts = records.sensitive_counts(np.flatnonzero(strata == k))
        largest.add(counts, demands[k], k)
    return largest


def _quotients_by_level(
    channel: RowChannel, masses: PrefixMasses, demands: Sequence[Demand]
) -> list[LargestQuotients]:
    """Quotients of the prefixes that end in each level; `Extreme.y` is the slot."""
    strata = _strata_of_slots(channel)
    by_level = [LargestQuotients() for _ in channel.levels]
    for level, slots, sums in masses:
        largest = by_level[level]
        stratum_of_slot: list[int] = strata[level][slots].tolist()
        for slot, stratum, prefix_masses in zip(
            slots.tolist(), stratum_of_slot, sums.tolist(), strict=True
        ):
            largest.add(prefix_masses, demands[stratum], slot)
    return by_level


def _strata_of_slots(channel: RowChannel) -> list[Integers]:
    """The stratum of every slot of every level, from the roots down.

    That of slots of shared constant nodes means nothing.
    """
    tree = channel.tree
    nodes = np.zeros(tree.levels[0].nodes, dtype=np.int64)
    nodes[tree.roots] = np.arange(len(tree.roots))
    strata: list[Integers] = []
    for k, table in enumerate(tree.levels):
        slots = nodes[table.slot_nodes]
        strata.append(slots)
        # A child has the stratum of its slot; constant nodes that several slots share keep
        # the last one, and no prefix is followed through them.
        if k + 1 < len(tree.levels):
            nodes = np.zeros(tree.levels[k + 1].nodes, dtype=np.int64)
            nodes[table.slot_children] = slots
    return strata


def _verdict(
    channel: RowChannel,
    records: Records,
    notion: Notion,
    by_level: Sequence[LargestQuotients],
    start: LargestQuotients,
    strata: Integers,
) -> RowAudit:
    """The verdict from the quotients of the given columns (`start`) and of every level."""
    level, worst = _worst_extreme(by_level, start)
    is_satisfied = True
    for largest in (start, *by_level):
        if not all(extreme.kept for extreme in largest.extremes):
            is_satisfied = False
    given: Achieved | None = None
    if channel.given:
        given = given_lifts(channel, records, strata)
    spent: list[Achieved] = []
    used = smallest_budgets(start.extremes)
    for largest in by_level:
        # Leaves of earlier levels are whole rows already: what they use stays used.
        used = largest_of([used, smallest_budgets(largest.extremes)])
        spent.append(used)
    return RowAudit(
        satisfied=is_satisfied,
        notion=notion,
        promise=channel.record.promise,
        achieved=used,
        worst=RowWorst(
            sensitive=worst.sensitive,
            row=prefix_texts(channel, level, worst.y),
            lift=worst.rounded_lift,
            against=worst.against,
        ),
        given=given,
        spent=tuple(spent),
        leaves=channel.tree.leaves,
    )


def _worst_extreme(
    by_level: Sequence[LargestQuotients], start: LargestQuotients
) -> tuple[int | None, Extreme]:
    """The level of the extreme that uses the largest share of its budget, and the extreme.

    The level is None for the given columns.
    """
    pairs: list[tuple[int | None, Extreme]] = []
    for level, largest in ((None, start), *enumerate(by_level)):
        for extreme in largest.extremes:
            pairs.append((level, extreme))
    return max(pairs, key=lambda pair: pair[1].share)


def prefix_texts(channel: RowChannel, level: int | None, place: int) -> tuple[str, ...]:
    """Given and released texts up to a slot of a level; with `level` None those of the stratum
    `place`.
    """
    if level is None:
        return texts_of_row(channel, place, ())
    tree = channel.tree
    slot = place
    node = int(tree.levels[level].slot_nodes[slot])
    outputs = [int(tree.levels[level].slot_outputs[slot])]
    # From the slot up to the root: the parent is the slot whose child is this node. It is the only
    # one, because a prefix ends where a constant node, which slots may share, begins.
    for table in reversed(tree.levels[:level]):
        slot = int(np.flatnonzero(table.slot_children == node)[0])
        node = int(table.slot_nodes[slot])
        outputs.append(int(table.slot_outputs[slot]))
    stratum = int(np.flatnonzero(tree.roots == node)[0])
    return texts_of_row(channel, stratum, outputs[::-1])
