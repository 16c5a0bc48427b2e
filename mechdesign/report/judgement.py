"""A judgement of a released file (`judging.judge`) in words, and as a page.

Each part has what its figures mean, a table of them, and what they do not mean. Text and page lay
out the same texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from mechdesign.core.wording import listed
from mechdesign.judging.figures import AREA, NUMBER, WHOLE, Judgement, Part
from mechdesign.report import blocks
from mechdesign.report.wording import (
    aligned,
    count,
    item,
    label,
    paragraph,
    people_in,
    percent,
    percent_at_least,
    percent_at_most,
)

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

SUREST_5 = "other_data_surest_5_"
"""The key of the attack that is told first, before the value of the secret."""

MOST_SENTENCES = 5
"""Secrets whose bounds are said, those that can rise most; all are in the figures."""

NO_PROMISE = (
    "No channel was given, so nothing bounds these figures: an attack that was not tried may do "
    "better."
)


def judgement_text(judgement: Judgement) -> str:
    """The text of ``mechdesign judge``."""
    lines = [paragraph(text, "") for text in opening_texts(judgement)]
    lines += ["", "In short"]
    lines += [item(text) for text in short_texts(judgement)]
    lines += ["", "What is proven"]
    lines += [item(text) for text in proven_texts(judgement)]
    for part in judgement.parts:
        lines += ["", part.title, paragraph(part.means)]
        if part.figures:
            rows = [_shown_header(part), *_rows_of_figures(part)]
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
            "short", "In short", (blocks.Bullets(tuple(short_texts(judgement))),)
        ),
        blocks.Section(
            "proven",
            "What is proven",
            (blocks.Bullets(tuple(proven_texts(judgement))),),
        ),
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
        f"{count(judgement.records, 'record')}; {secrets} "
        f"{'is' if len(judgement.sensitive) == 1 else 'are'} to be protected, and "
        f"{listed(judgement.columns)} "
        f"{'is' if len(judgement.columns) == 1 else 'are'} released.",
        LINKS[judgement.linked],
    ]
    if judgement.linked != "no":
        texts.append(
            f"{percent(judgement.agreement)} of their cells are as in the original."
        )
    empty = sum(
        share for value, share in judgement.shares.items() if "" in value.split(", ")
    )
    if empty:
        texts.append(
            f"{percent(empty)} of the records have an empty cell in {secrets}, which counts as one "
            "value here; to judge without them, leave them out of both files."
        )
    if judgement.unjudged:
        texts.append(
            "Not looked at, since the original lacks them or they name records: "
            f"{listed(judgement.unjudged)}."
        )
    texts.append(f"Attackers and analysts learn by {judgement.learner}.")
    texts.append(judgement.instruments)
    return texts


def proven_texts(judgement: Judgement) -> list[str]:
    """What the channel proves, in the words of the release, and how it is known."""
    secret = ", ".join(map(label, judgement.sensitive))
    shares = judgement.shares
    ordered = sorted(
        judgement.bounds.items(), key=lambda bound: shares[bound[0]] - bound[1][1]
    )
    texts: list[str] = []
    for value, (low, high) in ordered[:MOST_SENTENCES]:
        texts.append(
            "Of the people whom any rule picks by their released rows, "
            f"{people_in(low)} ({percent_at_least(low)}) to "
            f"{people_in(high)} ({percent_at_most(high)}) are expected to have "
            f"{secret} {label(value)}, whatever the rule was learnt from; "
            f"{_spoken(shares[value])} of all people do."
        )
    return [*texts, *(judgement.promise or (NO_PROMISE,))]


def _spoken(share: float) -> str:
    """A share as people say it, with its percentage."""
    return f"{people_in(share)} ({percent(share)})"


def short_texts(judgement: Judgement) -> list[str]:
    """The main figures in sentences, for those who decide."""
    texts: list[str] = []
    if judgement.strange:
        texts.append(
            f"No released value of {listed(judgement.strange)} is one of the original's, so "
            "attacks by true cells find nothing there. Labels of a channel, such as 'mix-1', are "
            "so by design; if the values are spelt otherwise, this says nothing of the risk: write "
            "both files alike, and judge again."
        )
    # What looks alike was one cell once, and the figures of attacks by true cells are too small.
    texts += [f"Risks may be understated: {notice}." for notice in judgement.alike]
    return [
        *texts,
        *_read_texts(judgement),
        _own_row_text(judgement),
        *_singled_texts(judgement),
        *_group_texts(judgement),
        *_reader_texts(judgement),
    ]


def _read_texts(judgement: Judgement) -> list[str]:
    """What is read of a secret that stands in the released file, where no attack is needed."""
    if not judgement.secret_released:
        return []
    secrets = ", ".join(map(label, judgement.sensitive))
    text = f"The released file has {secrets} itself: whoever finds a person's row reads it there"
    for figure in judgement.part("own_row").figures:
        if figure.key == "beside" and figure.released is not None:
            text += f", and it is true of {_spoken(figure.released)} of the people"
    return [f"{text}. The next figure is that of an attack which does not read it."]


def _own_row_text(judgement: Judgement) -> str:
    """The attack on the secret of people whose rows are known."""
    attack = next(
        figure
        for figure in judgement.part("own_row").figures
        if figure.key.startswith(SUREST_5)
    )
    value = label(attack.key.removeprefix(SUREST_5))
    secret = ", ".join(map(label, judgement.sensitive))
    if attack.released is None or attack.untouched is None or attack.without is None:
        return (
            f"Nobody's own row was attacked for {secret}: the rows are more or fewer than the "
            "records, or do not clearly agree with those at the same places, so it is not known "
            "whose row is whose (--identity COL links them)."
        )
    text = (
        "Somebody who knows whose row is whose, and has learnt elsewhere what rows say, points at "
        f"the 5 % of the people who look most like {secret} {value}: {_spoken(attack.released)} "
        f"have it. In the untouched file it is {_spoken(attack.untouched)}, of all people "
        f"{_spoken(attack.without)}."
    )
    if attack.promised is not None:
        most = percent_at_most(attack.promised)
        text += f" No rule exceeds {most} in the mean, which is proven."
    return text


def _singled_texts(judgement: Judgement) -> list[str]:
    """Claims on released rows that are true of their own person."""
    part = judgement.part("singling_out")
    claims = part.figure("claims")
    for key, text in (
        ("own", "only the row's own person meets"),
        ("one", "exactly one person meets"),
    ):
        found = [figure for figure in part.figures if figure.key == key]
        if not found or found[0].released is None or found[0].untouched is None:
            continue
        before = _spoken(found[0].untouched)
        tried = figure_text(claims.untouched, WHOLE)
        if not claims.released:
            # A share of no claims would look like one that was measured.
            return [
                "No released row is alone in the sets of columns that were tried, so no claim was "
                f"made on one; of {tried} claims on the untouched file {before} are claims that "
                f"{text}."
            ]
        return [
            f"Of {figure_text(claims.released, WHOLE)} claims on rows that are alone in a few "
            f"columns, {_spoken(found[0].released)} are claims that {text}; of {tried} on the "
            f"untouched file {before}."
        ]
    return []


def _group_texts(judgement: Judgement) -> list[str]:
    """The smallest group, and whether rows are those of their people."""
    part = judgement.part("groups")
    smallest = part.figure("k")
    text = (
        "The smallest number of equal rows (k) is "
        f"{figure_text(smallest.released, WHOLE)}, in the untouched file "
        f"{figure_text(smallest.untouched, WHOLE)}."
    )
    own = [figure.released for figure in part.figures if figure.key == "own"]
    if own and own[0] is not None and own[0] < 1:
        text += f" Of the rows {_spoken(own[0])} have the true cells of their person."
    return [text]


def _reader_texts(judgement: Judgement) -> list[str]:
    """What analysts and models read."""
    texts: list[str] = []
    analysts = judgement.part("analysts")
    worst = [figure for figure in analysts.figures if figure.key == "pair_variation"]
    if worst and worst[0].released is not None:
        moved = percent_at_most(max(worst[0].released, 0.0))
        texts.append(
            "To have the table of any two columns that the original has, at most "
            f"{moved} of the records would have to be others."
        )
    areas = [
        (figure.released, figure.untouched)
        for figure in judgement.part("models").figures
        if figure.released is not None and figure.untouched is not None
    ]
    if areas:
        here = sum(area for area, _ in areas) / len(areas)
        there = sum(area for _, area in areas) / len(areas)
        texts.append(
            f"Models that learn from it put {100 * here:.0f} of 100 pairs of people in the right "
            f"order, models that learn from the untouched file {100 * there:.0f}; a coin 50."
        )
    return texts


def _rows_of_figures(part: Part) -> list[tuple[str, ...]]:
    """The cells of each figure, in the order of `_shown_header`."""
    has_promise = _has_promise(part)
    rows: list[tuple[str, ...]] = []
    for figure in part.figures:
        values = [figure.released, figure.untouched, figure.without]
        if has_promise:
            values.append(figure.promised)
        shown = [figure_text(value, figure.unit) for value in values]
        rows.append((label(figure.text), *shown))
    return rows


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
    return percent(value)


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
    rows = [blocks.cells(*row) for row in _rows_of_figures(part)]
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
                ("own_row", "beside"),
                ("analysts", "pair_variation"),
                ("analysts", "regression_rms"),
            ):
                cards.append((figure.text, figure_text(figure.released, figure.unit)))
    return tuple(cards)
