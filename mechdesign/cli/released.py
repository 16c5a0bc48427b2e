"""Options of the commands that read a released file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from mechdesign.errors import InputError

Released: TypeAlias = Annotated[
    str, typer.Argument(metavar="OUT", help="CSV or Parquet file written by `apply`.")
]
ChannelOption: TypeAlias = Annotated[
    str, typer.Option("--channel", metavar="CHANNEL", help="The channel file that it was released with.")
]
Rename: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COL",
        help="The channel's column NAME is called COL in the file; may be repeated.",
    ),
]
ReleasedColumn: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--released-column",
        metavar="COL",
        help="Name of the released column, where it was added under another name; may be repeated.",
    ),
]
Form: TypeAlias = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="FORM",
        help="What was published: label, or posterior-draw (a symbol of the useful column).",
    ),
]


def renamed(pairs: Sequence[str] | None) -> dict[str, str]:
    """Pairs NAME=COL as a mapping.

    Raises
    ------
    InputError
        On anything else, or a name given twice.
    """
    names: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            raise InputError(f"--column {pair!r} must be NAME=COL: the channel's name, then the file's")
        if name in names:
            raise InputError(f"--column names {name!r} twice")
        names[name] = column
    return names
