"""`mechdesign apply CHANNEL IN OUT`: sanitise a data file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from mechdesign.cli import apply_options as a
from mechdesign.cli import options as o
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.formats.compression import Compression

EXAMPLE = "Example:  mechdesign apply channel.json people.csv released.csv --identity id"


def apply(
    context: typer.Context,
    channel: o.ChannelPath,
    source: a.Source,
    target: a.Target,
    also: a.Also = None,
    rename: a.Rename = None,
    add: a.Add = None,
    keep_sensitive: a.KeepSensitive = False,
    correlated: a.Correlated = None,
    form: a.Form = "label",
    unknown: a.Unknown = "refuse",
    null: a.Null = "refuse",
    normalise: a.Normalise = "none",
    identity: a.Identity = None,
    job: a.JobPath = None,
    fresh_draw: a.FreshDraw = False,
    insecure_seed: a.InsecureSeed = None,
    delimiter: a.Delimiter = ",",
    quote: a.Quote = '"',
    encoding: a.Encoding = "utf-8",
    compress: a.Compress = None,
    manifest: a.ManifestPath = None,
    internal_manifest: a.InternalPath = None,
    codebook: a.CodebookPath = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> int:
    """Replace the useful column of a data file by draws of a channel, one draw for each record.

    Rows keep their order, other columns stay as they are. The same record gets the same draw whenever the job
    runs: it is a function of the job's secret key and of the record's row number or identifier. A job that was
    killed is run again, and writes the same bytes. OUT is complete or not there at all.
    """
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.formats.inputs import TextOptions
    from mechdesign.release.policies import Policy
    from mechdesign.sanitise.apply import keep_apart, sanitise_file
    from mechdesign.sanitise.source import STANDARD
    from mechdesign.sanitise.target import Stopped, stoppable

    if as_json and target == STANDARD:
        raise InputError(
            "--json and an output to standard output (-) would be mixed up; name a file for one of them"
        )
    if manifest is None and target != STANDARD:
        manifest = f"{target}.manifest.json"
    reporter = reporter_of(context)
    policy = Policy(unknown=unknown, null=null, normalise=normalise)
    text = TextOptions(
        delimiter="\t" if delimiter in a.TABS else delimiter,
        quote=None if quote == "none" else quote,
        encoding=encoding,
    )
    files = (channel, *(also or []))
    channels = [Channel.load(path) for path in files]
    outputs = [path for path in (target, manifest, internal_manifest, codebook) if path is not None]
    keep_apart(outputs, [("the channel file", path) for path in files])
    try:
        # To the last line: when OUT has its name, a signal stops nothing and must not say that it did.
        with stoppable():
            with reporter.work("sanitising", unit="B") as work:
                result = sanitise_file(
                    channels,
                    source,
                    target,
                    columns=_renamed(rename or []),
                    form=form,
                    into=None if add is None else [_names("--add", names) for names in add],
                    identity=None if identity is None else _names("--identity", identity),
                    policy=policy,
                    keep_sensitive=keep_sensitive,
                    correlated=[name for names in correlated or [] for name in _names("--correlated", names)],
                    text=text,
                    compression=_compression(compress),
                    job=job,
                    job_beside=channel if insecure_seed is None else None,
                    fresh_draw=fresh_draw,
                    insecure_seed=insecure_seed,
                    manifest=manifest,
                    internal_manifest=internal_manifest,
                    codebook=codebook,
                    channel_files=files,
                    force=force,
                    progress=work.at,
                )
            reporter.finished = True
            reporter.notices(result.notices)
            reporter.done("applied", f"written to {target}", output=target, **asdict(result))
            if as_json:
                from mechdesign.report.records import to_json

                typer.echo(to_json({"output": target, "manifest": manifest, **asdict(result)}))
            elif target != STANDARD:
                from mechdesign.report.wording import count, label

                what, names = count(result.records, "record"), ", ".join(map(label, result.columns))
                kind = f"the column {names} is" if len(result.columns) == 1 else f"the columns {names} are"
                was = "are complete already in" if result.already else "written to"
                typer.echo(f"{what} {was} {target}; {kind} released.")
    except Stopped as stopped:
        reporter.error(str(stopped), event="stopped", exit_code=stopped.exit_code)
        return stopped.exit_code
    return 0


def _renamed(pairs: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            raise InputError(f"--column {pair!r} must be NAME=COL: the channel's name, then the file's")
        if name in names:
            raise InputError(f"--column names {name!r} twice")
        names[name] = column
    return names


def _names(option: str, text: str) -> tuple[str, ...]:
    names = o.columns(option, text) or ""
    return tuple(names.split(",")) if isinstance(names, str) else names


def _compression(name: str | None) -> Compression | None:
    if name is None or name in ("gzip", "zstd"):
        return name
    raise InputError(f"--compress {name!r} must be gzip or zstd")
