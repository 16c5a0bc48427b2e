"""The sections on the channel: what becomes of each symbol, and what each output means.

A small channel is shown whole, as a picture of its matrix. A large one is shown by words: of each
symbol the most probable outputs. The codebook reads the matrix the other way, from an output back
to the symbols that it may have been.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.report import blocks as b
from mechdesign.report import wording as w
from mechdesign.report.content import names_of
from mechdesign.report.record import ChannelTable, Report

MOST_MATRIX_OUTPUTS = 20
MOST_MATRIX_SYMBOLS = 40
"""Columns and rows of a matrix that a page can show whole."""


def channel_blocks(report: Report) -> list[b.Block]:
    """The matrix W(y|x), or, where it is too large, the most probable outputs of each symbol."""
    channel = report.channel
    useful = names_of(report.asked)[1]
    text = (
        f"Every value of {useful} is replaced by one of "
        f"{w.count(len(channel.outputs), 'output')}, drawn with these probabilities. They are "
        f"integers over {channel.denominator}; percentages here are rounded."
    )
    fits = (
        len(channel.outputs) <= MOST_MATRIX_OUTPUTS
        and len(channel.symbols) <= MOST_MATRIX_SYMBOLS
    )
    if fits:
        table = [_matrix(channel, useful)]
    else:
        table = _most_probable(channel, useful)
    remarks = b.label_remarks([*channel.symbols, *channel.outputs])
    return [b.Text(text), *table, *remarks]


def codebook_blocks(report: Report) -> list[b.Block]:
    """The posterior P(x|y) of each output, and its extreme lifts."""
    codebook = report.codebook
    if codebook is None:
        return []
    sensitive, useful = names_of(report.asked)
    text = (
        f"The meaning of an output for {useful}: the probability of each symbol given that "
        f"output. The last columns are its smallest and its largest lift over {sensitive}."
    )
    if report.population is not None:
        text += " All figures are those of the table, which is a sample."
    header = (
        "output",
        "released",
        f"P({useful} | output)",
        "smallest lift",
        "largest lift",
    )
    rows: list[tuple[b.Cell, ...]] = []
    for meaning in codebook:
        rows.append(
            b.cells(
                b.short(meaning.output),
                f"{tenths(meaning.probability)} %",
                _listed(meaning.posterior),
                w.at_least(meaning.lowest_lift),
                w.at_most(meaning.highest_lift),
            )
        )
    table = b.grid("Posterior of each output", header, rows, "outputs", left=(2,))
    blocks: list[b.Block] = [b.Text(text), *table]
    # The remark is about the rows that the page shows.
    shown = codebook[: b.MOST_ROWS]
    if any(len(meaning.posterior) > b.MOST_SHARES for meaning in shown):
        blocks.append(
            b.Remark(
                f"The {b.MOST_SHARES} most probable symbols of each output are listed. "
                f"{b.ALL_IN_JSON}"
            )
        )
    return blocks


def _matrix(channel: ChannelTable, useful: str) -> b.Block:
    """All probabilities, a row for each symbol: the larger one is, the darker its cell."""
    rows: list[tuple[b.Cell, ...]] = []
    for name, row in zip(channel.symbols, channel.rows, strict=True):
        shares = {entry.output: entry.share for entry in row}
        cells = [b.Cell(b.short(name))]
        for output in range(len(channel.outputs)):
            # The record has the positive entries alone.
            if output in shares:
                share = shares[output]
                cells.append(b.Cell(tenths(share), share))
            else:
                cells.append(b.Cell(""))
        rows.append(tuple(cells))
    caption = f"P(output | {useful}) in %; an empty cell is exactly zero"
    header = (useful, *map(b.short, channel.outputs))
    return b.Grid(caption, header, tuple(rows))


def _most_probable(channel: ChannelTable, useful: str) -> list[b.Block]:
    """The outputs of every symbol in words, the most probable first."""
    remark = (
        f"There is no room for {len(channel.symbols):,} x {len(channel.outputs):,} "
        f"probabilities: the {b.MOST_SHARES} most probable outputs of every value of {useful} "
        f"are listed, the others summed up. {b.ALL_IN_JSON}"
    )
    rows: list[tuple[b.Cell, ...]] = []
    for name, row in zip(channel.symbols, channel.rows, strict=True):
        shares = [(channel.outputs[entry.output], entry.share) for entry in row]
        rows.append(b.cells(b.short(name), _listed(shares)))
    caption = f"What is released for every value of {useful}"
    header = (useful, "outputs, with their probabilities")
    return [b.Remark(remark), *b.grid(caption, header, rows, useful, left=(1,))]


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    """The most probable names with their shares, and the rest together."""
    largest_first = sorted(shares, key=lambda named: -named[1])
    parts: list[str] = []
    for name, share in largest_first[: b.MOST_SHARES]:
        parts.append(f"{b.short(name)} {tenths(share)} %")
    rest = largest_first[b.MOST_SHARES :]
    if rest:
        total = sum(share for _, share in rest)
        parts.append(f"{w.count(len(rest), 'other')} together {tenths(total)} %")
    return "; ".join(parts)


def tenths(share: float) -> str:
    """A positive share in percent with one decimal; only exactly 1 is written as 100,
    nothing as 0.
    """
    # Zeros of a channel are exact, and say which outputs are impossible.
    text = f"{100 * share:.1f}"
    if text == "0.0":
        return "<0.1"
    if text == "100.0":
        return "100" if share == 1.0 else ">99.9"
    return text
