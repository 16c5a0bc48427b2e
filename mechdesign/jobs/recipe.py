"""What is done to a table, whichever part of it is at hand and wherever that part is worked on."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel as Releasable
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import (
    Encoded,
    arrow_offsets,
    arrow_texts,
    encode,
    integers_of,
    require_column,
    simple_texts,
)
from mechdesign.jobs.column_plan import OutputColumn, Plan, make_plan, secret_columns
from mechdesign.jobs.keys import key_at
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.leaks.evidence import LEVEL, Order, Twins, decisive
from mechdesign.release.drawing import LABEL, POSTERIOR_DRAW, Release, key_of
from mechdesign.release.draws import (
    Identifiers,
    Key,
    NumberedRecords,
    Records,
    RowNumbers,
)
from mechdesign.release.policies import MARGINAL
from mechdesign.tables.columns import UnknownSymbol, encode_for, own_values, rebuild

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Channels, their keys, and columns; travels to other processes (with the keys in it, which no text shows)."""

    channels: tuple[Releasable, ...]
    keys: tuple[Key, ...]
    options: ReleaseOptions
    keyless: bool = False

    @classmethod
    def of(
        cls, channel: Releasable | Sequence[Releasable], options: ReleaseOptions
    ) -> Recipe:
        """The recipe of what a user asks for."""
        given: Any = channel
        channels: tuple[Releasable, ...] = (
            tuple(given) if isinstance(given, (list, tuple)) else (given,)
        )
        if not channels:
            raise InputError("give at least one channel")
        for each in channels:
            if not hasattr(each, "useful") or not hasattr(each, "rows"):
                raise InputError(
                    f"{quoted(each)} is no channel; give a Channel (Channel.load reads a file), or several of them"
                )
            own = getattr(getattr(each, "record", None), "objective", None) is not None
            if own and options.form == POSTERIOR_DRAW:
                raise InputError(
                    "this channel releases symbols of the column itself: a posterior draw would only move them once "
                    "more; leave the form (--as) out"
                )
        key = options.key
        secret = key_at(key) if isinstance(key, (str, os.PathLike)) else key
        return cls(
            channels=channels,
            keys=(key_of(secret, options.insecure_seed),) * len(channels),
            options=replace(options, key=None),
            keyless=key is None
            and options.insecure_seed is None
            and options.ledger is None,
        )

    @property
    def private_columns(self) -> list[str]:
        """Columns that must not stay unless the user wants it so."""
        return [*secret_columns(self.channels, self.options), *self.options.correlated]

    @property
    def replaced(self) -> list[str]:
        """Columns that the release takes the place of."""
        names, called = (
            (each.useful.columns for each in self.channels),
            self.options.renamed,
        )
        return (
            [called.get(name, name) for name in chain(*names)]
            if self.options.into is None
            else []
        )

    def drawer(self, header: Sequence[Any]) -> Drawer:
        """Ready for the parts of a table with this header."""
        return Drawer(self, header)

    def plan(self, header: Sequence[Any]) -> Plan:
        """What happens to each column of a table."""
        plan = make_plan(self.channels, header, self.options)
        name = self.options.row_numbers
        if name is not None:
            require_column(name, header)
            if header.index(name) in [at for places in plan.inputs for at in places]:
                raise InputError(
                    f"the column {quoted(name)} is useful and cannot number the records"
                )
        return plan


def without_table(channel: Releasable, options: ReleaseOptions) -> Releasable:
    """A channel as far as draws need it: what is sent to other machines has no joint table in it."""
    joint = getattr(channel, "joint", None)
    if joint is None:
        return channel
    lean = channel.public()
    if options.form == LABEL and MARGINAL not in (
        options.rules.unknown,
        options.rules.null,
    ):
        return lean
    # The frequencies of X alone.
    hidden = replace(joint.sensitive, symbols=joint.sensitive.symbols[:1])
    margin = replace(joint, sensitive=hidden, counts=(joint.useful_counts,), notices=())
    record = replace(lean.record, budgets=())
    return replace(
        lean, useful=channel.useful, joint=margin, sensitive=hidden, record=record
    )


class BadRecord(InputError):
    """A record that cannot be released: at `position` of the part at hand, and `what` is wrong with it."""

    def __init__(self, position: int, what: str, name: str) -> None:
        super().__init__(f"{name}: {what}")
        self.position = position
        self.what = what
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.position, self.what, self.name)


@dataclass(frozen=True)
class DrawnColumn:
    """A released column: the text of record i is ``labels[codes[i]]``; the labels are all different."""

    codes: Codes
    labels: tuple[str, ...]


