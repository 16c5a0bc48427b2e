"""Commands that read a channel file: `show`, `export`, `measure` and `compose`.

*`mechdesign show CHANNEL`*: the matrix and the codebook, for eyes or for other tools. `show` asks
what the file is: a mechanism file of `quantize` (`mechanism.show_mechanism`) or a channel
(`_show_channel`). Each has a text for people, such as ``clerk: mix-1 89.098 %, mix-2 10.902 %``,
exact decimals as CSV (--csv), and a record (--json).

*`mechdesign export CHANNEL`*: a channel as SQL, as an R script, or as a lookup table. `md.export`
makes the text: a table of the intervals of cumulative integers that each symbol has for its
outputs, and a query that draws by it. Here the text is written to --output, or printed where there
is none; the JSON record then holds the text itself. In the SQL an interval is a line ::

    (0, 0, 8025215638820210, -1, 'clerk', 'mix-1'),

a number below 8025215638820210 (of 2^53) gives a clerk the output mix-1.

*`mechdesign measure CHANNEL`*: the measures of `audit --all-measures` without its verdict. The
command is the older name, kept for scripts; the help does not list it. `AllMeasures` are the
options of `audit` for the same measures. Both call `auditing.measures`, with the orders of the
measures that have some: those of alpha-lift are above 1, those of Sibson's and Arimoto's
information positive. A measure is a line such as ``max_log_lift  0.18233`` (nats).

*`mechdesign compose CHANNEL CHANNEL ..`*: the joint leakage of several releases of one record,
exactly. Draws are independent given the record, so P(y1, y2 | x) = P(y1 | x) P(y2 | x).
`md.compose` bounds the lifts of all pairs (y1, y2) on one table that has the columns of all
channels. Of a channel twice people read ::

                         eps_l    eps_u
    c.json               0.22315  0.18233
    c.json               0.22315  0.18233
    added up (no bound)  0.44629  0.36465
    together             0.29962  0.25912

The sum is no bound: only given the useful symbol are the draws independent, and not given the
sensitive one, so the lift of a pair is not the product of two lifts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.failures import NO
from mechdesign.cli.line import flag, option
from mechdesign.cli.mechanism import is_mechanism, measure_mechanism, show_mechanism
from mechdesign.cli.parsing import names
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.auditing.independent_draws import PeopleTogether
    from mechdesign.auditing.measures import ChannelMeasures


SHOW_EXAMPLE = (
    "Example:  mechdesign show channel.json        For other tools:  mechdesign show "
    "channel.json --csv > W.csv"
)


BROKEN = (
    "its own table disproves the promise of the file, which was edited or damaged: nothing is "
    "released through it (`audit` shows where)"
)
"""The note beside a shown channel that breaks its promise."""


def show(
    reporter: Reporter,
    channel: options.ChannelPath,
    common: options.CommonOptions,
    as_csv: options.AsCsv = False,
) -> int:
    """Print the probabilities of a channel, and the meaning of each output for the useful column.

    With --csv the matrix with exact decimals, a row per useful symbol, as `audit --matrix` reads
    it. A channel of boxes has a matrix for each stratum: these are one long table.
    """
    common.refuse_beside(as_csv)
    if is_mechanism(channel):
        show_mechanism(channel, common, as_csv=as_csv)
        reporter.done("shown", f"{channel} is shown")
        return 0
    kept = _show_channel(channel, common, as_csv=as_csv)
    if kept is False:
        # On standard error too, for whoever reads the matrix alone.
        reporter.notice(BROKEN)
    reporter.done("shown", f"{channel} is shown", satisfied=kept)
    return NO if kept is False else 0


def _show_channel(
    path: str, common: options.CommonOptions, *, as_csv: bool
) -> bool | None:
    """Print a channel; whether it keeps its promise on its own table, None without one."""
    from mechdesign.auditing.stated import keeps_promise
    from mechdesign.report import display

    channel = md.load(path)
    kept = keeps_promise(channel)
    text = display.matrix if as_csv else display.summary
    common.answer(
        lambda: {**display.record(channel), "satisfied": kept}, lambda: text(channel)
    )
    return kept


# ------------------------------------------------------------------------------- export

EXPORT_EXAMPLE = (
    "Example:  mechdesign export channel.json --to sql --dialect postgres --from people "
    "--identity id --output draw.sql"
)

EXACT = (
    "the exported draws have the probabilities of the channel exactly, but no ledger"
)
ROUNDED = (
    "the exported draws have the probabilities of the channel rounded to multiples of 2^-53, for "
    "which its promise was decided again, and no ledger"
)
NO_LEDGER = "nothing stops a second release of a record with another key or channel"


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of the exported file."""

    to: str = option(
        "FORM",
        "sql, r, or csv: the lookup table alone, which the R script reads.",
        "sql",
    )
    dialect: str = option("NAME", "SQL of duckdb, postgres or spark.", "duckdb")
    source: str = option(
        "NAME",
        "Table or view with the records, as the database spells it.",
        "records",
        names="--from",
    )
    identity: str = option(
        "COL",
        "Its column that identifies a record; no two records share a value.",
        "id",
    )
    output: str | None = option(
        "FILE",
        "File to write; default: standard output.",
        names="--output -o",
    )


