"""`mechdesign export CHANNEL`: a channel as SQL, as an R script, or as a lookup table.

`md.export` makes the text: a table of the intervals of cumulative integers that each symbol
has for its outputs, and a query that draws by it. Here the text is written to --output, or printed
where there is none; the JSON record then holds the text itself. In the SQL an interval is a line ::

    (0, 0, 8025215638820210, -1, 'clerk', 'mix-1'),

a number below 8025215638820210 (of 2^53) gives a clerk the output mix-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import mechdesign as md
from mechdesign.cli import options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import option
from mechdesign.cli.mechanism import is_mechanism
from mechdesign.core.errors import InputError

EXAMPLE = (
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
    from mechdesign.report.section_sentences import cell_sentences

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
