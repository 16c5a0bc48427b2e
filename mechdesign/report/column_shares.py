"""The share of unchanged cells of each released column, beside what constants would leave.

Without the share that stays if every record got the most frequent value, nobody can judge the
unchanged cells of a column of two values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mechdesign.auditing.unchanged import constant_truth_of_records
from mechdesign.report import wording
from mechdesign.tables.joint import Joint

HEADER = ("column", "unchanged", "if constant")
"""The header of the table of columns."""


def column_rows(truth: Mapping[str, float], joint: Joint) -> list[Sequence[str]]:
    """A line for each released column: its name, and both shares; `truth` is rounded down."""
    constant = constant_truth(joint)
    rows: list[Sequence[str]] = []
    for name, share in truth.items():
        rows.append(
            (
                wording.label(name),
                wording.percent_at_least(share),
                wording.percent(constant[name]),
            )
        )
    return rows


def constant_truth(joint: Joint) -> dict[str, float]:
    """For each column the share of the records that have its most frequent value."""
    if joint.useful.people is not None:
        return constant_truth_of_records(joint)
    cells = joint.useful.coded
    shares: dict[str, float] = {}
    for k, name in enumerate(cells.columns):
        masses = np.bincount(cells.codes[:, k], joint.p_x)
        shares[name] = float(masses.max())
    return shares
