"""A proven upper bound on what any mechanism could keep of the released columns under the same
promise.

Every tree is one channel for the crossed columns, stratum by stratum
(docs/explanation/rows-theory.md, proposition 3). The certified envelope of the crossed columns is
therefore a bound for all mechanisms, trees or not. `upper_bound` takes the strata by falling mass,
each with its share of the time (`heaviest_first`):

1. `crossed_rules` makes the table of the stratum, secrets by distinct rows, and the promise on it.
   A relative promise is the ordinary one within each stratum; a total one measures lifts against
   P(s) of the whole table, which the demands of `auditing.demands` express.
2. `optimal` gives the proven share b_k of H(X | k) that can be kept, 1 where nothing is proven.
3. The bound is sum_k P(k) b_k H(X | k) / H(X | K).

For example, let men be 60 % of the table and have H(X | k) = 2.0 nats, of which 0.9 can be kept,
and women 1.5 nats, of which nothing was proven in time. Then the bound is (0.6 * 2.0 * 0.9 + 0.4 *
1.5) / (0.6 * 2.0 + 0.4 * 1.5) = 0.933, and the trivial mass is 0.4.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.auditing.demands import Demand, allowed_sides
from mechdesign.channel.row_record import RELATIVE
from mechdesign.core.errors import MechdesignError
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.row_budgets import Stratum, limits_of
from mechdesign.mechanisms.row_entropy import entropy
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records
from mechdesign.tables.variable import Variable
from solvers import SolverError

GAP = 1e-3
"""Share of the entropy within which the bound is worth the search."""

LEAST_SECONDS = 0.05
"""Time below which a stratum is not searched; its own entropy is the bound then."""

MOST_CELLS = 200_000
"""Distinct rows times sensitive symbols beyond which one round of pricing alone takes longer than
any time limit.
"""


@dataclass(frozen=True, eq=False)
class RowProblem:
    """A table, whose first `given` groups of columns are released as they are, and a promise about
    the others.
    """

    records: Records
    given: int
    notion: Notion
    promise: str


@dataclass(frozen=True)
class RowBound:
    """`upper_bound_nmi` of I(X; Y | K) / H(X | K), and the mass of strata whose bound is only their
    entropy.
    """

    upper_bound_nmi: float
    trivial: float


def upper_bound(
    problem: RowProblem, strata: Sequence[Stratum], *, end: float
) -> RowBound:
    """Search the crossed columns of every stratum until `end` (of `time.perf_counter`).

    A stratum that there is no time for, or in which nothing is proven, counts with all that it has.
    """
    entropies = [_entropy(problem, stratum) for stratum in strata]
    # P(k) H(X | k), whose sum is H(X | K).
    terms: list[float] = []
    for stratum, entropy_here in zip(strata, entropies, strict=True):
        terms.append(stratum.mass * entropy_here)
    entropy_given = math.fsum(terms)
    if not entropy_given > 0.0:
        return RowBound(1.0, 0.0)
    proven = 0.0
    trivial = 0.0
    for place, seconds in heaviest_first(strata, end):
        if not entropies[place] > 0.0:
            continue
        share: float | None = None
        if seconds >= LEAST_SECONDS:
            share = _stratum_bound(problem, strata[place], seconds)
        if share is None or share >= 1.0:
            trivial += strata[place].mass
            share = 1.0
        proven += terms[place] * share
    # Sums of doubles with positive terms; the margin covers their rounding.
    bound = proven / entropy_given * (1.0 + 1e-12)
    return RowBound(min(1.0, bound), trivial)


def heaviest_first(
    strata: Sequence[Stratum], end: float
) -> Iterator[tuple[int, float]]:
    """The places of the strata by falling mass, each with the seconds that it may take: of the time
    until `end`, the share that its mass has of the strata that are left.
    """
    masses = [stratum.mass for stratum in strata]
    left = 1.0
    for place in sorted(range(len(strata)), key=lambda place: -masses[place]):
        # The masses are rounded, so that the last one may exceed what is left.
        share = min(1.0, masses[place] / max(left, 1e-12))
        left -= masses[place]
        yield place, max(end - time.perf_counter(), 0.0) * share


def _entropy(problem: RowProblem, stratum: Stratum) -> float:
    """H(X | k) in nats."""
    records = problem.records
    rows = records.codes[stratum.rows][:, problem.given :]
    # The same row occurs once for each of its sensitive symbols.
    _, place = np.unique(rows, axis=0, return_inverse=True)
    masses = np.bincount(place.ravel(), records.masses[stratum.rows])
    return entropy(masses / stratum.mass)


def _stratum_bound(
    problem: RowProblem, stratum: Stratum, seconds: float
) -> float | None:
    """The bound as a share of H(X | k); None where the search proves nothing in time."""
    rules = crossed_rules(problem, stratum)
    if rules is None:
        return None
    try:
        design = optimal(rules, Search(gap=GAP, time_limit=seconds))
    except (MechdesignError, SolverError):
        # The bound is an extra: without it the design stands as it was verified.
        return None
    return design.certificate.upper_bound_nmi


def crossed_rules(problem: RowProblem, stratum: Stratum) -> Rules | None:
    """The promise on the crossed columns of a stratum, whose symbols are the distinct rows in the
    order of their codes; None where there is nothing to protect, or the table is too large.
    """
    records = problem.records
    table = records.crossed(stratum.rows, problem.given)
    if len(table) * len(table[0]) > MOST_CELLS:
        return None
    present = [s for s, row in enumerate(table) if any(row)]
    if problem.promise == RELATIVE and len(present) == 1:
        return None
    useful = Variable(("row",), tuple((str(x),) for x in range(len(table[0]))))
    counts = tuple(tuple(table[s]) for s in present)
    joint = Joint(records.sensitive.select(present), useful, counts)
    try:
        demands = _demands(problem, present, counts)
    except MechdesignError:
        return None
    return Rules(joint, problem.notion, demands)


def _demands(
    problem: RowProblem, present: Sequence[int], counts: tuple[tuple[int, ...], ...]
) -> list[Demand] | None:
    """The promise on the counts of the sensitive symbols that the stratum has; None where it is the
    ordinary one on the stratum's own table.
    """
    records = problem.records
    notion = problem.notion
    is_relative = problem.promise == RELATIVE
    # A total promise without given columns has one stratum, which is the table.
    if not notion.symbol_budgets and (is_relative or not problem.given):
        return None
    sides = allowed_sides(records.sensitive, notion)
    if is_relative:
        rows = counts
        symbols = list(present)
        sums = [sum(row) for row in counts]
    else:
        # The prior is that of the whole table: symbols that the stratum lacks have a share of it
        # and rows of zeros.
        symbols = list(range(len(records.sensitive)))
        empty = (0,) * len(counts[0])
        by_symbol = dict(zip(present, counts, strict=True))
        rows = tuple(by_symbol.get(s, empty) for s in symbols)
        sums = records.sensitive_counts()
    names = [records.sensitive.names[s] for s in symbols]
    lower = [sides[s][0] for s in symbols]
    upper = [sides[s][1] for s in symbols]
    return [Demand(rows, sums, names, lower, upper, limits_of(notion).ratio)]
