"""The commands of `mechdesign`, one file each. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import apply, audit, design, measure, show
from mechdesign.cli.options import Debug

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


@app.callback(
    epilog="Start with:  mechdesign design TABLE.csv --sensitive COL --useful COL --epsilon 1 --output channel.json"
)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Debug = False,
) -> None: ...


app.command("design", epilog=design.EXAMPLE)(design.design)
app.command("audit", epilog=audit.EXAMPLE)(audit.audit)
app.command("apply", epilog=apply.EXAMPLE)(apply.apply)
app.command("measure", epilog=measure.EXAMPLE)(measure.measure)
app.command("show", epilog=show.EXAMPLE)(show.show)
