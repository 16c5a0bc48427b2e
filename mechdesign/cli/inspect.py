"""`mechdesign inspect IN --channel CHANNEL`: what the other columns of a file tell, before any release."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli import released as f
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, command_line, option
from mechdesign.cli.parsing import names
from mechdesign.core.wording import listed

if TYPE_CHECKING:
    from mechdesign.leaks.inspection import Inspection
    from mechdesign.report.blocks import Document

HEADER = (
    "column",
    "values",
    "about",
    "largest lift",
    "pinned down",
    "guessed",
    "without",
)

TOLD = (
    "The largest lift is how many times as likely a value of the column makes a symbol at most, among values of two "
    "records or more. Pinned down is the share of records whose value comes again, and always with the same symbol. "
    "Guessed is how often the symbol is right when it is guessed from the other records with that value, and without "
    "it. A column that stands for another one is refused by apply. What a column tells of the sensitive one voids the "
    "promise for whoever sees it."
)

EXAMPLE = "Example:  mechdesign inspect people.csv --channel channel.json --sensitive relationship"


@dataclass(frozen=True, kw_only=True)
class Inspected(f.FileColumns):
    """Which columns"""

    source: str = argument("IN", "CSV or Parquet file with the useful column.")
    sensitive: list[str] | None = option(
        "COL[,COL..]",
        "The sensitive column(s) of the file; default: those of the channel, where it has them.",
    )
    report: str | None = option(
        "FILE",
        "The same as a report for those who may see the data: .html, .md or .json.",
        again=False,
    )


def inspect(
    reporter: Reporter,
    asked: Inspected,
    channel: f.ChannelOption,
    text: o.TextFormat,
    common: o.CommonOptions,
    force: o.Force = False,
) -> None:
    """List what each other column says about the useful and the sensitive column, worst first.

    Of every column the largest lift, the share of records that it pins down (their value comes again, and always with
    the same symbol), and how often the symbol is guessed right with it and without it.
    """
    from mechdesign.leaks.inspection import inspect_file
    from mechdesign.report.writing import check_report, document_text, save_text

    if (path := asked.report) is not None:
        check_report(path, force=force, sources=(asked.source, channel), pictures=False)
    with reporter.work("reading"):
        loaded, sensitive = (
            md.Channel.load(channel),
            names("--sensitive", asked.sensitive),
        )
        found = inspect_file(
            loaded,
            asked.source,
            sensitive=sensitive,
            columns=asked.renamed,
            text=text.text(),
        )
    if path is not None:
        record = {"format": "mechdesign.inspection", "version": 1, **asdict(found)}
        again = f"{command_line('inspect', asked, text)} --channel {shlex.quote(os.path.basename(channel))}"
        page = partial(_page, found, asked.source, again)
        save_text(
            path,
            document_text(record, page, Path(path).suffix.lower()),
            overwrite=force,
        )
    reporter.done("inspected", f"{asked.source} is inspected", records=found.records)
    common.answer(lambda: asdict(found), lambda: _text(found))


def _rows(found: Inspection, label: Callable[[str], str]) -> list[list[str]]:
    from mechdesign.report.wording import percent

    rows: list[list[str]] = []
    for told in found.columns:
        values = "many" if told.values is None else f"{told.values:,}"
        for other, each in told.about.items():
            lift = "-" if each.lift is None else f"{each.lift:.3g}"
            shares = map(percent, (each.pinned, each.guessed, each.alone))
            mark = "stands for it" if each.stands_for else ""
            rows.append([label(told.column), values, label(other), lift, *shares, mark])
        if not told.about:
            rows.append([label(told.column), values, "-", "-", "-", "-", "-", ""])
    return rows


def _text(found: Inspection) -> str:
    from mechdesign.report.wording import aligned, count, label

    rows = [
        [*HEADER, ""],
        *([*row[:-1], f"  {row[-1]}"] for row in _rows(found, label)),
    ]
    lines = [line.rstrip() for line in aligned(rows, left=(0, 2, 7))]
    return "\n".join(
        [f"{count(found.records, 'record')}; other columns, worst first:", *lines]
    )


def _page(found: Inspection, source: str, again: str) -> Document:
    from mechdesign.report import blocks as b
    from mechdesign.report.wording import label

    rows = [b.cells(*row) for row in _rows(found, b.short)]
    worst = [
        told.column
        for told in found.columns
        if any(each.stands_for for each in told.about.values())
    ]
    blocks = [
        b.Text(TOLD),
        *b.grid(
            "Other columns, worst first", (*HEADER, "apply"), rows, "columns", (0, 2, 7)
        ),
    ]
    return b.Document(
        title="What else tells",
        banner="Internal report: it is computed from the data. Do not publish.",
        internal=True,
        lead=f"What the other columns of {label(os.path.basename(source))} say about {listed(found.useful)}"
        f"{f', and about {listed(found.sensitive)}' if found.sensitive else ''}, before any release.",
        highlights=(
            ("Records", f"{found.records:,}"),
            ("Other columns", f"{len(found.columns):,}"),
            ("Stand for what is protected", listed(worst) if worst else "none"),
        ),
        sections=(
            b.Section(
                "columns",
                "Other columns",
                (*blocks, b.Lines((("Inspect again:", again),))),
            ),
        ),
        footer="Written by mechdesign.",
    )
