"""The report on a row channel as a page: its promise, what each column keeps, and the worst rows.

`row_content.row_report` computes the figures. Here they become a file in two forms:

- `report_page` is the page, with a card for each main fact and four sections. These answer the
  questions of readers in their order: what is promised (`_promise_blocks`), where each column's
  information went (a picture and `_column_blocks`), which released rows move a belief most
  (`_worst_blocks`), and where the promise ends.
- `report_record` is the JSON: the same figures, not rounded.

`save_row_report` computes a report and writes the form that the ending of its file asks for. On a
page lower factors are rounded down and upper ones up, so that it never claims more than the audit
has proven. `public_rows` has the page for everybody, with the sentences on the scope of this file.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RELATIVE
from mechdesign.core.wording import about, at_least, at_most
from mechdesign.notions import to_record
from mechdesign.report import blocks, wording
from mechdesign.report.document import VERIFIED
from mechdesign.report.ledger_picture import ledger_picture
from mechdesign.report.plain_values import optional_record
from mechdesign.report.row_content import RowReport, row_report
from mechdesign.report.writing import save_page

FORMAT, VERSION = "mechdesign.row-report", 1
"""Of the JSON form: readers of it look at these first."""

LIMITS = (
    "The promise is about this table, not about the population behind it: there the leakage is "
    "larger, and it grows as the number of records shrinks.",
    "Any other column released beside these ends the promise.",
    "It hides the protected column, not who somebody is: a released row may still be unusual.",
)
"""What the promise leaves open, in this report and in that for everybody."""

POPULATION_CARD = ("The same for the population", "not promised")
"""A card for readers of the cards alone; `LIMITS` has the sentence."""

COVERS = (
    "It covers a released row and every part of it, against an observer who knows this table and "
    "the channel."
)
"""The scope of a promise that compares with the whole table."""

COVERS_RELATIVE = (
    "It covers a released row with all of its given columns, compared with somebody of whom only "
    "the given columns are known."
)
"""The scope of a promise that is relative to the given columns."""


def report_page(report: RowReport, *, pictures: bool = True) -> blocks.Document:
    """The report as a page for those who may see the table; `pictures` need matplotlib."""
    channel = report.channel
    sensitive = wording.title(channel.sensitive.columns)
    released = wording.titles(channel.levels)
    picture: list[blocks.Block] = []
    if pictures:
        picture.append(ledger_picture(report.ledgers))
    promise = blocks.Section(
        "promise", "What is promised", tuple(_promise_blocks(report, sensitive))
    )
    columns = blocks.Section(
        "columns",
        "Where each column's information went",
        (*picture, *_column_blocks(report)),
    )
    worst = blocks.Section(
        "worst", "Before and after", tuple(_worst_blocks(report, sensitive))
    )
    scope = blocks.Section("scope", "Where the promise ends", (_scope_bullets(report),))
    return blocks.Document(
        title=f"Release of {released}, protecting {sensitive}",
        banner="Internal report: it is computed from the table. Do not publish.",
        internal=True,
        lead=f"{released} are released together; {sensitive} is protected.",
        highlights=_cards(report),
        sections=(promise, columns, worst, scope),
        footer="Written by mechdesign.",
    )


def report_record(report: RowReport) -> dict[str, Any]:
    """The report as plain values, for JSON."""
    channel = report.channel
    return {
        "format": FORMAT,
        "version": VERSION,
        "sensitive": list(channel.sensitive.columns),
        "secrets": list(channel.sensitive.names),
        "given": [list(variable.columns) for variable in channel.given],
        "notion": to_record(report.audit.notion),
        "promise": report.audit.promise,
        "satisfied": report.audit.satisfied,
        "achieved": asdict(report.audit.achieved),
        "given_lift": optional_record(report.audit.given),
        "nmi": report.nmi,
        "upper_bound_nmi": report.upper_bound_nmi,
        "task": optional_record(report.task),
        "columns": [asdict(ledger) for ledger in report.ledgers],
        "worst": [asdict(row) for row in report.worst],
    }


def save_row_report(channel: RowChannel, path: str, *, overwrite: bool) -> RowReport:
    """Compute the report of a channel and write it, as HTML, Markdown or JSON by the ending."""
    report = row_report(channel)
    page = partial(report_page, report)
    save_page(path, report_record(report), page, overwrite=overwrite)
    return report


def _factors(eps_l: float, eps_u: float, between: str = " to ") -> str:
    """The smallest lift, rounded down, and the largest, rounded up."""
    low = wording.factor_text(eps_l, upper=False)
    high = wording.factor_text(eps_u, upper=True)
    return f"{low}{between}{high}"


def _cards(report: RowReport) -> tuple[tuple[str, str], ...]:
    """The cards at the top: (title, text) pairs."""
    achieved = report.audit.achieved
    cards = [
        ("Times as likely as before", _factors(achieved.eps_l, achieved.eps_u)),
        POPULATION_CARD,
        ("Privacy notion", report.audit.notion.text),
        ("Verified", VERIFIED[report.audit.satisfied]),
    ]
    if report.nmi is not None:
        cards.append(("Information kept", wording.percent_at_least(report.nmi)))
    if report.upper_bound_nmi is not None:
        bound = wording.percent_at_most(report.upper_bound_nmi)
        cards.append(("No mechanism keeps more than", bound))
    if report.task is not None:
        task = wording.label(report.task.column)
        kept = wording.percent_at_least(report.task.task_kept)
        bound = wording.percent_at_most(report.task.task_upper_bound)
        cards.append((f"Of what the rows tell of {task}", kept))
        cards.append(("No mechanism tells more than", bound))
    return tuple(cards)


def _promise_blocks(report: RowReport, sensitive: str) -> list[blocks.Block]:
    """The factors that the channel uses, and the exact verdict."""
    achieved = report.audit.achieved
    factors = _factors(achieved.eps_l, achieved.eps_u, " and ")
    verdict = "VIOLATES"
    if report.audit.satisfied:
        verdict = "keeps"
    prefixes = wording.count(report.audit.leaves, "prefix", "prefixes")
    texts = [
        f"Seeing a released row changes the probability of every value of {sensitive} by a factor "
        f"between {factors}.",
        f"The channel {verdict} {report.audit.notion.text}, {report.audit.promise} promise, "
        f"decided in exact arithmetic on {prefixes}.",
    ]
    given = report.audit.given
    if given is not None:
        alone = _factors(given.eps_l, given.eps_u, " and ")
        texts.append(
            "The given columns are released as they are. Alone they change these probabilities by "
            f"a factor between {alone}."
        )
    return list(blocks.paragraphs(texts))


def _column_blocks(report: RowReport) -> list[blocks.Block]:
    """The ledger of every level as a table."""
    rows: list[tuple[blocks.Cell, ...]] = []
    for ledger in report.ledgers:
        unchanged = "-"
        if ledger.truth is not None:
            unchanged = wording.percent_at_least(ledger.truth)
        # A column with a single value has no information, and so keeps none.
        share = 0.0
        if ledger.entropy > 0.0:
            # Rounding can put I(X_j; Y_j) above H(X_j).
            share = min(1.0, ledger.kept / ledger.entropy)
        low, high = ledger.spent
        row = blocks.cells(
            blocks.short(wording.title(ledger.columns)),
            unchanged,
            wording.percent(share),
            wording.percent(1.0 - share),
            about(ledger.entropy),
            f"{at_least(low)} to {at_most(high)}",
        )
        rows.append(row)
    header = (
        "column",
        "unchanged cells",
        "kept by itself",
        "lost to privacy",
        "information (nats)",
        "factor so far",
    )
    explanation = (
        "The released value of a column tells this share of the information in its true value, "
        "each column by itself. The factor so far is the range that the row has used up to this "
        "column."
    )
    caption = "What each column keeps and spends, in the order of the release"
    return [blocks.Text(explanation), *blocks.grid(caption, header, rows, "columns")]


def _worst_blocks(report: RowReport, sensitive: str) -> list[blocks.Block]:
    """The worst rows, with every secret's probability before and after."""
    names = report.channel.sensitive.names
    header = ["released row", "share of rows"]
    header += [
        f"{blocks.short(name)}: before \N{RIGHTWARDS ARROW} after" for name in names
    ]
    rows: list[tuple[blocks.Cell, ...]] = []
    for worst in report.worst:
        texts = [blocks.short(", ".join(worst.row)), wording.percent(worst.share)]
        for before, after in zip(worst.prior, worst.posterior, strict=True):
            prior = wording.percent(before, step=wording.TENTH)
            posterior = wording.percent(after, step=wording.TENTH)
            texts.append(f"{prior} \N{RIGHTWARDS ARROW} {posterior}")
        rows.append(blocks.cells(*texts))
    caption = f"The released rows that move the belief about {sensitive} most"
    return blocks.grid(caption, tuple(header), rows, "rows")


def _scope_bullets(report: RowReport) -> blocks.Bullets:
    """What the promise covers and what it leaves open."""
    # Without its given columns, a part of a row may reveal more than a relative promise allows.
    covers = COVERS
    if report.audit.promise == RELATIVE:
        covers = COVERS_RELATIVE
    return blocks.Bullets((covers, *LIMITS))
