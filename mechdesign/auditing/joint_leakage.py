"""The joint leakage of several releases of one record, each drawn independently of the others.

With channels W1, .., Wk on columns of one table,

    P(s, y1, .., yk) = sum over x of P(s, x) W1(y1|x) .. Wk(yk|x),

so the releases are one channel whose outputs are tuples, and whose column for a tuple is the
product of the columns. Decided exactly: exp(-eps_l) <= l(s, y1, .., yk) <= exp(eps_u) for
all tuples. The steps of `compose`:

1. the columns of every channel over the useful symbols of one table (`columns_on`), or of each of
   its strata where all promises are relative to the same given columns (`relative_columns`;
   docs/explanation/rows-theory.md, proposition 13);
2. the products of the columns of all channels but the last, up to scale, in integers
   (`_all_but_last`). Of more than `FOLLOWED` the harmless ones are left out and bounded
   (`joint_tuples`);
3. the last channel, joined in floating point, which leaves few tuples (`joint_tuples.candidates`);
4. the verdict on these, in integers (`verdict.audit_columns`);
5. of several strata the worst (`composition.worst_of_strata`).

Example: s itself, two equally likely symbols, is released twice through the rows (3/4, 1/4) and
(1/4, 3/4). One release has the lifts 1.5 and 0.5; the tuple of the first output twice has the
column (9, 1) and the lifts 1.8 and 0.2.

Two channels are judged exactly. With more, what was left out in step 2 may keep the proven limits
above what a tuple attains.

*What is too much.* Releases of rows have tens of thousands of leaves each, so their pairs and
tuples may be too many for memory or time. `JointSize` is asked before each step, counts the step's
work and refuses what is too much:

    check_products     entries of all products of a direction and a column      `MOST_ENTRIES`
    check_directions   directions times rows x, as an array of doubles          `MOST_DENSE`
    check_last         directions times outputs times |X| times |S|             `MOST_PRODUCTS`

For example 20,000 directions and 30,000 last leaves on |X| = 1,000 rows with |S| = 2 are 1.2e12
products, six times the limit.

The refusal has a bound that holds all the same: releases drawn from the true row tell no more than
the true row itself (docs/explanation/rows-theory.md, proposition 14), and its lifts are computed
exactly by an audit of the channel that releases every symbol as it is (`_true_rows`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.auditing.columns import (
    Direction,
    Entries,
    columns_on,
    directions,
    everything,
)
from mechdesign.auditing.composition import (
    Composition,
    TablePart,
    WorstTuple,
    common_table,
    parts_of,
    sum_of,
    worst_of_strata,
)
from mechdesign.auditing.joint_tuples import candidates, prune_directions
from mechdesign.auditing.lifts import Achieved, largest_of
from mechdesign.auditing.verdict import audit_columns
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import RELATIVE
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most
from mechdesign.notions import LIP
from mechdesign.tables.joint import Joint

FOLLOWED = 20_000
"""Directions of all channels but the last that are followed; beyond it the limits need not meet."""


@dataclass(frozen=True)
class _Release:
    """The columns of one channel over the useful symbols of a table, and a text for each."""

    columns: Sequence[Entries]
    outputs: Sequence[str]

    def on(self, places: Mapping[int, int]) -> _Release:
        """The release on a table of some of the symbols only, whose positions there are `places` of
        those here.
        """
        columns: list[Entries] = []
        outputs: list[str] = []
        for (inputs, values), output in zip(self.columns, self.outputs, strict=True):
            part_inputs: list[int] = []
            part_values: list[int] = []
            for x, value in zip(inputs, values, strict=True):
                if x in places:
                    part_inputs.append(places[x])
                    part_values.append(value)
            if part_inputs:
                columns.append((part_inputs, part_values))
                outputs.append(output)
        return _Release(columns, outputs)


def compose(
    channels: Sequence[Channel], joint: Joint | None = None, *, most: int = FOLLOWED
) -> Composition:
    """The joint leakage of independent releases of one record through all of the channels, exactly.

    Parameters
    ----------
    channels : sequence of Channel
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
    parts = parts_of(table, given)
    size = JointSize([part.table for part in parts])
    releases = [
        _Release(columns_on(channel, table), channel.outputs) for channel in channels
    ]
    # Only releases of rows are refused for their size.
    guard: JointSize | None = None
    if any(channel.published is not None for channel in channels):
        guard = size
    strata: list[Composition] = []
    for part in parts:
        releases_on_part = releases
        if given:
            releases_on_part = [release.on(part.places) for release in releases]
        strata.append(_composed(part.table, releases_on_part, most, guard))
    composition = worst_of_strata(strata)
    if not given:
        return replace(composition, notices=_against_the_whole(channels))
    return replace(composition, relative_to=given, given=_given_lifts(table, parts))


