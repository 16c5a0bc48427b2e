"""The verdict on the frequencies of a released column: are they a plausible draw of the channel?

What is known besides the file decides which test there is:

- With the original symbols the counts of the labels of each symbol are multinomial, and the tests
  are exact (`check_pairs`).
- Without them the frequencies of the labels are compared with those that the channel's own table
  predicts (`check_table`).
- For data of another origin they are compared with everything that some frequencies of the symbols
  could give (`check_any_data`).

The last two are conservative. Records are assumed to be drawn independently. The p-values are those
of `p_values`, valid whatever the sample size.

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

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.analysis.likelihood import maximum_likelihood
from mechdesign.analysis.linear import Array
from mechdesign.analysis.p_values import (
    SMALLEST,
    Counts,
    Part,
    divergence_p_value,
    fisher,
    holm,
    multinomial_test,
    share_p_value,
)
from mechdesign.core.arguments import number
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError

LEVEL = 0.001
"""Default probability of a false alarm about a faithful release: one in a thousand nightly jobs."""

PERSON = "person"
"""What a check counts where a person has several records."""

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
        return f"ReleaseCheck({verdict}, {self.records:,} {units}, {len(self.findings):,} findings)"

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


def check_chance(level: float) -> float:
    """The probability of a false alarm as a float; InputError outside of (0, 0.5)."""
    value = number("level", level, "above 0 and below 0.5, such as 0.001")
    if not 0.0 < value < 0.5:
        raise InputError(
            f"the chance of a false alarm ({value:g}) must be above 0 and below 0.5, such as 0.001"
        )
    return value
