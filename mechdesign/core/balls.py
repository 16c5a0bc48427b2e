"""Exact comparison of real numbers with doubles, by Arb ball arithmetic.

A ball is a midpoint with a radius and encloses a real number. Every function here returns a
double that is provably on one side of the number, and mostly the nearest such double.

A number is enclosed at `FIRST_BITS` bits. If both ends of the ball round to the same double, that
is the result; else the precision is doubled. For example, log2(3) is irrational and so never a
double: from some precision on no double lies in its ball, and the loop ends.

*Ends of binomial confidence intervals* are exact rationals (Clopper and Pearson 1934). The lower
end for a count of successes is the probability p at which the upper tail of the binomial
distribution equals the level. Here the level may depend on p: it is alpha + slope p. For example,
the tail of one success in two trials is 1 - (1 - p)^2, so at the level 1/20 the lower end is p = 1
- sqrt(0.95) = 0.0253.

Ends are multiples of 2**-60, each the nearest one outside the exact quantile. Every machine must
compute the same ones, so no rounding may decide. `lower_end` has three steps:

1. Newton's method in floating point gives the quantile to some ten digits (`_quantile`).
2. A Newton step or two from there in ball arithmetic give the end to all 60 bits. Taylor's
   remainder mostly proves it (`_newton_end`).
3. Where it does not, the end is bracketed and bisected (`_bisected_end`). Every comparison of tail
   and level is decided by balls around both (`_tail_within`).

The sum of a tail has as many terms as the root of its records. Beyond `SUMMED` it is an integral
instead, which takes some milliseconds for any number of records (`_integrated_tail`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]

FIRST_BITS = 128
"""Precision of the first enclosure, in bits. It doubles until a comparison is decided.

