"""What counts say about the population they are a sample of: intervals for every cell, as exact rationals.

Given how many records N_s a sensitive symbol s has, its row of the table is multinomial(N_s, P(.|s)), so each
cell is binomial, and Clopper and Pearson (1934) bound P(x|s) whatever it is: an end is the p at which a binomial
tail is just as small as the share of 1 - level that the cell may spend. Bonferroni over all ends makes all bounds
true at once with probability `level` or more. The shares P(s) are bounded alike, or known, or not needed.

Ends are multiples of 2**-60, each the nearest one outside of the exact quantile; Arb balls decide which that is,
so every machine finds the same ends and an audit can compute them again.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mechdesign.balls import FIRST_BITS, precision
from mechdesign.errors import InputError
from mechdesign.exact import fraction_of, listed, quoted
from mechdesign.joint import Joint
from mechdesign.notions import LiftLimits, Notion

SCALE = 2**60
"""Denominator of the ends: finer than any count of records distinguishes, and products with channels of
denominator 2**53 stay short."""

LEAST_LEVEL = 0.5
"""Confidence below one half is no confidence: the promise would fail for most samples."""

DEFAULT_LEVEL = 0.95
"""The level at which a channel designed without one is looked at."""

SHARE_TOLERANCE = Fraction(1, 10**6)
"""Known shares may miss a sum of 1 by this much (printed ones are rounded) and are then normalised."""

METHOD = "clopper-pearson"


@dataclass(frozen=True)
class ConfidenceSet:
    """All populations that the counts do not contradict: P(x|s) and P(s) between their ends.

    Parameters
    ----------
    level : float
        The set holds the population with at least this probability over the draw of the sample.
    lower, upper : |S| tuples of |X| integers
        ``lower[s][x] <= 2**60 P(x|s) <= upper[s][x]``; the row sums of P(.|s) are 1 besides.
    share_lower, share_upper : |S| tuples of Fraction
        Ends of P(s), equal where the shares are known and 0 and 1 where nothing is said of them.
    """

    level: float
    lower: tuple[tuple[int, ...], ...]
    upper: tuple[tuple[int, ...], ...]
    share_lower: tuple[Fraction, ...]
    share_upper: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        for lower, upper in zip(self.lower, self.upper, strict=True):
            if not all(0 <= a <= b <= SCALE for a, b in zip(lower, upper, strict=True)):
                raise InputError("an interval of the confidence set has no place in [0, 1]")
            if not sum(lower) <= SCALE <= sum(upper):
                raise InputError("the intervals of a sensitive symbol hold no distribution at all")
        if not sum(self.share_lower) <= 1 <= sum(self.share_upper):
            raise InputError("the intervals of the shares hold no distribution at all")

    @property
    def shares_are_known(self) -> bool:
        """Whether P(s) was given rather than estimated or left open."""
        return self.share_lower == self.share_upper

    @property
    def shares_are_free(self) -> bool:
        """Whether nothing is said of P(s)."""
        return not any(self.share_lower) and all(end == 1 for end in self.share_upper)


def check_level(level: Any) -> float:
    """The level as a float.

    Raises
    ------
    InputError
        Unless it is a number in [0.5, 1).
    """
    if isinstance(level, bool) or not isinstance(level, numbers.Real) or not LEAST_LEVEL <= level < 1.0:
        raise InputError(
            f"the confidence level ({quoted(level)}) must be a number from {LEAST_LEVEL} up to, but not including, 1"
        )
    return float(level)


def check_shares(shares: Mapping[Any, Any], joint: Joint) -> tuple[Fraction, ...]:
    """Known P(s) in the order of the table, exactly.

    Parameters
    ----------
    shares : mapping from sensitive symbol (its text, or the tuple of a crossed one) to its share
        Decimals as text, `Decimal` or `Fraction` are exact; a float is the shortest decimal that names it.

    Raises
    ------
    InputError
        On unknown or missing symbols, a share that is no number in (0, 1], or a sum that is not 1.
    """
    names = {name: s for s, name in enumerate(joint.sensitive.names)}
    names |= {symbol: s for s, symbol in enumerate(joint.sensitive.symbols)}  # type: ignore[dict-item]
    unknown = [str(symbol) for symbol in shares if symbol not in names]
    if unknown:
        raise InputError(f"the shares name {listed(unknown)}, which the table has no records of; leave it out")
    given: dict[int, Fraction] = {}
    for symbol, share in shares.items():
        try:
            value = fraction_of(repr(share) if isinstance(share, float) else share)
        except InputError as error:
            raise InputError(f"the share of {quoted(symbol)} is not usable: {error}") from None
        if not 0 < value <= 1:
            raise InputError(f"the share of {quoted(symbol)} ({quoted(share)}) must be above 0 and at most 1")
        if names[symbol] in given:
            raise InputError(f"the share of {quoted(symbol)} is given twice")
        given[names[symbol]] = value
    missing = [name for s, name in enumerate(joint.sensitive.names) if s not in given]
    if missing:
        raise InputError(f"the shares do not name {listed(missing)}; every sensitive symbol needs its share")
    total = sum(given.values(), Fraction(0))
    if abs(total - 1) > SHARE_TOLERANCE:
        raise InputError(f"the shares sum to {float(total):.9g} and not to 1 (within {float(SHARE_TOLERANCE):g})")
    return tuple(given[s] / total for s in range(len(given)))


def needs_shares(notion: Notion) -> bool:
    """Whether the notion speaks of P(s): quotients of two rows (LDP) do not."""
    limits = notion.limits
    return not isinstance(limits, LiftLimits) or math.isfinite(limits.lower) or math.isfinite(limits.upper)


def check_counts(joint: Joint) -> None:
    """Raise InputError unless the table counts records."""
    if not joint.is_counts:
        raise InputError(
            "confidence needs counts of records: probabilities do not say how many records they come from, and "
            "weighted records are not a sample of independent ones"
        )


def confidence_set(
    joint: Joint,
    level: float = DEFAULT_LEVEL,
    *,
    shares: Mapping[Any, Any] | None = None,
    estimate_shares: bool = True,
) -> ConfidenceSet:
    """The Clopper-Pearson set of a table of counts.

    Each of its E ends may fail with probability (1 - level) / E; ends are two for every cell and, where P(s) is
    estimated, two for every sensitive symbol.

    Parameters
    ----------
    joint : Joint
        Counts of independent records of one population, its symbols fixed without looking at them.
    level : float
        In [0.5, 1), taken as the decimal that it prints as.
    shares : mapping, optional
        Known P(s) of every sensitive symbol.
    estimate_shares : bool
        False leaves P(s) open where it is not known: quotients of two rows do not need it.

    Raises
    ------
    InputError
        If the table holds no counts, or level or shares are out of range.
    """
    check_counts(joint)
    spent = 1 - Fraction(repr(check_level(level)))
    known = None if shares is None else check_shares(shares, joint)
    size, n = len(joint.counts), len(joint.counts[0])
    estimated = known is None and estimate_shares
    alpha = spent / (2 * (size * n + (size if estimated else 0)))
    rows = [_ends_of(row, alpha) for row in joint.counts]
    if known is not None:
        low = high = known
    elif estimated:
        ends = _ends_of(joint.sensitive_counts, alpha)
        low, high = (tuple(Fraction(end, SCALE) for end in side) for side in ends)
    else:
        low, high = (Fraction(0),) * size, (Fraction(1),) * size
    lower, upper = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    return ConfidenceSet(float(level), lower, upper, low, high)


def _ends_of(counts: Sequence[int], alpha: Fraction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    total = sum(counts)
    return (
        tuple(lower_end(count, total, alpha) for count in counts),
        tuple(SCALE - lower_end(total - count, total, alpha) for count in counts),
    )


@lru_cache(maxsize=65536)
def lower_end(count: int, total: int, alpha: Fraction) -> int:
    """The largest integer k with P(Bin(total, k / 2**60) >= count) <= alpha < 1/4; 0 for a count of 0.

    The upper end of the count's interval is ``2**60 - lower_end(total - count, total, alpha)``.
    """
    if count == 0:
        return 0
    low = high = _guess(count, total, alpha)
    step = 1
    while not _tail_within(low, count, total, alpha):
        high, low, step = low, max(low - step, 0), 2 * step
    step = 1
    while low == high or _tail_within(high, count, total, alpha):
        low, high, step = high, min(high + step, SCALE), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if _tail_within(middle, count, total, alpha):
            low = middle
        else:
            high = middle
    return low


def _guess(count: int, total: int, alpha: Fraction) -> int:
    """The quantile in floating point, good to some hundred units, and one Newton step, good to one."""
    from flint import arb
    from scipy.special import betaincinv

    start = float(betaincinv(count, total - count + 1, float(alpha)))
    k = min(max(round(Fraction(start) * SCALE), 1), SCALE - 1)
    with precision(FIRST_BITS):
        tail, density = _tail(k, count, total, FIRST_BITS)
        step = (arb(alpha.numerator) / alpha.denominator - tail) / density * SCALE
        near = step.floor().unique_fmpz() if step.is_finite() and abs(step) < LARGEST_STEP else None
    return min(max(k + int(near or 0), 0), SCALE - 1)


def _tail_within(k: int, count: int, total: int, alpha: Fraction) -> bool:
    """Whether P(Bin(total, k / 2**60) >= count) <= alpha, decided in balls."""
    from flint import arb

    if k in (0, SCALE):
        return k == 0
    bits = FIRST_BITS
    while bits <= MOST_BITS:
        with precision(bits):
            tail, _ = _tail(k, count, total, bits)
            bound = arb(alpha.numerator) / alpha.denominator
            if tail <= bound:
                return True
            if tail > bound:
                return False
        bits *= 2
    return False  # equal, as far as anyone can see; no for an answer only widens the set


def _tail(k: int, count: int, total: int, bits: int) -> tuple[Any, Any]:
    """Balls around P(Bin(total, p) >= count) and its derivative at p = k / 2**60, 0 < p < 1.

    The tail is its first term times a sum of falling products, summed in integers rounded down. With every
    ratio below 1 the m terms are each short by at most m units, and what follows the last is at most
    m / (1 - ratio).
    """
    from flint import arb

    p = arb(k) / SCALE
    rest = total - count
    logs = p.log() * count + (1 - p).log() * rest
    choose = arb(total + 1).lgamma() - arb(count + 1).lgamma() - arb(rest + 1).lgamma()
    first = (logs + choose).exp()
    density = first * count / p  # of the beta distribution: d tail / d p
    above, below = rest * k, (count + 1) * (SCALE - k)
    if above >= below:  # beyond the mode, where no end lies: the products rise at first
        return p.beta_lower(count, rest + 1, regularized=True), density
    unit = 1 << (bits + GUARD_BITS)
    term, total_of_terms, m = unit, 0, 0
    while term:
        total_of_terms += term
        term = term * above // below
        above -= k
        below += SCALE - k
        m += 1
    error = m * m + m * (below // (below - above) + 1)
    low = arb(total_of_terms) / unit
    return first * low.union(arb(total_of_terms + error) / unit), density


MOST_BITS = 1 << 13
"""A tail and alpha that agree to so many bits are taken to be in the wrong order."""

GUARD_BITS = 48
"""Bits beyond the precision in which terms are summed: sums of m terms are short by m^2 units or so."""

LARGEST_STEP = 2**40
"""A Newton step of more units than this is no correction of a good guess; bisection finds the end then."""
