"""Is a released column a plausible draw of a channel? Impossible pairs, and frequencies against
expectation.

With the original symbols the counts of the labels of each symbol are multinomial, and the tests are
exact. Without them the frequencies of the labels are compared with the table's or, for data of
another origin, with all that any frequencies of the symbols can give; these tests are conservative.
Records are taken to be drawn independently.

Every p-value is valid whatever the sample size: under the hypothesis the chance that it is at most
a is at most a, for every a (up to double rounding). Chi-square approximations are not: at the small
levels that a multiple test needs, their tails are too light where expected counts are small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.likelihood import Array, maximum_likelihood
from mechdesign.core.arguments import number
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError

Counts = NDArray[np.int64]

MOST_OUTCOMES = 5_000
"""Largest number of outcomes that the exact multinomial test enumerates, some milliseconds of work.
"""

SPLIT_FROM = 40.0
"""Smallest expected count of labels that the tree of binomials splits further: p-values of few
counts are coarse, and would dilute the sum. Each label is tested alone anyway.
"""

TIE = 1e-9
"""Likelihood ratios this close, relative to their size, count as equal, and so as at least as
extreme.
"""

SMALLEST = 1e-300
"""p-values below are reported as this: the logarithm stays finite."""


@dataclass(frozen=True)
class Part:
    """A test of one multinomial, and the p-values of its independent pieces, for combination with
    others.
    """

    p_value: float
    pieces: Array
    method: str


def multinomial_test(counts: Counts, probabilities: Array) -> Part:
    """Test ``counts ~ Multinomial(sum counts, probabilities)``.

    All outcomes are enumerated where there are few, ordered by their likelihood ratio. Else the
    multinomial is taken apart into a tree of conditional binomials, whose exact p-values are valid
    given all above them, so that Fisher's sum of their logarithms is valid, too; and each label is
    tested alone (Bonferroni), which sees a single odd one.
    """
    n = int(counts.sum())
    k = len(counts)
    if n == 0 or k == 1:
        return Part(1.0, np.empty(0), "exact multinomial")
    if math.comb(n + k - 1, k - 1) <= MOST_OUTCOMES:
        p = enumerated_test(counts, probabilities)
        return Part(p, np.array([p]), "exact multinomial")
    pieces = tree_p_values(counts, probabilities)
    single = float(binomial_p_values(counts, np.full(k, n), probabilities).min()) * k
    return Part(min(1.0, 2.0 * min(fisher(pieces), single)), pieces, "exact binomials")


def fisher(pieces: Array) -> float:
    """The p-value of independent p-values together, by the sum of their logarithms; 1 of none."""
    from scipy.special import chdtrc

    if not pieces.size:
        return 1.0
    statistic = float(-2.0 * np.log(np.maximum(pieces, SMALLEST)).sum())
    return float(chdtrc(2 * len(pieces), statistic))


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
    """All k-tuples of non-negative integers that sum to n."""
    bars = np.array(
        list(combinations(range(n + k - 1), k - 1)), dtype=np.int64
    ).reshape(-1, k - 1)
    ends = np.column_stack(
        [np.full(len(bars), -1), bars, np.full(len(bars), n + k - 1)]
    )
    return (np.diff(ends, axis=1) - 1).astype(np.float64)


def binomial_p_values(counts: Counts, trials: Counts, probabilities: Array) -> Array:
    """Exact two-sided p-values of binomial counts: twice the smaller tail, at most 1."""
    from scipy.stats import binom

    p = np.clip(probabilities, 0.0, 1.0)
    lower = binom.cdf(counts, trials, p)
    upper = binom.sf(counts - 1, trials, p)
    return np.minimum(1.0, 2.0 * np.minimum(lower, upper))


def tree_p_values(counts: Counts, probabilities: Array) -> Array:
    """p-values of the binomials into which a multinomial falls apart, halving the mass at each
    step.

    Labels that are rare together are not split. The number of values depends on the expected counts
    alone.
    """
    order = np.argsort(-probabilities, kind="stable")
    below = np.concatenate([[0], np.cumsum(counts[order])])
    mass = np.concatenate([[0.0], np.cumsum(probabilities[order])])
    hits = list[int]()
    trials = list[int]()
    chances = list[float]()
    spans = [(0, len(counts))]
    records = int(below[-1])
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
    """Adjusted p-values (Holm 1979): rejecting those at most a keeps the chance of any false
    rejection at most a.
    """
    values = np.asarray(p_values)
    order = np.argsort(values, kind="stable")
    left = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, left * values[order]))
    return adjusted.tolist()


def share_p_value(count: int, records: int, low: float, high: float) -> float:
    """Test that a label's share is expected to lie in [low, high], for records that may differ from
    each other.

    The count of a label over independent records with chances of mean p has lighter tails than the
    binomial, one count or more away from its mean (Hoeffding 1956, Annals of Mathematical
    Statistics 27, theorem 4); nearer than that the p-value is 1.
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

    The moment generating function of N KL is at most that of a gamma variable of shape
    ``labels - 1`` (Agrawal 2020, IEEE Transactions on Information Theory 66), so the tail is at
    most ``exp(-d) (e d / (labels - 1))^(labels - 1)``. That holds for records that differ from each
    other, too: with h convex, making the distributions of two records equal (their mean) never
    lowers the expectation of ``exp(sum_y h_y(count_y))``.
    """
    shape = labels - 1
    if shape == 0 or divergence <= shape:
        return 1.0
    if math.isinf(divergence):
        return SMALLEST
    return max(
        math.exp(-divergence + shape * (1.0 + math.log(divergence / shape))), SMALLEST
    )


LEVEL = 0.001
"""Default chance that a faithful release is called implausible: one in a thousand nightly jobs."""


@dataclass(frozen=True)
class Suspect:
    """A symbol or label whose counts are implausible on their own, after correction for looking at
    all of them.
    """

    name: str
    records: int
    p_value: float


@dataclass(frozen=True)
class FrequencyTest:
    """The verdict on frequencies."""

    against: str
    p_value: float
    level: float
    suspects: tuple[Suspect, ...]
    records: int
    methods: dict[str, int]

    @property
    def plausible(self) -> bool:
        """Whether the frequencies are plausible at the level."""
        return self.p_value > self.level


@dataclass(frozen=True)
class Finding:
    """Something in a released file that the channel and the job cannot have done."""

    kind: str
    text: str
    records: int = 0


@dataclass(frozen=True, repr=False)
class ReleaseCheck(Displayed):
    """What was found in a released file."""

    records: int
    findings: tuple[Finding, ...]
    frequencies: FrequencyTest
    also: FrequencyTest | None
    notices: tuple[str, ...]

    def __repr__(self) -> str:
        verdict = "plausible" if self.plausible else "NOT PLAUSIBLE"
        return f"ReleaseCheck({verdict}, {self.records:,} records, {len(self.findings):,} findings)"

    @property
    def plausible(self) -> bool:
        """Whether nothing is impossible and the frequencies are plausible."""
        return not self.findings and self.frequencies.plausible


def check_chance(level: float) -> float:
    """The chance of a false alarm as a float."""
    value = number("level", level, "above 0 and below 0.5, such as 0.001")
    if not 0.0 < value < 0.5:
        raise InputError(
            f"the chance of a false alarm ({value:g}) must be above 0 and below 0.5, such as 0.001"
        )
    return value


def check_pairs(
    symbols: Sequence[str], matrix: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test the labels of the records of each symbol against the row of the channel.

    The symbols' tests are independent. They are combined twice, each time at half the level: by
    Fisher's sum of logarithms over all of them (small deviations everywhere) and by Holm's
    correction (a large one somewhere).
    """
    methods: dict[str, int] = {}
    tested: list[tuple[str, int]] = []
    parts: list[Part] = []
    impossible = False
    for name, row, of_symbol in zip(symbols, matrix, counts, strict=True):
        records = int(of_symbol.sum())
        if records == 0:
            continue
        possible = row > 0.0
        if of_symbol[~possible].any():
            impossible = True
        if of_symbol[possible].any() and possible.sum() > 1:
            chances = row[possible] / row[possible].sum()
            part = multinomial_test(of_symbol[possible], chances)
            tested.append((name, records))
            parts.append(part)
            methods[part.method] = methods.get(part.method, 0) + 1
    together = fisher(np.concatenate([np.empty(0), *(part.pieces for part in parts)]))
    adjusted = holm([2.0 * part.p_value for part in parts])
    overall = 1.0
    if impossible:
        overall = 0.0
    elif parts:
        overall = min(1.0, 2.0 * together, *adjusted)
    suspects = [
        Suspect(name, records, p)
        for (name, records), p in zip(tested, adjusted, strict=True)
    ]
    return _verdict("originals", overall, level, suspects, counts, methods)


