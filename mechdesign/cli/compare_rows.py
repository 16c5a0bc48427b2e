"""`mechdesign compare TABLE --release A,B*C`: a row channel beside the ways of today. `compare`
hands over to it.

The same table of crossed columns as that of `design --release` goes to `comparison.row_ways`, which
sets the row channel beside single channels of each column and beside randomised response: ::

    way                    promise             factor       kept
    row channel            kept     0.60653 to 1.5216   92.998 %
    each column by itself  BROKEN   0.52854 to 1.5857  100.000 %
    randomised response    kept     0.60653 to 1.5146   75.495 %
"""

from __future__ import annotations

from dataclasses import replace

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.design_rows import read_rows
from mechdesign.cli.row_options import RowColumns
from mechdesign.core.errors import InputError


def refuse_without_rows(rows: RowColumns, budget: options.BudgetOptions) -> None:
    """Refuse options of a comparison of rows where curves are asked for."""
    if rows != RowColumns():
        raise InputError(
            "--given, --promise, --order and --least-mass belong to a release of rows: give "
            "--release COL,.. too"
        )
    if replace(budget, budget=None) != options.BudgetOptions():
        raise InputError(
            "a single budget is compared with --release COL,.. only: for curves give --epsilons, "
            "--lams and --notions"
        )


def answer_row_comparison(
    reporter: Reporter,
    table: table_options.InputTable,
    rows: RowColumns,
    budget: options.BudgetOptions,
    common: options.CommonOptions,
    *,
    objective: str,
    seconds: float | None,
) -> None:
    """Compare the ways to release rows, and print what each keeps."""
    from mechdesign.comparison.row_ways import compare_rows
    from mechdesign.report.row_comparison import (
        row_comparison_record,
        row_comparison_text,
    )

    notion = budget.notion_or("alip")
    with reporter.work("reading the table"):
        joint = read_rows(table, rows)
    with reporter.work("comparing", unit="nodes") as work:
        comparison = compare_rows(
            joint,
            sensitive=joint.sensitive.columns,
            release=rows.levels(),
            notion=notion,
            given=rows.given_columns(),
            promise=rows.promise,
            objective=objective,
            order=rows.order,
            least_mass=rows.mass(),
            bins=parsing.bins_of(table.bins),
            time_limit=seconds,
            progress=work.step,
        )
    reporter.notices((*joint.notices, *comparison.design.messages))
    reporter.done("compared", f"{len(comparison.ways)} ways are compared")
    common.answer(
        lambda: row_comparison_record(comparison),
        lambda: row_comparison_text(comparison),
    )
