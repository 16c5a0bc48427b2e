"""A mechanism file at work: applied to next month's data, and a release checked against it.

The same reader, writer, guards and temporary files as for channels; what differs is that nothing is drawn: an
answer is computed exactly, and its cell is released. The identity is one pass; groups are one pass too, with
exact sums in memory.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import document_text, versions
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.formats.cells import arrow_integers, arrow_texts, require_column
from mechdesign.formats.compression import Compression
from mechdesign.formats.inputs import STANDARD, GuardedInput, TextOptions
from mechdesign.formats.opening import Batch, Source, open_source, packing_of
from mechdesign.formats.outputs import KeptColumn, Output, WrittenColumn
from mechdesign.formats.urls import is_url, local
from mechdesign.nonstochastic.answering import BadCell, Groups, Numbers, numbers_of, truths_of, usable_records
from mechdesign.nonstochastic.claims import guarantee_record, read_verified
from mechdesign.nonstochastic.dividing import largest_answers
from mechdesign.nonstochastic.domains import FiniteDomain
from mechdesign.nonstochastic.mechanism_file import TOLD, MechanismFile, Outside, ranks_of
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.sizes import released_number, sized_quantizer
from mechdesign.sanitise.target import Target

RECORDS = "records"
"""Header of the number of records of each group."""


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """What a mechanism released."""

    records: int
    answers: int
    column: str
    outside: int
    moved: int
    mean_error: float
    worst_error: float
    relative_error: float
    answers_each: int | None
    total_epsilon: float
    new_sizes: tuple[int, ...]
    mechanism: MechanismFile
    sha256: str
    notices: tuple[str, ...] = ()


class Writing(TypedDict, total=False):
    """How a table is read, and what is written."""

    text: TextOptions | None
    compression: Compression | None
    mechanism_path: PathLike | None
    force: bool
    progress: Progress | None


class Asked(Writing, total=False):
    """What is released, where it is not as the mechanism says."""

    column: str | None
    individual: str | None
    equals: str | None


def apply_mechanism(
    mechanism: PathLike,
    source: PathLike,
    target: PathLike,
    *,
    outside: Outside | None = None,
    **asked: Unpack[Asked],
) -> Quantised:
    """Release a table through a mechanism file: the same column, query, groups, range and budget."""
    held = read_verified(mechanism).mechanism
    held = held.meeting(outside or held.outside)
    return release_table(lambda _: held, source, target, keep=(mechanism,), **asked)


def release_table(
    designed: Callable[[Source], MechanismFile],
    source: PathLike,
    target: PathLike,
    *,
    keep: Sequence[PathLike] = (),
    **asked: Unpack[Asked],
) -> Quantised:
    """As `apply_mechanism`, with the mechanism for the table at hand; thresholds that it lacks are laid out as needed.

    `keep` are files that are still needed and never overwritten.
    """
    source, target = local(source), local(target)
    standard = os.fspath(target) == STANDARD or is_url(target)
    beside = asked.get("mechanism_path") or (None if standard else f"{os.fspath(target)}.mechanism.json")
    folder = None if standard else Path(target).absolute().parent
    sides = [beside] if beside else []
    if beside and Path(beside).absolute() == Path(target).absolute():
        raise InputError(f"{os.fspath(target)} cannot be the release and its mechanism file at once")
    with (
        GuardedInput(source, spool=folder) as guarded,
        open_source(guarded.path, asked.get("text"), name=guarded.name) as table,
        Target(target, force=asked.get("force", False), sources=(guarded.path, *keep), sides=sides) as out,
    ):
        mechanism = designed(table)
        run = Answering(mechanism, table, asked.get("column"), asked.get("equals"), asked.get("progress"))
        release = run.identity if mechanism.query == "identity" else run.grouped
        release(out.part, packing_of(table, target, None, asked.get("compression")), asked.get("individual"))
        guarded.check()
        done = run.result(out.seal())
        for side in sides:
            said = document_text(done.mechanism.document)
            out.part_of_side(side).write_text(said, encoding="utf-8", newline="\n")
        out.commit()
    return done


class Answering:
    """A table answered through a mechanism: every answer exact, its cell released."""

    def __init__(
        self,
        mechanism: MechanismFile,
        table: Source,
        column: str | None = None,
        equals: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.mechanism, self.table, self.equals, self.outside = mechanism, table, equals, mechanism.outside
        self.column = column or mechanism.column
        if equals is not None and mechanism.query != "count":
            raise InputError(
                f"a value to count is for a mechanism that counts, not for the {mechanism.query}"
            )
        domain = mechanism.domain
        self.lo, self.hi = float(domain.lo), float(domain.hi)
        self.members = np.array([*map(float, domain.values)]) if isinstance(domain, FiniteDomain) else None
        self.progress = progress
        self.missing = mechanism.provenance.get("missing", "refuse")
        self.records = self.answers = self.beyond = self.moved = 0
        self.errors, self.worst_error, self.amount = 0.0, 0.0, 0.0
        self.answers_each: int | None = None
        self.largest: dict[int, int] | None = None
        self.sized = {m.individuals: m for m in mechanism.mechanisms}
        self.used: set[int] = set()
        self.fresh = not mechanism.mechanisms
        self.new: list[int] = []
        self.told: list[str] = []
        require_column(self.column, table.header)

    def batches(self, individual: str | None) -> Iterator[tuple[Batch, NDArray[np.int64], list[Any]]]:
        """The records to release, as `usable_records` has them: the numbers, the groups, the individual if named."""
        names = [self.column, *self.mechanism.group_by, *([individual] if individual else [])]
        for name in names[1:]:
            require_column(name, self.table.header)
        stored = self.column if self.table.kind == "Parquet" and self.mechanism.query != "count" else None
        whole = self.mechanism.query == "identity"
        for found in usable_records(
            self.table, names, self.missing, stored=stored, whole=whole, advise=self.fresh
        ):
            yield found
            if self.progress is not None:
                self.progress(self.table.position, self.table.size)

    def who(self, individual: str) -> Groups:
        """Who is in which group, from a pass of its own."""
        groups = Groups()
        for _, rows, columns in self.batches(individual):
            groups.add(columns[1:-1], np.zeros(len(rows)), columns[-1])
        return groups

    def most(self, groups: Groups) -> int | None:
        """The most answers that one individual takes part in."""
        return groups.most_answers(single=self.mechanism.query == "identity")

    def _numbers(self, cells: Any, rows: NDArray[np.int64]) -> Numbers:
        try:
            if self.mechanism.query == "count":
                return truths_of(cells, self.column, self.equals)
            return numbers_of(cells, self.column)
        except BadCell as error:
            raise InputError(f"{self.table.where(int(rows[error.position]))}: {error.what}") from None

    def _inside(
        self, numbers: Numbers, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """The distinct values, moved into the range, and which records lie outside where that is told apart."""
        found = np.clip(np.nan_to_num(numbers.values, nan=self.lo), self.lo, self.hi)
        if self.members is not None:
            # The nearest one of the values that there are.
            found = self.members[np.searchsorted((self.members[1:] + self.members[:-1]) / 2, found)]
        # What is no number belongs to no record of the batch.
        beyond, told = (found != numbers.values) & ~np.isnan(numbers.values), None
        if beyond.any() and (hit := beyond[numbers.codes]).any():
            if self.outside == "refuse":
                place = self.table.where(int(rows[hit.argmax()]))
                where = f"lies outside the range {self.lo:g} to {self.hi:g}"
                if self.members is not None:
                    where = f"is none of the {self.members.size:,} of the domain"
                raise InputError(
                    f"{place}: the value {where}; clip, mark or drop such values (--outside), or design with a wider "
                    "range"
                )
            self.beyond += int(np.count_nonzero(hit))
            told = hit if self.outside in TOLD else None
        return found, told

    def _tell(self, answers: NDArray[np.float64], errors: NDArray[np.float64], times: Any) -> None:
        """Add up how far answers, each so many times, are from what is released for them."""
        some = times > 0
        answers, errors, times = np.abs(answers[some]), errors[some], times[some]
        self.moved += int(times[errors > 0].sum())
        self.errors, self.amount = self.errors + float(errors @ times), self.amount + float(answers @ times)
        self.worst_error = max(self.worst_error, float(errors.max(initial=0.0)))

    def identity(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """Every record's own value, in its cell."""
        import pyarrow as pa

        quantizer = self._quantizer(1)
        middles = np.array([float(m) for m in quantizer.midpoints])
        parquet = self.table.kind == "Parquet"
        kind, shown = pa.float64() if parquet else None, middles.tolist()
        # The last one marks what lies outside the range: an empty cell.
        labels = pa.array([*shown, None], kind) if parquet else arrow_texts([*map(repr, shown), ""])
        place = self.table.header.index(self.column)
        outputs: list[Output] = [
            WrittenColumn(name, at, kind) if at == place else KeptColumn(at)
            for at, name in enumerate(self.table.header)
        ]
        people = Groups()
        with open(target, "wb") as stream, self.table.sink(stream, outputs, compression=packing) as sink:
            for batch, rows, columns in self.batches(individual):
                numbers = self._numbers(columns[0], rows)
                values, told = self._inside(numbers, rows)
                cells = quantizer.cells(values).astype(np.int32)
                codes = cells[numbers.codes]
                if individual is not None:
                    people.add([], np.zeros(len(rows)), columns[-1])
                counted = numbers.codes if told is None else numbers.codes[~told]
                times = np.bincount(counted, minlength=values.size)
                self._tell(numbers.values, np.abs(middles[cells] - numbers.values), times)
                if told is not None and self.outside == "drop":
                    batch, codes = batch.select(~told), codes[~told]
                elif told is not None:
                    codes[told] = middles.size
                written = arrow_integers(codes)
                made = labels.take(written) if parquet else pa.DictionaryArray.from_arrays(written, labels)
                sink.write(batch, [made])
                self.records += len(rows)
        self.answers, self.answers_each = sink.records, self.most(people)
        if self.fresh:
            self._refuse_none()

    def _refuse_none(self) -> None:
        if not self.records:
            raise InputError(f"{self.table.name}: no records; an answer needs at least one")

    def grouped(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """One answer for each group, from its exact sum."""
        keys = self.mechanism.group_by
        groups, marked = Groups(ordered=ranks_of(self.mechanism.query, 1) != (0, 0)), set[int]()
        for _, rows, found in self.batches(individual):
            numbers = self._numbers(found[0], rows)
            values, told = self._inside(numbers, rows)
            own, who = found[1 : 1 + len(keys)], found[-1] if individual else None
            dropped = told if self.outside == "drop" else None
            group = groups.add(own, values[numbers.codes], who, dropped)
            marked.update(group[told].tolist() if told is not None and dropped is None else ())
            self.records += len(rows)
        self._refuse_none()
        self.answers_each = self.most(groups)
        (kept, answers), names, sizes = self._answers(groups, marked), groups.keys, groups.sizes
        if self.mechanism.divided and individual:
            self.largest = largest_answers(groups, self.sized)
        self.answers = len(answers)
        if not answers:
            raise InputError(f"{self.table.name}: no value lies in the range, and nothing is left to answer")
        columns: dict[str, Any] = {key: [names[g][k] for g in kept] for k, key in enumerate(keys)}
        columns |= {RECORDS: [sizes[g] for g in kept], self.mechanism.answer: answers}
        with open(target, "wb") as stream:
            self.table.write_table(stream, columns, compression=packing)

    def _answers(self, groups: Groups, marked: set[int]) -> tuple[list[int], list[float | str | None]]:
        """The groups of some records, and what is released for them; a `marked` one, with a value outside, is empty."""
        query, ordered = self.mechanism.query, ranks_of(self.mechanism.query, 1) != (0, 0)
        many, unit = groups.ranked(lambda size: ranks_of(query, size)) if ordered else groups.totals()
        kept, released = list[int](), list[float | str | None]()
        answers, errors = np.zeros((2, len(groups)))
        times = np.ones(len(groups), dtype=np.int64)

        @cache
        def placing(size: int) -> tuple[int, int, Callable[[int], int], Callable[[int], float]]:
            quantizer, own = self._quantizer(size), unit / size if query == "mean" else unit
            shown = cache(lambda cell: float(released_number(query, quantizer, cell)))
            return *own.as_integer_ratio(), quantizer.placing(own), shown

        for g, (total, size) in enumerate(zip(many, groups.sizes, strict=True)):
            times[g] = size > 0 and g not in marked
            if size == 0:
                continue
            kept.append(g)
            up, down, place, shown = placing(size)
            if times[g]:
                released.append(shown(place(total)))
                answers[g] = total * up / down
                errors[g] = abs(released[-1] - answers[g])
            else:
                released.append(None if self.table.kind == "Parquet" else "")
        self._tell(answers, errors, times)
        return kept, released

    def _quantizer(self, size: int) -> Quantizer:
        """The thresholds for groups of this size, laid out by the rule of the file where it has none."""
        self.used.add(size)
        if size not in self.sized:
            self.sized[size] = sized_quantizer(self.mechanism, size, self.told)
            self.new.append(size)
        return self.sized[size].quantizer

    def result(self, sha256: str) -> Quantised:
        """What was released, with the mechanism that tells of it."""
        counted = {"records": self.records, "answers": self.answers, "output_sha256": sha256}
        provenance = self.mechanism.provenance | {"versions": versions()} | counted
        kept = tuple(self.sized[size] for size in sorted(self.used))
        made = replace(self.mechanism, mechanisms=kept, provenance=provenance)
        guarantee, total, _ = guarantee_record(made, self.answers_each, self.largest)
        notices = self.told
        if self.answers_each is None:
            notices.append(
                "each record is taken as one individual's; if some have several, budgets add: name the column that "
                f"identifies them{' with --individual' if self.fresh else ''}"
            )
        if self.new and not self.fresh:
            notices.append(
                f"the mechanism had no thresholds for groups of {', '.join(map(str, sorted(self.new)[:5]))}"
                f"{' and others' if len(self.new) > 5 else ''}; they were laid out and certified by the same rule"
            )
        same = ("records", "answers", "column", "moved", "worst_error", "answers_each")
        return Quantised(
            **{name: getattr(self, name) for name in same},
            outside=self.beyond,
            mean_error=self.errors / max(self.answers, 1),
            relative_error=self.errors / self.amount if self.amount else 0.0,
            total_epsilon=total,
            new_sizes=() if self.fresh else tuple(sorted(self.new)),
            mechanism=replace(made, guarantee=guarantee),
            sha256=sha256,
            notices=tuple(notices),
        )
