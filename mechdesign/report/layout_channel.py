"""The sections on the channel itself: what becomes of each symbol, and what each output says."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.report.blocks import Block, Cell, Grid, Remark, Text
from mechdesign.report.promises import title
from mechdesign.report.record import Entry, Meaning, Report
from mechdesign.report.shortening import (
    ALL_IN_JSON,
    MOST_ROWS,
    MOST_SHARES,
    label_remarks,
    row_remarks,
    short,
)
from mechdesign.report.wording import at_least, at_most, count

MOST_MATRIX_OUTPUTS = 20
MOST_MATRIX_SYMBOLS = 40
"""Columns and rows of a matrix that a page can show whole."""


def channel_blocks(report: Report) -> tuple[Block, ...]:
    """The matrix, or where it is too large what becomes of each symbol."""
    channel, useful = report.channel, title(report.asked.useful_columns)
    blocks: list[Block] = [
        Text(
            f"Each {useful} is replaced by one of {count(len(channel.outputs), 'output')}, drawn with these "
            f"probabilities. They are integers over {channel.denominator}; percentages here are rounded."
        )
    ]
    if len(channel.outputs) <= MOST_MATRIX_OUTPUTS and len(channel.symbols) <= MOST_MATRIX_SYMBOLS:
        rows = tuple(
            (Cell(short(name)), *_matrix_row(row, len(channel.outputs)))
            for name, row in zip(channel.symbols, channel.rows, strict=True)
        )
        blocks.append(
            Grid(
                f"P(output | {useful}) in %; an empty cell is exactly zero",
                (useful, *map(short, channel.outputs)),
                rows,
            )
        )
    else:
        shown = channel.rows[:MOST_ROWS]
        blocks += [
            Remark(
                f"There is no room for {len(channel.symbols):,} x {len(channel.outputs):,} probabilities: the "
                f"{MOST_SHARES} most probable outputs of each {useful} are listed, the others put together. "
                f"{ALL_IN_JSON}"
            ),
            Grid(
                f"What is released for each {useful}",
                (useful, "outputs, with their probabilities"),
                tuple(
                    (
                        Cell(short(name)),
                        Cell(_listed([(channel.outputs[e.output], e.share) for e in _sorted(row)])),
                    )
                    for name, row in zip(channel.symbols, shown, strict=False)
                ),
                left=(1,),
            ),
            *row_remarks(len(shown), len(channel.symbols), useful),
        ]
    return (*blocks, *label_remarks([*channel.symbols, *channel.outputs]))


def _sorted(row: Sequence[Entry]) -> list[Entry]:
    return sorted(row, key=lambda entry: -entry.weight)


def _matrix_row(row: Sequence[Entry], outputs: int) -> list[Cell]:
    cells = [Cell("")] * outputs
    for entry in row:
        cells[entry.output] = Cell(_tenths(entry.share), entry.share)
    return cells


def _tenths(share: float) -> str:
    """A positive share in percent with one decimal; what would round to 0 or 100 and is not says so."""
    text = f"{100 * share:.1f}"
    if text == "0.0":
        return "<0.1"
    if text == "100.0":
        return "100" if share == 1.0 else ">99.9"
    return text


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    parts = [f"{short(name)} {_tenths(share)} %" for name, share in shares[:MOST_SHARES]]
    rest = shares[MOST_SHARES:]
    if rest:
        parts.append(f"{count(len(rest), 'other')} together {_tenths(sum(share for _, share in rest))} %")
    return "; ".join(parts)


def codebook_blocks(report: Report) -> tuple[Block, ...]:
    """What each output says of X, and how much of S."""
    codebook, useful = report.codebook or (), title(report.asked.useful_columns)
    shown = codebook[:MOST_ROWS]
    clipped = any(len(meaning.posterior) > MOST_SHARES for meaning in shown)
    rest = [Remark(f"Of each output the {MOST_SHARES} most probable symbols are listed. {ALL_IN_JSON}")]
    return (
        Text(
            f"What an output says of {useful}: the probability of each symbol given that output. The last columns are "
            f"its smallest and its largest lift over {title(report.asked.sensitive_columns)}."
        ),
        Grid(
            "Posterior of each output",
            ("output", "released", f"P({useful} | output)", "smallest lift", "largest lift"),
            tuple(_meaning(meaning) for meaning in shown),
            left=(2,),
        ),
        *row_remarks(len(shown), len(codebook), "outputs"),
        *(rest if clipped else []),
    )


def _meaning(meaning: Meaning) -> tuple[Cell, ...]:
    return (
        Cell(short(meaning.output)),
        Cell(f"{_tenths(meaning.probability)} %"),
        Cell(_listed(meaning.posterior)),
        Cell(at_least(meaning.lowest_lift)),
        Cell(at_most(meaning.highest_lift)),
    )
