"""What becomes of numbers that are released in bins: how far they move, and their histogram before and after."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.core.numbers import about
from mechdesign.release.binned import Moved, distance_text
from mechdesign.report.blocks import Block, Cell, Grid, Text
from mechdesign.report.wording import count, label, percent

MOST_BARS = 16
"""Rows of a histogram; of more bins neighbours are put together."""


def numbers_blocks(numbers: Sequence[Moved]) -> tuple[Block, ...]:
    """A sentence and a histogram for every column in bins."""
    return tuple(block for each in numbers for block in (_sentence(each), _histogram(each)))


def _sentence(each: Moved) -> Text:
    correlation = "" if each.correlation is None else (
        f"; original and released numbers have the correlation {about(each.correlation)}"
    )  # fmt: skip
    return Text(
        f"{label(each.column)} is in {count(len(each.labels), 'bin')}. Published as medians (apply --as "
        f"representative), its numbers are expected to move by {distance_text(each.distance, each.kind)}{correlation}."
    )


def _histogram(each: Moved) -> Grid:
    step = -(-len(each.labels) // MOST_BARS)
    rows: list[tuple[Cell, ...]] = []
    for a in range(0, len(each.labels), step):
        low, high = each.labels[a], each.labels[min(a + step, len(each.labels)) - 1]
        shares = sum(each.before[a : a + step]), sum(each.after[a : a + step])
        name = f"{low.partition(', ')[0]}, {high.partition(', ')[2]}"
        rows.append((Cell(label(name)), *(Cell(percent(share), min(share, 1.0)) for share in shares)))
    return Grid(f"Shares of {label(each.column)} before and after", ("bin", "before", "after"), tuple(rows))
