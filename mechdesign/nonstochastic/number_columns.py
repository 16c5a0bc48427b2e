"""The columns that a quantised release is made from: numbers, groups and individuals."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.nonstochastic.domains import IntervalDomain
from mechdesign.nonstochastic.text_columns import read_text_columns

_NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?[ \t]*", re.ASCII)

TRUTHS = {"0": 0, "1": 1, "false": 0, "true": 1, "False": 0, "True": 1}
"""Cells of a column that is counted without naming a value."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Records:
    """One entry for each record.

    Parameters
    ----------
    values : (n,) doubles, the nearest to the text
    group : (n,) indices into `keys`
    keys : distinct groups in order of appearance; one empty tuple without grouping
    individuals : (n,) texts, or None
    """

    values: Floats
    group: Indices
    keys: tuple[tuple[str, ...], ...]
    individuals: tuple[str, ...] | None


def read_records(
    path: PathLike,
    column: str,
    group_by: tuple[str, ...] = (),
    individual: str | None = None,
    *,
    equals: str | None = None,
    counted: bool = False,
    missing: str = "refuse",
) -> Records:
    """Read the column, the groups and the individuals.

    Parameters
    ----------
    column
        Of numbers; with `counted`, of cells that are compared with `equals`, or are 0 or 1.
    missing
        What an empty cell is: "refuse", "drop" (its record is left out), or "symbol" (a group or
        individual of its own; never a number).

    Raises
    ------
    InputError
        Naming the file, the column and the record.
    """
    roles = {"value": (column,), "group": group_by, "individual": (individual,) if individual else ()}
    read = read_text_columns(path, roles, missing)
    texts = read.cells[column]
    where = f"{os.fspath(path)}: column {quoted(column)}"
    values = _truths(texts, where, equals) if counted else _numbers(texts, where)
    place: dict[tuple[str, ...], int] = {}
    count = len(texts)
    if group_by:
        columns = [read.cells[name] for name in group_by]
        codes = [place.setdefault(key, len(place)) for key in zip(*columns, strict=True)]
        group = np.array(codes, dtype=np.int64)
    else:
        place[()] = 0
        group = np.zeros(count, dtype=np.int64)
    people = tuple(read.cells[individual]) if individual else None
    return Records(values, group, tuple(place), people)


def _numbers(texts: list[str], where: str) -> Floats:
    for k, text in enumerate(texts):
        if not _NUMBER.fullmatch(text):
            kind = (
                "is NaN, which lies in no range"
                if text.strip().lower() == "nan"
                else "is not a finite number"
            )
            if not text:
                kind = "is no number; say --missing drop to leave empty cells out"
            raise InputError(f"{where}, record {k + 1}: {quoted(text)} {kind}")
    values = np.array([float(text) for text in texts], dtype=np.float64)
    if not bool(np.isfinite(values).all()):
        k = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"{where}, record {k + 1}: {quoted(texts[k])} is larger than any double")
    return values


def _truths(texts: list[str], where: str, equals: str | None) -> Floats:
    if equals is not None:
        return np.array([text == equals for text in texts], dtype=np.float64)
    for k, text in enumerate(texts):
        if text not in TRUTHS:
            raise InputError(
                f"{where}, record {k + 1}: {quoted(text)} is neither 0 nor 1; "
                "to count records with some value, name it with --equals"
            )
    return np.array([TRUTHS[text] for text in texts], dtype=np.float64)


def within(values: Floats, domain: IntervalDomain, *, clip: bool, where: str) -> Floats:
    """The values, all in the range.

    Raises
    ------
    InputError
        If some are outside and `clip` is not set.
    """
    lo, hi = float(domain.lo), float(domain.hi)
    outside = np.flatnonzero((values < lo) | (values > hi))
    if not outside.size or clip:
        return np.clip(values, lo, hi)
    first = int(outside[0])
    raise InputError(
        f"{where}: {outside.size:,} of {values.size:,} values lie outside the range {lo:g} to {hi:g} "
        f"(record {first + 1} is {float(values[first])!r}); widen --range, or say --clip"
    )


def most_groups(records: Records, *, grouped: bool) -> int:
    """The most answers that one individual takes part in (1 if individuals are not named).

    Raises
    ------
    InputError
        If an individual has several records in one group of an aggregate.
    """
    if records.individuals is None:
        return 1
    seen: dict[tuple[str, int], int] = {}
    answers: dict[str, int] = {}
    for k, (who, group) in enumerate(zip(records.individuals, records.group.tolist(), strict=True)):
        first = seen.setdefault((who, group), k)
        if grouped and first != k:
            raise InputError(
                f"the individual {quoted(who)} has several records in one group (records {first + 1} and {k + 1}); "
                "add them up to one value each first, and give the range of that"
            )
        answers[who] = answers.get(who, 0) + 1
    return max(answers.values())


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
    """``lo,hi`` as the doubles nearest to what was typed.

    Raises
    ------
    InputError
        If it is missing (then nothing bounds what one individual can change), not two finite numbers,
        or reversed.
    """
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
