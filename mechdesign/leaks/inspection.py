"""Before a release: what each other column of a file says about the useful and the sensitive
ones.

Every other column is crossed with each column that the channel randomises or protects (`crossing`).
The table of counts says how well one guesses the other, and whether it is a copy. The worst come
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encode, encode_anything
from mechdesign.formats.column_names import require_column
from mechdesign.formats.opening import Source, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.leaks.crossing import Crossing, TextNumbers
from mechdesign.tables.variable import column_names

VALUES = 1 << 16
"""Different values from which on a column is not looked at any more: it names individuals, or has
to be coarser.
"""


@dataclass(frozen=True)
class Tells:
    """What a column says about another one, in the records of the file.

    `lift` is the largest P(symbol | value) / P(symbol), among values of at least two records (None
    where there is none). `pinned` is the share of records whose value comes again and has one
    symbol alone; `guessed` that of the records whose symbol is right when it is guessed from the
    others with their value, `alone` without it. `stands_for` says whether `apply` would refuse to
    keep the column.
    """

    lift: float | None
    pinned: float
    guessed: float
    alone: float
    stands_for: bool

    @classmethod
    def of(cls, crossing: Crossing) -> Tells:
        """From the counts of both."""
        values, symbols, counts = crossing.table()
        whole, each = np.bincount(values, counts), np.bincount(symbols, counts)
        again = whole[values] > 1
        lifts = counts * counts.sum() / (whole[values] * each[symbols])
        only = counts[again & (counts == whole[values])].sum() / max(1, counts.sum())
        known, alone = crossing.guessed()
        lift = float(lifts[again].max()) if again.any() else None
        return cls(lift, float(only), known, alone, crossing.stands_for())


@dataclass(frozen=True)
class ColumnTells:
    """A column, how many different values it has (None: too many to look at), and what it says of
    others.
    """

    column: str
    values: int | None
    about: Mapping[str, Tells]

    @property
    def severity(self) -> tuple[float, ...]:
        """By which columns are sorted, worst last."""
        told = self.about.values()
        gained = [
            (each.guessed - each.alone) / (1 - each.alone)
            for each in told
            if each.alone < 1
        ]
        worst = (
            [each.pinned for each in told],
            gained,
            [each.lift or 0.0 for each in told],
        )
        return (
            any(each.stands_for for each in told),
            *(max(one, default=0.0) for one in worst),
        )


@dataclass(frozen=True)
class Inspection:
    """What the other columns of a file say, worst first."""

    records: int
    useful: tuple[str, ...]
    sensitive: tuple[str, ...]
    columns: tuple[ColumnTells, ...]


def inspect_file(
    channel: Channel | RowChannel | BoxChannel,
    source: PathLike,
    *,
    sensitive: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    text: TextOptions | None = None,
) -> Inspection:
    """Measure what each other column of a file says about the columns that a channel randomises,
    and about the `sensitive` ones.

    These are by default those of the channel that the file has; `columns` maps the channel's names
    to the file's. Given columns of rows are part of the release, and not among the others.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such column.
    """
    is_mapping = isinstance(columns, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
    if columns is not None and not is_mapping:
        raise InputError(
            f"columns ({quoted(columns)}) must be a mapping from the channel's names of columns to "
            "the table's"
        )
    renamed = dict(columns or {})
    useful, given = _released_columns(channel)
    useful = tuple(renamed.get(name, name) for name in useful)
    given = tuple(renamed.get(name, name) for name in given)
    with open_source(source, text) as table:
        with errors_naming(table.name):
            for name in (*useful, *given, *sensitive):
                require_column(name, table.header)
            if both := {*useful, *given} & set(sensitive):
                raise InputError(
                    f"the column {quoted(min(both))} cannot be sensitive and useful at once"
                )
        found = sensitive
        if not sensitive and channel.sensitive is not None:
            found = [renamed.get(name, name) for name in channel.sensitive.columns]
        hidden = tuple(
            dict.fromkeys((*useful, *(name for name in found if name in table.header)))
        )
        others = [name for name in table.header if name not in {*hidden, *given}]
        records, crossings = _crossed(table, others, hidden)
    told = [_told(name, pairs) for name, pairs in crossings.items()]
    told.sort(key=lambda each: each.severity, reverse=True)
    return Inspection(records, useful, hidden[len(useful) :], tuple(told))


def _released_columns(
    channel: Channel | RowChannel | BoxChannel,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that a channel randomises, and those that it releases as they are."""
    if isinstance(channel, RowChannel):
        return column_names(channel.levels), column_names(channel.given)
    if isinstance(channel, BoxChannel):
        return column_names(channel.columns), column_names(channel.given)
    return channel.useful.columns, ()


def _crossed(
    table: Source, others: Sequence[str], hidden: Sequence[str]
) -> tuple[int, dict[str, dict[str, Crossing]]]:
    """The number of records, and each other column crossed with each hidden one."""
    numbers = {other: TextNumbers() for other in hidden}
    crossings: dict[str, dict[str, Crossing]] = {}
    for name in others:
        crossings[name] = {other: Crossing(VALUES, numbers[other]) for other in hidden}
    records = 0
    for batch in table.batches():
        records += batch.num_rows
        symbols = {name: encode(batch.column(name), name) for name in hidden}
        for name, pairs in crossings.items():
            if all(each.full for each in pairs.values()):
                continue
            values = encode_anything(batch.column(name), name)
            for other, crossing in pairs.items():
                crossing.add(values, symbols[other])
    return records, crossings


def _told(name: str, pairs: Mapping[str, Crossing]) -> ColumnTells:
    """Of a column with too many values nothing is known, unless it is a copy."""
    about = {
        other: Tells.of(each)
        for other, each in pairs.items()
        if not each.full or each.same
    }
    many = any(each.full for each in pairs.values())
    return ColumnTells(
        name, None if many else max(each.size for each in pairs.values()), about
    )
