"""`mechdesign compare TABLE`: what channels keep and leak, one way of designing beside another.

The command only chooses. The first option of this list that was typed decides which comparison it
is, and the options of the others are then refused:

- --release: ways to release rows (`compare_rows`);
- --average: the optimum at an average budget (`compare_average`);
- --objectives with a purpose: the channel for queries or a task (`compare_purpose`);
- none of them: every mechanism over a grid of budgets (`compare_mechanisms`).

A group of options was left alone if it equals the group of the defaults, so each refusal compares
with it, after putting back the options that its comparison takes.
"""

from __future__ import annotations

from dataclasses import replace

from mechdesign.cli import options, table_options
from mechdesign.cli.compare_average import answer_average_comparison
from mechdesign.cli.compare_mechanisms import (
    ComparisonArguments,
    answer_mechanism_comparison,
)
from mechdesign.cli.compare_options import GridOptions, OutputOptions, SweepOptions
from mechdesign.cli.compare_purpose import answer_purpose_comparison
from mechdesign.cli.compare_rows import answer_row_comparison, refuse_without_rows
from mechdesign.cli.console import Reporter
from mechdesign.cli.people_guard import PeopleGuard
from mechdesign.cli.row_options import RowColumns
from mechdesign.core.errors import InputError

EXAMPLE = (
    "Example:  mechdesign compare people.csv --sensitive relationship --useful "
    "occupation --epsilons 0.25:8:0.25 --lams 0.5,0.65 --output curves.csv --plot "
    "curves.png --recommend\n"
    "Of rows:  mechdesign compare people.csv --sensitive income --release "
    "job,age,region --epsilon 1\n"
    "Of an average:  mechdesign compare people.csv --sensitive relationship --useful "
    "occupation --average mi=25%"
)


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
    # An option that a comparison ignored would look as if it had been obeyed: so each way refuses
    # those of the others before anything is read.
    search.check()
    # A comparison writes no channel, so that people with several records are named alone.
    guard = PeopleGuard.of(
        table,
        rows.released_columns(table) if rows.asked else (),
        decided=False,
        writes=False,
    )
    guard.check(reporter, None)
    if rows.asked:
        _refuse_with_rows(grid, confidence, search, files)
        answer_row_comparison(
            reporter,
            table,
            rows,
            budgets,
            common,
            objective=grid.objectives or "truth",
            seconds=search.seconds,
        )
        return
    purpose = grid.purpose()
    if purpose is not None and grid.average is None:
        _refuse_with_purpose(grid, rows, confidence, search, files)
        answer_purpose_comparison(reporter, table, purpose, budgets, search, common)
        return
    # From here on there are no rows, and no single budget that is typed with --epsilon.
    refuse_without_rows(rows, budgets)
    if grid.average is not None:
        _refuse_with_average(grid, budgets, confidence, search, files)
        answer_average_comparison(reporter, table, grid.average, search, common)
        return
    answer_mechanism_comparison(
        reporter,
        ComparisonArguments(
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
    # Those of rows are refused already: `refuse_without_rows` comes before.
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
    # --objectives names the purpose, and --task its column.
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
    # --objectives is the one option of the grid that rows have, too: what the channel is to keep.
    if replace(grid, objectives=None) != GridOptions():
        refused.append(
            "--epsilons, --lams, --mechanisms, --notions, --distance, --keep-frequencies and "
            "--free-frequencies compare channels of one column"
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
