"""`mechdesign releases`: what the ledger knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli.apply import LedgerOption
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, option
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.jobs.entries import Entry

EXAMPLE = "Example:  mechdesign releases        Of one file:  mechdesign releases total people.csv"

TOTAL = "total"


@dataclass(frozen=True, kw_only=True)
class Asked(LedgerOption):
    """Draws and the ledger"""

    what: str | None = argument(
        TOTAL, "Add up what the records of DATA were released through.", default=None
    )
    data: str | None = argument(
        "DATA", "CSV or Parquet, in any order and packing.", default=None
    )
    channel: list[str] | None = option(
        "CHANNEL", "A channel file that has moved; may be repeated."
    )


def releases(
    reporter: Reporter, asked: Asked, table: o.OtherTable, common: o.CommonOptions
) -> None:
    """List which data were released through which channel, and when; or add up, exactly, for one data set.

    A data set is known by the content of its records, wherever it lies now and however it is sorted or packed. Releases
    of several columns are added up over a --table that has all of them.
    """
    from mechdesign.jobs.ledger import Ledger, default_path
    from mechdesign.jobs.past_releases import history_of

    if table.table is not None and asked.data is None:
        raise InputError(
            "--table is for `releases total DATA`: leave it out of the list"
        )
    if asked.what not in (None, TOTAL) or (asked.what is None) != (asked.data is None):
        raise InputError(
            "give `releases` alone for a list, or `releases total DATA` for one data set"
        )
    path = Path(asked.ledger or default_path())
    if not path.exists() and (asked.ledger is not None or asked.data is not None):
        raise InputError(
            f"there is no ledger {path}: nothing has been released with it"
        )
    if asked.data is None:
        entries: list[Entry] = []
        if path.exists():
            ledger = Ledger(path, key=asked.key)
            with ledger.reading() as db:
                entries = ledger.releases(db)
        reporter.done("listed", f"{len(entries)} releases are known")
        common.answer(
            lambda: {"ledger": str(path), "releases": list(map(_record, entries))},
            lambda: (
                "\n".join(_table(entries))
                if entries
                else f"No release is known ({path})."
            ),
        )
        return
    known = [md.Channel.load(each) for each in asked.channel or []]

    def whole(channels: Sequence[md.Channel]) -> md.Joint | None:
        return table.read("a channel", *channels, together=True)

    with reporter.work("reading", unit="B") as work:
        how: dict[str, Any] = {
            "text": table.text(),
            "channels": known,
            "progress": work.at,
        }
        how["table"] = whole if table.table else None
        share, found, budget, told = history_of(
            Ledger(path, key=asked.key), asked.data, **how
        )
    reporter.done("added", told)
    lines = [f"{asked.data}: {told}."]
    if found and share < 1:
        lines.insert(
            0,
            f"About {share:.0%} of the records of {asked.data} were in these releases.",
        )
    unknown = {
        "draws": None if found else 0,
        "eps_l": None,
        "eps_u": None,
        "eps_ldp": None,
    }
    record = {
        "ledger": str(path),
        "data": asked.data,
        "share": share,
        **(budget or unknown),
        "told": told,
    }
    common.answer(
        lambda: {**record, "releases": list(map(_record, found))},
        lambda: "\n".join([*(_table(found) if found else []), *lines]),
    )


def _record(entry: Entry) -> dict[str, Any]:
    kept = {
        "started",
        "state",
        "source",
        "target",
        "records",
        "identity",
        "fresh",
        "joint",
    }
    channels = [
        {
            "channel": d.use.channel,
            "file": d.channel_file,
            "columns": d.use.columns,
            "draw": d.draw,
        }
        for d in entry.drawn
    ]
    return {
        **entry.model_dump(include=kept),
        "data": entry.data_name,
        "channels": channels,
    }


def _table(entries: Sequence[Entry]) -> list[str]:
    """Releases through one channel with the same number gave a record the same draw."""
    from mechdesign.report.wording import aligned, label

    rows = [
        ("when (UTC)", "data", "records", "column", "channel", "draw", "from", "to")
    ]
    numbers: dict[str, dict[tuple[str, int], int]] = {}
    for entry in entries:
        when, unfinished = (
            entry.started[:16].replace("T", " "),
            "" if entry.finished else " (not finished)",
        )
        source, target = Path(entry.source or "-").name, Path(entry.target).name
        for drawn in entry.drawn:
            known = numbers.setdefault(drawn.use.channel, {})
            number = known.setdefault((drawn.job, drawn.draw), len(known) + 1)
            channel = (
                Path(drawn.channel_file).name
                if drawn.channel_file
                else drawn.use.channel[:8]
            )
            column = label(", ".join(drawn.use.columns))
            what = (
                when,
                entry.data_name or "-",
                f"{entry.records:,}",
                column,
                label(channel),
                str(number),
            )
            rows.append((*what, label(source), label(target) + unfinished))
    return aligned(rows, left=(0, 1, 3, 4, 6, 7))
