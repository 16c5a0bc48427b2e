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
