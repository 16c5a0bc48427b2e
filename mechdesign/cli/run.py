"""`mechdesign run JOB.toml`: a nightly job from one file, whose keys are the options of `design`, `apply`, `report`."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass, field, is_dataclass
from functools import cache, partial, reduce
from operator import getitem
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer

from mechdesign.cli import apply as a
from mechdesign.cli import design as d
from mechdesign.cli import options as o
from mechdesign.cli import report as r
from mechdesign.cli.audit import audit
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import COLUMNS, COMMAND, argument, command_line, declared, flag
from mechdesign.core.errors import OPTION, InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

EXAMPLE = "Example:  mechdesign run nightly.toml --dry-run"

LEFT_OUT = ("output", "dry_run", "fresh_draw", "insecure_seed")
"""Options without a key: the first two are of the job, and a job that is repeated does not draw anew."""

Place: TypeAlias = tuple[str | int, ...]
"""A section or key of the job file, from outside to inside."""

Step: TypeAlias = tuple[Place, Callable[..., int | None], dict[str, Any]]
"""Whose section it is, what is called, and the options by the names of their fields."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is run."""

    job: str = argument("JOB.toml", "The job: the channel, and sections [design], [[apply]] and [report].")
    dry_run: bool = flag("Check everything that can be checked, and write nothing.")


@dataclass(frozen=True, kw_only=True)
class Told(o.CommonOptions):
    """What the commands say: printed, and kept for the one JSON object; nothing of what went to `scratch`."""

    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    scratch: str = ""

    def answer(self, record: Callable[[], Mapping[str, Any]], text: Callable[[], str]) -> None:
        """Print the result for people, and keep it."""
        found, places = record(), (self.scratch, f"{self.scratch}{os.sep}")
        shown = {name: value for name, value in found.items() if not str(value).startswith(places[1])}
        self.records.append(shown)
        if not self.as_json and len(shown) == len(found):
            typer.echo(text())


@cache
def job_model() -> type[BaseModel]:
    """The model of a job file, made of the options of the commands."""
    from pydantic import BeforeValidator, Field, create_model

    from mechdesign.core.documents import Record

    def section(name: str, function: Callable[..., Any], *without: type[Any]) -> type[BaseModel]:
        keys: dict[str, Any] = {"force": (bool, Field(default=False, description="Replace what is there."))}
        for group in get_type_hints(function).values():
            hints = get_type_hints(group) if is_dataclass(group) else {}
            for each, said, names in declared(group) if hints and group not in without else ():  # type: ignore[arg-type]
                hint, default = hints[each.name], each.default if names else ...
                more: dict[str, Any] = {
                    "alias": names[0].removeprefix("--") if names else said.metavar.lower()
                }
                if hint not in (bool, int):
                    hint = Annotated[hint, BeforeValidator(partial(_typed, hint, said.metavar == COLUMNS))]
                    more["json_schema_extra"] = _schema_of_typed
                if each.name not in LEFT_OUT:
                    keys[each.name] = hint, Field(default=default, description=said.help, **more)
        return create_model(name, __base__=Record, **keys)

    design = section("Design", d.design, o.CommonOptions, r.ReportOptions)
    release, report = (section(f.__name__.title(), f, o.CommonOptions) for f in (a.apply, r.report))
    return create_model(
        "Job",
        __base__=Record,
        channel=(str, Field(description="The channel file: designed if it is not there.")),
        ledger=(str | None, Field(default=None, description="The ledger of all releases.")),
        design=(design | None, None),
        apply=(list[release], Field(default_factory=list)),
        report=(report | None, None),
    )


def _typed(hint: Any, columns: bool, value: Any) -> Any:
    """A value as it would be typed on the command line: numbers are texts there, and options are repeated."""
    values: list[Any] = value if isinstance(value, list) else [value]
    texts = [str(each) if type(each) is int else each for each in values]
    if hint == list[str] | None:
        return texts
    if columns and all(isinstance(each, str) for each in texts):
        return ",".join(texts)
    return value if isinstance(value, list) else texts[0]


def _schema_of_typed(schema: dict[str, Any]) -> None:
    schema.pop("type", None)
    one: dict[str, Any] = {"type": ["string", "number"]}
    schema["anyOf"] = [one, {"type": "array", "items": one}]


def run(reporter: Reporter, what: RunOptions, common: o.CommonOptions) -> int:
    """Do a whole job: design the channel if it is not there, else verify it; release files; write reports.

    The job file has a key for every option of these commands; its paths are relative to its folder. What is done
    already is not done again: a job that was killed, or failed, is run again as it is.
    """
    from pydantic import ValidationError

    from mechdesign.core.documents import explained
    from mechdesign.formats.inputs import OpenedFile

    with closing(OpenedFile(what.job)) as file:
        data = file.stream.read()
    try:
        text = data.decode()
        job: Any = job_model().model_validate(tomllib.loads(text, parse_float=str))
    except ValidationError as error:
        line = line_of(text, error.errors()[0]["loc"])
        raise InputError(f"{what.job}, line {line}: {explained(error, 'job')}") from None
    except ValueError as error:
        raise InputError(f"{what.job} is no TOML file: {error}") from None
    told, sections, code = Told(as_json=common.as_json), list[Place](), 0
    with chdir(Path(what.job).parent), TemporaryDirectory() as scratch:
        for place, function, values in _steps(job, scratch if what.dry_run else None):
            reporter.finished = False
            with _saying_where(what.job, text, place):
                code = _called(function, reporter, told, values) or 0
            sections += [place] * (len(told.records) - len(sections))
            if code:
                break
    end = "Nothing was written: this was a rehearsal." if what.dry_run else f"{what.job} is done."
    steps = [{"section": place[0], **record} for place, record in zip(sections, told.records, strict=True)]
    record = {"job": what.job, "dry_run": what.dry_run, "steps": steps}
    if common.as_json or not code:
        common.answer(lambda: record, lambda: end)
    return code


