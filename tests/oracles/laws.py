"""Slow, obvious laws of released rows: everything in fractions, every cell visited."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations


def law_by_listing(counts, rows, totals, input_cells, output_cells):
    """P(cells) in the table and among released rows, as dictionaries of fractions."""
    n = sum(counts)
    table, released = {}, {}
    for count, cells in zip(counts, input_cells, strict=True):
        table[cells] = table.get(cells, 0) + Fraction(count, n)
    for count, row, total in zip(counts, rows, totals, strict=True):
        for value, cells in zip(row, output_cells, strict=True):
            share = Fraction(count, n) * Fraction(value, total)
            released[cells] = released.get(cells, 0) + share
    return table, released


def marginal(law, places):
    """The law of some columns."""
    sums = {}
    for cells, share in law.items():
        part = tuple(cells[place] for place in places)
        sums[part] = sums.get(part, 0) + share
    return sums


def differences(one, other):
    """By cell, other minus one."""
    return {
        cell: other.get(cell, 0) - one.get(cell, 0) for cell in list(one) + list(other)
    }


def variation(one, other):
    """Total variation of two laws."""
    return sum(map(abs, differences(one, other).values())) / 2


def worst_pair(table, released, width):
    """The largest total variation of two columns."""
    return max(
        variation(marginal(table, pair), marginal(released, pair))
        for pair in combinations(range(width), 2)
    )
