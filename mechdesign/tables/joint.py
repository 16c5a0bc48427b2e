"""The joint table of a sensitive and a useful variable, in exact integers.

Theory: P_SX has full support on its symbols (rows and columns of zero mass are dropped, with a
notice); single cells may be zero. The table is ``counts / total``, exactly.

A table is read by `exact_table` (wide tables) or counted by `tally` (records), and `Joint` keeps
the result: labels, integers, notices. It never changes; `binned`, `releasing` and `protecting_each`
return new tables. The integers decide everything that must be exact. The arrays `p`, `p_s`, `p_x`
and `lift` are their correctly rounded doubles, for searches.

For example, the counts 3, 1 and 1, 5 of two sensitive by two useful symbols have the total 10: P(s
= 0) = 4/10, P(x = 0) = 4/10, and the lift of the first cell is 3 * 10 / (4 * 4) = 15/8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.above import above
from mechdesign.core.arguments import list_argument
from mechdesign.core.balls import MOST_RECORDS
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import CellForm, encode
from mechdesign.formats.column_names import TEXT_NAMES
from mechdesign.tables.bin_edges import bins_for, days_remedy, spec_of, specs_by_column
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_values import NO_RULES, CellRules
from mechdesign.tables.exact_table import (
    LARGEST_ENTRY,
    Entry,
    ExactTable,
    cell_name,
    exact_table,
    without_empty,
)
from mechdesign.tables.tally import Missing, Roles, Tally, counted_columns
from mechdesign.tables.thousands import thousands_remedy
from mechdesign.tables.variable import Symbol, Variable, added_columns, added_rows

Array = NDArray[np.float64]

EXACT_DOUBLE = 2**53
"""Integers up to here are exact as doubles."""

WEIGHTS = (
    f"the counts sum to more than {MOST_RECORDS:,}: they are taken as weights, and not as numbers "
    "of records"
)
"""The notice on a table that no records can have."""


@dataclass(frozen=True, repr=False)
class Joint(Displayed):
    """Joint table of S (rows) and X (columns): P(s, x) = ``counts[s][x] / total``, exactly.

    Use `from_counts`, `from_probabilities` or `from_table`; the constructor itself takes a clean
    table.

    Parameters
    ----------
    sensitive, useful : Variable
        Labels of the |S| rows and |X| columns.
    counts : |S| tuples of |X| integers
        Non-negative, below 2**256, no row or column all zero.
    is_counts : bool
        False when the integers are scaled probabilities or weights and not numbers of records.
        Integers that sum to more than 10**12 are weights.
    notices : tuple of str
        Changes to the input, such as dropped symbols and dropped records.
    empty_sensitive, empty_useful : tuple of str
        Names of symbols that were listed without any mass. They are no rows and columns, but a
        promise for the population includes them.
    rules : CellRules
        How its cells were read; the channel records them, so that it is applied by the same ones.

    Raises
    ------
    InputError
        If the table has the wrong shape, an entry out of range, or an empty row or column.
    """

    sensitive: Variable
    useful: Variable
    counts: tuple[tuple[int, ...], ...]
    is_counts: bool = True
    notices: tuple[str, ...] = field(default=(), compare=False)
    empty_sensitive: tuple[str, ...] = field(default=(), compare=False)
    empty_useful: tuple[str, ...] = field(default=(), compare=False)
    rules: CellRules = field(default=NO_RULES, compare=False)

    def __repr__(self) -> str:
        size = "probabilities or weights"
        if self.records is not None:
            size = f"{self.records:,} records"
        return f"Joint({self.sensitive.brief} by {self.useful.brief}, {size})"

    def __post_init__(self) -> None:
        # The class is frozen, so normalised fields are set past its own `__setattr__`.
        object.__setattr__(self, "counts", tuple(map(tuple, self.counts)))
        object.__setattr__(self, "notices", tuple(self.notices))
        # A column that is both would be released as it is, whatever the channel does, unless the
        # sensitive columns are those that the channel replaces.
        shared = set(self.sensitive.columns) & set(self.useful.columns)
        if shared and self.sensitive.columns != self.useful.columns:
            raise InputError(
                f"the column {quoted(min(shared))} is sensitive and useful: then the useful "
                "columns must be the sensitive ones, all of them in the same order"
            )
        self._check_entries()
        if self.is_counts and self.total > MOST_RECORDS:
            object.__setattr__(self, "is_counts", False)
        if shared:
            self._check_diagonal()
        _require_mass("sensitive", self.sensitive, self.sensitive_counts)
        _require_mass("useful", self.useful, self.useful_counts)

    def _check_entries(self) -> None:
        """Refuse a table of the wrong shape, or an entry out of range."""
        rows = len(self.sensitive)
        columns = len(self.useful)
        if list(map(len, self.counts)) != [columns] * rows:
            raise InputError(
                f"the table must have {rows} rows of {columns} entries, one per symbol"
            )
        for s, row in enumerate(self.counts):
            # The exact type, because a truth value is an int, too.
            if (
                set(map(type, row)) == {int}
                and 0 <= min(row) <= max(row) < LARGEST_ENTRY
            ):
                continue
            for x, entry in enumerate(row):
                if type(entry) is not int or not 0 <= entry < LARGEST_ENTRY:
                    place = cell_name(self.sensitive, self.useful, s, x)
                    raise InputError(
                        f"the entry at {place} ({quoted(entry)}) must be an integer in [0, 2^256)"
                    )

    def _check_diagonal(self) -> None:
        """Refuse a table of a column with itself in which two different values meet."""
        is_diagonal = self.sensitive.symbols == self.useful.symbols
        for s, row in enumerate(self.counts):
            is_diagonal = is_diagonal and sum(row) == row[min(s, len(row) - 1)]
        if not is_diagonal:
            raise InputError(
                f"the table of the column {quoted(','.join(self.useful.columns))} with itself must "
                "have the same symbols on both sides, and nothing beside its diagonal"
            )

    @property
    def is_of_itself(self) -> bool:
        """Whether the sensitive columns are the useful ones: the column itself is protected."""
        return self.sensitive.columns == self.useful.columns

    @cached_property
    def sensitive_counts(self) -> tuple[int, ...]:
        """Row sums: total * P(s)."""
        return tuple(map(sum, self.counts))

    @cached_property
    def useful_counts(self) -> tuple[int, ...]:
        """Column sums: total * P(x)."""
        return tuple(map(sum, zip(*self.counts, strict=True)))

    @cached_property
    def total(self) -> int:
        """Sum of all entries; the common denominator of the table."""
        return sum(self.sensitive_counts)

    @cached_property
    def secrets(self) -> tuple[Joint, ...]:
        """The tables that are protected.

        This is the table itself, or the marginal one of each sensitive column
        (`Variable.protects_columns`).
        """
        if not self.sensitive.protects_columns:
            return (self,)
        tables: list[Joint] = []
        row_sums = self.sensitive.added(self.counts)
        for secret, rows in zip(self.sensitive.secrets, row_sums, strict=True):
            counts = tuple(map(tuple, rows))
            tables.append(replace(self, sensitive=secret, counts=counts, notices=()))
        return tuple(tables)

    def protecting_each(self) -> Joint:
        """The same table, every sensitive column protected for itself."""
        if self.is_of_itself:
            raise InputError(
                "--protect-each is for sensitive columns beside the released one: leave it out "
                "where the released columns themselves are protected"
            )
        return replace(self, sensitive=replace(self.sensitive, protects_columns=True))

    def releasing(self, columns: str | Sequence[str]) -> Joint:
        """The table of some of the useful columns; the others are summed over."""
        names = names_of_columns(columns)
        useful = self.useful
        unknown = [name for name in names if name not in useful.columns]
        if unknown:
            raise InputError(f"the table has no useful column {listed(unknown)}")
        parts = [useful.columns.index(name) for name in names]
        symbols = useful.parts_of_symbols(parts)
        bins = tuple(map(useful.bins_of, parts))
        variable, counts = self._with_symbols(names, symbols, bins)
        if not useful.bins:
            # No bins at all are an empty tuple, not one of Nones.
            variable = replace(variable, bins=())
        if useful.people is not None:
            variable = replace(variable, people=useful.people.releasing(names))
        return replace(self, useful=variable, counts=counts)

    def _with_symbols(
        self,
        columns: tuple[str, ...],
        symbols: Sequence[Symbol],
        bins: tuple[Bins | None, ...],
    ) -> tuple[Variable, tuple[tuple[int, ...], ...]]:
        """The useful variable and the counts after the useful symbols become `symbols`.

        Columns of equal symbols are added. The new symbols are in the order of bins, or of text.
        """
        # For each column the places of the labels of its bins.
        ranks: list[dict[str, int]] = []
        for column_bins in bins:
            labels: tuple[str, ...] = ()
            if column_bins is not None:
                labels = column_bins.labels
            ranks.append(dict(zip(labels, range(len(labels)), strict=True)))

        # Bins in their own order: the order of texts would put [10, 20) before [9, 10).
        def order(symbol: Symbol) -> list[tuple[int, str]]:
            keys: list[tuple[int, str]] = []
            for rank, text in zip(ranks, symbol, strict=True):
                keys.append((rank.get(text, -1), text))
            return keys

        distinct = sorted(set(symbols), key=order)
        variable = Variable(columns, tuple(distinct), bins=bins)
        group = [variable.index[symbol] for symbol in symbols]
        return variable, added_columns(self.counts, group)

    @property
    def records(self) -> int | None:
        """Number of records of a table of counts; None for probabilities and fractional weights."""
        return self.total if self.is_counts else None

    @property
    def is_sample(self) -> bool:
        """Whether the records are a sample of a population that something can be said of."""
        return self.is_counts and not self.sensitive.protects_columns

    @cached_property
    def p(self) -> Array:
        """(|S|, |X|) array of P(s, x), each correctly rounded."""
        return _quotients(self.counts, self.total)

    @cached_property
    def p_s(self) -> Array:
        """(|S|,) array of P(s), each correctly rounded."""
        return _quotients((self.sensitive_counts,), self.total)[0]

    @cached_property
    def p_x(self) -> Array:
        """(|X|,) array of P(x), each correctly rounded."""
        return _quotients((self.useful_counts,), self.total)[0]

    @cached_property
    def lift(self) -> Array:
        """(|S|, |X|) array of P(s|x) / P(s), the lift matrix A, each entry correctly rounded."""
        # A(s, x) = P(s, x) / (P(s) P(x)) = N(s, x) N / (N(s) N(x)), all integers.
        total = self.total
        rows = self.sensitive_counts
        columns = self.useful_counts
        if total * total <= EXACT_DOUBLE:
            # All products are at most N^2, so they are exact as doubles and the quotient is rounded
            # once.
            values = np.array(self.counts, dtype=np.float64) * float(total)
            values /= np.outer(
                np.array(rows, dtype=np.float64), np.array(columns, dtype=np.float64)
            )
        else:
            # Python divides integers of any size with correct rounding.
            lines: list[list[float]] = []
            for counts, row in zip(self.counts, rows, strict=True):
                line: list[float] = []
                for count, column in zip(counts, columns, strict=True):
                    line.append(count * total / (row * column))
                lines.append(line)
            values = np.array(lines)
        values.setflags(write=False)
        return values

    @classmethod
    def from_exact(cls, table: ExactTable, *, is_counts: bool) -> Joint:
        """The joint of a clean table."""
        joint = cls(
            table.sensitive,
            table.useful,
            table.counts,
            is_counts=is_counts,
            notices=table.notices,
            empty_sensitive=table.empty_sensitive,
            empty_useful=table.empty_useful,
        )
        if is_counts and not joint.is_counts:
            return replace(joint, notices=(*joint.notices, WEIGHTS))
        return joint

    @classmethod
    def from_counts(
        cls,
        array: Any,
        *,
        sensitive_labels: Sequence[Any] | None = None,
        useful_labels: Sequence[Any] | None = None,
        sensitive: str | Sequence[str] = "sensitive",
        useful: str | Sequence[str] = "useful",
        weights: bool = False,
    ) -> Joint:
        """Build the joint from a table of counts (any non-negative integers, of any size).

        Parameters
        ----------
        array : (|S|, |X|) array, nested lists or data frame
            Rows are sensitive symbols, columns useful ones. Whole floats and texts such as ``12``
            are read exactly.
        sensitive_labels, useful_labels : sequences, optional
            One text per row and per column (tuples of texts for crossed columns). The default is
            the index and header of a pandas frame that has its own, otherwise s0, s1, .. and x0,
            x1, ..
        sensitive, useful : str or sequence of str
            Names of the columns that the symbols come from.
        weights : bool
            The entries are sums of survey weights, which may be fractional, and not numbers of
            records.

        Raises
        ------
        InputError
            On a negative, fractional or non-finite count (named by its labels), wrong shapes or
            duplicate labels, a table without mass, a margin such as `Total`, or a single useful
            symbol.
        """
        labels = (sensitive_labels, useful_labels)
        what: Entry = "weight" if weights else "count"
        table = exact_table(array, labels, (sensitive, useful), what=what)
        return cls.from_exact(table, is_counts=not weights)

    @classmethod
    def from_probabilities(
        cls,
        array: Any,
        *,
        sensitive_labels: Sequence[Any] | None = None,
        useful_labels: Sequence[Any] | None = None,
        sensitive: str | Sequence[str] = "sensitive",
        useful: str | Sequence[str] = "useful",
    ) -> Joint:
        """Build the joint from a table of probabilities, each taken as an exact rational.

        A float counts as the exact value of its bits; `decimal.Decimal`, `fractions.Fraction` and
        text are exact as written. They must sum to 1 within 1e-6 and are then normalised exactly.
        Parameters and errors are those of `from_counts`.
        """
        labels = (sensitive_labels, useful_labels)
        table = exact_table(array, labels, (sensitive, useful), what="probability")
        return cls.from_exact(table, is_counts=False)

    @classmethod
    def from_table(
        cls,
        frame: Any,
        *,
        sensitive: str | Sequence[str],
        useful: str | Sequence[str],
        weight: str | None = None,
        missing: Missing = "refuse",
        bins: Any = None,
        protect_each: bool = False,
        normalise: str = "none",
        trim: bool = False,
        missing_codes: Sequence[str] = (),
    ) -> Joint:
        """Count the records of a table.

        Parameters
        ----------
        frame : data frame, lazy table or path
            pandas, polars or pyarrow table; polars LazyFrame, DuckDB relation, Spark or Dask
            DataFrame; CSV or Parquet file, or a folder of them. Lazy tables are grouped where the
            data are, and counts alone are fetched.
        sensitive, useful : str or sequence of str
            Columns; they may be the same ones, which protects the released column itself. Several
            are crossed, and the symbols are the combinations that occur. Symbols
            are text and sorted as text; `mechdesign.formats.cells` defines the text of numbers,
            dates and categories.
        weight : str, optional
            Column with the weight of a record. With whole numbers the table is still one of counts.
            Decimals are taken exactly as written, a float as the shortest decimal that names it.
        missing : 'refuse', 'symbol', 'drop', 'marginal' or 'output:LABEL'
            Whether a null (or NaN) in one of the columns is an error, the empty symbol, or drops
            its record; the last two drop it, too, and `apply` releases a draw as of nothing known,
            or this output, for such records. A pandas column of integers and gaps, which pandas
            keeps as floats, is read as integers.
        bins : optional
            As in `binned`.
        protect_each : bool
            Several sensitive columns are each protected for themselves, and not their combinations.
        normalise, trim, missing_codes
            The form in which cells are compared (`formats.cells.CellForm`), here and when the
            channel is applied.

        Raises
        ------
        InputError
            On a missing column, a null, a weight that is no number, no records, or a single
            useful symbol.
        """
        form = CellForm(
            normalise=normalise, trim=trim, missing_codes=tuple(missing_codes)
        )
        if isinstance(frame, (str, Path)):
            joint: Joint = above("table_files").read_joint(
                frame,
                sensitive=sensitive,
                useful=useful,
                weight=weight,
                missing=missing,
                bins=bins,
                form=form,
            )
            return joint.protecting_each() if protect_each else joint
        roles = Roles(names_of_columns(sensitive), names_of_columns(useful), weight)
        # Parts have codes of their own; the tally joins them by the texts.
        tally = Tally(roles, missing, form)
        for columns, times in counted_columns(frame, roles.columns):
            tally.add_columns(columns, times)
        joint = cls.from_tally(tally)
        if bins is not None:
            joint = joint.binned(bins)
        if protect_each:
            joint = joint.protecting_each()
        return joint

    @classmethod
    def from_tally(cls, tally: Tally) -> Joint:
        """The joint of counted records; raises as `Tally.table` does."""
        joint = cls.from_exact(tally.table(), is_counts=tally.is_counts)
        rules = tally.rules.model_copy(update={"left_out": tally.dropped})
        return replace(joint, rules=rules)

    def binned(self, bins: Any) -> Joint:
        """The table with the numbers, dates or times of useful columns sorted into bins, exactly.

        Parameters
        ----------
        bins : number, timedelta, str, sequence of edges, or mapping of these
            A width; ``quantiles:N``; ``auto:N`` for N bins of least distance to their medians; or
            edges, of which the first may be -inf and the last inf. Crossed columns need a mapping
            by column. The bins of another table, ``channel.useful.bins``, are also allowed.

        Raises
        ------
        InputError
            If a cell is not a number or lies outside the edges, or `bins` is none of this.
        """
        useful = self.useful
        specs = specs_by_column(bins, useful.columns)
        notices = list(self.notices)
        # For each column its bins, and its part of every symbol: labels in the place of numbers.
        all_bins: list[Bins | None] = []
        all_texts: list[Sequence[str]] = []
        texts_by_column = [*zip(*useful.symbols, strict=True)]
        secrets_by_column = [*zip(*self.sensitive.symbols, strict=True)]
        for k, texts in enumerate(texts_by_column):
            name = useful.columns[k]
            spec = specs.get(name)
            present = useful.bins_of(k)
            # A table that a channel was designed for has its labels already.
            if spec is None or (isinstance(spec, Bins) and _has_labels(texts, spec)):
                all_bins.append(present or spec)
                all_texts.append(texts)
                continue
            if present is not None:
                raise InputError(
                    f"the column {quoted(name)} is sorted into bins already"
                )
            new_bins, labels = self._sorted_into_bins(name, texts, spec)
            all_bins.append(new_bins)
            all_texts.append(labels)
            remedy = days_remedy(filter(None, texts))
            if remedy is not None and new_bins.kind == "number":
                notices.append(f"the column {quoted(name)} holds numbers {remedy}")
            others = [*texts_by_column[:k], *texts_by_column[k + 1 :]]
            remedy = thousands_remedy(texts, [*others, *secrets_by_column])
            if remedy is not None:
                notices.append(f"the column {quoted(name)} holds numbers {remedy}")
            empty = len(new_bins) - len(set(labels) - {""})
            if empty:
                notices.append(
                    f"{empty} of the {len(new_bins)} bins of {quoted(name)} hold no record and "
                    "have no row in a channel: a value there is an unknown symbol"
                )
        symbols = list(zip(*all_texts, strict=True))
        variable, counts = self._with_symbols(useful.columns, symbols, tuple(all_bins))
        sensitive = self.sensitive
        if self.is_of_itself:
            # What is protected is what is released: the bins.
            sensitive = variable
            counts = added_rows(counts, [variable.index[symbol] for symbol in symbols])
        table = without_empty(sensitive, variable, counts, tuple(notices))
        joint = Joint.from_exact(table, is_counts=self.is_counts)
        # An empty symbol may lie in a bin with records: it counts once too often, which is safe.
        return replace(
            joint,
            empty_sensitive=self.empty_sensitive,
            empty_useful=self.empty_useful,
            rules=self.rules,
        )

    def _sorted_into_bins(
        self, name: str, texts: Sequence[str], spec: Any
    ) -> tuple[Bins, list[str]]:
        """The bins of a useful column, and the label of each of its texts.

        The empty text, a missing cell, has no bin and stays.
        """
        cells: list[tuple[str, int]] = []
        for text, mass in zip(texts, self.useful_counts, strict=True):
            if text:
                cells.append((text, mass))
        if not isinstance(spec, Bins):
            spec = spec_of(spec)
        bins = bins_for(name, spec, cells)
        column = bins.sorted_in(encode(list(texts), name))
        # The code -1 of a missing cell leads to the empty text at the end.
        labels = [*column.texts, ""]
        return bins, [labels[code] for code in column.codes.tolist()]


def _has_labels(texts: Sequence[str], bins: Bins) -> bool:
    """Whether texts are the labels of bins already."""
    return set(texts) <= {"", *bins.labels}


def names_of_columns(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    if isinstance(columns, str):
        return (columns,)
    return list_argument(
        "columns", columns, f"names, or one name, as texts ({TEXT_NAMES})"
    )


def _require_mass(what: str, variable: Variable, sums: Sequence[int]) -> None:
    """Refuse a symbol without mass, at which no lift is defined."""
    if 0 in sums:
        name = quoted(variable.names[sums.index(0)])
        raise InputError(f"the {what} symbol {name} has no mass; drop it")


def _quotients(rows: Sequence[Sequence[int]], total: int) -> Array:
    """entries / total, each rounded once.

    Python divides integers of any size with correct rounding.
    """
    if total <= EXACT_DOUBLE:
        # Both sides are exact as doubles, so numpy's division rounds once, too.
        values = np.array(rows, dtype=np.float64) / float(total)
    else:
        lines: list[list[float]] = []
        for row in rows:
            lines.append([entry / total for entry in row])
        values = np.array(lines)
    values.setflags(write=False)
    return values