class Looks:
    """The looks at a table with this header, part by part, for what would give away what a recipe protects.

    `hidden` are columns that must not be read from others, with the variable and the part of it whose bins count, if
    there are any; `orders` collect in which order the symbols of some columns, which have `names`, come.
    """

    def __init__(
        self,
        recipe: Any,
        header: Sequence[Any],
        hidden: Mapping[tuple[str, int], Any],
        orders: Mapping[str, Any],
    ) -> None:
        self.recipe = recipe
        self.header = tuple(header)
        self.plan: Plan = recipe.plan(self.header)
        options: ReleaseOptions = recipe.options
        wanted = not options.shuffle and not options.keep_order and options.into is None
        self.orders = dict(orders) if wanted else {}
        self._hidden = hidden
        exempt = {*options.kept, *self.plan.kept_private, *options.identifiers}
        kept = [(name, -1) for name in self.plan.others if name not in exempt]
        self._twins = Twins(kept, [*self._hidden])

    def look(self, count: int, some: Callable[[int], Callable[[Any], Any]]) -> None:
        """See what columns tell of each other in the next records, of which `some` gives columns (`Twins.add`)."""
        self._twins.add(count, lambda step: partial(self._cells, some(step)))

    def _cells(
        self, column: Callable[[Any], Any], which: tuple[str, int]
    ) -> Encoded | None:
        name, binned = which[0], self._hidden.get(which)
        try:
            if not binned:
                return encode(column(name), name)
            cells, (variable, part) = encode_for(column(name), name, *binned), binned
            bins = variable.bins_of(part)
            return cells if bins is None else bins.sorted_in(cells)  # texts, too
        except InputError:  # lists, records and the like are no symbols
            return None

    def refuse_twins(self, where: str = "") -> None:
        """Raise InputError if a column would stay that tells outright what is protected."""
        for (name, _), (other, _) in self._twins.found():
            what = "sensitive" if other in self.recipe.private_columns else "useful"
            raise InputError(
                f"{where}the column {quoted(name)} stands for the {what} column {quoted(other)}, which can be guessed "
                "from it, and would stay in the output: leave it out (--drop), or keep it knowingly (--keep)"
            )

    def ordered(self) -> str | None:
        """What is to be said where the records stand in an order that tells of what is protected."""
        for name, order in self.orders.items():
            if decisive(order.evidence(), len(self.orders)):
                return ORDERED.format(quoted(name), round(1 / LEVEL))
        return None

    def refuse_order(self, where: str = "") -> None:
        """Raise InputError if there is something to be said of the order."""
        if (told := self.ordered()) is not None:
            raise InputError(where + told)


