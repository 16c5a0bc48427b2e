"""Columns whose names hardly differ from that of a sensitive one, and fields inside of other columns that have it."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from mechdesign.errors import InputError
from mechdesign.exact import quoted


def refuse_lookalikes(header: Sequence[Any], secret: Iterable[Any], known: Collection[Any]) -> None:
    """Refuse a column that is called like a sensitive one but for case, blanks, signs and invisible characters.

    Parameters
    ----------
    header : sequence of names
    secret : sequence of names
        Of the sensitive columns.
    known : collection of names
        Columns of which it has been decided what happens to them.

    Raises
    ------
    InputError
        Naming both.
    """
    for name, like in lookalikes(header, secret, known):
        raise InputError(
            f"the column {quoted(name)} looks like the sensitive column {quoted(like)} and would stay in the output; "
            "remove it from the input, rename it if it is another one, or keep it knowingly (--keep-sensitive)"
        )


def lookalikes(header: Sequence[Any], secret: Iterable[Any], known: Collection[Any]) -> list[tuple[Any, Any]]:
    """Columns that are called like a sensitive one, as in `refuse_lookalikes`, and which one."""
    plain = {_plain(name): name for name in secret}
    plain.pop("", None)
    return [(name, plain[_plain(name)]) for name in header if name not in known and _plain(name) in plain]


def refuse_inner(schema: Any, kept: Collection[Any], secret: Iterable[Any]) -> None:
    """Refuse columns that hold a field with the name of a sensitive column.

    Parameters
    ----------
    schema : pyarrow.Schema
    kept : collection of names
        Columns that stay.
    secret : sequence of names

    Raises
    ------
    InputError
        Naming both.
    """
    plain = {_plain(name): name for name in secret}
    plain.pop("", None)
    for field in schema:
        if field.name not in kept:
            continue
        for inner in _inner_names(field.type):
            if _plain(inner) in plain:
                raise InputError(
                    f"the column {quoted(field.name)} holds the field {quoted(inner)}, which looks like the sensitive "
                    f"column {quoted(plain[_plain(inner)])} and would stay in the output; remove it from the input, "
                    "or keep it knowingly (--keep-sensitive)"
                )


def _inner_names(kind: Any) -> Iterator[str]:
    """Names of the fields of structures, however deep; those of lists and maps have names that nobody chose."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        yield from _inner_names(kind.storage_type)
    elif pa.types.is_map(kind):
        yield from _inner_names(kind.key_type)
        yield from _inner_names(kind.item_type)
    elif pa.types.is_nested(kind):
        for i in range(kind.num_fields):
            if pa.types.is_struct(kind):
                yield kind.field(i).name
            yield from _inner_names(kind.field(i).type)


def _plain(name: Any) -> str:
    """What is left of a name without what people overlook: letters and digits, in one case."""
    text = unicodedata.normalize("NFKC", str(name)).casefold()
    return "".join(sign for sign in text if sign.isalnum())
