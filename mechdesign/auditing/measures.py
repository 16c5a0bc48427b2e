"""Every utility and leakage measure of a channel on a table (nats), and what bounds on the lift
imply for each.

I(X;Y) is that of the integers, rounded so that it never claims too much.

With a = exp(-eps_l) and b = exp(eps_u), every output of the channel has all its lifts in [a, b] and
their mean under P(s) is 1. Propositions 1.2, 3.1, 3.2, 5.1 and 5.2 of Zarrabian et al. 2023 are
false for asymmetric budgets; the forms here are the extremes of a variable of mean 1 on [a, b].
Propositions 4, 6 and A1 are in the form that holds as well.
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
    ReleasedMasses,
    average_leakages,
    masses_of,
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
"""Prior probabilities rho1 for which the guarantee against privacy breaches is given unless told
otherwise.
"""


ROUNDOFF = 2.0**-53
"""Largest relative error of one floating-point operation."""

SUM_ERROR = 18 * ROUNDOFF
"""Bound on the relative error of a sum of terms t log(m/t), all of one sign: two quotients, a
product and the exact sum round once each; the logarithm is within 4 units in the last place, 8
roundoffs (NumPy's vector loops; usually 1), and repeats the error of its argument. The rest is
reserve. Computed as log1p((m - t)/t) it loses nothing near m = t.
"""


@dataclass(frozen=True)
class Utility:
    """Utility in nats. `mutual_information` and `nmi` are never above the true values.

    They are below them by at most about 5e-15 H(X) and 5e-15. `entropy` is H(X), with a relative
    error of at most 2e-15; `nmi` is I(X;Y)/H(X), and 1 when X is constant (nothing is lost).
    """

    mutual_information: float
    entropy: float
    nmi: float


def utility(channel: Channel, joint: Joint) -> Utility:
    """I(X;Y), H(X) and their quotient for the integers of `channel` under `joint`.

    I(X;Y) = H(X) - H(X|Y), each summed exactly from non-negative terms such as P(x, y) log(P(y) /
    P(x, y)), whose arguments are formed of exact integers: their relative error does not grow with
    the channel.
    """
    joint = released_part(channel, joint)
    weights = joint.useful_counts
    total = joint.total
    if len(weights) == 1:
        return Utility(0.0, 0.0, 1.0)
    entropy = sum_of_logs([(list(weights), total)], total)
    # H(X) rounded down and H(X|Y) rounded up: I(X;Y) is never claimed to be larger than it is.
    low = entropy * (1.0 - SUM_ERROR)
    groups: list[tuple[list[int], int]] = []
    for inputs, values in columns_on(channel, joint):
        # An output that names its input leaves no uncertainty.
        if len(inputs) > 1:
            own_weights = [weights[x] for x in inputs]
            masses = list(map(mul, own_weights, values))
            groups.append((masses, sum(masses)))
    if not groups:
        return Utility(low, entropy, 1.0)
    lost = sum_of_logs(groups, total * channel.denominator) * (1.0 + SUM_ERROR)
    share = 1.0 - lost / low * (1.0 + 4 * ROUNDOFF)
    return Utility(
        mutual_information=max(0.0, math.nextafter(low - lost, -math.inf)),
        entropy=entropy,
        nmi=max(0.0, math.nextafter(share, -math.inf)),
    )


def sum_of_logs(groups: list[tuple[list[int], int]], scale: int) -> float:
    """Sum of t log(m/t) / scale over the positive integers t of every group (list of t, m >= t)."""
    terms: list[float] = []
    quotients: list[float] = []
    for masses, whole in groups:
        # A quotient of integers rounds once, however long they are; the difference is exact.
        terms += [mass / scale for mass in masses]
        quotients += [(whole - mass) / mass for mass in masses]
    logs = np.array(terms) * np.log1p(np.array(quotients))
    return math.fsum(logs.tolist())


OUTWARD = 1.0 + 1e-14
"""Covers the rounding of the few operations of each bound (at most 20 half-ulps of 1.1e-16)."""


def guarantees(eps_l: float, eps_u: float) -> dict[str, float]:
    """Upper bounds that ALIP(eps_l, eps_u) implies on every output, or on average; infinite where a
    side is free.

    The budgets are in nats, at least 0, possibly infinite.
    """
    below = -math.expm1(-eps_l)  # 1 - a
    above = math.expm1(eps_u)  # b - 1
    # A variable of mean 1 on [a, b] is farthest from 1 when it takes the ends alone: 2 (b-1) (1-a)
    # / (b-a) on average.
    if math.isinf(above):
        l1 = 2.0 * below
    else:
        l1 = 2.0 * above * (below / ((above + below) or 1.0))
    chi2 = 0.0
    if below:
        chi2 = above * below
    farthest_inverse = max(math.expm1(eps_l), -math.expm1(-eps_u))
    return {
        "information": eps_u,
        "ldp": (eps_l + eps_u) * OUTWARD,
        "l1_lift": l1 * OUTWARD,
        "total_variation": l1 / 2.0 * OUTWARD,
        "chi2_lift": chi2 * OUTWARD,
        "l1_lift_inverse": farthest_inverse * OUTWARD,
        "chi2_lift_inverse": farthest_inverse * farthest_inverse * OUTWARD,
        "alpha_lift": math.exp(eps_u) * OUTWARD,
        "alpha_lift_inverse": math.exp(eps_l) * OUTWARD,
    }


def largest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound on every lift of an output whose l1-, chi2- or alpha-lift is `mean` (Proposition 4,
    corrected).
    """
    if kind == "l1":
        return (mean / (2.0 * p) + 1.0) * OUTWARD
    if kind == "chi2":
        return (math.sqrt(mean / p) + 1.0) * OUTWARD
    return mean / p ** (1.0 / alpha) * OUTWARD


def smallest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound from below on every lift with the inverse measure `mean`, perhaps infinite (Proposition
    6, corrected).
    """
    if math.isinf(mean):
        return 0.0
    if kind == "l1":
        return p / (mean + p) / OUTWARD
    if kind == "chi2":
        return 1.0 / (1.0 + math.sqrt(mean / p)) / OUTWARD
    return p ** (1.0 / alpha) / mean / OUTWARD


def breach_bound(low: float, high: float, prior: float) -> float:
    """The smallest rho2 for which no rho1-to-rho2 privacy breach happens, up or down (Proposition
    A1).

    With all lifts in [low, high] no property whose prior is at most rho1 gets a posterior above
    rho2, and none whose prior is at least rho2 gets one below rho1: (1 - rho2)/(1 - rho1) <= low
    and high <= rho2/rho1, both together. 1 where nothing is guaranteed.
    """
    # 1 - (1 - prior) low, from positive terms: as a difference it would lose the digits of a small
    # prior.
    return min(1.0, max(prior * high, prior + (1.0 - prior) * (1.0 - low)) * OUTWARD)


MOST_ENUMERATED = 12
"""Sensitive symbols up to which every property (set of symbols) is looked at: 4,096 sets."""


@dataclass(frozen=True)
class Guarantee:
    """One line: by `source`, `measure` is at most (or at least) `bound`; the channel attains
    `attained`.

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
    prior: Sequence[int],
    alphas: Sequence[float],
    breaches: Sequence[float],
) -> list[Guarantee]:
    """Every guarantee that follows from the achieved budgets, or from the measures themselves;
    `prior` has integers in proportion to P(s).
    """
    table = _from_budgets(achieved, leaked, alphas)
    table += _from_averages(leaked, outputs, prior, alphas)
    high = max(output.max_lift for output in outputs)
    low = min(output.min_lift for output in outputs)
    for share in breaches:
        guarantee = Guarantee(
            source="Proposition A1",
            measure=f"posterior of a property of prior {share:g}",
            attained=_worst_posterior(outputs, prior, share),
            bound=breach_bound(low, high, share),
        )
        table.append(guarantee)
    return table


