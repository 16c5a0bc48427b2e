"""What the user of the page has chosen, as one frozen value, and its form.

Everything that the page computes, and the script, the command and the job file that compute the
same, come from a `Choice`; so they cannot differ in what they ask for. For example: ::

    Choice(roles={"job": "release", "age": "leave out", "health": "protect"}, factor="3")

protects health, releases job, and lets no value of health become more than 3 times, or less than
0.3334 times, as probable.

1. `choice_of_form` makes it from texts. Numbers stay texts, so that the page shows again what
   was typed, and recipes have the very digits.
2. `check_numbers` refuses numbers out of range, and `check` also roles and options that do not fit
   together.
3. `is_boxes` and `is_rows` decide which search designs it: boxes, else rows, else one column.
4. `notion` is the promise in nats: here eps_u = ln 3 = 1.0986 and eps_l = -ln 0.3334 = 1.0984.

*The form* has a list and a text for each column, numbered by its place, because the name of a
column may be any text: ::

    role-0=release  bins-0=        role-1=protect  bins-1=
    factor=2  objective=information  promise=total  missing=refuse  level=  merge_rare=
    time_limit=30  action=design

What a list sends is checked here (`_Form.one_of`),
because whoever has the address may send anything. Numbers are checked by `Choice.check_numbers`,
which has the limits. A field that is not sent has the default of the command line. One that is
refused stays as it was before, and all others are what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal

from mechdesign.core.arguments import finite_number
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.tables.people import RECORD

if TYPE_CHECKING:
    from mechdesign.notions import Notion
    from mechdesign.tables.joint import Joint


LEAVE_OUT = "leave out"
PROTECT = "protect"
RELEASE = "release"
GIVE = "give"
PERSON = "person"
ROLES = {
    LEAVE_OUT: "leave out",
    PROTECT: "protect",
    RELEASE: "release",
    GIVE: "give as it is",
    PERSON: "names a person",
}
"""Every role with its words on the page."""

INFORMATION = "information"
TRUTH = "truth"
OBJECTIVES = {
    INFORMATION: "most information",
    TRUTH: "most cells unchanged",
}
"""The words of both lists fit a window of 400 pixels."""

TOTAL = "total"
RELATIVE = "relative"
PROMISES = {
    TOTAL: "nothing",
    RELATIVE: "the given columns",
}

SYMBOL = "symbol"
MISSING = {
    "refuse": "refuse the table",
    SYMBOL: "a value of its own",
    "drop": "drop the record",
}

LEVELS = {
    "": "this table alone",
    "0.9": "the population, 90 % confidence",
    "0.95": "the population, 95 % confidence",
    "0.99": "the population, 99 % confidence",
}
"""Levels that the page offers; a form may send any other."""

MERGE_AUTO = "auto"
MERGES = {
    "": "stay values of their own",
    MERGE_AUTO: "are merged; the search chooses which",
    "10": "in fewer than 10 records are merged",
    "30": "in fewer than 30 records are merged",
    "100": "in fewer than 100 records are merged",
    "300": "in fewer than 300 records are merged",
}
"""What becomes of the rare values of the released column; a form may send any whole number."""

UNITS = {
    "": "one record each",
    RECORD: "several; each record has a promise of its own",
}
"""What people have, and so whom the promise is about."""

SMALLEST_FACTOR = Decimal("1.05")
LARGEST_FACTOR = Decimal(20)
FACTOR_STEP = Decimal("0.05")

SHARE_STEP = Decimal("0.0001")
"""The last digit of a lower factor; rounding it up promises more, never less."""


@dataclass(frozen=True)
class Choice:
    """A role for every column, the budget and the limits.

    Attributes
    ----------
    roles : dict of str to str
        Column to one of `ROLES`, in the order of the table.
    bins : dict of str to str
        Column to its bins, as ``--bin`` takes them, for released and given columns.
    factor : str
        No protected value becomes more than `factor` times, or less than 1/`factor` times, as
        probable. A number as it was typed, as are `level` and `time_limit`.
    level : str
        Confidence of the promise for the population; empty for a promise about the table.
    merge_rare : str
        Which values of one released column are merged, as ``--merge-rare`` takes it; empty for
        none. Needs a level.
    slice_seed : int, optional
        Repeats the draw of the slice that boxes were learned on; None for a new one.
    time_limit : str
        Seconds of the search.
    unit : str
        `RECORD` where the promise is knowingly about each record alone, although people have
        several; otherwise such a table is refused, as on the command line.
    """

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    bins: Mapping[str, str] = field(default_factory=dict[str, str])
    factor: str = "2"
    objective: str = TRUTH
    promise: str = TOTAL
    missing: Literal["refuse", "symbol", "drop"] = "refuse"
    level: str = ""
    merge_rare: str = ""
    time_limit: str = "30"
    slice_seed: int | None = None
    unit: str = ""

    def columns_with(self, role: str) -> tuple[str, ...]:
        """The columns of a role in the order of the table."""
        return tuple(name for name, other in self.roles.items() if other == role)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns to protect; several are crossed."""
        return self.columns_with(PROTECT)

    @property
    def released(self) -> tuple[str, ...]:
        """The columns to release."""
        return self.columns_with(RELEASE)

    @property
    def given(self) -> tuple[str, ...]:
        """The columns to release as they are."""
        return self.columns_with(GIVE)

    @property
    def person(self) -> tuple[str, ...]:
        """The columns that name a person, for whom all records have one promise together."""
        return self.columns_with(PERSON)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that a design reads."""
        return (*self.person, *self.sensitive, *self.given, *self.released)

    @property
    def is_rows(self) -> bool:
        """Whether whole rows are released: several columns, one beside given ones, or all records
        of a person.
        """
        # Given columns are part of a released row, so one column beside them makes a row, too.
        return len(self.released) > 1 or bool(self.given) or bool(self.person)

    @property
    def is_boxes(self) -> bool:
        """Whether boxes are learned on a slice: rows for the population, or merged rare values."""
        # Without a level no value is too rare, and rows need no boxes.
        return bool(self.level) and (self.is_rows or bool(self.merge_rare))

    @property
    def fills(self) -> bool:
        """Whether rows are released as values drawn inside of their box."""
        return self.is_boxes and self.objective == TRUTH

    @property
    def merge_below(self) -> int | None:
        """Records below which a value is rare; None where the search chooses."""
        if self.merge_rare in ("", MERGE_AUTO):
            return None
        return int(self.merge_rare)

    @property
    def used_bins(self) -> dict[str, str]:
        """The bins of the columns that are released or given."""
        bins: dict[str, str] = {}
        for name in (*self.given, *self.released):
            if self.bins.get(name):
                bins[name] = self.bins[name]
        return bins

    @property
    def design_arguments(self) -> dict[str, Any]:
        """The arguments of `md.design` beside its table and its notion."""
        arguments: dict[str, Any] = {"time_limit": self.seconds}
        if self.is_rows:
            arguments["release"] = list(self.released)
            arguments["given"] = list(self.given)
            arguments["promise"] = self.promise
        if self.used_bins:
            arguments["bins"] = self.used_bins
        if self.level:
            arguments["confidence"] = self.confidence
        if self.merge_rare:
            arguments["merge_rare"] = self.merge_below or self.merge_rare
        if self.fills:
            arguments["fill"] = True
        if self.slice_seed is not None:
            # Draws the same slice of the records again.
            arguments["slice_seed"] = self.slice_seed
        if not self.is_boxes:
            arguments["objective"] = self.objective
        return arguments

    @property
    def at_most_times(self) -> str:
        """The largest factor, without trailing zeros."""
        return f"{self._factor.normalize():f}"

    @property
    def at_least_times(self) -> str:
        """The smallest factor, 1/`factor` rounded up."""
        # Decimal, because the command and the job file have the very digits of the page.
        smallest = (1 / self._factor).quantize(SHARE_STEP, ROUND_CEILING)
        return f"{smallest.normalize():f}"

    @property
    def seconds(self) -> float:
        """The time limit as a number."""
        return float(self.time_limit)

    @property
    def confidence(self) -> float | None:
        """The level of the promise for the population, if one is asked for."""
        if not self.level:
            return None
        return float(self.level)

    @property
    def has_factor(self) -> bool:
        """Whether the factor is a number in range."""
        try:
            return SMALLEST_FACTOR <= self._factor <= LARGEST_FACTOR
        except InvalidOperation:
            return False

    @property
    def _factor(self) -> Decimal:
        """The largest factor as a number; `check_numbers` refuses any other text."""
        return Decimal(self.factor)

    def check_secret(self) -> None:
        """Refuse a choice that protects nothing."""
        if not self.sensitive:
            raise InputError("No column is protected: give one the role 'protect'.")

    def check(self) -> None:
        """Refuse a choice from which no channel can be designed."""
        # Numbers first: what follows reads them.
        self.check_numbers()
        self.check_secret()
        if not self.released:
            raise InputError("No column is released: give one the role 'release'.")
        if self.person:
            self._check_people()
        if self.merge_rare:
            self._check_merging()
        if self.is_rows:
            self._check_row_names()
        # Boxes are learned within each stratum, where the given columns are known.
        if self.is_rows and self.level and self.given and self.promise == TOTAL:
            raise InputError(
                "With given columns the promise for the population takes them as known: choose "
                "in step 3 that the given columns are known, or release them."
            )
        if self.promise == RELATIVE and not self.given:
            raise InputError(
                "The promise takes given columns as known, and no column is given: give one, or "
                "choose in step 3 that nothing is known."
            )

    def check_records(self, what: str) -> None:
        """Refuse what is made for records, and not for people with several."""
        if self.person:
            raise InputError(
                f"{what} is made for records, and a column names people with several: design the "
                "channel at once, or leave that column out."
            )

    def _check_people(self) -> None:
        """Refuse what the page does not design for all records of a person together."""
        if self.unit:
            raise InputError(
                "A column names people, so the promise is for all records of a person together: "
                "choose in step 3 one record each, or give that column another role."
            )
        if self.level:
            raise InputError(
                "For people with several records the page promises for this table alone: choose "
                "that in step 3. For the population use the command line (mechdesign design with "
                "--person and --confidence)."
            )

    def _check_merging(self) -> None:
        """Refuse a merging of rare values that no search does."""
        if self.is_rows:
            raise InputError(
                "Rare values are merged for one released column alone: let them stay, or release "
                "one column. Rows for the population are merged into boxes anyway."
            )
        if not self.level:
            raise InputError(
                "Rare values are merged for a promise that holds for the population: choose a "
                "population in step 3, or let them stay."
            )
        if self.objective == TRUTH:
            raise InputError(
                "Merged values are released as groups: keep most information, or let rare "
                "values stay."
            )

    def _check_row_names(self) -> None:
        """Refuse names that the command and the job file could not write."""
        # --release A,B*C has both signs between names, and no way to quote them.
        for name in (*self.given, *self.released):
            if "," in name or "*" in name:
                raise InputError(
                    f"The column {quoted(name)} has a comma or an asterisk in its name, which a "
                    "release of rows cannot have: rename it, or leave it out."
                )

    def check_numbers(self) -> None:
        """Refuse numbers out of range, whatever the roles."""
        if not self.has_factor:
            raise InputError(
                f"The factor must be a number from {SMALLEST_FACTOR} to {LARGEST_FACTOR}."
            )
        if not _is_within(self.time_limit, 1.0, 86_400.0):
            raise InputError(
                "The time limit must be a number of seconds from 1 to 86400."
            )
        # `isdigit` alone also takes digits of other scripts.
        is_number = self.merge_rare.isascii() and self.merge_rare.isdigit()
        if self.merge_rare not in MERGES and not is_number:
            raise InputError(
                "Rare values are those of fewer than a whole number of records."
            )
        if self.level and not _is_within(self.level, 0.5, 0.9999):
            raise InputError("The level must be a number from 0.5 to 0.9999.")

    def notion(self, joint: Joint) -> Notion:
        """The promise in nats: that no lift leaves the two factors."""
        import mechdesign as md

        return md.budget_for(
            joint,
            at_most_times=self.at_most_times,
            at_least_times=self.at_least_times,
        )


def _is_within(text: str, low: float, high: float) -> bool:
    """Whether a text is a number from `low` to `high`."""
    number = finite_number(text)
    return number is not None and low <= number <= high


# --------------------------------------------------------------------------------- form

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
