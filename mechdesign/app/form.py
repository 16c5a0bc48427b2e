"""The choice that a form of the page sends.

The form has a list and a text for each column, numbered by its place, because the name of a column
may be any text: ::

    role-0=release  bins-0=        role-1=protect  bins-1=
    factor=2  objective=information  promise=total  missing=refuse  level=  merge_rare=
    time_limit=30  action=design

`choice_of_form` makes a `Choice` of these. What a list sends is checked here (`_one_of`), because
whoever has the address may send anything. Numbers are checked by `Choice.check_numbers`, which has
the limits. A field that is not sent has the default of the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mechdesign.app.choice import (
    INFORMATION,
    LEAVE_OUT,
    MISSING,
    OBJECTIVES,
    PROMISES,
    ROLES,
    TOTAL,
    Choice,
)
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

MOST_DIGITS = 60
"""Digits of a number in a form."""

LONG_NUMBER = re.compile(rf"\d[\d._]{{{MOST_DIGITS},}}", re.ASCII)
"""Matches a number of more digits."""


def choice_of_form(columns: tuple[str, ...], form: Mapping[str, str]) -> Choice:
    """The choice of a form for a table with these columns, in the order of the file."""
    roles: dict[str, str] = {}
    bins: dict[str, str] = {}
    for number, name in enumerate(columns):
        roles[name] = _one_of(ROLES, form.get(f"role-{number}", LEAVE_OUT), "role")
        bins[name] = _numbers(form, f"bins-{number}", "")
    missing: Any = _one_of(MISSING, form.get("missing", "refuse"), "empty cells")
    return Choice(
        roles=roles,
        bins=bins,
        factor=_numbers(form, "factor", "2"),
        objective=_one_of(OBJECTIVES, form.get("objective", INFORMATION), "objective"),
        promise=_one_of(PROMISES, form.get("promise", TOTAL), "promise"),
        missing=missing,
        level=_numbers(form, "level", ""),
        merge_rare=_numbers(form, "merge_rare", ""),
        time_limit=_numbers(form, "time_limit", "30"),
    )


def _numbers(form: Mapping[str, str], field: str, default: str) -> str:
    """A text with numbers, none of which is longer than any that makes sense."""
    text = form.get(field, default).strip()
    # Python refuses to read integers of thousands of digits, and fractions of them take minutes.
    if LONG_NUMBER.search(text):
        raise InputError(
            f"a number has more than {MOST_DIGITS} digits: write a shorter one"
        )
    return text


def _one_of(allowed: Mapping[str, str], value: str, field: str) -> str:
    """A value of a list; InputError with the name of its field for any other."""
    if value not in allowed:
        raise InputError(f"{field}: {quoted(value)} is none of {', '.join(allowed)}")
    return value
