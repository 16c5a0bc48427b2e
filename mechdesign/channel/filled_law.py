"""How rows are drawn where they fill boxes, and whether that keeps the law of the table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechdesign.channel.row_law import Array, RowLaw
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.release.box_samplers import filling_rows, law_of_boxes
from mechdesign.release.protocol import ReleasablePart
from mechdesign.tables.box_coder import BoxCoder
from mechdesign.tables.row_boxes import box_name


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
