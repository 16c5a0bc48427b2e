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

from mechdesign.auditing.demands import Demand, demands_of, extreme_cells
from mechdesign.auditing.exponentials import at_most_exp, log_upper
from mechdesign.auditing.lifts import Entries, Extremes, extremes_by_output, extremes_of
from mechdesign.auditing.means import Used, failing_means, mean_verdict
from mechdesign.auditing.tuples import columns_on, released_part
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted
from mechdesign.notions import LIP, LiftLimits, MeanLimits, Notion
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

    `lift` is l(s, y), correctly rounded; `against` is the other sensitive symbol of an LDP comparison, and
    `before` has the outputs of earlier releases.
    """

    sensitive: str
    output: str
    lift: float
    against: str | None = None
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
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


def audit(channel: Channel, joint: Joint, notion: Notion, *, after: Sequence[Channel] = ()) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` on `joint`.

    A table that protects each of several secrets, and budgets of single symbols in the notion, are kept to.

    Parameters
    ----------
    channel : Channel
        Its rows may stand in another order than the useful symbols of the joint.
    joint : Joint
        Not necessarily the table that the channel was designed for.
    notion : Notion
    after : sequence of Channel
        Earlier releases of the same record, drawn independently: all together must satisfy the notion. The table
        has the useful columns of all of them.

    Raises
    ------
    InputError
        If the useful symbols of channel and joint differ, or the rows are no probabilities.
    """
    _check_rows(channel)
    if is_stacked(joint, notion, after):
        released = released_part(channel, joint)
        demands = demands_of(joint, notion, after, released)
        return audit_demands(columns_on(channel, released), channel.outputs, demands, notion)
    order = _order(channel.useful.symbols, joint)
    counts = [[row[x] for x in order] for row in joint.counts]
    return audit_columns(counts, channel.integers.columns, channel.outputs, joint, notion)


def failing_outputs(channel: Channel, joint: Joint, notion: Notion) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` on `joint`, decided as exactly as by `audit`."""
    limits = notion.limits
    if is_stacked(joint, notion):
        return failing_demands(columns_on(channel, joint), demands_of(joint, notion))
    order = _order(channel.useful.symbols, joint)
    counts = [[row[x] for x in order] for row in joint.counts]
    if isinstance(limits, MeanLimits):
        return failing_means(counts, channel.integers.columns, joint, limits)
    by_output = extremes_by_output(counts, channel.integers.columns, joint.sensitive_counts)
    return tuple(y for y, extremes in enumerate(by_output) if not _within(extremes, limits))


def achieved_by(channel: Channel, joint: Joint) -> Achieved:
    """What `channel` achieves on `joint`, whatever the notion."""
    return audit(channel, joint, LIP(1.0)).achieved


def is_stacked(joint: Joint, notion: Notion, after: Sequence[Channel] = ()) -> bool:
    """Whether the promise is about more than one table, or has budgets of single symbols."""
    return bool(after or joint.sensitive.each or notion.own)


def audit_demands(
    columns: Sequence[Entries], outputs: Sequence[str], demands: Sequence[Demand], notion: Notion
) -> Audit:
    """The verdict on several tables; columns are over the useful symbols of the demands."""
    cells = extreme_cells(columns, demands)
    used = [log_upper(*each.over) for each in cells]
    # Used budgets are the smallest doubles: a violated one comes before a satisfied one.
    finite = [k for k, each in enumerate(cells) if math.isfinite(each.budget)]
    worst = cells[max(finite, key=lambda k: used[k] / cells[k].budget)]
    top, bottom = worst.cell.lift
    names, against = worst.demand.names, worst.against
    return Audit(
        all(each.kept for each in cells),
        notion,
        Achieved(
            **{
                side: max(value for value, each in zip(used, cells, strict=True) if each.side == side)
                for side in ("eps_l", "eps_u", "eps_ldp")
            }
        ),
        Worst(
            names[worst.cell.s],
            outputs[worst.cell.y],
            top / bottom,
            None if against is None else names[against],
            worst.demand.before,
        ),
    )


def failing_demands(columns: Sequence[Entries], demands: Sequence[Demand]) -> tuple[int, ...]:
    """Positions of the outputs that violate a demand."""
    return tuple(
        y
        for y, column in enumerate(columns)
        if not all(each.kept for each in extreme_cells([column], demands))
    )


def audit_columns(
    counts: Sequence[Sequence[int]],
    columns: Sequence[Entries],
    outputs: Sequence[str],
    joint: Joint,
    notion: Notion,
) -> Audit:
    """The verdict on a channel given as plain integers; `audit` and `outside` prepare them."""
    limits = notion.limits
    extremes = extremes_of(counts, columns, joint.sensitive_counts)
    achieved = Achieved(
        eps_l=log_upper(*extremes.low.inverse),
        eps_u=log_upper(*extremes.high.lift),
        eps_ldp=log_upper(*extremes.ratio),
    )
    if isinstance(limits, MeanLimits):
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


def _order(symbols: Sequence[Symbol], joint: Joint) -> list[int]:
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


def _within(extremes: Extremes, limits: LiftLimits) -> bool:
    """Whether all lifts keep to the limits, decided exactly; an infinite limit is no limit."""
    checks = (
        (extremes.high.lift, limits.upper),
        (extremes.low.inverse, limits.lower),
        (extremes.ratio, limits.ratio),
    )
    return all(math.isinf(limit) or at_most_exp(*ratio, limit) for ratio, limit in checks)


def _worst(
    extremes: Extremes, achieved: Achieved, limits: LiftLimits, joint: Joint, outputs: Sequence[str]
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
