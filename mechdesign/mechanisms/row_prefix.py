"""The prefixes of a tree of released rows, and the law that is known at each of them.

A *prefix* v is what has been released of a row so far: the given symbols and the outputs of the
levels above. It carries the weight P(row, v) of every distinct row that may lead there, and from
the weights follows everything below:

1. `PrefixLaws.at`: the law at v of the sensitive symbol s and the next level's symbol x, and with
   it the lifts P(s | x, v) / P(s) that the node's channel W mixes.
2. `Prefix.after`: the weights after an output y, P(row, v y) = P(row, v) W(y | x of the row).

For example, let a prefix have two rows of weight 0.3 and 0.1 with different next symbols, and let
its channel be the binary one that tells the truth in three of four cases. Then its two children
have the masses 0.3 * 3/4 + 0.1 * 1/4 = 0.25 and 0.15.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.mechanisms.row_budgets import Stratum
from mechdesign.mechanisms.row_lifts import NodeTable
from mechdesign.mechanisms.row_task import RowTask
from mechdesign.tables.records import Records
from solvers import Array


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

    def after(self, share_of_rows: Array, slot: int, used: float) -> Prefix:
        """The prefix below an output y that each row has with the probability W(y | x)."""
        weights = self.weights * share_of_rows
        reached = np.flatnonzero(weights)
        return Prefix(
            level=self.level + 1,
            stratum=self.stratum,
            slot=slot,
            rows=self.rows[reached],
            weights=weights[reached],
            used=used,
        )


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


class PrefixLaws:
    """The laws at the prefixes of a table whose levels have an order.

    Parameters
    ----------
    records : Records
        The distinct rows.
    strata : sequence of Stratum
        Their priors are what lifts are measured against.
    places : sequence of int
        For each level its group of columns in the records.
    task : RowTask, optional
        The task whose law is wanted, too.
    """

    def __init__(
        self,
        records: Records,
        strata: Sequence[Stratum],
        places: Sequence[int],
        task: RowTask | None,
    ) -> None:
        self._secrets = records.secrets
        self._strata = strata
        self._sizes = [len(records.groups[place]) for place in places]
        # The symbol of every row by level, one array each: prefixes read few of the rows.
        self._codes = [np.ascontiguousarray(records.codes[:, p]) for p in places]
        self._task = task

    def symbol_masses(self, prefix: Prefix, level: int) -> Array:
        """P(x, prefix) of every symbol x of a level."""
        codes = self._codes[level][prefix.rows]
        masses = np.bincount(codes, prefix.weights, self._sizes[level])
        return masses.astype(np.float64, copy=False)

    def at(self, prefix: Prefix) -> NodeLaw:
        """The law of S and of the next symbol X at a prefix v.

        The lifts of the table are those against the prior of the stratum, P(s | x, v) / P(s), so
        that the bounds of the promise apply to them as they are (docs/explanation/rows-theory.md,
        proposition 2).
        """
        codes = self._codes[prefix.level][prefix.rows]
        size = self._sizes[prefix.level]
        prior = self._strata[prefix.stratum].prior
        # P(s, x, v): the weights of all rows with these two symbols.
        cells = self._secrets[prefix.rows] * size + codes
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
