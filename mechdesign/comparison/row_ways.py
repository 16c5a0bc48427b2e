"""A row channel beside what people do with several columns today.

Two other ways release the same columns of the same table. *Each column by itself* has a channel
for every level, designed at the same budget as if the others were not there; what becomes of the
promise about the row is computed exactly. *Randomised response* keeps every cell with a probability
and else draws another symbol, each column independently; one parameter serves all columns, and it
is the largest with which the row keeps its promise on this table. A smaller parameter is the larger
one followed by more noise, so the lifts only shrink with it, and bisection finds the largest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.extremes import log_upper
from mechdesign.auditing.row_masses import table_on
from mechdesign.auditing.rows import RowWorst, promise_demands
from mechdesign.auditing.separate_columns import (
    MOST_CELLS,
    audit_separate,
    cells_of,
    separate_law,
)
from mechdesign.auditing.verdict import Achieved
from mechdesign.core.display import Displayed
from mechdesign.core.errors import SolverFailure
from mechdesign.core.progress import Steps
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.core.wording import about
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.row_budgets import RELATIVE
from mechdesign.mechanisms.row_entropy import conditional_entropy
from mechdesign.mechanisms.row_node import TRUTH
from mechdesign.mechanisms.row_request import GIVEN, TIME_LIMIT
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.mechanisms.rows import design_rows
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Groups, Records
from mechdesign.tables.tally import Missing
from mechdesign.tables.variable import Variable, column_names

ROWS = "row channel"
ALONE = "each column by itself"
RESPONSE = "randomised response"

LARGEST_EPSILON = math.log(DENOMINATOR)
"""Parameter of randomised response beyond which integers over 2^53 cannot tell it from none."""

HALVINGS = 40
"""Bisections: they leave less of the parameter than a rounding of its integers."""

SLACKS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0)
"""Shares taken off the parameter that doubles found, until the exact verdict agrees; the last one
leaves no information."""

NO_RESPONSE = "no parameter of randomised response passed the exact audit"

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RowWay:
    """One way to release the columns, and what it comes to.

    Attributes
    ----------
    name : str
    kept : float or None
        I(X; Y | K) / H(X | K) of all released columns together; None where the law of the released
        row is too large to compute.
    truth : dict or None
        Column to expected share of unchanged cells; None with free outputs.
    satisfied : bool or None
        Whether the row keeps its promise; None where that is not known.
    achieved : Achieved or None
        Log-lifts of the row (nats). At least these where not `complete`; at most these where
        `satisfied` rests on the sum of the parameters (`kept` is None).
    worst : RowWorst or None
        The released row that uses most of its budget.
    complete : bool
        Whether all columns were taken together. If not, `achieved` and `worst` are those of the
        first ones, `columns`: who sees more finds no less.
    columns : tuple of str
    epsilon : float or None
        Parameter of randomised response (nats).
    """

    name: str
    kept: float | None
    truth: dict[str, float] | None
    satisfied: bool | None
    achieved: Achieved | None
    worst: RowWorst | None
    complete: bool
    columns: tuple[str, ...]
    epsilon: float | None = None


@dataclass(frozen=True, repr=False)
class RowComparison(Displayed):
    """A row channel and the two ways of today, for one table and one promise."""

    design: RowDesign
    ways: tuple[RowWay, ...]
    seconds: float

    def __repr__(self) -> str:
        parts = [f"{way.name}: {_kept_text(way)}" for way in self.ways]
        return f"RowComparison({'; '.join(parts)})"

    def columns(self) -> dict[str, list[Any]]:
        """The ways as a table, by columns: budgets in nats, None for what was not computed."""
        table: dict[str, list[Any]] = {
            "way": [way.name for way in self.ways],
            "satisfied": [way.satisfied for way in self.ways],
            "complete": [way.complete for way in self.ways],
            "kept": [way.kept for way in self.ways],
        }
        for side in ("eps_l", "eps_u", "eps_ldp"):
            table[side] = [
                None if way.achieved is None else vars(way.achieved)[side]
                for way in self.ways
            ]
        names = [way.truth for way in self.ways if way.truth is not None]
        for name in names[0] if names else ():
            table[f"truth of {name}"] = [
                (way.truth or {}).get(name) for way in self.ways
            ]
        return table


def _kept_text(way: RowWay) -> str:
    if way.kept is None:
        return "information not computed"
    return f"kept {about(way.kept)}"


@dataclass(frozen=True, eq=False)
class _Rows:
    """The counted rows with the promise about them, and what every level may release."""

    records: Records
    given: int
    promise: str
    notion: Notion

    @property
    def levels(self) -> tuple[Variable, ...]:
        return self.records.groups[self.given :]

    def shares(self, level: int) -> NDArray[np.float64]:
        """P(x) of the symbols of a level."""
        codes = self.records.codes[:, self.given + level]
        size = len(self.levels[level])
        masses = np.bincount(codes, self.records.masses, minlength=size)
        return masses.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _LevelChannel:
    """A channel of one level: integers with one row sum, and the texts of its outputs."""

    matrix: Integers
    texts: tuple[tuple[str, ...], ...]


def compare_rows(
    table: Any,
    *,
    sensitive: str | Sequence[str],
    release: Groups,
    notion: Notion,
    given: str | Sequence[str] = (),
    promise: str = "total",
    objective: str = TRUTH,
    order: str = GIVEN,
    least_mass: float | None = None,
    bins: Any = None,
    weight: str | None = None,
    missing: Missing = "refuse",
    time_limit: float | None = None,
    progress: Steps | None = None,
) -> RowComparison:
    """Compare a row channel with two ways to release several columns that are usual today.

    Every channel is verified in exact arithmetic, and the promise that separate columns break is
    computed so. Where the law of the released row has more than `MOST_CELLS` cells, it is computed
    for the first columns alone, which gives a lower limit; randomised response then has the
    parameter min(eps) / levels, with which no table can break the promise.

    Parameters
    ----------
    table, sensitive, release, notion, given, promise, objective, order, least_mass, bins, weight, \
            missing : as for `design_rows`
    time_limit : float, optional
        Seconds for each search: that of the row channel, and that of every single column.
    progress : callable, optional

    Returns
    -------
    RowComparison
        Its `ways` are the row channel, each column by itself, and randomised response.

    Raises
    ------
    InputError, NotPrivate, SolverFailure
        As `design_rows` does.
    """
    started = time.perf_counter()
    design = design_rows(
        table,
        sensitive=sensitive,
        release=release,
        notion=notion,
        given=given,
        promise=promise,
        objective=objective,
        order=order,
        least_mass=least_mass,
        bins=bins,
        weight=weight,
        missing=missing,
        time_limit=time_limit,
        progress=progress,
    )
    if not isinstance(design, RowDesign):
        raise TypeError("without a confidence level a design of rows is a tree")
    records = table_on(design.channel)
    rows = _Rows(records, len(design.channel.given), promise, notion)
    seconds = TIME_LIMIT if time_limit is None else time_limit
    ways = (
        _row_way(design),
        _alone(rows, objective, seconds),
        _randomised_response(rows),
    )
    return RowComparison(design, ways, time.perf_counter() - started)


def _row_way(design: RowDesign) -> RowWay:
    """The row channel as one of the ways."""
    return RowWay(
        name=ROWS,
        kept=design.nmi,
        truth=design.truth,
        satisfied=design.audit.satisfied,
        achieved=design.achieved,
        worst=design.audit.worst,
        complete=True,
        columns=design.channel.released_columns,
    )


def _alone(rows: _Rows, objective: str, seconds: float) -> RowWay:
    """A channel for every level, as if the others were not there."""
    channels: list[_LevelChannel] = []
    for level in range(len(rows.levels)):
        channels.append(_single(rows, level, objective, seconds))
    truth = _truth(rows, channels) if objective == TRUTH else None
    return _way(rows, channels, ALONE, truth)


def _single(rows: _Rows, level: int, objective: str, seconds: float) -> _LevelChannel:
    """The design of one level's column at the whole budget."""
    records = rows.records
    column = rows.given + level
    counts = np.zeros((len(records.sensitive), len(rows.levels[level])), dtype=object)
    np.add.at(counts, (records.secrets, records.codes[:, column]), records.integers)
    joint = Joint(
        records.sensitive,
        rows.levels[level],
        tuple(tuple(row) for row in counts.tolist()),
        is_counts=records.is_counts,
    )
    request = DesignRequest(
        joint,
        rows.notion,
        objective=objective,
        time_limit=seconds,
        allow_identifier=True,
    )
    channel = design_requested(request).channel
    texts = tuple((name,) for name in channel.outputs)
    if objective == TRUTH:
        symbols = dict(zip(channel.useful.names, channel.useful.symbols, strict=True))
        texts = tuple(symbols[name] for name in channel.outputs)
    return _LevelChannel(channel.integers.dense, texts)


