"""Ways to release rows, as a table for the terminal and as a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.comparison.row_ways import RowComparison
from mechdesign.core.wording import at_most
from mechdesign.report import layout, wording


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
                wording.tenths_at_least(way.unchanged),
                wording.tenths_at_least(way.nmi),
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
