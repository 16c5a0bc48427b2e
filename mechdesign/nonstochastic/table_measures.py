"""Everything this package measures of the pairs (x, y) that occur in two columns of a file (bits)."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.balls import log2_above
from mechdesign.core.errors import InputError, naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encode
from mechdesign.formats.distinct import Numbering
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.nonstochastic import information
from mechdesign.nonstochastic.answering import BadCell, numbers_of, usable_records
from mechdesign.nonstochastic.domains import exact_number
from mechdesign.nonstochastic.hypothesis import TestingProblem
from mechdesign.nonstochastic.microaggregation import identifiable_partition
from mechdesign.nonstochastic.policy import reporting_policy
from mechdesign.nonstochastic.ranges import Indices, JointRange
from mechdesign.nonstochastic.zero_error import capacity_bounds
from mechdesign.tables.reading import columns_named

CELL = ("from", "to", "values", "released")
"""What is said of a cell: its smallest and its largest value, how many there are, and their mean."""

LISTED = 6
"""Values of the worst attribute that are named."""


def read_text_columns(
    path: PathLike,
    roles: Mapping[str, str | Sequence[str]],
    missing: str = "refuse",
    *,
    text: TextOptions | None = None,
) -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]]]:
    """The columns that some roles ask for, one text per record, and which of them each role asked for."""
    with open_source(path, text) as source:
        with naming(source.name):
            resolved = {
                role: columns_named(names, source.header)
                for role, names in roles.items()
            }
        wanted = list(
            dict.fromkeys(name for names in resolved.values() for name in names)
        )
        numberings = {name: Numbering() for name in wanted}
        parts: dict[str, list[Indices]] = {name: [] for name in wanted}
        for _, _, columns in usable_records(source, wanted, missing):
            for name, column in zip(wanted, columns, strict=True):
                parts[name].append(numberings[name].number([column]))
    if not parts[wanted[0]]:
        raise InputError(
            f"{source.name}: no records are left; a range needs at least one value"
        )
    cells: dict[str, list[str]] = {}
    for name, numbering in numberings.items():
        texts = [text for (text,) in numbering.texts]
        cells[name] = [texts[k] for part in parts[name] for k in part.tolist()]
    return cells, resolved


def _cross(table: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[Hashable]:
    return (
        list(table[names[0]])
        if len(names) == 1
        else list(zip(*(table[n] for n in names), strict=True))
    )


def measure_table(
    table: Mapping[str, Sequence[str]],
    x: Sequence[str],
    y: Sequence[str],
    *,
    feature: Sequence[str] = (),
    hypothesis: tuple[str, str] | None = None,
    epsilon: object = None,
    zero_error: bool = False,
) -> dict[str, Any]:
    """Measure the pairs that occur in a table; all logarithms in bits."""
    joint = JointRange.from_columns(_cross(table, x), _cross(table, y))
    worst = information.worst_attribute(joint)
    return {
        "x": tuple(x),
        "y": tuple(y),
        "records": len(table[x[0]]),
        "pairs": joint.n_pairs,
        "x_values": joint.shape[0],
        "y_values": joint.shape[1],
        **asdict(information.range_report(joint)),
        "maximal_leakage": information.maximal_leakage(joint),
        "identifiability": information.identifiable_epsilon(joint),
        "identifiable": None
        if epsilon is None
        else information.is_identifiable(joint, epsilon),
        "stochastic_bound": information.largest_stochastic_leakage(joint),
        "worst_attribute": {
            "output": _text(worst.output),
            "merged": len(worst.merged),
            "some": sorted(map(_text, worst.merged))[:LISTED],
            "values": worst.n_values,
        },
        "feature": _feature(table, joint, x, feature) if feature else None,
        "hypothesis": tested_hypothesis(table, y, *hypothesis) if hypothesis else None,
        "zero_error": _zero_error(joint) if zero_error else None,
    }


def _text(value: Any) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def _zero_error(joint: JointRange) -> dict[str, Any]:
    bounds = capacity_bounds(joint)
    names, code = ("codewords", "codewords_upper_bound", "proof"), bounds.code
    known = (
        (None, None, None)
        if code is None
        else (code.size, code.upper_bound, code.proof)
    )
    ends = {name: getattr(bounds, name) for name in ("lower", "upper", "uses", "theta")}
    return ends | dict(zip(names, known, strict=True))


def _feature(
    table: Mapping[str, Sequence[str]],
    joint: JointRange,
    x: Sequence[str],
    names: Sequence[str],
) -> dict[str, Any]:
    values: dict[Hashable, Hashable] = {}
    for private, value in zip(_cross(table, x), _cross(table, names), strict=True):
        if values.setdefault(private, value) != value:
            raise InputError(
                f"the feature {', '.join(names)} is no function of {', '.join(x)}: {quoted(private)} occurs with "
                f"{quoted(values[private])} and {quoted(value)}; put its columns into x"
            )
    mapped = joint.map_x(values.__getitem__)
    told = {
        "leakage": information.range_leakage(mapped),
        "one_shot": mapped.largest_x == 1,
    }
    return {"columns": tuple(names), "values": mapped.x_total, **told}


def _holding(table: Mapping[str, Sequence[str]], column: str, value: str) -> list[int]:
    """For each record 1 if the hypothesis holds, else 0."""
    holds = [int(text == value) for text in table[column]]
    if len(set(holds)) == 1:
        often = "always" if holds[0] else "never"
        raise InputError(
            f"the hypothesis {quoted(column)} = {quoted(value)} {often} holds: nothing is to be tested"
        )
    return holds


def tested_hypothesis(
    table: Mapping[str, Sequence[str]], y: Sequence[str], column: str, value: str
) -> dict[str, Any]:
    """What the outputs tell of the hypothesis that a column has a value, and the best test, which is consistent."""
    holds = _holding(table, column, value)
    pairs = set(zip(map(_text, _cross(table, y)), holds, strict=True))
    problem = TestingProblem(
        *(frozenset(out for out, held in pairs if held == side) for side in (1, 0))
    )
    return {
        "column": column,
        "value": value,
        "outputs": len(problem.outputs),
        "telling": len(problem.telling),
        "epsilon": "inf" if problem.epsilon is None else float(problem.epsilon),
        **{
            name: getattr(problem, name)
            for name in ("privacy", "performance_bound", "leakage")
        },
        "yes": sorted(problem.null - problem.alternative),
        "no": sorted(problem.alternative - problem.null),
    }


def _numbers(path: PathLike, texts: Sequence[str], name: str) -> NDArray[np.float64]:
    try:
        numbers = numbers_of(encode(texts, name), name)
    except BadCell:
        raise InputError(
            f"{os.fspath(path)}: the column {quoted(name)} must hold a finite number in every record; correct the "
            "others, or name another column"
        ) from None
    return numbers.values[numbers.codes]


def policy_table(
    path: PathLike,
    x: Sequence[str],
    hypothesis: tuple[str, str],
    epsilon: object,
    within: object = None,
    **read: Any,
) -> dict[str, Any]:
    """The policy that reports the numbers of some columns privately against a test, and moves them least."""
    ratio = exact_number("epsilon", epsilon)
    reach = math.inf if within is None else float(exact_number("within", within))
    cells, found = read_text_columns(
        path, {"x": x, "hypothesis": hypothesis[:1]}, **read
    )
    columns = [_numbers(path, cells[name], name) for name in found["x"]]
    points, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    holds = np.zeros((len(points), 2), dtype=np.bool_)
    holds[place, _holding(cells, *hypothesis)] = True
    report, optimal = reporting_policy(points, holds, ratio, reach)
    away = np.sqrt(((points - points[report]) ** 2).sum(axis=1))
    shown = [", ".join(map(repr, point)) for point in points.tolist()]
    released = {
        "report": [shown[k] for k in report[place].tolist()],
        hypothesis[0]: cells[hypothesis[0]],
    }
    return {
        "x": found["x"],
        "values": len(points),
        "moved": int(np.count_nonzero(away)),
        "largest_distance": float(away.max()),
        "distortion": float((away**2).mean()),
        "optimal": optimal,
        "policy": [
            {"from": a, "to": b}
            for a, b in zip(points.tolist(), points[report].tolist(), strict=True)
        ],
        "test": tested_hypothesis(released, ("report",), *hypothesis),
    }


def partition_column(
    path: PathLike,
    column: str,
    epsilon: object,
    missing: str,
    *,
    text: TextOptions | None = None,
) -> dict[str, Any]:
    """The epsilon-identifiable partition, of least mean squared error, of the numbers that occur in a column."""
    texts = read_text_columns(path, {"x": (column,)}, missing, text=text)[0][column]
    values = np.unique(_numbers(path, texts, column))
    found = identifiable_partition(values, epsilon)
    last = np.cumsum(found.sizes) - 1
    cells = (
        values[last - found.sizes + 1],
        values[last],
        found.sizes,
        found.representatives,
    )
    return {
        "x": column,
        "values": values.size,
        "smallest_cell": found.smallest,
        "identifiability": log2_above(Fraction(values.size, int(found.sizes.min()))),
        **{name: getattr(found, name) for name in ("maximal_leakage", "distortion")},
        "cells": [
            dict(zip(CELL, row, strict=True))
            for row in zip(*(part.tolist() for part in cells), strict=True)
        ],
    }
