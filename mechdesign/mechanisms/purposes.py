"""What released records are for: estimates of linear queries, or another column that X tells of.

`for_queries` minimises the total variance (tr(G M^-1) - p^T G p) / N of unbiased estimates of
queries Q, where G = Q^T Q and M = sum over outputs of t_k u_k u_k^T with u_k = v_k / p. `for_task`
maximises I(T; Y) = H(T) - sum of t_k h(B v_k) with B(t, x) = P(t | x). Here t_k are the
probabilities of the outputs and v_k their posteriors P(x | y). Each has a bound on what any channel
can reach.

Both use free outputs, and look for posteriors in the same set as the optimum for information; only
the cost of a posterior differs (docs/explanation/purposes-theory.md). Symbols are not merged into
classes: what the promise cannot tell apart may differ in what it says of a query or of the task.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, SolverFailure, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.opening import all_rows, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.mechanisms.result import Design, QueryAccuracy, TaskUtility, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import numbers_of
from solvers import (
    Array,
    BackendFailure,
    OutOfTime,
    Polytope,
    SolverError,
    TooManyVertices,
    lower_envelope,
    vertices,
)
from solvers.queries import LeastVariance, least_variance
from solvers.task import TaskEnvelope, task_envelope

FREQUENCIES = "frequencies"
PREFIX = "prefix"
RANGES = "ranges"
QUERIES = "queries"
TASK = "task"

NAMED_QUERIES = (FREQUENCIES, PREFIX, RANGES)

PURPOSES = (*NAMED_QUERIES, TASK)
"""Purposes with names; queries of one's own come from a file or as `Queries`."""

QUERY_COLUMN = "query"
"""Header of the first column of a file of queries, which tells it from a matrix of costs."""

MOST_VERTICES = 100_000
"""Posteriors that the least variance is searched over; beyond it some are chosen."""

MOST_ENTRIES = 40_000_000
"""Vertices times pairs of symbols: the memory of a Newton step, 8 bytes each."""

MOST_DIRECT = 1200
"""Chosen posteriors where there are more pairs of symbols than that: a Newton step factors a matrix
of their size, in a tenth of a second."""

HALVINGS = 50
"""Bisections of the way from P_X to a unit vector."""

LEAST_WAY = 1e-12
"""Least share of such a way: the exact audit decides about outputs so near to P_X."""

CHOSEN_SHARE = 0.5
"""Share of the time limit for choosing posteriors where all are too many."""

INFORMATION_ERROR = 1e-12
"""Relative error of an information that is summed in doubles from exact masses."""

TASK_MARGIN = 1e-9
"""Least margin for a task: columns may come from HiGHS, which meets rows to 1e-10."""

RANK_TOLERANCE = 1e-9
"""Eigenvalues of the information matrix below this share of the largest count as zero, as in
`analysis.linear`."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Linear queries ``Q p`` of the frequencies p of the useful symbols.

    Parameters
    ----------
    matrix : (m, |X|) array
        A row for each query, a column for each symbol in the order of the table.
    name : str
        How results call them.
    """

    matrix: Array
    name: str = QUERIES

    def __post_init__(self) -> None:
        try:
            matrix = np.array(self.matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "queries must be numbers: a row for each query, a column for each symbol"
            ) from None
        if matrix.ndim != 2 or not matrix.size:
            raise InputError(
                "queries must be a table of numbers: a row for each query, a column for each symbol"
            )
        if not np.isfinite(matrix).all():
            raise InputError("the coefficients of queries must be finite numbers")
        if not matrix.any():
            raise InputError("all coefficients of the queries are zero")
        object.__setattr__(self, "matrix", matrix)

    @property
    def gram(self) -> Array:
        """Q^T Q, (|X|, |X|): the total variance depends on the queries through it alone."""
        return self.matrix.T @ self.matrix


