"""`mechdesign apply CHANNEL IN OUT`: sanitise a data file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.errors import InputError

EXAMPLE = "Example:  mechdesign apply channel.json people.csv released.csv"

Source = Annotated[str, typer.Argument(metavar="IN", help="CSV or Parquet file with the useful column.")]
Target = Annotated[
    str, typer.Argument(metavar="OUT", help="Where to write the same file with the outputs in its place.")
]
KeepSensitive = Annotated[
    bool,
    typer.Option(
        "--keep-sensitive",
        metavar="",
        help="Let the sensitive column stay in the output (refused by default).",
    ),
]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COL",
        help="The channel's column NAME is called COL in this file; may be repeated.",
    ),
]
InsecureSeed = Annotated[
    int | None,
    typer.Option(
        "--insecure-seed",
        metavar="N",
        help="Reproducible draws, for tests only: whoever knows N can undo the release.",
    ),
]


def apply(
    channel: o.ChannelPath,
    source: Source,
    target: Target,
    keep_sensitive: KeepSensitive = False,
    rename: Rename = None,
    insecure_seed: InsecureSeed = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Replace the useful column of a data file by draws of a channel, one independent draw for each record.

    Draws come from the system's cryptographic generator. Rows keep their order, other columns stay as they
    are; empty cells and symbols that the channel does not know are refused.
    """
    from mechdesign.channel import Channel
    from mechdesign.cli.progress import Waiting
    from mechdesign.sanitise.apply_file import sanitise_file

    loaded = Channel.load(channel)
    with Waiting("drawing"):
        result = sanitise_file(
            loaded,
            source,
            target,
            columns=_renamed(rename or []),
            keep_sensitive=keep_sensitive,
            force=force,
            insecure_seed=insecure_seed,
        )
    for notice in result.notices:
        typer.echo(f"mechdesign: note: {notice}", err=True)
    if as_json:
        from mechdesign.report.records import to_json

        typer.echo(to_json({"output": target, **asdict(result)}))
    else:
        from mechdesign.report.wording import count, label

        typer.echo(
            f"{count(result.records, 'record')} written to {target}; the column {label(result.column)} is released."
        )


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
