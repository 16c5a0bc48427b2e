"""The pydantic models of the package's files: exact types, and errors in plain sentences.

`Record` is what all models inherit: no conversion of types, no unknown key. `explained` turns the
first fault that pydantic found into one sentence: the place in the file (`_place`), the faulty
value (`_shown`) and what it must be (`_demand`). Three examples, of a model whose rows have a name
and a count::

    {"name": "a", "count": "1"}            rows[0].count ('1') must be a whole number
    {"name": "a", "count": 1, "x": 2}      rows[0] has an unknown key 'x'
    {"name": "a"}                          rows[0] has no 'count'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from mechdesign.core.errors import InputError
from mechdesign.core.json_values import place_below
from mechdesign.core.wording import listed, quoted


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
        return {**handler(core), "pattern": f"^{self.pattern}$"}

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
