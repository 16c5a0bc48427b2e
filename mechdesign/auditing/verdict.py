"""The exact verdict: does a channel satisfy a notion on a table?

Nothing here is computed in floating point. Lifts are ratios of integers formed anew from the counts of
the joint table and the rows of the channel; exp of a budget is enclosed between rationals (Arb balls) at
growing precision until a comparison is decided. It always is: e^x is irrational for rational x != 0
(Lindemann), so no ratio of integers can equal it. Notions on averages over S are decided by
`auditing_means` in the same way. This module knows neither the polytopes nor the solvers
that designed the channel, so that one mistake cannot hide in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mechdesign.auditing.lifts import Entries, ExtremeLifts, extremes_by_output, extremes_of
from mechdesign.auditing.means import Used, failing_means, mean_verdict
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import FIRST_BITS, precision
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, expected
from mechdesign.core.numbers import at_most, listed, quoted
from mechdesign.notions import LIP, LiftLimits, Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol


@dataclass(frozen=True)
class Achieved:
    """The smallest doubles (nats) that bound what the channel really does; ``inf`` where a lift is 0.

    ``exp(-eps_l) <= l(s, y) <= exp(eps_u)`` and ``l(s, y) <= exp(eps_ldp) l(s', y)`` hold exactly, for all
    s, s' and y, and fail for the next smaller double.
    """

    eps_l: float
    eps_u: float
    eps_ldp: float


@dataclass(frozen=True)
class Worst:
    """The cell that uses most of its budget, in proportion; it violates it if any cell does.

    `lift` is l(s, y), correctly rounded; `against` is the other sensitive symbol of an LDP comparison.
    """

    sensitive: str
    output: str
    lift: float
    against: str | None = None


@dataclass(frozen=True, repr=False)
class Audit(Displayed):
    """An exact verdict, what the channel achieves, and where it is worst.

    `achieved` always speaks of single lifts; for a notion on averages over S (l1, chi2, alpha) `used` says
    which budgets of that notion itself the channel keeps to, and `worst` names the symbol with the largest
    share in the worst average.
    """

    satisfied: bool
    notion: Notion
    achieved: Achieved
    worst: Worst
    used: Used | None = None

    def __repr__(self) -> str:
        achieved = ", ".join(f"{name} {at_most(value)}" for name, value in vars(self.achieved).items())
        return (
            f"Audit({self.notion.text}: {'satisfied' if self.satisfied else 'VIOLATED'}; achieved {achieved})"
        )


def audit(channel: Channel, joint: Joint, notion: Notion) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` on `joint`.

    Parameters
    ----------
    channel : Channel
        Its rows may stand in another order than the useful symbols of the joint.
    joint : Joint
        Not necessarily the table that the channel was designed for.
    notion : Notion

    Raises
    ------
    InputError
        If the useful symbols of channel and joint differ, or the rows are no probabilities.
    """
    expected("channel", channel, Channel)
    expected("joint", joint, Joint)
    expected("notion", notion, Notion, "; write one, as in ALIP(eps_l=0.5, eps_u=0.5)")
    _check_rows(channel)
    order = row_order(channel.useful.symbols, joint)
    counts = [[row[x] for x in order] for row in joint.counts]
    return audit_columns(counts, channel.integers.columns, channel.outputs, joint, notion)


def failing_outputs(channel: Channel, joint: Joint, notion: Notion) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` on `joint`, decided as exactly as by `audit`."""
    order = row_order(channel.useful.symbols, joint)
    counts = [[row[x] for x in order] for row in joint.counts]
    limits = notion.limits
    if limits.mean is not None:
        return failing_means(counts, channel.integers.columns, joint, limits)
    by_output = extremes_by_output(counts, channel.integers.columns, joint)
    return tuple(y for y, extremes in enumerate(by_output) if not _within(extremes, limits))


def achieved_by(channel: Channel, joint: Joint) -> Achieved:
    """What `channel` achieves on `joint`, whatever the notion."""
    return audit(channel, joint, LIP(1.0)).achieved


def audit_columns(
    counts: Sequence[Sequence[int]],
    columns: Sequence[Entries],
    outputs: Sequence[str],
    joint: Joint,
    notion: Notion,
) -> Audit:
    """The verdict on a channel given as plain integers; `audit` and `outside` prepare them."""
    limits = notion.limits
    extremes = extremes_of(counts, columns, joint)
    achieved = Achieved(
        eps_l=log_upper(*extremes.low.inverse),
        eps_u=log_upper(*extremes.high.lift),
        eps_ldp=log_upper(*extremes.ratio),
    )
    if limits.mean is not None:
        means = mean_verdict(counts, columns, joint, limits)
        at = Worst(joint.sensitive.names[means.s], outputs[means.y], means.lift[0] / means.lift[1])
        return Audit(not means.failing, notion, achieved, at, means.used)
    return Audit(
        _within(extremes, limits), notion, achieved, _worst(extremes, achieved, limits, joint, outputs)
    )


def _check_rows(channel: Channel) -> None:
    sums = [0] * len(channel.useful)
    for label, (at, values) in zip(channel.outputs, channel.integers.columns, strict=True):
        if not values or min(values) <= 0:
            raise InputError(f"the output {quoted(label)} has no mass, or an entry below zero")
        for x, value in zip(at, values, strict=True):
            sums[x] += value
    for name, total in zip(channel.useful.names, sums, strict=True):
        if total != channel.denominator:
            raise InputError(
                f"row {quoted(name)} sums to {total}, not to the denominator {channel.denominator}"
            )


def row_order(symbols: Sequence[Symbol], joint: Joint) -> list[int]:
    """Position in the joint of every row of a channel."""
    index = joint.useful.index
    unknown = [", ".join(symbol) for symbol in symbols if symbol not in index]
    if unknown:
        raise InputError(f"the table has no useful symbol {listed(unknown)}, which the channel has")
    order = [index[symbol] for symbol in symbols]
    missing = set(range(len(joint.useful))) - set(order)
    if missing:
        names = [joint.useful.names[x] for x in sorted(missing)]
        raise InputError(f"the channel has no row for the useful symbol {listed(names)} of the table")
    return order


def _within(extremes: ExtremeLifts, limits: LiftLimits) -> bool:
    """Whether all lifts keep to the limits, decided exactly; an infinite limit is no limit."""
    checks = (
        (extremes.high.lift, limits.upper),
        (extremes.low.inverse, limits.lower),
        (extremes.ratio, limits.ratio),
    )
    return all(math.isinf(limit) or at_most_exp(*ratio, limit) for ratio, limit in checks)


def _worst(
    extremes: ExtremeLifts, achieved: Achieved, limits: LiftLimits, joint: Joint, outputs: Sequence[str]
) -> Worst:
    sides = (
        (limits.upper, achieved.eps_u, extremes.high, None),
        (limits.lower, achieved.eps_l, extremes.low, None),
        (limits.ratio, achieved.eps_ldp, extremes.above, extremes.below),
    )
    # Achieved budgets are the smallest doubles, so their quotient by the limit exceeds 1 exactly where
    # the limit is violated: a violated side always comes before a satisfied one.
    _, _, cell, against = max(
        (side for side in sides if math.isfinite(side[0])), key=lambda side: side[1] / side[0]
    )
    numerator, denominator = cell.lift
    names = joint.sensitive.names
    return Worst(
        names[cell.s], outputs[cell.y], numerator / denominator, names[against.s] if against else None
    )


def at_most_exp(numerator: int, denominator: int, exponent: float) -> bool:
    """Whether numerator / denominator <= e^exponent, decided exactly."""
    bits = FIRST_BITS
    while True:
        low, high, shift = exp_enclosure(exponent, bits)
        scaled = numerator << shift
        if scaled <= low * denominator:
            return True
        if scaled > high * denominator:
            return False
        bits *= 2


@lru_cache(maxsize=1024)
def exp_enclosure(exponent: float, bits: int) -> tuple[int, int, int]:
    """Integers (low, high, shift) with ``low <= e^exponent * 2^shift <= high``, about `bits` bits apart.

    The exponent is the exact rational that the double is; rounding is outwards (Arb ball arithmetic).
    """
    from flint import arb

    with precision(bits):
        ball = arb(exponent).exp()
        ends = [end.man_exp() for end in (ball.lower(), ball.upper())]
    shift = max(0, *(-int(power) for _, power in ends))
    low, high = (int(mantissa) << (int(power) + shift) for mantissa, power in ends)
    return low, high, shift


def log_upper(numerator: int, denominator: int) -> float:
    """The smallest double b >= 0 with numerator / denominator <= e^b; ``inf`` for a zero denominator.

    The logarithm in floating point is only a first guess; `at_most_exp` decides.
    """
    if numerator <= denominator:
        return 0.0
    if denominator == 0:
        return math.inf
    guess = _log(numerator, denominator)
    while not at_most_exp(numerator, denominator, guess):
        guess = math.nextafter(guess, math.inf)
    while at_most_exp(numerator, denominator, below := math.nextafter(guess, 0.0)):
        guess = below
    return guess


def _log(numerator: int, denominator: int) -> float:
    if numerator < 2 * denominator:
        return math.log1p((numerator - denominator) / denominator)
    try:
        return math.log(numerator / denominator)
    except OverflowError:  # the quotient is no double, its logarithm is
        return math.log(numerator) - math.log(denominator)
