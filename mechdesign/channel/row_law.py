"""How a release of rows draws them, for whoever estimates from what came out.

A channel of rows draws an output for each row of its table. Filled boxes draw one for each box: all
rows of a box have the same law. For example, of a box with the rows u and v of 1 and 3 records,
which is always released as itself, either row becomes u with 1/4 and v with 3/4.

*Filled boxes* may change the law of the table.

*True records* have a symbol of their channel, by the texts of their columns; `law_of_record` says
what is released for one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import listed
from mechdesign.formats.cells import encode
from mechdesign.release.protocol import Releasable, ReleasablePart
from mechdesign.release.samplers import filling_rows, law_of_boxes
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.columns import positions_of
from mechdesign.tables.people import ABSENT, People
from mechdesign.tables.row_boxes import box_name
from mechdesign.tables.variable import Variable

Array = NDArray[np.float64]

NOT_KEPT = (
    "this channel does not keep the law of its table, and comes without that table or releases "
    "labels, so how far shares moved is not known: give the channel file as `design` wrote it"
)
"""The refusal of estimates."""


@dataclass(frozen=True, eq=False)
class RowLaw:
    """How a release of rows draws them: rows of a class have one law over the outputs.

    Attributes
    ----------
    columns : tuple of str
    outputs, rows : sequences of tuples of str
        Rows that may be released, and those of the table.
    row_masses : (rows,) array
        P(x) of the table.
    masses : (classes,) array
        Those of the classes, which are single rows, or boxes that are filled.
    class_of, indices, shares : (entries,) arrays
        The positive entries W(y | class): class, output, probability.
    is_kept : bool
        Whether every row is released exactly as often as the table has it, in expectation.
    silent : sequence of tuples of str
        What is written in place of other rows, of which nothing is released. The law is that of all
        the rest.
    """

    columns: tuple[str, ...]
    outputs: Sequence[tuple[str, ...]]
    rows: Sequence[tuple[str, ...]]
    row_masses: Array
    masses: Array
    class_of: Integers
    indices: Integers
    shares: Array
    is_kept: bool
    silent: Sequence[tuple[str, ...]] = ()

    @cached_property
    def expected(self) -> Array:
        """The probability of every output."""
        flows = self.masses[self.class_of] * self.shares
        return np.bincount(self.indices, flows, len(self.outputs)).astype(np.float64)


# ---------------------------------------------------------------------- rows of a table


def law_of_rows(channel: Releasable, shares: Array, *, is_kept: bool) -> RowLaw:
    """How the rows of a table are drawn that are released as such; `shares` are the positive
    probabilities W(y|x) in the order of the entries of the channel.

    Raises
    ------
    InputError
        If neither a table nor a kept law says how often there are which rows.
    """
    if channel.joint is not None:
        masses = channel.joint.p_x
    elif is_kept:
        # Then totals are in proportion to the records of their rows.
        totals = np.array([float(total) for total in channel.row_totals])
        masses = totals / totals.sum()
    else:
        raise InputError(NOT_KEPT)
    integers = IntegerRows.of(channel.rows)
    return RowLaw(
        channel.useful.columns,
        channel.output_cells,
        channel.useful.symbols,
        masses,
        masses,
        integers.row_of,
        integers.indices,
        shares,
        is_kept,
    )


def keeps_law_of_table(channel: Releasable) -> bool:
    """Whether every row of the table is released exactly as often as the table has it, as far as
    the integers tell: without a table the totals are taken to be in proportion to its records.
    """
    totals = channel.row_totals
    if channel.joint is not None:
        records = channel.joint.useful_counts
        whole = sum(totals)
        for total, count in zip(totals, records, strict=True):
            if total * channel.joint.total != count * whole:
                return False
    # Python integers, because sums may exceed 64 bits.
    columns = IntegerRows.of(channel.rows).columns
    released = [sum(values) for _, values in columns]
    if len(released) != len(totals):
        return False
    place = channel.useful.index
    for cells, mass in zip(channel.output_cells, released, strict=True):
        if cells not in place or totals[place[cells]] != mass:
            return False
    return True


# ------------------------------------------------------------------------- filled boxes


def filled_law(coder: BoxCoder, parts: Sequence[ReleasablePart]) -> RowLaw:
    """How rows are drawn where they fill the boxes: a box by that of a record, and in it a row of
    the table.

    Raises
    ------
    InputError
        If every stratum releases nothing.
    """
    silent: list[tuple[str, ...]] = []
    rows: list[tuple[str, ...]] = []
    row_masses: list[float] = []
    masses: list[float] = []
    classes: list[Integers] = []
    indices: list[Integers] = []
    shares: list[Array] = []
    for part in parts:
        if part.channel is None:
            silent.append(coder.silent_row(part.stratum))
            continue
        first = len(rows)
        table = filling_rows(part)
        rows += zip(*coder.cells_of(part.stratum, table[:, :-1]), strict=True)
        records = table[:, -1].tolist()
        box_of = np.repeat(np.arange(len(part.boxes)), [*map(len, part.fill)])
        sizes = np.bincount(box_of, records, len(part.boxes))
        law = law_of_boxes(part, part.channel)
        # A box without a record of the proof is drawn like all records together.
        seen = law.any(axis=1)
        law[~seen] = sizes[seen] @ law[seen] / sizes[seen].sum()
        within = np.array(records) / sizes[box_of]
        drawn = law[:, box_of] * within
        boxes, places = np.nonzero(drawn)
        classes.append(boxes + len(masses))
        indices.append(places + first)
        shares.append(drawn[boxes, places])
        masses += sizes.tolist()
        row_masses += records
    if not rows:
        raise InputError("the channel releases nothing: there is nothing to count")
    total = sum(row_masses)
    return RowLaw(
        coder.released_columns,
        rows,
        rows,
        np.array(row_masses) / total,
        np.array(masses) / total,
        np.concatenate(classes),
        np.concatenate(indices),
        np.concatenate(shares),
        all(map(keeps_law_of_rows, parts)),
        silent,
    )


def keeps_law_of_rows(part: ReleasablePart) -> bool:
    """Whether the boxes of a part that is filled are released as often as its table has them."""
    channel = part.channel
    if channel is None or not part.releases_boxes or not part.fill:
        return False
    records: dict[str, int] = {}
    for box, rows in enumerate(part.fill):
        if rows:
            records[box_name(box)] = sum(row[-1] for row in rows)
    # Boxes of records outside of the proof have no row of their own, and are drawn blindly.
    if set(records) != set(channel.useful.names):
        return False
    released = dict.fromkeys(records, Fraction(0))
    rows = IntegerRows.of(channel.rows).entries()
    for name, row, total in zip(
        channel.useful.names, rows, channel.row_totals, strict=True
    ):
        share = Fraction(records[name], total)
        for output, value in row:
            released[channel.outputs[output]] += share * value
    return all(released[name] == count for name, count in records.items())


# ------------------------------------------------------------------------- true records

Law = dict[tuple[Any, ...], Fraction]
"""Released texts, and their probabilities; of a person tuples of such texts."""


def law_of_record(channel: Releasable, coder: BoxCoder | None, row: Any) -> Law:
    """The exact law of what is released for a record, or for all records of a person; with a
    `coder` for the box of the record.

    Raises
    ------
    InputError
        If a column is missing, or the channel does not know the row.
    """
    if coder is not None:
        if not isinstance(row, Mapping):
            raise InputError(
                "give a record of a channel of boxes as a mapping of its columns "
                f"({listed(coder.released_columns)}) to texts"
            )
        record = cast("Mapping[str, str]", row)
        return _law_of_symbol(channel, _symbol_of_box(channel, coder, record))
    people = channel.useful.people
    if people is None:
        return _law_of_symbol(channel, _symbol_of(channel.useful, row))
    symbol = _symbol_of(channel.useful, _symbol_of_person(people, row))
    law = _law_of_symbol(channel, symbol)
    return {people.records(cells): share for cells, share in law.items()}


def _law_of_symbol(channel: Releasable, symbol: tuple[str, ...]) -> Law:
    """The exact law of what is released for a symbol."""
    if symbol not in channel.useful.index:
        raise InputError(
            "the channel does not know this row: no record of its table has it"
        )
    x = channel.useful.index[symbol]
    law: Law = {}
    for y, value in IntegerRows.of(channel.rows).entries_of(x):
        cells = channel.output_cells[y]
        share = Fraction(value, channel.row_totals[x])
        law[cells] = law.get(cells, Fraction(0)) + share
    return law


def _symbol_of_box(
    channel: Releasable, coder: BoxCoder, row: Mapping[str, str]
) -> tuple[str, ...]:
    """The symbol of a record with these true texts: its given cells and its box."""
    missing = [name for name in coder.released_columns if name not in row]
    if missing:
        raise InputError(f"the row has no column {listed(missing)}")
    codes: list[int] = []
    for variable in coder.groups:
        cells = [encode([row[name]], name) for name in variable.columns]
        codes.append(int(positions_of(cells, variable)[0]))
    given = len(coder.given)
    strata = coder.strata_of(np.array([codes[:given]], dtype=np.int64))
    if strata[0] < 0:
        raise InputError(
            "the channel does not know this combination of given symbols: no record of its "
            "slice has it"
        )
    boxes = coder.numbers_of(strata, np.array([codes[given:]], dtype=np.int64))
    symbol = coder.symbols[int(boxes[0])]
    if symbol not in channel.useful.index:
        raise InputError(
            f"{symbol[-1]} has no record: its rows are released as the marginal"
        )
    return symbol


def _symbol_of(
    useful: Variable, row: Mapping[str, str] | Sequence[str] | str
) -> tuple[str, ...]:
    """The cells of a record in the order of the useful columns; numbers in their bins."""
    columns = useful.columns
    if isinstance(row, str):
        texts = [row]
    elif isinstance(row, Mapping):
        missing = [name for name in columns if name not in row]
        if missing:
            raise InputError(f"the row has no column {listed(missing)}")
        texts = [row[name] for name in columns]
    else:
        texts = list(row)
    if len(texts) != len(columns):
        raise InputError(
            f"the row has {len(texts)} texts for the {len(columns)} columns "
            f"{listed(columns)}"
        )
    cells: list[str] = []
    for place, text in enumerate(texts):
        bins = useful.bins_of(place)
        # A label is a cell already, and so is that of a record that a person does not have;
        # anything else is a number, which belongs to a bin.
        if bins is not None and text not in (*bins.labels, ABSENT):
            text = bins.marked[bins.bin_of(text)]
        cells.append(text)
    return tuple(cells)


def _symbol_of_person(people: People, records: Any) -> tuple[str, ...]:
    """The symbol of a person's records, in the order of the waves."""
    if not isinstance(records, (list, tuple)):
        raise InputError(
            "a person has several records: give a list of them, in the order of the waves"
        )
    cells: list[Sequence[str]] = []
    for record in cast("Sequence[Any]", records):
        if isinstance(record, Mapping):
            named = cast("Mapping[str, str]", record)
            missing = [name for name in people.columns if name not in named]
            if missing:
                raise InputError(f"a record has no column {listed(missing)}")
            cells.append([named[name] for name in people.columns])
        else:
            cells.append(record)
    return people.symbol(cells)
