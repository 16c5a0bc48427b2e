"""A channel of rows or boxes at work on the parts of a table: every record draws one row.

For each part `BoxDrawer.draw` encodes the given columns and those of the levels, finds what
identifies each record, and lets `RowRelease` or `BoxRelease` draw. A released column is codes into
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
from mechdesign.formats.cells import Encoded
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.disclosure_checks import Binned, DisclosureChecks, View
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.jobs.recipe import BadRecord, Drawer, DrawnColumn, Place, Recipe
from mechdesign.jobs.record_identity import identified_records, record_name
from mechdesign.leaks.order import Order
from mechdesign.release.box_drawing import BoxRelease
from mechdesign.release.draws import Key
from mechdesign.release.row_draws import RowDraws
from mechdesign.tables.columns import RecordFault, encode_for
from mechdesign.tables.rebuilding import kind_of, rebuild


class BoxDrawer(Drawer):
    """A channel of rows or boxes made ready for the parts of a table with this header."""

    def __init__(
        self, recipe: Recipe, channel: BoxChannel, header: Sequence[Any]
    ) -> None:
        plan = recipe.plan(header)
        options = recipe.options
        # One channel for all columns, so one key.
        (key,) = recipe.keys
        self.release = _draws(channel, key, options)
        self._channel = channel
        orders: dict[str, Order] = {}
        for level, counts in zip(channel.levels, self.counts, strict=True):
            orders[",".join(level.columns)] = Order(len(counts))
        checks = DisclosureChecks(
            plan,
            options,
            private=recipe.private_columns,
            hidden=_protected_views(recipe, plan, channel, header),
            orders=orders,
        )
        super().__init__(recipe, header, plan, checks)

    @property
    def releases(self) -> list[RowDraws]:
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

    def reads(self, schema: Any) -> tuple[list[str], list[str]]:
        """The columns to read as codes (the released ones), and those to read as they are
        stored.
        """
        symbols = [self.header[number] for number in self.plan.inputs[0]]
        identifiers = [self.header[number] for number in self.plan.identity]
        return symbols, identifiers

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of the column that is replaced where the released one can have it, else
        None for text.
        """
        return self.own_type_in(column, type_of(self.plan.origin(column)))

    def rebuild(self, like: Any, drawn: DrawnColumn, name: str) -> Any:
        """A released column in the kind of container that `like` is."""
        column = rebuild(like, drawn.codes, drawn.labels, name, own=True)
        self.note_type(name, kind_of(like), kind_of(column))
        return column

    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[Place, DrawnColumn]:
        """The released columns of a part of `count` records; `column` gives its columns by their
        number.
        """
        cells = self._cells(column)
        records = identified_records(
            column,
            self.header,
            self.plan,
            self.recipe.options,
            first_row=first_row,
            count=count,
        )
        try:
            columns = self.release.draw(cells, records)
        except RecordFault as error:
            name = record_name(records, error.position)
            raise BadRecord(error.position, error.what, name) from None
        # Given columns are released as they are: their order hides nothing. There are no `orders`
        # at all if the user has waived the check.
        symbols = self.release.codes[len(self._channel.given) :]
        for order, codes in zip(self.checks.orders.values(), symbols, strict=False):
            order.add(codes)
        drawn: dict[Place, DrawnColumn] = {}
        for part, (codes, texts) in enumerate(
            zip(columns, self.release.texts, strict=True)
        ):
            drawn[0, part] = DrawnColumn(codes, texts, own=True)
        return drawn

    def count(self, column: Callable[[int], Any], times: Integers) -> None:
        """Add to `counts` what a part holds, each record so many times, without drawing for it."""
        self.release.count(self._cells(column), times)

    def _cells(self, column: Callable[[int], Any]) -> list[Encoded]:
        """The cells of the given columns and of those of the levels."""
        numbers = iter(self.plan.inputs[0])
        cells: list[Encoded] = []
        for variable in self._channel.groups:
            for part in range(len(variable.columns)):
                number = next(numbers)
                cells.append(
                    encode_for(column(number), self.header[number], variable, part)
                )
        return cells


def _draws(channel: BoxChannel, key: Key, options: ReleaseOptions) -> RowDraws:
    """The channel made ready to draw."""
    return BoxRelease(channel, key, policy=options.rules, changed=options.changed)


def _protected_views(
    recipe: Recipe,
    plan: Plan,
    channel: BoxChannel,
    header: Sequence[Any],
) -> dict[View, Binned | None]:
    """What no kept column may copy: the columns of the levels as they are and in their bins, and S
    where it is dropped.
    """
    views: dict[View, Binned | None] = {}
    for name in recipe.private_columns:
        if name in recipe.options.drop:
            views[View(name)] = None
    numbers = iter(plan.inputs[0])
    for k, variable in enumerate(channel.groups):
        for part in range(len(variable.columns)):
            number = next(numbers)
            # A copy of a given column tells what is released in any case.
            if k < len(channel.given):
                continue
            views[View(header[number])] = None
            if any(variable.bins):
                views[View(header[number], k)] = variable, part
    return views
