"""Options of releasing records and of reading released ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from mechdesign.cli.line import flag, option
from mechdesign.cli.parsing import names, renamed

if TYPE_CHECKING:
    from mechdesign.release.policies import Policy

ChannelPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="A channel file written by `design`.")
]
ReleasedPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="OUT", help="CSV or Parquet file written by `apply`.")
]
ChannelOption: TypeAlias = Annotated[
    str, typer.Option("--channel", metavar="CHANNEL", help="The channel file that it was released with.")
]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Reports"""

    report: str | None = option(
        "--report",
        "FILE",
        "A report for those who may see the table: .html (one file, works offline), .md or .json.",
        again=False,
    )
    public_report: str | None = option(
        "--public-report",
        "FILE",
        "A report for everybody: without the table and whatever is computed from it, except the channel.",
        again=False,
    )


@dataclass(frozen=True, kw_only=True)
class FileColumns:
    """Which columns"""

    rename: list[str] | None = option(
        "--column", "NAME=COL", "The channel's column NAME is called COL in the file; may be repeated."
    )

    @property
    def renamed(self) -> dict[str, str]:
        """The file's name of each column that the channel calls otherwise."""
        return renamed(self.rename)


@dataclass(frozen=True, kw_only=True)
class PrivateColumns(FileColumns):
    """Which columns"""

    keep_sensitive: bool = flag(
        "--keep-sensitive", "Let sensitive and correlated columns stay in the output (refused by default)."
    )
    correlated: list[str] | None = option(
        "--correlated",
        "COL[,COL..]",
        "Columns that tell of the sensitive one and must not stay in the output either; may be repeated.",
    )


@dataclass(frozen=True, kw_only=True)
class PublishedForm:
    """What is published"""

    form: str = option(
        "--as",
        "WHAT",
        "label (the output of the channel), posterior-draw (a symbol drawn from what the output leaves "
        "possible; keeps the frequencies of the symbols). Of a column in bins also representative (the median of what "
        "the output stands for) or within (one of the table's numbers in the bin that was drawn).",
        "label",
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(PublishedForm):
    """What is published"""

    unknown: str = option(
        "--unknown",
        "WHAT",
        "A symbol that the channel does not know: refuse, output:LABEL, or marginal (drawn as for a record of "
        "which nothing is known).",
        "refuse",
    )
    null: str = option(
        "--null", "WHAT", "An empty cell, the same: refuse, output:LABEL, or marginal.", "refuse"
    )
    normalise: str = option(
        "--normalise", "FORM", "Compare symbols in this Unicode form: none, NFC, NFD, NFKC or NFKD.", "none"
    )

    def policy(self) -> Policy:
        """As a release takes it."""
        from mechdesign.release.policies import Policy

        return Policy(unknown=self.unknown, null=self.null, normalise=self.normalise)


@dataclass(frozen=True, kw_only=True)
class ReleaseReading:
    """How the records of a released file are read."""

    released_column: list[str] | None = option(
        "--released-column",
        "COL[,COL..]",
        "Name of the released column, where it was added under another name.",
    )
    identity: list[str] | None = option(
        "--identity",
        "COL[,COL..]",
        "The job drew by this identifier: as given to `apply`. The same identifier has the same label and "
        "counts once.",
    )

    def arguments(self) -> dict[str, Any]:
        """As the readers of a released file take them."""
        return {
            "released_columns": names("--released-column", self.released_column) or None,
            "identity": names("--identity", self.identity),
        }
