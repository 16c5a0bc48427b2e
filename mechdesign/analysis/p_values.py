"""Exact p-values of counts: multinomials, binomials, and bounds for records that differ.

Every p-value is valid whatever the sample size: under the hypothesis the probability that it is at
most a is at most a, for every a (up to double rounding). Chi-square approximations are not: at the
small levels that a multiple test needs, their tails are too light where expected counts are small.

`multinomial_test` is for counts with known probabilities, in one of two ways:

- Few possible outcomes are enumerated (`enumerated_test`), and the p-value is the probability of
  all that are at least as extreme as the observed one. The counts (1, 3) with the probabilities
  (1/2, 1/2) have the p-value 10/16: only (2, 2) is less extreme.
- Else the multinomial is split into binomials (`tree_p_values`), each given those above it. With
  the probabilities (1/2, 1/4, 1/4) the first count is Binomial(N, 1/2), and the second is
  Binomial(N - n_1, 1/2) given the first. `fisher` joins their p-values.

`share_p_value` (one label) and `divergence_p_value` (all labels) are bounds for records that differ
from each other, of which only the mean law is known. `fisher` joins independent p-values, and
`holm` corrects several for their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.linear import Array

Counts = NDArray[np.int64]

MOST_OUTCOMES = 5_000
"""Largest number of outcomes that the exact multinomial test enumerates, within milliseconds."""

SPLIT_FROM = 40.0
"""Smallest expected count of labels that the tree of binomials splits further: p-values of few
counts are coarse, and would dilute the sum. Each label is tested alone anyway."""

TIE = 1e-9
"""Likelihood ratios this close, relative to their size, count as equal, and so as at least as
extreme."""

SMALLEST = 1e-300
"""p-values below are reported as this: the logarithm stays finite."""


@dataclass(frozen=True)
class Part:
    """A test of one multinomial, and the p-values of its independent pieces, to be combined."""

    p_value: float
    pieces: Array
    method: str


def multinomial_test(counts: Counts, probabilities: Array) -> Part:
    """Test ``counts ~ Multinomial(sum counts, probabilities)``.

    All outcomes are enumerated where there are few, ordered by their likelihood ratio. Else the
    multinomial is decomposed into a tree of conditional binomials. Their exact p-values are valid
    given all above them, so Fisher's sum of their logarithms is valid, too. Besides, each label is
    tested alone (Bonferroni), which detects a single odd one.
    """
    n = int(counts.sum())
    k = len(counts)
    if n == 0 or k == 1:
        return Part(1.0, np.empty(0), "exact multinomial")
    # The number of ways to write n as an ordered sum of k counts.
    if math.comb(n + k - 1, k - 1) <= MOST_OUTCOMES:
        p = enumerated_test(counts, probabilities)
        return Part(p, np.array([p]), "exact multinomial")
    pieces = tree_p_values(counts, probabilities)
    # Each label alone, times the number of labels (Bonferroni).
    single = float(binomial_p_values(counts, np.full(k, n), probabilities).min()) * k
    # The smaller of two tests, each at half the level.
    p = min(1.0, 2.0 * min(fisher(pieces), single))
    return Part(p, pieces, "exact binomials")


def enumerated_test(counts: Counts, probabilities: Array) -> float:
    """P(an outcome at least as far from the expectation, by likelihood ratio)."""
    from scipy.special import rel_entr
    from scipy.stats import multinomial

    n = int(counts.sum())
    outcomes = _compositions(n, len(counts))
    ratio = rel_entr(outcomes, n * probabilities).sum(axis=1)
    observed = float(rel_entr(counts, n * probabilities).sum())
    logs: Any = multinomial.logpmf(outcomes, n, probabilities)
    # Ties count as extreme, which makes the p-value larger rather than smaller.
    is_extreme = ratio >= observed - TIE * (1.0 + abs(observed))
    return min(1.0, float(np.exp(logs[is_extreme]).sum()))


def _compositions(n: int, k: int) -> Array:
    """All k-tuples of non-negative integers that sum to n: k - 1 bars between n stars."""
    places = list(combinations(range(n + k - 1), k - 1))
    bars = np.array(places, dtype=np.int64).reshape(-1, k - 1)
    # With a bar at either end the numbers are those of the stars between neighbouring bars.
    first = np.full(len(bars), -1)
    last = np.full(len(bars), n + k - 1)
    all_bars = np.column_stack([first, bars, last])
    return (np.diff(all_bars, axis=1) - 1).astype(np.float64)


def tree_p_values(counts: Counts, probabilities: Array) -> Array:
    """p-values of the conditional binomials of a multinomial, halving the mass at each step.

    Labels that are rare together are not split. The number of values depends on the expected counts
    alone, so it is no information about the counts, and the values can be combined.
    """
    # Frequent labels first. A span (low, high) of labels has below[high] - below[low] records.
    order = np.argsort(-probabilities, kind="stable")
    below = np.concatenate([[0], np.cumsum(counts[order])])
    mass = np.concatenate([[0.0], np.cumsum(probabilities[order])])
    hits: list[int] = []
    trials: list[int] = []
    chances: list[float] = []
    spans = [(0, len(counts))]
    records = int(below[-1])
    while spans:
        low, high = spans.pop()
        # Of the records in the span, those in its first half are binomial.
        # It ends where half the mass is, but both halves have a label.
        middle = int(np.searchsorted(mass, (mass[low] + mass[high]) / 2.0))
        middle = min(max(middle, low + 1), high - 1)
        hits.append(int(below[middle] - below[low]))
        trials.append(int(below[high] - below[low]))
        chances.append(float((mass[middle] - mass[low]) / (mass[high] - mass[low])))
        for first, last in ((low, middle), (middle, high)):
            if last - first > 1 and records * (mass[last] - mass[first]) >= SPLIT_FROM:
                spans.append((first, last))
    return binomial_p_values(np.array(hits), np.array(trials), np.array(chances))


def binomial_p_values(counts: Counts, trials: Counts, probabilities: Array) -> Array:
    """Exact two-sided p-values of binomial counts: twice the smaller tail, at most 1."""
    from scipy.stats import binom

    # Quotients of sums of probabilities can leave [0, 1] by rounding.
    p = np.clip(probabilities, 0.0, 1.0)
    lower = binom.cdf(counts, trials, p)
    # sf is the mass strictly above, but the observed count belongs to both tails.
    upper = binom.sf(counts - 1, trials, p)
    return np.minimum(1.0, 2.0 * np.minimum(lower, upper))


def fisher(pieces: Array) -> float:
    """The p-value of independent p-values together, by the sum of their logarithms; 1 of none."""
    from scipy.special import chdtrc

    if not pieces.size:
        return 1.0
    # For uniform p-values this is chi-square with two degrees of freedom for each. Those of counts
    # are stochastically larger, so the result is too large rather than too small.
    statistic = float(-2.0 * np.log(np.maximum(pieces, SMALLEST)).sum())
    return float(chdtrc(2 * len(pieces), statistic))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979).

    Rejecting those at most a keeps the probability of any false rejection at most a.
    """
    values = np.asarray(p_values)
    order = np.argsort(values, kind="stable")
    # The smallest value is multiplied by the number of tests, the next by one less, and so on.
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    # A hypothesis is rejected only after all with smaller p-values: none is adjusted below theirs.
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * values[order]))
    return adjusted.tolist()


