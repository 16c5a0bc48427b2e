"""`mechdesign design TABLE --release A,B*C`: a channel for whole rows. `design` hands over to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options as o
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import COMMAND, command_line, option
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
    import mechdesign as md
    from mechdesign.mechanisms.row_result import RowDesign
    from mechdesign.tables.joint import Joint

TRUTH, INFORMATION = "truth", "information"


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Release whole rows"""

    release: list[str] | None = option(
        "COL[*COL][,..]",
        "Release these columns together, so that the whole row keeps the promise; levels in this order, A*B crosses "
        "two columns in one level.",
    )
    given: list[str] | None = option(
        "COL[,COL..]", "With --release: columns released as they are."
    )
    promise: str = option(
        "WHICH",
        "With --given: total (compared with knowing nothing) or relative (compared with knowing the given columns).",
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

    def refuse_alone(self) -> None:
        """Refuse options of rows without --release."""
        if self != type(self)() and not self.asked:
            raise InputError(
                "--given, --promise, --order and --least-mass belong to a release of rows: give --release COL,.. too"
            )

    def levels(self) -> list[tuple[str, ...]]:
        """The columns of each level."""
        levels: list[tuple[str, ...]] = []
        for text in self.release or ():
            for level in text.split(","):
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
        """The least mass of a prefix."""
        if self.least_mass is None:
            return None
        try:
            return float(self.least_mass)
        except ValueError:
            raise InputError(
                f"--least-mass ({quoted(self.least_mass)}) must be a share of the records in [0, 1)"
            ) from None


def read_rows(table: o.InputTable, rows: RowOptions) -> Joint:
    """The table of all columns of the release, crossed."""
    if table.contingency or table.probabilities:
        raise InputError(
            "--release takes a table of records (or long counts with --weight), not --contingency or --probabilities"
        )
    if table.useful is not None:
        raise InputError("--release names the columns to release: leave --useful out")
    columns = [*rows.given_columns()]
    for level in rows.levels():
        columns += level
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise InputError(
            f"the column {quoted(twice[0])} is released twice; name it in one level of --release, or in --given"
        )
    # Its bins are applied by the design, which knows the levels.
    whole = replace(table, bins=None)
    return whole.joint(table.table, (None, tuple(columns)))


def designed(
    joint: Joint,
    rows: RowOptions,
    notion: md.Notion,
    *,
    objective: str,
    bins: Any,
    time_limit: float | None,
    progress: Any,
) -> RowDesign:
    """The design of a row channel for a crossed table."""
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
        progress=progress,
    )


def answer_rows(
    reporter: Reporter,
    design: RowDesign,
    common: o.CommonOptions,
    *,
    output: str | None,
    public: bool,
    force: bool,
    groups: tuple[object, ...],
    report_path: str | None = None,
) -> int:
    """Write the file of a row channel and its report, and print its promise."""
    from mechdesign.report.rows import row_design_record, row_design_text

    channel = design.channel
    line = command_line("design", *groups, public=True)
    record = channel.record
    provenance = {**record.provenance, COMMAND: line}
    channel = replace(channel, record=replace(record, provenance=provenance))
    design = replace(design, channel=channel)
    end = "Nothing was written; --output channel.json keeps this channel."
    if output is not None:
        channel.save(output, overwrite=force, public=public)
        end = (
            f"Written to {output}. To release a data frame, in Python:  "
            f"mechdesign.RowChannel.load({output!r}).apply(frame)"
        )
    report_record: dict[str, Any] = {}
    if report_path is not None:
        from mechdesign.report.rows_page import save_row_report

        save_row_report(channel, report_path, overwrite=force)
        end += f"\nInternal report: {report_path}."
        report_record = {"report": report_path}
    reporter.done("designed", end)
    common.answer(
        lambda: row_design_record(design, output) | report_record,
        lambda: f"{row_design_text(design)}\n\n{end}",
    )
    return 0 if design.audit.satisfied else NO
