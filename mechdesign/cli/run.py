"""`mechdesign run JOB.toml`: a nightly job from one file, whose keys are the options of
`design`, `apply`, `report`.

`job_file` reads and checks the job. `_steps` yields the commands that are still to be done: design
the channel, or audit the one that is there; each release; the reports. `_called` calls the very
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
line of the job that it is about (`JobFile.locating_errors`).
"""

from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import typer

from mechdesign.cli import options, table_options
from mechdesign.cli.apply import apply
from mechdesign.cli.audit import audit
from mechdesign.cli.console import Reporter
from mechdesign.cli.design import design
from mechdesign.cli.job_file import JobFile, Place, read_job, values_set
from mechdesign.cli.line import (
    COMMAND,
    argument,
    command_line,
    declared,
    flag,
    groups_of,
    option,
)
from mechdesign.cli.options import ReportOptions
from mechdesign.cli.released import Files, OutputFormat
from mechdesign.cli.report import BoardOptions, report
from mechdesign.core.errors import FileError, InputError, StartAgain, errors_noting
from mechdesign.core.files import check_target

RUN_EXAMPLE = "Example:  mechdesign run nightly.toml --dry-run"


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
class StepAnswers(options.CommonOptions):
    """The answers of the commands of a job: printed, and collected for its JSON object.

    `real` maps the files that a rehearsal wrote to those that the job would write.
    """

    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    real: dict[str, str] = field(default_factory=dict[str, str])

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


STAYS = "what is done stays done: run the job again"
"""What a job that was stopped leaves behind."""


def run(reporter: Reporter, what: RunOptions, common: options.CommonOptions) -> int:
    """Run a job file: design or verify a channel, release, report.

    The job file has a key for every option of these commands; its paths are relative to
    its folder. Finished steps are not repeated: run a job that was killed, or failed,
    again as it is.
    """
    from mechdesign.jobs.stopping import Stopped, stoppable_parts

    file = read_job(what.job, values_set(what.set))
    code = 0
    answers = StepAnswers(as_json=common.as_json)
    try:
        with stoppable_parts() as stop_if_asked:
            code = _run_steps(reporter, what, file, answers, stop_if_asked)
    except Stopped as stopped:
        text = f"stopped by {signal.Signals(stopped.signum).name}; {STAYS}"
        reporter.error(text, event="stopped", exit_code=stopped.exit_code)
        return stopped.exit_code
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


def _run_steps(
    reporter: Reporter,
    what: RunOptions,
    file: JobFile,
    answers: StepAnswers,
    stop_if_asked: Callable[[], None],
) -> int:
    """Do the steps of a job in order, up to the first that fails; the exit code of the last one."""
    from mechdesign.jobs.keys import read_once

    job = file.job
    code = 0
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

        name = Path(what.job).name
        steps = _steps(job, name, what.dry_run, place_of, key_from)
        for section, function, values in steps:
            # Each step sets it when its own output is complete.
            reporter.finished = False
            with (
                _noting_outputs(answers, what.dry_run),
                file.locating_errors(section),
            ):
                code = _called(function, reporter, answers, values) or 0
            if code:
                break
            # A signal that came while the last names were given stopped nothing then.
            reporter.finished = False
            stop_if_asked()
    return code


def _noting_outputs(
    answers: StepAnswers, dry_run: bool
) -> AbstractContextManager[None]:
    """Let the errors of a step name the outputs of the steps before it."""
    outputs = [step["output"] for step in answers.steps if step.get("output")]
    if dry_run or not outputs:
        return nullcontext()
    return errors_noting(f"written before: {', '.join(outputs)}; {STAYS}")


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


Step: TypeAlias = tuple[Place, Callable[..., int | None], dict[str, Any]]
"""The section of a step, the function that does it, and its options."""


def _steps(
    job: Any,
    name: str,
    dry_run: bool,
    place_of: Callable[[str], str],
    key_from: str | None,
) -> Iterator[Step]:
    """The steps of a job, without those that are done already; `name` is that of its file, and the
    key of its ledger is at `key_from`.
    """
    channel = job.channel
    is_new = not os.path.exists(channel)
    reports, there, report_options = _reports(job, is_new=is_new)
    own = {"name": name, "outputs": [*reports.values(), *there.values()]}
    yield ("report",), _keep_job_file, own
    if reports:
        # Reports that cannot be written are refused before the work.
        values = reports | report_options
        check: dict[str, Any] = {"sources": (), "others": {}, "source": channel}
        for group in (ReportOptions, BoardOptions):
            wanted = _group(group, values)
            yield ("report",), wanted.check, values | check
    if job.design is not None and is_new:
        yield ("channel",), check_target, {"target": channel, "force": False}
    # So are inputs and outputs of releases; a release may read what an earlier one writes.
    written: list[str] = []
    for number, release in enumerate(job.apply):
        own = {"name": name, "outputs": _outputs(release)}
        yield ("apply", number), _keep_job_file, own
        check = {**release.model_dump(), "written": tuple(written)}
        yield ("apply", number), _check_places, check
        written.append(release.target)
    if job.design is not None and is_new:
        # In a rehearsal the steps below read the channel from the scratch folder, too.
        channel = place_of(channel)
        yield ("design",), _design, job.design.model_dump() | {"output": channel}
    elif job.design is not None:
        yield ("design",), _verify, job.design.model_dump() | {"output": channel}
    if there:
        known = {"there": there, "reports": reports, "force": report_options["force"]}
        yield ("report",), _find_outdated, known | {"channel": channel}
    for number, release in enumerate(job.apply):
        values = release.model_dump()
        values["channel"] = channel
        values["ledger"] = release.ledger or job.ledger
        values["key_from"] = release.key_from or key_from
        values["dry_run"] = dry_run
        yield ("apply", number), apply, values
    if reports:
        places = {name: place_of(path) for name, path in reports.items()}
        yield ("report",), report, places | report_options | {"channel": channel}


