"""What is asked of a channel for boxes of rows (`mechanisms.box_design`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mechdesign.core.errors import InputError
from mechdesign.core.progress import Steps
from mechdesign.notions import Notion
from mechdesign.tables.confidence import check_level

AUTO: Literal["auto"] = "auto"
"""The slice chooses which sensitive values are promised together."""


@dataclass(frozen=True)
class BoxRequest:
    """What is asked of a channel for boxes of rows.

    `cells` fixes the number of boxes of every part, `rare` is the number of records below which
    sensitive values of a stratum are promised together, or `AUTO` for a choice by the slice where
    one column is released, `fill` asks for symbols in the place of
    boxes, `seed` repeats the draw of the slice. With `merge_below` the boxes of a single column are
    its symbols, of which those with fewer records than this (by the slice) are one box.
    """

    notion: Notion
    level: float
    given: int = 0
    cells: int | None = None
    rare: int | Literal["auto"] = 0
    fill: bool = False
    gap: float = 1e-3
    time_limit: float = 30.0
    seed: int | None = None
    merge_below: int | None = None
    progress: Steps | None = None

    def __post_init__(self) -> None:
        check_level(self.level)
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
