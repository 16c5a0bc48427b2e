"""How many cells of released rows are those of their records, exactly.

A channel W of a table with the counts c_x releases the row y for the row x. The expected share of
unchanged cells of a column is

    sum over x of c_x / N  times  sum of W(y|x) over the y whose cell is that of x

For example, of 3 records (a) and 1 (b) all but half of the last one keep their row: 7/8.

Everything is computed in integers; only the shares are rounded, downwards.

*People.* In the folded table a person with fewer records has the cell `ABSENT` at the other places,
which never changes. It is no cell of a record, so it must not count as one that is kept: with a
share t of unchanged cells at a place and a share a of people who have no record there, the records
at this place keep t - a, of the 1 - a that there are.

*Boxes.* `box_truth` adds up, part by part of the channel, the expected number of unchanged cells of
each column among the records of the proof, and divides by the number of records. With the n_bx
records of the box b that have the symbol x in the column, the number is

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

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.core.balls import quotient_above
from mechdesign.core.integers import NOWHERE, Integers
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, People, at_place
from mechdesign.tables.row_boxes import box_name

# ------------------------------------------------------------------------------- people


def truth_of_records(joint: Joint, truth: Mapping[str, float]) -> dict[str, float]:
    """The expected share of unchanged cells of each released column of a record.

    Parameters
    ----------
    joint : Joint
        Of people.
    truth : mapping of folded column to share
        Lower bounds of the shares of unchanged cells among all people.

    Returns
    -------
    dict of column to share
        Rounded down.
    """
    people = joint.useful.people
    if people is None:
        raise TypeError("the table has no people")
    place_of_length = joint.useful.columns.index(RECORDS)
    # How many people have a record at each place.
    present = [0] * people.longest
    for symbol, count in zip(joint.useful.symbols, joint.useful_counts, strict=True):
        for place in range(int(symbol[place_of_length])):
            present[place] += count
    records = sum(present)
    shares: dict[str, float] = {}
    for name in people.released:
        kept = 0.0
        for place, count in enumerate(present):
            absent = joint.total - count
            kept += truth[at_place(name, place)] * joint.total - absent
        # The sum of so many doubles errs by less than one unit in 2^40.
        shares[name] = max(0.0, kept / records * (1.0 - 2.0**-40) - 2.0**-40)
    return shares


def constant_truth_of_records(joint: Joint) -> dict[str, float]:
    """For each column of a record the share of the records that have its most frequent value."""
    people = joint.useful.people
    if people is None:
        raise TypeError("the table has no people")
    places = {name: k for k, name in enumerate(joint.useful.columns)}
    shares: dict[str, float] = {}
    for name in people.columns:
        columns = [places[at_place(name, place)] for place in range(people.longest)]
        times: Counter[str] = Counter()
        for symbol, count in zip(
            joint.useful.symbols, joint.useful_counts, strict=True
        ):
            for column in columns[: int(symbol[places[RECORDS]])]:
                times[symbol[column]] += count
        shares[name] = max(times.values()) / times.total()
    return shares


# -------------------------------------------------------------------------------- cells


def unchanged_cells(channel: Channel, joint: Joint) -> dict[str, float]:
    """The expected share of unchanged cells of each released column, rounded down.

    Given columns never change, and are left out. Of people with several records these are the
    columns and cells of their records.

    Parameters
    ----------
    channel : Channel
        One that releases rows of its useful columns.
    joint : Joint
        The table, for the records of each row.
    """
    integers = channel.integers
    row_of = integers.row_of
    index = channel.useful.index
    # The symbols that outputs are, where all of them are some.
    places = [index.get(cells, NOWHERE) for cells in channel.output_cells]
    symbols = np.array(places)
    mean_below = _MeanOfRecords(channel.row_totals, joint.useful_counts)
    truth: dict[str, float] = {}
    for k, name in enumerate(channel.useful.columns):
        if name in channel.given:
            continue
        if NOWHERE in places:
            before, after = _numbered(channel, k)
        else:
            before = channel.useful.coded.codes[:, k]
            after = before[symbols]
        is_same = before[row_of] == after[integers.indices]
        # No sum exceeds the total of its row, which fits.
        same = np.zeros(len(before), dtype=np.int64)
        np.add.at(same, row_of[is_same], integers.values[is_same])
        truth[name] = mean_below(same.tolist())
    if joint.useful.people is not None:
        return truth_of_records(joint, truth)
    return truth


def share_of_cells(truth: dict[str, float]) -> float:
    """The share of unchanged cells of all columns, whatever they weigh in the cost of a design."""
    return sum(truth.values()) / max(len(truth), 1)


def _numbered(channel: Channel, column: int) -> tuple[Integers, Integers]:
    """The texts of inputs and outputs in a column by one numbering."""
    coded = channel.useful.coded
    numbers = {text: place for place, text in enumerate(coded.texts[column])}
    released = [
        numbers.setdefault(cells[column], len(numbers))
        for cells in channel.output_cells
    ]
    return coded.codes[:, column], np.array(released)


class _MeanOfRecords:
    """The mean over all records of what has a share of the total of its row.

    Of a channel that keeps the law all c_x / total_x are one number, so there is one sum.
    """

    def __init__(self, totals: Sequence[int], counts: Sequence[int]) -> None:
        divisors = list(map(math.gcd, totals, counts))
        self._bottoms = [t // d for t, d in zip(totals, divisors, strict=True)]
        self._factors = [c // d for c, d in zip(counts, divisors, strict=True)]
        self._common = math.lcm(*set(self._bottoms))
        self._whole = self._common * sum(counts)

    def __call__(self, parts: Sequence[int]) -> float:
        """The mean of parts[x] / totals[x], rounded down."""
        sums: dict[int, int] = defaultdict(int)
        shares = zip(self._bottoms, self._factors, parts, strict=True)
        for bottom, factor, part in shares:
            sums[bottom] += part * factor
        whole = sum(value * (self._common // b) for b, value in sums.items())
        return 0.0 - quotient_above(-whole, self._whole)


# -------------------------------------------------------------------------------- boxes


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
    if channel.box_utility is None:
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
    # A sum of rounded probabilities can exceed 1.
    return tuple(np.minimum(unchanged / _proven_records(channel), 1.0).tolist())


def unchanged_cells_of_boxes(channel: Channel) -> dict[str, float] | None:
    """The expected share of unchanged cells of each released column, as of rows; of crossed columns
    under their names with commas.
    """
    truth = box_truth(channel)
    if truth is None:
        return None
    if channel.people is not None:
        return _of_box_records(channel, channel.people, truth)
    names = [",".join(variable.columns) for variable in channel.boxed.coder.columns]
    return dict(zip(names, truth, strict=True))


def _proven_records(channel: Channel) -> int:
    """The records of the proof: the boxes were made of a slice of the others."""
    claims = channel.boxed.claims
    if claims.utility is None:
        raise TypeError("a public channel has no counts")
    return claims.utility.records - claims.slice_records


def _of_box_records(
    channel: Channel, people: People, truth: Sequence[float]
) -> dict[str, float]:
    """The same of the columns of a record, among the records that are released as some; `truth` is
    that of the folded columns, which counts places that a person does not have as unchanged.
    """
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
    proven = _proven_records(channel)
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
    # Loads the samplers, which audits of other channels do not need.
    from mechdesign.release.samplers import law_of_boxes

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
