"""Cuts of a set of symbols into parts, near symbols together, each part within the limits.

A part has a plan of its own exactly if its blind draw keeps the limits: the means of a plan's
outputs average to those of the part. So a part is cut along one key (a column, in the order of its
codes, of its positions or of a random permutation), near half its mass, if both sides stay within a
share of the limits. The best cut is even and costs little of the limits. Where no key allows a cut,
the part is halved kind by kind in an order that keeps near symbols together, so that both halves
have the same mix; where that fails, too, it remains whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.plans.costs import Costs, Indices
from solvers.plans.ranges import Ranges
from solvers.points import Array

WITHIN = 0.9
"""Share of the limits (of their logarithms) that a part may use: the rest is room for its plan."""

USAGE = 0.5
"""What a use of all of the limits costs a cut, in nats of its evenness."""


@dataclass(frozen=True, eq=False)
class Part:
    """Places of symbols, and the two parts that they are cut into, if they are."""

    places: Indices
    halves: tuple[Part, Part] | None = None

    def leaves(self) -> list[Indices]:
        """Places of the parts that are cut no further."""
        if self.halves is None:
            return [self.places]
        return self.halves[0].leaves() + self.halves[1].leaves()


class Cutter:
    """Cuts parts of a stratum.

    Parameters
    ----------
    costs : Costs
    symbols : (n,) int array
        Symbols of the stratum; places are indices into it.
    masses : (n,) array
        What is to be halved.
    ranges : Ranges or None
        Limits that every part keeps; None for none.
    """

    def __init__(
        self,
        costs: Costs,
        symbols: Indices,
        masses: Array,
        ranges: Ranges | None,
        rng: np.random.Generator,
    ) -> None:
        self._costs = costs
        self._symbols = symbols
        self._masses = masses
        self._ranges = None if ranges is None or ranges.is_empty else ranges
        self._rng = rng

    def cut(self, places: Indices, size: int) -> Part:
        """Cut until no part has more than `size` symbols, or none can be cut."""
        if len(places) <= size:
            return Part(places)
        side = self._best_side(places)
        if side is None:
            side = self._even_side(places)
        if side is None:
            return Part(places)
        first, second = places[side], places[~side]
        return Part(places, (self.cut(first, size), self.cut(second, size)))

    @cached_property
    def _kinds(self) -> Indices:
        """The kind of every symbol (`Ranges.kinds`)."""
        if self._ranges is None:
            return np.zeros(len(self._symbols), np.int64)
        return self._ranges.kinds()

    def _usage(self, first: Indices, second: Indices) -> float:
        """The larger use of the limits by two parts."""
        if self._ranges is None:
            return 0.0
        usage = 0.0
        for part in (first, second):
            masses = self._masses[part]
            usage = max(usage, self._ranges.restricted(part).usage(masses))
        return usage

    def _best_side(self, places: Indices) -> np.ndarray | None:
        """The first side of the best cut along a key; None where no cut is allowed."""
        masses = self._masses[places]
        total = float(masses.sum())
        best: tuple[float, np.ndarray | None] = (-math.inf, None)
        for key in self._costs.keys(self._symbols[places], self._rng):
            side = _halved(key, masses)
            share = float(masses[side].sum()) / total
            if not 0.0 < share < 1.0 or side.all() or not side.any():
                continue
            usage = self._usage(places[side], places[~side])
            if usage > WITHIN:
                continue
            even = -share * math.log(share) - (1 - share) * math.log1p(-share)
            score = even * self._rng.uniform(0.5, 1.0) - USAGE * usage
            if score > best[0]:
                best = (score, side)
        return best[1]

    def _even_side(self, places: Indices) -> np.ndarray | None:
        """Half of every kind in one order; None where even that uses too much."""
        order = self._costs.order(self._symbols[places], self._rng)
        side = np.zeros(len(places), np.bool_)
        kinds = self._kinds[places]
        for kind in np.unique(kinds):
            of_kind = order[kinds[order] == kind]
            mass = np.cumsum(self._masses[places[of_kind]])
            side[of_kind[mass <= 0.5 * mass[-1]]] = True
        if not side.any() or side.all():
            return None
        usage = self._usage(places[side], places[~side])
        return side if usage <= WITHIN else None


def _halved(key: Array, masses: Array) -> np.ndarray:
    """Symbols whose key is below the cut nearest to half the mass."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    mass = np.cumsum(masses[order])
    # A cut lies between two different keys.
    ends = np.flatnonzero(np.diff(ordered))
    if not len(ends):
        return np.zeros(len(key), np.bool_)
    nearest = ends[np.argmin(np.abs(mass[ends] - 0.5 * mass[-1]))]
    return key <= ordered[nearest]
