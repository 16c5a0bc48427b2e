"""Measures of ranges on the columns of a file, as the records that commands print (bits).

The ranges are those of the file: the pairs (x, y) that occur in its records. `read_text_columns`
reads the columns as texts, one for each record. There are four jobs:

- `measure_table` crosses the columns of x and those of y, and measures the pairs (`ranges`);
  on request it tests a hypothesis (`tested_hypothesis`), and bounds the zero-error capacity.
- `policy_table` takes the distinct numbers of x as points, has each reported as one of them
  (`reporting_policy`), and tests the hypothesis on the records as reported.
- `blur_table` reports a border in the place of every number near it, and tests on which side of the
  border a number is.
- `partition_column` divides the distinct numbers of a column into cells (`identifiable_partition`).

For example, age and band are (20, young), (30, young) and (30, old): three pairs. The band 'old'
leaves one of two ages, so the leakage is log2(2 / 1) = 1 bit. Both ages occur with 'young', which
makes one class of them: the maximin information is 0 bits.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import finite_number
from mechdesign.core.balls import log2_above
from mechdesign.core.errors import InputError, Notice, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encode
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.distinct import Numbering
from mechdesign.formats.opening import open_source
from mechdesign.nonstochastic import ranges
from mechdesign.nonstochastic.blurring import preimage_epsilon
from mechdesign.nonstochastic.hypothesis import TestingProblem, reporting_policy
from mechdesign.nonstochastic.number_columns import BadCell, numbers_of, usable_records
from mechdesign.nonstochastic.queries import exact_number
from mechdesign.nonstochastic.ranges import Indices, JointRange
from mechdesign.nonstochastic.thresholds_by_error import identifiable_partition
from mechdesign.nonstochastic.zero_error import capacity_bounds
from mechdesign.tables.reading import columns_named

LISTED = 6
"""Most values of the worst attribute that are named."""

Columns = Mapping[str, Sequence[str]]
"""Columns by name, one text per record."""


def measure_table(
    table: Columns,
    x: Sequence[str],
    y: Sequence[str],
    *,
    feature: Sequence[str] = (),
    hypothesis: tuple[str, str] | None = None,
    epsilon: object = None,
    zero_error: bool = False,
) -> dict[str, Any]:
    """Measure the pairs that occur in a table; all logarithms in bits.

    Parameters
    ----------
    x, y
        Private and released columns; several are crossed.
    feature
        Columns that are a function of x, to guess.
    hypothesis
        A column and the value that it has under the hypothesis.
    epsilon
        Bits: whether the release is epsilon-identifiable.
    zero_error
        Whether the zero-error capacity is bounded, too.
    """
    joint = JointRange.from_columns(_cross(table, x), _cross(table, y))
    worst = ranges.worst_attribute(joint)
    record: dict[str, Any] = {
        "x": tuple(x),
        "y": tuple(y),
        "records": len(table[x[0]]),
        "pairs": joint.n_pairs,
        "x_values": joint.shape[0],
        "y_values": joint.shape[1],
        **asdict(ranges.range_report(joint)),
        "maximal_leakage": ranges.maximal_leakage(joint),
        "identifiability": ranges.identifiable_epsilon(joint),
        "identifiable": None,
        "stochastic_bound": ranges.largest_stochastic_leakage(joint),
        "worst_attribute": {
            "output": _text(worst.output),
            "merged": len(worst.merged),
            "some": sorted(map(_text, worst.merged))[:LISTED],
            "values": worst.n_values,
        },
        "feature": None,
        "hypothesis": None,
        "zero_error": None,
    }
    if epsilon is not None:
        record["identifiable"] = ranges.is_identifiable(joint, epsilon)
    if feature:
        record["feature"] = _feature(table, joint, x, feature)
    if hypothesis is not None:
        record["hypothesis"] = tested_hypothesis(table, y, *hypothesis)
    if zero_error:
        record["zero_error"] = _zero_error(joint)
    return record


def tested_hypothesis(
    table: Columns, y: Sequence[str], column: str, value: str
) -> dict[str, Any]:
    """The privacy of outputs against the hypothesis that a column has a value, and the best test.

    `yes` and `no` are the outputs at which the best test accepts and rejects the hypothesis. It
    decides nowhere else, so it is never wrong (a consistent test).
    """
    # The outputs without the hypothesis, and with it: the place is that of the truth value.
    compatible: tuple[set[str], set[str]] = (set(), set())
    holds = _holding(table, column, value)
    for output, held in zip(_cross(table, y), holds, strict=True):
        compatible[held].add(_text(output))
    without, under = compatible
    problem = TestingProblem(frozenset(under), frozenset(without))
    # As text, because JSON has no infinity.
    epsilon: float | str = "inf"
    if problem.epsilon is not None:
        epsilon = float(problem.epsilon)
    return {
        "column": column,
        "value": value,
        "outputs": len(problem.outputs),
        "telling": len(problem.telling),
        "epsilon": epsilon,
        "privacy": problem.privacy,
        "performance_bound": problem.performance_bound,
        "leakage": problem.leakage,
        "yes": sorted(problem.null - problem.alternative),
        "no": sorted(problem.alternative - problem.null),
    }


def policy_table(
    path: PathLike,
    x: Sequence[str],
    hypothesis: tuple[str, str],
    epsilon: object,
    within: object = None,
    *,
    missing: str = "refuse",
    text: TextOptions | None = None,
) -> dict[str, Any]:
    """The policy that reports some columns privately against a test, and moves their numbers least.

    Parameters
    ----------
    hypothesis
        A column and the value that it has under the hypothesis.
    epsilon
        Ambiguous reports are at least epsilon times as many as telling ones.
    within
        The largest distance of a report from its value.
    """
    ratio = exact_number("epsilon", epsilon)
    farthest = math.inf
    if within is not None:
        farthest = float(exact_number("within", within))
    roles = {"x": x, "hypothesis": hypothesis[:1]}
    cells, resolved = read_text_columns(path, roles, missing, text=text)

    # The distinct values, and whether each occurs without the hypothesis and with it.
    # Equal points are one value, which has one report.
    columns = [_numbers(path, cells[name], name) for name in resolved["x"]]
    points, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    holds = np.zeros((len(points), 2), dtype=np.bool_)
    holds[place, _holding(cells, *hypothesis)] = True
    report, optimal = reporting_policy(points, holds, ratio, farthest)

    # In units of the columns.
    distance = np.sqrt(((points - points[report]) ** 2).sum(axis=1))

    # The test is measured on the records as reported, not taken from the program.
    names = [", ".join(map(repr, point)) for point in points.tolist()]
    released = {
        "report": [names[k] for k in report[place].tolist()],
        hypothesis[0]: cells[hypothesis[0]],
    }
    policy: list[dict[str, Any]] = []
    for value, reported in zip(points.tolist(), points[report].tolist(), strict=True):
        policy.append({"from": value, "to": reported})
    return {
        "x": resolved["x"],
        "values": len(points),
        "moved": int(np.count_nonzero(distance)),
        "largest_distance": float(distance.max()),
        "distortion": float((distance**2).mean()),
        "optimal": optimal,
        "policy": policy,
        "test": tested_hypothesis(released, ("report",), *hypothesis),
    }


def blur_table(
    path: PathLike,
    x: str,
    border: str,
    within: object,
    *,
    beside: Sequence[str] = (),
    missing: str = "refuse",
    text: TextOptions | None = None,
) -> dict[str, Any]:
    """Farokhi's blurring policy on a column: the border in the place of each number near it.

    The hypothesis is that the number reaches the border (Farokhi 2020, Theorem 4).

    Parameters
    ----------
    x
        The column of numbers.
    border
        A number, or the column that has the border of each record. It must follow from what else
        is released.
    within
        Numbers at most so far from the border are reported as the border (1/rho in the paper).
    beside
        What is released beside the report; the border alone by default.

    Returns
    -------
    A record: the columns, the number of distinct values and of those that moved, the largest
    distance, `epsilon` by the values behind each report (None if nothing settles the hypothesis),
    and `claimed`, the one of Theorem 4, which counts the whole strip.
    """
    distance = exact_number("within", within)
    if distance <= 0:
        raise InputError(f"--within ({float(distance):g}) must be positive")
    roles = {"x": (x,), "beside": tuple(beside)}
    fixed = finite_number(border)
    if fixed is None:
        roles["border"] = (border,)
    cells, resolved = read_text_columns(path, roles, missing, text=text)
    numbers = _numbers(path, cells[resolved["x"][0]], x)
    if fixed is None:
        limits = _numbers(path, cells[resolved["border"][0]], border)
    else:
        limits = np.full(numbers.shape, fixed)
    is_near = np.abs(numbers - limits) <= float(distance)
    reports = np.where(is_near, limits, numbers)

    seen: list[Sequence[Any]] = [limits.tolist()]
    seen += [cells[name] for name in resolved["beside"]]
    others = list(zip(*seen, strict=True))
    given = list(zip(numbers.tolist(), others, strict=True))
    released = list(zip(reports.tolist(), others, strict=True))
    joint = JointRange.from_columns(given, released)
    holds: dict[Hashable, bool] = {}
    holds.update(zip(given, (numbers >= limits).tolist(), strict=True))
    near = len({value for value, close in zip(given, is_near, strict=True) if close})
    values = len(joint.x_symbols)
    epsilon = preimage_epsilon(joint, holds)
    return {
        "x": x,
        "border": border,
        "within": float(distance),
        "records": len(numbers),
        "records_moved": int(np.count_nonzero(reports != numbers)),
        "largest_distance": float(np.abs(reports - numbers).max()),
        "values": values,
        "epsilon": None if epsilon is None else float(epsilon),
        "claimed": None if near == values else near / (values - near),
    }


def partition_column(
    path: PathLike,
    column: str,
    epsilon: object,
    missing: str,
    *,
    text: TextOptions | None = None,
) -> dict[str, Any]:
    """The epsilon-identifiable partition of least mean squared error of a column's numbers."""
    columns, _ = read_text_columns(path, {"x": (column,)}, missing, text=text)
    values = np.unique(_numbers(path, columns[column], column))
    partition = identifiable_partition(values, epsilon)
    cells: list[dict[str, Any]] = []
    start = 0
    for size, mean in zip(
        partition.sizes.tolist(), partition.representatives.tolist(), strict=True
    ):
        members = values[start : start + size].tolist()
        cells.append(
            {
                "from": members[0],
                "to": members[-1],
                "values": size,
                "released": mean,
            }
        )
        start += size
    # The cells may be larger than the budget demands: the smallest one decides.
    smallest = int(partition.sizes.min())
    return {
        "x": column,
        "values": values.size,
        "smallest_cell": partition.smallest,
        "identifiability": log2_above(Fraction(values.size, smallest)),
        "maximal_leakage": partition.maximal_leakage,
        "distortion": partition.distortion,
        "cells": cells,
    }


