"""`mechdesign compare TABLE`: every mechanism over a grid of budgets. `compare` hands over to it.

A row of the comparison is one mechanism for one notion, lam and epsilon: it is designed, verified
exactly, and measured (`md.compare`). With two mechanisms, one notion, lam 0.5 and the budgets 1 and
2 there are four rows. `_compared` computes them, if asked in several processes. Rows are added to
the CSV as they come; a second run reads them, and goes on with those that are missing. Then the
recommendation, the plot and the text are made of all rows.

*Options*: the grid, how it is searched, and what is written. ``--epsilons 0.5:1.5:0.5 --lams 0.5``
becomes ``GridOptions(epsilons="0.5:1.5:0.5", lams="0.5")``, whose `budgets` are (0.5, 1.0, 1.5) in
nats and whose `splits` are (0.5,).
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter, listen
from mechdesign.cli.design_options import ObjectiveOptions
from mechdesign.cli.line import flag, option
from mechdesign.cli.row_options import RowColumns
from mechdesign.core.errors import InputError, errors_noting

if TYPE_CHECKING:
    from mechdesign.comparison.recommending import Recommendation


# ------------------------------------------------------------------------------ options


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
        from mechdesign.comparison.rows import parse_grid

        return parse_grid("--epsilons", self.epsilons)

    @property
    def splits(self) -> tuple[float, ...] | None:
        """The shares of epsilon for the lower side."""
        from mechdesign.comparison.rows import parse_grid

        if self.lams is None:
            return None
        return parse_grid("--lams", self.lams)


@dataclass(frozen=True, kw_only=True)
class SweepOptions(options.SearchOptions):
    """How it is found"""

    as_published: bool = flag(
        "Leave out the repair of heuristics, for study: rows may violate their notion."
    )
    risk: str = option(
        "NAME",
        "Which sets subset-merging and subset-response merge first, for study: sum (the risk that "
        "the paper prints for alip, l1, chi2 and alpha), log-max or log-ratio.",
        "auto",
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


# --------------------------------------------------------------------------- comparison


@dataclass(frozen=True, kw_only=True)
class ComparisonArguments:
    """The groups of options of a comparison of mechanisms; they travel together."""

    table: table_options.InputTable
    grid: GridOptions
    budgets: options.BudgetOptions
    rows: RowColumns
    confidence: options.ConfidenceOptions
    search: SweepOptions
    files: OutputOptions
    common: options.CommonOptions
    force: bool


def answer_mechanism_comparison(
    reporter: Reporter, arguments: ComparisonArguments
) -> None:
    """Compare mechanisms for one column, or ways to release rows, over budgets; write, draw and
    print the curves.
    """
    files = arguments.files
    # Read before the table is: a grid that is no grid is refused at once.
    grid = _grid(arguments)
    population = arguments.confidence.read()
    if files.recommend and arguments.budgets.budget:
        raise InputError(
            "--recommend treats all sensitive symbols alike: leave out --budget"
        )
    files.check((arguments.table.table,), force=arguments.force)
    with reporter.work("reading the table"):
        joint = _table(arguments)
        unseen = arguments.confidence.unseen(joint)
    # The seconds of the record are those of the comparison, without the reading.
    started = time.perf_counter()
    result = _compared(reporter, arguments, joint, grid, population, unseen)
    written: list[str] = []
    if files.output is not None:
        written.append(f"{files.output} is written")
    with errors_noting(*written):
        advice = _advice_and_plot(arguments, joint, result, population, unseen)
    reporter.notices((*joint.notices, *result.notices))
    _answer(reporter, arguments, result, advice, time.perf_counter() - started)


def _advice_and_plot(
    arguments: ComparisonArguments,
    joint: md.Joint,
    result: md.Comparison,
    population: options.PopulationRequest,
    unseen: int,
) -> tuple[Recommendation, ...] | None:
    """The recommendation, if it is asked for; the plot is drawn, if there is one."""
    files = arguments.files
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
    # Before the answer, which names the plot as written.
    if files.plot is not None:
        from mechdesign.report.plots import save_plot

        save_plot(result.rows, files.plot, overwrite=arguments.force)
    return advice


class _Grid(NamedTuple):
    """The budgets of a comparison, in nats.

    `epsilons` and the shares `lams` are crossed; `by_symbol` has (eps_l, eps_u) of the sensitive
    symbols that have budgets of their own.
    """

    epsilons: tuple[float, ...]
    lams: tuple[float, ...] | None
    notions: tuple[str, ...]
    by_symbol: dict[str, tuple[float, float]]


def _grid(arguments: ComparisonArguments) -> _Grid:
    """The grid that is typed, or the one budget of a comparison of rows."""
    budgets = arguments.budgets
    by_symbol = budgets.by_symbol
    alone = replace(budgets, budget=None)
    if alone != options.BudgetOptions():
        from mechdesign.comparison.rows import Case

        case = Case.at("", alone.notion_or("alip"))
        lams = None if case.lam is None else (case.lam,)
        return _Grid((case.epsilon,), lams, (case.notion,), by_symbol)
    grid = arguments.grid
    notions = tuple(grid.notions.split(","))
    return _Grid(grid.budgets, grid.splits, notions, by_symbol)


def _table(arguments: ComparisonArguments) -> md.Joint:
    """The table, of rows with the given and released columns."""
    table = arguments.table
    rows = arguments.rows
    if not rows.asked:
        return table.joint(table.table)
    columns = (*rows.given_columns(), *rows.released_columns(table))
    joint, bins = table.read_before_auto(columns)
    if bins is not None:
        raise InputError("compare takes no --bin auto: give edges or a width")
    return joint


def _compared(
    reporter: Reporter,
    arguments: ComparisonArguments,
    joint: md.Joint,
    grid: _Grid,
    population: options.PopulationRequest,
    unseen: int,
) -> md.Comparison:
    """Every mechanism at every budget."""
    from mechdesign.comparison.settings import pool

    search = arguments.search
    # A new process knows nothing of how this one reports: it is told by `listen`.
    prepare = partial(listen, reporter.quiet, reporter.log_json)
    work = reporter.work("comparing", unit="rows")
    with (
        _noting_rows(arguments.files.output),
        work,
        pool(search.processes, prepare) as executor,
    ):
        return md.compare(
            joint,
            epsilons=grid.epsilons,
            lams=grid.lams,
            **_of_rows(arguments),
            mechanisms=_names(arguments.grid.mechanisms),
            notions=grid.notions,
            method=search.method,
            gap=search.smallest_gap,
            time_limit=search.seconds,
            enumerate=search.enumerate,
            as_published=search.as_published,
            # Another name is refused with the names.
            risk=cast("Any", search.risk),
            confidence=population.level,
            known_shares=population.known_shares,
            unseen=unseen,
            budgets=grid.by_symbol,
            objectives=_names(arguments.grid.objectives),
            keep_frequencies=arguments.grid.keeps_law,
            distance=arguments.grid.distance,
            executor=executor,
            output=arguments.files.output,
            force=arguments.force,
            progress=work.at,
        )


def _of_rows(arguments: ComparisonArguments) -> dict[str, Any]:
    """The options of `md.compare` that a release of rows has besides."""
    rows = arguments.rows
    if not rows.asked:
        return {}
    return {
        "release": rows.released_columns(arguments.table),
        "given": rows.given_columns(),
        "promise": rows.promise,
    }


def _answer(
    reporter: Reporter,
    arguments: ComparisonArguments,
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


def _names(text: str | None) -> list[str] | None:
    """The names in a list with commas; None, which means all, where the option is missing."""
    if text is None:
        return None
    return text.split(",")


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
def _noting_rows(output: str | None) -> Generator[None]:
    """Let errors say whether the rows so far are in a file, which a second run goes on with."""
    try:
        yield
    except InputError:
        # Nothing was begun.
        raise
    except BaseException as error:
        if output is not None and os.path.exists(output):
            error.add_note(f"the rows so far are in {output}; run again to go on")
        raise
