"""The sections on the promise and on the channel, and the heat maps of lifts.

*The promise*: the beliefs that it leaves possible, and the measures it bounds. `promise_blocks` has
the promise in a sentence (of rows, what no rule exceeds stands before it), the exact verdict, and a
table with a line for each sensitive symbol. A line has the probability before a released value is
seen, and the lowest and highest after it, rounded outwards: ``F  40.000 %  24.261 %  65.949 %``.
`notion_blocks` has the name of the notion and the budgets.

`measure_blocks` has a line for each other measure of leakage: the bound that follows from the
promise for every channel, and what this channel attains, both rounded up.

*The channel*: what becomes of each symbol, and what each output means. `channel_blocks` shows a
small channel whole, as its matrix W(y|x) in per cent (`_matrix`). A larger one is shown by words
(`_most_probable`): of each symbol the most probable outputs. ::

    job    mix-1  mix-2  nurse          job    outputs, with their probabilities
    clerk   81.8   18.2                 clerk  mix-1 81.8 %; mix-2 18.2 %
    nurse                  100          nurse  nurse 100 %
    smith   44.4   55.6                 smith  mix-2 55.6 %; mix-1 44.4 %

`codebook_blocks` reads the matrix the other way, from an output back to the symbols that it may
have been, P(x|y), with the extreme lifts of the sensitive symbols: ::

    output  released  P(job | output)             smallest lift  largest lift
    mix-1     43.8 %  clerk 74.7 %; smith 25.3 %         0.7788        1.2212

*Heat maps of lifts* (`lift_blocks`): P(s|x)/P(s) of the table beside P(s|y)/P(s) of the release.
Both maps have the sensitive symbols across. With limits of 0.779 to 1.284: ::

    Before    F      M              After    F      M
    clerk   1.50▲  0.50▼            mix-1   1.22   0.78
    nurse   0.86   1.14             mix-2   0.78   1.22
    smith   0.40▼  1.60▲            nurse   0.86   1.14

1. `groups_by_likeness` and `blocked` (both in `blocks`) join symbols where there are too many, the
   sensitive ones in the same groups for both maps.
2. `_ends` chooses one colour scale for both: 1 is in the middle, and the ends are the least of
   `ENDS` that hold all lifts (4 here, for 0.40 is below 1/2). The tint of a lift is its logarithm
   to the base of the end: 2 has the tint 0.5 (`_lift`).
3. `_map` makes a table of each and marks and counts lifts outside what the promise allows
   (`_limits`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mechdesign.core.wording import at_least, at_most
from mechdesign.report import blocks, wording
from mechdesign.report.promises import BELIEF_HEADER, belief_texts
from mechdesign.report.record import (
    Belief,
    ChannelTable,
    Promise,
    Report,
    Request,
    names_of,
)
from mechdesign.report.sentences import rule_sentences

# ------------------------------------------------------------------------------ promise


def promise_blocks(
    promise: Promise, request: Request, sensitive: str
) -> list[blocks.Block]:
    """The promise in a sentence, the beliefs that it leaves possible, and the verdict on it."""
    caption = (
        f"Probability of every value of {sensitive}, before and after a released "
        f"{request.unit} is seen"
    )
    # Statements are parts of sentences elsewhere, and begin with a small letter.
    statement = f"{promise.statement[:1].upper()}{promise.statement[1:]}"
    return [
        *blocks.paragraphs(rule_sentences(promise, request)),
        blocks.Text(f"{statement} {_verdict_of(promise)[0]}"),
        *belief_blocks(promise.beliefs, sensitive, caption),
    ]


def belief_blocks(
    beliefs: Sequence[Belief], sensitive: str, caption: str
) -> list[blocks.Block]:
    """A line for each belief, rounded outwards."""
    in_order = wording.in_reading_order(beliefs, lambda one: one.symbol)
    rows = [blocks.cells(*belief_texts(belief)) for belief in in_order]
    return blocks.grid(caption, (sensitive, *BELIEF_HEADER), rows, sensitive)


def notion_blocks(promise: Promise, request: Request) -> list[blocks.Block]:
    """The name of the promise, and the budgets that are attained: for specialists."""
    text = f"This is {request.notion_text}. {_verdict_of(promise)[1]}"
    return [blocks.Text(text.strip())]


def _verdict_of(promise: Promise) -> tuple[str, str]:
    """The verdict in a sentence, and its figures."""
    sentence, stop, figures = promise.verdict.partition(". ")
    return f"{sentence}{stop.strip()}", figures


def measure_blocks(promise: Promise) -> list[blocks.Block]:
    """A line for each measure that the promise bounds, with what this channel attains if known."""
    if not promise.bounds:
        return []
    attained = any(bound.attained is not None for bound in promise.bounds)
    header = ["measure", "with this promise, at most"]
    caption = "What the promise bounds, whatever the channel"
    if attained:
        header.append("this channel")
        caption += ", and what this one attains"
    rows: list[tuple[blocks.Cell, ...]] = []
    for bound in promise.bounds:
        texts = [bound.measure, _optional_amount(bound.promised, bound.unit)]
        if attained:
            texts.append(_optional_amount(bound.attained, bound.unit))
        rows.append(blocks.cells(*texts))
    return [blocks.Grid(caption, tuple(header), tuple(rows))]


def _optional_amount(bound: float | None, unit: str) -> str:
    """The bound with its unit, or a dash where there is none."""
    if bound is None:
        return "-"
    return amount(bound, unit)


def amount(bound: float, unit: str) -> str:
    """An upper bound, rounded up, with its unit: ``0.5 nats``, ``1 nat``."""
    text = at_most(bound)
    # Measures without a unit have the empty one, and no blank after the number.
    if text == "1":
        unit = unit.removesuffix("s")
    return f"{text} {unit}".strip()


# ------------------------------------------------------------------------------ channel

FILLED = (
    "A row is released as a row of the table that is drawn from a box. Which box is drawn depends "
    "on the box that the row is in. The probabilities are not shown in this version."
)

MOST_MATRIX_OUTPUTS = 20
MOST_MATRIX_SYMBOLS = 40
"""Columns and rows of a matrix that a page can show whole."""


def channel_blocks(report: Report) -> list[blocks.Block]:
    """The matrix W(y|x), or, where it is too large, the most probable outputs of each symbol."""
    channel = report.channel
    useful = names_of(report.asked)[1]
    if not channel.rows:
        return [blocks.Text(FILLED)]
    what = "box" if report.boxes.rows else "value"
    over = f"over {channel.denominator}"
    if channel.denominator is None:
        over = "over the sum of each row"
    text = (
        f"Every {what} of {useful} is replaced by one of "
        f"{wording.count(len(channel.outputs), 'output')}, drawn with these probabilities. They "
        f"are integers {over}; percentages here are rounded."
    )
    fits = (
        len(channel.outputs) <= MOST_MATRIX_OUTPUTS
        and len(channel.symbols) <= MOST_MATRIX_SYMBOLS
    )
    if fits:
        table = [_matrix(channel, useful)]
    else:
        table = _most_probable(channel, useful)
    remarks = blocks.label_remarks([*channel.symbols, *channel.outputs])
    cells = [blocks.Text(sentence) for sentence in channel.cells]
    return [blocks.Text(text), *cells, *table, *remarks]


def codebook_blocks(report: Report) -> list[blocks.Block]:
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
    rows: list[tuple[blocks.Cell, ...]] = []
    shown = codebook[: blocks.MOST_ROWS]
    for meaning in shown:
        rows.append(
            blocks.cells(
                wording.short(meaning.output),
                f"{tenths(meaning.probability)} %",
                _listed(meaning.posterior),
                at_least(meaning.lowest_lift),
                at_most(meaning.highest_lift),
            )
        )
    caption = "Posterior of each output"
    table = blocks.grid(
        caption, header, rows, "outputs", left=(2,), total=len(codebook)
    )
    parts: list[blocks.Block] = [blocks.Text(text), *table]
    # The remark is about the rows that the page shows.
    if any(len(meaning.posterior) > blocks.MOST_SHARES for meaning in shown):
        parts.append(
            blocks.Remark(
                f"The {blocks.MOST_SHARES} most probable symbols of each output are listed. "
                f"{blocks.ALL_IN_JSON}"
            )
        )
    return parts


def _matrix(channel: ChannelTable, useful: str) -> blocks.Block:
    """All probabilities, a row for each symbol: the larger one is, the darker its cell."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for name, row in zip(channel.symbols, channel.rows, strict=True):
        shares = {entry.output: entry.share for entry in row}
        cells = [blocks.Cell(wording.short(name))]
        for output in range(len(channel.outputs)):
            # The record has the positive entries alone.
            if output in shares:
                share = shares[output]
                cells.append(blocks.Cell(tenths(share), share))
            else:
                cells.append(blocks.Cell(""))
        rows.append(tuple(cells))
    caption = f"P(output | {useful}) in %; an empty cell is exactly zero"
    header = (useful, *map(wording.short, channel.outputs))
    return blocks.Grid(caption, header, tuple(rows))


