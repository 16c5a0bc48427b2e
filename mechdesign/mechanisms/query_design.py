"""The channel from whose releases linear queries are estimated with least total variance.

N times the total variance of the best linear unbiased estimates of queries Q is tr(G M^-1) - p^T G
p, with G = Q^T Q and the information M = sum of t_k u_k u_k^T of one release. Here t_k is the
probability of output k, v_k its posterior P(x | y), and u_k = v_k / p.

1. The vertices of the set of posteriors are listed, since some optimal channel uses vertices only.
   Where they are too many, posteriors are chosen instead: those of the search for information, and
   one on the way to each symbol. Those of a column itself under LDP are sets, which are generated
   (`solvers.purposes.queries`).
   Where the time is not enough for one step with these, symbols are merged into sets that are
   private, and each set has a posterior on the way to each of its members: few symbols each.
2. `solvers.purposes.queries` finds the weights t_k of least variance, and what no weights can go
   below.
3. The channel is rounded and audited, and its variance computed from its integers.

For example, let two symbols have the share 1/2 each, and ask for both shares. Released as it is, a
record gives N times the variance 0.5; with each symbol kept with probability 3/4 and swapped else,
M = ((1.25, .75), (.75, 1.25)), tr M^-1 = 2.5 and p^T p = 0.5, so it is 2.

Proofs: docs/explanation/purposes-theory.md, 'Queries'.

*Protocols* of local differential privacy of a column itself are exact channels beside the optimum.
Each gives every output y a set of values: P(y|x) is larger by the factor e^epsilon, or a product of
such factors, for the values in it. With k values and e = e^epsilon:

    randomised response   k outputs, each for one value
    subset selection      all sets of one size near k / (1 + e) (Ye and Barg 2018)
    unary encoding        2^k outputs: every value has a bit, set with probability p for the own
                          value and q for the others; p = 1 - q (RAPPOR), or p = 1/2 and
                          q = 1 / (1 + e) (OUE, Wang et al. 2017)
    Hadamard response     K outputs, the least power of two above k: value x has the half of them
                          where row x + 1 of the Hadamard matrix is positive (Acharya et al. 2019)

For example, of two values randomised response tells the own one with probability e / (1 + e).

A protocol whose outputs are too many to list has no channel here. Of unary encodings the variance
of their own estimates is known all the same: bit x is set with r = p_x p + (1 - p_x) q, and
estimates p_x by (bit - q) / (p - q).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import QueryProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import SolverFailure
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import about
from mechdesign.mechanisms.cut_sets import CutSet
from mechdesign.mechanisms.optimal import merged_channels
from mechdesign.mechanisms.purposes import (
    first_verified,
    purpose_within,
    touched_in_file,
    with_budget,
    with_purpose,
)
from mechdesign.mechanisms.queries import (
    FREQUENCIES,
    NAMED_QUERIES,
    Queries,
    queries_of,
)
from mechdesign.mechanisms.result import Design, QueryAccuracy, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import Rules, table_rules
from mechdesign.mechanisms.search_options import Search, utility_entropy
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import (
    Array,
    BackendFailure,
    EnvelopeStatus,
    OutOfTime,
    Points,
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
    seconds_of_step,
)
from solvers.sets.polytope import towards_units

# ----------------------------------------------------------------------- least variance

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

LARGE_SET = 64
"""Symbols of merged sets within which posteriors are chosen where time is short."""

CHOSEN_FOR_EACH = 2
"""Posteriors for each symbol that are chosen of many symbols."""

CONNECTED_FROM = 256
"""Symbols from which those that no output connects are looked at apart: smaller matrices are
inverted at once."""

FACTORED_FROM = 500
"""Symbols from which a factor of the information matrix takes less time, SciPy's loading
included."""

LEAST_KEPT = 1e-6
"""Least probability of the own output beyond that of others, of which rounding is no part."""

RANK_TOLERANCE = 1e-9
"""Eigenvalues of the information matrix below this share of the largest count as zero, as in
`analysis.linear`; and differences of probabilities that are a smaller share of them."""


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
    return replace(design, channel=design.channel.with_proof(proof))


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
    p_x = joint.p_x
    parts: list[tuple[Array, Array]] = []
    spread = 0.0
    for members, w in _connected(channel, p_x):
        of_own = _spread_of_own(w, p_x[members], queries.matrix[:, members])
        if of_own is not None:
            spread += of_own
            continue
        # Scaled by the frequencies, so that rare symbols are not lost in the inverse.
        root = np.sqrt(p_x[members])
        masses = p_x[members] @ w
        occurs = masses > 0.0
        # M(x, x') = sum over y of W(y|x) W(y|x') / P(y), because u_y(x) = W(y|x) / P(y).
        information = (w[:, occurs] / masses[occurs]) @ w[:, occurs].T
        information *= np.outer(root, root)
        scaled = queries.matrix[:, members] * root
        if len(members) == len(p_x):
            of_all = _spread_of_all(information, scaled)
            if of_all is not None:
                return of_all - _offset(queries, p_x)
        values, vectors = np.linalg.eigh(information)
        # The coordinates of each query along the eigenvectors: q^T M^-1 q sums their squares, each
        # divided by its eigenvalue.
        parts.append((values, scaled @ vectors))
    largest = max((float(values.max()) for values, _ in parts), default=0.0)
    for values, projected in parts:
        # Directions without information: a query with a part there has no unbiased estimate.
        informed = values > RANK_TOLERANCE * largest
        if np.abs(projected[:, ~informed]).max(initial=0.0) > RANK_TOLERANCE:
            return math.inf
        spread += float((projected[:, informed] ** 2 / values[informed]).sum())
    return spread - _offset(queries, p_x)


def _spread_of_own(w: Array, p: Array, queries: Array) -> float | None:
    """The sum of q^T M^-1 q over the queries q, (m, n), where each symbol has an output of its own,
    and all draw the others with the same probabilities; None of any other channel `w`, (n, n).

    With these probabilities b_y and W(y|x) = b_y + c_x at the own output of x, M is a diagonal and
    two ranks (`_inverse_of_ranks`), and no matrix of 5,000 symbols is inverted. Probabilities that
    differ by less than `RANK_TOLERANCE` of them are rounded ones.
    """
    if w.shape[0] != w.shape[1]:
        return None
    common = w.min(axis=0)
    symbols, own = np.nonzero(w > common * (1.0 + RANK_TOLERANCE))
    if not np.array_equal(symbols, np.arange(len(w))) or len(np.unique(own)) < len(w):
        return None
    kept = w[symbols, own] - common[own]
    if kept.min() < LEAST_KEPT:
        return None
    masses = p @ w
    of_own = masses[own]
    diagonal, sides, inner = _inverse_of_ranks(
        kept**2 / of_own, kept * common[own] / of_own, float(common**2 @ (1.0 / masses))
    )
    asked = queries @ sides
    whole = float((np.square(queries) @ diagonal).sum())
    return whole - float(np.sum(inner * (asked.T @ asked)))


def _inverse_of_ranks(
    diagonal: Array, v: Array, c: float
) -> tuple[Array, Array, Array]:
    """The inverse of M = D + v 1^T + 1 v^T + c 1 1^T by the formula of Woodbury: it is
    diag(d) - S A S^T with d (n,), S (n, 2) and A (2, 2), which are returned.
    """
    sides = np.column_stack([v, np.ones(len(v))])
    scaled = sides / diagonal[:, None]
    core = np.array([[-c, 1.0], [1.0, 0.0]]) + sides.T @ scaled
    inner = np.asarray(np.linalg.inv(core), dtype=np.float64)
    return 1.0 / diagonal, scaled, inner


def _spread_of_all(information: Array, queries: Array) -> float | None:
    """The sum of q^T M^-1 q over the queries q, (m, n), of a matrix M (n, n); None unless it tells
    every direction.

    With M = L L^T it is that of |L^-1 q|^2, for a seventh of the time of the eigenvalues. The least
    of these is at least 1 / |L^-1|^2, and the largest one at most the trace.
    """
    n = len(information)
    if n < FACTORED_FROM:
        return None
    # Imported here because SciPy takes long to load, and few designs need it.
    from scipy.linalg import solve_triangular

    try:
        lower = np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        return None
    inverse = solve_triangular(lower, np.eye(n), lower=True)
    least = 1.0 / float(np.square(inverse).sum())
    if not least > RANK_TOLERANCE * float(information.trace()):
        return None
    if np.count_nonzero(queries) == len(queries) == n and queries.diagonal().all():
        # Each query is about one symbol.
        return float((np.square(inverse).sum(axis=0) * queries.diagonal() ** 2).sum())
    return float(np.square(inverse @ queries.T).sum())


def _connected(channel: Channel, p_x: Array) -> list[tuple[NDArray[np.intp], Array]]:
    """Sets of symbols that share no output with others, with their part of W, (members, outputs).

    The information matrix has a block for each.
    """
    n = len(p_x)
    # An output of all symbols connects them.
    if n < CONNECTED_FROM or np.bincount(channel.integers.indices).max() == n:
        return [(np.arange(n), channel.matrix)]
    # Imported here because SciPy takes long to load, and few designs need it.
    from scipy.sparse import block_array, csr_array
    from scipy.sparse.csgraph import connected_components

    integers = channel.integers
    w = csr_array(
        (
            integers.values / channel.denominator,
            integers.indices,
            integers.indptr,
        ),
        shape=integers.shape,
    )
    # Symbols and outputs are the vertices of one graph: the product of the channel with itself has
    # the same parts, but takes 20 s where 2,000 outputs have 2,000 symbols each.
    pairs = block_array([[None, w], [w.T, None]], format="csr")
    _, part_of = connected_components(pairs, directed=False)
    part_of = part_of[:n]
    parts: list[tuple[NDArray[np.intp], Array]] = []
    for part in np.unique(part_of):
        members = np.flatnonzero(part_of == part)
        rows = w[members]
        parts.append((members, rows[:, np.unique(rows.indices)].toarray()))
    return parts


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
        if self._is_too_large(inner.n):
            self.method = "merging"
            return self._within_sets(_ways_of_polytope(inner))
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
        is_late = solution.status is EnvelopeStatus.TIME_LIMIT
        if is_late and relaxed is None and self._has_many_pairs(inner.n):
            # More time must not leave a larger variance than no time for any step.
            sets = self._within_sets(_ways_of_polytope(inner))
            if sets.value < solution.value:
                self.method = "merging"
                return sets
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

    def _has_many_pairs(self, n: int) -> bool:
        """Whether the pairs of symbols are so many that few posteriors are chosen."""
        return n * (n + 1) // 2 > MOST_DIRECT

    def _is_too_large(self, n: int) -> bool:
        """Whether the time is not enough for the posteriors that are chosen, and one step."""
        if math.isinf(self._end) or not self._has_many_pairs(n):
            return False
        needed = seconds_of_step(n, CHOSEN_FOR_EACH * n)
        return needed > (1.0 - CHOSEN_SHARE) * (self._end - time.process_time())

    def without_rows(self, cuts: CutSet) -> LeastVariance:
        """As of `CutSolver`: ways within merged sets."""
        self.method = "merging"

        def ways(members: NDArray[np.intp], masses: Array) -> Array:
            origin = np.zeros(len(cuts.point))
            origin[members] = masses
            return cuts.ways_within(origin, members)

        return self._within_sets(ways)

    def _within_sets(self, ways: Ways) -> LeastVariance:
        """Posteriors on the way to each symbol within merged sets, which tell all symbols apart.

        Sets are joined until they are large: the mean of many is nearer to P_X, so that the ways
        are longer.
        """
        point = self._rules.joint.p_x
        now = time.process_time()
        merged = merged_channels(self._rules, now, self._end)
        weights: list[Array] = []
        parts: list[Points] = []
        value = 0.0
        for members in _joined(merged.subsets, LARGE_SET):
            share = float(point[members].sum())
            masses = point[members] / share
            reach = np.maximum(ways(members, masses), LEAST_WAY)
            stars, star_weights = _stars_at(reach, masses)
            parts.append(Points.from_dense(stars).placed(members, len(point)))
            weights.append(share * star_weights)
            # The information matrix has a block for each set.
            gram = self._gram[np.ix_(members, members)]
            value += _trace_of_stars(reach, weights[-1], point[members], gram)
        return LeastVariance(
            status=EnvelopeStatus.TIME_LIMIT,
            weights=np.concatenate(weights),
            points=Points.concatenate(parts),
            value=value,
            bound=-math.inf,
            steps=0,
        )

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


Ways: TypeAlias = Callable[[NDArray[np.intp], Array], Array]
"""Shares of the ways from the mean of some symbols, by their masses, to each of them that lead to
members."""


def _ways_of_polytope(inner: Polytope) -> Ways:
    """The largest such shares within a polytope."""

    def ways(members: NDArray[np.intp], masses: Array) -> Array:
        return inner.restrict(members).reaches(masses, HALVINGS)

    return ways


def _joined(groups: Sequence[Sequence[int]], size: int) -> list[NDArray[np.intp]]:
    """The groups joined in their order, until each has so many members."""
    joined: list[NDArray[np.intp]] = []
    members: list[int] = []
    for group in groups:
        members += group
        if len(members) >= size:
            joined.append(np.array(sorted(members)))
            members = []
    if members and joined:
        # What is left makes the last one larger.
        members += joined.pop().tolist()
    if members:
        joined.append(np.array(sorted(members)))
    return joined


def _stars(polytope: Polytope, point: Array) -> tuple[Array, Array]:
    """`_stars_at` with the largest shares of the ways, found by bisection."""
    return _stars_at(polytope.reaches(point, HALVINGS), point)


def _stars_at(shares: Array, point: Array) -> tuple[Array, Array]:
    """Members on the ways from P_X to the unit vectors, (n, n), and weights of P_X, (n,).

    Star x is (1 - r_x) p + r_x e_x with the share r_x of the way. Weights in proportion to
    p_x / r_x give every symbol x its mass: the parts along the ways sum to a multiple of p.
    """
    # A star next to P_X itself, where the budget allows no way at all.
    reach = np.maximum(shares, LEAST_WAY)
    weights = point / reach
    weights /= weights.sum()
    return towards_units(point, reach), weights


def _trace_of_stars(reach: Array, weights: Array, point: Array, gram: Array) -> float:
    """tr(G M^-1) for outputs of these weights at the stars of a set (`_stars_at`); all (n,).

    The point p has its masses in P_X. With q = 1 / sum p star k has u_k = q (1 - r_k) 1 + (r_k /
    p_k) e_k, so that M = D + v 1^T + 1 v^T + c 1 1^T with D = diag(t r^2 / p^2),
    v = q t (1 - r) r / p and c = q^2 sum t (1 - r)^2: a diagonal and two ranks.
    """
    q = 1.0 / float(point.sum())
    diagonal = weights * (reach / point) ** 2
    v = q * weights * (1.0 - reach) * reach / point
    c = q**2 * float((weights * (1.0 - reach) ** 2).sum())
    inverse, sides, inner = _inverse_of_ranks(diagonal, v, c)
    taken = float(np.sum(inner * (sides.T @ gram @ sides)))
    return float(gram.diagonal() @ inverse) - taken


# ---------------------------------------------------------------------------- protocols

Sets: TypeAlias = NDArray[np.bool_]

MOST_OUTPUTS = 5_000
"""Outputs that a protocol may have to be a channel here: a second each."""

RESPONSE, SELECTION = "randomised response", "subset selection"
RAPPOR, OUE = "unary encoding (RAPPOR)", "unary encoding (OUE)"
HADAMARD = "Hadamard response"


@dataclass(frozen=True)
class Protocol:
    """The verified channel of a protocol, and the seconds it took."""

    name: str
    rounded: Rounded
    seconds: float


def are_compared(joint: Joint, notion: Notion) -> bool:
    """Whether protocols belong beside a design: the column itself, under LDP."""
    limits = notion.limits
    if not isinstance(limits, LiftLimits) or not joint.is_of_itself:
        return False
    has_lifts = math.isfinite(limits.lower) or math.isfinite(limits.upper)
    return math.isfinite(limits.ratio) and not has_lifts and not limits.symbol_budgets


def protocols(
    joint: Joint, notion: Notion, objective: object
) -> tuple[list[Protocol], list[str]]:
    """The channels of all protocols with few outputs, and the reason for each other one."""
    rules = table_rules(joint, notion)
    k = len(joint.useful)
    factor = math.exp(notion.limits.loosest.ratio)
    size = _best_size(k, factor)
    root = math.sqrt(factor)
    unary: dict[str, tuple[float, float]] = {
        RAPPOR: (root / (1.0 + root), 1.0 / (1.0 + root)),
        OUE: (0.5, 1.0 / (1.0 + factor)),
    }
    outputs = {
        RESPONSE: k,
        SELECTION: math.comb(k, size),
        RAPPOR: 1 << k,
        OUE: 1 << k,
        HADAMARD: 1 << k.bit_length(),
    }
    made: dict[str, Callable[[], Array]] = {
        RESPONSE: lambda: _of_sets(np.eye(k, dtype=np.bool_), factor),
        SELECTION: lambda: _of_sets(_sets_of(k, size), factor),
        RAPPOR: lambda: _of_bits(k, *unary[RAPPOR]),
        OUE: lambda: _of_bits(k, *unary[OUE]),
        HADAMARD: lambda: _of_sets(_hadamard(k), factor),
    }
    found: list[Protocol] = []
    remarks: list[str] = []
    for name, count in outputs.items():
        if count > MOST_OUTPUTS:
            remark = f"{name} has {count:,} outputs, too many to list them"
            if name in unary and objective == FREQUENCIES:
                variance = about(_own_variance(joint.p_x, *unary[name]))
                remark += f"; N x variance of its own estimates is {variance}"
            remarks.append(remark)
            continue
        started = time.process_time()
        try:
            rounded = _verified(made[name](), rules)
        except SolverFailure as error:
            remarks.append(f"{name}: {error}")
            continue
        found.append(Protocol(name, rounded, time.process_time() - started))
    return found, remarks


def _verified(columns: Array, rules: Rules) -> Rounded:
    """The channel P(y|x), (k, outputs), in integers."""
    masses = rules.joint.p_x @ columns
    posteriors = (columns * rules.joint.p_x[:, None] / masses).T
    return rules.rounded(masses, Points.from_dense(posteriors))


def _best_size(k: int, factor: float) -> int:
    """The size of sets with the least variance of frequencies: one of two near k / (1 + e)."""
    below = max(1, math.floor(k / (1.0 + factor)))

    def variance(size: int) -> float:
        # Ye and Barg 2018, eq. (13), up to terms that no size changes.
        own = size * factor / (size * factor + k - size)
        other = own * (size - 1) / (k - 1) + (1.0 - own) * size / (k - 1)
        return other * (1.0 - other) / (own - other) ** 2

    return min((below, min(below + 1, k - 1)), key=variance)


def _sets_of(k: int, size: int) -> Sets:
    """All sets of one size, (sets, k) of bool."""
    chosen = np.array(list(combinations(range(k), size)))
    sets = np.zeros((len(chosen), k), dtype=np.bool_)
    np.put_along_axis(sets, chosen, values=True, axis=1)
    return sets


def _hadamard(k: int) -> Sets:
    """The sets of values, (outputs, k), whose row of the Hadamard matrix is positive there."""
    signs = np.ones((1, 1))
    while len(signs) <= k:
        signs = np.block([[signs, signs], [signs, -signs]])
    return signs[1 : k + 1].T > 0.0


def _of_sets(sets: Sets, factor: float) -> Array:
    """P(y|x), (k, sets), larger by the factor for the values in a set."""
    weights = np.where(sets.T, factor, 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


def _of_bits(k: int, own: float, other: float) -> Array:
    """P(y|x), (k, 2^k): a bit for each value, all drawn for themselves."""
    is_set = (np.arange(1 << k)[:, None] >> np.arange(k)) & 1 == 1
    of_others = np.where(is_set, other, 1.0 - other).prod(axis=1)
    ratio = np.where(is_set, own / other, (1.0 - own) / (1.0 - other))
    return ratio.T * of_others


def _own_variance(p_x: Array, own: float, other: float) -> float:
    """N times the summed variance of the estimates (bit - q) / (p - q)."""
    rate = p_x * own + (1.0 - p_x) * other
    return float((rate * (1.0 - rate)).sum()) / (own - other) ** 2