def _outputs(release: Any) -> list[str]:
    """The files that a release writes."""
    places = (
        release.target,
        release.manifest,
        release.internal_manifest,
        release.codebook,
    )
    return [place for place in places if place is not None]


def _keep_job_file(name: str, outputs: Sequence[str]) -> None:
    """Refuse outputs that would replace the file of the job, which is needed to run it again."""
    from mechdesign.jobs.target import keep_apart

    keep_apart(outputs, [("the job file", name)])


def _check_places(files: Files, text: OutputFormat, written: Sequence[str]) -> None:
    """Refuse the input and the output of a release before the work, where they cannot be used."""
    from mechdesign.jobs.options import FileOptions
    from mechdesign.jobs.release_file import check_places

    if files.target in written:
        raise InputError(
            f"{files.target} is the output of two releases: give each a name of its own"
        )
    if files.source in written:
        return
    compression: Any = text.compress
    places = FileOptions(
        text=text.text(),
        compression=compression,
        format=text.format,
        escape_formulas=text.escape_formulas,
    )
    check_places(files.source, files.target, places)


def _reports(
    job: Any, *, is_new: bool
) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
    """The reports to write, all for a new channel, else those that are missing; those that are
    there; and their settings `force`, `curve`, `certificate` and `time_limit`.
    """
    settings: dict[str, Any] = {
        "force": False,
        "curve": "6",
        "certificate": False,
        "time_limit": None,
    }
    missing: dict[str, str] = {}
    there: dict[str, str] = {}
    if job.report is not None:
        for name, value in job.report.model_dump(exclude_none=True).items():
            if name in settings:
                settings[name] = value
            elif is_new or not os.path.exists(value):
                missing[name] = value
            else:
                there[name] = value
    return missing, there, settings


def _find_outdated(
    channel: str, there: Mapping[str, str], reports: dict[str, str], force: bool
) -> None:
    """Add reports that are there, but are about another channel, to those to write; refuse them
    where they may not be replaced.
    """
    from mechdesign.channel.file import load

    # Every report says it, whatever its format.
    digest = load(channel).digest.encode()
    for name, path in there.items():
        if digest in Path(path).read_bytes():
            continue
        if not force:
            raise InputError(
                f"{path} is no report on {channel} as it is now: remove it to have it written "
                "anew, or name another file"
            )
        reports[name] = path


@wraps(design)
def _design(*arguments: Any, **groups: Any) -> int | None:
    """Design a channel that was not there when the job began."""
    try:
        return design(*arguments, **groups)
    except FileError as error:
        channel = groups["output"].output
        if error.file != channel or not os.path.exists(channel):
            raise
        raise StartAgain(
            f"{channel} was written while this run designed it, by another run or program: run "
            "the job again, which verifies it and goes on"
        ) from None


def _verify(
    reporter: Reporter, common: options.CommonOptions, values: dict[str, Any]
) -> int | None:
    """Check that a channel is the one that the section asks for, and keeps its promise
    on the table of today.
    """
    from mechdesign.auditing.stated import has_table
    from mechdesign.channel.file import load

    channel = values["output"]
    # The line that `design` would write into the file of this section.
    groups = _groups(design, values)
    groups["budget"].check()
    groups["objective"] = groups["objective"].shown()
    for name in ("reports", "common"):
        # They do not change the channel.
        groups.pop(name, None)
    line = command_line("design", *groups.values(), public=True)

    loaded = load(channel)
    # Both lines are written by `command_line`, so equal options give equal lines.
    if loaded.provenance.get(COMMAND) != line:
        raise InputError(
            f"{channel} exists, and was not designed with the options of this "
            "section: remove it to have it designed anew, or name another channel"
        )

    table: dict[str, Any] = {"channel": channel}
    # A channel that carries counts in the place of a table takes none.
    if loaded.joint is None and has_table(loaded):
        return _called(audit, reporter, common, table)
    # The channel has its own bins, and one for people says which columns make them: `audit`
    # refuses to be told of either.
    known = {"bins"}
    if loaded.people is not None:
        known |= {"sensitive", "useful"}
    for group in (table_options.OtherTable, options.AfterOptions):
        for member in fields(group):
            if member.name in values and member.name not in known:
                table[member.name] = values[member.name]
    return _called(audit, reporter, common, table)


def _called(
    function: Callable[..., int | None],
    reporter: Reporter,
    common: options.CommonOptions,
    values: dict[str, Any],
) -> int | None:
    """Call a step with those of the values that it takes.

    A function of the command line takes groups of options, so the values that are fields of a group
    are put together; `_verify` takes the values themselves.
    """
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
    return {name: _group(group, values) for name, group in groups_of(function).items()}


def _group(group: type[Any], values: Mapping[str, Any]) -> Any:
    """A group of options made of those values that are its own."""
    members: dict[str, Any] = {}
    for member, *_ in declared(group):
        if member.name in values:
            members[member.name] = values[member.name]
    return group(**members)
