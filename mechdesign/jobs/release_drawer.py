"""Channels at work on the parts of a table: every record draws one output of each channel.

A channel's release (`release.drawing`) draws codes of outputs;
`ReleaseDrawer` is what lies between it and a table. For each part `draw` encodes the columns that
records are drawn by (`_cells`), finds what identifies each record (`_records`), lets every release
draw, and translates the codes of outputs into those of labels: two outputs may have one text, and
labels are all different (`_codings`). On the way it shows the symbols to the check of their order.
Where a release refuses a record, `naming_faults` says which.

For example, the outputs of a channel in bins may have the medians ``35, 35, 60``. The labels are
``35, 60``, and the codes 0, 1, 2 of the outputs become 0, 0, 1.

*Who a record is.* The same record gets the same draw. A draw follows from the key, the channel and
the identity of the record, which has one of three forms:

- its columns of identifiers, as text (`Identifiers`), wherever the record stands;
- a column of row numbers (`NumberedRecords`), in any order;
- else its place in the table (`RowNumbers`): the number of the first row of the part, and on.

`identified_records` chooses by the options and refuses what would identify two records as one or
one as two: an empty identifier, a float (which has more than one text), a row number that comes
twice. `record_name` names a record in a message in the same terms.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import arrow_offsets, integers_of, without_nulls
from mechdesign.formats.cells import Encoded, encode, simple_texts
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.jobs.recipe import (
    BadRecord,
    Binned,
    Codes,
    DisclosureChecks,
    Drawer,
    DrawnColumn,
    Place,
    Recipe,
    View,
)
from mechdesign.leaks.evidence import Order
from mechdesign.release.drawing import Release
from mechdesign.release.draws import (
    Identifiers,
    NumberedRecords,
    Records,
    RowNumbers,
)
from mechdesign.tables.columns import RecordFault, encode_for
from mechdesign.tables.rebuilding import (
    arrow_type,
    change_note,
    empty_note,
    own_type_of,
    own_values,
    rebuild_and_note,
)


class ReleaseDrawer(Drawer):
    """Channels made ready for the parts of a table with this header."""

    def __init__(
        self,
        recipe: Recipe,
        channels: Sequence[Channel],
        header: Sequence[Any],
    ) -> None:
        plan = recipe.plan(header)
        options = recipe.options
        self._channels = channels
        self._releases: list[Release] = []
        self._orders: list[list[Order]] = []
        orders: dict[str, Order] = {}
        for channel, key in zip(channels, recipe.keys, strict=True):
            release = channel.prepared(
                key, policy=options.rules, form=options.form, changed=options.changed
            )
            self._releases.append(release)
            watched: list[Order] = []
            for variable, counts in zip(
                channel.watched, release.hidden_counts, strict=False
            ):
                watched.append(Order(len(counts)))
                orders[",".join(variable.columns)] = watched[-1]
            self._orders.append(watched)
        checks = DisclosureChecks(
            plan,
            options,
            private=recipe.private_columns,
            secrets=[name for name in recipe.private_columns if name in header],
            hidden=_protected_views(recipe, plan, channels, header),
            orders=orders,
        )
        super().__init__(recipe, header, plan, checks)

    @cached_property
    def binned(self) -> Collection[str]:
        """The released columns that hold bins."""
        binned: set[str] = set()
        for column in self.plan.columns:
            if column.release is None:
                continue
            number, part = column.release
            if self._channels[number].writes_bins(part):
                binned.add(column.name)
        return binned

    @property
    def releases(self) -> Sequence[Release]:
        """The draws, one for each channel."""
        return self._releases

    @property
    def labels(self) -> dict[Place, tuple[str, ...]]:
        """The different labels of every released column."""
        return {place: labels for place, (labels, _) in self._codings.items()}

    @property
    def counts(self) -> list[Integers]:
        """For every variable that a channel hides, how many records had each symbol."""
        return [
            counts for release in self._releases for counts in release.hidden_counts
        ]

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

    def writes_symbols(self, column: OutputColumn) -> bool:
        """Whether a released column holds symbols."""
        return column.release is not None and self._writes_symbols(column.release)

    def _writes_symbols(self, place: Place) -> bool:
        """True if the column at a place holds symbols, which may have the type of their column."""
        release, part = place
        return self._channels[release].writes_symbols(part, self.recipe.options.form)

    def reads(self, schema: Any) -> tuple[list[str], list[str]]:
        """The columns to read as codes (those that records are drawn by), and those to read as
        they are stored.
        """
        symbols: list[str] = []
        for numbers in self.plan.inputs:
            symbols += [self.header[number] for number in numbers]
        identifiers = [self.header[number] for number in self.plan.identity]
        return symbols, identifiers

    def rebuild(self, like: Any, drawn: DrawnColumn, name: str) -> Any:
        """A released column in the kind of container that `like` is."""
        column, note = rebuild_and_note(
            like,
            drawn.codes,
            drawn.labels,
            name,
            own=drawn.own,
            is_binned=name in self.binned,
        )
        self.note(note)
        return column

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of X where the released column can have it, else None for text, with a
        note where it has symbols.
        """
        place = column.release or (0, 0)
        if not self._writes_symbols(place):
            self.note(empty_note(column.name, self.labels[place]))
            return None
        kind = type_of(self.plan.origin(column))
        own_type = own_type_of(kind)
        labels = self.labels[place]
        if own_values(labels, own_type) is None:
            own_type = None
        after = own_type or arrow_type(kind)
        is_binned = column.name in self.binned
        self.note(change_note(column.name, kind, after, labels, is_binned))
        return own_type

    def note(self, note: str | None) -> None:
        """Note this for the user, once; None is nothing to note."""
        if note is not None:
            self.type_notes[note] = None

    def fix(self, codes: Codes) -> None:
        """Fix the counts of the one channel for the records with these symbols."""
        release: Any = self._releases[0]
        release.fix(codes)

    def symbols_of(self, column: Callable[[int], Any], first_row: int) -> Codes:
        """The symbols of the records of a part for the one channel; nothing is drawn."""
        (cells,) = self._cells(column)
        release: Any = self._releases[0]
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
        released: dict[Place, DrawnColumn] = {}
        for k, (release, symbols) in enumerate(zip(self._releases, cells, strict=True)):
            with naming_faults(records):
                columns = release.draw(symbols, records)
            # Empty if the user has waived the check of the order.
            if self.checks.orders:
                for order, codes in zip(
                    self._orders[k], release.hidden_codes, strict=False
                ):
                    order.add(codes)
            for part, codes in enumerate(columns):
                labels, numbers = self._codings[k, part]
                # Where all texts differ, the codes number the labels already.
                if len(labels) < len(numbers):
                    codes = numbers[codes]
                own = self._writes_symbols((k, part))
                released[k, part] = DrawnColumn(codes, labels, own)
        return released

    def count(self, column: Callable[[int], Any], times: Integers) -> None:
        """Add to `counts` what a part holds, each record so many times, without drawing for it."""
        for release, cells in zip(self.releases, self._cells(column), strict=True):
            release.count(cells, times)

    def _cells(self, column: Callable[[int], Any]) -> list[list[Encoded]]:
        """The cells that records are drawn by, channel by channel."""
        of_channels: list[list[Encoded]] = []
        for channel, numbers in zip(self._channels, self.plan.inputs, strict=True):
            cells: list[Encoded] = []
            for (variable, part), number in zip(
                channel.input_columns, numbers, strict=True
            ):
                name = self.header[number]
                cells.append(encode_for(column(number), name, variable, part))
            of_channels.append(cells)
        return of_channels

    def _records(
        self, column: Callable[[int], Any], first_row: int, count: int
    ) -> Records:
        """What identifies the records of a part."""
        return identified_records(
            column,
            self.header,
            self.plan,
            self.recipe.options,
            first_row=first_row,
            count=count,
        )


