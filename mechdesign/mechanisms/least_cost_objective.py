"""Costs of a release: of untrue records, of distances between numbers, of a matrix, or convex ones.

The cost d(x, y) is that of releasing y for a record of x. `costs_of` has the costs of an objective
on the symbols of a table:

    truth       d(x, y) = 1 for y other than x
    distance    d(x, y) = |x - y|, or its square, between numbers or the medians of bins
    costs       the matrix that the user gave (`exact_costs`)
    convex      0: the cost is a function of W, and `least_cost_convex` has it

Costs are exact integers over a common unit, so the cost of a channel of integers is exact, too. For
example, the distances between 1, 1.5 and 4 are the integers ((0, 1, 6), (1, 0, 5), (6, 5, 0)) over
the unit 2.

*A matrix of costs* comes from an array, a frame, a mapping or a file. `read_costs` reads a file to
a mapping, {x: {y: cost}}, and `exact_costs` makes integers over a common unit of any of these. The
file

    ,low,high
    low,0,0.5
    high,2,0

says that it costs 0.5 to release `high` for a record of `low`. Over the unit 2 its costs are the
integers ((0, 1), (4, 0)).

*Limits* besides the notion (`stay`, `forbid`). `limits_of` translates what the user wrote, by the
names of symbols, into arrays by their positions, and refuses what contradicts itself. For example,
with the symbols a, b and c, stay="0.5" and forbid=[("a", "c")] become the shares (1/2, 1/2, 1/2)
and pairs that are all allowed except row a, column c.

*Tolerances* of the search: margins are relative distances from the limits of the notion, reaches
are budgets in nats, gaps are shares of `LeastCostProgram.spread`.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import Objective
from mechdesign.core.arguments import HOW_WRITTEN, fraction_of, non_negative
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.integers import LARGEST_INTEGER
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import all_rows, open_beside
from mechdesign.mechanisms.queries import PURPOSES
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import numbers_of
from solvers import Array

# -------------------------------------------------------------------------------- costs

# ------------------------------------------------------------------------------- matrix

COST = "the cost of releasing {} for {}"
"""Name of a cell in messages about a matrix of costs."""


def exact_costs(costs: Any, joint: Joint) -> tuple[NDArray[Any], int]:
    """Exact costs over a common unit.

    An array has the order of the symbols, a frame or a mapping has the symbols as labels.
    """
    names = joint.useful.names
    if hasattr(costs, "columns") and hasattr(costs, "index"):
        # A pandas frame, recognised by its shape: pandas need not be installed.
        costs = _mapping_of_frame(costs)
    if isinstance(costs, Mapping):
        rows = _rows_of_mapping(costs, names)
    elif isinstance(costs, list):
        rows = costs
    else:
        rows = np.asarray(costs).tolist()
    if not _is_square(rows, len(names)):
        raise InputError(
            f"the cost matrix must have a row and a column for each of the {len(names)} useful "
            "symbols, in their order"
        )
    exact: list[Fraction] = []
    for x, row in zip(names, rows, strict=True):
        for y, cell in zip(names, row, strict=True):
            exact.append(non_negative(cell, COST, y, x))
    # Python's integers, as a common denominator of many decimals may exceed 64 bits.
    unit = math.lcm(*(value.denominator for value in exact))
    units = np.array([int(value * unit) for value in exact], dtype=object)
    return units.reshape(len(names), -1), unit


def _mapping_of_frame(frame: Any) -> dict[str, dict[str, Any]]:
    """Costs by the labels of rows and columns of a pandas frame."""
    header = [str(name) for name in frame.columns]
    costs: dict[str, dict[str, Any]] = {}
    for label, row in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        costs[str(label)] = dict(zip(header, row, strict=True))
    return costs


def _rows_of_mapping(
    costs: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> list[list[Any]]:
    """Rows in the order of the symbols; InputError if the mapping lacks a symbol."""
    first_row = next(iter(costs.values()), {})
    for place, labels in (("row", costs), ("column", first_row)):
        missing = [name for name in names if name not in labels]
        if missing:
            raise InputError(
                f"the cost matrix has no {place} for the symbol {listed(missing)} of the table"
            )
    rows: list[list[Any]] = []
    for x in names:
        row = costs[x]
        # A cell that is missing in a later row becomes NaN, and the error about it names the cell.
        rows.append([row.get(y, math.nan) for y in names])
    return rows


def _is_square(rows: Any, n: int) -> bool:
    """Whether these are n lists of n cells."""
    if not isinstance(rows, list) or len(rows) != n:
        return False
    return all(isinstance(row, list) and len(row) == n for row in rows)


def read_costs(
    path: PathLike, text: TextOptions | None = None
) -> dict[str, dict[str, Fraction]]:
    """A matrix of costs from a CSV or Parquet file.

    The header has the released symbols, the first column the symbols of the table.

    Raises
    ------
    InputError
        If the file cannot be read, names a symbol twice, or has a cost that is negative or no
        number.
    """
    # The path comes from --objective, where a mistyped name of an objective is no file, either.
    if not os.path.exists(path) and path != "-":
        raise InputError(
            f"--objective {quoted(path)} is neither a file nor one of {ALL_OBJECTIVES}"
        )
    with open_beside(path, text) as source:
        header = list(source.header[1:])
        rows = all_rows(source)
    first_column = [row[0] for row in rows]
    for labels in (header, first_column):
        repeated = [name for name, times in Counter(labels).items() if times > 1]
        if repeated:
            raise InputError(
                f"{source.name}: the symbol {listed(repeated)} has two rows or two columns of costs"
            )
    costs: dict[str, dict[str, Fraction]] = {}
    with errors_naming(source.name):
        for x, *cells in rows:
            row: dict[str, Fraction] = {}
            for y, cell in zip(header, cells, strict=True):
                row[y] = non_negative(cell, COST, y, x)
            costs[x] = row
        return costs


# ---------------------------------------------------------------------------- objective

INFORMATION = "information"
TRUTH = "truth"
DISTANCE = "distance"
COSTS = "costs"
CONVEX = "convex"

ALL_OBJECTIVES = ", ".join((INFORMATION, TRUTH, DISTANCE, *PURPOSES))
"""What `--objective` can name, for messages."""

ABSOLUTE = "absolute"
SQUARED = "squared"


@dataclass(frozen=True)
class LeastCostObjective:
    """The fields of `DesignRequest` of the same names, as given."""

    objective: Any = INFORMATION
    distance: str | None = None
    keep_frequencies: bool = False
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    constraints: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """The name of the objective; with "information" outputs are free."""
        if isinstance(self.objective, str):
            return self.objective
        if callable(self.objective):
            return CONVEX
        return COSTS


@dataclass(frozen=True, eq=False)
class Costs:
    """d(x, y): exact integers (n, n) over one unit, and the nearest doubles."""

    record: Objective
    units: NDArray[Any]
    unit: int

    @property
    def floats(self) -> Array:
        """(n, n) array."""
        if self.units.dtype == np.bool_:
            return self.units / self.unit
        # Python divides integers of any size with correct rounding.
        values = [value / self.unit for value in self.units.ravel().tolist()]
        return np.array(values).reshape(self.units.shape)

    def expected(self, channel: Channel, joint: Joint) -> Fraction:
        """The expected cost of a record, exactly: the sum of P(x) W(y|x) d(x, y)."""
        position = {name: y for y, name in enumerate(joint.useful.names)}
        columns = np.array([position[label] for label in channel.outputs])
        integers = channel.integers
        # Costs of 0 and 1 add up to no more than the total of a row, which fits into 64 bits.
        # Others are Python integers.
        are_small = max(channel.row_totals) <= LARGEST_INTEGER
        kind = np.int64 if self.units.dtype == np.bool_ and are_small else object
        expected = Fraction(0)
        rows = zip(joint.useful_counts, self.units, channel.row_totals, strict=True)
        for x, (count, costs, total) in enumerate(rows):
            entries = slice(int(integers.indptr[x]), int(integers.indptr[x + 1]))
            of_row = costs[columns[integers.indices[entries]]].astype(kind)
            cost = int((of_row * integers.values[entries].astype(kind)).sum())
            expected += Fraction(count * cost, total)
        return expected / (joint.total * self.unit)


def costs_of(objective: LeastCostObjective, joint: Joint) -> Costs:
    """The costs of an objective on the symbols of a table.

    Raises
    ------
    InputError
        If the objective is unknown, or does not fit the table.
    """
    name = objective.name
    power = _power(objective)
    record = Objective.model_validate(
        {
            "name": name,
            "distance": power,
            "keep_frequencies": objective.keep_frequencies,
        }
    )
    n = len(joint.useful)
    if name == TRUTH:
        return Costs(record, ~np.eye(n, dtype=np.bool_), 1)
    if name == CONVEX:
        # The cost is a cvxpy expression; the linear part is zero.
        return Costs(record, np.zeros((n, n), dtype=np.bool_), 1)
    if name == COSTS:
        units, unit = exact_costs(objective.objective, joint)
        return Costs(record, units, unit)
    values = _numbers(joint)
    unit = math.lcm(*(value.denominator for value in values))
    # Integers over the common denominator of all numbers, of Python: squared distances of long
    # numbers exceed 64 bits.
    scaled = np.array([int(value * unit) for value in values], dtype=object)
    distances = np.abs(np.subtract.outer(scaled, scaled))
    if power == SQUARED:
        return Costs(record, distances**2, unit**2)
    return Costs(record, distances, unit)


def _power(objective: LeastCostObjective) -> str | None:
    """The distance between numbers, None for other objectives; InputError for no objective."""
    target = objective.objective
    if isinstance(target, str) and target not in (TRUTH, DISTANCE):
        raise InputError(
            f"--objective ({target!r}) must be one of {ALL_OBJECTIVES}, or a matrix of costs"
        )
    power = objective.distance
    if power is not None and objective.name != DISTANCE:
        raise InputError(
            "--distance says how numbers are compared: it belongs to --objective distance"
        )
    if power not in (None, ABSOLUTE, SQUARED):
        raise InputError(f"--distance ({power!r}) must be absolute or squared")
    if objective.name != DISTANCE:
        return None
    if power is None:
        return ABSOLUTE
    return power


def _numbers(joint: Joint) -> list[Fraction]:
    """The number of every symbol; of bins their medians in the table."""
    columns = joint.useful.columns
    # A bin is released as its median, so distances are between medians.
    if any(joint.useful.bins):
        values = [value for value in numbers_of(joint.useful) if value is not None]
        if len(columns) > 1 or len(values) < len(joint.useful):
            raise InputError(
                "--objective distance needs one useful column of numbers, each bin with a number "
                "of its own"
            )
        return values
    if len(columns) > 1:
        raise InputError(
            "--objective distance needs one useful column of numbers, not several crossed ones"
        )
    column = quoted(",".join(joint.useful.columns))
    values = []
    for symbol in joint.useful.symbols:
        text, *_ = symbol
        try:
            values.append(fraction_of(text))
        except InputError:
            raise InputError(
                f"--objective distance needs numbers, but the column {column} has the "
                f"symbol {quoted(text)}; {HOW_WRITTEN}, say that it is an empty cell "
                "(--missing-codes), or use --objective truth or a matrix of costs"
            ) from None
    return values


# ------------------------------------------------------------------------------- limits

# --------------------------------------------------------------------------- tolerances

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Margins tried in turn until the integers pass the exact audit; see `rules.MARGINS`."""

