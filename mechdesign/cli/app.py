"""The commands of `mechdesign`, one file each. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import (
    apply,
    audit,
    check,
    compare,
    compose,
    design,
    estimate,
    measure,
    nonstochastic,
    quantize,
    releases,
    report,
    show,
)
from mechdesign.cli.line import command
from mechdesign.cli.options import ConsoleOptions

app = typer.Typer(
    name="mechdesign",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Optimal release channels for data correlated with a sensitive attribute, proven private in exact arithmetic.",
)


def _version(wanted: bool) -> None:
    if wanted:
        import mechdesign

        typer.echo(f"mechdesign {mechdesign.__version__}")
        raise typer.Exit


def _unwrapped(doc: str) -> str:
    """Paragraphs without their line breaks, which the help would keep."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in doc.split("\n\n"))


@app.callback(
    epilog="Start with:  mechdesign design TABLE.csv --sensitive COL --useful COL --epsilon 1 --output channel.json"
)
@command
def _root(
    console: ConsoleOptions,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None: ...


for _module, _command in (
    (design, design.design),
    (audit, audit.audit),
    (compose, compose.compose),
    (apply, apply.apply),
    (check, check.check),
    (estimate, estimate.estimate),
    (compare, compare.compare),
    (measure, measure.measure),
    (releases, releases.releases),
    (show, show.show),
    (report, report.report),
    (quantize, quantize.quantize),
):
    app.command(_command.__name__, help=_unwrapped(_command.__doc__ or ""), epilog=_module.EXAMPLE)(
        command(_command)
    )

app.add_typer(nonstochastic.app, name="nonstochastic", help="Privacy without probabilities: measure ranges.")
