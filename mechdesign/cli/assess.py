"""Before a release: what columns give away (`assess`, `inspect`), and a page to look at it (`app`).

*`mechdesign assess TABLE --sensitive S`*: what the columns of a table say about S.
`leaks.assessment` measures every column, every pair and whole rows. The answer is printed, and
--report writes the same as a page or as JSON. For each column people read a line such as ::

    column  values  tells  raises  lowers  gives away  note
    job          3  2.3 %    1.34    0.73         0 %

This job tells 2.3 % of the information in S, and one of its values makes one of S 1.34 times as
likely.

*`mechdesign inspect IN --channel CHANNEL`*: what the other columns of a file give away.
`leaks.inspection` measures each other column against each protected one. Here the same rows
(`_rows`) become text for the terminal (`_inspected_text`) or a page (`_page`), a row for each such
pair: ::

    column  values  about   raises  gives away  guessed  without
    region       2  job       1.07         0 %   36.5 %   35.0 %

Whoever sees the region guesses the job of 36.5 % of the records, and of 35 % without it.

*`mechdesign app [TABLE]`*: a local page to choose a release by looking. The command makes a
session, opens the table in it, prints the address of the page, and serves it until Ctrl-C. All else
is in `mechdesign.app`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

import mechdesign as md
from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import PROGRAM, Reporter
from mechdesign.cli.line import argument, command_line, flag, option, option_words
from mechdesign.cli.parsing import names
from mechdesign.cli.released import ChannelOption, FileColumns
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed

if TYPE_CHECKING:
    from mechdesign.comparison.planning import Plan
    from mechdesign.leaks.assessment import Assessment
    from mechdesign.leaks.inspection import Inspection
    from mechdesign.report.blocks import Document


ASSESS_EXAMPLE = (
    "Example:  mechdesign assess people.csv --sensitive income --report assessment.html"
)


@dataclass(frozen=True, kw_only=True)
class AssessOptions:
    """What is assessed"""

    table: str = argument(
        "TABLE", "CSV or Parquet file, one record a row.", public=options.PUBLIC_TABLE
    )
    sensitive: str | None = option(
        "COL[,COL..]", "Column(s) to protect; several are crossed."
    )
    columns: str | None = option(
        "COL[,COL..]", "Columns to look at; default: all others."
    )
    person: str | None = option(
        "COL[,COL..]",
        "Column(s) that name a person with several records: then people are assessed.",
    )
    wave: str | None = option(
        "COL", "With --person: the column that orders a person's records."
    )
    missing: str = option(
        "WHAT",
        "Treatment of empty cells: symbol (one more value), drop (leave the record out) or refuse.",
        "symbol",
    )
    plan: bool = flag(
        "Try releases of a sample: what each choice of columns and budget keeps."
    )
    report: str | None = option(
        "FILE",
        "The same as a report for those who may see the data: .html, .md or .json.",
        again=False,
    )


def assess(
    reporter: Reporter,
    asked: AssessOptions,
    cells: table_options.CellForms,
    text: table_options.TextFormat,
    common: options.CommonOptions,
    force: options.Force = False,
) -> None:
    """Measure what each column, each pair and whole rows say about a sensitive column, worst first.

    For every column: exact lifts, the share of the records that it pins down, rare values, and
    whether it identifies records. First what to settle: how the file is read, look-alikes, codes of
    missing values, empty cells. For all columns together: a cross-validated guess of the
    sensitive column.
    """
    from mechdesign.leaks.assessment import assess as measure
    from mechdesign.report.writing import check_report
    from mechdesign.tables.reading import NO_SENSITIVE, with_columns

    sensitive = parsing.columns("--sensitive", asked.sensitive)
    if sensitive is None:
        raise InputError(with_columns(NO_SENSITIVE, asked.table, text.text()))
    if asked.plan and asked.person is not None:
        raise InputError(
            "--plan tries releases of single records, and --person assesses people: leave one of "
            "both out (design --release all --person releases people)"
        )
    # Before the work, which takes a while on a large table. The page has no pictures, so matplotlib
    # is not asked for.
    if asked.report is not None:
        check_report(asked.report, force=force, sources=(asked.table,))
    with reporter.work("assessing"):
        assessment = measure(
            asked.table,
            sensitive=sensitive,
            columns=parsing.columns("--columns", asked.columns),
            text=text.text(),
            missing=asked.missing,
            person=parsing.columns("--person", asked.person),
            wave=asked.wave,
            form=cells.cell_form(),
        )
        plan: Plan | None = None
        command = ""
        if asked.plan:
            from mechdesign.comparison.planning import plan_release
            from mechdesign.report.assessment import plan_command

            plan = plan_release(
                asked.table,
                assessment,
                text=text.text(),
                missing=asked.missing,
                form=cells.cell_form(),
            )
            words = option_words(cells, text)
            command = plan_command(plan, asked.table, assessment.sensitive, words)
    if asked.report is not None:
        again = command_line("assess", asked, cells, text)
        _save(assessment, plan, command, asked, again, force=force)
    reporter.done("assessed", f"{asked.table} is assessed", records=assessment.records)
    common.answer(
        lambda: _record(assessment, plan, command),
        lambda: _text(assessment, plan, command or _next(asked, cells, text)),
    )


def _next(
    asked: AssessOptions,
    cells: table_options.CellForms,
    text: table_options.TextFormat,
) -> str:
    """The command that follows an assessment without a plan."""
    if asked.person is None:
        planned = replace(asked, plan=True)
        return command_line("assess", planned, cells, text, folders=True)
    words = [asked.table, *option_words(cells, text), "--release", "all"]
    words += ["--sensitive", str(asked.sensitive), "--person", asked.person]
    if asked.wave is not None:
        words += ["--wave", asked.wave]
    words += ["--at-most-times", "2", "--at-least-times", "0.5"]
    return shlex.join([PROGRAM, "design", *words])


def _text(assessment: Assessment, plan: Plan | None, command: str) -> str:
    """The assessment and the plan as they are printed, with the command that comes next."""
    if plan is None:
        return f"{assessment.summary()}\n\nNext:  {command}"
    from mechdesign.report.assessment import plan_text

    return f"{assessment.summary()}\n\n{plan_text(plan, command)}"


def _record(assessment: Assessment, plan: Plan | None, command: str) -> dict[str, Any]:
    """The assessment as JSON has it, in the report and with --json."""
    record = {"format": "mechdesign.assessment", "version": 1, **asdict(assessment)}
    if plan is not None:
        record["plan"] = {**asdict(plan), "command": command}
    return record


def _save(
    assessment: Assessment,
    plan: Plan | None,
    command: str,
    asked: AssessOptions,
    again: str,
    *,
    force: bool,
) -> None:
    """Write the report; `again` is the command that makes it again."""
    from mechdesign.report.assessment import assessment_page, plan_section
    from mechdesign.report.writing import save_document

    sections = () if plan is None else (plan_section(plan, command),)
    page = partial(
        assessment_page, assessment, os.path.basename(asked.table), again, sections
    )
    record = _record(assessment, plan, command)
    save_document(asked.report or "", record, page, overwrite=force)


# ------------------------------------------------------------------------------ inspect

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

INSPECT_EXAMPLE = (
    "Example:  mechdesign inspect people.csv --channel channel.json "
    "--sensitive relationship"
)


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
    from mechdesign.report.writing import check_report, save_document

    path = asked.report
    # Refused before the work. The page has no pictures, so matplotlib is not asked for.
    if path is not None:
        check_report(path, force=force, sources=(asked.source, channel))
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
        save_document(path, record, page, overwrite=force)
    reporter.done(
        "inspected", f"{asked.source} is inspected", records=inspection.records
    )
    common.answer(lambda: asdict(inspection), lambda: _inspected_text(inspection))


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


def _inspected_text(inspection: Inspection) -> str:
    """The rows as a table for the terminal."""
    from mechdesign.report.wording import aligned, count, label

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
    from mechdesign.report import blocks, wording
    from mechdesign.report.wording import label

    rows = [blocks.cells(*row) for row in _rows(inspection, wording.short)]
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


# --------------------------------------------------------------------------------- page

APP_EXAMPLE = "Example:  mechdesign app people.csv"


@dataclass(frozen=True, kw_only=True)
class AppOptions:
    """The page"""

    table: str | None = argument(
        "TABLE",
        "Data file, one record a row; or choose one on the page.",
        default=None,
        public=options.PUBLIC_TABLE,
    )
    port: int = option("NUMBER", "Port of 127.0.0.1; 0 takes a free one.", 0)
    open: bool = flag(
        "Open the page in the default browser. Its command line then shows the address, with the "
        "token, to everybody who is logged in to this computer."
    )


def app(reporter: Reporter, page: AppOptions) -> int:
    """Choose a release by looking, on a local page.

    The page is for your browser, on this computer alone. Choose a file, give every column a role,
    choose the promise, see what an analyst reads, release and check the file, and download it with
    its manifest, reports, and the script, command and job file that do the same. Only its whole
    address is answered, and the table stays in memory. Ctrl-C ends it.
    """
    import webbrowser

    from mechdesign.app.server import LocalServer, check_installed
    from mechdesign.app.session import Session

    # Before the table is read: the packages of the server are an extra of the installation.
    check_installed()
    session = Session()
    if page.table is not None:
        session.open_path(page.table)
    server = LocalServer(session, port=page.port)
    typer.echo(f"Open {server.address}")
    reporter.notice("Ctrl-C ends the page and forgets the table.")
    # The address is printed before: a machine may have no browser to open.
    if page.open:
        webbrowser.open(server.address)
    server.run()
    return 0
