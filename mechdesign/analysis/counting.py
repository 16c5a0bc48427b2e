"""Counting a released file, alone or beside its original, in one pass and bounded memory.

Only the table of counts (symbols by labels) is kept, and the first place where something is wrong.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.checking import Finding
from mechdesign.analysis.released_file import (
    Columns,
    RecordSlice,
    TableFile,
    compared,
    header_changes,
    pairs,
    private_columns,
    type_changes,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.inputs import TextOptions
from mechdesign.release.drawing import Seen
from mechdesign.release.policies import normalised_cells
from mechdesign.tables.columns import MISSING, positions_of, unknown_at
from mechdesign.tables.variable import Variable

Counts = NDArray[np.int64]

PENDING = 1 << 18
"""Records whose codes are held before they are counted: a count over a large table is cheap for many at once."""


@dataclass
class PairTally:
    """Codes waiting to be counted, the counts, and the first offender of each kind."""

    shape: tuple[int, int]
    counts: Counts = field(init=False)
    waiting: list[Counts] = field(default_factory=list[Counts])
    size: int = 0
    first: dict[str, str] = field(default_factory=dict[str, str])
    times: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.shape[0] * self.shape[1], dtype=np.int64)

    def add(self, rows: Counts, labels: Counts) -> None:
        """Count records by the codes of their symbols and labels."""
        self.waiting.append(rows * self.shape[1] + labels)
        self.size += len(rows)
        if self.size >= PENDING:
            self.flush()

    def flush(self) -> None:
        """Count those that wait."""
        if self.waiting:
            flat = np.concatenate(self.waiting)
            self.counts += np.bincount(flat, minlength=len(self.counts))
            self.waiting, self.size = [], 0

    def offend(self, kind: str, table: TableFile, record: int, what: str, times: int) -> None:
        """Note that something of this kind is wrong, so many times, `record` being the first."""
        # Finding the line of a record may read the file again, so it is done for the first offender only.
        if kind not in self.first:
            self.first[kind] = f"{table.place(record)}: {what}"
        self.times[kind] = self.times.get(kind, 0) + times

    def table(self) -> Counts:
        """All counts, symbols by labels."""
        self.flush()
        return self.counts.reshape(self.shape)


Advance = Callable[[int], object]


@dataclass(frozen=True)
class CountedFile:
    """What a released file holds."""

    records: int
    labels: Counts
    pairs: Counts | None
    findings: tuple[Finding, ...]


def count_release(
    released: PathLike,
    labels: Variable,
    columns: Columns,
    *,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> CountedFile:
    """Count the labels of a released file."""
    with TableFile(released, text) as table:
        table.require((*columns.released, *columns.identity))
        tally, records, identities = PairTally((1, len(labels))), 0, Seen(math.inf)
        for batch in table.batches(columns.released, columns.identity):
            codes = _label_codes(tally, table, batch.cells(columns.released), labels, records)
            zeros = np.zeros_like(codes)
            known = _once(tally, table, (batch, zeros, codes), identities, columns, records)
            tally.add(zeros[known], codes[known])
            records += len(codes)
            if advance is not None:
                advance(len(codes))
        findings = [*private_columns(table, columns), *_offenders(tally)]
    return CountedFile(records, tally.table()[0], None, tuple(findings))


def count_pairs(
    original: PathLike,
    released: PathLike,
    useful: Variable,
    labels: Variable,
    possible: NDArray[np.bool_],
    columns: Columns,
    *,
    refused: tuple[bool, bool] = (True, True),
    normalise: str = "none",
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> CountedFile:
    """Count symbols and labels of an original and its release, record by record, and compare all other columns."""
    with TableFile(released, text) as after, TableFile(original, text) as before:
        after.require((*columns.released, *columns.identity))
        before.require(columns.useful)
        findings = [*private_columns(after, columns), *header_changes(before, after, columns)]
        common = compared(before, after, columns)
        findings += type_changes(before, after, common)
        tally, records, identities = PairTally((len(useful) + 2, len(labels))), 0, Seen(math.inf)
        olds = before.batches(columns.useful, common)
        news = after.batches(columns.released, [*common, *columns.identity])
        for old, new in pairs(olds, news):
            ys = _label_codes(tally, after, new.cells(columns.released), labels, records)
            cells = [normalised_cells(cells, normalise) for cells in old.cells(columns.useful)]
            xs = symbol_codes(before, cells, useful, records, refused)
            _impossible(tally, after, xs, ys, (useful, labels), possible, records)
            at = new.first_difference(old, common, as_text=before.kind != after.kind)
            if at is not None:
                position, name, was, now = at
                what = (
                    f"the column {quoted(name)} holds {quoted(now)}, but the original {quoted(was)}; "
                    "a release leaves other columns as they are"
                )
                tally.offend("cells", after, records + position, what, 1)
            known = _once(tally, after, (new, xs, ys), identities, columns, records)
            tally.add(xs[known], ys[known])
            records += len(ys)
            if advance is not None:
                advance(len(ys))
        rows = before.size(), after.size()
    table, matched = tally.table(), rows[0] == rows[1]
    if not matched:
        what = f"{after.name} has {rows[1]:,} records and the original {rows[0]:,}; a release has the same, in order"
        findings.insert(0, Finding("rows", what))
    findings += _offenders(tally)
    return CountedFile(rows[1], table.sum(axis=0), table if matched else None, tuple(findings))


def _label_codes(
    tally: PairTally, table: TableFile, cells: list[Encoded], labels: Variable, before: int
) -> Counts:
    codes = positions_of(cells, labels)
    if codes.size and codes.min() < 0:
        at = np.flatnonzero(codes < 0)
        text = ", ".join([*column.texts, ""][column.codes[at[0]]] for column in cells)
        what = f"{quoted(text)} is nothing that the channel can give"
        what = what if text else "an empty cell, which no channel gives"
        tally.offend("label", table, before + int(at[0]), what, len(at))
    return codes


_HASHER = RowHasher(secrets.token_bytes(32))


def _once(
    tally: PairTally,
    table: TableFile,
    found: tuple[RecordSlice, Counts, Counts],
    identities: Seen,
    columns: Columns,
    before: int,
) -> NDArray[np.intp]:
    """Positions of the records to count: those with a label, each identifier once."""
    batch, xs, ys = found
    known = np.flatnonzero(ys >= 0)
    if not columns.identity:
        return known
    cells = [Encoded(c.codes[known], c.texts, c.is_float) for c in batch.cells(columns.identity)]
    codes = xs[known] * tally.shape[1] + ys[known]
    first, own = identities.look(_HASHER.identifiers(cells), codes)
    other = np.flatnonzero(own != codes)
    if other.size:
        at = int(other[0])
        name = ", ".join([*cell.texts, ""][cell.codes[at]] for cell in cells)
        what = f"the identifier {quoted(name)} had another symbol or label before; the same record gets the same draw"
        tally.offend("identity", table, before + int(known[at]), what, len(other))
    return known[first]


def symbol_codes(
    table: TableFile,
    cells: list[Encoded],
    useful: Variable,
    before: int,
    refused: tuple[bool, bool] = (True, True),
) -> Counts:
    """Positions of the symbols; missing and unknown ones come behind them, or the first that is refused is named."""
    codes = positions_of(cells, useful)
    if codes.size and codes.min() < 0:
        missing = codes == MISSING
        wrong = np.flatnonzero((missing & refused[0]) | ((codes < 0) & ~missing & refused[1]))
        if wrong.size:
            error = unknown_at(int(wrong[0]), cells, useful)
            raise InputError(f"{table.place(before + error.position)}: {error.what}")
        codes = np.where(codes < 0, np.where(missing, len(useful), len(useful) + 1), codes)
    return codes


def _impossible(
    tally: PairTally,
    table: TableFile,
    xs: Counts,
    ys: Counts,
    variables: tuple[Variable, Variable],
    possible: NDArray[np.bool_],
    before: int,
) -> None:
    """Note pairs of symbol and label that the channel never gives."""
    wrong = np.flatnonzero((ys >= 0) & ~possible[xs, ys])
    if wrong.size:
        useful, labels = variables
        at = int(wrong[0])
        names = (*useful.names, "an empty cell", "an unknown symbol")
        pair = f"the channel never gives {quoted(labels.names[ys[at]])} for {quoted(names[xs[at]])}"
        tally.offend("pair", table, before + at, pair, len(wrong))


def _offenders(tally: PairTally) -> list[Finding]:
    return [Finding(kind, text, tally.times[kind]) for kind, text in tally.first.items()]
