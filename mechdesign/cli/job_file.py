"""The file of a job (`run`): its keys, the values in its paths, and the lines that errors name.

`read_job` reads it in three steps: TOML, then the values of --set in its paths (`_with_values`),
then a pydantic model (`job_model`). With ``--set day=7`` the lines ::

    [[apply]]
    in = "people-{day}.csv"

become a section with the path people-7.csv, whose other keys have the defaults of `apply`.

The model is built from the options of the commands (`_section`), so that a key is checked and
documented like its option: from ``epsilon: str | None = option("NATS", "Budget.")`` in a group of
`design` comes the key ``epsilon`` of the section ``[design]``.

TOML parsers give no positions, so the line of a key is found by parsing ever more lines
(`line_of`). `JobFile.locating_errors` puts it before the message of a step that fails; the key that
a message is about is found by its words (`_mentioned_key`).
"""

# The model is built from the options when it is first used, so type checkers cannot
# know its fields.
# pyright: basic
from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

from mechdesign.cli.apply import apply
from mechdesign.cli.design import design
from mechdesign.cli.line import COLUMNS, Declared, declared, groups_of
from mechdesign.cli.options import CommonOptions, ReportOptions
from mechdesign.cli.report import report
from mechdesign.core.errors import InputError, errors_noting, notes_of

LEFT_OUT = ("output", "dry_run", "fresh_draw", "insecure_seed")
"""Options without a key: the first two belong to the job, and a repeated job makes no new draws."""

TYPED = {"type": ["string", "number"]}
"""The JSON Schema of a value that is text on the command line."""

Place: TypeAlias = tuple[str | int, ...]
"""A section or key of the job file, from outside to inside."""

PATHS = (
    "channel",
    "ledger",
    "table",
    "matrix",
    "in",
    "out",
    "also",
    "manifest",
    "internal-manifest",
    "codebook",
    "report",
    "public-report",
)
"""Keys of paths, in which ``{NAME}`` is replaced."""

MISSING = " COL is missing: "
"""How an error about an absent column option goes on after its name."""

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""What ``--set`` replaces."""


class JobFile(NamedTuple):
    """A job that was read: its path, its text for the lines of errors, and its model.

    The fields of `job` are those of `job_model`.
    """

    path: str
    text: str
    job: Any

    @contextmanager
    def locating_errors(self, section: Place) -> Generator[None]:
        """Errors of a step name the line of its section, or of the key whose option or value
        they mention.
        """
        try:
            yield
        except InputError as error:
            key = _mentioned_key(_part_at(self.text, section), str(error))
            place = section
            if key is not None:
                place = (*section, key)
            line = line_of(self.text, place)
            located = InputError(f"{self.path}, line {line}: {error}")
            # Whether to start again does not depend on the line.
            located.exit_code = error.exit_code
            with errors_noting(*notes_of(error)):
                raise located from None


def read_job(path: str, values: Mapping[str, str]) -> JobFile:
    """Read a job file, with the values of --set in its paths."""
    from pydantic import ValidationError

    from mechdesign.core.documents import explained
    from mechdesign.formats.inputs import OpenedFile

    text = ""
    try:
        with closing(OpenedFile(path)) as file:
            # Windows' editor begins files with a mark, which TOML does not know.
            text = file.stream.read().decode("utf-8-sig")
        # Budgets stay the decimals that were typed, as on the command line.
        document = tomllib.loads(text, parse_float=str)
        job = job_model().model_validate(_with_values(document, values))
        return JobFile(path, text, job)
    except ValidationError as error:
        first = error.errors()[0]
        message = explained(error, "job")
        if first["loc"] == ("apply",):
            message = "a release is a section [[apply]], with double brackets"
        meant = _with_hyphens(first)
        if meant is not None:
            message += f"; write {meant!r}, as the option --{meant} has it"
        line = line_of(text, first["loc"])
        raise InputError(f"{path}, line {line}: {message}") from None
    except RecursionError:
        raise InputError(f"{path} is no job file: it is nested too deeply") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}") from None
    except InputError:
        # It is also a ValueError, which is caught below.
        raise
    except ValueError:
        # Python refuses to parse integers of more than 4300 digits.
        raise InputError(f"{path}: holds an integer of thousands of digits") from None


def values_set(settings: Sequence[str] | None) -> dict[str, str]:
    """The values of ``--set`` by their names."""
    values: dict[str, str] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not value or not PLACEHOLDER.fullmatch(f"{{{name}}}"):
            raise InputError(
                f"--set {setting!r} must be NAME=VALUE, such as date=2026-11-23"
            )
        if name in values:
            raise InputError(f"--set gives {name!r} twice")
        values[name] = value
    return values


def _with_values(document: Any, values: Mapping[str, str]) -> Any:
    """A job with the values in its paths, of all of its sections.

    Raises
    ------
    InputError
        If a path has a name without a value, or a value is used nowhere.
    """
    placeholders = _Placeholders(values)
    filled = placeholders.filled(document, is_path=False)
    # Most often a misspelt name: the path that was meant would stay as it was.
    for name in values:
        if name not in placeholders.used:
            raise InputError(f"--set {name}: no path of the job has {{{name}}}")
    return filled


class _Placeholders:
    """Puts values in the place of ``{NAME}``, and remembers which were used."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.used: set[str] = set()

    def filled(self, part: Any, *, is_path: bool) -> Any:
        """A part of a job with the values in its paths, however deep; `is_path` if its own key is
        one.
        """
        if isinstance(part, dict):
            section: dict[str, Any] = {}
            for key, value in part.items():
                section[key] = self.filled(value, is_path=key in PATHS)
            return section
        if isinstance(part, list):
            return [self.filled(value, is_path=is_path) for value in part]
        if is_path and isinstance(part, str):
            return PLACEHOLDER.sub(self._value_of, part)
        return part

    def _value_of(self, match: re.Match[str]) -> str:
        """The value of one placeholder."""
        name = match[1]
        if name not in self.values:
            raise InputError(
                f"the job has {{{name}}} in a path and no value for it: give one (--set {name}=..)"
            )
        self.used.add(name)
        return self.values[name]


