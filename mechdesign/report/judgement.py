"""A judgement of a released file (`judging.judge`) in words, and as a page.

Each part has what its figures mean, a table of them, and what they do not mean. Text and page lay
out the same texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from mechdesign.core.wording import listed
from mechdesign.judging.figures import AREA, NUMBER, WHOLE, Figure, Judgement, Part
from mechdesign.report import blocks
from mechdesign.report.layout import aligned, item, paragraph
from mechdesign.report.wording import count, label

HEADER = ("", "released", "untouched", "without", "promised")

LINKS: Mapping[str, str] = {
    "position": (
        "Released rows are taken for those of the records at the same place: they agree far more "
        "often than by chance."
    ),
    "identity": "Released rows are linked to records by their identifier.",
    "no": "It is not known which released row belongs to whom.",
}
"""How rows are linked, in a sentence."""

LEGEND = (
    "'released' is this file, 'untouched' the original released as it is, 'without' a guess "
    "without any file, and 'promised' what the channel proves for every attack of that kind."
)

ROUNDING = 1e-9
"""Figures below are rounding errors: a record is a share of 1e-9 only in a file of a billion."""

NO_PROMISE = (
    "No channel was given, so nothing bounds these figures: an attack that was not tried may do "
    "better."
)


def judgement_text(judgement: Judgement) -> str:
    """The text of ``mechdesign judge``."""
    lines = [paragraph(text, "") for text in opening_texts(judgement)]
    lines += ["", "What is proven"]
    lines += [item(text) for text in judgement.promise or (NO_PROMISE,)]
    for part in judgement.parts:
        lines += ["", part.title, paragraph(part.means)]
        if part.figures:
            rows = [_shown_header(part)]
            rows += [figure_cells(figure, part) for figure in part.figures]
            lines += aligned(rows, left=(0,))
        lines += [paragraph(text) for text in part.notes]
        lines.append(paragraph(f"It does not mean: {_lowered(part.not_meant)}"))
    lines += ["", paragraph(LEGEND, "")]
    return "\n".join(lines)


def judgement_page(
    judgement: Judgement, released: str, original: str, again: str
) -> blocks.Document:
    """The same as a page for those who may see the data; `again` is the command that repeats it."""
    sections = [
        blocks.Section(
            "proven",
            "What is proven",
            (blocks.Bullets(judgement.promise or (NO_PROMISE,)),),
        )
    ]
    for part in judgement.parts:
        sections.append(blocks.Section(part.key, part.title, _part_blocks(part)))
    sections.append(
        blocks.Section("again", "Do it again", (blocks.Lines((("Judge:", again),)),))
    )
    return blocks.Document(
        title="A released file, judged",
        banner="Internal report: it is computed from the data. Do not publish.",
        internal=True,
        lead=f"{label(released)} against {label(original)}. {' '.join(opening_texts(judgement))}",
        highlights=_cards(judgement),
        sections=tuple(sections),
        footer="Written by mechdesign.",
    )


def opening_texts(judgement: Judgement) -> list[str]:
    """Sentences on both files and how they were read."""
    secrets = ", ".join(map(label, judgement.sensitive))
    texts = [
        f"{count(judgement.released_records, 'released row')} of "
        f"{count(judgement.records, 'record')}; {secrets} is to be protected, and "
        f"{listed([label(name) for name in judgement.columns])} "
        f"{'is' if len(judgement.columns) == 1 else 'are'} released.",
        LINKS[judgement.linked],
    ]
    if judgement.linked != "no":
        texts.append(
            f"{100 * judgement.agreement:.1f} % of their cells are as in the original."
        )
    if judgement.secret_released:
        texts.append(f"The released file has {secrets} itself.")
    if judgement.unjudged:
        texts.append(
            "Not looked at, since the original lacks them or they name records: "
            f"{listed([label(name) for name in judgement.unjudged])}."
        )
    texts.append(f"Attackers and analysts learn by {judgement.learner}.")
    texts.append(judgement.instruments)
    return texts


def figure_cells(figure: Figure, part: Part) -> tuple[str, ...]:
    """The cells of one figure, in the order of `_shown_header`."""
    values = (figure.released, figure.untouched, figure.without)
    cells = [label(figure.text), *(figure_text(value, figure.unit) for value in values)]
    if _has_promise(part):
        cells.append(figure_text(figure.promised, figure.unit))
    return tuple(cells)


def figure_text(value: float | None, unit: str) -> str:
    """A figure with the digits that it deserves; a dash where it was not measured."""
    if value is None:
        return "-"
    if unit == AREA:
        return f"{value:.3f}"
    if unit == WHOLE:
        return f"{value:,.0f}"
    if unit == NUMBER:
        # Differences of equal sums of doubles are zero.
        return "0" if abs(value) < ROUNDING else f"{value:.3g}"
    return f"{100 * value:.1f} %"


def _shown_header(part: Part) -> tuple[str, ...]:
    """The header of a part's table: the last column only where something is promised."""
    return HEADER if _has_promise(part) else HEADER[:-1]


def _has_promise(part: Part) -> bool:
    """Whether a figure of the part is bounded."""
    return any(figure.promised is not None for figure in part.figures)


def _lowered(text: str) -> str:
    """The text to follow a colon."""
    return text[:1].lower() + text[1:]


def _part_blocks(part: Part) -> tuple[blocks.Block, ...]:
    """A part of the page."""
    found: list[blocks.Block] = [blocks.Text(part.means)]
    rows = [blocks.cells(*figure_cells(figure, part)) for figure in part.figures]
    header = ("figure", *_shown_header(part)[1:])
    found += blocks.grid(part.title, header, rows, "figures", (0,))
    found += blocks.paragraphs(part.notes)
    found.append(blocks.Text(f"It does not mean: {_lowered(part.not_meant)}"))
    found.append(blocks.Remark(LEGEND))
    return tuple(found)


def _cards(judgement: Judgement) -> tuple[tuple[str, str], ...]:
    """The cards at the top of the page: the attack on the secret, and what analysts lose."""
    cards: list[tuple[str, str]] = []
    for part in judgement.parts:
        for figure in part.figures:
            wanted = (part.key, figure.key)
            if figure.key.startswith("other_data_surest_5") or wanted in (
                ("analysts", "pair_variation"),
                ("analysts", "regression_rms"),
            ):
                cards.append((figure.text, figure_text(figure.released, figure.unit)))
    return tuple(cards)
