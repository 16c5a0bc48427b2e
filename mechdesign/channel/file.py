"""The channel file, versions 1 and 2: its content, its writer, and its suspicious reader.

A file is one JSON object, whose tables have a line for each row. Here P(clerk | clerk) is 3/4: ::

    {
    "format": "mechdesign.channel",
    "version": 1,
    "useful": {"columns": ["job"], "symbols": [["clerk"], ["nurse"]]},
    "outputs": ["clerk", "nurse"],
    "denominator": 4,
    "rows": [
    [3,1],
    [1,3]],
    "sha256": "..."
    }

A large table that is mostly zeros has pairs of index and value in place of `rows`: the row
[0,0,3,1] is [2,3,3,1] in `sparse_rows`.

Writing (`save`): `_values` turns the channel into JSON values, `_texts` makes the canonical JSON
(`core.documents.canonical`) of each key, and `pieces` puts the keys one below the other.
`file_digest` hashes the same texts, with the keys in ascending order and without the line breaks
between rows.

Reading (`load`): `core.documents` parses the file and checks the types of all keys but large
tables; `_channel` checks these and makes the objects; `Channel` checks that they fit together; and
the hash is compared last. The reader executes nothing.

A file is version 2 only if it needs something that version 1 does not have: sparse tables, or one
of the later keys (`_version`). So older programs can read all other files.

*Arguments.* `load_without_boxes` opens the file of a channel that a table decides, and
`require_channel` takes an argument as a channel.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, WithJsonSchema

from mechdesign.channel.boxes import (
    ClaimsOfFile,
    CoderOfFile,
    FillOfFile,
    claims_of,
    claims_values,
    coder_of,
    coder_values,
)
from mechdesign.channel.channel import NOT_PUBLIC, Channel
from mechdesign.channel.output_cells import OutputCells
from mechdesign.channel.record import (
    Labels,
    PeopleOfFile,
    RecordOfFile,
    labels_record,
    people_of,
    record_of,
    record_values,
    variable_of,
)
from mechdesign.core import documents as d
from mechdesign.core import files
from mechdesign.core.documents import Record, canonical
from mechdesign.core.errors import InputError, errors_naming, require_type
from mechdesign.core.files import (
    EXISTS_OVERWRITE,
    PathLike,
    check_target,
    replacing,
)
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.wording import listed
from mechdesign.tables.bins import Bins
from mechdesign.tables.box_coder import BoxFill
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

SPARSE_CELLS = 2**20
"""Cells from which a table is written as pairs where that is shorter: its zeros alone would take
two megabytes."""

_TABLE = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer", "minimum": 0}},
}
_PAIRS = {
    **_TABLE,
    "description": "One line for each row: index, value, index, value, .. of its entries that "
    "are not zero, ascending.",
}
_Table = Annotated[Any, WithJsonSchema(_TABLE)]
_Pairs = Annotated[Any, WithJsonSchema(_PAIRS)]


class Published(Record):
    """The columns that are written, and for each output a text for each of them."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]


class ChannelDocument(RecordOfFile, d.FileDocument):
    """A channel file.

    It has either `rows` or `sparse_rows`. The keys after `provenance` belong to version 2.
    """

    FORMAT: ClassVar[str] = "mechdesign.channel"
    WHAT: ClassVar[str] = "channel file"
    VERSIONS: ClassVar[tuple[int, ...]] = (1, 2)
    LARGEST: ClassVar[int] = 2**29  # a full 5000 x 5000 channel takes 450 MB
    ARRAYS: ClassVar[frozenset[str]] = frozenset(
        {"rows", "sparse_rows", "joint", "sparse_joint"}
    )

    useful: Labels
    sensitive: Labels | None = None
    outputs: tuple[str, ...]
    denominator: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    rows: _Table = None
    joint: _Table = None
    counts: Annotated[
        bool,
        Field(
            description="False where the table has weights or probabilities and no numbers of "
            "records; a public file says so of the table that it lacks."
        ),
    ] = True
    sparse_rows: _Pairs = None
    sparse_joint: _Pairs = None
    bins: dict[str, Bins] = Field(
        default_factory=dict[str, Bins], description="By column of useful."
    )
    totals: Annotated[
        tuple[Annotated[int, Field(ge=1, le=LARGEST_INTEGER)], ...] | None,
        Field(description="The sum of each row, where rows have sums of their own."),
    ] = None
    given: tuple[str, ...] = ()
    published: Published | Literal["rows"] | None = Field(
        default=None,
        description="The released columns and their texts for each output; 'rows' where every "
        "output is a symbol of useful, each column written by itself.",
    )
    people: PeopleOfFile | None = Field(
        default=None,
        description="How the symbols of useful are sequences of the records of people.",
    )
    coder: CoderOfFile | None = Field(
        default=None,
        description="How the cells of a record become its box, which is the last column of useful.",
    )
    claims: ClaimsOfFile | None = Field(
        default=None, description="What is promised of boxes in each stratum."
    )
    fill: FillOfFile | None = Field(
        default=None, description="What is in the boxes of each stratum."
    )


