"""Versioned JSON files that carry a hash of their own content.

Every such file is canonical JSON with the SHA-256 of everything else in it, and it is written
whole or not at all. A strict pydantic model (`FileDocument`) describes it; the JSON Schemas in
``docs/schemas`` are made from these models. Readers trust nothing: a message names the file, the
key and the problem.

A file has one key a line, for example::

    {
    "format": "mechdesign.quantizer",
    "version": 1,
    "query": "mean",
    ...
    "sha256": "5891b5b522d5df08..."
    }

A reader (`read_built`) takes these steps in order: the text (`_content`), its JSON (`_members`),
format and version (`_version_of`), the content by its model (`_validated`), what `build` makes of
it, and the hash. The file is refused at the first of them that fails. `versions` has the versions
of the packages, which many of these files record.
"""

from __future__ import annotations

import hashlib
import json
import platform
import stat
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from pydantic import ValidationError

import mechdesign
from mechdesign.core.errors import FileError, InputError
from mechdesign.core.files import (
    EXISTS_OVERWRITE,
    PathLike,
    check_target,
    read_errors,
    replacing,
    text_of,
)
from mechdesign.core.json_values import canonical, parse_json, surrogate_in
from mechdesign.core.records import Record, explained
from mechdesign.core.wording import quoted


class FileDocument(Record):
    """The content of a file beside its format, version and hash."""

    FORMAT: ClassVar[str]
    WHAT: ClassVar[str]
    """The kind of file, in messages."""
    VERSIONS: ClassVar[tuple[int, ...]] = (1,)
    """The versions that are read; the last one is written."""
    LARGEST: ClassVar[int] = 2**26
    """Most bytes of a file. 100,000 thresholds of any length take a tenth of this."""
    ARRAYS: ClassVar[frozenset[str]] = frozenset()
    """Large arrays that skip the validation by pydantic; `build` has to check them."""


AnyDocument = TypeVar("AnyDocument", bound=FileDocument)
Built = TypeVar("Built")


def write_document(path: PathLike, document: FileDocument, *, overwrite: bool) -> None:
    """Write a document in the newest version of its format, whole or not at all."""
    check_target(path, force=overwrite, exists=EXISTS_OVERWRITE)
    text = document_text(document)
    with replacing(path, force=overwrite, exists=EXISTS_OVERWRITE) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def document_text(document: FileDocument) -> str:
    """The text of a document in the newest version of its format."""
    return hashed_text(document.FORMAT, document.VERSIONS[-1], document.model_dump())


