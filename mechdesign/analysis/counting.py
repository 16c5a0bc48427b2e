"""Counting a released file, alone or beside its original, in one pass and bounded memory.

Only the table of counts (symbols by labels) is kept, and the first place where something is wrong.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.checking import Counts, Finding
from mechdesign.core.errors import InputError, naming
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import listed, quoted
from mechdesign.formats.cells import Encoded, encode, require_column
from mechdesign.formats.csv import CsvSource, as_text
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import Source, open_source
from mechdesign.jobs.lookalikes import lookalikes
from mechdesign.release.drawing import Seen
from mechdesign.release.policies import REFUSE, Policy, normalised, normalised_cells
from mechdesign.tables.columns import MISSING, positions_of, unknown_at
from mechdesign.tables.variable import Variable

Advance = Callable[[int], object]

STRICT = Policy()
"""Missing and unknown symbols are refused."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """A released file: how it is read, what its columns are, and the `labels` that the released ones can hold."""

    path: PathLike
    labels: Variable
    useful: tuple[str, ...]
    private: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    escaped: bool = False
    text: TextOptions | None = None
    advance: Advance | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return self.labels.columns

    def written(self, table: Source) -> Variable:
        """The labels as the file has them."""
        if not self.escaped:
            return self.labels
        if table.kind != "CSV":
            raise InputError(
                f"{table.name}: a Parquet file has no escaped formulas (--escape-formulas)"
            )
        symbols = tuple(tuple(map(as_text, symbol)) for symbol in self.labels.symbols)
        return replace(self.labels, symbols=symbols)


@dataclass(frozen=True)
class CountedFile:
    """What a released file holds: its records by original symbol (one row without the original) and label."""

    records: int
    counts: Counts
    findings: tuple[Finding, ...]


def slices(
    table: Source, symbols: Sequence[str], read: Sequence[str] = ()
) -> Iterator[Any]:
    """All records in order, these columns of them as arrow batches; the file must have them."""
    import pyarrow as pa

    with naming(table.name):
        for name in (*symbols, *read):
            require_column(name, table.header)
    names = list(dict.fromkeys((*symbols, *read)))
    for batch in table.batches(
        encode=symbols, read=[n for n in read if n not in symbols], whole=False
    ):
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays(
                [batch.column(name) for name in names], names
            )


def cells_of(batch: Any, names: Sequence[str]) -> list[Encoded]:
    """The cells of some columns as text."""
    return [encode(batch.column(name), name) for name in names]


def pairs(before: Iterator[Any], after: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Records of both, equally many at a time, in order; None where the other file has more."""
    old, new = next(before, None), next(after, None)
    while old or new:
        size = min(len(part) for part in (old, new) if part)
        yield old and old.slice(0, size), new and new.slice(0, size)
        old, new = (part and part.slice(size) for part in (old, new))
        old, new = old or next(before, None), new or next(after, None)


_HASHER = RowHasher(secrets.token_bytes(32))


