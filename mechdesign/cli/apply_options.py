"""The options of `mechdesign apply`."""

from __future__ import annotations

from typing import Annotated

import typer

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
