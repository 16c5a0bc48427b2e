"""Is a released column a plausible draw of a channel? Impossible pairs, and frequencies against expectation.

With the original symbols the counts of the labels of each symbol are multinomial, and the tests are exact. Without them
the frequencies of the labels are compared with the table's, or, for data of another origin, with all that any
frequencies of the symbols can give; these tests are conservative. Records are taken to be drawn independently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.checking_statistics import (
    SMALLEST,
    Part,
    chi_square_tail,
    divergence_p_value,
    holm,
    multinomial_test,
    share_p_value,
)
from mechdesign.errors import InputError
from mechdesign.estimation_ml import maximum_likelihood

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

LEVEL = 0.001
"""Default chance that a faithful release is called implausible: one in a thousand nightly jobs."""


@dataclass(frozen=True)
class Suspect:
    """A symbol or label whose counts are implausible on their own, after correction for looking at all of them.

    Parameters
    ----------
    name : str
        Of the symbol (with the original at hand) or of the label.
    records : int
    p_value : float
        Adjusted (Holm).
    """

    name: str
    records: int
    p_value: float


@dataclass(frozen=True)
class FrequencyTest:
    """The verdict on frequencies.

    Parameters
    ----------
    against : 'originals', 'table' or 'any data'
        What the released frequencies were compared with.
    p_value : float
        Valid: under the hypothesis at most a with a chance of at most a.
    level : float
    suspects : tuple of Suspect
        Worst first; can be empty although the test as a whole fails.
    records : int
    methods : mapping of method to the number of tests
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
    """Something in a released file that the channel and the job cannot have done.

    Parameters
    ----------
    kind : str
        ``label``, ``pair``, ``identity``, ``rows``, ``columns``, ``cells`` or ``private column``.
    text : str
        One sentence with the first place.
    records : int
        Records that it concerns, as far as counted; 0 where it concerns the file.
    """

    kind: str
    text: str
    records: int = 0


@dataclass(frozen=True)
class ReleaseCheck:
    """What was found in a released file.

    Parameters
    ----------
    records : int
    findings : tuple of Finding
        What the channel and the job cannot have done; empty in a faithful release.
    frequencies : FrequencyTest
        The test that counts for the verdict.
    also : FrequencyTest or None
        Without the original and with the channel's table: the test that allows data of another origin.
    notices : tuple of str
        What could not be checked, and why.
    """

    records: int
    findings: tuple[Finding, ...]
    frequencies: FrequencyTest
    also: FrequencyTest | None
    notices: tuple[str, ...]

    @property
    def plausible(self) -> bool:
        """Whether nothing is impossible and the frequencies are plausible."""
        return not self.findings and self.frequencies.plausible


def check_level(level: float) -> float:
    """`level` if it is a probability strictly between 0 and 1/2, else InputError."""
    if not 0.0 < level < 0.5:
        raise InputError(
            f"the chance of a false alarm ({level:g}) must be above 0 and below 0.5, such as 0.001"
        )
    return level


def check_pairs(symbols: Sequence[str], matrix: Array, counts: Counts, level: float = LEVEL) -> FrequencyTest:
    """Test the labels of the records of each symbol against the row of the channel.

    The symbols' tests are independent. They are combined twice, each time at half the level: by Fisher's sum of
    logarithms over all of them (small deviations everywhere) and by Holm's correction (a large one somewhere).

    Parameters
    ----------
    symbols : sequence of str
    matrix : (|X|, |Y|) array
        P(y|x).
    counts : (|X|, |Y|) integer array
        Records with symbol x and label y.
    level : float

    Raises
    ------
    InputError
        If the level is out of range.
    """
    check_level(level)
    methods: dict[str, int] = {}
    parts: list[tuple[str, int, Part]] = []
    impossible = False
    for name, row, seen in zip(symbols, matrix, counts, strict=True):
        records, possible = int(seen.sum()), row > 0.0
        if records == 0:
            continue
        impossible = impossible or bool(seen[~possible].any())
        if seen[possible].any() and possible.sum() > 1:
            part = multinomial_test(seen[possible], row[possible] / row[possible].sum())
            parts.append((name, records, part))
            methods[part.method] = methods.get(part.method, 0) + 1
    together = chi_square_tail(sum(p.fisher for *_, p in parts), sum(p.degrees for *_, p in parts))
    adjusted = holm([2.0 * part.p_value for *_, part in parts])
    overall = min(1.0, 2.0 * together, *adjusted) if parts else 1.0
    suspects = [Suspect(name, n, p) for (name, n, _), p in zip(parts, adjusted, strict=True) if p <= level]
    return FrequencyTest(
        "originals",
        SMALLEST if impossible else max(overall, SMALLEST),
        level,
        tuple(sorted(suspects, key=lambda suspect: suspect.p_value)),
        int(counts.sum()),
        methods,
    )


