"""A table answered through a mechanism: the exact answer of each group, and the number released.

One pass over the table adds up the groups (`Groups`). Then every exact answer is placed into a cell
of the quantiser for the size of its group.

Sums are compared in integers. For example, the exact sum of a group is 37 units of 1/4, and its
mean over 5 records is 37 units of 1/20, or 1.85. The quantiser turns its thresholds into numbers of
such units once (`Quantizer.placing`), so no answer is rounded before it has its cell.

A job makes an `Answering` for an open table and calls `grouped`, which returns the columns of the
output. Then `tally` has the sums of the release. `members` is for designs that depend on who is in
which group, before any answer.

*Data frames.* `answer_groups` takes these steps:

1. The frame is wrapped as a source of batches (`_Table`). A lazy one is collected, with the columns
   that the query and the groups use; with a ledger all columns are needed.
2. `Answering` answers it by the code that answers files, so that the answers are the same.
3. The release is entered in the ledger if there is one (`charged`).
4. The answers become a frame of the kind of the input (`_frame_like`).

For example, a frame with the columns town, kwh and name, and a mechanism for the mean of kwh by
town, give a frame with the columns town, records and mean_kwh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.column_names import require_columns
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.opening import Batch
from mechdesign.formats.parquet import ParquetBatch
from mechdesign.formats.urls import FRAME
from mechdesign.frames.eager import require_different_names
from mechdesign.jobs.ledger import Ledger
from mechdesign.nonstochastic.dividing import largest_answers
from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.number_columns import (
    BadCell,
    numbers_of,
    truths_of,
    usable_records,
)
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import ranks_of
from mechdesign.nonstochastic.release_answers import RangeRelease, Tally, charged
from mechdesign.nonstochastic.sizes import released_number

RECORDS = "records"
"""Header of the number of records of each group."""


class Answering:
    """A table with the mechanism that answers for its groups.

    Parameters
    ----------
    mechanism, table
        The mechanism, and an open source.
    column
        The column of numbers, if it has another name than in the mechanism.
    equals
        The value that a count counts.
    ledger
        A ledger whose hasher records the rows.

    Attributes
    ----------
    tally
        Thresholds and sums of the release.
    census
        The hashes of the records, if there is a ledger.
    answers_each
        The most answers of one individual, after `grouped`.
    """

    def __init__(
        self,
        mechanism: MechanismFile,
        table: Any,
        column: str | None = None,
        equals: str | None = None,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.table = table
        self.equals = equals
        self.column = column or mechanism.column
        if equals is not None and mechanism.query != "count":
            raise InputError(
                f"a value to count is for a mechanism that counts, not for the {mechanism.query}"
            )
        self.tally = Tally(mechanism, self.column)
        self.census: RecordCensus | None = None
        if ledger is not None:
            self.census = RecordCensus(ledger.hasher)
        self.answers_each: int | None = None
        self._progress = progress
        self._ledger = ledger

    @property
    def _ordered(self) -> bool:
        """Whether the query is an order statistic."""
        # Only order statistics have ranks.
        return ranks_of(self.mechanism.query, 1) != (0, 0)

    def batches(
        self, individual: str | None
    ) -> Iterator[tuple[Batch, NDArray[np.int64], list[Any]]]:
        """The records in use, as `usable_records` has them.

        The columns are the numbers, those of the group, and the individual if named.
        """
        names = [self.column, *self.mechanism.group_by]
        if individual:
            names.append(individual)
        with errors_naming(self.table.name):
            require_columns(names, self.table.header)
        stored: str | None = None
        if self.table.kind == "Parquet" and self.mechanism.query != "count":
            stored = self.column
        # A second pass finds the same ones.
        self.tally.left_out = 0
        records = usable_records(
            self.table,
            names,
            self.mechanism.provenance.get("missing", "refuse"),
            stored=stored,
            # The ledger knows a record by all its cells.
            whole=self._ledger is not None,
            # The treatment of empty cells is in a mechanism file, and a command cannot change it.
            advise=not self.mechanism.is_designed,
            left_out=self.tally.leave_out,
        )
        for batch, rows, columns in records:
            if self.census is not None:
                self.census.add(batch)
            yield batch, rows, columns
            if self._progress is not None:
                self._progress(self.table.position, self.table.size)

    def members(self, individual: str) -> Groups:
        """The groups and their members, from a pass of its own; all sums are 0."""
        groups = Groups()
        for _, rows, columns in self.batches(individual):
            groups.add(columns[1:-1], np.zeros(len(rows)), columns[-1])
        return groups

    def most_answers(self, groups: Groups, individual: str | None) -> int | None:
        """The most answers that one individual takes part in."""
        try:
            return groups.most_answers(single=self.mechanism.query == "identity")
        except InputError as error:
            name = self.table.name
            message = f"{name}: by the column {quoted(individual)} {error}"
            raise FileError(name, message) from None

    def grouped(self, individual: str | None) -> dict[str, Any]:
        """The columns of the output: one answer for each group.

        Raises
        ------
        InputError
            If a record has no usable number, or there is nothing to answer.
        """
        groups, marked = self._collected(individual)
        if not self.tally.records:
            raise InputError(
                f"{self.table.name}: no records; an answer needs at least one"
            )
        self.answers_each = self.most_answers(groups, individual)
        answered, answers = self._answers(groups, marked)
        if self.mechanism.divided and individual:
            self.tally.largest = largest_answers(groups, self.tally.sized)
        self.tally.answers = len(answers)
        if not answers:
            raise InputError(
                f"{self.table.name}: no value lies in the range, and nothing is left to answer"
            )
        keys = groups.keys
        sizes = groups.sizes
        columns: dict[str, Any] = {}
        for k, name in enumerate(self.mechanism.group_by):
            columns[name] = [keys[g][k] for g in answered]
        columns[RECORDS] = [sizes[g] for g in answered]
        columns[self.mechanism.answer] = answers
        return columns

    def _collected(self, individual: str | None) -> tuple[Groups, set[int]]:
        """The exact sums or values of all groups, and the groups to mark.

        A group is marked for a value outside the range where the mechanism discloses it so.
        """
        groups = Groups(ordered=self._ordered)
        marked: set[int] = set()
        keys = len(self.mechanism.group_by)
        for _, rows, columns in self.batches(individual):
            try:
                if self.mechanism.query == "count":
                    numbers = truths_of(columns[0], self.column, self.equals)
                else:
                    advise = not self.mechanism.is_designed
                    numbers = numbers_of(columns[0], self.column, advise=advise)
                    if isinstance(columns[0], Encoded):
                        self.tally.points.add(columns[0].texts)
                values, outside = self.tally.inside(numbers)
            except BadCell as error:
                place = self.table.where(int(rows[error.position]))
                raise FileError(self.table.name, f"{place}: {error.what}") from None
            person = None
            if individual:
                person = columns[-1]
            dropped = None
            if self.mechanism.outside == "drop":
                dropped = outside
            group = groups.add(
                columns[1 : 1 + keys], values[numbers.codes], person, dropped
            )
            # `outside` is None unless such values are marked or dropped.
            if outside is not None and dropped is None:
                marked.update(group[outside].tolist())
            self.tally.records += len(rows)
        return groups, marked

    def _answers(
        self, groups: Groups, marked: set[int]
    ) -> tuple[list[int], list[float | str | None]]:
        """The groups that have records, and their released numbers.

        A marked group has an empty answer.
        """
        query = self.mechanism.query
        # Exact answers are whole multiples of a unit, which is the same for all groups.
        if self._ordered:
            multiples, unit = groups.ranked(lambda size: ranks_of(query, size))
        else:
            multiples, unit = groups.totals()
        empty_answer = None if self.table.kind == "Parquet" else ""
        cells: dict[int, _SizedCells] = {}
        answered: list[int] = []
        released: list[float | str | None] = []
        exact = np.zeros(len(groups))
        errors = np.zeros(len(groups))
        times = np.zeros(len(groups), dtype=np.int64)
        for g, (multiple, size) in enumerate(zip(multiples, groups.sizes, strict=True)):
            if size == 0:
                # All its records were dropped.
                continue
            answered.append(g)
            if size not in cells:
                # The mean is the sum, in units that are smaller by the size.
                unit_of_answer = unit / size if query == "mean" else unit
                quantizer = self.tally.quantizer(size)
                cells[size] = _SizedCells(query, quantizer, unit_of_answer)
            if g in marked:
                released.append(empty_answer)
                continue
            number = cells[size].released(multiple)
            released.append(number)
            times[g] = 1
            exact[g] = cells[size].double(multiple)
            errors[g] = abs(number - exact[g])
        self.tally.add_errors(exact, errors, times)
        return answered, released


class _SizedCells:
    """The cells of groups of one size, for exact answers as multiples of a unit."""

    def __init__(self, query: str, quantizer: Quantizer, unit: Fraction) -> None:
        self._query = query
        self._quantizer = quantizer
        self._numerator, self._denominator = unit.as_integer_ratio()
        self._cell_of = quantizer.placing(unit)
        self._numbers: dict[int, float] = {}

    def double(self, multiple: int) -> float:
        """The double nearest to an answer."""
        # The product is exact, and Python rounds the quotient of two integers once.
        return multiple * self._numerator / self._denominator

    def released(self, multiple: int) -> float:
        """The released number of the cell of an answer."""
        cell = self._cell_of(multiple)
        if cell not in self._numbers:
            number = released_number(self._query, self._quantizer, cell)
            self._numbers[cell] = float(number)
        return self._numbers[cell]


# -------------------------------------------------------------------------- data frames


def answer_groups(
    frame: Any,
    mechanism: MechanismFile,
    *,
    column: str | None = None,
    individual: str | None = None,
    equals: str | None = None,
    ledger: PathLike | None = None,
) -> tuple[Any, RangeRelease]:
    """A mechanism's answers for the groups of a table, as `apply` writes them, and their guarantee.

    Parameters
    ----------
    frame : DataFrame or Table
        Of pandas, polars or pyarrow; or a lazy frame of polars, DuckDB, Spark or Dask.
    column : str, optional
        The column of numbers, if it has another name than in the mechanism.
    individual : str, optional
        The column that identifies individuals.
    equals : str, optional
        For a count: the value that is counted.
    ledger : path, optional
        Adds up the bits of all releases of the column of these records.

    Returns
    -------
    answers
        A row for each group, in a frame of the same kind as an eager one, else of pyarrow.
    result : RangeRelease
        The guarantee, and errors that depend on the data.

    Raises
    ------
    InputError
        If a column is missing, or a record has no number, or a number outside the range that is
        refused.
    """
    if mechanism.query == "identity":
        raise InputError(
            "this mechanism is for single records: use sanitise(frame, mechanism)"
        )
    opened_ledger: Ledger | None = None
    names: list[str] | None = None
    if ledger is None:
        names = _columns_in_use(mechanism, column, individual)
    else:
        # A ledger knows a record by all its cells, so all columns are collected.
        opened_ledger = Ledger(ledger)
    table = _Table(frame, names)
    answering = Answering(mechanism, table, column, equals, ledger=opened_ledger)
    answers = answering.grouped(individual)
    result = answering.tally.result(None, answering.answers_each)
    # There is a census exactly where there is a ledger.
    if opened_ledger is not None and answering.census is not None:
        result = charged(
            opened_ledger,
            answering.census.content(),
            result,
            equals,
            source=FRAME,
            target=FRAME,
        )
    return _frame_like(frame, answers), result


def _columns_in_use(
    mechanism: MechanismFile, column: str | None, individual: str | None
) -> list[str]:
    """The columns that the answers of a mechanism need."""
    names = [column or mechanism.column, *mechanism.group_by]
    if individual:
        names.append(individual)
    return names


def _frame_like(frame: Any, columns: dict[str, Any]) -> Any:
    """Columns in a frame of the same kind as an eager one, else of pyarrow."""
    backend: Any = "pyarrow"
    if nw.dependencies.is_into_dataframe(frame):
        backend = nw.from_native(frame).implementation
    return nw.from_dict(columns, backend=backend).to_native()


class _Table:
    """The columns of a frame as a source of batches: the part of `Source` that an answer needs."""

    # The cells have types, as those of Parquet files do.
    kind = "Parquet"
    name = "the table"
    # Progress is not reported: the whole frame is in memory.
    size = 1
    position = 0

    def __init__(self, frame: Any, names: Sequence[str] | None) -> None:
        import pyarrow as pa

        # narwhals knows no record batches.
        if isinstance(frame, pa.RecordBatch):
            frame = pa.Table.from_batches([frame])
        # Dask without narwhals, which warns that its support will end.
        is_dask = hasattr(frame, "map_partitions")
        if is_dask:
            header = list(frame.columns)
        else:
            header = list(nw.from_native(frame).lazy().collect_schema())
        self.header = require_different_names(header)
        if names is None:
            columns = self.header
        else:
            # The numbers may be those of the column that names the groups or the individual.
            columns = list(dict.fromkeys(names))
        require_columns(columns, self.header)
        if is_dask:
            frame = frame[columns].compute()
        whole: Any = nw.from_native(frame)
        self._table = whole.lazy().select(columns).collect("pyarrow").to_native()

    def batches(self, *, encode: Sequence[str], **_: Any) -> Iterator[ParquetBatch]:
        """All records."""
        end = 0
        for batch in self._table.to_batches():
            end += batch.num_rows
            yield ParquetBatch(batch, encode, end)

    def where(self, record: int) -> str:
        """The place of a record in messages."""
        return f"row {record} (counted from 0)"
