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
from typing import Any, Literal, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.documents import document_text, versions
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.core.progress import Progress
from mechdesign.formats.cells import arrow_integers, arrow_texts, require_column
from mechdesign.formats.compression import Compression
from mechdesign.formats.inputs import STANDARD, GuardedInput, TextOptions
from mechdesign.formats.opening import Batch, Source, open_source, packing_of
from mechdesign.formats.outputs import KeptColumn, Output, WrittenColumn
from mechdesign.nonstochastic.answering import BadCell, Groups, Numbers, numbers_of, truths_of, usable_records
from mechdesign.nonstochastic.mechanism_file import (
    MechanismFile,
    SizedQuantizer,
    build_query,
    guarantee_record,
    read_verified,
)
from mechdesign.nonstochastic.noiseless import LAYOUTS, Layout, design_quantizer
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.sanitise.target import Target

Outside = Literal["refuse", "clip"]

OUTSIDE: tuple[Outside, ...] = ("refuse", "clip")
"""What becomes of a value outside the range: an error, or the end of the range. To mark it or to leave it out
would be one more output, which certificates do not count."""

RECORDS = "records"
"""Header of the number of records of each group."""

LARGEST_DOUBLE = Fraction(sys.float_info.max)
"""Released numbers are doubles."""


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """What a mechanism released."""

    records: int
    answers: int
    column: str
    outside: int
    mean_error: float
    worst_error: float
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
    wanted = outside or ("clip" if held.provenance.get("clipped") is True else "refuse")
    if wanted not in OUTSIDE:
        raise InputError(f"outside ({quoted(wanted)}) must be one of {', '.join(OUTSIDE)}")
    return release_table(lambda _: held, source, target, outside=wanted, keep=(mechanism,), **asked)


