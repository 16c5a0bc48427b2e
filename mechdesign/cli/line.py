"""Options declared once, as fields of dataclasses, and translated to and from the command line.

Commands share most of their options: a dozen of them read a table. typer takes an option from a
parameter of the function of a command, so each would have to be repeated in every function. Here
a group of options is a frozen dataclass, whose fields are made by `option`, `flag` and `argument`,
and a command takes whole groups. Both directions are read off the fields:

- `command` wraps the function of a command. The wrapper shows typer a signature with one parameter
  for each field, collects their values, and calls the function with the groups made of them.
- `command_line` writes groups down again, as a line for the shell that repeats the command.

The docstring of a group is the title of its options in the help, unless it is a sentence.

Example: a group with ``epsilon: str | None = option("NATS", "Budget.")`` gives a command the
option ``--epsilon NATS``. ``--epsilon 1`` makes ``Group(epsilon="1")``, of which `command_line`
makes ``mechdesign design --epsilon 1`` again; an option with its default value is left out.

*Help.* typer would print every option of a command at once, in panels: a hundred lines for
`design`. `PlainCommand` takes the place of typer's own class of commands, and `PlainGroup` of its
groups. --help shows a copy of the command that has the options of `first_options.FIRST_OPTIONS`
alone, each with the first clause of its text (`_in_brief`): "Stop each search after this processor
time: best verified channel, proven gap." becomes "Stop each search after this processor time."
--help-all is an option like any other, whose callback prints the whole help
(`HELP_ALL_PARAMETER`). Besides, the class puts the options in the order of the short help
(`get_params`), and refuses one that is given twice (`parse_args`).
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
from mechdesign.cli.failures import Interrupted
from mechdesign.cli.first_options import FIRST_OPTIONS, OF_THE_PROGRAM
from mechdesign.core.errors import errors_noting, notes_of

COMMAND = "command"
"""The key of the design command in the provenance of a channel file."""

OPTION = "option"
"""The key of the declaration in the metadata of a field."""

REPORTER = "reporter"
"""The parameter of a command that takes its notes and progress."""

COLUMNS = "COL[,COL..]"
"""The metavar of options that name columns."""

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


# --------------------------------------------------------------------------------- help

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


# ----------------------------------------------------------------------------- commands


def groups_of(function: Callable[..., Any]) -> dict[str, type[Any]]:
    """The groups of options that a function takes, by its parameters."""
    groups: dict[str, Any] = {}
    for name, hint in get_type_hints(function).items():
        if is_dataclass(hint):
            groups[name] = hint
    return groups


def command(
    function: Callable[..., int | None],
    *,
    has_whole_help: bool = False,
    has_table: bool = False,
) -> Callable[..., int | None]:
    """The command for typer, with single options in the place of the groups that `function` takes.

    A parameter `reporter` takes the `Reporter` of `main`. Other parameters stay as they are. The
    result of `function` is the exit code. With `has_whole_help` there is an option ``--help-all``,
    with `has_table` an option ``--help-options``.
    """
    groups = groups_of(function)

    def run(**values: Any) -> int | None:
        """Make the groups of single values, and call `function` with them."""
        # Its callback has ended the command if it was asked for.
        values.pop(HELP_ALL, None)
        values.pop(HELP_OPTIONS, None)
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
        try:
            return function(**values, **arguments)
        except KeyboardInterrupt as stop:
            # typer would make a bare exit code of it, without its notes.
            with errors_noting(*notes_of(stop)):
                raise Interrupted("interrupted") from None

    # typer reads names, help and options off the function, so `run` must look like `function`.
    # Without annotations of its own, only those of the signature count, which has single options in
    # the place of groups; `inspect.signature` returns `__signature__` where there is one.
    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    run.__module__ = function.__module__
    run.__annotations__ = {}
    signature = _signature(function, groups)
    if has_whole_help:
        parameters = [*signature.parameters.values(), HELP_ALL_PARAMETER]
        if has_table:
            parameters.append(HELP_OPTIONS_PARAMETER)
        signature = signature.replace(parameters=parameters)
    vars(run)["__signature__"] = signature
    return run


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


# Cached, because a dozen commands have the same groups, and the program's help loads all commands.
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
            if title.endswith("."):
                return None
            return title
    raise LookupError(f"{group.__name__} has no field {name}")


def command_line(
    name: str, *groups: object, public: bool = False, folders: bool = False
) -> str:
    """The shell line that repeats a command: every option that differs from its default.

    With `folders` files keep theirs, for a line that is pasted into the shell. In reports people
    read it, and a file has its name alone.
    """
    return shlex.join(
        [PROGRAM, name, *option_words(*groups, public=public, folders=folders)]
    )


def option_words(
    *groups: object, public: bool = False, folders: bool = False
) -> list[str]:
    """The arguments and options of `command_line`."""
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
                if public:
                    value = declaration.public
                elif not folders:
                    value = _relative(value)
            if not names:
                arguments.append(value)
            elif value is True:
                options.append(names[0])
            elif value != "" or not public:
                # An empty public value means that a line for everybody has no such option.
                for single in _repeated(value):
                    options += [names[0], str(single)]
    return [*arguments, *options]


def _repeated(value: Any) -> list[Any]:
    """The values of an option, which has several if it may be repeated."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [value]


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
