"""Translates between groups of options and the command line, in both directions.

A group is a frozen dataclass whose fields are made by `option`. Its docstring is the title of the
options in the help, unless it is a sentence. `command` turns the groups that a command takes into
the parameters that typer reads; `command_line` writes groups down again, as a line for the shell.
`PlainCommand` is what typer makes of a command: it has the short and the whole help.

Example: a group with ``epsilon: str | None = option("NATS", "Budget.")`` gives a command the
option ``--epsilon NATS``. ``--epsilon 1`` makes ``Group(epsilon="1")``, of which `command_line`
makes ``mechdesign design --epsilon 1`` again; an option with its default value is left out.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, cast, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from mechdesign.cli.console import PROGRAM, Reporter
from mechdesign.cli.first_options import FIRST_OPTIONS, OF_THE_PROGRAM

COMMAND = "command"
"""The key of the design command in the provenance of a channel file."""

OPTION = "option"
"""The key of the declaration in the metadata of a field."""

REPORTER = "reporter"
"""The parameter of a command that takes its notes and progress."""

COLUMNS = "COL[,COL..]"
"""The metavar of options that name columns."""

HELP_ALL = "help_all"
"""The parameter of a command that asks for its whole help."""

MORE_OPTIONS = "More options:  --help-all"
"""The last line of a short help."""

FIRST_CLAUSE = re.compile(r"(.*?)(?:[.:;] | \(|$)")
"""A help text up to its first details, which the short help leaves out."""

TEXT = "str | None"
"""The type of a field that holds several columns in one text."""


@dataclass(frozen=True)
class Declared:
    """The form of a field on the command line.

    Attributes
    ----------
    metavar, help : str
        As typer takes them.
    names : str or None
        Names of the option with blanks between them; empty for the name of the field, None for an
        argument.
    public : str, optional
        The value shown instead in a line for everybody.
    again : bool
        Whether a line that repeats the command has the option.
    """

    metavar: str
    help: str
    names: str | None = ""
    public: str | None = None
    again: bool = True


class Plain:
    """Help without the types of Python, which users of the command line do not know."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters."""
        # Another base class of a command has the method, which type checkers cannot know.
        parameters = cast("Any", super()).get_params(ctx)
        for parameter in parameters:
            if parameter.metavar is None or isinstance(parameter, TyperArgument):
                parameter.display_type_rich = lambda ctx: None
        return parameters


