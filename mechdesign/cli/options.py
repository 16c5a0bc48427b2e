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

import math
import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

import mechdesign as md
from mechdesign.cli import parsing
from mechdesign.cli.console import PROGRAM, Reporter
from mechdesign.cli.line import COMMAND, flag, option, recorded_line
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanisms.request import DesignRequest
    from mechdesign.report.record import Command

PUBLIC_TABLE, PUBLIC_CHANNEL = "TABLE.csv", "CHANNEL.json"
"""What stands for the names of files in a line that everybody may read."""

NO_LIMIT = "none"
"""What `--time-limit` is for a search that ends only with its proof."""

PROOF_SECONDS = 60
"""Processor time of a proof of certificates by default: twice that of a search, whose last round it
is again."""

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

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read."""
        files = (self.known_shares, self.symbols, self.secrets)
        return tuple(file for file in files if file is not None)

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
        from mechdesign.mechanisms.search_options import Search

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
class ProofTime:
    """How long a proof may take."""

    time_limit: str | None = option(
        "SECONDS",
        "With --certificate: a bound that takes more processor time than this is not proven "
        f"(default: {PROOF_SECONDS}). Or {NO_LIMIT}: no limit.",
    )

    def end(self, *, certificate: bool) -> float:
        """When to stop, on the clock of `time.process_time`; the limit counts from now."""
        if self.time_limit is None:
            return time.process_time() + PROOF_SECONDS
        if not certificate:
            raise InputError("--time-limit belongs to --certificate: leave it out")
        if self.time_limit == NO_LIMIT:
            return math.inf
        return time.process_time() + parsing.number("--time-limit", self.time_limit)


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


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Reports"""

    report: str | None = option(
        "FILE",
        "A report for those who may see the table: .html (one file, works offline), .md or .json.",
        again=False,
    )
    public_report: str | None = option(
        "FILE",
        "A report for everybody: without the table and whatever is computed from it, "
        "except the channel.",
        again=False,
    )
    curve: str = option(
        "SECONDS",
        "Processor time for the trade-off curve of the first; 0 leaves it out.",
        "6",
        again=False,
    )

    @property
    def files(self) -> dict[str, str | None]:
        """The paths of both by the names of their fields, as the JSON record has them."""
        return {"report": self.report, "public_report": self.public_report}

    @property
    def asked(self) -> bool:
        """Whether any report is asked for."""
        return self.report is not None or self.public_report is not None

    def check(
        self, sources: tuple[str, ...], others: Mapping[str, str | None], *, force: bool
    ) -> None:
        """Refuse reports that cannot be written."""
        parsing.number("--curve", self.curve, zero=True)
        if not self.asked:
            return
        from mechdesign.report.writing import check_report

        targets = {"--report": self.report, "--public-report": self.public_report}
        seen: dict[str, str] = {}
        for name, path in {**others, **targets}.items():
            if path is None:
                continue
            # Of two outputs in one file the second would replace the first. By its real path:
            # ./a.html and a.html are one file.
            other = seen.setdefault(os.path.realpath(path), name)
            if other != name:
                raise InputError(
                    f"{other} and {name} both name {path}: give each a file of its own"
                )
            if name in targets:
                check_report(path, force=force, sources=sources)

    def save(
        self,
        channel: md.Channel,
        behind: Any,
        reporter: Reporter,
        *,
        line: str | None,
        table: str | None = None,
        output: str | None = None,
        force: bool,
    ) -> None:
        """Write the reports.

        `line` is the command that designs the channel, `output` its file. `behind` is the design
        of the channel, or what else its reports need; there is no internal report without it.
        """
        from mechdesign.report.collect import Wanted, save_reports

        files: dict[str, str] = {}
        table_name = None
        if table is not None:
            table_name = os.path.basename(table)
            # Standard input is gone once it has been read, so only a file has a hash.
            if table != "-":
                files["Table"] = table
        if output is not None:
            files["Channel file"] = output
        # The line of the file and not the one that was typed, which may name files of the user.
        public_line = design_line(channel, PUBLIC_CHANNEL)
        wanted = Wanted(
            internal=self.report,
            public=self.public_report,
            overwrite=force,
            seconds=parsing.number("--curve", self.curve, zero=True),
            watch=reporter.work,
            table=table_name,
            files=files,
            commands=commands(line, output, public=False),
            public_commands=commands(
                public_line, None, public=True, takes_table=channel.takes_table
            ),
        )
        save_reports(channel, behind, wanted)

    def text(self) -> str:
        """One line for people."""
        sentences: list[str] = []
        if self.report is not None:
            sentences.append(f"Internal report: {self.report}.")
        if self.public_report is not None:
            sentences.append(f"Public report: {self.public_report}.")
        return " ".join(sentences)


def design_line(channel: md.Channel, output: str) -> str | None:
    """The command that designed the channel, from its file."""
    return recorded_line(channel.provenance.get(COMMAND), {"--output": output})


def commands(
    line: str | None, file: str | None, *, public: bool, takes_table: bool = True
) -> tuple[Command, ...]:
    """Shell lines that design, audit, apply and show a channel; `line` is the one that designed it,
    if it is known.
    """
    from mechdesign.report.record import Command

    channel = PUBLIC_CHANNEL
    if file is not None:
        channel = os.path.basename(file)
    audit = [PROGRAM, "audit", channel]
    holder = ""
    if public:
        # A public channel file has no table to be audited on; boxes take none.
        if takes_table:
            audit += ["--table", PUBLIC_TABLE]
        holder = " (for the holder of the table)"
    apply = [PROGRAM, "apply", channel, "IN.csv", "OUT.csv"]
    show = [PROGRAM, "show", channel, "--csv"]
    steps: list[Command] = []
    if line is not None:
        steps.append(Command(f"Design the channel{holder}:", line))
    steps.append(
        Command(f"Check exactly that it keeps its promise{holder}:", shlex.join(audit))
    )
    steps.append(Command("Release a file, each record one draw:", shlex.join(apply)))
    steps.append(Command("The matrix with all its digits:", shlex.join(show)))
    return tuple(steps)
