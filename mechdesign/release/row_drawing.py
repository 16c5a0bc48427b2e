"""Draws of released rows: all nodes of a level as one sampler, level after level.

A record is at a node of the tree (`core.row_tree`), and begins at the root of its stratum. Its
symbol x of the level has a row of integers there; a *pair* is such a symbol of a node, a *slot* an
output of a node, both numbered through all nodes of the level. The rows of all pairs are one table
over slots, from which one sampler draws for all records at once. A slot gives both the output that
is released and the child, the node of the record on the next level. So k levels take k draws:

    node -> (node, x) = pair -> row of the sampler -> slot -> output and child

For example, the node 1 has the inputs 0 and 2 and the outputs 0 and 2, and the nodes before it have
3 pairs and 4 slots. A record with x = 2 there has the pair 4, and its row is over the slots 4 and
5. If the slot 5 is drawn, the output is 2, and ``children[5]`` is the next node.

`RowRelease` makes a `LevelSampler` for every level, and draws from them in turn (`_outputs`).
Records whose symbol has no pair at their node are refused, or drawn from the marginal of the node
(`marginal_rows`). Every level has numbers of its own, which belong to the key, the channel, the
level and the record: the same key and record give the same released row, in one run, in parts or on
a cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.json_values import canonical
from mechdesign.core.row_tree import DENOMINATOR, NO_PAIR, LevelTable, RowTree
from mechdesign.core.wording import quoted
from mechdesign.release.draws import Draws, Key, Records
from mechdesign.release.policies import (
    MARGINAL,
    REFUSE,
    Policy,
    apportioned,
)
from mechdesign.release.row_draws import RowDraws, RowsWithStrata, row_strata
from mechdesign.release.sampling import CHUNK, Sampler
from mechdesign.tables.columns import UnknownSymbol
from mechdesign.tables.records import Records as Table

MOST_PLACES = 1 << 25
"""Entries of a dense table of nodes by symbols (128 MB); larger ones are searched."""


class ReleasableRows(RowsWithStrata, Protocol):
    """What is needed of a row channel; its strata have a root of the tree each."""

    @property
    def tree(self) -> RowTree:
        """The nodes."""
        ...

    @property
    def table(self) -> Table | None:
        """Rows that the channel was designed for; None in a public one."""
        ...


class RowRelease(RowDraws):
    """A row channel made ready to draw; parameters and attributes are those of `RowDraws`."""

    def __init__(
        self,
        channel: ReleasableRows,
        key: Key,
        *,
        policy: Policy | None = None,
        changed: str = REFUSE,
    ) -> None:
        # The constructor of `RowDraws` calls `_prepare`, so it comes last.
        self._tree = channel
        super().__init__(channel, key, policy=policy, changed=changed)

    def _prepare(self) -> str:
        """Make the samplers; the digest of what the channel does."""
        for name, rule in (
            ("unknown", self.policy.unknown),
            ("missing", self.policy.missing),
        ):
            if rule not in (REFUSE, MARGINAL):
                raise InputError(
                    f"{name} ({quoted(rule)}) must be refuse or marginal for a channel of rows"
                )
        channel = self._tree
        tables = channel.tree.levels
        marginals: list[list[Integers] | None] = [None] * len(tables)
        if MARGINAL in (self.policy.unknown, self.policy.missing):
            marginals = [*marginal_rows(channel)]
        self._levels: list[LevelSampler] = []
        for table, marginal in zip(tables, marginals, strict=True):
            self._levels.append(LevelSampler(table, marginal))
        return row_channel_digest(channel)

    def _drawn(
        self, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every group; those of the given columns are their symbols."""
        given = len(self.channel.given)
        strata = row_strata(self.channel, codes[:given], len(records))
        of_given = [code.astype(np.int32) for code in codes[:given]]
        return of_given + self._outputs(strata, codes[given:], records, key)

    def _outputs(
        self, strata: Integers, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every level, drawn some records at a time."""
        sources: list[Draws] = []
        for k in range(len(self._levels)):
            # Independent numbers on every level: the law of a row is the product of its levels'.
            key_of_level = key.derived(records.kind, "level", str(k))
            sources.append(records.source(key_of_level))
        outputs = [np.empty(len(strata), dtype=np.int32) for _ in self._levels]
        for start in range(0, len(strata), CHUNK):
            span = slice(start, start + CHUNK)
            nodes = self._tree.tree.roots[strata[span]]
            # Down the tree, all records of the chunk together.
            for k, level in enumerate(self._levels):
                slots = self._slots(level, k, nodes, codes[k][span], sources[k], start)
                outputs[k][span] = level.outputs[slots]
                nodes = level.children[slots]
        return outputs

    def _slots(
        self,
        level: LevelSampler,
        k: int,
        nodes: Integers,
        codes: Integers,
        source: Draws,
        start: int,
    ) -> NDArray[np.int32]:
        """The slot of each record of a chunk that begins at the record `start`."""
        rows = level.rows_at(nodes, codes)
        numbers = source.below(DENOMINATOR, len(rows))
        if rows.size and rows.min() < 0:
            first = int(np.argmax(rows < 0))
            variable = self.channel.levels[k]
            columns = quoted(",".join(variable.columns))
            # The symbol itself is not named: it is the value of an individual.
            raise UnknownSymbol(
                start + first,
                "the channel does not know this combination of symbols: no record of its table "
                f"with the symbols released so far has this symbol of {columns}; leave the record "
                "out, or say what to publish (--unknown marginal)",
            )
        return level.sampler.outputs(rows, numbers)


class LevelSampler:
    """All nodes of a level as one sampler.

    Its rows are, in this order: one for every pair; one for every constant node, which gives its
    only slot with certainty; and, if the marginals are given, one for every other node.

    Parameters
    ----------
    table : LevelTable
        The nodes of the level.
    marginals : sequence of arrays, optional
        For every node that is not constant the integers of its slots, over `DENOMINATOR`: the row
        of symbols that the node does not know.

    Attributes
    ----------
    sampler : Sampler
        Of slots.
    outputs, children : (slots,) arrays
        The output of each slot, and the node on the next level that it leads to.
    """

    def __init__(self, table: LevelTable, marginals: Sequence[Integers] | None) -> None:
        self._table = table
        # A place for every symbol of a node, and one for unknown symbols.
        self._width = table.size + 1
        pairs = len(table.pair_nodes)
        constants = np.flatnonzero(table.constant)
        parts = [
            (table.rows.indptr, table.rows.indices, table.rows.values),
            (
                np.arange(len(constants) + 1),
                table.first_slot[constants],
                np.full(len(constants), DENOMINATOR, dtype=np.int64),
            ),
        ]
        # The row of symbols without a pair at each node. A constant node has it in any case.
        self._rows_without_pair = np.full(table.nodes, NO_PAIR, dtype=np.int64)
        self._rows_without_pair[constants] = pairs + np.arange(len(constants))
        # They are empty where all nodes of a level are constant.
        if marginals:
            others = np.flatnonzero(~table.constant)
            parts.append(_marginal_part(table.first_slot[others], marginals))
            first = pairs + len(constants)
            self._rows_without_pair[others] = first + np.arange(len(others))
        self.sampler = Sampler(_stacked(parts, len(table.slot_nodes)), DENOMINATOR)
        self.outputs = table.slot_outputs.astype(np.int32)
        self.children = table.slot_children
        self._places = self._dense()

    def _dense(self) -> NDArray[np.int32] | None:
        """Row of the sampler for each node and symbol, one node after the other; None if there are
        more than `MOST_PLACES`. The last place of a node is for unknown symbols.
        """
        table = self._table
        if table.nodes * self._width > MOST_PLACES:
            return None
        places = np.repeat(self._rows_without_pair.astype(np.int32), self._width)
        keys = table.pair_nodes * self._width + table.pair_inputs
        # A pair is its own row.
        places[keys] = np.arange(len(keys), dtype=np.int32)
        return places

    def rows_at(self, nodes: Integers, codes: Integers) -> Integers:
        """Row of the sampler for each record, `NO_PAIR` where there is none; codes are -1 for
        unknown symbols.
        """
        if self._places is not None:
            at = nodes * self._width
            at += np.where(codes < 0, self._width - 1, codes)
            return self._places[at].astype(np.int64)
        is_unknown = codes < 0
        pairs = self._table.pairs(nodes, np.where(is_unknown, 0, codes))
        pairs = np.where(is_unknown, NO_PAIR, pairs)
        return np.where(pairs == NO_PAIR, self._rows_without_pair[nodes], pairs)


SparseRows = tuple[Integers, Integers, Integers]
"""Rows of a sparse table: where each row begins (and the last one ends), and the columns and the
values of all entries.
"""


def _marginal_part(first_slots: Integers, marginals: Sequence[Integers]) -> SparseRows:
    """The marginals of nodes whose slots begin at `first_slots`, as sparse rows over slots."""
    lengths = [len(values) for values in marginals]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    # The slots of a node are consecutive: its first one plus 0, 1, 2, ..
    within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], lengths)
    slots = np.repeat(first_slots, lengths) + within
    return starts, slots, np.concatenate(marginals)


def _stacked(parts: Sequence[SparseRows], width: int) -> IntegerRows:
    """The rows of several sparse tables of one width, one below the other."""
    starts, columns, values = zip(*parts, strict=True)
    lengths = np.concatenate([np.diff(start) for start in starts])
    return IntegerRows(
        (len(lengths), width),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate(columns),
        np.concatenate(values),
    )


def row_channel_digest(channel: ReleasableRows) -> str:
    """SHA-256 of what a row channel does: its columns, symbols, labels and tree, and nothing of
    where it comes from.
    """
    head = {
        "given": [[v.columns, v.symbols] for v in channel.given],
        "levels": [[v.columns, v.symbols] for v in channel.levels],
        "labels": channel.labels,
        "strata": channel.strata,
        "denominator": DENOMINATOR,
    }
    digest = hashlib.sha256(canonical(head).encode())
    # Each array with its length before it, or entries could move from one array to the next. As
    # little-endian 64-bit integers on every machine, so that a job can be continued on another one.
    arrays = [channel.tree.roots]
    for table in channel.tree.levels:
        arrays += [table.pair_nodes, table.pair_inputs, table.slot_nodes]
        arrays += [table.slot_outputs, table.slot_children]
        arrays += [table.rows.indptr, table.rows.indices, table.rows.values]
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


def marginal_rows(channel: ReleasableRows) -> list[list[Integers]]:
    """For each level and each node that is not constant, integers over 2^53 next to P(y | node)
    under the table.

    The table is sent down the tree, level by level. With the mass m(i, v) of the row i of the table
    at the node v, and the row W_v of the node, its mass at the slot (v, y) is

        m(i, v, y) = m(i, v) W_v(y | x_i),                                          (1)

    which gives the marginals of this level and the masses of the next one,

        P(y | v) in proportion to  sum over i of  m(i, v, y),                       (2)
        m(i, w) = sum over slots (v, y) that lead to w  of  m(i, v, y).             (3)

    For example, let x be 0 or 1, each for half of the table, and let the root give the output a to
    0 and either a or b to 1. Then P(a | root) is 3/4, and 0 and 1 have the masses 1/2 and 1/4 at
    the node of a.

    Records that the channel does not know get these draws; they are near the marginal, not exactly
    it.
    """
    records = channel.table
    if records is None:
        raise InputError(
            "unknown=marginal needs the table that the channel was designed for, and this channel "
            "carries none (a public one); use the channel file that `design` wrote"
        )
    given = len(channel.given)
    strata = channel.strata_of(records.codes[:, :given])
    masses = _Masses(
        rows=np.arange(len(records)),
        places=channel.tree.roots[strata],
        weights=records.masses,
    )
    by_level: list[list[Integers]] = []
    for k, table in enumerate(channel.tree.levels):
        at_slots = _masses_at_slots(table, masses, records.codes[:, given + k])
        of_slots = np.bincount(
            at_slots.places, at_slots.weights, len(table.slot_nodes)
        ).astype(np.float64)
        by_level.append(_node_rows(table, of_slots))
        # The slots of the last level lead to no node.
        if k + 1 < len(channel.tree.levels):
            masses = _masses_below(table, at_slots, len(records))
    return by_level


@dataclass(frozen=True)
class _Masses:
    """The masses of rows of the table that are not zero: entry j is that of the row ``rows[j]`` at
    the node or slot ``places[j]``, and is ``weights[j]``.
    """

    rows: Integers
    places: Integers
    weights: NDArray[np.float64]


def _masses_at_slots(table: LevelTable, masses: _Masses, codes: Integers) -> _Masses:
    """The masses (1) at slots, of those at nodes; ``codes[i]`` is the symbol x_i of the level."""
    # Below a constant node all nodes are constant, and need no marginal.
    moving = ~table.constant[masses.places]
    rows = masses.rows[moving]
    pairs = table.pairs(masses.places[moving], codes[rows])
    # An entry for each slot that a row can reach; `owner` is the row's place in `rows`.
    owner, entries = table.expanded(pairs)
    shares = table.rows.values[entries] / DENOMINATOR
    return _Masses(
        rows=rows[owner],
        places=table.rows.indices[entries],
        weights=masses.weights[moving][owner] * shares,
    )


def _masses_below(table: LevelTable, at_slots: _Masses, records: int) -> _Masses:
    """The masses (3) at the nodes of the next level; `records` is the number of all rows."""
    nodes = table.slot_children[at_slots.places]
    # A row that reaches a node by several slots has one entry there. A pair (node, row) is one
    # number, by which the entries are sorted and added up.
    keys, place = np.unique(nodes * records + at_slots.rows, return_inverse=True)
    weights = np.bincount(place.ravel(), at_slots.weights, len(keys)).astype(np.float64)
    nodes, rows = np.divmod(keys, records)
    return _Masses(rows=rows, places=nodes, weights=weights)


def _node_rows(table: LevelTable, masses: NDArray[np.float64]) -> list[Integers]:
    """For each node that is not constant, integers in proportion to the masses (2) of its slots."""
    rows: list[Integers] = []
    ends = np.searchsorted(table.slot_nodes, np.arange(table.nodes + 1))
    for node in np.flatnonzero(~table.constant).tolist():
        of_node = masses[ends[node] : ends[node + 1]]
        shares = np.rint(of_node / of_node.sum() * DENOMINATOR).astype(np.int64)
        # Every output of the node stays possible, also where rounding gives 0.
        rows.append(apportioned(np.maximum(shares, 1).tolist(), DENOMINATOR))
    return rows