def _with_hyphens(problem: Any) -> str | None:
    """The key that an unknown one with underscores means, such as time-limit for time_limit; None
    where there is no such key either.
    """
    if problem["type"] != "extra_forbidden":
        return None
    *section, key = problem["loc"]
    if "_" not in str(key):
        return None
    keys = job_model()
    if section:
        keys = _models_of_sections()[section[0]]
    meant = str(key).replace("_", "-")
    known = {field.alias for field in keys.model_fields.values()}
    return meant if meant in known else None


def _models_of_sections() -> dict[str, Any]:
    """The models of all sections by their names."""
    return {
        # What all commands have belongs to the run as a whole, and reports to a section of their
        # own.
        "design": _section(design, CommonOptions, ReportOptions),
        "apply": _section(apply, CommonOptions),
        "report": _section(report, CommonOptions),
    }


@cache
def job_model() -> Any:
    """The model of a job file, built from the options of the commands."""
    from pydantic import Field, create_model

    from mechdesign.core.documents import Record

    channel = Field(description="The channel file: designed if it is not there.")
    ledger = Field(default=None, description="The ledger of all releases.")
    key_from = Field(
        default=None,
        alias="key-from",
        description="Where the key of the ledger is, if not beside it: env:NAME, fd:N or a FILE.",
    )
    sections = _models_of_sections()
    apply_section: Any = sections["apply"]
    keys: dict[str, Any] = {
        "channel": (str, channel),
        "ledger": (str | None, ledger),
        "key_from": (str | None, key_from),
        "design": (sections["design"] | None, None),
        "apply": (list[apply_section], Field(default_factory=list)),
        "report": (sections["report"] | None, None),
    }
    return create_model("Job", __base__=Record, **keys)


@cache
def _section(function: Callable[..., Any], *without: type[Any]) -> Any:
    """The model of a section: a key for every option of a command, except those of the
    groups `without`.
    """
    from pydantic import Field, create_model

    from mechdesign.core.documents import Record

    keys: dict[str, Any] = {
        "force": (bool, Field(default=False, description="Replace what is there."))
    }
    for group in groups_of(function).values():
        if group in without:
            continue
        hints = get_type_hints(group)
        for member, declaration, names in declared(group):
            if member.name in LEFT_OUT:
                continue
            # An argument has no name on the command line: its key is what the help calls it, and
            # it must be there (... is pydantic's sign for that).
            key = declaration.metavar.lower()
            default: Any = ...
            if names:
                key = names[0].removeprefix("--")
                default = member.default
            hint = _hint(hints[member.name], declaration)
            described = Field(default=default, description=declaration.help, alias=key)
            keys[member.name] = (hint, described)
    return create_model(function.__name__.title(), __base__=Record, **keys)


