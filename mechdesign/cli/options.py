"""The options of the commands, each declared once: groups as dataclasses, shared by the commands that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from mechdesign.cli.line import argument, option
from mechdesign.cli.parsing import (
    bins_of,
    confidence_of,
    joint_of,
    names,
    notion_of,
    number,
    randomisation_of,
    renamed,
)
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.formats.inputs import TextOptions
    from mechdesign.notions import Notion
    from mechdesign.release.policies import Policy
    from mechdesign.tables.joint import Joint

PUBLIC_TABLE, PUBLIC_CHANNEL = "TABLE.csv", "CHANNEL.json"
"""What stands for the names of files in a line that everybody may read."""

TABS = ("tab", "\\t")
"""Ways to type a tab."""

ChannelPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="A channel file written by `design`.")
]
ReleasedPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="OUT", help="CSV or Parquet file written by `apply`.")
]
ChannelOption: TypeAlias = Annotated[
    str, typer.Option("--channel", metavar="CHANNEL", help="The channel file that it was released with.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite the output file.")]
AsCsv: TypeAlias = Annotated[
    bool, typer.Option("--csv", metavar="", help="Print a CSV table and nothing else.")
]


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """What is said on standard error. `main` looks for these in what was typed, before anything can fail."""

    quiet: bool = option("--quiet", default=False, help="Say nothing on standard error but errors.")
    log_json: bool = option(
        "--log-json",
        default=False,
        help="Notes, progress and errors as JSON lines on standard error, for logs.",
    )
    debug: bool = option("--debug", default=False, help="Show the traceback of an error.")


@dataclass(frozen=True, kw_only=True)
class CommonOptions(ConsoleOptions):
    """What every command has."""

    as_json: bool = option("--json", default=False, help="Print one JSON object and nothing else.")

    def answer(self, record: Callable[[], Mapping[str, Any]], text: Callable[[], str]) -> None:
        """Print the result: as one JSON object, or for people."""
        if self.as_json:
            from mechdesign.report.records import to_json

            typer.echo(to_json(record()))
        else:
            typer.echo(text())


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """How a CSV file is written."""

    PANEL: ClassVar[str] = "How a CSV file is written"

    delimiter: str = option(
        "--delimiter", metavar="CHAR", default=",", help="Between cells; tab may be written so."
    )
    quote: str = option(
        "--quote", metavar="CHAR", default='"', help="Around cells; none if there are no quotes."
    )
    encoding: str = option("--encoding", metavar="NAME", default="utf-8", help="Of the text.")

    def text(self) -> TextOptions:
        """As the readers take it."""
        from mechdesign.formats.inputs import TextOptions

        return TextOptions(
            delimiter="\t" if self.delimiter in TABS else self.delimiter,
            quote=None if self.quote == "none" else self.quote,
            encoding=self.encoding,
        )


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What the columns of a table are, and how it is laid out."""

    PANEL: ClassVar[str] = "The table"

    sensitive: str | None = option(
        "--sensitive", metavar="COL[,COL..]", help="Column(s) to protect; several are crossed."
    )
    useful: str | None = option(
        "--useful",
        metavar="COL[,COL..]",
        help="Column(s) to release; with --contingency, the name that `apply` will look for.",
    )
    weight: str | None = option(
        "--weight", metavar="COL", help="Column with the count or the survey weight of each row."
    )
    contingency: bool = option(
        "--contingency",
        default=False,
        help="A wide table of counts: sensitive symbols down the first column, useful ones along the header.",
    )
    probabilities: bool = option(
        "--probabilities", default=False, help="A wide table of probabilities instead of counts."
    )
    missing: str = option(
        "--missing",
        metavar="WHAT",
        default="refuse",
        help="What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the record out).",
    )

    bins: list[str] | None = option(
        "--bin",
        metavar="[COL=]BINS",
        help="Sort the numbers, dates or times of a useful column into bins: a width (10, 0.5, 7d, 1h), quantiles:N, "
        "auto:N, or edges with commas (-inf and inf, too); `design` has auto. Repeat it for crossed columns.",
    )

    def typed(self) -> dict[str, Any]:
        """The options by name, as `parsing.joint_of` takes them."""
        typed: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(TableOptions)}
        typed["bins"] = bins_of(self.bins)
        return typed | ({"text": self.text()} if isinstance(self, TextFormat) else {})


@dataclass(frozen=True, kw_only=True)
class InputTable(TextFormat, TableOptions):
    """The table that a command works on."""

    table: str = argument(
        "TABLE",
        "CSV or Parquet: one record a row, long counts (--weight), or a wide count table (--contingency).",
        public=PUBLIC_TABLE,
    )

    def read(self) -> Joint:
        """The table."""
        return joint_of(self.table, **self.typed())

    def read_before_auto(self) -> tuple[Joint, Any]:
        """The table without the bins that only a budget can decide (``auto``), and what asks for these."""
        typed = self.typed()
        bins: Any = typed["bins"]
        by_column: dict[str, str] = bins if isinstance(bins, dict) else {"": bins}
        free = {name: text for name, text in by_column.items() if text == "auto"}
        if free:
            typed["bins"] = {name: text for name, text in by_column.items() if name not in free} or None
        return joint_of(self.table, **typed), free.get("", free) or None


