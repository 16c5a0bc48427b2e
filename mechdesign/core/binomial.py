"""Ends of binomial confidence intervals as exact rationals (Clopper and Pearson 1934).

Ends are multiples of 2**-60, each the nearest one outside of the exact quantile; balls decide which that is, so
every machine finds the same ends.
"""

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

LARGEST_STEP = 2**40
"""A Newton step of more units than this is no correction of a good guess; bisection finds the end then."""


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
