"""Pricing of averages: the columns v of H(v) + sum_j beta_j L_j(v) < y.v.

There are two ways to find the cheapest columns:

- With two secrets and no polytope some cheapest column mixes at most two symbols, so all pairs are
  priced at once (`pairs`).
- Else tangents lie below the leakages (`tangents`), and `ConcaveSearch` runs over them:
  local searches (`descend`) or branch and bound (`search_tree`). Where a column was found the
  tangents may lie too low, so that it costs more than it seemed to. `touch` adds tangents there, or
  else the next search would find the same column again.

`search_tree` proves a bound either way: what it returns is below the cost of every posterior.

How exact this must be follows from the tolerance of the search (`Charge.aim`). At 1e-4 nats, a
column must gain 2e-6, tangents may lie 1.5e-5 too low, and a tree ends once it proves that nothing
gains 4e-5.
"""

from __future__ import annotations

import math

from solvers.average.goals import LEAST_MULTIPLIER, Charge
from solvers.average.pairs import PairSearch
from solvers.average.problem import AverageProblem
from solvers.average.tangents import LeakageSearch, Tangents
from solvers.points import Array, Points
from solvers.pricing.concave import SearchResult

TANGENT_SHARE = 0.15
"""Share of the tolerance by which tangents may lie below a column's true leakage."""

MIXES = (0.5, 0.9, 0.2)
"""Weights of unit vectors in the mixtures with P(x) from which local searches begin."""

COLUMN_SHARE = 0.02
"""Share of the tolerance that a column must gain."""

CUTOFF_SHARE = 0.4
"""Share of the tolerance by which pricing may miss the minimum; the rest is for the master."""

TREE_SHARE = 0.25
"""Share of the tolerance between the cheapest column of a tree and its bound."""

TREE_SLACK = 0.05
"""Share of the (negative) minimum that the bound of a tree may lie below it."""

TREE_COLUMNS = 300
"""Columns that a tree returns at most; as many as there are symbols, if these are more."""


class AveragePricing:
    """The searches of one run.

    `has_descents` says whether there are local searches; with pairs there is nothing for them to
    find. `touched` counts the tangents that were added to the first ones.
    """

    def __init__(self, problem: AverageProblem) -> None:
        self._problem = problem
        self._tangents = [
            Tangents(problem.matrix, leakage) for leakage in problem.leakages
        ]
        self.touched = 0
        # The search over the tangents so far; None after new ones until it is needed again.
        self._kernel: LeakageSearch | None = None
        self._pairs: PairSearch | None = None
        if problem.has_pairs:
            self._pairs = PairSearch(problem)
        self.has_descents = self._pairs is None
        # Decides which mixtures local searches begin with.
        self._turn = 0

    def next_turn(self) -> None:
        """Let the next local search begin with other mixtures."""
        self._turn += 1

    def descend(self, charge: Charge, seconds: float) -> Points:
        """Columns of descents from unit vectors mixed with P(x)."""
        # With `enough=0` the tree is never touched: any number of columns is enough.
        result = self._charged_kernel(charge.multipliers).run(
            charge.prices,
            cutoff=-math.inf,
            tolerance=charge.aim,
            slack=0.0,
            column_cutoff=-COLUMN_SHARE * charge.aim,
            center=self._problem.point,
            mix=MIXES[self._turn % len(MIXES)],
            turn=self._turn,
            enough=0,
            time_limit=seconds,
        )
        return result.points

    def search_tree(self, charge: Charge, seconds: float) -> SearchResult:
        """Branch and bound, which proves a bound of the cost of all posteriors."""
        if self._pairs is not None:
            self._pairs.charge(charge.multipliers)
            search = self._pairs
        else:
            search = self._charged_kernel(charge.multipliers)
        return search.run(
            charge.prices,
            cutoff=-CUTOFF_SHARE * charge.aim,
            tolerance=TREE_SHARE * charge.aim,
            slack=TREE_SLACK,
            column_cutoff=-COLUMN_SHARE * charge.aim,
            columns=max(TREE_COLUMNS, len(charge.prices)),
            time_limit=seconds,
        )

    def _charged_kernel(self, multipliers: Array) -> LeakageSearch:
        """The search over all tangents, in which the leakages cost the multipliers."""
        if self._kernel is None:
            self._kernel = LeakageSearch(self._problem, self._tangents)
        self._kernel.charge(multipliers)
        return self._kernel

    def touch(self, points: Points, charge: Charge) -> None:
        """Add tangents of every leakage where they lie too low at these points."""
        touched = 0
        # Each leakage may miss its share of the aim, in nats; its multiplier converts nats.
        aim = TANGENT_SHARE * charge.aim / len(self._tangents)
        pairs = zip(self._tangents, charge.multipliers, strict=True)
        for tangents, multiplier in pairs:
            room = aim / max(multiplier, LEAST_MULTIPLIER)
            touched += tangents.touch(points, room)
        if touched:
            self.touched += touched
            self._kernel = None
