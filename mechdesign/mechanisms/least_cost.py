"""Channels of least expected cost on the column's own symbols: most records true, numbers moved least, or any costs.

The linear program over W(y|x) with one output for every symbol (`solvers.assignment`), bounded from below, rounded to
integers and audited exactly. Frequencies can be kept in expectation (invariant PRAM), shares W(x|x) bounded from below,
pairs forbidden: docs/least-cost.md has the mathematics.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.verdict import Audit, audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.record import Objective
from mechdesign.core.balls import quotient_above
from mechdesign.core.decimals import at_least
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.files import PathLike
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.numbers import fraction_of, listed, quoted
from mechdesign.core.progress import Step
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import open_source
from mechdesign.mechanisms.classes import Classes, classes
from mechdesign.mechanisms.optimal import Search
from mechdesign.mechanisms.posteriors import check_polytope, posteriors
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import SolverError
from solvers.assignment import Assigned, Assignment, assign
from solvers.errors import EmptyPolytope

Array = NDArray[np.float64]

TRUTH, DISTANCE, COSTS = "truth", "distance", "costs"

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Margins tried in turn until the integers pass the exact audit; see `optimal.MARGINS`."""

LARGE_FROM, LARGE_MARGIN = 300, 1e-8
"""Symbols from which the first margin is that of an interior point solution: a second solve would take minutes."""

LARGEST_DEVIATION = Fraction(1, 10**12)
"""How much an expected share may change where frequencies are kept: exact equality has no common denominator."""

NOISE = 1e-11
"""Shares below this are what an interior point method leaves of a zero; they go to the largest of their row."""

LEAST_GAP = 1e-9
"""Gap, as a share of the cost of columns that tell nothing, below which double precision proves nothing more."""

MOST_TRIED, BISECTIONS = 20, 20
"""Symbols looked at alone, and halvings of all shares, to say why none of the channels can stay as asked."""

MIXES = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""Shares of the channel whose rows all are P(y), tried where integers miss a budget by a hair."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked for, as typed: the arguments of `mechanisms.design` of the same names."""

    objective: Any = "information"
    distance: str | None = None
    keep_frequencies: bool = False
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    constraints: Callable[..., Any] | None = None

    @property
    def is_information(self) -> bool:
        """Whether outputs are free and information is what counts."""
        return isinstance(self.objective, str) and self.objective == "information"

    @property
    def name(self) -> str:
        """Of the objective."""
        return self.objective if isinstance(self.objective, str) else COSTS

    def check_information(self) -> None:
        """Raise InputError if an option is set that only channels of least cost have."""
        if self != Wanted():
            raise InputError(
                "distance, keep_frequencies, stay, forbid and constraints are for channels on the column's own "
                "symbols: say what these should cost with objective (--objective truth, distance or COSTS.csv)"
            )


@dataclass(frozen=True, eq=False)
class Costs:
    """d(x, y): exact integers over one unit, and doubles that are as near as can be."""

    record: Objective
    units: NDArray[Any]
    unit: int

    @property
    def floats(self) -> Array:
        """(n, n) array."""
        if self.units.dtype == np.bool_:
            return self.units.astype(np.float64)
        return np.array([[value / self.unit for value in row] for row in self.units.tolist()])

    def expected(self, channel: Channel, joint: Joint, position: list[int]) -> Fraction:
        """Exactly, of the integers of a channel whose output k is the symbol ``position[k]``."""
        weight = joint.useful_counts
        total = 0
        for x, row in enumerate(channel.integers.entries()):
            units = self.units[x]
            total += weight[x] * sum(int(units[position[k]]) * entry for k, entry in row)
        return Fraction(total, joint.total * channel.denominator * self.unit)


