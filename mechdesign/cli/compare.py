"""`mechdesign compare TABLE`: the privacy-utility trade-off of every mechanism over budgets.

`compare` chooses one of four comparisons by the options, and refuses the options of the others:
rows (--release, `compare_rows`), a purpose (--objectives, `compare_purpose`), an average
(--average, `compare_average`), and else `_compare_mechanisms` in this file. The last designs and
verifies every mechanism for every notion, lam and budget of the grid, if asked in several
processes. Each of these is a row. Rows are added to the CSV as they come, and a second run goes on
from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.compare_average import answer_average_comparison
from mechdesign.cli.compare_purpose import answer_purpose_comparison
from mechdesign.cli.compare_rows import answer_row_comparison, refuse_without_rows
from mechdesign.cli.console import Interrupted, Reporter, listen
from mechdesign.cli.design_options import ObjectiveOptions
from mechdesign.cli.design_rows import TRUTH, RowColumns
from mechdesign.cli.line import flag, option
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.comparison.recommending import Recommendation

EXAMPLE = (
    "Example:  mechdesign compare people.csv --sensitive relationship --useful "
    "occupation --epsilons 0.25:8:0.25 --lams 0.5,0.65 --output curves.csv --plot "
    "curves.png --recommend\n"
    "Of rows:  mechdesign compare people.csv --sensitive income --release "
    "job,age,region --epsilon 1\n"
    "Of an average:  mechdesign compare people.csv --sensitive relationship --useful "
    "occupation --average mi=25%"
)


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
        from mechdesign.mechanisms.purposes import PURPOSES

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


def _names(text: str | None) -> list[str] | None:
    """The names in a list with commas; None, which means all, where the option is missing."""
    if text is None:
        return None
    return text.split(",")


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


def compare(
    reporter: Reporter,
    table: table_options.InputTable,
    grid: GridOptions,
    budgets: options.BudgetOptions,
    rows: RowColumns,
    confidence: options.ConfidenceOptions,
    search: SweepOptions,
    files: OutputOptions,
    common: options.CommonOptions,
    force: options.Force = False,
) -> None:
    """Compare mechanisms over budgets: what they keep, what they leak, and what is
    provably out of reach.

    The CSV has a line for each mechanism, notion, lam and budget; every channel behind
    it was verified exactly. With --release it compares a row channel at one budget with
    the two ways of today, with --average the optimum with the funnel's local methods,
    and with a purpose in --objectives the channel made for it with the others.
    """
    # The first question that the options answer decides; every other way then refuses the options
    # that it would ignore.
    search.check()
    if rows.asked:
        _refuse_with_rows(grid, confidence, search, files)
        answer_row_comparison(
            reporter,
            table,
            rows,
            budgets,
            common,
            objective=grid.objectives or TRUTH,
            seconds=search.seconds,
        )
        return
    purpose = grid.purpose()
    if purpose is not None and grid.average is None:
        _refuse_with_purpose(grid, rows, confidence, search, files)
        answer_purpose_comparison(reporter, table, purpose, budgets, search, common)
        return
    refuse_without_rows(rows, budgets)
    if grid.average is not None:
        _refuse_with_average(grid, budgets, confidence, search, files)
        answer_average_comparison(reporter, table, grid.average, search, common)
        return
    _compare_mechanisms(
        reporter,
        CompareArguments(
            table=table,
            grid=grid,
            budgets=budgets,
            confidence=confidence,
            search=search,
            files=files,
            common=common,
            force=force,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class CompareArguments:
    """The groups of options of a comparison of mechanisms; they travel together."""

    table: table_options.InputTable
    grid: GridOptions
    budgets: options.BudgetOptions
    confidence: options.ConfidenceOptions
    search: SweepOptions
    files: OutputOptions
    common: options.CommonOptions
    force: bool


def _compare_mechanisms(reporter: Reporter, arguments: CompareArguments) -> None:
    """Compare mechanisms for one column over budgets; write, draw and print the curves."""
    files = arguments.files
    # Read before the table is: a grid that is no grid is refused at once.
    grid = _Grid(arguments.grid.budgets, arguments.grid.splits, arguments.budgets.own)
    population = arguments.confidence.read()
    if files.recommend and arguments.budgets.budget:
        raise InputError(
            "--recommend treats all sensitive symbols alike: leave out --budget"
        )
    files.check((arguments.table.table,), force=arguments.force)
    with reporter.work("reading the table"):
        joint = arguments.table.joint(arguments.table.table)
        unseen = arguments.confidence.unseen(joint)
    # The seconds of the record are those of the comparison, without the reading.
    started = time.perf_counter()
    result = _compared(reporter, arguments, joint, grid, population, unseen)
    advice: tuple[Recommendation, ...] | None = None
    if files.recommend:
        from mechdesign.comparison.recommending import recommend

        advice = recommend(
            joint,
            result.rows,
            time_limit=arguments.search.seconds,
            confidence=population.level,
            known_shares=population.known_shares,
            unseen=unseen,
        )
    if files.plot is not None:
        from mechdesign.report.plots import save_plot

        save_plot(result.rows, files.plot, overwrite=arguments.force)
    reporter.notices((*joint.notices, *result.notices))
    _answer(reporter, arguments, result, advice, time.perf_counter() - started)


class _Grid(NamedTuple):
    """The budgets of a comparison, in nats; `own` are those of single sensitive symbols."""

    epsilons: tuple[float, ...]
    lams: tuple[float, ...] | None
    own: dict[str, tuple[float, float]]


def _compared(
    reporter: Reporter,
    arguments: CompareArguments,
    joint: md.Joint,
    grid: _Grid,
    population: options.PopulationRequest,
    unseen: int,
) -> md.Comparison:
    """Every mechanism at every budget."""
    from mechdesign.comparison.workers import pool

    search = arguments.search
    # A new process knows nothing of how this one reports: it is told by `listen`.
    prepare = partial(listen, reporter.quiet, reporter.log_json)
    work = reporter.work("comparing", unit="rows")
    with (
        _interruptible(arguments.files.output),
        work,
        pool(search.processes, prepare) as executor,
    ):
        return md.compare(
            joint,
            epsilons=grid.epsilons,
            lams=grid.lams,
            mechanisms=_names(arguments.grid.mechanisms),
            notions=arguments.grid.notions.split(","),
            method=search.method,
            gap=search.smallest_gap,
            time_limit=search.seconds,
            enumerate=search.enumerate,
            as_published=search.as_published,
            confidence=population.level,
            known_shares=population.known_shares,
            unseen=unseen,
            budgets=grid.own,
            objectives=_names(arguments.grid.objectives),
            keep_frequencies=arguments.grid.keep_frequencies,
            distance=arguments.grid.distance,
            executor=executor,
            output=arguments.files.output,
            force=arguments.force,
            progress=work.at,
        )


def _answer(
    reporter: Reporter,
    arguments: CompareArguments,
    result: md.Comparison,
    advice: tuple[Recommendation, ...] | None,
    seconds: float,
) -> None:
    """Print the comparison as text or as one JSON object."""
    from mechdesign.report.comparing import comparison_record, comparison_text

    files = arguments.files
    places = {"output": files.output, "plot": files.plot}
    message = f"{len(result.rows)} rows are compared"
    reporter.done(
        "compared", message, rows=len(result.rows), kept=result.kept, **places
    )

    def text() -> str:
        written = _written(files.output, files.plot, result.kept)
        return f"{comparison_text(result, advice)}\n\n{written}"

    arguments.common.answer(
        lambda: comparison_record(result, advice) | places | {"seconds": seconds},
        text,
    )


def _one_budget_defaults(
    confidence: options.ConfidenceOptions, search: SweepOptions, files: OutputOptions
) -> tuple[bool, ...]:
    """Whether the options that a comparison at one budget does not have were left alone."""
    default = SweepOptions()
    # It takes a gap and a time limit, so these may differ from the default.
    plain = replace(search, gap=default.gap, time_limit=default.time_limit)
    return (
        confidence == options.ConfidenceOptions(),
        plain == default,
        files == OutputOptions(),
    )


def _refuse_with_average(
    grid: GridOptions,
    budgets: options.BudgetOptions,
    confidence: options.ConfidenceOptions,
    search: SweepOptions,
    files: OutputOptions,
) -> None:
    """Refuse options that a comparison at an average budget does not have."""
    are_default = (
        replace(grid, average=None) == GridOptions(),
        budgets == options.BudgetOptions(),
        *_one_budget_defaults(confidence, search, files),
    )
    if not all(are_default):
        raise InputError(
            "compare --average takes --gap, --time-limit and the options of the table, and no "
            "others: it is about one budget, without a notion beside it"
        )


def _refuse_with_purpose(
    grid: GridOptions,
    rows: RowColumns,
    confidence: options.ConfidenceOptions,
    search: SweepOptions,
    files: OutputOptions,
) -> None:
    """Refuse options that a comparison for a purpose does not have."""
    are_default = (
        replace(grid, objectives=None, task=None) == GridOptions(),
        rows == RowColumns(),
        *_one_budget_defaults(confidence, search, files),
    )
    if not all(are_default):
        raise InputError(
            "a comparison for a purpose takes one budget (--epsilon, --notion and the like), "
            "--task, --gap, --time-limit and the options of the table, and no others"
        )


def _refuse_with_rows(
    grid: GridOptions,
    confidence: options.ConfidenceOptions,
    search: SweepOptions,
    files: OutputOptions,
) -> None:
    """Refuse options that a comparison of rows does not have."""
    refused: list[str] = []
    if replace(grid, objectives=None) != GridOptions():
        refused.append(
            "--epsilons, --lams, --mechanisms, --notions, --distance and "
            "--keep-frequencies compare channels of one column"
        )
    if confidence != options.ConfidenceOptions():
        refused.append(
            "--confidence and what belongs to it are not built for a comparison of rows"
        )
    default = SweepOptions()
    # A comparison of rows takes a time limit, so it may differ from the default.
    if replace(search, time_limit=default.time_limit) != default:
        refused.append(
            "--method, --gap, --enumerate, --as-published and --workers are for "
            "channels of one column"
        )
    if files != OutputOptions():
        refused.append(
            "--output, --plot and --recommend are for curves over budgets, and a "
            "comparison of rows has one budget"
        )
    if refused:
        raise InputError(f"{refused[0]}: leave them out with --release")


def _written(output: str | None, plot: str | None, kept: int) -> str:
    """A sentence on the files that were written; `kept` rows are from an earlier run."""
    if output is None and plot is None:
        return (
            "Nothing was written; --output curves.csv keeps these rows, --plot "
            "curves.png draws them."
        )
    places = " and ".join(place for place in (output, plot) if place is not None)
    if kept:
        return f"Written to {places} ({kept:,} rows kept from an earlier run)."
    return f"Written to {places}."


@contextmanager
def _interruptible(output: str | None) -> Generator[None]:
    """Say on Ctrl-C whether the rows so far are in a file, which a second run goes on with."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing was written"
        if output is not None and os.path.exists(output):
            kept = f"the rows so far are in {output}; run again to go on"
        raise Interrupted(f"interrupted; {kept}") from None
