"""The table and the promise of one stratum: of the records with the same given cells.

A relative promise bounds P(s|k, y) against P(s|k): it is the promise itself on the table of the
stratum k. A total one bounds it against P(s), so that the stratum has budgets of its own for every
symbol (docs/explanation/rows-theory.md, 'Strata').
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mechdesign.auditing.strata import members_of, strata_of
from mechdesign.channel.record import RELATIVE
from mechdesign.core.errors import NotPrivate
from mechdesign.core.wording import listed
from mechdesign.notions import Notion
from mechdesign.tables.exact_table import without_empty
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

SHRINK = 1e-12
"""Nats by which the budgets of a stratum are smaller in a design, and larger for a bound: they are
logarithms of quotients, rounded."""


def strata_tables(
    given: Sequence[str], joint: Joint
) -> Iterator[tuple[list[int], Joint]]:
    """The inputs of every stratum, and its table over the other columns."""
    released = [name for name in joint.useful.columns if name not in given]
    for members in members_of(strata_of(given, joint)):
        yield members, table_of_stratum(joint, members, released)


def released_symbols(
    joint: Joint, members: Sequence[int], released: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """The released cells of some rows."""
    places = [joint.useful.columns.index(name) for name in released]
    return tuple(
        tuple(joint.useful.symbols[x][place] for place in places) for x in members
    )


def table_of_stratum(
    joint: Joint, members: Sequence[int], released: Sequence[str]
) -> Joint:
    """The table of one stratum over the released columns."""
    places = [joint.useful.columns.index(name) for name in released]
    symbols = released_symbols(joint, members, released)
    bins = tuple(joint.useful.bins_of(place) for place in places)
    useful = Variable(tuple(released), symbols, bins=bins if any(bins) else ())
    counts = tuple(tuple(row[x] for x in members) for row in joint.counts)
    # The sensitive symbols that the stratum does not have are no rows of its table.
    table = without_empty(joint.sensitive, useful, counts, ())
    return Joint.from_exact(table._replace(notices=()), is_counts=joint.is_counts)


def budgets_of_stratum(
    joint: Joint, notion: Notion, table: Joint, promise: str, *, widened: float
) -> Notion:
    """The notion on the table of one stratum.

    Of a total promise the budgets are logarithms of quotients, which are rounded: they are larger
    by `widened`, `SHRINK` for a bound and less by as much for a design.

    Raises
    ------
    NotPrivate
        If the given columns alone break the promise.
    """
    limits = notion.limits
    if promise == RELATIVE:
        return notion
    if limits.mean is not None:
        # `combinations` has refused averages beside given columns of a total promise.
        raise TypeError(f"{notion.name} has no budgets of single values")
    special = {name: (lower, upper) for name, lower, upper in limits.symbol_budgets}
    total = dict(zip(joint.sensitive.names, joint.sensitive_counts, strict=True))
    budgets: dict[str, tuple[float, float]] = {}
    for name, count in zip(table.sensitive.names, table.sensitive_counts, strict=True):
        lower, upper = special.get(name, (limits.lower, limits.upper))
        lift = math.log(count * joint.total / (table.total * total[name]))
        budgets[name] = (lower + lift + widened, upper - lift + widened)
        if min(budgets[name]) <= 0.0:
            raise NotPrivate(
                "the given columns alone break the promise, or leave nothing of it: release them "
                "(--release), or promise relative to them (--promise relative)"
            )
    missing = set(joint.sensitive.names) - set(table.sensitive.names)
    if missing and math.isfinite(limits.lower):
        raise NotPrivate(
            f"the given columns alone rule out {listed(sorted(missing))} for some records: release "
            "them (--release), or promise relative to them (--promise relative)"
        )
    if math.isinf(limits.lower) and math.isinf(limits.upper):
        return notion
    return notion.with_budgets(budgets)
