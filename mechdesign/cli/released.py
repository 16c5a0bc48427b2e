"""Options of the commands that read a released file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from mechdesign.cli import options as o
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.formats.inputs import TextOptions

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
        metavar="COL[,COL..]",
        help="Name of the released column, where it was added under another name.",
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


Delimiter: TypeAlias = Annotated[
    str,
    typer.Option("--delimiter", metavar="CHAR", help="Between the cells of a CSV; tab may be written so."),
]
Quote: TypeAlias = Annotated[
    str, typer.Option("--quote", metavar="CHAR", help="Around cells of a CSV; none if there are no quotes.")
]
Encoding: TypeAlias = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Of a CSV.")]

_TABS = ("tab", "\\t")
"""Ways to type a tab."""


def text_options(delimiter: str, quote: str, encoding: str) -> TextOptions:
    """How a CSV is written, as typed.

    Raises
    ------
    InputError
        If it cannot be so.
    """
    from mechdesign.formats.inputs import TextOptions

    return TextOptions(
        delimiter="\t" if delimiter in _TABS else delimiter,
        quote=None if quote == "none" else quote,
        encoding=encoding,
    )


def names(option: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Columns from all values of an option COL[,COL..].

    Raises
    ------
    InputError
        On an empty name, or a name given twice.
    """
    found: list[str] = []
    for text in texts or ():
        columns = o.columns(option, text) or ()
        found += columns.split(",") if isinstance(columns, str) else columns
    return tuple(found)


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
