"""The columns that a quantised release is made from: numbers, groups and individuals."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import Encoded, Numbering
from mechdesign.formats.opening import Source
from mechdesign.nonstochastic.domains import IntervalDomain
from mechdesign.nonstochastic.table_measures import columns_of, usable_records

_NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?[ \t]*", re.ASCII)

TRUTHS = {"0": 0, "1": 1, "false": 0, "true": 1, "False": 0, "True": 1}
"""Cells of a column that is counted without naming a value."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberRecords:
    """The numbers of a file, and whose they are; one entry for each record."""

    values: Floats
    rows: Indices
    group: Indices
    keys: tuple[tuple[str, ...], ...]
    individual: Indices | None
    individuals: tuple[str, ...]


def read_records(
    source: Source,
    column: str,
    group_by: tuple[str, ...] = (),
    individual: str | None = None,
    *,
    equals: str | None = None,
    counted: bool = False,
    missing: str = "refuse",
) -> NumberRecords:
    """Read the column, the groups and the individuals."""
    names = columns_of(source, (column, *group_by, *((individual,) if individual else ())))
    where = f"{source.name}: column {quoted(column)}"
    groups, people = Numbering(), Numbering()
    parts: list[tuple[Indices, Floats, Indices, Indices]] = []
    for rows, columns in usable_records(source, names, missing):
        cells, others = columns[0], columns[1 : 1 + len(group_by)]
        values = _truths(cells, rows, where, equals) if counted else _numbers(cells, rows, where)
        group = groups.number(others) if others else np.zeros(len(rows), np.int64)
        person = people.number(columns[-1:]) if individual else group
        parts.append((rows, values, group, person))
    rows, values, group, person = (np.concatenate(part) for part in zip(*parts, strict=True))
    return NumberRecords(
        values,
        rows,
        group,
        groups.texts if group_by else ((),),
        person if individual else None,
        tuple(text for (text,) in people.texts),
    )


def _numbers(cells: Encoded, rows: Indices, where: str) -> Floats:
    texts = (*cells.texts, "")
    numbers = np.array([float(text) if _NUMBER.fullmatch(text) else math.nan for text in texts])
    values = numbers[cells.codes]
    if not bool(np.isfinite(values).all()):
        first = int(np.argmin(np.isfinite(values)))
        text = texts[cells.codes[first]]
        what = "is larger than any double"
        if math.isnan(values[first]):
            what = "is not a finite number"
            if text.strip().lower() == "nan":
                what = "is NaN, which lies in no range"
            elif not text:
                what = "is no number; say --missing drop to leave empty cells out"
        raise InputError(f"{where}, record {rows[first] + 1}: {quoted(text)} {what}")
    return values


def _truths(cells: Encoded, rows: Indices, where: str, equals: str | None) -> Floats:
    texts = (*cells.texts, "")
    if equals is not None:
        return np.array([text == equals for text in texts], dtype=np.float64)[cells.codes]
    values = np.array([TRUTHS.get(text, math.nan) for text in texts])[cells.codes]
    if np.isnan(values).any():
        first = int(np.argmax(np.isnan(values)))
        raise InputError(
            f"{where}, record {rows[first] + 1}: {quoted(texts[cells.codes[first]])} is neither 0 nor 1; "
            "to count records with some value, name it with --equals"
        )
    return values


def within(values: Floats, domain: IntervalDomain, *, clip: bool, where: str) -> Floats:
    """The values, all in the range."""
    lo, hi = float(domain.lo), float(domain.hi)
    outside = np.flatnonzero((values < lo) | (values > hi))
    if not outside.size or clip:
        return np.clip(values, lo, hi)
    first = int(outside[0])
    raise InputError(
        f"{where}: {outside.size:,} of {values.size:,} values lie outside the range {lo:g} to {hi:g} "
        f"(record {first + 1} is {float(values[first])!r}); widen --range, or say --clip"
    )


def most_groups(records: NumberRecords, *, grouped: bool) -> int:
    """The most answers that one individual takes part in (1 if individuals are not named)."""
    if records.individual is None:
        return 1
    pairs = records.individual * len(records.keys) + records.group
    firsts = np.unique(pairs, return_index=True)[1]
    if grouped and len(firsts) < len(pairs):
        again = np.ones(len(pairs), np.bool_)
        again[firsts] = False
        other = int(np.argmax(again))
        first = int(np.argmax(pairs == pairs[other]))
        raise InputError(
            f"the individual {quoted(records.individuals[records.individual[other]])} has several records in one "
            f"group (records {records.rows[first] + 1} and {records.rows[other] + 1}); "
            "add them up to one value each first, and give the range of that"
        )
    return int(np.bincount(records.individual).max())


_SHIFT = 1074
"""Every double is an integer multiple of 2^-1074."""


def exact_sums(values: Floats, group: Indices, groups: int) -> list[int]:
    """The exact sum of each group, in units of 2^-1074."""
    totals = [0] * groups
    for value, g in zip(values.tolist(), group.tolist(), strict=True):
        numerator, denominator = value.as_integer_ratio()
        totals[g] += numerator << (_SHIFT + 1 - denominator.bit_length())
    return totals


UNIT = 2**_SHIFT
"""1 in the units of `exact_sums`."""


def parse_range(text: str | None, query: str) -> IntervalDomain:
    """``lo,hi`` as the doubles nearest to what was typed."""
    if text is None:
        raise InputError(
            f"the sensitivity of {query} cannot be bounded: --range lo,hi is missing, the smallest and largest "
            "value that anybody's cell could have (not those of this file, which would disclose them)"
        )
    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"--range {quoted(text)} must be two numbers, lo,hi")
    ends: list[float] = []
    for part in parts:
        if not _NUMBER.fullmatch(part) or not math.isfinite(float(part)):
            raise InputError(f"--range {quoted(text)}: {quoted(part)} is not a finite number")
        ends.append(float(part))
    if ends[0] > ends[1]:
        raise InputError(f"--range {quoted(text)} is reversed; give lo,hi with lo <= hi")
    if not math.isfinite(ends[1] - ends[0]):
        raise InputError(f"--range {quoted(text)} is wider than any double; use a larger unit")
    return IntervalDomain(*ends)  # pyright: ignore[reportArgumentType]
