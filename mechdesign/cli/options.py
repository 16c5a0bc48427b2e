"""Options that several commands share, declared once."""

from __future__ import annotations

import csv
from typing import Annotated, TypeAlias

import typer

from mechdesign.core.errors import InputError

TABLE_PANEL = "The table"
BUDGET_PANEL = "What is promised"

Table: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV or Parquet: one record a row, long counts (--weight), or a wide count table (--contingency).",
    ),
]
OtherTable: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="TABLE",
        help="The table to check against: CSV or Parquet.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Sensitive: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sensitive",
        metavar="COL[,COL..]",
        help="Column(s) to protect; several are crossed.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Useful: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--useful",
        metavar="COL[,COL..]",
        help="Column(s) to release; with --contingency, the name that `apply` will look for.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Weight: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COL",
        help="Column with the count or the survey weight of each row.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Contingency: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--contingency",
        metavar="",
        help="A wide table of counts: sensitive symbols down the first column, useful ones along the header.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Probabilities: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--probabilities",
        metavar="",
        help="A wide table of probabilities instead of counts.",
        rich_help_panel=TABLE_PANEL,
    ),
]
Missing: TypeAlias = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="WHAT",
        help="What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the record out).",
        rich_help_panel=TABLE_PANEL,
    ),
]
NotionName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--notion",
        metavar="NAME",
        help="alip, lip, ldp, max-lift, min-lift, l1, chi2 or alpha.",
        rich_help_panel=BUDGET_PANEL,
    ),
]
MaybeNotionName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--notion",
        metavar="NAME",
        help="alip, lip, ldp, max-lift, min-lift, l1, chi2 or alpha "
        "(default: that of the channel file; alip for a matrix).",
        rich_help_panel=BUDGET_PANEL,
    ),
]
Epsilon: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--epsilon", metavar="NATS", help="Privacy budget, in (0, 700].", rich_help_panel=BUDGET_PANEL
    ),
]
Lam: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--lam",
        metavar="SHARE",
        help="alip, l1, chi2, alpha: eps_l = lam * epsilon, eps_u = (1 - lam) * epsilon (default 0.5).",
        rich_help_panel=BUDGET_PANEL,
    ),
]
EpsL: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--eps-l",
        metavar="NATS|inf",
        help="Budget of the lower side: every lift is at least exp(-eps_l); of the inverse for l1, chi2, alpha.",
        rich_help_panel=BUDGET_PANEL,
    ),
]
EpsU: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--eps-u",
        metavar="NATS|inf",
        help="Budget of the upper side: every lift is at most exp(eps_u); of the average for l1, chi2, alpha.",
        rich_help_panel=BUDGET_PANEL,
    ),
]
Alpha: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--alpha",
        metavar="A",
        help="alpha only: its order, above 1; inf is the largest lift (default 2).",
        rich_help_panel=BUDGET_PANEL,
    ),
]
ChannelPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="A channel file written by `design`.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", metavar="", help="Print one JSON object and nothing else.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite the output file.")]
Debug: TypeAlias = Annotated[
    bool, typer.Option("--debug", metavar="", help="Show the traceback of an error.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", metavar="", help="Say nothing on standard error but errors.")
]
LogJson: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--log-json", metavar="", help="Notes, progress and errors as JSON lines on standard error, for logs."
    ),
]


def columns(option: str, text: str | None) -> str | tuple[str, ...] | None:
    """What `tables.read_joint` takes for a list of columns as typed.

    A text without a double quote stays as it is: the reader first looks for a column of that very name, and
    else splits it at its commas. With one it is read like a CSV line, so that names with commas can be crossed.

    Raises
    ------
    InputError
        On an empty name, a name given twice, or an open quote.
    """
    if text is None:
        return None
    if '"' in text:
        names: list[str] = []
        try:
            names = next(csv.reader([text], strict=True), names)
        except csv.Error as error:
            raise InputError(
                f'{option} {text!r} cannot be read ({error}); write COL, or COL,COL, or "a name, with a comma"'
            ) from None
    else:
        names = text.split(",")
    if "" in names:
        raise InputError(f"{option} {text!r} contains an empty column name")
    if len(set(names)) < len(names):
        raise InputError(f"{option} {text!r} names a column twice")
    return tuple(names) if '"' in text else text
