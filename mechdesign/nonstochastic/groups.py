"""Groups of records, collected batch by batch: sizes, exact sums or order statistics, and members.

1. `Groups.add` numbers the groups of a batch in the order of their appearance, counts their
   records, and passes the values on: to `ExactSums`, or to `OrderedValues` for order statistics.
2. After the last batch `totals` or `ranked` gives the exact answers, as integers of one unit.
3. `most_answers` and `patterns` say how much a single individual takes part (`Memberships`).

For example, the records (Ulm, 1.5), (Kiel, 2) and (Ulm, 3) are in the groups 0, 1 and 0. The `keys`
are (Ulm,) and (Kiel,), the sizes 2 and 1, and the sums 4.5 and 2.

Memory grows with the groups and the individuals, not with the records; the values that order
statistics need, and the members of groups, spill into a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.formats.cells import Encoded
from mechdesign.formats.distinct import Numbering
from mechdesign.nonstochastic.exact_sums import (
    Codes,
    ExactSums,
    Floats,
    Indices,
    Multiples,
    grown,
)
from mechdesign.nonstochastic.memberships import Memberships
from mechdesign.nonstochastic.order_statistics import OrderedValues


class Groups:
    """Exact sums and sizes of groups, or all their values, and the individuals in them.

    Parameters
    ----------
    ordered
        Keep all values for order statistics (`ranked`), and no sums (`totals`).
    """

    def __init__(self, *, ordered: bool = False) -> None:
        self._numbering = Numbering()
        self._sizes: Codes = np.zeros(0, dtype=np.int64)
        self._ordered = ordered
        self._sums = ExactSums()
        self._values = OrderedValues()
        self._memberships = Memberships()

    def __len__(self) -> int:
        return len(self._numbering)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The groups in order of appearance."""
        return list(self._numbering.texts)

    @property
    def sizes(self) -> list[int]:
        """Records of each group."""
        # The array has room for further groups.
        return self._sizes[: len(self)].tolist()

    def add(
        self,
        keys: Sequence[Encoded],
        values: Floats,
        person: Encoded | None = None,
        left_out: NDArray[np.bool_] | None = None,
    ) -> Codes:
        """Add a batch, and return the group of each record.

        Parameters
        ----------
        keys
            The columns that name the group; without any, all records are one group.
        values : (n,) array
            The number of each record.
        person
            The column that names the individual.
        left_out : (n,) truth values
            Records without a value inside the range. Their individuals are members of the group all
            the same: with another value they would have been in the answer.
        """
        if not keys:
            keys = [Encoded(np.zeros(values.size, np.int64), ("",))]
        all_groups = self._numbering.number(keys)
        if person is not None:
            self._memberships.add(person, all_groups)
        group = all_groups
        if left_out is not None:
            group = group[~left_out]
            values = values[~left_out]
        # Few groups are summed over all their numbers; many, over those that occur in the batch.
        present = np.arange(len(self))
        member = group
        if present.size > values.size:
            present, member = np.unique(group, return_inverse=True)
        self._sizes = grown(self._sizes, len(self))
        self._sizes[present] += np.bincount(member, minlength=present.size)
        if self._ordered:
            self._values.add(group, values)
        else:
            self._sums.add(len(self), present, member, values)
        return all_groups

    def totals(self) -> Multiples:
        """The exact sum of each group."""
        return self._sums.totals(len(self))

    def ranked(self, ranks: Callable[[int], tuple[int, int]]) -> Multiples:
        """The mean of two order statistics of each group (see `OrderedValues.ranked`)."""
        return self._values.ranked(self._sizes[: len(self)], ranks)

    def most_answers(self, *, single: bool = False) -> int | None:
        """The most answers that one individual takes part in (see `Memberships.most_answers`)."""
        return self._memberships.most_answers(len(self), single=single)

    def patterns(self) -> tuple[list[int], Indices]:
        """The distinct sizes of groups, and the kinds of individuals in them.

        See `Memberships.patterns`.
        """
        return self._memberships.patterns(self._sizes[: len(self)])
