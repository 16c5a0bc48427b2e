"""How many cells of released rows are those of their records, exactly.

A channel W of a table with the counts c_x releases the row y for the row x. The expected share of
unchanged cells of a column is

    sum over x of c_x / N  times  sum of W(y|x) over the y whose cell is that of x

For example, of 3 records (a) and 1 (b) all but half of the last one keep their row: 7/8.

Everything is computed in integers; only the shares are rounded, downwards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mechdesign.auditing.people_truth import truth_of_records
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import quotient_above
from mechdesign.core.integers import Integers
from mechdesign.tables.joint import Joint


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
    counts = joint.useful_counts
    truth: dict[str, float] = {}
    for k, name in enumerate(channel.useful.columns):
        if name in channel.given:
            continue
        before, after = _numbered(
            [symbol[k] for symbol in channel.useful.symbols],
            [cells[k] for cells in channel.output_cells],
        )
        is_same = before[integers.row_of] == after[integers.indices]
        # No sum exceeds the total of its row, which fits.
        same = np.zeros(len(counts), dtype=np.int64)
        np.add.at(same, integers.row_of[is_same], integers.values[is_same])
        truth[name] = _mean_below(same.tolist(), channel.row_totals, counts)
    if joint.useful.people is not None:
        return truth_of_records(joint, truth)
    return truth


def share_of_cells(truth: dict[str, float]) -> float:
    """The share of unchanged cells of all columns, whatever they weigh in the cost of a design."""
    return sum(truth.values()) / max(len(truth), 1)


def _numbered(
    inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[Integers, Integers]:
    """The texts of inputs and outputs by one numbering."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in (*inputs, *outputs)]
    return np.array(codes[: len(inputs)]), np.array(codes[len(inputs) :])


def _mean_below(
    parts: Sequence[int], totals: Sequence[int], counts: Sequence[int]
) -> float:
    """The mean of parts[x] / totals[x] over all records, rounded down."""
    # Of a channel that keeps the law all c_x / total_x are one number, so there is one sum.
    sums: dict[int, int] = defaultdict(int)
    for part, total, count in zip(parts, totals, counts, strict=True):
        divisor = math.gcd(total, count)
        sums[total // divisor] += part * (count // divisor)
    common = math.lcm(*sums)
    whole = sum(value * (common // total) for total, value in sums.items())
    return 0.0 - quotient_above(-whole, common * sum(counts))
