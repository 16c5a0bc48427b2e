"""Points that separate thousands: '1.200' of a German export is 1200, and is read as 1.2.

No number of the column contradicts it, so nothing fails, and bins, means and ranges are wrong by a
factor of a thousand where the point stands. What gives it away:

- every number with a point has three digits behind it, one to three before it, no leading zero;
- no number without a point has four digits or more, for it would have a point;
- and one of these: a number has two points; another column has decimal commas; or numbers below
  1000 have no point while another one ends in 0, as 850 beside 1.200. A program that writes three
  decimals writes 850.000, and one that leaves out zeros at the end writes 1.2.

For example, 850, 1.200 and 12.345 are such numbers. 0.250, 1.5 and 1.2345 are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATED = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+", re.ASCII)
_BELOW_THOUSAND = re.compile(r"[+-]?\d{1,3}", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)
_DIGIT = re.compile(r"\d", re.ASCII)

FEWEST = 2
"""Different numbers with a point, or with a comma, below which it may be chance."""

REMEDY = (
    "with points that look like separators of thousands (1.200 is read as 1.2): write such numbers "
    "without them (1200), and with a point for the decimals"
)
"""What is wrong, and what to do, behind 'the column holds numbers'."""


class ThousandsPoints:
    """What the texts of a column, in any number of parts, say about the points of its numbers."""

    def __init__(self) -> None:
        self._is_contradicted = False
        self._separated: set[str] = set()
        self._has_two_points = False
        self._ends_in_zero = False
        self._has_small = False

    def add(self, texts: Iterable[str]) -> None:
        """Look at more texts; those without a digit, such as ``NA``, say nothing."""
        if self._is_contradicted:
            return
        for text in texts:
            written = text.strip()
            if _SEPARATED.fullmatch(written):
                self._add_separated(written)
            elif _BELOW_THOUSAND.fullmatch(written):
                self._has_small = True
            elif _DIGIT.search(written):
                self._is_contradicted = True
                return

    def _add_separated(self, written: str) -> None:
        """Note a number with points."""
        if len(self._separated) < FEWEST:
            self._separated.add(written)
        if written.count(".") > 1:
            self._has_two_points = True
        if written.endswith("0"):
            self._ends_in_zero = True

    def join(self, other: ThousandsPoints) -> None:
        """Take over what another part of the column says."""
        self._is_contradicted |= other._is_contradicted
        self._separated |= other._separated
        self._has_two_points |= other._has_two_points
        self._ends_in_zero |= other._ends_in_zero
        self._has_small |= other._has_small

    def remedy(self, *, has_decimal_commas: bool = False) -> str | None:
        """What to do about the points; None if they look like decimal ones.

        Parameters
        ----------
        has_decimal_commas : bool
            Whether another column of the same table has numbers with decimal commas.
        """
        if self._is_contradicted or len(self._separated) < FEWEST:
            return None
        is_mixed = self._has_small and self._ends_in_zero
        if self._has_two_points or has_decimal_commas or is_mixed:
            return REMEDY
        return None


def thousands_remedy(
    texts: Iterable[str], others: Iterable[Iterable[str]] = ()
) -> str | None:
    """What to do about the points of a column's numbers; None if they look like decimal ones.

    `others` are the texts of the other columns, in which decimal commas are looked for.
    """
    points = ThousandsPoints()
    points.add(texts)
    found = points.remedy()
    # The other columns are long, and matter only where this one leaves it open.
    if found is None and points.remedy(has_decimal_commas=True) is not None:
        has_commas = any(map(has_decimal_commas, others))
        found = points.remedy(has_decimal_commas=has_commas)
    return found


def has_decimal_commas(texts: Iterable[str]) -> bool:
    """Whether all numbers with a comma, and several, have one as a decimal comma."""
    found: set[str] = set()
    for text in texts:
        written = text.strip()
        if _DECIMAL_COMMA.fullmatch(written):
            if len(found) < FEWEST:
                found.add(written)
        elif _DIGIT.search(written) and not _is_whole(written):
            return False
    return len(found) >= FEWEST


def _is_whole(written: str) -> bool:
    """Whether a text is a whole number, with or without separators of thousands."""
    return written.lstrip("+-").isdecimal() or bool(_SEPARATED.fullmatch(written))
