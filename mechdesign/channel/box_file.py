"""The file of a channel of boxes: canonical JSON with a hash.

The channel of each part stands in it with the keys of a channel file of its own. Splits are texts
of symbols and places of children; a negative child is the box -1 - child.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from pydantic import Field

from mechdesign.channel import file
from mechdesign.channel.box_channel import BoxChannel, BoxPart
from mechdesign.channel.box_utility import BoxUtility
from mechdesign.core import documents as d
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.core.records import Record
from mechdesign.tables.bins import Bins
from mechdesign.tables.row_boxes import Boxes, BoxSplit
from mechdesign.tables.variable import Variable


class BoxLabels(file.Labels):
    """A variable with the bins of its columns."""

    bins: dict[str, Bins] = Field(default_factory=dict[str, Bins])


class SplitRecord(Record):
    """A split: rows with a code of `inside` in `column` go to the first child."""

    column: int
    inside: tuple[int, ...]
    first: int
    second: int


class PartRecord(Record):
    """A part; `channel` has the content of a channel file."""

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

    sensitive: file.Labels
    given: tuple[BoxLabels, ...] = ()
    columns: tuple[BoxLabels, ...]
    level: float
    slice_records: int
    parts: tuple[PartRecord, ...]
    provenance: dict[str, Any] = Field(default_factory=dict[str, Any])
    utility: BoxUtility | None = None


def write(channel: BoxChannel, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the file through a temporary one in the same folder and a rename."""
    check_target(path, force=overwrite)
    version = BoxChannelDocument.VERSIONS[-1]
    text = d.hashed_text(BoxChannelDocument.FORMAT, version, content(channel))
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


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
        "sensitive": _labels(channel.sensitive),
        "given": [_labels(variable) for variable in channel.given],
        "columns": [_labels(variable) for variable in channel.columns],
        "level": channel.level,
        "slice_records": channel.slice_records,
        "parts": parts,
        "provenance": dict(channel.provenance),
        "utility": utility,
    }


def _labels(variable: Variable) -> dict[str, Any]:
    labels: dict[str, Any] = {
        "columns": variable.columns,
        "symbols": variable.symbols,
    }
    bins: dict[str, Any] = {}
    for place, name in enumerate(variable.columns):
        own = variable.bins_of(place)
        if own is not None:
            bins[name] = own.model_dump(exclude_none=True)
    if bins:
        labels["bins"] = bins
    return labels


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
        sensitive=Variable(document.sensitive.columns, document.sensitive.symbols),
        given=tuple(_variable(labels) for labels in document.given),
        columns=tuple(_variable(labels) for labels in document.columns),
        parts=tuple(parts),
        level=document.level,
        slice_records=document.slice_records,
        provenance=document.provenance,
        utility=document.utility,
    )


def _variable(labels: BoxLabels) -> Variable:
    bins: tuple[Bins | None, ...] = ()
    if labels.bins:
        bins = tuple(labels.bins.get(name) for name in labels.columns)
    return Variable(labels.columns, labels.symbols, False, bins)


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
                raise InputError("splits: a child is no later split and no box")
    if splits and (
        sorted(boxes) != list(range(len(splits) + 1))
        or sorted(below) != list(range(1, len(splits)))
    ):
        raise InputError("splits: these are no tree")