def queries_of(objective: str | Queries, joint: Joint) -> tuple[Queries, str | None]:
    """The queries of an objective on the symbols of a table, and a remark on their order.

    Raises
    ------
    InputError
        If queries have another number of columns than the table has symbols.
    """
    n = len(joint.useful)
    if isinstance(objective, Queries):
        if objective.matrix.shape[1] != n:
            raise InputError(
                f"queries must have a column for each of the {n} useful symbols, not "
                f"{objective.matrix.shape[1]}"
            )
        return objective, None
    if objective == FREQUENCIES:
        return Queries(np.eye(n), FREQUENCIES), None
    order, remark = _order(joint)
    prefixes = np.tril(np.ones((n, n)))
    rows = [prefixes]
    if objective == RANGES:
        for first in range(1, n):
            # Ranges that begin at a later symbol: differences of two prefixes.
            rows.append(prefixes[first:] - prefixes[first - 1])
    matrix = np.zeros((sum(len(part) for part in rows), n))
    matrix[:, order] = np.vstack(rows)
    return Queries(matrix, objective), remark


def _order(joint: Joint) -> tuple[list[int], str | None]:
    """Positions of the symbols from the least to the largest: by number, else as in the table."""
    n = len(joint.useful)
    values: list[Any] = [None]
    if len(joint.useful.columns) == 1:
        try:
            values = list(numbers_of(joint.useful))
        except InputError:
            values = [None]
    if any(value is None for value in values):
        remark = (
            f"{joint.useful.columns[0]} holds no numbers: prefixes and ranges follow the order of "
            "its symbols as text"
        )
        return list(range(n)), remark
    return sorted(range(n), key=lambda x: values[x]), None


def read_queries(
    path: PathLike, symbols: tuple[str, ...], text: TextOptions | None = None
) -> Queries:
    """Queries from a CSV or Parquet file: a row for each, a column for each symbol.

    The first column holds the names of the queries under the header `query`; symbols that have no
    column count as zero.

    Raises
    ------
    InputError
        If the file cannot be read, names a symbol that the table does not have, or has a cell that
        is no number.
    """
    with open_source(path, text, repeated_names=True) as source:
        header = list(source.header)
        rows = all_rows(source)
    with errors_naming(source.name):
        repeated = sorted({name for name in header if header.count(name) > 1})
        if repeated:
            raise InputError(f"the symbol {listed(repeated)} has two columns")
        unknown = [name for name in header[1:] if name not in symbols]
        if unknown:
            raise InputError(
                f"the queries name {listed(unknown)}, which is no symbol of the table"
            )
        if not rows:
            raise InputError("the file has no query: give a row for each")
        matrix = np.zeros((len(rows), len(symbols)))
        columns = [symbols.index(name) for name in header[1:]]
        for number, row in enumerate(rows):
            for column, cell in zip(columns, row[1:], strict=True):
                matrix[number, column] = _coefficient(cell, row[0], symbols[column])
        return Queries(matrix)


def _coefficient(cell: str, query: str, symbol: str) -> float:
    try:
        return float(fraction_of(cell))
    except (InputError, OverflowError):
        raise InputError(
            f"the coefficient of {quoted(symbol)} in the query {quoted(query)} must be a number"
        ) from None


def is_queries_file(path: PathLike, text: TextOptions | None = None) -> bool:
    """Whether a file holds queries and no matrix of costs: its first column is called `query`."""
    if not os.path.exists(path):
        return False
    with open_source(path, text, repeated_names=True) as source:
        return bool(source.header) and source.header[0] == QUERY_COLUMN


