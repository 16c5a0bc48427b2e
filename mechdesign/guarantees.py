"""What bounds on the lift imply for other measures of leakage (in nats where a measure has a unit).

With a = exp(-eps_l) and b = exp(eps_u), every output of the channel has all its lifts in [a, b] and their
mean under P(s) is 1. The forms of Zarrabian et al. 2023, Propositions 1.2, 3.1, 3.2, 5.1 and 5.2, are
false for asymmetric budgets; those here are the extremes of a variable of mean 1 on [a, b].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

OUTWARD = 1.0 + 1e-14
"""Covers the rounding of the few operations of each bound (at most 20 half-ulps of 1.1e-16)."""


@dataclass(frozen=True, kw_only=True)
class Guarantees:
    """Upper bounds that hold on every output, or on average, of a channel with lifts in [a, b].

    Parameters
    ----------
    information : float
        I(S;Y), and Sibson's and Arimoto's mutual information of S and Y of every order (nats).
    ldp : float
        Largest log-ratio of P(y|s) and P(y|s') (nats).
    l1_lift, total_variation, chi2_lift : float
        sum_s P(s) |l - 1|; half of it on average, T(S;Y); sum_s P(s) (l - 1)^2 and chi2(S;Y).
    l1_lift_inverse, chi2_lift_inverse : float
        The same with 1/l in place of l.
    alpha_lift, alpha_lift_inverse : float
        (sum_s P(s) l^alpha)^(1/alpha) for every alpha > 1, and with 1/l.
    """

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
    a, b = math.exp(-eps_l), math.exp(eps_u) if eps_u < math.inf else math.inf
    below, above = -math.expm1(-eps_l), math.expm1(eps_u) if eps_u < math.inf else math.inf
    if math.isinf(above):  # the limit of 2(b-1)(1-a)/(b-a)
        l1 = 2.0 * below
    elif above + below == 0.0:
        l1 = 0.0
    else:
        l1 = 2.0 * above * (below / (above + below))
    inverse_below = -math.expm1(-eps_u)
    inverse_above = math.expm1(eps_l) if eps_l < math.inf else math.inf
    farthest = max(inverse_above, inverse_below)
    return Guarantees(
        information=eps_u,
        ldp=(eps_l + eps_u) * OUTWARD,
        l1_lift=l1 * OUTWARD,
        total_variation=l1 / 2.0 * OUTWARD,
        chi2_lift=(above * below if below else 0.0) * OUTWARD,
        l1_lift_inverse=farthest * OUTWARD,
        chi2_lift_inverse=farthest * farthest * OUTWARD,
        alpha_lift=b * OUTWARD,
        alpha_lift_inverse=(1.0 / a if a else math.inf) * OUTWARD,
    )


def largest_lift(kind: str, mean: float, p: float, alpha: float = math.inf) -> float:
    """Bound on every lift of an output whose l1-, chi2- or alpha-lift is `mean` (Proposition 4, corrected).

    Parameters
    ----------
    kind : {"l1", "chi2", "alpha"}
    mean : float
        The measure of the output, or a bound on it.
    p : float
        A lower bound on P(s) for every s. The paper's l1 form, mean / p + 1, is halved: the lifts above 1 carry
        half of the mean.
    alpha : float
    """
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

    Parameters
    ----------
    low, high : float
        Bounds on all lifts, low <= 1 <= high.
    prior : float
        rho1, strictly between 0 and 1.
    """
    return min(1.0, max(prior * high, 1.0 - (1.0 - prior) * low) * OUTWARD)
