"""How many released rows are compared exactly, and what holds where there are more.

Releases of rows have tens of thousands of leaves each, so their pairs and tuples may be too many
for memory or time. `joint_leakage` asks `JointSize` before each step, which counts the step's work
and refuses what is too much:

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
from collections.abc import Sequence

from mechdesign.auditing.columns import Direction, Entries
from mechdesign.auditing.extremes import Achieved, largest_of
from mechdesign.auditing.verdict import audit_columns
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most
from mechdesign.notions import LIP
from mechdesign.tables.joint import Joint

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
