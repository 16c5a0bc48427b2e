"""The R script that draws from a lookup table; its text is ``draw.r.jinja``.

The script reads the table from a CSV of its own (`lookup.Lookup.csv_text`). It holds nothing of it
but the names of columns and the *purposes*: the texts that are hashed between key and identifier,
``"<digest of the channel> draw "``. `script` fills these into the template, each as a constant of R
(`r_text`).

It draws as the SQL does. It takes the first 53 bits of SHA-256 over key, purpose and identifier,
and finds the interval [low, high) that has this integer among those of the record's symbols. Last
it sorts the released records by another hash.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mechdesign.exporting.lookup import Lookup
from mechdesign.exporting.statements import DRAW, KEY_DIGITS, ORDER, purpose_of


def r_text(text: str) -> str:
    r"""A constant text of R, in ASCII, with the escapes of JSON, which R has, too.

    Characters beyond 16 bits are written as \U..., for R has no surrogates.
    """
    parts: list[str] = []
    for character in text:
        if ord(character) > 0xFFFF:
            parts.append(f"\\U{ord(character):08x}")
        else:
            # Without the quotes that JSON puts around it.
            parts.append(json.dumps(character)[1:-1])
    return '"' + "".join(parts) + '"'


def script(lookup: Lookup, identity: str, notes: Sequence[str]) -> str:
    """The script for a lookup table and the column that identifies a record."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("mechdesign.exporting", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["text"] = r_text
    return environment.get_template("draw.r.jinja").render(
        identity=identity,
        key_digits=KEY_DIGITS,
        lookup=lookup,
        notes=notes,
        draw=purpose_of(lookup.digest, DRAW),
        order=purpose_of(lookup.digest, ORDER),
        text=r_text,
    )
