"""The sections on the promise: the beliefs that it leaves possible, and the measures it bounds.

`promise_blocks` has the promise in a sentence (of rows, what no rule exceeds stands before it), the
exact verdict, and a table with a line for each sensitive symbol. A line has the probability before
a released value is seen, and the lowest and highest after it, rounded outwards:
``F  40.000 %  24.261 %  65.949 %``. `notion_blocks` has the name of the notion and the budgets.

`measure_blocks` has a line for each other measure of leakage: the bound that follows from the
promise for every channel, and what this channel attains, both rounded up.
"""

from __future__ import annotations

from mechdesign.core.wording import at_most
from mechdesign.report import blocks, wording
from mechdesign.report.record import Promise, Request
from mechdesign.report.rule_sentences import rule_sentences


def promise_blocks(
    promise: Promise, request: Request, sensitive: str
) -> list[blocks.Block]:
    """The promise in a sentence, the beliefs that it leaves possible, and the verdict on it."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for belief in promise.beliefs:
        rows.append(
            blocks.cells(
                blocks.short(belief.symbol),
                wording.percent(belief.before),
                wording.percent_at_least(belief.lowest),
                wording.percent_at_most(belief.highest),
            )
        )
    caption = (
        f"Probability of every value of {sensitive}, before and after a released "
        f"{request.unit} is seen"
    )
    header = (sensitive, "before", "lowest after", "highest after")
    # Statements are parts of sentences elsewhere, and begin with a small letter.
    statement = f"{promise.statement[:1].upper()}{promise.statement[1:]}"
    return [
        *blocks.paragraphs(rule_sentences(promise, request)),
        blocks.Text(f"{statement} {_verdict_of(promise)[0]}"),
        *blocks.grid(caption, header, rows, sensitive),
    ]


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