def export(
    reporter: Reporter,
    channel: options.ChannelPath,
    asked: ExportOptions,
    common: options.CommonOptions,
    force: options.Force = False,
) -> None:
    """Write a channel for a database, for R, or as a lookup table.

    A draw compares 53 bits of a keyed hash of the record's identifier with the integers of the
    channel. The key is a parameter of the query and stands in no file.
    """
    from mechdesign.channel.file import load_without_boxes
    from mechdesign.core.files import check_target
    from mechdesign.release.samplers import recorded_rules
    from mechdesign.report.sentences import cell_sentences

    # Before the channel is loaded: what cannot be written need not be made.
    if asked.output is not None:
        check_target(asked.output, force=force, sources=(channel,))
    if is_mechanism(channel):
        raise InputError(
            f"{channel} is a mechanism file of `quantize`: export takes channel files"
        )
    loaded = load_without_boxes(channel)
    exported = md.export(
        loaded,
        asked.to,
        dialect=asked.dialect,
        table=asked.source,
        identity=asked.identity,
    )
    if asked.output is not None:
        exported.save(asked.output, overwrite=force)
    # On standard error, so that the exported text may go through a pipe.
    law = ROUNDED if exported.lookup.is_rounded else EXACT
    reporter.notice(f"{law}: {NO_LEDGER}")
    rules = recorded_rules([loaded])
    # A statement compares cells as they are, and refuses those that the channel does not know.
    if rules is not None and not rules.cell_form.changes_nothing:
        sentences = " ".join(cell_sentences(rules))
        reporter.notice(
            f"an export takes cells as they are, so bring them into this form first: {sentences}"
        )
    reporter.done("exported", f"{channel} is exported", to=asked.to)
    common.answer(lambda: _record(exported, asked), lambda: _text(exported, asked))


def _record(exported: md.Export, asked: ExportOptions) -> dict[str, object]:
    """The record for --json, with the text where no file was written."""
    record: dict[str, object] = {
        "to": asked.to,
        "dialect": None,
        "intervals": exported.lookup.size,
        "columns": list(exported.lookup.columns),
        "output": asked.output,
    }
    if asked.to == "sql":
        record["dialect"] = asked.dialect
    if asked.output is None:
        record["text"] = exported.text
    return record


def _text(exported: md.Export, asked: ExportOptions) -> str:
    """The exported text itself, or a line on the file that has it."""
    if asked.output is None:
        return exported.text.removesuffix("\n")
    return f"{asked.output}: {exported.summary()}"


# ------------------------------------------------------------------------------ measure

MEASURE_EXAMPLE = "Example:  mechdesign measure channel.json --alpha 2 --alpha 10"


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """Measures beside those that are always printed."""

    alphas: list[float] | None = option(
        "A",
        "Order above 1 of the alpha-lift and its relatives; may be repeated (default 2).",
        names="--alpha",
    )
    orders: list[float] | None = option(
        "R",
        "A further positive order, or inf, of Sibson's and Arimoto's information; may be repeated.",
        names="--order",
    )
    per_output: bool = flag("Print the measures of every output, too (JSON has them).")


@dataclass(frozen=True, kw_only=True)
class AllMeasures:
    """All measures"""

    all_measures: bool = flag(
        "Print every measure of what the channel keeps and of what it leaks, too."
    )
    orders: list[float] | None = option(
        "R",
        "With --all-measures: a further positive order, or inf, of Sibson's and Arimoto's "
        "information, and above 1 of the alpha-lift; may be repeated.",
        names="--order",
    )
    per_output: bool = flag(
        "With --all-measures: the measures of every output, too (JSON has them)."
    )

    def refuse_alone(self) -> None:
        """Raise InputError where an option of the measures stands without them."""
        if not self.all_measures and self != type(self)():
            raise InputError(
                "--order and --per-output choose among all measures: give --all-measures too"
            )

    def of(self, channel: md.Channel, joint: md.Joint) -> ChannelMeasures:
        """Every measure of the channel on the table."""
        from mechdesign.auditing.measures import measure as measures_of

        return measures_of(channel, joint, self._alphas, tuple(self.orders or ()))

    @property
    def _alphas(self) -> tuple[float, ...]:
        """Orders of the alpha-lift: 2, and every other one above 1."""
        # One list of orders serves both kinds: alpha-lift of an order up to 1 is not defined.
        orders = [order for order in self.orders or () if order > 1.0]
        return tuple(dict.fromkeys([2.0, *orders]))


