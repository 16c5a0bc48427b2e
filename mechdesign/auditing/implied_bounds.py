"""What bounds on the lift imply for every other measure, and measures for the lift.

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
from typing import NamedTuple

import numpy as np

from mechdesign.auditing.extremes import Achieved
from mechdesign.auditing.leakages import OutputLeakage
from mechdesign.core.wording import order_of

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
