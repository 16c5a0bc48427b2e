"""`mechdesign design TABLE` without a budget: what budgets buy on this table, and how to go on.

`advise` prints the recommendation of `compare --recommend` for the optimum: what a factor of 2
costs, and at which budget 90 % of the information is kept. Below it are the two commands that
design these channels, with the options that were typed: ::

    mechdesign design people.csv .. --at-most-times 2 --at-least-times 0.5 --output CHANNEL.json
    mechdesign design people.csv .. --keep 0.9 --output CHANNEL.json
"""

from __future__ import annotations

from dataclasses import replace

import typer

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.design_options import (
    DesignBudget,
    DesignOptions,
    ObjectiveOptions,
    OutputOptions,
)
from mechdesign.cli.line import command_line
from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError

TWICE = {"at_most_times": "2", "at_least_times": "0.5"}
"""The budget in words that the recommendation answers first."""

MOST = {"keep": "0.9"}
"""The share of the information that it answers next."""


def advise(
    reporter: Reporter,
    table: table_options.InputTable,
    budget: DesignBudget,
    confidence: options.ConfidenceOptions,
    search: DesignOptions,
    objective: ObjectiveOptions,
) -> None:
    """Print the recommendation of `compare` for the optimum, and the commands that
    follow from it.
    """
    from mechdesign.comparison.recommending import recommend
    from mechdesign.mechanisms.optimal import OPTIMAL
    from mechdesign.report.comparing import recommendation_text

    # Refused as a design would refuse them, for the commands that are printed repeat these options.
    search.check()
    confidence.read()
    lams = None
    if budget.lam is not None:
        lams = (float(share_of("--lam", budget.lam)),)
    with reporter.work("reading the table"):
        joint, bins = table.read_before_auto()
    if bins is not None:
        raise InputError(
            "no budget given, and --bin auto needs one: use --epsilon E, or other bins"
        )
    with reporter.work("comparing", unit="rows") as work:
        # The recommendation takes notion, split and mechanism from the rows, so one row is enough.
        result = md.compare(
            joint,
            epsilons=(1.0,),
            mechanisms=(OPTIMAL,),
            notions=(budget.kind.name,),
            lams=lams,
            time_limit=search.seconds,
            progress=work.at,
        )
        advice = recommend(joint, result.rows, time_limit=search.seconds)
    reporter.notices((*joint.notices, *result.notices))
    lines = _opening_lines(recommendation_text(advice), confidence)
    lines.append("Choose a budget and design the channel:")
    written = OutputOptions(output=options.PUBLIC_CHANNEL)
    # Words say both sides of a budget, so there is no share of --lam between them.
    for words in (replace(budget, lam=None, **TWICE), replace(budget, **MOST)):
        groups = (table, words, confidence, objective, written)
        line = command_line("design", *groups, folders=True)
        lines.append(f"  {line}")
    lines.append("All mechanisms over a grid of budgets:  mechdesign compare")
    typer.echo("\n".join(lines))


def _opening_lines(
    recommendation: str, confidence: options.ConfidenceOptions
) -> list[str]:
    """What the figures are, and the figures."""
    lines = [
        "No budget was given, so no channel was designed. This is what budgets buy on this table.",
        "",
        recommendation,
        "",
    ]
    # The recommendation is about the table alone, whatever level was typed.
    if confidence.confidence is not None:
        lines += [
            "These figures are promises for the table; a promise for the population keeps less.",
            "",
        ]
    return lines
