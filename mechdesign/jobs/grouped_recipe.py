"""A recipe whose releasables each release a group of columns, by their names in the table.

A kind of recipe says which `groups` it has, by the names that its channels have for the columns;
all else here follows from them and the options. With one channel that replaces ``job`` and protects
``sex``, and the option that the table calls them ``profession`` and ``gender``, `useful_columns` is
``["profession"]`` and `private_columns` is ``["gender"]``. `plan` decides what becomes of every
column of a header (`column_plan`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.column_names import require_column
from mechdesign.jobs.column_groups import ColumnGroup, in_table, private_columns
from mechdesign.jobs.column_plan import Plan, make_plan
from mechdesign.jobs.file_recipe import FileRecipe


@dataclass(frozen=True, kw_only=True)
class GroupedRecipe(FileRecipe):
    """A recipe with a group of columns for each releasable."""

    @property
    @abstractmethod
    def groups(self) -> list[ColumnGroup]:
        """The columns of each releasable, by the names that it has for them."""

    @property
    def private_columns(self) -> list[str]:
        """Sensitive and correlated columns."""
        return [
            *private_columns(self.groups, self.options),
            *self.options.correlated,
        ]

    @property
    def useful_columns(self) -> list[str]:
        """The columns that are released, by their names in the table."""
        names: list[str] = []
        for group in self.groups:
            names += in_table(group.columns, self.options)
        return names

    def plan(self, header: Sequence[Any]) -> Plan:
        """What becomes of each column of a table."""
        plan = make_plan(self.groups, header, self.options)
        name = self.options.row_numbers
        if name is not None:
            require_column(name, header)
            if name in self.useful_columns:
                raise InputError(
                    f"the column {quoted(name)} is useful and cannot number the records"
                )
        return plan

    def sensitive_in_table(self, k: int) -> tuple[str, ...] | None:
        """The sensitive columns of a releasable, by their names in the table; None if it does not
        say.
        """
        group = self.groups[k]
        if group.sensitive is None:
            return None
        return tuple(private_columns([group], self.options))

    def released_names(self, plan: Plan, k: int) -> tuple[str, ...]:
        """The columns of the output that a releasable releases."""
        names: list[str] = []
        for column in plan.columns:
            if column.release is not None and column.release[0] == k:
                names.append(column.name)
        return tuple(names)
