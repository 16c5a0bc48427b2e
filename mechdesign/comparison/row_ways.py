"""A row channel beside what people do with several columns today.

`compare_rows` releases the same columns of the same table in three ways, and tells of each what it
keeps and whether the row keeps its promise:

- The *row channel* is the design of `design_rows`, whose promise is about the whole row.
- *Each column by itself* has a channel for every level (`_separate_channel`), designed at the whole
  budget as if the others were not there. Together they may break the promise: two columns that
  each double a belief can make it four times as likely. `level_channels.measured_way` computes the
  exact verdict on the whole row.
- *Randomised response* has one parameter for all columns, the largest with which the row keeps its
  promise on this table (`row_response`).

Two columns of two symbols each at LIP 0.2 may give: ::

    way                    satisfied  kept    eps_l   eps_u
    row channel            True       0.1038  0.2000  0.1666
    each column by itself  False      0.1929  0.4158  0.2929    (each alone keeps 0.2)
    randomised response    True       0.0471  0.2000  0.1666
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.auditing.row_masses import table_on
from mechdesign.comparison.level_channels import (
    LevelChannel,
    PromisedRows,
    RowWay,
    measured_way,
    unchanged_shares,
)
from mechdesign.comparison.row_response import RESPONSE, randomised_response
from mechdesign.core.display import Displayed
from mechdesign.core.progress import Steps
from mechdesign.core.wording import about
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.row_node import TRUTH
from mechdesign.mechanisms.row_request import GIVEN, TIME_LIMIT
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.mechanisms.rows import design_rows
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Groups
from mechdesign.tables.tally import Missing

__all__ = [
    "ALONE",
    "RESPONSE",
    "ROWS",
    "RowComparison",
    "RowWay",
    "compare_rows",
]

ROWS = "row channel"
ALONE = "each column by itself"


@dataclass(frozen=True, repr=False)
class RowComparison(Displayed):
    """A row channel and the two ways of today, for one table and one promise."""

    design: RowDesign
    ways: tuple[RowWay, ...]
    seconds: float

    def __repr__(self) -> str:
        parts = [f"{way.name}: {_kept_text(way)}" for way in self.ways]
        return f"RowComparison({'; '.join(parts)})"

    def columns(self) -> dict[str, list[Any]]:
        """The ways as a table, by columns: budgets in nats, None for what was not computed."""
        table: dict[str, list[Any]] = {"way": [way.name for way in self.ways]}
        for name in ("satisfied", "complete", "kept"):
            table[name] = [getattr(way, name) for way in self.ways]
        for side in ("eps_l", "eps_u", "eps_ldp"):
            table[side] = [getattr(way.achieved, side, None) for way in self.ways]
        # A way with free outputs has no truth; those that have it name the same columns.
        for k, way in enumerate(self.ways):
            for name, share in (way.truth or {}).items():
                shares = table.setdefault(f"truth of {name}", [None] * len(self.ways))
                shares[k] = share
        return table


def _kept_text(way: RowWay) -> str:
    if way.kept is None:
        return "information not computed"
    return f"kept {about(way.kept)}"


def compare_rows(
    table: Any,
    *,
    sensitive: str | Sequence[str],
    release: Groups,
    notion: Notion,
    given: str | Sequence[str] = (),
    promise: str = "total",
    objective: str = TRUTH,
    order: str = GIVEN,
    least_mass: float | None = None,
    bins: Any = None,
    weight: str | None = None,
    missing: Missing = "refuse",
    time_limit: float | None = None,
    progress: Steps | None = None,
) -> RowComparison:
    """Compare a row channel with two ways to release several columns that are usual today.

    Every channel is verified in exact arithmetic, and the promise that separate columns break is
    computed so. Where the law of the released row has more than `MOST_CELLS` cells, it is computed
    for the first columns alone, which gives a lower limit; randomised response then has the
    parameter min(eps) / levels, with which no table can break the promise.

    Parameters
    ----------
    table, sensitive, release, notion, given, promise, objective, order, least_mass, bins, weight, \
            missing : as for `design_rows`
    time_limit : float, optional
        Seconds for each search: that of the row channel, and that of every single column.
    progress : callable, optional

    Returns
    -------
    RowComparison
        Its `ways` are the row channel, each column by itself, and randomised response.

    Raises
    ------
    InputError, NotPrivate, SolverFailure
        As `design_rows` does.
    """
    started = time.perf_counter()
    design = design_rows(
        table,
        sensitive=sensitive,
        release=release,
        notion=notion,
        given=given,
        promise=promise,
        objective=objective,
        order=order,
        least_mass=least_mass,
        bins=bins,
        weight=weight,
        missing=missing,
        time_limit=time_limit,
        progress=progress,
    )
    if not isinstance(design, RowDesign):
        raise TypeError("without a confidence level a design of rows is a tree")
    records = table_on(design.channel)
    rows = PromisedRows(records, len(design.channel.given), promise, notion)
    seconds = TIME_LIMIT
    if time_limit is not None:
        seconds = time_limit
    ways = (
        _row_channel_way(design),
        _separate_way(rows, objective, seconds),
        randomised_response(rows),
    )
    return RowComparison(design, ways, time.perf_counter() - started)


def _row_channel_way(design: RowDesign) -> RowWay:
    """The row channel, whose figures are those of its design."""
    return RowWay(
        name=ROWS,
        kept=design.nmi,
        truth=design.truth,
        satisfied=design.audit.satisfied,
        achieved=design.achieved,
        worst=design.audit.worst,
        complete=True,
        columns=design.channel.released_columns,
    )


def _separate_way(rows: PromisedRows, objective: str, seconds: float) -> RowWay:
    """A channel for every level, as if the others were not there."""
    channels: list[LevelChannel] = []
    for level in range(len(rows.levels)):
        channels.append(_separate_channel(rows, level, objective, seconds))
    truth: dict[str, float] | None = None
    if objective == TRUTH:
        truth = unchanged_shares(rows, channels)
    return measured_way(rows, channels, ALONE, truth=truth)


def _separate_channel(
    rows: PromisedRows, level: int, objective: str, seconds: float
) -> LevelChannel:
    """The design of one level alone, at the whole budget."""
    records = rows.records
    codes = records.codes[:, rows.given + level]
    counts = np.zeros((len(records.sensitive), len(rows.levels[level])), dtype=object)
    # Rows that differ in other columns share a cell here: `add.at` adds all of them up, in the
    # integers of Python, so that the table is exact.
    np.add.at(counts, (records.secrets, codes), records.integers)
    joint = Joint(
        records.sensitive,
        rows.levels[level],
        tuple(tuple(row) for row in counts.tolist()),
        is_counts=records.is_counts,
    )
    request = DesignRequest(
        joint,
        rows.notion,
        objective=objective,
        time_limit=seconds,
        allow_identifier=True,
    )
    channel = design_requested(request).channel
    texts = tuple((name,) for name in channel.outputs)
    if objective == TRUTH:
        # The outputs are the column's own symbols, by their joined names.
        symbols = dict(zip(channel.useful.names, channel.useful.symbols, strict=True))
        texts = tuple(symbols[name] for name in channel.outputs)
    return LevelChannel(channel.integers.dense, texts)
