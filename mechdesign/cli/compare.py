"""`mechdesign compare TABLE`: what channels keep and leak, one way of designing beside another.

A row of the comparison is one channel at one budget: it is designed, verified exactly, and measured
(`md.compare`). With two mechanisms, one notion, lam 0.5 and the budgets 1 and 2 there are four
rows. `_compared` computes them, if asked in several processes. Rows are added to the CSV as they
come; a second run reads them, and goes on with those that are missing. Then the recommendation, the
plot and the text are made of all rows.

What is compared is every mechanism over a grid of budgets, ways to release rows (--release), the
optimum at an average budget beside the local methods of the privacy funnel (--average), or the
channel for queries or a task beside those made for information (--objectives with a purpose). What
one of these has not, `md.compare` refuses.

*Options*: the grid, how it is searched, and what is written. ``--epsilons 0.5:1.5:0.5 --lams 0.5``
becomes ``GridOptions(epsilons="0.5:1.5:0.5", lams="0.5")``, whose `budgets` are (0.5, 1.0, 1.5) in
nats and whose `splits` are (0.5,).
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import mechdesign as md
from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import Reporter, listen
from mechdesign.cli.design_options import ObjectiveOptions
from mechdesign.cli.line import flag, option
from mechdesign.cli.table_options import PeopleGuard, RowColumns
from mechdesign.core.errors import InputError, errors_noting

if TYPE_CHECKING:
    from mechdesign.comparison.recommending import Recommendation

COMPARE_EXAMPLE = (
    "Example:  mechdesign compare people.csv --sensitive relationship --useful "
    "occupation --epsilons 0.25:8:0.25 --lams 0.5,0.65 --output curves.csv --plot "
    "curves.png --recommend\n"
    "Of rows:  mechdesign compare people.csv --sensitive income --release "
    "job,age,region --epsilon 1\n"
    "Of an average:  mechdesign compare people.csv --sensitive relationship --useful "
    "occupation --average mi=25%"
)


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
        "outputs, the limit. Or one purpose: frequencies, prefix, ranges, a CSV of "
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
    """The groups of options of a comparison; they travel together."""

    table: table_options.InputTable
    grid: GridOptions
    budgets: options.BudgetOptions
    rows: RowColumns
    confidence: options.ConfidenceOptions
    search: SweepOptions
    files: OutputOptions
    common: options.CommonOptions
    force: bool

    @property
    def purpose(self) -> ObjectiveOptions | None:
        """The one purpose that is asked for, queries or a task; None for anything else."""
        from mechdesign.mechanisms.queries import PURPOSES

        name = self.grid.objectives
        if name is None or (name not in PURPOSES and not os.path.isfile(name)):
            if self.grid.task is not None:
                raise InputError("--task belongs to --objectives task")
            return None
        return ObjectiveOptions(objective=name, task=self.grid.task)

    @property
    def has_grid(self) -> bool:
        """True if budgets to compare were typed."""
        grid = self.grid
        default = GridOptions()
        return (grid.epsilons, grid.lams, grid.notions) != (
            default.epsilons,
            default.lams,
            default.notions,
        )

    @property
    def has_one_budget(self) -> bool:
        """True if a single budget was typed, as for `design`."""
        return replace(self.budgets, budget=None) != options.BudgetOptions()

    def check(self) -> None:
        """Refuse options that do not go together, before anything is read."""
        has_purpose = self.purpose is not None
        if self.rows.asked:
            self.rows.check_table(self.table)
        elif self.rows != RowColumns():
            raise InputError(
                "--given, --leave-out and --promise belong to a release of rows: give --release "
                "COL,.. too"
            )
        if self.files.recommend:
            if self.rows.asked or has_purpose or self.grid.average is not None:
                raise InputError(
                    "--recommend is for channels of one column over budgets: leave it out with "
                    "--release, --average and a purpose"
                )
            if self.budgets.budget:
                raise InputError(
                    "--recommend treats all sensitive symbols alike: leave out --budget"
                )
        if not self.rows.asked and not has_purpose:
            if self.has_one_budget:
                raise InputError(
                    "a single budget is compared with --release COL,.. or a purpose only: for "
                    "curves give --epsilons, --lams and --notions"
                )
        elif self.has_one_budget and self.has_grid:
            raise InputError(
                "one budget (--epsilon, --notion and the like) and a grid (--epsilons, --lams, "
                "--notions) exclude each other: leave one of them out"
            )
        elif not self.has_grid:
            # Refused without a budget: every budget of the default grid would take long.
            self.budgets.notion_or("alip")


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
    it was verified exactly. With --release it compares ways to release rows, with
    --average the optimum with the funnel's local methods, and with a purpose in
    --objectives the channel made for it with the others.
    """
    search.check()
    arguments = ComparisonArguments(
        table=table,
        grid=grid,
        budgets=budgets,
        rows=rows,
        confidence=confidence,
        search=search,
        files=files,
        common=common,
        force=force,
    )
    # A comparison writes no channel, so that people with several records are named alone.
    guard = PeopleGuard.of(
        table,
        rows.released_columns(table) if rows.asked else (),
        decided=False,
        writes=False,
    )
    guard.check(reporter, None)
    arguments.check()
    # Read before the table is: a grid that is no grid is refused at once.
    asked = _grid(arguments)
    population = confidence.read()
    files.check(table.inputs + confidence.inputs, force=force)
    with reporter.work("reading the table"):
        joint = _table(arguments)
        unseen = confidence.unseen(joint)
    # The seconds of the record are those of the comparison, without the reading.
    started = time.perf_counter()
    result = _compared(reporter, arguments, joint, asked, population, unseen)
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

    `epsilons`, which an average has not, and the shares `lams` are crossed; `by_symbol` has
    (eps_l, eps_u) of the sensitive symbols that have budgets of their own.
    """

    epsilons: tuple[float, ...] | None
    lams: tuple[float, ...] | None
    notions: tuple[str, ...]
    by_symbol: dict[str, tuple[float, float]]


def _grid(arguments: ComparisonArguments) -> _Grid:
    """The grid that is typed, or the one budget of a comparison of rows or for a purpose."""
    budgets = arguments.budgets
    by_symbol = budgets.by_symbol
    if arguments.has_one_budget:
        from mechdesign.comparison.rows import Case

        case = Case.at("", replace(budgets, budget=None).notion_or("alip"))
        lams = None if case.lam is None else (case.lam,)
        return _Grid((case.epsilon,), lams, (case.notion,), by_symbol)
    grid = arguments.grid
    notions = tuple(grid.notions.split(","))
    epsilons = grid.budgets
    if grid.average is not None and grid.epsilons == GridOptions().epsilons:
        epsilons = None
    return _Grid(epsilons, grid.splits, notions, by_symbol)


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
            **_of_kind(arguments, joint),
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
            keep_frequencies=arguments.grid.keeps_law,
            distance=arguments.grid.distance,
            executor=executor,
            output=arguments.files.output,
            force=arguments.force,
            progress=work.at,
        )


def _of_kind(arguments: ComparisonArguments, joint: md.Joint) -> dict[str, Any]:
    """The arguments of `md.compare` that say what is compared."""
    from mechdesign.mechanisms.average_budgets import NO_PROMISE
    from mechdesign.mechanisms.queries import PURPOSES
    from mechdesign.mechanisms.request import DesignRequest

    rows = arguments.rows
    grid = arguments.grid
    asked: dict[str, Any] = {"objectives": _names(grid.objectives)}
    if grid.average is not None:
        asked["average"] = parsing.averages_of([grid.average])
    purpose = arguments.purpose
    if purpose is not None:
        # As `design` does it, so that queries and tasks mean the same in both commands.
        table = arguments.table
        request = purpose.on(DesignRequest(joint, NO_PROMISE), table, table.text())
        if isinstance(request.objective, Mapping):
            raise InputError(
                f"{grid.objectives} has costs: a comparison for a purpose needs one of "
                f"{', '.join(PURPOSES)}, or queries"
            )
        asked |= {"objectives": request.objective, "task": request.task}
    if rows.asked:
        asked |= {
            "release": rows.released_columns(arguments.table),
            "given": rows.given_columns(),
            "promise": rows.promise,
        }
    return asked


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
        text = comparison_text(result, advice)
        if result.rows[0].figure is not None and files.plot is None:
            # There is no file of such rows.
            return text
        written = _written(files.output, files.plot, result.kept)
        return f"{text}\n\n{written}"

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