def _from_budgets(
    achieved: Achieved, leaked: dict[str, float], alphas: Sequence[float]
) -> list[Guarantee]:
    """Bounds on the measures, from the largest and the smallest lift."""
    bounds = guarantees(achieved.eps_l, achieved.eps_u)
    # (number of the proposition, measure, its bound)
    lines = [
        ("1.1", "mutual_information", "information"),
        ("1.2", "total_variation", "total_variation"),
        ("1.2", "chi2_information", "chi2_lift"),
    ]
    for name in leaked:
        if name.startswith(("sibson", "arimoto")):
            lines.append(("1.3", name, "information"))
    lines += [
        ("1.4", "max_log_lift_ratio", "ldp"),
        ("3.1", "l1_lift", "l1_lift"),
        ("3.2", "chi2_lift", "chi2_lift"),
    ]
    orders = [order_of(alpha) for alpha in alphas]
    for order in orders:
        lines.append(("3.3", f"alpha_lift[{order}]", "alpha_lift"))
    lines += [
        ("5.1", "l1_lift_inverse", "l1_lift_inverse"),
        ("5.2", "chi2_lift_inverse", "chi2_lift_inverse"),
    ]
    for order in orders:
        lines.append(("5.3", f"alpha_lift_inverse[{order}]", "alpha_lift_inverse"))
    return [
        Guarantee(f"Proposition {number}", name, leaked[name], bounds[key])
        for number, name, key in lines
    ]


