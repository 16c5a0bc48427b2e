"""The channel from whose releases linear queries are estimated with least total variance.

N times the total variance of the best linear unbiased estimates of queries Q is tr(G M^-1) - p^T G
p, with G = Q^T Q and the information M = sum of t_k u_k u_k^T of one release. Here t_k is the
probability of output k, v_k its posterior P(x | y), and u_k = v_k / p.

1. The vertices of the set of posteriors are listed, since some optimal channel uses vertices only.
   Where they are too many, posteriors are chosen instead: those of the search for information, and
   one on the way to each symbol. Those of a column itself under LDP are sets, which are generated
   (`solvers.purposes.queries`).
2. `solvers.purposes.queries` finds the weights t_k of least variance, and what no weights can go
   below.
3. The channel is rounded and audited, and its variance computed from its integers.

For example, let two symbols have the share 1/2 each, and ask for both shares. Released as it is, a
record gives N times the variance 0.5; with each symbol kept with probability 3/4 and swapped else,
M = ((1.25, .75), (.75, 1.25)), tr M^-1 = 2.5 and p^T p = 0.5, so it is 2.

Proofs: docs/explanation/purposes-theory.md, 'Queries'.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import QueryProof, with_proof
from mechdesign.channel.record import AverageBudget
from mechdesign.mechanisms.purposes import (
    first_verified,
    purpose_within,
    touched_in_file,
    with_budget,
    with_purpose,
)
from mechdesign.mechanisms.queries import NAMED_QUERIES, Queries, queries_of
from mechdesign.mechanisms.result import Design, QueryAccuracy, finish
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, utility_entropy
from mechdesign.tables.joint import Joint
from solvers import (
    Array,
    BackendFailure,
    OutOfTime,
    Polytope,
    TooManyVertices,
    lower_envelope,
    vertices,
)
from solvers.average.purposes import QueryPurpose
from solvers.pricing.separate import staircase
from solvers.proving import variance_by_vertices
from solvers.purposes.queries import (
    LeastVariance,
    least_variance,
    least_variance_of_sets,
)

MOST_VERTICES = 100_000
"""Posteriors that the least variance is searched over; beyond it some are chosen."""

MOST_ENTRIES = 40_000_000
"""Vertices times pairs of symbols: the memory of a Newton step, 8 bytes each."""

MOST_DIRECT = 1200
"""Chosen posteriors where there are more pairs of symbols than that: a Newton step factors a matrix
of their size, in a tenth of a second."""

MOST_LISTED_STEPS = 12
"""Values of a column under LDP up to which all of its vertices, 2^n - 2, are used at once."""

HALVINGS = 50
"""Bisections of the way from P_X to a unit vector."""

LEAST_WAY = 1e-12
"""Least share of such a way: the exact audit decides about outputs so near to P_X."""

CHOSEN_SHARE = 0.5
"""Share of the time limit for choosing posteriors where all are too many."""

RANK_TOLERANCE = 1e-9
"""Eigenvalues of the information matrix below this share of the largest count as zero, as in
`analysis.linear`."""


def for_queries(
    rules: Rules,
    objective: str | Queries,
    search: Search,
    started: float,
    averages: Sequence[AverageBudget] = (),
    *,
    alone: bool = False,
) -> Design:
    """The channel from which queries are estimated with least total variance, verified exactly.

    `averages` are budgets on averages over the outputs; `alone` as in `averages.for_average`.

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
    end = search.end(started)
    proof = _own_queries(queries)
    if averages:
        rounded, within = purpose_within(
            single,
            QueryPurpose(queries.gram, search.gap),
            averages,
            program.is_proven,
            end,
            alone=alone,
        )
        least = within.bound
        if within.inverse is not None:
            proof = QueryProof(
                prices=tuple(within.prices.tolist()),
                inverse=tuple(map(tuple, within.inverse.tolist())),
                queries=None if proof is None else proof.queries,
                leakages=(max(within.charge, 0.0),),
                touched=touched_in_file(within.touched),
                alone=alone or None,
            )
    else:
        rounded, solution, rows_at = first_verified(single, program, end)
        least = solution.bound
        if solution.prices is not None and solution.inverse is not None:
            proof = QueryProof(
                prices=tuple(solution.prices.tolist()),
                inverse=tuple(map(tuple, solution.inverse.tolist())),
                queries=None if proof is None else proof.queries,
                touched=touched_in_file(rows_at),
            )

    variance = total_variance(rounded.channel, queries, joint)
    noise_free = noise_free_variance(queries, joint.p_x)
    bound = variance_of(least, queries, joint.p_x)
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
    design = with_purpose(with_budget(design, averages), accuracy)
    if proof is None or (averages and not alone and rules.cuts is not None):
        return design
    return replace(design, channel=with_proof(design.channel, proof))


