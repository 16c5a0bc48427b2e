"""A proven upper bound on what any mechanism could keep of the released columns under the same
promise.

Every tree is one channel for the crossed columns, stratum by stratum
(docs/explanation/rows-theory.md, proposition 3). The certified envelope of the crossed columns is
therefore a bound for all mechanisms, trees or not. A relative promise is the ordinary one within
each stratum; a total one measures lifts against P(s) of the whole table, which the demands of
`auditing.demands` express.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.auditing.demands import Demand, allowed_sides
from mechdesign.core.errors import MechdesignError
from mechdesign.mechanisms.optimal import optimal
from mechdesign.mechanisms.row_budgets import RELATIVE, Stratum, limits_of
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


@dataclass(frozen=True)
class RowBound:
    """`upper_bound_nmi` of I(X; Y | K) / H(X | K), and the mass of strata whose bound is only their
    entropy.
    """

    upper_bound_nmi: float
    trivial: float


def upper_bound(
    records: Records,
    given: int,
    strata: Sequence[Stratum],
    notion: Notion,
    promise: str,
    *,
    end: float,
) -> RowBound:
    """Search the crossed columns of every stratum, the heaviest first, until `end` (of
    `time.perf_counter`).
    """
    entropies = [_entropy(records, given, stratum) for stratum in strata]
    whole = math.fsum(
        stratum.mass * entropy
        for stratum, entropy in zip(strata, entropies, strict=True)
    )
    if not whole > 0.0:
        return RowBound(1.0, 0.0)
    kept = 0.0
    trivial = 0.0
    order = np.argsort([-stratum.mass for stratum in strata], kind="stable").tolist()
    left = 1.0
    for place in order:
        stratum = strata[place]
        now = time.perf_counter()
        seconds = max(end - now, 0.0) * min(1.0, stratum.mass / max(left, 1e-12))
        left -= stratum.mass
        if not entropies[place] > 0.0:
            continue
        share: float | None = None
        if seconds >= LEAST_SECONDS:
            share = _stratum_bound(records, given, stratum, notion, promise, seconds)
        if share is None or share >= 1.0:
            trivial += stratum.mass
            share = 1.0
        kept += stratum.mass * entropies[place] * share
    # Sums of doubles with positive terms; the margin covers their rounding.
    bound = kept / whole * (1.0 + 1e-12)
    return RowBound(min(1.0, bound), trivial)


def _entropy(records: Records, given: int, stratum: Stratum) -> float:
    """H(X | k) in nats."""
    rows = records.codes[stratum.rows][:, given:]
    # The same row occurs once for each of its sensitive symbols.
    _, place = np.unique(rows, axis=0, return_inverse=True)
    masses = np.bincount(place.ravel(), records.masses[stratum.rows])
    return entropy(masses / stratum.mass)


def _stratum_bound(
    records: Records,
    given: int,
    stratum: Stratum,
    notion: Notion,
    promise: str,
    seconds: float,
) -> float | None:
    """The bound as a share of H(X | k); None where the search proves nothing in time."""
    rules = crossed_rules(records, given, stratum, notion, promise)
    if rules is None:
        return None
    try:
        found = optimal(rules, Search(gap=GAP, time_limit=seconds))
    except (MechdesignError, SolverError):
        # The bound is an extra: without it the design stands as it was verified.
        return None
    return found.certificate.upper_bound_nmi


def crossed_rules(
    records: Records, given: int, stratum: Stratum, notion: Notion, promise: str
) -> Rules | None:
    """The promise on the crossed columns of a stratum, whose symbols are the distinct rows in the
    order of their codes; None where there is nothing to protect, or the table is too large.
    """
    table = records.crossed(stratum.rows, given)
    if len(table) * len(table[0]) > MOST_CELLS:
        return None
    present = [s for s, row in enumerate(table) if any(row)]
    if promise == RELATIVE and len(present) == 1:
        return None
    useful = Variable(("row",), tuple((str(x),) for x in range(len(table[0]))))
    counts = tuple(tuple(table[s]) for s in present)
    joint = Joint(records.sensitive.select(present), useful, counts)
    try:
        demands = _demands(records, given, present, counts, notion, promise)
    except MechdesignError:
        return None
    return Rules(joint, notion, demands)


def _demands(
    records: Records,
    given: int,
    present: Sequence[int],
    counts: tuple[tuple[int, ...], ...],
    notion: Notion,
    promise: str,
) -> list[Demand] | None:
    """None where the ordinary promise on the stratum's own table is meant."""
    if not notion.symbol_budgets and (promise == RELATIVE or not given):
        return None
    sides = allowed_sides(records.sensitive, notion)
    if promise == RELATIVE:
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
