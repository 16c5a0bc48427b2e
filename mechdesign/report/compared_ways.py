"""Ways to one end compared, in words and as a record: `compare` with --average, with --objectives
of a purpose, and with --release.

Of an average the table has a line for each way (the certified optimum, and the local methods of the
literature): what it keeps, its average, the range of its lifts, and its number of outputs. Below it
are the proven bound, which holds for every way, and the reminder that the lifts of single values
are not promised.

Of a purpose every row is a channel that was made for something, and the figure of the purpose that
it reaches: for a task a share that should be large, for queries a variance that should be small.
The last sentence has the proven bound on it. Ways to release rows have a table of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.comparison.average_ways import AverageComparison
from mechdesign.comparison.purpose_ways import PurposeComparison
from mechdesign.comparison.row_ways import RowComparison
from mechdesign.core.wording import at_least, at_most
from mechdesign.mechanisms.result import QueryAccuracy, TaskUtility
from mechdesign.report import layout, wording
from mechdesign.report.average_section import NAMES, NO_PROMISE_FOR_ONE

NOT_TOLD = "not told"
"""In the place of a variance that is infinite."""


def average_comparison_text(comparison: AverageComparison) -> str:
    """The table of the ways, the bound, and what an average is not; without a final newline."""
    # A design of this run has its table and its bound, which only public files lack.
    joint = comparison.design.channel.joint
    assert joint is not None
    average = comparison.average
    rows = [["way", "kept", "average", "factor", "outputs"]]
    for way in comparison.ways:
        low = wording.factor_text(way.achieved.eps_l, upper=False)
        high = wording.factor_text(way.achieved.eps_u, upper=True)
        rows.append(
            [
                way.name,
                wording.percent_at_least(way.kept),
                at_most(way.leakage),
                f"{low} to {high}",
                str(way.outputs),
            ]
        )
    useful = wording.title(joint.useful.columns)
    sensitive = wording.title(joint.sensitive.columns)
    lead = (
        f"{useful} is released; the {NAMES[average.measure]} about {sensitive} is at most "
        f"{at_most(average.budget)} on average over released values."
    )
    bound = comparison.design.certificate.upper_bound_nmi
    assert bound is not None
    most = wording.percent_at_most(bound)
    proof = f"No channel within this average keeps more than {most} (proven)."
    warning = (
        f"{NO_PROMISE_FOR_ONE}: the factors are those of the worst released values."
    )
    texts = [layout.paragraph(text) for text in (proof, warning)]
    return "\n".join(
        [
            layout.paragraph(lead, first=""),
            "",
            *layout.aligned(rows, left=(0, 1)),
            "",
            *texts,
        ]
    )


def average_comparison_record(comparison: AverageComparison) -> dict[str, Any]:
    """The record of `compare --average --json`."""
    return {
        "average": comparison.average.model_dump(),
        "upper_bound_nmi": comparison.design.certificate.upper_bound_nmi,
        "gap_nmi": comparison.design.certificate.gap_nmi,
        "ways": [asdict(way) for way in comparison.ways],
        "seconds": comparison.seconds,
    }


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


def row_comparison_text(comparison: RowComparison) -> str:
    """A line for each way: its verdict, what stays, what is kept, and how far the law moves."""
    rows: list[Sequence[str]] = [
        ("way", "promise", "factor", "unchanged", "kept", "law moves")
    ]
    for way in comparison.ways:
        rows.append(
            (
                way.name,
                "kept" if way.satisfied else "BROKEN",
                wording.range_text(way.achieved.eps_l, way.achieved.eps_u),
                wording.percent_at_least(way.unchanged),
                wording.percent_at_least(way.nmi),
                at_most(way.total_variation, 2),
            )
        )
    lines = [
        f"Rows of {wording.title(comparison.columns)}, {comparison.notion.text}:",
        "",
        *layout.aligned(rows, left=(0, 1)),
        "",
        *layout.lines_of(
            "Unchanged is the mean share of unchanged cells, kept the information in the released "
            "columns, and the last column the total variation of released rows from those of the "
            "table."
        ),
    ]
    return "\n".join([*lines, *layout.all_lines(list(comparison.messages))])


def row_comparison_record(comparison: RowComparison) -> dict[str, Any]:
    """The comparison for --json."""
    return {
        "columns": comparison.columns,
        "ways": [asdict(way) for way in comparison.ways],
        "messages": comparison.messages,
    }