LARGE_FROM = 300
"""Symbols from which the first margin is `LARGE_MARGIN`, and shares are not halved in refusals: a
second solve would take minutes."""

LARGE_MARGIN = 1e-7
"""The first margin of large tables, which an interior point solution needs."""

TANGENT_MARGIN = 1e-7
"""The first margin where averages are limited: tangents come no nearer in few rounds."""

LARGEST_DEVIATION = Fraction(1, 10**12)
"""Largest change of an expected share where frequencies are preserved: integers over a common
denominator cannot preserve them exactly."""

REACHES = (20.0, 15.0, 12.0, 10.0, 8.0, 5.0)
"""Nats to which larger budgets are reduced, to be tried in turn. exp(-20) is larger than the error
of a zero in the simplex method, but symbols of a share of 1e-7 need smaller reaches. Bounds hold
for the budgets as they are."""

SHARPEST_GAP = 1e-6
"""Gap of a search without time limit, even where the request allows a larger one."""

REFUSAL_MARGIN = 1e-9
"""Margin of the programs behind a refusal, and taken off the shares that it names, so that these
work."""

MOST_TRIED = 20
"""Symbols tried alone to explain why no channel keeps all shares."""

BISECTIONS = 20
"""Halvings of all shares for the same explanation; six digits of the largest share."""


