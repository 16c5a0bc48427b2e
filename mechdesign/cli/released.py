"""Options of commands on released files: columns, the published form, and how the file is read.

`apply` writes a file, `check`, `estimate` and `inspect` read one, so they share these groups:
whoever checks a file gives the same options as whoever released it. Each group turns itself into
keyword arguments (`arguments`) of the function of Python that does the work: ``--column job=beruf``
becomes ``columns={"job": "beruf"}``, as the file calls the channel's column job "beruf".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

import mechdesign as md
from mechdesign.cli import parsing
from mechdesign.cli.line import flag, option

ReleasedPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="OUT", help="CSV or Parquet of `apply`.")
]
ChannelOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--channel",
        metavar="CHANNEL",
        help="The channel file that it was released with.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FileColumns:
    """Which columns"""

    rename: list[str] | None = option(
        "NAME=COL",
        "Name of a channel's column in the file: NAME is called COL there; may be repeated.",
        names="--column",
    )

    @property
    def renamed(self) -> dict[str, str]:
        """The file's name of each column that has another name in the channel."""
        return parsing.renamed(self.rename)


@dataclass(frozen=True, kw_only=True)
class PrivateColumns(FileColumns):
    """Which columns"""

    keep_sensitive: bool = flag(
        "Let sensitive and correlated columns stay in the output (else refused)."
    )
    correlated: list[str] | None = option(
        "COL[,COL..]",
        "Columns that disclose the sensitive one, which must not stay in the output either; may be "
        "repeated.",
    )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of a release and its check."""
        return {
            "columns": self.renamed,
            "keep_sensitive": self.keep_sensitive,
            "correlated": parsing.names("--correlated", self.correlated),
        }


@dataclass(frozen=True, kw_only=True)
class PublishedForm:
    """What is published"""

    form: str = option(
        "WHAT",
        "Form of the released values: label (the output of the channel), posterior-draw (a "
        "symbol drawn from what the output leaves possible; keeps the frequencies of the "
        "symbols). Of a column in bins also representative (the median of what the output "
        "stands for) or within (one of the table's numbers in the bin that was drawn).",
        "label",
        names="--as",
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(PublishedForm):
    """What is published"""

    unknown: str = option(
        "WHAT",
        "Treatment of symbols that the channel does not have: refuse, output:LABEL, or "
        "marginal (drawn as for a record of which nothing is known).",
        "refuse",
    )
    null: str = option(
        "WHAT", "Treatment of empty cells: refuse, output:LABEL, or marginal.", "refuse"
    )
    normalise: str = option(
        "FORM",
        "Unicode form to compare symbols in: none, NFC, NFD, NFKC, NFKD.",
        "none",
    )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of a release and its check."""
        policy = md.Policy(
            unknown=self.unknown, null=self.null, normalise=self.normalise
        )
        return {"form": self.form, "policy": policy}


@dataclass(frozen=True, kw_only=True)
class ReleaseReading:
    """How the records of a released file are read."""

    released_column: list[str] | None = option(
        "COL[,COL..]",
        "Name of the released column, where it was added under another name.",
    )
    identity: list[str] | None = option(
        "COL[,COL..]",
        "Column that identifies a record: as given to `apply`. Records with the same identifier "
        "have the same label and count once.",
    )
    escape_formulas: bool = flag(
        "Cells that spreadsheets take for formulas have an apostrophe in front, as `apply` "
        "wrote it."
    )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of the readers of a released file."""
        released = parsing.names("--released-column", self.released_column)
        return {
            # None stands for the columns' own names.
            "released_columns": released or None,
            "identity": parsing.names("--identity", self.identity),
            "escape_formulas": self.escape_formulas,
        }
