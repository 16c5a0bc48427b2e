"""The reports of `design`: the command as it was typed, and the result as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechdesign.cli.compare import Interrupted
from mechdesign.cli.findings import Made, findings_of, frames

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
    """Write the reports that `paths` asks for; the channel file, if any, is there already.

    Parameters
    ----------
    line : str
        The command that designs the channel again, for those who may see the table.

    Raises
    ------
    Interrupted
        On Ctrl-C; it says what is there.
    """
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
    from mechdesign.report.building import internal_report
    from mechdesign.report.promises import remarks
    from mechdesign.report.public import public_report

    made = Made(
        channel=result.channel,
        notion=result.notion,
        mechanism=result.mechanism,
        method=result.method,
        certificate=result.certificate,
        remarks=(*remarks(result), *result.messages),
        seconds=result.seconds,
    )
    files = {} if table == "-" else {"Table": table}  # standard input is gone when it has been read
    files |= {} if output is None else {"Channel file": output}
    inside, outside = frames(made, design_line=line, files=files, file=output)
    full = shown = None
    if paths.internal is not None:
        full = internal_report(findings_of(made, joint, table, reporter), inside)
    if paths.public is not None:
        shown = public_report(
            result.channel,
            result.notion,
            outside,
            mechanism=result.mechanism,
            method=result.method,
            satisfied=result.verified,
        )
    paths.save(full, shown)
