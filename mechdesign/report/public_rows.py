"""The report on a row channel for everybody: nothing in it is computed from the table but the
channel itself, which a public channel file holds too.

`channel.public()` drops the table before anything is laid out. The page then has three sections:
the factors that the notion allows, not those that the channel uses (`_promise_blocks`), the columns
in the order of their release (`_column_blocks`), and where the promise ends. `public_boxes` is the
same for channels for boxes.
"""

from __future__ import annotations

from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RELATIVE
from mechdesign.report import blocks, wording
from mechdesign.report.document import BANNERS, VERIFIED
from mechdesign.report.promises import VERDICTS, promised_bounds
from mechdesign.report.rows import row_channel_record
from mechdesign.report.rows_page import (
    COVERS,
    COVERS_RELATIVE,
    LIMITS,
    POPULATION_CARD,
)
from mechdesign.report.writing import save_public_page

WITHHELD = (
    "Not shown in this version, because it is computed from the table: what is kept of every "
    "column, unchanged cells, the rows that change a probability most, and the budgets actually "
    "used."
)

FORMAT, VERSION = "mechdesign.public-row-report", 1


def public_row_page(channel: RowChannel, *, satisfied: bool | None) -> blocks.Document:
    """The report as a page for everybody; `satisfied` is the exact verdict, if known."""
    # From here on the table is out of reach, so nothing below can disclose it by mistake.
    channel = channel.public()
    sensitive = wording.title(channel.sensitive.columns)
    released = wording.titles(channel.levels)
    covers = COVERS
    if channel.record.promise == RELATIVE:
        covers = COVERS_RELATIVE
    sections = (
        blocks.Section(
            "promise",
            "What is promised",
            _promise_blocks(channel, sensitive, satisfied),
        ),
        blocks.Section("columns", "What is released", _column_blocks(channel)),
        blocks.Section(
            "scope",
            "Where the promise ends",
            (blocks.Bullets((covers, *LIMITS, WITHHELD)),),
        ),
    )
    return blocks.Document(
        title=f"Release of {released}, protecting {sensitive}",
        banner=BANNERS["public"],
        internal=False,
        lead=f"{released} are released together; {sensitive} is protected.",
        highlights=(
            ("Times as likely as before", _factors(channel, " to ")),
            POPULATION_CARD,
            ("Privacy notion", channel.notion.text),
            ("Verified", VERIFIED[satisfied]),
        ),
        sections=sections,
        footer="Written by mechdesign.",
    )


def save_public_row_report(
    channel: RowChannel, path: str, *, satisfied: bool | None, overwrite: bool
) -> None:
    """Write the report for everybody, as HTML, Markdown or JSON by the ending of `path`."""
    save_public_page(
        path,
        row_channel_record(channel.public()),
        lambda: public_row_page(channel, satisfied=satisfied),
        version=(FORMAT, VERSION),
        satisfied=satisfied,
        overwrite=overwrite,
    )


def _factors(channel: RowChannel, between: str) -> str:
    """The factors that the notion allows, not those that the channel uses."""
    # Those in use are computed from the table.
    promised = promised_bounds(channel.notion)
    low = wording.short_factor(promised.eps_l, upper=False)
    high = wording.short_factor(promised.eps_u, upper=True)
    return f"{low}{between}{high}"


def _promise_blocks(
    channel: RowChannel, sensitive: str, satisfied: bool | None
) -> tuple[blocks.Block, ...]:
    """The promise as a factor between two numbers, and the verdict on it."""
    verdict = VERDICTS[satisfied]
    if satisfied is not None:
        verdict += ", with the table that is not shown here."
    compared = "in the whole table"
    if channel.record.promise == RELATIVE:
        compared = "among the records with the same given columns"
    return (
        blocks.Text(
            f"Seeing a released row changes the probability of every value of {sensitive} by a "
            f"factor between {_factors(channel, ' and ')}, compared with its share {compared}."
        ),
        blocks.Text(f"This is {channel.notion.text}. {verdict}"),
    )


def _column_blocks(channel: RowChannel) -> tuple[blocks.Block, ...]:
    """The randomised columns in their order, and the given ones."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for variable in channel.given:
        name = blocks.short(wording.title(variable.columns))
        rows.append(
            blocks.cells(name, "as it is", f"{len(variable):,}", f"{len(variable):,}")
        )
    for variable, labels in zip(channel.levels, channel.labels, strict=True):
        name = blocks.short(wording.title(variable.columns))
        rows.append(
            blocks.cells(name, "randomised", f"{len(variable):,}", f"{len(labels):,}")
        )
    header = ("column", "released", "true values", "released values")
    text = (
        "A randomised value is drawn with probabilities that depend on the true value, and on what "
        "the columns before it released. The public channel file has all of them."
    )
    return (
        blocks.Text(text),
        *blocks.grid(
            "Columns in the order of the release", header, rows, "columns", left=(1,)
        ),
    )
