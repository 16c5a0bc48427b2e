"""What is asked of a channel for boxes of rows: the frozen `BoxRequest`.

    BoxRequest(ALIP(0.5, 0.5), 0.95, given=1, rare=20)

asks for a promise about the population at 95 % confidence. The first group of columns is released
as it is, and sensitive values of a stratum with fewer than 20 records are promised together.

`designing.design_requested` makes one of the request of a user, for rows or for a column whose rare
symbols are merged, and `merge_proposals` those of its trials; `box_design.design_boxes` answers it
for a counted table.

*The rows of one stratum.* `StratumRecords` has the distinct rows. For example, with two released
columns,

    codes      secrets   learning   proving
    (0, 2)     0         3          30
    (0, 2)     1         1          12
    (1, 0)     0         2          15

say that 30 records with the symbols 0 and 2 and the sensitive value 0 are left for the proof, and
that 3 are in the slice. `GroupedRows` has the group of every sensitive value in its place, and
`GroupedRows.joint` counts by group and box: if the first two rows are in box 0, and the values 0
and 1 are groups of their own, the records of the proof are ((30, 15), (12, 0)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.progress import Steps
from mechdesign.core.wording import quoted
from mechdesign.notions import Notion
from mechdesign.tables.confidence import check_level
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import People
from mechdesign.tables.records import Records
from mechdesign.tables.row_boxes import BOX, Boxes, box_name
from solvers import Array

# ------------------------------------------------------------------------------ request

TRUTH: Literal["truth"] = "truth"
"""Outputs are boxes, and most records keep their own."""

INFORMATION: Literal["information"] = "information"
"""Outputs are free labels that keep most information."""

AUTO: Literal["auto"] = "auto"
"""The slice chooses which sensitive values are promised together."""


@dataclass(frozen=True)
class BoxRequest:
    """What is asked of a channel for boxes of rows.

    Parameters
    ----------
    notion : Notion
    level : float
        The confidence level of all strata together.
    given : int
        Number of groups of columns that are released as they are, the first ones of the records.
    objective : {"truth", "information"}
        Own boxes, most of them kept (`box_own`), or free labels with most information.
    keep_law : bool
        With the objective truth: whether every box is released as often as the table has it.
    cells : int, optional
        The number of boxes of every stratum; by default the slice chooses.
    rare : int or "auto"
        Sensitive values of a stratum with fewer records than this are promised together; "auto"
        lets the slice choose, where one column is released.
    fill : bool
        Whether rows of the table are released in place of boxes, drawn among those of the box.
    gap : float
        Gap of the searches, as a share of the entropy of the boxes.
    time_limit : float
        Seconds for all strata.
    seed : int, optional
        Repeats the draw of the slice.
    merge_below : int, optional
        The boxes of a single column are then its symbols, of which those with fewer records than
        this (by the slice) are one box.
    people : People, optional
        How a row is the sequence of a person's records, with which boxes are then filled.
    progress : callable, optional
        Called with each `Step` of the searches.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    notion: Notion
    level: float
    given: int = 0
    objective: str = INFORMATION
    keep_law: bool = True
    cells: int | None = None
    rare: int | Literal["auto"] = 0
    fill: bool = False
    gap: float = 1e-3
    time_limit: float = 30.0
    seed: int | None = None
    merge_below: int | None = None
    people: People | None = None
    progress: Steps | None = None

    def __post_init__(self) -> None:
        # A plain float: the exact level is read from its digits.
        object.__setattr__(self, "level", check_level(self.level))
        if self.objective not in (TRUTH, INFORMATION):
            raise InputError(
                f"--objective ({quoted(self.objective)}) must be truth or information for boxes of "
                "rows"
            )
        if self.cells is not None and self.cells < 2:
            raise InputError(
                f"--cells ({self.cells}) must be a number of boxes, at least 2"
            )
        if self.seed is not None and self.seed < 0:
            raise InputError(
                f"--slice-seed ({self.seed}) must be a whole number, at least 0"
            )
        if self.rare != AUTO and self.rare < 0:
            raise InputError(
                f"--rare ({self.rare}) must be a number of records, at least 0"
            )


