"""What each output of a channel leaks about S, every measure rounded outwards from integers.

`output_leakages` evaluates the lifts l(s, y) = P(s, y) / (P(s) P(y)) of every output and their
means over P(s) (`columns`): the rational ones exactly, those with logarithms and powers in
balls of `BITS` bits. Each result is the double next to the value, or to its ball, on the side that
claims less privacy: up, and down for minima. What is reported is therefore a bound that surely
holds. Averages over the outputs are in `measures`.

Example: an output with the masses (3, 1), where P(s) = P(t) = 1/2, has the lifts 3/2 and 1/2. So
max_log_lift is log(3/2), min_log_lift -log 2 and their difference log 3; l1_lift is 1/2, chi2_lift
1/4, and the posterior (3/4, 1/4).

`belief_ranges` gives the extreme P(s|y) of every sensitive symbol: how far a released value can
move a belief.

*Implied bounds.* Bounds on the lift imply some for every other measure, and measures for the lift.
With a = exp(-eps_l) and b = exp(eps_u), every output of the channel has all its lifts in [a, b] and
their mean under P(s) is 1. From this follow the bounds of Zarrabian et al. 2023 on other measures:

    Propositions 1, 3, 5   from [a, b] to averages, l1-, chi2- and alpha-lifts   (`guarantees`)
    Proposition 4          from the means of an output to its largest lift       (`largest_lift`)
    Proposition 6          from the means of inverses to its smallest lift       (`smallest_lift`)
    Proposition A1         from the extreme lifts to posteriors of properties (`posterior_at_most`)

Propositions 1.2, 3.1, 3.2, 5.1 and 5.2 are false as printed for asymmetric budgets, and the forms
here hold (docs/explanation/corrections.md has counterexamples and proofs): they are the extremes of
a variable of mean 1 on [a, b]. Propositions 4, 6 and A1 are in the form that holds as well.
Example of 3.1: eps_l = eps_u = 0.5 gives a = 0.6065 and b = 1.6487, and the l1-lift of every output
is at most 2 (b - 1) (1 - a) / (b - a) = 0.4898. Example of 4.1: an output of l1-lift 0.2 has no
lift above 0.2 / (2 * 0.1) + 1 = 2 where the rarest s has P(s) = 0.1.

`guarantee_table` lists all of them for one channel, each bound beside the value that the channel
attains: from its budgets (`_from_budgets`), from its averages (`_from_averages`), and for the
posterior of every set of sensitive symbols (`_worst_posterior`). Bounds are doubles, rounded
outwards by the factor `OUTWARD`. No verdict rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress, product
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq

from mechdesign.auditing.columns import (
    BITS,
    Entries,
    OutputMasses,
    ReleasedMasses,
    columns_on,
    distances,
    first_of_constants,
    log_power_mean,
    masses_by_output,
)
from mechdesign.auditing.lifts import Achieved
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import lower, precision, quotient_above, upper
from mechdesign.core.wording import order_of
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
    columns = columns_on(channel, joint)
    # One output that tells nothing has the posteriors of all of them.
    chosen = first_of_constants(columns, len(joint.useful))
    outputs = list(masses_by_output([columns[y] for y in chosen], joint))
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


# ----------------------------------------------------------------------- implied bounds

OUTWARD = 1.0 + 1e-14
"""Covers the rounding of the few operations of each bound (at most 20 half-ulps of 1.1e-16)."""

CORRECTED = ("1.2", "3.1", "3.2", "5.1", "5.2")
"""Propositions that are false as printed (docs/explanation/corrections.md, 'On the lift')."""

MOST_ENUMERATED = 12
"""Sensitive symbols up to which every property (set of symbols) is evaluated: 4,096 sets."""


def guarantees(eps_l: float, eps_u: float) -> dict[str, float]:
    """Upper bounds that ALIP(eps_l, eps_u) implies on every output, or on average.

    The budgets are in nats, at least 0, possibly infinite; bounds are infinite where a side is
    free.
    """
    below = -math.expm1(-eps_l)  # 1 - a
    above = _or_infinite(math.expm1, eps_u)  # b - 1
    # A variable of mean 1 on [a, b] is farthest from 1, in mean and in mean square, when it takes
    # the ends alone: 2 (b-1) (1-a) / (b-a) and (b-1) (1-a).
    if math.isinf(above):
        # The limit for b to infinity.
        l1 = 2.0 * below
    elif above + below == 0.0:
        l1 = 0.0
    else:
        l1 = 2.0 * above * (below / (above + below))
    # Where no lift is below 1 none is above, whatever b: their mean is 1.
    chi2 = 0.0
    if below:
        chi2 = above * below
    # |1/l - 1| is largest at an end: 1/a - 1 or 1 - 1/b.
    farthest_inverse = max(_or_infinite(math.expm1, eps_l), -math.expm1(-eps_u))
    # Informations of S are means of log-lifts, or logarithms of power means of lifts, so none is
    # above log b = eps_u: that is no operation, and needs no `OUTWARD`.
    return {
        "information": eps_u,
        "ldp": (eps_l + eps_u) * OUTWARD,
        "l1_lift": l1 * OUTWARD,
        "total_variation": l1 / 2.0 * OUTWARD,
        "chi2_lift": chi2 * OUTWARD,
        "l1_lift_inverse": farthest_inverse * OUTWARD,
        "chi2_lift_inverse": farthest_inverse * farthest_inverse * OUTWARD,
        "alpha_lift": _or_infinite(math.exp, eps_u) * OUTWARD,
        "alpha_lift_inverse": _or_infinite(math.exp, eps_l) * OUTWARD,
    }


def _or_infinite(function: Callable[[float], float], budget: float) -> float:
    """A growing function of a budget, infinite where no double is as large: it rounds upwards."""
    try:
        return function(budget)
    except OverflowError:
        return math.inf


def largest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound on every lift of an output whose l1-, chi2- or alpha-lift is `mean`.

    Proposition 4, corrected, for a symbol of probability `p`: its own term of the mean is at most
    the whole.
    """
    if kind == "l1":
        # The mean of l - 1 is 0, so the parts above and below 1 are equal, mean / 2 each:
        # p (l - 1) <= mean / 2.
        return (mean / (2.0 * p) + 1.0) * OUTWARD
    if kind == "chi2":
        # p (l - 1)^2 <= mean
        return (math.sqrt(mean / p) + 1.0) * OUTWARD
    # p l^alpha <= mean^alpha
    return mean / p ** (1.0 / alpha) * OUTWARD