def costs_of(wanted: Wanted, joint: Joint) -> Costs:
    """The costs of an objective on the symbols of a table."""
    objective, power = wanted.objective, wanted.distance
    if isinstance(objective, str) and objective not in (TRUTH, DISTANCE):
        raise InputError(
            f"objective ({objective!r}) must be information, truth, distance or a matrix of costs "
            "(--objective COSTS.csv)"
        )
    named = isinstance(objective, str)
    if power is not None and (not named or objective != DISTANCE):
        raise InputError("distance says how numbers are compared: it belongs to objective distance")
    if power not in (None, "absolute", "squared"):
        raise InputError(f"distance ({power!r}) must be absolute or squared")
    name = COSTS if not named else TRUTH if objective == TRUTH else DISTANCE
    record = Objective(
        name=name,
        distance=(power or "absolute") if named and objective == DISTANCE else None,  # type: ignore[arg-type]
        keep_frequencies=wanted.keep_frequencies,
    )
    if named and objective == TRUTH:
        return Costs(record, ~np.eye(len(joint.useful), dtype=np.bool_), 1)
    if named:
        values = [_number_of(symbol, joint) for symbol in joint.useful.symbols]
        unit = math.lcm(*(value.denominator for value in values))
        scaled = np.array([int(value * unit) for value in values], dtype=object)
        units = np.abs(np.subtract.outer(scaled, scaled))
        return Costs(record, units**2, unit**2) if power == "squared" else Costs(record, units, unit)
    return Costs(record, *_matrix(objective, joint))


def _number_of(symbol: tuple[str, ...], joint: Joint) -> Fraction:
    text, *others = symbol
    if others:
        raise InputError("objective distance needs one useful column of numbers, not several crossed ones")
    try:
        return fraction_of(text)
    except InputError:
        raise InputError(
            f"objective distance needs numbers, but the column {quoted(joint.useful.columns[0])} has the symbol "
            f"{quoted(text)}; use objective truth, or a matrix of costs"
        ) from None


def _matrix(given: Any, joint: Joint) -> tuple[NDArray[Any], int]:
    """Exact costs from an array in the order of the symbols, or a frame or mapping with the symbols as labels."""
    names = joint.useful.names
    if hasattr(given, "columns") and hasattr(given, "index"):  # pandas
        header = [str(name) for name in given.columns]
        rows = zip(given.index, given.to_numpy().tolist(), strict=True)
        given = {str(x): dict(zip(header, row, strict=True)) for x, row in rows}
    if isinstance(given, Mapping):
        for where, known in (("row", given), ("column", next(iter(given.values()), {}))):
            missing = [name for name in names if name not in known]
            if missing:
                raise InputError(
                    f"the cost matrix has no {where} for the symbol {listed(missing)} of the table"
                )
        rows = [[given[x].get(y, math.nan) for y in names] for x in names]
    else:
        rows = np.asarray(given).tolist() if not isinstance(given, list) else given
    square = isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(names) for row in rows)
    if not square or len(rows) != len(names):
        raise InputError(
            f"the cost matrix must have a row and a column for each of the {len(names)} useful symbols, in their order"
        )
    exact: list[list[Fraction]] = []
    for x, row in zip(names, rows, strict=True):
        exact.append([])
        for y, cell in zip(names, row, strict=True):
            try:
                value = fraction_of(cell)
            except InputError as error:
                raise InputError(f"the cost of releasing {quoted(y)} for {quoted(x)}: {error}") from None
            if value < 0:
                raise InputError(
                    f"the cost of releasing {quoted(y)} for {quoted(x)} is negative ({quoted(cell)})"
                )
            exact[-1].append(value)
    unit = math.lcm(*(value.denominator for row in exact for value in row))
    return np.array([[int(value * unit) for value in row] for row in exact], dtype=object), unit


def read_costs(path: PathLike, text: TextOptions | None = None) -> dict[str, dict[str, str]]:
    """A matrix of costs from a CSV or Parquet file: what is released along the header, for what down the first column.

    Raises
    ------
    InputError
        If the file cannot be read, or names a symbol twice.
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
    return {row[0]: dict(zip(header, row[1:], strict=True)) for row in rows}


def least_cost(joint: Joint, notion: Notion, wanted: Wanted, search: Search) -> Design:
    """The channel of least expected cost for the notion, verified exactly, with a bound on every other one.

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
    check_polytope(notion)
    costs = costs_of(wanted, joint)
    limits = limits_of(wanted, joint)
    names = joint.useful.names
    record = costs.record.model_copy(
        update={
            "stay": {name: str(share) for name, share in zip(names, limits.stay, strict=True) if share},
            "forbid": tuple((names[x], names[y]) for x, y in zip(*np.nonzero(~limits.allowed), strict=True)),
        }
    )
    plan = _Plan(joint, notion, costs, limits, search)
    try:
        channel, verdict, solved = plan.designed()
    except EmptyPolytope:
        raise NotPrivate(plan.why_not()) from None
    except SolverError as error:
        raise SolverFailure(f"the channel of least cost could not be computed: {error}") from error
    room = max(search.gap, LEAST_GAP) * plan.spread
    return described(channel, verdict, joint, costs, record, solved.bound, solved.method, room, started)