def _most_probable(channel: ChannelTable, useful: str) -> list[blocks.Block]:
    """The outputs of every symbol in words, the most probable first."""
    remark = (
        f"There is no room for {len(channel.symbols):,} x {len(channel.outputs):,} "
        f"probabilities: the {blocks.MOST_SHARES} most probable outputs of every value of {useful} "
        f"are listed, the others summed up. {blocks.ALL_IN_JSON}"
    )
    rows: list[tuple[blocks.Cell, ...]] = []
    shown = slice(blocks.MOST_ROWS)
    for name, row in zip(channel.symbols[shown], channel.rows[shown], strict=True):
        shares = [(channel.outputs[entry.output], entry.share) for entry in row]
        rows.append(blocks.cells(wording.short(name), _listed(shares)))
    caption = f"What is released for every value of {useful}"
    header = (useful, "outputs, with their probabilities")
    return [
        blocks.Remark(remark),
        *blocks.grid(
            caption, header, rows, useful, left=(1,), total=len(channel.symbols)
        ),
    ]


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    """The most probable names with their shares, and the rest together."""
    largest_first = sorted(shares, key=lambda named: -named[1])
    parts: list[str] = []
    for name, share in largest_first[: blocks.MOST_SHARES]:
        parts.append(f"{wording.short(name)} {tenths(share)} %")
    rest = largest_first[blocks.MOST_SHARES :]
    if rest:
        total = sum(share for _, share in rest)
        parts.append(f"{wording.count(len(rest), 'other')} together {tenths(total)} %")
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
        if share == 1.0:
            return "100"
        return ">99.9"
    return text


