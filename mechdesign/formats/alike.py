"""Texts that look alike: they differ in blanks, in their Unicode form, in signs without width, or
in the minus of a zero.

``clerk`` and ``clerk`` with a blank behind it are two symbols, and so are an accented letter that
is one character and the same as two. A table that has both hardly ever means both. `alike_groups`
finds them by what a reader sees (`look`), and `remedy` names the option that makes them one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from mechdesign.core.wording import seen
from mechdesign.formats.cell_forms import CellForm

SHOWN_GROUPS = 3
"""Groups of symbols that a notice names."""

_REMEDIES = (
    (CellForm(trim=True), "--trim"),
    (CellForm(normalise="NFC"), "--normalise NFC"),
    (CellForm(normalise="NFC", trim=True), "--normalise NFC --trim"),
    (CellForm(normalise="NFKC", trim=True), "--normalise NFKC --trim"),
)
"""Options in the order in which they are tried: the one that changes least comes first."""


TYPED = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
"""Apostrophes, quotes and dashes that word processors and telephones write for those of a keyboard:
they make two people of one O'Neil."""

MINUS_ZERO = re.compile(r"-(0+(\.0*)?)")
"""A zero with a minus, which rounding writes: one number and two symbols."""


def look(text: str) -> str:
    """What a reader sees of a text."""
    if zero := MINUS_ZERO.fullmatch(text):
        return zero[1]
    # Nearly every text is its own look.
    if text.isascii() and "  " not in text and text == text.strip():
        return text
    kept: list[str] = []
    # Before the normal form, which makes a blank and an accent of an acute.
    for character in unicodedata.normalize("NFKC", text.translate(TYPED)):
        # Signs without width, such as the zero-width space and the soft hyphen.
        if unicodedata.category(character) != "Cf":
            kept.append(character)
    return " ".join("".join(kept).split())


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
