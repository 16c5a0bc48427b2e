"""What is asked of a channel for boxes of rows: the frozen `BoxRequest`.

    BoxRequest(ALIP(0.5, 0.5), 0.95, given=1, rare=20)

asks for a promise about the population at 95 % confidence. The first group of columns is released
as it is, and sensitive values of a stratum with fewer than 20 records are promised together.

`designing.design_requested` makes one of the request of a user, for rows or for a column whose rare
symbols are merged, and `merge_proposals` those of its trials; `box_design.design_boxes` answers it
for a counted table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mechdesign.core.errors import InputError
from mechdesign.core.progress import Steps
from mechdesign.core.wording import quoted
from mechdesign.notions import Notion
from mechdesign.tables.confidence import check_level
from mechdesign.tables.people import People

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
                f"objective ({quoted(self.objective)}) must be truth or information for boxes of "
                "rows"
            )
        if self.cells is not None and self.cells < 2:
            raise InputError(
                f"cells ({self.cells}) must be a number of boxes, at least 2"
            )
        if self.seed is not None and self.seed < 0:
            raise InputError(
                f"slice_seed ({self.seed}) must be a whole number, at least 0"
            )
        if self.rare != AUTO and self.rare < 0:
            raise InputError(
                f"rare ({self.rare}) must be a number of records, at least 0"
            )
