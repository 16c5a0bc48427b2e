"""Versioned JSON files that carry a hash of their own content, and readers that refuse.

Canonical JSON, SHA-256 of everything else, atomic writes, messages that say what is wrong with a file, and the versions
of the programs that made it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import mechdesign
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, reason, replacing
from mechdesign.core.numbers import listed, quoted

LARGEST_FILE = 2**26
"""Bytes; 100,000 thresholds of any length take a tenth of it."""


def canonical(value: Any) -> str:
    """The one JSON text of `value` that is hashed: sorted keys, no blanks, text as it is (UTF-8)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_hashed(
    path: PathLike, kind: str, version: int, content: Mapping[str, Any], *, overwrite: bool
) -> None:
    """Write what `hashed_text` gives, whole or not at all.

    Raises
    ------
    InputError
        If the path exists (without `overwrite`), is a folder or cannot be written.
    """
    check_target(path, force=overwrite)
    text = hashed_text(kind, version, content)
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def hashed_text(kind: str, version: int, content: Mapping[str, Any]) -> str:
    """``{"format": kind, "version": version, ..content, "sha256": ..}``, one key a line."""
    document = {"format": kind, "version": version, **content}
    document["sha256"] = hashlib.sha256(canonical(document).encode()).hexdigest()
    lines = ",\n".join(f"{json.dumps(key)}: {canonical(value)}" for key, value in document.items())
    return f"{{\n{lines}\n}}\n"


def read_hashed(path: PathLike, kind: str, version: int, keys: Sequence[str], what: str) -> dict[str, Any]:
    """Read what `write_hashed` wrote; `what` is how messages call the file.

    Raises
    ------
    InputError
        If it is missing, no JSON object, of another format or version, lacks one of `keys` or has
        others, or was edited.
    """
    name = os.fspath(path)
    document = _parsed(_read(path, name, what), name, what)
    if document.get("format") != kind:
        raise InputError(
            f"{name} is not a {what}: its format is {quoted(document.get('format'))}, not {kind!r}"
        )
    found = document.get("version")
    if type(found) is not int or found != version:
        raise InputError(
            f"{name}: version {quoted(found)} of the {what} is not known; this mechdesign reads {version}"
        )
    expected = {"format", "version", "sha256", *keys}
    if missing := sorted(expected - document.keys()):
        raise InputError(f"{name}: the {what} has no {listed(missing)}")
    if unknown := sorted(document.keys() - expected):
        raise InputError(f"{name}: the {what} has an unknown key {listed(unknown)}")
    claimed = document.pop("sha256")
    try:
        digest = hashlib.sha256(canonical(document).encode()).hexdigest()
    except (UnicodeEncodeError, ValueError):  # a lone surrogate, or 1e999
        raise InputError(f"{name}: holds a text or a number that no {what} can hold") from None
    if claimed != digest:
        raise InputError(f"{name}: the sha256 does not match the content: the file was edited or damaged")
    return document


def _read(path: PathLike, name: str, what: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{name} is a folder, not a {what}") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {reason(error)}") from None
    if len(data) > LARGEST_FILE:
        raise InputError(f"{name} is too large for a {what}")
    if data.startswith(b"\x80"):
        raise InputError(f"{name} is a Python pickle, which is never opened: a {what} is JSON")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name} is not a {what}: it is no UTF-8 text") from None


def _parsed(text: str, name: str, what: str) -> dict[str, Any]:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) < len(members):
            raise InputError(f"{name}: a key occurs twice")
        return dict(members)

    try:
        document: Any = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise InputError(f"{name} is empty or truncated: it ends in the middle") from None
        raise InputError(
            f"{name} is not a {what}: not JSON (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise InputError(f"{name} is not a {what}: it is nested too deeply") from None
    except InputError:
        raise
    except ValueError:  # Python refuses to parse integers of more than 4300 digits
        raise InputError(f"{name}: holds an integer of thousands of digits") from None
    if not isinstance(document, dict):
        raise InputError(f"{name} is not a {what}: it is no JSON object")
    return document  # pyright: ignore[reportUnknownVariableType]


PACKAGES = ("pyarrow", "numpy", "cryptography")
"""Whose versions can change bytes of the output (never a draw)."""


def versions() -> dict[str, str]:
    """Names and versions, without importing what is heavy."""
    found = {"mechdesign": mechdesign.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a bare folder of sources, say
            found[package] = "unknown"
    return found
