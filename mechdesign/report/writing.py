"""A report as a file: HTML, Markdown or JSON by its ending, whole or not at all.

Records of a channel come here (`save_reports`), and pages with a record of their own
(`save_document`). All become a text by `document_text` and a file by `save_text`, which replaces
the target only when the text is complete; two reports of one channel go through `save_texts`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mechdesign.core.errors import errors_noting
from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report import blocks
from mechdesign.report.document import document_of
from mechdesign.report.drawing import check_ending, check_matplotlib
from mechdesign.report.plain_values import to_json
from mechdesign.report.record import FORMAT, VERSION, Report

HTML = ".html"
ENDINGS = (HTML, ".md", ".json")


def check_report(
    path: PathLike,
    *,
    force: bool,
    sources: tuple[PathLike, ...] = (),
    pictures: bool = True,
) -> None:
    """Refuse a report that cannot be drawn or written, before any work is done."""
    if check_ending(path, "report", ENDINGS) == HTML and pictures:
        check_matplotlib(
            "an HTML report needs", "report", " (.md and .json reports need nothing)"
        )
    check_target(path, force=force, sources=sources)


def save_reports(
    reports: Sequence[tuple[PathLike, Report]], *, overwrite: bool
) -> None:
    """Write reports of one channel, each whole or not at all."""
    texts: list[tuple[PathLike, str]] = []
    for path, report in reports:
        check_report(path, force=overwrite, pictures=report.audience == "internal")
        texts.append((path, report_text(report, Path(path).suffix.lower())))
    save_texts(texts, overwrite=overwrite)


def save_document(
    path: PathLike,
    record: Mapping[str, Any],
    page: Callable[[], blocks.Document],
    *,
    overwrite: bool,
) -> None:
    """Write a page as HTML, Markdown or JSON by the ending of its path, whole or not at all."""
    text = document_text(record, page, Path(path).suffix.lower())
    save_text(path, text, overwrite=overwrite)


def report_text(report: Report, ending: str) -> str:
    """The report in the format of this ending."""
    record: dict[str, Any] = {}
    # Pages do not have it, and that of a large channel takes seconds.
    if ending == ".json":
        table = replace(report.channel, rows=tuple(report.channel.rows))
        report = replace(report, channel=table)
        if report.codebook is not None:
            report = replace(report, codebook=tuple(report.codebook))
        record = {"format": FORMAT, "version": VERSION, **asdict(report)}
    return document_text(record, lambda: document_of(report), ending)


def document_text(
    record: Mapping[str, Any], document: Callable[[], blocks.Document], ending: str
) -> str:
    """The document in the format of this ending, or its record where that is JSON."""
    if ending == ".json":
        return to_json(record) + "\n"
    # Pages need Jinja2, which JSON does not.
    from mechdesign.report.pages import html_page, markdown

    return html_page(document()) if ending == HTML else markdown(document())


def save_texts(texts: Sequence[tuple[PathLike, str]], *, overwrite: bool) -> None:
    """Write several files; an error names those that were complete before it.

    All texts are there before the first file is written, so that only a disk can fail between them.
    """
    written: list[str] = []
    for path, text in texts:
        with errors_noting(*[f"{name} is written" for name in written]):
            save_text(path, text, overwrite=overwrite)
        written.append(os.fspath(path))


def save_text(path: PathLike, text: str, *, overwrite: bool) -> None:
    """Write a report, whole or not at all."""
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