class Drawer(Looks):
    """A recipe made ready for the parts of a table with this header."""

    dropped: Any = None
    """Records of the part drawn last that are left out: none."""

    def __init__(self, recipe: Recipe, header: Sequence[Any]) -> None:
        options, plan = recipe.options, recipe.plan(header)
        self.releases = [
            Release(
                channel,
                key,
                policy=options.rules,
                form=options.form,
                changed=options.changed,
            )
            for channel, key in zip(recipe.channels, recipe.keys, strict=True)
        ]
        # What is not to be read from other columns: X as it is and in its bins, and S where it is left out.
        hidden: dict[tuple[str, int], Any] = {
            (name, -1): None for name in recipe.private_columns if name in options.drop
        }
        for k, places in enumerate(plan.inputs if options.into is None else ()):
            for part, at in enumerate(places):
                hidden[header[at], -1] = None
                if any(recipe.channels[k].useful.bins):
                    hidden[header[at], k] = recipe.channels[k].useful, part
        names = (",".join(release.channel.useful.columns) for release in self.releases)
        orders = {
            name: Order(len(release.symbol_counts))
            for name, release in zip(names, self.releases, strict=True)
        }
        super().__init__(recipe, header, hidden, orders)

    @property
    def own(self) -> bool:
        """Whether what is released are symbols of X, which may have the type of their column."""
        return self.recipe.options.form != LABEL

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type that a released column has in common with that of X, None where it holds labels."""
        kind = type_of(stands_for(self.plan, column)) if self.own else None
        fits = (
            kind is not None
            and own_values(self.labels[column.release or (0, 0)], kind) is not None
        )
        return kind if fits else None

    @property
    def labels(self) -> dict[tuple[int, int], tuple[str, ...]]:
        """The different labels of every released column."""
        return {key: labels for key, (labels, _) in self._labels.items()}

    @cached_property
    def _labels(self) -> dict[tuple[int, int], tuple[tuple[str, ...], Codes]]:
        """For every released column its different labels, and which of them every code means."""
        found: dict[tuple[int, int], tuple[tuple[str, ...], Codes]] = {}
        for k, release in enumerate(self.releases):
            for part, texts in enumerate(release.texts):
                labels = tuple(dict.fromkeys(texts))
                place = {label: i for i, label in enumerate(labels)}
                found[k, part] = (
                    labels,
                    np.array([place[text] for text in texts], dtype=np.int32),
                )
        return found

    def reads(self, schema: Any) -> tuple[list[str], list[str]]:
        """The columns that are wanted as codes, and those that are read only."""
        symbols = [self.header[at] for places in self.plan.inputs for at in places]
        return symbols, [self.header[at] for at in self.plan.identity]

    def rebuild(self, like: Any, drawn: DrawnColumn, name: str) -> Any:
        """A released column of the kind that `like` is."""
        return rebuild(like, drawn.codes, drawn.labels, name, own=self.own)

    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[tuple[int, int], DrawnColumn]:
        """The released columns of a part of the table, by (channel, part) as in `plan.OutputColumn`."""
        cells, records = self._symbols(column), self._records(column, count, first_row)
        released: dict[tuple[int, int], DrawnColumn] = {}
        orders = [*self.orders.values()]
        for k, (release, symbols) in enumerate(zip(self.releases, cells, strict=True)):
            try:
                parts = release.draw(symbols, records)
            except UnknownSymbol as error:
                raise BadRecord(
                    error.position, error.what, _named(records, error.position)
                ) from None
            if self.orders:
                orders[k].add(release.codes)
            for part, codes in enumerate(parts):
                labels, place = self._labels[k, part]
                released[k, part] = DrawnColumn(
                    codes if len(labels) == len(place) else place[codes], labels
                )
        return released

    def count(self, column: Callable[[int], Any], times: Integers) -> None:
        """Add up in `counts` what a part of the table holds that is not drawn, each record so many times."""
        for release, symbols in zip(self.releases, self._symbols(column), strict=True):
            release.count(symbols, times)

    @property
    def counts(self) -> list[Integers]:
        """For every channel, how many records had each symbol."""
        return [release.symbol_counts for release in self.releases]

    def _symbols(self, column: Callable[[int], Any]) -> list[list[Encoded]]:
        return [
            [
                encode_for(column(at), self.header[at], channel.useful, part)
                for part, at in enumerate(places)
            ]
            for channel, places in zip(
                self.recipe.channels, self.plan.inputs, strict=True
            )
        ]

    def _records(
        self, column: Callable[[int], Any], count: int, first_row: int
    ) -> Records:
        if self.plan.identity:
            return Identifiers(
                [_identifiers(column(at), self.header[at]) for at in self.plan.identity]
            )
        name = self.recipe.options.row_numbers
        if name is not None:
            return _numbered(column(self.header.index(name)), name)
        return RowNumbers(first_row, count)


ORDERED = (
    "the records stand in an order that tells of {} by their place (of random orders at most one in {:,} does): "
    "release them in random order (--shuffle), or keep the order knowingly (--keep-order)"
)


def stands_for(plan: Plan, column: OutputColumn) -> int:
    """Position in the input of the column (of X) that a column of the output was, or is drawn for."""
    if column.source is not None:
        return column.source
    channel, part = column.release or (0, 0)
    return plan.inputs[channel][part]


def _identifiers(column: Any, name: str) -> Any:
    texts = simple_texts(column)
    if texts is None:
        cells = encode(column, name)
        texts = cells.expanded()
        if cells.is_float:
            raise InputError(
                f"the column {quoted(name)} holds floats, which have more than one text and identify nothing; turn "
                "them into integers or text"
            )
    texts = texts.fill_null(
        arrow_texts([""])[0]
    )  # not "", for which pyarrow would load pandas
    ends, _ = arrow_offsets(texts)
    if len(missing := np.flatnonzero(ends[1:] == ends[:-1])):
        position = int(missing[0])
        what = (
            f"the column {quoted(name)} is empty, and the record cannot be identified"
        )
        raise BadRecord(position, what, f"entry {position}")
    return texts


def _numbered(column: Any, name: str) -> NumberedRecords:
    import narwhals as nw
    import pyarrow as pa

    column = pa.array(column) if isinstance(column, np.ndarray) else column
    whole = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    series = nw.from_native(whole, series_only=True)
    if not series.dtype.is_integer() or series.null_count():
        raise InputError(
            f"the column {quoted(name)} must hold an integer for every record, its row number, and it holds "
            f"{'gaps' if series.dtype.is_integer() else str(series.dtype)}"
        )
    records = NumberedRecords(
        integers_of(series.to_arrow())
    )  # not to_numpy, which loads pandas
    if not (records.numbers[1:] > records.numbers[:-1]).all():
        values, times = np.unique(records.numbers, return_counts=True)
        if times.max() > 1:
            raise InputError(
                f"the column {quoted(name)} gives the row number {values[np.argmax(times > 1)]} to two records, whose "
                "draws would depend on each other"
            )
    return records


def _named(records: Records, position: int) -> str:
    if isinstance(records, Identifiers):
        return f"the record {records.named(position)}"
    if isinstance(records, RowNumbers):
        return f"row number {records.first + position} (counted from 0)"
    return f"row number {records.numbers[position]}"
