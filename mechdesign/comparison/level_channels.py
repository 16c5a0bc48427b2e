"""Channels of single levels, and the row that they release together.

A level is a column of a released row, or several columns that are released as one symbol. People
often give every level j a channel of its own, W_j(y | x), without regard to the others. The
released row then has the law

    P(s, k, y_1 .. y_m) = sum over x_1 .. x_m of P(s, k, x_1 .. x_m) W_1(y_1|x_1) .. W_m(y_m|x_m)

with S the sensitive column and K the columns that are given as they are
(`auditing.separate_columns`). `measured_way` computes this law and reads two figures from it:

- whether the row keeps its promise, in exact integers (`audit_separate`);
- the information I(X; Y | K) / H(X | K). Given its true symbol x_j an output depends on nothing
  else, so I(X; Y | K) = H(Y | K) - sum over j of H(Y_j | X_j) (`_kept_information`).

`unchanged_shares` needs no law: the expected share of unchanged cells of each column follows from
P(x_j) and W_j alone. Where both symbols of a column have the share 1/2, one stays with probability
0.9 and the other with 0.7, it is 0.8.

The law grows with the product of the numbers of outputs. Where it is too large, the verdict is that
on the first levels alone, and the information is not computed. If these levels break the promise,
all of them do; if they keep it, the verdict is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.rows import RowWorst
from mechdesign.auditing.separate_columns import (
    MOST_CELLS,
    audit_separate,
    cells_of,
    separate_law,
)
from mechdesign.auditing.verdict import Achieved
from mechdesign.core.integers import Integers
from mechdesign.mechanisms.row_entropy import conditional_entropy
from mechdesign.notions import Notion
from mechdesign.tables.records import Records
from mechdesign.tables.variable import Variable, column_names


@dataclass(frozen=True)
class RowWay:
    """One way to release the columns, and what it comes to.

    Attributes
    ----------
    name : str
    kept : float or None
        I(X; Y | K) / H(X | K) of all released columns together; None where the law of the released
        row is too large to compute.
    truth : dict or None
        Column to expected share of unchanged cells; None with free outputs.
    satisfied : bool or None
        Whether the row keeps its promise; None where that is not known.
    achieved : Achieved or None
        Log-lifts of the row (nats). At least these where not `complete`; at most these where
        `satisfied` rests on the sum of the parameters (`kept` is None).
    worst : RowWorst or None
        The released row that uses most of its budget.
    complete : bool
        Whether all columns were taken together. If not, `achieved` and `worst` are those of the
        first ones, `columns`: who sees more finds no less.
    columns : tuple of str
    epsilon : float or None
        Parameter of randomised response (nats).
    """

    name: str
    kept: float | None
    truth: dict[str, float] | None
    satisfied: bool | None
    achieved: Achieved | None
    worst: RowWorst | None
    complete: bool
    columns: tuple[str, ...]
    epsilon: float | None = None


@dataclass(frozen=True, eq=False)
class PromisedRows:
    """The counted rows of a table, and the promise about them.

    The groups of the records are the `given` columns K first, then the levels.
    """

    records: Records
    given: int
    promise: str
    notion: Notion

    @property
    def levels(self) -> tuple[Variable, ...]:
        """The variable of each level."""
        return self.records.groups[self.given :]

    def shares(self, level: int) -> NDArray[np.float64]:
        """P(x) of the symbols of a level."""
        codes = self.records.codes[:, self.given + level]
        size = len(self.levels[level])
        masses = np.bincount(codes, self.records.masses, minlength=size)
        return masses.astype(np.float64)


@dataclass(frozen=True, eq=False)
class LevelChannel:
    """A channel of one level.

    Attributes
    ----------
    matrix : (symbols, outputs) integers
        In proportion to W_j(y | x): every row has the same sum.
    texts : tuple of tuple of str
        The released text of each output; as many as the level has columns if outputs are symbols.
    """

    matrix: Integers
    texts: tuple[tuple[str, ...], ...]


def measured_way(
    rows: PromisedRows,
    channels: Sequence[LevelChannel],
    name: str,
    *,
    truth: dict[str, float] | None,
    epsilon: float | None = None,
) -> RowWay:
    """What separate channels come to together, as far as their law can be computed."""
    levels = _computable_levels(rows, channels)
    computed = channels[:levels]
    complete = levels == len(channels)
    verdict = audit_separate(
        rows.records,
        rows.given,
        rows.promise,
        rows.notion,
        [channel.matrix for channel in computed],
        [channel.texts for channel in computed],
    )
    # Further levels disclose more: the first ones can break the promise, but not keep it for all.
    satisfied: bool | None = verdict.satisfied
    kept: float | None = None
    if complete:
        kept = _kept_information(rows, channels)
    elif satisfied:
        satisfied = None
    return RowWay(
        name=name,
        kept=kept,
        truth=truth,
        satisfied=satisfied,
        achieved=verdict.achieved,
        worst=verdict.worst,
        complete=complete,
        columns=column_names(rows.records.groups[: rows.given + levels]),
        epsilon=epsilon,
    )


def is_computable(rows: PromisedRows, outputs: Sequence[int]) -> bool:
    """Whether the law is small enough for so many outputs of the first levels."""
    return cells_of(rows.records, rows.given, outputs) <= MOST_CELLS


def _computable_levels(rows: PromisedRows, channels: Sequence[LevelChannel]) -> int:
    """The largest number of first levels whose law can be computed, at least one."""
    outputs = [len(channel.texts) for channel in channels]
    levels = len(outputs)
    while levels > 1 and not is_computable(rows, outputs[:levels]):
        levels -= 1
    return levels


def _kept_information(rows: PromisedRows, channels: Sequence[LevelChannel]) -> float:
    """I(X; Y | K) / H(X | K), which is 0 where K tells X."""
    whole = conditional_entropy(rows.records, rows.given)
    if not whole > 0.0:
        return 0.0
    matrices = [channel.matrix for channel in channels]
    # (K, S, Y) in doubles.
    law = separate_law(rows.records, rows.given, matrices, exact=False).masses
    # H(Y | K) = H(K, Y) - H(K).
    information = _entropy(law.sum(axis=1)) - _entropy(law.sum(axis=(1, 2)))
    for level, matrix in enumerate(matrices):
        # H(Y_j | X_j) = sum over x of P(x) H(W_j(. | x)).
        noise = [_entropy(row / row.sum()) for row in matrix]
        information -= float(rows.shares(level) @ np.array(noise))
    # A difference of sums of rounded logarithms may miss the ends by a hair.
    return min(max(information / whole, 0.0), 1.0)


def _entropy(masses: NDArray[Any]) -> float:
    """Entropy in nats of probabilities."""
    positive = masses[masses > 0.0]
    return float(-(positive * np.log(positive)).sum())


def unchanged_shares(
    rows: PromisedRows, channels: Sequence[LevelChannel]
) -> dict[str, float]:
    """Column to expected share of unchanged cells, for channels whose outputs are symbols.

    It is the sum over x of P(x) times the mass of the outputs that have the text of x in this
    column: crossed symbols can differ and still agree in one of their columns.
    """
    truth: dict[str, float] = {}
    for level, channel in enumerate(channels):
        variable = rows.levels[level]
        law = channel.matrix / channel.matrix[0].sum()
        for part, name in enumerate(variable.columns):
            true = np.array([symbol[part] for symbol in variable.symbols], dtype=object)
            released = np.array([text[part] for text in channel.texts], dtype=object)
            agrees = true[:, None] == released[None, :]
            truth[name] = float(rows.shares(level) @ (law * agrees).sum(axis=1))
    return truth
