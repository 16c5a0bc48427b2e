"""Counting a released file, alone or beside its original, in one pass and bounded memory.

Only the table of counts (symbols by labels) is kept, and the first place where something is wrong.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mechdesign.cells import Encoded, require_column
from mechdesign.checking import Finding
from mechdesign.errors import InputError
from mechdesign.exact import quoted
from mechdesign.files import PathLike
from mechdesign.frames import MISSING, positions_of, unknown_at
from mechdesign.sanitise.findings import (
    Columns,
    compared,
    header_changes,
    normalised,
    private_columns,
    type_changes,
)
from mechdesign.sanitise.rereading import Difference, Table, open_table, pairs, same_kind
from mechdesign.variable import Variable

Counts = NDArray[np.int64]

Advance = Callable[[int], object]

PENDING = 1 << 18
"""Records whose codes are held before they are counted: a count over a large table is cheap for many at once."""


@dataclass(frozen=True)
class Counted:
    """What a released file holds.

    Parameters
    ----------
    records : int
    labels : (labels,) integer array
        Records of each label.
    pairs : (symbols + 2, labels) integer array or None
        With the original: records of each symbol and label; the last two rows are for originals that are
        missing and that the channel does not know. None without the original, or if rows do not match.
    findings : tuple of Finding
    """

    records: int
    labels: Counts
    pairs: Counts | None
    findings: tuple[Finding, ...]


@dataclass
class _Tally:
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
        self.waiting.append(rows * self.shape[1] + labels)
        self.size += len(rows)
        if self.size >= PENDING:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            flat = np.concatenate(self.waiting)
            self.counts += np.bincount(flat, minlength=len(self.counts))
            self.waiting, self.size = [], 0

    def offend(self, kind: str, text: Callable[[], str], times: int) -> None:
        # Finding the line of a record reads the file again, so the text is made for the first offender only.
        if kind not in self.first:
            self.first[kind] = text()
        self.times[kind] = self.times.get(kind, 0) + times

    def table(self) -> Counts:
        self.flush()
        return self.counts.reshape(self.shape)


def count_release(
    released: PathLike, labels: Variable, columns: Columns, advance: Advance | None = None
) -> Counted:
    """Count the labels of a released file.

    Parameters
    ----------
    released : path
        CSV or Parquet.
    labels : Variable
        What the released columns can hold, under their names in the file.
    columns : Columns
    advance : callable, optional
        Called with the number of further records that are counted.

    Raises
    ------
    InputError
        If the file cannot be read or has no released column.
    """
    with open_table(released) as table:
        require(table, columns.released)
        tally, records = _Tally((1, len(labels))), 0
        for batch in table.batches(columns.released):
            codes = _label_codes(tally, table, batch.cells(columns.released), labels, records)
            known = codes[codes >= 0]
            tally.add(np.zeros_like(known), known)
            records += len(codes)
            if advance is not None:
                advance(len(codes))
        findings = [*private_columns(table, columns), *_offenders(tally)]
    return Counted(records, tally.table()[0], None, tuple(findings))


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
    advance: Advance | None = None,
) -> Counted:
    """Count symbols and labels of an original and its release, record by record, and compare all other columns.

    Parameters
    ----------
    original, released : path
        Both CSV or both Parquet.
    useful : Variable
        X, under the names of its columns in the original.
    labels : Variable
    possible : (|X| + 2, labels) array of bool
        Whether a record with the symbol can get the label; the last two rows are for missing and unknown symbols.
    columns : Columns
    refused : (bool, bool)
        Whether a missing and an unknown symbol in the original is an error.
    normalise : str
        Unicode form in which symbols of the original are looked up; those of `useful` are in this form.
    advance : callable, optional
        Called with the number of further records that are compared.

    Raises
    ------
    InputError
        If a file cannot be read, a column is not there, the kinds of the files differ, or the original has a symbol
        that the channel does not know.
    """
    with open_table(released) as after, open_table(original) as before:
        same_kind(before, after)
        require(after, columns.released)
        require(before, columns.useful)
        findings = [*private_columns(after, columns), *header_changes(before, after, columns)]
        common = compared(before, after, columns)
        findings += type_changes(before, after, common)
        tally, records = _Tally((len(useful) + 2, len(labels))), 0
        for old, new in pairs(before, after):
            ys = _label_codes(tally, after, new.cells(columns.released), labels, records)
            xs = _symbol_codes(
                before, _normalised(old.cells(columns.useful), normalise), useful, records, refused
            )
            _impossible(tally, after, xs, ys, (useful, labels), possible, records)
            at = new.first_difference(old, common)
            if at is not None:
                tally.offend("cells", partial(_changed, after, records, at), 1)
            known = ys >= 0
            tally.add(xs[known], ys[known])
            records += len(ys)
            if advance is not None:
                advance(len(ys))
        rows = before.size(), after.size()
    table = tally.table()
    if rows[0] != rows[1]:
        text = f"{after.path} has {rows[1]:,} records and the original {rows[0]:,}; a release has the same, in order"
        findings.insert(0, Finding("rows", text))
    findings += _offenders(tally)
    matched = rows[0] == rows[1]
    return Counted(rows[1], table.sum(axis=0), table if matched else None, tuple(findings))


def require(table: Table, names: Sequence[str]) -> None:
    """Raise InputError, naming the file, unless the table has all these columns."""
    for name in names:
        try:
            require_column(name, table.header)
        except InputError as error:
            raise InputError(f"{table.path}: {error}") from None


def _label_codes(tally: _Tally, table: Table, cells: list[Encoded], labels: Variable, before: int) -> Counts:
    codes = positions_of(cells, labels)
    if codes.size and codes.min() < 0:
        at = np.flatnonzero(codes < 0)
        text = ", ".join(
            column.texts[column.codes[at[0]]] if column.codes[at[0]] >= 0 else "" for column in cells
        )
        what = (
            f"{quoted(text)} is nothing that the channel can give"
            if text
            else "an empty cell, which no channel gives"
        )
        tally.offend("label", lambda: f"{table.place(before + int(at[0]))}: {what}", len(at))
    return codes


def _normalised(cells: list[Encoded], form: str) -> list[Encoded]:
    if form == "none":
        return cells
    return [Encoded(c.codes, tuple(normalised(text, form) for text in c.texts), c.is_float) for c in cells]


def _symbol_codes(
    table: Table, cells: list[Encoded], useful: Variable, before: int, refused: tuple[bool, bool]
) -> Counts:
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
    tally: _Tally,
    table: Table,
    xs: Counts,
    ys: Counts,
    variables: tuple[Variable, Variable],
    possible: NDArray[np.bool_],
    before: int,
) -> None:
    wrong = np.flatnonzero((ys >= 0) & ~possible[xs, ys])
    if wrong.size:
        useful, labels = variables
        at = int(wrong[0])
        names = (*useful.names, "an empty cell", "an unknown symbol")
        pair = f"the channel never gives {quoted(labels.names[ys[at]])} for {quoted(names[xs[at]])}"
        tally.offend("pair", lambda: f"{table.place(before + at)}: {pair}", len(wrong))


def _changed(table: Table, before: int, difference: Difference) -> str:
    position, name, was, now = difference
    return (
        f"{table.place(before + position)}: the column {quoted(name)} holds {quoted(now)}, but the original "
        f"{quoted(was)}; a release leaves other columns as they are"
    )


def _offenders(tally: _Tally) -> list[Finding]:
    return [Finding(kind, text, tally.times[kind]) for kind, text in tally.first.items()]
