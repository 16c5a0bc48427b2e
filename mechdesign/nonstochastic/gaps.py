"""The answers of a finite query, its fibres, and the gaps where a threshold can go.

A threshold separates two consecutive answers, so a quantiser of a finite query is a set of gaps:
gap g lies between values[g] and values[g + 1] (theory.md, section 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import FiniteDomain
from mechdesign.nonstochastic.fibres import base_sums, contributions, is_finite, lattice_unit, others
from mechdesign.nonstochastic.queries import (
    EvenMedian,
    LinearQuery,
    MonotoneQuery,
    OrderStatistic,
    Query,
    identity_query,
    mean_query,
)
from mechdesign.nonstochastic.tables import TabulatedQuery

LARGEST_FIBRES = 20_000_000
"""Members of all fibres together that are kept: 160 MB."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GapProblem:
    """What a quantiser of a finite query is chosen from.

    Parameters
    ----------
    values : (m,) sorted distinct answers
    fibres : arrays of shape (fibres, members)
        Indices into `values`, each row sorted; a row may repeat an index.
    classes : arrays of indices, one list for each individual
        ``classes[i][x]`` are the answers possible when individual i has value x: what
        indistinguishability compares (Farokhi 2021, Definition 5).
    """

    query: Query
    values: tuple[Fraction, ...]
    fibres: tuple[Indices, ...] = field(repr=False)
    classes: tuple[tuple[Indices, ...], ...] = field(repr=False, default=())

    @property
    def gaps(self) -> int:
        """Number of gaps."""
        return len(self.values) - 1

    @cached_property
    def intervals(self) -> Indices:
        """The maximal fibres as gaps: (k, 2) rows (first gap, one past the last), both increasing."""
        ends = np.concatenate([rows[:, [0, -1]] for rows in self.fibres])
        ends = np.unique(ends[ends[:, 1] > ends[:, 0]], axis=0)
        ends = ends[np.lexsort((-ends[:, 1], ends[:, 0]))]
        farthest = np.maximum.accumulate(ends[:, 1]) if ends.size else ends[:, 1]
        keep = np.ones(len(ends), dtype=np.bool_)
        keep[1:] = ends[1:, 1] > farthest[:-1]
        return ends[keep]

    @cached_property
    def runs(self) -> bool:
        """Whether every fibre is a run of consecutive answers, so that counting thresholds is exact."""
        return all(bool((np.diff(rows, axis=1) <= 1).all()) for rows in self.fibres)

    def reach(self) -> Indices:
        """For each gap g, the first gap beyond every fibre that contains g: (gaps,) integers.

        Two gaps g < h are inside one fibre iff h < reach[g].
        """
        beyond = np.arange(1, self.gaps + 1)
        first = self.intervals[:, 0]
        if first.size:
            # Maximal intervals increase in both ends: the last that starts at or before g reaches farthest.
            place = np.searchsorted(first, np.arange(self.gaps), side="right") - 1
            found = np.where(place >= 0, self.intervals[np.maximum(place, 0), 1], 0)
            beyond = np.maximum(beyond, found)
        return beyond

    def cells(self, gaps: Iterable[int]) -> Indices:
        """The cell of each answer for thresholds in `gaps`: (m,) integers."""
        cut = np.zeros(len(self.values), dtype=np.int64)
        cut[[g + 1 for g in gaps]] = 1
        return np.cumsum(cut)

    def most_outputs(self, gaps: Iterable[int]) -> int:
        """The largest number of cells on a fibre, counted."""
        cells = self.cells(gaps)
        return max(
            int((1 + np.count_nonzero(np.diff(cells[rows], axis=1), axis=1)).max()) for rows in self.fibres
        )

    def most_differing(self, gaps: Iterable[int]) -> int:
        """The largest symmetric difference of two individuals' values' sets of outputs, counted."""
        cells, most = self.cells(gaps), 0
        for one in self.classes:
            sets = [frozenset(np.unique(cells[members]).tolist()) for members in one]
            distinct = list(dict.fromkeys(sets))
            most = max([most, *(len(a ^ b) for k, a in enumerate(distinct) for b in distinct[:k])])
        return most

    def binding(self, outputs: int) -> list[tuple[int, ...]]:
        """The distinct fibres with more than `outputs` answers: the only ones that can break the budget."""
        found: dict[tuple[int, ...], None] = {}
        for rows in self.fibres:
            distinct = 1 + np.count_nonzero(np.diff(rows, axis=1), axis=1)
            for row in np.unique(rows[distinct > outputs], axis=0):
                found[tuple(np.unique(row).tolist())] = None
        return list(found)