@dataclass(frozen=True, eq=False)
class ChannelLimits:
    """What W(y|x) must keep to beside the notion: least shares W(x|x), pairs that may occur, frequencies."""

    stay: tuple[Fraction, ...]
    allowed: NDArray[np.bool_]
    keep: bool

    @property
    def are_free(self) -> bool:
        """Whether any private channel will do."""
        return not any(self.stay) and bool(self.allowed.all())


def limits_of(wanted: Wanted, joint: Joint) -> ChannelLimits:
    """`stay` and `forbid` on the symbols of a table."""
    names, index = joint.useful.names, {name: x for x, name in enumerate(joint.useful.names)}

    def known(symbol: Any, option: str) -> int:
        if symbol not in index:
            raise InputError(f"{option}: the table has no useful symbol {quoted(symbol)}")
        return index[symbol]

    given = wanted.stay
    by_symbol = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(names, given)
    stay = [Fraction(0)] * len(names)
    for symbol, share in by_symbol.items():
        x = known(symbol, "stay")
        try:
            stay[x] = fraction_of(share)
        except InputError as error:
            raise InputError(f"stay: the share of {quoted(symbol)} {error}") from None
        if not 0 <= stay[x] <= 1:
            raise InputError(f"stay: the share of {quoted(symbol)} ({quoted(share)}) must be in [0, 1]")
    allowed = np.ones((len(names), len(names)), dtype=np.bool_)
    for pair in wanted.forbid:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"forbid: {quoted(pair)} must be a pair of symbols, (from, to)")
        allowed[known(pair[0], "forbid"), known(pair[1], "forbid")] = False
    for x, name in enumerate(names):
        if not allowed[x].any():
            raise InputError(f"forbid leaves nothing that could be released for {quoted(name)}")
        if stay[x] and not allowed[x, x]:
            raise InputError(f"stay and forbid contradict each other for {quoted(name)}")
        if wanted.keep_frequencies and not allowed[:, x].any():
            raise InputError(
                f"forbid leaves nothing that could become {quoted(name)}, whose frequency is to be kept"
            )
    return ChannelLimits(tuple(stay), allowed, wanted.keep_frequencies)


