"""Make one channel of the boxes of all strata.

Every stratum has boxes and a channel from these to labels (`channel.BoxPart`). In the channel of
all, the symbols are the given cells and the name of a box, and so are the outputs with their
labels; its integers are those of the parts, block by block. With the strata F and M, each with two
boxes and two labels::

                F, box 1   F, box 2   M, box 1   M, box 2
    F, box 1    3          1
    F, box 2    1          3
    M, box 1                          2          1
    M, box 2                          0          1

A stratum that releases nothing has one box and the label `NOTHING`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.channel.box_claims import BoxClaims, BoxUtility, StratumClaim
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.channel.output_cells import OutputCells
from mechdesign.channel.record import RELATIVE, TOTAL, ChannelRecord
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import quoted
from mechdesign.tables.box_coder import BoxCoder, Stratum
from mechdesign.tables.box_fill import BoxFill
from mechdesign.tables.people import People
from mechdesign.tables.row_boxes import BOX, NOTHING, Boxes, box_name
from mechdesign.tables.variable import Symbol, Variable, column_names


def channel_of_boxes(
    *,
    sensitive: Variable,
    given: tuple[Variable, ...],
    columns: tuple[Variable, ...],
    parts: Sequence[BoxPart],
    level: float,
    slice_records: int,
    provenance: Mapping[str, Any],
    utility: BoxUtility | None = None,
    people: People | None = None,
) -> Channel:
    """The channel of boxes of all strata.

    Parameters
    ----------
    sensitive : Variable
    given, columns : tuple of Variable
        Columns that are released as they are, and columns that the boxes are made of.
    parts : sequence of BoxPart
        One for each stratum; one without given columns.
    level : float
        The confidence that all parts keep their promise at once.
    slice_records : int
        Records that the boxes were learned on.
    provenance : mapping
    utility : BoxUtility, optional
    people : People, optional
        How a row is the sequence of a person's records; boxes are then filled with sequences.

    Raises
    ------
    InputError
        If the parts do not fit together.
    """
    if BOX in column_names(given):
        raise InputError(
            f"the given column {quoted(BOX)} has the name of the column of boxes: rename it"
        )
    # A stratum that releases nothing has a single box, which needs no rows.
    parts = [
        BoxPart(part.stratum, Boxes(())) if part.channel is None else part
        for part in parts
    ]
    strata = tuple(Stratum(part.stratum, part.boxes) for part in parts)
    # A column of a crossed table may still name its people: here they are those of all columns.
    given = tuple(replace(variable, people=None) for variable in given)
    coder = BoxCoder(given, columns, strata, people)
    inputs: list[Symbol] = []
    outputs: list[Symbol] = []
    totals: list[int] = []
    ends = [0]
    places: list[Integers] = []
    values: list[Integers] = []
    for part in parts:
        texts = coder.given_texts(part.stratum)
        names: Sequence[str] = (box_name(0),)
        labels: Sequence[str] = (NOTHING,)
        rows = IntegerRows.of(((1,),))
        of_rows: Sequence[int] = (1,)
        if part.channel is not None:
            names, labels = part.channel.useful.names, part.channel.outputs
            rows, of_rows = part.channel.integers, part.channel.row_totals
        places.append(rows.indices + len(outputs))
        values.append(rows.values)
        ends += (rows.indptr[1:] + ends[-1]).tolist()
        totals += of_rows
        inputs += [(*texts, name) for name in names]
        outputs += [(*texts, label) for label in labels]
    columns_of_boxes = (*column_names(given), BOX)
    rows = IntegerRows(
        (len(inputs), len(outputs)),
        np.array(ends, dtype=np.int64),
        np.concatenate(places),
        np.concatenate(values),
    )
    published = Variable(columns_of_boxes, tuple(outputs))
    claims = tuple(map(_claim, parts))
    notions = [claim.record.notion for claim in claims if claim.record is not None]
    fill = BoxFill(
        tuple(part.fill for part in parts), tuple(part.inside for part in parts)
    )
    return Channel(
        useful=Variable(columns_of_boxes, tuple(inputs)),
        outputs=published.names,
        rows=rows,
        totals=tuple(totals),
        sensitive=sensitive,
        record=ChannelRecord(
            notion=notions[0] if notions else None,
            provenance=dict(provenance),
            promise_kind=RELATIVE if given else TOTAL,
        ),
        given=column_names(given),
        published=OutputCells(published.columns, published.symbols),
        coder=coder,
        claims=BoxClaims(level, slice_records, claims, utility),
        fill=fill if any(fill.rows) or any(fill.counts) else None,
    )


def _claim(part: BoxPart) -> StratumClaim:
    """What is promised in a stratum."""
    if part.channel is None:
        return StratumClaim()
    return StratumClaim(part.together, part.channel.record, part.channel.joint)


def with_parts(
    channel: Channel, parts: Sequence[BoxPart], people: People | None = None
) -> Channel:
    """A channel of boxes with other strata, and perhaps for people."""
    coder, claims, sensitive = channel.boxed
    return channel_of_boxes(
        sensitive=sensitive,
        given=coder.given,
        columns=coder.columns,
        parts=parts,
        level=claims.level,
        slice_records=claims.slice_records,
        provenance=channel.provenance,
        utility=claims.utility,
        people=people or coder.people,
    )
