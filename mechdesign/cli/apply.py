"""`mechdesign apply CHANNEL IN OUT`: sanitise a data file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli import released as f
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.parsing import names
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.jobs.results import Applied
    from mechdesign.release.draws import Key

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
        """As a release of a file takes them."""
        which = {"drop": names("--drop", self.drop), "keep": names("--keep", self.keep)}
        return {**which, "shuffle": self.shuffle, "keep_order": self.keep_order}


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(KeptOptions, f.PrivateColumns):
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
        """As a release of a file takes them."""
        into = (
            None if self.add is None else [names("--add", [each]) for each in self.add]
        )
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
        "Its key is not beside it, but at env:NAME, fd:N (an open file descriptor) or in a key "
        "FILE.",
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
        "With --identity, a record whose symbol is another one than when it was released: refuse, "
        "keep (its old output) or redraw (anew, which tells more of it; says how much).",
        "refuse",
    )
    fresh_draw: bool = flag(
        "Draw anew what was released before: two draws of a record can tell far more than one; "
        "says how much."
    )
    dry_run: bool = flag("Check everything, the ledger too, and write nothing.")
    insecure_seed: int | None = option(
        "N", "Draws without a ledger, for tests: whoever knows N undoes them."
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
class OutputFormat(o.TextFormat):
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
    channel: o.ChannelPath,
    files: Files,
    columns: ColumnOptions,
    published: f.PolicyOptions,
    draws: JobOptions,
    text: OutputFormat,
    sides: SideOptions,
    numbers: m.MechanismOptions,
    common: o.CommonOptions,
    force: o.Force = False,
) -> int:
    """Replace the useful column of a data file by draws of a channel, one draw for each record.

    OUT has the released columns and no others, unless --keep names them. Rows keep their order;
    where it discloses the column, the file is refused. The same record gets the same draw whenever
    the job runs: it is a function of the job's secret key and of the record's row number or
    identifier. A job that was killed is run again, and writes the same bytes. OUT is complete or
    not there at all.
    """
    from mechdesign.formats.folders import is_folder
    from mechdesign.formats.urls import STANDARD, is_url, local
    from mechdesign.jobs.ledger import default_path
    from mechdesign.jobs.stopping import Stopped, stoppable

    target, numeric = os.fspath(local(files.target)), m.is_mechanism(channel)
    if common.as_json and target == STANDARD:
        raise InputError(
            "--json and an output to standard output (-) would mix; name a file for one of them"
        )
    beside = asdict(sides)
    if (
        sides.manifest is None
        and target != STANDARD
        and not (is_url(target) or is_folder(files.source))
    ):
        beside["manifest"] = f"{target}.manifest.json"
    how: dict[str, Any] = {
        "text": text.text(),
        "compression": text.compress,
        "force": force,
    }
    if text.compress not in (None, "gzip", "zstd"):
        raise InputError(f"--compress {text.compress!r} must be gzip or zstd")
    identity = None if draws.identity is None else names("--identity", [draws.identity])
    how |= {"key_from": draws.key, "dry_run": draws.dry_run, "strict": sides.strict}
    if draws.ledger is None and draws.insecure_seed is None:
        draws = replace(draws, ledger=os.fspath(default_path()))
    written = {
        "escape_formulas": text.escape_formulas,
        "format": text.format,
    }
    if numeric:
        for_channels = (
            columns.also,
            sides.internal_manifest,
            sides.codebook,
            draws.fresh_draw,
        )
        if (
            any(for_channels)
            or draws.changed != "refuse"
            or published != f.PolicyOptions()
        ):
            raise InputError(
                "a mechanism draws nothing: --also, --as, --unknown, --null, --normalise, "
                "--changed, --fresh-draw, --internal-manifest and --codebook are for channels"
            )
        how |= {"ledger": draws.ledger, "mechanism_path": sides.manifest}
        how["records"] = {**columns.release_arguments(), **written}
        run = m.release_of(channel, files.source, target, numbers, how, identity or ())
    else:
        how |= (
            published.arguments()
            | asdict(draws)
            | {"key_from": draws.key, "identity": identity}
            | beside
        )
        how |= columns.release_arguments() | written
        run = _release_of([channel, *(columns.also or [])], files.source, target, how)
    try:
        # To the last line: when OUT has its name, a signal stops nothing and must not say that it
        # did.
        with stoppable():
            with reporter.work(
                "quantising" if numeric else "sanitising", unit="B"
            ) as work:
                result = run(progress=work.at)
            reporter.finished = True
            reporter.notices(result.notices)
            told = {"records": result.records} if numeric else asdict(result)
            if not numeric and result.kept and not draws.dry_run:
                told |= _kept_guess(reporter, result, files.source, columns, text)
            reporter.done("applied", f"written to {target}", output=target, **told)
            if target != STANDARD and numeric:
                m.answer_applied(result, target, common, dry_run=draws.dry_run)
            elif target != STANDARD:
                record = {"output": target, "manifest": beside["manifest"], **told}
                common.answer(
                    lambda: record, lambda: _written(result, target, draws.dry_run)
                )
    except Stopped as stopped:
        reporter.error(str(stopped), event="stopped", exit_code=stopped.exit_code)
        return stopped.exit_code
    return 0


def _release_of(
    paths: list[str], source: str, target: str, how: dict[str, Any]
) -> Callable[..., Any]:
    from mechdesign.channel.loading import load
    from mechdesign.jobs.folders import sanitise_path
    from mechdesign.jobs.release_file import keep_apart

    channels = [load(path) for path in paths]
    written = (target, how["manifest"], how["internal_manifest"], how["codebook"])
    keep_apart(
        [path for path in written if path is not None],
        [("the channel file", path) for path in paths],
    )
    return partial(sanitise_path, channels, source, target, channel_files=paths, **how)


def _kept_guess(
    reporter: Reporter,
    result: Applied,
    source: str,
    columns: ColumnOptions,
    text: OutputFormat,
) -> dict[str, Any]:
    """What the kept columns disclose together of the sensitive ones, said once and recorded.

    Measured with --keep all on a file that has the sensitive columns; by name columns are kept
    knowingly.
    """
    from mechdesign.formats.folders import is_folder
    from mechdesign.formats.urls import STANDARD, is_url
    from mechdesign.jobs.options import ALL
    from mechdesign.leaks.kept_columns import guess_from_kept, kept_note

    by_all = ALL in names("--keep", columns.keep)
    if not by_all or source == STANDARD or is_url(source) or is_folder(source):
        return {}
    sensitive = result.sensitive
    others = [name for name in result.kept if name not in sensitive]
    guess = guess_from_kept(source, sensitive=sensitive, kept=others, text=text.text())
    if guess is None:
        return {}
    reporter.notices((kept_note(guess, sensitive=sensitive),))
    return {"kept_guess": asdict(guess)}


def _written(result: Applied, target: str, dry_run: bool) -> str:
    from mechdesign.report.wording import count, label

    released = ", ".join(map(label, result.columns))
    kind = (
        f"the column {released} is"
        if len(result.columns) == 1
        else f"the columns {released} are"
    )
    was = "would be written to" if dry_run else "written to"
    was = "are complete already in" if result.already else was
    text = f"{count(result.records, 'record')} {was} {target}; {kind} released."
    if result.kept:
        kept = ", ".join(map(label, result.kept))
        text += f" Kept as they are, and not covered by the promise (--keep): {kept}."
    return text