class _Plan:
    """The linear program of a table, over classes of symbols where the costs cannot tell them apart."""

    def __init__(
        self, joint: Joint, notion: Notion, costs: Costs, limits: ChannelLimits, search: Search
    ) -> None:
        self.joint, self.notion, self.limits, self.search = joint, notion, limits, search
        alike = costs.record.name == TRUTH and limits.allowed.all() and len(set(limits.stay)) == 1
        self.reduced = classes(joint) if alike else Classes(joint, joint, np.arange(len(joint.useful)))
        self.table = self.reduced.joint
        small = self.reduced.is_reduced
        n = len(self.table.useful)
        self.cost = 1.0 - np.eye(n) if small else costs.floats
        self.floor = np.array([float(share) for share in limits.stay[:n]])
        self.allowed = None if limits.allowed.all() else limits.allowed
        self.spread = self.problem(0.0).spread()
        self._end = math.inf if search.time_limit is None else time.monotonic() + search.time_limit

    def problem(self, margin: float, **changes: Any) -> Assignment:
        """The program for a polytope that is smaller by a margin; at 0 the one that bounds hold for."""
        floor = np.minimum(self.floor * (1.0 + margin), 1.0) if margin else self.floor * (1.0 - 1e-15)
        polytope = posteriors(self.table, self.notion, margin=margin)
        made = Assignment(self.cost, self.table.p_x, polytope, self.limits.keep, floor, self.allowed)
        return replace(made, **changes)

    def designed(self) -> tuple[Channel, Audit, Assigned]:
        """Solve with growing margins until the integers pass."""
        first = LARGE_MARGIN if len(self.table.useful) >= LARGE_FROM else 0.0
        last = None
        for margin in MARGINS:
            if margin < first:
                continue
            left = None if self._end == math.inf else max(self._end - time.monotonic(), 0.0)
            found = assign(
                self.problem(margin),
                proof=self.problem(0.0),
                gap=min(self.search.gap, 1e-6) if left is None else self.search.gap,
                time_limit=left,
                progress=self._shown(),
            )
            shares = self._expanded(found.shares)
            for channel in self._candidates(shares):
                last = audit(channel, self.joint, self.notion)
                if last.satisfied and not (
                    self.limits.keep and deviation_of(channel, self.joint) > LARGEST_DEVIATION
                ):
                    return channel, last, found
        raise SolverFailure(
            "no verified channel came out of the program of least cost"
            + ("" if last is None else f" (output {quoted(last.worst.output)}, lift {last.worst.lift:.17g})")
            + "; use a larger budget"
        )

    def _shown(self) -> Callable[[float, float, int], None] | None:
        report = self.search.progress
        if report is None:
            return None

        def show(cost: float, bound: float, steps: int) -> None:
            figures = {"cost": cost, "cost_lower_bound": bound, "steps": steps}
            report(Step(f"cost {cost:.5g}, at least {bound:.5g} ({steps} steps)", figures))

        return show

    def _expanded(self, shares: Array) -> Array:
        """Shares of the symbols from those of their classes: a symbol is kept, or becomes one of the other class."""
        if not self.reduced.is_reduced:
            return shares
        group, p = self.reduced.group, self.joint.p_x
        whole = shares[np.ix_(group, group)] * (p / self.table.p_x[group])
        same = group[:, None] == group[None, :]
        whole[same] = 0.0
        np.fill_diagonal(whole, np.diagonal(shares)[group])
        return whole

    def _candidates(self, shares: Array) -> Iterator[Channel]:
        """What the shares may be rounded to, best first."""
        p = self.joint.p_x
        shares = np.where(shares < NOISE * shares.max(axis=1)[:, None], 0.0, shares)
        if self.limits.keep:
            shares = _balanced(shares, p)
        for denominator in (DENOMINATOR, LARGEST_INTEGER):
            yield self._rounded(shares, denominator)
        if self.limits.are_free:
            masses = p if self.limits.keep else p @ shares
            for mix in MIXES:
                yield self._rounded((1.0 - mix) * shares + mix * masses, LARGEST_INTEGER)

    def _rounded(self, shares: Array, denominator: int) -> Channel:
        rows = np.rint(shares / shares.sum(axis=1)[:, None] * float(denominator)).astype(np.int64)
        n = len(rows)
        first = np.argmax(rows, axis=1)
        rows[np.arange(n), first] = 0
        rows[np.arange(n), first] = denominator - rows.sum(axis=1)
        for x, share in enumerate(self.limits.stay):
            short = math.ceil(share * denominator) - int(rows[x, x])
            if short > 0:  # the rounding of one or two units
                rows[x, int(np.argmax(np.where(np.arange(n) == x, -1, rows[x])))] -= short
                rows[x, x] += short
        used = np.flatnonzero(rows.any(axis=0))
        labels = tuple(self.joint.useful.names[y] for y in used)
        integers = IntegerRows.from_array(rows[:, used])
        return Channel(self.joint.useful, labels, integers, denominator, self.joint)

    def why_not(self) -> str:
        """Which symbol cannot stay as asked, and how often it can; or that the forbidden pairs leave nothing."""
        names, limits = self.joint.useful.names, self.limits
        nothing = "no private channel does without the forbidden pairs; forbid fewer, or use a larger budget"
        if not any(limits.stay):
            return nothing
        margin = 1e-9
        residual = self.problem(0.0).columns.residual(np.eye(len(self.table.useful)))
        demanded = [x for x in np.argsort(-residual).tolist() if self.floor[x] > 0.0]
        none = np.zeros_like(self.floor)
        for x in demanded[:MOST_TRIED]:
            cost = np.zeros_like(self.cost)
            cost[x] = 1.0
            cost[x, x] = 0.0
            try:
                found = assign(self.problem(margin, cost=cost, floor=none))
            except EmptyPolytope:
                return nothing
            most = float(found.shares[x, x]) - margin
            if most < self.floor[x]:
                symbol = int(np.flatnonzero(self.reduced.group == x)[0])
                return (
                    f"stay: no private channel releases {quoted(names[symbol])} as it is with probability "
                    f"{float(limits.stay[symbol]):g}; the largest value that works for it is {at_least(max(most, 0.0))}"
                )
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS if len(names) <= LARGE_FROM else 0):
            middle = 0.5 * (low + high)
            try:
                assign(self.problem(margin, floor=middle * self.floor, cost=self.cost))
                low = middle
            except EmptyPolytope:
                high = middle
        x = demanded[0]
        symbol = int(np.flatnonzero(self.reduced.group == x)[0])
        said = "stay: each of these shares works alone, but no private channel keeps all of them"
        if not low:
            return said
        share = at_least(low * float(self.floor[x]))
        if len(set(limits.stay)) == 1:
            return f"{said}; the largest value that works for all of them is {share}"
        return f"{said}; all of them times {at_least(low)} work ({quoted(names[symbol])} with {share}, for instance)"