OF_VERSION_2 = (
    "sparse_rows",
    "sparse_joint",
    "confidence",
    "objective",
    "bins",
    "budgets",
    "after",
    "averages",
    "totals",
    "given",
    "published",
    "promise",
    "rules",
    "people",
    "coder",
)


def save(channel: Channel, path: PathLike, *, overwrite: bool, public: bool) -> None:
    """Write the file of a channel, whole or not at all; `Channel.save` says with what content.

    Raises
    ------
    InputError
        If the file exists (without `overwrite`), is a folder or cannot be written, or the channel
        may not be.
    """
    if public and channel.fills:
        raise InputError(NOT_PUBLIC)
    # Before any work: the text of a large channel takes seconds.
    check_target(path, force=overwrite, exists=EXISTS_OVERWRITE)
    written = channel.public() if public else channel
    with (
        replacing(path, force=overwrite, exists=EXISTS_OVERWRITE) as temporary,
        d.text_file(temporary, packed=os.fspath(path).endswith(".gz")) as out,
    ):
        out.writelines(pieces(written))


def text_of(channel: Channel) -> str:
    """The whole text of the file, for a place that is no file."""
    return "".join(pieces(channel))


def pieces(channel: Channel) -> Iterator[str]:
    """The text of the file in pieces."""
    if channel.record.unwritable:
        raise InputError(channel.record.unwritable)
    texts = _texts(channel)
    texts["sha256"] = [json.dumps(_digest_of(texts))]
    start = "{"
    for key, values in texts.items():
        yield f"{start}\n{json.dumps(key)}: "
        yield from values
        start = ","
    yield "\n}\n"


def _texts(channel: Channel) -> dict[str, list[str]]:
    """The canonical JSON text of every value but the hash, in pieces, in the order of the file.

    Writer and hash both use it, so that they cannot disagree.
    """
    texts: dict[str, list[str]] = {}
    for key, value in _values(channel).items():
        if value is not None:
            texts[key] = [canonical(value)]
    integers = channel.integers
    cells = integers.shape[0] * integers.shape[1]
    if _is_sparse(cells, len(integers.values)):
        texts["sparse_rows"] = list(_lines(integers.pairs()))
    else:
        texts["rows"] = list(_lines(integers))
    if channel.joint is not None:
        texts |= _joint_texts(channel.joint)
    if not channel.has_counts:
        texts["counts"] = ["false"]
    # First in the file, where `read` looks for the format.
    head = {
        "format": [json.dumps(ChannelDocument.FORMAT)],
        "version": [str(_version(channel, texts.keys()))],
    }
    return head | texts


def _version(channel: Channel, keys: Collection[str]) -> int:
    """The oldest version that has all keys of a channel's file."""
    if any(key in keys for key in OF_VERSION_2):
        return 2
    # Version 1 has no key for several secrets among the labels.
    if channel.sensitive is not None and channel.sensitive.protects_columns:
        return 2
    return 1


def _values(channel: Channel) -> dict[str, Any]:
    """Everything except tables of integers, as JSON values; None for keys that the file omits."""
    useful = channel.useful
    values: dict[str, Any] = {
        "useful": labels_record(useful),
        "sensitive": None,
        "outputs": channel.outputs,
        "denominator": channel.denominator if channel.totals is None else None,
        "totals": channel.totals,
        "given": channel.given or None,
        "published": _published(channel),
        **record_values(channel.record),
    }
    if channel.sensitive is not None:
        values["sensitive"] = labels_record(channel.sensitive)
    bins: dict[str, Any] = {}
    for column, in_bins in zip(useful.columns, useful.bins, strict=False):
        if in_bins is not None:
            bins[column] = in_bins.model_dump(exclude_none=True)
    # The file has no key for what is empty.
    values["bins"] = bins or None
    values["people"] = None
    if useful.people is not None:
        values["people"] = asdict(useful.people)
    if channel.coder is not None:
        values["coder"] = coder_values(channel.coder)
    if channel.claims is not None:
        values["claims"] = claims_values(channel.claims)
    if channel.fill is not None:
        # Not copied, because it may have a row for every record.
        values["fill"] = dict(vars(channel.fill))
    return values


def _published(channel: Channel) -> Any:
    """What is written for the outputs, as the file has it."""
    published = channel.published
    if published is None:
        return None
    if _are_own_rows(channel.useful, channel.outputs, published):
        return "rows"
    return {"columns": published.columns, "cells": published.cells}


