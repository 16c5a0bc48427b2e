"""Corrected theorems of the non-stochastic papers that no command needs: what the tests compare
with.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.blurring import read_epsilon
from mechdesign.nonstochastic.fibres import sumset
from mechdesign.nonstochastic.hypothesis import TestingProblem, size
from mechdesign.nonstochastic.noiseless import (
    FibreCertificate,
    certify,
    outputs_allowed,
    smallest_cell,
)
from mechdesign.nonstochastic.quantizers import Quantizer
from mechdesign.nonstochastic.queries import (
    Domain,
    IntervalDomain,
    LinearQuery,
    Query,
    identity_query,
)
from mechdesign.nonstochastic.ranges import JointRange, overlap_partition


def outputs_of_uniform(levels: int, sensitivity: Fraction, span: Fraction) -> int:
    """The corrected Theorem 8: the most cells, of `levels` equal ones, that a fibre can meet.

    ``min(q, ceil(q S / R) + 1)``; attained when fibres slide over the whole range.
    """
    if span == 0 or sensitivity == 0:
        return 1
    return min(levels, math.ceil(levels * sensitivity / span) + 1)


def most_on_a_line(table: Any) -> int:
    """The most different outputs while one individual varies, of a table with one axis for each."""
    outputs = np.asarray(table)
    lines = (
        np.moveaxis(outputs, axis, -1).reshape(-1, size)
        for axis, size in enumerate(outputs.shape)
    )
    return max(len(set(line)) for axis in lines for line in axis.tolist())


def has_interval_fibres(query: Query) -> bool:
    """Whether every fibre is an interval, so that the layouts "widest" and "levels" are optimal."""
    return isinstance(query, LinearQuery) and all(
        isinstance(b.domain, IntervalDomain) for b in query.blocks
    )


ROW_SUM_TOLERANCE = 1e-9
"""How far a row of conditional probabilities may be from one: what a matrix in decimals needs."""


def identifiable_bound(n_symbols: int, epsilon: object) -> float:
    """What epsilon-identifiability promises of the maximal leakage (Corollary 6), in bits.

    Sharpened to whole symbols: log2(|X| - k + 1) with k = ceil(|X| 2^-epsilon), which is at most
    the paper's log2(|X|(1 - 2^-epsilon) + 1). By `zero_error` it bounds the zero-error capacity
    too.
    """
    if n_symbols < 1:
        raise InputError(f"n_symbols ({n_symbols}) must be at least 1")
    return math.log2(n_symbols - smallest_cell(n_symbols, epsilon) + 1)


def maximin_information(joint: JointRange) -> float:
    """I*(X;Y) = log2 of the number of classes of the overlap partition; symmetric (bits)."""
    return math.log2(overlap_partition(joint)[0])


def one_shot_leakage(joint: JointRange) -> float:
    """The most that one guess always gets right: I*(X;Y), attained by `one_shot_attribute` (bits).

    The supremum of L(U -> Y) over the features U of X that every output determines (Proposition 7).
    """
    return maximin_information(joint)


def one_shot_attribute(joint: JointRange) -> dict[Hashable, int]:
    """The finest feature of X that every output determines: the class of the overlap partition."""
    _, classes = overlap_partition(joint)
    return dict(zip(joint.x_symbols, classes.tolist(), strict=True))


def stochastic_maximal_leakage(channel: ArrayLike) -> float:
    """Stochastic maximal leakage log2 sum_y max_x W(y|x) of a channel matrix (bits).

    Parameters
    ----------
    channel
        Conditional probabilities, shape (|X|, |Y|), rows are the inputs of positive probability.

    Raises
    ------
    InputError
        If it is not such a matrix.
    """
    matrix = np.asarray(channel, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            f"a channel must be a matrix with rows and columns, not of shape {matrix.shape}"
        )
    if not bool(np.isfinite(matrix).all()) or bool((matrix < 0).any()):
        raise InputError(
            "a channel must hold probabilities: finite numbers, none negative"
        )
    sums = matrix.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
        raise InputError(
            f"row {worst + 1} of the channel sums to {sums[worst]:.12g}, not to 1"
        )
    return math.log2(math.fsum(matrix.max(axis=0).tolist()))


MASS_TOLERANCE = 1e-9
"""How far probabilities may be from summing to one."""


def accuracy(originals: ArrayLike, reports: ArrayLike) -> float:
    """The largest rho for which a policy is rho-accurate on these points (Definition 4).

    Parameters
    ----------
    originals, reports
        Points x and g(x), shapes (N, n) or (N,). Distances are Euclidean.

    Returns
    -------
    float
        1 / max |x - g(x)|, inf if nothing moved.
    """
    before, after = (np.asarray(a, dtype=np.float64) for a in (originals, reports))
    if before.shape != after.shape or before.size == 0:
        raise InputError(
            f"originals and reports must have one shape, not {before.shape} and {after.shape}"
        )
    if not (bool(np.isfinite(before).all()) and bool(np.isfinite(after).all())):
        raise InputError(
            "originals and reports must be finite numbers; drop NaN and infinities"
        )
    moved = (before - after).reshape(before.shape[0], -1)
    largest = float(np.sqrt((moved**2).sum(axis=1)).max())
    return math.inf if largest == 0 else 1 / largest


def _masses(name: str, values: Iterable[float]) -> list[float]:
    masses = [float(v) for v in values]
    if not masses or any(not math.isfinite(m) or m < 0 for m in masses):
        raise InputError(
            f"{name} must hold probabilities: finite numbers, none negative"
        )
    if abs(math.fsum(masses) - 1) > MASS_TOLERANCE:
        raise InputError(f"{name} sums to {math.fsum(masses):.12g}, not to 1")
    return masses


def is_private(problem: TestingProblem[Any], epsilon: object) -> bool:
    """Whether the policy is epsilon-private, exactly."""
    wanted = read_epsilon(epsilon)
    return problem.epsilon is None or problem.epsilon >= wanted


def total_variation(null: Iterable[float], alternative: Iterable[float]) -> float:
    """TV = half the sum of |P(y|p0) - P(y|p1)| over a common list of outputs."""
    p = _masses("null", null)
    q = _masses("alternative", alternative)
    if len(p) != len(q):
        raise InputError(
            f"null and alternative must list the same outputs, not {len(p)} and {len(q)}"
        )
    return math.fsum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def best_accuracy(
    null: Iterable[float], alternative: Iterable[float], prior_null: float = 0.5
) -> float:
    """The largest P(guess = H) of any randomised test, for a prior P(p0); (1 + TV)/2 at one half.

    The proof of the paper's Theorem 3 says TV instead, which is smaller, so the theorem survives.
    """
    p = _masses("null", null)
    q = _masses("alternative", alternative)
    if len(p) != len(q):
        raise InputError(
            f"null and alternative must list the same outputs, not {len(p)} and {len(q)}"
        )
    if not 0 <= prior_null <= 1:
        raise InputError(f"prior_null ({prior_null:g}) must be between 0 and 1")
    return math.fsum(
        max(prior_null * a, (1 - prior_null) * b) for a, b in zip(p, q, strict=True)
    )


def least_accuracy(problem: TestingProblem[Any], density: float) -> float:
    """A lower bound of the best accuracy at equal priors: (1 + min(1, density |telling| / 2)) / 2.

    Theorem 3, sharpened: if both conditional densities (masses, when discrete) are at least
    `density` on their supports, then TV >= density |telling| / 2, and the accuracy is (1 + TV)/2.
    The paper's density |telling| / 2 alone is a bound for every prior, and smaller.

    Raises
    ------
    InputError
        If no probability can be at least `density` on these ranges.
    """
    largest = max(size(problem.null), size(problem.alternative))
    if not density > 0 or fraction_of(density) * largest > 1 + Fraction(MASS_TOLERANCE):
        raise InputError(
            f"density ({density:g}) must be positive and at most {float(1 / largest):g}, one over the size of "
            f"the larger range ({float(largest):g})"
        )
    return (1 + min(1.0, density * float(size(problem.telling)) / 2)) / 2


CELLS_AT_A_TIME = 1 << 22
"""Entries of the table of pairwise differences held at a time: 32 MB, and a few copies."""


@dataclass(frozen=True)
class Difference:
    """The largest symmetric difference of two conditional ranges [[Y|x]] and [[Y|x']]."""

    size: int
    pair: tuple[Hashable, Hashable]


def largest_difference(joint: JointRange) -> Difference:
    """The pair of values of X whose ranges of outputs differ most, exactly (quadratic in |X|)."""
    table = joint.incidence.astype(np.int64)
    best = Difference(0, (joint.x_symbols[0], joint.x_symbols[0]))
    block = max(1, CELLS_AT_A_TIME // joint.shape[0])
    for start in range(0, joint.shape[0], block):
        shared = (table[start : start + block] @ table.T).toarray()
        sizes = (
            joint.reverse.x_sizes[start : start + block, None]
            + joint.reverse.x_sizes[None, :]
            - 2 * shared
        )
        i, j = np.unravel_index(int(sizes.argmax()), sizes.shape)
        if sizes[i, j] > best.size:
            best = Difference(
                int(sizes[i, j]),
                (joint.x_symbols[start + int(i)], joint.x_symbols[int(j)]),
            )
    return best


def is_indistinguishable(joint: JointRange, epsilon: object) -> bool:
    """Whether every pair of values of X differs in at most 2^epsilon outputs (epsilon in bits)."""
    return largest_difference(joint).size <= outputs_allowed(epsilon)


def shift_bound(levels: int, ratio: Fraction) -> int:
    """The most outputs that can differ: floor(t) + ceil(t) - 1 with t = levels / ratio; 0 below t =
    1.
    """
    shift = Fraction(levels) / ratio
    return 0 if levels == 1 else max(math.floor(shift) + math.ceil(shift) - 1, 0)


def finite_difference(
    coefficients: Iterable[Any], domains: Sequence[Iterable[Any]], levels: int
) -> tuple[int, Difference]:
    """The exact largest difference for c.x on a product of finite domains, and whose it is.

    The quantiser has `levels` equal cells over the range of the query, the last one closed. Sums
    over the other individuals are formed as sets, so n may be large.

    Returns
    -------
    tuple
        The number of the individual (from 0), and the largest difference with its two values.

    Raises
    ------
    InputError
        On empty domains, a constant query, or sums too many to list.
    """
    weights = [fraction_of(c) for c in coefficients]
    values = [sorted({fraction_of(v) for v in domain}) for domain in domains]
    if not weights or len(weights) != len(values):
        raise InputError(
            f"give one domain for each coefficient, not {len(values)} for {len(weights)}"
        )
    for k, domain in enumerate(values):
        if not domain:
            raise InputError(
                f"domain {k + 1} is empty; a range needs at least one value"
            )
    if levels < 1:
        raise InputError(f"levels ({levels}) must be at least 1")
    terms = [[c * v for v in domain] for c, domain in zip(weights, values, strict=True)]
    scale = math.lcm(*(term.denominator for part in terms for term in part))
    whole = [[int(term * scale) for term in part] for part in terms]
    low = sum(map(min, whole))
    high = sum(map(max, whole))
    if low == high:
        raise InputError(
            "the query is constant on these domains: no individual can change it"
        )
    if levels * (high - low) >= 2**62:
        raise InputError(
            f"coefficients times {levels} levels do not fit 64-bit integers; use rounder numbers"
        )
    best = (0, Difference(0, (values[0][0], values[0][0])))
    seen: set[tuple[int, ...]] = set()
    for k, part in enumerate(whole):
        if tuple(part) in seen:
            continue
        seen.add(tuple(part))
        others = (
            sumset([(other, 1) for j, other in enumerate(whole) if j != k])
            if len(whole) > 1
            else np.zeros(1)
        )
        if others is None:
            raise InputError(
                f"the query has too many values without individual {k + 1}; use rounder numbers"
            )
        rows: list[Hashable] = []
        cells: list[int] = []
        for value, term in zip(values[k], part, strict=True):
            reached = np.unique(
                np.minimum(
                    (others.astype(np.int64) + (term - low)) * levels // (high - low),
                    levels - 1,
                )
            )
            rows.extend([value] * reached.size)
            cells.extend(reached.tolist())
        found = largest_difference(JointRange.from_columns(rows, cells))
        if found.size > best[1].size:
            best = (k, found)
    return best


def x_sets(joint: JointRange) -> list[frozenset[Hashable]]:
    """The classes of the overlap partition as sets of symbols of X."""
    n_classes, classes = overlap_partition(joint)
    members: list[set[Hashable]] = [set() for _ in range(n_classes)]
    for symbol, label in zip(joint.x_symbols, classes.tolist(), strict=True):
        members[label].add(symbol)
    return [frozenset(group) for group in members]


def certify_local(
    quantizer: Quantizer, domain: Domain | None = None
) -> FibreCertificate:
    """Local noiseless privacy: each individual's own value is quantised (Farokhi 2019, Definition
    2).

    The number of outputs is the number of cells that `domain` (default: the whole range) meets.
    """
    return certify(
        identity_query(domain or IntervalDomain(quantizer.lo, quantizer.hi)), quantizer
    )


def refine(one: Quantizer, other: Quantizer) -> Quantizer:
    """The quantiser that tells the cells of both: what releasing both amounts to."""
    if (one.lo, one.hi) != (other.lo, other.hi):
        raise InputError("two quantisers can be refined only on the same range")
    return Quantizer(
        one.lo, one.hi, tuple(sorted({*one.thresholds, *other.thresholds}))
    )


def certify_together(query: Query, quantizers: Sequence[Quantizer]) -> FibreCertificate:
    """The most outputs, exactly, when several quantisers of the same query are all released.

    Never more than the product, and for a query whose fibres are intervals at most the sum of the
    numbers less (k - 1).

    Raises
    ------
    InputError
        If there are none, or their ranges differ.
    """
    if not quantizers:
        raise InputError("give at least one quantiser")
    return certify(query, reduce(refine, quantizers))


def restrict_x(joint: JointRange, kept: Iterable[Hashable]) -> JointRange:
    """The joint range when X is known to lie in `kept`; a y with no partner left goes too.

    Raises
    ------
    InputError
        If `kept` is empty or holds a value outside the range of X.
    """
    chosen = dict.fromkeys(kept)
    for value in chosen:
        if value not in joint.x_index:
            raise InputError(f"value {quoted(value)} is not in the range of X")
    if not chosen:
        raise InputError("the restricted range is empty; keep at least one value")
    mask = np.zeros(joint.shape[0], dtype=np.bool_)
    mask[[joint.x_index[value] for value in chosen]] = True
    pairs = mask[joint.rows]
    rows = joint.rows[pairs]
    columns = joint.columns[pairs]
    new_row = np.cumsum(mask) - 1
    new_column = np.unique(columns)
    xs = [joint.x_symbols[i] for i in np.flatnonzero(mask).tolist()]
    ys = [joint.y_symbols[j] for j in new_column.tolist()]
    return JointRange.from_codes(
        xs, ys, new_row[rows], np.searchsorted(new_column, columns)
    )


def chain(joint: JointRange, following: JointRange) -> JointRange:
    """The joint range of X and Z for the Markov chain X - Y - Z, `following` being [[Y, Z]].

    Raises
    ------
    InputError
        If a y of this range is not in the first range of `following`.
    """
    missing = [y for y in joint.y_symbols if y not in following.x_index]
    if missing:
        raise InputError(
            f"value {quoted(missing[0])} of Y is not an input of the following channel"
        )
    second = restrict_x(following, joint.y_symbols)
    order = np.asarray([second.x_index[y] for y in joint.y_symbols], dtype=np.int64)
    product = (
        joint.incidence.astype(np.int64) @ second.incidence.astype(np.int64)[order]
    ).tocoo()
    return JointRange.from_codes(
        joint.x_symbols, second.y_symbols, product.row, product.col
    )


LARGEST_SUBRANGES = 16
"""Inputs whose 2^n sub-ranges are all tried: half a second."""


def subrange_leakage(joint: JointRange) -> Fraction:
    """2 to the sup of L0s(X';Y') over all non-empty sub-ranges X' of X, exact, by enumeration.

    Raises
    ------
    InputError
        If X has more than `LARGEST_SUBRANGES` values; `capacity_bounds` needs no enumeration.
    """
    n_x = joint.shape[0]
    if n_x > LARGEST_SUBRANGES:
        raise InputError(
            f"X has {n_x} values, and {LARGEST_SUBRANGES} is the most whose sub-ranges are enumerated; "
            "use capacity_bounds"
        )
    subsets = np.arange(1, 1 << n_x, dtype=np.int64)
    n_inputs = np.bitwise_count(subsets).astype(np.int64)
    fewest_x = np.full(subsets.size, n_x)
    n_outputs = np.zeros(subsets.size, dtype=np.int64)
    masks = np.zeros(joint.shape[1], dtype=np.int64)
    np.bitwise_or.at(masks, joint.columns, np.left_shift(np.int64(1), joint.rows))
    for mask, copies in zip(*np.unique(masks, return_counts=True), strict=True):
        shared = np.bitwise_count(subsets & mask).astype(np.int64)
        n_outputs += np.where(shared > 0, copies, 0)
        fewest_x = np.where(shared > 0, np.minimum(fewest_x, shared), fewest_x)
    fewest_y = np.full(subsets.size, joint.shape[1])
    for i, width in enumerate(joint.reverse.x_sizes.tolist()):
        fewest_y = np.where(subsets & (1 << i), np.minimum(fewest_y, width), fewest_y)
    best = int(np.minimum(n_inputs / fewest_x, n_outputs / fewest_y).argmax())
    return min(
        Fraction(int(n_inputs[best]), int(fewest_x[best])),
        Fraction(int(n_outputs[best]), int(fewest_y[best])),
    )