def _from_averages(
    leaked: dict[str, float],
    outputs: Sequence[OutputLeakage],
    prior: Sequence[int],
    alphas: Sequence[float],
) -> list[Guarantee]:
    """Bounds on the single lifts, from the averages: of the rarest symbol, whose probability is
    rounded down.
    """
    high = max(output.max_lift for output in outputs)
    low = min(output.min_lift for output in outputs)
    rarest = math.nextafter(min(prior) / sum(prior), 0.0)
    # (section of the proposition, kind of average, suffix of the measure's name, order)
    kinds = [(1, "l1", "", math.inf), (2, "chi2", "", math.inf)]
    kinds += [(3, "alpha", f"[{order_of(alpha)}]", alpha) for alpha in alphas]
    table: list[Guarantee] = []
    for section, kind, suffix, alpha in kinds:
        name = f"{kind}_lift{suffix}"
        guarantee = Guarantee(
            source=f"Proposition 4.{section}",
            measure=f"max_lift by {name}",
            attained=high,
            bound=largest_lift(kind, leaked[name], rarest, alpha),
        )
        table.append(guarantee)
    for section, kind, suffix, alpha in kinds:
        name = f"{kind}_lift_inverse{suffix}"
        guarantee = Guarantee(
            source=f"Proposition 6.{section}",
            measure=f"min_lift by {name}",
            attained=low,
            bound=smallest_lift(kind, leaked[name], rarest, alpha),
            at_most=False,
        )
        table.append(guarantee)
    return table


def _worst_posterior(
    outputs: Sequence[OutputLeakage], prior: Sequence[int], share: float
) -> float | None:
    """max over outputs y and sets Q of S with P(Q) <= share of P(Q|y), by enumeration."""
    if len(prior) > MOST_ENUMERATED:
        return None
    # The share as its shortest decimal, so that 0.1 means a tenth, and P(Q) in integers.
    most = Fraction(str(share)) * sum(prior)
    allowed: list[tuple[float, ...]] = []
    for indicator in product((0.0, 1.0), repeat=len(prior)):
        if sum(compress(prior, indicator)) <= most:
            allowed.append(indicator)
    posteriors = np.array([output.posterior for output in outputs])
    return float((np.array(allowed) @ posteriors.T).max())


def weakest(lines: Sequence[Guarantee]) -> Guarantee:
    """The same line about several secrets as one about all of them."""
    first = lines[0]
    worst = max if first.at_most else min
    attained: list[float] = []
    for line in lines:
        if line.attained is not None:
            attained.append(line.attained)
    is_known = len(attained) == len(lines)
    return replace(
        first,
        bound=worst(line.bound for line in lines),
        attained=worst(attained) if is_known else None,
    )


