"""Channels of boxes: made of the boxes of all strata, and written to files.

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

*Its file* has three keys more, `coder`, `claims` and `fill`. A split of the coder names a column,
the codes of the symbols that go to its first child, and two children: later splits, or a negative
number -1 - b for box b (`tables/row_boxes.py`). Two splits make three boxes:

    "splits": [{"column": 0, "inside": [2, 3], "first": -1, "second": 1},
               {"column": 1, "inside": [0], "first": -2, "second": -3}]

Rows with the code 2 or 3 in column 0 are in box 0. Of the others, those with the code 0 in column 1
are in box 1, and the rest are in box 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from mechdesign.channel.box_claims import BoxClaims, BoxUtility, StratumClaim
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.channel.output_cells import OutputCells
from mechdesign.channel.record import (
    RELATIVE,
    TOTAL,
    BinnedLabels,
    ChannelRecord,
    PeopleOfFile,
    RecordOfFile,
    binned_labels_record,
    people_of,
    record_of,
    record_values,
    variable_of,
)
from mechdesign.core.documents import Record
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import quoted
from mechdesign.tables.box_coder import BoxCoder, BoxFill, Stratum
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import People
from mechdesign.tables.row_boxes import BOX, NOTHING, Boxes, BoxSplit, box_name
from mechdesign.tables.variable import Symbol, Variable, column_names

# --------------------------------------------------------------------------------- file


class SplitOfFile(Record):
    """A split: rows with a code of `inside` in `column` go to the first child."""

    column: int
    inside: tuple[int, ...]
    first: int
    second: int


class StratumOfFile(Record):
    """The codes of the given symbols, and the splits that make the boxes."""

    codes: tuple[int, ...]
    splits: tuple[SplitOfFile, ...]


class CoderOfFile(Record):
    """Columns that are released as they are, and columns that the boxes are made of."""

    given: tuple[BinnedLabels, ...] = ()
    columns: tuple[BinnedLabels, ...]
    strata: tuple[StratumOfFile, ...]
    people: PeopleOfFile | None = None


class ClaimOfFile(RecordOfFile):
    """What is promised in a stratum.

    `together` has the places of sensitive symbols that are promised as one, `joint` the counts of
    these groups, by boxes that have a row. Without a group nothing is released.
    """

    together: tuple[tuple[int, ...], ...] = ()
    joint: tuple[tuple[int, ...], ...] | None = None


class ClaimsOfFile(Record):
    """The level of the whole, the records that the boxes were learned on, and every stratum."""

    level: float
    slice_records: int
    strata: tuple[ClaimOfFile, ...]
    utility: BoxUtility | None = None


class FillOfFile(Record):
    """By stratum and box the rows, as codes and records; by stratum, box and column the records
    with each symbol.
    """

    rows: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
    counts: tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]


def coder_values(coder: BoxCoder) -> dict[str, Any]:
    """The `CoderOfFile` of a coder."""
    strata: list[dict[str, Any]] = []
    for stratum in coder.strata:
        splits = list(map(vars, stratum.boxes.splits))
        strata.append({"codes": stratum.codes, "splits": splits})
    return {
        "given": list(map(binned_labels_record, coder.given)),
        "columns": list(map(binned_labels_record, coder.columns)),
        "strata": strata,
        "people": None if coder.people is None else asdict(coder.people),
    }


def coder_of(document: CoderOfFile) -> BoxCoder:
    """The coder of a document."""
    strata: list[Stratum] = []
    for stratum in document.strata:
        splits = [BoxSplit(**dict(split)) for split in stratum.splits]
        _check_tree(splits)
        strata.append(Stratum(stratum.codes, Boxes(tuple(splits))))
    people = None
    if document.people is not None:
        people = people_of(document.people)
    return BoxCoder(
        tuple(variable_of(labels, "given") for labels in document.given),
        tuple(variable_of(labels, "released") for labels in document.columns),
        tuple(strata),
        people,
    )


def claims_values(claims: BoxClaims) -> dict[str, Any]:
    """The `ClaimsOfFile` of claims."""
    strata: list[dict[str, Any]] = []
    for claim in claims.strata:
        values: dict[str, Any] = {"together": claim.together}
        if claim.record is not None:
            record = record_values(claim.record)
            values |= {key: value for key, value in record.items() if value is not None}
        if claim.joint is not None:
            values["joint"] = claim.joint.counts
        strata.append(values)
    return {
        "level": claims.level,
        "slice_records": claims.slice_records,
        "strata": strata,
        "utility": None if claims.utility is None else asdict(claims.utility),
    }


def claims_of(
    document: ClaimsOfFile, coder: BoxCoder, sensitive: Variable, useful: Variable
) -> BoxClaims:
    """The claims of a document; `useful` has the boxes that have a row."""
    if len(document.strata) != len(coder.strata):
        raise InputError("there must be a claim for every stratum")
    claims: list[StratumClaim] = []
    for k, (stratum, claim) in enumerate(
        zip(coder.strata, document.strata, strict=True)
    ):
        if not claim.together:
            claims.append(StratumClaim())
            continue
        together = claim.together
        if sorted(s for group in together for s in group) != [*range(len(sensitive))]:
            raise InputError(
                "every sensitive symbol must be promised once in every part"
            )
        joint = None
        if claim.joint is not None:
            given = coder.given_texts(stratum.codes)
            boxes = tuple(s[-1:] for s in useful.symbols if s[:-1] == given)
            protected = StratumClaim(together).protected(sensitive)
            with errors_naming(f"claims.strata[{k}].joint"):
                joint = Joint(protected, Variable((BOX,), boxes), claim.joint)
        claims.append(StratumClaim(together, record_of(claim), joint))
    return BoxClaims(
        document.level, document.slice_records, tuple(claims), document.utility
    )


def _check_tree(splits: Sequence[BoxSplit]) -> None:
    """Every split but the first, and every box, is the child of one split before it."""
    boxes: list[int] = []
    below: list[int] = []
    for place, split in enumerate(splits):
        for child in (split.first, split.second):
            if child < 0:
                boxes.append(-1 - child)
            # A child before its parent could close a circle, in which no row would ever arrive.
            elif place < child < len(splits):
                below.append(child)
            else:
                raise InputError("splits: a child must be a later split or a box")
    # A single box has no splits, and then there is nothing to check.
    if not splits:
        return
    # A binary tree of n splits has n + 1 leaves, each in one place.
    has_all_boxes = sorted(boxes) == list(range(len(splits) + 1))
    has_all_splits = sorted(below) == list(range(1, len(splits)))
    if not has_all_boxes or not has_all_splits:
        raise InputError("splits: they do not form a tree")


# ------------------------------------------------------------------------------ channel


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
