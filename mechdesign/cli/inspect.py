"""`mechdesign inspect IN --channel CHANNEL`: what the other columns of a file give
away, before any release.

`leaks.inspection` measures each other column against each protected one. Here the same rows
(`_rows`) become text for the terminal (`_text`) or a page (`_page`), a row for each such pair: ::

    column  values  about   raises  gives away  guessed  without
    region       2  job       1.07         0 %   36.5 %   35.0 %

Whoever sees the region guesses the job of 36.5 % of the records, and of 35 % without it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, command_line, option
from mechdesign.cli.parsing import names
from mechdesign.cli.released import ChannelOption, FileColumns
from mechdesign.core.wording import listed

if TYPE_CHECKING:
    from mechdesign.leaks.inspection import Inspection
    from mechdesign.report.blocks import Document

HEADER = (
    "column",
    "values",
    "about",
    "raises",
    "gives away",
    "guessed",
    "without",
)

ALONE = "The file has no other column, so that none of them tells anything."
"""What is said of a file with the released columns alone."""

LEGEND = (
    "'Raises' is the largest factor by which a value of the column multiplies "
    "the probability of a symbol, among values of two records or more. 'Gives away' is "
    "the share of records whose value comes again, always with the same symbol. "
    "'Guessed' is the share of records whose symbol is right when it is guessed from "
    "the other records with that value, or from the record before when all are "
    "sorted by the column, beside the share without it. `apply` refuses "
    "a column that gives the useful or sensitive one away. A column that reveals the "
    "sensitive one breaks the promise for everybody who sees it."
)

EXAMPLE = "Example:  mechdesign inspect people.csv --channel channel.json --sensitive relationship"


@dataclass(frozen=True, kw_only=True)
class Inspected(FileColumns):
    """Which columns"""

    source: str = argument("IN", "CSV or Parquet file with the released columns.")
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
    channel: ChannelOption,
    text: table_options.TextFormat,
    common: options.CommonOptions,
    force: options.Force = False,
) -> None:
    """List what other columns reveal about the released and the sensitive ones, worst first.

    For every column: the largest lift, the share of records that it pins down (their
    value comes again, always with the same symbol), and how often the symbol is guessed
    right with it and without it.
    """
    from mechdesign.channel.file import load
    from mechdesign.leaks.inspection import inspect_file
    from mechdesign.report.writing import check_report, document_text, save_text

    path = asked.report
    # Refused before the work. The page has no pictures, so matplotlib is not asked for.
    if path is not None:
        check_report(path, force=force, sources=(asked.source, channel), pictures=False)
    loaded = load(channel)
    asked.check_people([loaded])
    with reporter.work("reading"):
        inspection = inspect_file(
            loaded,
            asked.source,
            sensitive=names("--sensitive", asked.sensitive),
            columns=asked.renamed,
            text=text.text(),
        )
    _name_people(reporter, asked.source, loaded, inspection, text)
    if path is not None:
        record = {"format": "mechdesign.inspection", "version": 1, **asdict(inspection)}
        file = shlex.quote(os.path.basename(channel))
        # --channel is a parameter of typer and in no group, so `command_line` does not know it.
        again = f"{command_line('inspect', asked, text)} --channel {file}"
        page = partial(_page, inspection, asked.source, again)
        save_text(
            path,
            document_text(record, page, Path(path).suffix.lower()),
            overwrite=force,
        )
    reporter.done(
        "inspected", f"{asked.source} is inspected", records=inspection.records
    )
    common.answer(lambda: asdict(inspection), lambda: _text(inspection))


def _name_people(
    reporter: Reporter,
    source: str,
    channel: md.Channel,
    inspection: Inspection,
    text: table_options.TextFormat,
) -> None:
    """Say what people's records reach together, if the file has people with several records and the
    channel promises for each record alone.
    """
    from mechdesign.leaks.people_notice import people_in, people_notice, reach_in

    if channel.people is not None or not inspection.sensitive:
        return
    alone = inspection.useful if len(inspection.useful) == 1 else ()
    found = people_in(source, inspection.sensitive, text.text(), but=alone)
    if found is not None:
        reach = None
        if len(channel.channels) == 1:
            reach = reach_in(found, channel.channels[0])
        reporter.notices((people_notice(found, inspection.sensitive, reach),))


def _rows(inspection: Inspection, label: Callable[[str], str]) -> list[list[str]]:
    """A row for each pair of another column and a protected one."""
    from mechdesign.report.wording import percent

    rows: list[list[str]] = []
    for column in inspection.columns:
        # Counting ends at a limit: a column of more values is an identifier, or free text.
        values = "many"
        if column.values is not None:
            values = f"{column.values:,}"
        # A column that was not compared is listed all the same, so that none seems forgotten.
        if not column.about:
            rows.append([label(column.column), values, "-", "-", "-", "-", "-", ""])
        for name, tells in column.about.items():
            lift, remark = "-", ""
            if tells.lift is not None:
                lift = f"{tells.lift:.3g}"
            if tells.stands_for:
                remark = "stands for it"
            rows.append(
                [
                    label(column.column),
                    values,
                    label(name),
                    lift,
                    percent(tells.pinned),
                    percent(tells.guessed),
                    percent(tells.alone),
                    remark,
                ]
            )
    return rows


def _text(inspection: Inspection) -> str:
    """The rows as a table for the terminal."""
    from mechdesign.report.layout import aligned
    from mechdesign.report.wording import count, label

    if not inspection.columns:
        return f"{count(inspection.records, 'record')}. {ALONE}"
    rows = [[*HEADER, ""]]
    for row in _rows(inspection, label):
        rows.append([*row[:-1], f"  {row[-1]}"])
    lines = [line.rstrip() for line in aligned(rows, left=(0, 2, 7))]
    heading = f"{count(inspection.records, 'record')}; other columns, worst first:"
    return "\n".join([heading, *lines])


def _page(inspection: Inspection, source: str, again: str) -> Document:
    """The internal report; `again` is the command that makes it again."""
    from mechdesign.report import blocks
    from mechdesign.report.wording import label

    rows = [blocks.cells(*row) for row in _rows(inspection, blocks.short)]
    worst: list[str] = []
    for column in inspection.columns:
        if any(tells.stands_for for tells in column.about.values()):
            worst.append(column.column)
    given_away = "none"
    if worst:
        given_away = listed(worst)
    lead = (
        f"What the other columns of {label(os.path.basename(source))} reveal about "
        f"{listed(inspection.useful)}"
    )
    if inspection.sensitive:
        lead += f", and about {listed(inspection.sensitive)}"
    header = (*HEADER, "apply")
    table = blocks.paragraphs([ALONE])
    if rows:
        grid = blocks.grid(
            "Other columns, worst first", header, rows, "columns", (0, 2, 7)
        )
        table = (blocks.Text(LEGEND), *grid)
    contents = (*table, blocks.Lines((("Inspect again:", again),)))
    return blocks.Document(
        title="What else tells",
        banner="Internal report: it is computed from the data. Do not publish.",
        internal=True,
        lead=f"{lead}, before any release.",
        highlights=(
            ("Records", f"{inspection.records:,}"),
            ("Other columns", f"{len(inspection.columns):,}"),
            ("Give a protected column away", given_away),
        ),
        sections=(blocks.Section("columns", "Other columns", contents),),
        footer="Written by mechdesign.",
    )
