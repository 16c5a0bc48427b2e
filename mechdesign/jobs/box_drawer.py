"""A channel of rows or boxes at work on the parts of a table: every record draws one row.

For each part `BoxDrawer.draw` encodes the given columns and those of the levels, finds what
identifies each record, and lets `BoxRelease` draw. A released column is codes into
one tuple of texts for the whole table. There is one release and one key for all columns, so the
number of the releasable in a `Place` is always 0. What a kept column must not copy, and the order
of which symbols is checked, leaves the given columns out: they are released as they are.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.integers import Integers
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.jobs.recipe import DrawnColumn, Place, Recipe
from mechdesign.jobs.release_drawer import ReleaseDrawer, naming_faults
from mechdesign.leaks.order import Order
from mechdesign.release.box_drawing import BoxRelease


class BoxDrawer(ReleaseDrawer):
    """A channel of rows or boxes made ready for the parts of a table with this header."""

    def __init__(
        self, recipe: Recipe, channel: BoxChannel, header: Sequence[Any]
    ) -> None:
        plan = recipe.plan(header)
        options = recipe.options
        # One channel for all columns, so one key.
        (key,) = recipe.keys
        self.release = BoxRelease(
            channel, key, policy=options.rules, changed=options.changed
        )
        self._channel = channel
        # Of people the columns of the first place, which everybody has: the others tell the number
        # of records, which is given.
        self._levels = channel.levels
        if channel.people is not None:
            self._levels = channel.levels[: len(channel.people.released)]
        orders: dict[str, Order] = {}
        for level, counts in zip(self._levels, self.counts, strict=False):
            orders[",".join(level.columns)] = Order(len(counts))
        super().__init__(recipe, (channel,), header, plan, orders)

    @property
    def releases(self) -> list[BoxRelease]:
        """The draws of the one channel."""
        return [self.release]

    @property
    def labels(self) -> dict[Place, tuple[str, ...]]:
        """The different labels of every released column."""
        return {(0, part): texts for part, texts in enumerate(self.release.texts)}

    @property
    def counts(self) -> list[Integers]:
        """For every level, how many records had each symbol; given columns hide nothing."""
        return self.release.symbol_counts[len(self._channel.given) :]

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of the column that is replaced where the released one can have it, else
        None for text.
        """
        return self.own_type_in(column, type_of(self.plan.origin(column)))

    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[Place, DrawnColumn]:
        """The released columns of a part of `count` records; `column` gives its columns by their
        number.
        """
        (cells,) = self._cells(column)
        records = self._records(column, first_row, count)
        with naming_faults(records):
            columns = self.release.draw(cells, records)
        # Given columns are released as they are: their order hides nothing. There are no `orders`
        # at all if the user has waived the check.
        symbols = self.release.codes[len(self._channel.given) :][: len(self._levels)]
        for order, codes in zip(self.checks.orders.values(), symbols, strict=False):
            order.add(codes)
        drawn: dict[Place, DrawnColumn] = {}
        for part, (codes, texts) in enumerate(
            zip(columns, self.release.texts, strict=True)
        ):
            drawn[0, part] = DrawnColumn(codes, texts, own=True)
        return drawn
