"""`mechdesign releases`: past releases in the ledger, and their total for one data set.

`_list` prints a line for each column of each release: ::

    when (UTC)        data      records  column  channel  draw  from        to
    2026-11-27 10:12  15ac92ae      400  job     c.json      1  people.csv  out.csv

`_total` finds the releases of the records of one file by their content, and adds them up
(`jobs.past_releases`). Two releases with the same number under `draw` gave each record the same
draw (`_draw_numbers`), so together they tell no more than one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, option
from mechdesign.cli.parsing import names
from mechdesign.cli.released import LedgerOption
from mechdesign.core.errors import InputError
from mechdesign.core.wording import about_percent

if TYPE_CHECKING:
    from mechdesign.jobs.ledger import Entry

RELEASES_EXAMPLE = (
    "Example:  mechdesign releases        "
    "Of one file:  mechdesign releases total people.csv"
)

TOTAL = "total"


@dataclass(frozen=True, kw_only=True)
class ReleasesOptions(LedgerOption):
    """Draws and the ledger"""

    what: str | None = argument(
        TOTAL, "Add up what the records of DATA were released through.", default=None
    )
    data: str | None = argument(
        "DATA", "CSV or Parquet, in any order and packing.", default=None
    )
    person: list[str] | None = option(
        "COL[,COL..]",
        "Column(s) of DATA that name a person with several records: what all that was released of "
        "a person tells together.",
    )
    channel: list[str] | None = option(
        "CHANNEL", "Where a channel file is now that has moved; may be repeated."
    )


def releases(
    reporter: Reporter,
    asked: ReleasesOptions,
    table: table_options.OtherTable,
    common: options.CommonOptions,
) -> None:
    """List past releases, or total their leakage for one data set.

    A data set is known by the content of its records, wherever it lies now and however
    it is sorted or packed. Releases of several columns are added up over a --table that
    has all of them.
    """
    from mechdesign.jobs.ledger_file import default_path, refuse_lone_key

    if table.table is not None and asked.data is None:
        raise InputError(
            "--table is for `releases total DATA`: leave it out of the list"
        )
    if asked.what not in (None, TOTAL) or (asked.what is None) != (asked.data is None):
        raise InputError(
            "give `releases` alone for a list, or `releases total DATA` for one data set"
        )
    path = Path(asked.ledger or default_path())
    if not path.exists():
        # Its key says that there was a ledger, of which nothing is known.
        refuse_lone_key(path)
    # A default ledger that is not there yet has an empty list; one that was named is a mistake.
    if not path.exists() and (asked.ledger is not None or asked.data is not None):
        raise InputError(
            f"there is no ledger {path}: nothing has been released with it"
        )
    if asked.data is None:
        _list(reporter, path, asked, common)
    else:
        _total(reporter, path, asked, asked.data, table, common)


def _list(
    reporter: Reporter,
    path: Path,
    asked: ReleasesOptions,
    common: options.CommonOptions,
) -> None:
    """Print all releases of the ledger."""
    from mechdesign.jobs.ledger import Ledger
    from mechdesign.jobs.past_releases import draws_apart

    entries: list[Entry] = []
    if path.exists():
        ledger = Ledger(path, key=asked.key)
        with ledger.reading() as db:
            entries = draws_apart(db, ledger, ledger.releases(db))
    text = f"No release is known ({path})."
    if entries:
        text = "\n".join(_table(entries))
    reporter.done("listed", f"{len(entries)} releases are known")
    common.answer(
        lambda: {"ledger": str(path), "releases": _records(entries)},
        lambda: text,
    )


def _total(
    reporter: Reporter,
    path: Path,
    asked: ReleasesOptions,
    data: str,
    table: table_options.OtherTable,
    common: options.CommonOptions,
) -> None:
    """Print the releases of one data set, and the joint budget of all its draws."""
    from mechdesign.channel.file import load
    from mechdesign.jobs.ledger import Ledger
    from mechdesign.jobs.past_releases import history_of
    from mechdesign.report.wording import paragraph

    # The ledger has the place where a channel file was; one that has moved is known by its digest.
    moved = [load(file) for file in asked.channel or []]
    person = names("--person", asked.person)

    def whole_table(channels: Sequence[md.Channel]) -> md.Joint | None:
        return table.read("a channel", *channels, together=True)

    # Without --table, releases of several columns are not added up: their joint leakage depends on
    # how the columns go together.
    table_of = None
    if table.table is not None:
        table_of = whole_table
    with reporter.work("reading", unit="B") as work:
        share, entries, budget, sentence, people = history_of(
            Ledger(path, key=asked.key),
            data,
            text=table.text(),
            channels=moved,
            table=table_of,
            person=person,
            progress=work.at,
        )
    reporter.done("added", sentence)
    record = {
        "ledger": str(path),
        "data": data,
        "share": share,
        **(budget or _missing_budget(entries)),
        "told": sentence,
        "people": None if people is None else people.record,
        "releases": _records(entries),
    }
    lines: list[str] = []
    if entries:
        lines += _table(entries)
    if entries and share < 1:
        # Records are recognised by samples of their contents, so the share is an estimate.
        lines.append(
            f"{about_percent(share).capitalize()} of the records of {data} were in these releases."
        )
    lines.append(f"{data}: {sentence}.")
    if people is not None:
        lines.append(paragraph(f"{people.sentence[0].upper()}{people.sentence[1:]}."))
    common.answer(lambda: record, lambda: "\n".join(lines))


def _missing_budget(entries: Sequence[Entry]) -> dict[str, Any]:
    """The budget of the record where there is none: nothing was released, or it is not known."""
    draws: int | None = 0
    if entries:
        draws = None
    return {"draws": draws, "eps_l": None, "eps_u": None, "eps_ldp": None}


RECORDED = {
    "started",
    "state",
    "source",
    "target",
    "records",
    "identity",
    "fresh",
    "joint",
}
"""Fields of an entry that JSON shows as they are."""


def _draw_numbers(entries: Sequence[Entry]) -> list[list[int]]:
    """The number of each draw of each release, counted from 1 for every channel.

    Releases with the same number of a channel gave a record the same draw. The result has a list
    for each entry, with a number for each of its channels.
    """
    # The key of a draw of a channel is its job, and its number in that job.
    numbers_by_channel: dict[str, dict[tuple[str, int], int]] = {}
    numbers: list[list[int]] = []
    for entry in entries:
        entry_numbers: list[int] = []
        for drawn in entry.drawn:
            draws = numbers_by_channel.setdefault(drawn.use.channel, {})
            number = draws.setdefault((drawn.job, drawn.draw), len(draws) + 1)
            entry_numbers.append(number)
        numbers.append(entry_numbers)
    return numbers


def _records(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The releases for JSON."""
    records: list[dict[str, Any]] = []
    for entry, numbers in zip(entries, _draw_numbers(entries), strict=True):
        records.append(_record(entry, numbers))
    return records


