"""The joint table of a sensitive and a useful variable, in exact integers.

Theory: P_SX has full support on its symbols (rows and columns of zero mass are dropped, with a
notice); single cells may be zero. The table is ``counts / total``, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted, several
from mechdesign.formats.cells import encode
from mechdesign.tables.bin_edges import bins_for, spec_of, specs_by_column
from mechdesign.tables.bins import Bins
from mechdesign.tables.exact_table import (
    LARGEST_ENTRY,
    ExactTable,
    cell_name,
    exact_table,
    without_empty,
)
from mechdesign.tables.tally import Missing, Roles, Tally, counted_columns
from mechdesign.tables.variable import Symbol, Variable, added_columns

__all__ = ["Joint", "Symbol", "Variable"]

Array = NDArray[np.float64]

EXACT_DOUBLE = 2**53
"""Integers up to here are exact as doubles."""


def _quotients(rows: Sequence[Sequence[int]], total: int) -> Array:
    """entries / total, each rounded once (Python divides integers of any size with correct rounding)."""
    if total <= EXACT_DOUBLE:
        values = np.array(rows, dtype=np.float64) / float(total)
    else:
        values = np.array([[entry / total for entry in row] for row in rows])
    values.setflags(write=False)
    return values


@dataclass(frozen=True, repr=False)
class Joint(Displayed):
    """Joint table of S (rows) and X (columns): P(s, x) = counts[s][x] / total, exactly.

    Use `from_counts`, `from_probabilities` or `from_table`; the constructor itself takes a clean table.

    Parameters
    ----------
    sensitive, useful : Variable
        Labels of the |S| rows and |X| columns.
    counts : |S| tuples of |X| integers
        Non-negative, below 2**256, no row or column all zero.
    is_counts : bool
        False when the integers are scaled probabilities or weights and not numbers of records.
    notices : tuple of str
        What was changed on the way in (dropped symbols, dropped records).

    Raises
    ------
    InputError
        If the table has the wrong shape, an entry out of range, or an empty row or column.
    """

    sensitive: Variable
    useful: Variable
    counts: tuple[tuple[int, ...], ...]
    is_counts: bool = True
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = (
            "probabilities or weights"
            if self.records is None
            else f"{self.records:,} records"
        )
        return f"Joint({self.sensitive.brief} by {self.useful.brief}, {size})"

    def __post_init__(self) -> None:
        counts = tuple(tuple(row) for row in self.counts)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "notices", tuple(self.notices))
        both = set(self.sensitive.columns) & set(self.useful.columns)
        if both:
            raise InputError(
                f"the column {quoted(min(both))} cannot be sensitive and useful at once"
            )
        if len(counts) != len(self.sensitive) or any(
            len(row) != len(self.useful) for row in counts
        ):
            raise InputError(
                f"the table must have {len(self.sensitive)} rows of {len(self.useful)} entries, one per symbol"
            )
        for s, row in enumerate(counts):
            for x, entry in enumerate(row):
                if type(entry) is not int or not 0 <= entry < LARGEST_ENTRY:
                    cell = cell_name(self.sensitive, self.useful, s, x)
                    raise InputError(
                        f"the entry at {cell} ({quoted(entry)}) must be an integer in [0, 2^256)"
                    )
        sides = (
            (self.sensitive_counts, self.sensitive),
            (self.useful_counts, self.useful),
        )
        for what, (sums, variable) in zip(("sensitive", "useful"), sides, strict=True):
            if 0 in sums:
                name = quoted(variable.names[sums.index(0)])
                raise InputError(f"the {what} symbol {name} has no mass; drop it")

    @cached_property
    def sensitive_counts(self) -> tuple[int, ...]:
        """Row sums: total * P(s)."""
        return tuple(sum(row) for row in self.counts)

    @cached_property
    def useful_counts(self) -> tuple[int, ...]:
        """Column sums: total * P(x)."""
        return tuple(sum(column) for column in zip(*self.counts, strict=True))

    @cached_property
    def total(self) -> int:
        """Sum of all entries; the common denominator of the table."""
        return sum(self.sensitive_counts)

    @cached_property
    def secrets(self) -> tuple[Joint, ...]:
        """The tables that are protected: this one, or the marginal one of each sensitive column (`Variable.each`)."""
        if not self.sensitive.each:
            return (self,)
        each = zip(
            self.sensitive.secrets, self.sensitive.added(self.counts), strict=True
        )
        tables = ((secret, tuple(map(tuple, rows))) for secret, rows in each)
        return tuple(
            replace(self, sensitive=secret, counts=counts, notices=())
            for secret, counts in tables
        )

    def protecting_each(self) -> Joint:
        """The same table, every sensitive column protected for itself."""
        return replace(self, sensitive=replace(self.sensitive, each=True))

    def releasing(self, columns: str | Sequence[str]) -> Joint:
        """The table of some of the useful columns: the others are summed over."""
        chosen, whole = _names(columns), self.useful
        if missing := [column for column in chosen if column not in whole.columns]:
            raise InputError(f"the table has no useful column {listed(missing)}")
        at = [whole.columns.index(column) for column in chosen]
        places = [tuple(symbol[i] for i in at) for symbol in whole.symbols]
        useful, counts = self._relabelled(chosen, places, tuple(map(whole.bins_of, at)))
        return replace(
            self,
            useful=useful if whole.bins else replace(useful, bins=()),
            counts=counts,
        )

    def _relabelled(
        self,
        columns: tuple[str, ...],
        places: Sequence[Symbol],
        bins: tuple[Bins | None, ...],
    ) -> tuple[Variable, tuple[tuple[int, ...], ...]]:
        """The useful symbols become `places`, those of one name added up, in the order of bins or as text."""
        ranks = [
            {label: i for i, label in enumerate(each.labels if each else ())}
            for each in bins
        ]
        symbols = sorted(
            set(places),
            key=lambda s: [(r.get(t, -1), t) for r, t in zip(ranks, s, strict=True)],
        )
        index = {symbol: i for i, symbol in enumerate(symbols)}
        counts = added_columns(self.counts, [index[symbol] for symbol in places])
        return Variable(columns, tuple(symbols), bins=bins), counts

    @property
    def records(self) -> int | None:
        """Number of records behind a table of counts, None for probabilities and fractional weights."""
        return self.total if self.is_counts else None

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
        n, rows, columns = self.total, self.sensitive_counts, self.useful_counts
        if (
            n * n <= EXACT_DOUBLE
        ):  # products are exact as doubles, so the quotient rounds once
            values = np.array(self.counts, dtype=np.float64) * float(n)
            values /= np.outer(
                np.array(rows, dtype=np.float64), np.array(columns, dtype=np.float64)
            )
        else:
            lines = zip(self.counts, rows, strict=True)
            values = np.array(
                [
                    [c * n / (r * k) for c, k in zip(row, columns, strict=True)]
                    for row, r in lines
                ]
            )
        values.setflags(write=False)
        return values

    @classmethod
    def from_exact(cls, table: ExactTable, *, is_counts: bool) -> Joint:
        """The joint of a clean table."""
        sensitive, useful, counts, notices = table
        return cls(sensitive, useful, counts, is_counts=is_counts, notices=notices)

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
            Rows are sensitive symbols, columns useful ones. Whole floats and texts such as ``12`` are
            read exactly.
        sensitive_labels, useful_labels : sequences, optional
            One text per row and per column (tuples of texts for crossed columns); s0, s1, .. and x0, x1, ..
            by default, or the index and header of a pandas frame that has its own.
        sensitive, useful : str or sequence of str
            Names of the columns that the symbols come from.
        weights : bool
            The entries are sums of survey weights, fractional ones too, and no numbers of records.

        Raises
        ------
        InputError
            On a negative, fractional or non-finite count (named by its labels), wrong shapes or
            duplicate labels, a table without mass, a margin such as `Total`, or a single useful symbol.
        """
        labels, what = (
            (sensitive_labels, useful_labels),
            "weight" if weights else "count",
        )
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

        A float is what its bits say; `decimal.Decimal`, `fractions.Fraction` and text are exact as written.
        They must sum to 1 within 1e-6 and are then normalised exactly. Parameters and errors are those of
        `from_counts`.
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
    ) -> Joint:
        """Count the records of a table.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table; polars LazyFrame, DuckDB relation, Spark or Dask DataFrame
            Lazy tables are grouped where the data are, and counts alone are fetched.
        sensitive, useful : str or sequence of str
            Columns; several are crossed, and the symbols are the combinations that occur. Symbols are
            text (`mechdesign.formats.cells` says how numbers, dates and categories are written) and sorted as text.
        weight : str, optional
            Column with the weight of a record: whole numbers (then the table is still one of counts) or
            decimals, each taken exactly as written (a float as the shortest decimal that names it).
        missing : 'refuse', 'symbol' or 'drop'
            Whether a null (or NaN) in one of the columns is an error, the empty symbol, or drops its record.
            A pandas column of integers and gaps, which pandas keeps as floats, is read as integers.
        bins : optional
            As in `binned`.
        protect_each : bool
            Several sensitive columns are each protected for themselves, and not their combinations.

        Raises
        ------
        InputError
            On a missing column, a null, a weight that is no number, no records, or a single useful symbol.
        """
        roles = Roles(_names(sensitive), _names(useful), weight)
        tally = Tally(roles, missing)
        for columns, times in counted_columns(frame, roles.columns):
            tally.add_columns(columns, times)
        joint = cls.from_tally(tally)
        joint = joint if bins is None else joint.binned(bins)
        return joint.protecting_each() if protect_each else joint

    @classmethod
    def from_tally(cls, tally: Tally) -> Joint:
        """The joint of counted records; raises as `Tally.table` does."""
        return cls.from_exact(tally.table(), is_counts=tally.is_counts)

    def binned(self, bins: Any) -> Joint:
        """The table with the numbers (or dates, or times) of useful columns sorted into bins, exactly.

        Parameters
        ----------
        bins : number, timedelta, str, sequence of edges, or mapping of these
            A width; ``quantiles:N``; ``auto:N``, N bins of least distance to their medians; or edges, of which the
            first may be -inf and the last inf. For crossed columns a mapping by column. Or those of another table,
            ``channel.useful.bins``.

        Raises
        ------
        InputError
            If a cell is no number, lies outside the edges, or `bins` is none of this.
        """
        specs, useful, notices = (
            specs_by_column(bins, self.useful.columns),
            self.useful,
            self.notices,
        )
        found: list[Bins | None] = list(useful.bins) or [None] * len(useful.columns)
        parts = [list(part) for part in zip(*useful.symbols, strict=True)]
        for k, name in enumerate(useful.columns):
            given, texts = specs.get(name), parts[k]
            if given is None or (
                isinstance(given, Bins) and set(texts) <= {"", *given.labels}
            ):
                found[k] = found[k] or given
                continue
            if found[k] is not None:
                raise InputError(
                    f"the column {quoted(name)} is sorted into bins already"
                )
            cells = [
                (text, mass)
                for text, mass in zip(texts, self.useful_counts, strict=True)
                if text
            ]
            found[k] = chosen = bins_for(
                name, given if isinstance(given, Bins) else spec_of(given), cells
            )
            column = chosen.sorted_in(encode(texts, name))
            parts[k] = [(*column.texts, "")[code] for code in column.codes.tolist()]
            if empty := len(chosen) - len({*parts[k]} - {""}):
                notices += (
                    f"{empty} of the {len(chosen)} bins of {quoted(name)} hold no record and have no row in a channel: "
                    "a value there is an unknown symbol",
                )
        variable, counts = self._relabelled(
            useful.columns, list(zip(*parts, strict=True)), tuple(found)
        )
        table = without_empty(self.sensitive, variable, counts, notices)
        return Joint.from_exact(table, is_counts=self.is_counts)


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (
        (columns,)
        if isinstance(columns, str)
        else several("columns", columns, "names, or one name")
    )
