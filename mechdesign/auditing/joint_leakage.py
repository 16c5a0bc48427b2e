"""The joint leakage of several releases of one record, each drawn independently of the others.

With channels W1, .., Wk on columns of one table,
``P(s, y1, .., yk) = sum_x P(s, x) W1(y1|x) .. Wk(yk|x)``: the releases are one channel whose
outputs are tuples, and whose column for a tuple is the product of the columns
(`auditing.joint_tuples` finds the extreme ones). A row channel is one channel of the crossed
columns, whose outputs are its leaves (`auditing.row_columns`).

Decided exactly: ``exp(-eps_l) <= l(s, y1, .., yk) <= exp(eps_u)`` for all tuples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.auditing.common_table import Released, common_table
from mechdesign.auditing.demands import (
    Direction,
    Entries,
    columns_on,
    directions,
    everything,
)
from mechdesign.auditing.joint_tuples import candidates, prune_directions
from mechdesign.auditing.row_columns import MOST_ENTRIES, leaf_columns
from mechdesign.auditing.verdict import Achieved, audit_columns
from mechdesign.channel.row_channel import RELATIVE, RowChannel
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most
from mechdesign.notions import LIP
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol

FOLLOWED = 20_000
"""Directions of all channels but the last that are followed; beyond it the limits need not meet."""

MOST_DENSE = 2**25
"""Doubles of the columns of one release of rows: 256 MB."""

MOST_PRODUCTS = 2 * 10**11
"""Products of two entries in the last step, where a release of rows is among them: some minutes."""


@dataclass(frozen=True)
class WorstTuple:
    """The sensitive symbol and the outputs, one of each channel, with the lift farthest from 1 on a
    log scale.
    """

    sensitive: str
    outputs: tuple[str, ...]
    lift: float


@dataclass(frozen=True, repr=False)
class Composition(Achieved, Displayed):
    """The joint leakage of independent releases of one record, in nats: limits as those of one
    release, for all tuples.

    `achieved` has the limits alone and `at_least` is attained by a tuple, both the smallest doubles
    of their kind; they are equal where `exact`, which two channels always are. `sum` is what adding
    the budgets of the channels alone would give: no bound. `worst` is a tuple that attains the
    larger side of `at_least`. Where all are row channels with a relative promise and the same given
    columns, everything is relative to these, and `given` has what they tell by themselves;
    `notices` says where only some of them are.
    """

    at_least: Achieved
    worst: WorstTuple
    sum: Achieved
    alone: tuple[Achieved, ...]
    relative_to: tuple[str, ...] = ()
    given: Achieved | None = None
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        budgets = vars(self.achieved).items()
        sides = ", ".join(f"{name} {at_most(value)}" for name, value in budgets)
        return f"Composition({len(self.alone)} releases: {sides})"

    @property
    def achieved(self) -> Achieved:
        """The limits of all tuples."""
        return Achieved(self.eps_l, self.eps_u, self.eps_ldp)

    @property
    def exact(self) -> bool:
        """Whether the limits meet."""
        return self.achieved == self.at_least


@dataclass(frozen=True)
class _Release:
    """The columns of one channel over the useful symbols of a table, and a text for each."""

    columns: Sequence[Entries]
    outputs: Sequence[str]

    def on(self, places: Mapping[int, int]) -> _Release:
        """On a table of some of the symbols only, `places` of old positions in the new table."""
        columns: list[Entries] = []
        outputs: list[str] = []
        for (inputs, values), output in zip(self.columns, self.outputs, strict=True):
            pairs = zip(inputs, values, strict=True)
            part = [(places[x], value) for x, value in pairs if x in places]
            if part:
                columns.append(([x for x, _ in part], [value for _, value in part]))
                outputs.append(output)
        return _Release(columns, outputs)


def compose(
    channels: Sequence[Released], joint: Joint | None = None, *, most: int = FOLLOWED
) -> Composition:
    """The joint leakage of independent releases of one record through all of the channels, exactly.

    Parameters
    ----------
    channels : sequence of Channel and RowChannel
        The same channel as often as a record is released through it.
    joint : Joint, optional
        The table of the sensitive column and of all released columns, crossed; by default that of
        the channels, which must be the same.
    most : int
        For three channels and more: tuples of all but the last that are followed. Where they are
        more, `achieved` is a proven bound and `at_least` what was found.

    Raises
    ------
    InputError
        If the channels have no common table, or it lacks their columns or symbols, or row channels
        have more released rows than are compared; then the message has a proven bound.
    """
    table = common_table(channels, joint)
    given = relative_columns(channels)
    parts = _strata(table, given)
    size = _Size(table, parts)
    releases = [_release_of(channel, table, size) for channel in channels]
    guard = any(isinstance(channel, RowChannel) for channel in channels)
    found: list[Composition] = []
    for part, places in parts:
        own = [release.on(places) for release in releases] if given else releases
        found.append(_composed(part, own, most, size if guard else None))
    composition = _worst_of(found)
    if not given:
        return replace(composition, notices=_against_the_whole(channels))
    return replace(composition, relative_to=given, given=_given_lifts(table, parts))


def relative_columns(channels: Sequence[Released]) -> tuple[str, ...]:
    """The given columns that all of the promises are relative to; none where one is total, or they
    differ.
    """
    columns: set[frozenset[str]] = set()
    names: tuple[str, ...] = ()
    for channel in channels:
        if not isinstance(channel, RowChannel) or channel.record.promise != RELATIVE:
            return ()
        names = tuple(name for group in channel.given for name in group.columns)
        columns.add(frozenset(names))
    if len(columns) > 1:
        return ()
    return names


def _against_the_whole(channels: Sequence[Released]) -> tuple[str, ...]:
    """What to say of relative promises that are not judged as such."""
    for channel in channels:
        if isinstance(channel, RowChannel) and channel.record.promise == RELATIVE:
            return (
                "Everything is measured against the whole table, with what the given columns tell: "
                "not all of the promises are relative to the same given columns.",
            )
    return ()


def _release_of(channel: Released, table: Joint, size: _Size) -> _Release:
    if isinstance(channel, RowChannel):
        leaves = leaf_columns(channel, table, size.refusal)
        return _Release(leaves.columns, [", ".join(texts) for texts in leaves.outputs])
    return _Release(columns_on(channel, table), channel.outputs)


def _strata(table: Joint, given: Sequence[str]) -> list[tuple[Joint, dict[int, int]]]:
    """The table of every combination of given symbols, and the places of symbols in it."""
    if not given:
        return [(table, {x: x for x in range(len(table.useful))})]
    parts = [table.useful.columns.index(name) for name in given]
    members: dict[Symbol, list[int]] = {}
    for x, symbol in enumerate(table.useful.symbols):
        members.setdefault(tuple(symbol[k] for k in parts), []).append(x)
    return [
        (_part_of(table, xs), {x: k for k, x in enumerate(xs)})
        for xs in members.values()
    ]


def _part_of(table: Joint, xs: Sequence[int]) -> Joint:
    """The table of some useful symbols and the sensitive ones that occur with them."""
    rows = [tuple(row[x] for x in xs) for row in table.counts]
    kept = [s for s, row in enumerate(rows) if any(row)]
    symbols = tuple(table.sensitive.symbols[s] for s in kept)
    return replace(
        table,
        sensitive=replace(table.sensitive, symbols=symbols),
        useful=replace(
            table.useful, symbols=tuple(table.useful.symbols[x] for x in xs)
        ),
        counts=tuple(rows[s] for s in kept),
        notices=(),
    )


def _given_lifts(
    table: Joint, parts: Sequence[tuple[Joint, dict[int, int]]]
) -> Achieved:
    """What the given columns tell by themselves, measured against the whole table."""
    columns: list[Entries] = []
    for _, places in parts:
        columns.append((list(places), [1] * len(places)))
    labels = [str(k) for k in range(len(columns))]
    return audit_columns(columns, labels, table, LIP(1.0)).achieved


def _composed(
    table: Joint, releases: Sequence[_Release], most: int, size: _Size | None
) -> Composition:
    """The joint leakage on one table; `size` refuses what row channels make too large."""
    lip = LIP(1.0)  # equal budgets, so that the worst cell is that of the larger side
    alone = tuple(
        audit_columns(release.columns, release.outputs, table, lip).achieved
        for release in releases
    )
    # The channel with most outputs comes last: its tuples are the cheapest.
    order = sorted(range(len(releases)), key=lambda k: len(releases[k].columns))
    ordered = [releases[k].columns for k in order]
    followed, left_out = _all_but_last(table, ordered, most, size)
    if size is not None:
        size.check_last(followed, ordered[-1], table)
    extreme: list[Direction] = []
    for secret in table.secrets:
        extreme += candidates(secret, followed, ordered[-1])
    labels = [str(k) for k in range(len(extreme))]
    verdict = audit_columns([column for column, _ in extreme], labels, table, lip)
    at_least = verdict.achieved
    worst = verdict.worst
    _, worst_outputs = extreme[int(worst.output)]
    output_of = dict(zip(order, worst_outputs, strict=True))
    worst_tuple = tuple(
        release.outputs[output_of[k]] for k, release in enumerate(releases)
    )
    return Composition(
        eps_l=max(at_least.eps_l, left_out[0]),
        eps_u=max(at_least.eps_u, left_out[1]),
        eps_ldp=max(at_least.eps_ldp, left_out[2]),
        at_least=at_least,
        worst=WorstTuple(worst.sensitive, worst_tuple, worst.lift),
        sum=_sum_of(alone),
        alone=alone,
    )


def _worst_of(found: Sequence[Composition]) -> Composition:
    """What holds in every stratum."""
    if len(found) == 1:
        return found[0]
    alone = tuple(
        _largest([each.alone[k] for each in found]) for k in range(len(found[0].alone))
    )
    limits = _largest([each.achieved for each in found])
    at_least = _largest([each.at_least for each in found])
    extreme = max(found, key=lambda each: max(each.at_least.eps_l, each.at_least.eps_u))
    return Composition(
        eps_l=limits.eps_l,
        eps_u=limits.eps_u,
        eps_ldp=limits.eps_ldp,
        at_least=at_least,
        worst=extreme.worst,
        sum=_sum_of(alone),
        alone=alone,
    )


def _largest(sides: Sequence[Achieved]) -> Achieved:
    return Achieved(
        max(each.eps_l for each in sides),
        max(each.eps_u for each in sides),
        max(each.eps_ldp for each in sides),
    )


def _sum_of(alone: Sequence[Achieved]) -> Achieved:
    return Achieved(
        eps_l=sum_above([achieved.eps_l for achieved in alone]),
        eps_u=sum_above([achieved.eps_u for achieved in alone]),
        eps_ldp=sum_above([achieved.eps_ldp for achieved in alone]),
    )


class _Size:
    """Refuses releases of rows that are too many to compare, with the bound of the true rows."""

    def __init__(self, table: Joint, parts: Sequence[tuple[Joint, Any]]) -> None:
        self._table = table
        self._parts = parts

    def refusal(self, much: str) -> InputError:
        """Why, and what holds all the same: a release tells no more than the true row."""
        true_rows = [_true_rows(part) for part, _ in self._parts]
        bound = _largest(true_rows)
        return InputError(
            f"these releases have {much}, more than are compared exactly. What holds all the same: "
            "together they tell no more than the true row, which has eps_l "
            f"{at_most(bound.eps_l)}, eps_u {at_most(bound.eps_u)}, eps_ldp "
            f"{at_most(bound.eps_ldp)} (proven). Compose channels of fewer columns"
        )

    def check_products(
        self, followed: Sequence[Direction], columns: Sequence[Entries]
    ) -> None:
        """Refuse products with more entries than memory is planned for."""
        times = Counter(x for inputs, _ in columns for x in inputs)
        entries = sum(times[x] for (inputs, _), _ in followed for x in inputs)
        if entries > MOST_ENTRIES:
            raise self.refusal(f"{entries:,} pairs of a row and two released rows")

    def check_directions(self, followed: Sequence[Direction], table: Joint) -> None:
        """Refuse more directions than memory is planned for."""
        n = len(table.useful)
        if len(followed) * n > MOST_DENSE:
            raise self.refusal(f"{len(followed):,} released rows for {n:,} true ones")

    def check_last(
        self,
        followed: Sequence[Direction],
        last: Sequence[Entries],
        table: Joint,
    ) -> None:
        """Refuse more work of the last step than some minutes."""
        tuples = len(followed) * len(last)
        if tuples * len(table.useful) * len(table.sensitive) > MOST_PRODUCTS:
            raise self.refusal(f"{tuples:,} tuples of released rows")
        self.check_directions(followed, table)


def _true_rows(table: Joint) -> Achieved:
    """What a release of the useful symbols as they are would tell."""
    columns: list[Entries] = [([x], [1]) for x in range(len(table.useful))]
    return audit_columns(columns, table.useful.names, table, LIP(1.0)).achieved


def _all_but_last(
    table: Joint,
    channels: Sequence[Sequence[Entries]],
    most: int,
    size: _Size | None,
) -> tuple[list[Direction], list[float]]:
    """Directions of all channels but the last, and bounds (eps_l, eps_u, eps_ldp) on those that
    were left out.
    """
    followed = everything(table)
    left_out = np.zeros(3)
    for depth, columns in enumerate(channels[:-1]):
        if size is not None:
            size.check_products(followed, columns)
        followed = directions(followed, columns)
        if depth and len(followed) > most:
            if size is not None:
                size.check_directions(followed, table)
            rest = channels[depth + 1 :]
            followed, bounds = prune_directions(table, followed, rest, most)
            left_out = np.maximum(left_out, bounds)
    return followed, left_out.tolist()


def sum_above(values: Sequence[float]) -> float:
    """The smallest double at or above a sum."""
    total = math.fsum(values)
    # fsum rounds correctly, so the sign of the remainder is exact.
    if math.isinf(total) or math.fsum((*values, -total)) <= 0.0:
        return total
    return math.nextafter(total, math.inf)
