"""A mechanism for single records as a recipe: each number is replaced by the middle of its cell.

A recipe tells the jobs of files and folders (`mechdesign.jobs`) what a release does:

- `NumbersRecipe.plan` says what becomes of each column, and `drawer` replaces the numbers part by
  part (`NumbersDrawer`).
- `write_file` releases a file: numbers, checks of disclosure, the mechanism file beside it, the
  ledger, and at last the name of the target.
- `for_folder`, `split_warning` and `folder_result` join the files of a folder.
- `release_table` releases a data frame, and enters it in the ledger.

Nothing is drawn, so no key and no identity is needed. The promise of an answer assumes that the
place of its record discloses nothing of the value: a file that is sorted by its numbers is refused,
and a folder whose files have ranges of their own, such as 0 to 10 and 10 to 20, gets a warning.

*The drawer* takes a table part by part. The mechanism divides the range of the numbers into cells,
and the answer is the middle of a cell unless the mechanism has another number for it. With the
cells [0, 10) and [10, 20] the numbers 3, 12 and 19 are answered with 5, 15 and 15. Nothing is
random, so a number has the same answer in every part and every reading.

`NumbersDrawer.draw` works on one part of the table at a time, in three steps:

1. `_part` leaves out the records without a number, if the mechanism drops them, and codes the
   numbers of the others: each distinct number once, and for each record which of them it has.
2. Each distinct number is placed in a cell once, however many records have it; the code of an
   answer is the number of its cell. Everything that is said of the whole table is added up, before
   any record is left out for what it holds.
3. Numbers outside the range were refused or moved into it in step 1; or the mechanism discloses
   that they are outside, and the record is left out, or answered with the empty text.

Say that outsiders and empty cells are left out, and a part has the numbers 3, 25, 12 and an empty
cell. In use are 3, 25 and 12, in the cells 0, 1 and 1 (25 is moved to 20 to be placed). The first
and the third record are answered, with 5 and 15.

`Sorted` sees whether the numbers come in order, which discloses each by its place, and whether that
can be chance: of ten different numbers two of the 10! arrangements are sorted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import document_text
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most, quoted
from mechdesign.formats.cells import Encoded, empty_as_missing, encode
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.urls import FRAME, place_of
from mechdesign.jobs.column_plan import Plan, make_plan
from mechdesign.jobs.file_run import FileRecipe, FileRun
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import ColumnGroup, OutputColumn
from mechdesign.jobs.recipe import (
    BadRecord,
    ContentOf,
    DisclosureChecks,
    Drawer,
    DrawnColumn,
    Frame,
    Place,
    View,
)
from mechdesign.jobs.side_files import Sides
from mechdesign.leaks.evidence import Crossing, decisive, log_evidence
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.number_columns import (
    BadCell,
    Numbers,
    numbers_of,
    selected,
    usable,
)
from mechdesign.nonstochastic.release_answers import RangeRelease, Tally, charged
from mechdesign.release.drawing import key_of
from mechdesign.release.samplers import REFUSE

# ------------------------------------------------------------------------------- drawer

ENOUGH = 1 << 12
"""Most distinct numbers that are counted: if so many are sorted, it is not by chance."""


class NumbersDrawer(Drawer):
    """A mechanism made ready for the parts of a table with this header.

    Parameters
    ----------
    recipe
        The recipe of the release.
    mechanism
        Its mechanism for single records.
    folder_tally
        Adds up the files of a folder; None for a single table.
    header
        The names of the columns.
    """

    def __init__(
        self,
        recipe: FileRecipe,
        mechanism: MechanismFile,
        folder_tally: Tally | None,
        header: Sequence[Any],
    ) -> None:
        plan = recipe.plan(header)
        name = header[plan.inputs[0][0]]
        protected: dict[View, None] = {}
        # With a new column beside the old one, the output contains the numbers themselves.
        if recipe.options.into is None:
            protected[View(name)] = None
        checks = DisclosureChecks(
            plan,
            recipe.options,
            private=recipe.private_columns,
            hidden=protected,
            orders={name: Sorted()},
        )
        super().__init__(recipe, header, plan, checks)
        self._folder_tally = folder_tally
        self.tally = Tally(mechanism, name)
        self._missing = mechanism.provenance.get("missing", REFUSE)
        self._advise = not mechanism.is_designed
        self._quantizer = self.tally.quantizer(1)
        middles = [float(middle) for middle in self._quantizer.midpoints]
        self._middles = np.array(middles)
        # The last label marks what lies outside the range: an empty cell.
        self._labels = (*map(repr, middles), "")
        self._counts = [np.zeros(len(self._labels), np.int64)]

    @property
    def may_drop(self) -> bool:
        """Whether records with an empty cell, or a value outside the range, are left out."""
        return "drop" in (self._missing, self.tally.mechanism.outside)

    @property
    def labels(self) -> dict[Place, tuple[str, ...]]:
        """The texts of the answers, and last the empty one."""
        return {(0, 0): self._labels}

    @property
    def counts(self) -> list[NDArray[np.int64]]:
        """How many records got each answer."""
        return self._counts

    def own_type(self, column: OutputColumn, type_of: Callable[[int], Any]) -> Any:
        """The arrow type of the released column."""
        import pyarrow as pa

        return pa.float64()

    def reads(self, schema: Any) -> tuple[list[str], list[str]]:
        """The columns to read as codes, and those to read as they are stored: numbers."""
        people = [self.header[place] for place in self.plan.identity]
        column = self.tally.column
        if schema is not None and _is_number(schema.field(column).type):
            return people, [column]
        return [*people, column], []

    def draw(
        self, column: Callable[[int], Any], count: int, *, first_row: int = 0
    ) -> dict[tuple[int, int], DrawnColumn]:
        """As `Drawer.draw`; the records in `dropped` have no code."""
        part = self._part(column, count, first_row)
        cell_of_value = self._quantizer.cells(part.values).astype(np.int32)
        self.tally.leave_out(count - len(part.rows))
        self._add_to_totals(part, cell_of_value)
        rows, codes = self._answers(part, cell_of_value)
        self.dropped = None
        if len(rows) < count:
            self.dropped = np.isin(np.arange(count), rows, invert=True)
        self.tally.answers += len(codes)
        self._counts[0] += np.bincount(codes, minlength=len(self._labels))
        return {(0, 0): DrawnColumn(codes, self._labels)}

    def _answers(
        self, part: _Part, cell_of_value: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The places of the records that have an answer, and the codes of their answers."""
        rows = part.rows
        codes = cell_of_value[part.numbers.codes]
        if part.outside is None:
            return rows, codes
        if self.tally.mechanism.outside == "drop":
            return rows[~part.outside], codes[~part.outside]
        # The last label, which is empty.
        codes[part.outside] = self._middles.size
        return rows, codes

    def _add_to_totals(self, part: _Part, cell_of_value: NDArray[np.int32]) -> None:
        """Add to what is said of the whole table: records, individuals, errors, and the order."""
        numbers = part.numbers
        records = len(numbers.codes)
        self.tally.records += records
        if part.person is not None:
            self._add_people(part.person, records)
        self._add_errors(part, cell_of_value)
        for order in self.checks.orders.values():
            order.add(numbers.values[numbers.codes])

    def _part(self, column: Callable[[int], Any], count: int, first_row: int) -> _Part:
        """The numbers of the records of a part that are in use: all but those with an empty cell
        that the mechanism leaves out.

        Raises
        ------
        BadRecord
            At the first cell that is no number, or a number outside the range that is refused.
        """
        rows = np.arange(count)
        cells, names = self._cells(column)
        try:
            in_use = usable(cells, names, self._missing, advise=self._advise)
            if in_use is not None:
                rows = rows[in_use]
                cells = [selected(values, in_use) for values in cells]
            numbers = numbers_of(cells[0], names[0], advise=self._advise)
            if isinstance(cells[0], Encoded):
                self.tally.points.add(cells[0].texts)
            values, outside = self.tally.inside(numbers)
        except BadCell as error:
            # The position counts the records in use alone.
            row = int(rows[error.position])
            raise BadRecord(
                row, error.what, f"row number {first_row + row} (counted from 0)"
            ) from None
        person = cells[1] if self.plan.identity else None
        return _Part(rows, numbers, values, outside, person)

    def _add_errors(self, part: _Part, cell_of_value: NDArray[np.int32]) -> None:
        """Add the errors of the answers of a part to the tally."""
        numbers = part.numbers
        # A value that is disclosed to lie outside has an empty answer, or none, and no error.
        answered = numbers.codes
        if part.outside is not None:
            answered = answered[~part.outside]
        errors = np.abs(self._middles[cell_of_value] - numbers.values)
        times = np.bincount(answered, minlength=cell_of_value.size)
        self.tally.add_errors(numbers.values, errors, times)

    def _cells(self, column: Callable[[int], Any]) -> tuple[list[Any], list[Any]]:
        """The column of numbers and those that identify individuals, with their names."""
        number_place = self.plan.inputs[0][0]
        names = [self.header[number_place]]
        cells = [_stored(column(number_place), names[0])]
        for place in self.plan.identity:
            name = self.header[place]
            names.append(name)
            cells.append(empty_as_missing(encode(column(place), name)))
        return cells, names

    def _add_people(self, person: Any, count: int) -> None:
        """Add the individuals of `count` records, to the tally of the folder as well."""
        values = np.zeros(count)
        self.tally.people.add([], values, person)
        if self._folder_tally is not None:
            self._folder_tally.people.add([], values, person)

    def count(self, column: Callable[[int], Any], times: NDArray[np.int64]) -> None:
        """As `Drawer.count`; each record comes once."""
        # Nothing is random, so the answers can be counted only by placing every number.
        self.draw(column, len(times))

    def result(self, sha256: str | None, name: str = "the table") -> RangeRelease:
        """The result of the release; `name` is that of what is released."""
        if not self.tally.records and self._advise:
            raise InputError(f"{name}: no records; an answer needs at least one")
        if self._folder_tally is not None:
            self._folder_tally.add(self.tally)
        return self.tally.result(sha256)

    def rebuild(self, like: Any, drawn: DrawnColumn, name: str) -> Any:
        """The numbers in the same kind of column as `like`."""
        import pyarrow as pa

        values = np.append(self._middles, np.nan)[drawn.codes]
        if isinstance(like, (pa.Array, pa.ChunkedArray)):
            array = pa.array(values, mask=drawn.codes == self._middles.size)
            if isinstance(like, pa.Array):
                return array
            return pa.chunked_array([array])
        if isinstance(like, np.ndarray):
            return values
        # A polars Series, without an import of polars; else a pandas one.
        if hasattr(like, "to_arrow"):
            return type(like)(name, values, nan_to_null=True)
        return type(like)(values, index=like.index, name=like.name)


