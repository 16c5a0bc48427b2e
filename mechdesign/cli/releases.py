"""`mechdesign releases`: what the ledger knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.cli import options as o
from mechdesign.cli.apply import LedgerOption
from mechdesign.cli.console import Reporter
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.sanitise.entries import Entry
    from mechdesign.sanitise.history import History

EXAMPLE = "Example:  mechdesign releases        Of one file:  mechdesign releases total people.csv"

TOTAL = "total"

What = Annotated[
    str | None,
    typer.Argument(
        metavar="total", help="Add up what the records of DATA were released through.", show_default=False
    ),
]
Data = Annotated[
    str | None,
    typer.Argument(metavar="DATA", help="CSV or Parquet, in any order and packing.", show_default=False),
]
Channels = Annotated[
    list[str] | None,
    typer.Option(
        "--channel",
        metavar="CHANNEL",
        help="A channel file that lies elsewhere than it did; may be repeated.",
    ),
]


def releases(
    reporter: Reporter,
    place: LedgerOption,
    text: o.TextFormat,
    common: o.CommonOptions,
    what: What = None,
    data: Data = None,
    channel: Channels = None,
) -> None:
    """List which data were released through which channel, and when; or add up, exactly, for one data set.

    A data set is known by the content of its records, wherever it lies now and however it is sorted or packed.
    """
    from mechdesign.channel.channel import Channel
    from mechdesign.sanitise.history import history_of
    from mechdesign.sanitise.ledger import Ledger, default_path

    if what not in (None, TOTAL) or (what is None) != (data is None):
        raise InputError("give `releases` alone for a list, or `releases total DATA` for one data set")
    path = Path(place.ledger or default_path())
    if not path.exists():
        if place.ledger is not None or data is not None:
            raise InputError(f"there is no ledger {path}: nothing has been released with it")
        reporter.done("listed", "no release is known")
        common.answer(lambda: {"ledger": str(path), "releases": []}, lambda: f"No release is known ({path}).")
        return
    ledger = Ledger(path)
    if data is None:
        with ledger.reading() as db:
            entries = ledger.releases(db)
        reporter.done("listed", f"{len(entries)} releases are known")
        common.answer(
            lambda: {"ledger": str(ledger.path), "releases": [_record(entry) for entry in entries]},
            lambda: "\n".join(_table(entries)) if entries else f"No release is known ({ledger.path}).",
        )
        return
    known = [Channel.load(each) for each in channel or []]
    with reporter.work("reading", unit="B") as work:
        found = history_of(ledger, data, text=text.text(), channels=known, progress=work.at)
    reporter.done("added", found.told)
    common.answer(lambda: _total(found, data, str(ledger.path)), lambda: _total_text(found, data))


def _record(entry: Entry) -> dict[str, Any]:
    return {
        "started": entry.started,
        "state": entry.state,
        "source": entry.source,
        "target": entry.target,
        "records": entry.records,
        "data": _data(entry),
        "identity": list(entry.identity),
        "channels": [
            {
                "channel": drawn.use.channel,
                "file": drawn.channel_file,
                "columns": list(drawn.use.columns),
                "draw": drawn.draw,
            }
            for drawn in entry.drawn
        ],
        "fresh": entry.fresh,
        "joint": entry.joint,
    }


def _data(entry: Entry) -> str | None:
    """A short name of the data set, which is the same for the same records."""
    from hashlib import sha256

    return sha256(entry.unordered.encode()).hexdigest()[:8] if entry.unordered else None


def _table(entries: Sequence[Entry]) -> list[str]:
    """Releases through one channel with the same number gave a record the same draw."""
    from mechdesign.report.terminal import aligned
    from mechdesign.report.wording import label

    rows = [("when (UTC)", "data", "records", "column", "channel", "draw", "from", "to")]
    numbers: dict[str, dict[tuple[str, int], int]] = {}
    for entry in entries:
        for drawn in entry.drawn:
            known = numbers.setdefault(drawn.use.channel, {})
            number = known.setdefault((drawn.job, drawn.draw), len(known) + 1)
            channel = Path(drawn.channel_file).name if drawn.channel_file else drawn.use.channel[:8]
            unfinished = "" if entry.state == "done" else " (not finished)"
            rows.append(
                (
                    entry.started[:16].replace("T", " "),
                    _data(entry) or "-",
                    f"{entry.records:,}",
                    label(", ".join(drawn.use.columns)),
                    label(channel),
                    str(number),
                    label(Path(entry.source or "-").name),
                    label(Path(entry.target).name) + unfinished,
                )
            )
    return aligned(rows, left=(0, 1, 3, 4, 6, 7))


def _total(found: History, data: str, ledger: str) -> dict[str, Any]:
    budget = found.budget or {
        "draws": None if found.releases else 0,
        "eps_l": None,
        "eps_u": None,
        "eps_ldp": None,
    }
    return {
        "ledger": ledger,
        "data": data,
        "records": found.records,
        "share": found.share,
        **budget,
        "told": found.told,
        "releases": [_record(entry) for entry in found.releases],
    }


def _total_text(found: History, data: str) -> str:
    lines = _table(found.releases) if found.releases else []
    if found.releases and found.share < 1:
        lines.append(
            f"About {found.share:.0%} of the {found.records:,} records of {data} were in these releases."
        )
    return "\n".join([*lines, f"{data}: {found.told}."])