def measure(
    reporter: Reporter,
    channel: options.ChannelPath,
    table: table_options.OtherTable,
    asked: MeasureOptions,
    common: options.CommonOptions,
) -> None:
    """Print every measure of the information that a channel keeps and of what it leaks.

    They are measured on the channel's own table unless another one is given.
    """
    from mechdesign.auditing.measures import measure as measures_of
    from mechdesign.channel.file import load_without_boxes
    from mechdesign.report.terminal import measures_text

    if is_mechanism(channel):
        measure_mechanism(channel, reporter, common)
        return
    loaded = load_without_boxes(channel)
    alphas = tuple(asked.alphas or (2.0,))
    orders = tuple(asked.orders or ())
    notices: tuple[str, ...] = ()
    with reporter.work("measuring"):
        joint = table.read_for(loaded, channel)
        notices = joint.notices
        result = measures_of(loaded, joint, alphas, orders)
    # Notices on a channel's own table were printed when it was designed.
    if table.table is not None:
        reporter.notices(notices)
    reporter.done("measured", f"{channel} is measured")
    common.answer(
        lambda: asdict(result), lambda: measures_text(result, asked.per_output)
    )


# ------------------------------------------------------------------------------ compose

COMPOSE_EXAMPLE = (
    "Example:  mechdesign compose march.json april.json        Of two columns of one table:  "
    "mechdesign compose job.json school.json --table people.csv"
)

ChannelPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="CHANNEL..",
        help="Channel files written by `design`; one file as often as a record is "
        "released through it.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ComposeOptions:
    """Whose records"""

    person: list[str] | None = option(
        "COL[,COL..]",
        "Column(s) of --table that name a person with several records: what all of them tell "
        "together is computed, too.",
    )


def compose(
    reporter: Reporter,
    channels: ChannelPaths,
    asked: ComposeOptions,
    table: table_options.OtherTable,
    common: options.CommonOptions,
) -> None:
    """Compute the joint leakage of several releases of one record, drawn independently.

    Channels of one column and of rows go together. They must be for the same table; channels
    of different columns need a --table that has all of them. Budgets do not simply add: the
    sum is shown beside the exact figures.
    """
    from mechdesign.channel.file import load_without_boxes
    from mechdesign.report.sentences import composition_record, composition_text
    from mechdesign.report.wording import paragraph

    # Before any file is loaded as a channel, whose error would not name the reason.
    for path in channels:
        if is_mechanism(path):
            raise InputError(
                f"{path} is a mechanism file of `quantize`: compose takes channel files"
            )
    loaded = [load_without_boxes(path) for path in channels]
    with reporter.work("composing"):
        joint = table.read(" and ".join(channels), *loaded, together=True)
        composition = md.compose(loaded, joint)
        people = _people(asked, loaded, joint, table)
    if joint is not None:
        reporter.notices(joint.notices)
    reporter.notices(_average_notices(channels, loaded))
    reporter.done("composed", f"{len(loaded)} releases are composed")
    record = composition_record(composition)
    is_of_people = any(channel.useful.people is not None for channel in loaded)
    subject = "All records of a person" if is_of_people else "A record"
    text = composition_text(composition, channels, subject)
    if people is not None:
        together, sentence = people
        record["people"] = asdict(together)
        text += "\n" + paragraph(f"{sentence[0].upper()}{sentence[1:]}.")
    common.answer(lambda: record, lambda: text)


def _people(
    asked: ComposeOptions,
    channels: list[md.Channel],
    joint: md.Joint | None,
    table: table_options.OtherTable,
) -> tuple[PeopleTogether, str] | None:
    """What all records of a person in the table tell together, and in words."""
    from mechdesign.leaks.people_notice import composed_for_people, together_sentence

    if asked.person is None:
        return None
    if table.table is None:
        raise InputError(
            "--person names a column of the records: give --table TABLE too"
        )
    person = names("--person", asked.person)
    together = composed_for_people(table.table, channels, joint, person, table.text())
    sensitive = channels[0].sensitive
    columns = () if sensitive is None else sensitive.columns
    return together, together_sentence(together, person, columns)


def _average_notices(paths: list[str], channels: list[md.Channel]) -> list[str]:
    """That averages of single releases bound nothing about all of them together."""
    averaged: list[str] = []
    for path, channel in zip(paths, channels, strict=True):
        if channel.record.averages and path not in averaged:
            averaged.append(path)
    if not averaged:
        return []
    return [
        f"{' and '.join(averaged)}: a budget on an average is one of each release alone; what all "
        "of them leak together on average is not computed, and may exceed the sum"
    ]