@contextmanager
def naming_faults(records: Records) -> Generator[None]:
    """Name the record where a release refuses one of these."""
    try:
        yield
    except RecordFault as error:
        name = record_name(records, error.position)
        raise BadRecord(error.position, error.what, name) from None


def _protected_views(
    recipe: Recipe,
    plan: Plan,
    channels: Sequence[Channel],
    header: Sequence[Any],
) -> dict[View, Binned | None]:
    """What no kept column may copy: X as it is and in its bins, and S where it is dropped."""
    options = recipe.options
    views: dict[View, Binned | None] = {}
    for name in recipe.private_columns:
        if name in options.drop:
            views[View(name)] = None
    # Beside the released column X itself stays, so that a copy of it adds nothing.
    if options.into is not None:
        return views
    for k, (channel, numbers) in enumerate(zip(channels, plan.inputs, strict=True)):
        for (variable, part), number in zip(
            channel.input_columns, numbers, strict=True
        ):
            # A copy of a given column tells what is released in any case.
            if variable.columns[part] in channel.given_columns:
                continue
            views[View(header[number])] = None
            if any(variable.bins):
                views[View(header[number], k)] = variable, part
    return views


def identified_records(
    column: Callable[[int], Any],
    header: Sequence[Any],
    plan: Plan,
    options: ReleaseOptions,
    *,
    first_row: int,
    count: int,
) -> Records:
    """The identities of `count` records, of which `column` gives the columns by number."""
    if plan.identity:
        return Identifiers(
            [_identifiers(column(number), header[number]) for number in plan.identity]
        )
    name = options.row_numbers
    if name is not None:
        return _numbered(column(header.index(name)), name)
    return RowNumbers(first_row, count)


