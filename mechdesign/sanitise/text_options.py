"""How a CSV file is written: delimiter, quotes, encoding."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from mechdesign.errors import InputError

_NEVER = "\r\n\0"
"""What neither delimits cells nor quotes them."""

_HOST_NAMES = ("idna", "punycode")
"""Codecs of text that are made for names of computers, not for files."""

_SAMPLE = ',;"\r\nAa09\t'


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How the text of a CSV file is to be read.

    Parameters
    ----------
    delimiter : str
        One ASCII character between cells.
    quote : str, optional
        One ASCII character around cells that hold a delimiter or a line break (doubled within them); None if there
        is none and every cell is as it stands.
    encoding : str
        Any text encoding that Python knows.

    Raises
    ------
    InputError
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        _require_character("delimiter", self.delimiter)
        if self.quote is not None:
            _require_character("quote", self.quote)
        if self.quote == self.delimiter:
            raise InputError(f"delimiter and quote ({self.quote!r}) must be different characters")
        try:
            codecs.getincrementaldecoder(self.encoding)
            usable = codecs.lookup(self.encoding).name not in _HOST_NAMES
            usable = usable and _SAMPLE.encode(self.encoding).decode(self.encoding) == _SAMPLE
        except (LookupError, UnicodeError, ValueError):
            usable = False
        if not usable:
            raise InputError(
                f"encoding ({self.encoding!r}) must be a text encoding that Python knows, such as utf-8, utf-16 or "
                "cp1252"
            )


def _require_character(what: str, text: str) -> None:
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in _NEVER:
        raise InputError(
            f"{what} ({text!r}) must be one ASCII character, no letter, digit, line break or NUL"
        )
