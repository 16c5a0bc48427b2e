"""Released rows beside their originals: each record against the law of its own row.

`paired_rows` follows every record down its released path (`row_paths`) with its true symbols. At
each node the true symbol has a row of the node's channel, a *pair* of node and symbol. A symbol
without such a row, or whose row has no mass on what was released, shows that the record cannot have
been released from its original. The other pairs are tested level by level and symbol by symbol
(`PairedRows.tests`).

Given the outputs of the levels before, of all records, the outputs of level j are independent,
record i with the law W_j(. | x_ij, prefix_i). For every symbol x of the level the counts of the
outputs are compared with the sum of these laws over the records with x_ij = x: each output alone by
Hoeffding's bound, all together by the bound on the relative entropy (`checking.check_table`). Both
hold for independent records with different laws. So every p-value is valid given the past, and
hence valid. The symbols and levels are fixed before anything is drawn; Bonferroni's correction over
all (level, symbol) therefore keeps the level, whatever the dependence between the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import checking
from mechdesign.analysis.checking import Finding, FrequencyTest, NamedTest
from mechdesign.analysis.row_paths import Columns, RowPaths
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import NOWHERE, Integers, places_in
from mechdesign.core.row_tree import DENOMINATOR, NO_PAIR, LevelTable
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded
from mechdesign.tables.columns import positions_of

ABSENT = -1
"""Pair of a record that has none."""


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Released rows beside their originals.

    `inputs` and `pairs` have a (records,) array for each level; a pair is `ABSENT` at constant
    nodes, and from the first output on that the original cannot have produced.
    """

    paths: RowPaths
    inputs: tuple[Integers, ...]
    pairs: tuple[Integers, ...]
    findings: tuple[Finding, ...]

    def tests(self, level: float) -> list[NamedTest]:
        """A test for every level and symbol, also where no record has the symbol.

        So their number, by which Bonferroni's correction multiplies, does not depend on the data.
        """
        tests: list[NamedTest] = []
        channel = self.paths.channel
        for place, variable in enumerate(channel.levels):
            title = ",".join(variable.columns)
            table = channel.tree.levels[place]
            has_pair = self.pairs[place] >= 0
            for symbol, name in enumerate(variable.names):
                records = np.flatnonzero(has_pair & (self.inputs[place] == symbol))
                test = self._symbol_test(place, table, records, level)
                tests.append(NamedTest(f"{title} {name}", test))
        return tests

    def _symbol_test(
        self, place: int, table: LevelTable, records: Integers, level: float
    ) -> FrequencyTest:
        """Counts of the outputs of some records against the sum of their laws."""
        labels = self.paths.channel.labels[place]
        # Records at one node with one symbol have the same law: it is taken so many times.
        pairs, times = np.unique(self.pairs[place][records], return_counts=True)
        owner, entries = table.expanded(pairs)
        values = table.rows.values[entries].astype(np.float64) / DENOMINATOR
        expected = np.bincount(
            table.slot_outputs[table.rows.indices[entries]],
            weights=values * times[owner],
            minlength=len(labels),
        )
        slots = self.paths.slots[place][records]
        counts = np.bincount(table.slot_outputs[slots], minlength=len(labels))
        # Outputs that no record could get have no count either, for impossible ones are left out.
        is_possible = expected > 0.0
        # No record leaves no possible output, and nothing is divided by zero then.
        shares = expected[is_possible] / max(1, len(records))
        names = [labels[output] for output in np.flatnonzero(is_possible)]
        if not names:
            return checking.bonferroni("originals", [], level, 0)
        return checking.check_table(names, shares, counts[is_possible], level)


