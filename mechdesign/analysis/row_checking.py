"""Is a released table a plausible draw of a row channel? All levels jointly.

*Impossible* is a released row that has no path in the tree or, with the original, one that its own
row could not have produced: a symbol whose row at the node has no mass on the released output.

*Frequencies with the original.* Given the outputs of the levels before, of all records, the outputs
of level j are independent, record i with the law W_j(. | x_ij, prefix_i). For every symbol x of the
level the counts of the outputs are compared with the sum of these laws over the records with
x_ij = x: each output alone by Hoeffding's bound, all together by the bound on the relative entropy
(`checking.check_table`). Both hold for independent records with different laws. So every p-value is
valid given the past, and hence valid. The symbols and levels are fixed before anything is drawn;
Bonferroni's correction over all (level, symbol) therefore keeps the level, whatever the dependence
between the tests.

*Frequencies without it.* If the records are those of the channel's table, in any order, or an
independent sample with its law, the released rows are independent draws whose laws have the mean
P(leaf). So any fixed map from rows to cells gives counts for which the same two bounds hold. The
maps are every group of released columns by itself, every pair of groups, and the whole row, with
rare cells pooled. They depend on the channel, its table and the number of records, never on the
released values; Bonferroni's correction over them keeps the level.

`check_rows` follows the released rows through the tree (`row_paths`) and notes the impossible ones.
With the original it then pairs the records (`_paired`), else it counts cells (`_table_tests`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import checking
from mechdesign.analysis.checking import Finding, FrequencyTest, ReleaseCheck, Suspect
from mechdesign.analysis.row_paths import RowPaths, paths_of
from mechdesign.auditing.row_leaves import RowLaw, row_law
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import NOWHERE, Integers, places_in
from mechdesign.core.row_tree import DENOMINATOR, NO_PAIR, LevelTable
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded
from mechdesign.tables.columns import positions_of

Columns = Mapping[str, Encoded]

LEAST_EXPECTED = 20.0
"""Expected records of a cell that is counted by itself. Rarer cells are pooled: the bound on the
relative entropy pays for every cell, and rare cells say little."""

ABSENT = -1
"""Cell of a record that has none."""


@dataclass(frozen=True)
class _NamedTest:
    """A test, and which columns or which symbol it is about."""

    name: str
    test: FrequencyTest


def check_rows(
    channel: RowChannel,
    released: Columns,
    original: Columns | None = None,
    *,
    level: float = checking.LEVEL,
    any_data: bool = False,
) -> ReleaseCheck:
    """Check released rows against their channel, and against the original rows where
    they are there.

    Parameters
    ----------
    channel : RowChannel
    released : mapping of str to Encoded
        The columns of the released table.
    original : mapping of str to Encoded, optional
        The same records in the same order, before the release.
    level : float
        Chance that a faithful release is called implausible for its frequencies.
    any_data : bool
        Without the original: do not expect the frequencies of the channel's table.

    Raises
    ------
    InputError
        If a column is missing, or the original has a row that the channel does not know.
    """
    level = checking.check_chance(level)
    paths = paths_of(channel, released)
    findings = _column_findings(channel, released)
    impossible = paths.impossible
    if len(impossible):
        findings.append(
            Finding(
                "row",
                f"the row of record {impossible[0] + 1} cannot come from this channel",
                len(impossible),
            )
        )
    notices: list[str] = []
    if original is not None:
        pairing = _paired(paths, original)
        findings += pairing.findings
        tests = pairing.tests(level)
        test = _together("originals", tests, level, len(paths))
    elif any_data:
        notices.append(_ANY_DATA)
        test = _together("any data", [], level, 0)
    elif channel.table is None:
        notices += [_PUBLIC, _ANY_DATA]
        test = _together("any data", [], level, 0)
    else:
        notices.append(_TABLE)
        possible = paths.slots[-1] >= 0
        tests = _table_tests(paths, row_law(channel), possible, level)
        test = _together("table", tests, level, int(possible.sum()))
    return ReleaseCheck(len(paths), tuple(findings), test, None, tuple(notices))


_TABLE = (
    "without the original the frequencies are compared with those that the channel's "
    "own table predicts; data of another origin may differ from them (--any-data)"
)
_ANY_DATA = "without original and table only impossible rows are found; a wrong channel may pass"
_PUBLIC = "a public channel carries no table, so there are no expected frequencies"


def _column_findings(channel: RowChannel, released: Columns) -> list[Finding]:
    """The sensitive columns, where they are in the release."""
    present = [name for name in channel.sensitive.columns if name in released]
    if not present:
        return []
    text = (
        "the released table has the sensitive column "
        f"{listed([quoted(name) for name in present])}"
    )
    return [Finding("columns", text)]


def _together(
    against: str, tests: Sequence[_NamedTest], level: float, records: int
) -> FrequencyTest:
    """All tests as one, by Bonferroni's correction; a suspect for each that fails by itself."""
    smallest = 1.0
    suspects: list[Suspect] = []
    methods: dict[str, int] = {}
    for part in tests:
        adjusted = min(1.0, len(tests) * part.test.p_value)
        smallest = min(smallest, adjusted)
        if adjusted <= level:
            suspects.append(Suspect(part.name, part.test.records, adjusted))
        for method, times in part.test.methods.items():
            methods[method] = methods.get(method, 0) + times
    suspects.sort(key=lambda suspect: suspect.p_value)
    return FrequencyTest(against, smallest, level, tuple(suspects), records, methods)


