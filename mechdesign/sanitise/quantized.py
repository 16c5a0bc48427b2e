"""A mechanism file at work: applied to next month's data, and a release checked against it.

The same reader, writer, guards and temporary files as for channels; what differs is that nothing is drawn: an
answer is computed exactly, and its cell is released. The identity is one pass; groups are one pass too, with
exact sums in memory.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

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
from mechdesign.nonstochastic.domains import FiniteDomain, exact_number, finite
from mechdesign.nonstochastic.levels import epsilon_for, outputs_allowed
from mechdesign.nonstochastic.mechanism_file import (
    TOLD,
    MechanismFile,
    Outside,
    SizedQuantizer,
    build_query,
    guarantee_record,
    ranks_of,
    read_verified,
)
from mechdesign.nonstochastic.noiseless import LAYOUTS, Layout, design_quantizer
from mechdesign.nonstochastic.optimise_thresholds import most_levels, thresholds_for
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import LinearQuery
from mechdesign.sanitise.target import Target

RECORDS = "records"
"""Header of the number of records of each group."""

THRESHOLDS = ("optimal", "most", "given")
"""Ways to place thresholds that are no layout of equal cells: of least squared error, the most, or listed ones."""

LARGEST_DOUBLE = Fraction(sys.float_info.max)
"""Released numbers are doubles."""


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
    if beside and Path(beside).absolute() == Path(target).absolute():
        raise InputError(f"{os.fspath(target)} cannot be the release and its mechanism file at once")
    with (
        GuardedInput(source, spool=folder) as guarded,
        open_source(guarded.path, asked.get("text"), name=guarded.name) as table,
        Target(
            target,
            force=asked.get("force", False),
            sources=(guarded.path, *keep),
            sides=[beside] if beside else [],
        ) as out,
    ):
        mechanism = designed(table)
        run = Answering(mechanism, table, asked.get("column"), asked.get("equals"), asked.get("progress"))
        packing, individual = asked.get("compression") or packing_of(table, target), asked.get("individual")
        if mechanism.query == "identity":
            run.identity(out.part, packing, individual)
        else:
            run.grouped(out.part, packing, individual)
        guarded.check()
        done = run.result(out.seal())
        if beside:
            said = document_text(done.mechanism.document)
            out.part_of_side(beside).write_text(said, encoding="utf-8", newline="\n")
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
        self.members = (
            np.array([float(v) for v in domain.values]) if isinstance(domain, FiniteDomain) else None
        )
        self.progress = progress
        self.missing = mechanism.provenance.get("missing", "refuse")
        self.records = self.answers = self.beyond = self.moved = 0
        self.errors, self.worst, self.amount = 0.0, 0.0, 0.0
        self.each: int | None = None
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

    def most_answers(self, individual: str) -> int:
        """The most answers that one individual takes part in, from a pass of its own."""
        groups = Groups()
        for _, rows, columns in self.batches(individual):
            groups.add(columns[1:-1], np.zeros(len(rows)), columns[-1])
        return self._most(groups) or 1

    def _most(self, groups: Groups) -> int | None:
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
                where = (
                    where if self.members is None else f"is none of the {self.members.size:,} of the domain"
                )
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
        self.worst = max(self.worst, float(errors.max(initial=0.0)))

    def identity(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """Every record's own value, in its cell."""
        import pyarrow as pa

        quantizer = self._quantizer(1)
        middles = np.array([float(m) for m in quantizer.midpoints])
        parquet = self.table.kind == "Parquet"
        # The last one marks what lies outside the range: an empty cell.
        labels = (
            pa.array([*middles.tolist(), None], pa.float64())
            if parquet
            else arrow_texts([*map(repr, middles.tolist()), ""])
        )
        place = self.table.header.index(self.column)
        kind = pa.float64() if parquet else None
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
        self.answers, self.each = sink.records, self._most(people)
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
        self.each = self._most(groups)
        answers, names, sizes = self._answers(groups, marked), groups.keys, groups.sizes
        self.answers = len(answers)
        if not answers:
            raise InputError(f"{self.table.name}: no value lies in the range, and nothing is left to answer")
        columns: dict[str, Any] = {key: [names[g][k] for g in answers] for k, key in enumerate(keys)}
        columns |= {RECORDS: [sizes[g] for g in answers], self.mechanism.answer: [*answers.values()]}
        with open(target, "wb") as stream:
            self.table.write_table(stream, columns, compression=packing)

    def _answers(self, groups: Groups, marked: set[int]) -> dict[int, float | str | None]:
        """What is released for each group of some records; a `marked` one, with a value outside the range, is empty."""
        query, sizes = self.mechanism.query, groups.sizes
        ordered = ranks_of(query, 1) != (0, 0)
        answers = groups.ranked(lambda size: ranks_of(query, size)) if ordered else groups.totals()
        released: dict[int, float | str | None] = {}
        shown: dict[tuple[int, int], float] = {}
        pairs: list[tuple[float, float]] = []
        for g, (answer, size) in enumerate(zip(answers, sizes, strict=True)):
            if size == 0:
                continue
            quantizer = self._quantizer(size)
            if g in marked:
                released[g] = None if self.table.kind == "Parquet" else ""
                continue
            answer = answer / size if query == "mean" else answer
            place = size, quantizer.place(answer)
            if place not in shown:
                shown[place] = float(released_number(query, quantizer, place[1]))
            released[g] = shown[place]
            pairs.append((float(answer), abs(shown[place] - float(answer))))
        self._tell(*np.array(pairs).reshape(-1, 2).T, times=np.ones(len(pairs), dtype=np.int64))
        return released

    def _quantizer(self, size: int) -> Quantizer:
        """The thresholds for groups of this size, laid out by the rule of the file where it has none."""
        self.used.add(size)
        if size not in self.sized:
            self.sized[size] = sized_quantizer(self.mechanism, size, self.told)
            self.new.append(size)
        return self.sized[size].quantizer

    def result(self, sha256: str) -> Quantised:
        """What was released, with the mechanism that tells of it."""
        provenance = {
            **self.mechanism.provenance,
            "versions": versions(),
            "records": self.records,
            "answers": self.answers,
            "output_sha256": sha256,
        }
        kept = tuple(self.sized[size] for size in sorted(self.used))
        made = replace(self.mechanism, mechanisms=kept, provenance=provenance)
        guarantee, total, _ = guarantee_record(made, self.each)
        notices = self.told
        if self.each is None:
            notices.append(
                "each record is taken as one individual's; if some have several, budgets add: name the column that "
                f"identifies them{' with --individual' if self.fresh else ''}"
            )
        if self.new and not self.fresh:
            notices.append(
                f"the mechanism had no thresholds for groups of {', '.join(map(str, sorted(self.new)[:5]))}"
                f"{' and others' if len(self.new) > 5 else ''}; they were laid out and certified by the same rule"
            )
        return Quantised(
            records=self.records,
            answers=self.answers,
            column=self.column,
            outside=self.beyond,
            moved=self.moved,
            mean_error=self.errors / max(self.answers, 1),
            worst_error=self.worst,
            relative_error=self.errors / self.amount if self.amount else 0.0,
            answers_each=self.each,
            total_epsilon=total,
            new_sizes=() if self.fresh else tuple(sorted(self.new)),
            mechanism=replace(made, guarantee=guarantee),
            sha256=sha256,
            notices=tuple(notices),
        )


