"""Growing the tree of a row channel: from the stratum down, the heaviest prefix first.

`RowGrowth` is made once for an order of the levels; `grow` is called for every split of the budgets
that is tried. A *prefix* v is a node of the tree that has no channel yet: the given symbols and the
released outputs of the levels above it. It carries the weight P(row, v) of every distinct row that
may lead there. From the weights follows everything below:

1. the law at v of the sensitive symbol s and the next level's symbol x, and with it the lifts
   P(s | x, v) / P(s) that the node's channel W mixes (`row_node` designs W for this law);
2. the weights of the prefix after an output y: P(row, v y) = P(row, v) W(y | x of the row).

For example, let a prefix have two rows of weight 0.3 and 0.1 with different next symbols, and let
its channel be the binary one that tells the truth in three of four cases. Then its two children
have the masses 0.3 * 3/4 + 0.1 * 1/4 = 0.25 and 0.15.

What prefixes are worth is proportional to their mass, so they are taken in the order of mass:
whenever time is over, or a prefix has less than the least mass, the rest of it is released as a
constant, which keeps every promise (docs/explanation/rows-theory.md, proposition 2).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.labels import output_labels
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.row_tree import DENOMINATOR, END, LevelTable, RowTree
from mechdesign.mechanisms.row_budgets import (
    AllowedLifts,
    Bounds,
    Spending,
    Stratum,
    shares_after,
)
from mechdesign.mechanisms.row_entropy import entropy, row_entropies
from mechdesign.mechanisms.row_level import GrowingLevel, settled
from mechdesign.mechanisms.row_lifts import NodeTable
from mechdesign.mechanisms.row_node import TRUTH, NodePrograms
from mechdesign.mechanisms.row_task import RowTask, kept_of_task
from mechdesign.tables.records import Records
from solvers import Array

ANY = "any"
"""Label of a constant output with free outputs."""


@dataclass(eq=False)
class Prefix:
    """A node to be.

    Parameters
    ----------
    level : int
        The level whose symbol is released next.
    stratum : int
    slot : int
        The slot of the level above that leads here (`END` at the root of a stratum).
    rows : (n,) array
        Positions of the distinct rows that may lead here.
    weights : (n,) array
        P(row, prefix) of each, positive.
    used : float
        c in [0, 1], the share of the budgets that the lifts of this prefix may have used up.
    """

    level: int
    stratum: int
    slot: int
    rows: NDArray[np.int64]
    weights: Array
    used: float = 0.0

    @property
    def mass(self) -> float:
        """P(prefix)."""
        return float(self.weights.sum())


@dataclass(frozen=True, eq=False)
class NodeLaw:
    """What is known at a prefix of the next level's symbol.

    `inputs` are the n symbols that occur there, `place_of_row` the place among them of each row's
    symbol, `mass` is P(prefix), and `table` the law that the channel is made for.
    """

    inputs: Integers
    place_of_row: Integers
    mass: float
    table: NodeTable


@dataclass(eq=False)
class Growth:
    """A tree while it grows: its nodes by level, and the figures of `Grown` so far."""

    levels: list[GrowingLevel]
    information: list[float]
    task: list[float]
    truth: list[Array]
    stopped: float = 0.0
    in_time: bool = True


@dataclass(frozen=True, eq=False)
class Grown:
    """A tree with what it keeps, in floating point.

    Attributes
    ----------
    tree : RowTree
    labels : tuple of tuple of str
        Those of the outputs of each level.
    information, task : tuple of float
        I(X; Y | K) and I(T; Y | K) in nats of each level, the latter zeros without a task.
    truth : dict or None
        Column to expected share of unchanged cells; None with free outputs.
    stopped : float
        Mass of the prefixes that were not grown.
    in_time : bool
        Whether nothing was left out because time was over.
    """

    tree: RowTree
    labels: tuple[tuple[str, ...], ...]
    information: tuple[float, ...]
    task: tuple[float, ...]
    truth: dict[str, float] | None
    stopped: float
    in_time: bool


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
        self._task = task
        self._strata = strata
        self._objective = objective
        places = list(range(given, len(records.groups)))
        if order is not None:
            places = [given + group for group in order]
        self._levels = [records.groups[place] for place in places]
        self._codes = [np.ascontiguousarray(records.codes[:, p]) for p in places]
        self._programs = NodePrograms(objective)
        self._equal = [_equal_cells(variable.symbols) for variable in self._levels]

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
        growth = self._begun()
        self._programs.in_time = True
        allowed = AllowedLifts(self._strata, slack)
        roots = [0] * len(self._strata)
        # A heap by negative mass pops the heaviest prefix first. The ticket decides between equal
        # masses, so that prefixes are never compared.
        heap: list[tuple[float, int, Prefix]] = []
        tickets = itertools.count()
        for k, stratum in enumerate(self._strata):
            weights = self._records.masses[stratum.rows]
            prefix = Prefix(0, k, END, stratum.rows, weights)
            heapq.heappush(heap, (-prefix.mass, next(tickets), prefix))
        while heap:
            negative, _, prefix = heapq.heappop(heap)
            late = time.perf_counter() >= end
            if late or -negative < least_mass:
                growth.in_time = growth.in_time and not late
                growth.stopped -= negative
                number = self._stop(growth, prefix)
            else:
                # Proposition 2: c_j = c_{j-1} + f_j (1 - c_{j-1}), for each output if f_j is.
                shares = shares_after(prefix.used, spending[prefix.level])
                bounds = allowed.bounds(prefix.stratum, shares)
                number, children = self._expand(growth, prefix, shares, bounds, end)
                for child in children:
                    heapq.heappush(heap, (-child.mass, next(tickets), child))
            # The parent has its number already, since a child enters the heap after it.
            if prefix.level == 0:
                roots[prefix.stratum] = number
            else:
                growth.levels[prefix.level - 1].children[prefix.slot] = number
        growth.in_time = growth.in_time and self._programs.in_time
        return self._grown(growth, roots)

    def _begun(self) -> Growth:
        """Nothing grown yet; with the objective truth the labels of a level are its symbols."""
        if self._objective == TRUTH:
            levels = [GrowingLevel(variable.names) for variable in self._levels]
        else:
            levels = [GrowingLevel() for _ in self._levels]
        truth = [np.zeros(len(equal)) for equal in self._equal]
        nothing = [0.0] * len(self._levels)
        return Growth(levels, nothing, list(nothing), truth)

    def _expand(
        self,
        growth: Growth,
        prefix: Prefix,
        shares: tuple[float, ...],
        bounds: Bounds,
        end: float,
    ) -> tuple[int, list[Prefix]]:
        """Make the channel of a node; its number within the level, and its children.

        `shares` are those of the budgets that `bounds` allow, one for all outputs or one for each.
        """
        law = self._law(prefix)
        inputs = law.inputs
        integers = self._programs.channel(law.table, bounds.of_outputs(inputs), end)
        used = np.flatnonzero(integers.any(axis=0))
        integers = integers[:, used]
        if self._objective == TRUTH:
            outputs = inputs[used]
        else:
            outputs, integers = self._labelled(growth, prefix.level, inputs, integers)
        # W(y | x, prefix), (n, m).
        channel = integers / DENOMINATOR
        self._add_figures(growth, prefix.level, law, outputs, channel)

        number, slot = growth.levels[prefix.level].add_node(inputs, outputs, integers)
        if prefix.level + 1 == len(self._levels):
            return number, []
        children: list[Prefix] = []
        # P(row, prefix y) = P(row, prefix) W(y | x of the row).
        of_rows = channel[law.place_of_row]
        have_own_shares = len(shares) > 1
        for k, output in enumerate(outputs.tolist()):
            place = 0
            if have_own_shares:
                place = output
            weights = prefix.weights * of_rows[:, k]
            reached = np.flatnonzero(weights)
            child = Prefix(
                level=prefix.level + 1,
                stratum=prefix.stratum,
                slot=slot + k,
                rows=prefix.rows[reached],
                weights=weights[reached],
                used=shares[place],
            )
            children.append(child)
        return number, children

    def _law(self, prefix: Prefix) -> NodeLaw:
        """The law of S and of the next symbol X at a prefix v.

        The lifts of the table are those against the prior of the stratum, P(s | x, v) / P(s), so
        that the bounds of the promise apply to them as they are (proposition 2).
        """
        codes = self._codes[prefix.level][prefix.rows]
        size = len(self._levels[prefix.level])
        prior = self._strata[prefix.stratum].prior
        # P(s, x, v): the weights of all rows with these two symbols.
        cells = self._records.secrets[prefix.rows] * size + codes
        joint = np.bincount(cells, prefix.weights, len(prior) * size)
        joint = joint.reshape(len(prior), size)
        inputs = np.flatnonzero(joint.any(axis=0))
        joint = joint[:, inputs]
        columns = joint.sum(axis=0)
        mass = float(columns.sum())
        lifts = joint / columns / prior[:, None]
        place_of_row = np.searchsorted(inputs, codes)
        task_law: Array | None = None
        if self._task is not None:
            # P(t, x, v) = sum over the rows with this symbol of P(row, v) P(t | row).
            of_rows = self._task.given_row[:, prefix.rows] * prefix.weights
            joint_law = np.zeros((len(of_rows), len(inputs)))
            for value, weights in enumerate(of_rows):
                joint_law[value] = np.bincount(place_of_row, weights, len(inputs))
            task_law = joint_law / columns
        table = NodeTable(lifts, columns / mass, task_law)
        return NodeLaw(inputs, place_of_row, mass, table)

    def _labelled(
        self, growth: Growth, level: int, inputs: Integers, integers: Integers
    ) -> tuple[Integers, Integers]:
        """Codes of the labels of free outputs, ascending, and the columns in their order."""
        names = [self._levels[level].names[x] for x in inputs.tolist()]
        labels: tuple[str, ...] = (self._any_label(level),)
        if integers.shape[1] > 1:
            labels = output_labels(names, IntegerRows.from_array(integers))
        codes = np.array([growth.levels[level].code(label) for label in labels])
        order = np.argsort(codes)
        return codes[order], integers[:, order]

    def _any_label(self, level: int) -> str:
        """The label of a constant output: one that no symbol of the level has."""
        label = ANY
        while label in self._levels[level].names:
            label += "*"
        return label

    def _add_figures(
        self,
        growth: Growth,
        level: int,
        law: NodeLaw,
        outputs: Integers,
        channel: Array,
    ) -> None:
        """Add what a node keeps, weighted by the mass of its prefix."""
        masses = law.table.masses
        # I(X; Y | prefix) = H(Y) - H(Y | X).
        noise = float(masses @ row_entropies(channel))
        released = entropy(masses @ channel)
        # A constant tells nothing, and not the rounding of its logarithms.
        growth.information[level] += law.mass * max(released - noise, 0.0)
        if law.table.task is not None:
            kept = kept_of_task(law.table.task, masses, channel)
            growth.task[level] += law.mass * kept
        if self._objective == TRUTH:
            # P(x, y, prefix) of the pairs that agree in the cell of a column.
            moved = law.mass * masses[:, None] * channel
            for k, equal in enumerate(self._equal[level]):
                unchanged = moved[equal[np.ix_(law.inputs, outputs)]]
                growth.truth[level][k] += float(unchanged.sum())

    def _stop(self, growth: Growth, prefix: Prefix) -> int:
        """Release the rest of a prefix as a constant; the number of its first constant node."""
        outputs: list[int] = []
        for level in range(prefix.level, len(self._levels)):
            if self._objective == TRUTH:
                outputs.append(self._most_frequent(growth, level, prefix))
            else:
                outputs.append(growth.levels[level].code(self._any_label(level)))
        # From the last level up, so that a constant node is shared by all that end alike.
        number = END
        for level in range(len(self._levels) - 1, prefix.level - 1, -1):
            output = outputs[level - prefix.level]
            number = growth.levels[level].add_constant(output, number)
        return number

    def _most_frequent(self, growth: Growth, level: int, prefix: Prefix) -> int:
        """The heaviest symbol of a level among the rows of a prefix, released for all of them; the
        cells that it leaves unchanged are added to the figures.
        """
        codes = self._codes[level][prefix.rows]
        masses = np.bincount(codes, prefix.weights, len(self._levels[level]))
        heaviest = int(np.argmax(masses))
        for k, equal in enumerate(self._equal[level]):
            growth.truth[level][k] += float(masses[equal[:, heaviest]].sum())
        return heaviest

    def _grown(self, growth: Growth, roots: list[int]) -> Grown:
        """The finished tree with its figures."""
        by_column: dict[str, float] | None = None
        if self._objective == TRUTH:
            by_column = {}
            for variable, cells in zip(self._levels, growth.truth, strict=True):
                by_column |= dict(zip(variable.columns, cells.tolist(), strict=True))
        return Grown(
            tree=self._tree(growth.levels, roots),
            labels=tuple(level.labels for level in growth.levels),
            information=tuple(growth.information),
            task=tuple(growth.task),
            truth=by_column,
            stopped=growth.stopped,
            in_time=growth.in_time,
        )

    def _tree(self, levels: list[GrowingLevel], roots: list[int]) -> RowTree:
        """The flat tables of all levels, and the node at which each stratum begins."""
        # Of each level and, with 0, of what is below the last one.
        with_channel = [level.nodes_with_channel for level in levels] + [0]
        tables: list[LevelTable] = []
        for k, level in enumerate(levels):
            tables.append(level.table(len(self._levels[k]), with_channel[k + 1]))
        places = [settled(root, with_channel[0]) for root in roots]
        return RowTree(np.array(places, dtype=np.int64), tuple(tables))


def _equal_cells(symbols: Sequence[tuple[str, ...]]) -> list[NDArray[np.bool_]]:
    """For each column of a level the (n, n) array of the pairs of symbols with the same cell in it.

    For example, of the symbols (Bachelors, Sales) and (Bachelors, Tech) of a crossed level the
    first column has all pairs, and the second each symbol with itself.
    """
    equal: list[NDArray[np.bool_]] = []
    for cells in zip(*symbols, strict=True):
        texts = np.array(cells, dtype=object)
        equal.append(texts[:, None] == texts[None, :])
    return equal
