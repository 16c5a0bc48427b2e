"""The page for a board: who is protected, what nobody can find out, what analysts can do, what is
not covered, and who checked it.

It is for people who decide and do not compute. Words of the field do not occur, numbers have three
digits at most, and everything fits on one page. What is said of shares is rounded so that it claims
less. ::

    What nobody can find out
      Whoever picks people by what is released about them, by whatever rule: at most about 4 in 10
      of them (39.8 %) can be expected to have income >50K. Of all people it is about 1 in 4 (24.1
      %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechdesign.auditing.law import Law
from mechdesign.channel.record import RELATIVE
from mechdesign.core.wording import listed
from mechdesign.mechanisms.result import Design
from mechdesign.report import blocks, wording
from mechdesign.report.record import Belief, Report, names_of

FORMAT = "mechdesign.board"
VERSION = 1

MOST_BELIEFS = 5
"""Values of the secret that have a sentence: those that can change most."""

MOST_NAMED = 8
"""Released columns that are named."""

DIGITS = 3
"""Digits of a number of people."""

NEARLY = 0.005
"""Shares that change by at most half a percentage point stay, for people who decide."""


@dataclass(frozen=True)
class BoardPage:
    """The page as sentences by their headings; `digest` is that of the channel."""

    title: str
    lead: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]
    digest: str

    @property
    def record(self) -> dict[str, Any]:
        """The page as JSON."""
        parts = [
            {"title": title, "sentences": list(texts)} for title, texts in self.parts
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "lead": self.lead,
            "parts": parts,
            "digest": self.digest,
        }

    def document(self) -> blocks.Document:
        """The page, laid out."""
        sections: list[blocks.Section] = []
        for number, (title, texts) in enumerate(self.parts):
            sections.append(
                blocks.Section(f"part-{number}", title, (blocks.Bullets(texts),))
            )
        return blocks.Document(
            title=self.title,
            banner="For the board. It is computed from the data: do not publish.",
            internal=True,
            lead=self.lead,
            highlights=(),
            sections=tuple(sections),
            footer=f"Written by mechdesign. Fingerprint of what was checked: {self.digest}.",
        )


def board_page(design: Design, report: Report, file: str) -> BoardPage:
    """The page on a channel in the file of this name."""
    request = report.asked
    secret = names_of(request)[0]
    columns = design.channel.useful.columns
    shown = wording.first_labels(columns, MOST_NAMED)
    rows = "Rows" if len(columns) > 1 else "Values"
    return BoardPage(
        title=f"Release of data that keeps {secret} private",
        lead=f"{rows} of {shown} are released. What stays private is {secret}.",
        parts=(
            ("Who is protected", _protected(design, report, secret)),
            ("What nobody can find out", _unknown(design, report, secret)),
            ("What analysts can do", _possible(design, secret)),
            ("What analysts cannot do", _impossible(design, secret)),
            ("What is not covered", _uncovered(design, report, secret)),
            ("Who checked it, and how", _checked(design, file)),
        ),
        digest=design.channel.digest,
    )


def people(number: int | None) -> str:
    """A number of people with three digits: ``about 32,600 people``."""
    if number is None:
        return "the people"
    rounded = number
    excess = len(str(number)) - DIGITS
    if excess > 0:
        rounded = round(number, -excess)
    about = "" if rounded == number else "about "
    return f"{about}{wording.count(rounded, 'person', 'people')}"


def _protected(design: Design, report: Report, secret: str) -> tuple[str, ...]:
    """Whose secret, and what follows for others."""
    size = people(report.asked.records)
    texts = [
        f"Everybody in the table: {size}. What is protected is {secret} of each of them.",
    ]
    if design.channel.record.confidence:
        texts.append(
            "The promise also holds for the population that these people were drawn from."
        )
    else:
        texts.append("The promise is about these people, and not about anybody else.")
    return tuple(texts)


def _unknown(design: Design, report: Report, secret: str) -> tuple[str, ...]:
    """What no rule finds, of each value that can change most."""
    beliefs = report.promise.beliefs
    if design.channel.record.promise_kind == RELATIVE or not beliefs:
        given = listed(list(design.channel.given))
        return (
            f"Among people with the same {given}, a released row tells little more about {secret}: "
            "how much is promised stands in the internal report.",
        )
    ordered = sorted(beliefs, key=lambda belief: belief.before - belief.highest)
    texts = [_rule(belief, secret) for belief in ordered[:MOST_BELIEFS]]
    left = len(ordered) - MOST_BELIEFS
    if left > 0:
        texts.append(
            f"The same holds, with figures of their own, for {wording.count(left, 'other value')}."
        )
    texts.append(
        "The rule may come from other data, from a model, or from any computation: it does no "
        "better."
    )
    ruled_out = [belief for belief in beliefs if belief.lowest <= 0 < belief.before]
    if ruled_out:
        texts.append(
            "A released row may show that a person does NOT have a value of "
            f"{secret}: that was not asked to be hidden."
        )
    return tuple(texts)


def _rule(belief: Belief, secret: str) -> str:
    """The sentence on one value."""
    value = f"{secret} {wording.label(belief.symbol)}"
    before = f"{wording.people_in(belief.before)} ({wording.percent(belief.before)})"
    if belief.highest >= 1:
        return f"{value} is not hidden: a released row can show it. Of all people {before} have it."
    most = wording.percent_at_most(belief.highest)
    return (
        "Whoever picks people by what is released about them, by whatever rule: at most "
        f"{wording.people_in(belief.highest)} of them ({most}) can be expected to have "
        f"{value}. Of all people it is {before}."
    )


def _possible(design: Design, secret: str) -> tuple[str, ...]:
    """What the release is good for."""
    texts: list[str] = []
    law = design.law
    if law is None:
        texts.append(
            "Estimate how frequent the values are. The release has labels in their place, and the "
            "program turns counts of labels into estimates."
        )
    else:
        texts.append(_law_sentence(law))
    truth = design.truth or {}
    if truth:
        mean = sum(truth.values()) / len(truth)
        worst = min(truth, key=lambda name: truth[name])
        texts.append(
            f"Of the released entries {wording.people_in(mean)} are the true ones; least often "
            f"those of {wording.label(worst)}, {wording.people_in(truth[worst])}."
        )
    given = design.channel.given
    if given:
        texts.append(
            f"Rely on {wording.first_labels(given, MOST_NAMED)} in every row, as in the true data."
        )
    texts.append(
        "Publish the file, hand it on, and use it for any purpose: no later work with it weakens "
        "the promise."
    )
    return tuple(texts)


def _law_sentence(law: Law) -> str:
    """What becomes of counts, averages and tables."""
    changed = [name for name, distance in law.columns.items() if distance > NEARLY]
    if law.kept:
        return (
            "Use counts, percentages, averages and tables of the released columns as they are: "
            "they stay those of the true data, but for chance where rows are drawn one by one."
        )
    if not changed:
        return (
            "Use counts, percentages and averages of each released column: they change by less "
            "than half a percentage point."
        )
    worst = max(law.columns.values())
    return (
        "Use counts and tables with care: percentages of a column can be off by up to "
        f"{wording.percent_at_most(worst)} "
        f"({wording.first_labels(changed, 3)})."
    )


def _impossible(design: Design, secret: str) -> tuple[str, ...]:
    """What the release is no good for."""
    texts = [
        "Say anything about a single person: a released row may belong to somebody else.",
        f"Study how the released columns go together with {secret}: that is what is hidden.",
    ]
    law = design.law
    if law is not None and law.vanished:
        texts.append("Study rare values: some are never released.")
    texts.append("Study columns that are not released.")
    return tuple(texts)


def _uncovered(design: Design, report: Report, secret: str) -> tuple[str, ...]:
    """What the promise leaves open."""
    texts = [
        "What somebody knows anyhow. From a person's true "
        f"{wording.first_labels(design.channel.useful.columns, 2)} he can guess as well as before.",
        "Other columns or files about the same people, and a second release of the same data.",
        f"Who somebody is: {secret} is hidden, yet a released row may still be unusual.",
    ]
    if design.channel.record.promise_kind == RELATIVE:
        given = listed(list(design.channel.given))
        texts.append(f"What {given} tell by themselves: they are released as they are.")
    return tuple(texts)


def _checked(design: Design, file: str) -> tuple[str, ...]:
    """How the promise is known."""
    verdict = (
        "The program mechdesign has checked the promise for every possible release, in exact "
        "arithmetic, without rounding: it holds."
    )
    if not design.verified:
        verdict = (
            "The program mechdesign has checked the promise, and it does NOT hold."
        )
    return (
        verdict,
        f"Whoever holds the data can repeat the check: the file {file} has all that it needs.",
        "The released file itself can be checked, and attacked on purpose, by the same program.",
        "Specialists find the definitions, the budgets and the proof in the internal report.",
    )
