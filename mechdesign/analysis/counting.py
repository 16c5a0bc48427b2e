"""Counts of a released file, alone or beside its original, in one pass and bounded memory.

`count_release` reads the file alone and counts its labels. `count_pairs` reads it beside its
original, record by record, and counts how often each symbol got each label; in passing it compares
all other columns. The last two rows are for records without a known symbol:

    symbol            label A   label B
    a                       3         1
    b                       0         5
    (missing)               0         0
    (unknown)               0         0

Only this table is kept, and for each kind of error its first place and the number of its records
(`Counting.offenders`). The tests of the frequencies are in `checking`.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.checking import PAIR, Counts, Finding
from mechdesign.analysis.released_table import (
    Difference,
    Released,
    cells_of,
    common_columns,
    first_difference,
    private_columns,
    require_identity,
    slices,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.opening import Source
from mechdesign.release.coding import NearestRows
from mechdesign.release.identified_draws import FirstSymbols
from mechdesign.release.samplers import REFUSE, Policy, normalised, normalised_cells
from mechdesign.tables.columns import (
    MISSING,
    RecordFault,
    other_spelling,
    positions_of,
    texts_of,
    unknown_at,
)
from mechdesign.tables.variable import Variable

STRICT = Policy()
"""Missing and unknown symbols are refused."""

_HASHER = RowHasher(secrets.token_bytes(32))
"""Of identifiers; the key is new in every process, for the hashes are not stored."""


@dataclass(frozen=True)
class CountedFile:
    """The records of a released file by original symbol and label; one row without the original."""

    records: int
    counts: Counts
    findings: tuple[Finding, ...]


def count_release(file: Released) -> CountedFile:
    """Count the labels of a released file."""
    with file.opened(file.path, file.text) as table:
        counting = Counting(file, table, 1)
        for batch in slices(table, file.columns, file.identity):
            codes = counting.label_codes(batch)
            counting.add(batch, np.zeros_like(codes), codes)
        findings = (*private_columns(table, file), *counting.offenders.values())
    return CountedFile(counting.records, counting.counts, findings)


def counts_by_label(file: Released) -> Counts:
    """The records of a released file with each label.

    Raises
    ------
    InputError
        If a record has another label, or records with one identifier have several.
    """
    counted = count_release(file)
    for finding in counted.findings:
        if finding.kind in ("label", "identity"):
            raise InputError(finding.text)
    return counted.counts[0]


def count_pairs(
    file: Released,
    original: PathLike,
    useful: Variable,
    possible: NDArray[np.bool_],
    policy: Policy = STRICT,
    nearest: NearestRows | None = None,
) -> CountedFile:
    """Count symbols and labels of an original and its release, record by record.

    All other columns are compared, too.

    Parameters
    ----------
    useful : Variable
        The symbols of the original, X.
    possible : (|X| + 2, labels) array
        Whether the channel can give each label for each symbol; the last rows are those of a
        missing and an unknown symbol.
    policy : Policy
        What the release did with missing and unknown symbols.
    nearest : NearestRows, optional
        The known rows, where unknown ones were released as the nearest of them.
    """
    # The release normalised the symbols before it looked them up, so the original's are, too.
    useful = replace(normalised(useful, policy.cell_form), columns=file.useful)
    with (
        file.opened(file.path, file.text_beside_original) as after,
        file.opened(original, file.text, policy.cell_form) as before,
    ):
        counting = Counting(file, after, len(useful) + 2)
        common, findings = common_columns(before, after, file)
        # A CSV has texts alone, so cells of files of different kinds are compared as texts.
        loose = before.kind != after.kind
        olds = slices(before, file.useful, common)
        news = slices(after, file.columns, [*common, *file.identity])
        # Records that one of the two files has beyond the end of the other.
        only_before = 0
        only_after = 0
        for old, new in pairs(olds, news):
            if new is None:
                only_before += len(old)
                continue
            if old is None:
                only_after += len(new)
                continue
            ys = counting.label_codes(new)
            cells = normalised_cells(cells_of(old, file.useful), policy.cell_form)
            xs = symbol_codes(before, cells, useful, counting.records, policy, nearest)
            _note_impossible_pairs(counting, xs, ys, useful, possible)
            difference = first_difference(old, new, common, loose, file.escaped)
            if difference is not None:
                _note_difference(counting, difference)
            # Last: until then places are counted from the records before this batch.
            counting.add(new, xs, ys)
    findings += counting.offenders.values()
    records = counting.records + only_after
    if only_before or only_after:
        original_records = counting.records + only_before
        unit = "record" if records == 1 else "records"
        text = (
            f"{after.name} has {records:,} {unit} and the original "
            f"{original_records:,}; a release has the same, in order"
        )
        # First of all: it explains the other findings.
        findings.insert(0, Finding("rows", text))
        # Pairs of records that do not belong together must not be tested.
        counting.counts[:] = 0
    return CountedFile(records, counting.counts, tuple(findings))


def symbol_codes(
    table: Source,
    cells: list[Encoded],
    useful: Variable,
    before: int,
    policy: Policy = STRICT,
    nearest: NearestRows | None = None,
    given: Sequence[str] = (),
) -> Counts:
    """Positions of the symbols: |X| for a missing one, and |X| + 1 for an unknown one or the
    position of the nearest row.

    Where the policy refuses these, InputError names the first; `before` is the number of records
    before the cells, and `given` are the columns that are released as they are.
    """
    codes = positions_of(cells, useful)
    # Nearly always every symbol is known.
    if not codes.size or codes.min() >= 0:
        return codes
    missing = codes == MISSING
    rules = np.where(missing, policy.missing, policy.unknown)
    wrong = np.flatnonzero((codes < 0) & (rules == REFUSE))
    if wrong.size:
        error = unknown_at(int(wrong[0]), cells, useful, given)
        raise InputError(f"{table.where(before + error.position)}: {error.what}")
    further = np.where(missing, len(useful), len(useful) + 1)
    placed = np.where(codes < 0, further, codes)
    if nearest is not None:
        at = np.flatnonzero((codes < 0) & ~missing)
        try:
            placed[at] = nearest.find(cells, at)
        except RecordFault as error:
            where = table.where(before + error.position)
            raise InputError(f"{where}: {error.what}") from None
    return placed


def pairs(before: Iterator[Any], after: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Records of both, equally many at a time, in order; None where the other file has more.

    The batches of two files end at different records, so each is cut at the nearer end: batches of
    3 and 2 records beside one of 4 give pairs of 3 and 1, and then (1, None).
    """
    old = next(before, None)
    new = next(after, None)
    while old or new:
        size = min(len(part) for part in (old, new) if part)
        yield _first(old, size), _first(new, size)
        old = _rest(old, size) or next(before, None)
        new = _rest(new, size) or next(after, None)


