"""Before a release: what each other column of a file says about the useful and the sensitive
ones.

`inspect_file` reads the file once and crosses every other column with each column that the channel
randomises or protects (`evidence.Crossing`). The table of counts of two columns then says how well
one guesses the other, and whether it is a copy (`Tells`). The worst columns come first
(`ColumnTells.severity`). For example, of a ward and the jobs of its people::

    ward    nurse   clerk     largest lift: P(nurse | A) / P(nurse) = 0.8 / 0.4 = 2
    A           8       2     pinned: the 10 of 20 records in ward B, who are all clerks
    B           0      10

*Columns that are kept.* A channel bounds what the released columns disclose. Columns kept beside
them are outside of its promise, so `apply --keep all` prints what they disclose together: a
cross-validated guess of S (`learners`), on a sample that is spread evenly over the file.

`guess_from_kept` takes the sample in one pass (`even_sample`), leaves out columns that identify
records, crosses the sensitive columns to one secret, and has it guessed. `kept_note` puts the
result in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, percent, quoted
from mechdesign.formats.cells import Encoded, encode, encode_anything
from mechdesign.formats.column_names import require_column
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Batch, Source, open_source
from mechdesign.leaks.assessment import crossed_secret, identifies_records
from mechdesign.leaks.coded_table import CodedColumn, even_sample
from mechdesign.leaks.evidence import Crossing, TextNumbers
from mechdesign.leaks.learners import MOST_RECORDS, RowGuess, guess_from_rows
from mechdesign.leaks.sorted_order import SortedBy, SortedOrders

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
    others with their value, or from the record before when all are sorted by the column, `alone`
    without it. `stands_for` says whether `apply` would refuse to keep the column.
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
        total = counts.sum()
        # n(v) and n(s) of each cell of the table.
        size = np.bincount(values, counts)[values]
        mass = np.bincount(symbols, counts)[symbols]
        # P(s | v) / P(s) = (n(v, s) / n(v)) / (n(s) / N).
        lifts = counts * total / (size * mass)
        # A value of a single record has extreme lifts in every table.
        repeated = size > 1
        lift: float | None = None
        if repeated.any():
            lift = float(lifts[repeated].max())
        with_one_symbol = repeated & (counts == size)
        pinned = float(counts[with_one_symbol].sum() / max(1, total))
        guessed, alone = crossing.guessed()
        return cls(lift, pinned, guessed, alone, crossing.stands_for())


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
        """By which columns are sorted, worst last: copies, then records pinned down, errors of
        guessing removed, and lifts; each is the largest over the columns that it tells of.
        """
        stands_for = False
        pinned = 0.0
        lift = 0.0
        gains: list[float] = []
        for tells in self.about.values():
            stands_for = stands_for or tells.stands_for
            pinned = max(pinned, tells.pinned)
            lift = max(lift, tells.lift or 0.0)
            if tells.alone < 1:
                # Negative where the column misleads more often than it helps.
                gains.append((tells.guessed - tells.alone) / (1 - tells.alone))
        return stands_for, pinned, max(gains, default=0.0), lift


@dataclass(frozen=True)
class Inspection:
    """What the other columns of a file say, worst first."""

    records: int
    useful: tuple[str, ...]
    sensitive: tuple[str, ...]
    columns: tuple[ColumnTells, ...]


def inspect_file(
    channel: Channel,
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
    randomised, kept = channel.randomised_columns, channel.given_columns
    people = channel.people
    if people is not None:
        # The columns of the records, and not those of the folded table.
        randomised, kept = people.released, people.given
    useful = _names_in_file(randomised, renamed)
    given = _names_in_file(kept, renamed)
    with open_source(source, text) as table:
        with errors_naming(table.name):
            for name in (*useful, *given, *sensitive):
                require_column(name, table.header)
            both = {*useful, *given} & set(sensitive)
            if both:
                raise InputError(
                    f"the column {quoted(min(both))} cannot be sensitive and useful at once"
                )
        protected = sensitive
        if not sensitive:
            secret = () if channel.sensitive is None else channel.sensitive.columns
            if people is not None:
                secret = people.sensitive
            in_file = _names_in_file(secret, renamed)
            protected = [name for name in in_file if name in table.header]
        # The useful columns first; a dictionary as an ordered set.
        hidden = tuple(dict.fromkeys((*useful, *protected)))
        others = [name for name in table.header if name not in {*hidden, *given}]
        orders = SortedOrders(others, hidden)
        records, crossings = _crossed(table, others, hidden, orders)
    by_order: dict[str, dict[str, SortedBy]] = {}
    for pair in orders.found():
        by_order.setdefault(pair.column, {})[pair.about] = pair
    inspected: list[ColumnTells] = []
    for name, pairs in crossings.items():
        inspected.append(_column_tells(name, pairs, by_order.get(name, {})))
    inspected.sort(key=lambda column: column.severity, reverse=True)
    return Inspection(records, useful, hidden[len(useful) :], tuple(inspected))


def _names_in_file(names: Sequence[str], renamed: Mapping[str, str]) -> tuple[str, ...]:
    """What the file calls some columns of the channel."""
    return tuple(renamed.get(name, name) for name in names)


def _crossed(
    table: Source,
    others: Sequence[str],
    hidden: Sequence[str],
    orders: SortedOrders,
) -> tuple[int, dict[str, dict[str, Crossing]]]:
    """The number of records, and each other column crossed with each hidden one; `orders` sees the
    same records.
    """
    # The symbols of a hidden column have the same numbers in all its crossings.
    numbers = {other: TextNumbers() for other in hidden}
    crossings: dict[str, dict[str, Crossing]] = {}
    for name in others:
        crossings[name] = {other: Crossing(VALUES, numbers[other]) for other in hidden}
    records = 0
    for batch in table.batches():
        records += batch.num_rows
        symbols = {name: encode(batch.column(name), name) for name in hidden}
        orders.add(batch.num_rows, partial(_some_cells, batch))
        for name, pairs in crossings.items():
            # A column with too many values for every crossing need not be read any further.
            if all(crossing.full for crossing in pairs.values()):
                continue
            values = encode_anything(batch.column(name), name)
            for other, crossing in pairs.items():
                crossing.add(values, symbols[other])
    return records, crossings


def _with_order(tells: Tells | None, pair: SortedBy) -> Tells:
    """What a column says by its values, and by the order of the records when sorted by it."""
    if tells is None:
        tells = Tells(None, 0.0, 0.0, pair.alone, stands_for=False)
    # Without a value in common nothing is guessed right; a stranger would sort instead.
    return replace(
        tells,
        guessed=max(tells.guessed, pair.nearby),
        stands_for=tells.stands_for or pair.tells,
    )


def _some_cells(batch: Batch, step: int) -> Callable[[str], Encoded]:
    """The cells of every so many-th record of a batch, by the name of the column."""
    some = batch.some(step)
    return lambda name: encode_anything(some.column(name), name)


def _column_tells(
    name: str, pairs: Mapping[str, Crossing], by_order: Mapping[str, SortedBy]
) -> ColumnTells:
    """What a column says about each hidden one; with too many values only whether it is a copy, and
    what sorting by it tells.
    """
    about: dict[str, Tells] = {}
    values: int | None = 0
    for other, crossing in pairs.items():
        # Nearly equal texts were counted before the crossing was full, and show a copy anyway.
        if not crossing.full or crossing.same:
            about[other] = Tells.of(crossing)
        if other in by_order:
            about[other] = _with_order(about.get(other), by_order[other])
        if crossing.full:
            values = None
        elif values is not None:
            values = max(values, crossing.size)
    return ColumnTells(name, values, about)


# ---------------------------------------------------------------- columns that are kept


def guess_from_kept(
    path: PathLike,
    *,
    sensitive: Sequence[str],
    kept: Sequence[str],
    text: TextOptions | None = None,
) -> RowGuess | None:
    """Guess the sensitive columns of a file from the kept ones.

    Parameters
    ----------
    path : path of a CSV or Parquet file
    sensitive : sequence of str
        Columns of S, crossed if several.
    kept : sequence of str
        The columns that stay as they are. Those that identify records are left out: no model learns
        anything from them.
    text : TextOptions, optional
        How a CSV file is written.

    Returns
    -------
    RowGuess or None
        None where the file lacks a sensitive column, or where nothing is left to guess from.
    """
    with open_source(path, text) as table, errors_naming(table.name):
        if not sensitive or any(name not in table.header for name in sensitive):
            return None
        coded = even_sample(table, [*sensitive, *kept], 2 * MOST_RECORDS)
    if any(name not in coded.columns for name in sensitive):
        return None
    columns: list[CodedColumn] = []
    for name in kept:
        column = coded.columns.get(name)
        if column is not None and not identifies_records(column):
            columns.append(column)
    if not columns or not coded.records:
        return None
    secret = crossed_secret(coded, tuple(sensitive))
    return guess_from_rows(columns, secret.codes, secret.symbols)


def kept_note(guess: RowGuess, *, sensitive: Sequence[str]) -> str:
    """What the kept columns disclose together, as one sentence for the user."""
    figure = ""
    if guess.auc is not None:
        figure = f" (AUC {guess.auc:.3f}; 0.5 is chance)"
    return (
        f"the kept columns together guess {listed(list(sensitive))} right for "
        f"{percent(guess.right)} of the records{figure}, where {percent(guess.right_without)} are "
        "right without them: no budget bounds this; release these columns too (design --release)"
    )
