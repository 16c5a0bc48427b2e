"""Is a released table a plausible draw of a row channel? All levels jointly.

*Impossible* is a released row that has no path in the tree or, with the original, one that its own
row could not have produced: a symbol whose row at the node has no mass on the released output.

*Frequencies with the original.* Every record is compared with the law of its own row, level by
level and symbol by symbol (`row_pairing`).

*Frequencies without it.* If the records are those of the channel's table, in any order, or an
independent sample with its law, the released rows are independent draws whose laws have the mean
P(leaf). So any fixed map from rows to cells gives counts for which two bounds hold: Hoeffding's for
each cell alone, and that on the relative entropy for all together (`checking.check_table`). The
maps are every group of released columns by itself, every pair of groups, and the whole row, with
rare cells pooled. They depend on the channel, its table and the number of records, never on the
released values; Bonferroni's correction over them keeps the level. For a channel of job and age the
maps are job, age, and job x age. With 1,000 records (nurse, 30) of the share 0.05 is a cell of the
last, with 50 expected records, and (clerk, 80) of the share 0.01 is pooled with other rare ones.

`check_rows` follows the released rows through the tree (`row_paths`) and notes the impossible ones.
With the original it then pairs the records, else it counts cells (`_table_tests`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import checking
from mechdesign.analysis.checking import (
    Finding,
    FrequencyTest,
    NamedTest,
    ReleaseCheck,
    bonferroni,
)
from mechdesign.analysis.row_pairing import paired_rows
from mechdesign.analysis.row_paths import Columns, RowPaths, paths_of
from mechdesign.auditing.row_leaves import RowLaw, row_law
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted

LEAST_EXPECTED = 20.0
"""Expected records of a cell that is counted by itself. Rarer cells are pooled: the bound on the
relative entropy pays for every cell, and rare cells say little."""

_ANY_DATA = "without original and table only impossible rows are found; a wrong channel may pass"


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
    # Impossible records are findings already. The tests leave them out, for the law gives them no
    # mass.
    notices: list[str] = []
    if original is not None:
        paired = paired_rows(paths, original)
        findings += paired.findings
        tests = paired.tests(level)
        test = bonferroni("originals", tests, level, len(paths))
    elif any_data:
        notices.append(_ANY_DATA)
        test = bonferroni("any data", [], level, 0)
    elif channel.table is None:
        notices += [checking.PUBLIC_NOTICE, _ANY_DATA]
        test = bonferroni("any data", [], level, 0)
    else:
        notices.append(checking.TABLE_NOTICE)
        possible = paths.slots[-1] >= 0
        tests = _table_tests(paths, row_law(channel), possible, level)
        test = bonferroni("table", tests, level, int(possible.sum()))
    return ReleaseCheck(len(paths), tuple(findings), test, None, tuple(notices))


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


def _table_tests(
    paths: RowPaths, law: RowLaw, possible: NDArray[np.bool_], level: float
) -> list[NamedTest]:
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
    # The law and the number of records alone decide which cells a map has (`_pooled`), never what
    # was observed: the bounds hold for fixed maps.
    tests: list[NamedTest] = []
    for places in maps:
        columns = list(places)
        cells = _pooled(expected[:, columns], law.shares, len(observed))
        test = _cell_test(cells, observed[:, columns], level)
        tests.append(NamedTest(" x ".join(groups[place] for place in places), test))
    return tests


def _group_codes(paths: RowPaths) -> Integers:
    """(records, groups) codes of the given symbols and of the outputs of the levels."""
    columns = list(paths.given)
    for table, slots in zip(paths.channel.tree.levels, paths.slots, strict=True):
        # Impossible records get some output here; the caller leaves them out.
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
    # The common cells are numbered from 1 on, and 0 is the pool of the rare ones.
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