def record_name(records: Records, position: int) -> str:
    """How a message names the record at a position of a part.

    Not by its identifier, which is somebody's and ends in logs.
    """
    if isinstance(records, Identifiers):
        return f"the record at place {position} (counted from 0) of its part"
    if isinstance(records, RowNumbers):
        return f"row number {records.first + position} (counted from 0)"
    return f"row number {records.numbers[position]}"


def _identifiers(column: Any, name: str) -> Any:
    """A column of identifiers as arrow texts; raises BadRecord at an empty one."""
    texts = simple_texts(column)
    if texts is None:
        cells = encode(column, name)
        texts = cells.expanded()
        if cells.is_float:
            raise InputError(
                f"the column {quoted(name)} holds floats, which have more than one text and "
                "identify nothing; turn them into integers or text"
            )
    texts = without_nulls(texts)
    # The text of row i lies between ends[i] and ends[i + 1] in the buffer: an empty one has none.
    ends, _ = arrow_offsets(texts)
    missing = np.flatnonzero(ends[1:] == ends[:-1])
    if len(missing):
        position = int(missing[0])
        raise BadRecord(
            position,
            f"the column {quoted(name)} is empty, and the record cannot be identified",
            f"entry {position}",
        )
    return texts


def _numbered(column: Any, name: str) -> NumberedRecords:
    """A column of row numbers, each of which one record of the part has alone."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        column = pa.array(column)
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    series = nw.from_native(column, series_only=True)
    if not series.dtype.is_integer() or series.null_count():
        fault = str(series.dtype)
        if series.dtype.is_integer():
            fault = "gaps"
        raise InputError(
            f"the column {quoted(name)} must hold an integer for every record, its row number, and "
            f"it holds {fault}"
        )
    # By way of arrow: to_numpy would load pandas.
    records = NumberedRecords(integers_of(series.to_arrow()))
    # Usually they ascend, and then none can come twice: sorting them would take longer.
    ascending = (records.numbers[1:] > records.numbers[:-1]).all()
    if not ascending:
        values, times = np.unique(records.numbers, return_counts=True)
        if times.max() > 1:
            raise InputError(
                f"the column {quoted(name)} gives the row number {values[np.argmax(times > 1)]} to "
                "two records, whose draws would depend on each other"
            )
    return records