def smallest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound from below on every lift of an output whose inverse measure is `mean`.

    Proposition 6, corrected, for a symbol of probability `p`; an infinite mean bounds nothing.
    """
    if math.isinf(mean):
        return 0.0
    if kind == "l1":
        # p (1/l - 1) <= mean
        return p / (mean + p) / OUTWARD
    if kind == "chi2":
        # p (1/l - 1)^2 <= mean
        return 1.0 / (1.0 + math.sqrt(mean / p)) / OUTWARD
    # p l^-alpha <= mean^alpha
    return p ** (1.0 / alpha) / mean / OUTWARD


def posterior_at_most(low: float, high: float, prior: float) -> float:
    """The largest posterior of a property of S whose prior is at most `prior`.

    With all lifts in [low, high] the posterior of a property Q is at most P(Q) high, and that of
    its complement at least (1 - P(Q)) low. Both hold, so the least of both does (Proposition A1,
    which states each by itself).
    """
    upward = prior * high
    # 1 - (1 - prior) low, from positive terms: as a difference it would lose the digits of a small
    # prior.
    downward = prior + (1.0 - prior) * (1.0 - low)
    return min(1.0, min(upward, downward) * OUTWARD)


def posterior_at_least(low: float, high: float, prior: float) -> float:
    """The smallest posterior of a property of S whose prior is at least `prior`: P(Q) low, or what
    the largest lifts leave of the complement, whichever is more.
    """
    upward = prior * low / OUTWARD
    # The product is rounded up before it is taken off, and the difference down.
    rest = 1.0 - (1.0 - prior) * high * OUTWARD
    return max(0.0, upward, math.nextafter(rest, -math.inf))


@dataclass(frozen=True)
class Guarantee:
    """One line: by `source`, `measure` is at most (or at least) `bound`.

    `attained` is the value of the channel itself, or None where it would take too long.
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
    """Every guarantee that follows from the achieved budgets, or from the measures themselves.

    `prior` has integers in proportion to P(s).
    """
    table = _from_budgets(achieved, leaked, alphas)
    high = max(output.max_lift for output in outputs)
    low = min(output.min_lift for output in outputs)
    table += _from_averages(leaked, high, low, prior, alphas)
    for share in breaches:
        guarantee = Guarantee(
            source="Proposition A1",
            measure=f"posterior of a property of prior {share:g}",
            attained=_worst_posterior(outputs, prior, share),
            bound=posterior_at_most(low, high, share),
        )
        table.append(guarantee)
    return table


