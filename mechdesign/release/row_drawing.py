"""Draws of released rows: all nodes of a level as one sampler, level after level.

A record stands at a node. Its symbol of the next level names a row of integers there; all these
rows together are one large table, whose outputs are slots, so a slot tells both what is released
and at which node the record stands next. Every level has numbers of its own, which belong to the
key, the channel, the level and the record: the same key and record give the same released row, in
one run, in parts or on a cluster.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
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
from mechdesign.tables.columns import (
    UnknownSymbol,
)
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


class LevelSampler:
    """All nodes of a level as one sampler."""

    def __init__(self, table: LevelTable, marginals: Sequence[Integers] | None) -> None:
        self._table = table
        self._width = table.size + 1
        pairs = len(table.pair_nodes)
        constants = np.flatnonzero(table.constant)
        parts = [(table.rows.indptr, table.rows.indices, table.rows.values)]
        slots = table.first_slot[constants]
        parts.append(
            (
                np.arange(len(constants) + 1),
                slots,
                np.full(len(constants), DENOMINATOR, dtype=np.int64),
            )
        )
        self._constant_rows = np.full(table.nodes, NO_PAIR, dtype=np.int64)
        self._constant_rows[constants] = pairs + np.arange(len(constants))
        self._other_rows = self._constant_rows.copy()
        if marginals is not None:
            proper = np.flatnonzero(~table.constant)
            lengths = [len(values) for values in marginals]
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            first = np.repeat(table.first_slot[proper], lengths)
            within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], lengths)
            parts.append((starts, first + within, np.concatenate(marginals)))
            self._other_rows[proper] = pairs + len(constants) + np.arange(len(proper))
        self.sampler = Sampler(_stacked(parts, len(table.slot_nodes)), DENOMINATOR)
        self.outputs = table.slot_outputs.astype(np.int32)
        self.children = table.slot_children
        self._places = self._dense()

    def _dense(self) -> NDArray[np.int32] | None:
        """Row of the sampler for each node and symbol; the last place of a node is for unknown
        ones.
        """
        table = self._table
        if table.nodes * self._width > MOST_PLACES:
            return None
        places = np.repeat(self._other_rows.astype(np.int32), self._width)
        keys = table.pair_nodes * self._width + table.pair_inputs
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
        found = self._table.pairs(nodes, np.where(codes < 0, 0, codes))
        found = np.where(codes < 0, NO_PAIR, found)
        return np.where(found == NO_PAIR, self._other_rows[nodes], found)


def _stacked(
    parts: Sequence[tuple[Integers, Integers, Integers]], width: int
) -> IntegerRows:
    """The rows of several sparse tables of one width, one below the other."""
    pointers, indices, values = zip(*parts, strict=True)
    lengths = np.concatenate([np.diff(pointer) for pointer in pointers])
    return IntegerRows(
        (len(lengths), width),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate(indices),
        np.concatenate(values),
    )


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
        self._tree = channel
        super().__init__(channel, key, policy=policy, changed=changed)

    def _prepare(self) -> str:
        """Make the samplers; the digest of what the channel does."""
        for name, rule in (
            ("unknown", self.policy.unknown),
            ("null", self.policy.null),
        ):
            if rule not in (REFUSE, MARGINAL):
                raise InputError(
                    f"{name} ({quoted(rule)}) must be refuse or marginal for a channel of rows"
                )
        channel = self._tree
        wants_marginal = MARGINAL in (self.policy.unknown, self.policy.null)
        marginals = marginal_rows(channel) if wants_marginal else None
        self._levels: list[LevelSampler] = []
        for k, table in enumerate(channel.tree.levels):
            marginal = marginals[k] if marginals is not None else None
            self._levels.append(LevelSampler(table, marginal))
        return row_channel_digest(channel)

    def _drawn(
        self, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every group; those of the given columns are their symbols."""
        given = len(self.channel.given)
        strata = row_strata(self.channel, codes[:given], len(records))
        outputs = [code.astype(np.int32) for code in codes[:given]]
        return outputs + self._outputs(strata, codes[given:], records, key)

    def _outputs(
        self, strata: Integers, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every level, drawn some records at a time."""
        sources: list[Draws] = []
        for k in range(len(self._levels)):
            own_key = key.derived(records.kind, "level", str(k))
            sources.append(records.source(own_key))
        outputs = [np.empty(len(strata), dtype=np.int32) for _ in self._levels]
        for start in range(0, len(strata), CHUNK):
            span = slice(start, start + CHUNK)
            nodes = self._tree.tree.roots[strata[span]]
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

    Records that the channel does not know get these draws; they are near the marginal, not exactly
    it.
    """
    records = channel.table
    if records is None:
        raise InputError(
            "unknown=marginal needs the table that the channel was designed for, and this channel "
            "carries none (a "
            "public one); use the channel file that `design` wrote"
        )
    tree = channel.tree
    strata = channel.strata_of(records.codes[:, : len(channel.given)])
    rows = np.arange(len(records))
    nodes = tree.roots[strata]
    weights = records.masses
    by_level: list[list[Integers]] = []
    for k, table in enumerate(tree.levels):
        moving = ~table.constant[nodes]
        rows, nodes, weights = rows[moving], nodes[moving], weights[moving]
        pairs = table.pairs(nodes, records.codes[rows, len(channel.given) + k])
        owner, entries = table.expanded(pairs)
        slots = table.rows.indices[entries]
        weights = weights[owner] * (table.rows.values[entries] / DENOMINATOR)
        masses = np.bincount(slots, weights, len(table.slot_nodes)).astype(np.float64)
        by_level.append(_node_rows(table, masses))
        rows = rows[owner]
        nodes = table.slot_children[slots]
        if k + 1 < len(tree.levels):
            # Rows that reach the same node by different inputs are one row there.
            keys, place = np.unique(nodes * len(records) + rows, return_inverse=True)
            weights = np.bincount(place.ravel(), weights, len(keys))
            nodes, rows = np.divmod(keys, len(records))
    return by_level


def _node_rows(table: LevelTable, masses: NDArray[np.float64]) -> list[Integers]:
    rows: list[Integers] = []
    ends = np.searchsorted(table.slot_nodes, np.arange(table.nodes + 1)).tolist()
    for node, (first, last) in enumerate(itertools.pairwise(ends)):
        if table.constant[node]:
            continue
        own = masses[first:last]
        shares = np.rint(own / own.sum() * DENOMINATOR).astype(np.int64)
        rows.append(apportioned(np.maximum(shares, 1).tolist(), DENOMINATOR))
    return rows