def _truth(rows: _Rows, channels: Sequence[_LevelChannel]) -> dict[str, float]:
    """Column to expected share of unchanged cells."""
    truth: dict[str, float] = {}
    for level, channel in enumerate(channels):
        variable = rows.levels[level]
        law = channel.matrix / channel.matrix[0].sum()
        for part, name in enumerate(variable.columns):
            own = np.array([symbol[part] for symbol in variable.symbols], dtype=object)
            released = np.array([text[part] for text in channel.texts], dtype=object)
            same = own[:, None] == released[None, :]
            truth[name] = float(rows.shares(level) @ (law * same).sum(axis=1))
    return truth


def _way(
    rows: _Rows,
    channels: Sequence[_LevelChannel],
    name: str,
    truth: dict[str, float] | None,
    epsilon: float | None = None,
) -> RowWay:
    """What separate channels come to together, as far as their law can be computed."""
    levels = _computable(rows, channels)
    complete = levels == len(channels)
    chosen = channels[:levels]
    columns = column_names(rows.records.groups[: rows.given + levels])
    verdict = audit_separate(
        rows.records,
        rows.given,
        rows.promise,
        rows.notion,
        [channel.matrix for channel in chosen],
        [channel.texts for channel in chosen],
    )
    satisfied: bool | None = verdict.satisfied
    if satisfied and not complete:
        satisfied = None
    return RowWay(
        name=name,
        kept=_kept(rows, channels) if complete else None,
        truth=truth,
        satisfied=satisfied,
        achieved=verdict.achieved,
        worst=verdict.worst,
        complete=complete,
        columns=columns,
        epsilon=epsilon,
    )


