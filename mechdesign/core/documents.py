"""Versioned JSON files that carry a hash of their own content: how they are written, read and refused.

Every such file is canonical JSON with the SHA-256 of everything else in it, is written whole or not at all, and is
described by a strict pydantic model (`FileDocument`), from which its JSON Schema in ``docs/schemas`` is made. A reader
believes nothing: a message names the file, the key and what is wrong with it.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

import mechdesign
from mechdesign.core.errors import InputError
from mechdesign.core.files import (
    EXISTS_OVERWRITE,
    PathLike,
    check_target,
    reading,
    replacing,
    text_of,
)
from mechdesign.core.numbers import listed, quoted, repeated, valid_text


class Record(BaseModel):
    """An object of a file: exact types (text is no number), no unknown key, immutable."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FileDocument(Record):
    """What a file holds beside its format, version and hash."""

    FORMAT: ClassVar[str]
    WHAT: ClassVar[str]
    VERSIONS: ClassVar[tuple[int, ...]] = (1,)
    LARGEST: ClassVar[int] = (
        2**26
    )  # 100,000 thresholds of any length take a tenth of it
    ARRAYS: ClassVar[frozenset[str]] = frozenset()


AnyDocument = TypeVar("AnyDocument", bound=FileDocument)
Built = TypeVar("Built")


@dataclass(frozen=True)
class Matching:
    """An annotation of text that a pattern must match as a whole; `wanted` completes the sentence 'must be ..'."""

    pattern: str
    wanted: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            self._checked, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core), "pattern": f"^{self.pattern}$"}

    def _checked(self, text: str) -> str:
        if re.fullmatch(self.pattern, text, re.ASCII) is None:
            raise InputError(f"must be {self.wanted}")
        return text


Digest = Annotated[str, Matching(r"[0-9a-f]{64}", "a hash in hexadecimal digits")]
"""SHA-256 as text."""


