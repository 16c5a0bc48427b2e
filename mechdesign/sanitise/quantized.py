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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechdesign.core.documents import versions
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.core.progress import Progress
from mechdesign.formats.cells import arrow_integers, arrow_texts, require_column
from mechdesign.formats.compression import Compression
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import Kept, Output, Source, Written, open_source, packing_of
from mechdesign.nonstochastic.answering import BadCell, Groups, Numbers, numbers_of, truths_of
from mechdesign.nonstochastic.designs import LARGEST_LEVELS, LAYOUTS, Layout, lay_out
from mechdesign.nonstochastic.levels import outputs_allowed
from mechdesign.nonstochastic.mechanism_file import MechanismFile, SizedQuantizer, build_query
from mechdesign.nonstochastic.noiseless import certify
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.verification import guarantee_record, read_verified
from mechdesign.sanitise.source import STANDARD, GuardedInput
from mechdesign.sanitise.target import Target, open_target

Outside = Literal["refuse", "clip"]

OUTSIDE: tuple[Outside, ...] = ("refuse", "clip")
"""What becomes of a value outside the range: an error, or the end of the range. To mark it or to leave it out
would be one more output, which certificates do not count."""

RECORDS = "records"
"""Header of the number of records of each group."""


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


def apply_mechanism(
    mechanism: PathLike,
    source: PathLike,
    target: PathLike,
    *,
    column: str | None = None,
    individual: str | None = None,
    equals: str | None = None,
    outside: Outside | None = None,
    text: TextOptions | None = None,
    compression: Compression | None = None,
    mechanism_path: PathLike | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Quantised:
    """Release a table through a mechanism file: the same column, query, groups, range and budget."""
    verified = read_verified(mechanism)
    wanted = outside or ("clip" if verified.mechanism.provenance.get("clipped") is True else "refuse")
    if wanted not in OUTSIDE:
        raise InputError(f"outside ({quoted(wanted)}) must be one of {', '.join(OUTSIDE)}")
    return release_table(
        verified.mechanism,
        source,
        target,
        column=column,
        individual=individual,
        equals=equals,
        outside=wanted,
        text=text,
        compression=compression,
        mechanism_path=mechanism_path,
        keep=(mechanism,),
        force=force,
        progress=progress,
    )


def release_table(
    mechanism: MechanismFile,
    source: PathLike,
    target: PathLike,
    *,
    column: str | None,
    individual: str | None,
    equals: str | None,
    outside: Outside,
    text: TextOptions | None,
    compression: Compression | None,
    mechanism_path: PathLike | None,
    keep: Sequence[PathLike],
    force: bool,
    progress: Progress | None,
) -> Quantised:
    """As `apply_mechanism`, with a mechanism at hand; it may lack thresholds, which are laid out as needed.

    `keep` are files that are still needed and never overwritten.
    """
    standard = os.fspath(target) == STANDARD
    beside = mechanism_path or (None if standard else f"{os.fspath(target)}.mechanism.json")
    folder = None if standard else Path(target).absolute().parent
    with (
        GuardedInput(source, spool=folder) as guarded,
        open_source(guarded.path, text, name=guarded.name) as table,
        open_target(
            target, force=force, sources=(guarded.path, *keep), sides=[beside] if beside else []
        ) as out,
    ):
        run = _Run(mechanism, table, column, equals, outside, progress)
        packing = compression or packing_of(table, target)
        if mechanism.query == "identity":
            run.identity(out.part, packing, individual)
        else:
            run.grouped(out.part, packing, individual)
        guarded.check()
        done = run.result(out.seal())
        if beside:
            _save_side(done.mechanism, out, beside)
        out.commit()
    return done


def _save_side(mechanism: MechanismFile, out: Target, beside: PathLike) -> None:
    part = out.part_of_side(beside)
    scratch = part.with_name(f"{part.name}.json")
    mechanism.save(scratch, overwrite=True)
    part.write_bytes(scratch.read_bytes())
    scratch.unlink()


class _Run:
    """One pass over the table."""

    def __init__(
        self,
        mechanism: MechanismFile,
        table: Source,
        column: str | None,
        equals: str | None,
        outside: str,
        progress: Progress | None,
    ) -> None:
        self.mechanism, self.table, self.equals, self.outside = mechanism, table, equals, outside
        self.column = column or mechanism.column
        if equals is not None and mechanism.query != "count":
            raise InputError(
                f"a value to count is for a mechanism that counts, not for the {mechanism.query}"
            )
        self.lo, self.hi = float(mechanism.domain.lo), float(mechanism.domain.hi)
        self.progress = progress
        self.records = self.answers = self.beyond = 0
        self.errors, self.worst = 0.0, 0.0
        self.each: int | None = None
        self.sized = {m.individuals: m for m in mechanism.mechanisms}
        self.used: set[int] = set()
        self.fresh = not mechanism.mechanisms
        self.new: list[int] = []
        for name in (self.column, *mechanism.group_by):
            require_column(name, table.header)

    def _numbers(self, batch: Any, first: int) -> Numbers:
        cells = batch.column(self.column)
        try:
            if self.mechanism.query == "count":
                return truths_of(cells, self.column, self.equals)
            return numbers_of(cells, self.column)
        except BadCell as error:
            raise InputError(f"{self.table.where(first + error.position)}: {error.what}") from None

    def _inside(self, numbers: Numbers, first: int) -> np.ndarray:
        """The distinct values, moved into the range where they may be."""
        beyond = (numbers.values < self.lo) | (numbers.values > self.hi)
        if beyond.any() and (hit := beyond[numbers.codes]).any():
            if self.outside == "refuse":
                place = self.table.where(first + int(np.flatnonzero(hit)[0]))
                raise InputError(
                    f"{place}: the value lies outside the range {self.lo:g} to {self.hi:g}; clip such values, or "
                    "design with a wider range"
                )
            self.beyond += int(np.count_nonzero(hit))
        return np.clip(numbers.values, self.lo, self.hi)

    def _advance(self) -> None:
        if self.progress is not None:
            self.progress(self.table.position, self.table.size)

    def _batches(self, read: Sequence[str]) -> Any:
        return self.table.batches(encode=[self.column, *self.mechanism.group_by], read=read)

    def identity(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """Every record's own value, in its cell."""
        import pyarrow as pa

        if individual is not None:
            require_column(individual, self.table.header)
        quantizer = self._quantizer(1)
        middles = np.array([float(m) for m in quantizer.midpoints])
        parquet = self.table.kind == "Parquet"
        texts = [repr(middle) for middle in middles.tolist()]
        labels = pa.array(middles, pa.float64()) if parquet else arrow_texts(texts)
        place = self.table.header.index(self.column)
        kind = pa.float64() if parquet else None
        outputs: list[Output] = [
            Written(name, at, kind) if at == place else Kept(at) for at, name in enumerate(self.table.header)
        ]
        people: dict[str, int] = {}
        with (
            open(target, "wb") as stream,
            self.table.sink(stream, outputs, compression=packing) as sink,
        ):
            for batch in self._batches([individual] if individual else []):
                numbers = self._numbers(batch, sink.records)
                values = self._inside(numbers, sink.records)
                cells = quantizer.cells(values).astype(np.int32)
                self._count(np.abs(middles[cells] - numbers.values)[numbers.codes])
                if individual is not None:
                    tally(people, batch.column(individual))
                codes = cells[numbers.codes]
                column = labels.take(arrow_integers(codes)) if parquet else None
                sink.write(batch, [column or pa.DictionaryArray.from_arrays(arrow_integers(codes), labels)])
                self._advance()
        self.records = self.answers = sink.records
        self.each = max(people.values(), default=None)

    def _count(self, each: np.ndarray) -> None:
        self.errors += float(each.sum())
        self.worst = max(self.worst, float(each.max(initial=0.0)))

    def grouped(self, target: Path, packing: Compression | None, individual: str | None) -> None:
        """One answer for each group, from its exact sum."""
        groups, keys = Groups(), self.mechanism.group_by
        read = [individual] if individual else []
        for batch in self._batches(read):
            numbers = self._numbers(batch, self.records)
            values = self._inside(numbers, self.records)
            people = batch.column(individual) if individual else None
            try:
                groups.add([batch.column(key) for key in keys], values[numbers.codes], people)
            except BadCell as error:
                raise InputError(f"{self.table.where(self.records + error.position)}: {error.what}") from None
            self.records += batch.num_rows
            self._advance()
        if not self.records:
            raise InputError(f"{self.table.name}: no records; an answer needs at least one")
        self.each = groups.most_answers()
        released = self._answers(groups)
        self.answers = len(released)
        name = f"{self.mechanism.query}_{self.mechanism.column}"
        columns: dict[str, Sequence[Any]] = {
            key: [group[k] for group in groups.keys] for k, key in enumerate(keys)
        }
        columns |= {RECORDS: groups.sizes, name: released}
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
                "identifies them"
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


def tally(people: dict[str, int], column: Any) -> None:
    """Add the records of each individual of a batch."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    for entry in pc.value_counts(column).to_pylist():
        people[str(entry["values"])] = people.get(str(entry["values"]), 0) + entry["counts"]


def sized_quantizer(mechanism: MechanismFile, size: int) -> SizedQuantizer:
    """Thresholds for another size of group, by the layout and within the budget of a mechanism."""
    named = mechanism.provenance.get("layout")
    if named not in LAYOUTS:
        raise InputError(
            f"the mechanism has no thresholds for groups of {size} and does not say its layout; design anew"
        )
    layout: Layout = LAYOUTS[LAYOUTS.index(named)]
    query = build_query(mechanism.query, size, mechanism.domain)
    lo, hi = query.range
    allowed = outputs_allowed(mechanism.epsilon)
    enough = min(allowed, 2) if mechanism.query == "count" else allowed
    quantizer = lay_out(lo, hi, min(query.sensitivity, hi - lo), enough, layout, LARGEST_LEVELS)
    certificate = certify(query, quantizer)
    if certificate.outputs > allowed:
        raise SolverFailure(
            f"the quantiser for {size} records gives {certificate.outputs} outputs where {allowed} are allowed; "
            "nothing was written; please report it"
        )
    return SizedQuantizer(size, quantizer, certificate)


def released_number(query: str, quantizer: Quantizer, cell: int) -> Fraction:
    """What is released for a cell: its middle, or the middle of the whole numbers in it for a count."""
    if query != "count":
        return quantizer.midpoint(cell)
    below, above = quantizer.edge(cell), quantizer.edge(cell + 1)
    last = math.floor(above) if cell == quantizer.levels - 1 else math.ceil(above) - 1
    return Fraction(math.ceil(below) + last, 2)