def read_text_columns(
    path: PathLike,
    roles: Mapping[str, str | Sequence[str]],
    missing: str = "refuse",
    *,
    text: TextOptions | None = None,
) -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]]]:
    """Read the columns of some roles.

    Parameters
    ----------
    roles
        The columns of each role, as they were named.
    missing
        The treatment of a record with an empty cell: refuse, symbol or drop.

    Returns
    -------
    The columns by name, one text per record, and the names of the columns of each role.

    Warns
    -----
    Notice
        Of the number of records that were left out for an empty cell.
    """
    left_out: list[int] = []
    with open_source(path, text) as source:
        with errors_naming(source.name):
            resolved: dict[str, tuple[str, ...]] = {}
            for role, names in roles.items():
                resolved[role] = columns_named(names, source.header)
        # Each column once, though several roles may have it; a dictionary keeps their order.
        distinct: dict[str, None] = {}
        for names in resolved.values():
            distinct.update(dict.fromkeys(names))
        columns_read = list(distinct)
        # While the file is read, each distinct text is kept once, and its number for each record.
        numberings = {name: Numbering() for name in columns_read}
        parts: dict[str, list[Indices]] = {name: [] for name in columns_read}
        for _, _, columns in usable_records(
            source, columns_read, missing, left_out=left_out.append
        ):
            for name, column in zip(columns_read, columns, strict=True):
                parts[name].append(numberings[name].number([column]))
    dropped = sum(left_out)
    if dropped:
        records = dropped + sum(map(len, parts[columns_read[0]]))
        warnings.warn(
            f"{source.name}: dropped {dropped:,} of {records:,} record(s) with an empty cell; the "
            "figures say nothing about them",
            Notice,
            stacklevel=2,
        )
    if not parts[columns_read[0]]:
        raise InputError(
            f"{source.name}: no records are left; a range needs at least one value"
        )
    cells: dict[str, list[str]] = {}
    for name, numbering in numberings.items():
        texts = [combination[0] for combination in numbering.texts]
        codes = np.concatenate(parts[name]).tolist()
        cells[name] = [texts[code] for code in codes]
    return cells, resolved


