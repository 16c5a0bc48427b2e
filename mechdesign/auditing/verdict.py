"""The exact verdict: does a channel satisfy a notion on a table?

For every output y and all sensitive symbols s, t of the table the verdict decides whether

    e^-eps_l <= l(s, y) <= e^eps_u  and  l(s, y) <= e^eps_ldp l(t, y),

where l(s, y) = P(s, y) / (P(s) P(y)) is the lift; or, for notions on averages over S, whether the
mean of each output is at most its budget, as in sum_s P(s) |l(s, y) - 1| for l1.

`audit_on_table` goes three steps. The channel becomes columns of integers over the table
(`columns`), its rows checked. For limits on lifts, `lifts` finds the largest quotient of every
side; for limits on averages, `budget_used` evaluates the mean of every output. What is used on each
side is then compared with its budget.

Nothing that decides is computed in floating point. Lifts are quotients of integers, formed anew
from the counts of the joint table and the rows of the channel. Their logarithms are enclosed in
Arb balls at growing precision until the ball lies between two neighbouring doubles; the upper one
is the budget that is used (`lifts.log_upper`, `budget_used`).

Rounding never changes a verdict. The true value is 0 or infinite, which are reported as they are,
or it is irrational (both functions say why). Then no double lies between it and the reported one,
so both are at most a budget, which is a double, or neither is. Rounding is upward, so a budget that
is reported as achieved always holds.

This module knows neither the polytopes nor the solvers that designed the channel: one mistake
cannot hide in both.

*Notions that bound a mean of lifts over S*, output by output. With the lift l = l(s, y) and means
over P(s), the budget that an output uses on its upper side is (docs/explanation/averages-theory.md,
'How to')

    l1        log(1 + d),        d = mean of |l - 1|
    chi2      log(1 + sqrt(d)),  d = mean of (l - 1)^2
    alpha     log of (mean of l^alpha)^(1/alpha)
    kl        mean of l log l

and on its lower side the same of 1/l, for kl the mean of log(1/l). Example: the lifts 3/2 and 1/2,
with P(s) = 1/2 each, use log 1.5 = 0.405 for l1 and chi2, 0.1116 for alpha = 2 and 0.1308 for kl;
on the lower side 1/l is 2/3 and 2, and l1 uses log(5/3) = 0.511.

`budget_used` rounds it up to a double, as exactly as the logarithms of single lifts are
(`lifts.log_upper`), and `mean_verdict` compares the largest of all outputs with the budget of
the side. The symbol that messages name is found in floating point (`largest_term`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from mechdesign.auditing.averages import AverageVerdict
from mechdesign.auditing.columns import (
    Entries,
    OutputMasses,
    columns_on,
    distances,
    divergence,
    log_power_mean,
    masses_by_output,
    released_part,
)
from mechdesign.auditing.lifts import (
    Achieved,
    Demand,
    Extreme,
    demands_of,
    extreme_lifts,
    smallest_budgets,
    stacked,
)
from mechdesign.auditing.strata import relative_lifts
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import require_without_boxes
from mechdesign.channel.record import RELATIVE
from mechdesign.core.above import above
from mechdesign.core.balls import double_above
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.limits import DivergenceMean, Mean, MeanLimits, PowerMean
from mechdesign.core.wording import at_most, quoted
from mechdesign.notions import LIP, Notion
from mechdesign.tables.joint import Joint

# -------------------------------------------------------------------------------- means


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


# ------------------------------------------------------------------------------ verdict


@dataclass(frozen=True)
class Used:
    """The smallest budgets (nats) of the notion that the channel keeps; ``inf`` if none."""

    eps_l: float
    eps_u: float


@dataclass(frozen=True)
class Worst:
    """The cell that uses most of its budget, in proportion; it violates it if any cell does.

    `lift` is l(s, y), correctly rounded; `against` is the other sensitive symbol of an LDP
    comparison, and `before` has the outputs of earlier releases.
    """

    sensitive: str
    output: str
    lift: float
    against: str | None = None
    before: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Audit(Displayed):
    """An exact verdict, the budgets that the channel achieves, and its worst cell.

    `achieved` is about single lifts whatever the notion. For a notion on averages over S (l1, chi2,
    alpha) `used` has the budgets of that notion that the channel keeps, and `worst` names the
    symbol with the largest share in the worst average. `averages` has the verdicts on the average
    budgets of the channel's record.

    A channel of boxes carries the counts of its promise, and is judged on every population of their
    confidence sets (`either.audit`). Then `level` is the confidence, `achieved` bounds the
    log-lifts of all these populations, `on_table` bounds those of the `records` of the proof, and
    `strata` has the verdict on each stratum that releases something. Of the sensitive values in
    each group of `together` the promise is about the group alone, in some stratum at least.
    `notion` is None where nothing is released, and nothing was promised or asked.
    """

    satisfied: bool
    notion: Notion | None
    achieved: Achieved
    worst: Worst
    used: Used | None = None
    averages: tuple[AverageVerdict, ...] = ()
    level: float | None = None
    on_table: Achieved | None = None
    records: int | None = None
    strata: tuple[Audit, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()

    def __repr__(self) -> str:
        budgets = vars(self.achieved).items()
        achieved = ", ".join(f"{name} {at_most(value)}" for name, value in budgets)
        return f"Audit({self.verdict}; achieved {achieved})"

    @property
    def verdict(self) -> str:
        """The notion, and whether it is kept."""
        promise = "no promise" if self.notion is None else self.notion.text
        return f"{promise}: {'satisfied' if self.satisfied else 'VIOLATED'}"

    def to_record(self) -> dict[str, Any]:
        """The record of `audit --json`, without what the command looks at beside."""
        return above("display").record(self)


def audit_on_table(
    channel: Channel, joint: Joint, notion: Notion, *, after: Sequence[Channel] = ()
) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` on `joint`.

    Arguments are those of `population.audit_with_confidence`. The verdict covers each of several
    secrets of the table, and the budgets of single symbols in the notion.
    """
    require_without_boxes("channel", channel)
    require_type("joint", joint, Joint)
    require_type(
        "notion", notion, Notion, "; write one, as in ALIP(eps_l=0.5, eps_u=0.5)"
    )
    _check_rows(channel)
    released = released_part(channel, joint)
    columns = columns_on(channel, released)
    if notion.limits.mean is not None and not is_stacked(joint, notion, after):
        if channel.record.promise_kind == RELATIVE:
            raise InputError(
                f"{notion.name} bounds averages: with a relative promise use alip, lip, ldp, "
                "max-lift or min-lift"
            )
        return audit_columns(columns, channel.outputs, joint, notion)
    demands = demands_of(joint, notion, after, released)
    if channel.record.promise_kind == RELATIVE:
        extremes = relative_lifts(channel, columns, demands, released, notion)
    else:
        extremes = extreme_lifts(columns, demands)
    return verdict_of(extremes, channel.outputs, notion)


