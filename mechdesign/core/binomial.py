"""Ends of binomial confidence intervals as exact rationals (Clopper and Pearson 1934); levels may depend on p.

Ends are multiples of 2**-60, each the nearest one outside of the exact quantile; balls decide which that is, so
every machine finds the same ends.
"""

# SciPy ships no types.
# pyright: reportMissingTypeStubs=false
from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from mechdesign.core.balls import FIRST_BITS, precision

SCALE = 2**60
"""Denominator of the ends: finer than any count of records distinguishes, and products with channels of
denominator 2**53 stay short."""

MOST_BITS = 1 << 13
"""A tail and alpha that agree to so many bits are taken to be in the wrong order."""

GUARD_BITS = 48
"""Bits beyond the precision in which terms are summed: sums of m terms are short by m^2 units or so."""

LEVEL_STEPS, CLOSE = 8, 1e-10
"""Most steps of the fixed point of quantile and level in floating point, and the relative move that is the last:
each adds a digit or more, and the exact step doubles them."""

NEWTON_BITS = 64
"""Precision of a step, in bits, beyond what the logarithms lose: nearly every end is decided by it."""


@lru_cache(maxsize=65536)
def lower_end(
    count: int, total: int, alpha: Fraction, slope: Fraction = Fraction(0)
) -> int:
    """The largest k with P(Bin(total, p) >= count) <= alpha + slope p at p = k / 2**60; 0 for a count of 0.

    The level is positive at 0 and below 1/4 on [0, 1]. The tail, less a linear function, is convex in p and then
    concave, below 0 at 0 and above it at 1: it changes its sign once, at the end. The upper end of the interval is
    ``2**60 - lower_end(total - count, total, alpha + slope, -slope)``.
    """
    if count == 0:
        return 0
    low, decided = _guess(count, total, alpha, slope)
    if decided:
        return low
    high, step = low, 1
    while not _tail_within(low, count, total, alpha, slope):
        high, low, step = low, max(low - step, 0), 2 * step
    step = 1
    while low == high or _tail_within(high, count, total, alpha, slope):
        low, high, step = high, min(high + step, SCALE), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if _tail_within(middle, count, total, alpha, slope):
            low = middle
        else:
            high = middle
    return low


def _guess(
    count: int, total: int, alpha: Fraction, slope: Fraction
) -> tuple[int, bool]:
    """The end by a Newton step from the quantile in floating point, and whether that is proven.

    The density of the tail changes by a factor e^(|t| c) at most within t of p, where c = count / p + rest / (1 - p)
    at the worst such point, so Taylor's remainder is at most c density t^2 while |t| c <= 1/2 (Cauchy's form).
    """
    from flint import arb
    from scipy.special import betaincinv

    start = count / total
    for _ in range(LEVEL_STEPS if slope else 1):
        before = start
        start = float(
            betaincinv(count, total - count + 1, float(alpha) + float(slope) * before)
        )
        if abs(start - before) <= CLOSE * start:
            break
    bits = NEWTON_BITS + total.bit_length()  # what the logarithms lose
    k = min(max(round(Fraction(start) * SCALE), 1), SCALE - 1)
    with precision(bits):
        tail, density = _tail(k, count, total, bits)
        incline = arb(slope.numerator) / slope.denominator
        excess = tail - arb(alpha.numerator) / alpha.denominator - incline * k / SCALE
        rise = density - incline
        step = (-excess / rise * SCALE).mid().floor()
        most = abs(step) + 1
        if not most < min(k, SCALE - k):  # true of no ball that is not finite
            return k, False
        curve = arb(count * SCALE) / (k - most) + arb((total - count) * SCALE) / (
            SCALE - k - most
        )

        def beside(steps: Any) -> Any:
            t = steps / SCALE
            return excess + rise * t + density * curve * t * t * arb(0, 1)

        decided = (
            rise > 0
            and curve * most / SCALE <= 0.5
            and beside(step) <= 0
            and beside(step + 1) > 0
        )
        return k + int(step.unique_fmpz()), bool(decided)


def _tail_within(
    k: int, count: int, total: int, alpha: Fraction, slope: Fraction
) -> bool:
    """Whether P(Bin(total, p) >= count) <= alpha + slope p at p = k / 2**60, decided in balls."""
    from flint import arb

    if k in (0, SCALE):
        return k == 0
    level = alpha + slope * Fraction(k, SCALE)
    bits = FIRST_BITS
    while bits <= MOST_BITS:
        with precision(bits):
            tail, _ = _tail(k, count, total, bits)
            bound = arb(level.numerator) / level.denominator
            if tail <= bound:
                return True
            if tail > bound:
                return False
        bits *= 2
    return (
        False  # equal, as far as anyone can see; no for an answer only widens the set
    )


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
