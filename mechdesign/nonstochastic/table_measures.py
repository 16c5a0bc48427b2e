"""Everything this package measures of the pairs (x, y) that occur in two columns of a file (bits)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import Numbering
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.nonstochastic.answering import usable_records
from mechdesign.nonstochastic.hypothesis import TestingProblem
from mechdesign.nonstochastic.information import (
    RangeReport,
    WorstAttribute,
    brute_force_leakage,
    identifiable_epsilon,
    is_identifiable,
    is_one_shot,
    largest_stochastic_leakage,
    maximal_leakage,
    range_report,
    worst_attribute,
)
from mechdesign.nonstochastic.ranges import JointRange
from mechdesign.nonstochastic.zero_error import CapacityBounds, capacity_bounds
from mechdesign.tables.reading import columns_named

Indices = NDArray[np.int64]


def read_text_columns(
    path: PathLike,
    roles: Mapping[str, str | Sequence[str]],
    missing: str = "refuse",
    *,
    text: TextOptions | None = None,
) -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]]]:
    """The columns that some roles ask for, one text per record, and which of them each role asked for."""
    with open_source(path, text) as source:
        try:
            resolved = {role: columns_named(names, source.header) for role, names in roles.items()}
        except InputError as error:
            raise InputError(f"{source.name}: {error}") from None
        wanted = list(dict.fromkeys(name for names in resolved.values() for name in names))
        numberings = {name: Numbering() for name in wanted}
        parts: dict[str, list[Indices]] = {name: [] for name in wanted}
        for _, _, columns in usable_records(source, wanted, missing):
            for name, column in zip(wanted, columns, strict=True):
                parts[name].append(numberings[name].number([column]))
    if not parts[wanted[0]]:
        raise InputError(f"{source.name}: no records are left; a range needs at least one value")
    cells: dict[str, list[str]] = {}
    for name, numbering in numberings.items():
        texts = [text for (text,) in numbering.texts]
        cells[name] = [texts[k] for part in parts[name] for k in part.tolist()]
    return cells, resolved


@dataclass(frozen=True)
class FeatureMeasures:
    """What Y tells about a feature U of X."""

    columns: tuple[str, ...]
    values: int
    leakage: float
    one_shot: bool


@dataclass(frozen=True)
class HypothesisMeasures:
    """What Y tells about whether a column has a certain value (p0) or not (p1)."""

    column: str
    value: str
    outputs: int
    telling: int
    epsilon: Fraction | None
    privacy: float
    performance_bound: float
    leakage: float


@dataclass(frozen=True)
class TableMeasures:
    """All measures of the range of two (groups of) columns."""

    x: tuple[str, ...]
    y: tuple[str, ...]
    records: int
    pairs: int
    x_values: int
    y_values: int
    information: RangeReport
    maximal_leakage: float
    worst: WorstAttribute
    identifiability: float
    identifiable: bool | None
    stochastic_bound: float
    feature: FeatureMeasures | None
    hypothesis: HypothesisMeasures | None
    capacity: CapacityBounds | None


def _cross(table: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[Hashable]:
    return list(table[names[0]]) if len(names) == 1 else list(zip(*(table[n] for n in names), strict=True))


def measure_table(
    table: Mapping[str, Sequence[str]],
    x: Sequence[str],
    y: Sequence[str],
    *,
    feature: Sequence[str] = (),
    hypothesis: tuple[str, str] | None = None,
    epsilon: object = None,
    zero_error: bool = False,
) -> TableMeasures:
    """Measure the pairs that occur in a table."""
    joint = JointRange.from_columns(_cross(table, x), _cross(table, y))
    return TableMeasures(
        x=tuple(x),
        y=tuple(y),
        records=len(table[x[0]]),
        pairs=joint.n_pairs,
        x_values=joint.shape[0],
        y_values=joint.shape[1],
        information=range_report(joint),
        maximal_leakage=maximal_leakage(joint),
        worst=worst_attribute(joint),
        identifiability=identifiable_epsilon(joint),
        identifiable=None if epsilon is None else is_identifiable(joint, epsilon),
        stochastic_bound=largest_stochastic_leakage(joint),
        feature=_feature(table, joint, x, feature) if feature else None,
        hypothesis=_hypothesis(table, y, *hypothesis) if hypothesis else None,
        capacity=capacity_bounds(joint) if zero_error else None,
    )


def _feature(
    table: Mapping[str, Sequence[str]], joint: JointRange, x: Sequence[str], names: Sequence[str]
) -> FeatureMeasures:
    values: dict[Hashable, Hashable] = {}
    for private, value in zip(_cross(table, x), _cross(table, names), strict=True):
        if values.setdefault(private, value) != value:
            raise InputError(
                f"the feature {', '.join(names)} is no function of {', '.join(x)}: {quoted(private)} occurs with "
                f"{quoted(values[private])} and {quoted(value)}; put its columns into x"
            )
    return FeatureMeasures(
        columns=tuple(names),
        values=len(set(values.values())),
        leakage=brute_force_leakage(joint, values.__getitem__),
        one_shot=is_one_shot(joint, values.__getitem__),
    )


def _hypothesis(
    table: Mapping[str, Sequence[str]], y: Sequence[str], column: str, value: str
) -> HypothesisMeasures:
    holds = [text == value for text in table[column]]
    if all(holds) or not any(holds):
        often = "always" if holds[0] else "never"
        raise InputError(
            f"the hypothesis {quoted(column)} = {quoted(value)} {often} holds: nothing is to be tested"
        )
    outputs = _cross(table, y)
    problem = TestingProblem(
        frozenset(out for out, held in zip(outputs, holds, strict=True) if held),
        frozenset(out for out, held in zip(outputs, holds, strict=True) if not held),
    )
    return HypothesisMeasures(
        column=column,
        value=value,
        outputs=len(problem.outputs),
        telling=len(problem.telling),
        **{name: getattr(problem, name) for name in ("epsilon", "privacy", "performance_bound", "leakage")},
    )
