"""The columns that a releasable releases together, by its own names and by those of the table.

A releasable (a channel, say) has names for its columns from the table that it was designed for.
Where the table at hand calls them otherwise, the user says so (`ReleaseOptions.renamed`), and
`in_table` translates: with ``{"job": "profession"}`` the columns ``job, city`` of a channel are
``profession, city`` in the table. A `ColumnGroup` has the releasable's own names; whatever is
compared with a header is translated first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.jobs.options import ReleaseOptions


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
