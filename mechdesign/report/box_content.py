"""The content of the report on a channel for boxes: each box, each output, and the exact audit.

Promise and outputs are computed again from the counts in the channel file. What the columns keep
was computed when the channel was designed (`BoxUtility`), because the file has no counts of single
columns.

For every stratum of the given columns, `box_report` lists the boxes with the records of the proof
in them (`_box_rows`), and the outputs with what they do to a belief (`_output_rows`). Every output
y gets two ranges of lifts P(s|y) / P(s):

- That of the table follows from the counts alone: P(s, y) = sum_x P(s, x) W(y|x).
- That of the population is the widest over all populations in the confidence set of the counts
  (`Population.extremes`), which is what the promise bounds.

A range is kept as budgets in nats (`Achieved`): lifts from 0.5 to 1.5 are eps_l = -ln 0.5 = 0.693,
eps_u = ln 1.5 = 0.405 and eps_ldp = ln(1.5 / 0.5) = 1.099. `boxes_page` lays all of this out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.boxes import BoxAudit, audit_boxes
from mechdesign.auditing.columns import columns_on, released_part
from mechdesign.auditing.population_extremes import Population, achieved_of
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.box_channel import BoxChannel, BoxPart, box_name
from mechdesign.channel.box_utility import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.tables.confidence import set_of_record

MISSING_COUNTS = (
    "this channel for boxes carries no counts (a public one), and its report is computed from "
    "them: report on the file that `design` wrote"
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
