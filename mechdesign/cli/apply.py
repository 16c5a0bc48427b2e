"""`mechdesign apply CHANNEL IN OUT`: sanitise a data file."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.sanitise.compression import Compression

EXAMPLE = "Example:  mechdesign apply channel.json people.csv released.csv --identity id"

TABS = ("tab", "\\t")
"""Ways to type a tab."""

COLUMNS_PANEL = "Which columns"
RECORDS_PANEL = "What is published"
JOB_PANEL = "Draws and jobs"
TEXT_PANEL = "How a CSV file is written"
SIDES_PANEL = "What else is written"

Source = Annotated[
    str, typer.Argument(metavar="IN", help="CSV or Parquet file with the useful column; - is standard input.")
]
Target = Annotated[
    str,
    typer.Argument(
        metavar="OUT",
        help="Where to write the same file with the outputs in its place; - is standard output.",
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="CHANNEL",
        help="Another channel for another column, in the same pass; may be repeated.",
        rich_help_panel=COLUMNS_PANEL,
    ),
]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COL",
        help="The channel's column NAME is called COL in this file; may be repeated.",
        rich_help_panel=COLUMNS_PANEL,
    ),
]
Add = Annotated[
    list[str] | None,
    typer.Option(
        "--add",
        metavar="NAME[,NAME..]",
        help="Add the released column at the end under this name and keep the original (no release yet); once for "
        "each channel.",
        rich_help_panel=COLUMNS_PANEL,
    ),
]
KeepSensitive = Annotated[
    bool,
    typer.Option(
        "--keep-sensitive",
        metavar="",
        help="Let sensitive and correlated columns stay in the output (refused by default).",
        rich_help_panel=COLUMNS_PANEL,
    ),
]
Correlated = Annotated[
    list[str] | None,
    typer.Option(
        "--correlated",
        metavar="COL[,COL..]",
        help="Columns that tell of the sensitive one and must not stay in the output either; may be repeated.",
        rich_help_panel=COLUMNS_PANEL,
    ),
]
Form = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="WHAT",
        help="label (the output of the channel) or posterior-draw (a symbol drawn from what the output leaves "
        "possible; keeps the frequencies of the symbols).",
        rich_help_panel=RECORDS_PANEL,
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        "--unknown",
        metavar="WHAT",
        help="A symbol that the channel does not know: refuse, output:LABEL, or marginal (drawn as for a record of "
        "which nothing is known).",
        rich_help_panel=RECORDS_PANEL,
    ),
]
Null = Annotated[
    str,
    typer.Option(
        "--null",
        metavar="WHAT",
        help="An empty cell, the same: refuse, output:LABEL, or marginal.",
        rich_help_panel=RECORDS_PANEL,
    ),
]
Normalise = Annotated[
    str,
    typer.Option(
        "--normalise",
        metavar="FORM",
        help="Compare symbols in this Unicode form: none, NFC, NFD, NFKC or NFKD.",
        rich_help_panel=RECORDS_PANEL,
    ),
]
Identity = Annotated[
    str | None,
    typer.Option(
        "--identity",
        metavar="COL[,COL..]",
        help="Column(s) that identify a record: it keeps its draw in whatever order or file it comes. Default: its "
        "row number.",
        rich_help_panel=JOB_PANEL,
    ),
]
JobPath = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="FILE",
        help="Job file; its key lies beside it. Default: CHANNEL.jobs/, one for each data set or identity.",
        rich_help_panel=JOB_PANEL,
    ),
]
FreshDraw = Annotated[
    bool,
    typer.Option(
        "--fresh-draw",
        metavar="",
        help="Draw anew what this job has released before: two draws of a record can tell far more than one.",
        rich_help_panel=JOB_PANEL,
    ),
]
InsecureSeed = Annotated[
    int | None,
    typer.Option(
        "--insecure-seed",
        metavar="N",
        help="Reproducible draws without a job, for tests only: whoever knows N can undo the release.",
        rich_help_panel=JOB_PANEL,
    ),
]
Delimiter = Annotated[
    str,
    typer.Option(
        "--delimiter",
        metavar="CHAR",
        help="Between cells; tab may be written so.",
        rich_help_panel=TEXT_PANEL,
    ),
]
Quote = Annotated[
    str,
    typer.Option(
        "--quote",
        metavar="CHAR",
        help="Around cells; none if there are no quotes.",
        rich_help_panel=TEXT_PANEL,
    ),
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Of input and output.", rich_help_panel=TEXT_PANEL)
]
Compress = Annotated[
    str | None,
    typer.Option(
        "--compress",
        metavar="NAME",
        help="gzip or zstd, for a CSV; default by the ending of OUT (.gz, .zst). Compressed input is recognised.",
        rich_help_panel=TEXT_PANEL,
    ),
]
ManifestPath = Annotated[
    str | None,
    typer.Option(
        "--manifest",
        metavar="FILE",
        help="What was done, what is promised and what voids it; may go with the data (default OUT.manifest.json).",
        rich_help_panel=SIDES_PANEL,
    ),
]
InternalPath = Annotated[
    str | None,
    typer.Option(
        "--internal-manifest",
        metavar="FILE",
        help="The same with hashes and counts of the original data: not to be given away.",
        rich_help_panel=SIDES_PANEL,
    ),
]
CodebookPath = Annotated[
    str | None,
    typer.Option(
        "--codebook",
        metavar="FILE",
        help="CSV that says which symbols each output stands for, and how likely.",
        rich_help_panel=SIDES_PANEL,
    ),
]


def apply(
    context: typer.Context,
    channel: o.ChannelPath,
    source: Source,
    target: Target,
    also: Also = None,
    rename: Rename = None,
    add: Add = None,
    keep_sensitive: KeepSensitive = False,
    correlated: Correlated = None,
    form: Form = "label",
    unknown: Unknown = "refuse",
    null: Null = "refuse",
    normalise: Normalise = "none",
    identity: Identity = None,
    job: JobPath = None,
    fresh_draw: FreshDraw = False,
    insecure_seed: InsecureSeed = None,
    delimiter: Delimiter = ",",
    quote: Quote = '"',
    encoding: Encoding = "utf-8",
    compress: Compress = None,
    manifest: ManifestPath = None,
    internal_manifest: InternalPath = None,
    codebook: CodebookPath = None,
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
    from mechdesign.channel import Channel
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.release import Policy
    from mechdesign.sanitise.apply_file import sanitise_file
    from mechdesign.sanitise.signals import Stopped, stoppable
    from mechdesign.sanitise.source_guard import STANDARD
    from mechdesign.sanitise.text_options import TextOptions

    if as_json and target == STANDARD:
        raise InputError(
            "--json and an output to standard output (-) would be mixed up; name a file for one of them"
        )
    if manifest is None and target != STANDARD:
        manifest = f"{target}.manifest.json"
    reporter = reporter_of(context)
    policy = Policy(unknown=unknown, null=null, normalise=normalise)
    text = TextOptions(
        delimiter="\t" if delimiter in TABS else delimiter,
        quote=None if quote == "none" else quote,
        encoding=encoding,
    )
    channels = [Channel.load(path) for path in (channel, *(also or []))]
    try:
        with stoppable(), reporter.work("sanitising") as work:
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
                force=force,
                progress=work.at,
            )
    except Stopped as stopped:
        reporter.error(str(stopped), event="stopped", exit_code=stopped.exit_code)
        return stopped.exit_code
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