class Counting:
    """Records of a released file counted by their symbols and labels, and the first offender of each kind."""

    def __init__(self, file: Released, table: Source, symbols: int) -> None:
        self.file, self.table, self.labels = file, table, file.written(table)
        self.counts = np.zeros((symbols, len(self.labels)), dtype=np.int64)
        self.records = 0
        self._identities = Seen(sys.maxsize)
        self.offenders: dict[str, Finding] = {}

    def offend(self, kind: str, position: int, what: str, times: int) -> None:
        """Note that something of this kind is wrong, so many times, first at a position of the batch."""
        # Finding the line of a record may read the file again, so it is done for the first offender only.
        at = self.records + position
        first = self.offenders.get(kind) or Finding(
            kind, f"{self.table.where(at)}: {what}"
        )
        self.offenders[kind] = replace(first, records=first.records + times)

    def label_codes(self, batch: Any) -> Counts:
        """Positions of the labels; what is none has a negative one."""
        cells = cells_of(batch, self.file.columns)
        codes = positions_of(cells, self.labels)
        if codes.size and codes.min() < 0:
            at = np.flatnonzero(codes < 0)
            text = ", ".join(
                [*column.texts, ""][column.codes[at[0]]] for column in cells
            )
            what = f"{quoted(text)} is nothing that the channel can give"
            self.offend(
                "label",
                int(at[0]),
                what if text else "an empty cell, as no channel gives",
                len(at),
            )
        return codes

    def add(self, batch: Any, xs: Counts, ys: Counts) -> None:
        """Count the records with a label, each identifier once."""
        known = np.flatnonzero(ys >= 0)
        codes = xs[known] * len(self.labels) + ys[known]
        if identity := self.file.identity:
            cells = [
                Encoded(c.codes[known], c.texts, c.is_float)
                for c in cells_of(batch, identity)
            ]
            first, own = self._identities.look(_HASHER.identifiers(cells), codes)
            other = np.flatnonzero(own != codes)
            if other.size:
                at = int(other[0])
                name = ", ".join([*cell.texts, ""][cell.codes[at]] for cell in cells)
                what = (
                    f"the identifier {quoted(name)} had another symbol or label before"
                )
                self.offend(
                    "identity",
                    int(known[at]),
                    f"{what}; the same record gets one draw",
                    len(other),
                )
            codes = codes[first]
        np.add.at(self.counts.reshape(-1), codes, 1)
        self.records += len(ys)
        if self.file.advance is not None:
            self.file.advance(len(ys))


def count_release(file: Released) -> CountedFile:
    """Count the labels of a released file."""
    with open_source(file.path, file.text) as table:
        counting = Counting(file, table, 1)
        for batch in slices(table, file.columns, file.identity):
            codes = counting.label_codes(batch)
            counting.add(batch, np.zeros_like(codes), codes)
        findings = (*private_columns(table, file), *counting.offenders.values())
    return CountedFile(counting.records, counting.counts, findings)


def count_pairs(
    file: Released,
    original: PathLike,
    useful: Variable,
    possible: NDArray[np.bool_],
    policy: Policy = STRICT,
) -> CountedFile:
    """Count symbols and labels of an original and its release, record by record, and compare all other columns."""
    useful = replace(normalised(useful, policy.normalise), columns=file.useful)
    with (
        open_source(file.path, file.text) as after,
        open_source(original, file.text) as before,
    ):
        counting = Counting(file, after, len(useful) + 2)
        left_out = {*file.columns, *file.ignored}
        common = [
            name
            for name in after.header
            if name in before.header and name not in left_out
        ]
        findings = [
            *private_columns(after, file),
            *header_changes(before, after, file, common),
        ]
        olds = slices(before, file.useful, common)
        news = slices(after, file.columns, [*common, *file.identity])
        gone, come = 0, 0
        for old, new in pairs(olds, news):
            if old is None or new is None:
                gone, come = gone + len(old or ()), come + len(new or ())
                continue
            ys = counting.label_codes(new)
            cells = [
                normalised_cells(cells, policy.normalise)
                for cells in cells_of(old, file.useful)
            ]
            xs = symbol_codes(before, cells, useful, counting.records, policy)
            wrong = np.flatnonzero((ys >= 0) & ~possible[xs, ys])
            if wrong.size:
                at = int(wrong[0])
                names = (*useful.names, "an empty cell", "an unknown symbol")
                what = f"the channel never gives {quoted(counting.labels.names[ys[at]])} for {quoted(names[xs[at]])}"
                counting.offend("pair", at, what, len(wrong))
            found = first_difference(
                old, new, common, before.kind != after.kind, file.escaped
            )
            if found is not None:
                position, name, was, now = found
                what = f"the column {quoted(name)} holds {quoted(now)}, but the original {quoted(was)}"
                counting.offend(
                    "cells",
                    position,
                    f"{what}; a release leaves other columns as they are",
                    1,
                )
            counting.add(new, xs, ys)
    records = counting.records + come
    if gone or come:
        what = f"{after.name} has {records:,} records and the original {counting.records + gone:,}"
        findings.insert(0, Finding("rows", f"{what}; a release has the same, in order"))
        counting.counts[:] = 0
    return CountedFile(
        records, counting.counts, (*findings, *counting.offenders.values())
    )


