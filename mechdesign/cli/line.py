"""Between groups of options and the command line, in both directions.

A group is a frozen dataclass whose fields are made by `option`, and whose docstring is their title in the help, or a
sentence where they have none. `command` spreads the groups that a command
takes over the parameters that typer reads; `command_line` writes groups down again, as a line for the shell.
"""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, cast, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from mechdesign.cli.console import PROGRAM, Reporter

COMMAND = "command"
"""Where a channel file keeps the line that makes it again, among what it says of its origin."""

OPTION = "option"
"""Where a field keeps its declaration, among its metadata."""

REPORTER = "reporter"
"""The parameter of a command through which it says what is not its result."""

COLUMNS, TEXT = "COL[,COL..]", "str | None"
"""How an option that names columns is written, and the type of a field that has them in one text."""


@dataclass(frozen=True)
class Declared:
    """How a field is written on the command line.

    `names` (with blanks between) is empty for that of the field, None for an argument; `public` is shown in its place
    in a line for everybody, and `again` says whether a line to do it again has it.
    """

    metavar: str
    help: str
    names: str | None = ""
    public: str | None = None
    again: bool = True


class Plain:
    """Has no types of Python in its help, which say nothing to whoever reads it."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters."""
        parameters = cast("Any", super()).get_params(ctx)
        for each in parameters:
            if each.metavar is None or isinstance(each, TyperArgument):
                each.display_type_rich = lambda ctx: None
        return parameters


class PlainCommand(Plain, TyperCommand):
    """A command; an option that takes one value is refused a second one, instead of forgetting the first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words that follow the command."""
        *_, order = self.make_parser(ctx).parse_args(list(args))
        for each in order:
            repeats = getattr(each, "multiple", True) or getattr(each, "is_flag", True)
            if (times := order.count(each)) > 1 and not repeats:
                raise typer.BadParameter(
                    f"{each.opts[0]} takes one value, and is given {times} times", ctx
                )
        return super().parse_args(ctx, args)


class PlainGroup(Plain, TyperGroup):
    """A group of commands."""


def option(metavar: str, help: str, default: Any = None, **how: Any) -> Any:
    """A field that is an option; `how` are the other fields of `Declared`."""
    return field(
        default=default, metadata={OPTION: Declared(metavar=metavar, help=help, **how)}
    )


def flag(help: str, **how: Any) -> Any:
    """A field that is an option without a value."""
    return option("", help, False, **how)


def argument(
    metavar: str, help: str, *, default: Any = MISSING, public: str | None = None
) -> Any:
    """A field that is an argument, known by its place."""
    return option(metavar, help, default, names=None, public=public)


@cache
def declared(group: type[Any]) -> list[tuple[Field[Any], Declared, list[str]]]:
    """Every field, its declaration, and its names as an option; an argument has none."""
    found: list[tuple[Field[Any], Declared, list[str]]] = []
    for each in fields(group):
        said: Declared = each.metadata[OPTION]
        own = [f"--{each.name.replace('_', '-')}"]
        found.append(
            (each, said, [] if said.names is None else said.names.split() or own)
        )
    return found


def groups_of(function: Callable[..., Any]) -> dict[str, type[Any]]:
    """The groups of options that a function takes, by its parameters."""
    hints: dict[str, Any] = get_type_hints(function)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if is_dataclass(hint)
    }
    return groups


def command(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command for typer: for every group of options that `function` takes, the options themselves.

    A parameter `reporter` is the one that `main` made. Others stay as they are. What `function` returns is the exit
    code.
    """
    hints = get_type_hints(function, include_extras=True) | {REPORTER: typer.Context}
    groups = groups_of(function)
    parameters: list[inspect.Parameter] = []
    for name, each in inspect.signature(function).parameters.items():
        parameters += (
            _parameters(groups[name])
            if name in groups
            else [each.replace(annotation=hints[name])]
        )

    def run(**given: Any) -> int | None:
        taken = {
            name: group(
                **{
                    each.name: _one(each, given.pop(each.name))
                    for each, *_ in declared(group)
                }
            )
            for name, group in groups.items()
        }
        if REPORTER in given:
            made = given[
                REPORTER
            ].obj  # that of `main`, unless a command is called in another way
            given[REPORTER] = made if isinstance(made, Reporter) else Reporter()
        return function(**given, **taken)

    run.__name__, run.__doc__, run.__module__ = (
        function.__name__,
        function.__doc__,
        function.__module__,
    )
    run.__annotations__ = {}
    ordered = sorted(
        parameters, key=lambda each: each.default is not inspect.Parameter.empty
    )
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in ordered]
    vars(run)["__signature__"] = inspect.Signature(keywords)
    return run


@cache
def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group)
    found: list[inspect.Parameter] = []
    for each, said, names in declared(group):
        shown: dict[str, Any] = {"metavar": said.metavar, "help": said.help}
        info: Any = typer.Argument(show_default=each.default is not None, **shown)
        if names:
            info = typer.Option(
                *names, rich_help_panel=_panel(group, each.name), **shown
            )
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        lists = said.metavar == COLUMNS and each.type == TEXT
        hint = list[str] | None if lists else hints[each.name]
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[hint, info]
        found.append(
            inspect.Parameter(each.name, kind, default=default, annotation=annotation)
        )
    return found


def _one(declared: Field[Any], given: Any) -> Any:
    """What a field takes: columns are one text, though their option was repeated."""
    return (
        ",".join(cast("list[str]", given))
        if declared.type == TEXT and isinstance(given, list)
        else given
    )


def _panel(group: type[Any], name: str) -> str | None:
    """The title of the options of the class which declares a field: its docstring, unless that is a sentence."""
    home = next(base for base in group.__mro__ if name in inspect.get_annotations(base))
    title = home.__doc__ or "."
    return None if title.endswith(".") else title


def command_line(name: str, *groups: object, public: bool = False) -> str:
    """The line for the shell that does the same again: every option that differs from its default."""
    arguments: list[str] = []
    options: list[str] = []
    for group in groups:
        for each, said, names in declared(type(group)):
            shown = getattr(group, each.name)
            if not said.again or shown == each.default:
                continue
            if said.public is not None:
                shown = said.public if public else _relative(shown)
            if not names:
                arguments.append(shown)
            elif shown is True:
                options.append(names[0])
            elif shown != "" or not public:
                for value in cast(
                    "list[object]", shown if isinstance(shown, list) else [shown]
                ):
                    options += [names[0], str(value)]
    return shlex.join([PROGRAM, name, *arguments, *options])


def _relative(value: Any) -> Any:
    """A file without the folders of whoever typed them all."""
    return (
        os.path.basename(value)
        if isinstance(value, str) and os.path.isabs(value)
        else value
    )


def recorded_line(line: object, replaced: Mapping[str, str]) -> str | None:
    """A line that a file has kept, with other values of some options: taken apart and quoted anew, for it may come from
    anybody and must start nothing else. None if it is no command of this program.
    """
    try:
        words = shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        return None
    if words[:1] != [PROGRAM] or not all(word.isprintable() for word in words):
        return None
    for name, value in replaced.items():
        if name in words[:-1]:
            words[words.index(name) + 1] = value
    return shlex.join(words)
