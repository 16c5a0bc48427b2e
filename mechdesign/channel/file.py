"""The channel file, versions 1 and 2: what it holds, how it is written, and how it is read with suspicion.

Version 2 is written where something of it applies: large sparse tables as pairs of index and value, or one of the
keys that version 1 does not have. Everything is checked on the way in, nothing is executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

from pydantic import Field, WithJsonSchema

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import (
    ChannelRecord,
    Confidence,
    Objective,
    SymbolBudgets,
)
from mechdesign.core import documents as d
from mechdesign.core.errors import InputError, naming
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.json_values import canonical, with_infinities, without_infinities
from mechdesign.core.records import Digest, Record
from mechdesign.core.wording import listed
from mechdesign.notions import from_record
from mechdesign.tables.bins import Bins
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

SPARSE_CELLS = 2**20
"""Cells from which on a table is written as pairs where that is shorter: zeros alone would take two megabytes."""

_TABLE = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer", "minimum": 0}},
}
_PAIRS = {
    **_TABLE,
    "description": "One line for each row: index, value, index, value, .. of its entries that are not zero, ascending.",
}
_Table = Annotated[Any, WithJsonSchema(_TABLE)]
_Pairs = Annotated[Any, WithJsonSchema(_PAIRS)]


class Labels(Record):
    """Columns of a variable, and its symbols: one text for each column; whether each column is a secret of its own."""

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    each: bool = False


class ChannelDocument(d.FileDocument):
    """A channel file; `rows` or `sparse_rows` is there, and what comes after `provenance` belongs to version 2."""

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
    denominator: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
    rows: _Table = None
    joint: _Table = None
    counts: bool = True
    notion: dict[str, Any] | None = None
    achieved: dict[str, Any] | None = None
    utility: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None
    sparse_rows: _Pairs = None
    sparse_joint: _Pairs = None
    confidence: Confidence | None = None
    objective: Objective | None = None
    bins: dict[str, Bins] = Field(
        default_factory=dict[str, Bins], description="By column of useful."
    )
    budgets: tuple[SymbolBudgets, ...] = ()
    after: tuple[Digest, ...] = ()


RECORDS = ("notion", "achieved", "utility", "certificate")
OF_VERSION_2 = (
    "sparse_rows",
    "sparse_joint",
    "confidence",
    "objective",
    "bins",
    "budgets",
    "after",
)


def write(channel: Channel, path: PathLike, *, overwrite: bool = False) -> None:
    """Write a channel file through a temporary file in the same folder and a rename."""
    if channel.record.unwritable:
        raise InputError(channel.record.unwritable)
    check_target(path, force=overwrite)
    texts = _texts(channel) | {"sha256": [json.dumps(digest(channel))]}
    with (
        replacing(path, force=overwrite) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as out,
    ):
        start = "{"
        for key, pieces in texts.items():
            out.write(f"{start}\n{json.dumps(key)}: ")
            out.writelines(pieces)
            start = ","
        out.write("\n}\n")


def _texts(channel: Channel) -> dict[str, list[str]]:
    """The canonical JSON text of every value but the hash, in pieces."""
    record, joint, useful, sensitive = (
        channel.record,
        channel.joint,
        channel.useful,
        channel.sensitive,
    )
    bins = zip(useful.columns, useful.bins, strict=False)
    values: dict[str, Any] = {
        "useful": _labels(useful),
        "sensitive": None if sensitive is None else _labels(sensitive),
        "outputs": channel.outputs,
        "denominator": channel.denominator,
        **{
            key: without_infinities(getattr(record, key), key)
            for key in (*RECORDS, "confidence", "provenance")
        },
        "objective": record.objective and record.objective.model_dump(),
        "bins": {
            name: each.model_dump(exclude_none=True)
            for name, each in bins
            if each is not None
        }
        or None,
        "budgets": [budgets.model_dump(exclude_none=True) for budgets in record.budgets]
        or None,
        "after": record.after or None,
    }
    texts = {
        key: [canonical(value)] for key, value in values.items() if value is not None
    }
    integers = channel.integers
    if _is_sparse(integers.shape[0] * integers.shape[1], len(integers.values)):
        texts["sparse_rows"] = list(_lines(integers.pairs()))
    else:
        texts["rows"] = list(_lines(integers))
    if joint is not None:
        filled = sum(len(row) - row.count(0) for row in joint.counts)
        if _is_sparse(len(joint.sensitive) * len(joint.useful), filled):
            pairs = [
                [n for pair in enumerate(row) if pair[1] for n in pair]
                for row in joint.counts
            ]
            texts["sparse_joint"] = list(_lines(pairs))
        else:
            texts["joint"] = list(_lines(joint.counts))
        if not joint.is_counts:
            texts["counts"] = ["false"]
    each = sensitive is not None and sensitive.each
    version = 2 if each or any(key in texts for key in OF_VERSION_2) else 1
    return {
        "format": [json.dumps(ChannelDocument.FORMAT)],
        "version": [str(version)],
        **texts,
    }


def _is_sparse(cells: int, filled: int) -> bool:
    """Whether pairs are shorter: a zero takes two characters, an index at most some ten."""
    return cells >= SPARSE_CELLS and 4 * filled <= cells


def _lines(rows: Iterator[Sequence[int]] | Sequence[Sequence[int]]) -> Iterator[str]:
    """JSON of a table of integers, one line a row; every piece but a leading line break is canonical."""
    yield "["
    for i, row in enumerate(rows):
        if i:
            yield ","
        yield "\n[" + ",".join(map(str, row)) + "]"
    yield "]"


def _labels(variable: Variable) -> dict[str, Any]:
    each = {"each": True} if variable.each else {}
    return {"columns": variable.columns, "symbols": variable.symbols} | each


def digest(channel: Channel) -> str:
    """The hash that the file of a channel has, by which later channels name it."""
    made, start = hashlib.sha256(), "{"
    for key, pieces in sorted(_texts(channel).items()):
        # A line break between rows is for the reader of the file and no part of the canonical form.
        for piece in (f"{start}{json.dumps(key)}:", *pieces):
            made.update(piece.lstrip("\n").encode())
        start = ","
    made.update(b"}")
    return made.hexdigest()


def read(path: PathLike) -> Channel:
    """Read a channel file."""
    return d.read_built(path, ChannelDocument, _channel)


def _channel(version: int, found: ChannelDocument) -> Channel:
    if version == 1 and (
        new := [key for key in OF_VERSION_2 if key in found.model_fields_set]
    ):
        raise InputError(
            f"the channel file has an unknown key {listed(new)}, which belongs to version 2"
        )
    useful = _variable(found.useful, "useful", found.bins)
    sensitive = (
        None if found.sensitive is None else _variable(found.sensitive, "sensitive")
    )
    if (found.rows is None) == (found.sparse_rows is None):
        given = "no 'rows'" if found.rows is None else "both 'rows' and 'sparse_rows'"
        raise InputError(f"the channel file has {given}")
    if found.sparse_rows is None:
        rows = IntegerRows.of(found.rows, useful.names)
    else:
        rows = IntegerRows.of_pairs(found.sparse_rows, len(found.outputs), useful.names)
    records = {key: with_infinities(getattr(found, key)) for key in RECORDS}
    if found.notion is not None:
        from_record(found.notion)
    return Channel(
        useful=useful,
        outputs=found.outputs,
        rows=rows,
        denominator=found.denominator,
        joint=_joint(found, sensitive, useful),
        sensitive=sensitive,
        record=ChannelRecord(
            **records,
            **{key: getattr(found, key) for key in ("objective", "budgets", "after")},
            provenance=found.provenance or {},
            confidence=found.confidence
            and found.confidence.model_dump(mode="json", exclude_unset=True),
        ),
    )


def _variable(labels: Labels, what: str, bins: Mapping[str, Bins] = {}) -> Variable:
    if odd := [name for name in bins if name not in labels.columns]:
        raise InputError(f"bins: there is no {what} column {listed(odd)}")
    try:
        each = tuple(map(bins.get, labels.columns)) if bins else ()
        return Variable(labels.columns, labels.symbols, labels.each, each)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def _joint(
    found: ChannelDocument, sensitive: Variable | None, useful: Variable
) -> Joint | None:
    name = "joint" if found.sparse_joint is None else "sparse_joint"
    table: Any = getattr(found, name)
    if table is None:
        return None
    if found.joint is not None and found.sparse_joint is not None:
        raise InputError("the channel file has both 'joint' and 'sparse_joint'")
    if sensitive is None:
        raise InputError(
            "the joint table needs the labels of its rows: there is no sensitive"
        )
    if not isinstance(table, list) or not all(
        isinstance(row, list) for row in cast("list[Any]", table)
    ):
        raise InputError(f"{name} must be a list of lists of integers")
    rows = cast("list[list[Any]]", table)
    with naming(name):
        if found.joint is None:
            rows = [_filled(row, len(useful), s) for s, row in enumerate(rows)]
        return Joint(sensitive, useful, tuple(map(tuple, rows)), is_counts=found.counts)


def _filled(pairs: list[Any], width: int, s: int) -> list[Any]:
    """A row of the joint table from its pairs; the values themselves are checked by `Joint`."""
    at, row = pairs[::2], [0] * width
    ascending = all(type(x) is int for x in at) and [-1, *at, width] == sorted(
        {-1, *at, width}
    )
    if len(pairs) % 2 or not ascending:
        raise InputError(
            f"row {s + 1} is no list of index, value, .. with ascending indices below {width}"
        )
    for x, entry in zip(at, pairs[1::2], strict=True):
        row[x] = entry
    return row
