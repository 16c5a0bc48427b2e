"""A mechanism for single records as a recipe: each number is replaced by the middle of its cell.

Nothing is drawn, so no key and no identity is needed. The promise of an answer assumes that the
place of its record discloses nothing of the value: a file that is sorted by its numbers is refused.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
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
from mechdesign.formats.cells import empty_as_missing, encode
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.urls import FRAME, place_of
from mechdesign.jobs.column_plan import ColumnGroup, OutputColumn, Plan, make_plan
from mechdesign.jobs.disclosure_checks import DisclosureChecks, View
from mechdesign.jobs.file_run import FileRecipe, FileRun
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.recipe import (
    BadRecord,
    ContentOf,
    Drawer,
    DrawnColumn,
    Frame,
    Place,
)
from mechdesign.jobs.side_files import Sides
from mechdesign.leaks.crossing import Crossing
from mechdesign.leaks.evidence import decisive, log_evidence
from mechdesign.nonstochastic.answering import BadCell, numbers_of, some_of, usable
from mechdesign.nonstochastic.ledger_entries import charged
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.release_answers import RangeRelease, Tally
from mechdesign.release.drawing import key_of
from mechdesign.release.policies import REFUSE


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
        of_draws = {
            "key": options.key != plain.key,
            "form": options.form != plain.form,
            "policy": options.policy != plain.policy,
            "row_numbers": options.row_numbers != plain.row_numbers,
            "changed": options.changed != plain.changed,
            "fresh_draw": options.fresh_draw != plain.fresh_draw,
        }
        given = [name for name, is_given in of_draws.items() if is_given]
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
        """Ready for the parts of a table with this header."""
        return NumbersDrawer(self, header)

    def check_sides(self, sides: Sides) -> None:
        """A mechanism file is all that goes with a release of numbers."""
        if sides.codebook is not None or sides.internal is not None:
            raise InputError(
                "a mechanism has neither codebook nor internal manifest: its file tells all "
                "(--manifest)"
            )

    def write_file(self, run: FileRun, ledger: Ledger | None) -> RangeRelease:
        """Release a file; the ledger adds up what is told of the column of these records."""
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
            result = drawer.result(out.seal())
            run.add_notes(result.notices)
            result = replace(result, notices=run.notices)
            if run.sides.manifest is not None:
                text = document_text(result.mechanism.document)
                place = out.part_of_side(run.sides.manifest)
                place.write_text(text, encoding="utf-8")
            out.refuse_others()
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
                    return result
            out.commit()
        return result

    def for_folder(self) -> NumbersRecipe:
        """The recipe for all files of a folder, whose answers are added up."""
        return replace(self, tally=Tally(self.mechanism, self.column))

    def split_warning(
        self, crossing: Crossing, names: Sequence[str], *, looks: int
    ) -> str | None:
        """Files of months may have other numbers, but not files that were made by the number.

        Each of those begins where the one before ends.
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
        """What all files of a folder promise together."""
        if self.tally is None:
            raise TypeError("the results of a folder come from its own recipe")
        return replace(self.tally.result(sha256), notices=notices)

    def for_lazy_table(self, header: Sequence[Any]) -> NumbersRecipe:
        """The recipe itself: what draws nothing comes out the same each time."""
        if self.options.ledger is not None:
            raise InputError(
                "a ledger adds up what is told of records, and sees none of a lazy table: leave "
                "it out"
            )
        return self

    def release_table(
        self,
        header: Sequence[Any],
        release: Callable[[Drawer], Frame],
        content: ContentOf,
    ) -> tuple[Frame, tuple[str, ...]]:
        """What `release` makes of a whole table, entered in the ledger of the options, if there
        is one.
        """
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
            f"tell at most {at_most(result.releases_epsilon or 0)} bits of one individual"
        )
        return released, (notice,)


ENOUGH = 1 << 12
"""Distinct numbers that are counted: if so many are sorted, it is not by chance."""


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
        # From the last number of the batch before.
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
        ties = sum(math.lgamma(times + 1) for times in self._counts.values())
        return math.lgamma(self._counts.total() + 1) - ties - math.log(2)


class NumbersDrawer(Drawer):
    """A mechanism made ready for the parts of a table with this header."""

    def __init__(self, recipe: NumbersRecipe, header: Sequence[Any]) -> None:
        plan = recipe.plan(header)
        name = header[plan.inputs[0][0]]
        protected: dict[View, None] = {}
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
        mechanism = recipe.mechanism
        self._folder_tally = recipe.tally
        self.tally = Tally(mechanism, name)
        self._missing = mechanism.provenance.get("missing", REFUSE)
        self._advise = not mechanism.is_designed
        self._quantizer = self.tally.quantizer(1)
        self._middles = np.array(
            [float(middle) for middle in self._quantizer.midpoints]
        )
        # The last label marks what lies outside the range: an empty cell.
        self._labels = (*(repr(middle) for middle in self._middles.tolist()), "")
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
        tally = self.tally
        rows = np.arange(count)
        cells, names = self._cells(column)
        try:
            kept = usable(cells, names, self._missing, advise=self._advise)
            if kept is not None:
                rows = rows[kept]
                cells = [some_of(part, kept) for part in cells]
            numbers = numbers_of(cells[0], names[0])
            values, outside = tally.inside(numbers)
        except BadCell as error:
            row = int(rows[error.position])
            raise BadRecord(
                row, error.what, f"row number {first_row + row} (counted from 0)"
            ) from None
        cell_of_value = self._quantizer.cells(values).astype(np.int32)
        codes = cell_of_value[numbers.codes]
        tally.records += len(codes)
        if self.plan.identity:
            self._add_people(cells[1], len(codes))
        # A value that is disclosed to lie outside has an empty answer, or none, and no error.
        answered = numbers.codes
        if outside is not None:
            answered = answered[~outside]
        errors = np.abs(self._middles[cell_of_value] - numbers.values)
        times = np.bincount(answered, minlength=cell_of_value.size)
        tally.tell(numbers.values, errors, times)
        for order in self.checks.orders.values():
            order.add(numbers.values[numbers.codes])
        if outside is not None and tally.mechanism.outside == "drop":
            rows = rows[~outside]
            codes = codes[~outside]
        elif outside is not None:
            codes[outside] = self._middles.size
        self.dropped = None
        if len(rows) < count:
            self.dropped = np.isin(np.arange(count), rows, invert=True)
        tally.answers += len(codes)
        self._counts[0] += np.bincount(codes, minlength=len(self._labels))
        return {(0, 0): DrawnColumn(codes, self._labels)}

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
        """As `Drawer.count`: a draw counts its answers; each record comes once."""
        self.draw(column, len(times))

    def result(self, sha256: str | None) -> RangeRelease:
        """The result of the release."""
        if not self.tally.records and self._advise:
            raise InputError("no records; an answer needs at least one")
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
        if hasattr(like, "to_arrow"):  # a polars Series, without an import of polars
            return type(like)(name, values, nan_to_null=True)
        return type(like)(values, index=like.index, name=like.name)


def _stored(column: Any, name: str) -> Any:
    """A column as an array of numbers, where it holds numbers, else as codes into texts."""
    import pyarrow as pa

    array = column
    if hasattr(column, "to_arrow"):  # a polars Series, without an import of polars
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
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind)
