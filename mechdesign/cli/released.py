"""Options of commands on released files: columns, the published form, and how the file is read.

`apply` writes a file, `check`, `estimate` and `inspect` read one, so they share these groups:
whoever checks a file gives the same options as whoever released it. Each group turns itself into
keyword arguments (`arguments`) of the function of Python that does the work: ``--column job=beruf``
becomes ``columns={"job": "beruf"}``, as the file calls the channel's column job "beruf".

*Options of `apply`*: `quantize` and `releases` share some. A group turns its texts into the keyword
arguments of the release: ``--keep age,region --shuffle`` becomes
``KeptOptions(keep=["age,region"], shuffle=True)``, whose `kept_arguments` has the entries
``keep=("age", "region")`` and ``shuffle=True``. `apply` puts these parts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import mechdesign as md
from mechdesign.cli import parsing, table_options
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.parsing import names
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted

if TYPE_CHECKING:
    from mechdesign.release.draws import Key


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
    person: list[str] | None = option(
        "COL[,COL..]",
        "Column(s) that name a person with several records, which must be those of the "
        "channel.",
    )
    wave: str | None = option(
        "COL", "With --person: the column that orders a person's records."
    )

    def check_people(self, channels: Sequence[Any]) -> None:
        """Raise InputError where --person and --wave are not what the channels say."""
        if self.person is None:
            if self.wave is not None:
                raise InputError(
                    "--wave orders the records of a person: give --person too"
                )
            return
        asked = parsing.names("--person", self.person)
        for channel in channels:
            people = getattr(channel, "people", None)
            if people is None:
                raise InputError(
                    f"--person {','.join(asked)} names people with several records, and the "
                    "promise of the channel is about each record alone: design one with --person"
                )
            in_file = [self.renamed.get(name, name) for name in people.person]
            if {*asked} not in ({*people.person}, {*in_file}):
                raise InputError(
                    f"--person names {listed(asked)}, and the people of the channel are those of "
                    f"{listed(people.person)}: leave --person out, say how the file calls them "
                    "(--column NAME=COL), or design a channel for these people"
                )
            waves = (None, people.wave, self.renamed.get(people.wave, people.wave))
            if self.wave not in waves:
                own = "by no column, but as they stand in the table"
                if people.wave is not None:
                    own = f"by {quoted(people.wave)}"
                raise InputError(
                    f"--wave names {quoted(self.wave)}, and the channel orders the records of a "
                    f"person {own}: leave --wave out, or design a channel with it"
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


FORM = (
    "Form of the released values: label (the output of the channel), posterior-draw (a "
    "symbol drawn from what the output leaves possible; keeps the frequencies of the "
    "symbols). Of a column in bins also representative (the median of what the output "
    "stands for) or within (one of the table's numbers in the bin that was drawn)."
)


@dataclass(frozen=True, kw_only=True)
class PublishedForm:
    """What is published"""

    form: str = option("WHAT", FORM, "label", names="--as")


@dataclass(frozen=True, kw_only=True)
class ReleasedForm:
    """What is published"""

    form: str | None = option(
        "WHAT",
        f"{FORM} Default: what the manifest says that lies beside the file, or else label.",
        names="--as",
    )


@dataclass(frozen=True, kw_only=True)
class CellPolicy:
    """What is published"""

    missing: str | None = option(
        "WHAT",
        "Treatment of empty cells: refuse, marginal (drawn as for a record of which nothing is "
        "known), output:LABEL, or symbol (the channel has one for them). Default: as the channel "
        "was designed.",
        names="--missing --null",
    )
    unknown: str | None = option(
        "WHAT",
        "The same for symbols that the channel does not have: refuse, marginal, output:LABEL, or "
        "for rows of several columns nearest (a draw of the nearest known row).",
    )
    normalise: str | None = option(
        "FORM",
        "Unicode form to compare symbols in: none, NFC, NFD, NFKC, NFKD. Default: as the channel "
        "was designed.",
    )
    trim: bool = flag("Compare symbols without blanks at their ends.")
    missing_codes: str | None = option(
        "TEXT[,TEXT..]", "Cells with these texts are empty ones."
    )

    def policy(self, channels: Sequence[object] = ()) -> md.Policy | None:
        """The policy of the options; what they leave open is that of the channels.

        None where they leave all open.
        """
        from mechdesign.release.samplers import Policy, recorded_rules

        given: dict[str, Any] = {}
        for name in ("missing", "unknown", "normalise"):
            value = getattr(self, name)
            if value is not None:
                given[name] = value
        if self.trim:
            given["trim"] = True
        if self.missing_codes is not None:
            given["missing_codes"] = parsing.codes(self.missing_codes)
        if not given:
            return None
        return replace(Policy.recorded(recorded_rules(channels, given)), **given)


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(CellPolicy, PublishedForm):
    """What is published"""

    def arguments(self, channels: Sequence[object] = ()) -> dict[str, Any]:
        """Keyword arguments of a release through these channels."""
        return {"form": self.form, "policy": self.policy(channels)}


@dataclass(frozen=True, kw_only=True)
class CheckedForm(CellPolicy, ReleasedForm):
    """What is published"""

    def arguments(self, channels: Sequence[object] = ()) -> dict[str, Any]:
        """Keyword arguments of the check of a release through these channels."""
        return {"form": self.form, "policy": self.policy(channels)}


@dataclass(frozen=True, kw_only=True)
class OtherCells:
    """Records without a symbol"""

    missing: str | None = option(
        "WHAT",
        "What was released for empty cells: refuse, marginal or output:LABEL, as to `apply`. "
        "Default: what the manifest says that lies beside the file, or else the channel.",
    )
    unknown: str | None = option(
        "WHAT", "The same for symbols that the channel does not have."
    )
    missing_share: str | None = option(
        "SHARE",
        "Share of the records that had an empty cell. Without it there are bounds alone.",
    )
    unknown_share: str | None = option(
        "SHARE", "Share of the records that had an unknown symbol."
    )
    manifest: str | None = option(
        "FILE",
        "The manifest of the release, if it is not beside it; the internal one has both shares.",
    )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of an estimate from a file."""
        from mechdesign.release.samplers import REFUSE, Policy

        policy: Policy | None = None
        if self.missing is not None or self.unknown is not None:
            policy = Policy(
                missing=self.missing or REFUSE, unknown=self.unknown or REFUSE
            )
        shares: dict[str, float | None] = {}
        for name in ("missing_share", "unknown_share"):
            value = getattr(self, name)
            if value is not None:
                option_name = f"--{name.replace('_', '-')}"
                shares[name] = parsing.number(option_name, value, zero=True)
        return {"policy": policy, "manifest": self.manifest, **shares}


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


