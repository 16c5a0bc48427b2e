"""Reading a channel file with suspicion: everything is checked, nothing is executed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mechdesign.channel_file import FORMAT, OPTIONAL, RECORDS, REQUIRED, VERSION, Contents, canonical
from mechdesign.errors import InputError
from mechdesign.exact import listed, quoted
from mechdesign.files import reason
from mechdesign.integer_rows import IntegerRows
from mechdesign.joint import Joint
from mechdesign.notions import from_record
from mechdesign.variable import Variable

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
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"version {quoted(version)} of the channel file is not known; this mechdesign reads {VERSION}"
        )
    missing = [key for key in REQUIRED if key not in document]
    if missing:
        raise InputError(f"the channel file has no {listed(missing)}")
    unknown = [key for key in document if key not in REQUIRED + OPTIONAL]
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
