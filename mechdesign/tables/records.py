"""The distinct rows of many columns, each with the number of records that have it.

A joint table crosses all useful columns into one variable. A release of rows needs the same counts
with one code for every *group* of columns: first the given columns, then the levels of the release,
each a column or several crossed ones. `Records.from_table` makes them in two steps, so that
counting, missing cells, weights and bins are those of `tables.joint`:

1. All columns of all groups are counted as one crossed useful variable, a `Joint`.
2. `from_joint` takes its symbols apart again: ('30', 'Male') has a code in the group (age,) and one
   in (sex,). Every positive entry of the joint becomes a row.

For example, four records with the groups (age,) and (sex,) and the sensitive column race may become
three rows: ``codes`` [[0, 0], [0, 1], [1, 0]], ``secrets`` [1, 0, 0] and ``counts`` (2, 1, 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.tables.bins import Bins
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Missing, Roles, Tally, counted_columns
from mechdesign.tables.variable import Variable

Groups: TypeAlias = Sequence[str | Sequence[str]]
"""Columns in their order; several names in one entry are crossed."""

MOST_CELLS = 1 << 23
"""Most distinct rows times sensitive symbols. They take some 500 MB at the peak, because the counts
are Python integers."""


@dataclass(frozen=True, eq=False)
class Records:
    """Distinct rows with counts, in ascending order of their codes.

    Parameters
    ----------
    sensitive : Variable
        The protected column or columns.
    groups : tuple of Variable
        The given columns, then the levels.
    secrets : (rows,) array
        Position of the sensitive symbol of each row.
    codes : (rows, groups) array
        Position of each row's symbol in every group.
    counts : tuple of int
        Records of each row, or their weight in units of the smallest one; positive.
    is_counts : bool
        False where the counts are weights and not numbers of records.
    notices : tuple of str
        Changes to the input, such as dropped records.
    empty_sensitive : tuple of str
        Sensitive symbols that were listed without a record.
    """

    sensitive: Variable
    groups: tuple[Variable, ...]
    secrets: Integers
    codes: Integers
    counts: tuple[int, ...]
    is_counts: bool = True
    notices: tuple[str, ...] = ()
    empty_sensitive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.counts), len(self.groups))
        if self.codes.shape != shape or self.secrets.shape != shape[:1]:
            raise InputError(
                f"there must be codes of {shape[1]} groups and one secret for each of {shape[0]} "
                "rows"
            )
        if not self.counts or min(self.counts) <= 0:
            raise InputError("every row needs a positive count, and there must be rows")
        # The codes are indices everywhere below, so a wrong one would read another symbol's budget.
        sizes = np.array([len(self.sensitive), *map(len, self.groups)])
        all_codes = np.column_stack([self.secrets, self.codes])
        if (all_codes < 0).any() or (all_codes >= sizes).any():
            raise InputError("a row has a code without a symbol")
        if len(np.unique(all_codes, axis=0)) < len(all_codes):
            raise InputError("a row occurs twice; rows must be different")

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def total(self) -> int:
        """Sum of all counts."""
        return sum(self.counts)

    @cached_property
    def masses(self) -> NDArray[np.float64]:
        """(rows,) array of the shares of the rows, each correctly rounded."""
        return np.array([count / self.total for count in self.counts])

    @cached_property
    def integers(self) -> NDArray[Any]:
        """(rows,) array of the counts as Python integers."""
        # Object arrays add without overflow; `np.array(counts)` would choose machine integers.
        weights = np.empty(len(self.counts), dtype=object)
        weights[:] = self.counts
        return weights

    def sensitive_counts(self) -> list[int]:
        """The count of every sensitive symbol."""
        sums = [0] * len(self.sensitive)
        for secret, count in zip(self.secrets.tolist(), self.counts, strict=True):
            sums[secret] += count
        return sums

    def crossed(self, rows: NDArray[Any], first: int) -> list[list[int]]:
        """(|S|, distinct) counts of some rows by sensitive symbol and by further symbols.

        The latter are the distinct combinations of the symbols in the groups from `first` on.
        """
        _, place = np.unique(self.codes[rows][:, first:], axis=0, return_inverse=True)
        table = [[0] * (int(place.max()) + 1) for _ in self.sensitive.symbols]
        secrets = self.secrets[rows].tolist()
        columns = place.ravel().tolist()
        for secret, column, row in zip(secrets, columns, rows.tolist(), strict=True):
            table[secret][column] += self.counts[row]
        return table

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        sensitive: str | Sequence[str],
        groups: Groups,
        weight: str | None = None,
        missing: Missing = "refuse",
        bins: Any = None,
    ) -> Records:
        """Count the distinct rows of a table.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or a lazy one as for `Joint.from_table`
        sensitive : str or sequence of str
            The protected column; several are crossed.
        groups : sequence of str or of sequences of str
            The released columns; those of one entry are crossed.
        weight, missing : as for `Joint.from_table`
        bins : mapping of column to bins
            Or anything that `Joint.binned` takes where there is one column.

        Raises
        ------
        InputError
            On a column that is named twice or is not there, an empty cell, no records, or too many
            distinct rows.
        """
        named = checked_groups(groups)
        secret = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        released: list[str] = []
        for group in named:
            released += group
        roles = Roles(secret, tuple(released), weight)
        if roles.are_same:
            raise InputError(
                f"the released columns are the sensitive ones ({listed(released)}): name them as "
                "useful (--useful) and leave --release out"
            )
        tally = Tally(roles, missing)
        for columns, times in counted_columns(frame, roles.columns):
            tally.add_columns(columns, times)
            # While counting, before memory is gone.
            check_size(tally.cells)
        return cls.from_joint(Joint.from_tally(tally), named, bins=bins)

    @classmethod
    def from_joint(
        cls, joint: Joint, groups: Sequence[tuple[str, ...]], *, bins: Any = None
    ) -> Records:
        """The rows of a table whose useful columns are crossed; `bins` are those of `Joint.binned`.

        Raises
        ------
        InputError
            If a column of the groups is no useful column, or there are too many rows.
        """
        check_size(len(joint.useful) * len(joint.sensitive))
        if bins is not None:
            joint = joint.binned(bins)
        whole = joint.useful
        absent: list[str] = []
        for name in itertools.chain.from_iterable(groups):
            if name not in whole.columns:
                absent.append(name)
        if absent:
            raise InputError(f"the table has no column {listed(absent)}")
        variables: list[Variable] = []
        codes: list[list[int]] = []
        for group in groups:
            # Bins and the order of symbols are those of the group released by itself.
            variable = joint.releasing(group).useful
            places = [whole.columns.index(name) for name in group]
            symbols = whole.parts_of_symbols(places)
            variables.append(variable)
            codes.append([variable.index[symbol] for symbol in symbols])
        table = np.array(codes, dtype=np.int64).T
        return cls._of_counts(joint, tuple(variables), table)

    @classmethod
    def _of_counts(
        cls, joint: Joint, groups: tuple[Variable, ...], codes: Integers
    ) -> Records:
        """One row for every positive entry of the joint, summed over columns outside the groups."""
        counts: dict[tuple[int, ...], int] = {}
        rows: list[list[int]] = codes.tolist()
        for secret, line in enumerate(joint.counts):
            for row, count in zip(rows, line, strict=True):
                if count:
                    key = (*row, secret)
                    counts[key] = counts.get(key, 0) + count
        # Sorted by the released groups, the secret last: rows with a common beginning are
        # neighbours, as the nodes of the tree need them.
        keys = sorted(counts)
        # The shape is named because an array of no rows has none.
        table = np.array(keys, dtype=np.int64).reshape(len(keys), len(groups) + 1)
        return cls(
            sensitive=joint.sensitive,
            groups=groups,
            secrets=table[:, -1].copy(),
            codes=table[:, :-1].copy(),
            counts=tuple(map(counts.__getitem__, keys)),
            is_counts=joint.is_counts,
            notices=joint.notices,
            empty_sensitive=joint.empty_sensitive,
        )

    def on(self, sensitive: Variable, groups: Sequence[Variable]) -> Records:
        """The same rows with the positions of other variables on the same columns.

        Raises
        ------
        InputError
            If a symbol of these rows is none of the other variable's.
        """
        new_secret = _positions(self.sensitive, sensitive, "the sensitive column")
        columns: list[Integers] = []
        for k, (old, new) in enumerate(zip(self.groups, groups, strict=True)):
            new_code = _positions(old, new, "the column")
            columns.append(new_code[self.codes[:, k]])
        return replace(
            self,
            sensitive=sensitive,
            groups=tuple(groups),
            secrets=new_secret[self.secrets],
            codes=np.column_stack(columns),
        )


def checked_groups(groups: Groups) -> list[tuple[str, ...]]:
    """The groups as tuples of names, each with a column, and no column in two of them."""
    if isinstance(groups, str):
        raise InputError(
            f"release ({quoted(groups)}) must be a list of columns, as in ['age', ('sex', 'state')]"
        )
    named: list[tuple[str, ...]] = []
    for group in groups:
        if isinstance(group, str):
            named.append((group,))
        else:
            named.append(tuple(group))
    if not named or not all(named):
        raise InputError("name at least one column for every level of the release")
    twice = repeated(itertools.chain.from_iterable(named))
    if twice is not None:
        raise InputError(
            f"the column {quoted(twice)} is released twice; name it in one level"
        )
    return named


def check_size(cells: int) -> None:
    """Refuse more than `MOST_CELLS`."""
    if cells > MOST_CELLS:
        raise InputError(
            f"the columns have more than {MOST_CELLS:,} distinct rows (times sensitive symbols), "
            "which is more than memory is planned for: release fewer columns, sort numbers into "
            "bins (--bin), or merge rare symbols"
        )


def _positions(old: Variable, new: Variable, what: str) -> Integers:
    """The position in `new` of each symbol of `old`."""
    columns = ",".join(new.columns)
    for name, symbol in zip(old.names, old.symbols, strict=True):
        if symbol not in new.index:
            raise InputError(
                f"the table has the symbol {quoted(name)} of {what} {quoted(columns)}, which the "
                "channel does not know"
            )
    return np.array([new.index[symbol] for symbol in old.symbols], dtype=np.int64)


def bins_by_column(variables: Sequence[Variable]) -> Mapping[str, Bins]:
    """The bins that a channel's variables have, by column, as `Joint.binned` takes them."""
    by_column: dict[str, Bins] = {}
    for variable in variables:
        for part, name in enumerate(variable.columns):
            bins = variable.bins_of(part)
            if bins is not None:
                by_column[name] = bins
    return by_column
