"""The format of CSV text: delimiter, quote and encoding.

`TextOptions` refuses what the splitter could not read right. Delimiter and quote are single bytes
for it, so ``;`` and a tab are possible, but not ``§``, ``||`` or a letter. An encoding must be one
of text that gives the characters of `_SAMPLE` back: ``cp1252`` is possible, ``hex`` is not.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from mechdesign.core.errors import InputError

_FORBIDDEN = "\r\n\0"
"""Characters that can neither delimit nor quote cells."""

_HOST_NAMES = ("idna", "punycode")
"""Codecs for names of computers, which are text encodings to Python."""

_SAMPLE = ',;"\r\nAa09\t'
"""Characters that every usable encoding must have."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How the text of a CSV file is read and written.

    Without `quote`, quotes are ordinary characters.
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        _require_character("delimiter", self.delimiter)
        if self.quote is not None:
            _require_character("quote", self.quote)
        if self.quote == self.delimiter:
            raise InputError(
                f"delimiter and quote ({self.quote!r}) must be different characters"
            )
        if not _is_text_encoding(self.encoding):
            raise InputError(
                f"encoding ({self.encoding!r}) must be a text encoding that Python knows, such as "
                "utf-8, utf-16 or cp1252"
            )


def _is_text_encoding(encoding: str) -> bool:
    """Whether Python knows an encoding of text by this name."""
    # Python also has codecs from bytes to bytes, such as hex and zip: they fail one of these steps.
    try:
        codecs.getincrementaldecoder(encoding)
        if codecs.lookup(encoding).name in _HOST_NAMES:
            return False
        return _SAMPLE.encode(encoding).decode(encoding) == _SAMPLE
    except (LookupError, UnicodeError, ValueError):
        return False


def _require_character(what: str, text: str) -> None:
    """Refuse all but one ASCII character that is no letter, digit, line end or NUL."""
    # One byte in UTF-8, which occurs in no other character: the splitter works on bytes.
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in _FORBIDDEN:
        raise InputError(
            f"{what} ({text!r}) must be one ASCII character, no letter, digit, line end or NUL"
        )
