"""The layout of an output: which columns it has, in which order and under which names.

A released column takes the place of the first column that it replaces, and kept columns keep
theirs (`_replaced`). Where the user asks for added columns (``--add``), all old columns stay, and
the released ones follow at the end (`_appended`). The input columns ``id, age, job, sex``, with a
channel that releases ``job`` and ``age`` as one column of labels, and ``id`` and ``sex`` kept,
give::

    OutputColumn("id", source=0)
    OutputColumn("job,age", source=2, release=(0, 0))
    OutputColumn("sex", source=3)

and with ``--add group`` the four old columns and ``OutputColumn("group", None, (0, 0))``.

*Columns that are released together.* A releasable (a channel, say) has names for its columns from
the table that it was designed for. Where the table at hand calls them otherwise, the user says so
(`ReleaseOptions.renamed`), and `in_table` translates: with ``{"job": "profession"}`` the columns
``job, city`` of a channel are ``profession, city`` in the table. A `ColumnGroup` has the
releasable's own names; whatever is compared with a header is translated first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.jobs.options import ReleaseOptions

# --------------------------------------------------- columns that are released together


@dataclass(frozen=True)
class ColumnGroup:
    """The columns that one releasable releases together, by the names that it has for them.

    `sensitive` is None where it does not say which columns are. A `merged` group becomes one column
    of labels, under the names joined with commas; of others each column has one in the output,
    unless `merged_parts` says which columns become one. `given` columns are released as they are.
    `names` are those of the released columns; by default they have the names of what they replace.
    """

    columns: tuple[str, ...]
    sensitive: tuple[str, ...] | None
    merged: bool = False
    merged_parts: tuple[tuple[str, ...], ...] = ()
    given: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """For each released column the columns that it takes the place of."""
        if self.merged_parts:
            return self.merged_parts
        if self.merged:
            return (self.columns,)
        return tuple((name,) for name in self.columns)


def private_columns(
    groups: Sequence[ColumnGroup], options: ReleaseOptions
) -> list[str]:
    """The sensitive columns of all groups, by their names in the table."""
    # Channels often protect the same columns: each is named once, in the order of the channels.
    names: dict[str, None] = {}
    for group in groups:
        names.update(dict.fromkeys(in_table(group.sensitive or (), options)))
    return list(names)


def own_columns(groups: Sequence[ColumnGroup], options: ReleaseOptions) -> list[str]:
    """The columns, by their names in the table, of groups that protect what they release."""
    names: list[str] = []
    for group in groups:
        if group.sensitive == group.columns:
            names += in_table(group.columns, options)
    return names


def in_table(names: Sequence[str], options: ReleaseOptions) -> tuple[str, ...]:
    """Columns of a releasable, by their names in the table."""
    return tuple(options.renamed.get(name, name) for name in names)


# ------------------------------------------------------------------------------- layout


@dataclass(frozen=True)
class OutputColumn:
    """A column of the output.

    `source` is the number of the input column that stays or is replaced (None: it is added),
    `release` the numbers of the releasable and of its released column, its *part* (None: it stays
    as it is).
    """

    name: str
    source: int | None
    release: tuple[int, int] | None = None


def output_columns(
    header: Sequence[Any],
    kept: Sequence[Any],
    groups: Sequence[ColumnGroup],
    inputs: Sequence[tuple[str, ...]],
    options: ReleaseOptions,
) -> tuple[OutputColumn, ...]:
    """The kept columns in their order; the released ones in the place of what they replace, or
    added at the end.

    `inputs` has the columns of each group, by their names in the table.
    """
    # Of each group and each of its parts: the columns that it replaces, and the name that it gets.
    parts: list[list[tuple[str, ...]]] = []
    released: list[tuple[str, ...]] = []
    for group in groups:
        replaced = [in_table(part, options) for part in group.parts]
        parts.append(replaced)
        released.append(_released_names(group, replaced, options))
    added = options.added(len(groups))
    if added is None:
        columns = _replaced(header, kept, parts, released)
    else:
        columns = _appended(header, kept, released, added)
    # By a name that comes twice, a reader could take an original column for the released one.
    output = [column.name for column in columns]
    for column in columns:
        if column.release is not None and output.count(column.name) > 1:
            raise InputError(
                f"the file has another column {quoted(column.name)}, the name of the released one; "
                "rename it"
            )
    _refuse_replaced(options.kept, columns)
    return tuple(columns)


def _released_names(
    group: ColumnGroup, replaced: Sequence[tuple[str, ...]], options: ReleaseOptions
) -> tuple[str, ...]:
    """Names of the released columns of a group."""
    if group.names:
        return in_table(group.names, options)
    names: list[Any] = []
    for columns in replaced:
        # Of one column the name as it is, which may be no text in a frame.
        if len(columns) == 1:
            names.append(columns[0])
        else:
            names.append(",".join(map(str, columns)))
    return tuple(names)


def _replaced(
    header: Sequence[Any],
    kept: Sequence[Any],
    parts: Sequence[Sequence[tuple[str, ...]]],
    released: Sequence[tuple[str, ...]],
) -> list[OutputColumn]:
    """Every released column in the place of the first column that it replaces.

    In ``id, age, job, sex`` a part that merges ``job`` and ``age`` stands where ``job`` was.
    """
    # By the first column of each part. No column is in two parts: it would be released twice.
    replacements: dict[Any, OutputColumn] = {}
    for number, names in enumerate(released):
        for part, name in enumerate(names):
            first = parts[number][part][0]
            source = header.index(first)
            replacements[first] = OutputColumn(name, source, (number, part))
    columns: list[OutputColumn] = []
    stays = set(kept)
    for source, name in enumerate(header):
        if name in replacements:
            columns.append(replacements[name])
        elif name in stays:
            columns.append(OutputColumn(name, source))
    return columns


def _appended(
    header: Sequence[Any],
    kept: Sequence[Any],
    released: Sequence[tuple[str, ...]],
    added: Sequence[tuple[str, ...]],
) -> list[OutputColumn]:
    """The released columns under their `added` names, after all others."""
    if [len(names) for names in added] != [len(names) for names in released]:
        wanted: list[str] = []
        for names in released:
            wanted += [f"one for {quoted(name)}" for name in names]
        raise InputError(
            f"give a name for every column that is added: {', '.join(wanted)}"
        )
    columns: list[OutputColumn] = []
    stays = set(kept)
    for source, name in enumerate(header):
        if name in stays:
            columns.append(OutputColumn(name, source))
    for number, names in enumerate(added):
        for part, name in enumerate(names):
            columns.append(OutputColumn(name, None, (number, part)))
    return columns


def _refuse_replaced(kept: Sequence[str], columns: Sequence[OutputColumn]) -> None:
    """Refuse to keep a column in whose place a column of another name is released."""
    names = {column.name for column in columns}
    for name in kept:
        if name not in names:
            raise InputError(
                f"the column {quoted(name)} cannot be kept (--keep): the channel releases it as "
                "part of another column; leave the option out"
            )
