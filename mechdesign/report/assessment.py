"""An assessment of a table (`leaks.assessment`) in words, and as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mechdesign.core.wording import listed
from mechdesign.leaks.assessment import Assessment, ColumnAssessment, Disclosure
from mechdesign.report import blocks as b
from mechdesign.report.wording import aligned, count, label, paragraph, percent

_Shown: TypeAlias = Callable[[str], str]
"""How the name of a column is shown."""

HEADER = (
    "column",
    "values",
    "tells",
    "largest lift",
    "smallest",
    "pinned down",
    "note",
)

PAIR_HEADER = ("columns", "values", "tells", "largest lift", "smallest", "pinned down")

LEFT = (0, 6)
"""Columns of words, which are aligned to the left."""

LEGEND = (
    "'tells' is the share of the information in the sensitive column that a value gives about "
    "a record, read from the other records with that value. A lift is P(symbol | value) / "
    "P(symbol); the largest and smallest are exact for this table, over values of two records "
    "or more. 'pinned down' is the share of the records whose value comes again, always with "
    "one sensitive symbol."
)


def assessment_text(assessment: Assessment) -> str:
    """The text of ``mechdesign assess``."""
    rows = [HEADER, *[_column_row(column, label) for column in assessment.columns]]
    lines = [
        *[paragraph(line, "") for line in _opening(assessment)],
        "",
        "Columns, worst first:",
        *[line.rstrip() for line in aligned(rows, left=LEFT)],
    ]
    if assessment.pairs:
        pairs = [PAIR_HEADER, *[_pair_row(pair, label) for pair in assessment.pairs]]
        lines += ["", "Pairs, worst first:", *aligned(pairs, left=(0,))]
    lines.append("")
    lines += [paragraph(note, "") for note in (*_notes(assessment), LEGEND)]
    return "\n".join(lines)


def assessment_page(assessment: Assessment, source: str, again: str) -> b.Document:
    """The same as a page for those who may see the data; `again` is the command that repeats it."""
    columns = [b.cells(*_column_row(each, b.short)) for each in assessment.columns]
    shaded = [
        (*row[:2], b.Cell(row[2].text, strength=each.disclosure.information), *row[3:])
        for row, each in zip(columns, assessment.columns, strict=True)
    ]
    pairs = [b.cells(*_pair_row(pair, b.short)) for pair in assessment.pairs]
    opening = [b.Text(line) for line in _opening(assessment)]
    notes = [b.Text(line) for line in _notes(assessment)]
    return b.Document(
        title="What the table says about the sensitive column",
        banner="Internal report: it is computed from the data. Do not publish.",
        internal=True,
        lead=f"What the columns of {label(source)} say about {listed(assessment.sensitive)}, "
        f"before any release.",
        highlights=_highlights(assessment),
        sections=(
            b.Section("row", "The whole row", (*opening, *notes)),
            b.Section(
                "columns",
                "Columns",
                (
                    *b.grid("Columns, worst first", HEADER, shaded, "columns", LEFT),
                    b.Text(LEGEND),
                ),
            ),
            b.Section(
                "pairs",
                "Pairs of columns",
                (
                    *b.grid("Pairs, worst first", PAIR_HEADER, pairs, "pairs", (0,)),
                    b.Lines((("Assess again:", again),)),
                ),
            ),
        ),
        footer="Written by mechdesign.",
    )


def _highlights(assessment: Assessment) -> tuple[tuple[str, str], ...]:
    guess = assessment.guess
    return (
        ("Records", f"{assessment.records:,}"),
        ("Guessed right from the whole row", percent(guess.right)),
        ("Guessed right without it", percent(guess.right_without)),
        ("Rows that occur once", percent(assessment.unique_rows)),
    )


def joint_figure(assessment: Assessment) -> str:
    """One sentence: how well the whole row guesses S, against guessing without it."""
    guess = assessment.guess
    sensitive = ", ".join(label(name) for name in assessment.sensitive)
    sentence = (
        f"All {count(len(assessment.row.columns), 'column')} together guess {sensitive} right "
        f"for {percent(guess.right)} of the records, against {percent(guess.right_without)} "
        f"without them"
    )
    if guess.auc is not None:
        sentence += f" (AUC {guess.auc:.3f})"
    return (
        f"{sentence}; of the 5 % that the guess is surest of, "
        f"{percent(guess.surest_right)} are right."
    )


def _opening(assessment: Assessment) -> list[str]:
    shares = [
        f"{label(name)} {percent(share)}" for name, share in assessment.shares.items()
    ]
    sensitive = ", ".join(label(name) for name in assessment.sensitive)
    lines = [
        f"{count(assessment.records, 'record')}. Sensitive: {sensitive} ({listed(shares)}).",
        joint_figure(assessment),
    ]
    if assessment.guess.model != "none":
        lines.append(
            f"The guess is {assessment.guess.model}, cross-validated on "
            f"{count(assessment.guess.records, 'record')}."
        )
    lines.append(
        f"{percent(assessment.unique_rows)} of the records have a row that no other record has."
    )
    return lines


def _column_row(column: ColumnAssessment, shown: _Shown) -> tuple[str, ...]:
    notes: list[str] = []
    if column.identifier:
        notes.append("identifies records")
    elif column.rare_values:
        notes.append(f"{count(column.rare_values, 'value')} of fewer than 10 records")
    return (*_figures(column.disclosure, shown), ", ".join(notes))


def _pair_row(pair: Disclosure, shown: _Shown) -> tuple[str, ...]:
    return _figures(pair, shown)


def _figures(disclosure: Disclosure, shown: _Shown) -> tuple[str, ...]:
    return (
        " x ".join(shown(name) for name in disclosure.columns),
        f"{disclosure.values:,}",
        percent(disclosure.information),
        _lift(disclosure.largest_lift),
        _lift(disclosure.smallest_lift),
        percent(disclosure.pinned),
    )


def _lift(lift: float | None) -> str:
    return "-" if lift is None else f"{lift:.3g}"


def _notes(assessment: Assessment) -> Sequence[str]:
    notes: list[str] = []
    identifiers = [
        label(column.name) for column in assessment.columns if column.identifier
    ]
    if identifiers:
        notes.append(
            f"Left out of pairs and rows, because almost every record has a value of its own: "
            f"{listed(identifiers)}."
        )
    if assessment.rare_secrets:
        names = [label(name) for name in assessment.rare_secrets]
        notes.append(
            f"Fewer than 10 records each: {listed(names)}. The table says little about these "
            f"people, and no promise "
            "about them can hold for a population at small cost."
        )
    if assessment.unreadable:
        names = [label(name) for name in assessment.unreadable]
        notes.append(f"Not looked at (lists, structures or bytes): {listed(names)}.")
    return notes
