"""Every utility and leakage measure of a channel on a table (nats), and the guarantees next to them.

I(X;Y) is that of the integers, rounded so that it never claims too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul

import numpy as np

from mechdesign.auditing.demands import columns_on, log_upper, released_part
from mechdesign.auditing.guarantees import Guarantee, guarantee_table, weakest
from mechdesign.auditing.leakages import OutputLeakage, average_leakages, output_leakages, worst_of
from mechdesign.auditing.verdict import Achieved, achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.notions import check_alpha
from mechdesign.tables.joint import Joint

BREACHES = (0.01, 0.1, 0.5)
"""Prior probabilities rho1 for which the guarantee against privacy breaches is given unless told otherwise."""


ROUNDOFF = 2.0**-53
"""Largest relative error of one floating-point operation."""

SUM_ERROR = 18 * ROUNDOFF
"""Bound on the relative error of a sum of terms t log(m/t), all of one sign: five conversions of integers,
two quotients, a product and the exact sum round once each; the logarithm is within 4 units in the last place,
8 roundoffs (NumPy's vector loops; usually 1). Computed as log1p((m - t)/t) it loses nothing near m = t."""


@dataclass(frozen=True)
class Utility:
    """Utility in nats. `mutual_information` and `nmi` are never above the true values.

    They are below them by at most about 5e-15 H(X) and 5e-15. `entropy` is H(X), with a relative error of at
    most 2e-15; `nmi` is I(X;Y)/H(X), and 1 when X is constant (nothing is lost).
    """

    mutual_information: float
    entropy: float
    nmi: float


def utility(channel: Channel, joint: Joint) -> Utility:
    """I(X;Y), H(X) and their quotient for the integers of `channel` under `joint`.

    I(X;Y) = H(X) - H(X|Y), each summed exactly from non-negative terms such as P(x, y) log(P(y) / P(x, y)),
    whose arguments are formed of exact integers: their relative error does not grow with the channel.
    """
    joint = released_part(channel, joint)
    weights, total = joint.useful_counts, joint.total
    if len(weights) == 1:
        return Utility(0.0, 0.0, 1.0)
    h = _sum_of_logs([([*weights], total)], total)
    # An output that names its input leaves no uncertainty.
    masses = [
        list(map(mul, [weights[x] for x in at], v)) for at, v in columns_on(channel, joint) if len(at) > 1
    ]
    groups = [(each, sum(each)) for each in masses]
    low = h * (1.0 - SUM_ERROR)
    if not groups:
        return Utility(low, h, 1.0)
    lost = _sum_of_logs(groups, total * channel.denominator) * (1.0 + SUM_ERROR)
    share = 1.0 - lost / low * (1.0 + 4 * ROUNDOFF)
    return Utility(
        mutual_information=max(0.0, math.nextafter(low - lost, -math.inf)),
        entropy=h,
        nmi=max(0.0, math.nextafter(share, -math.inf)),
    )


def _sum_of_logs(groups: list[tuple[list[int], int]], scale: int) -> float:
    """Sum of t log(m/t) / scale over the positive integers t of every group (list of t, m >= t)."""
    terms = np.array([float(t) for masses, _ in groups for t in masses])
    rests = np.array([float(m - t) for masses, m in groups for t in masses])
    return math.fsum((terms * np.log1p(rests / terms)).tolist()) / float(scale)


@dataclass(frozen=True)
class ChannelMeasures:
    """What Y keeps of X (`utility`) and what it says about S (`leakage`), by name, in nats.

    Leakages are rounded outwards, of the worst output or on average; `outputs` has them output by output,
    and `guarantees` what the theorems say they can be at most (or at least).
    """

    utility: dict[str, float]
    leakage: dict[str, float]
    achieved: Achieved
    outputs: list[OutputLeakage] = field(default_factory=list[OutputLeakage])
    guarantees: list[Guarantee] = field(default_factory=list[Guarantee])


def measure(
    channel: Channel,
    joint: Joint,
    alphas: Sequence[float] = (2.0,),
    orders: Sequence[float] = (),
    breaches: Sequence[float] = BREACHES,
) -> ChannelMeasures:
    """Measure `channel` on `joint`; of several secrets each figure is the worst of all."""
    alphas = [check_alpha(alpha) for alpha in alphas]
    for order in orders:
        if not order > 0.0:
            raise InputError(f"the order ({order:g}) must be positive, or inf")
    for prior in breaches:
        if not 0.0 < prior < 1.0:
            raise InputError(f"the prior of a property ({prior:g}) must be strictly between 0 and 1")
    joint = released_part(channel, joint)
    if joint.sensitive.each:
        parts = [measure(channel, secret, alphas, orders, breaches) for secret in joint.secrets]
        most = {
            key: (min if key.startswith("min_log") else max)(part.leakage[key] for part in parts)
            for key in parts[0].leakage
        }
        outputs = [worst_of(each) for each in zip(*(part.outputs for part in parts), strict=True)]
        lines = [weakest(each) for each in zip(*(part.guarantees for part in parts), strict=True)]
        return ChannelMeasures(parts[0].utility, most, achieved_by(channel, joint), outputs, lines)
    worth = utility(channel, joint)
    largest = sum(max(entries) for _, entries in channel.integers.columns)
    kept = {
        "entropy": worth.entropy,
        "mutual_information": worth.mutual_information,
        "conditional_entropy": worth.entropy - worth.mutual_information,
        "nmi": worth.nmi,
        # log sum_y max_x W(y|x): what the outputs leak of the useful symbols, whatever their distribution
        "maximal_leakage_of_useful": log_upper(largest, channel.denominator),
    }
    achieved = achieved_by(channel, joint)
    outputs = output_leakages(channel, joint, alphas)
    averages = average_leakages(channel, joint, list(dict.fromkeys([*alphas, *orders])))
    leaked = _overall(outputs, alphas) | averages
    table = guarantee_table(achieved, leaked, outputs, joint, alphas, breaches)
    return ChannelMeasures(kept, leaked, achieved, outputs, table)


def _overall(outputs: Sequence[OutputLeakage], alphas: Sequence[float]) -> dict[str, float]:
    """Each measure on its worst output."""
    worst = vars(worst_of(outputs))
    plain = ("max_log_lift", "min_log_lift", "max_log_lift_ratio", "l1_lift", "chi2_lift")
    values = {name: worst[name] for name in (*plain, "l1_lift_inverse", "chi2_lift_inverse")}
    for alpha in alphas:
        for name in ("alpha_lift", "alpha_lift_inverse"):
            values[f"{name}[{alpha:g}]"] = worst[name][alpha]
    return values