def _own_queries(queries: Queries) -> QueryProof | None:
    """The user's own queries, which the file has nowhere else, with prices that prove nothing."""
    if queries.name in NAMED_QUERIES:
        return None
    matrix = tuple(map(tuple, queries.matrix.tolist()))
    return QueryProof(prices=(0.0,) * len(matrix[0]), inverse=(), queries=matrix)


def total_variance(channel: Channel, queries: Queries, joint: Joint) -> float:
    """N times the summed variance of the best linear unbiased estimates from the integers.

    Infinite where the channel does not tell a query.
    """
    w = channel.matrix
    p_x = joint.p_x
    masses = p_x @ w
    occurs = masses > 0.0
    # M(x, x') = sum over y of W(y|x) W(y|x') / P(y), because u_y(x) = W(y|x) / P(y).
    information = (w[:, occurs] / masses[occurs]) @ w[:, occurs].T
    # Scaled by the frequencies, so that rare symbols are not lost in the inverse.
    root = np.sqrt(p_x)
    values, vectors = np.linalg.eigh(information * np.outer(root, root))
    # Directions without information: a query with a part there has no unbiased estimate.
    informed = values > RANK_TOLERANCE * values.max()
    # The coordinates of each query along the eigenvectors: q^T M^-1 q sums their squares, each
    # divided by its eigenvalue.
    projected = (queries.matrix * root) @ vectors
    if np.abs(projected[:, ~informed]).max(initial=0.0) > RANK_TOLERANCE:
        return math.inf
    spread = float((projected[:, informed] ** 2 / values[informed]).sum())
    return spread - _offset(queries, p_x)


def _offset(queries: Queries, p_x: Array) -> float:
    """p^T G p, which the covariance of shares has less than the inverse of the information."""
    return float(np.square(queries.matrix @ p_x).sum())


def variance_of(least: float, queries: Queries, p_x: Array) -> float:
    """N times the variance that no channel is below, from such a bound of tr(G M^-1)."""
    # No channel tells more than X itself, so its variance is a bound, too.
    return max(noise_free_variance(queries, p_x), least - _offset(queries, p_x))


def noise_free_variance(queries: Queries, p_x: Array) -> float:
    """N times the total variance where X itself is released."""
    return float((np.square(queries.matrix) @ p_x).sum()) - _offset(queries, p_x)