@dataclass(frozen=True, eq=False)
class _Part:
    """The records in use of a part of a table.

    Parameters
    ----------
    rows : (n,) integers
        Their places in the part.
    numbers
        Their numbers, coded.
    values : (m,) array
        The distinct numbers, moved into the range.
    outside : (n,) truth values or None
        The records with a number outside the range, where that is disclosed.
    person
        The column that identifies individuals; None without one.
    """

    rows: NDArray[np.int64]
    numbers: Numbers
    values: NDArray[np.float64]
    outside: NDArray[np.bool_] | None
    person: Any


def _stored(column: Any, name: str) -> Any:
    """A column as an array of numbers, where it holds numbers, else as codes into texts."""
    import pyarrow as pa

    array = column
    # A polars Series, without an import of polars.
    if hasattr(column, "to_arrow"):
        array = column.to_arrow()
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        try:
            array = pa.Array.from_pandas(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return empty_as_missing(encode(column, name))
    if _is_number(array.type):
        if isinstance(array, pa.ChunkedArray):
            return array.combine_chunks()
        return array
    return empty_as_missing(encode(array, name))


def _is_number(kind: Any) -> bool:
    """Whether an arrow type is one of integers or floating-point numbers."""
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind)


class Sorted:
    """Whether numbers come in ascending or descending order."""

    def __init__(self) -> None:
        self._up = self._down = True
        self._last = np.zeros(0)
        self._counts = Counter[float]()

    def add(self, values: NDArray[np.float64]) -> None:
        """The next records."""
        if not len(values):
            return
        # The first step leads from the last number of the batch before.
        steps = np.diff(np.concatenate([self._last, values]))
        self._up = self._up and not (steps < 0).any()
        self._down = self._down and not (steps > 0).any()
        self._last = values[-1:]
        if (self._up or self._down) and len(self._counts) <= ENOUGH:
            self._counts.update(values.tolist())

    def evidence(self) -> float:
        """The logarithm of an e-value against a random order.

        Of the n! / (t_1! t_2! ..) arrangements of n numbers, t_k of them equal, at most two are
        sorted.
        """
        if not self._up and not self._down:
            return -math.inf
        # lgamma(n + 1) = log n!
        ties = sum(math.lgamma(times + 1) for times in self._counts.values())
        return math.lgamma(self._counts.total() + 1) - ties - math.log(2)


