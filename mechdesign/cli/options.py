"""The options of the commands, each declared once: groups as dataclasses, shared by the commands that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.parsing import (
    bins_of,
    confidence_of,
    joint_of,
    notion_of,
    number,
    own_budgets,
    pairs_of,
    randomisation_of,
    stays_of,
)
from mechdesign.cli.release_options import ChannelOption as ChannelOption
from mechdesign.cli.release_options import ChannelPath as ChannelPath
from mechdesign.cli.release_options import FileColumns as FileColumns
from mechdesign.cli.release_options import PolicyOptions as PolicyOptions
from mechdesign.cli.release_options import PrivateColumns as PrivateColumns
from mechdesign.cli.release_options import PublishedForm as PublishedForm
from mechdesign.cli.release_options import ReleasedPath as ReleasedPath
from mechdesign.cli.release_options import ReleaseReading as ReleaseReading
from mechdesign.cli.release_options import ReportOptions as ReportOptions
from mechdesign.core.errors import InputError
from mechdesign.notions import NOTIONS

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.formats.inputs import TextOptions
    from mechdesign.mechanisms.result import Design
    from mechdesign.notions import Notion
    from mechdesign.tables.joint import Joint

PUBLIC_TABLE, PUBLIC_CHANNEL = "TABLE.csv", "CHANNEL.json"
"""What stands for the names of files in a line that everybody may read."""

TABS = ("tab", "\\t")
"""Ways to type a tab."""

Force: TypeAlias = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite the output file.")]
AsCsv: TypeAlias = Annotated[
    bool, typer.Option("--csv", metavar="", help="Print a CSV table and nothing else.")
]


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """What is said on standard error. `main` looks for these in what was typed, before anything can fail."""

    quiet: bool = flag("--quiet", "Say nothing on standard error but errors.")
    log_json: bool = flag(
        "--log-json", "Notes, progress and errors as JSON lines on standard error, for logs."
    )
    debug: bool = flag("--debug", "Show the traceback of an error.")


@dataclass(frozen=True, kw_only=True)
class CommonOptions(ConsoleOptions):
    """What every command has."""

    as_json: bool = flag("--json", "Print one JSON object and nothing else.")

    def answer(self, record: Callable[[], Mapping[str, Any]], text: Callable[[], str]) -> None:
        """Print the result: as one JSON object, or for people."""
        if self.as_json:
            from mechdesign.report.record import to_json

            typer.echo(to_json(record()))
        else:
            typer.echo(text())


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """How a CSV file is written"""

    delimiter: str = option("--delimiter", "CHAR", "Between cells; tab may be written so.", ",")
    quote: str = option("--quote", "CHAR", "Around cells; none if there are no quotes.", '"')
    encoding: str = option("--encoding", "NAME", "Of the text.", "utf-8")

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
    """The table"""

    sensitive: str | None = option("--sensitive", "COL[,COL..]", "Column(s) to protect; several are crossed.")
    protect_each: bool = flag(
        "--protect-each", "Protect each of several sensitive columns for itself, not their combinations."
    )
    useful: str | None = option(
        "--useful",
        "COL[,COL..]",
        "Column(s) to release; with --contingency, the name that `apply` will look for.",
    )
    weight: str | None = option("--weight", "COL", "Column with the count or the survey weight of each row.")
    contingency: bool = flag(
        "--contingency",
        "A wide table of counts: sensitive symbols down the first column, useful ones along the header.",
    )
    probabilities: bool = flag("--probabilities", "A wide table of probabilities instead of counts.")
    weighted: bool = flag(
        "--weighted", "With --contingency: the cells are sums of survey weights, fractions too, not records."
    )
    missing: str = option(
        "--missing",
        "WHAT",
        "What an empty cell is: refuse (an error), symbol (one of its own), drop (leave the record out).",
        "refuse",
    )

    bins: list[str] | None = option(
        "--bin",
        "[COL=]BINS",
        "Sort the numbers, dates or times of a useful column into bins: a width (10, 0.5, 7d, 1h), quantiles:N, "
        "auto:N, or edges with commas (-inf and inf, too); `design` has auto. Repeat it for crossed columns.",
    )

    def typed(self, **others: Any) -> dict[str, Any]:
        """The options by name, as `parsing.joint_of` takes them; `others` in their place."""
        typed: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(TableOptions)}
        typed["bins"] = bins_of(self.bins)
        return typed | ({"text": self.text()} if isinstance(self, TextFormat) else {}) | others


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
        by_column: dict[str, Any] = bins if bins.__class__ is dict else {"": bins}
        free = {name: text for name, text in by_column.items() if text == "auto"}
        if free:
            typed["bins"] = {name: text for name, text in by_column.items() if name not in free} or None
        return joint_of(self.table, **typed), free.get("", free) or None


@dataclass(frozen=True, kw_only=True)
class OtherTable(TextFormat, TableOptions):
    """The table"""

    table: str | None = option(
        "--table", "TABLE", "The table to check against: CSV or Parquet.", public=PUBLIC_TABLE
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
            each = self.protect_each or (hidden is not None and hidden.each and self.sensitive is None)
            return joint_of(
                self.table, **self.typed(protect_each=each, bins=bins or bins_of(self.bins)), known=known
            )
        if self != type(self)():
            raise InputError(
                "--sensitive, --useful, --weight and the like describe a table: give --table TABLE too"
            )
        if channel.joint is None:
            raise InputError(f"{path} is a public channel without its table: give --table TABLE")
        return channel.joint


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """What is promised"""

    notion: str | None = option(
        "--notion", "NAME", "alip, lip, ldp, max-lift, min-lift, l1, chi2 or alpha.", "alip"
    )
    epsilon: str | None = option("--epsilon", "NATS", "Privacy budget, in (0, 700].")
    lam: str | None = option(
        "--lam",
        "SHARE",
        "alip, l1, chi2, alpha: eps_l = lam * epsilon, eps_u = (1 - lam) * epsilon (default 0.5).",
    )
    eps_l: str | None = option(
        "--eps-l",
        "NATS|inf",
        "Budget of the lower side: every lift is at least exp(-eps_l); of the inverse for l1, chi2, alpha.",
    )
    eps_u: str | None = option(
        "--eps-u",
        "NATS|inf",
        "Budget of the upper side: every lift is at most exp(eps_u); of the average for l1, chi2, alpha.",
    )
    alpha: str | None = option(
        "--alpha", "A", "alpha only: its order, above 1; inf is the largest lift (default 2)."
    )

    budget: list[str] | None = option(
        "--budget", "SYMBOL=EPS_L,EPS_U", "Budgets of its own for a sensitive symbol; may be repeated."
    )

    at_most_times: str | None = option(
        "--at-most-times", "K", "In words: nothing becomes more than K times as likely (eps_u = ln K)."
    )
    at_least_times: str | None = option(
        "--at-least-times", "K", "In words: nothing becomes less than K times as likely (eps_l = -ln K)."
    )

    def notion_or(self, default: str, upper: float | None = None) -> Notion:
        """The notion that is described; of the name `default` where none is named."""
        typed: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(BudgetOptions)}
        typed |= {"notion": self.notion or default, "upper": upper}
        own = own_budgets(typed.pop("budget"))
        notion = notion_of(**typed)
        return notion.with_budgets(own) if own else notion


@dataclass(frozen=True, kw_only=True)
class DesignBudget(BudgetOptions):
    """What is promised"""

    max_posterior: str | None = option(
        "--max-posterior",
        "SHARE",
        "No sensitive value becomes more probable than this, whatever is released.",
    )
    keep: str | None = option(
        "--keep",
        "SHARE",
        "Alone: the smallest --epsilon of four digits that keeps this share of the information.",
    )

    def check(self) -> None:
        """Find out before the table is read what cannot be meant."""
        from mechdesign.core.words import share_of

        for name, share in (("--max-posterior", self.max_posterior), ("--keep", self.keep)):
            if share is not None:
                share_of(name, share)
        if self.max_posterior is not None and self.budget:
            raise InputError("--max-posterior is for every symbol alike: leave out --budget")
        if self.keep is None:
            self.notion_or("alip", None if self.max_posterior is None else 1.0)
            return
        if self != replace(
            DesignBudget(), notion=self.notion, lam=self.lam, alpha=self.alpha, keep=self.keep
        ):
            raise InputError("--keep looks for the smallest budget: leave out every other budget")
        self._at("1")

    def designed(self, joint: Joint, how: Mapping[str, Any]) -> Design:
        """The channel with this budget; `how` is what `mechanisms.design` takes besides."""
        from mechdesign.mechanisms import budget, design

        if self.keep is not None:
            return budget.keeping(joint, lambda epsilon: self._at(repr(epsilon)), self.keep, **how)
        upper = None
        if self.max_posterior is not None:
            kind = NOTIONS[self.notion or "alip"]
            upper = budget.posterior_budget(joint, kind, self.max_posterior, how)
        return design(joint, self.notion_or("alip", upper), **how)

    def _at(self, epsilon: str) -> Notion:
        return replace(self, keep=None, epsilon=epsilon).notion_or("alip")


@dataclass(frozen=True, kw_only=True)
class ConfidenceOptions:
    """What is promised"""

    confidence: str | None = option(
        "--confidence",
        "LEVEL",
        "The promise holds for the population that the counts are a sample of, at this level, in [0.5, 1).",
    )
    known_shares: str | None = option(
        "--known-shares",
        "FILE",
        "With --confidence: P(s) of every sensitive symbol where it is known, CSV with the header symbol,share.",
        public="SHARES.csv",
    )

    symbols: str | None = option(
        "--symbols",
        metavar="FILE",
        help="With --confidence: the useful symbols, listed before looking, CSV with the useful columns as header. "
        "Those of no record are protected too if `apply` is told --unknown marginal.",
        public="SYMBOLS.csv",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them, as far as they go without the table."""
        return confidence_of(self.confidence, self.known_shares, self.symbols)

    def unseen(self, joint: Joint) -> dict[str, Any]:
        """The rest of them."""
        from mechdesign.tables.confidence import unseen_symbols

        return {} if self.symbols is None else {"unseen": unseen_symbols(self.symbols, joint)}


