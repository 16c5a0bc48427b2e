"""A released file compared with the mechanism of its release.

`check_quantised` verifies the mechanism file (`claims.read_verified`). Then

1. `_allowed_answers` lists what groups of each size can be answered: the released numbers of the
   cells, as texts.
2. `_faults` looks for every answer in this list, and for a second answer of a group.
3. With the data, the release is repeated and compared. Answers of groups must be the same to the
   byte, since nothing is drawn (`_same_groups`). Single records must have the same numbers in
   sorted order, since their order and other columns may be others (`_same_records`).

For example, a mechanism with the cells [0, 10) and [10, 20] releases 5.0 and 15.0. A file with the
answer 7.0 cannot come from it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.files import PathLike
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.column_names import require_column
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source, open_source
from mechdesign.nonstochastic.claims import read_verified
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism
from mechdesign.nonstochastic.sizes import released_number
from mechdesign.nonstochastic.table_answers import RECORDS

LONGEST_SIZE = 15
"""Most digits of the size of a group. No file has more records."""

RELEASED_AGAIN = "released again"
"""The name of the column of repeated answers, which is not in any file."""


@dataclass(frozen=True, kw_only=True)
class CheckedRelease:
    """Whether a file can be a release of a mechanism.

    Parameters
    ----------
    answers
        Answers in the file.
    wrong
        A sentence for each kind of fault.
    same
        Whether the data released again give the same answers; None without data.
    """

    answers: int
    wrong: tuple[str, ...]
    same: bool | None

    @property
    def satisfied(self) -> bool:
        """Whether no fault was found."""
        return not self.wrong and self.same is not False


def check_quantised(
    mechanism: PathLike,
    released: PathLike,
    *,
    data: PathLike | None = None,
    column: str | None = None,
    equals: str | None = None,
    text: TextOptions | None = None,
) -> CheckedRelease:
    """Check a released file against its mechanism.

    Parameters
    ----------
    data
        The data that were released: then they are released again, and the answers compared.
    column
        The name of the column of numbers, if the mechanism has another one.
    equals
        For a count: the value that was counted.
    """
    verified = read_verified(mechanism).mechanism
    name = column or verified.column
    with open_source(released, text) as table:
        faults, answers = _faults(verified, table, name)
    same: bool | None = None
    if data is not None and verified.query == "identity":
        same = _same_records(mechanism, released, data, name, column, text)
    elif data is not None:
        same = _same_groups(mechanism, released, data, column, equals, text)
    return CheckedRelease(answers=answers, wrong=tuple(faults), same=same)


def _faults(
    mechanism: MechanismFile, table: Source, column: str
) -> tuple[list[str], int]:
    """A sentence for each kind of fault of the answers, and the number of answers."""
    identity = mechanism.query == "identity"
    if identity:
        names = [column]
    else:
        names = [mechanism.answer, *mechanism.group_by, RECORDS]
    for name in names:
        require_column(name, table.header)
    allowed = _allowed_answers(mechanism)
    faults: Counter[str] = Counter()
    groups: set[tuple[str, ...]] = set()
    answers = 0
    for batch in table.batches(encode=names):
        answers += batch.num_rows
        columns = [encode(batch.column(name), name) for name in names]
        # A release has few different answers, so equal rows are judged together.
        for cells, times in _distinct_rows(columns):
            if identity:
                fault = _answer_fault(cells[0], 1, allowed)
            else:
                fault = _answer_fault(cells[0], _size(cells[-1]), allowed)
                if not fault:
                    fault = _repetition_fault(cells[1:-1], times, groups)
            if fault:
                faults[fault] += times
    sentences: list[str] = []
    for fault, times in faults.items():
        sentences.append(f"{times:,} of {answers:,} answers: each {fault}")
    return sentences, answers


def _allowed_answers(mechanism: MechanismFile) -> dict[int, set[str]]:
    """The texts of all answers that the cells give, by size of group."""
    allowed: dict[int, set[str]] = {}
    for sized in mechanism.mechanisms:
        answers: set[str] = set()
        for cell in range(sized.quantizer.levels):
            number = released_number(mechanism.query, sized.quantizer, cell)
            # As a release writes it.
            answers.add(repr(float(number)))
        # A group with a value outside the range is marked by an empty answer.
        if mechanism.outside == "mark":
            answers.add("")
        allowed[sized.individuals] = answers
    return allowed


def _distinct_rows(columns: Sequence[Encoded]) -> Iterator[tuple[list[str], int]]:
    """The distinct rows of a batch, in which a missing cell is empty, and how often each occurs."""
    codes = np.stack([column.codes for column in columns])
    distinct, counts = np.unique(codes, axis=1, return_counts=True)
    # The code -1 of a missing cell leads to the empty text at the end.
    texts_of = [(*column.texts, "") for column in columns]
    for row, times in zip(distinct.T.tolist(), counts.tolist(), strict=True):
        cells = [texts[code] for texts, code in zip(texts_of, row, strict=True)]
        yield cells, times


def _answer_fault(answer: str, size: int, allowed: dict[int, set[str]]) -> str:
    """What is wrong with an answer of a group of some size; empty if nothing is."""
    if size not in allowed:
        return "is said to be of a group of a size for which there are no thresholds"
    if answer not in allowed[size]:
        return "is not what any cell gives"
    return ""


def _repetition_fault(
    group: Sequence[str], times: int, groups: set[tuple[str, ...]]
) -> str:
    """The fault of a second answer for a group; a group without a fault joins `groups`."""
    key = tuple(group)
    if times > 1 or key in groups:
        return "is a second answer for its group"
    groups.add(key)
    return ""


def _size(text: str) -> int:
    """The size of a group; -1 for a text that is none."""
    # `int` alone would accept '+3', ' 3' and the digits of other scripts, which no release writes.
    if text.isascii() and text.isdigit() and len(text) <= LONGEST_SIZE:
        return int(text)
    return -1


def _same_records(
    mechanism: PathLike,
    released: PathLike,
    data: PathLike,
    name: str,
    column: str | None,
    text: TextOptions | None,
) -> bool:
    """Whether single records released again have the same numbers, in any order.

    They are released beside the values, so that the other columns and the order do not matter.
    """
    with tempfile.TemporaryDirectory(prefix="mechdesign-") as folder:
        again = Path(folder) / "again.csv"
        apply_mechanism(
            mechanism,
            data,
            again,
            column=column,
            text=text,
            records={"into": RELEASED_AGAIN, "format": "csv", "keep_sensitive": True},
        )
        numbers_again = _sorted_numbers(again, RELEASED_AGAIN, text)
    numbers = _sorted_numbers(released, name, text)
    return np.array_equal(numbers_again, numbers, equal_nan=True)


def _sorted_numbers(
    path: PathLike, column: str, text: TextOptions | None
) -> NDArray[np.float64]:
    """The answers in a released file, in order; the empty ones (NaN) last."""
    parts = [np.zeros(0)]
    with open_source(path, text) as table:
        for batch in table.batches(encode=[column], whole=False):
            cells = encode(batch.column(column), column)
            numbers = [float(text or "nan") for text in cells.texts]
            # A missing cell has the code -1.
            parts.append(np.array([*numbers, np.nan])[cells.codes])
    return np.sort(np.concatenate(parts))


def _same_groups(
    mechanism: PathLike,
    released: PathLike,
    data: PathLike,
    column: str | None,
    equals: str | None,
    text: TextOptions | None,
) -> bool:
    """Whether the answers of groups released again are the same file."""
    with tempfile.TemporaryDirectory(prefix="mechdesign-") as folder:
        # Under the same name, whose ending decides how the file is compressed.
        again = Path(folder) / Path(released).name
        apply_mechanism(mechanism, data, again, column=column, equals=equals, text=text)
        return again.read_bytes() == Path(released).read_bytes()
