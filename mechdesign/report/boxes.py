"""Channels for boxes of rows in words and as records: the design, the verdict, and the channel.

Each command has a text for people and a record for `--json`: `box_design_..` for `design --release
--confidence`, `box_audit_..` for `audit`, and `box_channel_..` for `show`. The texts put the
sentences of `box_sentences` together. The records have the keys of row channels (`rows`) where they
mean the same, so that programs read both alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.analysis.box_truth import box_truth
from mechdesign.auditing.boxes import BoxAudit, audit_boxes
from mechdesign.auditing.law import absent_box_law, box_law
from mechdesign.channel.box_channel import BoxChannel, BoxPart
from mechdesign.channel.box_utility import BoxUtility
from mechdesign.core.wording import percent_of
from mechdesign.mechanisms.box_result import BoxDesign
from mechdesign.notions import Notion, to_record
from mechdesign.report import layout, wording
from mechdesign.report.box_sentences import (
    fill_lines,
    kept_lines,
    lead,
    part_lines,
    promise_lines,
    rare_lines,
    scope_items,
    slice_sentence,
    unchanged_lines,
)
from mechdesign.report.command_records import law_record
from mechdesign.report.law_section import TITLE, law_lines
from mechdesign.report.plain_values import optional_record


def box_design_text(design: BoxDesign) -> str:
    """All sections of `design --release --confidence`, without a final newline."""
    channel = design.channel
    lines = [lead(channel), *layout.all_lines(promise_lines(design.audit)), ""]
    sentences = [
        *kept_lines(design.utility, channel),
        *unchanged_lines(channel),
        slice_sentence(design.utility, channel),
        *fill_lines(channel),
        *part_lines(channel),
        *rare_lines(channel, design.utility),
        *layout.remark_sentences(design.messages),
    ]
    lines += layout.all_lines(sentences)
    limits = scope_items(channel, design.notion, design.utility)
    lines += ["", "Not covered", *layout.item_lines(limits)]
    return "\n".join(lines)


def box_design_record(design: BoxDesign) -> dict[str, Any]:
    """The record of `design --release --confidence --json`."""
    channel = design.channel
    promise = "total"
    if channel.given:
        promise = "relative"
    return {
        "mechanism": "rows",
        "method": "boxes",
        "notion": to_record(design.notion),
        "promise": promise,
        "objective": _objective(channel),
        "nmi": design.nmi,
        "mutual_information": design.information,
        "entropy": design.entropy,
        "upper_bound_nmi": design.upper_bound_nmi,
        "gap_nmi": design.upper_bound_nmi - design.nmi,
        "achieved": asdict(design.achieved),
        "confidence": channel.level,
        # For boxes the promise is that for the population, so both have the same budgets.
        "population": {"level": channel.level, **asdict(design.achieved)},
        "table": asdict(design.audit.on_table),
        "levels": utility_record(design.utility, channel),
        "boxes": channel.boxes,
        "filled": channel.fills,
        "own_boxes": design.utility.own,
        "own_boxes_at_most": design.utility.own_bound,
        "law_deviation": design.utility.law_deviation,
        **law_record(design.law, design.law_absent),
        "limit": optional_record(design.limit),
        "strata": len(channel.parts),
        "slice_records": channel.slice_records,
        "records": design.records,
        "verified": design.audit.satisfied,
        "messages": design.messages,
        "seconds": design.seconds,
    }


def _objective(channel: BoxChannel) -> str:
    """Whether own boxes are released, or labels with most information."""
    if any(part.releases_boxes for part in channel.parts):
        return "truth"
    return "information"


def box_audit_text(audit: BoxAudit, law: str = "") -> str:
    """The text of `audit` on a channel for boxes; `law` says what an analyst reads."""
    lines = layout.all_lines(promise_lines(audit))
    if law:
        lines.append(law)
    if audit.notion is None:
        return "\n".join(lines)
    verdict = "satisfied" if audit.satisfied else "VIOLATED"
    plain = "holds" if audit.satisfied else "does NOT hold"
    return "\n".join(
        [
            f"The promise {plain}. Decided in exact arithmetic.",
            *lines,
            "",
            "For specialists",
            f"  {audit.notion.text} for the population: {verdict}, decided in exact arithmetic.",
            f"  Population: {wording.achieved_text(audit.achieved)} (nats, rounded up).",
            f"  Table: {wording.achieved_text(audit.on_table)}.",
        ]
    )


def box_audit_record(audit: BoxAudit) -> dict[str, Any]:
    """The record of `audit --json` on a channel for boxes."""
    return {
        "satisfied": audit.satisfied,
        "notion": notion_record(audit.notion),
        "together": [list(group) for group in audit.together],
        "confidence": audit.level,
        "achieved": asdict(audit.achieved),
        "population": {"level": audit.level, **asdict(audit.achieved)},
        "table": asdict(audit.on_table),
        "parts": len(audit.parts),
    }


def box_channel_text(channel: BoxChannel) -> str:
    """The text of `show` on a channel for boxes: the promise, what is kept, and every box."""
    lines = [lead(channel)]
    notion = channel.promise
    sentences: list[str] = []
    if channel.utility is None:
        promised = "nothing"
        if notion is not None:
            promised = notion.text
        sentences.append(
            f"The file states the promise {promised} for the population with "
            f"{percent_of(channel.level)} confidence; a public file has no counts to check it on."
        )
    else:
        sentences += promise_lines(audit_boxes(channel))
        sentences += kept_lines(channel.utility, channel)
        sentences += unchanged_lines(channel)
        sentences.append(slice_sentence(channel.utility, channel))
    lines += layout.all_lines([*sentences, *part_lines(channel)])
    for part in channel.parts:
        lines += ["", *_part_description(channel, part)]
    return "\n".join(lines)


def _part_description(channel: BoxChannel, part: BoxPart) -> list[str]:
    """The boxes of a stratum, under a line with their number and that of the outputs."""
    stratum = channel.stratum_text(part)
    if part.channel is None:
        return [f"{stratum}nothing but the given columns is released"]
    boxes = wording.count(len(part.boxes), "box", "boxes")
    outputs = wording.count(len(part.channel.outputs), "output")
    lines = [f"{stratum}{boxes}, {outputs}"]
    for text in channel.box_texts(part):
        lines.append(layout.paragraph(text))
    return lines


def box_channel_record(channel: BoxChannel) -> dict[str, Any]:
    """The record of `show --json` on a channel for boxes."""
    notion = channel.promise
    levels: Sequence[dict[str, Any]] | None = None
    if channel.utility is not None:
        levels = utility_record(channel.utility, channel)
    return {
        **channel.to_record(),
        "notion": notion_record(notion),
        "levels": levels,
    }


def notion_record(notion: Notion | None) -> dict[str, Any] | None:
    """The notion of a channel for boxes; None where it releases nothing and promises nothing."""
    if notion is None:
        return None
    return to_record(notion)


def utility_record(utility: BoxUtility, channel: BoxChannel) -> list[dict[str, Any]]:
    """What each column keeps, as `levels` of the JSON outputs.

    Boxes have no levels; the name is that of row channels, so that programs read both alike.
    """
    truth = box_truth(channel)
    levels: list[dict[str, Any]] = []
    for place, column in enumerate(utility.columns):
        unchanged: float | None = None
        if truth is not None:
            unchanged = truth[place]
        levels.append(
            {
                "columns": column.columns,
                "truth": unchanged,
                "kept": column.share,
                "information": column.kept,
                "entropy": column.entropy,
            }
        )
    return levels


def box_law_text(channel: BoxChannel) -> str:
    """What an analyst reads of a channel for boxes, in a sentence."""
    law = box_law(channel)
    if law is not None:
        return layout.paragraph(law_lines(law)[0], "")
    return layout.paragraph(f"{TITLE}: {absent_box_law(channel)}.", "")
