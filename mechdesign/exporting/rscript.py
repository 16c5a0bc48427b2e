"""The R script that draws from a lookup table; its text is ``draw.r.jinja``.

The script reads the table from a CSV of its own (`lookup.Lookup.csv_text`). It holds nothing of it
but the names of columns, the first node (`start`), and for each level its *purpose*: the text that
is hashed between key and identifier, ``"<digest of the channel> level 1 "``. `script` fills these
into the template, each as a constant of R (`r_text`).

It draws as the SQL does. Level after level it takes the first 53 bits of SHA-256 over key, purpose
and identifier, finds the interval [low, high) that has this integer at the record's node and
symbols, and goes on to the interval's child. Last it sorts the released records by another hash.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mechdesign.exporting.lookup import GIVEN, Lookup
from mechdesign.exporting.statements import KEY_DIGITS, ORDER, purpose_of


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
    purposes: list[str] = []
    for level in lookup.levels:
        # Given columns are released as they are, without a draw and so without a hash.
        purpose = ""
        if level.number != GIVEN:
            purpose = purpose_of(lookup.digest, f"level {level.number}")
        purposes.append(purpose)
    return environment.get_template("draw.r.jinja").render(
        identity=identity,
        key_digits=KEY_DIGITS,
        levels=lookup.levels,
        notes=notes,
        order=purpose_of(lookup.digest, ORDER),
        purposes=purposes,
        start=lookup.start,
        text=r_text,
    )
