"""Between groups of options and the command line, in both directions.

A group is a frozen dataclass whose fields are made by `option`, and whose docstring is their title in the help, or a
sentence where they have none. `command` spreads the groups that a command
takes over the parameters that typer reads; `command_line` writes groups down again, as a line for the shell.
"""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, cast, get_type_hints

import typer

from mechdesign.cli.console import PROGRAM, reporter_of

COMMAND = "command"
"""Where a channel file keeps the line that makes it again, among what it says of its origin."""

OPTION = "option"
"""Where a field keeps its declaration, among its metadata."""

REPORTER = "reporter"
"""The parameter of a command through which it says what is not its result."""


@dataclass(frozen=True)
class Declared:
    """How a field is written on the command line."""

    names: tuple[str, ...]
    metavar: str
    help: str
    public: str | None
    again: bool


def option(
    names: str, metavar: str, help: str, default: Any = None, *, public: str | None = None, again: bool = True
) -> Any:
    """A field that is an option; `names` with blanks between them, other parameters as those of `Declared`."""
    return field(
        default=default, metadata={OPTION: Declared((*names.split(),), metavar, help, public, again)}
    )


def flag(names: str, help: str, *, public: str | None = None, again: bool = True) -> Any:
    """A field that is an option without a value."""
    return option(names, "", help, False, public=public, again=again)


def argument(metavar: str, help: str, *, default: Any = MISSING, public: str | None = None) -> Any:
    """A field that is an argument, known by its place."""
    declared = {OPTION: Declared((), metavar, help, public, True)}
    return field(metadata=declared) if default is MISSING else field(default=default, metadata=declared)


@cache
def _declared(group: type[Any]) -> list[tuple[Field[Any], Declared]]:
    return [(each, each.metadata[OPTION]) for each in fields(group) if OPTION in each.metadata]


def command(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """The command for typer: for every group of options that `function` takes, the options themselves.

    A parameter `reporter` is the one that `main` made. Others stay as they are. What `function` returns is the exit
    code.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == REPORTER:
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
            )
            continue
        if not is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = cast("type[Any]", hints[name])
        parameters += _parameters(groups[name])

    def run(**given: Any) -> int | None:
        taken = {
            name: group(**{each.name: given.pop(each.name) for each, _ in _declared(group)})
            for name, group in groups.items()
        }
        if REPORTER in given:
            given[REPORTER] = reporter_of(given[REPORTER])
        return function(**given, **taken)

    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    run.__annotations__ = {}
    places = {inspect.Parameter.empty: 0}
    ordered = sorted(parameters, key=lambda each: places.get(each.default, 1))
    vars(run)["__signature__"] = inspect.Signature(
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in ordered]
    )
    return run


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group)
    found: list[inspect.Parameter] = []
    for each, declared in _declared(group):
        info: Any
        if declared.names:
            info = typer.Option(
                *declared.names,
                metavar=declared.metavar,
                help=declared.help,
                rich_help_panel=_panel(group, each.name),
            )
        else:
            info = typer.Argument(
                metavar=declared.metavar, help=declared.help, show_default=each.default is not None
            )
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        found.append(
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[hints[each.name], info],
            )
        )
    return found


def _panel(group: type[Any], name: str) -> str | None:
    """The title of the options of the class which declares a field: its docstring, unless that is a sentence."""
    home = next(base for base in group.__mro__ if name in inspect.get_annotations(base))
    title = home.__doc__ or "."
    return getattr(home, "PANEL", None if title.endswith(".") else title)


def command_line(name: str, *groups: object, public: bool = False) -> str:
    """The line for the shell that does the same again: every option that differs from its default."""
    words: list[str] = []
    options: list[tuple[str, Any]] = []
    for group in groups:
        if isinstance(group, str):
            words.append(group)
            continue
        for each, declared in _declared(type(group)):
            value = getattr(group, each.name)
            if not declared.again or value == each.default:
                continue
            shown = value
            if declared.public is not None:
                shown = declared.public if public else _relative(value)
            if shown == "" and public:
                continue
            if declared.names:
                options.append((declared.names[0], shown))
            else:
                words.append(shown)
    return shell_line(name, words, options)


def _relative(value: Any) -> Any:
    """A file without the folders of whoever typed them all."""
    return os.path.basename(value) if isinstance(value, str) and os.path.isabs(value) else value


def recorded_line(line: object, replaced: Mapping[str, str]) -> str | None:
    """A line that a file has kept, with other values of some options; None if it is no command of this program.

    A file may come from anybody: the line is taken apart and quoted anew, so that it can start nothing else.
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


def shell_line(
    name: str, arguments: Sequence[str], options: Sequence[tuple[str, Any]] | Mapping[str, Any]
) -> str:
    """A line for the shell; an option that is None or False is left out, a list repeats its option."""
    pairs = options.items() if isinstance(options, Mapping) else options
    words = [PROGRAM, name, *arguments]
    for option_name, value in pairs:
        if value is True:
            words.append(option_name)
        elif isinstance(value, (list, tuple)):
            for each in cast("Sequence[object]", value):
                words += [option_name, str(each)]
        elif value is not None and value is not False:
            words += [option_name, str(value)]
    return shlex.join(words)