def _hint(hint: Any, declaration: Declared) -> Any:
    """The type of a key: numbers may be written as numbers, and lists as arrays.

    Options are texts on the command line, so that budgets stay exact decimals. A job may write
    ``epsilon = 1`` and ``sensitive = ["race", "sex"]`` for the texts "1" and "race,sex"
    (`_typed`).
    """
    from pydantic import BeforeValidator, WithJsonSchema

    if hint in (bool, int):
        return hint
    # Metavar COL[,COL..] means that the option takes columns, with commas or repeated.
    columns = declaration.metavar == COLUMNS
    repeated = hint == list[str] | None
    forms: list[Any] = [TYPED]
    if columns or repeated:
        forms.append({"type": "array", "items": TYPED})
    as_typed = BeforeValidator(partial(_typed, columns, repeated))
    return Annotated[hint, as_typed, WithJsonSchema({"anyOf": forms})]


def _typed(columns: bool, repeated: bool, value: Any) -> Any:
    """A value as it would be typed on the command line, where numbers are texts and
    options may be repeated.
    """
    values = value if isinstance(value, list) else [value]
    texts: list[Any] = []
    for entry in values:
        # Floats are texts already (`read_job`); bool is an int, and no number here.
        if type(entry) is int:
            texts.append(str(entry))
        elif isinstance(entry, str):
            texts.append(entry)
        else:
            several = ", or a list of such" if columns or repeated else ""
            raise InputError(f"must be text or a number{several}")
    if repeated:
        return texts
    if columns and all(isinstance(text, str) for text in texts):
        return ",".join(texts)
    return value if isinstance(value, list) else texts[0]


class _Match(NamedTuple):
    """A place in a message that may speak of a key; the least one is the best.

    The fields are in the order of their weight. `rank` is 0 for the name of the option, 1 for the
    value in quotes and 2 for the bare value. `position` prefers an early mention. `negative_length`
    prefers the longer of two marks at one place, for --keep also begins --keep-frequencies.
    """

    rank: int
    position: int
    negative_length: int


def _mentioned_key(section: Any, message: str) -> str | None:
    """The key that a message is about: best by the name of its option, else by its value.

    In the section ``keep = "age"``, ``table = "people.csv"`` the message "people.csv has no column
    'age' (--keep)" is about ``keep``: its option is named, which counts more than an early value.

    This only chooses the line that is shown. Whatever it finds, the message itself stays the same.
    """
    # Of a key that is missing no other one speaks, though the message lists all columns.
    if not isinstance(section, dict) or MISSING in message:
        return None
    best: _Match | None = None
    best_key: str | None = None
    for key, value in section.items():
        for match in _matches(key, value, message):
            # Of two equal matches the key that comes first in the file counts.
            if best is None or match < best:
                best = match
                best_key = key
    return best_key


def _matches(key: str, value: Any, message: str) -> Iterator[_Match]:
    """The places of a message that may speak of a key with this value."""
    values = value if isinstance(value, list) else [value]
    for single in values:
        for rank, mark in enumerate((f"--{key}", repr(single), str(single))):
            position = message.find(mark)
            if position >= 0:
                yield _Match(rank, position, -len(mark))


def _part_at(text: str, place: Place) -> Any:
    """The part of a TOML text at a place."""
    value: Any = tomllib.loads(text)
    for key in place:
        value = value[key]
    return value


def line_of(text: str, place: Place) -> int:
    """The line on which a key begins, or its section if it is missing.

    TOML parsers give no positions. So ever more lines are parsed: the first part with
    the key ends where the key ends, and the longest valid part without it ends where
    the key begins. A missing key gets the line of its section.

    Of the lines "a = 1", "b = [", "2]" the first two are no TOML, and all three have the key b. The
    longest valid part without it is the first line: b begins on line 2.
    """
    # The line after the longest valid part without the key.
    begins = 1
    lines = text.split("\n")
    for number in range(1, len(lines) + 1):
        try:
            _part_at("\n".join(lines[:number]), place)
            return begins
        except (KeyError, IndexError, TypeError):
            begins = number + 1
        except tomllib.TOMLDecodeError:
            # The lines so far end within a value: they say nothing about the key.
            continue
    return line_of(text, place[:-1])
