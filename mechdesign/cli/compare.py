"""`mechdesign compare TABLE`: the privacy-utility trade-off of every mechanism over budgets."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.core.errors import InputError, MechdesignError

EXAMPLE = (
    "Example:  mechdesign compare people.csv --sensitive relationship --useful occupation --epsilons 0.25:8:0.25 "
    "--lams 0.5,0.65 --output curves.csv --plot curves.png --recommend"
)

WHAT_PANEL = "What is compared"
HOW_PANEL = "How it is computed"
OUTPUT_PANEL = "What is written"

Epsilons = Annotated[
    str,
    typer.Option(
        "--epsilons",
        metavar="GRID",
        help="Budgets: START:STOP:STEP, a list with commas, or both.",
        rich_help_panel=WHAT_PANEL,
    ),
]
Lams = Annotated[
    str | None,
    typer.Option(
        "--lams",
        metavar="LIST",
        help="Shares of epsilon for the lower side (default 0.5); notions that take epsilon whole ignore them.",
        rich_help_panel=WHAT_PANEL,
    ),
]
Mechanisms = Annotated[
    str | None,
    typer.Option(
        "--mechanisms",
        metavar="LIST",
        help="Names with commas, as for `design` (default: all).",
        rich_help_panel=WHAT_PANEL,
    ),
]
Notions = Annotated[
    str,
    typer.Option(
        "--notions",
        metavar="LIST",
        help="Names with commas, as for `design`; alpha:10 is alpha-lift of order 10.",
        rich_help_panel=WHAT_PANEL,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="As for `design`: vertices, columns, or auto.",
        rich_help_panel=HOW_PANEL,
    ),
]
Gap = Annotated[
    str,
    typer.Option(
        "--gap", metavar="SHARE", help="As for `design`, for each optimum.", rich_help_panel=HOW_PANEL
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="As for `design`, for each optimum.",
        rich_help_panel=HOW_PANEL,
    ),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        metavar="",
        help="Leave out the repair of the heuristics, for study: rows may violate their notion.",
        rich_help_panel=HOW_PANEL,
    ),
]
Workers = Annotated[
    str, typer.Option("--workers", metavar="N", help="Processes to use.", rich_help_panel=HOW_PANEL)
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="CSV",
        help="Write the rows here as they come; run again to go on where a run of the same table stopped.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Plot = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw the curves: .png, .svg or .pdf.", rich_help_panel=OUTPUT_PANEL
    ),
]
Recommend = Annotated[
    bool,
    typer.Option(
        "--recommend",
        metavar="",
        help="Name the knee of each curve and the cheapest mechanism within 1% of the optimum there.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]


class Interrupted(MechdesignError):
    """The user stopped a comparison (exit 130, as shells expect)."""

    exit_code = 130


def compare(
    context: typer.Context,
    table: o.Table,
    sensitive: o.Sensitive = None,
    useful: o.Useful = None,
    weight: o.Weight = None,
    contingency: o.Contingency = False,
    probabilities: o.Probabilities = False,
    missing: o.Missing = "refuse",
    epsilons: Epsilons = "0.25:8:0.25",
    lams: Lams = None,
    mechanisms: Mechanisms = None,
    notions: Notions = "alip",
    method: Method = "auto",
    gap: Gap = "1e-4",
    time_limit: TimeLimit = None,
    as_published: AsPublished = False,
    workers: Workers = "1",
    output: Output = None,
    plot: Plot = None,
    recommend: Recommend = False,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> None:
    """Compare mechanisms over budgets: what they keep, what they leak, and what is provably out of reach.

    The CSV has a line for each mechanism, notion, lam and budget; every channel behind it was verified exactly.
    """
    from mechdesign.cli.numbers import number
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.cli.tables import TableOptions, joint_of
    from mechdesign.cli.workers import pool
    from mechdesign.comparison.grid import numbers

    grid = numbers("--epsilons", epsilons)
    shares = None if lams is None else numbers("--lams", lams)
    smallest_gap = number("--gap", gap, zero=True)
    seconds = None if time_limit is None else number("--time-limit", time_limit)
    processes = _processes(workers)
    if plot is not None:
        from mechdesign.report.plots import check_plot

        check_plot(plot, force=force, sources=(table,))
    if output is not None:
        from mechdesign.core.files import check_target

        check_target(output, force=True, sources=(table,))
    reporter = reporter_of(context)
    with reporter.work("reading the table"):
        joint = joint_of(table, TableOptions(sensitive, useful, weight, contingency, probabilities, missing))
    from mechdesign.comparison.recommending import recommend as advise
    from mechdesign.comparison.run import compare as run

    started = time.perf_counter()
    work = reporter.work("comparing", unit="rows")
    with _interruptible(output), work, pool(processes, reporter) as executor:
        result = run(
            joint,
            epsilons=grid,
            lams=shares,
            mechanisms=None if mechanisms is None else mechanisms.split(","),
            notions=notions.split(","),
            method=method,
            gap=smallest_gap,
            time_limit=seconds,
            as_published=as_published,
            executor=executor,
            output=output,
            force=force,
            progress=work.at,
        )
    advice = advise(result.rows) if recommend else None
    if plot is not None:
        from mechdesign.report.plots import save_plot

        save_plot(result.rows, plot, overwrite=force)
    reporter.notices((*joint.notices, *result.notices))
    reporter.done(
        "compared",
        f"{len(result.rows)} rows are compared",
        rows=len(result.rows),
        kept=result.kept,
        output=output,
        plot=plot,
    )
    from mechdesign.report.comparison_text import comparison_record, comparison_text

    if as_json:
        from mechdesign.report.records import to_json

        took = time.perf_counter() - started
        typer.echo(to_json(comparison_record(result, advice, output=output, plot=plot, seconds=took)))
        return
    typer.echo(comparison_text(result, advice))
    typer.echo("\n" + _written(output, plot, result.kept))


def _written(output: str | None, plot: str | None, kept: int) -> str:
    if output is None and plot is None:
        return "Nothing was written; --output curves.csv keeps these rows, --plot curves.png draws them."
    places = " and ".join(place for place in (output, plot) if place is not None)
    return f"Written to {places}" + (f" ({kept:,} rows kept from an earlier run)." if kept else ".")


def _processes(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise InputError(f"--workers ({text!r}) must be a whole number of processes, at least 1")
    return int(text)


@contextmanager
def _interruptible(output: str | None) -> Generator[None]:
    try:
        yield
    except KeyboardInterrupt:
        import os

        if output is not None and os.path.exists(output):
            kept = f"the rows so far are in {output}; run again to go on"
        else:
            kept = "nothing was written"
        raise Interrupted(f"interrupted; {kept}") from None