def _are_own_rows(
    useful: Variable, outputs: Sequence[str], published: OutputCells
) -> bool:
    """True if every output has the name and the cells of a symbol of the useful columns."""
    if published.columns != useful.columns:
        return False
    symbol_of = dict(zip(useful.names, useful.symbols, strict=True))
    return [symbol_of.get(label) for label in outputs] == list(published.cells)


def _joint_texts(joint: Joint) -> dict[str, list[str]]:
    """The joint table."""
    texts: dict[str, list[str]] = {}
    filled = 0
    for row in joint.counts:
        filled += len(row) - row.count(0)
    if _is_sparse(len(joint.sensitive) * len(joint.useful), filled):
        pairs = [flatten_nonzero(row) for row in joint.counts]
        texts["sparse_joint"] = list(_lines(pairs))
    else:
        texts["joint"] = list(_lines(joint.counts))
    return texts


def flatten_nonzero(row: Sequence[int]) -> list[int]:
    """``[index, value, index, value, ..]`` of the entries that are not zero, ascending."""
    flat: list[int] = []
    for index, value in enumerate(row):
        if value:
            flat += [index, value]
    return flat


def _is_sparse(cells: int, filled: int) -> bool:
    """Whether pairs are shorter: a zero takes two characters, an index at most some ten.

    A small table is never sparse: version 1 has no sparse ones.
    """
    return cells >= SPARSE_CELLS and 4 * filled <= cells


def _lines(rows: Iterator[Sequence[int]] | Sequence[Sequence[int]]) -> Iterator[str]:
    """JSON of a table of integers, one line a row; without the line breaks it is canonical.

    In pieces of a row each: the text of a large table never exists as a whole.
    """
    yield "["
    before: Sequence[int] | None = None
    line = ""
    for i, row in enumerate(rows):
        if i:
            yield ","
        # Where all rows are the same, `IntegerRows` gives one object for all of them.
        if row is not before:
            line = "\n[" + ",".join(map(str, row)) + "]"
            before = row
        yield line
    yield "]"


def file_digest(channel: Channel) -> str:
    """The hash in the file of a channel, by which later channels name it."""
    return _digest_of(_texts(channel))


def _digest_of(texts: Mapping[str, list[str]]) -> str:
    """The hash of the canonical texts of all other values of a file."""
    sha256 = hashlib.sha256()
    start = "{"
    # Canonical JSON has its keys in ascending order.
    for key, pieces in sorted(texts.items()):
        # Line breaks between rows are for people and no part of the canonical form.
        for piece in (f"{start}{json.dumps(key)}:", *pieces):
            sha256.update(piece.lstrip("\n").encode())
        start = ","
    sha256.update(b"}")
    return sha256.hexdigest()


def _channel(version: int, document: ChannelDocument) -> Channel:
    """The channel of a document whose keys and types have been checked."""
    # An older program would ignore a promise that it does not know.
    later = [key for key in OF_VERSION_2 if key in document.model_fields_set]
    if version == 1 and later:
        raise InputError(
            f"the channel file has an unknown key {listed(later)}, which belongs to version 2"
        )
    useful = variable_of(document.useful, "useful", document.bins)
    if document.people is not None:
        with errors_naming("people"):
            useful = replace(useful, people=people_of(document.people))
    sensitive = None
    if document.sensitive is not None:
        sensitive = variable_of(document.sensitive, "sensitive")
    denominator = document.denominator
    if (denominator is None) == (document.totals is None):
        raise InputError(
            "the channel file must have either a denominator or the totals of its rows"
        )
    boxed = _boxed(document, sensitive, useful)
    joint = _joint(document, sensitive, useful)
    record = record_of(document)
    if joint is None:
        record = replace(record, is_counts=document.counts)
    return Channel(
        useful=useful,
        outputs=document.outputs,
        rows=_rows(document, useful),
        denominator=denominator or 1,
        totals=document.totals,
        given=document.given,
        published=_output_cells(document, useful),
        joint=joint,
        sensitive=sensitive,
        record=record,
        **boxed,
    )


def _boxed(
    document: ChannelDocument, sensitive: Variable | None, useful: Variable
) -> dict[str, Any]:
    """The members of a channel of boxes; none for another channel."""
    if document.coder is None or document.claims is None or sensitive is None:
        if document.coder or document.claims or document.fill:
            raise InputError(
                "the channel file of boxes must have a coder, claims and sensitive symbols"
            )
        return {}
    coder = coder_of(document.coder)
    return {
        "coder": coder,
        "claims": claims_of(document.claims, coder, sensitive, useful),
        "fill": None if document.fill is None else BoxFill(**dict(document.fill)),
    }