@dataclass(frozen=True, kw_only=True)
class AfterOptions:
    """What is promised"""

    after: list[str] | None = option(
        "--after",
        "CHANNEL",
        "A channel of an earlier release of the same records: all together keep the promise; may be repeated.",
        public=PUBLIC_CHANNEL,
    )

    def channels(self) -> list[Channel]:
        """The channels."""
        from mechdesign.channel.channel import Channel

        return [Channel.load(path) for path in self.after or ()]


@dataclass(frozen=True, kw_only=True)
class MaybeBudget(BudgetOptions):
    """What is promised"""

    notion: str | None = option(
        "--notion",
        "NAME",
        "alip, lip, ldp, max-lift, min-lift, l1, chi2 or alpha "
        "(default: that of the channel file; alip for a matrix).",
    )

    @property
    def given(self) -> bool:
        """Whether any of it is."""
        return self != MaybeBudget()


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How it is found"""

    method: str = option(
        "--method", "NAME", "How the optimum is searched: vertices, columns, or auto.", "auto"
    )
    gap: str = option(
        "--gap", "SHARE", "Stop when the proven bound is this close, as a share of H(X).", "1e-4"
    )
    time_limit: str | None = option(
        "--time-limit", "SECONDS", "Stop each search then, with the best verified channel and its proven gap."
    )

    enumerate: str = option(
        "--enumerate",
        "NAME",
        "Who lists the vertices, with --method vertices: auto (the fastest), pivot, pycddlib, or pycddlib-exact "
        "(rational numbers; needs the full pycddlib).",
        "auto",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        gap = number("--gap", self.gap, zero=True)
        return {"method": self.method, "gap": gap, "time_limit": self.seconds, "enumerate": self.enumerate}

    @property
    def seconds(self) -> float | None:
        """The time limit."""
        return None if self.time_limit is None else number("--time-limit", self.time_limit)


@dataclass(frozen=True, kw_only=True)
class DesignOptions(SearchOptions):
    """How it is found"""

    mechanism: str = option(
        "--mechanism", "NAME", "optimal, subset-response, subset-merging or complete-merging.", "optimal"
    )
    no_fallback: bool = flag(
        "--no-fallback", "Exit 3 instead of emitting subset merging when the optimum fails."
    )
    seed: int = option("--seed", "N", "Seed of the search.", 0)
    allow_identifier: bool = flag(
        "--allow-identifier",
        "Design although the useful column has nearly as many symbols as there are records.",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        own = {"mechanism": self.mechanism, "fallback": not self.no_fallback, "seed": self.seed}
        return super().arguments() | own | {"allow_identifier": self.allow_identifier}


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """What is kept"""

    distance: str | None = option("--distance", "KIND", "With distance: absolute (default) or squared.")
    keep_frequencies: bool = flag(
        "--keep-frequencies",
        "With truth, distance or costs: the expected share of every symbol stays as it is.",
    )


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions(KeptOptions):
    """What is kept"""

    objective: str = option(
        "--objective",
        "NAME|FILE",
        "information (free outputs), or symbols of the column itself: truth (most records as they are), distance "
        "(numbers moved least), or a CSV of costs with the symbols in header and first column.",
        "information",
    )
    stay: list[str] | None = option(
        "--stay",
        "[SYMBOL=]SHARE",
        "Least probability that a symbol (or every one) is released as it is; may be repeated.",
    )
    forbid: list[str] | None = option("--forbid", "FROM:TO", "Never release TO for FROM; may be repeated.")

    @property
    def named(self) -> bool:
        """Whether the objective has a name and is no file."""
        return self.objective in ("information", "truth", "distance")

    def shown(self) -> ObjectiveOptions:
        """As a line that everybody may read has them: without the place of a file."""
        return self if self.named else replace(self, objective="COSTS.csv")

    def arguments(self, joint: Joint, text: TextOptions) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        from mechdesign.mechanisms.least_cost import read_costs

        return {
            "objective": self.objective if self.named else read_costs(self.objective, text),
            "distance": self.distance,
            "keep_frequencies": self.keep_frequencies,
            "stay": stays_of(self.stay, joint.useful.names),
            "forbid": pairs_of(self.forbid, joint.useful.names),
        }


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How the heuristics work"""

    risk: str = option(
        "--risk",
        "NAME",
        "How subset-merging and subset-response order sets: log-max, log-ratio, sum (as the paper prints "
        "it for alip), or auto.",
        "auto",
    )
    randomisation: str = option(
        "--randomisation",
        "R",
        "How complete-merging randomises risky symbols: merge, uniform, or a probability for each, as in "
        "0.5,0.3,0.2.",
        "merge",
    )
    as_published: bool = flag(
        "--as-published",
        "Leave out the repair, for study: the channel may violate the notion (exit 1) and is never written.",
    )

    def arguments(self) -> dict[str, Any]:
        """As `mechanisms.design` takes them."""
        chosen = randomisation_of(self.randomisation)
        return {"risk": self.risk, "randomisation": chosen, "as_published": self.as_published}
