"""The options of `mechdesign design`: budget, search, objective, rows and files.

`design` first calls the `check` of each group, before the table is read. Then `DesignOptions.on`
and `ObjectiveOptions.on` put their options into a `DesignRequest`, and `DesignBudget.on` its
notion. The budget comes last, because --max-posterior finds the notion by the table: with
--max-posterior 0.9 and a sensitive value that 60 % of the records have, no lift may exceed
0.9 / 0.6, so eps_u is log 1.5. The budget of --keep is found by designing (`budget.keeping`).

*Arguments*: the command line of `design` as one value. `design` takes its options in groups, as
typer needs them. Its steps, and those of a design of boxes, need most of the groups, so these
travel together as `DesignArguments`. `design` makes it once, and a step takes from it what it
needs, as in ``arguments.budget.on(request)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import mechdesign as md
from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.line import COMMAND, command_line, flag, option
from mechdesign.cli.options import ReportOptions
from mechdesign.core.arguments import share_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.notions import NOTIONS

if TYPE_CHECKING:
    from mechdesign.formats.csv_text import TextOptions
    from mechdesign.mechanisms.request import DesignRequest


@dataclass(frozen=True, kw_only=True)
class DesignBudget(options.BudgetOptions):
    """What is promised"""

    max_posterior: str | None = option(
        "SHARE", "No sensitive value becomes more probable than this share."
    )
    keep: str | None = option(
        "SHARE",
        "Find the smallest epsilon that keeps this share of the information, in four digits; with "
        "--release this share of the cells, in three; and no other budget. With --average KIND: "
        "find the least average.",
    )

    average: list[str] | None = option(
        "KIND=BUDGET",
        "A budget on an average over released values, alone or beside a notion: mi=0.05 (nats), "
        "mi=25% of what the column itself tells; tv, chi2, maximal-leakage; guess=42% for right "
        "guesses; GAINS.csv=0.4 for what guesses gain. It promises nothing about one record. May "
        "be repeated.",
    )

    def check(self) -> None:
        """Refuse budgets that contradict each other, before the table is read."""
        if self.average is not None:
            self._check_average()
            return
        for name, share in (
            ("--max-posterior", self.max_posterior),
            ("--keep", self.keep),
        ):
            if share is not None:
                share_of(name, share)
        if self.max_posterior is not None and self.budget:
            raise InputError(
                "--max-posterior is for every symbol alike: leave out --budget"
            )
        if self.keep is None:
            # The budget of --max-posterior depends on the table: any number stands in for it.
            upper = None
            if self.max_posterior is not None:
                upper = 1.0
            self.notion_or("alip", upper)
            return
        if self != DesignBudget(
            notion=self.notion, lam=self.lam, alpha=self.alpha, keep=self.keep
        ):
            raise InputError(
                "--keep looks for the smallest budget: leave out every other budget"
            )
        # Any epsilon does: this refuses an unknown notion, or a lam that the notion does not take.
        self.at("1")

    @property
    def is_missing(self) -> bool:
        """Whether no option limits what may be disclosed."""
        # These three say of what kind a budget is, and not how large it is.
        return self == DesignBudget(notion=self.notion, lam=self.lam, alpha=self.alpha)

    @property
    def kind(self) -> type[md.Notion]:
        """The class of the notion."""
        return NOTIONS[self.notion or "alip"]

    @property
    def provisional(self) -> md.Notion:
        """A notion of this kind, for a request whose budget is not known yet: that of
        --max-posterior and of --keep is found by the table.
        """
        return self.kind.at(1.0)

    @property
    def is_searched(self) -> bool:
        """Whether the budget is the smallest one that keeps a share, among those of `at`."""
        return self.keep is not None and self.average is None

    def on(self, request: DesignRequest) -> DesignRequest:
        """The request with this budget in the place of its notion."""
        from mechdesign.mechanisms.average_budgets import NO_PROMISE
        from mechdesign.mechanisms.budget import posterior_budget

        if self.average is not None:
            # An average may stand alone: then single lifts have no bound.
            notion = NO_PROMISE
            if not self._is_average_alone:
                notion = replace(self, average=None, keep=None).notion_or("alip")
            average = parsing.averages_of(self.average, self.keep)
            return replace(request, notion=notion, average=average, keep=self.keep)
        upper = None
        if self.max_posterior is not None:
            upper = posterior_budget(request, self.max_posterior)
        return replace(request, notion=self.notion_or("alip", upper))

    @property
    def _is_average_alone(self) -> bool:
        """Whether no promise on single lifts was asked for."""
        return self == DesignBudget(average=self.average, keep=self.keep)

    def _check_average(self) -> None:
        """Refuse averages that cannot be read, and budgets that no design has beside them."""
        parsing.averages_of(self.average or (), self.keep)
        if self.keep is not None:
            share_of("--keep", self.keep)
        if self.max_posterior is not None:
            raise InputError(
                "--average is not built with --max-posterior: leave one of them out"
            )
        # Beside an average there may be a notion, which is checked here by being made.
        if not self._is_average_alone:
            replace(self, average=None, keep=None).notion_or("alip")

    def at(self, epsilon: str) -> md.Notion:
        """The notion at an epsilon, of the kind and with the lam that are asked for."""
        return replace(self, keep=None, epsilon=epsilon).notion_or("alip")


@dataclass(frozen=True, kw_only=True)
class DesignOptions(options.SearchOptions):
    """How it is found"""

    mechanism: str = option(
        "NAME",
        "Mechanism: optimal, subset-response, subset-merging, complete-merging.",
        "optimal",
    )
    no_fallback: bool = flag(
        "If the search for the optimum fails, exit with 3 instead of using subset merging."
    )
    allow_identifier: bool = flag("Allow a column that is almost an identifier.")

    def on(self, request: DesignRequest) -> DesignRequest:
        """The request with these options."""
        return replace(
            request,
            mechanism=self.mechanism,
            method=self.method,
            enumerate=self.enumerate,
            gap=self.smallest_gap,
            time_limit=self.seconds,
            fallback=not self.no_fallback,
            allow_identifier=self.allow_identifier,
        )


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions(options.KeptOptions):
    """What is kept"""

    objective: str | None = option(
        "NAME|FILE",
        "What to keep: information (free outputs); or, on symbols of the column itself, truth "
        "(most records as they are), distance (numbers moved least), or a CSV of costs with "
        "the symbols in header and first column. Or what the records are for (free outputs): "
        "frequencies, prefix, ranges (least variance of estimates), a CSV of queries whose first "
        "column is 'query', or task. Default: information; with --release truth.",
    )
    task: str | None = option(
        "COL",
        "With --objective task: keep most information about this column of the table, which is "
        "not released.",
    )
    stay: list[str] | None = option(
        "[SYMBOL=]SHARE",
        "Least probability that a symbol is released as it is: of one symbol, or of all; may be "
        "repeated.",
    )
    forbid: list[str] | None = option(
        "FROM:TO", "Never release TO for FROM; may be repeated."
    )

    @property
    def named(self) -> bool:
        """Whether the objective has a name and is no file."""
        from mechdesign.mechanisms.queries import PURPOSES

        return self.name in ("information", "truth", "distance", *PURPOSES)

    @property
    def name(self) -> str:
        """The objective where it is named, else that of a release of one column."""
        return self.objective or "information"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The file of costs or queries, if there is one."""
        return () if self.named else (self.name,)

    def shown(self) -> ObjectiveOptions:
        """As a line that everybody may read has them: without the place of a file."""
        if self.named:
            return self
        # The line stands in a channel file, which may be given away.
        return replace(self, objective="COSTS.csv")

    def task_of(
        self, table: table_options.InputTable, useful: tuple[str, ...] | None = None
    ) -> md.Joint | None:
        """The table of the task column and the useful ones, read like the table itself.

        `useful` are these where no option names them.
        """
        columns = self.task_table(table)
        if columns is None:
            return None
        from mechdesign.mechanisms.purposes import check_not_released

        released = useful or parsing.names("--useful", table.useful)
        check_not_released(parsing.names("--task", self.task), released)
        return columns.joint(columns.table, useful=useful)

    def task_table(
        self, table: table_options.InputTable
    ) -> table_options.InputTable | None:
        """The options of the table with the task in the place of the sensitive column; None without
        a task.
        """
        if self.task is None:
            return None
        if table.contingency or table.probabilities:
            raise InputError(
                "--task needs a table of records: a wide table has no third column"
            )
        if table.table == "-":
            raise InputError("--task reads the table twice: give a file, not -")
        # The task takes the place of the secret only to be counted with the useful column: nothing
        # of it is protected.
        return replace(table, sensitive=self.task, protect_each=False)

    def on(
        self,
        request: DesignRequest,
        table: table_options.InputTable,
        text: TextOptions,
        useful: tuple[str, ...] | None = None,
    ) -> DesignRequest:
        """The request with these options; `text` is how a file of costs or queries is written,
        `useful` the columns of a release of rows.
        """
        from mechdesign.mechanisms.least_cost_objective import read_costs
        from mechdesign.mechanisms.queries import is_queries_file, read_queries

        # Costs have the symbols in header and first column, queries their names in a first column
        # called "query": the header of the file decides which it is.
        symbols = request.joint.useful.names
        objective: Any = self.objective
        if not self.named:
            if is_queries_file(self.name, text):
                objective = read_queries(self.name, symbols, text)
            else:
                objective = read_costs(self.name, text)
        asked = replace(
            request,
            objective=objective,
            task=self.task_of(table, useful),
            distance=self.distance,
            keep_frequencies=self.keeps_law,
            stay=parsing.stays_of(self.stay, symbols),
            forbid=parsing.pairs_of(self.forbid, _known(request)),
        )
        # A request does not know whether False was said, and with free outputs it is the default.
        is_column = not asked.publishes_rows
        if self.free_frequencies and is_column and asked.has_free_outputs:
            raise InputError(
                "--free-frequencies is for channels on the column's own symbols: say what these "
                "should cost with --objective truth, distance or COSTS.csv"
            )
        return asked