def task_joint(task: Any, joint: Joint) -> Joint:
    """The table of the task column and the useful symbols, checked against the table.

    Raises
    ------
    InputError
        If it has other useful columns or symbols, or a single value of the task.
    """
    if not isinstance(task, Joint):
        raise InputError(
            "task must be a Joint of the task column and the useful column "
            "(Joint.from_table(frame, sensitive=TASK, useful=..)); with a data frame its name is "
            "enough"
        )
    name = quoted(",".join(task.sensitive.columns))
    if task.sensitive.columns == joint.sensitive.columns:
        raise InputError(
            f"the task {name} is the sensitive column: choose the column that the release should "
            "tell about"
        )
    shared = set(task.sensitive.columns) & set(joint.useful.columns)
    if shared:
        raise InputError(
            f"the task {name} is released itself: leave the task out, or release another column"
        )
    if task.useful.columns != joint.useful.columns:
        raise InputError(
            f"the table of the task {name} must have the useful column "
            f"{quoted(','.join(joint.useful.columns))}"
        )
    missing = [x for x in joint.useful.names if x not in task.useful.names]
    if missing or len(task.useful) != len(joint.useful):
        raise InputError(
            f"the table of the task {name} must have the same useful symbols as the table"
        )
    if len(task.sensitive) < 2:
        raise InputError(
            f"the task {name} has a single value: there is nothing to tell"
        )
    return task


def for_queries(
    rules: Rules, objective: str | Queries, search: Search, started: float
) -> Design:
    """The channel from which queries are estimated with least total variance, verified exactly.

    Raises
    ------
    InputError
        If the queries do not fit the table.
    SolverFailure
        If no channel was verified.
    """
    joint = rules.joint
    queries, remark = queries_of(objective, joint)
    single = replace(rules, by_symbol=True)
    program = _QueryProgram(single, queries, search, started)
    rounded, solution = _first_verified(single, program.solve)
    noise_free = _noise_free(queries, joint.p_x)
    variance = total_variance(rounded.channel, queries, joint)
    bound = max(noise_free, solution.bound - _offset(queries, joint.p_x))
    accuracy = QueryAccuracy(
        name=queries.name,
        variance=variance,
        variance_lower_bound=min(bound, variance),
        noise_free=noise_free,
    )
    messages: list[str] = []
    if remark is not None:
        messages.append(remark)
    excess = variance - accuracy.variance_lower_bound
    if excess > search.gap * variance:
        messages.append(
            f"the variance is proven to be within {100.0 * excess / variance:.2g} % of the least"
        )
    design = finish(
        rounded,
        joint,
        queries.name,
        program.method,
        started,
        messages=tuple(messages),
    )
    return _with_purpose(design, accuracy)


def for_task(rules: Rules, task: Joint, search: Search, started: float) -> Design:
    """The channel that tells most about the task column, verified exactly.

    Raises
    ------
    InputError
        If the task does not fit the table, or the useful column says nothing about it.
    SolverFailure
        If no channel was verified.
    """
    joint = rules.joint
    table = task_joint(task, joint)
    order = [table.useful.names.index(name) for name in joint.useful.names]
    masses = table.p[:, order]
    entropy = _entropy(masses.sum(axis=1))
    most = entropy - _conditional_entropy(masses)
    column = ",".join(table.sensitive.columns)
    if not most > INFORMATION_ERROR:
        raise InputError(
            f"the useful column says nothing about the task {quoted(column)}: there is nothing to "
            "keep"
        )
    given_x = masses / masses.sum(axis=0)
    single = replace(rules, by_symbol=True)

    def solve(inner: Polytope) -> TaskEnvelope:
        return task_envelope(
            inner,
            single.relaxation,
            joint.p_x,
            given_x,
            gap=search.gap * most,
            end=search.end(started),
        )

    rounded, solution = _first_verified(single, solve, least_margin=TASK_MARGIN)
    figures = task_figures(rounded.channel, joint, table)
    kept = figures.kept
    bound = (figures.prior - solution.bound) / figures.largest
    utility_of_task = TaskUtility(
        column=column,
        task_kept=kept,
        task_upper_bound=max(kept, min(1.0, bound + INFORMATION_ERROR)),
    )
    messages: tuple[str, ...] = ()
    if utility_of_task.task_upper_bound - kept > search.gap:
        messages = (f"the search ended early ({solution.status})",)
    method = "vertices" if not solution.nodes else "columns"
    design = finish(rounded, joint, TASK, method, started, messages=messages)
    return _with_purpose(design, utility_of_task)


