"""`mechdesign inspect IN --channel CHANNEL`: what the other columns of a file tell, before any release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli import released as f
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, option
from mechdesign.cli.parsing import names

if TYPE_CHECKING:
    from mechdesign.sanitise.inspecting import Inspection

EXAMPLE = "Example:  mechdesign inspect people.csv --channel channel.json --sensitive relationship"


@dataclass(frozen=True, kw_only=True)
class Inspected(f.FileColumns):
    """Which columns"""

    source: str = argument("IN", "CSV or Parquet file with the useful column.")
    sensitive: list[str] | None = option(
        "COL[,COL..]",
        "The sensitive column(s) of the file; default: those of the channel, where it has them.",
    )


def inspect(
    reporter: Reporter,
    asked: Inspected,
    channel: f.ChannelOption,
    text: o.TextFormat,
    common: o.CommonOptions,
) -> None:
    """List what each other column says about the useful and the sensitive column, worst first.

    Of every column the largest lift, the share of records that it pins down (their value comes again, and always with
    the same symbol), and how often the symbol is guessed right with it and without it.
    """
    from mechdesign.sanitise.inspecting import inspect_file

    with reporter.work("reading"):
        found = inspect_file(
            md.Channel.load(channel),
            asked.source,
            sensitive=names("--sensitive", asked.sensitive),
            columns=asked.renamed,
            text=text.text(),
        )
    reporter.done("inspected", f"{asked.source} is inspected", records=found.records)
    common.answer(lambda: asdict(found), lambda: _text(found))


def _text(found: Inspection) -> str:
    from mechdesign.report.wording import aligned, count, label, percent

    rows = [["column", "values", "about", "largest lift", "pinned down", "guessed", "without"]]
    for told in found.columns:
        values = "many" if told.values is None else f"{told.values:,}"
        for other, each in told.about.items():
            lift = "-" if each.lift is None else f"{each.lift:.3g}"
            shares = map(percent, (each.pinned, each.guessed, each.alone))
            mark = "  stands for it" if each.stands_for else ""
            rows.append([label(told.column), values, label(other), lift, *shares, mark])
        if not told.about:
            rows.append([label(told.column), values, "-", "-", "-", "-", "-"])
    rows = [[*row, ""][:8] for row in rows]
    lines = [line.rstrip() for line in aligned(rows, left=(0, 2, 7))]
    return "\n".join([f"{count(found.records, 'record')}; other columns, worst first:", *lines])
