"""The values that the package's JSON files hold, and the one text of them that is hashed.

A value is written in two steps and read in two. `without_infinities` makes plain JSON values,
because JSON has no infinities and no NumPy numbers; `canonical` then fixes one of the many texts
that a value has, so that its hash is fixed too. `parse_json` refuses what JSON leaves open, such as
a key that occurs twice; `with_infinities` restores the floats. For example::

    {"b": inf, "a": (2,)}  ->  {"b": "inf", "a": [2]}  ->  {"a":[2],"b":"inf"}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, cast

from mechdesign.core.arguments import repeated, valid_text
from mechdesign.core.errors import FileError, InputError
from mechdesign.core.wording import quoted


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