def _balanced(shares: Array, p: Array) -> Array:
    """Shares whose columns have the masses p, by factors near 1 for rows and columns (Newton steps of Sinkhorn's)."""
    for _ in range(2):
        masses = p @ shares
        if np.abs(masses - p).max() <= 1e-16:
            break
        q = p[:, None] * shares
        system = np.diag(masses) - q.T @ shares
        factor = np.linalg.lstsq(system, p - masses, rcond=1e-14)[0]
        shares = shares * np.maximum(1.0 - (shares @ factor)[:, None] + factor, 0.0)
        shares = shares / shares.sum(axis=1)[:, None]
    return shares


def described(
    channel: Channel,
    verdict: Audit,
    joint: Joint,
    costs: Costs,
    record: Objective,
    bound: float,
    method: str,
    room: float,
    started: float,
    messages: tuple[str, ...] = (),
) -> Design:
    """The design of a verified channel, with the exact figures of its integers."""
    position = [joint.useful.names.index(label) for label in channel.outputs]
    cost = costs.expected(channel, joint, position)
    found = LeastCost(
        objective=record,
        cost=quotient_above(cost.numerator, cost.denominator),
        lower_bound=max(bound, 0.0),
        truth=-quotient_above(-(kept := truth_of(channel, joint)).numerator, kept.denominator),
        frequency_deviation=quotient_above(
            (away := deviation_of(channel, joint)).numerator, away.denominator
        ),
    )
    if (gap := found.cost - found.lower_bound) > room:
        messages = (
            *messages,
            f"the search ended early: the cost is proven to be within {gap:.2g} of the least",
        )
    made = finish(
        channel,
        joint,
        verdict,
        mechanism=record.name,
        method=method,
        messages=messages,
        seconds=time.perf_counter() - started,
    )
    kept_record = made.channel.record
    figures = {"cost": found.cost, "truth": found.truth, "frequency_deviation": found.frequency_deviation}
    kept_record = replace(
        kept_record,
        objective=record,
        utility={**(kept_record.utility or {}), **figures},
        certificate={
            **(kept_record.certificate or {}),
            "cost_lower_bound": found.lower_bound,
            "scope": "proven",
        },
    )
    return replace(made, channel=made.channel.with_record(kept_record), least=found)


def truth_of(channel: Channel, joint: Joint) -> Fraction:
    """The expected share of records whose symbol is released as it is, exactly."""
    column = {label: y for y, label in enumerate(channel.outputs)}
    own = 0
    for x, row in enumerate(channel.integers.entries()):
        own += joint.useful_counts[x] * dict(row).get(column.get(joint.useful.names[x], -1), 0)
    return Fraction(own, joint.total * channel.denominator)


def deviation_of(channel: Channel, joint: Joint) -> Fraction:
    """The largest change of an expected share, exactly."""
    weight, d = joint.useful_counts, channel.denominator
    released = dict.fromkeys(joint.useful.names, 0)
    for label, (at, values) in zip(channel.outputs, channel.integers.columns, strict=True):
        released[label] = sum(weight[x] * value for x, value in zip(at, values, strict=True))
    changes = (abs(mass - w * d) for mass, w in zip(released.values(), weight, strict=True))
    return Fraction(max(changes), joint.total * d)
