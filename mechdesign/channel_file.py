"""The channel file, version 1: what it holds, and how it is written; `channel_reading` reads it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

from mechdesign.errors import InputError
from mechdesign.files import check_target, replacing
from mechdesign.integer_rows import IntegerRows
from mechdesign.joint import Joint
from mechdesign.variable import Variable, check_text

FORMAT = "mechdesign.channel"
VERSION = 1

REQUIRED = ("format", "version", "useful", "outputs", "denominator", "rows", "sha256")
RECORDS = ("notion", "achieved", "utility", "certificate")
OPTIONAL = ("sensitive", "joint", "counts", *RECORDS, "provenance")

PUBLIC_PROVENANCE = ("tool", "version", "mechanism", "method")
"""What a public file says of its origin. Names, sizes and hashes of the source would let a reader test a
guess of the table, and achieved budgets, utility and certificate are functions of its counts."""


@dataclass(frozen=True)
class Contents:
    """What a channel file holds, as plain values; the fields are those of `channel.Channel`.

    `notion`, `achieved`, `utility` and `certificate` are records of JSON values, with infinities as floats.
    """

    useful: Variable
    outputs: tuple[str, ...]
    rows: IntegerRows
    denominator: int
    joint: Joint | None = None
    sensitive: Variable | None = None
    notion: Mapping[str, Any] | None = None
    achieved: Mapping[str, Any] | None = None
    utility: Mapping[str, Any] | None = None
    certificate: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def public(self) -> Contents:
        """Without the joint table and whatever is computed from it.

        What stays: the rows with their labels, the notion with its budgets, and the columns and symbols of S,
        which say what is protected (and which column must not be left in a release).
        """
        kept = {key: self.provenance[key] for key in PUBLIC_PROVENANCE if key in self.provenance}
        return replace(self, joint=None, achieved=None, utility=None, certificate=None, provenance=kept)


def write(contents: Contents, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a channel file through a temporary file in the same folder and a rename.

    Raises
    ------
    InputError
        If the path exists (without `overwrite`), is a folder or cannot be written, or a record holds
        something that JSON has no word for.
    """
    check_target(path, force=overwrite)
    texts = _texts(contents)
    digest = hashlib.sha256()
    for piece in _canonical_pieces(texts):
        digest.update(piece.encode())
    texts["sha256"] = [json.dumps(digest.hexdigest())]
    with (
        replacing(path, force=overwrite) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as out,
    ):
        start = "{"
        for key in ("format", "version", *(k for k in texts if k not in ("format", "version"))):
            out.write(f"{start}\n{json.dumps(key)}: ")
            out.writelines(texts[key])
            start = ","
        out.write("\n}\n")


def _texts(contents: Contents) -> dict[str, list[str]]:
    """The canonical JSON text of every value but the hash, in pieces."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "useful": _variable_record(contents.useful),
    }
    if contents.sensitive is not None:
        values["sensitive"] = _variable_record(contents.sensitive)
    values["outputs"] = contents.outputs
    values["denominator"] = contents.denominator
    for key in RECORDS:
        if (record := getattr(contents, key)) is not None:
            values[key] = _plain(record, key)
    values["provenance"] = _plain(contents.provenance, "provenance")
    texts = {key: [canonical(value)] for key, value in values.items()}
    texts["rows"] = list(_table_text(contents.rows))
    if contents.joint is not None:
        texts["joint"] = list(_table_text(contents.joint.counts))
        if not contents.joint.is_counts:
            texts["counts"] = ["false"]
    return texts


def canonical(value: Any) -> str:
    """The one JSON text of `value` that is hashed: sorted keys, no blanks, text as it is (UTF-8)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _canonical_pieces(texts: Mapping[str, list[str]]) -> Iterator[str]:
    start = "{"
    for key in sorted(texts):
        yield f"{start}{json.dumps(key)}:"
        # A line break between rows is for the reader of the file and no part of the canonical form.
        yield from (text.lstrip("\n") for text in texts[key])
        start = ","
    yield "}"


def _table_text(rows: Sequence[Sequence[int]]) -> Iterator[str]:
    """JSON of a table of integers, one line a row; every piece but a leading line break is canonical."""
    yield "["
    for i, row in enumerate(rows):
        if i:
            yield ","
        yield "\n[" + ",".join(map(str, row)) + "]"
    yield "]"


def _variable_record(variable: Variable) -> dict[str, Any]:
    return {"columns": variable.columns, "symbols": variable.symbols}


def _plain(value: Any, where: str) -> Any:
    """`value` with infinities as text and nothing but what JSON has."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InputError(f"the record {where!r} has a key that is not text")
        return {check_text(key, f"a key of {where!r}"): _plain(item, where) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, where) for item in value]
    if isinstance(value, str):
        return check_text(value, f"a text of the record {where!r}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            raise InputError(f"the record {where!r} holds NaN, which a channel file cannot hold")
        return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    raise InputError(f"the record {where!r} holds a {type(value).__name__}, which a channel file cannot hold")