def canonical(value: Any) -> str:
    """The one JSON text of `value` that is hashed: sorted keys, no blanks, text as it is (UTF-8)."""
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def with_infinities(value: Any) -> Any:
    """JSON values with the texts "inf" and "-inf" as floats."""
    if isinstance(value, dict):
        return {
            key: with_infinities(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [with_infinities(item) for item in cast("list[Any]", value)]
    return float(value) if value in ("inf", "-inf") else value


def without_infinities(value: Any, where: str = "content") -> Any:
    """`value` with infinities as the texts "inf" and "-inf", and nothing but what JSON has; messages name `where`."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {
            valid_text(key, f"a key of {where!r}"): without_infinities(one, where)
            for key, one in items
        }
    if isinstance(value, (list, tuple)):
        return [
            without_infinities(item, where) for item in cast("Sequence[Any]", value)
        ]
    if isinstance(value, str):
        return valid_text(value, f"a text of the record {where!r}")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not math.isnan(number := float(value)):
        return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    kind = "NaN" if isinstance(value, Real) else f"a {type(value).__name__}"
    raise InputError(f"the record {where!r} holds {kind}, which no file can hold")


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
    """``{"format": kind, "version": version, ..content, "sha256": ..}``, one key a line."""
    document = {"format": kind, "version": version, **content}
    document["sha256"] = hashlib.sha256(canonical(document).encode()).hexdigest()
    lines = ",\n".join(
        f"{json.dumps(key)}: {canonical(value)}" for key, value in document.items()
    )
    return f"{{\n{lines}\n}}\n"


def read_document(path: PathLike, kind: type[AnyDocument]) -> AnyDocument:
    """Read a file of a kind."""
    return read_built(path, kind, lambda _, document: document)


def read_built(
    path: PathLike, kind: type[AnyDocument], build: Callable[[int, AnyDocument], Built]
) -> Built:
    """What `build` makes of a file; the hash comes last, so that who edits by hand is told what is wrong."""
    name, what = text_of(path), kind.WHAT
    document = _parsed(_text_of(path, name, kind), name, what)
    if document["format"] != kind.FORMAT:
        raise InputError(
            f"{name} is not a {what}: its format is {quoted(document['format'])}, not {kind.FORMAT!r}"
        )
    found = document.get("version")
    if type(found) is not int or found not in kind.VERSIONS:
        raise InputError(
            f"{name}: version {quoted(found)} of the {what} is not known; this mechdesign reads "
            f"{' and '.join(map(str, kind.VERSIONS))}"
        )
    if "sha256" not in document:
        raise InputError(f"{name}: the {what} has no 'sha256'")
    claimed = document.pop("sha256")
    digest = _digest(document, name, what)
    del document["format"], document["version"]
    arrays = {key: document.pop(key) for key in kind.ARRAYS & document.keys()}
    try:
        # As text: then lists may be tuples, objects may be records, and nothing else is converted.
        plain = kind.model_validate_json(
            canonical({**document, **dict.fromkeys(arrays)})
        )
        built = build(found, plain.model_copy(update=arrays) if arrays else plain)
    except ValidationError as error:
        raise InputError(f"{name}: {explained(error, what)}") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if claimed != digest:
        raise InputError(
            f"{name}: the sha256 does not match the content: the file was edited or damaged"
        )
    return built


def _digest(content: Mapping[str, Any], name: str, what: str) -> str:
    try:
        return hashlib.sha256(canonical(content).encode()).hexdigest()
    except (UnicodeEncodeError, ValueError):  # a lone surrogate, or 1e999
        where = _no_text(content, "")
        if where:
            raise InputError(
                f"{name}: {where} is not valid Unicode text (lone surrogate)"
            ) from None
        raise InputError(f"{name}: holds a number that no {what} can hold") from None


def _no_text(value: Any, place: str) -> str | None:
    """Place and value of the first text with a lone surrogate."""
    if isinstance(value, str):
        return (
            f"{place} ({quoted(value)})"
            if any("\ud800" <= c <= "\udfff" for c in value)
            else None
        )
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            found = _no_text(key, f"a key of {place or 'the file'}") or _no_text(
                item, _under(place, key)
            )
            if found:
                return found
    items = enumerate(cast("list[Any]", value)) if isinstance(value, list) else ()
    return next(
        (found for i, item in items if (found := _no_text(item, _under(place, i)))),
        None,
    )


def explained(error: ValidationError, what: str) -> str:
    """The first problem that pydantic found, as a sentence; `what` is how the whole is called."""
    problems = error.errors(include_url=False)
    first = problems[0]
    kind, owner = first["type"], _place(first["loc"][:-1]) or f"the {what}"
    if kind == "missing" and isinstance(first["loc"][-1], int):
        return f"{owner} has too few entries"
    if kind in ("missing", "extra_forbidden"):
        same = (p["loc"] for p in problems if p["type"] == kind)
        keys = [str(at[-1]) for at in same if at[:-1] == first["loc"][:-1]]
        return f"{owner} has {'no' if kind == 'missing' else 'an unknown key'} {listed(keys)}"
    place, message = _place(first["loc"]), _demand(first)
    if not message.startswith("must "):
        return f"{place}: {message}" if place else message
    given: Any = first["input"]
    shown = (
        "a list"
        if isinstance(given, list)
        else "an object"
        if isinstance(given, dict)
        else quoted(given)
    )
    return f"{place or f'the {what}'} ({shown}) {message}"


_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "finite_number": "a finite number",
}

_LIMITS = {
    "ge": "must be at least {:,}",
    "gt": "must be above {:,}",
    "le": "must be at most {:,}",
    "lt": "must be below {:,}",
    "min_length": "must have at least {} entries",
    "max_length": "must have at most {} entries",
}


def _demand(problem: ErrorDetails) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}"
    for key, words in _LIMITS.items():
        if key in context:
            return words.format(context[key])
    return f"must be {_WANTED[kind]}" if kind in _WANTED else problem["msg"].lower()


def _place(location: Sequence[int | str]) -> str:
    place = ""
    for part in location:
        if not str(part).startswith(
            "@"
        ):  # the tag of a union, which is not in the file
            place = _under(place, part)
    return place


def _under(place: str, part: int | str) -> str:
    if isinstance(part, int):
        return f"{place}[{part}]"
    return f"{place}.{part}" if place else part


def _text_of(path: PathLike, name: str, kind: type[FileDocument]) -> str:
    what = kind.WHAT
    with reading(name):
        status = Path(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{name} is a folder, not a {what}")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{name} is not a regular file")
        if status.st_size > kind.LARGEST:
            raise InputError(
                f"{name} is too large for a {what} ({status.st_size} bytes)"
            )
        data = Path(path).read_bytes()
    if not data.strip():
        raise InputError(f"{name} is empty, not a {what}")
    if data.startswith(b"\x80"):
        raise InputError(
            f"{name} is a Python pickle, which is never opened: a {what} is JSON"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name} is not a {what}: it is no UTF-8 text") from None


def _parsed(text: str, name: str, what: str) -> dict[str, Any]:
    def constant(word: str) -> Any:
        raise InputError(
            f'{name}: {word} is no number of a {what} (infinities are the text "inf")'
        )

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if (twice := repeated(key for key, _ in members)) is not None:
            raise InputError(f"{name}: the key {quoted(twice)} occurs twice")
        return dict(members)

    try:
        document: Any = json.loads(
            text, parse_constant=constant, object_pairs_hook=pairs
        )
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith(
            "Unterminated string"
        ):
            raise InputError(
                f"{name} is truncated: it ends in the middle (line {error.lineno})"
            ) from None
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"{name} is not a {what}: not JSON ({error.msg.lower()} at {where})"
        ) from None
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{name} is not a {what}: it is nested too deeply") from None
    except ValueError:  # Python refuses to parse integers of more than 4300 digits
        raise InputError(f"{name}: holds an integer of thousands of digits") from None
    if not isinstance(document, dict) or "format" not in document:
        raise InputError(f"{name} is not a {what}: it has no format")
    return cast("dict[str, Any]", document)


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