# --------------------------------------------------------------------------------- rows


def entropy(masses: Array) -> float:
    """Entropy of masses that sum to 1."""
    positive = masses[masses > 0.0]
    return float(-(positive * np.log(positive)).sum())


def conditional_entropy(records: Records, given: int) -> float:
    """H(X | K) = H(K, X) - H(K) of the released columns; the first `given` groups are K."""
    return _entropy_of(records, len(records.groups)) - _entropy_of(records, given)


def _entropy_of(records: Records, groups: int) -> float:
    """Entropy of the first so many groups together."""
    if not groups:
        return 0.0
    # The same row occurs once for each of its sensitive symbols.
    _, place = np.unique(records.codes[:, :groups], axis=0, return_inverse=True)
    return entropy(np.bincount(place.ravel(), records.masses).astype(np.float64))


SLICE_SHARE = 0.1
"""Share of the records that boxes are learned on."""

MOST_LISTED = 10**7
"""Most records that are drawn from one by one, which takes 8 bytes each (`box_design`)."""


@dataclass(frozen=True)
class StratumRecords:
    """The distinct rows of a stratum, with their records of the slice and the other ones.

    Parameters
    ----------
    codes : (rows, columns) array
        Of the released columns.
    secrets : (rows,) array
        Codes of the sensitive values.
    learning, proving : (rows,) arrays
        Records of the slice and of the proof.
    """

    codes: Integers
    secrets: Integers
    learning: Integers
    proving: Integers

    @property
    def factor(self) -> int:
        """How many times as many records the proof has as the slice."""
        return max(round(int(self.proving.sum()) / max(int(self.learning.sum()), 1)), 1)

    def expected(self, size: int) -> NDArray[np.float64]:
        """(size,) records that each sensitive value is likely to have in the proof."""
        sums = np.bincount(self.secrets, self.learning, minlength=size)
        return (sums * ((1.0 - SLICE_SHARE) / SLICE_SHARE)).astype(np.float64)

    def entropy(self) -> float:
        """Entropy in nats of the released columns on the slice."""
        _, row = np.unique(self.codes, axis=0, return_inverse=True)
        sums = np.bincount(row.ravel(), self.learning)
        return entropy(sums / sums.sum())


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows of a stratum with the groups of their sensitive values, to be counted by box.

    Parameters
    ----------
    codes : (rows, columns) array
        Of the released columns.
    groups : (rows,) array
        The group of each row's sensitive value.
    names : sequence of str
        Of the groups.
    column : str
        Name of the sensitive column.
    """

    codes: Integers
    groups: Integers
    names: Sequence[str]
    column: str

    def sizes(self, boxes: Boxes, joint: Joint, weights: Integers) -> list[int]:
        """The records of each box of `joint`, in its order, with `weights` records of each row."""
        sums = np.bincount(boxes.of(self.codes), weights, minlength=len(boxes))
        by_name: dict[str, int] = {}
        for box, size in enumerate(sums.tolist()):
            by_name[box_name(box)] = int(size)
        return [by_name[name] for name in joint.useful.names]

    def joint(self, boxes: Boxes, weights: Integers) -> Joint | None:
        """The table of groups by boxes, with `weights` records of each row; None where a group has
        no record or one box has them all.
        """
        # A number for every cell of the table, row by row.
        cells = self.groups * len(boxes) + boxes.of(self.codes)
        sums = np.bincount(cells, weights, minlength=len(self.names) * len(boxes))
        table = sums.astype(np.int64).reshape(len(self.names), len(boxes))
        if not table.any(axis=1).all() or np.count_nonzero(table.any(axis=0)) < 2:
            # Then a constant is released, which keeps every promise.
            return None
        return Joint.from_counts(
            table,
            sensitive_labels=list(self.names),
            useful_labels=[box_name(box) for box in range(len(boxes))],
            sensitive=self.column,
            useful=BOX,
        )
