"""The exact verdict for notions that bound a mean of lifts over S, output by output.

With the lift l = l(s, y) and means over P(s), the budget that an output uses on its upper side is
(docs/explanation/averages-theory.md, 'How to')

    l1        log(1 + d),        d = mean of |l - 1|
    chi2      log(1 + sqrt(d)),  d = mean of (l - 1)^2
    alpha     log of (mean of l^alpha)^(1/alpha)
    kl        mean of l log l

and on its lower side the same of 1/l, for kl the mean of log(1/l). Example: the lifts 3/2 and 1/2,
with P(s) = 1/2 each, use log 1.5 = 0.405 for l1 and chi2, 0.1116 for alpha = 2 and 0.1308 for kl;
on the lower side 1/l is 2/3 and 2, and l1 uses log(5/3) = 0.511.

`budget_used` rounds it up to a double, as exactly as the logarithms of single lifts are
(`extremes.log_upper`), and `mean_verdict` compares the largest of all outputs with the budget of
the side. The symbol that messages name is found in floating point (`largest_term`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import arb

from mechdesign.auditing.columns import Entries
from mechdesign.auditing.output_masses import (
    OutputMasses,
    distances,
    divergence,
    log_power_mean,
    masses_by_output,
)
from mechdesign.core.balls import double_above
from mechdesign.core.limits import DivergenceMean, Mean, MeanLimits, PowerMean
from mechdesign.tables.joint import Joint


class MeanVerdict(NamedTuple):
    """Whether all outputs keep the budgets, and the budgets (nats) that they use on each side.

    Of the mean that uses the largest share of its budget, `y` is the output, `s` the symbol that
    contributes most, and `lift` the lift of both, correctly rounded.
    """

    satisfied: bool
    eps_l: float
    eps_u: float
    y: int
    s: int
    lift: float


class _Side(NamedTuple):
    """What every output uses on one side, in nats; on the lower one lifts are inverse."""

    used: list[float]
    budget: float
    inverse: bool


def mean_verdict(
    columns: Sequence[Entries], joint: Joint, limits: MeanLimits
) -> MeanVerdict:
    """The exact verdict on a channel whose columns are over the useful symbols of the table."""
    outputs = list(masses_by_output(columns, joint))
    upper = _Side([], limits.upper, inverse=False)
    lower = _Side([], limits.lower, inverse=True)
    for side in (upper, lower):
        for output in outputs:
            side.used.append(budget_used(output, limits.mean, inverse=side.inverse))
    # A side without a budget is reported, but nothing on it can be violated.
    limited = [side for side in (upper, lower) if math.isfinite(side.budget)]
    satisfied = all(max(side.used) <= side.budget for side in limited)
    # The side with the largest share of its budget is the worst.
    worst = max(limited, key=lambda side: max(side.used) / side.budget)
    y = worst.used.index(max(worst.used))
    s = largest_term(outputs[y], limits.mean, inverse=worst.inverse)
    numerator, denominator = outputs[y].lift_quotients()[s]
    return MeanVerdict(
        satisfied=satisfied,
        eps_l=max(lower.used),
        eps_u=max(upper.used),
        y=y,
        s=s,
        lift=numerator / denominator,
    )


def budget_used(output: OutputMasses, mean: Mean, *, inverse: bool) -> float:
    """The smallest budget (a double, nats) that the mean of an output keeps.

    It is 0 where every lift is 1. Else it is irrational, because e to a rational power other than 0
    is transcendental (Lindemann) and the means are algebraic; that of kl is the log of a product of
    rational powers of lifts, which is algebraic too. So it lies strictly between two doubles, and
    the enclosure of `double_above` ends. Of inverse lifts it is infinite with a lift of 0.
    """
    if output.is_constant:
        return 0.0
    if inverse and 0 in output.masses:
        return math.inf

    def ball() -> Any:
        if isinstance(mean, PowerMean):
            return log_power_mean(output, mean.order, inverse=inverse)
        if isinstance(mean, DivergenceMean):
            return divergence(output, inverse=inverse)
        distance = arb(distances(output, mean.power, inverse=inverse))
        return distance.root(mean.power).log1p()

    return double_above(ball)


def largest_term(output: OutputMasses, mean: Mean, *, inverse: bool) -> int:
    """The sensitive symbol that contributes most to the mean.

    It is found in floating point and only named in messages: no verdict depends on it.
    """
    terms: list[float] = []
    for row, (top, bottom) in zip(output.sums, output.lift_quotients(), strict=True):
        if inverse:
            top, bottom = bottom, top
        # From here on top / bottom is the lift, or its inverse.
        if not bottom:
            terms.append(math.inf)
        elif isinstance(mean, DivergenceMean):
            prior = row / output.total
            terms.append(_divergence_term(prior, top, bottom, inverse=inverse))
        elif isinstance(mean, PowerMean):
            terms.append(_log_term(row, top, bottom, mean.order))
        else:
            terms.append(_log_term(row, abs(top - bottom), bottom, mean.power))
    return terms.index(max(terms))


def _log_term(row: int, top: int, bottom: int, power: float) -> float:
    """The logarithm of row (top / bottom)^power: the powers themselves might overflow."""
    if not top:
        return -math.inf
    return math.log(row) + power * (math.log(top) - math.log(bottom))


def _divergence_term(prior: float, top: int, bottom: int, *, inverse: bool) -> float:
    """P(s) l log l with l = top / bottom, or where `inverse` P(s) log(1/l) with 1/l = top /
    bottom.
    """
    if top <= bottom:
        # This term is at most zero. Some term is positive, so it is not the largest.
        return -math.inf
    log = math.log(top) - math.log(bottom)
    if inverse:
        return prior * log
    return prior * (top / bottom) * log