def failing_outputs(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    demands: Sequence[Demand] | None = None,
) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` on `joint`, or the demands.

    It decides as exactly as `audit_on_table`.
    """
    limits = notion.limits
    if limits.mean is None and demands is None:
        demands = demands_of(joint, notion)
    failing: list[int] = []
    for y, column in enumerate(columns_on(channel, joint)):
        if limits.mean is not None:
            satisfied = mean_verdict([column], joint, limits).satisfied
        else:
            extremes = extreme_lifts([column], demands or ())
            satisfied = all(extreme.kept for extreme in extremes)
        if not satisfied:
            failing.append(y)
    return tuple(failing)


def achieved_by(channel: Channel, joint: Joint) -> Achieved:
    """The budgets that `channel` achieves on `joint`, whatever the notion."""
    # They do not depend on a budget, so any notion on single lifts gives them.
    return audit_on_table(channel, joint, LIP(1.0)).achieved


def is_stacked(joint: Joint, notion: Notion, after: Sequence[Channel] = ()) -> bool:
    """Whether the promise is about more than one table, or has budgets of single symbols."""
    return bool(after or joint.sensitive.protects_columns or notion.symbol_budgets)


def verdict_of(
    extremes: Sequence[Extreme], outputs: Sequence[str], notion: Notion
) -> Audit:
    """The verdict from the largest quotients of all sides (`extreme_lifts`)."""
    worst = max(extremes, key=lambda extreme: extreme.share)
    return Audit(
        satisfied=all(extreme.kept for extreme in extremes),
        notion=notion,
        achieved=smallest_budgets(extremes),
        worst=Worst(
            sensitive=worst.sensitive,
            output=outputs[worst.y],
            lift=worst.rounded_lift,
            against=worst.against,
            before=worst.before,
        ),
    )


def audit_columns(
    columns: Sequence[Entries], outputs: Sequence[str], joint: Joint, notion: Notion
) -> Audit:
    """The verdict on a channel whose columns are integers over the useful symbols of the table."""
    limits = notion.limits
    if limits.mean is None or joint.sensitive.protects_columns:
        demands = stacked(joint.counts, joint, notion)
        return verdict_of(extreme_lifts(columns, demands), outputs, notion)
    means = mean_verdict(columns, joint, limits)
    # The lifts themselves do not depend on a budget: any notion on single lifts gives them.
    achieved = audit_columns(columns, outputs, joint, LIP(1.0)).achieved
    return Audit(
        satisfied=means.satisfied,
        notion=notion,
        achieved=achieved,
        worst=Worst(joint.sensitive.names[means.s], outputs[means.y], means.lift),
        used=Used(means.eps_l, means.eps_u),
    )


def _check_rows(channel: Channel) -> None:
    """Raise InputError unless every output has mass and every row sums to the denominator.

    The verdict rests on both, so they are recomputed from the integers.
    """
    integers = channel.integers
    reached = np.bincount(integers.indices, minlength=len(channel.outputs)) > 0
    reached[integers.indices[integers.values <= 0]] = False
    if not reached.all():
        label = channel.outputs[int(np.argmin(reached))]
        raise InputError(
            f"the output {quoted(label)} has no mass, or an entry below zero"
        )
    sums = integers.row_sums()
    what = "the denominator" if channel.totals is None else "its total"
    for name, total, wanted in zip(
        channel.useful.names, sums, channel.row_totals, strict=True
    ):
        if total != wanted:
            raise InputError(
                f"row {quoted(name)} sums to {total}, not to {what} {wanted}"
            )
