"""The report on a channel for boxes of rows: its promise for the population and for the table, what
each column keeps, the boxes, the outputs that move a belief most, and what is not covered.

`box_report` computes the content, `report_page` lays it out, and `report_record` is its JSON.

Promise and outputs are computed again from the counts in the channel file. What the columns keep
was computed when the channel was designed, because the file has no counts of single columns.

Every output y gets two ranges of lifts P(s|y) / P(s). That of the table follows from the counts
alone: P(s, y) = sum_x P(s, x) W(y|x). That of the population is the widest over all populations in
the confidence set of the counts (`Population.extremes`), which is what the promise bounds.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.box_truth import box_truth
from mechdesign.auditing.boxes import BoxAudit, audit_boxes
from mechdesign.auditing.columns import columns_on, released_part
from mechdesign.auditing.population_extremes import Population, achieved_of
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.box_channel import BoxChannel, BoxPart, box_name
from mechdesign.channel.box_utility import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import percent_of
from mechdesign.notions import Notion
from mechdesign.report import blocks, box_sentences, boxes, wording
from mechdesign.report.document import VERIFIED
from mechdesign.report.plain_values import optional_record
from mechdesign.report.rows_page import ledger_picture
from mechdesign.report.writing import save_page
from mechdesign.tables.confidence import set_of_record

FORMAT, VERSION = "mechdesign.box-report", 1

MISSING_COUNTS = (
    "this channel for boxes carries no counts (a public one), and its report is computed from "
    "them: report on the file that `design` wrote"
)

BOXED = "A cell counts as unchanged if its own box is released and holds one value of the column."

FILLED = "A cell is unchanged if its own value is drawn again (expected)."


@dataclass(frozen=True)
class BoxRow:
    """A box of a stratum in words, and the records of the proof in it."""

    stratum: str
    box: str
    records: int
    share: float


@dataclass(frozen=True)
class OutputRow:
    """An output of a stratum: its share of the records, and what it does to a belief.

    `achieved` bounds the log-lifts of this output in every population of the set, and `on_table`
    those of the records of the proof.
    """

    stratum: str
    output: str
    share: float
    achieved: Achieved
    on_table: Achieved


@dataclass(frozen=True)
class BoxReport:
    """What the page shows, made by `box_report`: all strata one after the other."""

    channel: BoxChannel
    utility: BoxUtility
    audit: BoxAudit
    rows: tuple[BoxRow, ...]
    outputs: tuple[OutputRow, ...]


def box_report(channel: BoxChannel) -> BoxReport:
    """Compute the report of a channel from its counts.

    Raises
    ------
    InputError
        If the channel is a public one, without counts.
    """
    if channel.utility is None:
        raise InputError(MISSING_COUNTS)
    rows: list[BoxRow] = []
    outputs: list[OutputRow] = []
    for part in channel.parts:
        if part.channel is not None:
            rows += _box_rows(channel, part, part.channel)
            outputs += _output_rows(channel, part, part.channel)
    return BoxReport(
        channel=channel,
        utility=channel.utility,
        audit=audit_boxes(channel),
        rows=tuple(rows),
        outputs=tuple(outputs),
    )


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
    kept = [total, *box_sentences.rare_lines(channel, report.utility)]
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


def save_box_report(channel: BoxChannel, path: str, *, overwrite: bool) -> BoxReport:
    """Compute the report of a channel and write it, as HTML, Markdown or JSON by the ending."""
    report = box_report(channel)
    page = partial(report_page, report)
    save_page(path, report_record(report), page, overwrite=overwrite)
    return report


def _box_rows(
    channel: BoxChannel, part: BoxPart, part_channel: Channel
) -> list[BoxRow]:
    """Every box of a stratum with its records; a box without any has no symbol in the table."""
    joint = part_channel.joint
    if joint is None:
        raise InputError(MISSING_COUNTS)
    counts = dict(zip(joint.useful.names, joint.useful_counts, strict=True))
    stratum = channel.stratum_text(part).rstrip(": ")
    rows: list[BoxRow] = []
    for box, text in enumerate(channel.box_texts(part)):
        records = counts.get(box_name(box), 0)
        rows.append(BoxRow(stratum, text, records, records / joint.total))
    return rows


def _output_rows(
    channel: BoxChannel, part: BoxPart, part_channel: Channel
) -> list[OutputRow]:
    """Every output of a stratum, the one whose lifts can be farthest apart first."""
    record = part_channel.record.confidence
    if part_channel.joint is None or record is None:
        raise InputError(MISSING_COUNTS)
    joint = released_part(part_channel, part_channel.joint)
    columns = columns_on(part_channel, joint)
    confidence = set_of_record(record, part_channel.joint)
    population = Population(confidence, joint.useful_counts)
    # P(s, y) = sum_x P(s, x) W(y|x).
    released = joint.p @ part_channel.matrix
    priors = joint.p.sum(axis=1)
    stratum = channel.stratum_text(part).rstrip(": ")
    rows: list[OutputRow] = []
    for y, column in enumerate(columns):
        share = float(released[:, y].sum())
        row = OutputRow(
            stratum=stratum,
            output=part_channel.outputs[y],
            share=share,
            achieved=achieved_of(population.extremes(column, y)),
            # P(s|y) / P(s) = P(s, y) / (P(s) P(y)).
            on_table=_achieved_by(released[:, y] / (priors * share)),
        )
        rows.append(row)
    rows.sort(key=lambda row: -row.achieved.eps_ldp)
    return rows


def _achieved_by(lifts: NDArray[np.float64]) -> Achieved:
    """The budgets that the lifts of one output use, in nats: -ln of the least, ln of the largest,
    and ln of their quotient; infinite where a lift is 0.
    """
    low = float(lifts.min())
    high = float(lifts.max())
    lower = math.inf
    ratio = math.inf
    if low > 0.0:
        lower = -math.log(low)
        ratio = math.log(high / low)
    # Lifts have the mean 1, so only their rounding can put both ends on one side of it.
    return Achieved(max(lower, 0.0), max(math.log(high), 0.0), ratio)


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
                wording.about(column.entropy),
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
