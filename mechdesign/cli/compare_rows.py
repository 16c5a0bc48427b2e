"""`mechdesign compare TABLE --release A,B`: ways to release rows at one budget, side by side.
`compare` hands over to it.

The same table of crossed columns as that of `design --release` goes to `comparison.row_ways`: ::

    way                     promise  unchanged     kept  law (TV of rows)
    rows of the table       kept        91.0 %   92.5 %                 0
    with free frequencies   kept        92.1 %   91.8 %             0.057
    randomised response     kept        21.4 %    0.8 %                 0
"""

from __future__ import annotations

from dataclasses import replace

from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.row_options import RowColumns
from mechdesign.core.errors import InputError


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
    from mechdesign.mechanisms.request import DesignRequest
    from mechdesign.report.compared_ways import (
        row_comparison_record,
        row_comparison_text,
    )

    rows.check_table(table)
    given = rows.given_columns()
    released = rows.released_columns(table)
    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto((*given, *released))
        if bins is not None:
            raise InputError("compare takes no --bin auto: give edges or a width")
    request = DesignRequest(
        joint,
        budget.notion_or("alip"),
        release=released,
        given=given,
        promise=rows.promise,
        objective=objective,
        time_limit=seconds,
    )
    with reporter.work("comparing", unit="ways") as work:
        comparison = compare_rows(replace(request, progress=work.step))
    reporter.notices(joint.notices)
    reporter.done("compared", f"{len(comparison.ways)} ways are compared")
    common.answer(
        lambda: row_comparison_record(comparison),
        lambda: row_comparison_text(comparison),
    )
