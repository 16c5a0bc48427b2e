"""The report on a channel for boxes of rows: its promise for the population and for the table, what
each column keeps, the boxes, and the outputs that move a belief most.

Promise and outputs are computed again from the counts in the channel file. What the columns keep
was computed when the channel was designed (`BoxUtility`), because the file has no counts of single
columns. For every stratum of the given columns, `box_report` lists the boxes with the records of
the proof in them (`_box_rows`), and the outputs with what they do to a belief (`_output_rows`).
Every output y gets two ranges of lifts P(s|y) / P(s):

- That of the table follows from the counts alone: P(s, y) = sum_x P(s, x) W(y|x).
- That of the population is the widest over all populations in the confidence set of the counts
  (`Population.extremes`), which is what the promise bounds.

A range is kept as budgets in nats (`Achieved`): lifts from 0.5 to 1.5 are eps_l = -ln 0.5 = 0.693,
eps_u = ln 1.5 = 0.405 and eps_ldp = ln(1.5 / 0.5) = 1.099.

`report_page` lays this out as a page of five sections, whose sentences are those of the terminal
(`boxes`), and `report_record` is the JSON: the same figures, not rounded. `public_box_page` is the
page for everybody: nothing in it is computed from the table but the channel itself, which a public
channel file holds too. It has the factors that the notion allows, and not those that the channel
uses. `save_reports` writes the forms that the endings of their files ask for. Tables go through
all strata, and name the stratum where columns are given.

`ledger_picture` draws a bar of length H(X_j) for every column: what a released row tells of it, and
hatched what was lost to privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.box_truth import box_truth
from mechdesign.auditing.columns import columns_on, released_part
from mechdesign.auditing.either import audit_boxes
from mechdesign.auditing.population_extremes import Population, achieved_of
from mechdesign.auditing.verdict import Achieved, Audit
from mechdesign.channel.box_claims import BoxUtility, ColumnKept
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import STATED, about, percent_of
from mechdesign.notions import Notion
from mechdesign.report import blocks, boxes, drawing, wording
from mechdesign.report.collect import Wanted
from mechdesign.report.command_records import notion_record
from mechdesign.report.document import BANNERS, VERIFIED
from mechdesign.report.plain_values import optional_record
from mechdesign.report.promises import VERDICTS, promised_bounds
from mechdesign.report.writing import HTML, document_text, save_texts
from mechdesign.tables.confidence import set_of_record
from mechdesign.tables.row_boxes import box_name

MISSING_COUNTS = (
    "this channel for boxes carries no counts (a public one), and its report is computed from "
    "them: report on the file that `design` wrote"
)

PICTURE_WIDTH = 5.5
"""Inches, which fit a telephone when the page scales them down."""

# Blue and a light grey, which differ in print as well.
KEPT_COLOUR = "#2b6cb0"

LOST_COLOUR = "#d9d9d9"

VERSION = 1
"""Of the JSON of both reports."""

BOXED = "A cell counts as unchanged if its own box is released and holds one value of the column."

FILLED = "A cell is unchanged if its own value is drawn again (expected)."

WITHHELD = (
    "Not shown in this version, because it is computed from the table: what is kept of every "
    "column, unchanged cells, the records of every box, the outputs that change a probability "
    "most, and the budgets actually used."
)

PUBLIC_BOXED = (
    "A row is released as the label of a box. Which label is drawn depends on the box that the row "
    "is in. The public channel file has all probabilities."
)

PUBLIC_FILLED = (
    "A row is released as a row of the table that is drawn from a box. Which box is drawn depends "
    "on the box that the row is in."
)


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
    """What the page shows, made by `box_report`: all strata one after the other.

    `scope` is how the bounds on other channels are known.
    """

    channel: Channel
    utility: BoxUtility
    audit: Audit
    rows: tuple[BoxRow, ...]
    outputs: tuple[OutputRow, ...]
    scope: str

    @property
    def verified(self) -> bool:
        """The exact verdict on the promise."""
        return self.audit.satisfied


def box_report(channel: Channel, *, scope: str = "proven") -> BoxReport:
    """Compute the report of a channel from its counts.

    Raises
    ------
    InputError
        If the channel is a public one, without counts.
    """
    if channel.boxed.claims.utility is None:
        raise InputError(MISSING_COUNTS)
    rows: list[BoxRow] = []
    outputs: list[OutputRow] = []
    for part in channel.parts:
        if part.channel is not None:
            rows += _box_rows(channel, part, part.channel)
            outputs += _output_rows(channel, part, part.channel)
    return BoxReport(
        channel=channel,
        utility=channel.boxed.claims.utility,
        audit=audit_boxes(channel),
        rows=tuple(rows),
        outputs=tuple(outputs),
        scope=scope,
    )


def _box_rows(channel: Channel, part: BoxPart, part_channel: Channel) -> list[BoxRow]:
    """Every box of a stratum with its records; a box without any has no symbol in the table."""
    joint = part_channel.joint
    if joint is None:
        raise InputError(MISSING_COUNTS)
    counts = dict(zip(joint.useful.names, joint.useful_counts, strict=True))
    stratum = channel.boxed.coder.stratum_text(part.stratum).rstrip(": ")
    rows: list[BoxRow] = []
    for box, text in enumerate(channel.boxed.coder.box_texts(part.boxes)):
        records = counts.get(box_name(box), 0)
        rows.append(BoxRow(stratum, text, records, records / joint.total))
    return rows


def _output_rows(
    channel: Channel, part: BoxPart, part_channel: Channel
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
    stratum = channel.boxed.coder.stratum_text(part.stratum).rstrip(": ")
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


def report_page(report: BoxReport, *, pictures: bool = True) -> blocks.Document:
    """The report as a page for those who may see the table; `pictures` need matplotlib."""
    channel = report.channel
    utility = report.utility
    picture: list[blocks.Block] = []
    if pictures:
        picture.append(ledger_picture(utility.columns))
    promise = [
        *boxes.promise_lines(channel, report.audit),
        *boxes.part_lines(channel),
    ]
    # The second of the lines, on single columns, is the table of this section.
    kept, *_ = boxes.kept_lines(utility, channel, scope=report.scope)
    texts = [
        kept,
        *boxes.own_lines(utility, channel, scope=report.scope),
        *boxes.law_lines(utility, channel),
        *boxes.rare_lines(channel, utility),
    ]
    learned = blocks.Text(boxes.slice_sentence(utility, channel))
    scope = boxes.scope_items(channel, report.audit.notion, utility)
    sections = (
        blocks.Section("promise", "What is promised", blocks.paragraphs(promise)),
        blocks.Section(
            "columns",
            "What each column keeps",
            (*blocks.paragraphs(texts), *picture, *_column_blocks(report)),
        ),
        blocks.Section("boxes", "The boxes", (learned, *_box_blocks(report))),
        blocks.Section("outputs", "Before and after", tuple(_output_blocks(report))),
        blocks.Section("scope", "What is not covered", (blocks.Bullets(tuple(scope)),)),
    )
    audit = report.audit
    cards = []
    if audit.notion is not None and audit.on_table is not None:
        population = _times(audit.achieved, audit.notion)
        table = _times(audit.on_table, audit.notion)
        cards = _promise_cards(
            channel, audit.notion, (population, table), audit.satisfied
        )
    cards.append(("Information kept", wording.percent_at_least(utility.nmi)))
    bound = wording.percent_at_most(utility.upper_bound_nmi)
    cards.append(("No channel for these boxes keeps more than", bound))
    return _document(channel, boxes.lead(channel), cards, sections, internal=True)


def public_box_page(channel: Channel, *, satisfied: bool | None) -> blocks.Document:
    """The report as a page for everybody; `satisfied` is the exact verdict, if known."""
    # Whether boxes are filled shows in the released file; the counts that fill them are not public.
    lead = boxes.lead(channel)
    explanation = PUBLIC_FILLED if channel.fills else PUBLIC_BOXED
    # From here on the table is out of reach, so nothing below can disclose it by mistake.
    channel = channel.public()
    notion = channel.promise
    cards = []
    promise: list[str] = [boxes.NOTHING_RELEASED]
    if notion is not None:
        # The factors that the notion allows, not those that the channel uses.
        allowed = _times(promised_bounds(notion), notion)
        cards = _promise_cards(channel, notion, (allowed, "not promised"), satisfied)
        promise = _public_promise(channel, notion, allowed, satisfied)
    scope = (*boxes.scope_items(channel, notion, None), WITHHELD)
    items = [blocks.isolated(text) for text in boxes.box_texts(channel)]
    sections = (
        blocks.Section("promise", "What is promised", blocks.paragraphs(promise)),
        blocks.Section(
            "boxes",
            "What is released",
            (blocks.Text(explanation), blocks.Bullets(tuple(items))),
        ),
        blocks.Section("scope", "Where the promise ends", (blocks.Bullets(scope),)),
    )
    return _document(channel, lead, cards, sections, internal=False)


def _document(
    channel: Channel,
    lead: str,
    cards: Sequence[tuple[str, str]],
    sections: tuple[blocks.Section, ...],
    *,
    internal: bool,
) -> blocks.Document:
    """A page for those who may see the table (`internal`), or for everybody."""
    columns = wording.titles(channel.boxed.coder.columns)
    secret = wording.title(channel.boxed.sensitive.columns)
    return blocks.Document(
        title=f"Release of {columns} in boxes, protecting {secret}",
        banner=BANNERS["internal" if internal else "public"],
        internal=internal,
        lead=lead,
        highlights=tuple(cards),
        sections=sections,
        footer="Written by mechdesign.",
    )


def report_record(report: BoxReport) -> dict[str, Any]:
    """The report as plain values, for JSON."""
    channel = report.channel
    audit = report.audit
    return {
        "format": "mechdesign.box-report",
        "version": VERSION,
        "sensitive": list(channel.boxed.sensitive.columns),
        "secrets": list(channel.boxed.sensitive.names),
        "given": [list(variable.columns) for variable in channel.boxed.coder.given],
        "notion": notion_record(audit.notion),
        "satisfied": audit.satisfied,
        "confidence": audit.level,
        "achieved": asdict(audit.achieved),
        "population": {"level": audit.level, **asdict(audit.achieved)},
        "table": optional_record(audit.on_table),
        "nmi": report.utility.nmi,
        "upper_bound_nmi": report.utility.upper_bound_nmi,
        "columns": boxes.utility_record(report.utility, channel),
        "limit": optional_record(report.utility.limit),
        "slice_records": channel.boxed.claims.slice_records,
        "records": report.utility.records,
        "boxes": [asdict(row) for row in report.rows],
        "outputs": [asdict(row) for row in report.outputs],
        "not_covered": boxes.scope_items(channel, audit.notion, report.utility),
    }


def behind(
    channel: Channel,
    design: object = None,
    name: str = "",
    *,
    certificate: bool = False,
) -> BoxReport | None:
    """What reports on a channel of boxes need, computed from its counts; None for a public channel.

    There is no certificate: without a `design` at hand bounds are those that the file states.
    """
    if channel.boxed.claims.utility is None:
        return None
    return box_report(channel, scope=STATED if design is None else "proven")


def save_reports(channel: Channel, report: BoxReport | None, wanted: Wanted) -> None:
    """Write the reports on a channel; there is no internal one without what is `behind` it."""
    satisfied: bool | None = None
    texts: list[tuple[PathLike, str]] = []
    if report is not None:
        satisfied = report.verified
        if wanted.internal is not None:
            ending = Path(wanted.internal).suffix.lower()
            text = document_text(
                report_record(report),
                # Markdown shows no pictures, and so needs no matplotlib.
                lambda: report_page(report, pictures=ending == HTML),
                ending,
            )
            texts.append((wanted.internal, text))
    if wanted.public is not None:
        record = {
            "format": "mechdesign.public-box-report",
            "version": VERSION,
            "satisfied": satisfied,
            **boxes.box_channel_record(channel.public()),
        }
        text = document_text(
            record,
            lambda: public_box_page(channel, satisfied=satisfied),
            Path(wanted.public).suffix.lower(),
        )
        texts.append((wanted.public, text))
    save_texts(texts, overwrite=wanted.overwrite)


def _promise_cards(
    channel: Channel,
    notion: Notion,
    factors: tuple[str, str],
    satisfied: bool | None,
) -> list[tuple[str, str]]:
    """The cards on the promise; `factors` are those for the population and for the table."""
    population, table = factors
    return [
        (
            f"Population, {percent_of(channel.boxed.claims.level)} confidence",
            population,
        ),
        ("Table", table),
        ("Privacy notion", notion.text),
        ("Verified", VERIFIED[satisfied]),
    ]


def _public_promise(
    channel: Channel, notion: Notion, allowed: str, satisfied: bool | None
) -> list[str]:
    """The promise in a sentence, the verdict on it, and strata with promises of their own."""
    sensitive = wording.title(channel.boxed.sensitive.columns)
    verdict = VERDICTS[satisfied]
    if satisfied is not None:
        verdict += ", with the counts that are not shown here."
    released = "A released row makes"
    if channel.people is not None:
        released = "All released records of a person together make"
    compared = "with its share in the population"
    if channel.given:
        given = wording.titles(channel.boxed.coder.given)
        compared = f"with its share among people of the same {given}"
    return [
        f"{released} any value of {sensitive} {allowed}, compared {compared}. This holds "
        "for the population that the records are drawn from, with "
        f"{percent_of(channel.boxed.claims.level)} confidence.",
        f"This is {notion.text}. {verdict}",
        *boxes.part_lines(channel),
    ]


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
        return [blocks.Text(boxes.NOTHING_RELEASED)]
    secret = wording.title(report.channel.boxed.sensitive.columns)
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


def ledger_picture(ledgers: Sequence[ColumnKept]) -> blocks.Picture:
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