class _QueryProgram:
    """Least variance over the vertices of a set of posteriors, or over some of its members.

    Some optimal channel uses vertices only ('Vertices suffice' of the page on purposes). `solve` is
    called for one margin after the other, and `method` says afterwards which of the two it was.
    """

    def __init__(
        self, rules: Rules, queries: Queries, search: Search, started: float
    ) -> None:
        self._rules = rules
        self._gram = queries.gram
        self._search = search
        self._end = search.end(started)
        self.method = "vertices"

    def solve(self, inner: Polytope, outer: Polytope) -> LeastVariance:
        """The weights, and a bound for `outer`; -inf where its vertices are too many."""
        point = self._rules.joint.p_x
        if inner.n > MOST_LISTED_STEPS:
            steps, relaxed_steps = staircase(inner), staircase(outer)
            if steps is not None and relaxed_steps is not None:
                self.method = "columns"
                return least_variance_of_sets(
                    steps,
                    relaxed_steps,
                    point,
                    self._gram,
                    gap=self._search.gap,
                    end=self._end,
                )
        start: Array | None = None
        try:
            candidates = self._listed(inner)
            relaxed: Array | None = self._listed(outer)
        except (TooManyVertices, OutOfTime, BackendFailure):
            self.method = "columns"
            candidates, start = self._chosen(inner, outer)
            relaxed = None
        try:
            solution = self._least_variance(candidates, relaxed, start)
        except BackendFailure:
            if start is not None:
                raise
            # Equal weights, from which steps begin without a start, may be too far from P_X.
            stars, star_weights = _stars(inner, point)
            start = np.concatenate([np.zeros(len(candidates)), star_weights])
            candidates = np.vstack([candidates, stars])
            solution = self._least_variance(candidates, relaxed, start)
        if relaxed is None:
            # Without all vertices there is no certificate but that of no noise at all.
            return replace(solution, bound=-math.inf, prices=None)
        if solution.prices is None or solution.inverse is None:
            return solution
        # What whoever proves it again finds, who knows that vertices are not exact.
        proven = variance_by_vertices(
            outer, relaxed, point, self._gram, solution.prices, solution.inverse
        )
        return replace(solution, bound=min(solution.bound, proven))

    def _least_variance(
        self, candidates: Array, relaxed: Array | None, start: Array | None
    ) -> LeastVariance:
        """`least_variance` over candidates, with the bound for relaxed ones."""
        return least_variance(
            candidates,
            self._rules.joint.p_x,
            self._gram,
            gap=self._search.gap,
            end=self._end,
            relaxation=relaxed,
            start=start,
        )

    def best_of(self, members: Array, weights: Array) -> LeastVariance:
        """As of `CutSolver`."""
        start = np.zeros(len(members))
        start[len(members) - len(weights) :] = weights
        return self._least_variance(members, None, start)

    def is_proven(self, value: float, bound: float) -> bool:
        """As of `CutSolver`: with half of the gap, for the other half is for rounding."""
        point = self._rules.joint.p_x
        variance = value - float(point @ self._gram @ point)
        return value - bound <= 0.5 * self._search.gap * variance

    def _listed(self, polytope: Polytope) -> Array:
        """All vertices, (k, n), unless they are too many for a Newton step or for the time."""
        n = polytope.n
        most = min(MOST_VERTICES, MOST_ENTRIES // (n * (n + 1) // 2))
        return vertices(
            polytope, max_vertices=max(1, most), time_limit=self._seconds()
        ).points

    def _seconds(self) -> float | None:
        """Time for posteriors; the rest is for their weights. None without a limit."""
        if math.isinf(self._end):
            return None
        return max(0.0, CHOSEN_SHARE * (self._end - time.process_time()))

    def _chosen(self, inner: Polytope, outer: Polytope) -> tuple[Array, Array]:
        """Posteriors of the search for information, and one on the way to each symbol, (k, n).

        With them weights, (k,), that decompose P_X and tell all symbols apart.
        """
        point = self._rules.joint.p_x
        envelope = lower_envelope(
            inner,
            point,
            relaxation=outer,
            method="columns",
            gap=self._search.gap * utility_entropy(self._rules.joint),
            time_limit=self._seconds(),
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
    """The last members on the ways from P_X to the unit vectors, (n, n), and weights of P_X, (n,).

    Star x is (1 - r_x) p + r_x e_x with the largest share r_x of the way, found by bisection.
    Weights in proportion to p_x / r_x give every symbol x its mass: the parts along the ways sum
    to a multiple of p.
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
