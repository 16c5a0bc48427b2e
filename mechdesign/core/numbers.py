"""Numbers from the outside world as exact rationals, and quoting for error messages."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np

from mechdesign.core.errors import InputError

MOST_QUOTED = 60
"""Longest text, in characters, that an error message repeats in full."""

LARGEST_EXPONENT = 400
"""Largest power of ten, either way, of a number read from text: it covers every double, and keeps
'1e999999999' from being written out as an integer of a billion digits."""

LONGEST_NUMBER = 1000
"""Longest text of a number, in characters; more digits than this are not a measurement."""

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_NOT_FINITE = {"nan", "inf", "infinity"}


def quoted(value: object) -> str:
    """`value` as an error message shows it: quoted, control characters escaped, cut when long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 3] + "...")


def listed(values: Sequence[str], most: int = 8) -> str:
    """Quoted values with commas between them, the rest of a long list as a number."""
    shown = ", ".join(quoted(v) for v in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def fraction_of_text(text: str) -> Fraction:
    """The exact value of a decimal number such as ``12``, ``-0.25`` or ``1e-3``.

    Blanks around the number are ignored; thousands separators, ``1/3``, hexadecimal and the like are not numbers here.
    """
    body = text.strip(" \t")
    if body.lower().lstrip("+-") in _NOT_FINITE:
        raise InputError(f"{quoted(body)} is not a finite number")
    if len(body) > LONGEST_NUMBER or not _DECIMAL.fullmatch(body):
        raise InputError(f"{quoted(text)} is not a number" if body else "the cell is empty")
    return _fraction_of_decimal(Decimal(body))


def _fraction_of_decimal(value: Decimal) -> Fraction:
    if not value.is_finite():
        raise InputError(f"{quoted(value)} is not a finite number")
    exponent = value.as_tuple().exponent
    if value and (value.adjusted() > LARGEST_EXPONENT or int(exponent) < -2 * LARGEST_EXPONENT):
        raise InputError(f"{quoted(value)} is too large or too small to be kept exactly")
    return Fraction(value) if value else Fraction(0)


def fraction_of(value: Any) -> Fraction:
    """The exact rational value of a number; a float is what its bits say (`float.as_integer_ratio`)."""
    if type(value) in (bool, np.bool_):
        raise InputError(f"{quoted(value)} is a truth value, not a number")
    if isinstance(value, numbers.Rational):  # integers and fractions, numpy's too
        return Fraction(int(cast("Any", value).numerator), int(cast("Any", value).denominator))
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise InputError(f"{quoted(value)} is not a finite number")
        return Fraction(*cast("Any", value).as_integer_ratio())
    if isinstance(value, Decimal):
        return _fraction_of_decimal(value)
    if isinstance(value, str):
        return fraction_of_text(value)
    raise InputError(f"{quoted(value)} is not a number")
