"""The end of a design of boxes: the files that are written and what is printed.

`row_designs` makes the design; a box is a set of rows, such as 'job nurse, clerk; age 30-39'
(`channel.box_channel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.design_options import OutputOptions
from mechdesign.cli.line import COMMAND, command_line
from mechdesign.cli.report import ReportOptions, save_boxes

if TYPE_CHECKING:
    from mechdesign.mechanisms.box_result import BoxDesign


def answer_boxes(
    reporter: Reporter,
    design: BoxDesign,
    common: options.CommonOptions,
    *,
    files: OutputOptions,
    force: bool,
    groups: tuple[object, ...],
    reports: ReportOptions,
) -> int:
    """Write the file of a channel for boxes and its report, and print its promise."""
    # A line for others, because the channel file may be given away.
    design = _with_command(design, command_line("design", *groups, public=True))
    output = files.output
    end = ["Nothing was written; --output channel.json keeps this channel."]
    if output is not None:
        design.channel.save(output, overwrite=force, public=files.public)
        end = [f"Written to {output}. Next:  mechdesign apply {output} IN.csv OUT.csv"]
    if reports.asked:
        save_boxes(design.channel, output or "the channel", reports, force=force)
        end += reports.text().split("\n")
    reporter.done("designed", "\n".join(end))
    common.answer(
        lambda: {**design.to_record(), "output": output} | _written(reports),
        lambda: _text(design, files, end),
    )
    return 0 if design.audit.satisfied else NO


def _text(design: BoxDesign, files: OutputOptions, end: Sequence[str]) -> str:
    """The first screen, or with --full or --all-measures all sections, and the lines at the end."""
    from mechdesign.report.box_first_screen import box_first_screen

    if files.full or files.all_measures:
        return "\n\n".join([design.summary(), "\n".join(end)])
    return box_first_screen(design, last=end)


def _with_command(design: BoxDesign, line: str) -> BoxDesign:
    """The design whose channel says by which command it was made."""
    provenance = {**design.channel.provenance, COMMAND: line}
    return replace(design, channel=replace(design.channel, provenance=provenance))


def _written(reports: ReportOptions) -> dict[str, Any]:
    """The paths of the reports that are written, for the record of a design."""
    return {name: path for name, path in reports.files.items() if path is not None}