def weakest(lines: Sequence[Guarantee]) -> Guarantee:
    """The same line of several secrets as one line about all of them: the weakest bound, and the
    worst value attained, None where it is missing for one of them.
    """
    first = lines[0]
    # Of upper bounds the largest says least, of lower bounds the smallest.
    worst = max if first.at_most else min
    bound = worst(line.bound for line in lines)
    values = [line.attained for line in lines if line.attained is not None]
    attained: float | None = None
    if len(values) == len(lines):
        attained = worst(values)
    return replace(first, bound=bound, attained=attained)


def _from_budgets(
    achieved: Achieved, leaked: dict[str, float], alphas: Sequence[float]
) -> list[Guarantee]:
    """Bounds on the measures, from the largest and the smallest lift."""
    bounds = guarantees(achieved.eps_l, achieved.eps_u)
    # (number of the proposition, measure, its bound in `guarantees`)
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
    table: list[Guarantee] = []
    for number, name, key in lines:
        source = f"Proposition {number}"
        if number in CORRECTED:
            source += ", corrected"
        table.append(Guarantee(source, name, attained=leaked[name], bound=bounds[key]))
    return table


class _Kind(NamedTuple):
    """A kind of average of lifts: its section of Propositions 4 and 6, and the name, suffix and
    order of its measure.
    """

    section: int
    name: str
    suffix: str
    alpha: float


def _from_averages(
    leaked: dict[str, float],
    high: float,
    low: float,
    prior: Sequence[int],
    alphas: Sequence[float],
) -> list[Guarantee]:
    """Bounds on the single lifts, from the averages; `high` and `low` are the extreme lifts."""
    # The bounds are weakest for the rarest symbol; its probability is rounded down.
    rarest = math.nextafter(min(prior) / sum(prior), 0.0)
    kinds = [_Kind(1, "l1", "", math.inf), _Kind(2, "chi2", "", math.inf)]
    for alpha in alphas:
        kinds.append(_Kind(3, "alpha", f"[{order_of(alpha)}]", alpha))
    upper_lines: list[Guarantee] = []
    lower_lines: list[Guarantee] = []
    for kind in kinds:
        name = f"{kind.name}_lift{kind.suffix}"
        upper_line = Guarantee(
            source=f"Proposition 4.{kind.section}",
            measure=f"max_lift by {name}",
            attained=high,
            bound=largest_lift(kind.name, leaked[name], rarest, kind.alpha),
        )
        upper_lines.append(upper_line)
        name = f"{kind.name}_lift_inverse{kind.suffix}"
        lower_line = Guarantee(
            source=f"Proposition 6.{kind.section}",
            measure=f"min_lift by {name}",
            attained=low,
            bound=smallest_lift(kind.name, leaked[name], rarest, kind.alpha),
            at_most=False,
        )
        lower_lines.append(lower_line)
    return upper_lines + lower_lines


def _worst_posterior(
    outputs: Sequence[OutputLeakage], prior: Sequence[int], share: float
) -> float | None:
    """The largest P(Q|y) over all outputs y and all sets Q of sensitive symbols with P(Q) <= share,
    by enumeration; None if the sets are too many.
    """
    if len(prior) > MOST_ENUMERATED:
        return None
    # The share as its shortest decimal, so that 0.1 means a tenth, and P(Q) in integers.
    most = Fraction(str(share)) * sum(prior)
    # A set as the indicator of its symbols; P(Q|y) is then a scalar product.
    allowed: list[tuple[float, ...]] = []
    for indicator in product((0.0, 1.0), repeat=len(prior)):
        if sum(compress(prior, indicator)) <= most:
            allowed.append(indicator)
    posteriors = np.array([output.posterior for output in outputs])
    return float((np.array(allowed) @ posteriors.T).max())
