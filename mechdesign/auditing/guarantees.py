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
from dataclasses import dataclass

import numpy as np

from mechdesign.auditing.leakages import OutputLeakage
from mechdesign.auditing.verdict import Achieved
from mechdesign.tables.joint import Joint

OUTWARD = 1.0 + 1e-14
"""Covers the rounding of the few operations of each bound (at most 20 half-ulps of 1.1e-16)."""


@dataclass(frozen=True, kw_only=True)
class Guarantees:
    """Upper bounds that hold on every output, or on average, of a channel with lifts in [a, b]."""

    information: float
    ldp: float
    l1_lift: float
    total_variation: float
    chi2_lift: float
    l1_lift_inverse: float
    chi2_lift_inverse: float
    alpha_lift: float
    alpha_lift_inverse: float


def guarantees(eps_l: float, eps_u: float) -> Guarantees:
    """What ALIP(eps_l, eps_u) implies; an infinite side leaves what depends on it infinite.

    Parameters
    ----------
    eps_l, eps_u : float
        Budgets in nats, at least 0, possibly infinite.
    """
    below, above = -math.expm1(-eps_l), math.expm1(eps_u)
    # 2(b-1)(1-a)/(b-a), and its limit
    l1 = 2.0 * below if math.isinf(above) else 2.0 * above * (below / ((above + below) or 1.0))
    farthest = max(math.expm1(eps_l), -math.expm1(-eps_u))
    return Guarantees(
        information=eps_u,
        ldp=(eps_l + eps_u) * OUTWARD,
        l1_lift=l1 * OUTWARD,
        total_variation=l1 / 2.0 * OUTWARD,
        chi2_lift=(above * below if below else 0.0) * OUTWARD,
        l1_lift_inverse=farthest * OUTWARD,
        chi2_lift_inverse=farthest * farthest * OUTWARD,
        alpha_lift=math.exp(eps_u) * OUTWARD,
        alpha_lift_inverse=math.exp(eps_l) * OUTWARD,
    )


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
    return min(1.0, max(prior * high, 1.0 - (1.0 - prior) * low) * OUTWARD)


MOST_ENUMERATED = 12
"""Sensitive symbols up to which every property (set of symbols) is looked at: 4,096 sets."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """One line: by `source`, `measure` is at most (or at least) `bound`; the channel attains `attained`.

    `attained` is None where it would take too long to find out.
    """

    source: str
    measure: str
    attained: float | None
    bound: float
    at_most: bool = True

    @property
    def holds(self) -> bool:
        """Whether the attained value keeps to the bound, as the proposition says."""
        if self.attained is None:
            return True
        return self.attained <= self.bound if self.at_most else self.attained >= self.bound


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
        ("Proposition 1.1", "mutual_information", g.information),
        ("Proposition 1.2", "total_variation", g.total_variation),
        ("Proposition 1.2", "chi2_information", g.chi2_lift),
        *(("Proposition 1.3", name, g.information) for name in informations),
        ("Proposition 1.4", "max_log_lift_ratio", g.ldp),
        ("Proposition 3.1", "l1_lift", g.l1_lift),
        ("Proposition 3.2", "chi2_lift", g.chi2_lift),
        *(("Proposition 3.3", f"alpha_lift[{alpha:g}]", g.alpha_lift) for alpha in alphas),
        ("Proposition 5.1", "l1_lift_inverse", g.l1_lift_inverse),
        ("Proposition 5.2", "chi2_lift_inverse", g.chi2_lift_inverse),
        *(("Proposition 5.3", f"alpha_lift_inverse[{alpha:g}]", g.alpha_lift_inverse) for alpha in alphas),
    ]
    high, low = max(out.max_lift for out in outputs), min(out.min_lift for out in outputs)
    worst = [
        Guarantee(
            source="Proposition A1",
            measure=f"posterior of a property of prior {prior:g}",
            attained=_worst_posterior(outputs, joint, prior),
            bound=breach_bound(low, high, prior),
        )
        for prior in breaches
    ]
    table = [
        Guarantee(source=s, measure=name, attained=leaked[name], bound=bound) for s, name, bound in lines
    ]
    return table + _converse(leaked, high, low, joint, alphas) + worst


def _converse(
    leaked: dict[str, float], high: float, low: float, joint: Joint, alphas: Sequence[float]
) -> list[Guarantee]:
    """Propositions 4 and 6: what the averages say of the single lifts."""
    rarest = math.nextafter(min(joint.p_s.tolist()), 0.0)
    kinds = [(1, "l1", "l1_lift", "", math.inf), (2, "chi2", "chi2_lift", "", math.inf)]
    kinds += [(3, "alpha", "alpha_lift", f"[{alpha:g}]", alpha) for alpha in alphas]
    table: list[Guarantee] = []
    for proposition, suffix, side, attained, bound_by in (
        (4, "", "max", high, largest_lift),
        (6, "_inverse", "min", low, smallest_lift),
    ):
        for number, kind, measure, order, alpha in kinds:
            name = f"{measure}{suffix}{order}"
            table.append(
                Guarantee(
                    source=f"Proposition {proposition}.{number}",
                    measure=f"{side}_lift by {name}",
                    attained=attained,
                    bound=bound_by(kind, leaked[name], rarest, alpha),
                    at_most=side == "max",
                )
            )
    return table


def _worst_posterior(outputs: Sequence[OutputLeakage], joint: Joint, prior: float) -> float | None:
    """max over outputs y and sets Q of S with P(Q) <= prior of P(Q|y), by enumeration."""
    count = len(joint.sensitive)
    if count > MOST_ENUMERATED:
        return None
    sets = ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(np.float64)
    allowed = sets[sets @ joint.p_s <= prior]
    return float((allowed @ np.array([out.posterior for out in outputs]).T).max())
