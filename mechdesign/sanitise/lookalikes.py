"""Columns whose names hardly differ from that of a sensitive one, and fields inside of other columns that have it."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
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
    plain = {_plain(name): name for name in secret}
    plain.pop("", None)
    for name in header:
        if name not in known and _plain(name) in plain:
            raise InputError(
                f"the column {quoted(name)} looks like the sensitive column {quoted(plain[_plain(name)])} and would "
                "stay in the output; remove it from the input, rename it if it is another one, or keep it knowingly "
                "(--keep-sensitive)"
            )


def _plain(name: Any) -> str:
    """What is left of a name without what people overlook: letters and digits, in one case."""
    text = unicodedata.normalize("NFKC", str(name)).casefold()
    return "".join(sign for sign in text if sign.isalnum())
