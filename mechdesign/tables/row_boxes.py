"""Boxes of rows: a partition of all rows of several columns, learned from a slice of the records.

A box is a product of sets of symbols, one set for each column, as in 'hours 40-49 and education
Bachelors or Masters'. Boxes are the leaves of a binary tree: a split sends the rows whose symbol in
one column is in a set to one side, and every other row to the other side, symbols that no record of
the slice has among them. So the slice alone decides the box of every possible row, and records
outside of the slice are independent draws over fixed boxes (docs/explanation/population.md).

A split is worth H(split) - c I(S; split) times the mass of its leaf: large parts that say little
about S. A robust channel can then release the box nearly as it is (measured:
docs/explanation/population.md, 'Rows').

`BoxTree` grows greedily: it finds the best split of every leaf (`best_set`, a local search over
sets of symbols for each column) and splits the leaf whose split is worth most, until there are
enough boxes. `BoxTree.boxes(n)` gives the first n of them as `Boxes`, which sorts rows of codes
into boxes. For example, the splits ``(column 0, {2, 3}, -1, 1)`` and ``(column 1, {0}, -2, -3)``
make three boxes: rows with the code 2 or 3 in column 0 are in box 0; of the others, those with the
code 0 in column 1 are in box 1, and the rest are in box 2.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers

Floats = NDArray[np.float64]

Condition = tuple[bool, tuple[int, ...]]
"""Whether the symbol of a column is in a set, or outside of it; and the set."""

BOX = "box"
"""The useful column of a channel of boxes, and the released column without filling."""

NOTHING = "(not released)"
"""What is released where there is no channel."""

PENALTY = 3.0
"""Weight of I(S; split) against H(split) in the worth of a split, by default."""

LEAST_SLICE = 5
"""Fewest records of the slice on either side of a split: some 45 others then decide the interval of
a box, and a box without any of them is as good as impossible.
"""

LEAST_GAIN = 1e-9
"""Nats, times records, by which a move of one symbol must be better."""


def box_name(box: int) -> str:
    """The symbol of a box in the channel of its part."""
    return f"box {box + 1}"


@dataclass(frozen=True)
class BoxSplit:
    """A node of the tree: rows whose code of `column` is in `inside` go to the first child.

    Children are places in the list of nodes; a negative one is the box -1 - child.
    """

    column: int
    inside: tuple[int, ...]
    first: int
    second: int


@dataclass(frozen=True)
class Boxes:
    """A partition of rows of codes; without splits there is a single box."""

    splits: tuple[BoxSplit, ...]

    def __len__(self) -> int:
        return len(self.splits) + 1

    def of(self, codes: Integers) -> Integers:
        """(rows,) box of each row of (rows, columns) codes; -1 is the code of any other symbol."""
        boxes = np.zeros(len(codes), dtype=np.int64)
        if not self.splits:
            return boxes
        # Nodes to visit, each with the rows that reach it.
        waiting: list[tuple[int, Integers]] = [(0, np.arange(len(codes)))]
        while waiting:
            place, rows = waiting.pop()
            if place < 0:
                boxes[rows] = -1 - place
                continue
            split = self.splits[place]
            inside = np.isin(codes[rows, split.column], split.inside)
            waiting.append((split.first, rows[inside]))
            waiting.append((split.second, rows[~inside]))
        return boxes

    def sets(self) -> list[dict[int, list[Condition]]]:
        """For every box the conditions of each column, from the root on.

        In the example of the module box 2 has ``{0: [(False, (2, 3))], 1: [(False, (0,))]}``.
        """
        conditions: list[dict[int, list[Condition]]] = [{} for _ in range(len(self))]
        if not self.splits:
            return conditions
        # Nodes to visit, each with the columns and conditions on the path from the root to it.
        waiting: list[tuple[int, list[tuple[int, Condition]]]] = [(0, [])]
        while waiting:
            place, path = waiting.pop()
            if place < 0:
                box = -1 - place
                for column, condition in path:
                    conditions[box].setdefault(column, []).append(condition)
                continue
            split = self.splits[place]
            inside = (split.column, (True, split.inside))
            outside = (split.column, (False, split.inside))
            waiting.append((split.first, [*path, inside]))
            waiting.append((split.second, [*path, outside]))
        return conditions


def boxes_merging_rare(codes: Integers, counts: Integers, least: float) -> Boxes | None:
    """Boxes of one column: one for each common symbol, and one for all others together.

    A symbol is common if it has `least` records of the slice or more. None where no symbol is.
    """
    sums = np.bincount(codes[:, 0], counts)
    common = np.flatnonzero(sums >= max(least, 1.0)).tolist()
    if not common:
        return None
    splits: list[BoxSplit] = []
    for place, symbol in enumerate(common):
        # A chain: each split takes one symbol out and leads to the next split, the last one to
        # the box of all other symbols.
        after = place + 1
        if after == len(common):
            after = -len(common) - 1
        splits.append(BoxSplit(0, (int(symbol),), -place - 1, after))
    return Boxes(tuple(splits))


class _Place(NamedTuple):
    """Where a leaf hangs: below which split (-1 for the root), and whether on its first side."""

    parent: int
    is_first: bool


@dataclass(frozen=True)
class _Leaf:
    """A leaf that may be split: its rows of the slice, and its best split with the worth."""

    rows: Integers
    column: int
    inside: tuple[int, ...]
    worth: float


@dataclass(frozen=True)
class _GrownSplit:
    """A leaf that has been split."""

    place: _Place
    column: int
    inside: tuple[int, ...]


class BoxTree:
    """Greedy growth of boxes on a slice: the leaf whose split is worth most is split next.

    The splits of `most` boxes begin with those of fewer boxes, so `boxes(n)` for several n costs
    one growth.

    Parameters
    ----------
    codes : (rows, columns) array
        The distinct rows of the slice, as positions of symbols.
    secrets : (rows,) array
        The position of each row's sensitive symbol.
    counts : (rows,) array
        The records of each row.
    most : int
        The largest number of boxes.
    penalty : float
        Weight of I(S; split) in the worth of a split.
    """

    def __init__(
        self,
        codes: Integers,
        secrets: Integers,
        counts: Integers,
        most: int,
        penalty: float = PENALTY,
    ) -> None:
        self._penalty = penalty
        self._codes = codes
        self._secrets = secrets
        self._counts = counts.astype(np.float64)
        self._sizes: list[int] = (codes.max(axis=0) + 1).tolist()
        self._size = int(secrets.max()) + 1
        # In the order of growth, so a split stands after its parent.
        self._grown: list[_GrownSplit] = []
        self._grow(most)

    @property
    def most(self) -> int:
        """The largest number of boxes that was grown."""
        return len(self._grown) + 1

    def boxes(self, count: int) -> Boxes:
        """The first `count` boxes (or all, where fewer were grown)."""
        grown = self._grown[: max(count - 1, 0)]
        # The splits below each split, by their numbers; None where a box hangs.
        children: list[list[int | None]] = [[None, None] for _ in grown]
        for number, split in enumerate(grown):
            parent, is_first = split.place
            if parent >= 0:
                side = 0 if is_first else 1
                children[parent][side] = number
        splits: list[BoxSplit] = []
        box = 0
        for split, pair in zip(grown, children, strict=True):
            ends: list[int] = []
            for child in pair:
                if child is None:
                    child = -1 - box
                    box += 1
                ends.append(child)
            splits.append(BoxSplit(split.column, split.inside, ends[0], ends[1]))
        return Boxes(tuple(splits))

    def _grow(self, most: int) -> None:
        """Split the leaf of most worth, until there are `most` boxes or no split is worth it."""
        # The least entry comes first, so worths are negative. Among equal ones the place decides,
        # in the order of growth.
        heap: list[tuple[float, _Place, _Leaf]] = []

        def push(place: _Place, rows: Integers) -> None:
            leaf = self._best(rows)
            if leaf is not None:
                heapq.heappush(heap, (-leaf.worth, place, leaf))

        push(_Place(-1, False), np.arange(len(self._codes)))
        while heap and len(self._grown) < most - 1:
            _, place, leaf = heapq.heappop(heap)
            number = len(self._grown)
            self._grown.append(_GrownSplit(place, leaf.column, leaf.inside))
            inside = np.isin(self._codes[leaf.rows, leaf.column], leaf.inside)
            push(_Place(number, True), leaf.rows[inside])
            push(_Place(number, False), leaf.rows[~inside])

    def _best(self, rows: Integers) -> _Leaf | None:
        """The best split of a leaf; None where all are too small or say too much about S."""
        best: _Leaf | None = None
        counts = self._counts[rows]
        for column, size in enumerate(self._sizes):
            # The table of S by the symbols of this column, among the rows of the leaf.
            keys = self._secrets[rows] * size + self._codes[rows, column]
            table = np.bincount(keys, counts, minlength=self._size * size)
            joint = table.astype(np.float64).reshape(self._size, size)
            present = np.flatnonzero(joint.sum(axis=0))
            if len(present) < 2:
                continue
            inside, worth = best_set(joint[:, present], self._penalty)
            if worth > 0.0 and (best is None or worth > best.worth):
                symbols = tuple(present[inside].tolist())
                best = _Leaf(rows, column, symbols, worth)
        return best


def best_set(
    joint: Floats, penalty: float = PENALTY
) -> tuple[NDArray[np.bool_], float]:
    """The set of symbols whose split is worth most, by local search.

    From three starts (`_starts`) symbols are moved to the other side, one at a time, as long as
    that is worth more (`_climbed`).

    Parameters
    ----------
    joint : (|S|, n) array
        Counts of the slice in a leaf.

    Returns
    -------
    (n,) array of truth values, and the worth in nats: records times (H(split) - penalty I(S;
    split)).
    """
    best = np.zeros(joint.shape[1], dtype=np.bool_)
    most = 0.0
    for start in _starts(joint):
        inside, worth = _climbed(joint, start, penalty)
        if worth > most:
            best = inside
            most = worth
    return best, most


def _starts(joint: Floats) -> Sequence[NDArray[np.bool_]]:
    """Three sets: about half of the mass, the largest symbol alone, and every second symbol."""
    masses = joint.sum(axis=0)
    order = np.argsort(-masses, kind="stable")
    balanced = np.zeros(len(masses), dtype=np.bool_)
    half = masses.sum() / 2.0
    sum_inside = 0.0
    for x in order:
        if sum_inside + masses[x] <= half:
            balanced[x] = True
            sum_inside += masses[x]
    alone = np.zeros(len(masses), dtype=np.bool_)
    alone[order[0]] = True
    # In the order of P(s = 0 | x), every second symbol: two sides with nearly the same S, so their
    # I(S; split) is small, which the other two starts do not look for.
    rates = joint[0] / masses
    by_rate = np.argsort(rates, kind="stable")
    alternate = np.zeros(len(masses), dtype=np.bool_)
    alternate[by_rate[::2]] = True
    return (balanced, alone, alternate)


def _climbed(
    joint: Floats, inside: NDArray[np.bool_], penalty: float
) -> tuple[NDArray[np.bool_], float]:
    """The best set that moves of one symbol at a time reach from `inside`."""
    inside = inside.copy()
    totals = joint.sum(axis=1, keepdims=True)
    first = joint[:, inside].sum(axis=1, keepdims=True)
    worth = float(_worth(first, totals, penalty)[0])
    while True:
        # Column x of `moved` has the counts inside after symbol x has changed sides.
        signs = np.where(inside, -1.0, 1.0)
        moved = first + signs * joint
        values = _worth(moved, totals, penalty)
        x = int(np.argmax(values))
        # More than rounding, so that the search ends.
        if not values[x] > worth + LEAST_GAIN:
            return inside, worth
        worth = float(values[x])
        first = moved[:, x : x + 1]
        inside[x] = not inside[x]


def _worth(first: Floats, totals: Floats, penalty: float) -> Floats:
    """(k,) worth of splits with the counts `first` (|S|, k) on one side.

    It is -inf where a side is too small.
    """
    second = totals - first
    left = first.sum(axis=0)
    right = second.sum(axis=0)
    total = left + right
    # With L(c) = c log c and N records, of which N_k are on side k and N_sk of these have s:
    #   N H(split)    = L(N) - sum_k L(N_k),
    #   N I(S; split) = sum_sk L(N_sk) - sum_k L(N_k) - sum_s L(N_s) + L(N).
    sides = _c_log_c(left) + _c_log_c(right)
    entropy = _c_log_c(total) - sides
    cells = (_c_log_c(first) + _c_log_c(second)).sum(axis=0)
    information = cells - sides - _c_log_c(totals).sum() + _c_log_c(total)
    values = entropy - penalty * information
    return np.where(np.minimum(left, right) < LEAST_SLICE, -np.inf, values)


def _c_log_c(counts: Floats) -> Floats:
    """c log c, and 0 at 0."""
    # Counts are whole, so 0.5 separates 0 from the rest, even after rounding. `maximum` avoids the
    # logarithm of 0.
    positive = np.maximum(counts, 1e-300)
    return np.where(counts > 0.5, counts * np.log(positive), 0.0)