# ---------------------------------------------------------------------------- heat maps

LIFT = (
    "The lift of a value of {sensitive} at a released {unit} is the factor by which seeing that "
    "{unit} multiplies its probability: 1 means that nothing is learnt, 2 that it becomes twice "
    "as likely, 0.5 half as likely."
)

ROUNDING = 1e-9
"""Lifts of a map are doubles: one is marked as out of bounds only beyond their rounding."""

ENDS = (2.0, 4.0, 8.0)
"""Lifts at which the colours of a map may end: no less, so that rounding does not look
like leakage.
"""

ABOVE, BELOW = "▲", "▼"
"""Marks of lifts above and below what is allowed."""


def lift_blocks(report: Report) -> list[blocks.Block]:
    """Heat maps of the lifts of the table and of the release; nothing in a public report."""
    if report.before is None or report.after is None:
        return []
    promise = report.promise
    if report.asked.relative_to:
        # The maps have lifts against the whole table, which a relative promise does not limit.
        promise = replace(promise, low=None, high=None, allowed=())
    unit = report.asked.unit
    sensitive, useful = names_of(report.asked)
    # The lifts of the table decide for both maps, so that they can be compared.
    groups = blocks.groups_by_likeness(report.before.values, blocks.MOST_MAP_COLUMNS)
    before = blocks.blocked(report.before, useful, sensitive, groups)
    after = blocks.blocked(report.after, "outputs", sensitive, groups)
    ends = _ends(before, after)
    explanation = (
        f"How many times as likely every value of {sensitive} becomes when {useful} itself is "
        f"seen (before), and when a released {unit} is seen (after). Pale is less likely, dark "
        f"more likely; the colours end at {1.0 / ends:g} and {ends:g}."
    )
    if promise.low is not None or promise.high is not None:
        explanation += (
            f" {BELOW} and {ABOVE} mark lifts below and above what is allowed."
        )
    maps = (
        _map("Before", before, useful, sensitive, promise, ends),
        _map("After", after, "output", sensitive, promise, ends),
    )
    remarks: list[blocks.Block] = []
    for name, table in (("Before", before), ("After", after)):
        if table.note:
            remarks.append(blocks.Remark(f"{name}: {table.note}"))
    return [
        blocks.Text(LIFT.format(sensitive=sensitive, unit=unit)),
        blocks.Text(explanation),
        blocks.Maps(maps, _scale(ends)),
        *remarks,
    ]


