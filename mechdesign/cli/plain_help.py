"""The help of a command: short by default, whole with --help-all, without types of Python.

typer would print every option of a command at once, in panels: a hundred lines for `design`.
`PlainCommand` takes the place of typer's own class of commands, and `PlainGroup` of its groups.
--help shows a copy of the command that has the options of `first_options.FIRST_OPTIONS` alone, each
with the first clause of its text (`_in_brief`): "Stop each search after this processor time: best
verified channel, proven gap." becomes "Stop each search after this processor time." --help-all is
an option like any other, whose callback prints the whole help (`HELP_ALL_PARAMETER`). Besides, the
class puts the options in the order of the short help (`get_params`), and refuses one that is given
twice (`parse_args`).
"""

from __future__ import annotations

import copy
import inspect
import re
from typing import Annotated, Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from mechdesign.cli.first_options import FIRST_OPTIONS, OF_THE_PROGRAM

HELP_ALL = "help_all"
"""The parameter of a command that asks for its whole help."""

HELP_OPTIONS = "help_options"
"""The parameter of `design` that asks what goes with what."""

MORE_OPTIONS = "More options:  --help-all"
"""The last line of a short help."""

TOGETHER = "   What goes with what:  --help-options"
"""What follows there for a command with a table of its options."""

FIRST_CLAUSE = re.compile(r"(.*?)(?:[.:;] | \(|$)")
"""A help text up to its first details, which the short help leaves out."""


class Plain:
    """A base class of commands whose help names no types of Python.

    Users of the command line do not know that a budget is a ``TEXT``. Options have metavars such as
    ``NATS`` instead, and only an option that declares none shows its type.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters."""
        # Another base class of a command has the method, which type checkers cannot know.
        parameters = cast("Any", super()).get_params(ctx)
        for parameter in parameters:
            # typer's help asks this method for the type, and leaves it out where it is None.
            if parameter.metavar is None or isinstance(parameter, TyperArgument):
                parameter.display_type_rich = lambda ctx: None
        return parameters


class PlainCommand(Plain, TyperCommand):
    """A command with a short and a whole help, in which every option is given once.

    typer makes it of a function (`line.command`), and calls its methods: `parse_args` for a line of
    words, `get_params` for the options in their order, and `format_help` for --help.
    """

    is_whole_help = False
    """Whether `format_help` shows every option; set in copies of the command alone."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those of the short help first and in its order."""
        parameters = super().get_params(ctx)
        places: dict[str, int] = {}
        for name in FIRST_OPTIONS.get(path_of(ctx), ()):
            places[name] = len(places)

        def place_of(parameter: Any) -> int:
            # Arguments first; sorting is stable, so options without a place stay in their order.
            if isinstance(parameter, TyperArgument):
                return -1
            return min(places.get(name, len(places)) for name in parameter.opts)

        return sorted(parameters, key=place_of)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: the first options of the command, or after --help-all every one.

        A command with few options shows them all, but for those that the program's help has.
        """
        if self.is_whole_help:
            super().format_help(ctx, formatter)
            return
        first = FIRST_OPTIONS.get(path_of(ctx))
        # A copy is shown, because the options that the help leaves out are still parsed and
        # completed by the shell.
        shown = copy.copy(self)
        shown.is_whole_help = True
        # typer lists the parameters of the copy, in the order of `get_params`.
        shown.params = []
        for parameter in self.params:
            is_argument = isinstance(parameter, TyperArgument)
            if first is None:
                if set(OF_THE_PROGRAM).isdisjoint(parameter.opts):
                    shown.params.append(parameter)
            elif is_argument or not set(first).isdisjoint(parameter.opts):
                shown.params.append(_in_brief(parameter))
        if first is not None:
            more = MORE_OPTIONS
            if any(parameter.name == HELP_OPTIONS for parameter in self.params):
                more += TOGETHER
            shown.epilog = f"{self.epilog}\n\n{more}"
        shown.format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words that follow the command; refuse a second value of an option."""
        # click keeps the last value alone, so a budget that was typed twice could be replaced
        # silently by a larger one. typer has no setting for this: the words are parsed twice, here
        # to count the options and then to read them.
        # `order` has the parameter of every option as often as it was typed.
        *_, order = self.make_parser(ctx).parse_args(list(args))
        for parameter in order:
            # Arguments have neither attribute: click itself refuses one too many.
            repeatable = getattr(parameter, "multiple", True)
            is_flag = getattr(parameter, "is_flag", True)
            times = order.count(parameter)
            if times > 1 and not repeatable and not is_flag:
                raise typer.BadParameter(
                    f"{parameter.opts[0]} takes one value, and is given {times} times",
                    ctx,
                )
        return super().parse_args(ctx, args)


class PlainGroup(Plain, TyperGroup):
    """A group of commands."""


def path_of(ctx: Any) -> str:
    """The names of a command below the program: ``design``, ``nonstochastic measure``."""
    return str(ctx.command_path).partition(" ")[2]


def _in_brief(parameter: Any) -> Any:
    """A parameter of the short help: the first clause of its text, in the one panel of all."""
    brief = copy.copy(parameter)
    text = FIRST_CLAUSE.match(parameter.help or "")
    if text is not None:
        brief.help = f"{text[1].rstrip('.')}."
    # Seven panels of three options each would cost fourteen lines of frames.
    brief.rich_help_panel = None
    brief.show_default = False
    return brief


def _whole_help(ctx: typer.Context, asked: bool) -> None:
    """Print every option of a command and end it."""
    # Shell completion parses half a line, and must print nothing.
    if not asked or ctx.resilient_parsing:
        return
    shown = copy.copy(ctx.command)
    if not isinstance(shown, PlainCommand):
        raise TypeError(f"{ctx.command_path} has no whole help")
    shown.is_whole_help = True
    typer.echo(shown.get_help(ctx), nl=False)
    raise typer.Exit


def _help_options(ctx: typer.Context, asked: bool) -> None:
    """Print which options go together and end the command."""
    if not asked or ctx.resilient_parsing:
        return
    from mechdesign.mechanisms.combinations import table_text

    typer.echo(table_text())
    raise typer.Exit


HELP_OPTIONS_PARAMETER = inspect.Parameter(
    HELP_OPTIONS,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-options",
            metavar="",
            help="Show which options go together, and why others do not, and exit.",
            callback=_help_options,
            is_eager=True,
        ),
    ],
)
"""The option of `design` that prints the table of its options."""

HELP_ALL_PARAMETER = inspect.Parameter(
    HELP_ALL,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            metavar="",
            help="Show every option and exit.",
            callback=_whole_help,
            is_eager=True,
        ),
    ],
)
"""The option of commands whose `--help` is short."""
