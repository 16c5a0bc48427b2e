"""`mechdesign assess TABLE --sensitive S`: what the columns of a table say about S,
before any design.

`leaks.assessment` measures every column, every pair and whole rows. The answer is printed, and
--report writes the same as a page or as JSON. For each column people read a line such as ::

    column  values  tells  raises  lowers  gives away  note
    job          3  2.3 %    1.34    0.73         0 %

This job tells 2.3 % of the information in S, and one of its values makes one of S 1.34 times as
likely.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import PROGRAM, Reporter
from mechdesign.cli.line import argument, command_line, flag, option, option_words
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.comparison.planning import Plan
    from mechdesign.leaks.assessment import Assessment

EXAMPLE = (
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
    normalise: str | None = option(
        "FORM",
        "Unicode form in which cells are compared: none, NFC, NFD, NFKC or NFKD.",
    )
    trim: bool = flag("Compare cells without blanks at their ends.")
    missing_codes: str | None = option(
        "TEXT[,TEXT..]",
        "Cells with these texts, such as ?, NA or -9, are empty ones.",
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
    from mechdesign.tables.reading import with_columns

    sensitive = parsing.columns("--sensitive", asked.sensitive)
    if sensitive is None:
        question = "--sensitive COL is missing: which column is to be protected?"
        raise InputError(with_columns(question, asked.table, text.text()))
    if asked.plan and asked.person is not None:
        raise InputError(
            "--plan tries releases of single records, and --person assesses people: leave one of "
            "both out (design --release all --person releases people)"
        )
    # What says how cells are read has the names that `design` has for it.
    reading = table_options.TableOptions(
        normalise=asked.normalise, trim=asked.trim, missing_codes=asked.missing_codes
    )
    # Before the work, which takes a while on a large table. The page has no pictures, so matplotlib
    # is not asked for.
    if asked.report is not None:
        check_report(asked.report, force=force, sources=(asked.table,), pictures=False)
    with reporter.work("assessing"):
        assessment = measure(
            asked.table,
            sensitive=sensitive,
            columns=parsing.columns("--columns", asked.columns),
            text=text.text(),
            missing=asked.missing,
            person=parsing.columns("--person", asked.person),
            wave=asked.wave,
            form=reading.cell_form(),
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
                form=reading.cell_form(),
            )
            words = option_words(text, reading)
            command = plan_command(plan, asked.table, assessment.sensitive, words)
    if asked.report is not None:
        again = command_line("assess", asked, text)
        _save(assessment, plan, command, asked, again, force=force)
    reporter.done("assessed", f"{asked.table} is assessed", records=assessment.records)
    common.answer(
        lambda: _record(assessment, plan, command),
        lambda: _text(assessment, plan, command or _next(asked, text, reading)),
    )


def _next(
    asked: AssessOptions,
    text: table_options.TextFormat,
    reading: table_options.TableOptions,
) -> str:
    """The command that follows an assessment without a plan."""
    if asked.person is None:
        return command_line("assess", replace(asked, plan=True), text, folders=True)
    words = [asked.table, *option_words(text, reading), "--release", "all"]
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
