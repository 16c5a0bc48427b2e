"""Privacy breaches: a released value makes an unlikely property of S likely, or the reverse.

A rho1-to-rho2 breach (Definition A1 of zarrabian2023; Evfimievski, Gehrke and Srikant 2003) is a
property Q, a set of values of S, and an output y with

    upward      P(Q) <= rho1 and P(Q | y) >= rho2
    downward    P(Q) >= rho2 and P(Q | y) <= rho1.

The two are one: if Q is a breach downward, the other values of S are one upward, from 1 - rho2 to 1
- rho1. For few values of S all sets are tried, and the posteriors decided in exact arithmetic
(`Worst`). For more, the extreme lifts bound the posteriors (`leakages.posterior_at_most`).

For example, S has two equally likely values, and an output with the posteriors 0.8 and 0.2: there
is a breach from 0.5 to 0.8, and none from 0.5 to 0.81.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress, product
from typing import Literal

import numpy as np

from mechdesign.auditing.columns import ReleasedMasses, masses_of
from mechdesign.auditing.leakages import (
    MOST_ENUMERATED,
    posterior_at_least,
    posterior_at_most,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint

NEAR = 1e-9
"""Doubles of posteriors that may be the largest: their errors are below 1e-12."""


@dataclass(frozen=True)
class Worst:
    """The property with the most extreme posterior, the output that gives it, and both figures."""

    property: tuple[str, ...]
    output: str
    prior: float
    posterior: float


@dataclass(frozen=True)
class Direction:
    """Breaches of one direction.

    Attributes
    ----------
    bound : float
        Of every posterior of such properties, by the extreme lifts, rounded outwards.
    worst : Worst or None
        The most extreme posterior, where all properties were tried and some has such a prior.
    excluded : bool
        Whether there is no breach.
    """

    bound: float
    worst: Worst | None
    excluded: bool


@dataclass(frozen=True)
class BreachVerdict:
    """Whether a channel has a rho1-to-rho2 privacy breach.

    `decided` is 'exact' where all properties were tried, and 'bounds' where a breach that the
    bounds do not exclude may still not be there.
    """

    rho1: float
    rho2: float
    upward: Direction
    downward: Direction
    decided: Literal["exact", "bounds"]

    @property
    def excluded(self) -> bool:
        """Whether there is no breach, neither up nor down."""
        return self.upward.excluded and self.downward.excluded


def breaches(
    channel: Channel, joint: Joint, rho1: float, rho2: float
) -> tuple[BreachVerdict, ...]:
    """The verdict on a channel under a table, for each protected column.

    Parameters
    ----------
    rho1, rho2 : float
        0 < rho1 < rho2 < 1, each taken as its shortest decimal.

    Raises
    ------
    InputError
        On other values.
    """
    rho1 = number("rho1", rho1, "between 0 and rho2")
    rho2 = number("rho2", rho2, "between rho1 and 1")
    if not 0.0 < rho1 < rho2 < 1.0:
        raise InputError(
            f"a breach needs 0 < rho1 < rho2 < 1, not rho1 {rho1:g} and rho2 {rho2:g}"
        )
    verdicts: list[BreachVerdict] = []
    for secret in joint.secrets:
        released = masses_of(channel, secret)
        verdicts.append(_verdict(released, secret.sensitive.names, rho1, rho2))
    return tuple(verdicts)


def _verdict(
    released: ReleasedMasses, names: Sequence[str], rho1: float, rho2: float
) -> BreachVerdict:
    """The verdict on one protected column."""
    lifts: list[Fraction] = []
    for output in released.outputs:
        lifts += [Fraction(*lift) for lift in output.lift_quotients()]
    low = _below(min(lifts))
    high = _above(max(lifts))
    # The shortest decimals, so that 0.1 means a tenth.
    first = Fraction(str(rho1))
    second = Fraction(str(rho2))
    upward_bound = posterior_at_most(low, high, rho1)
    downward_bound = posterior_at_least(low, high, rho2)
    if len(names) > MOST_ENUMERATED:
        return BreachVerdict(
            rho1,
            rho2,
            Direction(upward_bound, None, upward_bound < rho2),
            Direction(downward_bound, None, downward_bound > rho1),
            "bounds",
        )
    up = _most_likely(released, first)
    # Downward is upward for the other values of S.
    down = _most_likely(released, 1 - second)
    return BreachVerdict(
        rho1,
        rho2,
        Direction(
            upward_bound,
            None if up is None else up.named(released, names, complement=False),
            up is None or up.posterior < second,
        ),
        Direction(
            downward_bound,
            None if down is None else down.named(released, names, complement=True),
            down is None or 1 - down.posterior > first,
        ),
        "exact",
    )


@dataclass(frozen=True)
class _Found:
    """The set of values of S with the largest posterior, as an indicator, and its output."""

    indicator: tuple[int, ...]
    output: int
    prior: Fraction
    posterior: Fraction

    def named(
        self, released: ReleasedMasses, names: Sequence[str], *, complement: bool
    ) -> Worst:
        """The same in names, of this set or of all other values."""
        inside = not complement
        values = [
            name
            for name, member in zip(names, self.indicator, strict=True)
            if bool(member) == inside
        ]
        prior = 1 - self.prior if complement else self.prior
        posterior = 1 - self.posterior if complement else self.posterior
        label = released.labels[self.output]
        return Worst(tuple(values), label, float(prior), float(posterior))


def _most_likely(released: ReleasedMasses, most: Fraction) -> _Found | None:
    """The largest P(Q | y) over all outputs and all sets Q, not empty, with P(Q) <= most."""
    prior = list(released.sums)
    total = sum(prior)
    allowed: list[tuple[int, ...]] = []
    for indicator in product((0, 1), repeat=len(prior)):
        if any(indicator) and sum(compress(prior, indicator)) <= most * total:
            allowed.append(indicator)
    if not allowed:
        return None
    rows: list[list[float]] = []
    for output in released.outputs:
        rows.append([mass / output.output for mass in output.masses])
    posteriors = np.array(allowed, dtype=np.float64) @ np.array(rows).T
    # Doubles find the candidates, and fractions decide among them.
    best: _Found | None = None
    for q, y in np.argwhere(posteriors >= posteriors.max() - NEAR).tolist():
        output = released.outputs[y]
        exact = Fraction(sum(compress(output.masses, allowed[q])), output.output)
        if best is None or exact > best.posterior:
            share = Fraction(sum(compress(prior, allowed[q])), total)
            best = _Found(allowed[q], y, share, exact)
    return best


def _below(value: Fraction) -> float:
    """A double that is at most the value."""
    return float(np.nextafter(float(value), 0.0))


def _above(value: Fraction) -> float:
    """A double that is at least the value."""
    return float(np.nextafter(float(value), np.inf))
