"""The channels that were compared for a purpose, in words and as a record.

Every row is a channel that was made for something, and the figure of the purpose that it reaches.
The last sentence has the proven bound on that figure, which no channel with the promise can pass.
For a task the figure is a share that should be large, I(T;Y) / I(T;X); for queries it is a variance
that should be small.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from mechdesign.comparison.purpose_ways import PurposeComparison
from mechdesign.core.wording import at_least, at_most
from mechdesign.mechanisms.result import QueryAccuracy, TaskUtility
from mechdesign.report import layout, wording

NOT_TOLD = "not told"
"""In the place of a variance that is infinite."""


def purpose_comparison_text(comparison: PurposeComparison) -> str:
    """The table of the channels and the bound; without a final newline."""
    joint = comparison.design.channel.joint
    assert joint is not None
    purpose = comparison.design.purpose
    useful = wording.title(joint.useful.columns)
    if isinstance(purpose, TaskUtility):
        heading = "of the task"
        lead = (
            f"{useful} is released to tell of {wording.title((purpose.column,))}: the share of "
            f"what {useful} itself tells of it."
        )
        proof = (
            "No channel with this promise keeps more than "
            f"{wording.percent_at_most(purpose.task_upper_bound)} of it (proven)."
        )
    else:
        assert isinstance(purpose, QueryAccuracy)
        heading = "N x variance"
        lead = (
            f"{useful} is released to estimate {purpose.name}: the total variance of the "
            "estimates, times the number N of released records."
        )
        proof = (
            "No channel with this promise has less than "
            f"{at_least(purpose.variance_lower_bound)} (proven); {useful} itself has "
            f"{at_least(purpose.noise_free)}."
        )
    rows = [["channel", heading, "information", "outputs"]]
    for way in comparison.ways:
        if comparison.is_task:
            figure = wording.percent_at_least(way.figure)
        elif math.isinf(way.figure):
            figure = NOT_TOLD
        else:
            figure = at_most(way.figure)
        rows.append(
            [way.name, figure, wording.percent_at_least(way.kept), str(way.outputs)]
        )
    lines = [
        layout.paragraph(lead, first=""),
        "",
        *layout.aligned(rows, left=(0, 1)),
        "",
    ]
    lines.append(layout.paragraph(proof))
    for remark in comparison.remarks:
        lines.append(layout.paragraph(f"{remark}."))
    return "\n".join(lines)


def purpose_comparison_record(comparison: PurposeComparison) -> dict[str, Any]:
    """The record of the comparison for `--json`."""
    purpose = comparison.design.purpose
    assert purpose is not None
    ways: list[dict[str, Any]] = []
    for way in comparison.ways:
        record = asdict(way)
        if math.isinf(way.figure):
            # JSON has no infinity.
            record["figure"] = None
        ways.append(record)
    return {
        "purpose": purpose.name,
        **purpose.figures,
        "ways": ways,
        "remarks": list(comparison.remarks),
        "seconds": comparison.seconds,
    }
