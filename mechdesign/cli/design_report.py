"""The reports of `design`: the command as it was typed, and the result as findings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mechdesign.cli.commands import commands, design_of
from mechdesign.cli.compare import Interrupted

if TYPE_CHECKING:
    from mechdesign.cli.report_files import ReportPaths
    from mechdesign.cli.reporting import Reporter
    from mechdesign.mechanisms.result import Design
    from mechdesign.tables.joint import Joint


def save_reports(
    result: Design,
    joint: Joint,
    table: str,
    paths: ReportPaths,
    line: str,
    output: str | None,
    reporter: Reporter,
) -> None:
    """Write the reports that `paths` asks for; the channel file, if any, is there already."""
    try:
        _save_reports(result, joint, table, paths, line, output, reporter)
    except KeyboardInterrupt:
        kept = "nothing was written" if output is None else f"{output} is written, its reports are not"
        raise Interrupted(f"interrupted; {kept}") from None


def _save_reports(
    result: Design,
    joint: Joint,
    table: str,
    paths: ReportPaths,
    line: str,
    output: str | None,
    reporter: Reporter,
) -> None:
    from mechdesign.report.collect import attributed, internal_report, remarks_of
    from mechdesign.report.content import public_report

    files = {} if table == "-" else {"Table": table}  # standard input is gone when it has been read
    files |= {} if output is None else {"Channel file": output}
    channel, full, shown = result.channel, None, None
    if paths.internal is not None:
        full = attributed(
            internal_report(
                channel,
                result.notion,
                joint,
                reporter.work,
                certificate=result.certificate,
                remarks=(*remarks_of(result), *result.messages),
                seconds=result.seconds,
                table=os.path.basename(table),
            ),
            channel,
            commands(line, output, public=False),
            files,
        )
    if paths.public is not None:
        shown = attributed(
            public_report(channel, result.notion, satisfied=result.verified),
            channel,
            commands(design_of(channel, "TABLE.csv", "CHANNEL.json"), None, public=True),
        )
    paths.save(full, shown)
