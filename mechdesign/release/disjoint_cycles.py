"""Cycles of a table that have no entry in common, and random moves along them.

A cycle goes from entry to entry, in a row and in a column by turns, back to where it began. If its
entries move up and down by turns, by the same amount, no sum of a row or column changes:

    .5 .5  0                      .75 .25  0
    .25 0 .75      becomes         0   0   1      or the other way round, by a fair coin
    .25 .5 .25                    .25 .75  0

Its cycle has all entries that are not 0 but the last row's first one. The amount, .25, is the
largest one by which it can move either way. At least one entry is whole in one of the two cases.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.release.chance import Chance

UNSEEN = -1
"""The place in the path of a vertex that is not in it."""


def moved_along_cycles(
    rows: Integers, columns: Integers, entries: Integers, whole: int, chance: Chance
) -> Integers:
    """Entries after a move along each of some disjoint cycles of those that are not 0 or whole.

    No sum of a row or column changes, and the mean of every entry is what it was. Takes time
    proportional to the number of entries.

    Parameters
    ----------
    rows, columns : (m,) arrays
        The place of each entry.
    entries : (m,) array
        Entries in [0, whole].
    whole : int
    chance : Chance
        Decides which cycles there are, and which way each moves.
    """
    fractional = np.flatnonzero((entries > 0) & (entries < whole))
    fractional = fractional[chance.order(len(fractional))]
    values: list[int] = entries[fractional].tolist()
    cycles = [*disjoint_cycles(rows[fractional], columns[fractional])]
    coins = chance.coins(len(cycles)).tolist()
    for cycle, coin in zip(cycles, coins, strict=True):
        along = [values[entry] for entry in cycle]
        move = min(min(along), whole - max(along))
        if coin:
            move = -move
        for entry in cycle[::2]:
            values[entry] += move
        for entry in cycle[1::2]:
            values[entry] -= move
    moved = entries.copy()
    moved[fractional] = values
    return moved


def disjoint_cycles(rows: Integers, columns: Integers) -> Iterator[list[int]]:
    """Cycles of entries, in the order in which they follow each other.

    A walk over rows and columns as the vertices of a graph, whose edges are the entries. It never
    takes an entry twice. Where it meets its own path, it cuts off the cycle; where it cannot go on,
    it takes a step back. So it takes every entry once, and at most once back.
    """
    row_count = int(rows.max(initial=-1)) + 1
    vertex_count = row_count + int(columns.max(initial=-1)) + 1
    ends = np.concatenate([rows, columns + row_count])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(vertex_count + 1))
    bounds: list[int] = starts.tolist()
    # The entries of a vertex lie between its bounds; `ahead` is the next one to be taken.
    entries_of: list[int] = (order % max(len(rows), 1)).tolist()
    ahead = bounds[:-1]
    end = bounds[1:]
    both_ends: list[int] = (rows + columns + row_count).tolist()
    is_taken = bytearray(len(rows))
    place = [UNSEEN] * vertex_count
    for start in range(vertex_count):
        # Entry k of the path leads from vertex k to vertex k + 1.
        vertices = [start]
        path: list[int] = []
        place[start] = 0
        while vertices:
            vertex = vertices[-1]
            while ahead[vertex] < end[vertex] and is_taken[entries_of[ahead[vertex]]]:
                ahead[vertex] += 1
            if ahead[vertex] == end[vertex]:
                place[vertices.pop()] = UNSEEN
                if path:
                    path.pop()
                continue
            entry = entries_of[ahead[vertex]]
            is_taken[entry] = 1
            other = both_ends[entry] - vertex
            if place[other] == UNSEEN:
                place[other] = len(vertices)
                vertices.append(other)
                path.append(entry)
                continue
            first = place[other]
            yield [*path[first:], entry]
            for left in vertices[first + 1 :]:
                place[left] = UNSEEN
            del vertices[first + 1 :]
            del path[first:]