def release_table(
    designed: Callable[[Source], MechanismFile],
    source: PathLike,
    target: PathLike,
    *,
    outside: Outside,
    column: str | None = None,
    individual: str | None = None,
    equals: str | None = None,
    text: TextOptions | None = None,
    compression: Compression | None = None,
    mechanism_path: PathLike | None = None,
    keep: Sequence[PathLike] = (),
    force: bool = False,
    progress: Progress | None = None,
) -> Quantised:
    """As `apply_mechanism`, with the mechanism for the table at hand; thresholds that it lacks are laid out as needed.

    `keep` are files that are still needed and never overwritten.
    """
    standard = os.fspath(target) == STANDARD
    beside = mechanism_path or (None if standard else f"{os.fspath(target)}.mechanism.json")
    folder = None if standard else Path(target).absolute().parent
    if beside and Path(beside).absolute() == Path(target).absolute():
        raise InputError(f"{os.fspath(target)} cannot be the release and its mechanism file at once")
    with (
        GuardedInput(source, spool=folder) as guarded,
        open_source(guarded.path, text, name=guarded.name) as table,
        Target(target, force=force, sources=(guarded.path, *keep), sides=[beside] if beside else []) as out,
    ):
        mechanism = designed(table)
        run = Answering(mechanism, table, column, equals, outside, progress)
        packing = compression or packing_of(table, target)
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
        outside: Outside = "refuse",
        progress: Progress | None = None,
    ) -> None:
        self.mechanism, self.table, self.equals, self.outside = mechanism, table, equals, outside
        self.column = column or mechanism.column
        if equals is not None and mechanism.query != "count":
            raise InputError(
                f"a value to count is for a mechanism that counts, not for the {mechanism.query}"
            )
        self.lo, self.hi = float(mechanism.domain.lo), float(mechanism.domain.hi)
        self.progress = progress
        self.missing = mechanism.provenance.get("missing", "refuse")
        self.records = self.answers = self.beyond = 0
        self.errors, self.worst = 0.0, 0.0
        self.each: int | None = None
        self.sized = {m.individuals: m for m in mechanism.mechanisms}
        self.used: set[int] = set()
        self.fresh = not mechanism.mechanisms
        self.new: list[int] = []
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

    def _inside(self, numbers: Numbers, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The distinct values, moved into the range where they may be."""
        beyond = (numbers.values < self.lo) | (numbers.values > self.hi)
        if beyond.any() and (hit := beyond[numbers.codes]).any():
            if self.outside == "refuse":
                place = self.table.where(int(rows[hit.argmax()]))
                raise InputError(
                    f"{place}: the value lies outside the range {self.lo:g} to {self.hi:g}; clip such values, or "
                    "design with a wider range"
                )
            self.beyond += int(np.count_nonzero(hit))
        # What is no number belongs to no record of the batch.
        return np.clip(np.nan_to_num(numbers.values, nan=self.lo), self.lo, self.hi)

    def identity(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """Every record's own value, in its cell."""
        import pyarrow as pa

        quantizer = self._quantizer(1)
        middles = np.array([float(m) for m in quantizer.midpoints])
        parquet = self.table.kind == "Parquet"
        labels = (
            pa.array(middles, pa.float64()) if parquet else arrow_texts([repr(m) for m in middles.tolist()])
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
                cells = quantizer.cells(self._inside(numbers, rows)).astype(np.int32)
                errors = np.abs(middles[cells] - numbers.values)[numbers.codes]
                self.errors += float(errors.sum())
                self.worst = max(self.worst, float(errors.max(initial=0.0)))
                if individual is not None:
                    people.add([], np.zeros(len(rows)), columns[-1])
                codes = arrow_integers(cells[numbers.codes])
                sink.write(
                    batch, [labels.take(codes) if parquet else pa.DictionaryArray.from_arrays(codes, labels)]
                )
        self.records = self.answers = sink.records
        self.each = self._most(people)
        if self.fresh:
            self._refuse_none()

    def _refuse_none(self) -> None:
        if not self.records:
            raise InputError(f"{self.table.name}: no records; an answer needs at least one")

    def grouped(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """One answer for each group, from its exact sum."""
        groups, keys = Groups(), self.mechanism.group_by
        for _, rows, found in self.batches(individual):
            numbers = self._numbers(found[0], rows)
            values = self._inside(numbers, rows)
            own = found[1 : 1 + len(keys)]
            groups.add(own, values[numbers.codes], found[-1] if individual else None)
            self.records += len(rows)
        self._refuse_none()
        self.each = self._most(groups)
        released = self._answers(groups)
        self.answers = len(released)
        columns: dict[str, Any] = {key: [group[k] for group in groups.keys] for k, key in enumerate(keys)}
        columns |= {RECORDS: groups.sizes, f"{self.mechanism.query}_{self.mechanism.column}": released}
        with open(target, "wb") as stream:
            self.table.write_table(stream, columns, compression=packing)

    def _answers(self, groups: Groups) -> list[float]:
        released: list[float] = []
        mean = self.mechanism.query == "mean"
        for total, size in zip(groups.totals(), groups.sizes, strict=True):
            quantizer = self._quantizer(size)
            answer = total / size if mean else total
            value = released_number(self.mechanism.query, quantizer, quantizer.cell(answer))
            error = float(abs(value - answer))
            self.errors, self.worst = self.errors + error, max(self.worst, error)
            released.append(float(value))
        return released

    def _quantizer(self, size: int) -> Quantizer:
        """The thresholds for groups of this size, laid out by the rule of the file where it has none."""
        self.used.add(size)
        if size not in self.sized:
            self.sized[size] = sized_quantizer(self.mechanism, size)
            self.new.append(size)
        return self.sized[size].quantizer

    def result(self, sha256: str) -> Quantised:
        """What was released, with the mechanism that tells of it."""
        provenance = {
            **self.mechanism.provenance,
            "clipped": self.outside == "clip",
            "versions": versions(),
            "records": self.records,
            "answers": self.answers,
            "output_sha256": sha256,
        }
        kept = tuple(self.sized[size] for size in sorted(self.used))
        made = replace(self.mechanism, mechanisms=kept, provenance=provenance)
        guarantee, total, _ = guarantee_record(made, self.each)
        notices: list[str] = []
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
            mean_error=self.errors / max(self.answers, 1),
            worst_error=self.worst,
            answers_each=self.each,
            total_epsilon=total,
            new_sizes=() if self.fresh else tuple(sorted(self.new)),
            mechanism=replace(made, guarantee=guarantee),
            sha256=sha256,
            notices=tuple(notices),
        )


def sized_quantizer(mechanism: MechanismFile, size: int) -> SizedQuantizer:
    """Thresholds for another size of group, by the layout and within the budget of a mechanism."""
    named = mechanism.provenance.get("layout")
    if named not in LAYOUTS:
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
    # A record that counts as 0 or 1 has two outputs at most, and finer cells would tell nothing more.
    epsilon = min(mechanism.epsilon, 1.0) if mechanism.query == "count" else mechanism.epsilon
    made = design_quantizer(query, epsilon, layout=cast("Layout", named))
    return SizedQuantizer(size, made.quantizer, made.certificate)


def released_number(query: str, quantizer: Quantizer, cell: int) -> Fraction:
    """What is released for a cell: its middle, or the middle of the whole numbers in it for a count."""
    if query != "count":
        return quantizer.midpoint(cell)
    below, above = quantizer.edge(cell), quantizer.edge(cell + 1)
    last = math.floor(above) if cell == quantizer.levels - 1 else math.ceil(above) - 1
    return Fraction(math.ceil(below) + last, 2)