def _record(entry: Entry, numbers: Sequence[int]) -> dict[str, Any]:
    """One release for JSON, with the number of the draw of each of its channels."""
    channels: list[dict[str, Any]] = []
    for drawn, number in zip(entry.drawn, numbers, strict=True):
        channels.append(
            {
                "channel": drawn.use.channel,
                "file": drawn.channel_file,
                "columns": drawn.use.columns,
                "draw": drawn.draw,
                "number": number,
            }
        )
    return {
        **entry.model_dump(include=RECORDED),
        "data": entry.data_name,
        "channels": channels,
    }


HEADER = ("when (UTC)", "data", "records", "column", "channel", "draw", "from", "to")


def _table(entries: Sequence[Entry]) -> list[str]:
    """A line for each column of each release; `_draw_numbers` has its draw."""
    from mechdesign.report.wording import aligned, label

    rows: list[tuple[str, ...]] = [HEADER]
    for entry, numbers in zip(entries, _draw_numbers(entries), strict=True):
        target = label(Path(entry.target).name)
        if not entry.finished:
            target += " (not finished)"
        for drawn, number in zip(entry.drawn, numbers, strict=True):
            # The file of the channel, or the first digits of its digest.
            channel = drawn.use.channel[:8]
            if drawn.channel_file:
                channel = Path(drawn.channel_file).name
            rows.append(
                (
                    entry.started[:16].replace("T", " "),
                    entry.data_name or "-",
                    f"{entry.records:,}",
                    label(", ".join(drawn.use.columns)),
                    label(channel),
                    str(number),
                    label(Path(entry.source or "-").name),
                    target,
                )
            )
    return aligned(rows, left=(0, 1, 3, 4, 6, 7))
