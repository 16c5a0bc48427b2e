"""Are the frequencies of a released column a plausible draw of the channel? Exact tests of counts.

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

*The verdict.* What is known besides the file decides which test there is:

- With the original symbols the counts of the labels of each symbol are multinomial, and the tests
  are exact (`check_pairs`).
- Without them the frequencies of the labels are compared with those that the channel's own table
  predicts (`check_table`).
- For data of another origin they are compared with everything that some frequencies of the symbols
  could give (`check_any_data`).

The last two are conservative. Records are assumed to be drawn independently.

For example, a channel gives A for a with 0.9, and for b with 0.2. Of 1,000 records of a, 850 got A:
`check_pairs` finds that implausible. Of 1,000 records of unknown symbols `check_any_data` accepts
850, since a mixture of a and b explains it, and refuses 990, since none does.

Every verdict combines two tests: each symbol or label by itself, which detects a large deviation
somewhere, and all together, which detects small ones everywhere. Each of the two runs at half the
level, so a faithful release is called implausible with at most the probability `level`. To run at
half the level is to double the p-value: hence the factors 2.0 below.

`ReleaseCheck` is the verdict on a whole file: a `FrequencyTest`, and every `Finding` of something
impossible.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.likelihood import maximum_likelihood
from mechdesign.analysis.linear import Array
from mechdesign.core.arguments import number
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError

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


# ----------------------------------------------------------------------------- checking

LEVEL = 0.001
"""Default probability of a false alarm about a faithful release: one in a thousand nightly jobs."""

PERSON = "person"
"""What a check counts where a person has several records."""

PAIR = "pair"
"""Kind of a finding: a label that the channel never gives for the symbol of its record."""

TABLE_NOTICE = (
    "without the original the frequencies are compared with those that the channel's "
    "own table predicts; data of another origin may differ from them (--any-data)"
)
PUBLIC_NOTICE = (
    "a public channel carries no table, so there are no expected frequencies"
)


@dataclass(frozen=True)
class Suspect:
    """A symbol or label with implausible counts, its p-value corrected for the number of tests."""

    name: str
    records: int
    p_value: float


@dataclass(frozen=True)
class FrequencyTest:
    """The verdict on frequencies.

    Attributes
    ----------
    against : {"originals", "table", "any data"}
        What the frequencies were compared with.
    p_value : float
    level : float
        Probability of a false alarm.
    suspects : tuple of Suspect
        Symbols or labels that are implausible by themselves, the least plausible first.
    records : int
    methods : dict of str to int
        How often each kind of test was made.
    """

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
    """Something in a released file that the channel and the job cannot have produced."""

    kind: str
    text: str
    records: int = 0


@dataclass(frozen=True, repr=False)
class ReleaseCheck(Displayed):
    """The verdict on a released file.

    It is plausible if there are no findings and the frequencies are plausible. `also` is a second
    test, for information. `unit` is what was counted: "record", or "person" where a person has
    several records.
    """

    records: int
    findings: tuple[Finding, ...]
    frequencies: FrequencyTest
    also: FrequencyTest | None
    notices: tuple[str, ...]
    unit: str = "record"

    def __repr__(self) -> str:
        verdict = "plausible" if self.plausible else "NOT PLAUSIBLE"
        units = "people" if self.unit == PERSON else "records"
        size = f"{self.records:,} {self.unit if self.records == 1 else units}"
        plural = "" if len(self.findings) == 1 else "s"
        found = f"{len(self.findings):,} finding{plural}"
        return f"ReleaseCheck({verdict}, {size}, {found})"

    @property
    def plausible(self) -> bool:
        """Whether nothing is impossible and the frequencies are plausible."""
        return not self.findings and self.frequencies.plausible


def check_pairs(
    symbols: Sequence[str], matrix: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test the labels of the records of each symbol against the row of the channel.

    The symbols' tests are independent. They are combined twice, each time at half the level: by
    Fisher's sum of logarithms over all of them (which detects small deviations everywhere) and by
    Holm's correction (which detects a large one somewhere).

    Parameters
    ----------
    symbols : sequence of str
        Names of the rows.
    matrix, counts : (symbols, labels) arrays
        Probabilities of the channel, and records.
    """
    impossible = False
    rows: list[tuple[str, Array, Counts]] = []
    for name, row, of_symbol in zip(symbols, matrix, counts, strict=True):
        # A label of probability zero decides the verdict. The others are tested without it, so that
        # the suspects are still named.
        possible = row > 0.0
        if of_symbol[~possible].any():
            impossible = True
        rows.append((name, row[possible], of_symbol[possible]))
    test = check_rows_of(rows, level)
    # What has probability zero is no matter of a level.
    if impossible:
        test = replace(test, p_value=SMALLEST)
    return replace(test, records=int(counts.sum()))


