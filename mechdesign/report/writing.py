"""A report as a file: HTML, Markdown or JSON by its ending, whole or not at all.

Three kinds of reports come here: records of one column (`save_report`), internal pages of rows and
boxes (`save_page`), and their pages for everybody (`save_public_page`). All become a text by
`document_text` and a file by `save_text`, which replaces the target only when the text is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from mechdesign.core.files import PathLike, check_target, replacing
from mechdesign.report import blocks
from mechdesign.report.document import document_of
from mechdesign.report.drawing import check_ending, check_matplotlib
from mechdesign.report.plain_values import to_json
from mechdesign.report.record import FORMAT, VERSION, Report

HTML = ".html"
ENDINGS = (HTML, ".md", ".json")


PageMaker: TypeAlias = Callable[..., blocks.Document]
"""``page(pictures=..)`` lays out a page, with pictures or without."""


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


def save_report(report: Report, path: PathLike, *, overwrite: bool = False) -> None:
    """Write the report, whole or not at all."""
    check_report(path, force=overwrite, pictures=report.before is not None)
    save_text(path, report_text(report, Path(path).suffix.lower()), overwrite=overwrite)


def save_page(
    path: PathLike, record: Mapping[str, Any], page: PageMaker, *, overwrite: bool
) -> None:
    """Write a page as HTML, Markdown or JSON by the ending of its path, whole or not at all."""
    # Markdown shows no pictures, and so needs no matplotlib.
    pictures = Path(path).suffix.lower() == HTML
    save_document(path, record, lambda: page(pictures=pictures), overwrite=overwrite)


def save_document(
    path: PathLike,
    record: Mapping[str, Any],
    page: Callable[[], blocks.Document],
    *,
    overwrite: bool,
) -> None:
    """The same of a page that has no pictures, or has decided on them."""
    text = document_text(record, page, Path(path).suffix.lower())
    save_text(path, text, overwrite=overwrite)


def save_public_page(
    path: PathLike,
    channel_record: Mapping[str, Any],
    page: Callable[[], blocks.Document],
    *,
    version: tuple[str, int],
    satisfied: bool | None,
    overwrite: bool,
) -> None:
    """Write a report for everybody by the ending of `path`, whole or not at all.

    Parameters
    ----------
    path : path
        The file.
    channel_record : mapping
        The record of the public channel, which is the content of a JSON report.
    page : callable
        Makes the document of the other formats.
    version : pair of str and int
        The name and the version of the JSON format.
    satisfied : bool or None
        The exact verdict, if known.
    overwrite : bool
        Whether a file that exists is replaced.
    """
    name, number = version
    head = {"format": name, "version": number, "satisfied": satisfied}
    text = document_text({**head, **channel_record}, page, Path(path).suffix.lower())
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


def save_text(path: PathLike, text: str, *, overwrite: bool) -> None:
    """Write a report, whole or not at all."""
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
