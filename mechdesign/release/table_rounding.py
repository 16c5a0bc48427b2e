"""A table of fractions rounded at random to a table of whole numbers with the same sums and means.

The entries are integers in units of 1 / 2^bits, and every row and column adds up to a whole number.
The lowest binary place is cleared first, then the next one, until all entries are whole. Take
bits = 2, so that 4 is a whole:

    3 1        all entries are odd: by one fair coin       4 0    or    2 2
    1 3        they move by +1, -1, -1, +1 or back         0 4          2 2

The first table is whole. In the second one all entries are odd multiples of 2, and another coin
makes it 4 0 / 0 4 or 0 4 / 4 0. So the first entry becomes 4 with probability 1/2 + 1/4 and else 0:
its mean is the 3 that it was.

One step, `_moves`, at the place of 2^b, where all entries are multiples of 2^b already:

1. An entry is odd if it has that binary place. Every row and column adds up to a multiple of
   2^(b+1), so it has an even number of odd entries.
2. Each row pairs its odd entries, and so does each column. From entry to entry, by the pair in the
   row and the pair in the column in turn, these pairs form closed trails of even length.
3. On each trail every second entry moves up by 2^b and the others move down, or the other way
   round, by one fair coin. Both entries of a pair move against each other, so no sum changes. All
   moved entries are multiples of 2^(b+1) now.

An entry with that place lies in [2^b, 2^bits - 2^b], so it stays within [0, 2^bits]. Each step
keeps all means, as its coins are fair whatever happened before. It takes time proportional to the
number of odd entries, at most the number of entries; there are `bits` steps.

This is the dependent rounding of Gandhi et al. 2006. There, steps of any length along a cycle end
when one entry is whole, so a cycle can be walked many times. Steps of a power of two clear a place
of all entries at once, as in the Euler splits of Cole and Hopcroft 1982.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mechdesign.core.integers import Integers

Coins: TypeAlias = Callable[[int], NDArray[np.bool_]]
"""Gives as many fair, independent coins as asked for, other ones at every call."""


def rounded_up(
    rows: Integers, columns: Integers, entries: Integers, bits: int, coins: Coins
) -> NDArray[np.bool_]:
    """Which entries become 1 when a table of fractions is rounded at random to 0 and 1.

    Parameters
    ----------
    rows, columns : (m,) arrays
        The place of each entry. Their order decides which entries are paired, and nothing else.
    entries : (m,) array
        Entries in [0, 2^bits), in units of 1 / 2^bits; each row and each column adds up to a
        multiple of 2^bits. The caller has checked this.
    bits : int
        At most 62.
    coins : callable
        Fair coins.

    Returns
    -------
    (m,) array
        True with probability entries / 2^bits, exactly. Every row and column has as many as its
        entries add up to.
    """
    entries = entries.copy()
    # Entries of one row are neighbours in the first order, those of one column in the second.
    by_row = np.argsort(rows, kind="stable")
    by_column = np.argsort(columns, kind="stable")
    for bit in range(bits):
        is_odd = (entries >> bit) & 1 == 1
        odd = np.flatnonzero(is_odd)
        if odd.size:
            # The number of each odd entry among the odd ones.
            number = np.cumsum(is_odd) - 1
            in_row = _pairs(number[by_row[is_odd[by_row]]])
            in_column = _pairs(number[by_column[is_odd[by_column]]])
            entries[odd] += _moves(in_row, in_column, coins) << bit
    return entries > 0


def _pairs(neighbours: Integers) -> Integers:
    """The other entry of each one's pair: the first is paired with the second, and so on.

    Every row has an even number of entries, so no pair is of two rows.
    """
    pair = np.empty_like(neighbours)
    pair[neighbours[::2]] = neighbours[1::2]
    pair[neighbours[1::2]] = neighbours[::2]
    return pair


def _moves(in_row: Integers, in_column: Integers, coins: Coins) -> Integers:
    """+1 or -1 for each entry: opposite in every pair, by one coin for each closed trail.

    Parameters
    ----------
    in_row, in_column : (n,) arrays
        The other entry of the pair in the row, and of that in the column.
    coins : callable
        Fair coins.
    """
    size = len(in_row)
    entry = np.arange(size)
    # Two steps along the trail lead to the next entry that moves the same way: an orbit of this
    # permutation is one half of a trail. Trails are even, so the halves have no entry in common.
    onward = in_column[in_row]
    graph = csr_array((np.ones(size, np.int8), (entry, onward)), shape=(size, size))
    count, orbit = connected_components(graph, directed=False)
    # Names that do not depend on how the components were found: the first entry of the half.
    first = np.full(count, size)
    np.minimum.at(first, orbit, entry)
    half = first[orbit]
    other_half = half[in_row]
    trail = np.minimum(half, other_half)
    is_first_of_trail = trail == entry
    # One coin a trail, in the order of their first entries.
    trail_number = np.cumsum(is_first_of_trail) - 1
    coin = coins(int(is_first_of_trail.sum()))[trail_number[trail]]
    is_up = (half < other_half) == coin
    return np.where(is_up, 1, -1)
