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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

import mechdesign as md
from mechdesign.cli import parsing
from mechdesign.cli.line import argument, flag, option
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed

if TYPE_CHECKING:
    from mechdesign.formats.text_options import TextOptions
    from mechdesign.mechanisms.request import DesignRequest
    from mechdesign.tables.records import Records
    from mechdesign.tables.variable import Variable

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
        if self.as_json:
            from mechdesign.report.record import to_json

            typer.echo(to_json(record()))
        else:
            typer.echo(text())


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """CSV format"""

    delimiter: str = option("CHAR", "Between cells; tab may be written so.", ",")
    quote: str = option("CHAR", "Around cells; none if there are no quotes.", '"')
    encoding: str = option("NAME", "Of the text.", "utf-8")

    def text(self) -> TextOptions:
        """The format in the form that the readers of files take."""
        from mechdesign.formats.text_options import TextOptions

        return TextOptions(
            delimiter="\t" if self.delimiter in ("tab", "\\t") else self.delimiter,
            quote=None if self.quote == "none" else self.quote,
            encoding=self.encoding,
        )


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table"""

    sensitive: str | None = option(
        "COL[,COL..]", "Column to protect; several are crossed."
    )
    protect_each: bool = flag(
        "Protect each of several sensitive columns for itself, not their combinations."
    )
    useful: str | None = option(
        "COL[,COL..]",
        "Column to release; several are crossed. With --contingency, the name that `apply` "
        "will look for.",
    )
    weight: str | None = option(
        "COL",
        "Column with the count of each row; or its survey weight, with --weighted.",
    )
    contingency: bool = flag(
        "The table is one of counts: sensitive symbols down the first column, useful ones along "
        "the header."
    )
    probabilities: bool = flag("A wide table of probabilities instead of counts.")
    weighted: bool = flag(
        "With --contingency or --weight: survey weights (fractions too), not records."
    )
    missing: str = option(
        "WHAT",
        "Treatment of empty cells: refuse (an error), symbol (a symbol of their own), drop (leave "
        "the record out).",
        "refuse",
    )
    bins: list[str] | None = option(
        "[COL=]BINS",
        "Sort numbers, dates or times into bins: a width (10, 0.5, 7d, "
        "1h), quantiles:N, auto:N, or edges with commas (-inf and inf, too); `design` has "
        "auto. Repeat it for crossed columns.",
        names="--bin",
    )

    def joint(
        self,
        path: str,
        default_columns: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (
            None,
            None,
        ),
        bins: Any = None,
    ) -> md.Joint:
        """Read the table in the file `path`.

        Parameters
        ----------
        default_columns
            The sensitive and the useful columns where no option names them, such as those of a
            channel file.
        bins
            Bins in the place of those of --bin.
        """
        sensitive = parsing.columns("--sensitive", self.sensitive)
        useful = parsing.columns("--useful", self.useful)
        # A wide table is read by its layout, not by names of columns.
        if not (self.contingency or self.probabilities):
            if sensitive is None:
                sensitive = default_columns[0]
            if useful is None:
                useful = default_columns[1]
        if bins is None:
            bins = parsing.bins_of(self.bins)
        from mechdesign.tables.reading import read_joint

        # `read_joint` refuses any other word than the three that the help has.
        missing: Any = self.missing
        joint = read_joint(
            path,
            sensitive=sensitive,
            useful=useful,
            bins=bins,
            text=self.text() if isinstance(self, TextFormat) else None,
            weight=self.weight,
            contingency=self.contingency,
            probabilities=self.probabilities,
            weighted=self.weighted,
            missing=missing,
        )
        return joint.protecting_each() if self.protect_each else joint


@dataclass(frozen=True, kw_only=True)
class InputTable(TextFormat, TableOptions):
    """The table that a command works on."""

    table: str = argument(
        "TABLE",
        "CSV or Parquet: one record a row, long counts (--weight), or a wide count table "
        "(--contingency). Records and long counts may be many files: a folder, or a glob in "
        "quotes.",
        public=PUBLIC_TABLE,
    )

    def read_before_auto(self) -> tuple[md.Joint, Any]:
        """The table without the bins that only a budget can decide (``auto``), and the request
        for these as `DesignRequest.bins` takes it.

        The request is "auto" for a table of one useful column, {column: "auto"} for crossed ones,
        and None where all bins are known. ``--bin age=10 --bin income=auto`` gives a table with
        ages in tens and single incomes, and the request {"income": "auto"}.
        """
        bins = parsing.bins_of(self.bins)
        if bins == "auto":
            return replace(self, bins=None).joint(self.table), bins
        if bins is None or isinstance(bins, str):
            return self.joint(self.table), None
        undecided: dict[str, Any] = {}
        decided: dict[str, Any] = {}
        for column, text in bins.items():
            if text == "auto":
                undecided[column] = text
            else:
                decided[column] = text
        if not undecided:
            return self.joint(self.table), None
        # Without its own --bin the table takes the bins that are passed, even if these are none.
        without_bins = replace(self, bins=None)
        return without_bins.joint(self.table, bins=decided or None), undecided


@dataclass(frozen=True, kw_only=True)
class OtherTable(TextFormat, TableOptions):
    """The table"""

    table: str | None = option(
        "TABLE", "The table to check against: CSV or Parquet.", public=PUBLIC_TABLE
    )

    def read(
        self, path: str, *channels: md.Channel | md.RowChannel, together: bool = False
    ) -> md.Joint | None:
        """The table given, None if none is; columns and bins that no option names are those of the
        channels.

        Parameters
        ----------
        path
            The file of the channels, for messages.
        together
            Whether the channels are judged together; then they must protect the same columns,
            unless --sensitive says about which the question is.
        """
        if self.table is None:
            if self != type(self)():
                raise InputError(
                    "--sensitive, --useful and so on describe a table: give --table TABLE too"
                )
            return None
        secrets: list[Variable] = []
        for channel in channels:
            if channel.sensitive is not None:
                secrets.append(channel.sensitive)
        if together and self.sensitive is None:
            _refuse_different_secrets(secrets)
        from mechdesign.auditing.common_table import variables_of
        from mechdesign.tables.records import bins_by_column

        released: list[Variable] = []
        for channel in channels:
            released += variables_of(channel)
        # A symbol of the channel is a bin: the table must be sorted into the very same ones.
        bins = bins_by_column(released)
        if bins and self.bins:
            raise InputError(
                f"{path} has its own bins, and the table is sorted into them: leave --bin out"
            )
        # Channels that protect each of several columns read the table in this way, too.
        protect_each = self.protect_each
        if self.sensitive is None and secrets and len(secrets) == len(channels):
            protect_each |= all(secret.protects_columns for secret in secrets)
        # Two channels may release the same column: it is read once.
        useful = dict.fromkeys(
            column for variable in released for column in variable.columns
        )
        sensitive = secrets[0].columns if secrets else None
        return replace(self, protect_each=protect_each).joint(
            self.table, (sensitive, tuple(useful)), bins or None
        )

    def read_for(self, channel: md.Channel, path: str) -> md.Joint:
        """The table given, or that of the channel, which was read from `path`."""
        joint = self.read(path, channel)
        joint = channel.joint if joint is None else joint
        if joint is None:
            raise InputError(
                f"{path} is a public channel without its table: give --table TABLE"
            )
        return joint

    def rows_of(self, channel: md.RowChannel) -> Records | None:
        """The rows of the table given over the columns of a row channel, None if none is given.

        The table is read without bins; `Records` sorts each column into those of the channel.
        """
        from mechdesign.tables.records import Records, bins_by_column

        if self.table is None:
            return None
        groups = [variable.columns for variable in channel.groups]
        columns = channel.released_columns
        whole = replace(self, bins=None)
        joint = whole.joint(self.table, (channel.sensitive.columns, columns))
        bins = bins_by_column(channel.groups)
        return Records.from_joint(joint, groups, bins=bins or None)


def _refuse_different_secrets(secrets: Sequence[Variable]) -> None:
    """Raise InputError unless all channels protect the same sensitive columns."""
    names = {",".join(secret.columns) for secret in secrets}
    if len(names) > 1:
        raise InputError(
            f"the channels protect different columns ({listed(sorted(names))}): say "
            f"about which you ask "
            "(--sensitive COL, or several with --protect-each)"
        )


@dataclass(frozen=True, kw_only=True)
class OwnBudgets:
    """What is promised"""

    budget: list[str] | None = option(
        "SYMBOL=EPS_L,EPS_U", "Budgets of one sensitive symbol; may be repeated."
    )

    @property
    def own(self) -> dict[str, tuple[float, float]]:
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
        notion = parsing.notion_of(**typed)
        return notion.with_budgets(self.own) if self.budget else notion


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
        from mechdesign.tables.confidence import check_level
        from mechdesign.tables.confidence_files import read_shares

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
        from mechdesign.tables.confidence_files import check_secrets, unseen_symbols

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
        from mechdesign.channel.loading import load_single

        return [load_single(path) for path in self.after or ()]


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
        "Stop each search after this many seconds: best verified channel, proven gap. "
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
        "KIND", "With distance: absolute (default) or squared."
    )
    keep_frequencies: bool = flag(
        "With truth, distance, costs: expected shares of symbols stay as they are."
    )
