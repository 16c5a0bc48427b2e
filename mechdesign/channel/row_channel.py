"""A channel for rows of several columns: a tree of small channels, one for every prefix that may
have been released.

W(y|x, k) = product over levels j of W_j(y_j | x_j; k, y_1 .. y_{j-1}), in exact integers
(`core.row_tree`). The given columns k are released as they are; the sensitive columns and all
others are not released.

The given symbols of a record choose a root of the tree; such a combination of them is a *stratum*.
At each level the record's symbol x_j draws an output y_j by the row of the node that it is at, and
the output leads to a child, where the next level is drawn. With the levels job and age, a record
(nurse, 30) may draw y_1 = clerk with the integer a of its row at the root, and y_2 = 30 with the
integer b of its row at the child of clerk: W = a/D * b/D, with the common `DENOMINATOR` D.

A `RowChannel` has the columns, the tree, and a `RowRecord` of what was asked for. `distribution`
is the formula above for one row, `apply` draws for all records of a frame, and `save`, `load` and
`public` are about its file.

`strata_of` finds the roots of many records at once. With the objective truth the outputs of a level
are its own symbols; with information they are free labels (`labels`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.channel.record import check_symbol_budgets
from mechdesign.channel.row_record import INFORMATION, TRUTH, RowRecord
from mechdesign.core.arguments import repeated, valid_text
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError
from mechdesign.core.integers import NOWHERE, Integers, places_in
from mechdesign.core.row_tree import RowTree
from mechdesign.core.wording import quoted
from mechdesign.notions import Notion, from_record
from mechdesign.tables.records import Records
from mechdesign.tables.variable import Variable, column_names

if TYPE_CHECKING:
    from mechdesign.release.draws import Key
    from mechdesign.release.policies import Policy


@dataclass(frozen=True, repr=False, eq=False)
class RowChannel(Described):
    """A tree of channels that releases given columns and levels, and nothing else of a record.

    Being a `RowChannel` means that its rows are probabilities; `auditing.rows.audit_rows` decides
    what it promises.

    Parameters
    ----------
    sensitive : Variable
    given : tuple of Variable
        Columns that are released as they are.
    strata : tuple of tuple of int
        The combinations of given symbols that the channel knows, ascending; one empty combination
        without given ones.
    levels : tuple of Variable
        Inputs of each level, in the order in which they are released.
    labels : tuple of tuple of str
        Outputs of each level. With the objective truth these are the names of its inputs.
    tree : RowTree
        With a root for each stratum.
    record : RowRecord
    table : Records, optional
        The rows that the channel was designed for, over `given` and `levels`; None in a public
        channel.

    Raises
    ------
    InputError
        If the parts do not fit together; the message names the level.
    """

    sensitive: Variable
    given: tuple[Variable, ...]
    strata: tuple[tuple[int, ...], ...]
    levels: tuple[Variable, ...]
    labels: tuple[tuple[str, ...], ...]
    tree: RowTree
    record: RowRecord
    table: Records | None = None

    def __post_init__(self) -> None:
        columns = self.sensitive.columns + self.released_columns
        twice = repeated(columns)
        if twice is not None:
            raise InputError(
                f"the column {quoted(twice)} occurs twice among the sensitive, given and released "
                "ones"
            )
        check_symbol_budgets(self.record.budgets, self.sensitive)
        self._check_labels()
        self._check_strata()
        # That rows are probabilities and children exist is a matter of the tree; here it is
        # compared with the variables.
        self.tree.check(tuple(map(len, self.labels)))
        sizes = [table.size for table in self.tree.levels]
        if sizes != list(map(len, self.levels)):
            raise InputError("a level of the tree has another number of input symbols")
        if len(self.tree.roots) != len(self.strata):
            raise InputError(
                f"there are {len(self.tree.roots)} roots for {len(self.strata)} strata"
            )
        if self.table is not None and self.table.groups != self.given + self.levels:
            raise InputError("the rows of the table are over other columns or symbols")

    def _check_labels(self) -> None:
        """Refuse outputs that repeat, or with the objective truth are other than the inputs."""
        if len(self.labels) != len(self.levels):
            raise InputError(f"there must be outputs for {len(self.levels)} levels")
        for variable, labels in zip(self.levels, self.labels, strict=True):
            title = quoted(",".join(variable.columns))
            for label in labels:
                valid_text(label, f"an output of {title}")
            twice = repeated(labels)
            if twice is not None:
                raise InputError(f"the output {quoted(twice)} of {title} occurs twice")
            if self.record.objective == TRUTH and labels != variable.names:
                raise InputError(
                    f"with the objective truth the outputs of {title} must be its own symbols"
                )

    def _check_strata(self) -> None:
        """Refuse strata that repeat, do not ascend, or have a code without a symbol."""
        if list(self.strata) != sorted(set(self.strata)) or not self.strata:
            raise InputError("the strata must be different and ascend")
        for stratum in self.strata:
            if len(stratum) != len(self.given):
                raise InputError("a stratum must have a code for every given column")
            for variable, code in zip(self.given, stratum, strict=True):
                if not 0 <= code < len(variable):
                    raise InputError(
                        f"a stratum has no symbol of {quoted(','.join(variable.columns))}"
                    )

    def __repr__(self) -> str:
        levels = ", ".join(variable.brief for variable in self.levels)
        given = ""
        if self.given:
            given = f" given {', '.join(variable.brief for variable in self.given)}"
        return (
            f"RowChannel({levels}{given}; {self.tree.leaves:,} leaves, protects "
            f"{self.sensitive.brief}, "
            f"{self.notion.text}, {self.record.promise})"
        )

    def summary(self) -> str:
        """The promise, and what is released in which order, as text."""
        secret = quoted(",".join(self.sensitive.columns))
        lines = [
            f"{self.notion.text} for {secret}, {self.record.promise} promise, "
            f"{self.tree.leaves:,} leaves"
        ]
        for variable in self.given:
            lines.append(f"given: {variable.brief}, released as it is")
        for place, variable in enumerate(self.levels):
            outputs = "its own symbols"
            if self.record.objective == INFORMATION:
                outputs = f"{len(self.labels[place]):,} outputs"
            lines.append(f"level {place + 1}: {variable.brief}, {outputs}")
        return "\n".join(lines)

    @cached_property
    def notion(self) -> Notion:
        """What was asked for, with the budgets of single symbols."""
        notion = from_record(self.record.notion)
        name_of: dict[tuple[str | None, tuple[str, ...]], str] = {}
        for column, symbol, name in self.sensitive.protected:
            name_of[column, symbol] = name
        by_name: dict[str, tuple[float, float]] = {}
        for budgets in self.record.budgets:
            name = name_of[budgets.column, budgets.symbol]
            by_name[name] = (float(budgets.eps_l), float(budgets.eps_u))
        if not by_name:
            return notion
        return notion.with_budgets(by_name)

    @property
    def groups(self) -> tuple[Variable, ...]:
        """The given columns, then the levels."""
        return self.given + self.levels

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that the channel needs of a record and releases, given ones first."""
        return column_names(self.groups)

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Names of the columns of a released file: the given and released ones; with the objective
        information one for each level, named after all its columns.
        """
        if self.record.objective == TRUTH:
            return self.released_columns
        of_levels = [",".join(variable.columns) for variable in self.levels]
        return (*column_names(self.given), *of_levels)

    @cached_property
    def stratum_of(self) -> dict[tuple[int, ...], int]:
        """Place of each combination of given symbols."""
        return dict(zip(self.strata, range(len(self.strata)), strict=True))

    def strata_of(self, codes: Integers) -> Integers:
        """(records,) stratum of each row of codes of the given columns, -1 for a combination that
        is not known, such as one with an unknown symbol (a negative code).

        Column by column every stratum and every record gets the rank of its combination so far
        among those of the strata. Of the strata (0, 1), (2, 0), (2, 5) the ranks are 0, 1, 1 after
        the first column and 0, 1, 2 after the second. A record (2, 5) gets 1 and then 2; a record
        (2, 1) gets 1 and then -1.
        """
        if not self.given:
            return np.zeros(len(codes), dtype=np.int64)
        strata = np.array(self.strata, dtype=np.int64)
        # Ranks stay small. One number for all columns at once could overflow: it would be as large
        # as the product of their sizes.
        stratum_ranks = np.zeros(len(strata), dtype=np.int64)
        # A negative code would be the key of another combination.
        record_ranks = np.where((codes >= 0).all(axis=1), 0, NOWHERE)
        for k, variable in enumerate(self.given):
            stratum_keys = stratum_ranks * len(variable) + strata[:, k]
            record_keys = record_ranks * len(variable) + codes[:, k]
            keys, ranks = np.unique(stratum_keys, return_inverse=True)
            # A combination that is unknown so far stays unknown.
            record_ranks = np.where(
                record_ranks >= 0, places_in(keys, record_keys), NOWHERE
            )
            stratum_ranks = ranks.ravel().astype(np.int64)
        # Strata ascend, so the last rank is the stratum.
        return record_ranks

    def texts_of(self, level: int, output: int) -> tuple[str, ...]:
        """What is released for an output of a level: a text for each column, or one label with free
        outputs.
        """
        if self.record.objective == TRUTH:
            return self.levels[level].symbols[output]
        return (self.labels[level][output],)

    def distribution(
        self, row: Mapping[str, str] | Sequence[str]
    ) -> dict[tuple[str, ...], Fraction]:
        """The exact law of what is released for a row.

        Parameters
        ----------
        row : mapping of column to text, or sequence of texts
            The true texts of the given columns, then of the released ones in the order of the
            levels.

        Returns
        -------
        dict from tuples of released texts to probabilities, which sum to 1
            One text for each given and each released column; with free outputs one label for each
            level.

        Raises
        ------
        InputError
            If a column is missing, or the channel does not know the row.
        """
        # The law follows the paths of the tree; only who asks for it needs that module.
        from mechdesign.channel.row_law import law_of_row

        return law_of_row(self, row)

    def apply(
        self,
        frame: Any,
        *,
        key: Key | None = None,
        identity: Sequence[str] | None = None,
        first_row: int = 0,
        policy: Policy | None = None,
        insecure_seed: int | None = None,
    ) -> Any:
        """Draw a released row for every record of a frame; a frame of the same kind with the
        released columns only.

        The draws of a record depend on the key, the channel, the level, and the record's row number
        or identifier.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table
        key : draws.Key, optional
            A new key is used and forgotten where none is given.
        identity : sequence of str, optional
            What identifies each record; its row number otherwise.
        first_row : int
            Row number of the first record.
        policy : release.Policy, optional
            What to do with symbols that are unknown at a node: refuse (default), or marginal.
        insecure_seed : int, optional
            Reproducible draws, for tests only.

        Raises
        ------
        InputError
            On a missing column, or a symbol that is unknown at its node, unless the policy has a
            rule for it.
        """
        # Only a draw needs keys, samplers and data frames.
        from mechdesign.release.drawing import key_of
        from mechdesign.release.row_drawing import RowRelease
        from mechdesign.release.row_frames import apply_to_frame

        release = RowRelease(self, key_of(key, insecure_seed), policy=policy)
        return apply_to_frame(release, frame, identity=identity, first_row=first_row)

    def public(self) -> RowChannel:
        """Without the table and whatever is computed from it but the tree itself."""
        return replace(
            self,
            given=tuple(variable.public() for variable in self.given),
            levels=tuple(variable.public() for variable in self.levels),
            record=self.record.public(),
            table=None,
        )

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        public: bool = False,
    ) -> None:
        """Write the file of the channel (`channel.row_file`); with `public` without the table.

        Raises
        ------
        InputError
            If the file exists (without `overwrite`), is a folder or cannot be written.
        """
        # The module of the file imports this one.
        from mechdesign.channel import row_file

        channel = self.public() if public else self
        row_file.write(channel, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RowChannel:
        """Read the file of a row channel, or refuse it with InputError and say why."""
        # The module of the file imports this one.
        from mechdesign.channel import row_file

        return row_file.read(path)
