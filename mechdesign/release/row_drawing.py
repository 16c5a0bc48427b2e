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
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.json_values import canonical
from mechdesign.core.row_tree import DENOMINATOR, NO_PAIR, LevelTable, RowTree
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import Hashes, RowHasher
from mechdesign.release.drawing import KEEP, REDRAW, FirstSymbols, new_records
from mechdesign.release.draws import IDENTIFIERS, Draws, Identifiers, Key, Records
from mechdesign.release.policies import (
    MARGINAL,
    REFUSE,
    Policy,
    apportioned,
    normalised,
    normalised_cells,
)
from mechdesign.release.sampling import CHUNK, Sampler
from mechdesign.release.spellings import Spellings
from mechdesign.tables.columns import (
    MISSING,
    UNKNOWN,
    UnknownSymbol,
    positions_of,
    unknown_at,
)
from mechdesign.tables.records import Records as Table
from mechdesign.tables.variable import Variable

MOST_PLACES = 1 << 25
"""Entries of a dense table of nodes by symbols (128 MB); larger ones are searched."""

PRIME = 2**31 - 1
"""Rows of symbols are told apart by their number modulo this, where identifiers are checked."""


class ReleasableRows(Protocol):
    """What is needed of a row channel, which stands above this package."""

    @property
    def given(self) -> tuple[Variable, ...]:
        """Columns that are released as they are."""
        ...

    @property
    def levels(self) -> tuple[Variable, ...]:
        """Inputs of each level."""
        ...

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Outputs of each level."""
        ...

    @property
    def strata(self) -> tuple[tuple[int, ...], ...]:
        """Combinations of given symbols, each with a root of the tree."""
        ...

    @property
    def tree(self) -> RowTree:
        """The nodes."""
        ...

    @property
    def table(self) -> Table | None:
        """Rows that the channel was designed for; None in a public one."""
        ...

    @property
    def released_columns(self) -> tuple[str, ...]:
        """Columns that are needed of a record."""
        ...

    @property
    def output_columns(self) -> tuple[str, ...]:
        """Columns that are written."""
        ...

    def strata_of(self, codes: Integers) -> Integers:
        """Stratum of every row of given codes, -1 where it is unknown."""
        ...

    def texts_of(self, level: int, output: int) -> tuple[str, ...]:
        """What is written for an output of a level."""
        ...


@dataclass(frozen=True)
class OutputColumn:
    """A released column: its name, its texts, and for each output code of its group the place of
    the text.

    `group` counts the given columns first, then the levels.
    """

    name: str
    group: int
    texts: tuple[str, ...]
    places: NDArray[np.int32]


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
    lengths = np.concatenate([np.diff(indptr) for indptr, _, _ in parts])
    return IntegerRows(
        (len(lengths), width),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([indices for _, indices, _ in parts]),
        np.concatenate([values for _, _, values in parts]),
    )


class RowRelease:
    """A row channel made ready to draw.

    Parameters
    ----------
    channel : ReleasableRows
    key : Key
    policy : Policy, optional
        `unknown` speaks of symbols that the channel, or a node of it, does not know, `null` of
        missing cells; each is ``refuse`` or ``marginal``. The marginal is that of the node, and
        needs the table that the channel carries.
    changed : {"refuse", "keep", "redraw"}
        What becomes of an identified record whose row is another one than when it was released
        before: an error, its old row of draws, or draws of its own.

    Attributes
    ----------
    columns : tuple of OutputColumn
        What `draw` gives, in this order: given columns, then those of the levels.
    digest : str
        SHA-256 of what the channel does.
    codes : list of arrays
        For each group the symbols of the records that were drawn last, as `symbol_counts` counts
        them.
    symbol_counts : list of arrays
        For each group how many records had each symbol, a missing cell, and an unknown symbol.
    output_counts : list of arrays
        For each group how many records got each output.
    seen, earlier : FirstSymbols
        The row that each identifier first came with, in this release and in others, as one number.
    changes : int
        How many records had another row in an earlier release.
    """

    def __init__(
        self,
        channel: ReleasableRows,
        key: Key,
        *,
        policy: Policy | None = None,
        changed: str = REFUSE,
    ) -> None:
        self.channel = channel
        self.policy = policy or Policy()
        for name, rule in (
            ("unknown", self.policy.unknown),
            ("null", self.policy.null),
        ):
            if rule not in (REFUSE, MARGINAL):
                raise InputError(
                    f"{name} ({quoted(rule)}) must be refuse or marginal for a channel of rows"
                )
        self.digest = row_channel_digest(channel)
        self._key = key.derived("row channel", self.digest)
        form = self.policy.normalise
        self._alphabets = [
            normalised(variable, form) for variable in channel.given + channel.levels
        ]
        wants_marginal = MARGINAL in (self.policy.unknown, self.policy.null)
        marginals = marginal_rows(channel) if wants_marginal else None
        self._levels = [
            LevelSampler(table, None if marginals is None else marginals[k])
            for k, table in enumerate(channel.tree.levels)
        ]
        self.columns = _output_columns(channel)
        self.changed = changed
        self.changes = 0
        self.seen = FirstSymbols()
        self.earlier = FirstSymbols()
        if changed == KEEP:
            self._check_reversible()
        self.codes: list[Integers] = []
        self.symbol_counts: list[Integers] = []
        self.output_counts: list[Integers] = []
        given = len(channel.given)
        for k, variable in enumerate(self._alphabets):
            size = len(variable)
            self.symbol_counts.append(np.zeros(size + 2, dtype=np.int64))
            outputs = size if k < given else len(channel.labels[k - given])
            self.output_counts.append(np.zeros(outputs, dtype=np.int64))
        self.spellings = Spellings()
        self._hasher = RowHasher(self._key.derived(IDENTIFIERS, "known").secret)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the released columns."""
        return tuple(column.name for column in self.columns)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Texts of each released column, which the codes of `draw` point to."""
        return tuple(column.texts for column in self.columns)

    def draw(
        self, columns: Sequence[Encoded], records: Records
    ) -> list[NDArray[np.int32]]:
        """What to release for each record: for every released column codes into its `texts`.

        Parameters
        ----------
        columns : sequence of Encoded
            One for each of the channel's `released_columns`, in their order.
        records : RowNumbers, NumberedRecords or Identifiers
        """
        codes = self._codes(self._normalised(columns), check=True)
        if isinstance(records, Identifiers):
            outputs = self._drawn_for_identified(codes, records)
        else:
            outputs = self._drawn(codes, records, self._key)
        for counts, group in zip(self.output_counts, outputs, strict=True):
            counts += np.bincount(group, minlength=len(counts))
        return [column.places[outputs[column.group]] for column in self.columns]

    def count(self, columns: Sequence[Encoded], times: Integers) -> None:
        """Add to `symbol_counts` so many equal records each, for which nothing is drawn or
        refused.
        """
        self._codes(self._normalised(columns), check=False, times=times)

    @property
    def has_bins(self) -> bool:
        """Whether a column is released in bins, so that its cells are many different numbers."""
        return any(any(variable.bins) for variable in self._alphabets)

    def new_records(self) -> Iterator[tuple[Hashes, Integers]]:
        """Hashes and first rows of the records that no earlier release had, some at a time,
        sorted.
        """
        return new_records(self.seen, self.earlier)

    def _normalised(self, columns: Sequence[Encoded]) -> list[Encoded]:
        return [normalised_cells(column, self.policy.normalise) for column in columns]

    def _codes(
        self,
        cells: Sequence[Encoded],
        *,
        check: bool,
        times: Integers | None = None,
    ) -> list[Integers]:
        """The symbol of every record in every group, -1 where it is unknown or missing and that is
        allowed. The records are counted.
        """
        codes: list[Integers] = []
        counted: list[Integers] = []
        start = 0
        for k, variable in enumerate(self._alphabets):
            end = start + len(variable.columns)
            part = cells[start:end]
            start = end
            places = positions_of(part, variable)
            symbols = places
            if places.size and places.min() < 0:
                if check:
                    is_given = k < len(self.channel.given)
                    self._check_unknown(places, part, variable, is_given)
                # MISSING comes before UNKNOWN, as at the end of the counts.
                symbols = np.where(places < 0, places + len(variable) + 2, places)
                places = np.maximum(places, -1)
            codes.append(places)
            counted.append(symbols)
        for counts, symbols in zip(self.symbol_counts, counted, strict=True):
            # Weighted counts are floats, which are exact up to 2^53.
            added = np.bincount(symbols, times, minlength=len(counts))
            counts += added.astype(np.int64)
        self.codes = counted
        return codes

    def _check_unknown(
        self,
        places: Integers,
        cells: Sequence[Encoded],
        variable: Variable,
        is_given: bool,
    ) -> None:
        """Refuse unknown symbols and missing cells as the policy says; those of given columns
        always.
        """
        for code, rule in ((MISSING, self.policy.null), (UNKNOWN, self.policy.unknown)):
            at = np.flatnonzero(places == code)
            if at.size and (is_given or rule == REFUSE):
                raise unknown_at(int(at[0]), cells, variable)

    def _strata(self, codes: Integers) -> Integers:
        strata = self.channel.strata_of(codes)
        if strata.size and strata.min() < 0:
            lost = np.flatnonzero(strata < 0)
            names = ",".join(
                name for variable in self.channel.given for name in variable.columns
            )
            raise UnknownSymbol(
                int(lost[0]),
                "the channel does not know this combination of the given columns "
                f"{quoted(names)}; leave the record out, or design the channel with a table that "
                "has it",
            )
        return strata

    def _drawn(
        self, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every group; those of the given columns are their symbols."""
        given = len(self.channel.given)
        stacked = np.zeros((len(records), given), dtype=np.int64)
        for k in range(given):
            stacked[:, k] = codes[k]
        strata = self._strata(stacked)
        outputs = [code.astype(np.int32) for code in codes[:given]]
        return outputs + self._outputs(strata, codes[given:], records, key)

    def _outputs(
        self, strata: Integers, codes: Sequence[Integers], records: Records, key: Key
    ) -> list[NDArray[np.int32]]:
        """Output codes of every level, drawn some records at a time."""
        sources = [
            records.source(key.derived(records.kind, "level", str(k)))
            for k in range(len(self._levels))
        ]
        outputs = [np.empty(len(strata), dtype=np.int32) for _ in self._levels]
        for start in range(0, len(strata), CHUNK):
            span = slice(start, start + CHUNK)
            nodes = self.channel.tree.roots[strata[span]]
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

    def _drawn_for_identified(
        self, codes: list[Integers], records: Identifiers
    ) -> list[NDArray[np.int32]]:
        """The draws of identified records, as `changed` says for those whose row has changed."""
        numbers = self._row_numbers(codes)
        hashes = self._hasher.identifiers(records.columns)
        self.spellings.add(records.columns, hashes, self._hasher)
        _, here = self.seen.look(hashes, numbers)
        _, before = self.earlier.find(hashes, numbers)
        shared = np.flatnonzero(here != numbers)
        if shared.size:
            # Their draws would depend on each other.
            raise InputError(
                f"the identifier {records.named(int(shared[0]))} belongs to records with different "
                "symbols; name columns that identify a record"
            )
        other = np.flatnonzero(before != numbers)
        self.changes += len(other)
        if other.size and self.changed == REFUSE:
            raise InputError(
                f"the record {records.named(int(other[0]))} has other symbols than when it was "
                "released before: keep what was released (--changed keep), or draw it anew, which "
                "tells more of it (--changed redraw)"
            )
        if self.changed == KEEP:
            codes = self._with_first_rows(codes, before, other)
        outputs = self._drawn(codes, records, self._key)
        if self.changed == REDRAW:
            self._redraw_changed(outputs, codes, numbers, other, records)
        return outputs

    def _redraw_changed(
        self,
        outputs: list[NDArray[np.int32]],
        codes: Sequence[Integers],
        numbers: Integers,
        other: Integers,
        records: Identifiers,
    ) -> None:
        """Draw records anew whose row is not the one that they were first released with.

        Each further row has random numbers of its own: those of the first have met the first alone.
        """
        for number in np.unique(numbers[other]).tolist():
            at = other[numbers[other] == number]
            key = self._key.derived("changed", str(number))
            try:
                drawn = self._drawn([code[at] for code in codes], records.some(at), key)
            except UnknownSymbol as error:
                position = int(at[error.position])
                raise UnknownSymbol(position, error.what) from None
            for group, values in zip(outputs, drawn, strict=True):
                group[at] = values

    def _row_numbers(self, codes: Sequence[Integers]) -> Integers:
        """One number for the row of each record; modulo `PRIME` where there are more rows."""
        numbers = np.zeros(len(codes[0]), dtype=np.int64)
        for code, variable in zip(codes, self._alphabets, strict=True):
            numbers = (numbers * (len(variable) + 1) + code + 1) % PRIME
        return numbers

    def _with_first_rows(
        self, codes: list[Integers], before: Integers, other: Integers
    ) -> list[Integers]:
        """The codes, with those of the first release at the places `other`."""
        numbers = before[other]
        replaced: list[Integers] = []
        for code, variable in zip(
            reversed(codes), reversed(self._alphabets), strict=True
        ):
            first = code.copy()
            numbers, digits = np.divmod(numbers, len(variable) + 1)
            first[other] = digits - 1
            replaced.append(first)
        replaced.reverse()
        return replaced

    def _check_reversible(self) -> None:
        """Refuse to keep old rows that their numbers do not tell."""
        rows = math.prod(len(variable) + 1 for variable in self._alphabets)
        if rows > PRIME:
            raise InputError(
                f"the columns of this channel have {rows:,} combinations of symbols, and the "
                f"ledger tells {PRIME:,} apart: records that changed cannot keep their old output; "
                "draw them anew (--changed redraw), or leave them out"
            )


def _output_columns(channel: ReleasableRows) -> tuple[OutputColumn, ...]:
    groups: list[list[tuple[str, ...]]] = [
        list(variable.symbols) for variable in channel.given
    ]
    for k, labels in enumerate(channel.labels):
        groups.append([channel.texts_of(k, output) for output in range(len(labels))])
    names = iter(channel.output_columns)
    columns: list[OutputColumn] = []
    for group, symbols in enumerate(groups):
        for cells in zip(*symbols, strict=True):
            texts = tuple(dict.fromkeys(cells))
            place = {text: k for k, text in enumerate(texts)}
            places = np.array([place[cell] for cell in cells], dtype=np.int32)
            columns.append(OutputColumn(next(names), group, texts, places))
    return tuple(columns)


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
