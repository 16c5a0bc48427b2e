"""Cuts of a set of symbols into parts, near symbols together, each part within the limits.

A part has a plan of its own exactly if its blind draw keeps the limits: the means of a plan's
outputs average to those of the part. So a part is cut along one key (a column, in the order of its
codes, of its positions or of a random permutation), near half its mass, if both sides stay within a
share of the limits. The best cut is even and costs little of the limits; of some such cuts of a
large part, the one is taken within whose sides symbols are nearest to each other. Where no key
allows a cut, the part is halved kind by kind in an order that keeps near symbols together, so that
both halves have the same mix; where that fails, too, it remains whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from solvers.plans.problem import Costs, Indices
from solvers.plans.ranges import Ranges
from solvers.points import Array

WITHIN = 0.9
"""Share of the limits (of their logarithms) that a part may use: the rest is room for its plan."""

USAGE = 0.5
"""What a use of all of the limits costs a cut, in nats of its evenness."""

TRIED = 12
"""Cuts whose sides are compared where blocks decide the plan. 100,000 rows of 19 columns in parts
of 640 then cost 5 % less, for a second more. With many secrets such cuts use up the limits: 8,730
rows with six of them took 56 s in place of 31."""

TRIED_FROM = 640
"""Symbols of a part from which cuts are compared so: smaller parts are too many."""

LEAST_FACTOR = 0.8
LEAST_FACTOR_AT_RANDOM = 0.5
"""Evenness counts times a random factor from here to 1: so that more columns are tried, and that
the cuts of each sweep are other ones."""

USAGE_WITHIN = 0.02
"""What a use of all of the limits costs a cut, in units of cost within its sides."""

AT_ONCE = 1 << 20
"""Ranks of symbols that are counted at once: 8 MB."""


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


class _Cut(NamedTuple):
    """A cut in two: how good it looks, how much of the limits it uses, and its first side."""

    score: float
    usage: float
    side: np.ndarray


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
    tried : int
        Cuts of a large part whose sides are compared by the costs within them; 1 for none.
    """

    def __init__(
        self,
        costs: Costs,
        symbols: Indices,
        masses: Array,
        ranges: Ranges | None,
        rng: np.random.Generator,
        tried: int = 1,
    ) -> None:
        self._costs = costs
        self._symbols = symbols
        self._masses = masses
        self._ranges = None if ranges is None or ranges.is_empty else ranges
        self._rng = rng
        self._tried = tried

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

    def _limited(self, places: Indices) -> Array:
        """The masses of some symbols, and these times each of their limited values: (1 + k, n)."""
        masses = self._masses[places]
        if self._ranges is None:
            return masses[None, :]
        return np.vstack([masses, masses * self._ranges.limited[:, places]])

    def _usage(self, first: Array, all_of_them: Array) -> Array:
        """The larger use of the limits by the two sides of cuts.

        Parameters
        ----------
        first, all_of_them : (1 + k, cuts) arrays
            Sums of `_limited` over the first side, and over both.
        """
        usage = np.zeros(first.shape[1])
        if self._ranges is not None:
            for sums in (first, all_of_them - first):
                usage = np.maximum(usage, self._ranges.usage(sums[1:] / sums[0]))
        return usage

    def _best_side(self, places: Indices) -> np.ndarray | None:
        """The first side of the best cut along a key; None where no cut is allowed."""
        limited = self._limited(places)
        keys = self._costs.keys(self._symbols[places], self._rng)
        tried = self._tried if len(places) >= TRIED_FROM else 1
        least = LEAST_FACTOR if tried > 1 else LEAST_FACTOR_AT_RANDOM
        found: list[_Cut] = []
        # Many keys of few symbols at once, as many as fit into little memory.
        at_once = max(1, AT_ONCE // len(places))
        while some := list(islice(keys, at_once)):
            ranks = np.stack(some)
            last, first, all_of_them = _halved(ranks, limited)
            share = first[0] / all_of_them[0]
            cut = np.flatnonzero((share > 0.0) & (share < 1.0))
            if not len(cut):
                continue
            share = share[cut]
            usage = self._usage(first[:, cut], all_of_them[:, cut])
            even = -share * np.log(share) - (1 - share) * np.log1p(-share)
            score = even * self._rng.uniform(least, 1.0, len(cut)) - USAGE * usage
            score[usage > WITHIN] = -math.inf
            for k in np.argsort(-score)[:tried].tolist():
                if score[k] > -math.inf:
                    side = ranks[cut[k]] <= last[cut[k]]
                    found.append(_Cut(float(score[k]), float(usage[k]), side))
            found.sort(key=lambda one: -one.score)
            del found[tried:]
        if len(found) <= 1:
            return found[0].side if found else None
        return min(found, key=lambda one: self._within(places, one)).side

    def _within(self, places: Indices, cut: _Cut) -> float:
        """The mean cost within the sides of a cut, by their masses, and the price of its usage."""
        total = USAGE_WITHIN * cut.usage
        mass = self._masses[places].sum()
        for side in (places[cut.side], places[~cut.side]):
            masses = self._masses[side]
            spread = self._costs.spread(self._symbols[side], masses)
            total += spread * float(masses.sum() / mass)
        return total

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
        limited = self._limited(places)
        first = limited[:, side].sum(axis=1, keepdims=True)
        usage = self._usage(first, limited.sum(axis=1, keepdims=True))
        return side if usage[0] <= WITHIN else None


def _halved(ranks: Indices, limited: Array) -> tuple[Indices, Array, Array]:
    """For every key (a row of ranks) the last rank of the first side, where the cut is nearest to
    half the mass, which is `limited[0]`; and the sums of `limited` up to there and over all.
    """
    k = len(ranks)
    width = int(ranks.max()) + 1
    bins = (ranks + width * np.arange(k)[:, None]).ravel()
    sums = np.stack(
        [
            np.bincount(bins, np.tile(one, k), k * width).reshape(k, width)
            for one in limited
        ]
    ).cumsum(axis=2)
    mass = sums[0]
    last = np.abs(mass - 0.5 * mass[:, -1:]).argmin(axis=1)
    return last, sums[:, np.arange(k), last], sums[:, :, -1]
