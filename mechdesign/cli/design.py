"""`mechdesign design TABLE`: compute a channel, verify it exactly, write it, say what it guarantees."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.cli.report_files import InternalPath, PublicPath, ReportPaths, check_writable
from mechdesign.core.errors import InputError

EXAMPLE = (
    "Example:  mechdesign design people.csv --sensitive relationship --useful occupation "
    "--epsilon 1 --lam 0.5 --output channel.json"
)

NO = 1
"""Exit code when the channel as published violates its notion."""

SEARCH_PANEL = "How it is found"
HEURISTICS_PANEL = "How the heuristics work"
OUTPUT_PANEL = "What is written"

Mechanism = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="optimal, subset-response, subset-merging or complete-merging.",
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
RiskName = Annotated[
    str,
    typer.Option(
        "--risk",
        metavar="NAME",
        help="How subset-merging and subset-response order sets: log-max, log-ratio, sum (as the paper prints "
        "it for alip), or auto.",
        rich_help_panel=HEURISTICS_PANEL,
    ),
]
RandomisationText = Annotated[
    str,
    typer.Option(
        "--randomisation",
        metavar="R",
        help="How complete-merging randomises risky symbols: merge, uniform, or a probability for each, as in "
        "0.5,0.3,0.2.",
        rich_help_panel=HEURISTICS_PANEL,
    ),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        metavar="",
        help="Leave out the repair, for study: the channel may violate the notion (exit 1) and is never written.",
        rich_help_panel=HEURISTICS_PANEL,
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
    context: typer.Context,
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
    alpha: o.Alpha = None,
    mechanism: Mechanism = "optimal",
    method: Method = "auto",
    gap: Gap = "1e-4",
    time_limit: TimeLimit = None,
    no_fallback: NoFallback = False,
    risk: RiskName = "auto",
    randomisation: RandomisationText = "merge",
    as_published: AsPublished = False,
    seed: Seed = 0,
    output: Output = None,
    public: Public = False,
    report: InternalPath = None,
    public_report: PublicPath = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> int:
    """Compute the best private channel for a table, verify it exactly, and say what it guarantees.

    TABLE holds one record a row, or counts. The channel says with which probabilities to publish which
    output for each useful symbol, so that no output says much about the sensitive column.
    """
    from mechdesign.cli.budget import notion_of
    from mechdesign.cli.numbers import number, randomisation_of
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.cli.tables import TableOptions, joint_of

    wanted = notion_of(notion, epsilon=epsilon, lam=lam, eps_l=eps_l, eps_u=eps_u, alpha=alpha)
    if as_published and output is not None:
        raise InputError(
            "--as-published is for study: its channel is not written; drop --output, or --as-published"
        )
    paths = ReportPaths(report, public_report, force)
    if as_published and paths.asked:
        raise InputError(
            "--as-published is for study: nothing is promised that a report could state; drop --report and "
            "--public-report, or --as-published"
        )
    smallest_gap = number("--gap", gap, zero=True)
    seconds = None if time_limit is None else number("--time-limit", time_limit)
    if public and output is None:
        raise InputError("--public says how the channel file is written: give --output FILE too")
    if output is not None:
        from mechdesign.core.files import check_target

        check_target(output, force=force, sources=(table,))
        check_writable(output)
    paths.check((table,), {"--output": output})
    reporter = reporter_of(context)
    with reporter.work("reading the table"):
        joint = joint_of(table, TableOptions(sensitive, useful, weight, contingency, probabilities, missing))
    from mechdesign.mechanisms import design as run

    with reporter.work("searching", unit="sets", limit=seconds) as work:
        result = run(
            joint,
            wanted,
            mechanism=mechanism,
            method=method,
            gap=smallest_gap,
            time_limit=seconds,
            seed=seed,
            fallback=not no_fallback,
            risk=risk,  # type: ignore[arg-type]
            randomisation=randomisation_of(randomisation),
            as_published=as_published,
            progress=work.step,
        )
    if output is not None:
        result.channel.save(output, overwrite=force, public=public)
    if paths.asked:
        from mechdesign.cli.design_report import design_line, save_reports

        line = design_line(
            table,
            sensitive=sensitive,
            useful=useful,
            weight=weight,
            contingency=contingency,
            probabilities=probabilities,
            missing=missing,
            notion=notion,
            epsilon=epsilon,
            lam=lam,
            eps_l=eps_l,
            eps_u=eps_u,
            alpha=alpha,
            mechanism=mechanism,
            method=method,
            gap=gap,
            time_limit=time_limit,
            no_fallback=no_fallback,
            risk=risk,
            randomisation=randomisation,
            seed=seed,
            output=output or "CHANNEL.json",
        )
        save_reports(result, joint, table, paths, line, output, reporter)
    reporter.notices((*joint.notices, *result.messages))
    reporter.done(
        "designed",
        "a channel is designed" if output is None else f"written to {output}",
        output=output,
        **paths.record(),
        mechanism=result.mechanism,
        nmi=result.nmi,
        upper_bound_nmi=result.certificate.upper_bound_nmi,
        gap_nmi=result.certificate.gap_nmi,
        fallback_from=result.fallback_from,
        verified=result.verified,
    )
    if as_json:
        from mechdesign.report.records import design_record, to_json

        typer.echo(to_json(design_record(result, output) | paths.record()))
        return 0 if result.verified else NO
    from mechdesign.report.text import design_text

    typer.echo(design_text(result, joint))
    if as_published:
        typer.echo("\nNothing was written: a channel as published is for study.")
    elif output is None:
        what = "The channel was not written" if paths.asked else "Nothing was written"
        typer.echo(f"\n{what}; --output channel.json keeps this channel.")
    else:
        typer.echo(f"\nWritten to {output}. Next:  mechdesign apply {output} IN.csv OUT.csv")
    if paths.asked:
        typer.echo(paths.text())
    return 0 if result.verified else NO