class PlainCommand(Plain, TyperCommand):
    """A command with a short and a whole help.

    A second value of an option that takes one is refused, where click forgets the first.
    """

    is_whole_help = False

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
        shown.params = []
        for parameter in self.params:
            is_argument = isinstance(parameter, TyperArgument)
            if first is None:
                if set(OF_THE_PROGRAM).isdisjoint(parameter.opts):
                    shown.params.append(parameter)
            elif is_argument or not set(first).isdisjoint(parameter.opts):
                shown.params.append(_in_brief(parameter))
        if first is not None:
            shown.epilog = f"{self.epilog}\n\n{MORE_OPTIONS}"
        shown.format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words that follow the command."""
        # A budget that was typed twice must not be replaced silently by the larger one.
        # `order` has the parameter of every option as often as it was typed.
        *_, order = self.make_parser(ctx).parse_args(list(args))
        for parameter in order:
            repeatable = getattr(parameter, "multiple", True)
            is_flag = getattr(parameter, "is_flag", True)
            times = order.count(parameter)
            if times > 1 and not repeatable and not is_flag:
                raise typer.BadParameter(
                    f"{parameter.opts[0]} takes one value, and is given {times} times",
                    ctx,
                )
        return super().parse_args(ctx, args)


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


class PlainGroup(Plain, TyperGroup):
    """A group of commands."""


def option(metavar: str, help: str, default: Any = None, **declaration: Any) -> Any:
    """A field that is an option; `declaration` has the other fields of `Declared`."""
    declared = Declared(metavar=metavar, help=help, **declaration)
    return field(default=default, metadata={OPTION: declared})


def flag(help: str, **declaration: Any) -> Any:
    """A field that is an option without a value."""
    return option("", help, False, **declaration)


def argument(
    metavar: str, help: str, *, default: Any = MISSING, public: str | None = None
) -> Any:
    """A field that is an argument, known by its place."""
    return option(metavar, help, default, names=None, public=public)


@cache
def declared(group: type[Any]) -> list[tuple[Field[Any], Declared, list[str]]]:
    """Every field of a group, its declaration, and its names as an option; an argument has none."""
    entries: list[tuple[Field[Any], Declared, list[str]]] = []
    for member in fields(group):
        declaration: Declared = member.metadata[OPTION]
        names: list[str] = []
        if declaration.names is not None:
            names = declaration.names.split()
            if not names:
                names = [f"--{member.name.replace('_', '-')}"]
        entries.append((member, declaration, names))
    return entries


def groups_of(function: Callable[..., Any]) -> dict[str, type[Any]]:
    """The groups of options that a function takes, by its parameters."""
    groups: dict[str, Any] = {}
    for name, hint in get_type_hints(function).items():
        if is_dataclass(hint):
            groups[name] = hint
    return groups


def command(
    function: Callable[..., int | None], *, has_whole_help: bool = False
) -> Callable[..., int | None]:
    """The command for typer: every group of options that `function` takes becomes its single
    options.

    A parameter `reporter` takes the `Reporter` of `main`. Other parameters stay as they are. The
    result of `function` is the exit code. With `has_whole_help` there is an option ``--help-all``.
    """
    groups = groups_of(function)

    def run(**values: Any) -> int | None:
        """Make the groups of single values, and call `function` with them."""
        values.pop(HELP_ALL, None)
        arguments: dict[str, Any] = {}
        for name, group in groups.items():
            members: dict[str, Any] = {}
            for member, *_ in declared(group):
                members[member.name] = _one_text(member, values.pop(member.name))
            arguments[name] = group(**members)
        if REPORTER in values:
            # The context holds the reporter of `main`, unless a command is called in another way.
            reporter = values[REPORTER].obj
            if not isinstance(reporter, Reporter):
                reporter = Reporter()
            values[REPORTER] = reporter
        return function(**values, **arguments)

    # typer reads names, help and options off the function: `run` must look like `function`, but
    # with single options in the place of groups.
    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    run.__module__ = function.__module__
    run.__annotations__ = {}
    signature = _signature(function, groups)
    if has_whole_help:
        parameters = [*signature.parameters.values(), HELP_ALL_PARAMETER]
        signature = signature.replace(parameters=parameters)
    vars(run)["__signature__"] = signature
    return run


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


def _signature(
    function: Callable[..., Any], groups: Mapping[str, type[Any]]
) -> inspect.Signature:
    """The signature that typer reads: single options in the place of groups, required
    ones first.
    """
    hints = get_type_hints(function, include_extras=True) | {REPORTER: typer.Context}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            parameters.append(
                parameter.replace(
                    annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY
                )
            )
    # Python allows no parameter without a default behind one with a default.
    required: list[inspect.Parameter] = []
    optional: list[inspect.Parameter] = []
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter)
        else:
            optional.append(parameter)
    return inspect.Signature([*required, *optional])


@cache
def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    """The parameters of a group, as typer reads them."""
    hints = get_type_hints(group)
    parameters: list[inspect.Parameter] = []
    for member, declaration, names in declared(group):
        if names:
            info: Any = typer.Option(
                *names,
                rich_help_panel=_panel(group, member.name),
                metavar=declaration.metavar,
                help=declaration.help,
            )
        else:
            info = typer.Argument(
                show_default=member.default is not None,
                metavar=declaration.metavar,
                help=declaration.help,
            )
        hint = hints[member.name]
        if declaration.metavar == COLUMNS and member.type == TEXT:
            # The option may be repeated; `_one_text` joins the values.
            hint = list[str] | None
        default = member.default
        if default is MISSING:
            default = inspect.Parameter.empty
        parameters.append(
            inspect.Parameter(
                member.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[hint, info],
            )
        )
    return parameters


def _one_text(member: Field[Any], value: Any) -> Any:
    """The value of a field: columns are one text, though their option was repeated.

    ``--sensitive race --sensitive sex`` is ``--sensitive race,sex``.
    """
    if member.type == TEXT and isinstance(value, list):
        return ",".join(cast("list[str]", value))
    return value


def _panel(group: type[Any], name: str) -> str | None:
    """The title of the options: the docstring of the class that declares the field,
    unless it is a sentence.
    """
    # A group may add options to those of another: each option stands under the title of the class
    # that declares it.
    for base in group.__mro__:
        if name in inspect.get_annotations(base):
            title = (base.__doc__ or ".").strip()
            return None if title.endswith(".") else title
    raise LookupError(f"{group.__name__} has no field {name}")


def command_line(name: str, *groups: object, public: bool = False) -> str:
    """The shell line that repeats a command: every option that differs from its default."""
    arguments: list[str] = []
    options: list[str] = []
    for group in groups:
        for member, declaration, names in declared(type(group)):
            value = getattr(group, member.name)
            # Only what the user typed: people read this line in reports.
            if not declaration.again or value == member.default:
                continue
            if declaration.public is not None:
                # Names of files say more of their owner than a line for others needs.
                value = declaration.public if public else _relative(value)
            if not names:
                arguments.append(value)
            elif value is True:
                options.append(names[0])
            elif value != "" or not public:
                # An empty public value means that a line for everybody has no such option.
                for single in _repeated(value):
                    options += [names[0], str(single)]
    return shlex.join([PROGRAM, name, *arguments, *options])


def _repeated(value: Any) -> list[Any]:
    """The values of an option, which has several if it may be repeated."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _relative(value: Any) -> Any:
    """A file without its folders, if they were all typed."""
    if isinstance(value, str) and os.path.isabs(value):
        return os.path.basename(value)
    return value


def recorded_line(line: object, replaced: Mapping[str, str]) -> str | None:
    """A line from a file, with other values of some options; None if it is no command of this
    program.

    The file may come from anybody. So the line is taken apart and quoted anew: pasted into a shell,
    it starts nothing else.
    """
    if not isinstance(line, str):
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if words[:1] != [PROGRAM] or not all(word.isprintable() for word in words):
        return None
    for name, value in replaced.items():
        # Not if it is the last word, which has no value behind it.
        if name in words[:-1]:
            words[words.index(name) + 1] = value
    return shlex.join(words)