# --------------------------------------------------------------------- options of apply


@dataclass(frozen=True, kw_only=True)
class Files:
    """What is read and written."""

    source: str = argument(
        "IN",
        "CSV or Parquet file with the useful column, - for standard input; or a folder, a 'glob' "
        "of files, or a URL.",
    )
    target: str = argument(
        "OUT",
        "Where to write the released columns; - is standard output, or a URL. "
        "Of a folder a folder.",
    )


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """Which columns"""

    drop: list[str] | None = option(
        "COL[,COL..]", "Leave these columns out (with --keep all); may be repeated."
    )
    keep: list[str] | None = option(
        "COL[,COL..]|all",
        "Other columns of the output: those named, whatever they disclose, or all, of which those "
        "that copy the useful or sensitive column are refused. By default none; may be repeated.",
    )
    shuffle: bool = flag(
        "Write the records in random order, the same whenever the job runs. Without it a file is "
        "refused whose order tells of the useful column."
    )
    keep_order: bool = flag("Keep such an order knowingly.")

    def kept_arguments(self) -> dict[str, Any]:
        """Keyword arguments of a release of a file."""
        return {
            "drop": names("--drop", self.drop),
            "keep": names("--keep", self.keep),
            "shuffle": self.shuffle,
            "keep_order": self.keep_order,
        }


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(KeptOptions, PrivateColumns):
    """Which columns"""

    also: list[str] | None = option(
        "CHANNEL", "Another channel for another column; may be repeated."
    )
    add: list[str] | None = option(
        "NAME[,NAME..]",
        "Add the released column at the end and keep the original (no release yet); once for each "
        "channel.",
    )

    def release_arguments(self) -> dict[str, Any]:
        """Keyword arguments of a release of a file."""
        into = None
        if self.add is not None:
            into = [names("--add", [name]) for name in self.add]
        return {**self.arguments(), **self.kept_arguments(), "into": into}


