"""What a report has of boxes: each column, the boxes, and the outputs that move a belief most.

Outputs are computed again from the counts in the channel file. What the columns keep was computed
when the channel was designed (`BoxUtility`), because the file has no counts of single columns.
Every output y of a stratum gets two ranges of lifts P(s|y) / P(s) (`outputs_of`):

- That of the table follows from the counts alone: P(s, y) = sum_x P(s, x) W(y|x).
- That of the population is the widest over all populations in the confidence set of the counts
  (`Population.extremes`), which is what the promise bounds.
"""

from __future__ import annotations

from mechdesign.auditing.columns import columns_on, released_part
from mechdesign.auditing.demands import demands_of
from mechdesign.auditing.extremes import extreme_lifts, smallest_budgets
from mechdesign.auditing.population_extremes import Population, achieved_of
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.core.wording import about
from mechdesign.notions import LIP, from_record
from mechdesign.report import blocks, boxes, wording
from mechdesign.report.asked import names_of
from mechdesign.report.record import Boxes, BoxOutput, Report
from mechdesign.tables.confidence import set_of_record

BOXED = "A cell counts as unchanged if its own box is released and holds one value of the column."

FILLED = "A cell is unchanged if its own value is drawn again (expected)."

COLUMNS = ("column", "kept", "lost", "information (nats)", "unchanged cells")


def boxes_of(channel: Channel, audit: Audit, scope: str) -> Boxes:
    """What a release has of boxes, but for its outputs (`outputs_of`).

    `scope` is how the bounds on other channels are known.
    """
    utility = boxes.kept_by(channel)
    return Boxes(
        rows=boxes.rows_of(channel),
        columns=boxes.columns_of(channel),
        sentences=tuple(boxes.told_lines(channel, scope=scope)),
        on_table=audit.on_table,
        slice_records=channel.boxed.claims.slice_records,
        own=utility.own,
        own_bound=utility.own_bound,
        law_deviation=utility.law_deviation,
        limit=utility.limit,
    )


def outputs_of(channel: Channel) -> tuple[BoxOutput, ...]:
    """Every output of each stratum, the one whose lifts can be farthest apart first."""
    outputs: list[BoxOutput] = []
    for part in channel.parts:
        single = part.channel
        if single is None or single.joint is None or single.record.confidence is None:
            continue
        stratum = channel.boxed.coder.stratum_text(part.stratum).rstrip(": ")
        confidence = set_of_record(single.record.confidence, single.joint)
        joint = released_part(single, single.joint)
        population = Population(confidence, joint.useful_counts)
        # The achieved budgets are the same for any notion on single lifts.
        demands = demands_of(joint, LIP(1.0))
        found: list[BoxOutput] = []
        for y, column in enumerate(columns_on(single, joint)):
            found.append(
                BoxOutput(
                    stratum=stratum,
                    output=single.outputs[y],
                    share=float(single.output_masses[y]),
                    achieved=achieved_of(population.extremes(column, y)),
                    on_table=smallest_budgets(extreme_lifts([column], demands)),
                )
            )
        found.sort(key=lambda output: -output.achieved.eps_ldp)
        outputs += found
    return tuple(outputs)


def column_blocks(found: Boxes, *, fills: bool) -> list[blocks.Block]:
    """What each column keeps and loses, and how many of its cells stay as they are."""
    if not found.columns:
        return []
    rows: list[tuple[blocks.Cell, ...]] = []
    for column in found.columns:
        unchanged = "-"
        if column.truth is not None:
            unchanged = wording.percent_at_least(column.truth)
        rows.append(
            (
                blocks.Cell(blocks.short(wording.title(column.columns))),
                blocks.Cell(
                    wording.percent_at_least(column.kept), strength=column.kept
                ),
                *blocks.cells(
                    wording.percent_at_most(1.0 - column.kept),
                    about(column.entropy),
                    unchanged,
                ),
            )
        )
    explanation = (
        "A released box tells this share of the information in the true value of a column, each "
        "column by itself. What is lost went to the boxes and to the randomisation. "
    )
    explanation += FILLED if fills else BOXED
    caption = "What each column keeps"
    return [
        *blocks.paragraphs(found.sentences),
        blocks.Text(explanation),
        *blocks.grid(caption, COLUMNS, rows, "columns"),
    ]


def box_blocks(report: Report) -> list[blocks.Block]:
    """Every box in words, with the records of the proof in it, where these may be seen."""
    if report.boxes is None:
        return []
    given = bool(report.asked.given)
    rows: list[tuple[blocks.Cell, ...]] = []
    header = ["box"]
    if report.audience == "internal":
        header += ["records", "share"]
    for row in report.boxes.rows:
        texts = [blocks.isolated(wording.label(row.box))]
        if row.records is not None and row.share is not None:
            texts += [f"{row.records:,}", wording.percent(row.share)]
        elif report.audience == "internal":
            texts += ["-", "-"]
        rows.append(
            blocks.cells(*([blocks.short(row.stratum)] if given else []), *texts)
        )
    header = ["given", *header] if given else header
    caption = "The boxes, and the records of the proof in each of them"
    if report.audience == "public":
        caption = "The boxes"
    left = (0, 1) if given else (0,)
    return blocks.grid(caption, tuple(header), rows, "boxes", left=left)


def output_blocks(report: Report) -> list[blocks.Block]:
    """Every output, with what it does to a belief by the table and in the population."""
    if report.boxes is None:
        return []
    secret = names_of(report.asked)[0]
    notion = from_record(report.asked.notion)
    given = bool(report.asked.given)
    rows: list[tuple[blocks.Cell, ...]] = []
    for output in report.boxes.outputs:
        rows.append(
            blocks.cells(
                *([blocks.short(output.stratum)] if given else []),
                blocks.short(output.output),
                wording.percent(output.share),
                f"{wording.times_text(output.on_table, notion)} as probable",
                f"{wording.times_text(output.achieved, notion)} as probable",
            )
        )
    header = ("output", "share of rows", "table", "population")
    caption = f"What each output makes of the probability of any {secret}"
    return blocks.grid(
        caption, ("given", *header) if given else header, rows, "outputs"
    )
