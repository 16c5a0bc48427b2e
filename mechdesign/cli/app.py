"""The commands of `mechdesign`, one file each. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from mechdesign.cli import nonstochastic
from mechdesign.cli.line import PlainCommand, PlainGroup, command
from mechdesign.cli.options import ConsoleOptions

app = typer.Typer(
    name="mechdesign",
    cls=PlainGroup,
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
        typer.Option("--version", metavar="", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None: ...


COMMANDS = (
    "design", "audit", "compose", "inspect", "apply", "check", "estimate", "compare", "measure", "releases", "show",
    "report", "quantize", "run",
)  # fmt: skip
"""Modules of this folder, each with a function of its name, in the order of the help."""

for _name in COMMANDS:
    _module = import_module(f"mechdesign.cli.{_name}")
    _run = getattr(_module, _name)
    app.command(_name, cls=PlainCommand, help=_unwrapped(_run.__doc__), epilog=_module.EXAMPLE)(command(_run))

app.add_typer(nonstochastic.app, name="nonstochastic", help="Privacy without probabilities: measure ranges.")