@dataclass(frozen=True)
class ChannelMeasures:
    """The utility of Y for X and its leakage about S, by name, in nats.

    Leakages are rounded outwards, of the worst output or on average; `outputs` has them output by
    output, and `guarantees` has the bounds that the theorems give for them.
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
    joint = released_part(channel, joint)
    if joint.sensitive.protects_columns:
        parts = [
            measure(channel, secret, alphas, orders, breaches)
            for secret in joint.secrets
        ]
        return _worst_of_secrets(parts, achieved_by(channel, joint))
    return released_measures(
        masses_of(channel, joint),
        _utility_measures(channel, joint),
        achieved_by(channel, joint),
        alphas,
        orders,
        breaches,
    )


def released_measures(
    released: ReleasedMasses,
    kept: dict[str, float],
    achieved: Achieved,
    alphas: Sequence[float],
    orders: Sequence[float],
    breaches: Sequence[float],
) -> ChannelMeasures:
    """All measures of what is released, whose utility is `kept`."""
    alphas = [check_alpha(alpha) for alpha in alphas]
    for order in orders:
        if not order > 0.0:
            raise InputError(f"the order ({order:g}) must be positive, or inf")
    for prior in breaches:
        if not 0.0 < prior < 1.0:
            raise InputError(
                f"the prior of a property ({prior:g}) must be strictly between 0 and 1"
            )
    outputs = output_leakages(released, alphas)
    averages = average_leakages(released, list(dict.fromkeys([*alphas, *orders])))
    leaked = _overall(outputs, alphas) | averages
    return ChannelMeasures(
        utility=kept,
        leakage=leaked,
        achieved=achieved,
        outputs=outputs,
        guarantees=guarantee_table(
            achieved, leaked, outputs, released.sums, alphas, breaches
        ),
    )


def _utility_measures(channel: Channel, joint: Joint) -> dict[str, float]:
    worth = utility(channel, joint)
    # log sum_y max_x W(y|x): what the outputs leak of the useful symbols, whatever their
    # distribution
    largest = sum(max(entries) for _, entries in channel.integers.columns)
    return {
        "entropy": worth.entropy,
        "mutual_information": worth.mutual_information,
        "conditional_entropy": worth.entropy - worth.mutual_information,
        "nmi": worth.nmi,
        "maximal_leakage_of_useful": log_upper(largest, channel.denominator),
    }


def _worst_of_secrets(
    parts: Sequence[ChannelMeasures], achieved: Achieved
) -> ChannelMeasures:
    """The measures of several secrets as one: the utility is the same for all."""
    first = parts[0]
    leakage: dict[str, float] = {}
    for name in first.leakage:
        values = [part.leakage[name] for part in parts]
        leakage[name] = min(values) if name.startswith("min_log") else max(values)
    by_output = zip(*(part.outputs for part in parts), strict=True)
    by_line = zip(*(part.guarantees for part in parts), strict=True)
    return ChannelMeasures(
        utility=first.utility,
        leakage=leakage,
        achieved=achieved,
        outputs=[worst_of(leakages) for leakages in by_output],
        guarantees=[weakest(lines) for lines in by_line],
    )


def _overall(
    outputs: Sequence[OutputLeakage], alphas: Sequence[float]
) -> dict[str, float]:
    """Each measure on its worst output."""
    worst = worst_of(outputs)
    values = {
        "max_log_lift": worst.max_log_lift,
        "min_log_lift": worst.min_log_lift,
        "max_log_lift_ratio": worst.max_log_lift_ratio,
        "l1_lift": worst.l1_lift,
        "chi2_lift": worst.chi2_lift,
        "l1_lift_inverse": worst.l1_lift_inverse,
        "chi2_lift_inverse": worst.chi2_lift_inverse,
    }
    for alpha in alphas:
        values[f"alpha_lift[{order_of(alpha)}]"] = worst.alpha_lift[alpha]
        values[f"alpha_lift_inverse[{order_of(alpha)}]"] = worst.alpha_lift_inverse[
            alpha
        ]
    return values
