"""The choice that a form of the page sends.

The form has a list and a text for each column, numbered by its place, because the name of a column
may be any text: ::

    role-0=release  bins-0=        role-1=protect  bins-1=
    factor=2  objective=information  promise=total  missing=refuse  level=  merge_rare=
    time_limit=30  action=design

`choice_of_form` makes a `Choice` of these. What a list sends is checked here (`_Form.one_of`),
because whoever has the address may send anything. Numbers are checked by `Choice.check_numbers`,
which has the limits. A field that is not sent has the default of the command line. One that is
refused stays as it was before, and all others are what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mechdesign.app.choice import (
    LEAVE_OUT,
    MISSING,
    OBJECTIVES,
    PROMISES,
    ROLES,
    UNITS,
    Choice,
)
from mechdesign.core.wording import quoted

MOST_DIGITS = 60
"""Digits of a number in a form."""

LONG_NUMBER = re.compile(rf"\d[\d._]{{{MOST_DIGITS},}}", re.ASCII)
"""Matches a number of more digits."""


def choice_of_form(
    columns: tuple[str, ...], form: Mapping[str, str], before: Choice
) -> tuple[Choice, str]:
    """The choice of a form for a table with these columns, and why a field of it was refused.

    Parameters
    ----------
    columns : tuple of str
        In the order of the file.
    form : mapping
        What the browser sends.
    before : Choice
        Has the values of refused fields.
    """
    fields = _Form(form)
    roles: dict[str, str] = {}
    bins: dict[str, str] = {}
    for number, name in enumerate(columns):
        old = before.roles.get(name, LEAVE_OUT)
        field = f"role-{number}"
        roles[name] = fields.one_of(ROLES, field, f"Role of {name}", LEAVE_OUT, old)
        old = before.bins.get(name, "")
        bins[name] = fields.numbers(f"bins-{number}", f"Bins of {name}", "", old)
    usual = Choice()

    def listed(field: str, allowed: Mapping[str, str], title: str) -> Any:
        default = getattr(usual, field)
        return fields.one_of(allowed, field, title, default, getattr(before, field))

    def typed(field: str, title: str) -> str:
        default = getattr(usual, field)
        return fields.numbers(field, title, default, getattr(before, field))

    choice = Choice(
        roles=roles,
        bins=bins,
        factor=typed("factor", "Factor"),
        objective=listed("objective", OBJECTIVES, "Keep"),
        promise=listed("promise", PROMISES, "Known before"),
        missing=listed("missing", MISSING, "Empty cells"),
        level=typed("level", "Holds for"),
        merge_rare=typed("merge_rare", "Rare values"),
        time_limit=typed("time_limit", "Seconds"),
        unit=listed("unit", UNITS, "People have"),
    )
    return choice, fields.refusal


class _Form:
    """The fields of a form; `refusal` is about the first one that cannot be used."""

    def __init__(self, form: Mapping[str, str]) -> None:
        self._form = form
        self.refusal = ""

    def numbers(self, field: str, title: str, default: str, before: str) -> str:
        """A text with numbers, none of which is longer than any that makes sense."""
        text = self._form.get(field, default).strip()
        # Python refuses to read integers of thousands of digits, and fractions of them take
        # minutes.
        if LONG_NUMBER.search(text):
            return self._refuse(
                f"{title}: a number has more than {MOST_DIGITS} digits: write a shorter one",
                before,
            )
        return text

    def one_of(
        self,
        allowed: Mapping[str, str],
        field: str,
        title: str,
        default: str,
        before: str,
    ) -> str:
        """A value of a list."""
        value = self._form.get(field, default)
        if value not in allowed:
            return self._refuse(
                f"{title}: {quoted(value)} is none of {', '.join(allowed)}", before
            )
        return value

    def _refuse(self, text: str, before: str) -> str:
        """Note the first refusal; the value before."""
        self.refusal = self.refusal or text
        return before