def _output_cells(document: ChannelDocument, useful: Variable) -> OutputCells | None:
    """What is written for the outputs."""
    published = document.published
    if published is None:
        return None
    if isinstance(published, Published):
        return OutputCells(published.columns, published.cells)
    symbol_of = dict(zip(useful.names, useful.symbols, strict=True))
    unknown = [label for label in document.outputs if label not in symbol_of]
    if unknown:
        raise InputError(
            f"published: the output {listed(unknown)} is no symbol of the useful columns"
        )
    return OutputCells(
        useful.columns, tuple(symbol_of[label] for label in document.outputs)
    )


def _rows(document: ChannelDocument, useful: Variable) -> IntegerRows:
    """The rows of the channel, which the file has in one of two forms."""
    if document.rows is None and document.sparse_rows is None:
        raise InputError("the channel file has no 'rows'")
    if document.sparse_rows is None:
        return IntegerRows.of(document.rows, useful.names)
    if document.rows is not None:
        raise InputError("the channel file has both 'rows' and 'sparse_rows'")
    width = len(document.outputs)
    return IntegerRows.of_pairs(document.sparse_rows, width, useful.names)


def _joint(
    document: ChannelDocument, sensitive: Variable | None, useful: Variable
) -> Joint | None:
    """The joint table, which the file has in one of two forms, or not at all."""
    is_sparse = document.sparse_joint is not None
    if is_sparse:
        name = "sparse_joint"
        table: Any = document.sparse_joint
    else:
        name = "joint"
        table = document.joint
    if table is None:
        return None
    if is_sparse and document.joint is not None:
        raise InputError("the channel file has both 'joint' and 'sparse_joint'")
    if sensitive is None:
        raise InputError(
            "the joint table needs the labels of its rows: there is no sensitive"
        )
    rows = _lists(table, name)
    with errors_naming(name):
        if is_sparse:
            rows = [_filled(row, len(useful), s) for s, row in enumerate(rows)]
        counts = tuple(map(tuple, rows))
        return Joint(
            sensitive,
            useful,
            counts,
            is_counts=document.counts,
            rules=document.rules,
        )


def _lists(table: Any, name: str) -> list[list[Any]]:
    """The table, if it is a list of lists; its entries are checked by `Joint`."""
    if isinstance(table, list):
        rows = cast("list[Any]", table)
        if all(isinstance(row, list) for row in rows):
            return cast("list[list[Any]]", rows)
    raise InputError(f"{name} must be a list of lists of integers")


def _filled(pairs: list[Any], width: int, s: int) -> list[Any]:
    """A row of the joint table from its pairs; the values themselves are checked by `Joint`."""
    indices = pairs[::2]
    values = pairs[1::2]
    if len(pairs) % 2 or not _is_ascending(indices, width):
        raise InputError(
            f"row {s + 1} is no list of index, value, .. with ascending indices below {width}"
        )
    row: list[Any] = [0] * width
    for x, value in zip(indices, values, strict=True):
        row[x] = value
    return row


def _is_ascending(indices: list[Any], width: int) -> bool:
    """Whether these are different integers of 0, .., width - 1 in their order."""
    last = -1
    for index in indices:
        # bool is a kind of int, and no index.
        if type(index) is not int or not last < index < width:
            return False
        last = index
    return True


# ------------------------------------------------------------------------------ opening


def load(path: str | os.PathLike[str]) -> Channel:
    """Open the file of a channel.

    Raises
    ------
    InputError
        If it is no channel file, or was edited or damaged.
    """
    return d.read_built(path, ChannelDocument, _channel)


def load_without_boxes(path: str | os.PathLike[str]) -> Channel:
    """Open a channel for work that channels for boxes of rows do not have: exports, compositions.

    Raises
    ------
    InputError
        If the file is a channel for boxes of rows, or no channel, or was edited or damaged.
    """
    return load(path).on_tables(
        f"{files.text_of(path)} is a channel for boxes of rows, and this command does not take "
        "one: `apply`, `run`, `check`, `estimate`, `show`, `audit` and `report` do"
    )


def require_without_boxes(name: str, value: object, hint: str = "") -> Channel:
    """Return the argument `value` if it is a channel that a table decides; raise `InputError` for
    one of boxes, and for anything else.

    `hint` is added to the message as it is.
    """
    return require_channel(name, value, hint).on_tables(
        f"{name} must be a Channel without boxes of rows{hint}"
    )


def require_channel(name: str, value: object, hint: str = "") -> Channel:
    """Return the argument `value` if it is a channel; raise `InputError` otherwise.

    `hint` is added to the message as it is.
    """
    return require_type(name, value, Channel, hint)
