"""The search behind the button that designs: one column, whole rows, or boxes for the population.

`designed` does it for the page:

1. `searched` finds the channel by `md.design`. With a level, rows and merged values are released in
   boxes, which are learned on a tenth of the records, the slice. It is drawn at random, and another
   slice would lead to other boxes: so its seed goes into the recipes.
2. `internal_report` audits and measures the channel. The page shows sections of this report
   (`SHOWN`), so that page and files agree in every word and figure.
3. `design_files` are the channel and its reports, each for insiders and for everybody.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.pictures import expected_readings
from mechdesign.app.recipes import command_of, script_of
from mechdesign.app.results import (
    REMEDY,
    Designed,
    Say,
    design_files,
    joint_of,
    progress_to,
    recipe_files,
)

if TYPE_CHECKING:
    from mechdesign.report.record import Report

SHOWN = (
    "promise",
    "kept",
    "curve",
    "law",
    "numbers",
    "scope",
    "notion",
    "boxes",
    "codebook",
)
"""Sections of the report that the page shows, by their anchors."""

SEVERAL = (
    "The confidence is that of one design. It is lower for the best of several tries, each of "
    "which may fail."
)


def designed(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """Search for the channel, and describe it."""
    from mechdesign.report.collect import attributed, internal_report
    from mechdesign.report.first_screen import first_screen, little_use

    say("Reading the table")
    joint = joint_of(table, choice)
    result = searched(table, joint, choice, say)
    channel = result.channel
    # The channel's own table is the one with bins: its symbols are those that are released.
    joint = channel.joint or joint
    say("Comparing what an analyst reads")
    reads = () if choice.is_boxes else expected_readings(channel, joint)
    say("Writing the reports")
    report = attributed(internal_report(result, channel.joint), channel, ())
    # Whoever repeats the design of boxes draws the same slice. The page's own choice has no seed,
    # so that its next design draws a new one.
    repeated = replace(choice, slice_seed=channel.provenance.get("slice_seed"))
    useless = little_use(result)
    return Designed(
        title=_title(choice),
        sections=_sections(report),
        readings=reads,
        useless=f"{useless}{REMEDY}" if useless else "",
        text=first_screen(result, joint, last=()),
        messages=(
            *joint.notices,
            *result.messages,
            *((SEVERAL,) if choice.is_boxes else ()),
        ),
        files=(*design_files(result, report), *recipe_files(repeated, table)),
        command=command_of(repeated, table),
        script=script_of(repeated, table),
    )


def _title(choice: Choice) -> str:
    """What the channel is for."""
    from mechdesign.report import wording

    what = ""
    if choice.is_boxes:
        what = "merged values of " if choice.merge_rare else "boxes of "
    return f"A channel for {what}{wording.title(choice.released)}"


def _sections(report: Report) -> str:
    """The sections of the report that the page shows."""
    from mechdesign.report.document import document_of
    from mechdesign.report.writing import html_sections

    sections = document_of(report).sections
    return html_sections([section for section in sections if section.anchor in SHOWN])


def searched(
    table: MemoryTable, joint: md.Joint, choice: Choice, say: Say
) -> md.Design:
    """The design of the choice; a refusal speaks of what the page has."""
    arguments = choice.design_arguments
    data: Any = joint
    if choice.person:
        # The bins of people are in their table already.
        arguments.pop("bins", None)
    elif choice.is_boxes and choice.is_rows:
        # Boxes are learned on records, and not on their counts.
        data = table.frame
        arguments["sensitive"] = list(choice.sensitive)
        arguments["missing"] = choice.missing
    try:
        return md.design(
            data, choice.notion(joint), progress=progress_to(say), **arguments
        )
    except md.NotPrivate as error:
        # Its advice is about options, which the page does not have; the reason before it stays.
        reason, advice, _ = str(error).partition(" release them (")
        if not advice:
            raise
        raise md.InputError(
            f"{reason[:1].upper()}{reason[1:].rstrip(';:')}. Give them the role 'release', or "
            "choose in step 3 that the given columns are known."
        ) from None