def _first(batch: Any, size: int) -> Any:
    """The first records of a batch; None of none."""
    if not batch:
        return None
    return batch.slice(0, size)


def _rest(batch: Any, size: int) -> Any:
    """The records after the first ones; None where there are none."""
    if not batch or len(batch) <= size:
        return None
    return batch.slice(size)


def _note_impossible_pairs(
    counting: Counting,
    xs: Counts,
    ys: Counts,
    useful: Variable,
    possible: NDArray[np.bool_],
) -> None:
    """Note the labels that the channel never gives for their symbols.

    A label with a negative position is unknown, and was noted when it was read.
    """
    # A negative position reads the last column of `possible`, which the first condition discards.
    wrong = np.flatnonzero((ys >= 0) & ~possible[xs, ys])
    if not wrong.size:
        return
    first = int(wrong[0])
    names = (*useful.names, "an empty cell", "an unknown symbol")
    label = counting.labels.names[ys[first]]
    problem = f"the channel never gives {quoted(label)} for {quoted(names[xs[first]])}"
    counting.offend(PAIR, first, problem, len(wrong))


def _note_difference(counting: Counting, difference: Difference) -> None:
    """Note a cell of another column that the release changed."""
    problem = (
        f"the column {quoted(difference.column)} holds {quoted(difference.released)}, but the "
        f"original {quoted(difference.original)}; a release leaves other columns as they are"
    )
    # One record of each batch: a comparison ends at its first difference.
    counting.offend("cells", difference.position, problem, 1)


