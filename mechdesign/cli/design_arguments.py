"""The command line of `mechdesign design`, as one value.

`design` takes its options in groups, as typer needs them. Its steps, and those of a design of
boxes, need most of the groups, so these travel together as `DesignArguments`. `design` makes it
once, and a step takes from it what it needs, as in ``arguments.budget.designed(request)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mechdesign.cli import options, table_options
from mechdesign.cli.design_options import (
    DesignBudget,
    DesignOptions,
    ObjectiveOptions,
    OutputOptions,
)
from mechdesign.cli.line import COMMAND, command_line
from mechdesign.cli.report import ReportOptions
from mechdesign.cli.row_options import RowOptions


@dataclass(frozen=True, kw_only=True)
class DesignArguments:
    """The groups of options on the command line of `design`; they travel together."""

    table: table_options.InputTable
    budget: DesignBudget
    confidence: options.ConfidenceOptions
    after: options.AfterOptions
    rows: RowOptions
    search: DesignOptions
    objective: ObjectiveOptions
    output: OutputOptions
    reports: ReportOptions
    common: options.CommonOptions
    force: bool

    @property
    def writes_or_prints_json(self) -> bool:
        """Whether somebody waits for a channel, and not for advice."""
        wants_file = self.output.output is not None or self.reports.asked
        return wants_file or self.common.as_json

    @property
    def as_if_written(self) -> OutputOptions:
        """The output options for the line that makes the channel again, which names a file."""
        return replace(self.output, output=self.output.output or options.PUBLIC_CHANNEL)

    def line(self, objective: ObjectiveOptions, *, public: bool = False) -> str:
        """The command that repeats the design; a `public` one names no files of the user."""
        groups = (
            self.table,
            self.budget,
            self.confidence,
            self.after,
            self.rows,
            self.search,
            objective,
            self.as_if_written,
        )
        return command_line("design", *groups, public=public)

    @property
    def recorded(self) -> dict[str, str]:
        """What a channel records of the command that made it."""
        # A line for others, because the channel file may be given away.
        return {COMMAND: self.line(self.objective.shown(), public=True)}

    @property
    def written(self) -> list[str]:
        """Lines on the files that were written and the next command."""
        path = self.output.output
        if path is not None:
            lines = [
                f"Written to {path}. Next:  mechdesign apply {path} IN.csv OUT.csv"
            ]
        elif self.reports.asked:
            lines = [
                "The channel was not written; --output channel.json keeps this channel."
            ]
        else:
            lines = ["Nothing was written; --output channel.json keeps this channel."]
        if self.reports.asked:
            lines += self.reports.text().split("\n")
        return lines
