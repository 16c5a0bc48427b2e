"""What the propositions of the lift paper guarantee for a channel, next to what it attains.

Zarrabian et al. 2023, Propositions 1, 3, 4, 5, 6 and A1, each in the form that holds (see `guarantees`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.auditing import Achieved
from mechdesign.exact_measures import OutputLeakage
from mechdesign.guarantees import breach_bound, guarantees, largest_lift, smallest_lift
from mechdesign.joint import Joint

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
    """Every guarantee that follows from the achieved budgets, or from the measures themselves.

    Parameters
    ----------
    achieved : Achieved
    leaked : dict
        The measures overall, as in `channel_measures.ChannelMeasures.leakage`.
    outputs, joint, alphas, breaches
        As there.
    """
    g = guarantees(achieved.eps_l, achieved.eps_u)
    lines = [
        ("Proposition 1.1", "mutual_information", g.information),
        ("Proposition 1.2", "total_variation", g.total_variation),
        ("Proposition 1.2", "chi2_information", g.chi2_lift),
        *(
            ("Proposition 1.3", name, g.information)
            for name in leaked
            if name.startswith(("sibson", "arimoto"))
        ),
        ("Proposition 1.4", "max_log_lift_ratio", g.ldp),
        ("Proposition 3.1", "l1_lift", g.l1_lift),
        ("Proposition 3.2", "chi2_lift", g.chi2_lift),
        *(("Proposition 3.3", f"alpha_lift[{alpha:g}]", g.alpha_lift) for alpha in alphas),
        ("Proposition 5.1", "l1_lift_inverse", g.l1_lift_inverse),
        ("Proposition 5.2", "chi2_lift_inverse", g.chi2_lift_inverse),
        *(("Proposition 5.3", f"alpha_lift_inverse[{alpha:g}]", g.alpha_lift_inverse) for alpha in alphas),
    ]
    table = [
        Guarantee(source=s, measure=name, attained=leaked[name], bound=bound) for s, name, bound in lines
    ]
    return table + _converse(leaked, outputs, joint, alphas) + _breaches(outputs, joint, breaches)


def _converse(
    leaked: dict[str, float], outputs: Sequence[OutputLeakage], joint: Joint, alphas: Sequence[float]
) -> list[Guarantee]:
    """Propositions 4 and 6: what the averages say of the single lifts."""
    high, low = max(out.max_lift for out in outputs), min(out.min_lift for out in outputs)
    rarest = math.nextafter(min(joint.p_s.tolist()), 0.0)
    kinds = [("l1", "l1_lift", math.nan), ("chi2", "chi2_lift", math.nan)]
    table: list[Guarantee] = []
    for number, (kind, name, _) in enumerate(kinds, 1):
        table.append(_upper(f"Proposition 4.{number}", name, high, largest_lift(kind, leaked[name], rarest)))
    for alpha in alphas:
        name = f"alpha_lift[{alpha:g}]"
        table.append(
            _upper("Proposition 4.3", name, high, largest_lift("alpha", leaked[name], rarest, alpha))
        )
    for number, (kind, name, _) in enumerate(kinds, 1):
        bound = smallest_lift(kind, leaked[f"{name}_inverse"], rarest)
        table.append(_lower(f"Proposition 6.{number}", f"{name}_inverse", low, bound))
    for alpha in alphas:
        name = f"alpha_lift_inverse[{alpha:g}]"
        table.append(
            _lower("Proposition 6.3", name, low, smallest_lift("alpha", leaked[name], rarest, alpha))
        )
    return table


def _upper(source: str, name: str, attained: float, bound: float) -> Guarantee:
    return Guarantee(source=source, measure=f"max_lift by {name}", attained=attained, bound=bound)


def _lower(source: str, name: str, attained: float, bound: float) -> Guarantee:
    return Guarantee(
        source=source, measure=f"min_lift by {name}", attained=attained, bound=bound, at_most=False
    )


def _breaches(outputs: Sequence[OutputLeakage], joint: Joint, breaches: Sequence[float]) -> list[Guarantee]:
    """Proposition A1: how likely a property of prior at most rho1 can become."""
    high = max(out.max_lift for out in outputs)
    low = min(out.min_lift for out in outputs)
    return [
        Guarantee(
            source="Proposition A1",
            measure=f"posterior of a property of prior {prior:g}",
            attained=_worst_posterior(outputs, joint, prior),
            bound=breach_bound(low, high, prior),
        )
        for prior in breaches
    ]


def _worst_posterior(outputs: Sequence[OutputLeakage], joint: Joint, prior: float) -> float | None:
    """max over outputs y and sets Q of S with P(Q) <= prior of P(Q|y), by enumeration."""
    count = len(joint.sensitive)
    if count > MOST_ENUMERATED:
        return None
    sets = ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(np.float64)
    allowed = sets[sets @ joint.p_s <= prior]
    return float((allowed @ np.array([out.posterior for out in outputs]).T).max())