class Counting:
    """Counts of a released file by symbol and label, and the first offender of each kind.

    For each batch, `label_codes` reads the labels, `offend` notes what else is wrong in it, and
    last `add` counts its records: the places of offenders are those after the records so far.

    Attributes
    ----------
    counts : (symbols, labels) array
    records : int
        Records so far, with and without a label.
    offenders : dict of str to Finding
        For each kind of problem its first place, and the number of its records.
    """

    def __init__(self, file: Released, table: Source, symbols: int) -> None:
        require_identity(table, file.identity)
        self.file = file
        self.table = table
        self.labels = file.written(table)
        self.counts = np.zeros((symbols, len(self.labels)), dtype=np.int64)
        self.records = 0
        # Every identifier is remembered: a check must not miss the second record of one.
        self._identities = FirstSymbols(sys.maxsize)
        self.offenders: dict[str, Finding] = {}

    def offend(self, kind: str, position: int, problem: str, times: int) -> None:
        """Note a problem that occurs so many times in the batch, first at this position."""
        first = self.offenders.get(kind)
        if first is None:
            # Finding the line of a record may read the file again, so only the first one is named.
            place = self.table.where(self.records + position)
            first = Finding(kind, f"{place}: {problem}")
        self.offenders[kind] = replace(first, records=first.records + times)

    def label_codes(self, batch: Any) -> Counts:
        """Positions of the labels; a cell without a label is negative, and an offender."""
        cells = cells_of(batch, self.file.columns)
        codes = positions_of(cells, self.labels)
        wrong = np.flatnonzero(codes < 0)
        if wrong.size:
            first = int(wrong[0])
            text = ", ".join(_cells_at(cells, first))
            problem = "an empty cell, as no channel gives"
            if text:
                # Of a wrong column it may be a name, and messages end in logs.
                problem = "the value is nothing that the channel can give"
                if self.file.looks_escaped(text):
                    problem += (
                        "; its formulas seem to be escaped: say so (--escape-formulas)"
                    )
                problem += other_spelling(_cells_at(cells, first), self.labels.symbols)
            self.offend("label", first, problem, len(wrong))
        return codes

    def add(self, batch: Any, xs: Counts, ys: Counts) -> None:
        """Count the records with a label, each identifier once.

        `xs` and `ys` are the codes of the symbols and of the labels of the batch.
        """
        labelled = np.flatnonzero(ys >= 0)
        # The place of symbol and label in the table of counts, row after row.
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
        """Which records are the first of their identifier; others must repeat symbol and label."""
        cells: list[Encoded] = []
        for column in cells_of(batch, self.file.identity):
            part = Encoded(column.codes[labelled], column.texts, column.is_float)
            cells.append(part)
        is_first, first_codes = self._identities.look(_HASHER.identifiers(cells), codes)
        changed = np.flatnonzero(first_codes != codes)
        if changed.size:
            at = int(changed[0])
            self.offend(
                "identity",
                int(labelled[at]),
                "its identifier had another symbol or label before; the same record gets one draw",
                len(changed),
            )
        return is_first


def _cells_at(cells: Sequence[Encoded], position: int) -> tuple[str, ...]:
    """The cells of one record."""
    return texts_of(cells, tuple(int(column.codes[position]) for column in cells))
