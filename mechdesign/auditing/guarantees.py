"""What bounds on the lift imply for other measures of leakage, next to what a channel attains (units: nats).

With a = exp(-eps_l) and b = exp(eps_u), every output of the channel has all its lifts in [a, b] and their mean under
P(s) is 1. Propositions 1.2, 3.1, 3.2, 5.1 and 5.2 of Zarrabian et al. 2023 are false for asymmetric budgets; the forms
here are the extremes of a variable of mean 1 on [a, b]. Propositions 4, 6 and A1 are in the form that holds as well.
"""

# SciPy and python-flint have no complete types.
# pyright: basic
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechdesign.auditing.leakages import OutputLeakage
from mechdesign.auditing.verdict import Achieved
from mechdesign.tables.joint import Joint

OUTWARD = 1.0 + 1e-14
"""Covers the rounding of the few operations of each bound (at most 20 half-ulps of 1.1e-16)."""


def guarantees(eps_l: float, eps_u: float) -> dict[str, float]:
    """Upper bounds that ALIP(eps_l, eps_u) implies on every output, or on average; infinite where a side is free.

    The budgets are in nats, at least 0, possibly infinite.
    """
    below, above = -math.expm1(-eps_l), math.expm1(eps_u)
    # 2(b-1)(1-a)/(b-a), and its limit
    l1 = 2.0 * below if math.isinf(above) else 2.0 * above * (below / ((above + below) or 1.0))
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
    """Bound from below on every lift where the inverse measure is `mean` (Proposition 6, corrected).

    Parameters as those of `largest_lift`; an infinite mean guarantees nothing.
    """
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
        *(("3.3", f"alpha_lift[{alpha:g}]", "alpha_lift") for alpha in alphas),
        ("5.1", "l1_lift_inverse", "l1_lift_inverse"),
        ("5.2", "chi2_lift_inverse", "chi2_lift_inverse"),
        *(("5.3", f"alpha_lift_inverse[{alpha:g}]", "alpha_lift_inverse") for alpha in alphas),
    ]
    table = [Guarantee(f"Proposition {number}", name, leaked[name], g[key]) for number, name, key in lines]
    # What the averages say of the single lifts.
    high, low = max(out.max_lift for out in outputs), min(out.min_lift for out in outputs)
    rarest = math.nextafter(min(joint.p_s.tolist()), 0.0)
    kinds = [(1, "l1", "l1_lift{}", math.inf), (2, "chi2", "chi2_lift{}", math.inf)]
    kinds += [(3, "alpha", f"alpha_lift{{}}[{alpha:g}]", alpha) for alpha in alphas]
    for number, kind, measure, alpha in kinds:
        name = measure.format("")
        bound = largest_lift(kind, leaked[name], rarest, alpha)
        table.append(Guarantee(f"Proposition 4.{number}", f"max_lift by {name}", high, bound))
    for number, kind, measure, alpha in kinds:
        name = measure.format("_inverse")
        bound = smallest_lift(kind, leaked[name], rarest, alpha)
        table.append(Guarantee(f"Proposition 6.{number}", f"min_lift by {name}", low, bound, at_most=False))
    for prior in breaches:
        attained = _worst_posterior(outputs, joint, prior)
        what = f"posterior of a property of prior {prior:g}"
        table.append(Guarantee("Proposition A1", what, attained, breach_bound(low, high, prior)))
    return table


def _worst_posterior(outputs: Sequence[OutputLeakage], joint: Joint, prior: float) -> float | None:
    """max over outputs y and sets Q of S with P(Q) <= prior of P(Q|y), by enumeration."""
    count = len(joint.sensitive)
    if count > MOST_ENUMERATED:
        return None
    sets = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    masses = sets.astype(object) @ np.array(joint.sensitive_counts, dtype=object)  # integers of any size
    allowed = sets[masses <= Fraction(str(prior)) * joint.total]
    return float((allowed @ np.array([out.posterior for out in outputs]).T).max())


def weakest(lines: Sequence[Guarantee]) -> Guarantee:
    """What the same line about several secrets says of all of them."""
    worst = max if lines[0].at_most else min
    known = [line.attained for line in lines if line.attained is not None]
    attained = worst(known) if len(known) == len(lines) else None
    return replace(lines[0], bound=worst(line.bound for line in lines), attained=attained)
