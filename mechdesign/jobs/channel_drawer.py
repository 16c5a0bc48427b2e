"""Channels at work on the parts of a table: every record draws one output of each channel.

The channel's `Release` draws codes of outputs; `ChannelDrawer` is what lies between it and a table.
For each part `draw` encodes the useful columns as symbols, finds what identifies each record, lets
every release draw, and translates the codes of outputs into those of labels: two outputs may have
one text, and labels are all different (`_codings`). On the way it shows the symbols to the check of
their order.

For example, the outputs of a channel in bins may have the medians ``35, 35, 60``. The labels are
``35, 60``, and the codes 0, 1, 2 of the outputs become 0, 0, 1.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.integers import Integers
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.jobs.recipe import (
    BadRecord,
    Codes,
    DrawnColumn,
    Place,
    Recipe,
)
from mechdesign.jobs.release_drawer import ReleaseDrawer, naming_faults
from mechdesign.leaks.order import Order
from mechdesign.release.drawing import Release
from mechdesign.release.released_values import LABEL
from mechdesign.tables.columns import RecordFault
from mechdesign.tables.rebuilding import empty_note


class ChannelDrawer(ReleaseDrawer):
    """Channels made ready for the parts of a table with this header."""

    def __init__(
        self, recipe: Recipe, channels: Sequence[Channel], header: Sequence[Any]
    ) -> None:
        plan = recipe.plan(header)
        options = recipe.options
        self._releases: list[Release] = []
        for channel, key in zip(channels, recipe.keys, strict=True):
            release = Release(
                channel,
                key,
                policy=options.rules,
                form=options.form,
                changed=options.changed,
            )
            self._releases.append(release)
        orders: dict[str, Order] = {}
        for release in self._releases:
            useful = release.channel.useful
            # The sequences of people tell how many records they have, which is given: where the
            # records of a file are in random order, people with more of them come first. Their
            # first records are looked at instead (`people_run.watch_order`).
            if useful.people is None:
                orders[",".join(useful.columns)] = Order(len(release.symbol_counts))
        super().__init__(recipe, channels, header, plan, orders)

    @property
    def releases(self) -> list[Release]:
        """The draws, one for each channel."""
        return self._releases

    @property
    def labels(self) -> dict[Place, tuple[str, ...]]:
        """The different labels of every released column."""
        return {place: labels for place, (labels, _) in self._codings.items()}

    @property
    def counts(self) -> list[Integers]:
        """For every channel, how many records had each symbol."""
        return [release.symbol_counts for release in self._releases]

    @cached_property
    def _codings(self) -> dict[Place, tuple[tuple[str, ...], Codes]]:
        """For every released column its different labels, and the number of the label that each
        code means.

        Several outputs can share a text: two bins, say, the same median.
        """
        codings: dict[Place, tuple[tuple[str, ...], Codes]] = {}
        for k, release in enumerate(self._releases):
            for part, texts in enumerate(release.texts):
                labels = tuple(dict.fromkeys(texts))
                numbers = {label: i for i, label in enumerate(labels)}
                of_output = [numbers[text] for text in texts]
                codings[k, part] = labels, np.array(of_output, np.int32)
        return codings

    def _releases_symbols(self, place: Place) -> bool:
        """True if the column at a place holds symbols, which may have the type of their column."""
        if self.recipe.options.form != LABEL:
            return True
        release, part = place
        channel = self._releases[release].channel
        if channel.published is None:
            return channel.releases_own_symbols
        # Beside given columns, which stay as they are, free outputs have one label.
        name = channel.output_columns[part]
        return channel.releases_symbols or name in channel.given

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of X where the released column can have it, else None for text."""
        place = column.release or (0, 0)
        if not self._releases_symbols(place):
            self.note(empty_note(column.name, self.labels[place]))
            return None
        return self.own_type_in(column, type_of(self.plan.origin(column)))

    def fix(self, codes: Codes) -> None:
        """Fix the counts of the one channel for the records with these symbols."""
        (release,) = self._releases
        release.fix(codes)

    def symbols_of(self, column: Callable[[int], Any], first_row: int) -> Codes:
        """The symbols of the records of a part for the one channel; nothing is drawn."""
        (cells,) = self._cells(column)
        (release,) = self._releases
        try:
            return release.symbols_of(cells).astype(np.int32)
        except RecordFault as error:
            position = first_row + error.position
            raise BadRecord(position, error.what, f"record {position + 1}") from None

    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[Place, DrawnColumn]:
        """The released columns of a part of `count` records; `column` gives its columns by their
        number.
        """
        cells = self._cells(column)
        records = self._records(column, first_row, count)
        # In the order of the channels, in which they were made.
        orders = list(self.checks.orders.values())
        released: dict[Place, DrawnColumn] = {}
        for k, (release, symbols) in enumerate(zip(self._releases, cells, strict=True)):
            with naming_faults(records):
                columns = release.draw(symbols, records)
            # Empty if the user has waived the check of the order.
            if orders:
                orders[k].add(release.codes)
            for part, codes in enumerate(columns):
                labels, numbers = self._codings[k, part]
                # Where all texts differ, the codes number the labels already.
                if len(labels) < len(numbers):
                    codes = numbers[codes]
                own = self._releases_symbols((k, part))
                released[k, part] = DrawnColumn(codes, labels, own)
        return released
