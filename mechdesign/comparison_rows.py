"""The rows of a comparison and their CSV, which reads back as what was written."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace

from mechdesign.comparison_grid import Case
from mechdesign.errors import InputError
from mechdesign.files import PathLike, reason

LARGEST_CSV = 2**28
"""Bytes; a million rows take half of it."""


@dataclass(frozen=True)
class ComparisonRow:
    """One line of the CSV: what a mechanism achieves at one budget.

    Budgets, log-lifts (natural logarithms, rounded outwards) and `nmi` = I(X;Y)/H(X) are those of the integers
    of a channel. `lam`, `eps_l` and `eps_u` are None for notions that do not have them, `upper_bound_nmi` where no
    optimum was computed for the same notion and budget. `satisfied` is the exact verdict.
    """

    mechanism: str
    notion: str
    epsilon: float
    lam: float | None
    eps_l: float | None
    eps_u: float | None
    nmi: float
    upper_bound_nmi: float | None
    max_log_lift: float
    min_log_lift: float
    satisfied: bool
    repaired: bool
    seconds: float

    @property
    def case(self) -> Case:
        """What was run."""
        return Case(self.mechanism, self.notion, self.epsilon, self.lam)

    @property
    def curve(self) -> tuple[str, float | None]:
        """What rows of different mechanisms must share to be compared over budgets."""
        return self.notion, self.lam


COLUMNS = tuple(f.name for f in fields(ComparisonRow))
TEXTS = ("mechanism", "notion")
FLAGS = ("satisfied", "repaired")
OPTIONAL = ("lam", "eps_l", "eps_u", "upper_bound_nmi")


def with_bounds(rows: Sequence[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """The same rows with the best bound that any row of the same notion and budget has proven.

    A row that violates its notion is left alone: the bound does not hold for it.
    """
    best: dict[tuple[str, float | None, float], float] = {}
    for row in rows:
        if row.upper_bound_nmi is not None:
            key = (*row.curve, row.epsilon)
            best[key] = min(row.upper_bound_nmi, best.get(key, math.inf))
    return tuple(
        replace(row, upper_bound_nmi=best.get((*row.curve, row.epsilon))) if row.satisfied else row
        for row in rows
    )


def rows_csv(rows: Iterable[ComparisonRow]) -> str:
    """The CSV text: shortest decimals that read back as the same double, nothing for None."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in astuple(row)] for row in rows)
    return text.getvalue()


def _cell(value: str | float | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def read_rows(path: PathLike) -> tuple[ComparisonRow, ...]:
    """Read what `rows_csv` wrote.

    Raises
    ------
    InputError
        If it cannot be read, has other columns, or a line that no comparison writes.
    """
    name = os.fspath(path)
    try:
        if os.path.getsize(path) > LARGEST_CSV:
            raise InputError(f"{name} is larger than any comparison; choose another name for the output")
        with open(path, newline="", encoding="utf-8") as stream:
            lines = list(csv.reader(stream, strict=True))
    except OSError as error:
        raise InputError(f"{name} cannot be read: {reason(error)}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"{name} is no CSV of a comparison; choose another name, or start over with --force"
        ) from None
    if not lines or tuple(lines[0]) != COLUMNS:
        raise InputError(
            f"{name} does not have the columns of a comparison; choose another name, or start over with --force"
        )
    rows = [_row(name, number, cells) for number, cells in enumerate(lines[1:], start=2)]
    seen: set[Case] = set()
    for number, row in enumerate(rows, start=2):
        if row.case in seen:
            raise InputError(f"{name}, line {number} repeats an earlier one; --force starts over")
        seen.add(row.case)
    return tuple(rows)


def _row(name: str, number: int, cells: list[str]) -> ComparisonRow:
    if len(cells) != len(COLUMNS):
        raise InputError(
            f"{name}, line {number} has {len(cells)} cells instead of {len(COLUMNS)}; --force starts over"
        )
    values: dict[str, str | float | bool | None] = {}
    for column, text in zip(COLUMNS, cells, strict=True):
        try:
            values[column] = _value(column, text)
        except ValueError:
            raise InputError(
                f"{name}, line {number}: {column} ({text!r}) is nothing that a comparison writes; --force starts over"
            ) from None
    return ComparisonRow(**values)  # type: ignore[arg-type]


def _value(column: str, text: str) -> str | float | bool | None:
    """Raises ValueError (KeyErrors included) on a cell that does not belong into this column."""
    if column in TEXTS:
        if not text:
            raise ValueError(column)
        return text
    if column in FLAGS:
        if text not in ("true", "false"):
            raise ValueError(column)
        return text == "true"
    if not text and column in OPTIONAL:
        return None
    value = float(text)
    if math.isnan(value):
        raise ValueError(column)
    return value