def _cross(table: Columns, names: Sequence[str]) -> list[Hashable]:
    """The values of a column, or the tuples of several."""
    if len(names) == 1:
        return list(table[names[0]])
    return list(zip(*(table[name] for name in names), strict=True))


def _text(value: Any) -> str:
    """A symbol as text; that of crossed columns as a tuple."""
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return str(value)


def _zero_error(joint: JointRange) -> dict[str, Any]:
    """The bounds of the zero-error capacity, and the best code, as a record."""
    bounds = capacity_bounds(joint)
    record: dict[str, Any] = {
        "lower": bounds.lower,
        "upper": bounds.upper,
        "uses": bounds.uses,
        "theta": bounds.theta,
        "codewords": None,
        "codewords_upper_bound": None,
        "proof": None,
    }
    if bounds.code is not None:
        record["codewords"] = bounds.code.size
        record["codewords_upper_bound"] = bounds.code.upper_bound
        record["proof"] = bounds.code.proof
    return record


def _feature(
    table: Columns, joint: JointRange, x: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    """The leakage of a feature of X, which must be a function of it."""
    # Brute-force guessing is of functions of X: U - X - Y is a Markov chain (Farokhi and Ding 2020,
    # Definition 1). Anything else would be a secret that x does not determine.
    feature_of: dict[Hashable, Hashable] = {}
    for private, value in zip(_cross(table, x), _cross(table, names), strict=True):
        if feature_of.setdefault(private, value) != value:
            raise InputError(
                f"the feature {', '.join(names)} is no function of {', '.join(x)}: "
                f"{quoted(private)} occurs with {quoted(feature_of[private])} and "
                f"{quoted(value)}; put its columns into x"
            )
    mapped = joint.map_x(feature_of.__getitem__)
    return {
        "columns": tuple(names),
        "values": mapped.x_total,
        "leakage": ranges.range_leakage(mapped),
        "one_shot": mapped.largest_x == 1,
    }


def _holding(table: Columns, column: str, value: str) -> list[int]:
    """For each record 1 if the hypothesis holds, else 0; both must occur."""
    holds = [int(text == value) for text in table[column]]
    if len(set(holds)) == 1:
        often = "always" if holds[0] else "never"
        raise InputError(
            f"the hypothesis {quoted(column)} = {quoted(value)} {often} holds: nothing is to be "
            "tested"
        )
    return holds


def _numbers(path: PathLike, texts: Sequence[str], name: str) -> NDArray[np.float64]:
    """The numbers of a column."""
    try:
        numbers = numbers_of(encode(texts, name), name)
    except BadCell:
        raise InputError(
            f"{os.fspath(path)}: the column {quoted(name)} must hold a finite number in every "
            "record; correct the others, or name another column"
        ) from None
    return numbers.values[numbers.codes]
