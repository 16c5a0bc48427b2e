"""What each output of a channel leaks about S, every measure rounded outwards from integers.

`output_leakages` evaluates the lifts l(s, y) = P(s, y) / (P(s) P(y)) of every output and their
means over P(s) (`output_masses`): the rational ones exactly, those with logarithms and powers in
balls of `BITS` bits. Each result is the double next to the value, or to its ball, on the side that
claims less privacy: up, and down for minima. What is reported is therefore a bound that surely
holds. Averages over the outputs are in `measures`.

Example: an output with the masses (3, 1), where P(s) = P(t) = 1/2, has the lifts 3/2 and 1/2. So
max_log_lift is log(3/2), min_log_lift -log 2 and their difference log 3; l1_lift is 1/2, chi2_lift
1/4, and the posterior (3/4, 1/4).

`belief_ranges` gives the extreme P(s|y) of every sensitive symbol: how far a released value can
move a belief.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq

from mechdesign.auditing.columns import Entries
from mechdesign.auditing.output_masses import (
    BITS,
    OutputMasses,
    ReleasedMasses,
    distances,
    log_power_mean,
    masses_by_output,
    masses_of,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import lower, precision, quotient_above, upper
from mechdesign.tables.joint import Joint


@dataclass(frozen=True, kw_only=True)
class OutputLeakage:
    """The leakage of one output about S; logarithms in nats, infinite where a lift is zero.

    With l = l(s, y), means over P(s) and the extremes over s, the fields are

        max_lift, min_lift            max l, min l
        max_log_lift, min_log_lift    their logarithms
        max_log_lift_ratio            log (max l / min l)
        l1_lift, chi2_lift            mean of |l - 1|, mean of (l - 1)^2
        alpha_lift                    (mean of l^alpha)^(1/alpha), from alpha to the value
        ..._inverse                   the same of 1/l
        posterior                     P(s|y) in the order of S, correctly rounded
    """

    output: str
    probability: float
    max_lift: float
    min_lift: float
    max_log_lift: float
    min_log_lift: float
    max_log_lift_ratio: float
    l1_lift: float
    chi2_lift: float
    l1_lift_inverse: float
    chi2_lift_inverse: float
    alpha_lift: dict[float, float]
    alpha_lift_inverse: dict[float, float]
    posterior: tuple[float, ...]


def output_leakages(
    released: ReleasedMasses, alphas: Sequence[float]
) -> list[OutputLeakage]:
    """The measures of every output in turn."""
    leakages: list[OutputLeakage] = []
    with precision(BITS):
        for label, output in zip(released.labels, released.outputs, strict=True):
            leakages.append(_leakage_of(label, output, released.scale, alphas))
    return leakages


def worst_of(leakages: Sequence[OutputLeakage]) -> OutputLeakage:
    """The worst of each measure, and all posteriors: of several outputs, or of one output about
    several secrets.

    The least is the worst of `min_lift` and `min_log_lift`, of all other measures the largest.
    """
    first = leakages[0]

    def largest(measure: str) -> float:
        return max(getattr(leakage, measure) for leakage in leakages)

    def least(measure: str) -> float:
        return min(getattr(leakage, measure) for leakage in leakages)

    posterior: list[float] = []
    for leakage in leakages:
        posterior += leakage.posterior
    return OutputLeakage(
        output=first.output,
        probability=largest("probability"),
        max_lift=largest("max_lift"),
        min_lift=least("min_lift"),
        max_log_lift=largest("max_log_lift"),
        min_log_lift=least("min_log_lift"),
        max_log_lift_ratio=largest("max_log_lift_ratio"),
        l1_lift=largest("l1_lift"),
        chi2_lift=largest("chi2_lift"),
        l1_lift_inverse=largest("l1_lift_inverse"),
        chi2_lift_inverse=largest("chi2_lift_inverse"),
        alpha_lift=_largest_by_order([leakage.alpha_lift for leakage in leakages]),
        alpha_lift_inverse=_largest_by_order(
            [leakage.alpha_lift_inverse for leakage in leakages]
        ),
        posterior=tuple(posterior),
    )


def belief_ranges(channel: Channel, joint: Joint) -> list[tuple[float, float]]:
    """The extremes of P(s|y) over all outputs y, for each s of each secret, from integers and
    rounded outwards.
    """
    if joint.sensitive.protects_columns:
        ranges: list[tuple[float, float]] = []
        for secret in joint.secrets:
            ranges += belief_ranges(channel, secret)
        return ranges
    outputs = masses_of(channel, joint).outputs
    ranges = []
    for s in range(len(joint.sensitive)):
        # P(s|y) = m_s / o. Python rounds quotients correctly, so the extremes are among those whose
        # rounded quotient is extreme.
        nearest = [output.masses[s] / output.output for output in outputs]
        lowest, highest = min(nearest), max(nearest)
        low = math.inf
        high = -math.inf
        for output, share in zip(outputs, nearest, strict=True):
            # Rounding the negative up rounds the posterior itself down; 0.0 - x has no negative
            # zero.
            if share == lowest:
                low = min(low, 0.0 - quotient_above(-output.masses[s], output.output))
            if share == highest:
                high = max(high, quotient_above(output.masses[s], output.output))
        ranges.append((low, high))
    return ranges


def lift_range(column: Entries, joint: Joint) -> tuple[float, float]:
    """The least and the largest lift of an output over all secrets, from integers and rounded
    outwards; its column is over the useful symbols of the table.
    """
    low = math.inf
    high = 0.0
    for secret in joint.secrets:
        (output,) = masses_by_output([column], secret)
        for top, bottom in output.lift_quotients():
            low = min(low, 0.0 - quotient_above(-top, bottom))
            high = max(high, quotient_above(top, bottom))
    return low, high


def _leakage_of(
    label: str, masses: OutputMasses, scale: int, alphas: Sequence[float]
) -> OutputLeakage:
    """The measures of one output; P(s, y) are its masses over `scale`."""
    lifts = [fmpq(*pair) for pair in masses.lift_quotients()]
    high = max(lifts)
    low = min(lifts)
    # The largest lift is at least 1 and the smallest at most 1; a ball around log 1 may reach
    # beyond zero.
    if low == 0:
        log_low = -math.inf
        log_ratio = math.inf
        largest_inverse = None
    else:
        log_low = min(0.0, lower(arb(low).log()))
        log_ratio = max(0.0, upper(arb(high / low).log()))
        largest_inverse = 1 / low
    alpha_lift: dict[float, float] = {}
    alpha_lift_inverse: dict[float, float] = {}
    for alpha in alphas:
        alpha_lift[alpha] = _alpha_lift(masses, alpha, high, inverse=False)
        alpha_lift_inverse[alpha] = _alpha_lift(
            masses, alpha, largest_inverse, inverse=True
        )
    return OutputLeakage(
        output=label,
        probability=masses.output / scale,
        max_lift=upper(arb(high)),
        min_lift=lower(arb(low)),
        max_log_lift=max(0.0, upper(arb(high).log())),
        min_log_lift=log_low,
        max_log_lift_ratio=log_ratio,
        l1_lift=_rounded_up(distances(masses, 1)),
        chi2_lift=_rounded_up(distances(masses, 2)),
        l1_lift_inverse=_rounded_up(distances(masses, 1, inverse=True)),
        chi2_lift_inverse=_rounded_up(distances(masses, 2, inverse=True)),
        alpha_lift=alpha_lift,
        alpha_lift_inverse=alpha_lift_inverse,
        # Python rounds a quotient of integers correctly.
        posterior=tuple(mass / masses.output for mass in masses.masses),
    )


def _alpha_lift(
    masses: OutputMasses, alpha: float, largest: Any, *, inverse: bool
) -> float:
    """The alpha-lift or its inverse; `largest` is the largest lift or inverse, None if infinite."""
    if largest is None or math.isinf(alpha):
        return _rounded_up(largest)
    # The mean of l is 1 and that of 1/l at least 1, so no power mean of order above 1 is smaller.
    return max(1.0, upper(log_power_mean(masses, alpha, inverse=inverse).exp()))


def _rounded_up(value: Any) -> float:
    """The double at or above a rational; None is infinite."""
    if value is None:
        return math.inf
    return upper(arb(value))


def _largest_by_order(values: Sequence[dict[float, float]]) -> dict[float, float]:
    """The largest value of each order."""
    largest: dict[float, float] = {}
    for order in values[0]:
        largest[order] = max(value[order] for value in values)
    return largest
