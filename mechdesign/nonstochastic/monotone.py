"""The most outputs of a quantised monotone query: branch and bound over the others' data.

On a box of the others' data the fibre of individual i lies between f(lowest x_i, lowest corner) and
f(highest x_i, highest corner); the cells between them bound the count from above, and any one
dataset bounds it from below.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import FiniteDomain
from mechdesign.nonstochastic.queries import MonotoneQuery

MOST_BOXES = 4_000
"""Boxes opened for each individual before the bounds are returned as they stand."""

MOST_COORDINATES = 100_000
"""Individuals squared times boxes opened for each: a query reads everybody's data for every box (some 5 s)."""

Box = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]


def most_outputs_monotone(
    query: MonotoneQuery, thresholds: Sequence[Fraction]
) -> tuple[int, int, tuple[int, tuple[Fraction, ...]]]:
    """Proven bound, number attained, and where: the individual who varies and the others' data."""
    outputs, attained, where = 0, 0, (0, ())
    for i in range(query.individuals):
        bound, found, data = _most_for(query, thresholds, i)
        outputs = max(outputs, bound)
        if found > attained:
            attained, where = found, (i, data)
    return outputs, attained, where


def _most_for(
    query: MonotoneQuery, thresholds: Sequence[Fraction], i: int
) -> tuple[int, int, tuple[Fraction, ...]]:
    """Best-first search over boxes of x_-i."""
    rest = [d for k, d in enumerate(query.domains) if k != i]
    order = itertools.count()
    attained, best = 0, tuple(d.lo for d in rest)
    heap: list[tuple[int, int, Box]] = []

    def push(box: Box) -> None:
        nonlocal attained, best
        if all(a == b for a, b in zip(*box, strict=True)):
            # A single dataset: its own count is exact, so it never needs to be opened.
            found = _count(query, thresholds, i, box[0])
            if found > attained:
                attained, best = found, box[0]
            return
        middle = tuple(_middle(d, a, b) for d, a, b in zip(rest, *box, strict=True))
        for data in {box[0], box[1], middle}:
            found = _count(query, thresholds, i, data)
            if found > attained:
                attained, best = found, data
        heapq.heappush(heap, (-_bound(query, thresholds, i, box), next(order), box))

    push((tuple(d.lo for d in rest), tuple(d.hi for d in rest)))
    opened = 0
    most = min(MOST_BOXES, max(1, MOST_COORDINATES // query.individuals**2))
    while heap and -heap[0][0] > attained and opened < most:
        _, _, box = heapq.heappop(heap)
        opened += 1
        for half in _halves(rest, box):
            push(half)
    return max(attained, -heap[0][0] if heap else 0), attained, best


def _middle(domain: object, a: Fraction, b: Fraction) -> Fraction:
    if isinstance(domain, FiniteDomain):
        first, last = domain.values.index(a), domain.values.index(b)
        return domain.values[(first + last) // 2]
    return (a + b) / 2


def _halves(rest: Sequence[object], box: Box) -> tuple[Box, Box]:
    """The box cut across its longest side; halves of an interval share the cut."""
    side = max(range(len(rest)), key=lambda k: box[1][k] - box[0][k])
    domain, middle = rest[side], _middle(rest[side], box[0][side], box[1][side])
    upper = domain.values[domain.values.index(middle) + 1] if isinstance(domain, FiniteDomain) else middle
    lower_half = box[0], (*box[1][:side], middle, *box[1][side + 1 :])
    upper_half = (*box[0][:side], upper, *box[0][side + 1 :]), box[1]
    return lower_half, upper_half


def _insert(data: tuple[Fraction, ...], i: int, value: Fraction) -> tuple[Fraction, ...]:
    return (*data[:i], value, *data[i:])


def _span(query: MonotoneQuery, thresholds: Sequence[Fraction], i: int, low: Box) -> int:
    """Cells from the lowest answer at the lower corner to the highest at the upper one."""
    first = query(_insert(low[0], i, query.domains[i].lo))
    last = query(_insert(low[1], i, query.domains[i].hi))
    _check_rises(first, last)
    return 1 + bisect_right(thresholds, last) - bisect_right(thresholds, first)


def _check_rises(first: Fraction, last: Fraction) -> None:
    if first > last:
        raise InputError(f"the query is not monotone: it falls from {first} to {last} as the data grow")


def _count(query: MonotoneQuery, thresholds: Sequence[Fraction], i: int, data: tuple[Fraction, ...]) -> int:
    """Number of cells on one fibre; a continuous query on an interval skips no cell."""
    domain = query.domains[i]
    if isinstance(domain, FiniteDomain):
        answers = [query(_insert(data, i, v)) for v in domain.values]
        for first, last in itertools.pairwise(answers):
            _check_rises(first, last)
        return len({bisect_right(thresholds, answer) for answer in answers})
    return _span(query, thresholds, i, (data, data))


def _bound(query: MonotoneQuery, thresholds: Sequence[Fraction], i: int, box: Box) -> int:
    span = _span(query, thresholds, i, box)
    domain = query.domains[i]
    return min(span, len(domain.values)) if isinstance(domain, FiniteDomain) else span
