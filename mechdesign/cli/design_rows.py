"""The steps of `mechdesign design TABLE --release A,B*C`, which makes a channel for whole rows.

1. `read_rows` reads the table of all columns of the release, crossed: a useful symbol is a row.
2. `designed` passes it to `mechanisms.rows.design_rows` with the levels of `row_options`, which are
   drawn one after the other.
3. `answer_rows` writes the channel and its report and prints the promise.

For example, ``--release job,age*city --given sex`` has the levels (job) and (age, city). A useful
symbol of the table is (F, nurse, 30, Ulm), the given column first.

`row_designs` calls these steps in this order, and `compare_rows` the first. `answer_rows` also
serves channels for boxes (--confidence, --merge-rare). A box is a set of rows, such as 'job nurse,
clerk; age 30-39' (`channel.box_channel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.design_options import OutputOptions
from mechdesign.cli.line import COMMAND, command_line
from mechdesign.cli.report import ReportOptions, save_rows
from mechdesign.cli.row_options import RowColumns, RowOptions
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
    import mechdesign as md
    from mechdesign.mechanisms.box_result import BoxDesign
    from mechdesign.mechanisms.row_result import RowDesign
    from mechdesign.tables.joint import Joint


def read_rows(table: table_options.InputTable, rows: RowColumns) -> Joint:
    """The table of all columns of the release, crossed and not yet sorted into bins."""
    if table.contingency or table.probabilities:
        raise InputError(
            "--release takes a table of records (or long counts with --weight), not "
            "--contingency or --probabilities"
        )
    if table.useful is not None:
        raise InputError("--release names the columns to release: leave --useful out")
    columns = [*rows.given_columns()]
    for level in rows.levels():
        columns += level
    # Refused before the table is read, which may be long.
    secrets = parsing.columns("--sensitive", table.sensitive) or ()
    if isinstance(secrets, str):
        # One column whose name has commas, or several columns: the table decides.
        secrets = (secrets, *secrets.split(","))
    for name in secrets:
        if name in columns:
            raise InputError(
                f"the sensitive column {quoted(name)} cannot be released or given; leave it out of "
                "--release and --given"
            )
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise InputError(
            f"the column {quoted(twice[0])} is released twice; name it in one level "
            "of --release, or in --given"
        )
    # Its bins are applied by the design, which knows the levels.
    whole = replace(table, bins=None)
    return whole.joint(table.table, useful=tuple(columns))


def designed(
    joint: Joint,
    rows: RowOptions,
    notion: md.Notion,
    *,
    objective: str,
    bins: Any,
    time_limit: float,
    progress: Any,
    keep: str | None = None,
    allow_identifier: bool = False,
    confidence: float | None = None,
    task: Joint | None = None,
) -> RowDesign | BoxDesign:
    """The design of a row channel for a crossed table; `task` is that of the task column."""
    from mechdesign.mechanisms.rows import design_rows

    return design_rows(
        joint,
        sensitive=joint.sensitive.columns,
        release=rows.levels(),
        notion=notion,
        given=rows.given_columns(),
        promise=rows.promise,
        objective=objective,
        order=rows.order,
        least_mass=rows.mass(),
        bins=bins,
        time_limit=time_limit,
        keep=keep,
        allow_identifier=allow_identifier,
        confidence=confidence,
        cells=rows.count("--cells", rows.cells),
        rare=rows.count("--rare", rows.rare),
        fill=rows.fill,
        slice_seed=rows.count("--slice-seed", rows.slice_seed),
        task=task,
        progress=progress,
    )


def answer_rows(
    reporter: Reporter,
    design: RowDesign | BoxDesign,
    common: options.CommonOptions,
    *,
    files: OutputOptions,
    force: bool,
    groups: tuple[object, ...],
    reports: ReportOptions,
) -> int:
    """Write the file of a channel for rows or boxes and its report, and print its promise."""
    # A line for others, because the channel file may be given away.
    design = _with_command(design, command_line("design", *groups, public=True))
    output = files.output
    end = ["Nothing was written; --output channel.json keeps this channel."]
    if output is not None:
        design.channel.save(output, overwrite=force, public=files.public)
        end = [f"Written to {output}. Next:  mechdesign apply {output} IN.csv OUT.csv"]
    if reports.asked:
        save_rows(design.channel, output or "the channel", reports, force=force)
        end += reports.text().split("\n")
    reporter.done("designed", "\n".join(end))
    common.answer(
        lambda: _record(design, output) | _written(reports),
        lambda: _text(design, files, end),
    )
    return 0 if design.audit.satisfied else NO


def _record(design: RowDesign | BoxDesign, output: str | None) -> dict[str, Any]:
    """The record of a design for --json."""
    from mechdesign.mechanisms.row_result import RowDesign
    from mechdesign.report.rows import row_design_record

    if isinstance(design, RowDesign):
        return row_design_record(design, output)
    return {**design.to_record(), "output": output}


def _text(
    design: RowDesign | BoxDesign, files: OutputOptions, end: Sequence[str]
) -> str:
    """The first screen, or with --full or --all-measures all sections, and the lines at the end."""
    from mechdesign.mechanisms.row_result import RowDesign
    from mechdesign.report.box_first_screen import box_first_screen
    from mechdesign.report.row_first_screen import row_first_screen

    if files.full or files.all_measures:
        sections = [design.summary()]
        if files.all_measures and isinstance(design, RowDesign):
            sections.append(_measures_text(design))
        return "\n\n".join([*sections, "\n".join(end)])
    if isinstance(design, RowDesign):
        return row_first_screen(design, last=end)
    return box_first_screen(design, last=end)


def _with_command(design: RowDesign | BoxDesign, line: str) -> RowDesign | BoxDesign:
    """The design whose channel says by which command it was made."""
    from mechdesign.mechanisms.row_result import RowDesign

    if not isinstance(design, RowDesign):
        provenance = {**design.channel.provenance, COMMAND: line}
        return replace(design, channel=replace(design.channel, provenance=provenance))
    # A row channel keeps its origin in the record that its audit and reports use.
    record = design.channel.record
    record = replace(record, provenance={**record.provenance, COMMAND: line})
    return replace(design, channel=replace(design.channel, record=record))


def _measures_text(design: RowDesign) -> str:
    """Every measure of a row channel."""
    from mechdesign.auditing.row_measures import measure_rows
    from mechdesign.report.rows import row_measures_text

    return row_measures_text(design.channel, measure_rows(design.channel))


def _written(reports: ReportOptions) -> dict[str, Any]:
    """The paths of the reports that are written, for the record of a design."""
    return {name: path for name, path in reports.files.items() if path is not None}