@dataclass(frozen=True, kw_only=True)
class OtherTable(TextFormat, TableOptions):
    """A table to hold against a channel, in place of its own."""

    table: str | None = option(
        "--table", metavar="TABLE", help="The table to check against: CSV or Parquet.", public=PUBLIC_TABLE
    )

    def read_for(self, channel: Channel, path: str) -> Joint:
        """The table given, or that of the channel, which was read from `path`.

        Columns that no option names are those of the channel.
        """
        if self.table is not None:
            hidden = channel.sensitive
            known = (None if hidden is None else hidden.columns, channel.useful.columns)
            bins = channel.useful.bins or None
            if bins and self.bins:
                raise InputError(
                    f"{path} has bins of its own, and the table is sorted into them: leave --bin out"
                )
            typed = self.typed()
            return joint_of(self.table, **{**typed, "bins": bins or typed["bins"]}, known=known)
        if self != type(self)():
            raise InputError(
                "--sensitive, --useful, --weight and the like describe a table: give --table TABLE too"
            )
        if channel.joint is None:
            raise InputError(f"{path} is a public channel without its table: give --table TABLE")
        return channel.joint


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """The notion and its budgets, as typed."""

    PANEL: ClassVar[str] = "What is promised"

    notion: str | None = option(
        "--notion",
        metavar="NAME",
        default="alip",
        help="alip, lip, ldp, max-lift, min-lift, l1, chi2 or alpha.",
    )
    epsilon: str | None = option("--epsilon", metavar="NATS", help="Privacy budget, in (0, 700].")
    lam: str | None = option(
        "--lam",
        metavar="SHARE",
        help="alip, l1, chi2, alpha: eps_l = lam * epsilon, eps_u = (1 - lam) * epsilon (default 0.5).",
    )
    eps_l: str | None = option(
        "--eps-l",
        metavar="NATS|inf",
        help="Budget of the lower side: every lift is at least exp(-eps_l); of the inverse for l1, chi2, alpha.",
    )
    eps_u: str | None = option(
        "--eps-u",
        metavar="NATS|inf",
        help="Budget of the upper side: every lift is at most exp(eps_u); of the average for l1, chi2, alpha.",
    )
    alpha: str | None = option(
        "--alpha",
        metavar="A",
        help="alpha only: its order, above 1; inf is the largest lift (default 2).",
    )

    def notion_or(self, default: str) -> Notion:
        """The notion that is described; of the name `default` where none is named."""
        return notion_of(
            self.notion or default,
            epsilon=self.epsilon,
            lam=self.lam,
            eps_l=self.eps_l,
            eps_u=self.eps_u,
            alpha=self.alpha,
        )


