"""How many cells a channel for boxes leaves as they are, in expectation.

`box_truth` adds up, part by part of the channel, the expected number of unchanged cells of each
column among the records of the proof, and divides by the number of records. With the n_bx records
of the box b that have the symbol x in the column, the number is

- where boxes are filled with symbols (`_filled`): the sum over b, c and x of n_bx L_bc F_cx. The
  box b is filled as c with the probability L_bc, and x is drawn again in c with F_cx.
- where boxes are released as labels (`_labelled`): the sum of n_b L_bb over the boxes b that hold
  one symbol alone.

For example, of 100 records 60 are in the box {a}, and 40 in the box {a, b}, 10 of them with a. A
box is released as itself with 0.9, else as the other, and {a, b} is filled with a in one of four
records. As labels 60 * 0.9 cells are told, a share of 0.54. Filled, the cells of {a} that stay are
60 (0.9 + 0.1 / 4) = 55.5, those of {a, b} 10 (0.1 + 0.9 / 4) + 30 * 0.9 * 3/4 = 23.5: a share of
0.79.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.release.samplers import law_of_boxes
from mechdesign.tables.people import People, at_place
from mechdesign.tables.row_boxes import box_name


def box_truth(channel: Channel) -> tuple[float, ...] | None:
    """The expected share of unchanged cells of each column, among the records of the proof.

    Where symbols are released, a cell is unchanged if it is released as its own symbol. Where boxes
    are released, a cell is unchanged if its own box is released, and holds a single symbol of the
    column: whoever reads the box then knows the cell.

    Returns
    -------
    tuple of float, or None
        One for each variable of the boxes; None for a public channel, which has no counts.
    """
    if channel.boxed.claims.utility is None:
        return None
    unchanged = np.zeros(len(channel.boxed.coder.columns))
    for part in channel.parts:
        # A part without a channel releases nothing.
        if part.channel is None:
            continue
        # Without the counts of the symbols in each box the number cannot be known.
        if not part.inside:
            return None
        if part.fill:
            unchanged += _filled(part, part.channel)
        else:
            unchanged += _labelled(channel, part, part.channel)
    # The boxes were made of a slice of the records, which the proof does not count.
    records = channel.boxed.claims.utility.records - channel.boxed.claims.slice_records
    # A sum of rounded probabilities can exceed 1.
    return tuple(np.minimum(unchanged / records, 1.0).tolist())


def box_truth_of_records(
    channel: Channel, people: People, truth: Sequence[float]
) -> dict[str, float]:
    """The same of the columns of a record, among the records that are released as some; `truth` is
    that of the folded columns, which counts places that a person does not have as unchanged.
    """
    if channel.boxed.claims.utility is None:
        raise TypeError("a public channel has no counts")
    lengths = channel.boxed.coder.given[0].symbols
    # How many people of the proof have a record at each place, and how many have none there.
    present = [0] * people.longest
    absent = [0] * people.longest
    for part in channel.parts:
        if part.channel is None or part.channel.joint is None:
            continue
        length = int(lengths[part.stratum[0]][0])
        for place in range(people.longest):
            counted = present if place < length else absent
            counted[place] += part.channel.joint.total
    proven = channel.boxed.claims.utility.records - channel.boxed.claims.slice_records
    names = [
        name for variable in channel.boxed.coder.columns for name in variable.columns
    ]
    truth_of = dict(zip(names, truth, strict=True))
    shares: dict[str, float] = {}
    for name in people.released:
        kept = sum(
            truth_of[at_place(name, place)] * proven - absent[place]
            for place in range(people.longest)
        )
        shares[name] = min(max(kept / max(sum(present), 1), 0.0), 1.0)
    return shares


def _filled(part: BoxPart, channel: Channel) -> NDArray[np.float64]:
    """The expected number of cells of each column that are drawn as they were.

    Of a record of box b, box c is filled with probability L_bc, and symbol x is drawn in c with
    probability F_cx. So the n_bx records of b with x give sum_bcx n_bx L_bc F_cx.
    """
    law = law_of_boxes(part, channel)
    unchanged: list[float] = []
    for k in range(len(part.inside[0])):
        counts = np.array([box[k] for box in part.inside], float)
        drawn = np.zeros(counts.shape)
        for box, rows in enumerate(part.fill):
            table = np.array(rows, dtype=np.int64)
            np.add.at(drawn[box], table[:, k], table[:, -1])
            drawn[box] /= drawn[box].sum()
        unchanged.append(float((law * (counts @ drawn.T)).sum()))
    return np.array(unchanged)


def _labelled(channel: Channel, part: BoxPart, labels: Channel) -> NDArray[np.float64]:
    """The expected number of cells of each column that their own released box tells."""
    # The integer of each box on its own label; a box without records has none.
    entries = dict(zip(labels.useful.names, labels.own_entries, strict=True))
    unchanged = np.zeros(len(channel.boxed.coder.columns))
    for box, members in enumerate(channel.boxed.coder.members(part.boxes)):
        own_label = entries.get(box_name(box), 0) / labels.denominator
        # All columns have the same records.
        records = sum(part.inside[box][0])
        for k in range(len(channel.boxed.coder.columns)):
            if _is_single(channel, members, k):
                unchanged[k] += own_label * records
    return unchanged


def _is_single(
    channel: Channel, members: dict[int, tuple[set[int], bool]], column: int
) -> bool:
    """Whether a box has one symbol of a column, and no room for any other."""
    # The box does not split on this column, so it holds every symbol that there is.
    if column not in members:
        return len(channel.boxed.coder.columns[column]) == 1
    inside, is_closed = members[column]
    return is_closed and len(inside) == 1