# Without the original: the released rows against the law of the table


def _table_tests(
    paths: RowPaths, law: RowLaw, possible: NDArray[np.bool_], level: float
) -> list[_NamedTest]:
    """Tests of every group of columns, of every pair of groups, and of the whole row."""
    channel = paths.channel
    observed = _group_codes(paths)[possible]
    strata = np.array(channel.strata, dtype=np.int64).reshape(len(channel.strata), -1)
    expected = np.column_stack([strata[law.strata], law.outputs])
    groups = [",".join(variable.columns) for variable in channel.groups]
    # By their places: every group, every pair, and all (two groups are a pair already).
    everything = range(len(groups))
    maps = [*combinations(everything, 1), *combinations(everything, 2)]
    if len(groups) > 2:
        maps.append(tuple(everything))
    tests: list[_NamedTest] = []
    for places in maps:
        columns = list(places)
        cells = _pooled(expected[:, columns], law.shares, len(observed))
        test = _cell_test(cells, observed[:, columns], level)
        tests.append(_NamedTest(" x ".join(groups[place] for place in places), test))
    return tests


def _group_codes(paths: RowPaths) -> Integers:
    """(records, groups) codes of the given symbols and of the outputs of the levels."""
    columns = list(paths.given)
    for table, slots in zip(paths.channel.tree.levels, paths.slots, strict=True):
        columns.append(table.slot_outputs[np.maximum(slots, 0)])
    return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Combinations of codes with a cell each, and the expected share of every cell."""

    combinations: Integers
    cells: Integers
    shares: NDArray[np.float64]


def _pooled(codes: Integers, shares: NDArray[np.float64], records: int) -> _Cells:
    """A cell for every combination with enough expected records, and one for all others."""
    different, place = np.unique(codes, axis=0, return_inverse=True)
    masses = np.bincount(place.ravel(), weights=shares, minlength=len(different))
    is_common = masses * records >= LEAST_EXPECTED
    cells = np.where(is_common, np.cumsum(is_common), 0)
    pooled = np.bincount(cells, weights=masses)
    return _Cells(different, cells, pooled / pooled.sum())


def _cell_test(cells: _Cells, observed: Integers, level: float) -> FrequencyTest:
    """The test of the counts of cells; every observed combination is one of the law's."""
    # Numbered together, an observed combination has the number of the same one of the law.
    size = len(cells.combinations)
    both = np.concatenate([cells.combinations, observed])
    _, numbers = np.unique(both, axis=0, return_inverse=True)
    numbers = numbers.ravel()
    cell_of_number = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
    cell_of_number[numbers[:size]] = cells.cells
    counts = np.bincount(cell_of_number[numbers[size:]], minlength=len(cells.shares))
    labels = [str(cell) for cell in range(len(cells.shares))]
    return checking.check_table(labels, cells.shares, counts, level)


# With the original: every record against the law of its own row


@dataclass(frozen=True, eq=False)
class _Pairing:
    """Released rows beside their originals.

    `inputs` and `pairs` have a (records,) array for each level; a pair is `ABSENT` at constant
    nodes, and from the first output on that the original cannot have produced.
    """

    paths: RowPaths
    inputs: tuple[Integers, ...]
    pairs: tuple[Integers, ...]
    findings: tuple[Finding, ...]

    def tests(self, level: float) -> list[_NamedTest]:
        """A test for every level and symbol, also where no record has the symbol.

        So their number, by which Bonferroni's correction multiplies, does not depend on the data.
        """
        tests: list[_NamedTest] = []
        channel = self.paths.channel
        for place, variable in enumerate(channel.levels):
            title = ",".join(variable.columns)
            table = channel.tree.levels[place]
            has_pair = self.pairs[place] >= 0
            for symbol, name in enumerate(variable.names):
                records = np.flatnonzero(has_pair & (self.inputs[place] == symbol))
                test = self._symbol_test(place, table, records, level)
                tests.append(_NamedTest(f"{title} {name}", test))
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
            return _together("originals", [], level, 0)
        return checking.check_table(names, shares, counts[is_possible], level)


def _paired(paths: RowPaths, original: Columns) -> _Pairing:
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
        return _Pairing(paths, nothing, nothing, (Finding("rows", text),))
    codes = _original_codes(channel, cells)
    findings: list[Finding] = []
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
    return _Pairing(paths, tuple(inputs.T), tuple(pairs), tuple(findings))


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


def _has_mass(table: LevelTable, pairs: Integers, slots: Integers) -> NDArray[np.bool_]:
    """Whether the row of each pair has a positive integer on the slot beside it."""
    width = len(table.slot_nodes)
    # Entries are sorted by pair, and by slot within a pair.
    keys = table.rows.row_of * width + table.rows.indices
    wanted = pairs * width + slots
    places = places_in(keys, wanted)
    return (places != NOWHERE) & (table.rows.values[places] > 0)