def _verdict(
    against: str,
    p: float,
    level: float,
    suspects: list[Suspect],
    counts: Counts,
    methods: dict[str, int],
) -> FrequencyTest:
    """The test, with those of the suspects that are implausible on their own."""
    level = check_chance(level)
    implausible = [suspect for suspect in suspects if suspect.p_value <= level]
    implausible.sort(key=lambda suspect: suspect.p_value)
    return FrequencyTest(
        against=against,
        p_value=max(p, SMALLEST),
        level=level,
        suspects=tuple(implausible),
        records=int(counts.sum()),
        methods=methods,
    )


def check_table(
    labels: Sequence[str], expected: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test the frequencies of the labels against those that the channel's table predicts.

    Valid if the released records are those of the table, or any records with its frequencies, or an
    independent sample of a population with its frequencies. Each label alone (Hoeffding's bound,
    Holm) and all together (relative entropy), each at half the level.
    """
    return _shares(
        "table",
        labels,
        counts,
        (expected, expected),
        _divergence(counts, expected),
        level,
    )


def check_any_data(
    labels: Sequence[str], matrix: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test whether any frequencies of the symbols at all can explain those of the labels.

    The expected shares of the labels form the convex hull of the rows of the channel. The relative
    entropy to the nearest point of the hull is at most that to the true one, so its bound is valid
    whatever the data were; it is reduced by the certified deficit of the fit. Each label's share
    must lie between its smallest and largest probability. This sees less than a test against the
    originals: for a channel that can give any frequencies (a permutation, say) nothing at all.
    """
    divergence = 0.0
    if counts.any():
        fit = maximum_likelihood(matrix, counts)
        nearest = _divergence(counts, fit.frequencies @ matrix)
        divergence = max(0.0, nearest - fit.deficit)
    ends = (matrix.min(axis=0), matrix.max(axis=0))
    return _shares("any data", labels, counts, ends, divergence, level)


def _divergence(counts: Counts, expected: Array) -> float:
    """N times the relative entropy of the shares of `counts` to `expected`, in nats."""
    from scipy.special import rel_entr

    return max(0.0, float(rel_entr(counts, counts.sum() * expected).sum()))


def _shares(
    against: str,
    labels: Sequence[str],
    counts: Counts,
    ends: tuple[Array, Array],
    nats: float,
    level: float,
) -> FrequencyTest:
    """Whether the shares of the labels lie between their ends, and are no more than so many nats
    from any expected.
    """
    records = int(counts.sum())
    least, most = ends
    p_values: list[float] = []
    for count, low, high in zip(
        counts.tolist(), least.tolist(), most.tolist(), strict=True
    ):
        p_values.append(2.0 * share_p_value(count, records, low, high))
    adjusted = holm(p_values)
    together = 2.0 * divergence_p_value(nats, len(labels))
    suspects = [
        Suspect(label, int(count), p)
        for label, count, p in zip(labels, counts, adjusted, strict=True)
    ]
    methods = {"Hoeffding bounds": len(labels), "relative entropy bound": 1}
    overall = min(1.0, together, *adjusted)
    return _verdict(against, overall, level, suspects, counts, methods)
