"""Which rare sensitive values a promise takes together, as one value.

The frequency of a rare value is known only within a wide confidence interval, and this limits what
every channel may keep (docs/explanation/population.md, Proposition 6). Values that are promised
together are one value of S with the sum of their records.

The groups are chosen on the *slice*, a random part of the records that is set aside for such
choices (`box_design`). The intervals come from the other records, and hold whatever was chosen.
`expected` is what the slice suggests for these others: how many records each value will have.

There are two ways to choose, and in both the rarest values join first:

- `together_of` joins all values with fewer than `rare` records. Of 200, 30, 12 and 5 with `rare` 20
  these are 12 and 5. Their sum, 17, is still below 20, so 30 joins them: 200 and 30 + 12 + 5.
- `nested_groups` lists all groupings from the finest to two groups, for a caller that tries them in
  turn (`box_plan`).

A group is a tuple of positions in `expected`. In the example the result is ((0,), (1, 2, 3)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.wording import joined_name
from mechdesign.tables.variable import Variable


def together_of(
    expected: NDArray[np.float64], rare: int
) -> tuple[tuple[int, ...], ...]:
    """The groups where values with fewer than `rare` expected records are promised together.

    Where they are still too few together, the rarest other value joins them. Values that the slice
    does not have at all always count as rare. All others are groups of their own.
    """
    # From the rarest on; equal ones in the order of the table, so that the groups are repeatable.
    order = np.argsort(expected, kind="stable").tolist()
    # Above zero, so that values without a record in the slice are rare whatever `rare` is.
    least = max(float(rare), 1e-9)
    joined = [s for s in order if expected[s] < least]
    others = [s for s in order if expected[s] >= least]
    while joined and others and sum(expected[s] for s in joined) < least:
        joined.append(others.pop(0))
    groups = [(s,) for s in others]
    if joined:
        groups.append(tuple(sorted(joined)))
    return tuple(sorted(groups))


def nested_groups(
    expected: NDArray[np.float64],
) -> list[tuple[tuple[int, ...], ...]]:
    """Groupings of sensitive values from the finest on: in each the next rarest value joins, until
    two groups are left.

    Of 200, 30, 12 and 5 expected records these are all four apart; then 12 + 5; then 30 + 12 + 5.
    """
    order = np.argsort(expected, kind="stable").tolist()
    # Values that the slice does not have are together from the start.
    groupings = [together_of(expected, 0)]
    joined = max(len(group) for group in groupings[0])
    for size in range(joined + 1, len(order)):
        groups = [(s,) for s in order[size:]]
        groups.append(tuple(sorted(order[:size])))
        groupings.append(tuple(sorted(groups)))
    return groupings


def names_of_groups(
    sensitive: Variable, together: Sequence[Sequence[int]]
) -> list[str]:
    """A name for every group of sensitive values."""
    names: list[str] = []
    for members in together:
        names.append(joined_name([sensitive.names[s] for s in members]))
    return names
