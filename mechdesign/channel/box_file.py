"""The file of a channel of boxes: canonical JSON with a hash.

`content` makes plain values of a channel, and `_channel` a channel of the checked document. Every
part, one for each stratum, has its splits and the content of a channel file (`channel.file`). A
split names a column, the codes of the symbols that go to its first child, and two children: later
splits, or a negative number -1 - b for box b (`tables/row_boxes.py`). Two splits make three boxes:

    "splits": [{"column": 0, "inside": [2, 3], "first": -1, "second": 1},
               {"column": 1, "inside": [0], "first": -2, "second": -3}]

Rows with the code 2 or 3 in column 0 are in box 0. Of the others, those with the code 0 in column 1
are in box 1, and the rest are in box 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from pydantic import Field

from mechdesign.channel import file
from mechdesign.channel.box_channel import BoxChannel, BoxPart
from mechdesign.channel.box_utility import BoxUtility
from mechdesign.channel.variable_labels import (
    BinnedLabels,
    Labels,
    binned_labels_record,
    labels_record,
    variable_of,
)
from mechdesign.core import documents as d
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.records import Record
from mechdesign.tables.people import People
from mechdesign.tables.row_boxes import Boxes, BoxSplit


class SplitRecord(Record):
    """A split: rows with a code of `inside` in `column` go to the first child."""

    column: int
    inside: tuple[int, ...]
    first: int
    second: int


class PartRecord(Record):
    """A `BoxPart`; `channel` has the content of a channel file, and is missing where the part
    releases nothing.
    """

    stratum: tuple[int, ...]
    splits: tuple[SplitRecord, ...]
    together: tuple[tuple[int, ...], ...]
    fill: tuple[tuple[tuple[int, ...], ...], ...] = ()
    inside: tuple[tuple[tuple[int, ...], ...], ...] = ()
    channel: dict[str, Any] | None = None


class BoxChannelDocument(d.FileDocument):
    """A channel of boxes."""

    FORMAT: ClassVar[str] = "mechdesign.box-channel"
    WHAT: ClassVar[str] = "box channel file"

    sensitive: Labels
    given: tuple[BinnedLabels, ...] = ()
    columns: tuple[BinnedLabels, ...]
    level: float
    slice_records: int
    parts: tuple[PartRecord, ...]
    provenance: dict[str, Any] = Field(default_factory=dict[str, Any])
    utility: BoxUtility | None = None
    people: file.PeopleOfFile | None = Field(
        None, description="How a row is the sequence of the records of a person."
    )


def pieces(channel: BoxChannel) -> Sequence[str]:
    """The text of the file, in one piece."""
    return (text_of(channel),)


def text_of(channel: BoxChannel) -> str:
    """The whole text of the file."""
    version = BoxChannelDocument.VERSIONS[-1]
    return d.hashed_text(BoxChannelDocument.FORMAT, version, content(channel))


def content(channel: BoxChannel) -> dict[str, Any]:
    """Everything but format, version and hash."""
    utility: dict[str, Any] | None = None
    if channel.utility is not None:
        utility = asdict(channel.utility)
    return {
        "sensitive": labels_record(channel.sensitive),
        "given": list(map(binned_labels_record, channel.given)),
        "columns": list(map(binned_labels_record, channel.columns)),
        "level": channel.level,
        "slice_records": channel.slice_records,
        "parts": list(map(_content_of_part, channel.parts)),
        "provenance": dict(channel.provenance),
        "utility": utility,
        "people": None if channel.people is None else asdict(channel.people),
    }


def _content_of_part(part: BoxPart) -> dict[str, Any]:
    """The values of a `PartRecord`."""
    of_channel: dict[str, Any] | None = None
    if part.channel is not None:
        of_channel = file.content(part.channel)
    return {
        "stratum": part.stratum,
        "splits": list(map(vars, part.boxes.splits)),
        "together": part.together,
        "fill": part.fill,
        "inside": part.inside,
        "channel": of_channel,
    }


def read(path: PathLike) -> BoxChannel:
    """Read the file of a channel of boxes."""
    return d.read_built(path, BoxChannelDocument, _channel)


def _channel(version: int, document: BoxChannelDocument) -> BoxChannel:
    """The channel of a document whose keys and types have been checked."""
    people: People | None = None
    if document.people is not None:
        people = People(**document.people.model_dump())
    channel = BoxChannel(
        sensitive=variable_of(document.sensitive, "sensitive"),
        given=tuple(variable_of(labels, "given") for labels in document.given),
        columns=tuple(variable_of(labels, "released") for labels in document.columns),
        parts=tuple(map(_part, document.parts)),
        level=document.level,
        slice_records=document.slice_records,
        provenance=document.provenance,
        utility=document.utility,
        people=people,
    )
    # The public form serves a report alone, and has no file.
    channel.check_filled()
    return channel


def _part(record: PartRecord) -> BoxPart:
    """The part of a record; whether it fits the variables is checked by `BoxChannel`."""
    splits: list[BoxSplit] = []
    for split in record.splits:
        splits.append(BoxSplit(split.column, split.inside, split.first, split.second))
    _check_tree(splits)
    channel = None
    if record.channel is not None:
        channel = file.channel_of(record.channel)
    return BoxPart(
        stratum=record.stratum,
        boxes=Boxes(tuple(splits)),
        together=record.together,
        channel=channel,
        fill=record.fill,
        inside=record.inside,
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
