"""Growing the tree of a row channel: from the stratum down, the heaviest prefix first.

`RowGrowth` is made once for an order of the levels; `grow` is called for every split of the budgets
that is tried. A prefix (`row_prefix`) is a node of the tree that has no channel yet. They wait in a
heap, in the beginning one for each stratum:

1. Take the heaviest prefix. What prefixes are worth is proportional to their mass.
2. If time is over, or it has less than the least mass, its rest is released as a constant
   (`_stop`), which keeps every promise (docs/explanation/rows-theory.md, proposition 2).
3. Otherwise it becomes a node (`_expand`): `row_node` designs a channel for the law at the prefix,
   within bounds that spend a share of the budgets which are left there (`row_budgets`). The prefix
   below each output joins the heap.

For example, with two levels and the symbols a and b in the first one, the heap has the root, of
mass 1; then the prefixes after the outputs a and b, of mass 0.7 and 0.3 say; then that of b; then
none, since nodes of the last level have nothing below them. `row_grown` keeps the tree and adds up
what it is worth.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.labels import output_labels
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.row_tree import DENOMINATOR, END
from mechdesign.mechanisms.row_budgets import (
    AllowedLifts,
    Bounds,
    Spending,
    Stratum,
    shares_after,
)
from mechdesign.mechanisms.row_grown import GrowingTree, Grown, equal_cells
from mechdesign.mechanisms.row_node import TRUTH, NodePrograms
from mechdesign.mechanisms.row_prefix import Prefix, PrefixLaws
from mechdesign.mechanisms.row_task import RowTask
from mechdesign.tables.records import Records

ANY = "any"
"""Label of a constant output with free outputs."""


class RowGrowth:
    """Grows trees of one problem for different splits of the budgets.

    Parameters
    ----------
    records : Records
        The distinct rows, of which the first `given` groups of columns are released as they are.
    strata : sequence of Stratum
        Those of the given columns; each is the root of a tree.
    objective : {"truth", "information"}
    order : sequence of int, optional
        The released groups in the order of the levels, 0 for the first after the given ones; by
        default as they come.
    task : RowTask, optional
        What the outputs should tell of in the place of the rows.
    """

    def __init__(
        self,
        records: Records,
        given: int,
        strata: Sequence[Stratum],
        objective: str,
        order: Sequence[int] | None = None,
        task: RowTask | None = None,
    ) -> None:
        self._records = records
        self._strata = strata
        places = list(range(given, len(records.groups)))
        if order is not None:
            places = [given + group for group in order]
        self._levels = [records.groups[place] for place in places]
        self._laws = PrefixLaws(records, strata, places, task)
        self._programs = NodePrograms(objective)
        self._has_own_symbols = objective == TRUTH
        self._equal: list[list[NDArray[np.bool_]]] | None = None
        if self._has_own_symbols:
            self._equal = [equal_cells(variable.symbols) for variable in self._levels]

    def grow(
        self,
        spending: Spending,
        *,
        least_mass: float,
        end: float = math.inf,
        slack: float = 0.0,
    ) -> Grown:
        """The tree in which every node spends so much of the budgets that are left at it.

        Parameters
        ----------
        spending : sequence of tuples of float
            For each level the share of what is left that an output may spend: one for all outputs,
            or with the objective truth one for each symbol. That of the last level is 1.
        least_mass : float
            Prefixes of less mass release the rest as a constant.
        end : float
            Time of `time.perf_counter` from which on all prefixes do so.
        slack : float
            Relative distance that all bounds keep beside the usual one.
        """
        tree = GrowingTree(self._levels, self._equal, len(self._strata))
        self._programs.in_time = True
        allowed = AllowedLifts(self._strata, slack)
        # A heap by negative mass pops the heaviest prefix first. The ticket decides between equal
        # masses, so that prefixes are never compared.
        heap: list[tuple[float, int, Prefix]] = []
        tickets = itertools.count()
        for k, stratum in enumerate(self._strata):
            weights = self._records.masses[stratum.rows]
            root = Prefix(0, k, END, stratum.rows, weights)
            heapq.heappush(heap, (-root.mass, next(tickets), root))
        while heap:
            negative, _, prefix = heapq.heappop(heap)
            late = time.perf_counter() >= end
            if late or -negative < least_mass:
                tree.in_time = tree.in_time and not late
                tree.stopped -= negative
                number = self._stop(tree, prefix)
            else:
                # Proposition 2: c_j = c_{j-1} + f_j (1 - c_{j-1}), for each output if f_j is.
                shares = shares_after(prefix.used, spending[prefix.level])
                bounds = allowed.bounds(prefix.stratum, shares)
                number, children = self._expand(tree, prefix, shares, bounds, end)
                for child in children:
                    heapq.heappush(heap, (-child.mass, next(tickets), child))
            # The parent has its number already, since a child enters the heap after it.
            tree.place(prefix, number)
        tree.in_time = tree.in_time and self._programs.in_time
        return tree.finished()

    def _expand(
        self,
        tree: GrowingTree,
        prefix: Prefix,
        shares: tuple[float, ...],
        bounds: Bounds,
        end: float,
    ) -> tuple[int, list[Prefix]]:
        """Make the channel of a node; its number within the level, and its children.

        `shares` are those of the budgets that `bounds` allow, one for all outputs or one for each.
        """
        level = prefix.level
        law = self._laws.at(prefix)
        inputs = law.inputs
        integers = self._programs.channel(law.table, bounds.of_outputs(inputs), end)
        released = np.flatnonzero(integers.any(axis=0))
        integers = integers[:, released]
        if self._has_own_symbols:
            outputs = inputs[released]
        else:
            outputs, integers = self._labelled(tree, level, inputs, integers)
        number, first_slot = tree.add_node(level, law, outputs, integers)
        if level + 1 == len(self._levels):
            return number, []
        children: list[Prefix] = []
        # W(y | x of the row), rows by outputs.
        share_of_rows = (integers / DENOMINATOR)[law.place_of_row]
        have_own_shares = len(shares) > 1
        for k, output in enumerate(outputs.tolist()):
            used = shares[0]
            if have_own_shares:
                used = shares[output]
            children.append(prefix.after(share_of_rows[:, k], first_slot + k, used))
        return number, children

    def _labelled(
        self, tree: GrowingTree, level: int, inputs: Integers, integers: Integers
    ) -> tuple[Integers, Integers]:
        """Codes of the labels of free outputs, ascending, and the columns in their order."""
        names = [self._levels[level].names[x] for x in inputs.tolist()]
        labels: tuple[str, ...] = (self._any_label(level),)
        if integers.shape[1] > 1:
            labels = output_labels(names, IntegerRows.from_array(integers))
        codes = np.array([tree.levels[level].code(label) for label in labels])
        order = np.argsort(codes)
        return codes[order], integers[:, order]

    def _any_label(self, level: int) -> str:
        """The label of a constant output: one that no symbol of the level has."""
        label = ANY
        while label in self._levels[level].names:
            label += "*"
        return label

    def _stop(self, tree: GrowingTree, prefix: Prefix) -> int:
        """Release the rest of a prefix as a constant; the number of its first constant node."""
        outputs: list[int] = []
        for level in range(prefix.level, len(self._levels)):
            if self._has_own_symbols:
                # The heaviest symbol leaves most of the cells unchanged.
                masses = self._laws.symbol_masses(prefix, level)
                output = int(np.argmax(masses))
                tree.add_unchanged(level, output, masses)
            else:
                output = tree.levels[level].code(self._any_label(level))
            outputs.append(output)
        return tree.add_rest(prefix.level, outputs)
