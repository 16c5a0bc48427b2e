"""`mechdesign compare TABLE --objectives PURPOSE`: the channel made for queries or a task beside
those made for information. `compare` hands over to it.

All are designed at one budget: the optimum for the purpose, the optimum for information, and the
channel of each heuristic. `comparison.purpose_ways` measures each by what the purpose asks for: for
queries that is the total variance of the estimates from released records, for a task the share of
the information about it that is kept. The difference is what a channel for the purpose gains. Of
frequencies people read ::

    channel      N x variance  information
    made for it        1.5687     58.155 %
    optimal            1.6826     66.526 %
"""

from __future__ import annotations

from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.design_options import ObjectiveOptions


def answer_purpose_comparison(
    reporter: Reporter,
    table: table_options.InputTable,
    objective: ObjectiveOptions,
    budget: options.BudgetOptions,
    search: options.SearchOptions,
    common: options.CommonOptions,
) -> None:
    """Compare channels at one budget, and print the figure of the purpose for each."""
    from mechdesign.comparison.purpose_ways import compare_purpose
    from mechdesign.mechanisms.request import DesignRequest
    from mechdesign.report.compared_ways import (
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
