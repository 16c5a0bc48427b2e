"""A mechanism file at work on a table: single records through the jobs of channels, groups by exact
sums.

A release of groups takes one pass over the table (`Answering`); the output and the mechanism file
are written whole or not at all, and a ledger adds up the releases of the same records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import document_text
from mechdesign.core.errors import FileError, InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.formats.column_names import require_column
from mechdesign.formats.compression import Compression
from mechdesign.formats.digests import RecordCensus
from mechdesign.formats.folders import FolderSource, is_folder
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.opening import CUT, Batch, open_source, packing_of
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.urls import STANDARD, is_url, local, place_of
from mechdesign.jobs.folders import sanitise_path
from mechdesign.jobs.ledger import Ledger, Rehearsed
from mechdesign.jobs.provisional_ledger import opened_ledger
from mechdesign.jobs.release_file import keep_off_ledger
from mechdesign.jobs.target import Target
from mechdesign.nonstochastic.answering import (
    BadCell,
    numbers_of,
    truths_of,
    usable_records,
)
from mechdesign.nonstochastic.claims import read_verified
from mechdesign.nonstochastic.dividing import largest_answers
from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.ledger_entries import charged
from mechdesign.nonstochastic.mechanism_file import MechanismFile, Outside, ranks_of
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.release_answers import RangeRelease, Tally
from mechdesign.nonstochastic.sizes import released_number
from mechdesign.release.draws import Key

RECORDS = "records"
"""Header of the number of records of each group."""

Design = MechanismFile | Callable[[Any], MechanismFile]
"""A mechanism, or a function that designs it for a table."""


class Asked(TypedDict, total=False):
    """Options of a release: reading, other names of columns, and writing."""

    text: TextOptions | None
    column: str | None
    individual: str | None
    equals: str | None
    compression: Compression | None
    mechanism_path: PathLike | None
    force: bool
    progress: Progress | None
    warn: Callable[[str], None]
    ledger: PathLike | None
    key_from: Key | None
    dry_run: bool
    strict: bool
    records: dict[str, Any]
    """Options of `sanitise_file` for releases record by record."""


def apply_mechanism(
    mechanism: PathLike,
    source: PathLike,
    target: PathLike,
    *,
    outside: Outside | None = None,
    **asked: Unpack[Asked],
) -> RangeRelease:
    """Release a table through a mechanism file: the same column, query, groups, range and
    budget.
    """
    verified = read_verified(mechanism).mechanism
    treated = verified.meeting(outside or verified.outside)
    return release_table(
        treated, source, target, query=treated.query, keep=(mechanism,), **asked
    )


def release_table(
    designed: Design,
    source: PathLike,
    target: PathLike,
    *,
    query: str,
    keep: Sequence[PathLike] = (),
    **asked: Unpack[Asked],
) -> RangeRelease:
    """As `apply_mechanism`, with a mechanism or a design of one; thresholds that it lacks are laid
    out as needed.

    Parameters
    ----------
    designed
        The mechanism, or a function that designs it for the table at hand.
    query
        Its query.
    keep
        Files that are still needed and must not be overwritten.
    """
    source = local(source)
    target = local(target)
    side = _mechanism_path(source, target, query, asked)
    if side and Path(side).absolute() == Path(target).absolute():
        raise InputError(
            f"{os.fspath(target)} cannot be the release and its mechanism file at once"
        )
    if query == "identity":
        return _release_records(designed, source, target, side, keep, asked)
    return _release_groups(designed, source, target, side, query, keep, asked)


def _is_standard(target: PathLike) -> bool:
    """Whether a target has no folder that other files could be beside."""
    return os.fspath(target) == STANDARD or is_url(target)


def _mechanism_path(
    source: PathLike, target: PathLike, query: str, asked: Asked
) -> PathLike | None:
    """The path of the mechanism file of a release; None if it has none, or one for every file of a
    folder.
    """
    path = asked.get("mechanism_path")
    if path:
        return path
    files_of_folder = query == "identity" and is_folder(source)
    if _is_standard(target) or files_of_folder:
        return None
    return f"{os.fspath(target)}.mechanism.json"


def _release_records(
    designed: Design,
    source: PathLike,
    target: PathLike,
    side: PathLike | None,
    keep: Sequence[PathLike],
    asked: Asked,
) -> RangeRelease:
    """Release single records through the jobs of channels."""
    if asked.get("equals") is not None:
        raise InputError(
            "a value to count is for a mechanism that counts, not for the identity"
        )
    if isinstance(designed, MechanismFile):
        mechanism = designed
    else:
        mechanism = _designed(designed, source, asked)
    columns: dict[str, str] | None = None
    column = asked.get("column")
    if column:
        columns = {mechanism.column: column}
    identity: list[str] | None = None
    individual = asked.get("individual")
    if individual is not None:
        identity = [individual]
    options: dict[str, Any] = {}
    for name, value in asked.items():
        if name in PASSED_ON:
            options[name] = value
    result = sanitise_path(
        mechanism,
        source,
        target,
        **options,
        columns=columns,
        manifest=side,
        channel_files=keep,
        identity=identity,
        ledger=asked.get("ledger"),
        **asked.get("records", {}),
    )
    # The recipe of a mechanism has results of this type.
    return cast("RangeRelease", result)


PASSED_ON = (
    "text",
    "compression",
    "force",
    "progress",
    "warn",
    "key_from",
    "dry_run",
    "strict",
)
"""Options that a release of single records passes on to the jobs as they are."""


def _designed(
    design: Callable[[Any], MechanismFile], source: PathLike, asked: Asked
) -> MechanismFile:
    """The mechanism for a table, from a pass of its own."""
    if os.fspath(source) == STANDARD:
        raise InputError(
            "the answers of a total budget are counted first, and the data read twice: name a "
            "file, not standard input"
        )
    if is_folder(source):
        with FolderSource(source, asked.get("text")) as folder:
            return design(folder)
    with open_source(source, asked.get("text")) as table:
        return design(table)


@dataclass(frozen=True)
class _GroupInput:
    """A table to answer, with its paths and a check that it did not change while it was read."""

    table: Any
    paths: tuple[PathLike, ...]
    check_unchanged: Callable[[], None]


def _unchecked() -> None:
    """No check: every file of a folder is checked when it has been read."""


def _opened_input(
    stack: ExitStack, source: PathLike, target: PathLike, asked: Asked
) -> _GroupInput:
    """Open a table or a folder of tables."""
    if is_folder(source):
        folder = stack.enter_context(FolderSource(source, asked.get("text")))
        return _GroupInput(folder, tuple(folder.paths), _unchecked)
    spool: Path | None = None
    if not _is_standard(target):
        # Standard input is copied beside the target, where there is room for it.
        spool = Path(target).absolute().parent
    guarded = stack.enter_context(GuardedInput(source, spool=spool))
    opened = open_source(guarded.path, asked.get("text"), name=guarded.name)
    table = stack.enter_context(opened)
    return _GroupInput(table, (guarded.path,), guarded.check)


def _release_groups(
    designed: Design,
    source: PathLike,
    target: PathLike,
    side: PathLike | None,
    query: str,
    keep: Sequence[PathLike],
    asked: Asked,
) -> RangeRelease:
    """Release an answer for each group."""
    _refuse_record_options(query, asked)
    sides: list[PathLike] = []
    if side:
        sides.append(side)
    rehearsal = asked.get("dry_run", False)
    with ExitStack() as stack:
        opened = _opened_input(stack, source, target, asked)
        out = Target(
            target,
            force=asked.get("force", False),
            sources=(*opened.paths, *keep),
            sides=sides,
            # Nothing is drawn, so the same job writes the same bytes.
            repeatable=True,
        )
        stack.enter_context(out)
        ledger = stack.enter_context(
            opened_ledger(
                asked.get("ledger"), asked.get("key_from"), rehearsal=rehearsal
            )
        )
        if ledger is not None:
            keep_off_ledger((target, *sides), ledger)
        answering = _answering(designed, opened.table, asked, ledger)
        _write_answers(out, target, answering, asked)
        # Before anything has its name: a table that changed is not what was answered.
        opened.check_unchanged()
        result = answering.tally.result(out.seal(), answering.answers_each)
        result = _with_notes(result, opened.table, strict=asked.get("strict", False))
        for path in sides:
            text = document_text(result.mechanism.document)
            out.part_of_side(path).write_text(text, encoding="utf-8")
        out.refuse_others()
        # A rehearsal leaves the ledger by an exception, with nothing entered.
        with suppress(Rehearsed):
            if ledger is not None:
                result = _charge(ledger, answering, result, target)
            # The ledger first: a crash between the two charges for a release that is not there,
            # and never leaves a release that is not charged.
            if not rehearsal:
                out.commit()
    return result


def _answering(
    designed: Design, table: Any, asked: Asked, ledger: Ledger | None
) -> Answering:
    """The table with its mechanism, which may have to be designed for it first."""
    mechanism = designed
    if not isinstance(mechanism, MechanismFile):
        mechanism = mechanism(table)
    return Answering(
        mechanism,
        table,
        asked.get("column"),
        asked.get("equals"),
        asked.get("progress"),
        ledger,
    )


def _write_answers(
    out: Target, target: PathLike, answering: Answering, asked: Asked
) -> None:
    """Answer all groups, and write a record for each to the unfinished file of the target."""
    table = answering.table
    columns = answering.grouped(asked.get("individual"))
    packing = packing_of(table, target, None, asked.get("compression"))
    with open(out.part, "wb") as stream:
        table.write_table(stream, columns, compression=packing)


def _charge(
    ledger: Ledger, answering: Answering, result: RangeRelease, target: PathLike
) -> RangeRelease:
    """Enter a release in the ledger; the result with the total of these records."""
    if answering.census is None:
        return result
    return charged(
        ledger,
        answering.census.content(),
        result,
        answering.equals,
        source=answering.table.name,
        target=place_of(target),
    )


def _refuse_record_options(query: str, asked: Asked) -> None:
    """Raise InputError for an option of single records."""
    for value in asked.get("records", {}).values():
        if value not in (None, False, ()):
            raise InputError(
                f"the {query} releases an answer for each group, and no records: leave out --add, "
                "--drop, --keep, --keep-order, --shuffle, --format, --escape-formulas"
            )


def _with_notes(result: RangeRelease, table: Any, *, strict: bool) -> RangeRelease:
    """The result with a note of an input that was cut off; with `strict` any note is an error."""
    if table.cut:
        result = replace(result, notices=(*result.notices, CUT))
    if strict and result.notices:
        raise InputError(
            f"{table.name}: a note, which --strict makes an error: {result.notices[0]}"
        )
    return result


class Answering:
    """A table answered through a mechanism: the exact answer of each group, and the number released
    for it.

    Parameters
    ----------
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
        require_column(self.column, table.header)

    @property
    def _ordered(self) -> bool:
        """Whether the query is an order statistic."""
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
        for name in names[1:]:
            require_column(name, self.table.header)
        stored: str | None = None
        if self.table.kind == "Parquet" and self.mechanism.query != "count":
            stored = self.column
        records = usable_records(
            self.table,
            names,
            self.mechanism.provenance.get("missing", "refuse"),
            stored=stored,
            # The ledger knows a record by all its cells.
            whole=self._ledger is not None,
            # The treatment of empty cells is in a mechanism file, and a command cannot change it.
            advise=not self.mechanism.is_designed,
        )
        for batch, rows, columns in records:
            if self.census is not None:
                self.census.add(batch)
            yield batch, rows, columns
            if self._progress is not None:
                self._progress(self.table.position, self.table.size)

    def who(self, individual: str) -> Groups:
        """The groups and their members, from a pass of its own."""
        groups = Groups()
        for _, rows, columns in self.batches(individual):
            groups.add(columns[1:-1], np.zeros(len(rows)), columns[-1])
        return groups

    def most(self, groups: Groups) -> int | None:
        """The most answers that one individual takes part in."""
        return groups.most_answers(single=self.mechanism.query == "identity")

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
        self.answers_each = self.most(groups)
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
        """The exact sums or values of all groups, and the groups that are marked for a value
        outside the range.
        """
        groups = Groups(ordered=self._ordered)
        marked: set[int] = set()
        keys = len(self.mechanism.group_by)
        for _, rows, columns in self.batches(individual):
            try:
                if self.mechanism.query == "count":
                    numbers = truths_of(columns[0], self.column, self.equals)
                else:
                    numbers = numbers_of(columns[0], self.column)
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
            if outside is not None and dropped is None:
                marked.update(group[outside].tolist())
            self.tally.records += len(rows)
        return groups, marked

    def _answers(
        self, groups: Groups, marked: set[int]
    ) -> tuple[list[int], list[float | str | None]]:
        """The groups that have records, and their released numbers; a marked group has an empty
        answer.
        """
        query = self.mechanism.query
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
        self.tally.tell(exact, errors, times)
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
        return multiple * self._numerator / self._denominator

    def released(self, multiple: int) -> float:
        """The released number of the cell of an answer."""
        cell = self._cell_of(multiple)
        if cell not in self._numbers:
            number = released_number(self._query, self._quantizer, cell)
            self._numbers[cell] = float(number)
        return self._numbers[cell]
