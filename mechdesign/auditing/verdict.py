"""The exact verdict: does a channel satisfy a notion on a table?

Nothing here is computed in floating point. Lifts are ratios of integers formed anew from the counts of
the joint table and the rows of the channel; their logarithms are enclosed in Arb balls at growing precision
until a comparison with a budget is decided (`auditing.demands.log_upper`); averages over S likewise
(`budget_used`). This module knows neither the polytopes nor the solvers that designed the channel, so that one
mistake cannot hide in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb

from mechdesign.auditing import demands as d
from mechdesign.auditing.leakages import (
    OutputMasses,
    distances,
    log_power_mean,
    masses_by_output,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import double_above
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, expected
from mechdesign.core.wording import at_most, quoted
from mechdesign.notions import LIP, Mean, MeanLimits, Notion, PowerMean
from mechdesign.tables.joint import Joint


@dataclass(frozen=True)
class Used:
    """The smallest budgets (doubles, nats) of the notion itself that the channel keeps to; ``inf`` if none."""

    eps_l: float
    eps_u: float


@dataclass(frozen=True)
class Worst:
    """The cell that uses most of its budget, in proportion; it violates it if any cell does.

    `lift` is l(s, y), correctly rounded; `against` is the other sensitive symbol of an LDP comparison, and
    `before` has the outputs of earlier releases.
    """

    sensitive: str
    output: str
    lift: float
    against: str | None = None
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Achieved:
    """The smallest doubles (nats) that bound what the channel really does; ``inf`` where a lift is 0.

    ``exp(-eps_l) <= l(s, y) <= exp(eps_u)`` and ``l(s, y) <= exp(eps_ldp) l(s', y)`` hold exactly, for all
    s, s' and y, and fail for the next smaller double.
    """

    eps_l: float
    eps_u: float
    eps_ldp: float


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
        achieved = ", ".join(
            f"{name} {at_most(value)}" for name, value in vars(self.achieved).items()
        )
        found = "satisfied" if self.satisfied else "VIOLATED"
        return f"Audit({self.notion.text}: {found}; achieved {achieved})"


def audit(
    channel: Channel, joint: Joint, notion: Notion, *, after: Sequence[Channel] = ()
) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` on `joint`; arguments as those of `population.audit`.

    A table that protects each of several secrets, and budgets of single symbols in the notion, are kept to.
    """
    expected("channel", channel, Channel)
    expected("joint", joint, Joint)
    expected("notion", notion, Notion, "; write one, as in ALIP(eps_l=0.5, eps_u=0.5)")
    _check_rows(channel)
    released = d.released_part(channel, joint)
    columns = d.columns_on(channel, released)
    if notion.limits.mean is not None and not is_stacked(joint, notion, after):
        return audit_columns(columns, channel.outputs, joint, notion)
    found = d.extreme_lifts(columns, d.demands_of(joint, notion, after, released))
    return verdict_of(found, channel.outputs, notion)


def failing_outputs(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    demands: Sequence[d.Demand] | None = None,
) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` on `joint`, or the demands, decided as exactly as by `audit`."""
    columns, limits = d.columns_on(channel, joint), notion.limits
    if limits.mean is not None:
        kept = (mean_verdict([column], [""], joint, limits)[0] for column in columns)
    else:
        demands = d.demands_of(joint, notion) if demands is None else demands
        found = (d.extreme_lifts([column], demands) for column in columns)
        kept = (all(each.kept for each in sides) for sides in found)
    return tuple(y for y, satisfied in enumerate(kept) if not satisfied)


def achieved_by(channel: Channel, joint: Joint) -> Achieved:
    """What `channel` achieves on `joint`, whatever the notion."""
    return audit(channel, joint, LIP(1.0)).achieved


def is_stacked(joint: Joint, notion: Notion, after: Sequence[Channel] = ()) -> bool:
    """Whether the promise is about more than one table, or has budgets of single symbols."""
    return bool(after or joint.sensitive.each or notion.own)


def verdict_of(
    found: Sequence[d.Extreme], outputs: Sequence[str], notion: Notion
) -> Audit:
    """The verdict from the largest quotients of all sides (`extreme_lifts`)."""
    # Used budgets are the smallest doubles: a violated one comes before a satisfied one.
    finite = [each for each in found if math.isfinite(each.budget)]
    worst = max(finite, key=lambda each: each.used / each.budget)
    sides: dict[str, float] = {}
    for each in found:
        sides[each.side] = max(each.used, sides.get(each.side, 0.0))
    top, bottom = worst.lift
    lift = top / bottom if bottom else math.inf
    at = Worst(worst.sensitive, outputs[worst.y], lift, worst.against, worst.before)
    return Audit(all(each.kept for each in found), notion, Achieved(**sides), at)


def audit_columns(
    columns: Sequence[d.Entries], outputs: Sequence[str], joint: Joint, notion: Notion
) -> Audit:
    """The verdict on a channel given as columns of integers over the useful symbols of the table."""
    limits = notion.limits
    if limits.mean is None or joint.sensitive.each:
        return verdict_of(
            d.extreme_lifts(columns, d.stacked(joint.counts, joint, notion)),
            outputs,
            notion,
        )
    satisfied, used, worst = mean_verdict(columns, outputs, joint, limits)
    return Audit(
        satisfied,
        notion,
        audit_columns(columns, outputs, joint, LIP(1.0)).achieved,
        worst,
        used,
    )


def budget_used(output: OutputMasses, mean: Mean, *, inverse: bool) -> float:
    """The smallest double at or above the budget (nats) that the mean uses: a budget holds exactly from there on.

    log(1 + d^(1/power)) of a mean distance d (l1, chi2) or log of the alpha-lift. It is 0 where every lift is 1; else
    it is no rational number, because e to a rational power other than 0 is transcendental (Lindemann) and the means
    are algebraic, so it lies between two doubles. Infinite with a lift of 0 for the inverse.
    """
    if output.is_constant:
        return 0.0
    if inverse and 0 in output.masses:
        return math.inf

    def ball() -> Any:
        if isinstance(mean, PowerMean):
            return log_power_mean(output, mean.order, inverse=inverse)
        return (
            arb(distances(output, mean.power, inverse=inverse)).root(mean.power).log1p()
        )

    return double_above(ball)


def mean_verdict(
    columns: Sequence[d.Entries],
    outputs: Sequence[str],
    joint: Joint,
    limits: MeanLimits,
) -> tuple[bool, Used, Worst]:
    """The exact verdict, what is used, and the symbol that weighs most in the worst output."""
    masses = list(masses_by_output(columns, joint))
    up, down = (
        [budget_used(each, limits.mean, inverse=k) for each in masses]
        for k in (False, True)
    )
    both = (up, limits.upper), (down, limits.lower)
    sides = [(used, limit) for used, limit in both if math.isfinite(limit)]
    used, _ = max(sides, key=lambda side: max(side[0]) / side[1])
    y = used.index(max(used))
    s = largest_term(masses[y], limits.mean, inverse=used is down)
    top, bottom = masses[y].numerators()[s]
    worst = Worst(joint.sensitive.names[s], outputs[y], top / bottom)
    return (
        all(max(used) <= limit for used, limit in sides),
        Used(eps_l=max(down), eps_u=max(up)),
        worst,
    )


def largest_term(output: OutputMasses, mean: Mean, *, inverse: bool) -> int:
    """The sensitive symbol that contributes most to the mean; a guess in floating point, for messages."""
    lifts = output.numerators()

    def term(s: int) -> float:
        up, down = lifts[s][::-1] if inverse else lifts[s]
        if down == 0:
            return math.inf
        part, power = (
            (up, mean.order)
            if isinstance(mean, PowerMean)
            else (abs(up - down), mean.power)
        )
        return (
            math.log(output.sums[s]) + power * (math.log(part) - math.log(down))
            if part
            else -math.inf
        )

    return max(range(len(lifts)), key=term)


def _check_rows(channel: Channel) -> None:
    sums = [0] * len(channel.useful)
    for label, (at, values) in zip(
        channel.outputs, channel.integers.columns, strict=True
    ):
        if not values or min(values) <= 0:
            raise InputError(
                f"the output {quoted(label)} has no mass, or an entry below zero"
            )
        for x, value in zip(at, values, strict=True):
            sums[x] += value
    for name, total in zip(channel.useful.names, sums, strict=True):
        if total != channel.denominator:
            raise InputError(
                f"row {quoted(name)} sums to {total}, not to the denominator {channel.denominator}"
            )
