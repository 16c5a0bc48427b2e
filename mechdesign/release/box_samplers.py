"""Samplers of a channel of boxes: what is drawn for the box of a record.

The channel W of the boxes of all strata is one sampler, with a row for each box (`box_laws`). A box
that no record of the proof was in has no row in the channel, and is drawn like the marginal of its
stratum, if the promise covers it and the counts are there. With filling there are two more draws
(`Filling`):

    step 0       the box b of a record gives an output y, from W(y | b)
    step 1       with filling: a box, in proportion to n(b) W(y | b); y itself where it is a box
    step 2       with filling: a row of the table in that box, as often as the table has it

n(b) are the records of the box b (`boxes_of_outputs`). For example, the boxes 0 and 1 have 30 and
10 records, and W gives the label y to box 0 always and to box 1 half the time. Then y is filled
from box 0 with 30 : 5, by one of its rows, all columns at once: only rows of the table are
released. Step 2 is exact, and step 1 exact for boxes: with their law kept, every row of the table
is released as often as the table has it, in expectation.

The steps of filling depend on the output alone, so they disclose nothing more of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.release.draws import Sampler
from mechdesign.release.policies import FINE, MARGINAL, apportioned, policy_row
from mechdesign.release.protocol import Releasable, ReleasablePart
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.row_boxes import box_name

Law: TypeAlias = dict[int, int]
"""A distribution: the positive integers of its places, in proportion to it."""


def box_laws(channel: Releasable, coder: BoxCoder) -> list[Law | None]:
    """For every box, by its number, the law of its output; None where nothing can be drawn."""
    entries = IntegerRows.of(channel.rows).entries()
    rows = dict(zip(channel.useful.symbols, entries, strict=True))
    laws: list[Law | None] = []
    first = 0
    for part, stratum in zip(channel.parts, coder.strata, strict=True):
        given = coder.given_texts(stratum.codes)
        marginal = marginal_of(part)
        for box in range(len(stratum.boxes)):
            row = rows.get((*given, box_name(box)))
            if row is not None:
                laws.append(dict(row))
            else:
                laws.append(moved(positive(marginal), first) if marginal else None)
        first += 1 if part.channel is None else len(part.channel.outputs)
    return laws


def marginal_of(part: ReleasablePart) -> Sequence[int]:
    """The marginal of the outputs of a stratum, which boxes without records are drawn by; empty
    where the promise covers none of these, or in a public channel, which has no counts.
    """
    channel = part.channel
    if channel is None or not channel.unseen or channel.joint is None:
        return ()
    masses = policy_row(channel, MARGINAL, "unknown")
    return apportioned(masses, FINE).tolist()


class Filling:
    """Samplers of a box for each output, and of a row for each box.

    Outputs, boxes and rows are numbered through all strata, one after the other.

    Attributes
    ----------
    boxes : Sampler
        Of boxes, with a row for each output.
    rows : Sampler
        Of rows, with a row for each box; its totals are the records of the boxes.
    columns : list of lists of str
        By released column what is written for each row, given columns first.
    """

    def __init__(self, parts: Sequence[ReleasablePart], coder: BoxCoder) -> None:
        boxes: list[Law] = []
        laws: list[Law] = []
        self.columns: list[list[str]] = [[] for _ in coder.released_columns]
        size = 0
        for part in parts:
            first_box = len(laws)
            if part.channel is None:
                # One output, one box, and one row.
                boxes.append({first_box: FINE})
                laws.append({size: 1})
                cells = [[text] for text in coder.silent_row(part.stratum)]
            else:
                boxes += boxes_of_outputs(part, part.channel, first_box)
                first = size
                for rows_of_box in part.fill:
                    records = [row[-1] for row in rows_of_box]
                    # Nothing leads to a box without records; its law only keeps the places.
                    laws.append(dict(enumerate(records, first)) or {0: 1})
                    first += len(records)
                cells = coder.cells_of(part.stratum, filling_rows(part)[:, :-1])
            for column, more in zip(self.columns, cells, strict=True):
                column += more
            size = len(self.columns[0])
        self.boxes = sampler_of_laws(boxes, len(laws))
        self.rows = sampler_of_laws(laws, size)


def filling_rows(part: ReleasablePart) -> Integers:
    """The rows of all boxes of a stratum, one box after the other: codes, and then the records."""
    return np.array([row for rows in part.fill for row in rows], dtype=np.int64)


def boxes_of_outputs(
    part: ReleasablePart, channel: Releasable, first: int
) -> list[Law]:
    """The law of the box b that fills each output y of a part.

    Where the outputs are boxes it is the box itself; else it is in proportion to n(b) W(y | b),
    with the records n(b) of the box. The boxes are numbered from `first` on.
    """
    if part.releases_boxes:
        box_of_name = {box_name(box): box for box in range(len(part.boxes))}
        return [{first + box_of_name[name]: FINE} for name in channel.outputs]
    sizes = [sum(row[-1] for row in rows) for rows in part.fill]
    laws: list[Law] = []
    rows = dict(zip(channel.useful.names, channel.rows, strict=True))
    totals = dict(zip(channel.useful.names, channel.row_totals, strict=True))
    for y in range(len(channel.outputs)):
        masses: list[int] = []
        for box, records in enumerate(sizes):
            name = box_name(box)
            # A box without records of the proof has no row, so no output leads back to it.
            if name not in rows:
                masses.append(0)
                continue
            scale = channel.denominator // totals[name]
            masses.append(records * rows[name][y] * scale)
        laws.append(moved(shares_of(masses), first))
    return laws


def law_of_boxes(part: ReleasablePart, channel: Releasable) -> NDArray[np.float64]:
    """(boxes, boxes) array: for every true box, the probability of each that is filled.

    The box that is filled is the output, or drawn from its posterior: the channel is followed by
    this draw. A box that no record of the proof is in has a row of zeros.
    """
    count = len(part.boxes)
    filled = np.zeros((len(channel.outputs), count))
    for y, masses in enumerate(boxes_of_outputs(part, channel, 0)):
        total = sum(masses.values())
        for box, mass in masses.items():
            filled[y, box] = mass / total
    outputs = np.zeros((count, len(channel.outputs)))
    place = {box_name(box): box for box in range(count)}
    for name, row, total in zip(
        channel.useful.names, channel.rows, channel.row_totals, strict=True
    ):
        outputs[place[name]] = np.array(row, dtype=np.float64) / total
    return outputs @ filled


def shares_of(masses: list[int]) -> Law:
    """The law in proportion to masses."""
    return positive(apportioned(masses, FINE).tolist())


def positive(row: Sequence[int]) -> Law:
    """The positive entries of a row, by their places."""
    return {place: value for place, value in enumerate(row) if value}


def moved(law: Law, first: int) -> Law:
    """The law with its places counted from `first` on."""
    return {first + place: value for place, value in law.items()}


def sampler_of_laws(laws: Sequence[Law], width: int) -> Sampler:
    """A sampler with a row for each law; its total is the sum of the law."""
    ends = [0]
    places: list[int] = []
    values: list[int] = []
    for law in laws:
        for place in sorted(law):
            places.append(place)
            values.append(law[place])
        ends.append(len(places))
    table = IntegerRows(
        (len(laws), width),
        np.array(ends, dtype=np.int64),
        np.array(places, dtype=np.int64),
        np.array(values, dtype=np.int64),
    )
    return Sampler(table, [sum(law.values()) for law in laws])