def hashed_text(kind: str, version: int, content: Mapping[str, Any]) -> str:
    """``{"format": kind, "version": version, ..content, "sha256": ..}``, one key per line."""
    document = {"format": kind, "version": version, **content}
    document["sha256"] = hashlib.sha256(canonical(document).encode()).hexdigest()
    # Keys keep their order, one a line: people read these files, and version control compares
    # them by lines. The hash is of the canonical text, so neither matters to it.
    lines: list[str] = []
    for key, value in document.items():
        lines.append(f"{json.dumps(key)}: {canonical(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_document(path: PathLike, kind: type[AnyDocument]) -> AnyDocument:
    """Read a file of this kind."""
    return read_built(path, kind, lambda _version, document: document)


def read_built(
    path: PathLike, kind: type[AnyDocument], build: Callable[[int, AnyDocument], Built]
) -> Built:
    """Read a file of this kind and return ``build(version, document)``.

    The hash is compared last, so that a faulty edit by hand gets the more precise message.

    Raises
    ------
    FileError
        If the file is not of this kind, is damaged, or `build` refuses it.
    """
    name = text_of(path)
    what = kind.WHAT
    document = _members(_content(path, name, kind), name, what)
    version = _version_of(document, name, kind)
    if "sha256" not in document:
        raise FileError(name, f"{name}: the {what} has no 'sha256'")
    claimed = document.pop("sha256")
    digest = _digest(document, name, what)
    del document["format"], document["version"]
    try:
        built = build(version, _validated(document, kind))
    except ValidationError as error:
        raise FileError(name, f"{name}: {explained(error, what)}") from None
    except InputError as error:
        raise FileError(name, f"{name}: {error}") from None
    if claimed != digest:
        raise FileError(
            name,
            f"{name}: the sha256 does not match the content: the file was edited or damaged",
        )
    return built


def _validated(document: dict[str, Any], kind: type[AnyDocument]) -> AnyDocument:
    """The content of a file as its model has it, or the ValidationError of pydantic. The document
    is emptied: that of a large channel has millions of texts, and so has the model.
    """
    # Pydantic would visit every number of these arrays, so it sees None in their place.
    arrays = {key: document.pop(key) for key in kind.ARRAYS & document.keys()}
    placeholders = dict.fromkeys(arrays)
    # Validation starts from text: then lists may become tuples and objects records, and nothing
    # else is converted.
    text = canonical({**document, **placeholders})
    document.clear()
    checked = kind.model_validate_json(text)
    if arrays:
        checked = checked.model_copy(update=arrays)
    return checked


def _version_of(
    document: Mapping[str, Any], name: str, kind: type[FileDocument]
) -> int:
    """Check format and version of a document, and return the version."""
    if document["format"] != kind.FORMAT:
        raise FileError(
            name,
            f"{name} is not a {kind.WHAT}: its format is {quoted(document['format'])}, "
            f"not {kind.FORMAT!r}",
        )
    version = document.get("version")
    # The type is compared because True equals 1, and so does 1.0.
    if type(version) is not int or version not in kind.VERSIONS:
        readable = " and ".join(str(number) for number in kind.VERSIONS)
        raise FileError(
            name,
            f"{name}: version {quoted(version)} of the {kind.WHAT} is not known; "
            f"this mechdesign reads {readable}",
        )
    return version


def _digest(content: Mapping[str, Any], name: str, what: str) -> str:
    """The SHA-256 of a document without its own hash."""
    hashed = hashlib.sha256()
    try:
        # The text of all members is that of each, one after the other, and takes less memory so.
        before = "{"
        for key in sorted(content):
            member = f"{before}{canonical(key)}:{canonical(content[key])}"
            hashed.update(member.encode())
            before = ","
        hashed.update(b"}" if content else b"{}")
        return hashed.hexdigest()
    except (UnicodeEncodeError, ValueError):
        # The canonical text can hold neither a lone surrogate nor an infinity. JSON text can:
        # "\ud800" and 1e999.
        place = surrogate_in(content, "")
        if place:
            raise FileError(
                name, f"{name}: {place} is not valid Unicode text (lone surrogate)"
            ) from None
        raise FileError(
            name, f"{name}: holds a number that no {what} can hold"
        ) from None


def _content(path: PathLike, name: str, kind: type[FileDocument]) -> str:
    """The text of a file, after refusing what cannot be such a file."""
    what = kind.WHAT
    with read_errors(name):
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileError(name, f"{name} is a folder, not a {what}")
        if not stat.S_ISREG(status.st_mode):
            raise FileError(name, f"{name} is not a regular file; save it as one first")
        if status.st_size > kind.LARGEST:
            raise FileError(
                name, f"{name} is too large for a {what} ({status.st_size} bytes)"
            )
        data = Path(path).read_bytes()
    if not data.strip():
        raise FileError(name, f"{name} is empty, not a {what}")
    # Every pickle of protocol 2 or later begins with this byte.
    if data.startswith(b"\x80"):
        raise FileError(
            name, f"{name} is a Python pickle, which is never opened: a {what} is JSON"
        )
    try:
        # Editors on Windows put a byte order mark at the beginning.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(name, f"{name} is not a {what}: it is no UTF-8 text") from None


def _members(text: str, name: str, what: str) -> dict[str, Any]:
    """The members of a JSON object that has a format."""
    document = parse_json(text, name, what)
    if not isinstance(document, dict) or "format" not in document:
        raise FileError(name, f"{name} is not a {what}: it has no format")
    return cast("dict[str, Any]", document)


PACKAGES = ("pyarrow", "numpy", "cryptography")
"""Packages whose version can change the bytes of an output, but never a draw."""


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that write outputs, by name.

    They are read from the installed metadata, without importing the packages.
    """
    numbers = {
        "mechdesign": mechdesign.__version__,
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            # A bare folder of sources, for example, has no metadata.
            numbers[package] = "unknown"
    return numbers
