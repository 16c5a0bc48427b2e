"""Which rows are released when every released row must be shared by at least K records.

Lifts bound what a released row tells about the secret. They say nothing about an outsider who knows
a person's other values and looks for the row. So only *common* rows are released, those that at
least K records of the table have, and each of them at least K times. Where an outsider knows some
columns only, a row is common if at least K records have its known part, and every released known
part occurs at least K times.

The records of rare rows go to common rows. `group_law` chooses these, and moves records between
common rows, so that few cells change and two-way tables move little: the share of changed cells,
the largest total variation of a pair of columns, and half the average one are made small together
(`solvers.plans.row_merging`). K records of every common row, or of every common known part,
stay where they are; so nothing else has to be asked of the flow.

For example, with K = 2 and the rows (a, u), (a, v), (b, v) that 3, 2 and 1 records have, the record
of (b, v) goes to (a, v), because this changes one cell, and (a, u) would change two.

The result is a number of records for every row of the table, N q, with which a plan continues: its
outputs have the law q (`docs/explanation/smallest-groups.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.progress import Step, Steps
from solvers.errors import EmptyPolytope
from solvers.plans.merging_program import Merging
from solvers.plans.row_merging import Merged, MergingProgress, merge_rows

DEFAULT = 5
"""The smallest group where most records can have one: what statistical offices often ask for."""

WORST_PAIR = 1.0
"""Weight of the largest total variation of a pair of columns; the share of changed cells has 1.
On census tables this reaches the least possible value, that of symbols which no common row has."""

AVERAGE_PAIR = 0.5
"""Weight of the average total variation of all pairs, which keeps the others near, too."""

TIME_LIMIT = 30.0
"""Seconds of processor time by default."""


@dataclass(frozen=True, eq=False)
class GroupLaw:
    """How many records of each row are released, and how near that is to the best.

    Attributes
    ----------
    k : int
        Every released row occurs at least so many times; with `known`, every known part.
    known : tuple of int or None
        The columns that an outsider can know; None for all.
    targets : (n,) int array
        N q: the released records of every row of the table, 0 for rows that are not released.
    bound : float
        No choice with the same records that stay has a smaller objective: the cost of changed
        cells, with `WORST_PAIR` and `AVERAGE_PAIR` for the pairs. 0 where the program was not
        solved in time; then records went to near rows in turn.
    objective : float
        What was reached.
    """

    k: int
    known: tuple[int, ...] | None
    targets: Integers
    bound: float
    objective: float

    @property
    def unique(self) -> int:
        """How many released rows occur once only."""
        return int(np.count_nonzero(self.targets == 1))


def default_smallest_group(
    codes: Integers, counts: Integers, known: Sequence[int] | None = None
) -> int:
    """The smallest group where the user asks for none: 5 if common rows hold half of the records.

    Parameters
    ----------
    codes : (n, c) int array
        The distinct rows of a table.
    counts : (n,) int array
        How many records have each row. Where counts are no records (weights, probabilities), the
        smallest group is 1, without this function.
    known : sequence of int, optional
        The columns that an outsider can know; by default all.

    Returns
    -------
    int
        `DEFAULT`, or 1 where rows, or known parts, of at least so many records hold less than half.
    """
    sizes = _sizes(codes, counts, known)
    common = int(counts[sizes >= DEFAULT].sum())
    if 2 * common >= int(counts.sum()):
        return DEFAULT
    return 1


def group_law(
    codes: Integers,
    counts: Integers,
    k: int,
    known: Sequence[int] | None = None,
    *,
    given: Sequence[int] = (),
    time_limit: float = TIME_LIMIT,
    progress: Steps | None = None,
) -> GroupLaw:
    """Choose what is released, in groups of at least k records.

    Parameters
    ----------
    codes : (n, c) int array
        The distinct rows of a table, one code a cell.
    counts : (n,) int array
        How many records have each row, at least 1.
    k : int
        The smallest group.
    known : sequence of int, optional
        The columns that an outsider can know; by default all.
    given : sequence of int
        Columns that no record changes.
    time_limit : float
        Seconds of processor time; with 0 every record goes to a near row in turn, without a
        program.
    progress : callable, optional
        Called after every round of the program.

    Raises
    ------
    InputError
        If k is no whole number from 1 on, if no row is common, or if records with some given values
        have no common row to go to.
    """
    if k < 1:
        raise InputError(f"the smallest group ({k}) must be at least 1")
    sizes = _sizes(codes, counts, known)
    common = sizes >= k
    if not common.any():
        raise InputError(
            f"no row that could be released belongs to {k} records or more: ask for smaller groups "
            "(--smallest-group), name the columns that an outsider can know (--known), or release "
            "fewer columns or wider bins"
        )
    held = _held(codes, counts, k, known, common)
    free = counts - held
    items = np.flatnonzero(free)
    merged = None
    # Where all rows are common the table stays as it is.
    if not common.all():
        merged = _merged(codes, free, items, common, held, given, time_limit, progress)
    targets = counts
    bound = objective = 0.0
    if merged is not None:
        total = int(counts.sum())
        targets = held.copy()
        np.add.at(targets, np.flatnonzero(common)[merged.target], merged.amount)
        bound, objective = merged.bound / total, merged.cost / total
    return GroupLaw(
        k=k,
        known=None if known is None else tuple(known),
        targets=targets,
        bound=bound,
        objective=objective,
    )


def _groups(codes: Integers, known: Sequence[int] | None) -> Integers:
    """The number of each row's group: rows with the same known part."""
    if known is None:
        return np.arange(len(codes))
    part = codes[:, list(known)]
    _, group = np.unique(part, axis=0, return_inverse=True)
    return group.ravel().astype(np.int64)


