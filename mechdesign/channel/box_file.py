"""The file of a channel of boxes: canonical JSON with a hash.

The channel of each part stands in it with the keys of a channel file of its own. A split names a
column, the codes of the symbols that go to its first child, and two children: later splits, or a
negative number -1 - b for box b (`tables/row_boxes.py`).
"""

from __future__ import annotations

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
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.core.records import Record
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


def write(channel: BoxChannel, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the file through a temporary one in the same folder and a rename."""
    check_target(path, force=overwrite)
    text = text_of(channel)
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def text_of(channel: BoxChannel) -> str:
    """The whole text of the file."""
    version = BoxChannelDocument.VERSIONS[-1]
    return d.hashed_text(BoxChannelDocument.FORMAT, version, content(channel))


def content(channel: BoxChannel) -> dict[str, Any]:
    """Everything but format, version and hash."""
    parts: list[dict[str, Any]] = []
    for part in channel.parts:
        splits = [vars(split) for split in part.boxes.splits]
        own: dict[str, Any] | None = None
        if part.channel is not None:
            own = file.content(part.channel)
        parts.append(
            {
                "stratum": part.stratum,
                "splits": splits,
                "together": part.together,
                "fill": part.fill,
                "inside": part.inside,
                "channel": own,
            }
        )
    utility: dict[str, Any] | None = None
    if channel.utility is not None:
        utility = asdict(channel.utility)
    return {
        "sensitive": labels_record(channel.sensitive),
        "given": [binned_labels_record(variable) for variable in channel.given],
        "columns": [binned_labels_record(variable) for variable in channel.columns],
        "level": channel.level,
        "slice_records": channel.slice_records,
        "parts": parts,
        "provenance": dict(channel.provenance),
        "utility": utility,
    }


def read(path: PathLike) -> BoxChannel:
    """Read the file of a channel of boxes."""
    return d.read_built(path, BoxChannelDocument, _channel)


def _channel(version: int, document: BoxChannelDocument) -> BoxChannel:
    parts: list[BoxPart] = []
    for record in document.parts:
        splits = tuple(
            BoxSplit(split.column, split.inside, split.first, split.second)
            for split in record.splits
        )
        _check_tree(splits)
        own = None
        if record.channel is not None:
            own = file.channel_of(record.channel)
        parts.append(
            BoxPart(
                record.stratum,
                Boxes(splits),
                record.together,
                own,
                record.fill,
                record.inside,
            )
        )
    return BoxChannel(
        sensitive=variable_of(document.sensitive, "sensitive"),
        given=tuple(variable_of(labels, "given") for labels in document.given),
        columns=tuple(variable_of(labels, "released") for labels in document.columns),
        parts=tuple(parts),
        level=document.level,
        slice_records=document.slice_records,
        provenance=document.provenance,
        utility=document.utility,
    )


def _check_tree(splits: tuple[BoxSplit, ...]) -> None:
    """Every split but the first, and every box, is the child of one split before it."""
    boxes: list[int] = []
    below: list[int] = []
    for place, split in enumerate(splits):
        for child in (split.first, split.second):
            if child < 0:
                boxes.append(-1 - child)
            elif place < child < len(splits):
                below.append(child)
            else:
                raise InputError("splits: a child must be a later split or a box")
    if splits and (
        sorted(boxes) != list(range(len(splits) + 1))
        or sorted(below) != list(range(1, len(splits)))
    ):
        raise InputError("splits: they do not form a tree")
