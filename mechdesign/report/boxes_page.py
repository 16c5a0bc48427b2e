"""The report on a channel for boxes of rows as a page: its promise for the population and for the
table, what each column keeps, the boxes, and the outputs that move a belief most.

`box_content.box_report` computes the figures. Here they become a file in two forms:

- `report_page` is the page, with a card for each main fact and five sections. Their sentences are
  those of the terminal (`box_sentences`), and their tables are made here: `_column_blocks`,
  `_box_blocks` and `_output_blocks`.
- `report_record` is the JSON: the same figures, not rounded.

`save_box_reports` computes a report and writes the form that the ending of its file asks for, and
the page for everybody (`public_boxes`). Tables of boxes and outputs go through all strata, and name
the stratum where columns are given.

`ledger_picture` draws a bar of length H(X_j) for every column: what a released row tells of it, and
hatched what was lost to privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Protocol

from mechdesign.analysis.box_truth import box_truth
from mechdesign.auditing.boxes import audit_boxes
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.files import PathLike
from mechdesign.core.wording import about, percent_of
from mechdesign.notions import Notion
from mechdesign.report import blocks, box_sentences, boxes, drawing, wording
from mechdesign.report.box_content import BoxReport, box_report
from mechdesign.report.document import VERIFIED
from mechdesign.report.plain_values import optional_record
from mechdesign.report.public_boxes import save_public_box_report
from mechdesign.report.writing import save_page

PICTURE_WIDTH = 5.5
"""Inches, which fit a telephone when the page scales them down."""

# Blue and a light grey, which differ in print as well.
KEPT_COLOUR = "#2b6cb0"

LOST_COLOUR = "#d9d9d9"


FORMAT, VERSION = "mechdesign.box-report", 1


BOXED = "A cell counts as unchanged if its own box is released and holds one value of the column."

FILLED = "A cell is unchanged if its own value is drawn again (expected)."


def report_page(report: BoxReport, *, pictures: bool = True) -> blocks.Document:
    """The report as a page for those who may see the table; `pictures` need matplotlib."""
    channel = report.channel
    columns = wording.titles(channel.columns)
    secret = wording.title(channel.sensitive.columns)
    picture: list[blocks.Block] = []
    if pictures:
        picture.append(ledger_picture(report.utility.columns))
    promise = [
        *box_sentences.promise_lines(report.audit),
        *box_sentences.part_lines(channel),
    ]
    # The second of the lines, on single columns, is the table of this section.
    total = box_sentences.kept_lines(report.utility, channel)[0]
    kept = [
        total,
        *box_sentences.own_lines(report.utility, channel),
        *box_sentences.law_lines(report.utility, channel),
        *box_sentences.rare_lines(channel, report.utility),
    ]
    learned = blocks.Text(box_sentences.slice_sentence(report.utility, channel))
    scope = box_sentences.scope_items(channel, report.audit.notion, report.utility)
    sections = (
        blocks.Section("promise", "What is promised", blocks.paragraphs(promise)),
        blocks.Section(
            "columns",
            "What each column keeps",
            (*blocks.paragraphs(kept), *picture, *_column_blocks(report)),
        ),
        blocks.Section("boxes", "The boxes", (learned, *_box_blocks(report))),
        blocks.Section("outputs", "Before and after", tuple(_output_blocks(report))),
        blocks.Section("scope", "What is not covered", (blocks.Bullets(tuple(scope)),)),
    )
    return blocks.Document(
        title=f"Release of {columns} in boxes, protecting {secret}",
        banner="Internal report: it is computed from the table. Do not publish.",
        internal=True,
        lead=box_sentences.lead(channel),
        highlights=_cards(report),
        sections=sections,
        footer="Written by mechdesign.",
    )


def report_record(report: BoxReport) -> dict[str, Any]:
    """The report as plain values, for JSON."""
    channel = report.channel
    audit = report.audit
    return {
        "format": FORMAT,
        "version": VERSION,
        "sensitive": list(channel.sensitive.columns),
        "secrets": list(channel.sensitive.names),
        "given": [list(variable.columns) for variable in channel.given],
        "notion": boxes.notion_record(audit.notion),
        "satisfied": audit.satisfied,
        "confidence": audit.level,
        "achieved": asdict(audit.achieved),
        "population": {"level": audit.level, **asdict(audit.achieved)},
        "table": asdict(audit.on_table),
        "nmi": report.utility.nmi,
        "upper_bound_nmi": report.utility.upper_bound_nmi,
        "columns": boxes.utility_record(report.utility, channel),
        "limit": optional_record(report.utility.limit),
        "slice_records": channel.slice_records,
        "records": report.utility.records,
        "boxes": [asdict(row) for row in report.rows],
        "outputs": [asdict(row) for row in report.outputs],
        "not_covered": box_sentences.scope_items(channel, audit.notion, report.utility),
    }


def save_box_reports(
    channel: BoxChannel,
    internal: PathLike | None,
    public: PathLike | None,
    *,
    overwrite: bool,
) -> bool | None:
    """Write the reports with a path, as HTML, Markdown or JSON by its ending.

    Returns the exact verdict on the channel; None for a public one, without counts.

    Raises
    ------
    InputError
        If an internal report is asked of a public channel.
    """
    satisfied: bool | None = None
    if channel.utility is not None:
        satisfied = audit_boxes(channel).satisfied
    if internal is not None:
        report = box_report(channel)
        page = partial(report_page, report)
        save_page(internal, report_record(report), page, overwrite=overwrite)
    if public is not None:
        save_public_box_report(
            channel, public, satisfied=satisfied, overwrite=overwrite
        )
    return satisfied


def _cards(report: BoxReport) -> tuple[tuple[str, str], ...]:
    """The promise for the population and for the table, and what is kept."""
    audit = report.audit
    cards: list[tuple[str, str]] = []
    if audit.notion is not None:
        level = percent_of(audit.level)
        cards += [
            (f"Population, {level} confidence", _times(audit.achieved, audit.notion)),
            ("Table", _times(audit.on_table, audit.notion)),
            ("Privacy notion", audit.notion.text),
            ("Verified", VERIFIED[audit.satisfied]),
        ]
    cards.append(("Information kept", wording.percent_at_least(report.utility.nmi)))
    bound = wording.percent_at_most(report.utility.upper_bound_nmi)
    cards.append(("No channel for these boxes keeps more than", bound))
    return tuple(cards)


def _times(achieved: Achieved, notion: Notion) -> str:
    """``0.5 to 2 times as probable``, on the sides that the notion bounds."""
    return f"{wording.times_text(achieved, notion)} as probable"


def _column_blocks(report: BoxReport) -> list[blocks.Block]:
    """What each column keeps and loses, and how many of its cells stay as they are."""
    truth = box_truth(report.channel)
    rows: list[tuple[blocks.Cell, ...]] = []
    for place, column in enumerate(report.utility.columns):
        unchanged = "-"
        if truth is not None:
            unchanged = wording.percent_at_least(truth[place])
        rows.append(
            blocks.cells(
                blocks.short(wording.title(column.columns)),
                wording.percent(column.share),
                wording.percent(1.0 - column.share),
                about(column.entropy),
                unchanged,
            )
        )
    header = ("column", "kept", "lost", "information (nats)", "unchanged cells")
    explanation = (
        "A released box tells this share of the information in the true value of a column, each "
        "column by itself. What is lost went to the boxes and to the randomisation. "
    )
    if report.channel.fills:
        explanation += FILLED
    else:
        explanation += BOXED
    caption = "What each column keeps"
    return [blocks.Text(explanation), *blocks.grid(caption, header, rows, "columns")]


def _box_blocks(report: BoxReport) -> list[blocks.Block]:
    """Every box in words, with the records of the proof in it."""
    rows: list[tuple[blocks.Cell, ...]] = []
    is_given = bool(report.channel.given)
    for row in report.rows:
        texts = [
            blocks.isolated(wording.label(row.box)),
            f"{row.records:,}",
            wording.percent(row.share),
        ]
        if is_given:
            texts.insert(0, blocks.short(row.stratum))
        rows.append(blocks.cells(*texts))
    header = ("box", "records", "share")
    left = (0,)
    if is_given:
        header = ("given", *header)
        left = (0, 1)
    caption = "The boxes, and the records of the proof in each of them"
    return blocks.grid(caption, header, rows, "boxes", left=left)


def _output_blocks(report: BoxReport) -> list[blocks.Block]:
    """Every output, with what it does to a belief by the table and in the population."""
    notion = report.audit.notion
    if notion is None:
        return [blocks.Text(box_sentences.NOTHING_RELEASED)]
    secret = wording.title(report.channel.sensitive.columns)
    rows: list[tuple[blocks.Cell, ...]] = []
    is_given = bool(report.channel.given)
    for row in report.outputs:
        texts = [blocks.short(row.output), wording.percent(row.share)]
        texts += [_times(row.on_table, notion), _times(row.achieved, notion)]
        if is_given:
            texts.insert(0, blocks.short(row.stratum))
        rows.append(blocks.cells(*texts))
    header = ("output", "share of rows", "table", "population")
    if is_given:
        header = ("given", *header)
    caption = f"What each output makes of the probability of any {secret}"
    return blocks.grid(caption, header, rows, "outputs")


class Ledger(Protocol):
    """The information of a column, and how much of it is kept, in nats.

    `ColumnLedger` of rows has these, and `box_utility.ColumnKept` of boxes.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, or several crossed ones."""
        ...

    @property
    def entropy(self) -> float:
        """What is in it."""
        ...

    @property
    def kept(self) -> float:
        """What a released row tells of it."""
        ...


def ledger_picture(ledgers: Sequence[Ledger]) -> blocks.Picture:
    """A bar for every column, of the length H(X_j): what is kept, and what privacy took."""
    words = (
        "For every column, the information that is kept and what is lost to privacy; "
        "the table below has the numbers."
    )
    names: list[str] = []
    kept: list[float] = []
    lost: list[float] = []
    for ledger in ledgers:
        names.append(blocks.short(wording.title(ledger.columns)))
        # Rounding can put I(X_j; Y_j) above H(X_j); the two bars still make up H(X_j).
        kept.append(min(ledger.kept, ledger.entropy))
        lost.append(max(0.0, ledger.entropy - ledger.kept))
    with drawing.settings(**drawing.PAGE):
        # Inches: a bar needs 0.4, the axis and the legend above it the rest.
        height = 1.1 + 0.4 * len(ledgers)
        figure = drawing.new_figure(
            figsize=(PICTURE_WIDTH, height), layout="constrained"
        )
        axes = figure.subplots()
        places = list(range(len(ledgers)))
        axes.barh(places, kept, color=KEPT_COLOUR, label="kept")
        axes.barh(
            places,
            lost,
            left=kept,
            color=LOST_COLOUR,
            hatch="//",
            label="lost to privacy",
        )
        # A dollar sign in the name of a column is no formula.
        axes.set_yticks(places, labels=names, parse_math=False)
        # The first column at the top, as in the table.
        axes.invert_yaxis()
        axes.set_xlabel("information in the column (nats)")
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        return drawing.picture_of(figure, words)
