"""The format of CSV text: delimiter, quote and encoding.

`TextOptions` refuses what the splitter could not read right. Delimiter and quote are single bytes
for it, so ``;`` and a tab are possible, but not ``§``, ``||`` or a letter. An encoding must be one
of text that gives the characters of `_SAMPLE` back: ``cp1252`` is possible, ``hex`` is not.
"""

from __future__ import annotations

import codecs
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from mechdesign.core.errors import InputError

AUTO = "auto"
"""The lines above the header are those that look like titles or comments."""

_FORBIDDEN = "\r\n\0"
"""Characters that can neither delimit nor quote cells."""

_HOST_NAMES = ("idna", "punycode")
"""Codecs for names of computers, which are text encodings to Python."""

_SAMPLE = ',;"\r\nAa09\t'
"""Characters that every usable encoding must have."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How the text of a CSV file is read and written.

    Without `quote`, quotes are ordinary characters. `skip_lines` are passed over above the header;
    "auto" takes those that look like titles or comments.
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"
    skip_lines: int | Literal["auto"] = 0

    def __post_init__(self) -> None:
        _require_character("delimiter", self.delimiter)
        if self.quote is not None:
            _require_character("quote", self.quote)
        if self.quote == self.delimiter:
            raise InputError(
                f"delimiter and quote ({self.quote!r}) must be different characters"
            )
        is_number = type(self.skip_lines) is int and self.skip_lines >= 0
        if self.skip_lines != AUTO and not is_number:
            raise InputError(
                f"--skip-lines ({self.skip_lines!r}) must be a number of lines, or auto"
            )
        if not _is_text_encoding(self.encoding):
            raise InputError(
                f"encoding ({self.encoding!r}) must be a text encoding that Python knows, such as "
                "utf-8, utf-16 or cp1252"
            )

    def record(self) -> dict[str, Any]:
        """The options as plain values; lines that are skipped only where there are some."""
        values = asdict(self)
        # Records of files without them have no such key.
        if not self.skip_lines:
            del values["skip_lines"]
        return values

    @property
    def of_output(self) -> TextOptions:
        """How a file is read that was written in this way: it begins with its header."""
        return replace(self, skip_lines=0)


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
