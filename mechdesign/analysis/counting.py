"""Counts of a released file, alone or beside its original, in one pass and bounded memory.

Only the table of counts (symbols by labels) is kept, and the first place of each kind of error.
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
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.column_names import require_column
from mechdesign.formats.csv import CsvSource
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.formulas import as_text
from mechdesign.formats.opening import Source, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.jobs.lookalikes import lookalikes
from mechdesign.release.first_symbols import FirstSymbols
from mechdesign.release.policies import REFUSE, Policy, normalised, normalised_cells
from mechdesign.tables.columns import MISSING, positions_of, unknown_at
from mechdesign.tables.variable import Variable

Advance = Callable[[int], object]

STRICT = Policy()
"""Missing and unknown symbols are refused."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """A released file: how it is read, what its columns are, and the `labels` that the released
    ones can hold.
    """

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
    """What a released file holds: its records by original symbol (one row without the original) and
    label.
    """

    records: int
    counts: Counts
    findings: tuple[Finding, ...]


def slices(
    table: Source, symbols: Sequence[str], read: Sequence[str] = ()
) -> Iterator[Any]:
    """All records in order, these columns of them as arrow batches; the file must have them."""
    import pyarrow as pa

    with errors_naming(table.name):
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
    old = next(before, None)
    new = next(after, None)
    while old or new:
        size = min(len(part) for part in (old, new) if part)
        yield _first(old, size), _first(new, size)
        old = _rest(old, size) or next(before, None)
        new = _rest(new, size) or next(after, None)


def _first(batch: Any, size: int) -> Any:
    """The first records of a batch; None of none."""
    return batch.slice(0, size) if batch else None


def _rest(batch: Any, size: int) -> Any:
    """The records behind the first ones; None where there are none."""
    return batch.slice(size) if batch and len(batch) > size else None


_HASHER = RowHasher(secrets.token_bytes(32))


class Counting:
    """Records of a released file counted by their symbols and labels, and the first offender of
    each kind.
    """

    def __init__(self, file: Released, table: Source, symbols: int) -> None:
        self.file = file
        self.table = table
        self.labels = file.written(table)
        self.counts = np.zeros((symbols, len(self.labels)), dtype=np.int64)
        self.records = 0
        self._identities = FirstSymbols(sys.maxsize)
        self.offenders: dict[str, Finding] = {}

    def offend(self, kind: str, position: int, what: str, times: int) -> None:
        """Note that something of this kind is wrong, so many times, first at a position of the
        batch.
        """
        # Finding the line of a record may read the file again, so it is done for the first offender
        # only.
        at = self.records + position
        first = self.offenders.get(kind) or Finding(
            kind, f"{self.table.where(at)}: {what}"
        )
        self.offenders[kind] = replace(first, records=first.records + times)

    def label_codes(self, batch: Any) -> Counts:
        """Positions of the labels; a cell without a label is negative, and an offender."""
        cells = cells_of(batch, self.file.columns)
        codes = positions_of(cells, self.labels)
        wrong = np.flatnonzero(codes < 0)
        if wrong.size:
            first = int(wrong[0])
            text = _text_at(cells, first)
            problem = "an empty cell, as no channel gives"
            if text:
                problem = f"{quoted(text)} is nothing that the channel can give"
            self.offend("label", first, problem, len(wrong))
        return codes

    def add(self, batch: Any, xs: Counts, ys: Counts) -> None:
        """Count the records with a label, each identifier once."""
        labelled = np.flatnonzero(ys >= 0)
        codes = xs[labelled] * len(self.labels) + ys[labelled]
        if self.file.identity:
            is_first = self._first_of_identity(batch, labelled, codes)
            codes = codes[is_first]
        np.add.at(self.counts.reshape(-1), codes, 1)
        self.records += len(ys)
        if self.file.advance is not None:
            self.file.advance(len(ys))

    def _first_of_identity(
        self, batch: Any, labelled: Counts, codes: Counts
    ) -> NDArray[np.bool_]:
        """Which records are the first of their identifier; another symbol or label than the first
        is an offence.
        """
        cells: list[Encoded] = []
        for column in cells_of(batch, self.file.identity):
            part = Encoded(column.codes[labelled], column.texts, column.is_float)
            cells.append(part)
        is_first, first_codes = self._identities.look(_HASHER.identifiers(cells), codes)
        other = np.flatnonzero(first_codes != codes)
        if other.size:
            at = int(other[0])
            self.offend(
                "identity",
                int(labelled[at]),
                f"the identifier {quoted(_text_at(cells, at))} had another symbol or "
                "label before; the same record gets one draw",
                len(other),
            )
        return is_first


def _text_at(cells: Sequence[Encoded], position: int) -> str:
    """The cells of one record as text; code -1 is an empty cell."""
    return ", ".join([*column.texts, ""][column.codes[position]] for column in cells)


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
    """Count symbols and labels of an original and its release, record by record, and compare all
    other columns.
    """
    useful = replace(normalised(useful, policy.normalise), columns=file.useful)
    with (
        open_source(file.path, file.text) as after,
        open_source(original, file.text) as before,
    ):
        counting = Counting(file, after, len(useful) + 2)
        compared = set(before.header) - {*file.columns, *file.ignored}
        common = [name for name in after.header if name in compared]
        findings = [
            *private_columns(after, file),
            *header_changes(before, after, file, common),
        ]
        olds = slices(before, file.useful, common)
        news = slices(after, file.columns, [*common, *file.identity])
        # Records that one of the two files has beyond the end of the other.
        only_before = 0
        only_after = 0
        for old, new in pairs(olds, news):
            if old is None or new is None:
                only_before += len(old or ())
                only_after += len(new or ())
                continue
            ys = counting.label_codes(new)
            cells: list[Encoded] = []
            for column in cells_of(old, file.useful):
                cells.append(normalised_cells(column, policy.normalise))
            xs = symbol_codes(before, cells, useful, counting.records, policy)
            _refuse_impossible_pairs(counting, xs, ys, useful, possible)
            difference = first_difference(
                old, new, common, before.kind != after.kind, file.escaped
            )
            if difference is not None:
                _refuse_difference(counting, *difference)
            counting.add(new, xs, ys)
    records = counting.records + only_after
    if only_before or only_after:
        original_records = counting.records + only_before
        what = f"{after.name} has {records:,} records and the original {original_records:,}"
        findings.insert(0, Finding("rows", f"{what}; a release has the same, in order"))
        # Pairs of records that do not belong together must not be tested.
        counting.counts[:] = 0
    return CountedFile(
        records, counting.counts, (*findings, *counting.offenders.values())
    )


def _refuse_impossible_pairs(
    counting: Counting,
    xs: Counts,
    ys: Counts,
    useful: Variable,
    possible: NDArray[np.bool_],
) -> None:
    """Note the labels that the channel never gives for their symbols.

    A label with a negative position is unknown, and was noted when it was read.
    """
    wrong = np.flatnonzero((ys >= 0) & ~possible[xs, ys])
    if not wrong.size:
        return
    first = int(wrong[0])
    names = (*useful.names, "an empty cell", "an unknown symbol")
    label = counting.labels.names[ys[first]]
    what = f"the channel never gives {quoted(label)} for {quoted(names[xs[first]])}"
    counting.offend("pair", first, what, len(wrong))


def _refuse_difference(
    counting: Counting, position: int, name: str, original: str, released: str
) -> None:
    """Note a cell of another column that the release changed."""
    what = (
        f"the column {quoted(name)} holds {quoted(released)}, but the original "
        f"{quoted(original)}; a release leaves other columns as they are"
    )
    counting.offend("cells", position, what, 1)


def symbol_codes(
    table: Source,
    cells: list[Encoded],
    useful: Variable,
    before: int,
    policy: Policy = STRICT,
) -> Counts:
    """Positions of the symbols; missing and unknown ones come behind them, or the first that is
    refused is named.
    """
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
    differences: list[tuple[int, str, str, str]] = []
    for name in names:
        was = original.column(name)
        now = released.column(name)
        if escaped:
            cells = encode(was, name)
            was = replace(cells, texts=tuple(map(as_text, cells.texts))).expanded()
        at = _first_unequal(was, now, name, loose)
        if at is not None:
            differences.append((at, name, str(was[at].as_py()), str(now[at].as_py())))
    return min(differences, default=None)


def _first_unequal(was: Any, now: Any, name: str, loose: bool) -> int | None:
    """Position of the first cell that differs, if any: NaN equals NaN, and among texts 1.50 equals
    1.5.
    """
    was = _comparable(was, name, loose)
    now = _comparable(now, name, loose)
    if was.type == now.type and was.equals(now):
        return None
    for i, (a, b) in enumerate(zip(was.to_pylist(), now.to_pylist(), strict=True)):
        if a != b and not _same_value(a, b, loose):
            return i
    return None


def _comparable(column: Any, name: str, loose: bool) -> Any:
    """The column as texts, or without a dictionary."""
    import pyarrow as pa

    if loose:
        return encode(column, name).expanded().fill_null("")
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def _same_value(one: Any, other: Any, loose: bool) -> bool:
    if not loose:
        return repr(one) == repr(other)
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def private_columns(table: Source, file: Released) -> list[Finding]:
    """Columns that a release must not have: sensitive and useful ones, and those that look like a
    sensitive one.
    """
    allowed = {*file.columns, *file.ignored}
    problems: list[str] = []
    for role, names in (("sensitive", file.private), ("useful", file.useful)):
        for name in names:
            if name in table.header and name not in allowed:
                problems.append(f"the {role} column {quoted(name)}")
    expected_names = allowed | {*file.private, *file.useful}
    for name, like in lookalikes(table.header, file.private, expected_names):
        problems.append(
            f"the column {quoted(name)}, which looks like the sensitive column {quoted(like)},"
        )
    return [
        Finding("private column", f"{table.name}: {problem} is in the released file")
        for problem in problems
    ]


def header_changes(
    before: Source, after: Source, file: Released, common: list[str]
) -> list[Finding]:
    """Columns that have come, moved, or have another type (a CSV has none to compare).

    Columns that have gone are no finding: a release has those alone that were asked for.
    """
    special = {*file.useful, *file.columns, *file.private, *file.ignored}
    old = [name for name in before.header if name not in special]
    new = [name for name in after.header if name not in special]
    come = [name for name in new if name not in old]
    stayed = [name for name in old if name in new]
    problems: list[str] = []
    if come:
        problems.append(f"the column {listed(come)} is not in the original")
    if not problems and stayed != new:
        problems.append("the columns are in another order than in the original")
    if not isinstance(before, CsvSource) and not isinstance(after, CsvSource):
        for name in common:
            was = str(before.schema.field(name).type)
            now = str(after.schema.field(name).type)
            if was != now:
                problems.append(
                    f"the column {quoted(name)} has the type {now}, but {was} in the original"
                )
    return [Finding("columns", f"{after.name}: {problem}") for problem in problems]
