"""Other spellings of the text of a cell: plain ones of identifiers, no formulas, and looks.

*Plain spelling* of identifiers: 17 for 017, 17.0, +17 and " 17", P1 for P001. A spreadsheet drops
leading zeros, a file system writes accents as characters of their own, and a person has one more
name. `plain_spelling` makes one text of all of them: first in one Unicode form (NFKC) and without
signs that have no width, then by replacements one after the other (`STEPS`): " 017.0" becomes
"017.0", then "017", then "17".

*Formulas* are cells that a spreadsheet would compute. The first character decides, except that
numbers with a sign are no formulas: ``=1+2`` becomes ``'=1+2`` and ``+49 30`` becomes ``'+49 30``,
but ``-5`` and ``+1.5e3`` stay.

*Texts that look alike* differ in blanks, in their Unicode form, or in signs without width.
``clerk`` and ``clerk`` with a blank behind it are two symbols, and so are an accented letter that
is one character and the same as two. A table that has both hardly ever means both. `alike_groups`
finds them by what a reader sees (`look`), and `remedy` names the option that makes them one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mechdesign.core.wording import look, seen
from mechdesign.formats.cells import CellForm

# ----------------------------------------------------------------------- plain spelling

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


# ----------------------------------------------------------------------------- formulas

FORMULAS = "=+-@\t\r"
"""First characters of a cell that a spreadsheet takes for a formula."""

NUMBER = r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?%?"
"""Pattern of numbers, which may begin with a sign and are no formulas, for pyarrow and Python."""


def as_text(cell: str) -> str:
    """A cell that is a formula gets an apostrophe before it; others stay."""
    if cell and cell[0] in FORMULAS and not re.fullmatch(NUMBER, cell):
        return f"'{cell}"
    return cell


def csv_as_text(text: str) -> str:
    """A CSV with commas, as this program writes one, whose formulas have an apostrophe before
    them.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in csv.reader(io.StringIO(text, newline="")):
        writer.writerow([as_text(cell) for cell in row])
    return out.getvalue()


# ---------------------------------------------------------------- texts that look alike

SHOWN_GROUPS = 3
"""Groups of symbols that a notice names."""

_REMEDIES = (
    (CellForm(trim=True), "--trim"),
    (CellForm(normalise="NFC"), "--normalise NFC"),
    (CellForm(normalise="NFC", trim=True), "--normalise NFC --trim"),
    (CellForm(normalise="NFKC", trim=True), "--normalise NFKC --trim"),
)
"""Options in the order in which they are tried: the one that changes least comes first."""


def alike_groups(texts: Iterable[str]) -> list[tuple[str, ...]]:
    """The different texts that look the same, each group in order; empty texts are left out."""
    first_of: dict[str, str] = {}
    # Only looks of several texts get a set of their own: a column can have a million texts.
    groups: dict[str, set[str]] = {}
    for text in texts:
        if not text:
            continue
        seen_as = look(text)
        first = first_of.setdefault(seen_as, text)
        if first != text:
            groups.setdefault(seen_as, {first}).add(text)
    return sorted(tuple(sorted(group)) for group in groups.values())


def remedy(groups: Sequence[Sequence[str]]) -> str:
    """What makes the texts of every group one symbol."""
    for form, options in _REMEDIES:
        if all(len(set(map(form.text, group))) == 1 for group in groups):
            return f"make them one with {options}, or correct the file"
    return "correct them in the file"


def alike_notice(column: str, texts: Iterable[str]) -> str | None:
    """A notice about the symbols of a column that look alike; None if there are none."""
    groups = alike_groups(texts)
    if not groups:
        return None
    shown = "; ".join(" and ".join(map(seen, group)) for group in groups[:SHOWN_GROUPS])
    if len(groups) > SHOWN_GROUPS:
        shown += f"; and {len(groups) - SHOWN_GROUPS:,} more"
    return (
        f"the column {seen(column)} has symbols that look alike and are different ones: {shown}; "
        f"{remedy(groups)}"
    )