def paired_rows(paths: RowPaths, original: Columns) -> PairedRows:
    """The originals of the released rows, and what in them is impossible."""
    channel = paths.channel
    absent = [name for name in channel.released_columns if name not in original]
    if absent:
        raise InputError(f"the original has no column {listed(absent)}")
    cells = [original[name] for name in channel.released_columns]
    records = len(cells[0])
    if records != len(paths):
        text = f"the release has {len(paths):,} records, the original {records:,}"
        # Nothing is paired, so no frequency is tested.
        nothing = (np.full(len(paths), ABSENT),) * len(channel.levels)
        return PairedRows(paths, nothing, nothing, (Finding("rows", text),))
    codes = _original_codes(channel, cells)
    findings: list[Finding] = []
    # Given columns are not randomised: they lead to the stratum, and are released as they are.
    differ = _given_differ(paths, codes[:, : len(channel.given)])
    if differ.any():
        first = int(np.flatnonzero(differ)[0])
        text = f"record {first + 1} has other given values than its original"
        findings.append(Finding("given", text, int(differ.sum())))
    # Only records of the same stratum, with a path, are compared level by level.
    comparable = ~differ & (paths.slots[-1] >= 0)
    inputs = codes[:, len(channel.given) :]
    pairs, impossible = _pairs_of_records(paths, inputs, comparable)
    if impossible.any():
        first = int(np.flatnonzero(impossible)[0])
        text = f"record {first + 1} cannot have been released from its original row"
        findings.append(Finding("pairs", text, int(impossible.sum())))
    return PairedRows(paths, tuple(inputs.T), tuple(pairs), tuple(findings))


def _original_codes(channel: RowChannel, cells: Sequence[Encoded]) -> Integers:
    """(records, groups) codes of the true symbols."""
    columns: list[Any] = []
    start = 0
    for variable in channel.groups:
        end = start + len(variable.columns)
        codes = positions_of(cells[start:end], variable)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            raise InputError(
                f"record {unknown[0] + 1} of the original has a value of "
                f"{quoted(','.join(variable.columns))} that the channel does not know"
            )
        columns.append(codes)
        start = end
    return np.column_stack(columns).astype(np.int64)


def _given_differ(paths: RowPaths, given: Integers) -> NDArray[np.bool_]:
    """(records,) array: whether the released given values are others than the original ones."""
    differ = np.zeros(len(given), dtype=np.bool_)
    for place, values in enumerate(paths.given):
        differ |= given[:, place] != values
    return differ


def _pairs_of_records(
    paths: RowPaths, inputs: Integers, followed: NDArray[np.bool_]
) -> tuple[list[Integers], NDArray[np.bool_]]:
    """For every level the pair of node and true symbol of each record, and which records cannot
    have been released from their originals.

    A record is `followed` down its released path until a level at which its own symbol does not
    occur, or has no mass on what was released; from there on it has no pair.
    """
    impossible = np.zeros(len(inputs), dtype=np.bool_)
    pairs: list[Integers] = []
    for place, table in enumerate(paths.channel.tree.levels):
        nodes = paths.nodes[place]
        pair = table.pairs(nodes, inputs[:, place])
        # A constant node says nothing of the symbol, and has no pairs.
        expected = followed & ~table.constant[nodes]
        is_possible = expected & (pair != NO_PAIR)
        at = np.flatnonzero(is_possible)
        is_possible[at] = _has_mass(table, pair[at], paths.slots[place][at])
        impossible |= expected & ~is_possible
        followed = followed & ~impossible
        pairs.append(np.where(is_possible, pair, ABSENT))
    return pairs, impossible


def _has_mass(table: LevelTable, pairs: Integers, slots: Integers) -> NDArray[np.bool_]:
    """Whether the row of each pair has a positive integer on the slot beside it."""
    width = len(table.slot_nodes)
    # Entries are sorted by pair, and by slot within a pair.
    keys = table.rows.row_of * width + table.rows.indices
    wanted = pairs * width + slots
    places = places_in(keys, wanted)
    # NOWHERE reads some other value, which the first condition discards.
    return (places != NOWHERE) & (table.rows.values[places] > 0)
