"""Every utility and leakage measure of a channel on a table (nats), and what bounds on the lift imply for each.

I(X;Y) is that of the integers, rounded so that it never claims too much.

With a = exp(-eps_l) and b = exp(eps_u), every output of the channel has all its lifts in [a, b] and their mean under
P(s) is 1. Propositions 1.2, 3.1, 3.2, 5.1 and 5.2 of Zarrabian et al. 2023 are false for asymmetric budgets; the forms
here are the extremes of a variable of mean 1 on [a, b]. Propositions 4, 6 and A1 are in the form that holds as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import compress, product
from operator import mul

import numpy as np

from mechdesign.auditing.demands import columns_on, log_upper, released_part
from mechdesign.auditing.leakages import (
    OutputLeakage,
    average_leakages,
    output_leakages,
    worst_of,
)
from mechdesign.auditing.verdict import Achieved, achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import order_of
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
    columns = (each for each in columns_on(channel, joint) if len(each[0]) > 1)
    masses = (
        list(map(mul, [weights[x] for x in at], values)) for at, values in columns
    )
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


OUTWARD = 1.0 + 1e-14
"""Covers the rounding of the few operations of each bound (at most 20 half-ulps of 1.1e-16)."""


def guarantees(eps_l: float, eps_u: float) -> dict[str, float]:
    """Upper bounds that ALIP(eps_l, eps_u) implies on every output, or on average; infinite where a side is free.

    The budgets are in nats, at least 0, possibly infinite.
    """
    below, above = -math.expm1(-eps_l), math.expm1(eps_u)
    # 2(b-1)(1-a)/(b-a), and its limit
    l1 = (
        2.0 * below
        if math.isinf(above)
        else 2.0 * above * (below / ((above + below) or 1.0))
    )
    farthest = max(math.expm1(eps_l), -math.expm1(-eps_u))
    return {
        "information": eps_u,
        "ldp": (eps_l + eps_u) * OUTWARD,
        "l1_lift": l1 * OUTWARD,
        "total_variation": l1 / 2.0 * OUTWARD,
        "chi2_lift": (above * below if below else 0.0) * OUTWARD,
        "l1_lift_inverse": farthest * OUTWARD,
        "chi2_lift_inverse": farthest * farthest * OUTWARD,
        "alpha_lift": math.exp(eps_u) * OUTWARD,
        "alpha_lift_inverse": math.exp(eps_l) * OUTWARD,
    }


def largest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound on every lift of an output whose l1-, chi2- or alpha-lift is `mean` (Proposition 4, corrected)."""
    if kind == "l1":
        return (mean / (2.0 * p) + 1.0) * OUTWARD
    if kind == "chi2":
        return (math.sqrt(mean / p) + 1.0) * OUTWARD
    return mean / p ** (1.0 / alpha) * OUTWARD