# ------------------------------------------------------------------------------- limits


@dataclass(frozen=True, eq=False)
class ChannelLimits:
    """Limits on W(y|x) besides the notion.

    `stay` has the least shares W(x|x), exactly as written, `allowed` (n, n) the pairs (x, y) that
    may occur, and `keep` is whether expected frequencies are preserved.
    """

    stay: tuple[Fraction, ...]
    allowed: NDArray[np.bool_]
    keep: bool


def check_pair(pair: Any) -> None:
    """Refuse what is no pair of symbols for `forbid`."""
    # A text of two letters has a length of 2 as well.
    if isinstance(pair, str) or len(pair) != 2:
        raise InputError(
            f"--forbid: {quoted(pair)} must be a pair of symbols, (from, to)"
        )


def limits_of(objective: LeastCostObjective, joint: Joint) -> ChannelLimits:
    """`stay` and `forbid` on the symbols of a table.

    Raises
    ------
    InputError
        If they name an unknown symbol, are malformed, or leave a symbol without a place.
    """
    index = {name: x for x, name in enumerate(joint.useful.names)}
    stay = stays_of_symbols(objective.stay, joint)
    allowed = np.ones((len(index), len(index)), dtype=np.bool_)
    for pair in objective.forbid:
        check_pair(pair)
        source = _position(pair[0], index, joint, "--forbid")
        target = _position(pair[1], index, joint, "--forbid")
        allowed[source, target] = False
    for name, x in index.items():
        if not allowed[x].any():
            raise InputError(
                f"--forbid leaves nothing that could be released for {quoted(name)}"
            )
        if stay[x] and not allowed[x, x]:
            raise InputError(
                f"--stay and --forbid contradict each other for {quoted(name)}"
            )
        if objective.keep_frequencies and not allowed[:, x].any():
            raise InputError(
                f"--forbid leaves nothing that could become {quoted(name)}, whose frequency is to "
                "be kept"
            )
    return ChannelLimits(stay, allowed, objective.keep_frequencies)


