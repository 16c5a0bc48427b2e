"""`mechdesign apply CHANNEL IN OUT`: sanitise a data file.

`apply` checks what only the command line knows, and puts its groups of options into one `_Job`.
The job turns them into a release: a function of `progress` and `warn` that reads, draws and
writes, either through channels (`jobs.folders.sanitise_path`) or through a mechanism file of
`quantize` (`mechanism.release_of`). `_released` runs it under a bar of progress, and within
`stoppable`, so that a signal leaves OUT complete or absent. Last, the result is printed.

A group of options turns itself into keyword arguments of the release (`arguments`,
`kept_arguments`, `release_arguments`), and the job puts these together with the ledger and the
files beside OUT.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.mechanism import (
    MechanismOptions,
    answer_mechanism_release,
    is_mechanism,
    mechanism_release,
)
from mechdesign.cli.parsing import names
from mechdesign.cli.released import PolicyOptions, PrivateColumns
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.jobs.results import Applied
    from mechdesign.nonstochastic.release_answers import RangeRelease
    from mechdesign.release.draws import Key

MOST_KEPT = 20
"""Kept columns that a message names."""

EXAMPLE = (
    "Example:  mechdesign apply channel.json people.csv released.csv --identity id"
)


@dataclass(frozen=True, kw_only=True)
class Files:
    """What is read and written."""

    source: str = argument(
        "IN",
        "CSV or Parquet file with the useful column, - for standard input; or a folder, a 'glob' "
        "of files, or a URL.",
    )
    target: str = argument(
        "OUT",
        "Where to write the released columns; - is standard output, or a URL. "
        "Of a folder a folder.",
    )


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """Which columns"""

    drop: list[str] | None = option(
        "COL[,COL..]", "Leave these columns out (with --keep all); may be repeated."
    )
    keep: list[str] | None = option(
        "COL[,COL..]|all",
        "Other columns of the output: those named, whatever they disclose, or all, of which those "
        "that copy the useful or sensitive column are refused. By default none; may be repeated.",
    )
    shuffle: bool = flag(
        "Write the records in random order, the same whenever the job runs. Without it a file is "
        "refused whose order tells of the useful column."
    )
    keep_order: bool = flag("Keep such an order knowingly.")

    def kept_arguments(self) -> dict[str, Any]:
        """Keyword arguments of a release of a file."""
        return {
            "drop": names("--drop", self.drop),
            "keep": names("--keep", self.keep),
            "shuffle": self.shuffle,
            "keep_order": self.keep_order,
        }


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(KeptOptions, PrivateColumns):
    """Which columns"""

    also: list[str] | None = option(
        "CHANNEL", "Another channel for another column; may be repeated."
    )
    add: list[str] | None = option(
        "NAME[,NAME..]",
        "Add the released column at the end and keep the original (no release yet); once for each "
        "channel.",
    )

    def release_arguments(self) -> dict[str, Any]:
        """Keyword arguments of a release of a file."""
        into = None
        if self.add is not None:
            into = [names("--add", [name]) for name in self.add]
        return {**self.arguments(), **self.kept_arguments(), "into": into}


@dataclass(frozen=True, kw_only=True)
class LedgerOption:
    """Draws and the ledger"""

    ledger: str | None = option(
        "FILE",
        "Ledger of releases; its key lies beside it. Default: in the user's data folder.",
        names="--ledger --job",
    )
    key_from: str | None = option(
        "WHERE",
        "Where the key of the ledger is, if not beside it: env:NAME, fd:N (an open file "
        "descriptor) or a key FILE.",
    )

    @property
    def key(self) -> Key | None:
        """The key of the ledger, where it is kept elsewhere."""
        from mechdesign.jobs.keys import key_from

        return None if self.key_from is None else key_from(self.key_from)


@dataclass(frozen=True, kw_only=True)
class JobOptions(LedgerOption):
    """Draws and the ledger"""

    identity: str | None = option(
        "COL[,COL..]",
        "Column(s) that identify a record: it keeps its draw in whatever order or file it comes. "
        "Default: its row number.",
    )
    changed: str = option(
        "WHAT",
        "Treatment of records whose symbol has changed since they were released, with --identity: "
        "refuse, keep (the old output) or redraw (which tells more of them; says how much).",
        "refuse",
    )
    fresh_draw: bool = flag(
        "Draw anew what was released before: two draws of a record can tell far more than one; "
        "says how much."
    )
    dry_run: bool = flag("Check everything, the ledger too, and write nothing.")
    insecure_seed: int | None = option(
        "N", "Draws without a ledger, for tests: anybody who knows N can undo them."
    )


@dataclass(frozen=True, kw_only=True)
class SideOptions:
    """What else is written"""

    manifest: str | None = option(
        "FILE",
        "What was done, what is promised and what voids it; may go with the data (default "
        "OUT.manifest.json).",
    )
    internal_manifest: str | None = option(
        "FILE",
        "The same with hashes and counts of the original data: not to be given away.",
    )
    codebook: str | None = option(
        "FILE", "CSV of the symbols that each output stands for, and how likely."
    )
    strict: bool = flag(
        "Whatever would be noted is an error (exit code 2), and nothing is written."
    )


@dataclass(frozen=True, kw_only=True)
class OutputFormat(table_options.TextFormat):
    """How a CSV file is written"""

    compress: str | None = option(
        "NAME",
        "gzip or zstd, for a CSV; default by OUT's ending (.gz, .zst). Packed input is recognised.",
    )
    format: str | None = option(
        "NAME", "csv or parquet: what OUT is. Cells of a CSV become text in Parquet."
    )
    escape_formulas: bool = flag(
        "In a CSV, an apostrophe before cells that spreadsheets take for formulas."
    )


def apply(
    reporter: Reporter,
    channel: options.ChannelPath,
    files: Files,
    columns: ColumnOptions,
    published: PolicyOptions,
    draws: JobOptions,
    text: OutputFormat,
    sides: SideOptions,
    numbers: MechanismOptions,
    common: options.CommonOptions,
    force: options.Force = False,
) -> int:
    """Replace the useful column of a data file by draws of a channel, one draw for each record.

    OUT has the released columns and no others, unless --keep names them. Rows keep their order;
    where it discloses the column, the file is refused. The same record gets the same draw whenever
    the job runs: it is a function of the job's secret key and of the record's row number or
    identifier. A job that was killed is run again, and writes the same bytes. OUT is complete or
    not there at all.
    """
    from mechdesign.formats.urls import STANDARD, local
    from mechdesign.jobs.stopping import Stopped, stoppable

    target = os.fspath(local(files.target))
    if common.as_json and target == STANDARD:
        raise InputError(
            "--json and an output to standard output (-) would mix; name a file for one of them"
        )
    if text.compress not in (None, "gzip", "zstd"):
        raise InputError(f"--compress {text.compress!r} must be gzip or zstd")
    job = _Job(
        channel=channel,
        source=files.source,
        target=target,
        columns=columns,
        published=published,
        draws=draws,
        text=text,
        sides=sides,
        force=force,
    )
    try:
        # `stoppable` lasts to the last line: when OUT has its name, a signal stops nothing, and
        # must not say that it did.
        if is_mechanism(channel):
            release = job.mechanism_release(numbers)
            with stoppable():
                quantised = _released(reporter, "quantising", release)
                _answer_mechanism(reporter, quantised, job, common)
        else:
            release = job.channel_release()
            with stoppable():
                sanitised = _released(reporter, "sanitising", release)
                _answer_channel(reporter, sanitised, job, common)
    except Stopped as stopped:
        reporter.error(str(stopped), event="stopped", exit_code=stopped.exit_code)
        return stopped.exit_code
    return 0


def _released(reporter: Reporter, activity: str, release: Callable[..., Any]) -> Any:
    """The result of a release, whose notices are printed: each once, a warning at once."""
    warnings: list[str] = []

    def warn(note: str) -> None:
        # At once, because the release may take hours.
        warnings.append(note)
        reporter.notices((note,))

    with reporter.work(activity, unit="B") as work:
        result = release(progress=work.at, warn=warn)
    # OUT is complete: a Ctrl-C while the answer is printed is no failure.
    reporter.finished = True
    reporter.notices(note for note in result.notices if note not in warnings)
    return result


@dataclass(frozen=True, kw_only=True)
class _Job:
    """The files and options of one `apply`, and the releases that they ask for.

    `apply` makes it and calls one of `channel_release` and `mechanism_release`, by the kind of file
    in the place of the channel.
    """

    channel: str
    source: str
    target: str
    columns: ColumnOptions
    published: PolicyOptions
    draws: JobOptions
    text: OutputFormat
    sides: SideOptions
    force: bool

    @property
    def manifest(self) -> str | None:
        """The path of the manifest: beside a file by default, and nowhere else."""
        from mechdesign.formats.folders import is_folder
        from mechdesign.formats.urls import STANDARD, is_url

        if self.sides.manifest is not None or self.target == STANDARD:
            return self.sides.manifest
        # A folder has its manifests inside, and beside a URL nothing is written unasked.
        if is_url(self.target) or is_folder(self.source):
            return None
        return f"{self.target}.manifest.json"

    @property
    def ledger(self) -> str | None:
        """The ledger, by default that of the user; none for draws from a seed."""
        from mechdesign.jobs.ledger_file import default_path

        if self.draws.ledger is None and self.draws.insecure_seed is None:
            return os.fspath(default_path())
        return self.draws.ledger

    def channel_release(self) -> Callable[..., Any]:
        """The release through channels; it takes `progress` and `warn`."""
        identity = self._identity()
        arguments = {
            **self._common_arguments(),
            **self.published.arguments(),
            **self.columns.release_arguments(),
            **self._format_arguments(),
            "identity": identity or None,
            "ledger": self.ledger,
            "changed": self.draws.changed,
            "fresh_draw": self.draws.fresh_draw,
            "insecure_seed": self.draws.insecure_seed,
            "manifest": self.manifest,
            "internal_manifest": self.sides.internal_manifest,
            "codebook": self.sides.codebook,
        }
        paths = [self.channel, *(self.columns.also or [])]
        return _release_of(paths, self.source, self.target, arguments)

    def mechanism_release(self, numbers: MechanismOptions) -> Callable[..., Any]:
        """The release through a mechanism file of `quantize`; it takes `progress` and `warn`."""
        identity = self._identity()
        arguments = self._common_arguments()
        self._refuse_options_of_channels()
        arguments |= {
            "ledger": self.ledger,
            "mechanism_path": self.sides.manifest,
            "records": {**self.columns.release_arguments(), **self._format_arguments()},
        }
        return mechanism_release(
            self.channel, self.source, self.target, numbers, arguments, identity
        )

    def _identity(self) -> tuple[str, ...]:
        """The columns that identify a record; none where its row number does."""
        if self.draws.identity is None:
            return ()
        return tuple(names("--identity", [self.draws.identity]))

    def _common_arguments(self) -> dict[str, Any]:
        """What releases through channels and through mechanisms both take."""
        return {
            "text": self.text.text(),
            "compression": self.text.compress,
            "force": self.force,
            "key_from": self.draws.key,
            "dry_run": self.draws.dry_run,
            "strict": self.sides.strict,
        }

    def _format_arguments(self) -> dict[str, Any]:
        """How the cells of OUT are written."""
        return {
            "escape_formulas": self.text.escape_formulas,
            "format": self.text.format,
        }

    def _refuse_options_of_channels(self) -> None:
        """Raise InputError if there is an option that only a random draw can have."""
        # These would be ignored silently, and the user would believe in what they promise.
        is_asked = (
            bool(self.columns.also)
            or bool(self.sides.internal_manifest)
            or bool(self.sides.codebook)
            or self.draws.fresh_draw
            or self.draws.changed != "refuse"
            or self.published != PolicyOptions()
        )
        if is_asked:
            raise InputError(
                "a mechanism draws nothing: --also, --as, --unknown, --null, --normalise, "
                "--changed, --fresh-draw, --internal-manifest and --codebook are for channels"
            )


def _answer_mechanism(
    reporter: Reporter, result: RangeRelease, job: _Job, common: options.CommonOptions
) -> None:
    """Log a release through a mechanism, and print it unless the data went there."""
    from mechdesign.formats.urls import STANDARD

    reporter.done(
        "applied",
        f"written to {job.target}",
        output=job.target,
        records=result.records,
    )
    if job.target != STANDARD:
        answer_mechanism_release(result, job.target, common, dry_run=job.draws.dry_run)


def _answer_channel(
    reporter: Reporter, result: Applied, job: _Job, common: options.CommonOptions
) -> None:
    """Log a release through channels, and print it unless the data went there."""
    from mechdesign.formats.urls import STANDARD

    details = asdict(result)
    dry_run = job.draws.dry_run
    if result.kept and not dry_run:
        details |= _kept_guess(reporter, result, job)
    reporter.done("applied", f"written to {job.target}", output=job.target, **details)
    if job.target != STANDARD:
        record = {"output": job.target, "manifest": job.manifest, **details}
        common.answer(lambda: record, lambda: _written(result, job.target, dry_run))


def _release_of(
    paths: list[str], source: str, target: str, arguments: dict[str, Any]
) -> Callable[..., Any]:
    """The release through the channels of these files; it takes `progress` and `warn`."""
    from mechdesign.channel.loading import load
    from mechdesign.jobs.folders import sanitise_path
    from mechdesign.jobs.vital_files import keep_apart

    channels = [load(path) for path in paths]
    # A channel file that an output replaces would be lost, and with it every later release.
    written = (
        target,
        arguments["manifest"],
        arguments["internal_manifest"],
        arguments["codebook"],
    )
    keep_apart(
        [path for path in written if path is not None],
        [("the channel file", path) for path in paths],
    )
    return partial(
        sanitise_path, channels, source, target, channel_files=paths, **arguments
    )


def _kept_guess(reporter: Reporter, result: Applied, job: _Job) -> dict[str, Any]:
    """How well the kept columns together guess the sensitive ones: printed, and an entry of the
    record.

    It is measured with --keep all on a file that has the sensitive columns. Columns kept by name
    are kept knowingly.
    """
    from mechdesign.formats.folders import is_folder
    from mechdesign.formats.urls import STANDARD, is_url
    from mechdesign.jobs.options import ALL
    from mechdesign.leaks.kept_columns import guess_from_kept, kept_note

    if ALL not in names("--keep", job.columns.keep):
        return {}
    source = job.source
    # It reads the data a second time: standard input is gone, a URL or a folder may be large.
    if source == STANDARD or is_url(source) or is_folder(source):
        return {}
    sensitive = result.sensitive
    others = [name for name in result.kept if name not in sensitive]
    text = job.text.text()
    guess = guess_from_kept(source, sensitive=sensitive, kept=others, text=text)
    if guess is None:
        return {}
    reporter.notices((kept_note(guess, sensitive=sensitive),))
    return {"kept_guess": asdict(guess)}


def _written(result: Applied, target: str, dry_run: bool) -> str:
    """What was written where, and which columns the promise does not cover, for people."""
    from mechdesign.report.wording import count, first_labels, label

    released = ", ".join(map(label, result.columns))
    subject = f"the columns {released} are"
    if len(result.columns) == 1:
        subject = f"the column {released} is"
    verb = "written to"
    if result.already:
        verb = "are complete already in"
    elif dry_run:
        verb = "would be written to"
    text = f"{count(result.records, 'record')} {verb} {target}; {subject} released."
    if result.kept:
        kept = first_labels(result.kept, MOST_KEPT)
        text += f" Kept as they are, and not covered by the promise (--keep): {kept}."
    return text
