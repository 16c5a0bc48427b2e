"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what it guarantees."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.errors import InputError

EXAMPLE = (
    "Example:  mechdesign design people.csv --sensitive relationship --useful occupation "
    "--epsilon 1 --lam 0.5 --output channel.json"
)

PLANNED = ("subset-response",)
"""Mechanisms of the interface that this version does not have yet."""

SEARCH_PANEL = "How it is found"
OUTPUT_PANEL = "What is written"

Mechanism = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="optimal, subset-merging or complete-merging.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="How the optimum is searched: vertices, columns, or auto.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
Gap = Annotated[
    str,
    typer.Option(
        "--gap",
        metavar="SHARE",
        help="Stop when the proven bound is this close, as a share of H(X).",
        rich_help_panel=SEARCH_PANEL,
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="Stop then, with the best verified channel and its proven gap.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
NoFallback = Annotated[
    bool,
    typer.Option(
        "--no-fallback",
        metavar="",
        help="Exit 3 instead of emitting subset merging when the optimum fails.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the search.", rich_help_panel=SEARCH_PANEL)
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the channel file here.", rich_help_panel=OUTPUT_PANEL
    ),
]
Public = Annotated[
    bool,
    typer.Option(
        "--public",
        metavar="",
        help="Write the channel file without the table and whatever else discloses it.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]


def design(
    table: o.Table,
    sensitive: o.Sensitive = None,
    useful: o.Useful = None,
    weight: o.Weight = None,
    contingency: o.Contingency = False,
    probabilities: o.Probabilities = False,
    missing: o.Missing = "refuse",
    notion: o.NotionName = "alip",
    epsilon: o.Epsilon = None,
    lam: o.Lam = None,
    eps_l: o.EpsL = None,
    eps_u: o.EpsU = None,
    mechanism: Mechanism = "optimal",
    method: Method = "auto",
    gap: Gap = "1e-4",
    time_limit: TimeLimit = None,
    no_fallback: NoFallback = False,
    seed: Seed = 0,
    output: Output = None,
    public: Public = False,
    force: o.Force = False,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Compute the best private channel for a table, verify it exactly, and say what it guarantees.

    TABLE holds one record a row, or counts. The channel says with which probabilities to publish which
    output for each useful symbol, so that no output says much about the sensitive column.
    """
    from mechdesign.cli.budget import notion_of
    from mechdesign.cli.numbers import number
    from mechdesign.cli.progress import Waiting
    from mechdesign.cli.tables import TableOptions, joint_of

    wanted = notion_of(notion, epsilon=epsilon, lam=lam, eps_l=eps_l, eps_u=eps_u)
    if mechanism in PLANNED:
        raise InputError(
            f"--mechanism {mechanism} is not built in this version; subset-merging is its simpler relative"
        )
    smallest_gap = number("--gap", gap, zero=True)
    seconds = None if time_limit is None else number("--time-limit", time_limit)
    if public and output is None:
        raise InputError("--public says how the channel file is written: give --output FILE too")
    if output is not None:
        from mechdesign.files import check_target

        check_target(output, force=force, sources=(table,))
        _check_writable(output)
    joint = joint_of(table, TableOptions(sensitive, useful, weight, contingency, probabilities, missing))
    from mechdesign.mechanisms import design as run

    with Waiting("searching for the best channel") as progress:
        result = run(
            joint,
            wanted,
            mechanism=mechanism,
            method=method,
            gap=smallest_gap,
            time_limit=seconds,
            seed=seed,
            fallback=not no_fallback,
            progress=progress,
        )
    if output is not None:
        result.channel.save(output, overwrite=force, public=public)
    for message in (*joint.notices, *result.messages):
        typer.echo(f"mechdesign: note: {message}", err=True)
    if as_json:
        from mechdesign.report.records import design_record, to_json

        typer.echo(to_json(design_record(result, output)))
        return
    from mechdesign.report.text import design_text

    typer.echo(design_text(result, joint))
    if output is None:
        typer.echo("\nNothing was written; --output channel.json keeps this channel.")
    else:
        typer.echo(f"\nWritten to {output}. Next:  mechdesign apply {output} IN.csv OUT.csv")


def _check_writable(output: str) -> None:
    """Find out before the work, not after it, that nothing can be written there."""
    folder = os.path.dirname(output) or "."
    if not os.access(folder, os.W_OK):
        raise InputError(f"{output} cannot be written: the folder {folder!r} is not writable")
