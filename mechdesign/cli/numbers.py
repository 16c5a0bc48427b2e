"""Numbers as people type them after an option."""

from __future__ import annotations

import math

from mechdesign.core.errors import InputError


def number(option: str, text: str, *, zero: bool = False) -> float:
    """A finite positive number, or 0 where `zero` allows it.

    Raises
    ------
    InputError
        On anything else.
    """
    allowed = "a number of at least 0" if zero else "a positive number"
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{option} ({text!r}) must be {allowed}") from None
    if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
        raise InputError(f"{option} ({text}) must be {allowed}")
    return value


def randomisation_of(text: str) -> str | list[float]:
    """`merge`, `uniform` or whatever word it is; a list of numbers where it begins like one.

    Raises
    ------
    InputError
        If the list has an entry that is no number.
    """
    if "," not in text and not text.strip()[:1].isdigit():
        return text
    values: list[float] = []
    for part in text.split(","):
        try:
            values.append(float(part))
        except ValueError:
            raise InputError(
                f"--randomisation {text!r} contains {part!r}, which is no number; write merge, uniform or 0.5,0.3,0.2"
            ) from None
    return values