def _known(request: DesignRequest) -> tuple[str, ...]:
    """What --forbid may name: symbols; of rows also cells, and cells with their column."""
    useful = request.joint.useful
    known = dict.fromkeys(useful.names)
    if request.publishes_rows:
        for column, cells in zip(
            useful.columns, zip(*useful.symbols, strict=True), strict=True
        ):
            for cell in cells:
                known[cell] = None
                known[f"{column}={cell}"] = None
    return tuple(known)


@dataclass(frozen=True, kw_only=True)
class RowOptions(table_options.RowColumns):
    """Release rows"""

    person: list[str] | None = option(
        "COL[,COL..]",
        "With --release: the column(s) that name a person with several records. The promise is "
        "then about all records of a person together.",
    )
    wave: str | None = option(
        "COL", "With --person: the column that orders a person's records."
    )
    sensitive_of: str = option(
        "WHAT",
        "With --person: person (the secret is one value of a person) or sequence (of its values "
        "in all records).",
        "person",
    )

    never: list[str] | None = option(
        "A=a,B=b",
        "With --release: a combination of cells that is never released; may be repeated.",
    )
    column_weight: list[str] | None = option(
        "COL=W",
        "With --release: what a changed cell of a column costs, in proportion (default 1); may be "
        "repeated.",
    )
    smallest_group: str | None = option(
        "K",
        "With --release: only rows that at least K records have are released, each at least K "
        "times (default: 5 where such rows hold half of the records, else 1).",
    )
    known: list[str] | None = option(
        "COL[,COL..]",
        "With --smallest-group: the columns that an outsider can know; default: all released.",
    )
    cells: str | None = option(
        "N",
        "With --release and --confidence: number of boxes of rows; by default a slice "
        "of the records chooses.",
    )
    rare: str | None = option(
        "auto|N",
        "With --confidence, and --release or --merge-rare: sensitive values of fewer records are "
        "promised together; auto (--merge-rare) takes the fewest with which half is kept.",
    )
    fill: bool = flag(
        "With --release and --confidence: release rows of the table drawn within the released box."
    )

    slice_seed: str | None = option(
        "N",
        "With --confidence, and --release or --merge-rare: repeat the draw of the slice of an "
        "earlier design. Do not choose it by its result.",
    )

    merge_rare: str | None = option(
        "auto|N",
        "With --useful and --confidence: merge useful symbols on a tenth of the "
        "records, and prove the promise on the others; auto chooses the sets, N "
        "merges symbols of fewer than N records.",
    )

    def not_released(self) -> tuple[str, ...]:
        """Columns with another role, which ``--release all`` leaves out."""
        wave = () if self.wave is None else (self.wave,)
        return (*self.person_columns(), *wave)

    def person_columns(self) -> tuple[str, ...]:
        """The columns that name a person; none where each record is one of its own."""
        return parsing.names("--person", self.person)

    def people(
        self,
        table: table_options.InputTable,
        columns: tuple[str, ...],
        earlier: Sequence[md.Channel] = (),
    ) -> md.Joint:
        """The table of people, whose records have these given and released columns, and those of
        earlier releases.
        """
        from mechdesign.mechanisms import combinations
        from mechdesign.mechanisms.people_request import bins_of_people
        from mechdesign.tables.people_tables import PeopleRoles, read_people
        from mechdesign.tables.reading import columns_named

        if table.weight:
            combinations.check(combinations.PEOPLE, {"weight": "--weight"})
        header = table.header()
        sensitive = parsing.columns("--sensitive", table.sensitive)
        if sensitive is None:
            raise InputError("--sensitive COL is missing: which column?")
        given = self.given_columns()
        roles = PeopleRoles(
            person=columns_named(self.person_columns(), header),
            wave=self.wave,
            sensitive=columns_named(sensitive, header),
            released=columns_named(columns[len(given) :], header),
            given=columns_named(given, header),
            # `People` refuses any other word.
            sensitive_of=cast("Any", self.sensitive_of),
            bins=bins_of_people(parsing.bins_of(table.bins), columns),
        )
        roles = roles.widened([channel.useful for channel in earlier])
        joint = read_people(
            table.table, roles, table.missing, table.text(), table.cell_form()
        )
        return joint.protecting_each() if table.protect_each else joint

    @property
    def merging(self) -> bool:
        """Whether symbols of one column are to be merged."""
        return self.merge_rare is not None

    def refuse_alone(self) -> None:
        """Refuse options of rows without --release."""
        # --merge-rare has two of these options in common with --release.
        only_of_rows = self
        if self.merging:
            only_of_rows = replace(self, merge_rare=None, rare=None, slice_seed=None)
        if only_of_rows != type(self)() and not self.asked:
            raise InputError(
                "--given, --leave-out, --promise, --person, --wave, --sensitive-of, --never, "
                "--column-weight, --smallest-group, --known, --cells, --rare, --slice-seed and "
                "--fill belong to a release of rows: give --release COL,.. too"
            )
        if self.person is None and (self.wave or self.sensitive_of != "person"):
            raise InputError(
                "--wave and --sensitive-of belong to people with several records: give --person "
                "COL too"
            )

    def on(self) -> dict[str, Any]:
        """The fields of a request that these options set, but for the columns."""
        return {
            "promise": self.promise,
            "never": self.combinations(),
            "column_weights": self.weights(),
            "smallest_group": self.count("--smallest-group", self.smallest_group),
            "known": parsing.names("--known", self.known),
            "cells": self.count("--cells", self.cells),
            "merge_rare": self.count_or_auto("--merge-rare", self.merge_rare),
            "rare": self.count_or_auto("--rare", self.rare),
            "fill": self.fill,
            "slice_seed": self.count("--slice-seed", self.slice_seed),
        }

    def combinations(self) -> list[dict[str, str]]:
        """The combinations of cells that are never released."""
        return [parsing.assignments_of("--never", text) for text in self.never or ()]

    def weights(self) -> dict[str, str] | None:
        """The weight of each column that has one of its own."""
        weights: dict[str, str] = {}
        for text in self.column_weight or ():
            weights |= parsing.assignments_of("--column-weight", text)
        return weights or None

    def count_or_auto(self, name: str, text: str | None) -> int | str | None:
        """A whole number among the options, or the word auto."""
        return text if text == "auto" else self.count(name, text)

    def count(self, name: str, text: str | None) -> int | None:
        """A whole number among the options."""
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise InputError(
                f"{name} ({quoted(text)}) must be a whole number"
            ) from None


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is written"""

    output: str | None = option(
        "FILE", "The channel file.", public=options.PUBLIC_CHANNEL, names="--output -o"
    )
    public: bool = flag(
        "Leave the table out of the channel file: with it, whatever else discloses the table.",
        public="",
    )
    unit: str | None = option(
        "record",
        "The promise is knowingly about each record alone, although the table has people with "
        "several records (else --person).",
    )
    unknown: str = option(
        "WHAT",
        "What `apply` releases for a symbol that the table does not have, unless it is told "
        "otherwise: refuse, marginal, output:LABEL; with --release also nearest (a draw of the "
        "nearest known row).",
        "refuse",
    )
    full: bool = flag(
        "Print all sections: causes and remedies, and bounds on other measures.",
        again=False,
    )
    all_measures: bool = flag(
        "Print the promised and the attained value of every measure of leakage: all sections, too.",
        again=False,
    )

    def check(self, sources: tuple[str, ...], *, force: bool) -> None:
        """Find out before the work what cannot be written."""
        if self.unit not in (None, "record"):
            raise InputError(
                f"--unit ({self.unit!r}) must be record; people with several records are named "
                "with --person"
            )
        if self.public and self.output is None:
            raise InputError(
                "--public says how the channel file is written: give --output FILE too"
            )
        if self.output is not None:
            from mechdesign.core.files import check_target

            check_target(self.output, force=force, sources=sources)


# ---------------------------------------------------------------------------- arguments


@dataclass(frozen=True, kw_only=True)
class DesignArguments:
    """The groups of options on the command line of `design`; they travel together."""

    table: table_options.InputTable
    budget: DesignBudget
    confidence: options.ConfidenceOptions
    after: options.AfterOptions
    rows: RowOptions
    search: DesignOptions
    objective: ObjectiveOptions
    output: OutputOptions
    reports: ReportOptions
    common: options.CommonOptions
    force: bool

    @property
    def inputs(self) -> tuple[str, ...]:
        """All files that the design reads, none of which may be replaced."""
        earlier = tuple(self.after.after or ())
        files = self.table.inputs + self.confidence.inputs + earlier
        return files + self.objective.inputs

    @property
    def writes_or_prints_json(self) -> bool:
        """Whether somebody waits for a channel, and not for advice."""
        wants_file = self.output.output is not None or self.reports.asked
        return wants_file or self.common.as_json

    @property
    def as_if_written(self) -> OutputOptions:
        """The output options for the line that makes the channel again, which names a file."""
        return replace(self.output, output=self.output.output or options.PUBLIC_CHANNEL)

    def line(self, objective: ObjectiveOptions, *, public: bool = False) -> str:
        """The command that repeats the design; a `public` one names no files of the user."""
        groups = (
            self.table,
            self.budget,
            self.confidence,
            self.after,
            self.rows,
            self.search,
            objective,
            self.as_if_written,
        )
        return command_line("design", *groups, public=public)

    @property
    def recorded(self) -> dict[str, str]:
        """What a channel records of the command that made it."""
        # A line for others, because the channel file may be given away.
        return {COMMAND: self.line(self.objective.shown(), public=True)}

    @property
    def written(self) -> list[str]:
        """Lines on the files that were written and the next command."""
        path = self.output.output
        if path is not None:
            lines = [
                f"Written to {path}. Next:  mechdesign apply {path} IN.csv OUT.csv"
            ]
        elif self.reports.asked:
            lines = [
                "The channel was not written; --output channel.json keeps this channel."
            ]
        else:
            lines = ["Nothing was written; --output channel.json keeps this channel."]
        if self.reports.asked:
            lines += self.reports.text().split("\n")
        return lines
