"""The options of `mechdesign apply`, in groups; `quantize` and `releases` share some of them.

A group turns its texts into the keyword arguments of the release: ``--keep age,region --shuffle``
becomes ``KeptOptions(keep=["age,region"], shuffle=True)``, whose `kept_arguments` has the entries
``keep=("age", "region")`` and ``shuffle=True``. `apply_arguments` puts these parts together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mechdesign.cli import table_options
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.parsing import names
from mechdesign.cli.released import PrivateColumns

if TYPE_CHECKING:
    from mechdesign.release.draws import Key


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
