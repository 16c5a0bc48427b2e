"""The options of a release of rows: `RowColumns` of `compare`, `RowOptions` of `design`.

``--release A,B --given D`` releases the columns A and B of every record as a row of the table, and
the column D as it is. ``--release all`` releases every column but the sensitive ones, those of
``--given`` and those of ``--leave-out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from mechdesign.cli import parsing, table_options
from mechdesign.cli.line import flag, option
from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted

if TYPE_CHECKING:
    import mechdesign as md

TOTAL = "total"
"""The promise that compares with knowing nothing."""

ALL = "all"
"""Every column of the table that has no other role."""


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """Release rows"""

    release: list[str] | None = option(
        "COL[,COL..]|all",
        "Release rows of these columns under one promise; each column is written by itself. all: "
        "every column but the sensitive and left-out ones.",
    )
    given: list[str] | None = option(
        "COL[,COL..]", "Columns released as they are, with --release."
    )
    leave_out: list[str] | None = option(
        "COL[,COL..]", "With --release all: columns that are not released."
    )
    promise: str = option(
        "WHICH",
        "With --given: total (compared with knowing nothing) or relative (compared "
        "with knowing the given columns).",
        "total",
    )

    @property
    def asked(self) -> bool:
        """True if rows are to be released."""
        return self.release is not None

    def given_columns(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        return _names("--given", self.given)

    def released_columns(self, table: table_options.InputTable) -> tuple[str, ...]:
        """The columns that are released as rows; of ``all`` those that the table has.

        Raises
        ------
        InputError
            If a column has two roles.
        """
        released = _names("--release", self.release)
        left_out = _names("--leave-out", self.leave_out)
        given = self.given_columns()
        secrets = _secrets(table)
        if released == (ALL,):
            header = table.header()
            # One name with commas in it, or several: the table decides.
            text = table.sensitive or ""
            hidden = {text} if text in header else set(text.split(","))
            taken = {
                *hidden,
                *given,
                *left_out,
                *self.not_released(),
                *((table.weight,) if table.weight else ()),
            }
            unknown = [name for name in left_out if name not in header]
            if unknown:
                raise InputError(
                    f"--leave-out: the table has no column {listed(unknown)}"
                )
            released = tuple(name for name in header if name not in taken)
            if not released:
                raise InputError("--release all leaves no column to release")
            return released
        if left_out:
            raise InputError(
                "--leave-out belongs to --release all; otherwise only the columns that --release "
                "names are released"
            )
        for name in (*released, *given):
            if name in secrets:
                raise InputError(
                    f"the sensitive column {quoted(name)} cannot be released or given; leave it "
                    "out of --release and --given (by itself --useful releases it, its own values "
                    "protected)"
                )
        twice = repeated((*released, *given))
        if twice is not None:
            raise InputError(
                f"the column {quoted(twice)} is released twice; name it once in --release, or in "
                "--given"
            )
        return released

    def not_released(self) -> tuple[str, ...]:
        """Columns with another role, which ``--release all`` leaves out."""
        return ()

    def check_table(self, table: table_options.InputTable) -> None:
        """Refuse tables without single records, and columns named in two ways."""
        if table.contingency or table.probabilities:
            raise InputError(
                "--release takes a table of records (or long counts with --weight), not "
                "--contingency or --probabilities"
            )
        if table.useful is not None:
            raise InputError(
                "--release names the columns to release: leave --useful out"
            )


def _names(name: str, texts: list[str] | None) -> tuple[str, ...]:
    """Columns from the values of an option, each of which may name several."""
    names: list[str] = []
    for text in texts or ():
        columns = parsing.columns(name, text) or ()
        names += columns.split(",") if isinstance(columns, str) else columns
    return tuple(names)


def _secrets(table: table_options.InputTable) -> tuple[str, ...]:
    """The sensitive columns, in either reading of their text."""
    secrets = parsing.columns("--sensitive", table.sensitive) or ()
    if isinstance(secrets, str):
        return (secrets, *secrets.split(","))
    return secrets


@dataclass(frozen=True, kw_only=True)
class RowOptions(RowColumns):
    """Release rows"""

    person: list[str] | None = option(
        "COL[,COL..]",
        "With --release: the column(s) that name a person with several records. The promise is "
        "then about all records of a person together.",
    )
    wave: str | None = option(
        "COL", "With --person: the column that orders a person's records."
    )
    sensitive_of: str = option(
        "WHAT",
        "With --person: person (the secret is one value of a person) or sequence (of its values "
        "in all records).",
        "person",
    )

    never: list[str] | None = option(
        "A=a,B=b",
        "With --release: a combination of cells that is never released; may be repeated.",
    )
    column_weight: list[str] | None = option(
        "COL=W",
        "With --release: what a changed cell of a column costs, in proportion (default 1); may be "
        "repeated.",
    )
    smallest_group: str | None = option(
        "K",
        "With --release: only rows that at least K records have are released, each at least K "
        "times (default: 5 where such rows hold half of the records, else 1).",
    )
    known: list[str] | None = option(
        "COL[,COL..]",
        "With --smallest-group: the columns that an outsider can know; default: all released.",
    )
    cells: str | None = option(
        "N",
        "With --release and --confidence: number of boxes of rows; by default a slice "
        "of the records chooses.",
    )
    rare: str | None = option(
        "auto|N",
        "With --confidence, and --release or --merge-rare: sensitive values of fewer records are "
        "promised together; auto (--merge-rare) takes the fewest with which half is kept.",
    )
    fill: bool = flag(
        "With --release and --confidence: release rows of the table drawn within the released box."
    )

    slice_seed: str | None = option(
        "N",
        "With --confidence, and --release or --merge-rare: repeat the draw of the slice of an "
        "earlier design. Do not choose it by its result.",
    )

    merge_rare: str | None = option(
        "auto|N",
        "With --useful and --confidence: merge useful symbols on a tenth of the "
        "records, and prove the promise on the others; auto chooses the sets, N "
        "merges symbols of fewer than N records.",
    )

    def not_released(self) -> tuple[str, ...]:
        """Columns with another role, which ``--release all`` leaves out."""
        wave = () if self.wave is None else (self.wave,)
        return (*self.person_columns(), *wave)

    def person_columns(self) -> tuple[str, ...]:
        """The columns that name a person; none where each record is one of its own."""
        return _names("--person", self.person)

    def people(
        self,
        table: table_options.InputTable,
        columns: tuple[str, ...],
        earlier: Sequence[md.Channel] = (),
    ) -> md.Joint:
        """The table of people, whose records have these given and released columns, and those of
        earlier releases.
        """
        from mechdesign.mechanisms import combinations
        from mechdesign.mechanisms.people_request import bins_of_people
        from mechdesign.tables.people_tables import PeopleRoles, read_people
        from mechdesign.tables.reading import columns_named

        if table.weight:
            combinations.check(combinations.PEOPLE, {"weight": "--weight"})
        header = table.header()
        sensitive = parsing.columns("--sensitive", table.sensitive)
        if sensitive is None:
            raise InputError("--sensitive COL is missing: which column?")
        given = self.given_columns()
        roles = PeopleRoles(
            person=columns_named(self.person_columns(), header),
            wave=self.wave,
            sensitive=columns_named(sensitive, header),
            released=columns_named(columns[len(given) :], header),
            given=columns_named(given, header),
            # `People` refuses any other word.
            sensitive_of=cast("Any", self.sensitive_of),
            bins=bins_of_people(parsing.bins_of(table.bins), columns),
        )
        roles = roles.widened([channel.useful for channel in earlier])
        joint = read_people(
            table.table, roles, table.missing, table.text(), table.cell_form()
        )
        return joint.protecting_each() if table.protect_each else joint

    @property
    def merging(self) -> bool:
        """Whether symbols of one column are to be merged."""
        return self.merge_rare is not None

    def refuse_alone(self) -> None:
        """Refuse options of rows without --release."""
        # --merge-rare has two of these options in common with --release.
        only_of_rows = self
        if self.merging:
            only_of_rows = replace(self, merge_rare=None, rare=None, slice_seed=None)
        if only_of_rows != type(self)() and not self.asked:
            raise InputError(
                "--given, --leave-out, --promise, --person, --wave, --sensitive-of, --never, "
                "--column-weight, --smallest-group, --known, --cells, --rare, --slice-seed and "
                "--fill belong to a release of rows: give --release COL,.. too"
            )
        if self.person is None and (self.wave or self.sensitive_of != "person"):
            raise InputError(
                "--wave and --sensitive-of belong to people with several records: give --person "
                "COL too"
            )

    def on(self) -> dict[str, Any]:
        """The fields of a request that these options set, but for the columns."""
        return {
            "promise": self.promise,
            "never": self.combinations(),
            "column_weights": self.weights(),
            "smallest_group": self.count("--smallest-group", self.smallest_group),
            "known": _names("--known", self.known),
            "cells": self.count("--cells", self.cells),
            "merge_rare": self.count_or_auto("--merge-rare", self.merge_rare),
            "rare": self.count_or_auto("--rare", self.rare),
            "fill": self.fill,
            "slice_seed": self.count("--slice-seed", self.slice_seed),
        }

    def combinations(self) -> list[dict[str, str]]:
        """The combinations of cells that are never released."""
        return [_assignments("--never", text) for text in self.never or ()]

    def weights(self) -> dict[str, str] | None:
        """The weight of each column that has one of its own."""
        weights: dict[str, str] = {}
        for text in self.column_weight or ():
            weights |= _assignments("--column-weight", text)
        return weights or None

    def count_or_auto(self, name: str, text: str | None) -> int | str | None:
        """A whole number among the options, or the word auto."""
        return text if text == "auto" else self.count(name, text)

    def count(self, name: str, text: str | None) -> int | None:
        """A whole number among the options."""
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise InputError(
                f"{name} ({quoted(text)}) must be a whole number"
            ) from None


def _assignments(name: str, text: str) -> dict[str, str]:
    """COL=TEXT pairs, separated by commas."""
    pairs: dict[str, str] = {}
    parts = parsing.columns(name, text) or ()
    for part in parts.split(",") if isinstance(parts, str) else parts:
        column, has_sign, cell = part.partition("=")
        if not has_sign or not column:
            raise InputError(
                f"{name} ({quoted(text)}) must be COL=TEXT pairs with commas"
            )
        pairs[column] = cell
    return pairs
