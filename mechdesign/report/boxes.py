"""What a release of boxes has besides others: in words, as records, and in sections of a report.

Each function writes the sentences on one question: what a released row can do to a belief
(`box_promise_lines`), how many records keep their box (`own_lines`), what the records were used for
(`slice_sentence`), what limits the promise (`part_lines`) and what is kept (`rare_lines`).

Where the numbers come from: promises from the exact audit, for the population and for the records
of the proof; what is kept from the file (`BoxUtility`), because the file has no counts of single
columns; unchanged cells from `auditing.unchanged`. The bound on what is kept is about channels for
the same boxes, not about every mechanism: what the boxes themselves lose is not in it.

*Sections of a report*: the beliefs, each column, and the boxes.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.lifts import Achieved
from mechdesign.auditing.unchanged import box_truth
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_claims import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.core.wording import about, at_most, percent_of
from mechdesign.mechanisms.result import Design
from mechdesign.report import blocks, wording
from mechdesign.report.channel_section import belief_blocks
from mechdesign.report.promises import (
    counted_lines,
    effect_text,
    protected_name,
    relative_sentences,
    subject_of,
    units_of,
)
from mechdesign.report.record import (
    Belief,
    BoxColumn,
    Boxes,
    BoxRow,
    Report,
    names_of,
    optional_record,
)
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import box_name

LITTLE = 0.5
"""Kept share below which the rarest sensitive values are named."""

MOST_RARE = 3
"""Most of these values that are named."""

NOT_ENOUGH = "is released: no part of the table has enough records for boxes."
"""Why a channel of boxes releases nothing of the columns that it is for."""


def box_promise_lines(channel: Channel, audit: Audit) -> list[str]:
    """What a released row can do to a belief: in the population, and by the table."""
    secret = protected_name(channel.boxed.sensitive, channel.people)
    subject = subject_of(channel)
    effect = effect_text(audit.notion, audit.achieved, secret, subject)
    if audit.notion is None:
        return [f"{effect[:1].upper()}{effect[1:]}."]
    level = percent_of(channel.boxed.claims.level)
    verdict = "verified" if audit.satisfied else "VIOLATED"
    return [
        f"Population ({level} confidence): {effect} ({verdict}).",
        *counted_lines(audit, secret, subject, units_of(channel)),
        *relative_sentences(channel),
    ]


def own_lines(
    utility: BoxUtility, channel: Channel, *, scope: str = "proven"
) -> list[str]:
    """How many records keep their box, beside the most that is possible; none for free labels."""
    if utility.own is None or utility.own_bound is None:
        return []
    own = wording.percent_at_least(utility.own)
    most = wording.percent_at_most(utility.own_bound)
    law = ""
    if utility.law_deviation == 0.0:
        law = " and their law"
    return [
        f"Own box: {own} of the {units_of(channel)[1]} (expected); at most {most} with these "
        f"boxes{law} ({wording.proof_text(scope)})."
    ]


def fill_lines(channel: Channel) -> list[str]:
    """What the channel file discloses where rows fill the boxes."""
    if not channel.fills:
        return []
    return [
        "The channel file holds the rows of the table with their numbers of records, which are "
        "drawn from it: keep it as you keep the table."
    ]


def slice_sentence(utility: BoxUtility, channel: Channel) -> str:
    """Which records the boxes come from, and which ones the proof uses.

    No record does both: boxes that are chosen by the records of the proof would void its
    confidence.
    """
    others = utility.records - channel.boxed.claims.slice_records
    proof = 0
    for part in channel.parts:
        if part.channel is not None and part.channel.joint is not None:
            proof += sum(part.channel.joint.sensitive_counts)
    # The records of strata where nothing is released prove nothing, so they are not among these.
    used = f"the other {others:,}"
    if proof < others:
        used = f"{proof:,} of {used}"
    boxes = "one box of rows was"
    if channel.boxed.coder.size > 1:
        boxes = f"{channel.boxed.coder.size:,} boxes of rows were"
    return (
        f"The {boxes} learned on {channel.boxed.claims.slice_records:,} "
        f"{units_of(channel)[1]}; the proof uses {used}."
    )


def part_lines(channel: Channel) -> list[str]:
    """Strata that release nothing, and sensitive values that are one value in the promise."""
    lines: list[str] = []
    # A part is a stratum of the given columns; it is silent if it releases nothing else.
    silent = len(channel.silent_strata)
    if silent and silent == len(channel.parts):
        nothing = "Nothing but the given columns" if channel.given else "Nothing"
        lines.append(f"{nothing} {NOT_ENOUGH}")
    elif silent:
        verb = "have"
        if silent == 1:
            verb = "has"
        lines.append(
            f"{silent} of {len(channel.parts)} strata of the given columns {verb} too few records, "
            "or a single sensitive value. Nothing but the given columns is released there."
        )
    for part in channel.parts:
        stratum = channel.boxed.coder.stratum_text(part.stratum)
        for group in part.together:
            # A group of one value is promised by itself, as every value is by default.
            if len(group) < 2:
                continue
            names = ", ".join(
                wording.label(channel.boxed.sensitive.names[s]) for s in group
            )
            lines.append(
                f"{stratum}promised together, as one value: {names}. Nothing "
                "is promised of one of them against another."
            )
    return [f"{line[:1].upper()}{line[1:]}" for line in lines]


def box_texts(channel: Channel) -> list[str]:
    """Every box in words, each with the given symbols of its stratum."""
    texts: list[str] = []
    for row in rows_of(channel):
        stratum = f"{row.stratum}: " if row.stratum else ""
        texts.append(wording.label(f"{stratum}{row.box}"))
    return texts


def rare_lines(channel: Channel, utility: BoxUtility) -> list[str]:
    """What rare sensitive values make impossible, and which they are where little is kept."""
    limit = utility.limit
    if limit is None:
        return []
    remedy = rare_remedy(channel)
    if limit.information < utility.entropy:
        text = limit.text(channel.boxed.claims.level)
        if utility.nmi < LITTLE:
            text += f" {remedy}."
        return [text]
    if utility.nmi >= LITTLE:
        # More than the columns have: the limit excludes nothing, and nothing is missing.
        return []
    lines: list[str] = []
    rarest = ", ".join(rarest_values(channel, MOST_RARE))
    if rarest:
        # Few records leave a wide set of populations, in all of which the promise must hold.
        lines.append(
            f"The promised values with the fewest records in the proof are {rarest}. Little is "
            f"known of their population, which costs most; {remedy}."
        )
    lines.append(
        f"The limit that rare values set to every method is {at_most(limit.information)} "
        f"nats (of {wording.label(limit.value)}, Proposition 6); the columns have "
        f"{utility.entropy:.4g}, so it excludes nothing here."
    )
    return lines


def rare_remedy(channel: Channel) -> str:
    """The options that promise rare sensitive values together."""
    remedy = "--rare N promises values of fewer than N records together"
    if len(channel.boxed.coder.columns) == 1 and not channel.given:
        remedy += ", --rare auto the fewest with which half is kept"
    return remedy


def rarest_values(channel: Channel, most: int) -> list[str]:
    """Up to `most` promised values, fewest records of the proof first: ``Widowed (12 records)``."""
    # Of several strata the first one serves as the example.
    part_channel = channel.parts[0].channel
    if part_channel is None or part_channel.joint is None:
        return []
    joint = part_channel.joint
    counts = joint.sensitive_counts
    by_count = sorted(range(len(counts)), key=lambda s: counts[s])
    texts: list[str] = []
    for s in by_count[:most]:
        name = wording.label(joint.sensitive.names[s])
        texts.append(f"{name} ({wording.count(counts[s], 'record')})")
    return texts


def box_facts(design: Design) -> dict[str, Any]:
    """What the record of a design has of boxes: facts that others lack, and those that others have
    from their table. Nothing of others.
    """
    channel = design.channel
    utility = channel.box_utility
    if utility is None:
        return {}
    return {
        "objective": _objective(channel),
        # For boxes the promise is that for the population, so both have the same budgets.
        "population": {"level": channel.boxed.claims.level, **asdict(design.achieved)},
        "table": optional_record(design.on_table),
        "levels": [asdict(column) for column in columns_of(channel)],
        "boxes": channel.boxed.coder.size,
        "filled": channel.fills,
        "own_boxes": utility.own,
        "own_boxes_at_most": utility.own_bound,
        "law_deviation": utility.law_deviation,
        "limit": optional_record(utility.limit),
        "strata": len(channel.parts),
        "slice_records": channel.boxed.claims.slice_records,
    }


def box_channel_facts(channel: Channel) -> dict[str, Any]:
    """What the record of a channel has of boxes; a public channel does not say what is kept."""
    coder, claims, sensitive = channel.boxed
    levels: list[dict[str, Any]] | None = None
    if claims.utility is not None:
        levels = [asdict(column) for column in columns_of(channel)]
    return {
        "sensitive": sensitive.columns,
        "columns": [variable.columns for variable in coder.columns],
        "confidence": claims.level,
        "slice_records": claims.slice_records,
        "boxes": [asdict(row) for row in rows_of(channel)],
        "together": channel.boxed.together_texts,
        "levels": levels,
    }


def rows_of(channel: Channel) -> tuple[BoxRow, ...]:
    """Every box with the records of the proof; a box without any has no symbol in the table.

    Of a public channel the boxes alone, and none of a channel without boxes.
    """
    rows: list[BoxRow] = []
    for part in channel.parts:
        coder = channel.boxed.coder
        stratum = coder.stratum_text(part.stratum).rstrip(": ")
        joint = None if part.channel is None else part.channel.joint
        counts: dict[str, int] = {}
        if joint is not None:
            counts = dict(zip(joint.useful.names, joint.useful_counts, strict=True))
        for box, text in enumerate(coder.box_texts(part.boxes)):
            if joint is None:
                rows.append(BoxRow(stratum, text))
                continue
            records = counts.get(box_name(box), 0)
            rows.append(BoxRow(stratum, text, records, records / joint.total))
    return tuple(rows)


def columns_of(channel: Channel) -> tuple[BoxColumn, ...]:
    """What each column of boxes keeps; none of a channel that states nothing of it."""
    utility = channel.box_utility
    if utility is None:
        return ()
    truth = box_truth(channel)
    columns: list[BoxColumn] = []
    for place, column in enumerate(utility.columns):
        columns.append(
            BoxColumn(
                columns=column.columns,
                truth=None if truth is None else truth[place],
                kept=column.share,
                information=column.kept,
                entropy=column.entropy,
            )
        )
    return tuple(columns)


def judged(channel: Channel, joint: Joint | None) -> list[tuple[str, Channel, Joint]]:
    """The channels that are judged by themselves, with their tables: a channel with a table, else
    of boxes one for each stratum that releases something, with the stratum in words.
    """
    if joint is not None:
        return [("", channel, joint)]
    found: list[tuple[str, Channel, Joint]] = []
    for part in channel.parts:
        if part.channel is not None and part.channel.joint is not None:
            stratum = channel.boxed.coder.stratum_text(part.stratum)
            found.append((stratum, part.channel, part.channel.joint))
    return found


def told_lines(channel: Channel, *, scope: str = "proven") -> list[str]:
    """What is told of a channel of boxes in its report and by `show`, with the limits of it.

    Of a public channel which values are promised together alone, and nothing of other channels.
    """
    utility = channel.box_utility
    if utility is None:
        return part_lines(channel)
    return [
        *own_lines(utility, channel, scope=scope),
        *rare_lines(channel, utility),
        slice_sentence(utility, channel),
        *fill_lines(channel),
        *part_lines(channel),
    ]


def _objective(channel: Channel) -> str:
    """Whether own boxes are released, or labels with most information."""
    if any(part.releases_boxes for part in channel.parts):
        return "truth"
    return "information"


# ----------------------------------------------------------------------------- sections

BOXED = "A cell counts as unchanged if its own box is released and holds one value of the column."

FILLED = "A cell is unchanged if its own value is drawn again (expected)."

COLUMNS = ("column", "kept", "lost", "information (nats)", "unchanged cells")


def boxes_of(design: Design, scope: str) -> Boxes:
    """What a release has of boxes; nothing of any other.

    `scope` is how the bounds on other channels are known.
    """
    channel = design.channel
    utility = channel.box_utility
    if utility is None:
        return Boxes()
    return Boxes(
        rows=rows_of(channel),
        columns=columns_of(channel),
        beliefs=_beliefs_of(channel, design.achieved),
        sentences=tuple(told_lines(channel, scope=scope)),
        on_table=design.on_table,
        slice_records=channel.boxed.claims.slice_records,
        own=utility.own,
        own_bound=utility.own_bound,
        law_deviation=utility.law_deviation,
        limit=utility.limit,
    )


OUTWARDS = 1e-12
"""Relative margin of the bounds on beliefs: far above the rounding of exp and of a product."""


def _beliefs_of(channel: Channel, achieved: Achieved) -> tuple[Belief, ...]:
    """The share of every promised value among the records of the proof, and the range that the
    promise leaves to it: P(s|y) is between exp(-eps_l) P(s) and exp(eps_u) P(s). Values that are
    promised together are one.
    """
    part = channel.parts[0].channel
    if channel.given or part is None or part.joint is None:
        return ()
    lower = math.exp(-achieved.eps_l) * (1.0 - OUTWARDS)
    upper = math.exp(achieved.eps_u) * (1.0 + OUTWARDS)
    beliefs: list[Belief] = []
    sensitive = part.joint.sensitive
    for name, share in zip(sensitive.names, part.joint.p_s.tolist(), strict=True):
        beliefs.append(Belief(name, share, share * lower, min(1.0, share * upper)))
    return tuple(beliefs)


BELIEFS = (
    "before and after a released row is seen. Before is the share among the records of the proof; "
    "the factors hold for the population. Values that are promised together are one line."
)


def box_belief_blocks(report: Report) -> list[blocks.Block]:
    """What a released row can make of the share of every protected value."""
    secret = names_of(report.asked)[0]
    caption = f"Probability of every value of {secret}, {BELIEFS}"
    return belief_blocks(report.boxes.beliefs, secret, caption)


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
                blocks.Cell(wording.short(wording.title(column.columns))),
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
    given = bool(report.asked.given)
    rows: list[tuple[blocks.Cell, ...]] = []
    header = ["box"]
    if report.audience == "internal":
        header += ["records", "share"]
    for row in report.boxes.rows:
        texts = [wording.isolated(wording.label(row.box))]
        if row.records is not None and row.share is not None:
            texts += [f"{row.records:,}", wording.percent(row.share)]
        elif report.audience == "internal":
            texts += ["-", "-"]
        rows.append(
            blocks.cells(*([wording.short(row.stratum)] if given else []), *texts)
        )
    header = ["given", *header] if given else header
    caption = "The boxes, and the records of the proof in each of them"
    if report.audience == "public":
        caption = "The boxes"
    left = (0, 1) if given else (0,)
    return blocks.grid(caption, tuple(header), rows, "boxes", left=left)