@dataclass(frozen=True, kw_only=True)
class LedgerOption:
    """Draws and the ledger"""

    ledger: str | None = option(
        "FILE",
        "Ledger of releases; its key lies beside it. Default: in the user's data folder.",
        names="--ledger --job",
    )
    key_from: str | None = option(
        "WHERE",
        "Where the key of the ledger is, if not beside it: env:NAME, fd:N (an open file "
        "descriptor) or a key FILE.",
    )

    @property
    def key(self) -> Key | None:
        """The key of the ledger, where it is kept elsewhere."""
        from mechdesign.jobs.keys import key_from

        return None if self.key_from is None else key_from(self.key_from)


@dataclass(frozen=True, kw_only=True)
class JobOptions(LedgerOption):
    """Draws and the ledger"""

    identity: str | None = option(
        "COL[,COL..]",
        "Column(s) that identify a record: it keeps its draw in whatever order or file it comes. "
        "Default: its row number.",
    )
    changed: str = option(
        "WHAT",
        "Treatment of records whose symbol has changed since they were released, with --identity: "
        "refuse, keep (the old output) or redraw (which tells more of them; says how much).",
        "refuse",
    )
    fresh_draw: bool = flag(
        "Draw anew what was released before: two draws of a record can tell far more than one; "
        "says how much."
    )
    draws: str | None = option(
        "WHICH",
        "fixed (every row released exactly as often as expected; the default where IN is "
        "the table of the design) or independent (a draw of its own for each record).",
    )
    unit: str | None = option(
        "record",
        "Release record by record although a column that identifies them, or stays, names people "
        "with several records: the promise is then about each record alone.",
    )
    nights: int = option(
        "N",
        "With a channel for people: how many releases of new records each person may have, by the "
        "ledger; says what all tell together.",
        1,
    )
    dry_run: bool = flag("Check everything, the ledger too, and write nothing.")
    insecure_seed: int | None = option(
        "N", "Draws without a ledger, for tests: anybody who knows N can undo them."
    )


@dataclass(frozen=True, kw_only=True)
class SideOptions:
    """What else is written"""

    manifest: str | None = option(
        "FILE",
        "What was done, what is promised and what voids it; may go with the data (default "
        "OUT.manifest.json).",
    )
    internal_manifest: str | None = option(
        "FILE",
        "The same with hashes and counts of the original data: not to be given away.",
    )
    codebook: str | None = option(
        "FILE", "CSV of the symbols that each output stands for, and how likely."
    )
    strict: bool = flag(
        "Whatever would be noted is an error (exit code 2), and nothing is written."
    )


@dataclass(frozen=True, kw_only=True)
class OutputFormat(table_options.TextFormat):
    """How a CSV file is written"""

    compress: str | None = option(
        "NAME",
        "gzip or zstd, for a CSV; default by OUT's ending (.gz, .zst). Packed input is recognised.",
    )
    format: str | None = option(
        "NAME", "csv or parquet: what OUT is. Cells of a CSV become text in Parquet."
    )
    escape_formulas: bool = flag(
        "In a CSV, an apostrophe before cells that spreadsheets take for formulas."
    )
