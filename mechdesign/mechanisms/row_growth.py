"""Growing the tree of a row channel: from the stratum down, the heaviest prefix first.

`RowGrowth` is made once for an order of the levels; `grow` is called for every split of the budgets
that is tried. A prefix is a node of the tree that has no channel yet: the given symbols and the
released outputs of the levels above it. It carries weights of the distinct rows, P(row, prefix).
They give the law of the next level, the node's channel is made for this law (`row_node`), and a
child's weights are weights * W(y|x).

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
from dataclasses import dataclass, field

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
from mechdesign.mechanisms.row_node import TRUTH, NodePrograms, NodeTable
from mechdesign.mechanisms.row_task import RowTask, kept_of_task
from mechdesign.tables.records import Records
from solvers import Array

ANY = "any"
"""Label of a constant output with free outputs."""


def entropy(masses: Array) -> float:
    """Entropy (nats) of masses that sum to 1."""
    positive = masses[masses > 0.0]
    return float(-(positive * np.log(positive)).sum())


def row_entropies(rows: Array) -> Array:
    """Entropy (nats) of every row, each of which sums to 1."""
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0.0)
    return -(rows * logs).sum(axis=1)


@dataclass(eq=False)
class Prefix:
    """A node to be: the rows that may lead here, their weights, the slot that it hangs from, and
    the share of the budgets that it was allowed to use.
    """

    level: int
    stratum: int
    parent: int
    rows: NDArray[np.int64]
    weights: Array
    used: float = 0.0

    @property
    def mass(self) -> float:
        """P(prefix)."""
        return float(self.weights.sum())


@dataclass(eq=False)
class LevelParts:
    """The nodes of one level as they come; `children` hold final places only once all nodes are
    there.
    """

    inputs: list[Integers] = field(default_factory=list[Integers])
    outputs: list[Integers] = field(default_factory=list[Integers])
    tables: list[Integers] = field(default_factory=list[Integers])
    children: list[int] = field(default_factory=list[int])
    constants: dict[tuple[int, int], int] = field(
        default_factory=dict[tuple[int, int], int]
    )
    labels: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(eq=False)
class Growth:
    """A tree while it grows: its nodes by level, and what is kept so far."""

    parts: list[LevelParts]
    information: list[float]
    task: list[float]
    truth: list[Array]
    stopped: float = 0.0
    in_time: bool = True


@dataclass(frozen=True, eq=False)
class Grown:
    """A tree with what it keeps, in floating point.

    `information` is I(X; Y | K) in nats of each level, and `task` I(T; Y | K), zeros without a
    task; `truth` the expected share of unchanged cells of each column of each level (None with free
    outputs); `stopped` the mass of prefixes that were not grown.
    """

    tree: RowTree
    labels: tuple[tuple[str, ...], ...]
    information: tuple[float, ...]
    task: tuple[float, ...]
    truth: dict[str, float] | None
    stopped: float
    in_time: bool


class RowGrowth:
    """Grows trees of one problem for different splits of the budgets."""

    def __init__(
        self,
        records: Records,
        given: int,
        strata: Sequence[Stratum],
        objective: str,
        order: Sequence[int] | None = None,
        task: RowTask | None = None,
    ) -> None:
        self.records = records
        self.task = task
        self.strata = strata
        self.objective = objective
        count = len(records.groups) - given
        self.order = list(range(count))
        if order is not None:
            self.order = list(order)
        places = [given + k for k in self.order]
        self.levels = [records.groups[place] for place in places]
        self._codes = [np.ascontiguousarray(records.codes[:, p]) for p in places]
        self._programs = NodePrograms(objective)
        self._equal = [_equal_cells(variable.symbols) for variable in self.levels]

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
        allowed = AllowedLifts(self.strata, slack)
        roots = [0] * len(self.strata)
        # A heap by negative mass pops the heaviest prefix first. The ticket decides between equal
        # masses, so that prefixes are never compared.
        heap: list[tuple[float, int, Prefix]] = []
        tickets = itertools.count()
        for k, stratum in enumerate(self.strata):
            prefix = Prefix(0, k, END, stratum.rows, self.records.masses[stratum.rows])
            heapq.heappush(heap, (-prefix.mass, next(tickets), prefix))
        while heap:
            negative, _, prefix = heapq.heappop(heap)
            late = time.perf_counter() >= end
            if late or -negative < least_mass:
                growth.in_time = growth.in_time and not late
                growth.stopped -= negative
                place = self._stop(growth, prefix)
            else:
                # Proposition 2: c_j = c_{j-1} + f_j (1 - c_{j-1}), for each output if f_j is.
                shares = shares_after(prefix.used, spending[prefix.level])
                bounds = allowed.bounds(prefix.stratum, shares)
                place, children = self._expand(growth, prefix, shares, bounds, end)
                for child in children:
                    heapq.heappush(heap, (-child.mass, next(tickets), child))
            if prefix.level == 0:
                roots[prefix.stratum] = place
            else:
                growth.parts[prefix.level - 1].children[prefix.parent] = place
        growth.in_time = growth.in_time and self._programs.in_time
        return self._grown(growth, roots)

    def _begun(self) -> Growth:
        """Nothing grown yet; with the objective truth the labels of a level are its symbols."""
        parts = [LevelParts() for _ in self.levels]
        if self.objective == TRUTH:
            for part, variable in zip(parts, self.levels, strict=True):
                part.labels = {name: k for k, name in enumerate(variable.names)}
        truth = [np.zeros(len(cells)) for cells in self._equal]
        nothing = [0.0] * len(self.levels)
        return Growth(parts, nothing, list(nothing), truth)

    def _grown(self, growth: Growth, roots: list[int]) -> Grown:
        """The finished tree with its figures."""
        by_column: dict[str, float] | None = None
        if self.objective == TRUTH:
            by_column = {}
            for variable, cells in zip(self.levels, growth.truth, strict=True):
                by_column |= dict(zip(variable.columns, cells.tolist(), strict=True))
        return Grown(
            tree=self._assembled(growth.parts, roots),
            labels=tuple(tuple(part.labels) for part in growth.parts),
            information=tuple(growth.information),
            task=tuple(growth.task),
            truth=by_column,
            stopped=growth.stopped,
            in_time=growth.in_time,
        )

    def _expand(
        self,
        growth: Growth,
        prefix: Prefix,
        allowed: tuple[float, ...],
        bounds: Bounds,
        end: float,
    ) -> tuple[int, list[Prefix]]:
        """Make the channel of a node; its number within the level, and its children.

        `allowed` are the shares of the budgets that `bounds` stand for, of all outputs or of each.
        """
        level = prefix.level
        part = growth.parts[level]
        codes = self._codes[level][prefix.rows]
        inputs, mass, table = self._law(prefix, codes)
        rows = self._programs.channel(table, bounds.of_outputs(inputs), end)
        used = np.flatnonzero(rows.any(axis=0))
        rows = rows[:, used]
        if self.objective == TRUTH:
            outputs = inputs[used]
        else:
            outputs, rows = self._named(part, level, inputs, rows)
        shares = rows / DENOMINATOR

        # I(X; Y | prefix) = H(Y) - H(Y | X), weighted by the mass of the prefix.
        within = float(table.masses @ row_entropies(shares))
        released = entropy(table.masses @ shares)
        # A constant tells nothing, and not the rounding of its logarithms.
        growth.information[level] += mass * max(released - within, 0.0)
        if table.task is not None:
            kept = kept_of_task(table.task, table.masses, shares)
            growth.task[level] += mass * kept
        if self.objective == TRUTH:
            moved = mass * table.masses[:, None] * shares
            for k, equal in enumerate(self._equal[level]):
                unchanged = moved[equal[np.ix_(inputs, outputs)]]
                growth.truth[level][k] += float(unchanged.sum())

        place = len(part.inputs)
        first = len(part.children)
        part.inputs.append(inputs)
        part.outputs.append(outputs)
        part.tables.append(rows)
        part.children += [END] * len(outputs)
        if level + 1 == len(self.levels):
            return place, []
        # P(row, prefix y) = P(row, prefix) W(y | x of the row): the row x of W for every row here.
        local = np.searchsorted(inputs, codes)
        children = self._children(prefix, shares[local], first)
        for child, output in zip(children, outputs.tolist(), strict=True):
            child.used = allowed[0] if len(allowed) == 1 else allowed[output]
        return place, children

    def _law(
        self, prefix: Prefix, codes: Integers
    ) -> tuple[Integers, float, NodeTable]:
        """The input symbols at a prefix, its mass, and the law of S and these symbols there.

        The lifts of the table are those against the prior of the stratum, P(s | x, prefix) / P(s),
        so that the bounds of the promise apply to them as they are (proposition 2).
        """
        size = len(self.levels[prefix.level])
        prior = self.strata[prefix.stratum].prior
        cells = self.records.secrets[prefix.rows] * size + codes
        joint = np.bincount(cells, prefix.weights, len(prior) * size)
        joint = joint.reshape(len(prior), size)
        inputs = np.flatnonzero(joint.any(axis=0))
        joint = joint[:, inputs]
        columns = joint.sum(axis=0)
        mass = float(columns.sum())
        lifts = joint / columns / prior[:, None]
        masses = columns / mass
        if self.task is None:
            return inputs, mass, NodeTable(lifts, masses)
        # P(t, x, prefix) = sum over the rows with this symbol of P(row, prefix) P(t | row).
        of_rows = self.task.given_row[:, prefix.rows] * prefix.weights
        local = np.searchsorted(inputs, codes)
        law = np.zeros((len(of_rows), len(inputs)))
        for value, weights in enumerate(of_rows):
            law[value] = np.bincount(local, weights, len(inputs))
        return inputs, mass, NodeTable(lifts, masses, law / columns)

    def _children(self, prefix: Prefix, ways: Array, first: int) -> list[Prefix]:
        """The prefixes below: a column of `ways` (rows, outputs) for each, hanging from slots from
        `first` on.
        """
        children: list[Prefix] = []
        for k in range(ways.shape[1]):
            weights = prefix.weights * ways[:, k]
            reached = np.flatnonzero(weights)
            child = Prefix(
                level=prefix.level + 1,
                stratum=prefix.stratum,
                parent=first + k,
                rows=prefix.rows[reached],
                weights=weights[reached],
            )
            children.append(child)
        return children

    def _named(
        self, part: LevelParts, level: int, inputs: Integers, rows: Integers
    ) -> tuple[Integers, Integers]:
        """Codes of the labels of free outputs, ascending, and the columns in their order."""
        names = [self.levels[level].names[x] for x in inputs.tolist()]
        if rows.shape[1] == 1:
            labels: tuple[str, ...] = (self._any_label(level),)
        else:
            labels = output_labels(names, IntegerRows.from_array(rows))
        codes = np.array(
            [part.labels.setdefault(label, len(part.labels)) for label in labels]
        )
        order = np.argsort(codes)
        return codes[order], rows[:, order]

    def _any_label(self, level: int) -> str:
        label = ANY
        while label in self.levels[level].names:
            label += "*"
        return label

    def _stop(self, growth: Growth, prefix: Prefix) -> int:
        """Release the rest of a prefix as a constant; the number of its first constant node."""
        outputs: list[int] = []
        for level in range(prefix.level, len(self.levels)):
            if self.objective == TRUTH:
                size = len(self.levels[level])
                codes = self._codes[level][prefix.rows]
                masses = np.bincount(codes, prefix.weights, size)
                heaviest = int(np.argmax(masses))
                for k, equal in enumerate(self._equal[level]):
                    growth.truth[level][k] += float(masses[equal[:, heaviest]].sum())
                outputs.append(heaviest)
            else:
                labels = growth.parts[level].labels
                outputs.append(labels.setdefault(self._any_label(level), len(labels)))
        # From the last level up, so that a constant node is shared by all that end alike.
        child = END
        for level in range(len(self.levels) - 1, prefix.level - 1, -1):
            constants = growth.parts[level].constants
            key = (outputs[level - prefix.level], child)
            # Numbers below END name constant nodes until the number of other nodes of the level is
            # settled.
            child = constants.setdefault(key, END - 1 - len(constants))
        return child

    def _assembled(self, parts: list[LevelParts], roots: list[int]) -> RowTree:
        levels: list[LevelTable] = []
        for k, part in enumerate(parts):
            # The leaves of the last level have no nodes below them.
            below = 0
            if k + 1 < len(parts):
                below = len(parts[k + 1].inputs)
            levels.append(_level_table(part, len(self.levels[k]), below))
        first = len(parts[0].inputs)
        places = [_settled(root, first) for root in roots]
        return RowTree(np.array(places, dtype=np.int64), tuple(levels))


def _settled(place: int, others: int) -> int:
    """The final number of a node, of which constant ones come after the `others` of their level."""
    if place < END:
        return others + (END - 1 - place)
    return place


def _level_table(part: LevelParts, size: int, below: int) -> LevelTable:
    """The flat tables of a level; `below` is the number of nodes of the next level that are not
    constant.
    """
    proper = len(part.inputs)
    slot_sizes = [len(outputs) for outputs in part.outputs]
    pair_sizes = [len(inputs) for inputs in part.inputs]
    slots = sum(slot_sizes)
    first_slots = np.concatenate([[0], np.cumsum(slot_sizes)])[:-1].astype(np.int64)
    indices: list[Integers] = []
    values: list[Integers] = []
    lengths: list[Integers] = []
    for first, table in zip(first_slots.tolist(), part.tables, strict=True):
        at, column = np.nonzero(table)
        lengths.append(np.bincount(at, minlength=len(table)))
        indices.append(column + first)
        values.append(table[at, column])
    constants = list(part.constants)
    outputs = [*part.outputs, np.array([output for output, _ in constants], np.int64)]
    children = [*part.children, *(child for _, child in constants)]
    nodes = proper + len(constants)
    slot_nodes = np.concatenate(
        [np.repeat(np.arange(proper), slot_sizes), np.arange(proper, nodes)]
    )
    empty = np.zeros(0, dtype=np.int64)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([empty, *lengths]))])
    shape = (sum(pair_sizes), slots + len(constants))
    rows = IntegerRows(
        shape,
        indptr.astype(np.int64),
        np.concatenate([empty, *indices]),
        np.concatenate([empty, *values]),
    )
    return LevelTable(
        size=size,
        nodes=nodes,
        pair_nodes=np.repeat(np.arange(proper), pair_sizes).astype(np.int64),
        pair_inputs=np.concatenate([empty, *part.inputs]).astype(np.int64),
        slot_nodes=slot_nodes.astype(np.int64),
        slot_outputs=np.concatenate(outputs).astype(np.int64),
        slot_children=np.array(
            [_settled(child, below) for child in children], dtype=np.int64
        ),
        rows=rows,
    )


def _equal_cells(symbols: Sequence[tuple[str, ...]]) -> list[NDArray[np.bool_]]:
    """For each column of a level the (n, n) array that tells which symbols have the same cell in
    it.
    """
    equal: list[NDArray[np.bool_]] = []
    for cells in zip(*symbols, strict=True):
        texts = np.array(cells, dtype=object)
        equal.append(texts[:, None] == texts[None, :])
    return equal