def check_table(
    labels: Sequence[str], expected: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test the frequencies of the labels against those that the channel's table predicts.

    Valid if the released records are those of the table, or any records with its frequencies, or an independent sample
    of a population with its frequencies. Each label alone (Hoeffding's bound, Holm) and all together (relative
    entropy), each at half the level.

    Parameters
    ----------
    labels : sequence of str
    expected : (|Y|,) array
        P(y) under the table.
    counts : (|Y|,) integer array
    level : float

    Raises
    ------
    InputError
        If the level is out of range.
    """
    check_level(level)
    divergence = _divergence(counts, expected)
    return _shares("table", labels, counts, expected, expected, divergence, level)


def check_any_data(
    labels: Sequence[str], matrix: Array, counts: Counts, level: float = LEVEL
) -> FrequencyTest:
    """Test whether any frequencies of the symbols at all can explain those of the labels.

    The expected shares of the labels form the convex hull of the rows of the channel. The relative entropy to the
    nearest point of the hull is at most that to the true one, so its bound is valid whatever the data were; it is
    reduced by the certified deficit of the fit. Each label's share must lie between its smallest and largest
    probability. This sees less than a test against the originals: for a channel that can give any frequencies (a
    permutation, say) nothing at all.

    Parameters
    ----------
    labels : sequence of str
    matrix : (|X|, |Y|) array
    counts : (|Y|,) integer array
    level : float

    Raises
    ------
    InputError
        If the level is out of range.
    """
    check_level(level)
    divergence = 0.0
    if counts.any():
        fit = maximum_likelihood(matrix, counts)
        divergence = max(0.0, _divergence(counts, fit.frequencies @ matrix) - fit.deficit)
    return _shares("any data", labels, counts, matrix.min(axis=0), matrix.max(axis=0), divergence, level)


def _divergence(counts: Counts, expected: Array) -> float:
    """N times the relative entropy of the shares of `counts` to `expected`, in nats."""
    seen, n = counts > 0, int(counts.sum())
    if (expected[seen] <= 0.0).any():
        return math.inf
    return max(0.0, float((counts[seen] * np.log(counts[seen] / (n * expected[seen]))).sum()))


def _shares(
    against: str,
    labels: Sequence[str],
    counts: Counts,
    low: Array,
    high: Array,
    divergence: float,
    level: float,
) -> FrequencyTest:
    n = int(counts.sum())
    single = [
        share_p_value(int(count), n, float(least), float(most))
        for count, least, most in zip(counts, low, high, strict=True)
    ]
    adjusted = holm([2.0 * p for p in single])
    together = 2.0 * divergence_p_value(divergence, len(labels))
    suspects = [
        Suspect(label, int(count), p)
        for label, count, p in zip(labels, counts, adjusted, strict=True)
        if p <= level
    ]
    return FrequencyTest(
        against,
        max(min(1.0, together, *adjusted), SMALLEST),
        level,
        tuple(sorted(suspects, key=lambda suspect: suspect.p_value)),
        n,
        {"Hoeffding bounds": len(labels), "relative entropy bound": 1},
    )
