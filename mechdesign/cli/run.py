"""`mechdesign run JOB.toml`: a nightly job from one file, whose keys are the options of
`design`, `apply`, `report`.

The job is read in three steps: TOML, then the values of --set in its paths (`_with_values`), then
a pydantic model that is built from the groups of options (`job_model`), so that a key is checked
and documented like its option. `_steps` yields the commands that are still to be done: design the
channel, or audit the one that is there; each release; the reports. `_called` calls the very
functions of the command line with them. Example: ::

    channel = "channel.json"
    [design]
    table = "people.csv"
    sensitive = "income"
    useful = "job"
    epsilon = 1
    [[apply]]
    in = "people-{date}.csv"
    out = "released-{date}.csv"

With ``--set date=2026-11-23`` the first night designs channel.json, and every night releases a
file. A rehearsal (--dry-run) does all this with outputs in a scratch folder. An error names the
line of the job that it is about (`_locating_errors`).
"""

# The model is built from the options when it is first used, so type checkers cannot
# know its fields.
# pyright: basic
from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from mechdesign.cli import apply as a
from mechdesign.cli import design as d
from mechdesign.cli import options as o
from mechdesign.cli import report as r
from mechdesign.cli import table_options
from mechdesign.cli.audit import audit
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import (
    COLUMNS,
    COMMAND,
    Declared,
    argument,
    command_line,
    declared,
    flag,
    groups_of,
    option,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import check_target

EXAMPLE = "Example:  mechdesign run nightly.toml --dry-run"

LEFT_OUT = ("output", "dry_run", "fresh_draw", "insecure_seed")
"""Options without a key: the first two belong to the job, and a repeated job makes no new draws."""

TYPED = {"type": ["string", "number"]}
"""The JSON Schema of a value that is text on the command line."""

Place: TypeAlias = tuple[str | int, ...]
"""A section or key of the job file, from outside to inside."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The job."""

    job: str = argument(
        "JOB.toml",
        "The job: the channel, and sections \\[design], \\[\\[apply]] and \\[report].",
    )
    dry_run: bool = flag("Check everything that can be checked, and write nothing.")
    set: list[str] | None = option(
        "NAME=VALUE",
        "Put VALUE in the place of {NAME} in the paths of the job; may be repeated.",
    )


@dataclass(frozen=True, kw_only=True)
class StepAnswers(o.CommonOptions):
    """The answers of the commands of a job: printed, and collected for its JSON object.

    `real` maps the files that a rehearsal wrote to those that the job would write.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    real: dict[str, str] = field(default_factory=dict)

    def answer(
        self, record: Callable[[], Mapping[str, Any]], text: Callable[[], str]
    ) -> None:
        """Print the result for people, and keep it."""
        step = dict(record())
        written: list[str] = []
        for key, value in step.items():
            if str(value) in self.real:
                step[key] = self.real[str(value)]
                written.append(step[key])
        self.steps.append(step)
        if self.as_json:
            return
        if written:
            typer.echo(f"{' and '.join(written)} would be written.")
        else:
            typer.echo(text())


@cache
def job_model() -> Any:
    """The model of a job file, built from the options of the commands."""
    from pydantic import Field, create_model

    from mechdesign.core.records import Record

    channel = Field(description="The channel file: designed if it is not there.")
    ledger = Field(default=None, description="The ledger of all releases.")
    key_from = Field(
        default=None,
        alias="key-from",
        description="Where the key of the ledger is, if not beside it: env:NAME, fd:N or a FILE.",
    )
    design = _section(d.design, o.CommonOptions, r.ReportOptions)
    apply: Any = _section(a.apply, o.CommonOptions)
    report = _section(r.report, o.CommonOptions)
    keys: dict[str, Any] = {
        "channel": (str, channel),
        "ledger": (str | None, ledger),
        "key_from": (str | None, key_from),
        "design": (design | None, None),
        "apply": (list[apply], Field(default_factory=list)),
        "report": (report | None, None),
    }
    return create_model("Job", __base__=Record, **keys)


def _section(function: Callable[..., Any], *without: type[Any]) -> Any:
    """The model of a section: a key for every option of a command, except those of the
    groups `without`.
    """
    from pydantic import Field, create_model

    from mechdesign.core.records import Record

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
            alias = declaration.metavar.lower()
            default: Any = ...
            if names:
                alias = names[0].removeprefix("--")
                default = member.default
            hint = _hint(hints[member.name], declaration)
            description = Field(
                default=default, description=declaration.help, alias=alias
            )
            keys[member.name] = (hint, description)
    return create_model(function.__name__.title(), __base__=Record, **keys)


def _hint(hint: Any, declaration: Declared) -> Any:
    """The type of a key: numbers may be written as numbers, and lists as arrays."""
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
    texts = [str(entry) if type(entry) is int else entry for entry in values]
    if repeated:
        return texts
    if columns and all(isinstance(text, str) for text in texts):
        return ",".join(texts)
    return value if isinstance(value, list) else texts[0]


def run(reporter: Reporter, what: RunOptions, common: o.CommonOptions) -> int:
    """Run a job file: design or verify a channel, release, report.

    The job file has a key for every option of these commands; its paths are relative to
    its folder. Finished steps are not repeated: run a job that was killed, or failed,
    again as it is.
    """
    from mechdesign.jobs.keys import read_once

    text, job = _read_job(what.job, _values_set(what.set))
    code = 0
    answers = StepAnswers(as_json=common.as_json)
    with (
        _scratch_folder(what.dry_run) as scratch,
        chdir(Path(what.job).parent),
        read_once(job.key_from) as key_from,
    ):

        def place_of(path: str) -> str:
            """Where a file is written: a rehearsal writes to a scratch folder."""
            if not what.dry_run:
                return path
            name = f"{len(answers.real)}{Path(path).suffix}"
            place = os.path.join(scratch, name)
            answers.real[place] = path
            return place

        steps = _steps(job, what.dry_run, place_of, key_from)
        for section, function, values in steps:
            reporter.finished = False
            with _locating_errors(what.job, text, section):
                code = _called(function, reporter, answers, values) or 0
            if code:
                break
    if what.dry_run:
        end = "Nothing was written: this was a rehearsal."
    else:
        end = f"{what.job} is done."
    if common.as_json or not code:
        common.answer(
            lambda: {"job": what.job, "dry_run": what.dry_run, "steps": answers.steps},
            lambda: end,
        )
    return code


@contextmanager
def _scratch_folder(dry_run: bool) -> Generator[str]:
    """Where a rehearsal writes its files; a job that writes to their places needs none, which a
    kill would leave behind.
    """
    if not dry_run:
        yield ""
        return
    with TemporaryDirectory(prefix="mechdesign-") as scratch:
        yield scratch


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

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""What ``--set`` replaces."""


def _values_set(settings: Sequence[str] | None) -> dict[str, str]:
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
    # A value that is used nowhere is most often a misspelt name: the path would stay as it was.
    used: set[str] = set()

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name not in values:
            raise InputError(
                f"the job has {{{name}}} in a path and no value for it: give one (--set {name}=..)"
            )
        used.add(name)
        return values[name]

    def in_paths(part: Any, is_path: bool) -> Any:
        if isinstance(part, dict):
            return {key: in_paths(value, key in PATHS) for key, value in part.items()}
        if isinstance(part, list):
            return [in_paths(value, is_path) for value in part]
        if is_path and isinstance(part, str):
            return PLACEHOLDER.sub(replaced, part)
        return part

    filled = in_paths(document, False)
    for name in values:
        if name not in used:
            raise InputError(f"--set {name}: no path of the job has {{{name}}}")
    return filled


def _read_job(path: str, values: Mapping[str, str]) -> tuple[str, Any]:
    """The text of a job file, and its model with the values in its paths."""
    from pydantic import ValidationError

    from mechdesign.core.records import explained
    from mechdesign.formats.inputs import OpenedFile

    text = ""
    try:
        with closing(OpenedFile(path)) as file:
            text = file.stream.read().decode()
        # Budgets stay the decimals that were typed, as on the command line.
        document = tomllib.loads(text, parse_float=str)
        return text, job_model().model_validate(_with_values(document, values))
    except ValidationError as error:
        line = line_of(text, error.errors()[0]["loc"])
        raise InputError(f"{path}, line {line}: {explained(error, 'job')}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}") from None


Step: TypeAlias = tuple[Place, Callable[..., int | None], dict[str, Any]]
"""The section of a step, the function that does it, and its options."""


def _steps(
    job: Any,
    dry_run: bool,
    place_of: Callable[[str], str],
    key_from: str | None,
) -> Iterator[Step]:
    """The steps of a job, without those that are done already; the key of its ledger is at
    `key_from`.
    """
    channel = job.channel
    new = not os.path.exists(channel)
    reports, report_options = _missing_reports(job, new=new)
    if reports:
        # Reports that cannot be written are refused before the work.
        options = r.ReportOptions(**reports, curve=report_options["curve"])
        check = {"self": options, "sources": (), "others": {}, **report_options}
        yield ("report",), r.ReportOptions.check, check
    if job.design is not None and new:
        yield ("channel",), check_target, {"target": channel, "force": False}
        channel = place_of(channel)
        yield ("design",), d.design, job.design.model_dump() | {"output": channel}
    elif job.design is not None:
        yield ("design",), _verify, job.design.model_dump() | {"output": channel}
    for number, release in enumerate(job.apply):
        values = release.model_dump()
        values["channel"] = channel
        values["ledger"] = release.ledger or job.ledger
        values["key_from"] = release.key_from or key_from
        values["dry_run"] = dry_run
        yield ("apply", number), a.apply, values
    if reports:
        places = {name: place_of(path) for name, path in reports.items()}
        yield ("report",), r.report, places | report_options | {"channel": channel}


def _missing_reports(job: Any, *, new: bool) -> tuple[dict[str, str], dict[str, Any]]:
    """The reports to write, all for a new channel, else those that are missing; and
    their options.
    """
    options: dict[str, Any] = {"force": False, "curve": "6"}
    reports: dict[str, str] = {}
    if job.report is not None:
        for name, value in job.report.model_dump(exclude_none=True).items():
            if name in options:
                options[name] = value
            elif new or not os.path.exists(value):
                reports[name] = value
    return reports, options


def _verify(
    reporter: Reporter, common: o.CommonOptions, values: dict[str, Any]
) -> int | None:
    """Check that a channel is the one that the section asks for, and keeps its promise
    on the table of today.
    """
    from mechdesign.channel.box_channel import BoxChannel
    from mechdesign.channel.loading import load

    channel = values["output"]
    groups = _groups(d.design, values)
    groups["budget"].check()
    groups["objective"] = groups["objective"].shown()
    typed = [
        group for name, group in groups.items() if name not in ("reports", "common")
    ]
    line = command_line("design", *typed, public=True)
    loaded = load(channel)
    if isinstance(loaded, BoxChannel):
        provenance = loaded.provenance
    else:
        provenance = loaded.record.provenance
    # Both lines are written by `command_line`, so equal options give equal lines.
    if provenance.get(COMMAND) != line:
        raise InputError(
            f"{channel} exists, and was not designed with the options of this "
            "section: remove it to have it designed anew, or name another channel"
        )
    table: dict[str, Any] = {"channel": channel}
    if isinstance(loaded, BoxChannel):
        # Its counts are its own: the records that its boxes were not learned on.
        return _called(audit, reporter, common, table)
    for group in (table_options.OtherTable, o.AfterOptions):
        # The channel has its own bins, and `audit` refuses others.
        for member in fields(group):
            if member.name in values and member.name != "bins":
                table[member.name] = values[member.name]
    return _called(audit, reporter, common, table)


def _called(
    function: Callable[..., int | None],
    reporter: Reporter,
    common: o.CommonOptions,
    values: dict[str, Any],
) -> int | None:
    """Call a step with those of the values that it takes."""
    available = {
        **values,
        **_groups(function, values),
        "reporter": reporter,
        "common": common,
        "values": values,
    }
    arguments: dict[str, Any] = {}
    for name in inspect.signature(function).parameters:
        if name in available:
            arguments[name] = available[name]
    return function(**arguments)


def _groups(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The groups of options that a function takes, made of single values."""
    groups: dict[str, Any] = {}
    for name, group in groups_of(function).items():
        members: dict[str, Any] = {}
        for member, *_ in declared(group):
            if member.name in values:
                members[member.name] = values[member.name]
        groups[name] = group(**members)
    return groups


@contextmanager
def _locating_errors(job: str, text: str, place: Place) -> Generator[None]:
    """Errors of a step name the line of the section, or of the key whose option or
    value they mention.
    """
    try:
        yield
    except InputError as error:
        where = _mentioned_key(_at(text, place), str(error))
        line = line_of(text, place if where is None else (*place, where))
        raise InputError(f"{job}, line {line}: {error}") from None


def _mentioned_key(section: Any, message: str) -> str | None:
    """The key that a message is about: best by the name of its option, else by its value.

    This only chooses the line that is shown. Whatever it finds, the message itself stays the same.
    The least (rank, place, -length) wins: a name before a value, an early mention before a late
    one, and the longer of two marks at one place, for --keep also begins --keep-frequencies.
    """
    if not isinstance(section, dict):
        return None
    best: tuple[int, int, int] | None = None
    key: str | None = None
    for name, value in section.items():
        for single in value if isinstance(value, list) else [value]:
            for rank, mark in enumerate((f"--{name}", repr(single), str(single))):
                if mark not in message:
                    continue
                candidate = (rank, message.find(mark), -len(mark))
                if best is None or candidate < best:
                    best = candidate
                    key = name
    return key


def _at(text: str, place: Place) -> Any:
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
    begins = 1
    lines = text.split("\n")
    for number in range(1, len(lines) + 1):
        try:
            _at("\n".join(lines[:number]), place)
            return begins
        except (KeyError, IndexError, TypeError):
            begins = number + 1
        except tomllib.TOMLDecodeError:
            # The lines so far end within a value: they say nothing about the key.
            continue
    return line_of(text, place[:-1])
