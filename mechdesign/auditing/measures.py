"""Every utility and leakage measure of a channel on a table (nats), and the guarantees next to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mechdesign.auditing.demands import released_part
from mechdesign.auditing.guarantees import Guarantee, guarantee_table
from mechdesign.auditing.leakages import OutputLeakage, average_leakages, output_leakages
from mechdesign.auditing.utility import utility
from mechdesign.auditing.verdict import Achieved, achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.notions import check_alpha
from mechdesign.tables.joint import Joint

BREACHES = (0.01, 0.1, 0.5)
"""Prior probabilities rho1 for which the guarantee against privacy breaches is given unless told otherwise."""


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
    """Measure `channel` on `joint`; of several secrets each leakage is the largest, outputs are those of the worst."""
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
        worst = max(parts, key=lambda part: part.leakage["max_log_lift_ratio"])
        most = {
            key: (min if key == "min_log_lift" else max)(part.leakage[key] for part in parts)
            for key in worst.leakage
        }
        return replace(worst, leakage=most, achieved=achieved_by(channel, joint))
    worth = utility(channel, joint)
    largest = sum(max(entries) for _, entries in channel.integers.columns)
    kept = {
        "entropy": worth.entropy,
        "mutual_information": worth.mutual_information,
        "conditional_entropy": worth.entropy - worth.mutual_information,
        "nmi": worth.nmi,
        # log sum_y max_x W(y|x): what the outputs leak of the useful symbols, whatever their distribution
        "maximal_leakage_of_useful": math.log(largest / channel.denominator),
    }
    achieved = achieved_by(channel, joint)
    outputs = output_leakages(channel, joint, alphas)
    averages = average_leakages(channel, joint, list(dict.fromkeys([*alphas, *orders])))
    leaked = _overall(outputs, alphas) | averages
    table = guarantee_table(achieved, leaked, outputs, joint, alphas, breaches)
    return ChannelMeasures(kept, leaked, achieved, outputs, table)


def _overall(outputs: Sequence[OutputLeakage], alphas: Sequence[float]) -> dict[str, float]:
    """Each measure on its worst output."""
    plain = ("max_log_lift", "min_log_lift", "max_log_lift_ratio", "l1_lift", "chi2_lift")
    values: dict[str, float] = {
        name: (min if name == "min_log_lift" else max)(getattr(out, name) for out in outputs)
        for name in (*plain, "l1_lift_inverse", "chi2_lift_inverse")
    }
    for alpha in alphas:
        for name in ("alpha_lift", "alpha_lift_inverse"):
            values[f"{name}[{alpha:g}]"] = max(getattr(out, name)[alpha] for out in outputs)
    return values
