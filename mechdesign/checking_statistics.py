"""Tests of counts that hold their level exactly, whatever the sample size.

Every p-value here is valid: under the hypothesis the chance that it is at most a is at most a, for every a (up to
double rounding). Chi-square approximations are not: with the small levels that a multiple test needs, their tails are
too light where expected counts are small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_OUTCOMES = 5_000
"""Largest number of outcomes that the exact multinomial test enumerates, some milliseconds of work."""

SPLIT_FROM = 40.0
"""Smallest expected count of labels that the tree of binomials splits further: p-values of few counts are coarse, and
would dilute the sum. Each label is tested alone anyway."""

TIE = 1e-9
"""Likelihood ratios this close, relative to their size, count as equal, and so as at least as extreme."""

SMALLEST = 1e-300
"""p-values below are reported as this: the logarithm stays finite."""


@dataclass(frozen=True)
class Part:
    """A test of one multinomial as a sum over independent pieces, for combination with others.

    Parameters
    ----------
    p_value : float
    fisher : float
        ``-2 sum log p`` of its pieces: under the hypothesis stochastically at most chi-square.
    degrees : int
        Its degrees of freedom.
    method : 'exact multinomial' or 'exact binomials'
    """

    p_value: float
    fisher: float
    degrees: int
    method: str


def multinomial_test(counts: Counts, probabilities: Array) -> Part:
    """Test ``counts ~ Multinomial(sum counts, probabilities)``.

    All outcomes are enumerated where there are few, ordered by their likelihood ratio. Else the multinomial is taken
    apart into a tree of conditional binomials, whose exact p-values are valid given all above them, so that Fisher's
    sum of their logarithms is valid, too; and each label is tested alone (Bonferroni), which sees a single odd one.

    Parameters
    ----------
    counts : (k,) integer array
    probabilities : (k,) array
        Positive, sum 1.
    """
    n, k = int(counts.sum()), len(counts)
    if n == 0 or k == 1:
        return Part(1.0, 0.0, 0, "exact multinomial")
    if math.comb(n + k - 1, k - 1) <= MOST_OUTCOMES:
        p = enumerated_test(counts, probabilities)
        return Part(p, -2.0 * math.log(max(p, SMALLEST)), 2, "exact multinomial")
    pieces = tree_p_values(counts, probabilities)
    statistic = float(-2.0 * np.log(np.maximum(pieces, SMALLEST)).sum())
    degrees = 2 * len(pieces)
    single = float(binomial_p_values(counts, np.full(k, n), probabilities).min()) * k
    return Part(
        min(1.0, 2.0 * min(chi_square_tail(statistic, degrees), single)),
        statistic,
        degrees,
        "exact binomials",
    )


def chi_square_tail(statistic: float, degrees: int) -> float:
    """P(chi-square >= statistic); 1 without degrees of freedom."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic)) if degrees else 1.0


def enumerated_test(counts: Counts, probabilities: Array) -> float:
    """P(an outcome at least as far from the expectation, by likelihood ratio), over all outcomes."""
    from scipy.special import gammaln, xlogy

    n, k = int(counts.sum()), len(counts)
    outcomes = _compositions(n, k)
    ratio = xlogy(outcomes, outcomes / (n * probabilities)).sum(axis=1)
    observed = float(xlogy(counts, counts / (n * probabilities)).sum())
    logs = gammaln(n + 1) - gammaln(outcomes + 1.0).sum(axis=1) + xlogy(outcomes, probabilities).sum(axis=1)
    return min(1.0, float(np.exp(logs[ratio >= observed - TIE * (1.0 + abs(observed))]).sum()))


def _compositions(n: int, k: int) -> Array:
    """All k-tuples of non-negative integers that sum to n."""
    from itertools import combinations

    bars = np.array(list(combinations(range(n + k - 1), k - 1)), dtype=np.int64).reshape(-1, k - 1)
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n + k - 1)])
    return (np.diff(ends, axis=1) - 1).astype(np.float64)


def binomial_p_values(counts: Counts, trials: Counts, probabilities: Array) -> Array:
    """Exact two-sided p-values of binomial counts: twice the smaller tail, at most 1."""
    from scipy.stats import binom

    p = np.clip(probabilities, 0.0, 1.0)
    lower = binom.cdf(counts, trials, p)
    upper = binom.sf(counts - 1, trials, p)
    return np.minimum(1.0, 2.0 * np.minimum(lower, upper))


def tree_p_values(counts: Counts, probabilities: Array) -> Array:
    """p-values of the binomials into which a multinomial falls apart, halving the mass at each step.

    Labels that are rare together are not split. The number of values depends on the expected counts alone.
    """
    order = np.argsort(-probabilities, kind="stable")
    below = np.concatenate([[0], np.cumsum(counts[order])])
    mass = np.concatenate([[0.0], np.cumsum(probabilities[order])])
    hits, trials, chances = list[int](), list[int](), list[float]()
    spans, records = [(0, len(counts))], int(below[-1])
    while spans:
        low, high = spans.pop()
        middle = int(np.searchsorted(mass, (mass[low] + mass[high]) / 2.0))
        middle = min(max(middle, low + 1), high - 1)
        hits.append(int(below[middle] - below[low]))
        trials.append(int(below[high] - below[low]))
        chances.append(float((mass[middle] - mass[low]) / (mass[high] - mass[low])))
        for first, last in ((low, middle), (middle, high)):
            if last - first > 1 and records * (mass[last] - mass[first]) >= SPLIT_FROM:
                spans.append((first, last))
    return binomial_p_values(np.array(hits), np.array(trials), np.array(chances))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): rejecting those at most a keeps the chance of any false rejection at most a."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def share_p_value(count: int, records: int, low: float, high: float) -> float:
    """Test that a label's share is expected to lie in [low, high], for records that may differ from each other.

    The count of a label over independent records with chances of mean p has lighter tails than the binomial,
    one count or more away from its mean (Hoeffding 1956, Annals of Mathematical Statistics 27, theorem 4); nearer than
    that the p-value is 1.
    """
    from scipy.stats import binom

    if count >= records * high + 1.0:
        tail = float(binom.sf(count - 1, records, min(high, 1.0)))
    elif count <= records * low - 1.0:
        tail = float(binom.cdf(count, records, max(low, 0.0)))
    else:
        return 1.0
    return min(1.0, 2.0 * tail)


def divergence_p_value(divergence: float, labels: int) -> float:
    """Bound on P(N KL(shares || expected shares) >= divergence), for any N and any expected shares.

    The moment generating function of N KL is at most that of a gamma variable of shape ``labels - 1`` (Agrawal 2020,
    IEEE Transactions on Information Theory 66), so the tail is at most ``exp(-d) (e d / (labels - 1))^(labels - 1)``.
    That holds for records that differ from each other, too: with h convex, making the distributions of two records
    equal (their mean) never lowers the expectation of ``exp(sum_y h_y(count_y))``.
    """
    shape = labels - 1
    if shape == 0 or divergence <= shape:
        return 1.0
    if math.isinf(divergence):
        return SMALLEST
    return max(math.exp(-divergence + shape * (1.0 + math.log(divergence / shape))), SMALLEST)