def symbol_codes(
    table: Source,
    cells: list[Encoded],
    useful: Variable,
    before: int,
    policy: Policy = STRICT,
) -> Counts:
    """Positions of the symbols; missing and unknown ones come behind them, or the first that is refused is named."""
    codes = positions_of(cells, useful)
    if codes.size and codes.min() < 0:
        missing = codes == MISSING
        rules = np.where(missing, policy.null, policy.unknown)
        wrong = np.flatnonzero((codes < 0) & (rules == REFUSE))
        if wrong.size:
            error = unknown_at(int(wrong[0]), cells, useful)
            raise InputError(f"{table.where(before + error.position)}: {error.what}")
        codes = np.where(
            codes < 0, np.where(missing, len(useful), len(useful) + 1), codes
        )
    return codes


def first_difference(
    original: Any, released: Any, names: Sequence[str], loose: bool, escaped: bool
) -> tuple[int, str, str, str] | None:
    """The first cell that differs: position, column, original, release; a CSV holds only texts."""
    found: list[tuple[int, str, str, str]] = []
    for name in names:
        was, now = original.column(name), released.column(name)
        if escaped:
            cells = encode(was, name)
            was = replace(cells, texts=tuple(map(as_text, cells.texts))).expanded()
        at = _first_unequal(was, now, name, loose)
        if at is not None:
            found.append((at, name, str(was[at].as_py()), str(now[at].as_py())))
    return min(found, default=None)


def _first_unequal(was: Any, now: Any, name: str, loose: bool) -> int | None:
    """Position of the first cell that differs, if any: NaN equals NaN, and among texts 1.50 equals 1.5."""
    import pyarrow as pa

    if loose:
        was, now = (
            encode(column, name).expanded().fill_null("") for column in (was, now)
        )
    else:
        was, now = (
            c.dictionary_decode() if pa.types.is_dictionary(c.type) else c
            for c in (was, now)
        )
    if was.type == now.type and was.equals(now):
        return None
    pairs = enumerate(zip(was.to_pylist(), now.to_pylist(), strict=True))
    return next(
        (i for i, (a, b) in pairs if a != b and not _same_value(a, b, loose)), None
    )


def _same_value(one: Any, other: Any, loose: bool) -> bool:
    try:
        return float(one) == float(other) if loose else repr(one) == repr(other)
    except ValueError:
        return False


def private_columns(table: Source, file: Released) -> list[Finding]:
    """Columns that a release has no more."""
    allowed = {*file.columns, *file.ignored}
    found = [
        f"the {what} column {quoted(name)}"
        for what, names in (("sensitive", file.private), ("useful", file.useful))
        for name in names
        if name in table.header and name not in allowed
    ]
    known = allowed | {*file.private, *file.useful}
    found += [
        f"the column {quoted(name)}, which looks like the sensitive column {quoted(like)},"
        for name, like in lookalikes(table.header, file.private, known)
    ]
    return [
        Finding("private column", f"{table.name}: {what} is in the released file")
        for what in found
    ]


def header_changes(
    before: Source, after: Source, file: Released, common: list[str]
) -> list[Finding]:
    """Columns that have gone, come, moved, or have another type (a CSV has none to compare)."""
    special = {*file.useful, *file.columns, *file.private, *file.ignored}
    old, new = (
        [name for name in table.header if name not in special]
        for table in (before, after)
    )
    gone, come = (
        [n for n in one if n not in other] for one, other in ((old, new), (new, old))
    )
    wrong: list[str] = []
    if gone:
        wrong.append(f"the column {listed(gone)} of the original is not there")
    if come:
        wrong.append(f"the column {listed(come)} is not in the original")
    if not wrong and old != new:
        wrong.append("the columns are in another order than in the original")
    if not isinstance(before, CsvSource) and not isinstance(after, CsvSource):
        for name in common:
            was, now = (str(table.schema.field(name).type) for table in (before, after))
            if was != now:
                wrong.append(
                    f"the column {quoted(name)} has the type {now}, but {was} in the original"
                )
    return [Finding("columns", f"{after.name}: {what}") for what in wrong]