# ------------------------------------------------------------------------------- recipe

DRAW_OPTIONS = ("key", "form", "policy", "row_numbers", "changed", "fresh_draw")
"""The options of a release that are about draws."""


@dataclass(frozen=True, kw_only=True)
class NumbersRecipe(FileRecipe):
    """A mechanism for single records with the options of a release.

    `tally` adds up the files of a folder; None for a single table.
    """

    draws: ClassVar[bool] = False

    mechanism: MechanismFile
    tally: Tally | None = None

    @classmethod
    def of(cls, mechanism: MechanismFile, options: ReleaseOptions) -> NumbersRecipe:
        """The recipe of a mechanism for single records.

        Raises
        ------
        InputError
            If the mechanism answers for groups, or an option is about draws.
        """
        if mechanism.query != "identity":
            raise InputError(
                f"this mechanism answers for groups ({mechanism.query}), and releases no column of "
                "single records; apply it to a whole table (`apply`, or answer_groups)"
            )
        plain = ReleaseOptions()
        given: list[str] = []
        for name in DRAW_OPTIONS:
            if getattr(options, name) != getattr(plain, name):
                given.append(name)
        if given:
            raise InputError(f"a mechanism draws nothing: leave out {', '.join(given)}")
        if len(options.identifiers) > 1:
            raise InputError(
                "a mechanism has one column that identifies individuals; name one (--identity)"
            )
        # The key is for a random order of the records alone.
        keys = (key_of(None, options.insecure_seed),)
        return cls(keys=keys, options=options, mechanism=mechanism)

    @property
    def column(self) -> str:
        """The column of numbers, by its name in the table."""
        return self.options.renamed.get(self.mechanism.column, self.mechanism.column)

    @property
    def private_columns(self) -> list[str]:
        """The correlated columns: a mechanism has no sensitive ones."""
        return list(self.options.correlated)

    @property
    def useful_columns(self) -> list[str]:
        """The column of numbers."""
        return [self.column]

    def plan(self, header: Sequence[Any]) -> Plan:
        """What becomes of each column of a table."""
        group = ColumnGroup((self.mechanism.column,), sensitive=())
        return make_plan([group], header, self.options)

    def drawer(self, header: Sequence[Any]) -> NumbersDrawer:
        """The drawer of the parts of a table with this header."""
        return NumbersDrawer(self, self.mechanism, self.tally, header)

    def check_sides(self, sides: Sides) -> None:
        """Refuse all side files but the mechanism file."""
        if sides.codebook is not None or sides.internal is not None:
            raise InputError(
                "a mechanism has neither codebook nor internal manifest, only its own file "
                "(--manifest)"
            )

    def write_file(self, run: FileRun, ledger: Ledger | None) -> RangeRelease:
        """Release a file; the ledger adds up the bits of the column of these records."""
        census: RecordCensus | None = None
        if ledger is not None:
            census = RecordCensus(ledger.hasher)
        # Nothing is drawn, so the same job writes the same bytes.
        with run.opened_target(sources=run.sides.channel_files, repeatable=True) as out:
            drawer = self.drawer(run.table.header)
            if census is None:
                run.draw(out, drawer)
            else:
                run.draw(out, drawer, census.add)
            run.refuse_disclosure(drawer)
            result = drawer.result(out.seal(), run.table.name)
            run.add_notes(result.notices)
            result = replace(result, notices=run.notices)
            if run.sides.manifest is not None:
                text = document_text(result.mechanism.document)
                place = out.part_of_side(run.sides.manifest)
                place.write_text(text, encoding="utf-8")
            out.refuse_others()
            # The ledger first: a crash between the two charges for a release that is not there,
            # and never leaves a release that is not charged.
            if ledger is not None and census is not None:
                try:
                    result = charged(
                        ledger,
                        census.content(),
                        result,
                        source=run.guarded.name,
                        target=place_of(run.target),
                    )
                except Rehearsed:
                    # A rehearsal ends at the entry, before anything is written.
                    return result
            out.commit()
        return result

    def for_folder(self) -> NumbersRecipe:
        """The recipe for all files of a folder, whose answers are added up."""
        return replace(self, tally=Tally(self.mechanism, self.column))

    def split_warning(
        self, crossing: Crossing, names: Sequence[str], *, looks: int
    ) -> str | None:
        """Warn of files that were divided by the number itself.

        Files of months may have other numbers each. But the name of a file discloses the number
        where each file begins at or above the end of the one before.
        """
        numbers = np.array(
            [float(symbol or "nan") for symbol in crossing.symbols.number_of]
        )
        files, symbols, counts = crossing.table()
        ranges: list[tuple[float, float]] = []
        for name in names:
            inside = numbers[symbols[files == crossing.values.number_of[name]]]
            if np.isfinite(inside).any():
                ranges.append((np.nanmin(inside), np.nanmax(inside)))
        ranges.sort()
        if len(ranges) < 2:
            return None
        for (_, largest), (smallest, _) in pairwise(ranges):
            if smallest < largest:
                return None
        # Few records may be in order by chance.
        if not decisive(log_evidence(files, symbols, counts)):
            return None
        return "each file has numbers of its own"

    def folder_result(
        self,
        results: Sequence[Any],
        sha256: str,
        *,
        already: bool,
        notices: tuple[str, ...],
    ) -> RangeRelease:
        """The result of all files of a folder together."""
        if self.tally is None:
            raise TypeError("the results of a folder come from its own recipe")
        return replace(self.tally.result(sha256), notices=notices)

    def for_lazy_table(self, header: Sequence[Any]) -> NumbersRecipe:
        """The recipe itself: without draws a lazy table has the same answers at every reading."""
        if self.options.ledger is not None:
            raise InputError(
                "a ledger adds up the releases of records, and a lazy table gives it none: leave "
                "it out"
            )
        return self

    def release_table(
        self,
        header: Sequence[Any],
        release: Callable[[Drawer], Frame],
        content: ContentOf,
    ) -> tuple[Frame, tuple[str, ...]]:
        """The release of a whole table, entered in the ledger of the options if there is one."""
        drawer = self.drawer(header)
        released = release(drawer)
        result = drawer.result(None)
        if self.options.ledger is None:
            return released, ()
        ledger = Ledger(self.options.ledger)
        hashed, _ = content(ledger.hasher, ())
        result = charged(ledger, hashed, result, source=FRAME, target=FRAME)
        if result.releases == 1:
            return released, ()
        notice = (
            f"all {result.releases} releases of {quoted(result.column)} of these records together "
            f"disclose at most {at_most(result.releases_epsilon or 0)} bits of one individual"
        )
        return released, (notice,)