def relative_columns(channels: Sequence[Channel]) -> tuple[str, ...]:
    """The given columns that all of the promises are relative to; none where one is total, or they
    differ.
    """
    columns: set[frozenset[str]] = set()
    names: tuple[str, ...] = ()
    for channel in channels:
        if channel.record.promise_kind != RELATIVE:
            return ()
        names = channel.given
        columns.add(frozenset(names))
    if len(columns) > 1:
        return ()
    return names


def _against_the_whole(channels: Sequence[Channel]) -> tuple[str, ...]:
    """The notice about relative promises that are not judged as such; none without them."""
    for channel in channels:
        if channel.record.promise_kind == RELATIVE:
            return (
                "Everything is measured against the whole table, with what the given columns tell: "
                "not all of the promises are relative to the same given columns.",
            )
    return ()


def _given_lifts(table: Joint, parts: Sequence[TablePart]) -> Achieved:
    """What the given columns tell by themselves, measured against the whole table.

    They are a channel whose outputs are the strata, each certain on its symbols.
    """
    columns: list[Entries] = []
    labels: list[str] = []
    for k, part in enumerate(parts):
        columns.append((list(part.places), [1] * len(part.places)))
        labels.append(str(k))
    return audit_columns(columns, labels, table, LIP(1.0)).achieved


def _composed(
    table: Joint, releases: Sequence[_Release], most: int, size: JointSize | None
) -> Composition:
    """The joint leakage on one table; `size` refuses what row channels make too large."""
    lip = LIP(1.0)  # equal budgets, so that the worst cell is that of the larger side
    alone: list[Achieved] = []
    for release in releases:
        audit = audit_columns(release.columns, release.outputs, table, lip)
        alone.append(audit.achieved)
    # The channel with most outputs comes last: its tuples are the cheapest.
    order = sorted(range(len(releases)), key=lambda k: len(releases[k].columns))
    ordered = [releases[k].columns for k in order]
    followed, left_out = _all_but_last(table, ordered, most, size)
    if size is not None:
        size.check_last(followed, ordered[-1], table)
    extreme: list[Direction] = []
    for secret in table.secrets:
        extreme += candidates(secret, followed, ordered[-1])
    # The candidates are the outputs of one channel, named by their positions.
    columns: list[Entries] = []
    labels: list[str] = []
    for k, (column, _) in enumerate(extreme):
        columns.append(column)
        labels.append(str(k))
    verdict = audit_columns(columns, labels, table, lip)
    at_least = verdict.achieved
    worst = verdict.worst
    _, worst_outputs = extreme[int(worst.output)]
    # Outputs are in the order of the search, and are named in that of the channels.
    output_of = dict(zip(order, worst_outputs, strict=True))
    worst_tuple: list[str] = []
    for k, release in enumerate(releases):
        worst_tuple.append(release.outputs[output_of[k]])
    return Composition(
        eps_l=max(at_least.eps_l, left_out[0]),
        eps_u=max(at_least.eps_u, left_out[1]),
        eps_ldp=max(at_least.eps_ldp, left_out[2]),
        at_least=at_least,
        worst=WorstTuple(worst.sensitive, tuple(worst_tuple), worst.lift),
        sum=sum_of(alone),
        alone=tuple(alone),
    )


def _all_but_last(
    table: Joint,
    channels: Sequence[Sequence[Entries]],
    most: int,
    size: JointSize | None,
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
        # The directions of the first channel alone are no more than its outputs: all are followed.
        if depth and len(followed) > most:
            if size is not None:
                size.check_directions(followed, table)
            rest = channels[depth + 1 :]
            followed, bounds = prune_directions(table, followed, rest, most)
            left_out = np.maximum(left_out, bounds)
    return followed, left_out.tolist()


MOST_ENTRIES = 2_000_000
"""Entries of products that are held: some 400 MB of Python integers."""

MOST_DENSE = 2**25
"""Doubles of the columns of one release of rows: 256 MB."""

MOST_PRODUCTS = 2 * 10**11
"""Products of two entries in the last step, where a release of rows is among them: some minutes."""


class JointSize:
    """Refuses releases of rows that are too many to compare, with the bound of the true rows.

    `strata` are the tables of the given columns, or the whole one.
    """

    def __init__(self, strata: Sequence[Joint]) -> None:
        self._strata = strata

    def refusal(self, much: str) -> InputError:
        """The error for releases that have too `much`, with the bound that holds all the same."""
        bound = largest_of([_true_rows(table) for table in self._strata])
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
        # A product has an entry for each symbol that both factors have. So a symbol gives as many
        # entries as there are pairs of a direction and a column with it.
        columns_with: Counter[int] = Counter()
        for inputs, _ in columns:
            columns_with.update(inputs)
        entries = 0
        for (inputs, _), _ in followed:
            entries += sum(columns_with[x] for x in inputs)
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
