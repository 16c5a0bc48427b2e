"""The options of the commands, each declared once: groups as dataclasses, shared by the
commands that have them.

A command takes groups as parameters; `line.command` turns their fields into options, and makes the
groups again from what was typed. So a group lives for one command: it is made from texts, which
its methods check and turn into tables, notions and limits when the command asks for them.
Example: ``--epsilon 1 --lam 0.5`` becomes ``BudgetOptions(epsilon="1", lam="0.5")``, whose
`notion_or("alip")` is the notion. Numbers stay texts until then, so that a bad one is refused in a
sentence of our own, and exact decimals are not rounded by the parser of the command line.

The docstring of a group is the title of its options in the help, unless it ends with a full stop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

import mechdesign as md
from mechdesign.cli import parsing
from mechdesign.cli.line import flag, option
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanisms.request import DesignRequest

PUBLIC_TABLE, PUBLIC_CHANNEL = "TABLE.csv", "CHANNEL.json"
"""What stands for the names of files in a line that everybody may read."""

NO_LIMIT = "none"
"""What `--time-limit` is for a search that ends only with its proof."""

Force: TypeAlias = Annotated[
    bool, typer.Option("--force", metavar="", help="Overwrite the output file.")
]
AsCsv: TypeAlias = Annotated[
    bool, typer.Option("--csv", metavar="", help="Print CSV and nothing else.")
]
ChannelPath: TypeAlias = Annotated[
    str, typer.Argument(metavar="CHANNEL", help="A channel file of `design`.")
]


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """What is written to standard error. `main` looks for these in what was typed, before
    anything can fail.
    """

    quiet: bool = flag("Print only errors on standard error.")
    log_json: bool = flag(
        "Notes, progress and errors as JSON lines on standard error, for logs."
    )
    debug: bool = flag("Show the traceback of an error.")


@dataclass(frozen=True, kw_only=True)
class CommonOptions(ConsoleOptions):
    """What every command has."""

    as_json: bool = flag("Print one JSON object and nothing else.", names="--json")

    def refuse_beside(self, as_csv: bool) -> None:
        """Refuse --csv beside --json."""
        if as_csv and self.as_json:
            raise InputError(
                "--csv and --json both claim standard output: give one of them"
            )

    def answer(
        self, record: Callable[[], Mapping[str, Any]], text: Callable[[], str]
    ) -> None:
        """Print the result: as one JSON object, or for people."""
        # Both are functions, because only one of them is computed.
        if self.as_json:
            from mechdesign.report.plain_values import to_json

            typer.echo(to_json(record()))
        else:
            typer.echo(text())


@dataclass(frozen=True, kw_only=True)
class OwnBudgets:
    """What is promised"""

    budget: list[str] | None = option(
        "SYMBOL=EPS_L,EPS_U", "Budgets of one sensitive symbol; may be repeated."
    )

    @property
    def by_symbol(self) -> dict[str, tuple[float, float]]:
        """The budgets of each symbol that has some of its own."""
        return parsing.own_budgets(self.budget)


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(OwnBudgets):
    """What is promised"""

    notion: str | None = option(
        "NAME",
        "Privacy notion: alip, lip, ldp, max-lift, min-lift, l1, chi2, alpha or kl.",
        "alip",
    )
    epsilon: str | None = option(
        "NATS", "Privacy budget in nats: above 0, at most 700."
    )
    lam: str | None = option(
        "SHARE",
        "Share of epsilon for the lower side: eps_l = lam * epsilon, eps_u = (1 - lam) * epsilon "
        "(default 0.5). For alip, l1, chi2, alpha and kl.",
    )
    eps_l: str | None = option(
        "NATS|inf",
        "Budget of the lower side: every lift is at least exp(-eps_l); of the inverse for l1, "
        "chi2, alpha, kl.",
    )
    eps_u: str | None = option(
        "NATS|inf",
        "Budget of the upper side: every lift is at most exp(eps_u); of the average for l1, "
        "chi2, alpha, kl.",
    )
    alpha: str | None = option(
        "A", "Order of alpha-lift: above 1; inf is the largest lift (default 2)."
    )
    at_most_times: str | None = option(
        "K", "No sensitive value becomes more than K times as likely (eps_u = ln K)."
    )
    at_least_times: str | None = option(
        "K", "No sensitive value becomes less than K times as likely (eps_l = -ln K)."
    )

    def notion_or(self, default: str, upper: float | None = None) -> md.Notion:
        """The notion that is described; of the name `default` where none is named."""
        # `upper` is eps_u (nats) where words such as --max-posterior came to it.
        typed: dict[str, Any] = asdict(self) | {
            "notion": self.notion or default,
            "upper": upper,
        }
        # Of all fields it takes those that say a budget for every symbol; those of single symbols
        # are put into the notion afterwards.
        notion = parsing.notion_of(**typed)
        return notion.with_budgets(self.by_symbol) if self.budget else notion


@dataclass(frozen=True, kw_only=True)
class ConfidenceOptions:
    """What is promised"""

    confidence: str | None = option(
        "LEVEL",
        "Protect the population behind the table, too: the promise holds for it at this level, "
        "in [0.5, 1).",
    )
    known_shares: str | None = option(
        "FILE",
        "With --confidence: P(s) of every sensitive symbol where it is known, CSV with the "
        "header symbol,share.",
        public="SHARES.csv",
    )
    symbols: str | None = option(
        metavar="FILE",
        help="With --confidence: the useful symbols, listed before looking, CSV with the "
        "useful columns as header. Those of no record are protected too if `apply` is "
        "told --unknown marginal.",
        public="SYMBOLS.csv",
    )

    secrets: str | None = option(
        "FILE",
        "With --confidence: all sensitive values, listed before looking; CSV with the sensitive "
        "columns as header. One without records is refused: the promise would not cover it.",
        public="SECRETS.csv",
    )

    def read(self) -> PopulationRequest:
        """The level and the known shares, as far as they go without the table."""
        from mechdesign.tables.confidence import check_level, read_shares

        # What describes the population does nothing without a level, so it is refused, not ignored.
        if self.confidence is None:
            if self.known_shares is not None:
                self._refuse_without_level("--known-shares")
            if self.symbols is not None:
                self._refuse_without_level("--symbols")
            if self.secrets is not None:
                self._refuse_without_level("--secrets")
            return PopulationRequest()
        level = parsing.any_number(
            "--confidence", self.confidence, "from 0.5 up to, but not including, 1"
        )
        shares = None
        if self.known_shares is not None:
            shares = read_shares(self.known_shares)
        return PopulationRequest(level=check_level(level), known_shares=shares)

    def unseen(self, joint: md.Joint) -> int:
        """How many listed symbols occur in no record; checks the list of sensitive values, too."""
        from mechdesign.tables.confidence import check_secrets, unseen_symbols

        if self.secrets is not None:
            check_secrets(self.secrets, joint)

        if self.symbols is None:
            return 0
        return unseen_symbols(self.symbols, joint)

    @staticmethod
    def _refuse_without_level(option: str) -> NoReturn:
        raise InputError(
            f"{option} needs --confidence: without it the table is the population"
        )


@dataclass(frozen=True, kw_only=True)
class PopulationRequest:
    """The population for which a promise is to hold; the table itself where there is no level.

    `level` is the confidence in [0.5, 1), `known_shares` P(s) by sensitive symbol. The set of
    distributions that they leave is computed later, from the table (`tables.confidence`).
    """

    level: float | None = None
    known_shares: Mapping[Any, Any] | None = None

    def on(self, request: DesignRequest, unseen: int) -> DesignRequest:
        """The design request with this population, of which `unseen` listed useful symbols are in
        no record.
        """
        return replace(
            request,
            confidence=self.level,
            known_shares=self.known_shares,
            unseen=unseen,
        )


@dataclass(frozen=True, kw_only=True)
class AfterOptions:
    """What is promised"""

    after: list[str] | None = option(
        "CHANNEL",
        "Channel of an earlier release of the same records: all together keep the promise; "
        "may be repeated.",
        public=PUBLIC_CHANNEL,
    )

    def channels(self) -> list[md.Channel]:
        """The channels of the earlier releases, in the order of the command line."""
        from mechdesign.channel.file import load_without_boxes

        return [load_without_boxes(path) for path in self.after or ()]


@dataclass(frozen=True, kw_only=True)
class MaybeBudget(BudgetOptions):
    """What is promised"""

    notion: str | None = option(
        "NAME",
        "Privacy notion: alip, lip, ldp, max-lift, min-lift, l1, chi2, alpha or kl "
        "(default: that of the channel file; alip for a matrix).",
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How it is found"""

    method: str = option(
        "NAME", "Search method of the optimum: vertices, columns, or auto.", "auto"
    )
    gap: str = option(
        "SHARE",
        "Stop when the best possible is proven to be this close (a share of H(X)).",
        "1e-4",
    )
    time_limit: str = option(
        "SECONDS",
        "Stop each search after this processor time: best verified channel, proven gap. "
        "Or none: no limit.",
        "30",
    )
    enumerate: str = option(
        "NAME",
        "Vertex enumeration backend, with --method vertices: auto (the fastest), pivot, "
        "pycddlib, or pycddlib-exact (rational numbers; needs the full pycddlib).",
        "auto",
    )

    def check(self) -> None:
        """Refuse what cannot be searched, before the table is read."""
        from mechdesign.mechanisms.search import Search

        # Its constructor checks the settings; the search that is made here is thrown away.
        Search(
            method=self.method,
            enumeration=self.enumerate,
            gap=self.smallest_gap,
            time_limit=self.seconds,
        )

    @property
    def smallest_gap(self) -> float:
        """The gap, as a share of H(X)."""
        return parsing.number("--gap", self.gap, zero=True)

    @property
    def seconds(self) -> float | None:
        """The time limit; None where the user wants no limit."""
        if self.time_limit == NO_LIMIT:
            return None
        return parsing.number("--time-limit", self.time_limit)


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """What is kept"""

    distance: str | None = option(
        "KIND",
        "With distance: absolute (default) or squared; with --release ranks (default) or absolute.",
    )
    keep_frequencies: bool = flag(
        "With truth, distance, costs: expected shares of symbols, or of rows, stay as they are "
        "(the default)."
    )
    free_frequencies: bool = flag(
        "With truth, distance, costs: leave the expected shares open, which keeps more cells."
    )

    @property
    def keeps_law(self) -> bool | None:
        """Whether expected shares are kept; None where nothing was said."""
        if self.keep_frequencies and self.free_frequencies:
            raise InputError(
                "--keep-frequencies and --free-frequencies contradict each other"
            )
        if self.keep_frequencies:
            return True
        return False if self.free_frequencies else None