@dataclass(frozen=True)
class TaskFigures:
    """What a channel tells of a task: H(T) and I(T;X) in nats, and I(T;Y) / I(T;X), rounded
    down.
    """

    prior: float
    largest: float
    kept: float


def task_figures(channel: Channel, joint: Joint, table: Joint) -> TaskFigures:
    """What the channel of `joint` tells of the task of a checked table (`task_joint`)."""
    order = [table.useful.names.index(name) for name in joint.useful.names]
    masses = table.p[:, order]
    given_x = masses / masses.sum(axis=0)
    # H(T) depends on P(T | X) and P_X of the table; both tables count the same records.
    prior = _entropy(given_x @ joint.p_x)
    largest = prior - float(joint.p_x @ _column_entropies(given_x))
    released = given_x * joint.p_x @ channel.matrix
    kept = (prior - _conditional_entropy(released)) / largest
    return TaskFigures(prior, largest, max(0.0, kept - INFORMATION_ERROR))


def _with_purpose(design: Design, purpose: QueryAccuracy | TaskUtility) -> Design:
    """The design with its purpose, in the record of its channel too."""
    record = design.channel.record
    provenance = dict(record.provenance)
    if isinstance(purpose, TaskUtility):
        provenance["task"] = purpose.column
    record = replace(
        record,
        utility={**(record.utility or {}), **purpose.figures},
        provenance=provenance,
    )
    return replace(design, channel=design.channel.with_record(record), purpose=purpose)


Solution = TypeVar("Solution", LeastVariance, TaskEnvelope)


def _first_verified(
    rules: Rules, solve: Callable[[Polytope], Solution], least_margin: float = 0.0
) -> tuple[Rounded, Solution]:
    """Solve with growing margins until the rounded channel passes the exact audit."""
    failure: RoundingFailure | None = None
    for margin in rules.margins:
        # Solutions by HiGHS miss rows by more than smaller margins have room for.
        if margin < least_margin and not rules.is_homogeneous:
            continue
        try:
            solution = solve(rules.polytope(margin))
        except SolverError as error:
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        try:
            return rules.rounded(solution.weights, solution.points), solution
        except RoundingFailure as error:
            failure = error
    raise SolverFailure(
        f"no verified channel came out of the optimum ({failure}); use a larger budget"
    )