The lifts of ordinary tables and the exponentials of budgets differ long before.
"""

_precision_lock = Lock()
"""Arb's precision belongs to the process. Another thread's would widen an enclosure; it could
never make one wrong."""


@contextmanager
def precision(bits: int) -> Generator[None]:
    """Compute with balls of `bits` bits; do not nest."""
    from flint import ctx

    # The lock is not reentrant: a nested call would wait for itself.
    with _precision_lock, ctx.workprec(bits):
        yield


def double_above(ball: Callable[[], Any]) -> float:
    """The smallest double at or above a real number that is not itself a double.

    Parameters
    ----------
    ball : callable
        Encloses the number at the current precision. It is called at growing precision until
        both ends of the enclosure round up to the same double.
    """
    # The number is no double, so from some precision on its enclosure contains none either. Then
    # both ends round to the same double and the loop ends.
    bits = FIRST_BITS
    while True:
        with precision(bits):
            enclosure = ball()
            low = _rounded_up(enclosure.lower())
            high = _rounded_up(enclosure.upper())
        if enclosure.is_finite() and low == high:
            return high
        bits *= 2


def log_at_most(factor: Fraction) -> float:
    """The largest double at or below the logarithm of a rational number above 1."""
    from flint import arb, fmpq

    # The logarithm of a rational number other than 1 is transcendental (Lindemann), so it is never
    # a double.
    return -double_above(lambda: -arb(fmpq(factor.numerator, factor.denominator)).log())


def log2_above(ratio: Fraction) -> float:
    """The smallest double at or above log2 of a positive number, exact for a power of two."""
    from flint import arb

    top, bottom = ratio.as_integer_ratio()
    power = top.bit_length() - bottom.bit_length()
    # log2 of a rational number is irrational unless the number is a power of two, and only the
    # difference of the bit lengths can be its exponent.
    if ratio == Fraction(2) ** power:
        return float(power)
    return double_above(lambda: (arb(top) / bottom).log() / arb.const_log2())


LARGEST_PRODUCT = 10_000
"""Bits up to which a product is computed exactly; larger ones have thousands of digits."""


def log2_of_powers_above(powers: Iterable[tuple[int, int]]) -> float:
    """A double at or above log2 of the product of positive integers, each to the power beside it.

    It is the smallest such double up to `LARGEST_PRODUCT` bits, and beyond the sum of the
    logarithms rounded upwards.
    """
    pairs = list(powers)
    bits = Fraction(0)
    for base, exponent in pairs:
        # Doubles are added as fractions, so the sum is rounded only once, at the end.
        bits += Fraction(log2_above(Fraction(base))) * exponent
    if bits > LARGEST_PRODUCT:
        return quotient_above(*bits.as_integer_ratio())
    return log2_above(Fraction(math.prod(base**exponent for base, exponent in pairs)))


def upper(ball: Any) -> float:
    """The smallest double at or above a whole ball; ``inf`` for an unbounded ball."""
    if not ball.is_finite():
        return math.inf
    return _rounded_up(ball.upper())


def lower(ball: Any) -> float:
    """The largest double at or below a whole ball; ``-inf`` for an unbounded ball."""
    if not ball.is_finite():
        return -math.inf
    return -_rounded_up(ball.lower(), -1)


def _rounded_up(end: Any, sign: int = 1) -> float:
    """The smallest double at or above `sign` times an exact ball."""
    if not end.is_finite():
        return math.inf if sign * end > 0 else -math.inf
    mantissa, power = (int(part) for part in end.man_exp())
    mantissa *= sign
    # The end is mantissa * 2**power exactly.
    if power >= 0:
        return quotient_above(mantissa << power, 1)
    return quotient_above(mantissa, 1 << -power)


def quotient_above(numerator: int, denominator: int) -> float:
    """The smallest double at or above a quotient of integers; ``inf`` for a zero denominator."""
    if denominator == 0:
        return math.inf
    try:
        nearest = numerator / denominator  # Python rounds this correctly
    except OverflowError:
        # Nothing finite lies above a quotient beyond the largest double. Above one below all
        # doubles lies the most negative double.
        if numerator > 0:
            return math.inf
        return -math.nextafter(math.inf, 0.0)
    # The rounded quotient lies below the true one by less than one step, or not at all.
    top, bottom = nearest.as_integer_ratio()
    if top * denominator >= numerator * bottom:
        return nearest
    return math.nextafter(nearest, math.inf)


def sum_above(values: Sequence[float]) -> float:
    """The smallest double at or above a sum."""
    total = math.fsum(values)
    # fsum rounds correctly, so the sign of the remainder is exact.
    if math.isinf(total) or math.fsum((*values, -total)) <= 0.0:
        return total
    return math.nextafter(total, math.inf)


# ----------------------------------------------------------- ends of binomial intervals

SCALE = 2**60
"""Denominator of the ends. It is finer than any count of records can distinguish, and products
with channels of denominator 2**53 stay short."""

MOST_RECORDS = 10**12
"""Most records of a sample. No table of records reaches this number; larger counts are weights."""

SUMMED = 1 << 22
"""Variance of a count, in records, beyond which its tail is integrated. Around it both ways take
about two milliseconds."""

MOST_BITS = 1 << 13
"""A tail and a level that agree to this many bits are taken to be in the wrong order."""

GUARD_BITS = 48
"""Bits beyond the precision in which terms are summed.

A sum of m terms is short by about m^2 units: below the precision for up to 2^24 terms.
"""

FLOAT_STEPS = 60
"""Most Newton steps in floating point. A level takes about six."""

CLOSE = 1e-10
"""The steps in floating point end when the quantile moves by less than this share of itself."""

LAST_TERM = 1e-15
"""Terms of the tail below this share of their sum are left out. There are as many others as the
root of the records, so that at least CLOSE is kept of a million."""

LARGEST_RATIO = 0.25
"""Largest ratio of the terms of a series in an integral; that of ends beyond `SUMMED` is below."""

FEW_COUNTS = 64
"""Counts up to which one after the other is as fast."""

AT_ONCE = 1 << 15
"""Counts whose quantiles are found together; arrays of more do not fit into a cache."""

TERMS_AT_ONCE = 8
"""Terms of a sum that are added before its last one is looked at."""

BALL_STEPS = 3
"""Most Newton steps in ball arithmetic, each of which doubles the right digits."""

NEWTON_BITS = 64
"""Precision of the Newton step, in bits, beyond what the logarithms lose.