def check_rows_of(
    rows: Iterable[tuple[str, Array, Counts]], level: float = LEVEL
) -> FrequencyTest:
    """As `check_pairs`, for rows of possible labels alone.

    Parameters
    ----------
    rows : iterable of (name, probabilities, counts)
        For each symbol its positive probabilities, and the records of these labels.
    """
    names: list[str] = []
    records: list[int] = []
    parts: list[Part] = []
    total = 0
    for name, row, of_symbol in rows:
        total += int(of_symbol.sum())
        # A row with one possible label leaves nothing to chance.
        if of_symbol.any() and len(row) > 1:
            # The entries of a row may miss 1 by the rounding of doubles.
            names.append(name)
            records.append(int(of_symbol.sum()))
            parts.append(multinomial_test(of_symbol, row / row.sum()))
    # The empty array is for no parts at all.
    pieces = np.concatenate([np.empty(0), *(part.pieces for part in parts)])
    together = 2.0 * fisher(pieces)
    adjusted = holm([2.0 * part.p_value for part in parts])
    overall = min(1.0, together, *adjusted)
    suspects: list[Suspect] = []
    for name, count, p in zip(names, records, adjusted, strict=True):
        suspects.append(Suspect(name, count, p))
    methods = Counter(part.method for part in parts)
    whole = np.array([total])
    return _verdict("originals", overall, level, suspects, whole, dict(methods))


def check_table(
    labels: Sequence[str], expected: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test the frequencies of the labels against those that the channel's table predicts.

    Valid if the released records are those of the table, or any records with its frequencies, or an
    independent sample of a population with its frequencies. Each label is tested alone (Hoeffding's
    bound, Holm) and all together (relative entropy), each time at half the level.

    `expected` and `counts` have the shape (labels,).
    """
    # One share is expected of each label, so both ends are the same.
    ends = (expected, expected)
    divergence = _divergence(counts, expected)
    return _label_test("table", labels, counts, ends, divergence, level)


def check_any_data(
    labels: Sequence[str], matrix: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test whether any frequencies of the symbols at all can explain those of the labels.

    The expected shares of the labels form the convex hull of the rows of the channel. The relative
    entropy to the nearest point of the hull is at most that to the true one, so its bound is valid
    whatever the data were; it is reduced by the certified deficit of the fit. Each label's share
    must lie between its smallest and largest probability. This is weaker than a test against the
    originals: for a channel that can give any frequencies (a permutation, say) it detects nothing.
    """
    divergence = 0.0
    if counts.any():
        # The mixture of largest likelihood is the one of least relative entropy.
        fit = maximum_likelihood(matrix, counts)
        nearest = _divergence(counts, fit.frequencies @ matrix)
        divergence = max(0.0, nearest - fit.deficit)
    # Whatever the frequencies, a label's probability is a mean of its column of the channel.
    ends = (matrix.min(axis=0), matrix.max(axis=0))
    return _label_test("any data", labels, counts, ends, divergence, level)


def _label_test(
    against: str,
    labels: Sequence[str],
    counts: Counts,
    ends: tuple[Array, Array],
    divergence: float,
    level: float,
) -> FrequencyTest:
    """Test the shares of the labels against the ends of what is expected, one by one and together.

    `divergence` is N times the relative entropy (nats) of all shares to the nearest expected ones.
    """
    records = int(counts.sum())
    least, most = ends
    p_values: list[float] = []
    for count, low, high in zip(
        counts.tolist(), least.tolist(), most.tolist(), strict=True
    ):
        p_values.append(2.0 * share_p_value(count, records, low, high))
    # Corrected for the number of labels.
    adjusted = holm(p_values)
    together = 2.0 * divergence_p_value(divergence, len(labels))
    suspects: list[Suspect] = []
    for label, count, p in zip(labels, counts.tolist(), adjusted, strict=True):
        suspects.append(Suspect(label, count, p))
    methods = {"Hoeffding bounds": len(labels), "relative entropy bound": 1}
    overall = min(1.0, together, *adjusted)
    return _verdict(against, overall, level, suspects, counts, methods)


def _divergence(counts: Counts, expected: Array) -> float:
    """N times the relative entropy of the shares of `counts` to `expected`, in nats."""
    from scipy.special import rel_entr

    # It is never negative, but a sum of rounded terms can be.
    return max(0.0, float(rel_entr(counts, counts.sum() * expected).sum()))


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
    # A tail that is too small for a double is not zero: anything can happen by chance.
    implausible = [
        replace(suspect, p_value=max(suspect.p_value, SMALLEST))
        for suspect in suspects
        if suspect.p_value <= level
    ]
    implausible.sort(key=lambda suspect: suspect.p_value)
    return FrequencyTest(
        against=against,
        p_value=max(p, SMALLEST),
        level=level,
        suspects=tuple(implausible),
        records=int(counts.sum()),
        methods=methods,
    )


def check_chance(level: float) -> float:
    """The probability of a false alarm as a float; InputError outside of (0, 0.5)."""
    value = number("level", level, "above 0 and below 0.5, such as 0.001")
    if not 0.0 < value < 0.5:
        raise InputError(
            f"the chance of a false alarm ({value:g}) must be above 0 and below 0.5, such as 0.001"
        )
    return value
