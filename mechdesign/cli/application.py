"""The commands of `mechdesign`. Nothing heavy is imported before a command runs.

The module `mechdesign.cli.NAME` declares the command NAME, if MODULES does not name another one:
`audit.py` has the function `audit`, whose parameters are the options and whose docstring is the
help, and the constant AUDIT_EXAMPLE, the last lines of that help. `application`
imports the module of the command that was typed, or for the help
of the program all of them, and adds each to typer (`_add_command`). The one group of commands,
`nonstochastic`, brings a typer application of its own.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from mechdesign.cli.first_options import (
    COMMANDS,
    EARLIER_NAMES,
    FIRST_OPTIONS,
    NAMES,
)
from mechdesign.cli.line import PlainCommand, PlainGroup, command
from mechdesign.cli.options import ConsoleOptions

GROUP = "nonstochastic"
"""The module with commands of its own."""

MODULES = {
    "app": "assess",
    "compose": "show",
    "export": "show",
    "inspect": "assess",
    "judge": "check",
    "measure": "show",
}
"""For each command that shares the module of another one: that module."""


def _version(wanted: bool) -> None:
    """Print the version and end the program, if it is wanted."""
    if wanted:
        import mechdesign

        typer.echo(f"mechdesign {mechdesign.__version__}")
        raise typer.Exit


@command
def _root(
    console: ConsoleOptions,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            help="Print the version.",
            # Eager: the version is printed even if the rest of the line is wrong.
            callback=_version,
            is_eager=True,
        ),
    ] = False,
) -> None: ...


def application(first: str = "") -> Any:
    """All commands, or the one alone that is the `first` word of the line: the others
    need not be imported.

    The answer is what parses a line of words and runs its command.
    """
    if first not in NAMES:
        first = ""
    return _application(first)


# Cached, because typer needs 20 ms for the options of `design`, and a process may call `main`
# often.
@cache
def _application(first: str) -> Any:
    """`application`; `first` is empty or the name of a command."""
    app = typer.Typer(
        name="mechdesign",
        cls=PlainGroup,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        help="Optimal release channels for data correlated with a sensitive attribute, proven "
        "private in exact arithmetic.",
    )
    app.callback(
        epilog="Start with:  mechdesign design TABLE.csv --sensitive COL --useful COL --epsilon 1 "
        "--output channel.json"
    )(_root)
    for name in [first] if first else NAMES:
        if name == GROUP:
            ranges = import_module(f"mechdesign.cli.{GROUP}")
            app.add_typer(
                ranges.app,
                name=GROUP,
                help="Privacy without probabilities: measure ranges.",
                rich_help_panel=COMMANDS[name],
            )
        else:
            _add_command(app, name)
    return get_command(app)


def _add_command(app: typer.Typer, name: str) -> None:
    """Add the command of this name."""
    module = import_module(f"mechdesign.cli.{MODULES.get(name, name)}")
    run = getattr(module, name)
    # Without the line breaks inside of paragraphs, which the help would keep.
    paragraphs: list[str] = []
    for paragraph in run.__doc__.split("\n\n"):
        paragraphs.append(" ".join(paragraph.split()))
    app.command(
        name,
        cls=PlainCommand,
        help="\n\n".join(paragraphs),
        epilog=getattr(module, f"{name.upper()}_EXAMPLE"),
        rich_help_panel=COMMANDS.get(name),
        hidden=name in EARLIER_NAMES,
    )(command(run, has_whole_help=name in FIRST_OPTIONS, has_table=name == "design"))
