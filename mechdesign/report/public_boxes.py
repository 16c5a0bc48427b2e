"""The report on a channel for boxes for everybody: nothing in it is computed from the table but the
channel itself, which a public channel file holds too.

`channel.public()` drops the table before anything is laid out. The page then has three sections:
the factors that the notion allows (not those that the channel uses), every box in words, and
where the promise ends. `public_rows` is the same for row channels.
"""

from __future__ import annotations

from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.files import PathLike
from mechdesign.core.wording import percent_of
from mechdesign.notions import Notion
from mechdesign.report import blocks, box_sentences, boxes, wording
from mechdesign.report.document import BANNERS, VERIFIED
from mechdesign.report.promises import VERDICTS, promised_bounds
from mechdesign.report.writing import save_public_page

FORMAT, VERSION = "mechdesign.public-box-report", 1

WITHHELD = (
    "Not shown in this version, because it is computed from the table: what is kept of every "
    "column, unchanged cells, the records of every box, the outputs that change a probability "
    "most, and the budgets actually used."
)


def public_box_page(channel: BoxChannel, *, satisfied: bool | None) -> blocks.Document:
    """The report as a page for everybody; `satisfied` is the exact verdict, if known."""
    # Whether boxes are filled shows in the released file; the counts that fill them are not public.
    lead = box_sentences.lead(channel)
    fills = channel.fills
    # From here on the table is out of reach, so nothing below can disclose it by mistake.
    channel = channel.public()
    notion = channel.promise
    sensitive = wording.title(channel.sensitive.columns)
    released = wording.titles(channel.columns)
    scope = [*box_sentences.scope_items(channel, notion, None), WITHHELD]
    sections = (
        blocks.Section(
            "promise", "What is promised", _promise_blocks(channel, notion, satisfied)
        ),
        blocks.Section("boxes", "What is released", _box_blocks(channel, fills=fills)),
        blocks.Section(
            "scope", "Where the promise ends", (blocks.Bullets(tuple(scope)),)
        ),
    )
    return blocks.Document(
        title=f"Release of {released} in boxes, protecting {sensitive}",
        banner=BANNERS["public"],
        internal=False,
        lead=lead,
        highlights=_cards(channel, notion, satisfied),
        sections=sections,
        footer="Written by mechdesign.",
    )


def save_public_box_report(
    channel: BoxChannel, path: PathLike, *, satisfied: bool | None, overwrite: bool
) -> None:
    """Write the report for everybody, as HTML, Markdown or JSON by the ending of `path`."""
    save_public_page(
        path,
        boxes.box_channel_record(channel.public()),
        lambda: public_box_page(channel, satisfied=satisfied),
        version=(FORMAT, VERSION),
        satisfied=satisfied,
        overwrite=overwrite,
    )


def _cards(
    channel: BoxChannel, notion: Notion | None, satisfied: bool | None
) -> tuple[tuple[str, str], ...]:
    """The cards at the top: (title, text) pairs, none where nothing is released."""
    if notion is None:
        return ()
    return (
        (f"Population, {percent_of(channel.level)} confidence", _factors(notion)),
        ("Table", "not promised"),
        ("Privacy notion", notion.text),
        ("Verified", VERIFIED[satisfied]),
    )


def _factors(notion: Notion) -> str:
    """The factors that the notion allows, not those that the channel uses."""
    return f"{wording.times_text(promised_bounds(notion), notion)} as probable"


def _promise_blocks(
    channel: BoxChannel, notion: Notion | None, satisfied: bool | None
) -> tuple[blocks.Block, ...]:
    """The promise in a sentence, the verdict on it, and strata with promises of their own."""
    if notion is None:
        return (blocks.Text(box_sentences.NOTHING_RELEASED),)
    sensitive = wording.title(channel.sensitive.columns)
    verdict = VERDICTS[satisfied]
    if satisfied is not None:
        verdict += ", with the counts that are not shown here."
    compared = "with its share in the population"
    if channel.given:
        given = wording.titles(channel.given)
        compared = f"with its share among people of the same {given}"
    texts = [
        f"A released row makes any value of {sensitive} {_factors(notion)}, compared {compared}. "
        f"This holds for the population that the records are drawn from, with "
        f"{percent_of(channel.level)} confidence.",
        f"This is {notion.text}. {verdict}",
        *box_sentences.part_lines(channel),
    ]
    return blocks.paragraphs(texts)


def _box_blocks(channel: BoxChannel, *, fills: bool) -> tuple[blocks.Block, ...]:
    """Every box in words."""
    explanation = (
        "A row is released as the label of a box. Which label is drawn depends on the box that the "
        "row is in. The public channel file has all probabilities."
    )
    if fills:
        explanation = (
            "A row is released as a row of the table that is drawn from a box. Which box is drawn "
            "depends on the box that the row is in."
        )
    texts: list[str] = []
    for part in channel.parts:
        stratum = channel.stratum_text(part)
        texts += [f"{stratum}{text}" for text in channel.box_texts(part)]
    items = tuple(blocks.isolated(wording.label(text)) for text in texts)
    return (blocks.Text(explanation), blocks.Bullets(items))
