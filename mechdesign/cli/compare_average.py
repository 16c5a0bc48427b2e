"""`mechdesign compare TABLE --average KIND=BUDGET`: the optimum beside the local methods of the
privacy funnel. `compare` hands over to it.

`comparison.average_ways` finds the channels; each is checked exactly, so what they keep can be
compared with the one proven bound. KIND is a measure of leakage, for example `mi` for the mutual
information I(S;Y). BUDGET is the most of it, in its unit or as a share of what X itself tells. With
--average mi=25% people read ::

    way                kept         average
    certified optimum  68.902 %   0.0058331
    greedy merging     59.017 %  0.00027167

The second column is I(X;Y) / H(X), and the third the measure of KIND, here I(S;Y) in nats.
"""

from __future__ import annotations

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import Reporter


def answer_average_comparison(
    reporter: Reporter,
    table: table_options.InputTable,
    average: str,
    search: options.SearchOptions,
    common: options.CommonOptions,
) -> None:
    """Compare the ways to keep an average budget, and print what each keeps."""
    from mechdesign.comparison.average_ways import compare_average
    from mechdesign.report.compared_ways import (
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
