"""What makes a channel one of boxes, in its file: the keys `coder`, `claims` and `fill`.

A split of the coder names a column, the codes of the symbols that go to its first child, and two
children: later splits, or a negative number -1 - b for box b (`tables/row_boxes.py`). Two splits
make three boxes:

    "splits": [{"column": 0, "inside": [2, 3], "first": -1, "second": 1},
               {"column": 1, "inside": [0], "first": -2, "second": -3}]

Rows with the code 2 or 3 in column 0 are in box 0. Of the others, those with the code 0 in column 1
are in box 1, and the rest are in box 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.channel.box_claims import BoxClaims, BoxUtility, StratumClaim
from mechdesign.channel.record_file import (
    BinnedLabels,
    PeopleOfFile,
    RecordOfFile,
    binned_labels_record,
    people_of,
    record_of,
    record_values,
    variable_of,
)
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.records import Record
from mechdesign.tables.box_coder import BoxCoder, Stratum
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import BOX, Boxes, BoxSplit
from mechdesign.tables.variable import Variable


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
