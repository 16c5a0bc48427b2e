"""What a released box tells of each column by itself: H(X_j | K) and I(X_j; Y | K).

For every stratum k and column X_j the masses P(x_j, box) are counted, and multiplied by the channel
of the boxes to P(x_j, y): given its box, an output does not depend on the row. The means over the
strata of the entropies and informations of these tables are the figures.

For example, a symbol has 30 records in box 0 and 10 in box 1, and the channel releases the boxes as
they are with probability 0.8 and 0.7, and else the other one. Then it has 30 * 0.8 + 10 * 0.3 = 27
records of output 0 and 13 of output 1.

`box_design` calls `columns_kept` once the parts of a design are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.box_channel import BoxPart, box_name
from mechdesign.channel.box_utility import ColumnKept
from mechdesign.core.integers import Integers
from mechdesign.mechanisms.box_entropy import entropy
from mechdesign.tables.records import Records

Floats = NDArray[np.float64]


def columns_kept(
    records: Records, given: int, parts: Sequence[BoxPart], counts: Integers
) -> tuple[ColumnKept, ...]:
    """H(X_j | K) and I(X_j; Y | K) of every column behind the first `given` groups.

    Parameters
    ----------
    records : Records
    given : int
        Number of given groups.
    parts : sequence of BoxPart
        Rows without a part release nothing.
    counts : (rows,) array
        Records of each row that count.
    """
    part_of = {part.stratum: part for part in parts}
    strata, stratum_of_row = np.unique(
        records.codes[:, :given], axis=0, return_inverse=True
    )
    total = float(counts.sum())
    size = len(records.groups) - given
    entropies = np.zeros(size)
    kept = np.zeros(size)
    for number, stratum in enumerate(strata.tolist()):
        rows = np.flatnonzero(stratum_of_row.ravel() == number)
        mass = float(counts[rows].sum()) / total
        if mass == 0.0:
            # All records of this stratum are in the slice, and none of them counts.
            continue
        codes = records.codes[rows][:, given:]
        part = part_of.get(tuple(stratum))
        for column in range(size):
            sums = np.bincount(codes[:, column], counts[rows])
            entropies[column] += mass * entropy(sums / sums.sum())
            # Without a channel the stratum releases its given columns alone: nothing of X_j.
            if part is not None and part.channel is not None:
                joint = _joint(part, codes, column, counts[rows])
                kept[column] += mass * _information(joint)
    columns: list[ColumnKept] = []
    for variable, most, value in zip(
        records.groups[given:], entropies.tolist(), kept.tolist(), strict=True
    ):
        # I(X; Y) is at most H(X), but rounding may put it above.
        columns.append(ColumnKept(variable.columns, most, min(value, most)))
    return tuple(columns)


def _joint(part: BoxPart, codes: Integers, column: int, counts: Integers) -> Floats:
    """(symbols, outputs) masses of a column's true symbol and the released output."""
    table = np.zeros((int(codes[:, column].max()) + 1, len(part.boxes)))
    np.add.at(table, (codes[:, column], part.boxes.of(codes)), counts)
    return table @ output_laws(part)


def output_laws(part: BoxPart) -> Floats:
    """(boxes, outputs) law of the output of every box; of a box without records that of all.

    The part must have a channel with its counts.
    """
    channel = part.channel
    if channel is None or channel.joint is None:
        raise TypeError("a part without a channel and counts has no laws of outputs")
    rows = dict(zip(channel.useful.names, channel.matrix, strict=True))
    shares = channel.joint.p.sum(axis=0)
    by_name = dict(zip(channel.joint.useful.names, shares, strict=True))
    marginal = np.zeros(len(channel.outputs))
    # A box without records is an unseen symbol: it is released by the law of all outputs.
    for name, share in by_name.items():
        marginal += share * rows[name]
    names = [box_name(box) for box in range(len(part.boxes))]
    return np.array([rows.get(name, marginal) for name in names])


def _information(joint: Floats) -> float:
    """I(X; Y) = H(X) + H(Y) - H(X, Y) in nats, of a table of masses that need not sum to one."""
    law = joint / joint.sum()
    both = entropy(law.ravel())
    # Rounding can make an information of 0 negative.
    return max(0.0, entropy(law.sum(axis=0)) + entropy(law.sum(axis=1)) - both)
