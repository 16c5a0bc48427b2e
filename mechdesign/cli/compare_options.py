"""The options of `mechdesign compare`: the grid, how it is searched, and what is written.

``--epsilons 0.5:1.5:0.5 --lams 0.5`` becomes ``GridOptions(epsilons="0.5:1.5:0.5", lams="0.5")``,
whose `budgets` are (0.5, 1.0, 1.5) in nats and whose `splits` are (0.5,).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from mechdesign.cli import options
from mechdesign.cli.design_options import ObjectiveOptions
from mechdesign.cli.line import flag, option
from mechdesign.core.errors import InputError


@dataclass(frozen=True, kw_only=True)
class GridOptions(options.KeptOptions):
    """What is compared"""

    epsilons: str = option(
        "GRID",
        "Budgets to compare: START:STOP:STEP, a list with commas, or both.",
        "0.25:8:0.25",
    )
    lams: str | None = option(
        "LIST",
        "Shares of epsilon for the lower side (default 0.5); notions that take "
        "epsilon whole ignore them.",
    )
    mechanisms: str | None = option(
        "LIST", "Names with commas, as for `design` (default: all)."
    )
    notions: str = option(
        "LIST",
        "As for `design`, with commas; alpha:10 is alpha-lift of order 10.",
        "alip",
    )
    objectives: str | None = option(
        "LIST",
        "truth and distance: channels on the column's own symbols; information: free "
        "outputs, the limit. Or one purpose, at one budget: frequencies, prefix, ranges, a CSV of "
        "queries, or task; the channel made for it beside those made for information.",
    )
    task: str | None = option(
        "COL",
        "With --objectives task: the column that the release is to tell about, as for `design`.",
    )
    average: str | None = option(
        "KIND=BUDGET",
        "Compare ways to keep one average budget instead, as for `design`: the certified optimum, "
        "greedy merging, and for mi the best of restarts.",
    )

    def purpose(self) -> ObjectiveOptions | None:
        """The one purpose that is asked for, queries or a task; None for anything else."""
        from mechdesign.mechanisms.queries import PURPOSES

        name = self.objectives
        if name is None or (name not in PURPOSES and not os.path.isfile(name)):
            if self.task is not None:
                raise InputError("--task belongs to --objectives task")
            return None
        return ObjectiveOptions(objective=name, task=self.task)

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets (nats)."""
        from mechdesign.comparison.grid import parse_grid

        return parse_grid("--epsilons", self.epsilons)

    @property
    def splits(self) -> tuple[float, ...] | None:
        """The shares of epsilon for the lower side."""
        from mechdesign.comparison.grid import parse_grid

        if self.lams is None:
            return None
        return parse_grid("--lams", self.lams)


@dataclass(frozen=True, kw_only=True)
class SweepOptions(options.SearchOptions):
    """How it is found"""

    as_published: bool = flag(
        "Leave out the repair of heuristics, for study: rows may violate their notion."
    )
    workers: str = option("N", "Processes to use.", "1")

    @property
    def processes(self) -> int:
        """How many processes work."""
        if not self.workers.strip().isdecimal() or int(self.workers) < 1:
            raise InputError(
                f"--workers ({self.workers!r}) must be a whole number of processes, at least 1"
            )
        return int(self.workers)


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is written"""

    output: str | None = option(
        "CSV",
        "Write the rows here as they come; run again to go on where a run of the same "
        "table stopped.",
        names="--output -o",
    )
    plot: str | None = option("FILE", "Draw the curves: .png, .svg or .pdf.")
    recommend: bool = flag(
        "Say what 'at most twice as likely' costs, and where keeping 90 % begins."
    )

    def check(self, sources: tuple[str, ...], *, force: bool) -> None:
        """Find out before the work what cannot be written."""
        if self.plot is not None:
            from mechdesign.report.plots import check_plot

            check_plot(self.plot, force=force, sources=sources)
        if self.output is not None:
            from mechdesign.core.files import check_target

            # A file that is there is no fault yet: the comparison may go on with it.
            check_target(self.output, force=True, sources=sources)
