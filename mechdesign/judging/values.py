"""The values of a released column, and which original ones each may stand for.

Releases of other tools have values that the original lacks: ``20-29``, ``[20, 30[``, ``>=65``,
``{a, b}``, ``*``. `covered` finds the original values that such a value stands for. A name such as
``Higher education`` cannot be read; where released rows are linked to records, it stands for the
values of the records that have it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.cell_forms import as_text
from mechdesign.leaks.learners import numbers_in

SUPPRESSED = ("*", "**", "***", "?*", "NA*", "NA")
"""Texts that stand for any value, unless the original has them as values."""

NUMBER = r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*"

INTERVALS = (
    # [20, 30[  (20; 30]  [20,30)
    re.compile(rf"^([\[\]\(]){NUMBER}[,;:]{NUMBER}([\[\]\)])$"),
    # 20-29, 20 - 29, 20..29: both ends belong to it
    re.compile(rf"^(){NUMBER}(?:-|–|\.\.){NUMBER}()$"),
)

OPEN_LOW = ("(", "]")
"""Brackets on the left that exclude the end."""

OPEN_HIGH = (")", "[")
"""Brackets on the right that exclude the end."""

ONE_SIDED = re.compile(rf"^(<=|>=|<|>|≤|≥){NUMBER}$")
PLUS = re.compile(rf"^{NUMBER}\+$")


def numbers_of(values: Sequence[str]) -> NDArray[np.float64] | None:
    """The values as numbers, NaN for an empty one; None where another is no finite number, or all
    are empty.
    """
    numbers = numbers_in(values)
    if numbers is None or np.isnan(numbers).all():
        return None
    return numbers


def covered(
    released: Sequence[str],
    original: Sequence[str],
    numbers: NDArray[np.float64] | None,
    pairs: tuple[Integers, Integers] | None,
) -> list[Integers]:
    """For each released value the places of the original values that it may stand for.

    Parameters
    ----------
    released, original : sequences of str
        The distinct values of the column in both files.
    numbers : array, optional
        The original values as numbers, if they are.
    pairs : two arrays of codes, optional
        Released and original value of linked records.
    """
    place_of = {value: place for place, value in enumerate(original)}
    covers: list[Integers] = []
    unread: list[int] = []
    nothing = np.zeros(0, np.int64)
    for place, value in enumerate(released):
        found = _read(value, place_of, numbers)
        if found is None and numbers is not None:
            # 40.0 for 40 is the same number. Another number, such as 40.3, is no code of the
            # values beside it: it is compared as a number.
            found = _same_number(value, numbers)
        if found is None:
            unread.append(place)
        covers.append(nothing if found is None else found)
    if unread and pairs is not None:
        after, before = pairs
        for place in unread:
            covers[place] = np.unique(before[after == place]).astype(np.int64)
    return covers


def _same_number(value: str, numbers: NDArray[np.float64]) -> Integers | None:
    """The places of the original values that are this number, if any; None for a text."""
    try:
        number = float(value)
    except ValueError:
        return None
    return np.flatnonzero(numbers == number)


def _read(
    value: str, place_of: dict[str, int], numbers: NDArray[np.float64] | None
) -> Integers | None:
    """The places that a value names; None where it cannot be read."""
    if value in place_of:
        return np.array([place_of[value]], np.int64)
    if value[:1] == "'" and value[1:] in place_of and as_text(value[1:]) == value:
        # A formula that was escaped for spreadsheets.
        return np.array([place_of[value[1:]]], np.int64)
    if value.strip() in SUPPRESSED or not value.strip():
        return np.arange(len(place_of))
    if value[0] == "{" and value[-1] == "}":
        parts = [part.strip() for part in value[1:-1].split(",")]
        if parts and all(part in place_of for part in parts):
            return np.unique([place_of[part] for part in parts]).astype(np.int64)
    if numbers is None:
        return None
    limits = _limits(value)
    if limits is None:
        return None
    low, high, has_low, has_high = limits
    above = numbers >= low if has_low else numbers > low
    below = numbers <= high if has_high else numbers < high
    return np.flatnonzero(above & below)


def _limits(value: str) -> tuple[float, float, bool, bool] | None:
    """The ends of an interval, and whether they belong to it."""
    text = value.strip()
    for form in INTERVALS:
        match = form.match(text)
        if match is not None:
            left, low, high, right = match.groups()
            return (
                float(low),
                float(high),
                left not in OPEN_LOW,
                right not in OPEN_HIGH,
            )
    match = ONE_SIDED.match(text)
    if match is not None:
        sign, end = match.groups()
        closed = sign in ("<=", ">=", "≤", "≥")
        if sign[0] in "<≤":
            return -np.inf, float(end), False, closed
        return float(end), np.inf, closed, False
    match = PLUS.match(text)
    if match is not None:
        return float(match.group(1)), np.inf, True, False
    return None
