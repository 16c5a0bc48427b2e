"""A released file against the mechanism that it is said to come from."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.files import PathLike
from mechdesign.formats.cells import encode
from mechdesign.formats.column_names import require_column
from mechdesign.formats.opening import Source, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.nonstochastic.claims import read_verified
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.mechanism_jobs import RECORDS, apply_mechanism
from mechdesign.nonstochastic.sizes import released_number


@dataclass(frozen=True, kw_only=True)
class CheckedRelease:
    """Whether a file can be what a mechanism released."""

    answers: int
    wrong: tuple[str, ...]
    same: bool | None

    @property
    def satisfied(self) -> bool:
        """Whether nothing speaks against it."""
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
    """Check a released file against its mechanism: every answer is one that a cell gives, no group comes twice."""
    held = read_verified(mechanism).mechanism
    name = column or held.column
    with open_source(released, text) as table:
        wrong, answers = _wrong_answers(held, table, name)
    same = None
    if data is not None:
        with tempfile.TemporaryDirectory(prefix="mechdesign-") as folder:
            if held.query == "identity":
                again = Path(folder) / "again.csv"
                # Beside the values: whatever else is in the files, and the order of the records, do not matter.
                beside: dict[str, Any] = {
                    "into": _AGAIN,
                    "format": "csv",
                    "keep_sensitive": True,
                }
                apply_mechanism(
                    mechanism, data, again, column=column, text=text, records=beside
                )
                same = np.array_equal(
                    _sorted(again, _AGAIN, text),
                    _sorted(released, name, text),
                    equal_nan=True,
                )
            else:
                again = Path(folder) / Path(released).name
                apply_mechanism(
                    mechanism, data, again, column=column, equals=equals, text=text
                )
                same = again.read_bytes() == Path(released).read_bytes()
    return CheckedRelease(answers=answers, wrong=tuple(wrong), same=same)


_AGAIN = "released again"
"""A column that no file has."""


def _sorted(
    path: PathLike, column: str, text: TextOptions | None
) -> NDArray[np.float64]:
    """The answers in a released file, in order; the empty ones last."""
    parts = [np.zeros(0)]
    with open_source(path, text) as table:
        for batch in table.batches(encode=[column], whole=False):
            cells = encode(batch.column(column), column)
            parts.append(
                np.array([*(float(text or "nan") for text in cells.texts), np.nan])[
                    cells.codes
                ]
            )
    return np.sort(np.concatenate(parts))


def _wrong_answers(
    mechanism: MechanismFile, table: Source, column: str
) -> tuple[list[str], int]:
    identity = mechanism.query == "identity"
    answer = column if identity else mechanism.answer
    read = [answer, *(() if identity else (*mechanism.group_by, RECORDS))]
    for name in read:
        require_column(name, table.header)
    allowed = {
        m.individuals: {
            repr(float(released_number(mechanism.query, m.quantizer, cell)))
            for cell in range(m.quantizer.levels)
        }
        | ({""} if mechanism.outside == "mark" else set())
        for m in mechanism.mechanisms
    }
    wrong: dict[str, int] = {}
    seen: set[tuple[str, ...]] = set()
    answers = 0
    for batch in table.batches(encode=read):
        answers += batch.num_rows
        columns = [encode(batch.column(name), name) for name in read]
        rows, counts = np.unique(
            np.stack([c.codes for c in columns]), axis=1, return_counts=True
        )
        for codes, times in zip(rows.T.tolist(), counts.tolist(), strict=True):
            cells = [
                "" if k < 0 else c.texts[k] for k, c in zip(codes, columns, strict=True)
            ]
            size = 1 if identity else _whole(cells[-1])
            key = tuple(cells[1:-1])
            if size not in allowed:
                fault = "is said to be of a group of a size for which there are no thresholds"
            elif cells[0] not in allowed[size]:
                fault = "is not what any cell gives"
            elif not identity and (times > 1 or key in seen):
                fault = "is a second answer for its group"
            else:
                seen.add(key)
                continue
            wrong[fault] = wrong.get(fault, 0) + times
    return [
        f"{times:,} of {answers:,} answers: each {fault}"
        for fault, times in wrong.items()
    ], answers


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