def smallest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound from below on every lift with the inverse measure `mean`, perhaps infinite (Proposition 6, corrected)."""
    if math.isinf(mean):
        return 0.0
    if kind == "l1":
        return p / (mean + p) / OUTWARD
    if kind == "chi2":
        return 1.0 / (1.0 + math.sqrt(mean / p)) / OUTWARD
    return p ** (1.0 / alpha) / mean / OUTWARD


def breach_bound(low: float, high: float, prior: float) -> float:
    """The smallest rho2 for which no rho1-to-rho2 privacy breach happens, up or down (Proposition A1).

    With all lifts in [low, high] no property whose prior is at most rho1 gets a posterior above rho2, and
    none whose prior is at least rho2 gets one below rho1: (1 - rho2)/(1 - rho1) <= low and high <= rho2/rho1,
    both together. 1 where nothing is guaranteed.
    """
    # 1 - (1 - prior) low, from positive terms: as a difference it would lose the digits of a small prior.
    return min(1.0, max(prior * high, prior + (1.0 - prior) * (1.0 - low)) * OUTWARD)


MOST_ENUMERATED = 12
"""Sensitive symbols up to which every property (set of symbols) is looked at: 4,096 sets."""


@dataclass(frozen=True)
class Guarantee:
    """One line: by `source`, `measure` is at most (or at least) `bound`; the channel attains `attained`.

    `attained` is None where it would take too long to find out.
    """

    source: str
    measure: str
    attained: float | None
    bound: float
    at_most: bool = True


def guarantee_table(
    achieved: Achieved,
    leaked: dict[str, float],
    outputs: Sequence[OutputLeakage],
    joint: Joint,
    alphas: Sequence[float],
    breaches: Sequence[float],
) -> list[Guarantee]:
    """Every guarantee that follows from the achieved budgets, or from the measures themselves."""
    g = guarantees(achieved.eps_l, achieved.eps_u)
    informations = [name for name in leaked if name.startswith(("sibson", "arimoto"))]
    lines = [
        ("1.1", "mutual_information", "information"),
        ("1.2", "total_variation", "total_variation"),
        ("1.2", "chi2_information", "chi2_lift"),
        *(("1.3", name, "information") for name in informations),
        ("1.4", "max_log_lift_ratio", "ldp"),
        ("3.1", "l1_lift", "l1_lift"),
        ("3.2", "chi2_lift", "chi2_lift"),
        *(("3.3", f"alpha_lift[{order_of(alpha)}]", "alpha_lift") for alpha in alphas),
        ("5.1", "l1_lift_inverse", "l1_lift_inverse"),
        ("5.2", "chi2_lift_inverse", "chi2_lift_inverse"),
        *(
            ("5.3", f"alpha_lift_inverse[{order_of(alpha)}]", "alpha_lift_inverse")
            for alpha in alphas
        ),
    ]
    table = [
        Guarantee(f"Proposition {number}", name, leaked[name], g[key])
        for number, name, key in lines
    ]
    # What the averages say of the single lifts.
    high, low = (
        max(out.max_lift for out in outputs),
        min(out.min_lift for out in outputs),
    )
    rarest = math.nextafter(min(joint.p_s.tolist()), 0.0)
    kinds = [(1, "l1", "l1_lift{}", math.inf), (2, "chi2", "chi2_lift{}", math.inf)]
    kinds += [
        (3, "alpha", f"alpha_lift{{}}[{order_of(alpha)}]", alpha) for alpha in alphas
    ]
    sides = (
        ("", 4, largest_lift, "max_lift", high),
        ("_inverse", 6, smallest_lift, "min_lift", low),
    )
    for inverse, chapter, limit, extreme, attained in sides:
        for number, kind, measure, alpha in kinds:
            name = measure.format(inverse)
            bound, said = (
                limit(kind, leaked[name], rarest, alpha),
                f"{extreme} by {name}",
            )
            table.append(
                Guarantee(
                    f"Proposition {chapter}.{number}",
                    said,
                    attained,
                    bound,
                    not inverse,
                )
            )
    for prior in breaches:
        attained = _worst_posterior(outputs, joint, prior)
        what = f"posterior of a property of prior {prior:g}"
        table.append(
            Guarantee("Proposition A1", what, attained, breach_bound(low, high, prior))
        )
    return table


def _worst_posterior(
    outputs: Sequence[OutputLeakage], joint: Joint, prior: float
) -> float | None:
    """max over outputs y and sets Q of S with P(Q) <= prior of P(Q|y), by enumeration."""
    count = len(joint.sensitive)
    if count > MOST_ENUMERATED:
        return None
    most, every = Fraction(str(prior)) * joint.total, product((0.0, 1.0), repeat=count)
    allowed = np.array(
        [q for q in every if sum(compress(joint.sensitive_counts, q)) <= most]
    )
    return float((allowed @ np.array([out.posterior for out in outputs]).T).max())


def weakest(lines: Sequence[Guarantee]) -> Guarantee:
    """What the same line about several secrets says of all of them."""
    worst = max if lines[0].at_most else min
    known = [line.attained for line in lines if line.attained is not None]
    attained = worst(known) if len(known) == len(lines) else None
    return replace(
        lines[0], bound=worst(line.bound for line in lines), attained=attained
    )


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
            raise InputError(
                f"the prior of a property ({prior:g}) must be strictly between 0 and 1"
            )
    joint = released_part(channel, joint)
    if joint.sensitive.each:
        parts = [
            measure(channel, secret, alphas, orders, breaches)
            for secret in joint.secrets
        ]
        leaked = {
            key: [part.leakage[key] for part in parts] for key in parts[0].leakage
        }
        most = {
            key: (min if key.startswith("min_log") else max)(each)
            for key, each in leaked.items()
        }
        outputs = [
            worst_of(each)
            for each in zip(*(part.outputs for part in parts), strict=True)
        ]
        lines = [
            weakest(each)
            for each in zip(*(part.guarantees for part in parts), strict=True)
        ]
        return ChannelMeasures(
            parts[0].utility, most, achieved_by(channel, joint), outputs, lines
        )
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


def _overall(
    outputs: Sequence[OutputLeakage], alphas: Sequence[float]
) -> dict[str, float]:
    """Each measure on its worst output."""
    worst = vars(worst_of(outputs))
    plain = (
        "max_log_lift",
        "min_log_lift",
        "max_log_lift_ratio",
        "l1_lift",
        "chi2_lift",
    )
    values = {
        name: worst[name] for name in (*plain, "l1_lift_inverse", "chi2_lift_inverse")
    }
    for alpha in alphas:
        for name in ("alpha_lift", "alpha_lift_inverse"):
            values[f"{name}[{order_of(alpha)}]"] = worst[name][alpha]
    return values
