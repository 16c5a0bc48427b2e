"""Samplers of a channel of boxes: what is drawn for a row of given symbols and codes.

Each part (stratum) of such a channel has boxes and a channel W of its own. All parts together are
one sampler, with a row for each box of each part and the outputs of all parts side by side
(`OutputSampler`). With filling there are two more (`Filling`):

    step 0       the stratum and the box b of a row give a row of the sampler: an output y, from
                 W(y | b)
    step 1       with filling: a box, in proportion to n(b) W(y | b); y itself where it is a box
    step 2       with filling: a row of the table in that box, as often as the table has it

n(b) are the records of the box b (`boxes_of_outputs`). For example, the boxes 0 and 1 have 30 and
10 records, and W gives the label y to box 0 always and to box 1 half the time. Then y is filled
from box 0 with 30 : 5, by one of its rows, all columns at once: only rows of the table are
released. Step 2 is exact, and step 1 exact for boxes: with their law kept, every row of the table
is released as often as the table has it, in expectation.

The steps of filling depend on the output alone, so they disclose nothing more of the record.
`box_channel_digest` names the channel in the key of its draws (`box_drawing`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.json_values import canonical
from mechdesign.release.policies import FINE, MARGINAL, apportioned, policy_row
from mechdesign.release.protocol import Releasable
from mechdesign.release.sampling import Sampler
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.row_boxes import NOTHING, Boxes, box_name
from mechdesign.tables.variable import Variable

NO_ROW = -1
"""In the place of a row of a sampler: the box has none."""

Law: TypeAlias = dict[int, int]
"""A distribution: the positive integers of its places, in proportion to it."""


class ReleasablePart(Protocol):
    """What is needed of the boxes of a stratum."""

    @property
    def stratum(self) -> tuple[int, ...]:
        """Codes of the given columns."""
        ...

    @property
    def boxes(self) -> Boxes:
        """The partition of rows."""
        ...

    @property
    def channel(self) -> Releasable | None:
        """From boxes to outputs; None where nothing is released."""
        ...

    @property
    def fill(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """For each box its rows: codes of the columns, and then the records."""
        ...

    @property
    def releases_boxes(self) -> bool:
        """Whether the outputs are boxes, and not labels of several."""
        ...


class OutputSampler:
    """All parts as one sampler: a row for each box of each part, one part after the other.

    For example, two parts with two boxes and two outputs each make four rows over four outputs; the
    rows of the second part are zero on the first two outputs. A box without a law
    (`_laws_of_part`) gets no row, so a row's place is looked up in `_rows`.

    Attributes
    ----------
    sampler : Sampler
        Over the outputs of all parts, one part after the other.
    labels : (outputs,) array
        The place of each output's label among the `texts`; not used with filling, without texts.
    """

    def __init__(self, parts: Sequence[ReleasablePart], texts: Sequence[str]) -> None:
        laws: list[Law] = []
        labels: list[int] = []
        # Parts may share labels, which are one text of the released column.
        place_of_label = dict(zip(texts, range(len(texts)), strict=True))
        self._first_boxes: list[int] = []
        self._rows: list[int] = []
        for part in parts:
            first_output = len(labels)
            self._first_boxes.append(len(self._rows))
            laws_of_boxes, names = _laws_of_part(part)
            labels += [place_of_label.get(name, 0) for name in names]
            for law in laws_of_boxes:
                if law is None:
                    self._rows.append(NO_ROW)
                    continue
                self._rows.append(len(laws))
                laws.append(_moved(law, first_output))
        self.labels = np.array(labels, dtype=np.int32)
        self.sampler = _sampler(laws, len(labels))

    def rows_at(self, strata: Integers, boxes: Integers) -> Integers:
        """Row of the sampler for each record, `NO_ROW` where there is none."""
        first = np.array(self._first_boxes, dtype=np.int64)
        return np.array(self._rows, dtype=np.int64)[first[strata] + boxes]


def _laws_of_part(
    part: ReleasablePart,
) -> tuple[list[Law | None], tuple[str, ...]]:
    """For every box the law of its output, None where it has none; and the labels of the outputs.

    A box that no record of the table was in has the marginal, if the promise covers it and the
    table is there.
    """
    count = len(part.boxes)
    channel = part.channel
    if channel is None:
        # One output, for all boxes alike: nothing is released.
        return [{0: FINE} for _ in range(count)], (NOTHING,)
    # Rows of a sampler have totals of their own, so those of parts need no common one.
    law_of_box: dict[str, Law] = {}
    for name, row in zip(channel.useful.names, channel.rows, strict=True):
        law_of_box[name] = _positive(row)
    marginal: Law | None = None
    if channel.unseen and channel.joint is not None:
        # Boxes without records are covered if they are released like the marginal.
        masses = policy_row(channel, MARGINAL, "unknown")
        marginal = shares_of(masses)
    laws = [law_of_box.get(box_name(box), marginal) for box in range(count)]
    return laws, tuple(channel.outputs)


class Filling:
    """Samplers of a box for each output, and of a row for each box.

    Outputs, boxes and rows are numbered through all parts, one part after the other.

    Attributes
    ----------
    boxes : Sampler
        Of boxes, with a row for each output.
    rows : Sampler
        Of rows, with a row for each box; its totals are the records of the boxes.
    codes : list of (rows,) arrays
        The code of every row in each released column.
    """

    def __init__(
        self, parts: Sequence[ReleasablePart], columns: Sequence[Variable]
    ) -> None:
        boxes: list[Law] = []
        laws: list[Law] = []
        rows: list[tuple[int, ...]] = []
        for part in parts:
            first_box = len(laws)
            if part.channel is None:
                # One output, one box, and behind the symbols the label of what is not released.
                boxes.append({first_box: FINE})
                laws.append({len(rows): 1})
                rows.append(tuple(map(len, columns)))
                continue
            boxes += boxes_of_outputs(part, part.channel, first_box)
            for rows_of_box in part.fill:
                law: Law = {}
                for *codes, records in rows_of_box:
                    law[len(rows)] = records
                    rows.append(tuple(codes))
                # Nothing leads to a box without records; its law only keeps the places.
                laws.append(law or {0: 1})
        self.boxes = _sampler(boxes, len(laws))
        self.rows = _sampler(laws, len(rows))
        table = np.array(rows, dtype=np.int32)
        self.codes = [table[:, k] for k in range(len(columns))]


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
        laws.append(_moved(shares_of(masses), first))
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
    return _positive(apportioned(masses, FINE).tolist())


def _positive(row: Sequence[int]) -> Law:
    """The positive entries of a row, by their places."""
    return {place: value for place, value in enumerate(row) if value}


def _moved(law: Law, first: int) -> Law:
    """The law with its places counted from `first` on."""
    return {first + place: value for place, value in law.items()}


def _sampler(laws: Sequence[Law], width: int) -> Sampler:
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


def box_channel_digest(coder: BoxCoder, strata: Sequence[ReleasablePart]) -> str:
    """SHA-256 of what a channel of boxes does: its columns, symbols, boxes and rows, and what fills
    boxes.
    """
    parts: list[dict[str, object]] = []
    for part in strata:
        digest_of_channel: str | None = None
        marginal: list[int] = []
        if part.channel is not None:
            digest_of_channel = part.channel.digest
            # The marginal is drawn from the table, which the digest of the channel leaves out.
            if part.channel.unseen and part.channel.joint is not None:
                marginal = policy_row(part.channel, MARGINAL, "unknown")
        parts.append(
            {
                "stratum": part.stratum,
                "splits": [vars(split) for split in part.boxes.splits],
                "channel": digest_of_channel,
                "marginal": list(map(str, marginal)),
                "fill": part.fill,
                "releases_boxes": part.releases_boxes,
            }
        )
    content = {
        "given": [[v.columns, v.symbols] for v in coder.given],
        "columns": [[v.columns, v.symbols] for v in coder.columns],
        "parts": parts,
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()