def _computable(rows: _Rows, channels: Sequence[_LevelChannel]) -> int:
    """Number of first levels whose law has at most `MOST_CELLS` cells, at least one."""
    outputs = [len(channel.texts) for channel in channels]
    levels = len(outputs)
    while levels > 1:
        if cells_of(rows.records, rows.given, outputs[:levels]) <= MOST_CELLS:
            break
        levels -= 1
    return levels


def _kept(rows: _Rows, channels: Sequence[_LevelChannel]) -> float:
    """I(X; Y | K) / H(X | K): given its own true symbol a released one depends on nothing else."""
    matrices = [channel.matrix for channel in channels]
    law = separate_law(rows.records, rows.given, matrices, exact=False).masses
    entropy = _entropy(law.sum(axis=1)) - _entropy(law.sum(axis=(1, 2)))
    for level, matrix in enumerate(matrices):
        noise = [_entropy(row / row.sum()) for row in matrix]
        entropy -= float(rows.shares(level) @ np.array(noise))
    whole = conditional_entropy(rows.records, rows.given)
    if not whole > 0.0:
        return 0.0
    # A difference of sums of rounded logarithms may miss the ends by a hair.
    return min(max(entropy / whole, 0.0), 1.0)


def _entropy(masses: NDArray[Any]) -> float:
    """Entropy in nats of probabilities."""
    positive = masses[masses > 0.0]
    return float(-(positive * np.log(positive)).sum())


def _response(variable: Variable, epsilon: float) -> _LevelChannel:
    """Randomised response on the symbols of a variable; the quotient of two entries of a column is
    at most e^epsilon up to rounding.
    """
    size = len(variable)
    other = math.ceil(DENOMINATOR / (math.exp(epsilon) + size - 1))
    same = DENOMINATOR - (size - 1) * other
    if same < other:
        # So small a parameter is none: every row is the same.
        other = DENOMINATOR // size
        matrix = np.full((size, size), other, dtype=np.int64)
        matrix[:, 0] += DENOMINATOR - size * other
    else:
        matrix = np.full((size, size), other, dtype=np.int64)
        np.fill_diagonal(matrix, same)
    return _LevelChannel(matrix, variable.symbols)


