"""The channel file, versions 1 and 2: what it holds, and how it is written; `channel_reading` reads it.

Reading a channel file with suspicion: everything is checked, nothing is executed.
"""

# JSON has no types.
# pyright: basic
from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.files import check_target, reason, replacing
from mechdesign.core.integers import IntegerRows
from mechdesign.core.numbers import listed, quoted
from mechdesign.notions import from_record
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable, check_text

FORMAT = "mechdesign.channel"
VERSION = 1
"""Of channels whose promise is about the table; whatever needs a key of version 2 is written as that."""

LATER_VERSION, LATER = 2, ("confidence",)
"""The next version and the keys that it has beside those of the first."""


REQUIRED = ("format", "version", "useful", "outputs", "denominator", "rows", "sha256")
RECORDS = ("notion", "achieved", "utility", "certificate", *LATER)
OPTIONAL = ("sensitive", "joint", "counts", *RECORDS, "provenance")

PUBLIC_PROVENANCE = ("command", "tool", "version", "mechanism", "method")
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
    confidence: Mapping[str, Any] | None = None

    def public(self) -> Contents:
        """Without the joint table and whatever is computed from it.

        What stays: the rows with their labels, the notion with its budgets, and the columns and symbols of S,
        which say what is protected (and which column must not be left in a release).
        """
        kept = {key: self.provenance[key] for key in PUBLIC_PROVENANCE if key in self.provenance}
        # The intervals are functions of the counts; level and kind of the set are none.
        stated = self.confidence
        if stated is not None:
            stated = {key: value for key, value in stated.items() if key != "intervals"}
        return replace(
            self,
            joint=None,
            achieved=None,
            utility=None,
            certificate=None,
            provenance=kept,
            confidence=stated,
        )


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
        "version": VERSION if contents.confidence is None else LATER_VERSION,
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


LARGEST_FILE = 2**29
"""Bytes. A full 5000 x 5000 channel takes 450 MB; a larger file is refused before it is read."""

T = TypeVar("T")


def read(path: str | os.PathLike[str], build: Callable[[Contents], T]) -> T:
    """Read a channel file, let `build` check and use the contents, and compare the hash.

    Parameters
    ----------
    path : path of the file
    build : callable
        Makes the result, and raises InputError if the contents contradict each other.

    Raises
    ------
    InputError
        If the file is missing, not JSON, truncated, of another format or version, or does not hold what
        it should; the message names the file and says what is wrong.
    """
    name = os.fspath(path)
    document = _parsed(_text_of(Path(path), name), name)
    try:
        built = build(_contents(document))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    claimed = document.pop("sha256")
    try:
        found = hashlib.sha256(canonical(document).encode()).hexdigest()
    except (UnicodeEncodeError, ValueError):  # a lone surrogate, or 1e999 where a number is free
        raise InputError(f"{name}: holds a text or a number that no channel file can hold") from None
    if claimed != found:
        raise InputError(f"{name}: the sha256 does not match the content: the file was edited or damaged")
    return built


def _with_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_infinities(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_infinities(item) for item in value]
    return float(value) if value in ("inf", "-inf") else value


def _text_of(path: Path, name: str) -> str:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{name} is a folder, not a channel file")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{name} is not a regular file")
        if status.st_size > LARGEST_FILE:
            raise InputError(f"{name} is too large for a channel file ({status.st_size} bytes)")
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {reason(error)}") from None
    if not data.strip():
        raise InputError(f"{name} is empty, not a channel file")
    if data.startswith(b"\x80"):
        raise InputError(f"{name} is a Python pickle, which is never opened: a channel file is JSON")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name} is not a channel file: it is no UTF-8 text") from None


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise InputError(f"{name} is truncated: it ends in the middle (line {error.lineno})") from None
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{name} is not a channel file: not JSON ({error.msg.lower()} at {where})") from None
    except RecursionError:
        raise InputError(f"{name} is not a channel file: it is nested too deeply") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except ValueError:  # Python refuses to parse integers of more than 4300 digits
        raise InputError(f"{name}: holds an integer of thousands of digits") from None
    if not isinstance(document, dict) or "format" not in document:
        raise InputError(f"{name} is not a channel file: it has no format")
    return document


def _refuse_constant(constant: str) -> Any:
    raise InputError(
        f'{constant} is not a number that a channel file can hold (infinities are the text "inf")'
    )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InputError(f"the key {quoted(next(key for key in keys if keys.count(key) > 1))} occurs twice")
    return result


def _contents(document: dict[str, Any]) -> Contents:
    if document["format"] != FORMAT:
        raise InputError(
            f"the format is {quoted(document['format'])}, not {FORMAT!r}: this is no channel file"
        )
    version = document.get("version")
    if type(version) is not int or version not in (VERSION, LATER_VERSION):
        raise InputError(
            f"version {quoted(version)} of the channel file is not known; this mechdesign reads {VERSION} and "
            f"{LATER_VERSION}"
        )
    missing = [key for key in REQUIRED if key not in document]
    if missing:
        raise InputError(f"the channel file has no {listed(missing)}")
    known = [key for key in REQUIRED + OPTIONAL if version == LATER_VERSION or key not in LATER]
    unknown = [key for key in document if key not in known]
    if unknown:
        raise InputError(f"the channel file has an unknown key {listed(unknown)}")
    useful = _variable(document["useful"], "useful")
    sensitive = None if document.get("sensitive") is None else _variable(document["sensitive"], "sensitive")
    outputs = document["outputs"]
    if not isinstance(outputs, list):
        raise InputError("outputs must be a list of labels")
    records = {key: _with_infinities(_record(document.get(key), key)) for key in RECORDS}
    if records["notion"] is not None:
        from_record(records["notion"])
    return Contents(
        useful=useful,
        outputs=tuple(outputs),
        rows=IntegerRows.of(document["rows"], useful.names),
        denominator=document["denominator"],
        joint=_joint(document, sensitive, useful),
        sensitive=sensitive,
        provenance=_record(document.get("provenance"), "provenance") or {},
        **records,
    )


def _variable(value: Any, what: str) -> Variable:
    if not isinstance(value, dict) or sorted(value) != ["columns", "symbols"]:
        raise InputError(f"{what} must be an object with columns and symbols, and nothing else")
    columns, symbols = value["columns"], value["symbols"]
    if not isinstance(columns, list) or not isinstance(symbols, list):
        raise InputError(f"{what}: columns and symbols must be lists")
    if not all(isinstance(symbol, list) for symbol in symbols):
        raise InputError(f"{what}: every symbol must be a list with one text per column")
    try:
        return Variable(tuple(columns), tuple(map(tuple, symbols)))
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def _record(value: Any, what: str) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise InputError(f"{what} must be an object")
    return value


def _joint(document: dict[str, Any], sensitive: Variable | None, useful: Variable) -> Joint | None:
    table, is_counts = document.get("joint"), document.get("counts", True)
    if not isinstance(is_counts, bool):
        raise InputError("counts must be true or false")
    if table is None:
        return None
    if sensitive is None:
        raise InputError("the joint table needs the labels of its rows: there is no sensitive")
    if not isinstance(table, list) or not all(isinstance(row, list) for row in table):
        raise InputError("joint must be a list of lists of integers")
    try:
        return Joint(sensitive, useful, tuple(map(tuple, table)), is_counts=is_counts)
    except InputError as error:
        raise InputError(f"joint: {error}") from None
