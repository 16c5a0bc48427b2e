"""`mechdesign compare TABLE`: what channels keep and leak, one way of designing beside another.

The command only chooses. The first option of this list that was typed decides which comparison it
is, and the options of the others are then refused:

- --average: the optimum at an average budget (`answer_average_comparison`);
- --objectives with a purpose: the channel for queries or a task (`answer_purpose_comparison`);
- none of them: every mechanism over a grid of budgets, or with --release every way to release rows
  at one budget or over a grid (`compare_mechanisms`).

A group of options was left alone if it equals the group of the defaults, so each refusal compares
with it, after putting back the options that its comparison takes.

*--average KIND=BUDGET* puts the optimum beside the local methods of the privacy funnel.
`comparison.ways` finds the channels; each is checked exactly, so what they keep can be
compared with the one proven bound. KIND is a measure of leakage, for example `mi` for the mutual
information I(S;Y). BUDGET is the most of it, in its unit or as a share of what X itself tells. With
--average mi=25% people read ::

    way                kept         average
    certified optimum  68.902 %   0.0058331
    greedy merging     59.017 %  0.00027167

The second column is I(X;Y) / H(X), and the third the measure of KIND, here I(S;Y) in nats.

*--objectives PURPOSE* puts the channel made for queries or a task beside those made for
information. All are designed at one budget: the optimum for the purpose, the optimum for
information, and the channel of each heuristic. `comparison.ways` measures each by what the
purpose asks for: for queries that is the total variance of the estimates from released records, for
a task the share of the information about it that is kept. The difference is what a channel for the
purpose gains. Of frequencies people read ::

    channel      N x variance  information
    made for it        1.5687     58.155 %
    optimal            1.6826     66.526 %
"""

from __future__ import annotations

from dataclasses import replace

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.compare_mechanisms import (
    ComparisonArguments,
    GridOptions,
    OutputOptions,
    SweepOptions,
    answer_mechanism_comparison,
)
from mechdesign.cli.console import Reporter
from mechdesign.cli.design_options import ObjectiveOptions
from mechdesign.cli.row_options import RowColumns
from mechdesign.cli.table_options import PeopleGuard
from mechdesign.core.errors import InputError

COMPARE_EXAMPLE = (
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
    it was verified exactly. With --release it compares ways to release rows, with
    --average the optimum with the funnel's local methods, and with a purpose in
    --objectives the channel made for it with the others.
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
        rows.check_table(table)
        _refuse_with_rows(grid, budgets, files)
    else:
        purpose = grid.purpose()
        if purpose is not None and grid.average is None:
            _refuse_with_purpose(grid, rows, confidence, search, files)
            answer_purpose_comparison(reporter, table, purpose, budgets, search, common)
            return
        # From here on there is no single budget that is typed with --epsilon.
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
            rows=rows,
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
    grid: GridOptions, budgets: options.BudgetOptions, files: OutputOptions
) -> None:
    """Refuse options that a comparison of rows does not have."""
    if grid.average is not None or grid.task is not None:
        raise InputError(
            "--average and --task are not built for a comparison of rows: leave them out with "
            "--release"
        )
    if files.recommend:
        raise InputError(
            "--recommend is for channels of one column: leave it out with --release"
        )
    default = GridOptions()
    is_single = replace(budgets, budget=None) != options.BudgetOptions()
    is_grid = (grid.epsilons, grid.lams, grid.notions) != (
        default.epsilons,
        default.lams,
        default.notions,
    )
    if is_single and is_grid:
        raise InputError(
            "one budget (--epsilon, --notion and the like) and a grid (--epsilons, --lams, "
            "--notions) exclude each other: leave one of them out"
        )
    if not is_grid:
        # Refused without a budget: every budget of the default grid would take long.
        budgets.notion_or("alip")


def answer_average_comparison(
    reporter: Reporter,
    table: table_options.InputTable,
    average: str,
    search: options.SearchOptions,
    common: options.CommonOptions,
) -> None:
    """Compare the ways to keep an average budget, and print what each keeps."""
    from mechdesign.comparison.ways import compare_average
    from mechdesign.report.comparing import (
        average_comparison_record,
        average_comparison_text,
    )

    asked = parsing.averages_of([average])
    with reporter.work("reading the table"):
        joint = table.joint(table.table)
    with reporter.work("comparing", unit="nodes") as work:
        comparison = compare_average(
            joint,
            asked,
            gap=search.smallest_gap,
            time_limit=search.seconds,
            progress=work.step,
        )
    reporter.notices((*joint.notices, *comparison.design.messages))
    reporter.done("compared", f"{len(comparison.ways)} ways are compared")
    common.answer(
        lambda: average_comparison_record(comparison),
        lambda: average_comparison_text(comparison),
    )


def answer_purpose_comparison(
    reporter: Reporter,
    table: table_options.InputTable,
    objective: ObjectiveOptions,
    budget: options.BudgetOptions,
    search: options.SearchOptions,
    common: options.CommonOptions,
) -> None:
    """Compare channels at one budget, and print the figure of the purpose for each."""
    from mechdesign.comparison.ways import compare_purpose
    from mechdesign.mechanisms.request import DesignRequest
    from mechdesign.report.comparing import (
        purpose_comparison_record,
        purpose_comparison_text,
    )

    notion = budget.notion_or("alip")
    with reporter.work("reading the table"):
        joint = table.joint(table.table)
        # As `design` does it, so that queries and tasks mean the same in both commands.
        request = objective.on(DesignRequest(joint, notion), table, table.text())
    with reporter.work("comparing", unit="nodes") as work:
        comparison = compare_purpose(
            joint,
            notion,
            request.objective,
            task=request.task,
            gap=search.smallest_gap,
            time_limit=search.seconds,
            progress=work.step,
        )
    reporter.notices((*joint.notices, *comparison.design.messages))
    reporter.done("compared", f"{len(comparison.ways)} channels are compared")
    common.answer(
        lambda: purpose_comparison_record(comparison),
        lambda: purpose_comparison_text(comparison),
    )


def refuse_without_rows(rows: RowColumns, budget: options.BudgetOptions) -> None:
    """Refuse options of a comparison of rows where curves are asked for."""
    if rows != RowColumns():
        raise InputError(
            "--given, --leave-out and --promise belong to a release of rows: give --release "
            "COL,.. too"
        )
    if replace(budget, budget=None) != options.BudgetOptions():
        raise InputError(
            "a single budget is compared with --release COL,.. only: for curves give --epsilons, "
            "--lams and --notions"
        )