def _randomised_response(rows: _Rows) -> RowWay:
    """Randomised response with the largest parameter that keeps the promise of the row."""
    outputs = [len(variable) for variable in rows.levels]
    if cells_of(rows.records, rows.given, outputs) > MOST_CELLS:
        return _safe_response(rows)
    found = _largest_epsilon(rows)
    for slack in SLACKS:
        epsilon = found * (1.0 - slack)
        channels = [_response(variable, epsilon) for variable in rows.levels]
        way = _way(rows, channels, RESPONSE, _truth(rows, channels), epsilon)
        if way.satisfied:
            return way
    raise SolverFailure(NO_RESPONSE)


def _largest_epsilon(rows: _Rows) -> float:
    """The largest parameter with which the lifts keep their limits, in doubles."""
    if _keeps(rows, LARGEST_EPSILON):
        return LARGEST_EPSILON
    low = 0.0
    high = LARGEST_EPSILON
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if _keeps(rows, middle):
            low = middle
        else:
            high = middle
    return low


def _keeps(rows: _Rows, epsilon: float) -> bool:
    """Whether the row keeps its promise in doubles."""
    matrices = [_response(variable, epsilon).matrix for variable in rows.levels]
    law = separate_law(rows.records, rows.given, matrices, exact=False)
    strata = [np.arange(len(rows.records))]
    if rows.given:
        codes = rows.records.codes[:, : rows.given]
        _, place = np.unique(codes, axis=0, return_inverse=True)
        strata = [np.flatnonzero(place.ravel() == k) for k in range(len(law.strata))]
    demands = promise_demands(rows.records, strata, rows.promise, rows.notion)
    for masses, demand in zip(law.masses, demands, strict=True):
        sums = np.array(demand.sums, dtype=float)
        present = sums > 0.0
        seen = masses.sum(axis=0) > 0.0
        part = masses[np.ix_(present, seen)]
        prior = sums[present] / sums.sum()
        with np.errstate(divide="ignore"):
            logs = np.log(part / part.sum(axis=0)) - np.log(prior)[:, None]
        if (logs > np.array(demand.upper)[present][:, None]).any():
            return False
        if (-logs > np.array(demand.lower)[present][:, None]).any():
            return False
        if (logs.max(axis=0) - logs.min(axis=0) > demand.ratio).any():
            return False
    return True


def _safe_response(rows: _Rows) -> RowWay:
    """Randomised response with a share of the smallest budget for every column.

    Entries of the row's column differ by a factor of at most e^budget, so no lift, and no quotient
    of two lifts of one row, is farther from 1. Where given columns use up some of a total promise,
    nothing is known without the law.
    """
    total = rows.promise != RELATIVE
    if total and rows.given:
        return RowWay(RESPONSE, None, None, None, None, None, False, ())
    demand = promise_demands(
        rows.records, [np.arange(len(rows.records))], rows.promise, rows.notion
    )[0]
    budget = min(*demand.lower, *demand.upper, demand.ratio)
    epsilon = min(budget / len(rows.levels), LARGEST_EPSILON)
    columns = column_names(rows.records.groups)
    for slack in SLACKS:
        smaller = epsilon * (1.0 - slack)
        channels = [_response(variable, smaller) for variable in rows.levels]
        used = _largest_quotient(channels)
        if used <= budget:
            return RowWay(
                name=RESPONSE,
                kept=None,
                truth=_truth(rows, channels),
                satisfied=True,
                achieved=Achieved(used, used, used),
                worst=None,
                complete=True,
                columns=columns,
                epsilon=smaller,
            )
    raise SolverFailure(NO_RESPONSE)


def _largest_quotient(channels: Sequence[_LevelChannel]) -> float:
    """The smallest double above the logarithm of the largest quotient of two entries in one column
    of all channels together.
    """
    quotient = Fraction(1)
    for channel in channels:
        largest = channel.matrix.max(axis=0).tolist()
        smallest = channel.matrix.min(axis=0).tolist()
        quotient *= max(map(Fraction, largest, smallest))
    return log_upper(quotient.numerator, quotient.denominator)
