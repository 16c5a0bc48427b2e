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

*Values.* A value is written in two steps and read in two. `without_infinities` makes plain JSON
values, because JSON has no infinities and no NumPy numbers; `canonical` then fixes one of the many
texts that a value has, so that its hash is fixed too. `parse_json` refuses what JSON leaves open,
such as a key that occurs twice; `with_infinities` restores the floats. For example::

    {"b": inf, "a": (2,)}  ->  {"b": "inf", "a": [2]}  ->  {"a":[2],"b":"inf"}

*Models.* `Record` is what all models inherit: no conversion of types, no unknown key. `explained`
turns the first fault that pydantic found into one sentence: the place in the file (`_place`), the
faulty value (`_shown`) and what it must be (`_demand`). Three examples, of a model whose rows have
a name and a count::

    {"name": "a", "count": "1"}            rows[0].count ('1') must be a whole number
    {"name": "a", "count": 1, "x": 2}      rows[0] has an unknown key 'x'
    {"name": "a"}                          rows[0] has no 'count'
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import platform
import re
import stat
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, TextIO, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

import mechdesign
from mechdesign.core.arguments import repeated, valid_text
from mechdesign.core.errors import FileError, InputError
from mechdesign.core.files import (
    EXISTS_OVERWRITE,
    PathLike,
    check_target,
    read_errors,
    replacing,
    text_of,
)
from mechdesign.core.wording import listed, quoted

# ------------------------------------------------------------------------------- values


def canonical(value: Any) -> str:
    """The one JSON text of `value`: sorted keys, no blanks, characters as they are (UTF-8)."""
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def with_infinities(value: Any) -> Any:
    """JSON values with the texts "inf" and "-inf" as floats.

    Only for values in which no other text may be "inf", as a symbol may.
    """
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: with_infinities(item) for key, item in members.items()}
    if isinstance(value, list):
        return [with_infinities(item) for item in cast("list[Any]", value)]
    if value in ("inf", "-inf"):
        return float(value)
    return value


def without_infinities(value: Any, where: str = "content") -> Any:
    """JSON values with infinities as the texts "inf" and "-inf".

    Parameters
    ----------
    value : object
        Mappings, sequences, texts, numbers, truth values and None, nested in any way.
    where : str
        The name of the value in messages.

    Raises
    ------
    InputError
        If there is anything that JSON cannot hold, such as NaN.
    """
    # First what sets and proofs have a hundred thousand of.
    if isinstance(value, str):
        if value.isascii():
            return value
        return valid_text(value, f"a text of the record {where!r}")
    if type(value) is int:
        return value
    if type(value) is float:
        return _without_infinity(value, where)
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        plain: dict[str, Any] = {}
        for key, item in members.items():
            plain[valid_text(key, f"a key of {where!r}")] = without_infinities(
                item, where
            )
        return plain
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if set(map(type, items)) == {str} and "".join(items).isascii():
            return list(items)
        return [without_infinities(item, where) for item in items]
    # Before the integers, because a truth value is one in Python.
    if value is None or isinstance(value, bool):
        return value
    # NumPy's integers and floats are registered with `numbers`; JSON needs Python's.
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _without_infinity(float(value), where)
    raise InputError(
        f"the record {where!r} holds a {type(value).__name__}, which no file can hold"
    )


def _without_infinity(number: float, where: str) -> float | str:
    """A number, or the text of an infinity."""
    if math.isnan(number):
        raise InputError(f"the record {where!r} holds NaN, which no file can hold")
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def surrogate_in(value: Any, place: str) -> str | None:
    """Place and value of the first text with a lone surrogate, which UTF-8 cannot encode."""
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            return f"{place} ({quoted(value)})"
        return None
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            culprit = surrogate_in(key, f"a key of {place or 'the file'}")
            if not culprit:
                culprit = surrogate_in(item, place_below(place, key))
            if culprit:
                return culprit
    elif isinstance(value, list):
        for i, item in enumerate(cast("list[Any]", value)):
            culprit = surrogate_in(item, place_below(place, i))
            if culprit:
                return culprit
    return None


def place_below(place: str, part: int | str) -> str:
    """How messages name an entry or a member of `place`: ``rows[3]``, ``notion.eps_l``."""
    if isinstance(part, int):
        return f"{place}[{part}]"
    return f"{place}.{part}" if place else part


def parse_json(text: str, name: str, what: str) -> Any:
    """Parse the text of a file without anything that JSON leaves open.

    Parameters
    ----------
    text : str
        The content of the file.
    name, what : str
        The name of the file and the kind of file that it should be, for messages.

    Raises
    ------
    FileError
        On invalid JSON, a key that occurs twice, NaN, Infinity, or an integer that Python cannot
        parse.
    """

    def refuse_constant(word: str) -> Any:
        raise FileError(
            name,
            f'{name}: {word} is no number of a {what} (infinities are the text "inf")',
        )

    def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = repeated(key for key, _ in pairs)
        if twice is not None:
            raise FileError(name, f"{name}: the key {quoted(twice)} occurs twice")
        return dict(pairs)

    try:
        return json.loads(
            text, parse_constant=refuse_constant, object_pairs_hook=members_of
        )
    except json.JSONDecodeError as error:
        raise _syntax_error(error, text, name, what) from None
    except FileError:
        # Raised by the two functions above. It is also a ValueError, which is caught below.
        raise
    except RecursionError:
        raise FileError(
            name, f"{name} is not a {what}: it is nested too deeply"
        ) from None
    except ValueError:
        # Python refuses to parse integers of more than 4300 digits.
        raise FileError(
            name, f"{name}: holds an integer of thousands of digits"
        ) from None


