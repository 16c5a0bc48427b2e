"""The nodes of one level of a row channel while its tree grows, and the flat table they become.

A row channel releases the columns of a row one after the other, each at one *level* of a tree
(`core.row_tree`). A node stands for what has been released so far, its *prefix*. It has a small
channel from the symbols of its level's column (the inputs) to outputs. Each pair of a node and one
of its outputs is a *slot*, which leads to a node of the next level.

A tree grows with the heaviest prefix first, so neither the order nor the number of the nodes of a
level is known before its end. `GrowingLevel` therefore collects them as they come. `row_growth`
makes one for each level and calls

1. `add_node` for a node with a channel, or `add_constant` for one that gives a single output to
   every row, each of which returns the number of the node;
2. `children[slot] = number` once the node below an output has a number;
3. `table` at the end, for the arrays that `core.row_tree.LevelTable` describes.

In the finished table constant nodes come after all others. Until the number of the others is
settled, the k-th constant node has the number `END` - 1 - k, that is -2, -3, ..; `settled` gives
its final one. For example, with three other nodes on the level, -2 becomes 3 and -3 becomes 4.

A level with one node, of two inputs and two outputs, grows in these calls ::

    level.add_node([0, 1], [0, 1], channel)    # (0, 0): node 0, whose slots are 0 and 1
    level.children[0] = 0                      # output 0 leads to node 0 of the next level,
    level.children[1] = -2                     # output 1 to the first constant node there
    level.table(size=2, nodes_below=1)         # slot_children is (0, 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.row_tree import END, LevelTable


class GrowingLevel:
    """The nodes of one level as they come.

    Parameters
    ----------
    labels : sequence of str
        Labels of outputs whose codes are settled already; others are added as they occur.
    """

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self._codes = {label: code for code, label in enumerate(labels)}
        # Of each node with a channel: its input symbols, its outputs, and the integers of its
        # channel, inputs by outputs.
        self._inputs: list[Integers] = []
        self._outputs: list[Integers] = []
        self._channels: list[Integers] = []
        # (output, child) of a constant node to its number so far.
        self._constants: dict[tuple[int, int], int] = {}
        self.children: list[int] = []
        """Of each slot (an output of a node with a channel), the number of the node below it."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the outputs in the order of their codes."""
        return tuple(self._codes)

    def code(self, label: str) -> int:
        """The code of an output's label, a new one where the label is new."""
        return self._codes.setdefault(label, len(self._codes))

    @property
    def nodes_with_channel(self) -> int:
        """How many nodes are not constant."""
        return len(self._inputs)

    def add_node(
        self, inputs: Integers, outputs: Integers, channel: Integers
    ) -> tuple[int, int]:
        """The number of a new node, and its first slot; one follows for each further output."""
        number = len(self._inputs)
        first_slot = len(self.children)
        self._inputs.append(inputs)
        self._outputs.append(outputs)
        self._channels.append(channel)
        self.children += [END] * len(outputs)
        return number, first_slot

    def add_constant(self, output: int, child: int) -> int:
        """The number, until it is settled, of the constant node with this output and child.

        Nothing below a constant node depends on the row, so all prefixes that end alike share it.
        """
        following = END - 1 - len(self._constants)
        return self._constants.setdefault((output, child), following)

    def table(self, size: int, nodes_below: int) -> LevelTable:
        """The finished level: nodes with a channel first, then constant ones.

        `size` is the number of input symbols of the level, `nodes_below` that of the next level's
        nodes that are not constant.
        """
        input_sizes = [len(inputs) for inputs in self._inputs]
        output_sizes = [len(outputs) for outputs in self._outputs]
        with_channel = self.nodes_with_channel
        nodes = with_channel + len(self._constants)
        numbers = np.arange(nodes)
        children = [*self.children, *(child for _, child in self._constants)]
        # A constant node has one slot and no pairs, so it adds to the slots alone.
        constant_outputs = np.array([output for output, _ in self._constants], np.int64)
        return LevelTable(
            size=size,
            nodes=nodes,
            pair_nodes=np.repeat(numbers[:with_channel], input_sizes),
            pair_inputs=_joined(self._inputs),
            slot_nodes=np.repeat(numbers, output_sizes + [1] * len(self._constants)),
            slot_outputs=_joined([*self._outputs, constant_outputs]),
            slot_children=np.array(
                [settled(child, nodes_below) for child in children], dtype=np.int64
            ),
            rows=self._rows(len(children)),
        )

    def _rows(self, slots: int) -> IntegerRows:
        """The channels of all nodes as one array, pairs by slots: a block for each node, below and
        to the right of the one before.
        """
        lengths: list[Integers] = []
        indices: list[Integers] = []
        values: list[Integers] = []
        first_slot = 0
        for channel in self._channels:
            row, column = np.nonzero(channel)
            lengths.append(np.bincount(row, minlength=len(channel)))
            indices.append(first_slot + column)
            values.append(channel[row, column])
            first_slot += channel.shape[1]
        # Entry i of `indptr` is where row i begins among the entries, as in a sparse matrix.
        row_lengths = _joined(lengths)
        indptr = np.concatenate([[0], np.cumsum(row_lengths)])
        shape = (len(row_lengths), slots)
        return IntegerRows(
            shape, indptr.astype(np.int64), _joined(indices), _joined(values)
        )


def settled(number: int, with_channel: int) -> int:
    """The final number of a node; constant nodes follow those with a channel."""
    if number < END:
        return with_channel + (END - 1 - number)
    return number


def _joined(arrays: Iterable[Integers]) -> Integers:
    """One array of all; of none, too, where a level has constant nodes only."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *arrays]).astype(np.int64)