def gap_problem(query: Query) -> GapProblem:
    """The gap problem of a query on finite domains.

    Raises
    ------
    InputError
        If a domain is an interval, or there are too many answers or fibres to list.
    """
    if isinstance(query, LinearQuery):
        return _linear(query, query)
    if isinstance(query, OrderStatistic):
        return _linear(query, identity_query(_finite(query.domain)))
    if isinstance(query, EvenMedian):
        return _linear(query, mean_query(2, _finite(query.domain)))
    table = (
        TabulatedQuery.from_function(query, _all_finite(query)) if isinstance(query, MonotoneQuery) else query
    )
    return _tabulated(query, table)


def _finite(domain: object) -> FiniteDomain:
    if not isinstance(domain, FiniteDomain):
        raise InputError(
            "optimal thresholds need finite domains (use finite(...) or integers(lo, hi)); "
            "for intervals use design_quantizer with layout 'widest' or 'levels'"
        )
    return domain


def _all_finite(query: MonotoneQuery) -> list[FiniteDomain]:
    return [_finite(domain) for domain in query.domains]


def _linear(query: Query, linear: LinearQuery) -> GapProblem:
    """Answers and fibres as integers on the lattice of the contributions.

    For order statistics `linear` stands for the query: its fibres are the maximal ones.
    """
    blocks = linear.blocks
    for block in blocks:
        if not is_finite(block):
            _finite(block.domain)
    unit = lattice_unit(blocks)
    answers = base_sums(blocks, unit)
    if answers is None:
        raise _too_large()
    fibres: list[Indices] = []
    classes: list[tuple[Indices, ...]] = []
    for k, block in enumerate(blocks):
        bases = base_sums(others(linear, k), unit)
        steps = np.array([int(v * unit) for v in contributions(block)], dtype=np.int64)
        if bases is None or bases.size * steps.size + sum(f.size for f in fibres) > LARGEST_FIBRES:
            raise _too_large()
        rows = np.searchsorted(answers, bases[:, None] + steps[None, :])
        fibres.append(rows)
        classes.append(tuple(rows[:, x] for x in range(steps.size)))
    values = tuple(Fraction(v, unit) for v in answers.tolist())
    # The classes describe the linear query itself; an order statistic has others.
    return GapProblem(query, values, tuple(fibres), tuple(classes) if query is linear else ())


def _too_large() -> InputError:
    return InputError(
        f"the query has more than {LARGEST_FIBRES:,} answers on its fibres, too many to list; coarser values "
        "(a common unit for weights and domains) make it smaller, and design_quantizer needs no list"
    )


def _tabulated(query: Query, table: TabulatedQuery) -> GapProblem:
    fibres: list[Indices] = []
    classes: list[tuple[Indices, ...]] = []
    for axis in range(table.ranks.ndim):
        lines = np.moveaxis(table.ranks, axis, -1).reshape(-1, table.ranks.shape[axis])
        fibres.append(np.unique(np.sort(lines, axis=1), axis=0))
        classes.append(tuple(np.unique(lines[:, x]) for x in range(lines.shape[1])))
    return GapProblem(query, table.values, tuple(fibres), tuple(classes))