def _syntax_error(
    error: json.JSONDecodeError, text: str, name: str, what: str
) -> FileError:
    """The message about text that is not JSON; a truncated file is the most frequent cause."""
    at_end = error.pos >= len(text.rstrip())
    if at_end or error.msg.startswith("Unterminated string"):
        return FileError(
            name,
            f"{name} is truncated: it ends in the middle (line {error.lineno})",
        )
    place = f"line {error.lineno}, column {error.colno}"
    return FileError(
        name, f"{name} is not a {what}: not JSON ({error.msg.lower()} at {place})"
    )


# ------------------------------------------------------------------------------- models


class Record(BaseModel):
    """An object in a file: exact types (text is no number), no unknown key, immutable."""

    # Most runs read a few kinds of files, so the validator of a model is built at its first use.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, defer_build=True
    )


@dataclass(frozen=True)
class Matching:
    """Annotation of a text that must match a pattern as a whole.

    `requirement` completes the sentence 'must be ..'.
    """

    pattern: str
    requirement: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        # The type of the field is checked first, then the pattern.
        return core_schema.no_info_after_validator_function(
            self._checked, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core), "pattern": f"^(?:{self.pattern})$"}

    def _checked(self, text: str) -> str:
        # Python's `re`, because Rust's, which pydantic uses, has another syntax and no re.ASCII.
        if re.fullmatch(self.pattern, text, re.ASCII) is None:
            raise InputError(f"must be {self.requirement}")
        return text


Digest = Annotated[str, Matching(r"[0-9a-f]{64}", "a hash in hexadecimal digits")]
"""SHA-256 as text."""

_TYPE_WORDS = {
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
"""The required type by pydantic's type of error."""

_LIMIT_WORDS = {
    "ge": "must be at least {:,}",
    "gt": "must be above {:,}",
    "le": "must be at most {:,}",
    "lt": "must be below {:,}",
    "min_length": "must have at least {} entries",
    "max_length": "must have at most {} entries",
}
"""The violated limit by its name in the context of pydantic's error."""


def explained(error: ValidationError, what: str) -> str:
    """The first problem in a validation error, as a sentence; `what` names the whole document."""
    problems = error.errors(include_url=False)
    # One fault is enough to refuse the file; keys that are missing together are named together.
    first = problems[0]
    location = first["loc"]
    owner = _place(location[:-1]) or f"the {what}"
    # A missing place with a number is an entry of a tuple of fixed length.
    if first["type"] == "missing" and isinstance(location[-1], int):
        return f"{owner} has too few entries"
    if first["type"] == "missing":
        return f"{owner} has no {listed(_sibling_keys(problems))}"
    if first["type"] == "extra_forbidden":
        return f"{owner} has an unknown key {listed(_sibling_keys(problems))}"
    place = _place(location)
    message = _demand(first)
    # A message of a validator of our own is a whole sentence; the others complete one.
    if not message.startswith("must "):
        return f"{place}: {message}" if place else message
    return f"{place or f'the {what}'} ({_shown(first['input'])}) {message}"


def _sibling_keys(problems: Sequence[ErrorDetails]) -> list[str]:
    """The keys of all problems of the first one's type in the same object."""
    first = problems[0]
    keys: list[str] = []
    for problem in problems:
        same_object = problem["loc"][:-1] == first["loc"][:-1]
        if same_object and problem["type"] == first["type"]:
            keys.append(str(problem["loc"][-1]))
    return keys


def _shown(value: Any) -> str:
    """A faulty value as a message repeats it."""
    # The content of a list may be private, and long.
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return quoted(value)


def _demand(problem: ErrorDetails) -> str:
    """The violated requirement, in words."""
    kind = problem["type"]
    # What the message is about, such as the limit {"ge": 0} or the error of a validator.
    context = problem.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}"
    for key, words in _LIMIT_WORDS.items():
        if key in context:
            return words.format(context[key])
    if kind in _TYPE_WORDS:
        return f"must be {_TYPE_WORDS[kind]}"
    return problem["msg"].lower()


def _place(location: Sequence[int | str]) -> str:
    """The place of a problem as messages name it, such as ``rows[3].name``."""
    place = ""
    for part in location:
        # The tag of a union begins with "@" and is not in the file.
        if not str(part).startswith("@"):
            place = place_below(place, part)
    return place


# -------------------------------------------------------------------------------- files


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

GZIP = b"\x1f\x8b"
"""The first bytes of a file that was packed by gzip."""


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
    if data.startswith(GZIP):
        data = _unpacked(data, name, kind)
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


def _unpacked(data: bytes, name: str, kind: type[FileDocument]) -> bytes:
    """The content of a file that was packed by gzip, up to the size of a plain one."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            unpacked = stream.read(kind.LARGEST + 1)
    except (OSError, EOFError, zlib.error):
        raise FileError(name, f"{name}: its gzip data are damaged") from None
    if len(unpacked) > kind.LARGEST:
        raise FileError(
            name,
            f"{name} is too large for a {kind.WHAT} (more than {kind.LARGEST} bytes, unpacked)",
        )
    return unpacked


@contextmanager
def text_file(path: PathLike, *, packed: bool) -> Generator[TextIO]:
    """A file to write text to, packed by gzip if asked for; its bytes depend on the text alone."""
    with ExitStack() as stack:
        out: Any = stack.enter_context(open(path, "wb"))
        if packed:
            # Without a name and a time, which the format would store.
            out = stack.enter_context(gzip.GzipFile("", "wb", fileobj=out, mtime=0))
        text = io.TextIOWrapper(out, encoding="utf-8", newline="\n")
        yield stack.enter_context(text)


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
        numbers[package] = package_version(package)
    return numbers


# Cached, because the metadata are parsed as a mail is: a millisecond for each file of a folder.
@cache
def package_version(package: str) -> str:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        # A bare folder of sources, for example, has no metadata.
        return "unknown"
