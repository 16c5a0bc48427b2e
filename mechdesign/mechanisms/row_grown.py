"""A tree of a row channel while it grows, with the figures of what it keeps; at the end `Grown`.

`row_growth` makes one `GrowingTree` for each tree and tells it of every node: `add_node` of one
with a channel, `add_rest` of a prefix whose rest is released as a constant, and `place` where the
node is. The figures are weighted by the mass of the prefix, so that they are those of the whole
tree once it is `finished`:

    information of a level    sum of P(v) (H(Y | v) - H(Y | X, v)) over its nodes v
    task of a level           sum of P(v) (H(T | v) - H(T | Y, v))
    truth of a column         P(the released cell is the true one), with own symbols

For example, a level with one node of mass 1 whose channel releases one of two equally frequent
symbols unchanged in three of four cases has the truth 0.75 and keeps 0.693 - 0.562 = 0.131 nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR, END, LevelTable, RowTree
from mechdesign.mechanisms.row_entropy import entropy, row_entropies
from mechdesign.mechanisms.row_level import GrowingLevel, settled
from mechdesign.mechanisms.row_prefix import NodeLaw, Prefix
from mechdesign.mechanisms.row_task import kept_of_task
from mechdesign.tables.variable import Variable
from solvers import Array


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


class GrowingTree:
    """The nodes of a tree by level, and its figures so far.

    Parameters
    ----------
    variables : sequence of Variable
        The symbols of each level.
    equal : sequence of lists of arrays, optional
        The `equal_cells` of each level where the outputs are its own symbols; None with free
        outputs.
    strata : int
        The number of roots.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        equal: Sequence[list[NDArray[np.bool_]]] | None,
        strata: int,
    ) -> None:
        self._variables = variables
        self._equal = equal
        self._roots = [0] * strata
        self._information = [0.0] * len(variables)
        self._task = [0.0] * len(variables)
        self._truth: list[Array] = []
        self.stopped = 0.0
        self.in_time = True
        if equal is None:
            self.levels = [GrowingLevel() for _ in variables]
        else:
            # Outputs are symbols: their labels are settled, and their codes are those of symbols.
            self.levels = [GrowingLevel(variable.names) for variable in variables]
            self._truth = [np.zeros(len(columns)) for columns in equal]

    def add_node(
        self, level: int, law: NodeLaw, outputs: Integers, integers: Integers
    ) -> tuple[int, int]:
        """The number of a new node within its level, and the slot of its first output.

        Its channel has `integers` over 2^53, inputs of the law by outputs.
        """
        channel = integers / DENOMINATOR
        masses = law.table.masses
        # I(X; Y | prefix) = H(Y) - H(Y | X).
        noise = float(masses @ row_entropies(channel))
        released = entropy(masses @ channel)
        # A constant tells nothing, and not the rounding of its logarithms.
        self._information[level] += law.mass * max(released - noise, 0.0)
        if law.table.task is not None:
            kept = kept_of_task(law.table.task, masses, channel)
            self._task[level] += law.mass * kept
        if self._equal is not None:
            # P(x, y, prefix) of the pairs that agree in the cell of a column.
            moved = law.mass * masses[:, None] * channel
            for k, equal in enumerate(self._equal[level]):
                unchanged = moved[equal[np.ix_(law.inputs, outputs)]]
                self._truth[level][k] += float(unchanged.sum())
        return self.levels[level].add_node(law.inputs, outputs, integers)

    def add_rest(self, first_level: int, outputs: Sequence[int]) -> int:
        """The number of the first of the constant nodes with these outputs, one for each level."""
        # From the last level up, so that a constant node is shared by all that end alike.
        number = END
        for offset in range(len(outputs) - 1, -1, -1):
            level = self.levels[first_level + offset]
            number = level.add_constant(outputs[offset], number)
        return number

    def add_unchanged(self, level: int, output: int, symbol_masses: Array) -> None:
        """Add the cells that one symbol, released for symbols of these masses, leaves unchanged."""
        if self._equal is None:
            return
        for k, equal in enumerate(self._equal[level]):
            self._truth[level][k] += float(symbol_masses[equal[:, output]].sum())

    def place(self, prefix: Prefix, number: int) -> None:
        """The node of a prefix has this number within its level."""
        if prefix.level == 0:
            self._roots[prefix.stratum] = number
        else:
            self.levels[prefix.level - 1].children[prefix.slot] = number

    def finished(self) -> Grown:
        """The tree with its figures, once nothing is added any more."""
        by_column: dict[str, float] | None = None
        if self._equal is not None:
            by_column = {}
            for variable, cells in zip(self._variables, self._truth, strict=True):
                by_column |= dict(zip(variable.columns, cells.tolist(), strict=True))
        return Grown(
            tree=self._tree(),
            labels=tuple(level.labels for level in self.levels),
            information=tuple(self._information),
            task=tuple(self._task),
            truth=by_column,
            stopped=self.stopped,
            in_time=self.in_time,
        )

    def _tree(self) -> RowTree:
        """The flat tables of all levels, and the node at which each stratum begins."""
        # Of each level and, with 0, of what is below the last one.
        with_channel = [level.nodes_with_channel for level in self.levels] + [0]
        tables: list[LevelTable] = []
        for k, level in enumerate(self.levels):
            tables.append(level.table(len(self._variables[k]), with_channel[k + 1]))
        places = [settled(root, with_channel[0]) for root in self._roots]
        return RowTree(np.array(places, dtype=np.int64), tuple(tables))


def equal_cells(symbols: Sequence[tuple[str, ...]]) -> list[NDArray[np.bool_]]:
    """For each column of a level the (n, n) array of the pairs of symbols with the same cell in it.

    For example, of the symbols (Bachelors, Sales) and (Bachelors, Tech) of a crossed level the
    first column has all pairs, and the second each symbol with itself.
    """
    equal: list[NDArray[np.bool_]] = []
    for cells in zip(*symbols, strict=True):
        texts = np.array(cells, dtype=object)
        equal.append(texts[:, None] == texts[None, :])
    return equal