def share_p_value(count: int, records: int, low: float, high: float) -> float:
    """Test that a label's expected share lies in [low, high]; records may have different laws.

    The count of a label over independent records with chances of mean p has lighter tails than the
    binomial, one count or more away from its mean (Hoeffding 1956, Annals of Mathematical
    Statistics 27, theorem 4); nearer than that the p-value is 1.
    """
    from scipy.stats import binom

    # Of all shares in [low, high] the nearest to the count makes it the least extreme.
    if count >= records * high + 1.0:
        tail = float(binom.sf(count - 1, records, min(high, 1.0)))
    elif count <= records * low - 1.0:
        tail = float(binom.cdf(count, records, max(low, 0.0)))
    else:
        return 1.0
    # Doubled, for the count may lie on either side.
    return min(1.0, 2.0 * tail)


def divergence_p_value(divergence: float, labels: int) -> float:
    """Bound on P(N KL(shares || expected shares) >= divergence), for any N and any expected shares.

    The moment generating function of N KL is at most that of a gamma variable of shape
    ``labels - 1`` (Agrawal 2020, IEEE Transactions on Information Theory 66), so the tail is at
    most ``exp(-d) (e d / (labels - 1))^(labels - 1)``. That holds for records that differ from each
    other, too: with h convex, making the distributions of two records equal (their mean) never
    lowers the expectation of ``exp(sum_y h_y(count_y))``.
    """
    shape = labels - 1
    # The bound has its maximum of 1 at d = shape, and is not valid below.
    if shape == 0 or divergence <= shape:
        return 1.0
    # A label without any expected share occurred.
    if math.isinf(divergence):
        return SMALLEST
    log_bound = -divergence + shape * (1.0 + math.log(divergence / shape))
    return max(math.exp(log_bound), SMALLEST)
