"""`mechdesign design TABLE --release A,B*C`: a channel for whole rows. `design` hands
over to it.

`RowColumns` and `RowOptions` are the options: --release A,B*C gives the levels (A,) and (B, C),
which are released one after the other, each given those before it. `read_rows` reads the table of
all these columns crossed, `designed` passes it to `mechanisms.rows.design_rows`, and `answer_rows`
writes and prints the result. The latter also serves channels for boxes (--confidence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.design_options import OutputOptions
from mechdesign.cli.line import COMMAND, command_line, flag, option
from mechdesign.cli.report import ReportOptions, save_rows
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
    import mechdesign as md
    from mechdesign.mechanisms.box_result import BoxDesign
    from mechdesign.mechanisms.row_result import RowDesign
    from mechdesign.tables.joint import Joint

TRUTH, INFORMATION = "truth", "information"
TOTAL = "total"


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """Release whole rows"""

    release: list[str] | None = option(
        "COL[*COL][,..]",
        "Release whole rows of these columns under one promise; "
        "levels in this order, A*B crosses two columns in one level.",
    )
    given: list[str] | None = option(
        "COL[,COL..]", "Columns released as they are, with --release."
    )
    promise: str = option(
        "WHICH",
        "With --given: total (compared with knowing nothing) or relative (compared "
        "with knowing the given columns).",
        "total",
    )
    order: str = option(
        "WHICH",
        "Order of the levels: given, or best (tries all for up to five).",
        "given",
    )
    least_mass: str | None = option(
        "SHARE",
        "Rows whose beginning is rarer than this release the rest as a constant.",
    )

    @property
    def asked(self) -> bool:
        """Whether rows are to be released."""
        return self.release is not None

    def levels(self) -> list[tuple[str, ...]]:
        """The columns of each level."""
        levels: list[tuple[str, ...]] = []
        for text in self.release or ():
            for level in text.split(","):
                # "A*B" is one level of two columns, which are drawn together.
                columns = tuple(level.split("*"))
                if "" in columns:
                    raise InputError(
                        f"--release {text!r} has an empty column name; write A,B*C,D"
                    )
                levels.append(columns)
        return levels

    def given_columns(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        columns: list[str] = []
        for text in self.given or ():
            columns += text.split(",")
        if "" in columns:
            raise InputError("--given has an empty column name; write A,B")
        return tuple(columns)

    def mass(self) -> float | None:
        """The share of the records that the beginning of a row needs (`least_mass`)."""
        if self.least_mass is None:
            return None
        try:
            return float(self.least_mass)
        except ValueError:
            raise InputError(
                f"--least-mass ({quoted(self.least_mass)}) must be a share of the records in [0, 1)"
            ) from None


@dataclass(frozen=True, kw_only=True)
class RowOptions(RowColumns):
    """Release whole rows"""

    cells: str | None = option(
        "N",
        "With --release and --confidence: number of boxes of rows; by default a slice "
        "of the records chooses.",
    )
    rare: str | None = option(
        "auto|N",
        "With --confidence, and --release or --merge-rare: sensitive values of fewer records are "
        "promised together; auto (--merge-rare) takes the fewest with which half is kept.",
    )
    fill: bool = flag(
        "With --release and --confidence: release symbols drawn inside the released box."
    )

    slice_seed: str | None = option(
        "N",
        "With --confidence, and --release or --merge-rare: repeat the draw of the slice of an "
        "earlier design. Do not choose it by its result.",
    )

    merge_rare: str | None = option(
        "auto|N",
        "With --useful and --confidence: merge useful symbols on a tenth of the "
        "records, and prove the promise on the others; auto chooses the sets, N "
        "merges symbols of fewer than N records.",
    )

    @property
    def merging(self) -> bool:
        """Whether symbols of one column are to be merged."""
        return self.merge_rare is not None

    def merge_below(self) -> int | None:
        """The number of records below which symbols are merged; None where the slice chooses."""
        if self.merge_rare in (None, "auto"):
            return None
        return self.count("--merge-rare", self.merge_rare)

    def rare_records(self) -> int | Literal["auto"]:
        """Records below which sensitive values are promised together, for one column."""
        if self.rare == "auto":
            return "auto"
        return self.count("--rare", self.rare) or 0

    def refuse_alone(self) -> None:
        """Refuse options of rows without --release."""
        if self.merging and self.asked:
            raise InputError(
                "--merge-rare is for one column (--useful); --release learns boxes of "
                "rows anyway: leave it out"
            )
        if self.rare == "auto" and self.asked:
            raise InputError(
                "--rare auto is for one column (--merge-rare): with --release give a number of "
                "records"
            )
        # --merge-rare has two of these options in common with --release.
        only_of_rows = self
        if self.merging:
            only_of_rows = replace(self, merge_rare=None, rare=None, slice_seed=None)
        if only_of_rows != type(self)() and not self.asked:
            raise InputError(
                "--given, --promise, --order, --least-mass, --cells, --rare, --slice-seed and "
                "--fill belong to a release of rows: give --release COL,.. too"
            )

    def count(self, name: str, text: str | None) -> int | None:
        """A whole number among the options."""
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise InputError(
                f"{name} ({quoted(text)}) must be a whole number"
            ) from None


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
