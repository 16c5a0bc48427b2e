"""`mechdesign run JOB.toml`: a nightly job from one file, whose keys are the options of `design`, `apply`, `report`."""

# The model is made of the options when it is first used, and nobody knows its fields before.
# pyright: basic
from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass, field, fields
from functools import cache, partial, reduce
from operator import getitem
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from mechdesign.cli import apply as a
from mechdesign.cli import design as d
from mechdesign.cli import options as o
from mechdesign.cli import report as r
from mechdesign.cli.audit import audit
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import (
    COLUMNS,
    COMMAND,
    argument,
    command_line,
    declared,
    flag,
    groups_of,
)
from mechdesign.core.errors import InputError
from mechdesign.core.files import check_target

EXAMPLE = "Example:  mechdesign run nightly.toml --dry-run"

LEFT_OUT = ("output", "dry_run", "fresh_draw", "insecure_seed")
"""Options without a key: the first two are the job's own, and a job that is repeated does not draw anew."""

TYPED = {"type": ["string", "number"]}
"""What stands for what is typed on a command line."""

Place: TypeAlias = tuple[str | int, ...]
"""A section or key of the job file, from outside to inside."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is run."""

    job: str = argument(
        "JOB.toml",
        "The job: the channel, and sections [design], [[apply]] and [report].",
    )
    dry_run: bool = flag("Check everything that can be checked, and write nothing.")


