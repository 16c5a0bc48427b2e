"""Which columns of a table a release replaces, keeps and leaves out, decided from the header alone.

An output is closed by default: it holds the released columns and nothing else, for every other
column may undo the promise. Others stay if they are asked for, by name or all at once
(`kept_columns`, the one place of this decision). Sensitive columns must not stay, nor columns that
nobody named and whose names look like theirs.

`make_plan` translates the columns of each releasable to their names in the table
(`column_groups`), refuses names and roles that do not fit the header (`column_refusals`), settles
what stays, and lays the output out (`output_columns`). For a channel that replaces ``job`` and
protects ``sex``, and the header ``id, job, sex, age``, the option ``--keep age`` gives the columns
``job`` (source 1, release (0, 0): the first column of the first releasable) and ``age`` (source 3,
no release); ``--keep sex`` is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.core.wording import listed
from mechdesign.jobs.column_groups import (
    ColumnGroup,
    in_table,
    own_columns,
    private_columns,
)
from mechdesign.jobs.column_refusals import (
    refuse_lookalikes,
    refuse_private,
    refuse_two_roles,
    refuse_unknown_names,
    require_named_columns,
    useful_columns,
)
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import OutputColumn, output_columns


@dataclass(frozen=True)
class Plan:
    """Where the released columns stand in the input, and what the output holds.

    `inputs` has the numbers of the columns of each releasable, `identity` those that identify a
    record. `columns` are those of the output. `sensitive` has the sensitive columns by their names
    in the table, which need not have them; `kept_private` those of them, and correlated ones, that
    stay because the user insisted. `notices` are sentences for the user.
    """

    inputs: tuple[tuple[int, ...], ...]
    identity: tuple[int, ...]
    columns: tuple[OutputColumn, ...]
    kept_private: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def header(self) -> tuple[str, ...]:
        """Column names of the output."""
        return tuple(column.name for column in self.columns)

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the columns that stay as they are."""
        return tuple(column.name for column in self.columns if column.release is None)

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the released columns, in the order of the output."""
        return tuple(
            column.name for column in self.columns if column.release is not None
        )

    def origin(self, column: OutputColumn) -> int:
        """The number of the input column that a column of the output was, or is drawn for."""
        if column.source is not None:
            return column.source
        releasable, part = column.release or (0, 0)
        return self.inputs[releasable][part]


def make_plan(
    groups: Sequence[ColumnGroup], header: Sequence[Any], options: ReleaseOptions
) -> Plan:
    """Decide what becomes of each column of a table.

    Raises
    ------
    InputError
        If a column is missing or named twice, is protected and would stay, or cannot get its name.
    """
    # Names first, so that each later refusal is about a column that exists.
    refuse_unknown_names(groups, options)
    inputs = [in_table(group.columns, options) for group in groups]
    useful = useful_columns(inputs, header)
    private = private_columns(groups, options)
    refuse_two_roles(useful, private, own_columns(groups, options))
    require_named_columns(useful, private, header, options)

    kept = kept_columns(header, useful, options)
    if not options.keep_sensitive:
        refuse_private(kept, private, options)
    given: list[str] = []
    for group in groups:
        given += in_table(group.given, options)
    # A copy of a given column tells what is released in any case.
    hidden = [name for name in useful if name not in given]
    refuse_lookalikes(kept, hidden, private, [*given, *options.kept], options)

    # After all refusals that are about names of the input: these messages are about the output.
    columns = output_columns(header, kept, groups, inputs, options)
    protected = {*private, *options.correlated}
    return Plan(
        inputs=tuple(_places(names, header) for names in inputs),
        identity=_places(options.identifiers, header),
        columns=columns,
        kept_private=tuple(name for name in kept if name in protected),
        sensitive=tuple(private),
        notices=tuple(_notices(groups, useful, options)),
    )


def kept_columns(
    header: Sequence[Any], useful: Sequence[Any], options: ReleaseOptions
) -> list[Any]:
    """The columns that stay as they are: those that were asked for, unless they are released or
    dropped.
    """
    gone = {*options.drop}
    # Beside added columns the useful ones stay: the user compares both, and makes no release.
    if options.into is None:
        gone.update(useful)
    named = {*options.kept}
    kept: list[Any] = []
    for name in header:
        if name in gone:
            continue
        if options.keeps_all or name in named:
            kept.append(name)
    return kept


def _places(names: Sequence[Any], header: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of columns in the table."""
    return tuple(header.index(name) for name in names)


def _notices(
    groups: Sequence[ColumnGroup], useful: Sequence[str], options: ReleaseOptions
) -> list[str]:
    """What the user should know of the plan."""
    notices: list[str] = []
    if any(group.sensitive is None for group in groups):
        notices.append(
            "the channel does not say which columns are sensitive: see that none is in the output"
        )
    if options.into is not None:
        notices.append(
            f"{listed(useful)} stays beside the released column: no release yet, remove it first"
        )
    if len(groups) > 1:
        notices.append(
            "several columns of a record are released: each keeps its own promise, "
            "but together they can tell more than either"
        )
    return notices