def _steps(job: Any, scratch: str | None) -> Iterator[Step]:
    """What is to be done, less what is done already; a rehearsal writes to `scratch`."""
    channel, new = job.channel, not os.path.exists(job.channel)
    reports: dict[str, Any] = {} if job.report is None else job.report.model_dump()
    named = {name: path for name, path in reports.items() if path is not None and name != "force"}
    missing = {name: path for name, path in named.items() if new or not os.path.exists(path)}
    if missing:
        yield ("report",), _check_reports, {**missing, "force": reports["force"]}
    if job.design is not None and new:
        yield ("channel",), r.check_writable, {"path": channel}
        channel = os.path.join(scratch, "channel.json") if scratch else channel
        yield ("design",), d.design, job.design.model_dump() | {"output": channel}
    elif job.design is not None:
        yield ("design",), _verify, job.design.model_dump() | {"output": channel}
    for k, each in enumerate(job.apply):
        own = {"channel": channel, "ledger": each.ledger or job.ledger, "dry_run": scratch is not None}
        yield ("apply", k), a.apply, each.model_dump() | own
    if missing:
        if scratch:
            missing = {
                name: os.path.join(scratch, f"{name}{Path(path).suffix}") for name, path in missing.items()
            }
        yield ("report",), r.report, {**missing, "force": reports["force"], "channel": channel}


def _check_reports(reports: r.ReportOptions, force: bool) -> None:
    reports.check((), {}, force=force)


def _verify(reporter: Reporter, common: o.CommonOptions, values: dict[str, Any]) -> int:
    """See that a channel is the one that the section asks for, and keeps its promise on the table as it is now."""
    from mechdesign.channel.channel import Channel

    channel = values["output"]
    groups = _groups(d.design, values)
    groups["budget"].check()
    groups["objective"] = groups["objective"].shown()
    typed = (group for name, group in groups.items() if name not in ("reports", "common"))
    if Channel.load(channel).record.provenance.get(COMMAND) != command_line("design", *typed, public=True):
        raise InputError(
            f"{channel} is there, and was not designed by what this section says: remove it to have it designed anew, "
            "or name another channel"
        )
    kept = {name for group in (o.OtherTable, o.AfterOptions) for name in group.__dataclass_fields__}
    table = {name: value for name, value in values.items() if name in kept and name != "bins"}
    return _called(audit, reporter, common, table | {"channel": channel}) or 0


def _called(
    function: Callable[..., int | None], reporter: Reporter, common: o.CommonOptions, values: dict[str, Any]
) -> int | None:
    """Call a command with its groups of options."""
    given = values | _groups(function, values) | {"reporter": reporter, "common": common, "values": values}
    return function(**{name: given[name] for name in inspect.signature(function).parameters if name in given})


def _groups(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The groups of options that a command takes, by its parameters."""
    hints = {name: hint for name, hint in get_type_hints(function).items() if is_dataclass(hint)}
    return {
        name: hint(**{each.name: values[each.name] for each, *_ in declared(hint) if each.name in values})  # type: ignore[operator]
        for name, hint in hints.items()
    }


@contextmanager
def _saying_where(job: str, text: str, place: Place) -> Generator[None]:
    """Errors of a step name the line of the option that they are about, else that of the section."""
    try:
        yield
    except InputError as error:
        section: Any = reduce(getitem, place, tomllib.loads(text))  # type: ignore[arg-type]
        said, named = str(error), {found[2] for found in OPTION.finditer(str(error))}
        keys = [
            key
            for about in (
                lambda key, value: key in named,
                lambda key, value: repr(value) in said or f"{key} (" in said,
                lambda key, value: Path(str(value)).suffix and str(value) in said,
            )
            for key, value in (section.items() if isinstance(section, dict) else ())
            if about(key, value)
        ]
        raise InputError(f"{job}, line {line_of(text, (*place, *keys[:1]))}: {error}") from None


def line_of(text: str, place: Sequence[str | int]) -> int:
    """The line on which a key begins: the first lines that are TOML and have it end there. Of one that is missing, its
    section's.
    """
    begins, lines = 1, text.split("\n")
    for number in range(1, len(lines) + 1):
        try:
            found = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        try:
            reduce(getitem, place, found)  # type: ignore[arg-type]
            return begins
        except (KeyError, IndexError):
            begins = number + 1
    return line_of(text, place[:-1])