def _sizes(codes: Integers, counts: Integers, known: Sequence[int] | None) -> Integers:
    """How many records share the known part of each row."""
    group = _groups(codes, known)
    totals = np.zeros(int(group.max()) + 1, dtype=np.int64)
    np.add.at(totals, group, counts)
    return totals[group]


def _held(
    codes: Integers,
    counts: Integers,
    k: int,
    known: Sequence[int] | None,
    common: np.ndarray,
) -> Integers:
    """How many records of each row stay: together k of every common known part.

    They are taken from the most frequent rows first.
    """
    held = np.zeros(len(counts), dtype=np.int64)
    group = _groups(codes, known)
    missing = np.full(int(group.max()) + 1, k, dtype=np.int64)
    for row in np.argsort(-counts, kind="stable").tolist():
        if common[row]:
            held[row] = min(int(counts[row]), int(missing[group[row]]))
            missing[group[row]] -= held[row]
    return held


def _merged(
    codes: Integers,
    free: Integers,
    items: Integers,
    common: np.ndarray,
    held: Integers,
    given: Sequence[int],
    time_limit: float,
    progress: Steps | None,
) -> Merged:
    """The moves of all records that may move."""
    # A plan's cost is a share of the changed cells.
    weights = np.full(codes.shape[1], 1.0 / codes.shape[1])
    weights[list(given)] = np.inf
    problem = Merging(
        items=codes[items],
        amounts=free[items],
        targets=codes[common],
        held=held[common],
        weights=weights,
        worst=WORST_PAIR,
        mean=AVERAGE_PAIR,
    )
    total = int(free.sum() + held.sum())

    def show(state: MergingProgress) -> None:
        if progress is not None:
            cost, bound = state.cost / total, state.bound / total
            progress(
                Step(
                    f"smallest groups, round {state.round}: {cost:.5f}, bound {bound:.5f}",
                    {"cost": cost, "bound": bound},
                )
            )

    try:
        return merge_rows(problem, time_limit=time_limit, progress=show)
    except EmptyPolytope as error:
        raise InputError(
            "records with some given values have no row to go to: no row with these values belongs "
            "to enough records. Ask for smaller groups (--smallest-group), or give fewer columns "
            "(--given)"
        ) from error