It decides nearly every end.
"""


@lru_cache(maxsize=65536)
def lower_end(
    count: int, total: int, alpha: Fraction, slope: Fraction = Fraction(0)
) -> int:
    """The largest k with P(Bin(total, p) >= count) <= alpha + slope p at p = k / 2**60.

    It is 0 for a count of 0. The level must be positive at 0 and below 1/4 on [0, 1]. The tail
    less a linear function is convex in p and then concave, negative at 0 and positive at 1.
    So it changes its sign once, at the end, and bisection is exact.

    The upper end of the interval is
    ``2**60 - lower_end(total - count, total, alpha + slope, -slope)``.
    """
    if count == 0:
        return 0
    if _is_integrated(count, total):
        quantile = _large_quantile(count, total, alpha, slope)
    else:
        quantile = _quantile(count, total, alpha, slope)
    return _proven_end(quantile, count, total, alpha, slope)


class RowOfCounts(NamedTuple):
    """Some counts of one total, whose lower ends have the level alpha + slope p."""

    counts: tuple[int, ...]
    total: int
    alpha: Fraction
    slope: Fraction


def ends_of_rows(rows: Sequence[RowOfCounts]) -> list[tuple[int, ...]]:
    """`lower_end` of each count of each row; quantiles of many rows are found together."""
    ends: list[tuple[int, ...]] = []
    start = 0
    size = 0
    for i, row in enumerate(rows):
        size += len(row.counts)
        if size >= AT_ONCE or i + 1 == len(rows):
            ends += _ends_of_batch(rows[start : i + 1], size)
            start = i + 1
            size = 0
    return ends


def _ends_of_batch(rows: Sequence[RowOfCounts], size: int) -> list[tuple[int, ...]]:
    """`ends_of_rows` of rows that have so many counts together."""
    if size <= FEW_COUNTS:
        return [
            tuple(lower_end(count, *row[1:]) for count in row.counts) for row in rows
        ]
    # The command line reads budgets with this module, and must not wait for NumPy.
    import numpy as np

    # Those of which many terms would have to be summed are found one by one.
    summed: list[tuple[int, int, float, float]] = []
    for row in rows:
        alpha = float(row.alpha)
        slope = float(row.slope)
        for count in row.counts:
            if not _is_integrated(count, row.total):
                summed.append((count, row.total, alpha, slope))
    found = iter(_quantiles(*np.array(summed, dtype=np.float64).reshape(-1, 4).T))
    ends: list[tuple[int, ...]] = []
    for row in rows:
        of_row: list[int] = []
        for count in row.counts:
            quantile = math.nan
            if not _is_integrated(count, row.total):
                quantile = float(next(found))
            if 0.0 < quantile < 1.0:
                of_row.append(_proven_end(quantile, count, *row[1:]))
            else:
                of_row.append(lower_end(count, *row[1:]))
        ends.append(tuple(of_row))
    return ends


def _is_integrated(count: int, total: int) -> bool:
    """Whether the tail of a count is an integral, and not a sum of terms."""
    return count * (total - count) > SUMMED * total


def _proven_end(
    quantile: float, count: int, total: int, alpha: Fraction, slope: Fraction
) -> int:
    """The end next to a quantile, whatever its error: it is proven, or else found by bisection."""
    # The multiple of 2**-60 next to the quantile, inside (0, 1); the product is exact.
    end = min(max(round(quantile * SCALE), 1), SCALE - 1)
    for _ in range(BALL_STEPS):
        end, proven = _newton_end(end, count, total, alpha, slope)
        if proven:
            return end
    return _bisected_end(end, count, total, alpha, slope)


def _quantile(count: int, total: int, alpha: Fraction, slope: Fraction) -> float:
    """The end in floating point, by Newton's method for log tail = log level over log p.

    The density of the beta distribution is log-concave in log p, and so is its integral, the tail.
    So at a fixed level the steps rise to the root, whatever they start from. The level of a step
    is that at the point before it.
    """
    rest = total - count
    choose = math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(rest + 1)
    # About z deviations left of the mode, where a normal tail is below exp(-z^2 / 2) / 2.
    p = count / (total + 1)
    z = math.sqrt(-2.0 * math.log(2.0 * (float(alpha) + float(slope) * p)))
    p *= math.exp(-z * math.sqrt((1.0 - p) / count))
    for _ in range(FLOAT_STEPS):
        terms = _falling_terms(count, rest, p / (1 - p))
        first = choose + count * math.log(p) + rest * math.log1p(-p)
        excess = first + math.log(terms) - math.log(float(alpha) + float(slope) * p)
        # The derivative of log tail by log p is p density / tail, and p density is count first.
        step = -excess * terms / count
        p *= math.exp(step)
        if abs(step) <= CLOSE:
            break
    return p


def _large_quantile(count: int, total: int, alpha: Fraction, slope: Fraction) -> float:
    """`_quantile` of a large count, by the inverse of the incomplete beta function."""
    from scipy.special import betaincinv  # pyright: ignore[reportMissingTypeStubs]

    p = count / (total + 1)
    for _ in range(FLOAT_STEPS):
        level = float(alpha) + float(slope) * p
        before = p
        p = float(betaincinv(count, total - count + 1, level))
        if abs(p - before) <= CLOSE * p:
            break
    return p


def _quantiles(counts: Array, totals: Array, alphas: Array, slopes: Array) -> Array:
    """`_quantile` of each count, by the same steps; no number for a count of 0."""
    import numpy as np

    rest = totals - counts
    choose = np.array(
        [
            math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(other + 1)
            for total, count, other in zip(
                totals.tolist(), counts.tolist(), rest.tolist(), strict=True
            )
        ]
    )
    with np.errstate(all="ignore"):
        p = counts / (totals + 1)
        z = np.sqrt(-2.0 * np.log(2.0 * (alphas + slopes * p)))
        p = p * np.exp(-z * np.sqrt((1.0 - p) / counts))
        for _ in range(FLOAT_STEPS):
            terms = _all_falling_terms(counts, rest, p / (1 - p))
            first = choose + counts * np.log(p) + rest * np.log1p(-p)
            level = np.log(alphas + slopes * p)
            step = -(first + np.log(terms) - level) * terms / counts
            p = p * np.exp(step)
            # Comparisons with what is no number are false.
            if not (np.abs(step) > CLOSE).any():
                break
    return p


def _all_falling_terms(counts: Array, rest: Array, odds: Array) -> Array:
    """`_falling_terms` of each count."""
    import numpy as np

    sums = np.ones(len(counts))
    # The counts whose sums go on.
    places = np.arange(len(counts))
    term = np.ones(len(counts))
    terms = np.ones(len(counts))
    k = 0
    while len(places):
        k += 1
        term = term * (odds * (rest - k + 1) / (counts + k))
        terms = terms + term
        if k % TERMS_AT_ONCE:
            continue
        goes_on = term > LAST_TERM * terms
        sums[places] = terms
        places = places[goes_on]
        term = term[goes_on]
        terms = terms[goes_on]
        counts = counts[goes_on]
        rest = rest[goes_on]
        odds = odds[goes_on]
    return sums


def _falling_terms(count: int, rest: int, odds: float) -> float:
    """P(Bin(count + rest, p) >= count) in units of its first term, for odds p / (1 - p)."""
    term = 1.0
    terms = 1.0
    k = 0
    while term > LAST_TERM * terms:
        k += 1
        term *= odds * (rest - k + 1) / (count + k)
        terms += term
    return terms


def _newton_end(
    k: int, count: int, total: int, alpha: Fraction, slope: Fraction
) -> tuple[int, bool]:
    """The end by a Newton step from k / 2**60, and whether it is proven.

    With excess(p) = tail(p) - alpha - slope p at p = k / 2**60, the end is k plus the floor of
    -2**60 excess(p) / excess'(p). It is proven where balls around the excess are at most 0 at this
    multiple of 2**-60 and above 0 at the next one.

    Within t of p the density of the tail changes by a factor of at most e^(|t| c), where
    c = count / p + (total - count) / (1 - p) at the worst such point. So Taylor's remainder is at
    most c density t^2 while |t| c <= 1/2 (Cauchy's form).
    """
    from flint import arb, ctx

    bits = NEWTON_BITS + total.bit_length()  # the logarithms lose as many bits
    # `precision`, without its generator, which takes a tenth of the time of an end.
    with _precision_lock, ctx.workprec(bits):
        # The end is the zero of excess(p) = tail(p) - alpha - slope p, whose derivative is `rise`.
        tail, density = _tail(k, count, total, bits)
        slope_ball = arb(slope.numerator) / slope.denominator
        alpha_ball = arb(alpha.numerator) / alpha.denominator
        excess = tail - alpha_ball - slope_ball * k / SCALE
        rise = density - slope_ball
        step = (-excess / rise * SCALE).mid().floor()

        # The proof compares the excess at `step` and at `step` + 1: Taylor's formula must hold
        # that far from k.
        reach = abs(step) + 1
        # This comparison is false for every ball that is not finite.
        if not reach < min(k, SCALE - k):
            return k, False
        # c of the formula above, where it is largest: both quotients at their own worst point.
        left = arb(count * SCALE) / (k - reach)
        right = arb((total - count) * SCALE) / (SCALE - k - reach)
        curvature = left + right

        def excess_after(steps: Any) -> Any:
            """A ball around the excess so many units from k."""
            t = steps / SCALE
            # arb(0, 1) is the ball [-1, 1]: the sign of the remainder is unknown.
            remainder = density * curvature * t * t * arb(0, 1)
            return excess + rise * t + remainder

        # The largest k within the level is the last one before the excess becomes positive.
        proven = (
            rise > 0
            and curvature * reach / SCALE <= 0.5
            and excess_after(step) <= 0
            and excess_after(step + 1) > 0
        )
        return k + int(step.unique_fmpz()), bool(proven)


def _bisected_end(
    start: int, count: int, total: int, alpha: Fraction, slope: Fraction
) -> int:
    """The end by bisection, from a guess.

    A Newton step usually misses by few units even where that is not proven. So the end is bracketed
    from there: by doubling steps downwards, then upwards.
    """
    low = start
    high = start
    step = 1
    while not _tail_within(low, count, total, alpha, slope):
        high = low
        low = max(low - step, 0)
        step *= 2
    step = 1
    while low == high or _tail_within(high, count, total, alpha, slope):
        low = high
        high = min(high + step, SCALE)
        step *= 2
    # Invariant: the tail is within the level at `low`, and above it at `high`.
    while high - low > 1:
        middle = (low + high) // 2
        if _tail_within(middle, count, total, alpha, slope):
            low = middle
        else:
            high = middle
    return low


def _tail_within(
    k: int, count: int, total: int, alpha: Fraction, slope: Fraction
) -> bool:
    """Whether P(Bin(total, p) >= count) <= alpha + slope p at p = k / 2**60."""
    from flint import arb

    if k in (0, SCALE):
        # The tail is 0 at p = 0 and 1 at p = 1, where `_tail` has no logarithms.
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
    # Undecided. A wrong False only widens the confidence set.
    return False


def _tail(k: int, count: int, total: int, bits: int) -> tuple[Any, Any]:
    """Balls around P(Bin(total, p) >= count) and its derivative at p = k / 2**60, 0 < p < 1.

    The tail is its first term times a sum of falling products, which is computed in integers
    rounded down. While every ratio of terms is below 1, each of the m terms is short by at most
    m units, and the terms after the last add at most m / (1 - ratio).
    """
    from flint import arb, fmpz

    p = arb(k) / SCALE
    rest = total - count
    logs = p.log() * count + (1 - p).log() * rest
    choose = (
        _log_factorial(total, bits)
        - _log_factorial(count, bits)
        - _log_factorial(rest, bits)
    )
    first = (logs + choose).exp()
    density = first * count / p  # of the beta distribution: d tail / d p
    # The ratio of consecutive terms is numerator / denominator.
    numerator = rest * k
    denominator = (count + 1) * (SCALE - k)
    if numerator >= denominator:
        # Beyond the mode the products rise at first. No end lies there.
        tail = p.beta_lower(count, rest + 1, regularized=True)
        return tail, density
    if _is_integrated(count, total):
        tail = _integrated_tail(k, count, total, bits)
        if tail is not None:
            return density * tail, density
    # The integers of FLINT are as exact as those of Python, and faster.
    unit = fmpz(1) << (bits + GUARD_BITS)
    term = unit
    terms = fmpz(0)
    numerator = fmpz(numerator)
    denominator = fmpz(denominator)
    m = 0
    while term:
        terms += term
        term = term * numerator // denominator
        numerator -= k
        denominator += SCALE - k
        m += 1
    # In units: what the m terms lost by rounding, and the geometric series of what follows them.
    error = m * m + m * (denominator // (denominator - numerator) + 1)
    low = arb(terms) / unit
    high = arb(terms + error) / unit
    return first * low.union(high), density


@lru_cache(maxsize=4096)
def _log_factorial(n: int, bits: int) -> Any:
    """A ball around log n!, with the precision of so many bits, which is that of the caller.

    All cells of a row share that of their total, and both ends of a cell those of its counts.
    """
    from flint import arb

    return arb(n + 1).lgamma()


def _integrated_tail(k: int, count: int, total: int, bits: int) -> Any | None:
    """A ball around P(Bin(total, p) >= count), in units of its derivative, at p = k / 2**60.

    The tail is the integral of its derivative f from 0 to p. With c = count, r = total - c,
    g = (log f)'(p) = (c - 1) / p - r / (1 - p) > 0 and x = g (p - t) it is, in units of f(p),

        (1/g) integral of exp(E(x)),   E(x) = log f(p - x / g) - log f(p)
                                            = sum over j of e_j x^j,
        e_j = (-(c - 1) / (g p)^j + (-1)^(j + 1) r / (g (1 - p))^j) / j.

    As log f is concave, E(x) <= -x, so what lies beyond x = w is at most exp(-w) / g. Up to w the
    integral is that of Arb, which encloses it. The terms of E after the K-th are a geometric
    series, whose bound is added to the ball of E at every point of the complex plane.

    None where p is so near to the mode that the series does not converge fast.
    """
    from flint import acb, arb

    rest = total - count
    p = arb(k) / SCALE
    slope = (count - 1) / p - rest / (1 - p)
    down = 1 / (slope * p)
    up = 1 / (slope * (1 - p))
    # exp(-reach) is below the precision: log 2 is .693..
    reach = math.ceil(0.694 * bits)
    ratio = float((down.max(up) * reach).upper())
    # This comparison is false for a ball that is not finite.
    if not 0.0 < ratio <= LARGEST_RATIO:
        return None
    terms = math.ceil((bits + math.log2(total)) / -math.log2(ratio))
    coefficients: list[Any] = []
    down_power = arb(1)
    up_power = arb(1)
    for j in range(1, terms + 1):
        down_power *= down
        up_power *= up
        sign = 1 if j % 2 else -1
        coefficients.append((sign * rest * up_power - (count - 1) * down_power) / j)
    coefficients.reverse()

    def relative(x: Any, _: bool) -> Any:
        """exp(E(x)) on a ball of the complex plane."""
        size = abs(x).upper()
        below = size * down
        above = size * up
        if not (below <= 0.5 and above <= 0.5):
            # Arb divides the interval.
            return acb(arb("nan"), arb("nan"))
        exponent = acb(0)
        for coefficient in coefficients:
            exponent = (exponent + coefficient) * x
        # Each term is at most half of the one before it.
        power = terms + 1
        left = (count - 1) * below**power + rest * above**power
        ball = arb(0, (2 * left / power).upper())
        return (exponent + acb(ball, ball)).exp()

    inside = acb.integral(relative, 0, reach).real
    whole = inside + arb(-reach).exp()
    return inside.union(whole) / slope