def sized_quantizer(mechanism: MechanismFile, size: int, told: list[str] | None = None) -> SizedQuantizer:
    """Thresholds for another size of group, by the layout and within the budget of a mechanism; `told` gets notices."""
    named = mechanism.provenance.get("layout")
    if named not in (*LAYOUTS, *THRESHOLDS):
        raise InputError(
            f"the mechanism has no thresholds for groups of {size} and does not say its layout; design anew"
        )
    query = build_query(mechanism.query, size, mechanism.domain)
    lo, hi = query.range
    if max(abs(lo), abs(hi)) > LARGEST_DOUBLE:
        raise InputError(
            f"the {mechanism.query} of {size:,} values up to {float(mechanism.domain.hi):g} can be beyond all doubles "
            f"({float(LARGEST_DOUBLE):.4g}); use a larger unit, or the mean"
        )
    outputs = outputs_allowed(mechanism.epsilon) - (mechanism.outside in TOLD)
    if not outputs:
        raise InputError(
            f"to {mechanism.outside} what lies outside the range is one output, and epsilon allows no other: "
            "raise it to 1 bit or more"
        )
    # A record that counts as 0 or 1 has two outputs at most, and finer cells would tell nothing more.
    outputs = min(outputs, 2) if mechanism.query == "count" else outputs
    epsilon = epsilon_for(outputs)
    # Thresholds may be placed for some values of a range, and are counted for all of it.
    points = mechanism.provenance.get("points")
    space = finite(points) if points else mechanism.domain
    if named in LAYOUTS:
        quantizer = design_quantizer(query, epsilon, layout=cast("Layout", named)).quantizer
    elif named == "given":
        cuts = [exact_number("a threshold", t) for t in mechanism.provenance.get("thresholds", ())]
        quantizer = Quantizer(lo, hi, tuple(t for t in cuts if lo < t <= hi))
    elif not isinstance(query, LinearQuery) or not isinstance(space, FiniteDomain):
        raise InputError(
            f"{named} thresholds are for the identity, mean or sum of a finite domain (--domain); another query gets "
            "its thresholds by --layout"
        )
    else:
        weights, found = mechanism.provenance.get("weights"), build_query(mechanism.query, size, space)
        best = most_levels(found, epsilon) if named == "most" else thresholds_for(found, epsilon, weights)
        quantizer = replace(best.quantizer, lo=lo, hi=hi)
        if not best.optimal and told is not None:
            told.append(f"the thresholds for groups of {size} may not be the best ones: {best.because}")
    made = mechanism.certified(size, quantizer)
    if made.certificate.outputs > outputs_allowed(mechanism.epsilon):
        raise InputError(
            f"with these thresholds one individual can bring about {made.certificate.outputs} outputs, and "
            f"{outputs_allowed(mechanism.epsilon)} are allowed; leave some out, or raise the budget"
        )
    return made


def released_number(query: str, quantizer: Quantizer, cell: int) -> Fraction:
    """What is released for a cell: its middle, or the middle of the whole numbers in it for a count."""
    if query != "count":
        return quantizer.midpoint(cell)
    below, above = quantizer.edge(cell), quantizer.edge(cell + 1)
    last = math.floor(above) if cell == quantizer.levels - 1 else math.ceil(above) - 1
    return Fraction(math.ceil(below) + last, 2)
