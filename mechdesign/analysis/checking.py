"""The verdict on the frequencies of a released column: are they a plausible draw of the channel?

With the original symbols the counts of the labels of each symbol are multinomial, and the tests are
exact. Without them the frequencies of the labels are compared with those of the table or, for data
of another origin, with everything that some frequencies of the symbols could give; these tests are
conservative. Records are assumed to be drawn independently. The p-values are those of `p_values`,
valid whatever the sample size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Suspect:
    """A symbol or label with implausible counts, its p-value corrected for the number of tests."""

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
    """Something in a released file that the channel and the job cannot have produced."""

    kind: str
    text: str
    records: int = 0


@dataclass(frozen=True, repr=False)
class ReleaseCheck(Displayed):
    """The verdict on a released file.

    It is plausible if there are no findings and the frequencies are plausible. `also` is a second
    test, for information.
    """

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
    """The probability of a false alarm as a float; InputError outside of (0, 0.5)."""
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
    Fisher's sum of logarithms over all of them (which detects small deviations everywhere) and by
    Holm's correction (which detects a large one somewhere).
    """
    methods: dict[str, int] = {}
    tested: list[tuple[str, int]] = []
    parts: list[Part] = []
    impossible = False
    for name, row, of_symbol in zip(symbols, matrix, counts, strict=True):
        records = int(of_symbol.sum())
        if records == 0:
            continue
        # An impossible label decides the verdict. The others are tested as the row given them.
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
    independent sample of a population with its frequencies. Each label is tested alone (Hoeffding's
    bound, Holm) and all together (relative entropy), each time at half the level.
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
    must lie between its smallest and largest probability. This is weaker than a test against the
    originals: for a channel that can give any frequencies (a permutation, say) it detects nothing.
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
    """Test the shares of the labels against the ends of what is expected, one by one and together.

    `nats` is the divergence of all shares from the nearest expected ones.
    """
    records = int(counts.sum())
    least, most = ends
    limits = zip(counts.tolist(), least.tolist(), most.tolist(), strict=True)
    # Doubled, because this is one of two tests.
    p_values = [
        2.0 * share_p_value(count, records, low, high) for count, low, high in limits
    ]
    adjusted = holm(p_values)
    together = 2.0 * divergence_p_value(nats, len(labels))
    suspects = [
        Suspect(label, int(count), p)
        for label, count, p in zip(labels, counts, adjusted, strict=True)
    ]
    methods = {"Hoeffding bounds": len(labels), "relative entropy bound": 1}
    overall = min(1.0, together, *adjusted)
    return _verdict(against, overall, level, suspects, counts, methods)
