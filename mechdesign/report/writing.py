"""A report as a file: HTML, Markdown or JSON by its ending, whole or not at all."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report.document import document_of
from mechdesign.report.record import FORMAT, VERSION, Report
from mechdesign.report.records import to_json

HTML = ".html"
ENDINGS = (HTML, ".md", ".json")


def check_report(
    path: PathLike, *, force: bool, sources: tuple[PathLike, ...] = (), pictures: bool = True
) -> None:
    """Refuse a report that cannot be drawn or written, before any work is done."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"{os.fspath(path)}: a report must end in {', '.join(ENDINGS)}, not {ending or 'nothing'}"
        )
    if ending == HTML and pictures:
        from mechdesign.report.pictures import check_pictures

        check_pictures()
    check_target(path, force=force, sources=sources)


def report_text(report: Report, ending: str) -> str:
    """The report in the format of this ending."""
    if ending == ".json":
        return to_json({"format": FORMAT, "version": VERSION, **asdict(report)}) + "\n"
    if ending == HTML:
        from mechdesign.report.html import html_page

        return html_page(document_of(report))
    from mechdesign.report.markdown import markdown

    return markdown(document_of(report))


def save_report(report: Report, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the report, whole or not at all."""
    pictures = report.before is not None
    check_report(path, force=overwrite, pictures=pictures)
    text = report_text(report, Path(path).suffix.lower())
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