@dataclass(frozen=True, kw_only=True)
class Told(o.CommonOptions):
    """What commands say: printed, and kept for the one JSON object; `real` names what a rehearsal wrote elsewhere."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    real: dict[str, str] = field(default_factory=dict)

    def answer(
        self, record: Callable[[], Mapping[str, Any]], text: Callable[[], str]
    ) -> None:
        """Print the result for people, and keep it."""
        found = record()
        written = {
            key: self.real[value]
            for key, value in found.items()
            if str(value) in self.real
        }
        self.steps.append({**found, **written})
        if not self.as_json:
            typer.echo(
                f"{' and '.join(written.values())} would be written."
                if written
                else text()
            )


@cache
def job_model() -> Any:
    """The model of a job file, made of the options of the commands."""
    from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

    from mechdesign.core.records import Record

    def section(function: Callable[..., Any], *without: type[Any]) -> Any:
        keys: dict[str, Any] = {
            "force": (bool, Field(default=False, description="Replace what is there."))
        }
        groups = groups_of(function).values()
        options = [
            (group, one)
            for group in groups
            if group not in without
            for one in declared(group)
        ]
        for group, (each, said, names) in options:
            hint, default = (
                get_type_hints(group)[each.name],
                each.default if names else ...,
            )
            more: dict[str, Any] = {
                "alias": names[0].removeprefix("--") if names else said.metavar.lower()
            }
            if hint not in (bool, int):
                columns, many = said.metavar == COLUMNS, hint == list[str] | None
                lists = [{"type": "array", "items": TYPED}] * (columns or many)
                shown = WithJsonSchema({"anyOf": [TYPED, *lists]})
                hint = Annotated[
                    hint, BeforeValidator(partial(_typed, columns, many)), shown
                ]
            if each.name not in LEFT_OUT:
                keys[each.name] = (
                    hint,
                    Field(default=default, description=said.help, **more),
                )
        return create_model(function.__name__.title(), __base__=Record, **keys)

    release: Any = section(a.apply, o.CommonOptions)
    keys: dict[str, Any] = {
        "channel": (
            str,
            Field(description="The channel file: designed if it is not there."),
        ),
        "ledger": (
            str | None,
            Field(default=None, description="The ledger of all releases."),
        ),
        "design": (section(d.design, o.CommonOptions, r.ReportOptions) | None, None),
        "apply": (list[release], Field(default_factory=list)),
        "report": (section(r.report, o.CommonOptions) | None, None),
    }
    return create_model("Job", __base__=Record, **keys)


def _typed(columns: bool, many: bool, value: Any) -> Any:
    """A value as it would be typed on the command line: numbers are texts there, and options are repeated."""
    values = value if isinstance(value, list) else [value]
    texts = [str(each) if type(each) is int else each for each in values]
    if many:
        return texts
    if columns and all(isinstance(each, str) for each in texts):
        return ",".join(texts)
    return value if isinstance(value, list) else texts[0]


def run(reporter: Reporter, what: RunOptions, common: o.CommonOptions) -> int:
    """Do a whole job: design the channel if it is not there, else verify it; release files; write reports.

    The job file has a key for every option of these commands; its paths are relative to its folder. What is done
    already is not done again: a job that was killed, or failed, is run again as it is.
    """
    from pydantic import ValidationError

    from mechdesign.core.records import explained
    from mechdesign.formats.inputs import OpenedFile

    text = ""
    try:
        with closing(OpenedFile(what.job)) as file:
            text = file.stream.read().decode()
        job = job_model().model_validate(tomllib.loads(text, parse_float=str))
    except ValidationError as error:
        line = line_of(text, error.errors()[0]["loc"])
        raise InputError(
            f"{what.job}, line {line}: {explained(error, 'job')}"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{what.job} is no TOML file: {error}") from None
    code, told = 0, Told(as_json=common.as_json)
    with TemporaryDirectory() as scratch, chdir(Path(what.job).parent):

        def place_of(path: str) -> str:
            """Where a file is written: in a rehearsal elsewhere."""
            if not what.dry_run:
                return path
            told.real[
                place := os.path.join(scratch, f"{len(told.real)}{Path(path).suffix}")
            ] = path
            return place

        for section, function, values in _steps(job, what.dry_run, place_of):
            reporter.finished = False
            with _saying_where(what.job, text, section):
                code = _called(function, reporter, told, values) or 0
            if code:
                break
    end = (
        "Nothing was written: this was a rehearsal."
        if what.dry_run
        else f"{what.job} is done."
    )
    if common.as_json or not code:
        common.answer(
            lambda: {"job": what.job, "dry_run": what.dry_run, "steps": told.steps},
            lambda: end,
        )
    return code


def _steps(
    job: Any, dry_run: bool, place_of: Callable[[str], str]
) -> Iterator[tuple[Place, Callable[..., int | None], dict[str, Any]]]:
    """What is to be done, less what is done already: whose section, what is called, and with which options."""
    channel, new = job.channel, not os.path.exists(job.channel)
    reports: dict[str, Any] = (
        {} if job.report is None else job.report.model_dump(exclude_none=True)
    )
    more = {
        name: reports.pop(name, default)
        for name, default in (("force", False), ("curve", "6"))
    }
    reports = {
        name: path for name, path in reports.items() if new or not os.path.exists(path)
    }
    if reports:
        own = {
            "self": r.ReportOptions(**reports, curve=more["curve"]),
            "sources": (),
            "others": {},
        }
        yield ("report",), r.ReportOptions.check, own | more
    if job.design is not None and new:
        yield ("channel",), check_target, {"target": channel, "force": False}
        channel = place_of(channel)
        yield ("design",), d.design, job.design.model_dump() | {"output": channel}
    elif job.design is not None:
        yield ("design",), _verify, job.design.model_dump() | {"output": channel}
    for k, each in enumerate(job.apply):
        own = {
            "channel": channel,
            "ledger": each.ledger or job.ledger,
            "dry_run": dry_run,
        }
        yield ("apply", k), a.apply, each.model_dump() | own
    if reports:
        places = {name: place_of(path) for name, path in reports.items()}
        yield ("report",), r.report, places | more | {"channel": channel}


def _verify(
    reporter: Reporter, common: o.CommonOptions, values: dict[str, Any]
) -> int | None:
    """See that a channel is the one that the section asks for, and keeps its promise on the table as it is now."""
    from mechdesign.channel.channel import Channel

    channel, groups = values["output"], _groups(d.design, values)
    groups["budget"].check()
    groups["objective"] = groups["objective"].shown()
    typed = (
        group for name, group in groups.items() if name not in ("reports", "common")
    )
    if Channel.load(channel).record.provenance.get(COMMAND) != command_line(
        "design", *typed, public=True
    ):
        raise InputError(
            f"{channel} is there, and was not designed by what this section says: remove it to have it designed anew, "
            "or name another channel"
        )
    kept = {
        each.name for group in (o.OtherTable, o.AfterOptions) for each in fields(group)
    } - {"bins"}
    table = {name: value for name, value in values.items() if name in kept}
    return _called(audit, reporter, common, table | {"channel": channel})


def _called(
    function: Callable[..., int | None],
    reporter: Reporter,
    common: o.CommonOptions,
    values: dict[str, Any],
) -> int | None:
    given = (
        values
        | _groups(function, values)
        | {"reporter": reporter, "common": common, "values": values}
    )
    return function(
        **{
            name: given[name]
            for name in inspect.signature(function).parameters
            if name in given
        }
    )


def _groups(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: group(
            **{
                each.name: values[each.name]
                for each, *_ in declared(group)
                if each.name in values
            }
        )
        for name, group in groups_of(function).items()
    }


@contextmanager
def _saying_where(job: str, text: str, place: Place) -> Generator[None]:
    """Errors of a step name the line of the key that they are about, else that of the section."""
    try:
        yield
    except InputError as error:
        section, said = _at(text, place), str(error)
        found = [
            (rank, said.find(mark), -len(mark), key)
            for key, value in (section.items() if isinstance(section, dict) else ())
            for each in (value if isinstance(value, list) else [value])
            for rank, mark in enumerate((f"--{key}", repr(each), str(each)))
            if mark in said
        ]
        where = (*place, *(key for *_, key in sorted(found)[:1]))
        raise InputError(f"{job}, line {line_of(text, where)}: {said}") from None


def _at(text: str, place: Place) -> Any:
    document: Any = tomllib.loads(text)
    return reduce(getitem, place, document)


def line_of(text: str, place: Place) -> int:
    """The line on which a key begins, or its section if it is missing.

    The first lines that are TOML and have the key are all up to its end; those before, all up to its beginning.
    """
    begins, lines = 1, text.split("\n")
    for number in range(1, len(lines) + 1):
        try:
            _at("\n".join(lines[:number]), place)
            return begins
        except (KeyError, IndexError, TypeError):
            begins = number + 1
        except tomllib.TOMLDecodeError:
            continue
    return line_of(text, place[:-1])
