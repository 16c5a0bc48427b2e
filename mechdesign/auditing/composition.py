"""What independent releases of one record come to together: limits, the worst tuple, and sums.

`joint_leakage.compose` makes one `Composition` for each table that it judges. Where promises are
relative to given columns, there is one table for each stratum. `worst_of_strata` then takes the
largest of all strata, for each side (eps_l, eps_u, eps_ldp) by itself, and the worst tuple of the
stratum whose own lies farthest from 1.

Adding up the budgets of single releases (`sum_of`) is what one might expect of the releases
together, but it is no bound: two columns that tell nothing about S by themselves may determine it
together. With S the exclusive or of two fair bits, each bit alone has all lifts 1 and budgets 0, so
the sum is 0. Both together have the lifts 2 and 0: eps_u = log 2, and eps_l is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.auditing.extremes import Achieved, largest_of
from mechdesign.core.display import Displayed
from mechdesign.core.wording import at_most


@dataclass(frozen=True)
class WorstTuple:
    """The sensitive symbol and the outputs, one of each channel, with the lift farthest from 1 on a
    log scale.
    """

    sensitive: str
    outputs: tuple[str, ...]
    lift: float


@dataclass(frozen=True, repr=False)
class Composition(Achieved, Displayed):
    """The joint leakage of independent releases of one record, in nats: limits as those of one
    release, for all tuples.

    `achieved` has the limits alone and `at_least` is attained by a tuple, both the smallest doubles
    of their kind; they are equal where `exact`, which two channels always are. `sum` is what adding
    the budgets of the channels alone would give: no bound. `worst` is a tuple that attains the
    larger side of `at_least`. Where all are row channels with a relative promise and the same given
    columns, everything is relative to these, and `given` has what they tell by themselves;
    `notices` says where only some of them are.
    """

    at_least: Achieved
    worst: WorstTuple
    sum: Achieved
    alone: tuple[Achieved, ...]
    relative_to: tuple[str, ...] = ()
    given: Achieved | None = None
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        budgets = vars(self.achieved).items()
        sides = ", ".join(f"{name} {at_most(value)}" for name, value in budgets)
        return f"Composition({len(self.alone)} releases: {sides})"

    @property
    def achieved(self) -> Achieved:
        """The limits of all tuples."""
        return Achieved(self.eps_l, self.eps_u, self.eps_ldp)

    @property
    def exact(self) -> bool:
        """Whether the limits meet."""
        return self.achieved == self.at_least


def worst_of_strata(strata: Sequence[Composition]) -> Composition:
    """What holds in every stratum, from the compositions of all strata."""
    if len(strata) == 1:
        return strata[0]
    # Channel by channel the largest budgets of all strata.
    by_channel = zip(*(stratum.alone for stratum in strata), strict=True)
    alone = tuple(largest_of(budgets) for budgets in by_channel)
    # A record is in one stratum, so what tuples tell is bounded by the largest, not by a sum.
    limits = largest_of(stratum.achieved for stratum in strata)
    at_least = largest_of(stratum.at_least for stratum in strata)
    extreme = max(strata, key=_larger_side)
    return Composition(
        eps_l=limits.eps_l,
        eps_u=limits.eps_u,
        eps_ldp=limits.eps_ldp,
        at_least=at_least,
        worst=extreme.worst,
        sum=sum_of(alone),
        alone=alone,
    )


def sum_of(alone: Sequence[Achieved]) -> Achieved:
    """What adding the budgets of single releases gives, rounded up."""
    return Achieved(
        eps_l=sum_above([achieved.eps_l for achieved in alone]),
        eps_u=sum_above([achieved.eps_u for achieved in alone]),
        eps_ldp=sum_above([achieved.eps_ldp for achieved in alone]),
    )


def sum_above(values: Sequence[float]) -> float:
    """The smallest double at or above a sum."""
    total = math.fsum(values)
    # fsum rounds correctly, so the sign of the remainder is exact.
    if math.isinf(total) or math.fsum((*values, -total)) <= 0.0:
        return total
    return math.nextafter(total, math.inf)


def _larger_side(composition: Composition) -> float:
    """How far the lift of the worst tuple lies from 1, on a log scale."""
    return max(composition.at_least.eps_l, composition.at_least.eps_u)
