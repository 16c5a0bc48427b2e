"""Channels of least expected cost on the column's own symbols: most records true, numbers moved
least, or any costs.

The linear program over W(y|x) with one output for every symbol (`solvers.assignment`), bounded from
below, rounded to integers and audited exactly. Frequencies can be kept in expectation (invariant
PRAM), shares W(x|x) bounded from below, pairs forbidden: docs/how-to/least-cost.md has the
mathematics.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.matrix import non_negative
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import Objective
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure, naming
from mechdesign.core.files import PathLike
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.mechanisms.least_cost_plan import (
    ChannelLimits,
    Plan,
    deviation_of,
    truth_of,
)
from mechdesign.mechanisms.posteriors import check_polytope
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import numbers_of
from solvers import Array, SolverError
from solvers.assignment import LEAST_GAP
from solvers.errors import EmptyPolytope

COST = "the cost of releasing {} for {}"
INFORMATION, TRUTH, DISTANCE, COSTS, CONVEX = (
    "information",
    "truth",
    "distance",
    "costs",
    "convex",
)


@dataclass(frozen=True)
class Wanted:
    """What is asked for, as typed: the arguments of `mechanisms.design` of the same names."""

    objective: Any = INFORMATION
    distance: str | None = None
    keep_frequencies: bool = False
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    constraints: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """Of the objective; with "information" outputs are free."""
        if isinstance(self.objective, str):
            return self.objective
        return CONVEX if callable(self.objective) else COSTS


@dataclass(frozen=True, eq=False)
class Costs:
    """d(x, y): exact integers over one unit, and doubles that are as near as can be."""

    record: Objective
    units: NDArray[Any]
    unit: int

    @property
    def floats(self) -> Array:
        """(n, n) array."""
        return np.array(
            [[value / self.unit for value in row] for row in self.units.tolist()]
        )

    def expected(self, channel: Channel, joint: Joint) -> Fraction:
        """Exactly, of the integers of a channel."""
        at = [joint.useful.names.index(label) for label in channel.outputs]
        entries = zip(
            joint.useful_counts, self.units, channel.integers.entries(), strict=True
        )
        total = sum(
            weight * int(units[at[k]]) * entry
            for weight, units, row in entries
            for k, entry in row
        )
        return Fraction(total, joint.total * channel.denominator * self.unit)


def costs_of(wanted: Wanted, joint: Joint) -> Costs:
    """The costs of an objective on the symbols of a table."""
    objective, power, name = wanted.objective, wanted.distance, wanted.name
    if isinstance(objective, str) and objective not in (TRUTH, DISTANCE):
        raise InputError(
            f"objective ({objective!r}) must be information, truth, distance or a matrix of costs "
            "(--objective COSTS.csv)"
        )
    if power is not None and name != DISTANCE:
        raise InputError(
            "distance says how numbers are compared: it belongs to objective distance"
        )
    if power not in (None, "absolute", "squared"):
        raise InputError(f"distance ({power!r}) must be absolute or squared")
    power = (power or "absolute") if name == DISTANCE else None
    known = {
        "name": name,
        "distance": power,
        "keep_frequencies": wanted.keep_frequencies,
    }
    record = Objective.model_validate(known)
    if name == TRUTH:
        return Costs(record, ~np.eye(len(joint.useful), dtype=np.bool_), 1)
    if name == CONVEX:
        return Costs(record, np.zeros((len(joint.useful),) * 2, dtype=np.bool_), 1)
    if name == COSTS:
        return Costs(record, *_matrix(objective, joint))
    values = _numbers(joint)
    unit = math.lcm(*(value.denominator for value in values))
    scaled = np.array([int(value * unit) for value in values], dtype=object)
    units = np.abs(np.subtract.outer(scaled, scaled))
    return (
        Costs(record, units**2, unit**2)
        if power == "squared"
        else Costs(record, units, unit)
    )


def _numbers(joint: Joint) -> list[Fraction]:
    """The number of every symbol; of bins their medians in the table."""
    columns = joint.useful.columns
    if any(joint.useful.bins):
        values = [value for value in numbers_of(joint.useful) if value is not None]
        if len(columns) > 1 or len(values) < len(joint.useful):
            raise InputError(
                "objective distance needs one useful column of numbers, each bin with "
                "a number of its own"
            )
        return values
    if len(columns) > 1:
        raise InputError(
            "objective distance needs one useful column of numbers, not several crossed ones"
        )
    text = ""
    try:
        return [fraction_of(text := symbol[0]) for symbol in joint.useful.symbols]
    except InputError:
        raise InputError(
            "objective distance needs numbers, but the column "
            f"{quoted(joint.useful.columns[0])} has the symbol "
            f"{quoted(text)}; use objective truth, or a matrix of costs"
        ) from None


def _matrix(given: Any, joint: Joint) -> tuple[NDArray[Any], int]:
    """Exact costs from an array in the order of the symbols, or a frame or mapping with the symbols
    as labels.
    """
    names = joint.useful.names
    if hasattr(given, "columns") and hasattr(given, "index"):  # pandas
        header = [str(name) for name in given.columns]
        rows = zip(given.index, given.to_numpy().tolist(), strict=True)
        given = {str(x): dict(zip(header, row, strict=True)) for x, row in rows}
    if isinstance(given, Mapping):
        for where, known in (
            ("row", given),
            ("column", next(iter(given.values()), {})),
        ):
            missing = [name for name in names if name not in known]
            if missing:
                raise InputError(
                    f"the cost matrix has no {where} for the symbol {listed(missing)} of the table"
                )
        rows = [[given[x].get(y, math.nan) for y in names] for x in names]
    else:
        rows = np.asarray(given).tolist() if not isinstance(given, list) else given
    square = isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == len(names) for row in rows
    )
    if not square or len(rows) != len(names):
        raise InputError(
            "the cost matrix must have a row and a column for each of the "
            f"{len(names)} useful symbols, in their order"
        )
    places = zip(product(names, names), chain.from_iterable(rows), strict=True)
    exact = [non_negative(cell, COST, y, x) for (x, y), cell in places]
    unit = math.lcm(*(value.denominator for value in exact))
    return np.array([int(value * unit) for value in exact], dtype=object).reshape(
        len(names), -1
    ), unit


def read_costs(
    path: PathLike, text: TextOptions | None = None
) -> dict[str, dict[str, Fraction]]:
    """A matrix of costs from a CSV or Parquet file: what is released along the header, for what
    down the first column.

    Raises
    ------
    InputError
        If the file cannot be read, names a symbol twice, or has a cost that is none.
    """
    if not os.path.exists(path) and path != "-":
        raise InputError(
            f"objective {quoted(path)} must be information, truth, distance, or a CSV file of costs"
        )
    with open_source(path, text, repeated_names=True) as source:
        header = list(source.header[1:])
        rows = [row for batch in source.batches() for row in batch.rows()]
    down = [row[0] for row in rows]
    for names in (header, down):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            raise InputError(
                f"{source.name}: the symbol {listed(twice)} has two rows or two columns of costs"
            )
    costs: dict[str, dict[str, Fraction]] = {}
    with naming(source.name):
        for x, *cells in rows:
            costs[x] = {
                y: non_negative(cell, COST, y, x)
                for y, cell in zip(header, cells, strict=True)
            }
        return costs


def least_cost(rules: Rules, wanted: Wanted, search: Search) -> Design:
    """The channel of least expected cost for the notion, verified exactly, with a bound on every
    other one.

    Raises
    ------
    InputError
        If the objective or an option does not fit the table.
    NotPrivate
        If no private channel keeps to `stay` and `forbid`.
    SolverFailure
        If none was verified.
    """
    started = time.perf_counter()
    joint = rules.joint
    check_polytope(rules.notion)
    costs = costs_of(wanted, joint)
    limits = limits_of(wanted, joint)
    names = joint.useful.names
    convex = None
    if wanted.constraints is not None or callable(wanted.objective):
        from mechdesign.mechanisms.least_cost_convex import ConvexProgram

        cost = wanted.objective if callable(wanted.objective) else costs.floats
        convex = ConvexProgram(joint, cost, wanted.constraints)
    kept = {
        "stay": {
            name: str(share)
            for name, share in zip(names, limits.stay, strict=True)
            if share
        },
        "forbid": tuple(
            (names[x], names[y])
            for x, y in zip(*np.nonzero(~limits.allowed), strict=True)
        ),
        "constraints": 0 if convex is None else len(convex.constraints),
    }
    record = costs.record.model_copy(update=kept)
    plan = Plan(rules, costs.floats, limits, search, convex)
    try:
        channel, verdict, solved = plan.designed()
    except SolverError as error:
        if isinstance(error, EmptyPolytope) and plan.is_restricted:
            raise NotPrivate(plan.why_not()) from None
        raise SolverFailure(
            f"the channel of least cost could not be computed: {error}"
        ) from error
    cost = costs.expected(channel, joint)
    found = LeastCost(
        objective=record,
        cost=convex.value(plan.square(channel))
        if convex is not None and callable(wanted.objective)
        else quotient_above(*cost.as_integer_ratio()),
        cost_lower_bound=max(solved.bound, 0.0) if convex is None else solved.bound,
        truth=0.0 - quotient_above(*(-truth_of(channel, joint)).as_integer_ratio()),
        frequency_deviation=quotient_above(
            *deviation_of(channel, joint).as_integer_ratio()
        ),
    )
    gap = found.cost - found.cost_lower_bound
    said: list[str] = []
    if gap > max(search.gap, LEAST_GAP) * plan.spread:
        said.append(
            f"the search ended early: the cost is proven to be within {gap:.2g} of the least"
        )
    if len(channel.outputs) == 1:
        said.append(
            f"every record is released as {quoted(channel.outputs[0])}, which tells "
            "nothing: give a larger budget, "
            "more records, or merge symbols"
        )
    rounded = Rounded(channel, verdict)
    made = finish(
        rounded, joint, record.name, solved.method, started, messages=tuple(said)
    )
    utility = {**(made.channel.record.utility or {}), **found.figures}
    known = replace(made.channel.record, objective=record, utility=utility)
    return replace(made, channel=made.channel.with_record(known), least=found)


def limits_of(wanted: Wanted, joint: Joint) -> ChannelLimits:
    """`stay` and `forbid` on the symbols of a table."""
    names, index = (
        joint.useful.names,
        {name: x for x, name in enumerate(joint.useful.names)},
    )

    def known(symbol: Any, option: str) -> int:
        if symbol not in index:
            raise InputError(
                f"{option}: the table has no useful symbol {quoted(symbol)}"
            )
        return index[symbol]

    given = wanted.stay
    by_symbol = (
        given
        if isinstance(given, Mapping)
        else {}
        if given is None
        else dict.fromkeys(names, given)
    )
    stay = [Fraction(0)] * len(names)
    for symbol, share in by_symbol.items():
        x = known(symbol, "stay")
        try:
            stay[x] = fraction_of(share)
        except InputError as error:
            raise InputError(f"stay: the share of {quoted(symbol)} {error}") from None
        if not 0 <= stay[x] <= 1:
            raise InputError(
                f"stay: the share of {quoted(symbol)} ({quoted(share)}) must be in [0, 1]"
            )
    allowed = np.ones((len(names), len(names)), dtype=np.bool_)
    for pair in wanted.forbid:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"forbid: {quoted(pair)} must be a pair of symbols, (from, to)"
            )
        allowed[known(pair[0], "forbid"), known(pair[1], "forbid")] = False
    for x, name in enumerate(names):
        if not allowed[x].any():
            raise InputError(
                f"forbid leaves nothing that could be released for {quoted(name)}"
            )
        if stay[x] and not allowed[x, x]:
            raise InputError(
                f"stay and forbid contradict each other for {quoted(name)}"
            )
        if wanted.keep_frequencies and not allowed[:, x].any():
            raise InputError(
                f"forbid leaves nothing that could become {quoted(name)}, whose "
                "frequency is to be kept"
            )
    return ChannelLimits(tuple(stay), allowed, wanted.keep_frequencies)