def _scale(ends: float) -> tuple[blocks.Cell, ...]:
    """The legend of the colours: powers of two from 1/ends to ends."""
    largest = round(math.log2(ends))
    cells: list[blocks.Cell] = []
    for power in range(-largest, largest + 1):
        text = f"{2**power}"
        if power < 0:
            text = f"1/{2**-power}"
        cells.append(blocks.Cell(text, tint=power / largest))
    return tuple(cells)


def _ends(*tables: blocks.Blocked) -> float:
    """The lift of the last colour: the same for both maps, so that they can be compared."""
    lifts: list[float] = []
    for table in tables:
        for line in table.values:
            lifts += line
    # A power of two for an end, so that the legend has whole steps; lifts beyond the last one get
    # its colour.
    for end in ENDS:
        if all(1.0 / end <= lift <= end for lift in lifts):
            return end
    return ENDS[-1]


def _map(
    name: str,
    table: blocks.Blocked,
    down: str,
    across: str,
    promise: Promise,
    ends: float,
) -> blocks.Grid:
    """One map; lifts outside what is allowed are marked and counted."""
    limits = _limits(promise, table.groups)
    rows: list[tuple[blocks.Cell, ...]] = []
    outside = 0
    for row_name, line in zip(table.rows, table.values, strict=True):
        cells = [blocks.Cell(row_name)]
        for lift, (least, most) in zip(line, limits, strict=True):
            mark = _mark(lift, least, most)
            if mark:
                outside += 1
            cells.append(_lift(lift, mark, ends))
        rows.append(tuple(cells))
    caption = f"{name}: lift of every value of {across} at each {down}"
    if promise.low is not None or promise.high is not None:
        size = wording.count(len(table.rows) * len(table.columns), "cell")
        caption += f"; {outside:,} of {size} outside what is allowed"
    return blocks.Grid(caption, (down, *table.columns), tuple(rows))


def _limits(promise: Promise, groups: blocks.Groups) -> list[tuple[float, float]]:
    """The lifts allowed in each column of a map.

    A column may hold several sensitive symbols with budgets of their own: it then takes the
    narrowest.
    """
    low = promise.low or 0.0
    high = math.inf if promise.high is None else promise.high
    limits: list[tuple[float, float]] = []
    for symbols in groups:
        members = [(low, high)]
        if promise.allowed:
            members = [promise.allowed[s] for s in symbols]
        # A cell shows one lift of all its members. The narrowest limits may mark a lift that its
        # own symbol allows; wider ones could leave a lift unmarked that it does not allow.
        least = max(lower for lower, _ in members) * (1.0 - ROUNDING)
        most = min(upper for _, upper in members) * (1.0 + ROUNDING)
        limits.append((least, most))
    return limits


def _mark(lift: float, least: float, most: float) -> str:
    """The mark of a lift outside what is allowed; empty for any other."""
    if lift < least:
        return BELOW
    if lift > most:
        return ABOVE
    return ""


def _lift(value: float, mark: str, ends: float) -> blocks.Cell:
    """A lift with three significant characters, and its place on the colour scale."""
    if value == 0.0 or value >= 100.0:
        text = f"{value:.0f}"
    elif value < 0.005:
        text = "<.01"
    elif value < 10.0:
        text = f"{value:.2f}"
    else:
        text = f"{value:.1f}"
    # On a logarithmic scale, halving is as far from 1 as doubling.
    level = math.log(value, ends) if value > 0.0 else -1.0
    return blocks.Cell(text + mark, tint=max(-1.0, min(1.0, level)))
