"""The report on a channel for boxes for everybody: nothing in it is computed from the table but the
channel itself, which a public channel file holds too.
"""

from __future__ import annotations

from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.wording import percent_of
from mechdesign.notions import Notion
from mechdesign.report import blocks as b
from mechdesign.report import boxes
from mechdesign.report import wording as w
from mechdesign.report.content import VERDICTS
from mechdesign.report.document import BANNERS, VERIFIED
from mechdesign.report.writing import save_page

FORMAT, VERSION = "mechdesign.public-box-report", 1

WITHHELD = (
    "Not shown in this version, because it is computed from the table: what is kept of every "
    "column, unchanged cells, the records of every box, the outputs that change a probability "
    "most, and the budgets actually used."
)


def public_box_page(channel: BoxChannel, *, satisfied: bool | None) -> b.Document:
    """The report as a page for everybody; `satisfied` is the exact verdict, if known."""
    lead = boxes.lead(channel)
    fills = channel.fills
    # From here on the table is out of reach, so nothing below can disclose it by mistake.
    channel = channel.public()
    notion = boxes.notion_of(channel)
    sensitive = w.title(channel.sensitive.columns)
    released = ", ".join(w.title(variable.columns) for variable in channel.columns)
    scope = [*boxes.scope_items(channel, notion, None), WITHHELD]
    sections = (
        b.Section("promise", "What is promised", _promise(channel, notion, satisfied)),
        b.Section("boxes", "What is released", _boxes(channel, fills=fills)),
        b.Section("scope", "Where the promise ends", (b.Bullets(tuple(scope)),)),
    )
    return b.Document(
        title=f"Release of {released} in boxes, protecting {sensitive}",
        banner=BANNERS["public"],
        internal=False,
        lead=lead,
        highlights=_highlights(channel, notion, satisfied),
        sections=sections,
        footer="Written by mechdesign.",
    )


def save_public_box_report(
    channel: BoxChannel, path: str, *, satisfied: bool | None, overwrite: bool
) -> None:
    """Write the report for everybody, as HTML, Markdown or JSON by the ending of `path`."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "satisfied": satisfied,
        **boxes.box_channel_record(channel.public()),
    }
    save_page(
        path,
        record,
        lambda pictures: public_box_page(channel, satisfied=satisfied),
        overwrite=overwrite,
    )


def _highlights(
    channel: BoxChannel, notion: Notion | None, satisfied: bool | None
) -> tuple[tuple[str, str], ...]:
    if notion is None:
        return ()
    return (
        (f"Population, {percent_of(channel.level)} confidence", _factors(notion)),
        ("Table", "not promised"),
        ("Promise", notion.text),
        ("Verified", VERIFIED[satisfied]),
    )


def _factors(notion: Notion) -> str:
    """The factors that the notion allows, not those that the channel uses."""
    limits = notion.limits.loosest
    # A bound on the ratio of two lifts bounds both sides, because their mean is 1.
    lower = min(limits.lower, limits.ratio)
    upper = min(limits.upper, limits.ratio)
    allowed = Achieved(lower, upper, min(limits.ratio, lower + upper))
    return f"{w.times_text(allowed, notion)} as probable"


def _promise(
    channel: BoxChannel, notion: Notion | None, satisfied: bool | None
) -> tuple[b.Block, ...]:
    if notion is None:
        return (b.Text(boxes.NOTHING_RELEASED),)
    sensitive = w.title(channel.sensitive.columns)
    verdict = VERDICTS[satisfied]
    if satisfied is not None:
        verdict += ", with the counts that are not shown here."
    compared = "with its share in the population"
    if channel.given:
        given = ", ".join(w.title(variable.columns) for variable in channel.given)
        compared = f"with its share among people of the same {given}"
    texts = [
        f"A released row makes any value of {sensitive} {_factors(notion)}, compared {compared}. "
        f"This holds for the population that the records are drawn from, with "
        f"{percent_of(channel.level)} confidence.",
        f"This is {notion.text}. {verdict}",
        *boxes.part_lines(channel),
    ]
    return tuple(b.Text(text) for text in texts)


def _boxes(channel: BoxChannel, *, fills: bool) -> tuple[b.Block, ...]:
    """Every box in words."""
    how = (
        "A row is released as the label of a box. Which label is drawn depends on the box that the "
        "row is in. The public channel file has all probabilities."
    )
    if fills:
        how = (
            "A row is released as values that are drawn from a box. Which box is drawn depends on "
            "the box that the row is in."
        )
    texts: list[str] = []
    for part in channel.parts:
        stratum = channel.stratum_text(part)
        texts += [f"{stratum}{text}" for text in channel.box_texts(part)]
    items = tuple(b.isolated(w.label(text)) for text in texts)
    return (b.Text(how), b.Bullets(items))
