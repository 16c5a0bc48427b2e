"""The plain spelling of identifiers: 17 for 017, 17.0, +17 and " 17", P1 for P001.

A spreadsheet drops leading zeros, a file system writes accents as characters of their own, and a
person has one more name. `plain_spelling` makes one text of all of them: first in one Unicode form
(NFKC) and without signs that have no width, then by replacements one after the other (`STEPS`):
" 017.0" becomes "017.0", then "017", then "17".
"""

from __future__ import annotations

from typing import Any

UNUSUAL = (
    r"^[\s\x{A0}\x{FEFF}]|[\s\x{A0}]$|^\+[0-9]|^-?0[0-9]+(\.0*)?$|^-?[0-9]+\.0*$"
    r"|^[A-Za-z]+[-_ ]?0+[0-9]+$|[^\x00-\x7F]"
)
"""Matches every text that is not in its plain spelling, and perhaps others."""

UNSEEN = r"[\x{AD}\x{200B}-\x{200F}\x{2060}\x{FEFF}]"
"""Signs without width."""

STEPS = (
    (UNSEEN, ""),
    (r"[\x{2018}\x{2019}\x{201B}\x{02BC}\x{2032}]", "'"),
    (r"[\x{2010}-\x{2015}\x{2212}]", "-"),
    (r"^[\s\x{A0}\x{FEFF}]+|[\s\x{A0}]+$", ""),
    (r"^\+([0-9])", r"\1"),
    (r"^(-?[0-9]+)\.0*$", r"\1"),
    (r"^(-?)0+([0-9]+)$", r"\1\2"),
    (r"^([A-Za-z]+[-_ ]?)0+([0-9]+)$", r"\1\2"),
)
"""Replacements one after the other: apostrophes and dashes as a keyboard has them, blanks around, a
plus, .0, and zeros before a number, also after letters (P001).
"""


def plain_spelling(texts: Any) -> Any | None:
    """A pyarrow array of texts in their plain spelling; None where they all are."""
    # There are no stubs of this module.
    import pyarrow.compute  # pyright: ignore[reportMissingTypeStubs]

    pc: Any = pyarrow.compute

    # One pass decides for nearly all columns that nothing has to be replaced.
    unusual = pc.match_substring_regex(texts, UNUSUAL)
    if not pc.any(unusual).as_py():
        return None
    plain = pc.utf8_normalize(texts, form="NFKC")
    for pattern, replacement in STEPS:
        plain = pc.replace_substring_regex(plain, pattern, replacement)
    return plain