class _QueryProgram:
    """Least variance over the vertices of a set of posteriors, or over some of its members.

    Some optimal channel uses vertices only ('Vertices suffice' of the page on purposes).
    """

    def __init__(
        self, rules: Rules, queries: Queries, search: Search, started: float
    ) -> None:
        self._rules = rules
        self._gram = queries.gram
        self._search = search
        self._end = search.end(started)
        self.method = "vertices"

    def solve(self, inner: Polytope) -> LeastVariance:
        """The weights, and a bound for the relaxation."""
        point = self._rules.joint.p_x
        outer = self._rules.relaxation
        start: Array | None = None
        try:
            candidates = self._listed(inner)
            relaxed: Array | None = self._listed(outer)
        except (TooManyVertices, OutOfTime, BackendFailure):
            self.method = "columns"
            candidates, start = self._chosen(inner)
            relaxed = None
        solution = least_variance(
            candidates,
            point,
            self._gram,
            gap=self._search.gap,
            end=self._end,
            relaxation=relaxed,
            start=start,
        )
        if relaxed is None:
            # Without all vertices there is no certificate but that of no noise at all.
            return replace(solution, bound=-math.inf)
        return solution

    def _listed(self, polytope: Polytope) -> Array:
        n = polytope.n
        most = min(MOST_VERTICES, MOST_ENTRIES // (n * (n + 1) // 2))
        seconds = None
        if self._end < math.inf:
            seconds = max(0.0, CHOSEN_SHARE * (self._end - time.perf_counter()))
        return vertices(polytope, max_vertices=max(1, most), time_limit=seconds).points

    def _chosen(self, inner: Polytope) -> tuple[Array, Array]:
        """The columns that the search for information has found, and one on the way to each symbol;
        and weights that decompose P_X and tell all symbols apart.
        """
        seconds = None
        if self._end < math.inf:
            seconds = max(0.0, CHOSEN_SHARE * (self._end - time.perf_counter()))
        point = self._rules.joint.p_x
        envelope = lower_envelope(
            inner,
            point,
            relaxation=self._rules.relaxation,
            method="columns",
            gap=self._search.gap * _entropy(point),
            time_limit=seconds,
        )
        n = len(point)
        pairs = n * (n + 1) // 2
        most = MOST_ENTRIES // pairs
        if pairs > MOST_DIRECT:
            most = max(2 * n, MOST_DIRECT)
        stars, star_weights = _stars(inner, point)
        used = envelope.points.toarray()
        others = envelope.pool.toarray()[: max(0, most - len(used) - n)]
        columns = np.vstack([used, stars, others])
        # Half of each decomposition: the first keeps much, the second tells all symbols apart.
        weights = np.zeros(len(columns))
        weights[: len(used)] = 0.5 * envelope.weights
        weights[len(used) : len(used) + n] = 0.5 * star_weights
        return columns, weights


def _stars(polytope: Polytope, point: Array) -> tuple[Array, Array]:
    """The last members on the ways from P_X to the unit vectors, (n, n), and weights of P_X.

    With shares r_x of the ways, weights in proportion to p_x / r_x give every symbol x its mass.
    """
    n = len(point)
    low = np.zeros(n)
    high = np.ones(n)
    low[polytope.excess(np.eye(n)) <= 0.0] = 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        pulled = (1.0 - middle)[:, None] * point + np.diag(middle)
        inside = polytope.excess(pulled) <= 0.0
        low = np.where(inside, middle, low)
        high = np.where(inside, high, middle)
    # A star next to P_X itself, where the budget allows no way at all.
    low = np.maximum(low, LEAST_WAY)
    weights = point / low
    weights /= weights.sum()
    return (1.0 - low)[:, None] * point + np.diag(low), weights


def total_variance(channel: Channel, queries: Queries, joint: Joint) -> float:
    """N times the summed variance of the best linear unbiased estimates from the integers.

    Infinite where the channel does not tell a query.
    """
    w = channel.matrix
    p_x = joint.p_x
    masses = p_x @ w
    occurs = masses > 0.0
    information = (w[:, occurs] / masses[occurs]) @ w[:, occurs].T
    # Scaled by the frequencies, so that rare symbols are not lost in the inverse.
    root = np.sqrt(p_x)
    values, vectors = np.linalg.eigh(information * np.outer(root, root))
    # Directions without information: a query with a part there has no unbiased estimate.
    informed = values > RANK_TOLERANCE * values.max()
    projected = (queries.matrix * root) @ vectors
    if np.abs(projected[:, ~informed]).max(initial=0.0) > RANK_TOLERANCE:
        return math.inf
    spread = float((projected[:, informed] ** 2 / values[informed]).sum())
    return spread - _offset(queries, p_x)


def _offset(queries: Queries, p_x: Array) -> float:
    """p^T G p, which the covariance of shares has less than the inverse of the information."""
    return float(np.square(queries.matrix @ p_x).sum())


def _noise_free(queries: Queries, p_x: Array) -> float:
    """N times the total variance where X itself is released."""
    return float((np.square(queries.matrix) @ p_x).sum()) - _offset(queries, p_x)


def _entropy(p: Array) -> float:
    """In nats."""
    positive = p[p > 0.0]
    return -math.fsum((positive * np.log(positive)).tolist())


def _column_entropies(conditional: Array) -> Array:
    """Entropy of every column of conditional probabilities, in nats."""
    positive = np.where(conditional > 0.0, conditional, 1.0)
    return -(positive * np.log(positive)).sum(axis=0)


def _conditional_entropy(masses: Array) -> float:
    """H(row | column) of joint masses, in nats."""
    total = masses.sum(axis=0)
    occurs = total > 0.0
    conditional = masses[:, occurs] / total[occurs]
    return float(total[occurs] @ _column_entropies(conditional))
