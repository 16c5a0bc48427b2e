"""Randomised response on every column of a row, with the largest parameter that keeps the promise.

Each level keeps its symbol with probability e^epsilon / (e^epsilon + n - 1), n being the number of
its symbols, and else releases one of the others at random. With epsilon = log 3 one of two symbols
is kept with probability 3/4, and one of four with 1/2. One parameter epsilon serves all levels. A
smaller one is the larger one followed by more noise, so all lifts of the row shrink with it, and
bisection finds the largest that keeps the promise. It is done in doubles; the exact verdict then
decides, and a little is taken off the parameter until it agrees (`SLACKS`).

Where the law of the released rows is too large to compute, the levels share the budget: two
entries of a column of level j differ by a factor of at most e^epsilon, so those of all m levels
together differ by at most e^(m epsilon), whatever the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import Demand
from mechdesign.auditing.extremes import log_upper
from mechdesign.auditing.rows import promise_demands
from mechdesign.auditing.separate_columns import separate_law
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.row_record import RELATIVE
from mechdesign.comparison.level_channels import (
    LevelChannel,
    PromisedRows,
    RowWay,
    is_computable,
    measured_way,
    unchanged_shares,
)
from mechdesign.core.errors import SolverFailure
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.tables.variable import Variable, column_names

RESPONSE = "randomised response"

LARGEST_EPSILON = math.log(DENOMINATOR)
"""Parameter of randomised response beyond which integers over 2^53 cannot tell it from none."""

HALVINGS = 40
"""Bisections: they leave less of the parameter than a rounding of its integers."""

SLACKS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0)
"""Shares taken off the parameter that doubles gave, until the exact verdict agrees; the last one
leaves no information."""

NO_RESPONSE = "no parameter of randomised response passed the exact audit"


def randomised_response(rows: PromisedRows) -> RowWay:
    """Randomised response with the largest parameter that keeps the promise of the row.

    Raises
    ------
    SolverFailure
        If the exact verdict refuses every parameter.
    """
    outputs = [len(variable) for variable in rows.levels]
    if not is_computable(rows, outputs):
        return _shared_budget_response(rows)
    largest = _largest_epsilon(rows)
    for slack in SLACKS:
        epsilon = largest * (1.0 - slack)
        channels = response_channels(rows, epsilon)
        truth = unchanged_shares(rows, channels)
        way = measured_way(rows, channels, RESPONSE, truth=truth, epsilon=epsilon)
        if way.satisfied:
            return way
    raise SolverFailure(NO_RESPONSE)


def response_channels(rows: PromisedRows, epsilon: float) -> list[LevelChannel]:
    """Randomised response on every level with the same parameter."""
    return [response_channel(variable, epsilon) for variable in rows.levels]


def response_channel(variable: Variable, epsilon: float) -> LevelChannel:
    """Randomised response on the symbols of a variable, in integers over 2^53.

    The quotient of two entries of a column is at most e^epsilon up to rounding.
    """
    size = len(variable)
    # As shares, other = 1 / (e^epsilon + n - 1) and same = 1 - (n - 1) other = e^epsilon other.
    # Rounded upwards: the larger the mass of the other symbols, the smaller the quotient.
    other = math.ceil(DENOMINATOR / (math.exp(epsilon) + size - 1))
    same = DENOMINATOR - (size - 1) * other
    if same >= other:
        matrix = np.full((size, size), other, dtype=np.int64)
        np.fill_diagonal(matrix, same)
    else:
        # So small a parameter is none: every row is the same.
        equal = DENOMINATOR // size
        matrix = np.full((size, size), equal, dtype=np.int64)
        matrix[:, 0] += DENOMINATOR - size * equal
    return LevelChannel(matrix, variable.symbols)


def _largest_epsilon(rows: PromisedRows) -> float:
    """The largest parameter with which the lifts keep their limits, in doubles."""
    if satisfies_promise(rows, LARGEST_EPSILON):
        return LARGEST_EPSILON
    # Invariant: `low` keeps the promise and `high` breaks it.
    low = 0.0
    high = LARGEST_EPSILON
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if satisfies_promise(rows, middle):
            low = middle
        else:
            high = middle
    return low


def satisfies_promise(rows: PromisedRows, epsilon: float) -> bool:
    """Whether the row keeps its promise with this parameter, in doubles.

    The given columns are known, so the promise is one for each stratum: the records that have equal
    cells there. Without given columns all records are one stratum.
    """
    matrices = [channel.matrix for channel in response_channels(rows, epsilon)]
    law = separate_law(rows.records, rows.given, matrices, exact=False)
    strata = [np.arange(len(rows.records))]
    if rows.given:
        # The strata of the law are these distinct rows of given codes, in the same order.
        codes = rows.records.codes[:, : rows.given]
        _, place = np.unique(codes, axis=0, return_inverse=True)
        strata = [np.flatnonzero(place.ravel() == k) for k in range(len(law.strata))]
    demands = promise_demands(rows.records, strata, rows.promise, rows.notion)
    pairs = zip(law.masses, demands, strict=True)
    return all(_meets(masses, demand) for masses, demand in pairs)


def _meets(masses: NDArray[Any], demand: Demand) -> bool:
    """Whether the lifts of one stratum keep their limits.

    `masses` is the (|S|, released rows) joint law of the stratum.
    """
    prior = np.array(demand.sums, dtype=float)
    present = prior > 0.0
    occurring = masses.sum(axis=0) > 0.0
    joint = masses[np.ix_(present, occurring)]
    prior = prior[present] / prior.sum()
    # The log-lift log(P(s | row) / P(s)); a lift of 0 has the logarithm -inf.
    with np.errstate(divide="ignore"):
        log_lifts = np.log(joint / joint.sum(axis=0)) - np.log(prior)[:, None]
    upper = np.array(demand.upper)[present][:, None]
    lower = np.array(demand.lower)[present][:, None]
    if (log_lifts > upper).any() or (-log_lifts > lower).any():
        return False
    # The quotient of the largest and the smallest lift of one row, as LDP limits it.
    ranges = log_lifts.max(axis=0) - log_lifts.min(axis=0)
    return not (ranges > demand.ratio).any()


def _shared_budget_response(rows: PromisedRows) -> RowWay:
    """Randomised response with the same part of the smallest budget for every level.

    Entries of the row's column differ by a factor of at most e^budget, so no lift, and no quotient
    of two lifts of one row, is farther from 1. Where given columns use up some of a total promise,
    nothing is known without the law.
    """
    if rows.given and rows.promise != RELATIVE:
        return RowWay(
            name=RESPONSE,
            kept=None,
            truth=None,
            satisfied=None,
            achieved=None,
            worst=None,
            complete=False,
            columns=(),
        )
    # The budgets are those of the notion, the same in every stratum; so one demand has them all.
    everything = [np.arange(len(rows.records))]
    (demand,) = promise_demands(rows.records, everything, rows.promise, rows.notion)
    budget = min(*demand.lower, *demand.upper, demand.ratio)
    largest = min(budget / len(rows.levels), LARGEST_EPSILON)
    for slack in SLACKS:
        epsilon = largest * (1.0 - slack)
        channels = response_channels(rows, epsilon)
        used = _largest_quotient(channels)
        if used <= budget:
            return RowWay(
                name=RESPONSE,
                kept=None,
                truth=unchanged_shares(rows, channels),
                satisfied=True,
                achieved=Achieved(used, used, used),
                worst=None,
                complete=True,
                columns=column_names(rows.records.groups),
                epsilon=epsilon,
            )
    raise SolverFailure(NO_RESPONSE)


def _largest_quotient(channels: Sequence[LevelChannel]) -> float:
    """The smallest double above the logarithm of the largest quotient of two entries in one column
    of all channels together.
    """
    quotient = Fraction(1)
    for channel in channels:
        largest = channel.matrix.max(axis=0).tolist()
        smallest = channel.matrix.min(axis=0).tolist()
        quotient *= max(map(Fraction, largest, smallest))
    return log_upper(quotient.numerator, quotient.denominator)