@dataclass(frozen=True, kw_only=True)
class ConfidenceOptions:
    """Whether the promise is about the table or about the population."""

    PANEL: ClassVar[str] = "What is promised"

    confidence: str | None = option(
        "--confidence",
        metavar="LEVEL",
        help="The promise holds for the population that the counts are a sample of, at this level, in [0.5, 1).",
    )
    known_shares: str | None = option(
        "--known-shares",
        metavar="FILE",
        help="With --confidence: P(s) of every sensitive symbol where it is known, CSV with the header symbol,share.",
        public="SHARES.csv",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        return confidence_of(self.confidence, self.known_shares)


@dataclass(frozen=True, kw_only=True)
class MaybeBudget(BudgetOptions):
    """A notion other than that of the channel file."""

    notion: str | None = option(
        "--notion",
        metavar="NAME",
        help="alip, lip, ldp, max-lift, min-lift, l1, chi2 or alpha "
        "(default: that of the channel file; alip for a matrix).",
    )

    @property
    def given(self) -> bool:
        """Whether any of it is."""
        return self != MaybeBudget()


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How an optimum is searched."""

    PANEL: ClassVar[str] = "How it is found"

    method: str = option(
        "--method",
        metavar="NAME",
        default="auto",
        help="How the optimum is searched: vertices, columns, or auto.",
    )
    gap: str = option(
        "--gap",
        metavar="SHARE",
        default="1e-4",
        help="Stop when the proven bound is this close, as a share of H(X).",
    )
    time_limit: str | None = option(
        "--time-limit",
        metavar="SECONDS",
        help="Stop each search then, with the best verified channel and its proven gap.",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        return {
            "method": self.method,
            "gap": number("--gap", self.gap, zero=True),
            "time_limit": self.seconds,
        }

    @property
    def seconds(self) -> float | None:
        """The time limit."""
        return None if self.time_limit is None else number("--time-limit", self.time_limit)


@dataclass(frozen=True, kw_only=True)
class DesignOptions(SearchOptions):
    """Which channel is designed, and how it is searched."""

    mechanism: str = option(
        "--mechanism",
        metavar="NAME",
        default="optimal",
        help="optimal, subset-response, subset-merging or complete-merging.",
    )
    enumerate: str = option(
        "--enumerate",
        metavar="NAME",
        default="auto",
        help="Who lists the vertices, with --method vertices: auto (the fastest), pivot, pycddlib, or pycddlib-exact "
        "(rational numbers; needs the full pycddlib).",
    )
    no_fallback: bool = option(
        "--no-fallback",
        default=False,
        help="Exit 3 instead of emitting subset merging when the optimum fails.",
    )
    seed: int = option("--seed", metavar="N", default=0, help="Seed of the search.")
    allow_identifier: bool = option(
        "--allow-identifier",
        default=False,
        help="Design although the useful column has nearly as many symbols as there are records.",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        own = {"mechanism": self.mechanism, "fallback": not self.no_fallback, "seed": self.seed}
        return super().arguments() | own | {k: getattr(self, k) for k in ("enumerate", "allow_identifier")}


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How the heuristics work."""

    PANEL: ClassVar[str] = "How the heuristics work"

    risk: str = option(
        "--risk",
        metavar="NAME",
        default="auto",
        help="How subset-merging and subset-response order sets: log-max, log-ratio, sum (as the paper prints "
        "it for alip), or auto.",
    )
    randomisation: str = option(
        "--randomisation",
        metavar="R",
        default="merge",
        help="How complete-merging randomises risky symbols: merge, uniform, or a probability for each, as in "
        "0.5,0.3,0.2.",
    )
    as_published: bool = option(
        "--as-published",
        default=False,
        help="Leave out the repair, for study: the channel may violate the notion (exit 1) and is never written.",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        chosen = randomisation_of(self.randomisation)
        return {"risk": self.risk, "randomisation": chosen, "as_published": self.as_published}


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Reports to write."""

    PANEL: ClassVar[str] = "Reports"

    report: str | None = option(
        "--report",
        metavar="FILE",
        help="A report for those who may see the table: .html (one file, works offline), .md or .json.",
        again=False,
    )
    public_report: str | None = option(
        "--public-report",
        metavar="FILE",
        help="A report for everybody: without the table and whatever is computed from it, except the channel.",
        again=False,
    )


@dataclass(frozen=True, kw_only=True)
class FileColumns:
    """Which column of a file is which of a channel."""

    PANEL: ClassVar[str] = "Which columns"

    rename: list[str] | None = option(
        "--column",
        metavar="NAME=COL",
        help="The channel's column NAME is called COL in the file; may be repeated.",
    )

    @property
    def renamed(self) -> dict[str, str]:
        """The file's name of each column that the channel calls otherwise."""
        return renamed(self.rename)


@dataclass(frozen=True, kw_only=True)
class PrivateColumns(FileColumns):
    """Columns that must not be in a release."""

    keep_sensitive: bool = option(
        "--keep-sensitive",
        default=False,
        help="Let sensitive and correlated columns stay in the output (refused by default).",
    )
    correlated: list[str] | None = option(
        "--correlated",
        metavar="COL[,COL..]",
        help="Columns that tell of the sensitive one and must not stay in the output either; may be repeated.",
    )


@dataclass(frozen=True, kw_only=True)
class PublishedForm:
    """What is published for a record."""

    PANEL: ClassVar[str] = "What is published"

    form: str = option(
        "--as",
        metavar="WHAT",
        default="label",
        help="label (the output of the channel), posterior-draw (a symbol drawn from what the output leaves "
        "possible; keeps the frequencies of the symbols). Of a column in bins also representative (the median of what "
        "the output stands for) or within (one of the table's numbers in the bin that was drawn).",
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(PublishedForm):
    """What is published for a record, also where the channel does not know its symbol."""

    unknown: str = option(
        "--unknown",
        metavar="WHAT",
        default="refuse",
        help="A symbol that the channel does not know: refuse, output:LABEL, or marginal (drawn as for a record of "
        "which nothing is known).",
    )
    null: str = option(
        "--null",
        metavar="WHAT",
        default="refuse",
        help="An empty cell, the same: refuse, output:LABEL, or marginal.",
    )
    normalise: str = option(
        "--normalise",
        metavar="FORM",
        default="none",
        help="Compare symbols in this Unicode form: none, NFC, NFD, NFKC or NFKD.",
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
        metavar="COL[,COL..]",
        help="Name of the released column, where it was added under another name.",
    )
    identity: list[str] | None = option(
        "--identity",
        metavar="COL[,COL..]",
        help="The job drew by this identifier: as given to `apply`. The same identifier has the same label and "
        "counts once.",
    )

    def arguments(self) -> dict[str, Any]:
        """As the readers of a released file take them."""
        return {
            "released_columns": names("--released-column", self.released_column) or None,
            "identity": names("--identity", self.identity),
        }