def stays_of_symbols(stay: Any, joint: Joint) -> tuple[Fraction, ...]:
    """The least share W(x|x) of every symbol of a table, from one number for all or a mapping."""
    index = {name: x for x, name in enumerate(joint.useful.names)}
    if stay is None:
        by_symbol: Mapping[str, Any] = {}
    elif isinstance(stay, Mapping):
        by_symbol = stay
    else:
        by_symbol = dict.fromkeys(index, stay)
    # Exactly as written: 0.9 is 9/10 here, and the integers of the channel must keep it.
    shares = [Fraction(0)] * len(index)
    for symbol, text in by_symbol.items():
        x = _position(symbol, index, joint, "--stay")
        try:
            share = fraction_of(text)
        except InputError as error:
            raise InputError(f"--stay: the share of {quoted(symbol)} {error}") from None
        if not 0 <= share <= 1:
            raise InputError(
                f"--stay: the share of {quoted(symbol)} ({quoted(text)}) must be in [0, 1]"
            )
        shares[x] = share
    return tuple(shares)


def _position(symbol: Any, index: Mapping[str, int], joint: Joint, option: str) -> int:
    """The position of a symbol in an option; InputError if the table does not have it."""
    if symbol in index:
        return index[symbol]
    fault = f"{option}: the table has no useful symbol {quoted(symbol)}"
    columns = joint.useful.columns
    if len(columns) > 1:
        fault += f"; a symbol has a cell of each of {listed(columns)}, with ', ' between them"
    raise InputError(fault)
